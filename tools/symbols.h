/* symbols.h - from an address to a name: user objects by elf_symbols.h, the kernel by /proc/kallsyms.
 *
 * Objects are read under the bounds of limits.h, once per file (device and inode).  What exceeds a bound has no name; the
 * first such object is reported on stderr. */
#ifndef PERFRING_TOOLS_SYMBOLS_H
#define PERFRING_TOOLS_SYMBOLS_H

#include <perfring/file.h>
#include "machine.h"

/* Why an address has no name. */
enum tool_nameless {
	TOOL_NAMELESS_NONE, /* it has one */
	TOOL_NAMELESS_UNMAPPED,
	TOOL_NAMELESS_MODE,
	TOOL_NAMELESS_ANONYMOUS,
	TOOL_NAMELESS_OBJECT,
	TOOL_NAMELESS_CHANGED,
	TOOL_NAMELESS_SYMBOL,
	TOOL_NAMELESS_KERNEL,
	TOOL_NAMELESS_LIMIT,
	TOOL_NAMELESS_COUNT,
};

/* name is NULL when there is none; object NULL when nothing is mapped there.  address is the one that the object's
 * own tables use, where known, else the sampled one.  Names live as long as the symbols and the machine. */
struct tool_symbol {
	const char *name;
	const char *object;
	uint64_t offset;
	uint64_t address;
	enum tool_nameless nameless;
};

struct tool_symbols;

/* The file says which kernel and which builds of the objects it saw: others are not used. */
struct tool_symbols *tool_symbols_open(const struct perfring_file *data, struct tool_machine *machine);
void tool_symbols_close(struct tool_symbols *symbols);

/* The address as the machine is now.  cpumode as in a record's misc. */
void tool_symbols_find(struct tool_symbols *symbols, unsigned cpumode, uint32_t pid, uint64_t ip,
		       struct tool_symbol *found);

/* The next frame of a callchain.  *cpumode is the sample's at first.  Returns false when the word is a marker, or the
 * cookie of a deferred chain, and no frame. */
bool tool_symbols_frame(uint64_t word, unsigned *cpumode);

/* The vdso has no file.  open: a copy of this process's own, or -errno.  knows: whether the one that is mapped there is the
 * same, if the kernel is: a 64-bit kernel has another one for 32-bit processes, whose addresses end at 4 GiB. */
#define TOOL_SYMBOLS_VDSO "[vdso]"
int tool_symbols_open_vdso(void);
bool tool_symbols_knows_vdso(const struct tool_mapping *map);

/* "not mapped" ... */
const char *tool_symbols_why(const struct tool_symbols *symbols, enum tool_nameless nameless);

#endif
