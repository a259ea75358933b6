/* raw_dump.h - the -D of script and report: each record in perf's dump, its bytes and then what it says.
 *
 * script.c and report.c call it.  Prints to stdout; keeps nothing.
 */
#ifndef PERFRING_TOOLS_RAW_DUMP_H
#define PERFRING_TOOLS_RAW_DUMP_H

#include "machine.h"
#include "symbol_names.h"
#include "tools.h"

struct tool_raw_dump {
	struct tool_input *input;
	struct tool_machine *machine;
	struct tool_symbols *symbols;
	/* of the events so far, of which a stream may announce more: */
	uint32_t events;
	uint64_t sample_types; /* that one of them has */
	bool lacks_trailers;   /* one of them does */
};

/* Prints a record.  Of its two views the one that it has; both NULL: it is damaged. */
void tool_raw_dump(struct tool_raw_dump *dump, const struct perfring_item *item, const struct perfring_sample *sample,
		   const struct perfring_record *record);

#endif
