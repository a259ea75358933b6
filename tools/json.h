/* json.h - records as JSON lines: {"kind":"MMAP2","at":264,"time":...,"event":"cycles","members":{...},"trailer":{...}}.
 *
 * Each member and field goes by the name that records.def and fields.def have for it.  Numbers are numbers, what the
 * tables show as hexadecimal is a string "0x...", times are nanoseconds, bytes are a string of their hexadecimal
 * digits.  In strings a byte that is no UTF-8 is \xHH, and so is a backslash; control
 * characters, U+007F and U+0080 to U+009F among them, are \u00HH.
 *
 * What values.def has a name for goes by that: a value is the name ("PROG_LOAD"), or its number when it has none; a set of
 * bits is a string of names with | between them, and 0x... of the bits without a name at the end ("USER|EXACT_IP", "0x0").
 * "data_src" is its word and its parts, {"word":"0x...","op":"LOAD","lvl":"HIT|L1"}; the "flags" of a branch are those that
 * are not 0, {"predicted":1,"cycles":5,"type":"COND"}.
 */
#ifndef PERFRING_TOOLS_JSON_H
#define PERFRING_TOOLS_JSON_H

#include "tools.h"
#include "tracepoint_format.h"

/* Writes a string with its quotes, in valid UTF-8 whatever the bytes are. */
void tool_json_text(FILE *out, const char *text);

/* Writes one line; for the sample of a group one for each event that counted (split.h), with that event's name, id and
 * period, perhaps none.  A record that cannot be decoded has "fault" and "fault_at" in place of its members.  Returns whether
 * it could; else *fault says why not. */
bool tool_json_record(FILE *out, struct tool_input *input, struct tool_tracepoints *tracepoints,
		      const struct perfring_item *item, struct perfring_fault *fault);

#endif
