/* symbol.h - names of functions: from an object and an offset in it to its symbol.  In libperfring-profile.
 *
 *     perfring_symbols_open(&symbols, NULL);
 *     perfring_symbols_get(symbols, &(struct perfring_symbol_file){.path = "/usr/bin/x"}, &object);
 *     if (perfring_symbol_find(object, offset, &symbol))
 *             puts(symbol.name);
 *     perfring_symbols_close(symbols);
 *
 * One cache serves all processes and all files: an object is read once, when it is first asked for, whatever its names are.
 * Its symbols are the first of these that there are:
 *
 *     its .symtab
 *     its debug file's: /usr/lib/debug/.build-id, the one that .gnu_debuglink names
 *     what it exports and the .symtab in its .gnu_debugdata
 *     its debug file's: perf's cache (~/.debug), debuginfod's cache, servers
 *
 * An object that the path does not lead to is looked for by its build id in those caches, and on servers.  Servers are asked only
 * with PERFRING_SYMBOLS_SERVERS.  Entries of its PLT are named too, but not the header before them, through which a function is
 * called until it is bound: perf shows it by the last symbol before it (_init+0x26).  Names of C++ and Rust are demangled,
 * without parameters, if the library has libiberty (PERFRING_HAS_IBERTY).  A file of another build than was recorded is never
 * used: its build id is compared or, where none was recorded, its inode (struct perfring_symbol_file).  What is read is bounded
 * (docs/limits.md), whatever the bytes say.
 *
 * Context: one thread at a time for each cache; not signal handlers. */
#ifndef PERFRING_SYMBOL_H
#define PERFRING_SYMBOL_H

#include <perfring/base.h>

PERFRING_BEGIN

/* Why an address has no name. */
enum perfring_symbol_why {
	PERFRING_SYMBOL_KNOWN,       /* the address has a name; in the state of an object: its symbols were read */
	PERFRING_SYMBOL_NONE,        /* the object has no symbol there */
	PERFRING_SYMBOL_ANONYMOUS,   /* the path is no file's: "//anon", "[heap]", "anon_inode:..." */
	PERFRING_SYMBOL_UNREADABLE,  /* the object cannot be read, or is no ELF object */
	PERFRING_SYMBOL_OTHER_BUILD, /* the path leads to a different build, or another file, than was recorded */
	PERFRING_SYMBOL_LIMIT,       /* it exceeds a bound */
	PERFRING_SYMBOL_HIDDEN,      /* of the kernel: its addresses are hidden (kernel.kptr_restrict) */
	PERFRING_SYMBOL_OTHER_BOOT,  /* of the kernel: it was at another address */
	PERFRING_SYMBOL_WHY_COUNT
};

/* Which object, as a mapping describes it.  Nothing of it need stay after the call.
 *
 * Where no build id is known, neither here nor by perfring_symbols_expect, the file that the path leads to serves if its inode
 * is the recorded one: one that has replaced it, or that another mount namespace has by that path, is not used.  Devices are not
 * compared (they are not the same in records and in stat on all file systems).  A file that was overwritten in place keeps its
 * inode: that is not seen.  Inodes are not compared with a symfs or PERFRING_SYMBOLS_ELSEWHERE. */
struct perfring_symbol_file {
	const char *path;        /* "[vdso]": this process's own vdso */
	const uint8_t *build_id; /* of what was recorded, at most PERFRING_BUILD_ID_SIZE bytes */
	uint32_t build_id_size;  /* 0: not known */
	int32_t pid;  /* where the path leads to another build or inode here: as this process sees it; 0: nowhere else */
	uint64_t ino; /* of what was recorded, as MMAP2 has it; 0: not known: any file of that path serves */
	uint64_t ino_generation; /* as MMAP2 has it; 0, and 1, which perf inject writes of all: not known */
	uint64_t reserved[2];
};

/* The symbol at an offset.  Texts are valid until perfring_symbols_close. */
struct perfring_symbol {
	const char *name;   /* NULL: there is none, see why */
	const char *module; /* of the kernel: "[name]" of the module that it is in; NULL: the kernel itself */
	uint64_t start;     /* of the function, an address of the object's tables */
	uint64_t end;       /* after its last byte */
	uint64_t address;   /* of the offset in the object's tables; the offset itself if the tables are not known */
	enum perfring_symbol_why why;
	uint32_t reserved;
};

/* What is known of an object.  Texts are valid until the next perfring_symbols_get of it. */
struct perfring_symbol_state {
	enum perfring_symbol_why why;
	/* Why not all of it, or of its debug file, was read: -errno; 0: all was; -ESTALE: its unwind tables were not, for another file
	 * is there by now, or it was written. */
	int error;
	const char *error_path; /* which file; NULL: the object */
	const char *exceeded;   /* the first bound that was exceeded, "512 MiB to read from one object"; NULL: none */
	const char *path;       /* the file that was read; NULL: none */
	const char *debug_path; /* the debug file that the symbols are of; NULL: the object's own */
	bool has_exports_only;  /* only functions that it exports are known: a debug file would have the others */
	uint64_t reserved[3];
};

struct perfring_symbols;
struct perfring_symbol_object;

enum {
	/* Names of C++ and Rust are not demangled. */
	PERFRING_SYMBOLS_MANGLED = 1,
	/* Files of this user's caches are not used. */
	PERFRING_SYMBOLS_NO_CACHES = 2,
	/* Servers are asked (debuginfod): those of DEBUGINFOD_URLS. */
	PERFRING_SYMBOLS_SERVERS = 4,
	/* It was recorded under another kernel: this process's vdso is not used for the recorded one. */
	PERFRING_SYMBOLS_FOREIGN = 8,
	/* No symbols are read: for unwinding alone (stacks.h).  No address has a name. */
	PERFRING_SYMBOLS_NAMELESS = 16,
	/* It was recorded on another machine, or may have been: inodes are not compared. */
	PERFRING_SYMBOLS_ELSEWHERE = 32
};

struct perfring_symbols_options {
	uint32_t flags; /* PERFRING_SYMBOLS_ */
	uint32_t reserved_word;
	/* A folder that stands for the root of the machine that was recorded; NULL: none.  Copied. */
	const char *symfs;
	/* Called with `to` while a file for the object `path` is loaded from a server, `done` bytes of `all`; all 0: not known yet.
	 * Returns false to ask no more.  Runs in the thread that called the cache.  NULL: not called. */
	bool (*progress)(void *to, const char *path, int64_t done, int64_t all);
	void *to;
	uint64_t reserved[12];
};

struct perfring_file;

/* The flags of a cache for what a file recorded: FOREIGN, if it names another kernel release than this machine has; ELSEWHERE, if it
 * does not name this host.  file: NULL: what runs here now: 0. */
PERFRING_API uint32_t perfring_symbols_flags_for(const struct perfring_file *file);

/* An empty cache.  options: NULL is all 0.  Returns 0; -EINVAL (a flag that is not known), -EOPNOTSUPP (servers:
 * libdebuginfod.so.1 cannot be loaded), -ENOMEM. */
PERFRING_API int perfring_symbols_open(struct perfring_symbols **symbols,
				       const struct perfring_symbols_options *options);

/* Frees all objects and texts. */
PERFRING_API void perfring_symbols_close(struct perfring_symbols *symbols);

/* The object of a file, which is opened and read at the first call.  Returns 1 if something about it is new, 0 if all was known;
 * -EINVAL (a build id that is too long), -ENOMEM.  Valid until: perfring_symbols_close. */
PERFRING_API int perfring_symbols_get(struct perfring_symbols *symbols, const struct perfring_symbol_file *file,
				      struct perfring_symbol_object **object);

/* Sets the build that a path had when it was recorded, as a file's BUILD_ID feature has it: perfring_symbols_get uses no other
 * build of that path if its caller gives none.  Only the first call for a path counts.  Returns 0; -EINVAL (no build id, or one
 * that is too long), -ENOMEM. */
PERFRING_API int perfring_symbols_expect(struct perfring_symbols *symbols, const char *path, const uint8_t *build_id,
					 uint32_t build_id_size);

/* What is known of the object. */
PERFRING_API void perfring_symbol_state_of(const struct perfring_symbol_object *object,
					   struct perfring_symbol_state *state);

/* The symbol at an offset in the object's file (perfring_mapping_offset), or at an address of the kernel.  Returns whether it has a
 * name; if not, symbol->why is the reason. */
PERFRING_API bool perfring_symbol_find(struct perfring_symbol_object *object, uint64_t offset,
				       struct perfring_symbol *symbol);

/* One of the functions at an offset: inlined ones, and the one they are in. */
struct perfring_symbol_frame {
	const char *name; /* NULL: unknown */
	const char *file; /* of its source, as the compiler was called; NULL: unknown */
	uint32_t line;    /* 0: unknown */
	bool is_inlined;  /* into the next one */
};

/* The functions at an offset, innermost first, from the DWARF of the object or its debug file: those that were inlined there,
 * and the one that they are in, each with the line that is executed in it.  Returns how many there are, at most `most`; 0: it
 * has no DWARF, or nothing about the offset; -EOPNOTSUPP, once for a file: its DWARF is compressed, and the library has no zlib
 * (PERFRING_HAS_ZLIB) or libzstd; -ENOMEM.  Texts are valid until the next call for any object of the cache. */
PERFRING_API int perfring_symbol_frames(struct perfring_symbol_object *object, uint64_t offset,
					struct perfring_symbol_frame *frames, uint32_t most);

/* The frames of one offset, innermost first; count 0: nothing is known of it. */
struct perfring_symbol_stack {
	const struct perfring_symbol_frame *frames;
	uint32_t count;
	uint32_t reserved_word;
};

/* As perfring_symbol_frames, of many offsets, which takes less time than one call for each: they are looked up unit by unit, in the
 * order of their addresses.  stacks: space for `count`, in the order of the offsets.  Returns how many offsets it has looked up, the first
 * ones: at most 65 536, fewer if their DWARF takes too much memory, at least one; -EOPNOTSUPP, -ENOMEM.  Frames and texts are
 * valid until the next call for any object of the cache. */
PERFRING_EXPERIMENTAL int64_t perfring_symbol_stacks(struct perfring_symbol_object *object, const uint64_t *offsets,
						     uint64_t count, struct perfring_symbol_stack *stacks);

/* Which kernel.  Nothing of it need stay after the call. */
struct perfring_symbol_kernel {
	/* Files that the user names: like /proc/kallsyms; an ELF image.  NULL: not named. */
	const char *kallsyms;
	const char *vmlinux;
	const char *release; /* of what was recorded: uname -r; NULL: not known */
	const uint8_t *build_id;
	uint32_t build_id_size; /* 0: not known */
	uint32_t reserved_word;
	const char
		*reference; /* a symbol, and where it was: of the mapping "[kernel.kallsyms]_text"; NULL: not known */
	uint64_t address;
	uint64_t reserved[4];
};

/* The recorded kernel, an object whose offsets are addresses.  Its symbols are the first of these that there are:
 *
 *     those of the file that the user names
 *     /proc/kallsyms, if the build id (else, where it is not known, the release) is that of the running kernel
 *     the kallsyms of that build id in perf's cache
 *
 * Where `reference` is another address in them than was recorded, they are of another boot: the kernel's own symbols are moved by
 * the difference if the build is known to be the same, or the user named the file; those of modules and BPF programs are left
 * out.  Where the build is known, perf's cache has its list and /proc/kallsyms shows addresses, the cache's serves for the kernel's own
 * code, whose symbols are the same, and /proc/kallsyms, which takes longer, is read when perfring_symbol_find is asked for another
 * address: if that fails, `why` and `error` of the object's state change.  Reads at most 256 MiB of a list.  Call it once for each
 * kernel.  Returns 0, with the object's `why`, or -EINVAL (a build id that is too long), -ENOMEM.  Valid until:
 * perfring_symbols_close. */
PERFRING_API int perfring_symbols_get_kernel(struct perfring_symbols *symbols,
					     const struct perfring_symbol_kernel *kernel,
					     struct perfring_symbol_object **object);

/* A copy of this process's vdso, which has no file.  Returns a file descriptor, to be closed; -ENOENT (there is none),
 * -errno. */
PERFRING_API int perfring_vdso_open(void);

PERFRING_END

#endif
