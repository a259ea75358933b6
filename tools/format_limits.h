/* format_limits.h - the most that the commands read of formats; docs/limits.md has these and the libraries'.
 *
 * What exceeds a bound stays a number or bytes, and is reported once.  Bounds are several times what is known to exist.
 *
 * tracepoint_format.c includes it.
 */
#ifndef PERFRING_TOOLS_FORMAT_LIMITS_H
#define PERFRING_TOOLS_FORMAT_LIMITS_H

#include <stdint.h>

/* Formats of tracepoints (tracepoint_format.c): a kernel's longest has 14 KiB, all of them together 5 MiB. */

/* Bytes of one format with the name of its system, and of all that are parsed for one perf.data file. */
#define TOOL_LIMIT_FORMAT (256u << 10)
#define TOOL_LIMIT_FORMATS (8u << 20)

/* In one format: '%', brackets in one another, and fields, of which there is one less. */
#define TOOL_LIMIT_FORMAT_PERCENTS 512
#define TOOL_LIMIT_FORMAT_DEPTH 256
#define TOOL_LIMIT_FORMAT_FIELDS 4096

/* Seconds of processor time after which none is parsed any more, for one perf.data file. */
#define TOOL_LIMIT_FORMAT_SECONDS 10

/* Bytes of a sample's payload times the '%' of its format: a kernel's payload has at most 8 KiB. */
#define TOOL_LIMIT_TRACE_TEXT (4u << 20)

/* Formats by which printing broke off, each of which costs what memory it had. */
#define TOOL_LIMIT_TRACE_BREAKS 8u

#endif
