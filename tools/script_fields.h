/* script_fields.h - which fields `perfring script` shows of the events of each type: perf's -F.
 *
 * A field is a row of TOOL_SCRIPT_FIELDS, and its bit.
 */
#ifndef PERFRING_TOOLS_SCRIPT_FIELDS_H
#define PERFRING_TOOLS_SCRIPT_FIELDS_H

#include "tools.h"

/* name, what a sample must have */
#define TOOL_SCRIPT_FIELDS(FIELD) \
	FIELD(COMM, "comm", PERFRING_SAMPLE_TID) \
	FIELD(TID, "tid", PERFRING_SAMPLE_TID) \
	FIELD(PID, "pid", PERFRING_SAMPLE_TID) \
	FIELD(TIME, "time", PERFRING_SAMPLE_TIME) \
	FIELD(CPU, "cpu", PERFRING_SAMPLE_CPU) \
	FIELD(EVENT, "event", 0) \
	FIELD(TRACE, "trace", PERFRING_SAMPLE_RAW) \
	FIELD(IP, "ip", PERFRING_SAMPLE_IP) \
	FIELD(SYM, "sym", PERFRING_SAMPLE_IP) \
	FIELD(DSO, "dso", PERFRING_SAMPLE_IP) \
	FIELD(ADDR, "addr", PERFRING_SAMPLE_ADDR) \
	FIELD(SYMOFF, "symoff", PERFRING_SAMPLE_IP) \
	FIELD(IREGS, "iregs", PERFRING_SAMPLE_REGS_INTR) \
	FIELD(UREGS, "uregs", PERFRING_SAMPLE_REGS_USER) \
	FIELD(PERIOD, "period", 0) \
	FIELD(WEIGHT, "weight", PERFRING_SAMPLE_WEIGHT | PERFRING_SAMPLE_WEIGHT_STRUCT) \
	FIELD(PHYS_ADDR, "phys_addr", PERFRING_SAMPLE_PHYS_ADDR) \
	FIELD(MISC, "misc", 0) \
	FIELD(DATA_PAGE_SIZE, "data_page_size", PERFRING_SAMPLE_DATA_PAGE_SIZE) \
	FIELD(CODE_PAGE_SIZE, "code_page_size", PERFRING_SAMPLE_CODE_PAGE_SIZE) \
	FIELD(SRCLINE, "srcline", PERFRING_SAMPLE_IP)

enum {
#define FIELD(NAME, name, needs) TOOL_SCRIPT_##NAME##_INDEX,
	TOOL_SCRIPT_FIELDS(FIELD)
#undef FIELD
	TOOL_SCRIPT_FIELD_COUNT
};

/* One bit a field. */
enum {
#define FIELD(NAME, name, needs) TOOL_SCRIPT_##NAME = 1 << TOOL_SCRIPT_##NAME##_INDEX,
	TOOL_SCRIPT_FIELDS(FIELD)
#undef FIELD
};

/* Types of events, as -F TYPE:FIELDS names them; events of other types have fields that only a -F without a type sets. */
enum tool_script_type {
	TOOL_SCRIPT_HW,
	TOOL_SCRIPT_SW,
	TOOL_SCRIPT_TRACEPOINT,
	TOOL_SCRIPT_RAW,
	TOOL_SCRIPT_SYNTH, /* of perf's own decoders of AUX areas: no event here has it */
	TOOL_SCRIPT_OTHER,
	TOOL_SCRIPT_TYPE_COUNT,
};

struct tool_script_fields {
	unsigned shown[TOOL_SCRIPT_TYPE_COUNT]; /* bits */
	unsigned wanted
		[TOOL_SCRIPT_TYPE_COUNT]; /* of them, those that the user named: an event without one is an error */
};

/* What is shown without -F. */
void tool_script_fields_default(struct tool_script_fields *fields);

/* Takes a -F.  Returns false after a complaint. */
bool tool_script_fields_take(struct tool_script_fields *fields, const char *list);

/* What is shown of an event; *missing: a field that the user named and its samples do not have, or NULL. */
unsigned tool_script_fields_of(const struct tool_script_fields *fields, const struct perf_event_attr *attr,
			       const char **missing);

/* The i-th field's name, or NULL after the last. */
const char *tool_script_field_name(size_t i);

#endif
