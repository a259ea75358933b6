/* script_fields.c - which fields `perfring script` shows of the events of each type: perf's -F.
 *
 * script.c asks for the fields of an event once for each.  The defaults are perf's.
 */
#include "nearest.h"
#include "script_fields.h"
#include "symbol_names.h"
#include "tracepoint_format.h"

static const struct {
	const char *name;
	uint64_t needs; /* any of these bits; 0: each sample has it */
} FIELDS[] = {
#define FIELD(NAME, name, needs) {name, needs},
	TOOL_SCRIPT_FIELDS(FIELD)
#undef FIELD
};

static const char *const TYPES[TOOL_SCRIPT_TYPE_COUNT] = {"hw", "sw", "trace", "raw", "synth", ""};

/* Fields that perf has, and we do not. */
static const char PERFS[] =
	" flags bpf-output brstack brstacksym brstackoff data_src brstackinsn brstackinsnlen "
	"callindent insn insnlen synth metric srccode ipc tod machine_pid vcpu cgroup retire_lat "
	"ins_lat ";

const char *tool_script_field_name(size_t i)
{
	return i < TOOL_SCRIPT_FIELD_COUNT ? FIELDS[i].name : NULL;
}

void tool_script_fields_default(struct tool_script_fields *fields)
{
	const unsigned task =
		TOOL_SCRIPT_COMM | TOOL_SCRIPT_TID | TOOL_SCRIPT_CPU | TOOL_SCRIPT_TIME | TOOL_SCRIPT_EVENT;
	const unsigned place = TOOL_SCRIPT_IP | TOOL_SCRIPT_SYM | TOOL_SCRIPT_SYMOFF | TOOL_SCRIPT_DSO;

	*fields = (struct tool_script_fields){{0}, {0}};
	for (int type = 0; type < TOOL_SCRIPT_TYPE_COUNT; type++)
		fields->shown[type] = task | place | TOOL_SCRIPT_PERIOD;
	fields->shown[TOOL_SCRIPT_TRACEPOINT] = task | TOOL_SCRIPT_TRACE;
	fields->shown[TOOL_SCRIPT_RAW] |= TOOL_SCRIPT_ADDR | TOOL_SCRIPT_WEIGHT | TOOL_SCRIPT_PHYS_ADDR |
					  TOOL_SCRIPT_DATA_PAGE_SIZE | TOOL_SCRIPT_CODE_PAGE_SIZE;
}

static bool complain(const char *list, const char *what)
{
	tool_complain("script: option '-F': '%s': %s (perfring script --help)", list, what);
	return false;
}

/* The bit of a field's name; 0 after a complaint. */
static unsigned bit_of(const char *list, const char *word)
{
	struct tool_nearest nearest = {.distance = 0};
	char spaced[32];

	for (unsigned i = 0; i < TOOL_SCRIPT_FIELD_COUNT; i++)
		if (!strcmp(word, FIELDS[i].name)) {
			if (1u << i == TOOL_SCRIPT_TRACE && !tool_tracepoints_are_known())
				return complain(list, "field 'trace': this perfring was built without libtraceevent");
			return 1u << i;
		}
	for (unsigned i = 0; i < TOOL_SCRIPT_FIELD_COUNT; i++)
		tool_nearest_offer(&nearest, word, FIELDS[i].name);
	snprintf(spaced, sizeof(spaced), " %.28s ", word);
	if (strstr(PERFS, spaced))
		tool_complain("script: option '-F': field '%s' is not here; perfring dump -F has the sample's own",
			      word);
	else
		tool_complain("script: option '-F': unknown field '%s'%s (perfring script --help)", word,
			      tool_nearest_hint(&nearest));
	return 0;
}

/* Sets or changes the fields of a type; TOOL_SCRIPT_TYPE_COUNT: of each. */
static void change(struct tool_script_fields *fields, int type, char sign, unsigned bits)
{
	for (int i = 0; i < TOOL_SCRIPT_TYPE_COUNT; i++) {
		if (type != TOOL_SCRIPT_TYPE_COUNT && type != i)
			continue;
		/* What only tracepoints have is meant for them alone. */
		unsigned its = i == TOOL_SCRIPT_TRACEPOINT ? bits : bits & ~(unsigned)TOOL_SCRIPT_TRACE;

		if (sign == '-') {
			fields->shown[i] &= ~its;
			fields->wanted[i] &= ~its;
		} else {
			fields->shown[i] = its | (sign ? fields->shown[i] : 0);
			fields->wanted[i] = its | (sign ? fields->wanted[i] : 0);
		}
	}
}

/* Reads the type before a ':', and moves to the text after it. */
static int type_of(const char **words)
{
	const char *colon = strchr(*words, ':');
	int type;

	if (!colon)
		return TOOL_SCRIPT_TYPE_COUNT;
	for (type = 0; type < TOOL_SCRIPT_OTHER; type++)
		if (strlen(TYPES[type]) == (size_t)(colon - *words) &&
		    !strncmp(TYPES[type], *words, (size_t)(colon - *words))) {
			*words = colon + 1;
			return type;
		}
	return -1;
}

bool tool_script_fields_take(struct tool_script_fields *fields, const char *list)
{
	const char *words = list;
	int type = type_of(&words);
	unsigned bits, all = 0;
	char *word, *rest, *copy = strdupa(words), sign = 0;
	bool signs = false, plain = false;

	if (type < 0)
		return complain(list, "the types are hw, sw, trace, raw and synth");
	for (word = strtok_r(copy, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
		sign = *word == '+' || *word == '-' ? *word : 0;
		signs = signs || sign;
		plain = plain || !sign;
		if (signs && plain)
			return complain(list, "+FIELD and -FIELD change what is shown, FIELD replaces it: not both");
		bits = bit_of(list, word + (sign != 0));
		if (!bits)
			return false;
		if (sign)
			change(fields, type, sign, bits);
		all |= bits;
	}
	if (!all && type == TOOL_SCRIPT_TYPE_COUNT)
		return complain(list, "names no field");
	if (!signs) /* "sw:" shows none */
		change(fields, type, 0, all);
	for (int i = 0; i < TOOL_SCRIPT_TYPE_COUNT; i++)
		if ((fields->shown[i] & (TOOL_SCRIPT_SYMOFF | TOOL_SCRIPT_SYM)) == TOOL_SCRIPT_SYMOFF)
			return complain(list, "symoff goes with sym");
		else if (i != TOOL_SCRIPT_TRACEPOINT &&
			 (fields->shown[i] & (TOOL_SCRIPT_SRCLINE | TOOL_SCRIPT_IP)) == TOOL_SCRIPT_SRCLINE)
			return complain(list, "srcline goes with ip");
	return true;
}

static enum tool_script_type type_of_event(const struct perf_event_attr *attr)
{
	switch (attr->type) {
	case PERFRING_TYPE_HARDWARE:
		return TOOL_SCRIPT_HW;
	case PERFRING_TYPE_SOFTWARE:
		return TOOL_SCRIPT_SW;
	case PERFRING_TYPE_TRACEPOINT:
		return TOOL_SCRIPT_TRACEPOINT;
	case PERFRING_TYPE_RAW:
		return TOOL_SCRIPT_RAW;
	default:
		return TOOL_SCRIPT_OTHER;
	}
}

unsigned tool_script_fields_of(const struct tool_script_fields *fields, const struct perf_event_attr *attr,
			       const char **missing)
{
	enum tool_script_type type = type_of_event(attr);
	unsigned shown = fields->shown[type];

	*missing = NULL;
	for (unsigned i = 0; i < TOOL_SCRIPT_FIELD_COUNT; i++) {
		unsigned bit = 1u << i;

		if (!(shown & bit) || !FIELDS[i].needs || (attr->sample_type & FIELDS[i].needs))
			continue;
		if (fields->wanted[type] & bit)
			*missing = FIELDS[i].name;
		shown &= ~bit;
	}
	return shown;
}
