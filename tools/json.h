/* json.h - records as JSON lines: {"kind":"MMAP2","at":264,"time":...,"event":"cycles","members":{...},"trailer":{...}}.
 *
 * Each member and field goes by the name that records.def and fields.def have for it.  Numbers are numbers, what the
 * tables show as hexadecimal is a string "0x...", times are nanoseconds, bytes are a string of their hexadecimal
 * digits.  In strings a byte that is no UTF-8 is \xHH, and so is a backslash.
 */
#ifndef JSON_H
#define JSON_H

#include "tools.h"
#include "tracepoint.h"

/* Writes one line.  A record that cannot be decoded has "fault" and "fault_at" in place of its members.  Returns whether
 * it could; else *fault says why not. */
bool perfring_json_record(FILE *out, const struct perfring_input *input, struct perfring_tracepoints *tracepoints,
			  const struct perfring_item *item, struct perfring_fault *fault);

#endif
