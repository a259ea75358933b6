/* cfi.c - reads .eh_frame and .debug_frame (docs/unwind.md): the DWARF standard, section 6.4, and the Linux Standard Base's
 * chapters on exception frames.
 *
 * Only three columns are followed: sp as the CFA, fp or another one in its place, and the return address.  Nothing here allocates.
 *
 * functions.c asks for entries and rows.  Sections are foreign; loops end with their bytes.
 */
#include "cfi.h"

/* Encodings of pointers: the lower four bits are the format, the next three the base that it is relative to. */
enum {
	PE_ABSOLUTE = 0x00,
	PE_ULEB = 0x01,
	PE_UDATA2 = 0x02,
	PE_UDATA4 = 0x03,
	PE_UDATA8 = 0x04,
	PE_SLEB = 0x09,
	PE_SDATA2 = 0x0a,
	PE_SDATA4 = 0x0b,
	PE_SDATA8 = 0x0c,
	PE_FORM = 0x0f,
	PE_PCREL = 0x10,
	PE_DATAREL = 0x30,
	PE_ALIGNED = 0x50,
	PE_RELATION = 0x70,
	PE_INDIRECT = 0x80,
	PE_OMITTED = 0xff,
};

/* Instructions.  The first three have an operand in their lower six bits. */
enum {
	CFA_ADVANCE = 0x40,
	CFA_OFFSET = 0x80,
	CFA_RESTORE = 0xc0,
	CFA_NOP = 0x00,
	CFA_SET_LOC = 0x01,
	CFA_ADVANCE1 = 0x02,
	CFA_ADVANCE2 = 0x03,
	CFA_ADVANCE4 = 0x04,
	CFA_OFFSET_EXTENDED = 0x05,
	CFA_RESTORE_EXTENDED = 0x06,
	CFA_UNDEFINED = 0x07,
	CFA_SAME_VALUE = 0x08,
	CFA_REGISTER = 0x09,
	CFA_REMEMBER = 0x0a,
	CFA_RESTORE_STATE = 0x0b,
	CFA_DEF_CFA = 0x0c,
	CFA_DEF_CFA_REGISTER = 0x0d,
	CFA_DEF_CFA_OFFSET = 0x0e,
	CFA_DEF_CFA_EXPRESSION = 0x0f,
	CFA_EXPRESSION = 0x10,
	CFA_OFFSET_EXTENDED_SF = 0x11,
	CFA_DEF_CFA_SF = 0x12,
	CFA_DEF_CFA_OFFSET_SF = 0x13,
	CFA_VAL_OFFSET = 0x14,
	CFA_VAL_OFFSET_SF = 0x15,
	CFA_VAL_EXPRESSION = 0x16,
	CFA_NEGATE_RA_STATE = 0x2d,
	CFA_ARGS_SIZE = 0x2e,
	CFA_NEGATIVE_OFFSET = 0x2f,
};

/* Operators of expressions. */
enum {
	OP_DEREF = 0x06,
	OP_PLUS_UCONST = 0x23,
	OP_BREG0 = 0x70,
	OP_BREG31 = 0x8f,
};

enum {
	AUGMENTATION_MAX = 16, /* letters */
	ENTRY_MIN = 4,         /* bytes of the shortest entry, which ends the section */
	OTHER_MAX = 15,        /* a rule's number has 4 bits */
};

static uint32_t column_of_sp(uint32_t machine)
{
	return machine == PERFRING_UNWIND_X86_64 ? 7 : 31;
}

static uint32_t column_of_fp(uint32_t machine)
{
	return machine == PERFRING_UNWIND_X86_64 ? 6 : 29;
}

static uint32_t column_of_ra(uint32_t machine)
{
	return machine == PERFRING_UNWIND_X86_64 ? 16 : 30;
}

/* ---- entries ---- */

bool perfring__cfi_pointer(const struct perfring_cfi_section *section, struct bytes *bytes, uint8_t encoding,
			   uint64_t *value)
{
	uint64_t address = section->address + (uint64_t)(bytes->at - section->bytes);

	if (encoding == PE_OMITTED || (encoding & PE_INDIRECT))
		return false;
	if (encoding == PE_ALIGNED) {
		bytes_skip(bytes, -address & 7);
		*value = bytes_take(bytes, 8);
		return !bytes->is_short;
	}
	switch (encoding & PE_FORM) {
	case PE_ABSOLUTE:
	case PE_UDATA8:
	case PE_SDATA8:
		*value = bytes_take(bytes, 8);
		break;
	case PE_ULEB:
		*value = bytes_leb(bytes, false);
		break;
	case PE_SLEB:
		*value = bytes_leb(bytes, true);
		break;
	case PE_UDATA2:
		*value = bytes_take(bytes, 2);
		break;
	case PE_SDATA2:
		*value = (uint64_t)(int16_t)bytes_take(bytes, 2);
		break;
	case PE_UDATA4:
		*value = bytes_take(bytes, 4);
		break;
	case PE_SDATA4:
		*value = (uint64_t)(int32_t)bytes_take(bytes, 4);
		break;
	default:
		return false;
	}
	switch (encoding & PE_RELATION) {
	case PE_ABSOLUTE:
		break;
	case PE_PCREL:
		*value += address;
		break;
	case PE_DATAREL:
		*value += section->address;
		break; /* only .eh_frame_hdr has it */
	default:
		return false;
	}
	return !bytes->is_short;
}

/* An entry: its length and id have been read. */
struct entry {
	struct bytes content; /* after the id */
	uint64_t id;
	uint32_t id_at;
	bool is_long; /* 64-bit DWARF */
	bool is_end;
};

/* Returns false: the entry is not inside the section. */
static bool read_entry(const struct perfring_cfi_section *section, uint32_t offset, struct entry *entry)
{
	struct bytes bytes = bytes_init(section->bytes + offset, section->bytes + section->size);
	uint64_t length = bytes_take(&bytes, 4);

	entry->is_long = length == UINT32_MAX;
	if (entry->is_long)
		length = bytes_take(&bytes, 8);
	entry->is_end = length == 0;
	if (bytes.is_short || length > bytes_left(&bytes))
		return false;
	bytes.end = bytes.at + length;
	entry->id_at = (uint32_t)(bytes.at - section->bytes);
	/* The id has 4 bytes in .eh_frame, even if the length has 12. */
	entry->id = length ? bytes_take(&bytes, entry->is_long && section->is_debug ? 8 : 4) : 0;
	entry->content = bytes;
	return !bytes.is_short;
}

static bool is_shared(const struct perfring_cfi_section *section, const struct entry *entry)
{
	if (!section->is_debug)
		return entry->id == 0;
	return entry->id == (entry->is_long ? UINT64_MAX : UINT32_MAX);
}

/* Reads the augmentation data of the letters after the z. */
static bool read_augmentation(const struct perfring_cfi_section *section, const uint8_t *letters, struct bytes *data,
			      struct perfring_cfi_function *function)
{
	uint64_t skipped;
	uint8_t encoding;

	for (; *letters; letters++) {
		switch (*letters) {
		case 'R':
			function->encoding = (uint8_t)bytes_take(data, 1);
			break;
		case 'L':
			bytes_skip(data, 1);
			break;
		case 'P':
			encoding = (uint8_t)bytes_take(data, 1);
			if (encoding != PE_OMITTED && !perfring__cfi_pointer(section, data, encoding & 0x7f, &skipped))
				return false;
			break;
		case 'S':
			function->is_signal = true;
			break;
		case 'B': /* the other key of pointer authentication */
		case 'G': /* tagged memory */
			break;
		default: /* the length of the data is known: what is left of it has no meaning here */
			return !data->is_short;
		}
	}
	return !data->is_short;
}

static bool read_shared(const struct perfring_cfi_section *section, uint32_t offset,
			struct perfring_cfi_function *function, bool *has_length)
{
	const uint8_t *letters;
	struct bytes bytes, data;
	struct entry entry;
	uint64_t version, length = 0;
	unsigned i;

	if (!read_entry(section, offset, &entry) || entry.is_end || !is_shared(section, &entry))
		return false;
	bytes = entry.content;
	version = bytes_take(&bytes, 1);
	letters = bytes.at;
	for (i = 0; i < AUGMENTATION_MAX && bytes_take(&bytes, 1); i++)
		;
	if (bytes.is_short || i == AUGMENTATION_MAX || (version != 1 && version != 3 && version != 4))
		return false;
	*has_length = letters[0] == 'z';
	if (letters[0] && !*has_length) /* older than z: what follows has another layout */
		return false;
	if (version == 4 && bytes_take(&bytes, 2) != 8) /* addresses of 8 bytes, no segments */
		return false;
	function->code_factor = bytes_leb(&bytes, false);
	function->data_factor = (int64_t)bytes_leb(&bytes, true);
	function->ra_column = version == 1 ? bytes_take(&bytes, 1) : bytes_leb(&bytes, false);
	function->encoding = PE_ABSOLUTE;
	function->is_signal = false;
	if (*has_length) {
		length = bytes_leb(&bytes, false);
		data = bytes;
		bytes_skip(&bytes, length);
		data.end = bytes.at;
		if (bytes.is_short || !read_augmentation(section, letters + 1, &data, function))
			return false;
	}
	function->program = bytes.at;
	function->program_end = bytes.end;
	return !bytes.is_short;
}

int perfring__cfi_parse(const struct perfring_cfi_section *section, uint32_t offset,
			struct perfring_cfi_function *function, uint32_t *next)
{
	struct entry entry;
	struct bytes bytes;
	bool has_length;
	uint64_t shared;

	*next = section->size;
	if (offset >= section->size || section->size - offset < ENTRY_MIN)
		return 0;
	if (!read_entry(section, offset, &entry))
		return entry.is_end ? 0 : -EBADMSG;
	if (entry.is_end && !section->is_debug)
		return 0;
	*next = (uint32_t)(entry.content.end - section->bytes);
	if (entry.is_end || is_shared(section, &entry))
		return 0;
	shared = section->is_debug ? entry.id : entry.id_at - entry.id;
	if (shared >= section->size || !read_shared(section, (uint32_t)shared, function, &has_length))
		return -EBADMSG;
	bytes = entry.content;
	if (!perfring__cfi_pointer(section, &bytes, function->encoding, &function->start) ||
	    !perfring__cfi_pointer(section, &bytes, function->encoding & PE_FORM, &function->length))
		return -EBADMSG;
	if (has_length)
		bytes_skip(&bytes, bytes_leb(&bytes, false));
	if (bytes.is_short || function->start + function->length < function->start)
		return -EBADMSG;
	function->section = section;
	function->own = bytes.at;
	function->own_end = bytes.end;
	return 1;
}

/* ---- expressions ---- */

/* register `column` + offset; or, with is_word, the word at that address + more. */
struct expression {
	uint32_t column;
	int64_t offset;
	int64_t more;
	bool is_word;
};

/* Reads an expression of one breg, then any number of plus_uconst and at most one deref; others are no rule.  At most as many
 * turns as there are bytes. */
static bool read_expression(struct bytes bytes, struct expression *expression)
{
	uint64_t op = bytes_take(&bytes, 1);

	if (op < OP_BREG0 || op > OP_BREG31)
		return false;
	expression->column = (uint32_t)(op - OP_BREG0);
	expression->offset = (int64_t)bytes_leb(&bytes, true);
	expression->more = 0;
	expression->is_word = false;
	while (bytes.at < bytes.end) {
		int64_t *sum = expression->is_word ? &expression->more : &expression->offset;

		op = bytes_take(&bytes, 1);
		if (op == OP_DEREF && !expression->is_word)
			expression->is_word = true;
		else if (op != OP_PLUS_UCONST || __builtin_add_overflow(*sum, (int64_t)bytes_leb(&bytes, false), sum))
			return false;
	}
	return !bytes.is_short;
}

/* What linkers write for x86-64's PLT: (rsp + 8) + (((rip & 15) >= N) << 3). */
static bool is_plt(const struct bytes *bytes, uint8_t *threshold)
{
	static const uint8_t code[] = {0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x30, 0x2a, 0x33, 0x24, 0x22};
	enum {
		N_AT = 6
	};
	uint8_t n;

	if (bytes_left(bytes) != sizeof(code))
		return false;
	n = (uint8_t)(bytes->at[N_AT] - 0x30);
	*threshold = n;
	return n < 16 && !memcmp(bytes->at, code, N_AT) &&
	       !memcmp(bytes->at + N_AT + 1, code + N_AT + 1, sizeof(code) - N_AT - 1);
}

static void define_cfa(struct perfring_cfi_state *state, uint32_t machine, struct bytes bytes)
{
	struct expression expression;

	state->cfa = PERFRING_UNWIND_CFA_NONE;
	if (machine == PERFRING_UNWIND_X86_64 && is_plt(&bytes, &state->number)) {
		state->cfa = PERFRING_UNWIND_CFA_PLT;
		state->cfa_offset = 8;
	} else if (read_expression(bytes, &expression)) {
		state->cfa_column = expression.column;
		state->cfa_offset = expression.offset;
		state->number = (uint8_t)((expression.more / 8) & 15);
		if (!expression.is_word)
			state->cfa = PERFRING_UNWIND_CFA_SP;
		else if (expression.more != 8 * state->number)
			state->cfa = PERFRING_UNWIND_CFA_NONE;
		else if (expression.column == column_of_sp(machine))
			state->cfa = PERFRING_UNWIND_CFA_DEREF_SP;
		else if (expression.column == column_of_fp(machine))
			state->cfa = PERFRING_UNWIND_CFA_DEREF_FP;
	}
}

/* ---- programs ---- */

enum {
	AT_LOST = 0x80, /* of a place: somewhere that no rule describes */
};

static struct perfring_cfi_place at_expression(uint32_t machine, struct bytes bytes)
{
	struct expression expression;

	if (!read_expression(bytes, &expression) || expression.is_word)
		return (struct perfring_cfi_place){AT_LOST, 0};
	if (expression.column == column_of_sp(machine))
		return (struct perfring_cfi_place){PERFRING_UNWIND_AT_SP, expression.offset};
	if (expression.column == column_of_fp(machine))
		return (struct perfring_cfi_place){PERFRING_UNWIND_AT_FP, expression.offset};
	return (struct perfring_cfi_place){AT_LOST, 0};
}

void perfring__cfi_walk_init(struct perfring_cfi_walk *walk, const struct perfring_cfi_function *function)
{
	bool is_x86 = function->section->machine == PERFRING_UNWIND_X86_64;

	/* `remembered` is written before it is read. */
	walk->function = function;
	walk->program = bytes_init(function->program, function->program_end);
	walk->location = 0;
	walk->steps = 0;
	walk->depth = 0;
	walk->followed = column_of_fp(function->section->machine);
	walk->is_own = false;
	walk->is_done = false;
	memset(&walk->state, 0, sizeof(walk->state));
	/* On x86-64 the return address is in memory, at a place that the program has to name; on aarch64 in lr at first. */
	walk->state.ra.kind = is_x86 ? PERFRING_UNWIND_AT_UNDEFINED : PERFRING_UNWIND_AT_SAME;
	walk->state.fp.kind = PERFRING_UNWIND_AT_SAME;
	walk->initial = walk->state;
}

void perfring__cfi_walk_follow(struct perfring_cfi_walk *walk, uint32_t column)
{
	walk->followed = column;
}

static bool fits(int64_t value)
{
	return value >= INT32_MIN && value <= INT32_MAX;
}

/* Converts a place.  Offsets of places that are not in memory become 0, so that equal rules have equal bytes. */
static bool make_place(const struct perfring_cfi_place *place, uint8_t *kind, int32_t *offset)
{
	bool is_in_memory = place->kind == PERFRING_UNWIND_AT_CFA || place->kind == PERFRING_UNWIND_AT_SP ||
			    place->kind == PERFRING_UNWIND_AT_FP;

	*kind = place->kind;
	*offset = is_in_memory ? (int32_t)place->offset : 0;
	return place->kind != AT_LOST && (!is_in_memory || fits(place->offset));
}

static void make_rule(const struct perfring_cfi_walk *walk, struct perfring_unwind_rule *rule)
{
	const struct perfring_cfi_function *function = walk->function;
	const struct perfring_cfi_state *state = &walk->state;
	uint32_t machine = function->section->machine, number;
	uint8_t cfa = state->cfa;

	memset(rule, 0, sizeof(*rule));
	if (cfa == PERFRING_UNWIND_CFA_SP && state->cfa_column == column_of_fp(machine))
		cfa = PERFRING_UNWIND_CFA_FP;
	else if (cfa == PERFRING_UNWIND_CFA_SP && state->cfa_column != column_of_sp(machine))
		cfa = state->cfa_column <= OTHER_MAX ? PERFRING_UNWIND_CFA_OTHER : PERFRING_UNWIND_CFA_NONE;
	number = cfa == PERFRING_UNWIND_CFA_OTHER ? state->cfa_column : state->number;
	if (!fits(state->cfa_offset) || function->ra_column != column_of_ra(machine))
		cfa = PERFRING_UNWIND_CFA_NONE;
	/* A function without a caller needs no more: the CFA of _start is often one that is no rule. */
	if (state->ra.kind == PERFRING_UNWIND_AT_UNDEFINED && function->ra_column == column_of_ra(machine)) {
		rule->cfa = PERFRING_UNWIND_CFA_SP;
		rule->ra = PERFRING_UNWIND_AT_UNDEFINED;
		return;
	}
	if (cfa == PERFRING_UNWIND_CFA_NONE || !make_place(&state->ra, &rule->ra, &rule->ra_offset)) {
		memset(rule, 0, sizeof(*rule));
		return;
	}
	rule->cfa = cfa;
	rule->cfa_offset = (int32_t)state->cfa_offset;
	if (!make_place(&state->fp, &rule->fp, &rule->fp_offset)) {
		rule->fp = PERFRING_UNWIND_AT_UNDEFINED;
		rule->fp_offset = 0;
	}
	rule->flags = (uint8_t)((function->is_signal ? PERFRING_UNWIND_SIGNAL : 0) |
				(state->is_signed ? PERFRING_UNWIND_SIGNED : 0) |
				(cfa >= PERFRING_UNWIND_CFA_DEREF_SP ? number << PERFRING_UNWIND_MORE : 0));
	if (!rule->flags && cfa <= PERFRING_UNWIND_CFA_FP && rule->ra == PERFRING_UNWIND_AT_CFA &&
	    (rule->fp == PERFRING_UNWIND_AT_CFA || rule->fp == PERFRING_UNWIND_AT_SAME))
		rule->flags = PERFRING_UNWIND_PLAIN;
}

/* The place of a column, or NULL: it is not followed. */
static struct perfring_cfi_place *place_of(const struct perfring_cfi_walk *walk, struct perfring_cfi_state *state,
					   uint64_t column)
{
	uint32_t machine = walk->function->section->machine;

	return column == column_of_ra(machine) ? &state->ra : column == walk->followed ? &state->fp : NULL;
}

/* A product that does not fit wraps: then there is no rule (make_rule), or a wrong one for wrong bytes. */
static int64_t times(uint64_t number, int64_t factor)
{
	return (int64_t)(number * (uint64_t)factor);
}

static void put_place(struct perfring_cfi_walk *walk, uint64_t column, uint8_t kind, int64_t offset)
{
	struct perfring_cfi_place *place = place_of(walk, &walk->state, column);

	if (place)
		*place = (struct perfring_cfi_place){kind, offset};
}

static void restore_place(struct perfring_cfi_walk *walk, uint64_t column)
{
	struct perfring_cfi_place *place = place_of(walk, &walk->state, column);

	if (place)
		*place = *place_of(walk, &walk->initial, column);
}

/* A block's bytes. */
static struct bytes take_block(struct bytes *program)
{
	uint64_t length = bytes_leb(program, false);
	struct bytes block = *program;

	bytes_skip(program, length);
	block.end = program->at;
	return block;
}

static void set_cfa(struct perfring_cfi_state *state, uint64_t column, int64_t offset)
{
	state->cfa = PERFRING_UNWIND_CFA_SP;
	state->cfa_column = column > UINT32_MAX ? UINT32_MAX : (uint32_t)column;
	state->cfa_offset = offset;
}

static bool remember(struct perfring_cfi_walk *walk)
{
	if (walk->depth == PERFRING_CFI_DEPTH)
		return false;
	walk->remembered[walk->depth++] = walk->state;
	return true;
}

static bool recall(struct perfring_cfi_walk *walk)
{
	if (walk->depth == 0)
		return false;
	walk->state = walk->remembered[--walk->depth];
	return true;
}

/* An instruction about a place, or the CFA.  Returns false: the program is damaged, or has an unknown instruction. */
static bool run_one(struct perfring_cfi_walk *walk, uint64_t op)
{
	int64_t factor = walk->function->data_factor;
	uint32_t machine = walk->function->section->machine;
	struct perfring_cfi_state *state = &walk->state;
	struct bytes *program = &walk->program, block;
	uint64_t column;

	switch (op) {
	case CFA_NOP:
		return true;
	case CFA_ARGS_SIZE:
		bytes_leb(program, false);
		return true;
	case CFA_REMEMBER:
		return remember(walk);
	case CFA_RESTORE_STATE:
		return recall(walk);
	case CFA_NEGATE_RA_STATE:
		state->is_signed = !state->is_signed;
		return machine == PERFRING_UNWIND_AARCH64;
	case CFA_DEF_CFA_OFFSET:
	case CFA_DEF_CFA_OFFSET_SF:
		state->cfa_offset = op == CFA_DEF_CFA_OFFSET ? (int64_t)bytes_leb(program, false)
							     : times(bytes_leb(program, true), factor);
		return state->cfa == PERFRING_UNWIND_CFA_SP;
	case CFA_DEF_CFA_EXPRESSION:
		define_cfa(state, machine, take_block(program));
		return true;
	default:
		break;
	}
	column = bytes_leb(program, false);
	switch (op) {
	case CFA_DEF_CFA:
		set_cfa(state, column, (int64_t)bytes_leb(program, false));
		return true;
	case CFA_DEF_CFA_SF:
		set_cfa(state, column, times(bytes_leb(program, true), factor));
		return true;
	case CFA_DEF_CFA_REGISTER:
		if (state->cfa != PERFRING_UNWIND_CFA_SP)
			return false;
		set_cfa(state, column, state->cfa_offset);
		return true;
	case CFA_OFFSET_EXTENDED:
		put_place(walk, column, PERFRING_UNWIND_AT_CFA, times(bytes_leb(program, false), factor));
		return true;
	case CFA_OFFSET_EXTENDED_SF:
		put_place(walk, column, PERFRING_UNWIND_AT_CFA, times(bytes_leb(program, true), factor));
		return true;
	case CFA_NEGATIVE_OFFSET:
		put_place(walk, column, PERFRING_UNWIND_AT_CFA, times(-bytes_leb(program, false), factor));
		return true;
	case CFA_RESTORE_EXTENDED:
		restore_place(walk, column);
		return true;
	case CFA_UNDEFINED:
		put_place(walk, column, PERFRING_UNWIND_AT_UNDEFINED, 0);
		return true;
	case CFA_SAME_VALUE:
		put_place(walk, column, PERFRING_UNWIND_AT_SAME, 0);
		return true;
	case CFA_REGISTER:
	case CFA_VAL_OFFSET:
	case CFA_VAL_OFFSET_SF:
		bytes_leb(program, false);
		put_place(walk, column, AT_LOST, 0);
		return true;
	case CFA_VAL_EXPRESSION:
		take_block(program);
		put_place(walk, column, AT_LOST, 0);
		return true;
	case CFA_EXPRESSION:
		block = take_block(program);
		if (place_of(walk, state, column))
			*place_of(walk, state, column) = at_expression(machine, block);
		return true;
	default:
		return false;
	}
}

/* An instruction that moves to a later address.  Returns false: it is none. */
static bool advance(struct perfring_cfi_walk *walk, uint64_t op, uint64_t *delta)
{
	uint64_t address;

	switch (op) {
	case CFA_ADVANCE1:
		*delta = bytes_take(&walk->program, 1);
		break;
	case CFA_ADVANCE2:
		*delta = bytes_take(&walk->program, 2);
		break;
	case CFA_ADVANCE4:
		*delta = bytes_take(&walk->program, 4);
		break;
	case CFA_SET_LOC:
		if (!perfring__cfi_pointer(walk->function->section, &walk->program, walk->function->encoding, &address))
			walk->program.is_short = true; /* of a damaged or unknown pointer too */
		*delta = address - walk->function->start - walk->location;
		return true;
	default:
		if ((op & 0xc0) != CFA_ADVANCE)
			return false;
		*delta = op & 0x3f;
		break;
	}
	if (__builtin_mul_overflow(*delta, walk->function->code_factor, delta))
		*delta = UINT64_MAX;
	return true;
}

/* At most as many turns as the two programs have bytes, and PERFRING_UNWIND_STEPS_MAX. */
int perfring__cfi_next(struct perfring_cfi_walk *walk, uint64_t *start, uint64_t *end,
		       struct perfring_unwind_rule *rule)
{
	const struct perfring_cfi_function *function = walk->function;
	bool is_good = true;
	uint64_t op, delta;

	if (walk->is_done || walk->location >= function->length)
		return 0;
	*start = walk->location;
	while (is_good) {
		if (walk->program.at == walk->program.end) {
			if (walk->is_own)
				break;
			walk->is_own = true;
			walk->initial = walk->state;
			walk->program = bytes_init(function->own, function->own_end);
			continue;
		}
		is_good = walk->steps++ < PERFRING_UNWIND_STEPS_MAX;
		op = *walk->program.at++;
		delta = 0;
		if (advance(walk, op, &delta)) {
			is_good = is_good && walk->is_own && !walk->program.is_short &&
				  delta <= UINT64_MAX - walk->location;
			if (!is_good || delta == 0)
				continue;
			make_rule(walk, rule);
			walk->location += delta;
			*end = walk->location < function->length ? walk->location : function->length;
			return 1;
		}
		if ((op & 0xc0) == CFA_OFFSET)
			put_place(walk, op & 0x3f, PERFRING_UNWIND_AT_CFA,
				  times(bytes_leb(&walk->program, false), function->data_factor));
		else if ((op & 0xc0) == CFA_RESTORE)
			restore_place(walk, op & 0x3f);
		else
			is_good = is_good && run_one(walk, op);
		is_good = is_good && !walk->program.is_short;
	}
	walk->is_done = true;
	*end = function->length;
	make_rule(walk, rule);
	if (!is_good)
		memset(rule, 0, sizeof(*rule));
	return 1;
}
