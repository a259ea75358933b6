/* maps.h - which object was mapped at which address: the names of threads and the mappings of processes and of the kernel, from
 * records (docs/abi.md 5).  In libperfring-profile.
 *
 *     perfring_maps_open(&maps);
 *     while (perfring_file_next(file, &item) == 1) {                   or of a session: in time order
 *             if (item.record->type != PERFRING_RECORD_SAMPLE)
 *                     perfring_maps_take(maps, &item);
 *             else if (!perfring_sample_decode(item.format, item.record, &sample, NULL))
 *                     map = perfring_maps_find(maps, perfring_record_cpumode(item.record), sample.pid, sample.ip);
 *     }
 *
 * The state is that of the record last taken:
 *
 *     COMM                        names the thread; with the misc bit of an exec, the process has no mappings any more
 *     FORK                        a process has its parent's mappings, which both share until one of them changes; a
 *                                 thread has its process's.  Names and namespaces are inherited
 *     EXIT                        what is known of the thread stays for late samples: see PERFRING_MAPS_ENDED_MAX
 *     MMAP, MMAP2                 replaces what it overlaps, of which the rest stays
 *     KSYMBOL                     code that the kernel made is mapped, unless the kernel or a module is there; or unmapped
 *     NAMESPACES                  the thread's namespaces
 *
 * No other record changes it: TEXT_POKE changes bytes of the kernel, and not where they are; BPF_EVENT follows the KSYMBOL of
 * each of its functions.
 *
 * FORK, COMM and MMAP2 that describe what ran before the recording began have no place in time: a FORK with time 0, or with
 * PERFRING_RECORD_MISC_FORK_EXEC, shares nothing, because the process's own mappings follow.
 *
 * Context: one thread at a time for each object; not signal handlers. */
#ifndef PERFRING_MAPS_H
#define PERFRING_MAPS_H

#include <perfring/record.h>

PERFRING_BEGIN

/* Bounds of the memory, whatever the records say.  What exceeds one is forgotten and counted (perfring_maps_count): first threads
 * that have ended, then those that no record has named for longest.  What is forgotten has no name and no mappings until later
 * records name it. */
enum {
	PERFRING_MAPS_TASKS_MAX = 1 << 20,      /* threads and processes: 128 bytes each */
	PERFRING_MAPS_ENDED_MAX = 1 << 14,      /* ... of them, those that have ended */
	PERFRING_MAPS_MAPPINGS_MAX = 1 << 22,   /* in all processes: 80 bytes each; shared ones count once */
	PERFRING_MAPS_NAME_BYTES_MAX = 1 << 28, /* all different names, objects and namespaces; later ones are "" */
};

enum perfring_maps_kind {
	PERFRING_MAPS_FILE,    /* a path; "PATH (deleted)", "/memfd:NAME (deleted)" */
	PERFRING_MAPS_MEMORY,  /* no file: "//anon", "/anon_hugepage", "/dev/zero", "/SYSV...", "[heap]", "[stack]" */
	PERFRING_MAPS_VDSO,    /* "[vdso]" */
	PERFRING_MAPS_OTHER,   /* any other name of a process's mapping: "[vvar]", "anon_inode:..." */
	PERFRING_MAPS_KERNEL,  /* "[kernel.kallsyms]_text": pgoff is the address of the symbol after the bracket */
	PERFRING_MAPS_MODULE,  /* "[ext4]", or a path */
	PERFRING_MAPS_KSYMBOL, /* the name of the code: of a BPF program, a trampoline */
};

/* What is mapped.  One object for equal names and files: pointers to it and to its name are equal exactly if the contents
 * are.  Valid until: perfring_maps_close. */
struct perfring_maps_object {
	const char *name;
	struct perfring_file_id file; /* all 0 where the record had none */
	uint32_t kind;
	uint32_t reserved;
};

/* [addr, end) has the bytes of the object from pgoff on. */
struct perfring_mapping {
	uint64_t addr;
	uint64_t end;
	uint64_t pgoff;
	const struct perfring_maps_object *object;
	uint32_t pid;  /* of the process that mapped it: this one, or one that it was forked from */
	uint32_t prot; /* PROT_EXEC: 4 ...; of a MMAP, which does not have it, 4, or 0 if it is of data */
};

/* The offset of an address of the mapping in its object; in memory without a file the address itself, as perf shows it. */
PERFRING_API uint64_t perfring_mapping_offset(const struct perfring_mapping *mapping, uint64_t ip);

struct perfring_maps_counts {
	uint64_t tasks;     /* threads and processes that are known now */
	uint64_t ended;     /* ... of them, those that have ended */
	uint64_t mappings;  /* in memory now */
	uint64_t bytes;     /* of names, objects and namespaces */
	uint64_t forgotten; /* tasks forgotten so far, other than ended ones; and 1 for the kernel's mappings */
	uint64_t nameless;  /* names, objects and namespaces so far for which there was no space */
};

struct perfring_maps;

/* Returns 0 or -ENOMEM. */
PERFRING_API int perfring_maps_open(struct perfring_maps **maps);
/* Frees all objects, names and mappings. */
PERFRING_API void perfring_maps_close(struct perfring_maps *maps);

/* Takes an item's record, or one that is decoded already, of any type; nothing of it need stay.  Returns 0; -EBADMSG (the record
 * cannot be decoded); -ENOMEM: then each mapping is as before. */
PERFRING_API int perfring_maps_take(struct perfring_maps *maps, const struct perfring_item *item);
PERFRING_API int perfring_maps_take_record(struct perfring_maps *maps, const struct perfring_record *record);

/* The mapping at an address, as the state is now.  cpumode: PERFRING_RECORD_MISC_KERNEL: the kernel's, of any pid; _USER: the
 * process's; _GUEST_KERNEL: of the guest whose process has that pid, or of the guest of pid 0.  Returns NULL where nothing is known
 * to be mapped, and for other cpumodes.  Valid until: the next take. */
PERFRING_API const struct perfring_mapping *perfring_maps_find(const struct perfring_maps *maps,
									unsigned cpumode, uint32_t pid, uint64_t ip);

/* A number of the process's mappings in user space as they are now (for those of the kernel see perfring_names_version).  A number is
 * never used again for other mappings: what a caller has computed stays right as long as the number is the same.  Returns 0 for a
 * process without mappings, or of which nothing is known. */
PERFRING_API uint64_t perfring_maps_version(const struct perfring_maps *maps, uint32_t pid);

/* The thread's name; NULL when no record named it.  Thread 0 is "swapper".  Equal names are one pointer.  Valid until:
 * perfring_maps_close. */
PERFRING_API const char *perfring_maps_comm(const struct perfring_maps *maps, uint32_t tid);

/* The inode of one of the thread's namespaces: PERFRING_MAPS_NS_MNT ...  Returns 0 when it is not known. */
enum {
	PERFRING_MAPS_NS_NET,
	PERFRING_MAPS_NS_UTS,
	PERFRING_MAPS_NS_IPC,
	PERFRING_MAPS_NS_PID,
	PERFRING_MAPS_NS_USER,
	PERFRING_MAPS_NS_MNT,
	PERFRING_MAPS_NS_CGROUP,
};
PERFRING_EXPERIMENTAL uint64_t perfring_maps_namespace(const struct perfring_maps *maps, uint32_t tid, unsigned index);

/* Copies a name, and returns the one pointer of all equal names: the text up to its NUL, at most `size` bytes.  Returns NULL
 * without memory, and "" beyond PERFRING_MAPS_NAME_BYTES_MAX.  Valid until: perfring_maps_close. */
PERFRING_API const char *perfring_maps_name(struct perfring_maps *maps, const char *text, size_t size);

/* The counts now. */
PERFRING_API void perfring_maps_count(const struct perfring_maps *maps, struct perfring_maps_counts *counts);

PERFRING_END

#endif
