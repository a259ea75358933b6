/* limits.h - the most that the commands read of objects and formats of others; docs/limits.md has these and the library's.
 *
 * What exceeds a bound stays a number or bytes, and is reported once.  Bounds are several times what is known to exist.
 */
#ifndef PERFRING_TOOLS_LIMITS_H
#define PERFRING_TOOLS_LIMITS_H

#include <stdint.h>

/* ---- objects (elf_symbols.c, symbols.c) ---- */

/* Files whose symbols are read for one perf.data file, by device and inode. */
#define TOOL_LIMIT_FILES 10000

/* Bytes that are read, inflated or summed up for one object with its debug file, and for all objects of one perf.data file. */
#define TOOL_LIMIT_OBJECT_BYTES (UINT64_C(512) << 20)
#define TOOL_LIMIT_ALL_BYTES (UINT64_C(2) << 30)

/* Of them, what is read of one object to find its build id, when no segment of notes has it. */
#define TOOL_LIMIT_LOOK (UINT64_C(64) << 10)

/* Headers of sections and of segments of one file; bytes of the names of sections. */
#define TOOL_LIMIT_SECTIONS 65536
#define TOOL_LIMIT_SECTION_NAMES (UINT64_C(16) << 20)
#define TOOL_LIMIT_SEGMENTS 4096

/* Symbols of code of one object; bytes of one name; bytes of all names, of which several may share one place. */
#define TOOL_LIMIT_SYMBOLS (UINT32_C(4) << 20)
#define TOOL_LIMIT_NAME (16u << 10)
#define TOOL_LIMIT_NAMES (UINT64_C(1) << 30)

/* Bytes of the names that entries of the PLT get. */
#define TOOL_LIMIT_STUB_NAMES (16u << 20)

/* Bytes of .gnu_debugdata once inflated, and memory of its decoder (xz -9 needs 65 MiB). */
#define TOOL_LIMIT_DEBUGDATA (64u << 20)
#define TOOL_LIMIT_DECODER (72u << 20)

/* ---- formats of tracepoints (tracepoint.c): a kernel's longest has 14 KiB, all of them together 5 MiB ---- */

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
