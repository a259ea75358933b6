/* tracepoint_format.h - fields of tracepoints by name, as the file's TRACING_DATA lays them out, or this machine's tracefs.
 *
 * Formats are a file's: libtraceevent parses each in a child first, and one that ends the child is not used.
 */
#ifndef PERFRING_TOOLS_TRACEPOINT_FORMAT_H
#define PERFRING_TOOLS_TRACEPOINT_FORMAT_H

#include <perfring/file.h>
#include "symbol_names.h"

enum tool_tracepoint_kind {
	TOOL_TRACEPOINT_DECIMAL,
	TOOL_TRACEPOINT_SIGNED,
	TOOL_TRACEPOINT_HEX,
	TOOL_TRACEPOINT_TEXT, /* bytes up to a NUL; those that are no text are shown as BYTES */
};

struct tool_tracepoint_field {
	const char *name;
	enum tool_tracepoint_kind kind;
	uint32_t offset;
	uint32_t size;
	uint32_t element; /* bytes of one number: 1, 2, 4 or 8; else the field is bytes */
	bool is_list;
	bool is_dynamic;  /* what is at the offset says where the value is (u16) and its size (u16) */
	bool is_relative; /* ... counted from the end of that */
	bool is_header;   /* of every tracepoint: common_type ... */
};

struct tool_tracepoint {
	uint32_t nr;
	const struct tool_tracepoint_field *fields;
};

/* Where a field's bytes are: in the payload; size 0 when the payload ends before. */
struct tool_tracepoint_value {
	const unsigned char *bytes;
	uint32_t size;
	uint32_t count; /* of elements */
};

struct tool_tracepoints;

/* Whether this tool was built with libtraceevent. */
bool tool_tracepoints_are_known(void);

/* data and symbols must outlive it; symbols may be NULL. */
struct tool_tracepoints *tool_tracepoints_open(const struct perfring_file *data, struct tool_symbols *symbols);
void tool_tracepoints_close(struct tool_tracepoints *tracepoints);

/* The fields of event `index`; NULL: it is no tracepoint, or has no format.  Valid until close. */
const struct tool_tracepoint *tool_tracepoints_of(struct tool_tracepoints *tracepoints, uint32_t index);

/* Finds a field in a sample's payload. */
void tool_tracepoint_value(const struct tool_tracepoints *tracepoints, const struct tool_tracepoint_field *field,
			   const struct perfring_raw *raw, struct tool_tracepoint_value *value);

/* The i-th element of a value that is numbers. */
uint64_t tool_tracepoint_number(const struct tool_tracepoints *tracepoints, const struct tool_tracepoint_field *field,
				const struct tool_tracepoint_value *value, uint32_t i);

/* The length of the text in a value; -1: it is no text. */
int64_t tool_tracepoint_text_size(const struct tool_tracepoint_value *value);

/* Changes the byte order of each number of a payload in place; the payload is in the file's order before. */
void tool_tracepoint_turn(const struct tool_tracepoints *tracepoints, const struct tool_tracepoint *tracepoint,
			  void *payload, uint32_t size);

/* The text of a payload by its format's print_fmt, or NULL.  Valid until: the next call. */
const char *tool_tracepoints_print(struct tool_tracepoints *tracepoints, uint32_t index,
				   const struct perfring_sample *sample);

#endif
