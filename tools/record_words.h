/* record_words.h - records that are no samples, in perf's words: those of script's --show-...-events, and of -D.
 *
 * script.c and raw_dump.c print by it, to stdout.
 */
#ifndef PERFRING_TOOLS_RECORD_WORDS_H
#define PERFRING_TOOLS_RECORD_WORDS_H

#include <perfring/file.h>
#include <perfring/record.h>

enum tool_words {
	TOOL_WORDS_SCRIPT, /* after a task's name and a time */
	TOOL_WORDS_DUMP,   /* in perf's dump, which says some of them in another way */
};

/* Into tool_out, from the kind's name on, without an end of the line: perf's words for what its readers look for, the members of
 * others by their names. */
void tool_record_words(const struct perfring_item *item, const struct perfring_record *record, enum tool_words form);

#endif
