/* event_terms.c - the terms of every event: how it samples, whatever it counts.
 *
 * The terms that event.h lists: of `EVENT/TERM=VALUE/`, and by pmu.c of any PMU's event.  Each sets members of the attr; which
 * ones were given is in perfring_naming.terms.
 */
#include "pmu.h"

/* What DWARF's unwinders need of user space: perf's choice, without those that a sample cannot have (DS, ES, FS, GS). */
#if defined(__x86_64__) && defined(__LP64__)
#define UNWIND_REGISTERS UINT64_C(0xff0fff)
#elif defined(__aarch64__)
#define UNWIND_REGISTERS UINT64_C(0x1ffffffff)
#else
#define UNWIND_REGISTERS UINT64_C(0)
#endif

enum {
	STACK = 8192, /* bytes, without stack-size= */
	STACK_MOST = 65528,
};

static const char A_NUMBER[] = "a number is expected";

uint64_t perfring_event_unwind_registers(void)
{
	return UNWIND_REGISTERS;
}

bool perfring__term_is(const struct perfring_piece *piece, const char *word)
{
	return piece->length == strlen(word) && !memcmp(piece->text, word, piece->length);
}

bool perfring__term_number(const struct perfring_term *term, uint64_t *value)
{
	return !term->value.text || perfring__event_number(term->value.text, term->value.length, value);
}

/* ---- branches ---- */

int perfring_event_branches(const char *text, size_t length, uint64_t *types)
{
	static const struct {
		const char *name;
		uint64_t type;
	} NAMES[] = {
		{"u", PERFRING_SAMPLE_BRANCH_USER},
		{"k", PERFRING_SAMPLE_BRANCH_KERNEL},
		{"hv", PERFRING_SAMPLE_BRANCH_HV},
		{"any", PERFRING_SAMPLE_BRANCH_ANY},
		{"any_call", PERFRING_SAMPLE_BRANCH_ANY_CALL},
		{"any_ret", PERFRING_SAMPLE_BRANCH_ANY_RETURN},
		{"ind_call", PERFRING_SAMPLE_BRANCH_IND_CALL},
		{"ind_jmp", PERFRING_SAMPLE_BRANCH_IND_JUMP},
		{"call", PERFRING_SAMPLE_BRANCH_CALL},
		{"cond", PERFRING_SAMPLE_BRANCH_COND},
		{"abort_tx", PERFRING_SAMPLE_BRANCH_ABORT_TX},
		{"in_tx", PERFRING_SAMPLE_BRANCH_IN_TX},
		{"no_tx", PERFRING_SAMPLE_BRANCH_NO_TX},
		{"save_type", PERFRING_SAMPLE_BRANCH_TYPE_SAVE},
		{"stack", PERFRING_SAMPLE_BRANCH_CALL_STACK},
		{"priv", PERFRING_SAMPLE_BRANCH_PRIV_SAVE},
		{"counter", PERFRING_SAMPLE_BRANCH_COUNTERS},
	};
	const uint64_t levels = PERFRING_SAMPLE_BRANCH_USER | PERFRING_SAMPLE_BRANCH_KERNEL | PERFRING_SAMPLE_BRANCH_HV;

	*types = 0;
	for (size_t at = 0, end; at <= length; at = end + 1) {
		struct perfring_piece piece = {text + at, 0};
		uint64_t type = 0;

		for (end = at; end < length && text[end] != ',' && text[end] != '|'; end++)
			;
		piece.length = end - at;
		for (size_t i = 0; i < sizeof(NAMES) / sizeof(*NAMES); i++)
			if (perfring__term_is(&piece, NAMES[i].name))
				type = NAMES[i].type;
		if (!type)
			return -EINVAL;
		*types |= type;
	}
	/* As perf: levels alone are of no kind of branch. */
	if (!(*types & ~levels))
		*types |= PERFRING_SAMPLE_BRANCH_ANY;
	return 0;
}

/* ---- call chains ---- */

int perfring_event_callchain(const char *how, size_t length, struct perf_event_attr *attr)
{
	const uint64_t all = PERFRING_SAMPLE_CALLCHAIN | PERFRING_SAMPLE_STACK_USER;
	const struct perfring_piece piece = {how, length};

	attr->sample_type &= ~all;
	attr->exclude_callchain_user = 0;
	if (perfring__term_is(&piece, "no"))
		return 0;
	attr->sample_type |= PERFRING_SAMPLE_CALLCHAIN;
	if (perfring__term_is(&piece, "fp"))
		return 0;
	if (perfring__term_is(&piece, "dwarf") && UNWIND_REGISTERS) {
		attr->sample_type |= PERFRING_SAMPLE_STACK_USER | PERFRING_SAMPLE_REGS_USER;
		attr->sample_regs_user |= UNWIND_REGISTERS;
		if (!attr->sample_stack_user)
			attr->sample_stack_user = STACK;
		attr->exclude_callchain_user = 1;
		return 0;
	}
	if (!perfring__term_is(&piece, "lbr"))
		return -EINVAL;
	attr->sample_type |= PERFRING_SAMPLE_BRANCH_STACK;
	attr->branch_sample_type = PERFRING_SAMPLE_BRANCH_USER | PERFRING_SAMPLE_BRANCH_CALL_STACK |
				   PERFRING_SAMPLE_BRANCH_NO_CYCLES | PERFRING_SAMPLE_BRANCH_NO_FLAGS |
				   PERFRING_SAMPLE_BRANCH_HW_INDEX;
	return 0;
}

/* ---- all of them ---- */

enum kind {
	PERIOD,
	FREQ,
	CALL_GRAPH,
	STACK_SIZE,
	MAX_STACK,
	INHERIT,
	NO_INHERIT,
	TIME,
	OVERWRITE,
	NO_OVERWRITE,
	BRANCH_TYPE,
	AUX_OUTPUT,
	AUX_SAMPLE_SIZE,
	PERCORE,
};

/* The terms.  most: the largest value; 1: a switch, which needs no value.  given: its PERFRING_TERM_ bit. */
static const struct own {
	const char *name;
	enum kind kind;
	uint64_t most;
	uint32_t given;
} OWN[] = {
	{"period", PERIOD, UINT64_MAX, 0},
	{"freq", FREQ, UINT64_MAX, 0},
	{"call-graph", CALL_GRAPH, 0, PERFRING_TERM_CALLCHAIN},
	{"stack-size", STACK_SIZE, STACK_MOST, 0},
	{"max-stack", MAX_STACK, UINT16_MAX, PERFRING_TERM_CALLCHAIN},
	{"inherit", INHERIT, 1, PERFRING_TERM_INHERIT},
	{"no-inherit", NO_INHERIT, 1, PERFRING_TERM_INHERIT},
	{"time", TIME, 1, PERFRING_TERM_TIME},
	{"overwrite", OVERWRITE, 1, PERFRING_TERM_OVERWRITE},
	{"no-overwrite", NO_OVERWRITE, 1, PERFRING_TERM_OVERWRITE},
	{"branch_type", BRANCH_TYPE, 0, PERFRING_TERM_BRANCHES},
	{"aux-output", AUX_OUTPUT, 1, 0},
	{"aux-sample-size", AUX_SAMPLE_SIZE, UINT32_MAX, 0},
	{"percore", PERCORE, 1, PERFRING_TERM_PERCORE},
};

static void apply(enum kind kind, uint64_t value, struct perf_event_attr *attr, uint32_t before)
{
	switch (kind) {
	case PERIOD:
	case FREQ:
		attr->sample_period = value;
		attr->freq = kind == FREQ;
		break;
	case STACK_SIZE:
		attr->sample_stack_user = (uint32_t)(value + 7) & ~7U;
		break;
	case MAX_STACK: /* of frame pointers, unless call-graph= says how */
		attr->sample_max_stack = (uint16_t)value;
		if (!(before & PERFRING_TERM_CALLCHAIN))
			attr->sample_type |= PERFRING_SAMPLE_CALLCHAIN;
		break;
	case INHERIT:
	case NO_INHERIT:
		attr->inherit = (kind == INHERIT) == value;
		break;
	case TIME:
		attr->sample_type &= ~(uint64_t)PERFRING_SAMPLE_TIME;
		attr->sample_type |= value ? PERFRING_SAMPLE_TIME : 0;
		break;
	case OVERWRITE:
	case NO_OVERWRITE:
		perfring_attr_set_flag(attr, PERFRING_ATTR_FLAG_write_backward, (kind == OVERWRITE) == value);
		break;
	case AUX_OUTPUT:
		perfring_attr_set_flag(attr, PERFRING_ATTR_FLAG_aux_output, value);
		break;
	case AUX_SAMPLE_SIZE:
		attr->aux_sample_size = (uint32_t)value;
		attr->sample_type &= ~(uint64_t)PERFRING_SAMPLE_AUX;
		attr->sample_type |= value ? PERFRING_SAMPLE_AUX : 0;
		break;
	case CALL_GRAPH:
	case BRANCH_TYPE:
	case PERCORE:
		break;
	}
}

static const struct own *own_of(const struct perfring_term *term)
{
	for (size_t i = 0; i < sizeof(OWN) / sizeof(*OWN); i++)
		if (perfring__term_is(&term->name, OWN[i].name))
			return &OWN[i];
	return NULL;
}

static int set_name(const struct perfring_term *term, size_t at, struct perfring_naming *naming,
		    struct perfring_fault *fault)
{
	if (!term->value.length || term->value.length >= sizeof(naming->name))
		return perfring__event_invalid(fault, at, "a name of 1 to 127 bytes is expected");
	memcpy(naming->name, term->value.text, term->value.length);
	naming->name[term->value.length] = 0;
	return 1;
}

static int set_own(const struct own *own, const struct perfring_term *term, size_t at, struct perf_event_attr *attr,
		   struct perfring_naming *naming, struct perfring_fault *fault)
{
	uint64_t value = 1;

	if (own->kind == CALL_GRAPH) {
		if (!term->value.text || perfring_event_callchain(term->value.text, term->value.length, attr))
			return perfring__event_invalid(fault, at,
						       UNWIND_REGISTERS ? "one of no, fp, dwarf, lbr is expected"
									: "one of no, fp, lbr is expected");
	} else if (own->kind == BRANCH_TYPE) {
		if (!term->value.text || perfring_event_branches(term->value.text, term->value.length, &value))
			return perfring__event_invalid(fault, at, "kinds of branches such as any|u are expected");
		attr->branch_sample_type = value;
		attr->sample_type |= PERFRING_SAMPLE_BRANCH_STACK;
	} else {
		if ((own->most > 1 && !term->value.text) || !perfring__term_number(term, &value))
			return perfring__event_invalid(fault, at, A_NUMBER);
		if (value > own->most)
			return perfring__event_invalid(
				fault, at, own->most == 1 ? "0 or 1 is expected" : "a smaller number is expected");
		apply(own->kind, value, attr, naming->terms);
	}
	naming->terms |= own->given;
	return 1;
}

int perfring__term_own(const char *text, const struct perfring_term *term, bool has_config, uint64_t *configs,
		       struct perf_event_attr *attr, struct perfring_naming *naming, struct perfring_fault *fault)
{
	static const char *const CONFIG[PERFRING_CONFIGS] = {"config", "config1", "config2", "config3", "config4"};
	size_t at = (size_t)((term->value.text ? term->value.text : term->name.text) - text);
	const struct own *own = own_of(term);
	uint64_t value = 1;

	if (perfring__term_is(&term->name, "name"))
		return set_name(term, at, naming, fault);
	if (own)
		return set_own(own, term, at, attr, naming, fault);
	if (!has_config)
		return 0;
	for (unsigned i = 0; i < PERFRING_CONFIGS; i++) {
		if (!perfring__term_is(&term->name, CONFIG[i]))
			continue;
		if (!perfring__term_number(term, &value))
			return perfring__event_invalid(fault, at, A_NUMBER);
		configs[i] = value;
		return 1;
	}
	return 0;
}
