/* jit.h - names of code that a process made while it ran: /tmp/perf-PID.map and jitdump files.  In
 * libperfring-profile.
 *
 *     fd = perfring_jit_file_open(pid, NULL, 0, 0);              its perf-PID.map; or the jitdump file that it has mapped
 *     perfring_jit_open_map(&jit, fd);                           or perfring_jit_open_dump(&jit, fd, &about)
 *     for each sample, in time order
 *             perfring_jit_advance(jit, time);                   of a dump: code that was made later has no name yet
 *             if (perfring_jit_find(jit, ip, &symbol))
 *                     use(symbol.name, ip - symbol.start);
 *
 * A map file has lines "START SIZE NAME": hexadecimal, with 0x or without; a name may contain blanks.  It has no times:
 * where entries overlap, the last one holds.  A jitdump file has records with times of CLOCK_MONOTONIC: LOAD, MOVE,
 * DEBUG_INFO (lines of sources) and CLOSE; others are passed over.
 *
 * Both formats are perf's.  The files are foreign, and any bytes cost no more than the bounds below: what exceeds one has no
 * name, and perfring_jit_count counts it.
 *
 * Context: one thread at a time for each object; not signal handlers. */
#ifndef PERFRING_JIT_H
#define PERFRING_JIT_H

#include <perfring/base.h>

PERFRING_BEGIN

enum {
	PERFRING_JIT_FILE_MAX = 1 << 28,  /* bytes of a map file that are read */
	PERFRING_JIT_CODES_MAX = 1 << 20, /* pieces of code: 80 bytes each, and their names */
	PERFRING_JIT_NAMES_MAX = 1 << 28, /* bytes of all different names */
	PERFRING_JIT_NAME_MAX = 16384,    /* bytes of one name */
	PERFRING_JIT_DEBUG_MAX = 1 << 24, /* bytes of one DEBUG_INFO record that are searched */
};

struct perfring_jit;

/* Opens the map file of a process, /tmp/perf-PID.map: as the process sees it, with its pid there, while it lives; else as the
 * caller does.  path: another file of the process's, for a jitdump file that it has mapped; NULL: the map file.  until: when the
 * process was seen last, in ns of CLOCK_REALTIME (of a recording, the time of its file); 0: the process of that pid that
 * lives now is meant.  One that started later than that is another process.
 *
 * Returns a file descriptor; -EPERM: the file belongs neither to the caller, nor to root, nor to the user of the living process;
 * -ESTALE: it is as young as another process that now has the pid; -EINVAL: it is no regular file; -errno. */
enum {
	PERFRING_JIT_ANY_OWNER = 1, /* the file may belong to any user */
};
PERFRING_API int perfring_jit_file_open(int32_t pid, const char *path, uint64_t until, uint32_t flags);

/* Reads all of a map file.  fd: stays the caller's.  Malformed lines are counted, and skipped.  Returns 0; -ENOMEM; -errno of reading
 * it. */
PERFRING_API int perfring_jit_open_map(struct perfring_jit **jit, int fd);

/* The header of a jitdump file. */
struct perfring_jit_dump {
	uint32_t pid;     /* as the process knew itself */
	uint32_t machine; /* EM_X86_64 ... */
	uint64_t time;    /* when it was begun, ns of CLOCK_MONOTONIC */
	bool is_foreign;  /* it is of the other byte order */
};

/* Reads the header of a jitdump file.  fd: on success the object's, which close closes; on an error the caller's.  Returns 0;
 * -EBADMSG (no jitdump file); -EOPNOTSUPP (another version, or times of a processor's counter); -ENOMEM; -errno. */
PERFRING_API int perfring_jit_open_dump(struct perfring_jit **jit, int fd, struct perfring_jit_dump *about);
PERFRING_API void perfring_jit_close(struct perfring_jit *jit);

/* Takes the records of a dump up to this time (ns), which must not be less than that of the last call; does nothing with a map
 * file.  What the process has written since the last call is read too.  Returns 0; -EBADMSG: a record is damaged, and nothing
 * after it is read; -ENOMEM; -errno. */
PERFRING_API int perfring_jit_advance(struct perfring_jit *jit, uint64_t time);

/* A piece of code.  The name is valid until perfring_jit_close. */
struct perfring_jit_symbol {
	const char *name;
	uint64_t start; /* its first address, as it was made */
	uint64_t debug; /* for perfring_jit_line; 0: its lines are not known */
};

/* The code at an address, as of the last advance.  Returns false, and leaves *symbol: none is known there. */
PERFRING_API bool perfring_jit_find(const struct perfring_jit *jit, uint64_t ip, struct perfring_jit_symbol *symbol);

/* The source line of an address in the code: that of the last entry at or below it.  file: a buffer of `size` bytes for the source's
 * name, which is truncated to it.  Returns 1; 0: it is not known; -errno. */
PERFRING_API int perfring_jit_line(const struct perfring_jit *jit, const struct perfring_jit_symbol *symbol,
				   uint64_t ip, char *file, size_t size, uint32_t *line);

struct perfring_jit_counts {
	uint64_t codes;     /* pieces of code that are known now; one that was cut in two counts twice */
	uint64_t taken;     /* lines of a map, or records of a dump, so far */
	uint64_t malformed; /* malformed lines of a map, or records of a dump, and those whose name is too long */
	uint64_t exceeded;  /* pieces of code that have no name because of a bound; and 1 for a map file that is too long */
};

/* Copies the counts so far into *counts. */
PERFRING_API void perfring_jit_count(const struct perfring_jit *jit, struct perfring_jit_counts *counts);

PERFRING_END

#endif
