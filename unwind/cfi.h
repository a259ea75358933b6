/* cfi.h - call frame information: descriptions of functions, and the rows that their programs make (docs/unwind.md).
 *
 * Between cfi.c, functions.c and walk.c.  Structs are on the caller's stack; nothing is allocated: handlers may call all of it.
 */
#ifndef PERFRING_UNWIND_CFI_H
#define PERFRING_UNWIND_CFI_H

#include <perfring/unwind.h>

#include "bytes.h"

/* .eh_frame or .debug_frame: below 4 GiB. */
struct perfring_cfi_section {
	const uint8_t *bytes;
	uint32_t size;
	uint64_t address;
	uint32_t machine;
	bool is_debug;
};

/* A function's description (FDE) with what it shares with others (CIE). */
struct perfring_cfi_function {
	uint64_t start;
	uint64_t length;
	const uint8_t *program; /* instructions of the CIE, which come first */
	const uint8_t *program_end;
	const uint8_t *own; /* instructions of the FDE */
	const uint8_t *own_end;
	const struct perfring_cfi_section *section;
	uint64_t code_factor;
	int64_t data_factor;
	uint64_t ra_column;
	uint8_t encoding;
	bool is_signal;
};

/* Reads an encoded pointer (DW_EH_PE_) at `bytes`, which are in the section.  Returns false: it is cut, indirect, omitted, or
 * relative to a base that the section does not have. */
bool perfring__cfi_pointer(const struct perfring_cfi_section *section, struct bytes *bytes, uint8_t encoding,
			   uint64_t *value);

/* Reads the entry at an offset, and where the next one is.  Returns 1 (a function), 0 (no function: a CIE, or the end, and *next
 * is then the section's size), or -EBADMSG (damaged; *next is after it, if its length is inside, else the section's size).
 * *next is always larger than the offset. */
int perfring__cfi_parse(const struct perfring_cfi_section *section, uint32_t offset,
			struct perfring_cfi_function *function, uint32_t *next);

enum {
	PERFRING_CFI_DEPTH = 16, /* nested DW_CFA_remember_state */
};

struct perfring_cfi_place {
	uint8_t kind; /* enum perfring_unwind_at */
	int64_t offset;
};

struct perfring_cfi_state {
	uint8_t cfa;    /* CFA_SP here: cfa_column + offset */
	uint8_t number; /* of the rule */
	bool is_signed;
	uint32_t cfa_column;
	int64_t cfa_offset;
	struct perfring_cfi_place ra;
	struct perfring_cfi_place fp;
};

/* A walk over a function's rows.  1.2 KB, small enough for a signal handler's stack. */
struct perfring_cfi_walk {
	const struct perfring_cfi_function *function;
	struct bytes program;
	uint64_t location; /* from the function's start */
	uint32_t steps;
	uint32_t depth;
	uint32_t followed; /* the column whose place is in state.fp */
	bool is_own;       /* the CIE's instructions are done */
	bool is_done;
	struct perfring_cfi_state state;
	struct perfring_cfi_state initial;
	struct perfring_cfi_state remembered[PERFRING_CFI_DEPTH];
};

void perfring__cfi_walk_init(struct perfring_cfi_walk *walk, const struct perfring_cfi_function *function);

/* Follows another register than fp, by DWARF's number: its place is `fp` in the rules.  To be called before the first row. */
void perfring__cfi_walk_follow(struct perfring_cfi_walk *walk, uint32_t column);

/* The next row: its start and its end (the start of the next row, or the end of the function), offsets from the function's start.
 * Starts never decrease.  If the program is damaged, the last row has no rule.  Returns 1, or 0 after the last. */
int perfring__cfi_next(struct perfring_cfi_walk *walk, uint64_t *start, uint64_t *end,
		       struct perfring_unwind_rule *rule);

/* The rule at an address, with the place of another register (DWARF's `column`) as `fp`: from the function's description, because
 * rows do not have it.  Returns 1; 0: no rule, or perfring_unwind_make_all was called.  Takes 3 KB of stack. */
int perfring__unwind_register_at(const struct perfring_unwind *unwind, uint64_t address, uint32_t column,
				 struct perfring_unwind_rule *rule);

#endif
