/* symbols.h - from an address to a name: user objects by elf_symbols.h, the kernel by /proc/kallsyms.
 *
 * Objects are read under the bounds of limits.h, once per file (device and inode).  What exceeds a bound has no name; the
 * first such object is reported on stderr. */
#ifndef SYMBOLS_H
#define SYMBOLS_H

#include <perfring/file.h>
#include "machine.h"

/* Why an address has no name. */
enum perfring_nameless {
	PERFRING_NAMELESS_NONE, /* it has one */
	PERFRING_NAMELESS_UNMAPPED,
	PERFRING_NAMELESS_MODE,
	PERFRING_NAMELESS_ANONYMOUS,
	PERFRING_NAMELESS_OBJECT,
	PERFRING_NAMELESS_CHANGED,
	PERFRING_NAMELESS_SYMBOL,
	PERFRING_NAMELESS_KERNEL,
	PERFRING_NAMELESS_LIMIT,
	PERFRING_NAMELESS_COUNT,
};

/* name is NULL when there is none; object NULL when nothing is mapped there.  address is the one that the object's
 * own tables use, where known, else the sampled one.  Names live as long as the symbols and the machine. */
struct perfring_symbol {
	const char *name;
	const char *object;
	uint64_t offset;
	uint64_t address;
	enum perfring_nameless nameless;
};

struct perfring_symbols;

/* The file says which kernel and which builds of the objects it saw: others are not used. */
struct perfring_symbols *perfring_symbols_open(const struct perfring_file *data, struct perfring_machine *machine);
void perfring_symbols_close(struct perfring_symbols *symbols);

/* The address as the machine is now.  cpumode as in a record's misc. */
void perfring_symbols_find(struct perfring_symbols *symbols, unsigned cpumode, uint32_t pid, uint64_t ip,
			   struct perfring_symbol *found);

/* The next frame of a callchain.  *cpumode is the sample's at first.  Returns false when the word is a marker, or the
 * cookie of a deferred chain, and no frame. */
bool perfring_symbols_frame(uint64_t word, unsigned *cpumode);

/* The vdso has no file.  open: a copy of this process's own, or -errno.  knows: whether the one that is mapped there is the
 * same, if the kernel is: a 64-bit kernel has another one for 32-bit processes, whose addresses end at 4 GiB. */
#define PERFRING_SYMBOLS_VDSO "[vdso]"
int perfring_symbols_open_vdso(void);
bool perfring_symbols_knows_vdso(const struct perfring_mapping *map);

/* "not mapped" ... */
const char *perfring_symbols_why(const struct perfring_symbols *symbols, enum perfring_nameless nameless);

#endif
