/* limits.h - the most that is read of objects; docs/limits.md has these and the others.
 *
 * What exceeds a bound has no name, and is reported.  Bounds are several times what is known to exist.
 *
 * elf_image.c counts, and the other files of symbol/ compare.
 */
#ifndef PERFRING_SYMBOL_LIMITS_H
#define PERFRING_SYMBOL_LIMITS_H

#include <stdint.h>

/* Files of which one cache reads symbols, by device and inode. */
#define PERFRING_LIMIT_FILES 10000

/* Paths of different builds. */
#define PERFRING_LIMIT_OBJECTS 65536

/* Ranges of addresses of functions and units that are looked at in one file's DWARF; how often the DWARF of one file is closed
 * because it takes too much memory, before it is not opened again. */
#define PERFRING_LIMIT_RANGES (UINT64_C(1) << 26)
#define PERFRING_LIMIT_REOPENED 16

/* Processes in whose mount namespaces one object is looked for. */
#define PERFRING_LIMIT_PROCESSES 1024

/* Bytes that are read, inflated or summed up for one object with its debug file, and for all objects of one cache. */
#define PERFRING_LIMIT_OBJECT_BYTES (UINT64_C(512) << 20)
#define PERFRING_LIMIT_ALL_BYTES (UINT64_C(2) << 30)

/* Part of these: bytes that are read of one object to find its build id, if no segment of notes has it. */
#define PERFRING_LIMIT_LOOK (UINT64_C(64) << 10)

/* Headers of sections and of segments of one file; bytes of the names of sections. */
#define PERFRING_LIMIT_SECTIONS 65536
#define PERFRING_LIMIT_SECTION_NAMES (UINT64_C(16) << 20)
#define PERFRING_LIMIT_SEGMENTS 4096

/* Symbols of code of one object; bytes of one name; bytes of all names, of which several may share one place. */
#define PERFRING_LIMIT_SYMBOLS (UINT32_C(4) << 20)
#define PERFRING_LIMIT_NAME (16u << 10)
#define PERFRING_LIMIT_NAMES (UINT64_C(1) << 30)

/* Bytes of one name as it is shown, demangled, and of all of one cache. */
#define PERFRING_LIMIT_SHOWN_NAME (16u << 10)
#define PERFRING_LIMIT_SHOWN_NAMES (UINT64_C(256) << 20)

/* Bytes of memory for what is computed from the DWARF of one object, after which it is closed and read again; of the sections of
 * one file, read and inflated; of the sections of all files whose DWARF is open; and of one unit's table of lines, of which each
 * byte may be a row. */
#define PERFRING_LIMIT_LINES (UINT64_C(256) << 20)
#define PERFRING_LIMIT_INFLATED (UINT64_C(1) << 30)
#define PERFRING_LIMIT_OPEN (UINT64_C(2) << 30)
#define PERFRING_LIMIT_TABLE (UINT64_C(4) << 20)

/* Bytes of a list of the kernel's symbols: 30 MiB with all of its symbols. */
#define PERFRING_LIMIT_KALLSYMS (size_t)(256u << 20)

/* Bytes of the names that entries of the PLT get. */
#define PERFRING_LIMIT_STUB_NAMES (16u << 20)

/* Bytes of .gnu_debugdata once inflated, and memory of its decoder (xz -9 needs 65 MiB). */
#define PERFRING_LIMIT_DEBUGDATA (64u << 20)
#define PERFRING_LIMIT_DECODER (72u << 20)

/* Code that the recorded processes made (jit_files.c): files that are read for one object of names, each under the bounds of
 * jit.h, and pieces of code in all maps, after which no more are read. */
#define PERFRING_LIMIT_JITS 256
#define PERFRING_LIMIT_JIT_CODES (UINT64_C(4) << 20)

#endif
