/* names.h - from an address of a process or of the kernel to its function, with the state of the machine as the records so far have
 * it: maps.h, symbol.h, stacks.h and jit.h as one.  In libperfring-profile.
 *
 *     perfring_names_open(&names, NULL);                               or of a file: .file = file
 *     for each item, in time order
 *             if (item.record->type != PERFRING_RECORD_SAMPLE)
 *                     perfring_names_take(names, &item);
 *             else if (!perfring_sample_decode(item.format, item.record, &sample, NULL)) {
 *                     perfring_names_advance(names, item.time);        of code of JITs
 *                     if (perfring_names_find(names, perfring_record_cpumode(item.record), sample.pid, sample.ip, &name) == 1)
 *                             puts(name.name);
 *             }
 *     perfring_names_close(names);
 *
 * A build other than the recorded one gives no names.  profile_fill.h makes profiles by it.
 *
 * Bounds: those of maps.h, symbol.h, stacks.h and jit.h; of one object of names 256 files of JITs, and maps of them until they have
 * 4 194 304 pieces of code in all (docs/limits.md).
 *
 * Context: one thread at a time for each object of names; not signal handlers. */
#ifndef PERFRING_NAMES_H
#define PERFRING_NAMES_H

#include <perfring/build_id.h>
#include <perfring/file.h>
#include <perfring/maps.h>
#include <perfring/stacks.h>
#include <perfring/symbol.h>

PERFRING_BEGIN

/* Why an address has no name. */
enum perfring_nameless {
	PERFRING_NAMELESS_NONE,      /* it has one */
	PERFRING_NAMELESS_UNMAPPED,  /* nothing is known to be mapped there */
	PERFRING_NAMELESS_MODE,      /* it is neither of user space nor of the kernel */
	PERFRING_NAMELESS_ANONYMOUS, /* in memory without a file */
	PERFRING_NAMELESS_OBJECT,    /* the object cannot be read */
	PERFRING_NAMELESS_CHANGED,   /* the object is another build or file now */
	PERFRING_NAMELESS_SYMBOL,    /* the object has no symbol there */
	PERFRING_NAMELESS_KERNEL,    /* the kernel's symbols are not known: see perfring_names_kernel */
	PERFRING_NAMELESS_LIMIT,     /* the object exceeds a bound */
	PERFRING_NAMELESS_MADE,      /* code that the process made, which no file of it names */
	PERFRING_NAMELESS_COUNT
};

/* The function at an address.  Texts are valid until perfring_names_close. */
struct perfring_name {
	const char *name;   /* NULL: there is none, see nameless */
	const char *object; /* path, "[kernel.kallsyms]", "[MODULE]", "/tmp/perf-PID.map"; NULL: nothing is mapped there */
	uint64_t offset;    /* in the function, bytes */
	uint64_t address;   /* as in the object's own tables, where known, else the address that was asked for */
	int64_t size;       /* of the function, bytes; -1: unknown */
	uint32_t nameless;  /* enum perfring_nameless */
	uint32_t reserved;
};

/* What is reported. */
enum perfring_names_event {
	PERFRING_NAMES_OBJECT, /* an object was read, or could not be: perfring_symbol_state_of(object) */
	PERFRING_NAMES_LINES,  /* lines or inlined functions of an object: it exceeds a bound, or error is -EOPNOTSUPP */
	PERFRING_NAMES_KERNEL, /* the kernel's symbols were read, or could not be */
	/* a file of code that a process made was read, or could not be.  error: that of jit.h; -ETIME (the recording's clock is not
	 * that of dumps, CLOCK_MONOTONIC), -E2BIG (too many such files), -EFBIG (part of it exceeds a bound) */
	PERFRING_NAMES_CODE,
	PERFRING_NAMES_MANGLED /* once: the name in `path` is of C++ or Rust, and this library cannot demangle it (PERFRING_HAS_IBERTY) */
};

struct perfring_names_report {
	uint32_t event; /* enum perfring_names_event */
	int error;      /* 0 or -errno */
	const char *path;
	const struct perfring_symbol_object *object; /* of OBJECT, LINES and KERNEL */
	uint64_t codes;                              /* pieces of code of a map; 0: a dump */
	uint64_t reserved[4];
};

enum {
	/* Maps and dumps of code that belong to other users are read, too. */
	PERFRING_NAMES_ANY_OWNER = 1
};

/* Texts and pointers must stay until perfring_names_close. */
struct perfring_names_options {
	uint32_t flags; /* PERFRING_NAMES_ */
	uint32_t reserved_word;
	struct perfring_symbols *symbols; /* the caller's cache; NULL: one of its own, which asks no servers */
	struct perfring_maps *maps;       /* the caller's; NULL: its own */
	/* What was recorded: it has the builds of objects, the kernel's release, the host's name, and the clock.  NULL: what runs
	 * here now, by CLOCK_MONOTONIC.  The caller's cache has the flags FOREIGN and ELSEWHERE that the caller gave it; its own
	 * has those of the file. */
	const struct perfring_file *file;
	const char *kallsyms, *vmlinux; /* as perfring_symbol_kernel */
	uint64_t until; /* when the processes were seen last: ns of CLOCK_REALTIME; 0: those that live now are meant */
	/* Called for each object and file that is read, and for each that cannot be.  Runs in the thread that called; it must not
	 * call functions of these names.  NULL: not called. */
	void (*report)(void *to, const struct perfring_names_report *report);
	void *to;
	uint64_t reserved[8];
};

struct perfring_names;

/* options: NULL is all 0.  Returns 0; -EINVAL (a flag that is not known); -ENOMEM; -errno of uname(2). */
PERFRING_API int perfring_names_open(struct perfring_names **names, const struct perfring_names_options *options);

/* Frees all texts, and what was not the caller's. */
PERFRING_API void perfring_names_close(struct perfring_names *names);

/* Takes an item's record, or a decoded one, that is no sample: into the maps too.  Returns 0; -EBADMSG (it cannot be decoded);
 * -ENOMEM. */
PERFRING_EXPERIMENTAL int perfring_names_take(struct perfring_names *names, const struct perfring_item *item);
PERFRING_API int perfring_names_take_record(struct perfring_names *names, const struct perfring_record *record);

/* Takes what runs now: the names of the process's threads and its mappings of code, from /proc; for live events that begin after
 * the process did.  Nothing, where it has ended or may not be inspected.  Returns 0, -ENOMEM, -errno (EMFILE ...). */
PERFRING_API int perfring_names_take_process(struct perfring_names *names, uint32_t pid);

/* Advances to the time of the next sample, ns, for code of JITs.  Returns 1: names of known addresses may have changed; 0; -ENOMEM. */
PERFRING_API int perfring_names_advance(struct perfring_names *names, uint64_t time);

/* A number that changes whenever names of addresses may have, except by mappings of processes (perfring_maps_version). */
PERFRING_API uint64_t perfring_names_version(const struct perfring_names *names);

/* The function at an address, by the mappings as they are now.  cpumode: as in a record's misc.  Returns 1; 0: it has no name;
 * -ENOMEM. */
PERFRING_API int perfring_names_find(struct perfring_names *names, unsigned cpumode, uint32_t pid, uint64_t ip,
				     struct perfring_name *found);

/* The functions at the address, as perfring_symbol_frames has them: none of the kernel's.  Returns how many, at most `most`;
 * -ENOMEM.  Valid until: the next call. */
PERFRING_API int perfring_names_frames(struct perfring_names *names, unsigned cpumode, uint32_t pid, uint64_t ip,
				       struct perfring_symbol_frame *frames, uint32_t most);

/* The offset of an address in the file of its object; the address itself where nothing is known to be mapped, and of the kernel. */
PERFRING_API uint64_t perfring_names_place(const struct perfring_names *names, unsigned cpumode, uint32_t pid,
					   uint64_t ip);

/* The build id of the object that was found at the address, as it was recorded.  Returns its length in bytes; 0: not known. */
PERFRING_API uint32_t perfring_names_build_id(const struct perfring_names *names, unsigned cpumode, uint32_t pid,
					      uint64_t ip, const char *object, uint8_t id[PERFRING_BUILD_ID_SIZE]);

/* The mappings; what unwinds copied stacks; the kernel's object, NULL before an address of it was asked for.  Valid until
 * perfring_names_close. */
PERFRING_API const struct perfring_maps *perfring_names_maps(const struct perfring_names *names);
PERFRING_API struct perfring_stacks *perfring_names_stacks(struct perfring_names *names);
PERFRING_API const struct perfring_symbol_object *perfring_names_kernel(const struct perfring_names *names);

PERFRING_END

#endif
