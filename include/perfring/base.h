/* base.h - what every perfring header stands on: marks, version, fault, item.
 *
 * Errors.  A function that returns an int returns 0 or -errno; an iterator (next, _at) 1 with an entry, 0 without one, or -errno; a
 * size is an int64_t, negative for -errno.  Four have a fixed meaning: -EBADMSG the bytes are wrong; -ENOSPC the buffer is too small;
 * -EOPNOTSUPP not supported by this kernel, build or input; -EINVAL called wrongly.  A function's comment lists what
 * else it returns.  errno itself is neither an input nor a result.
 *
 * Lifetimes.  What open creates is freed by close of the same noun.  Arguments are copied unless their function says that they must
 * stay.  Results that are pointers are the object's, and valid as long as their function says ("Valid until").
 *
 * Failed opens.  An open that fails leaves NULL, or an object of the caller's that is closed (for perfring_file_open see there); each
 * close takes both, and does nothing.  next of a NULL file or session returns -EINVAL.  Inlines and all other functions must not be given NULL
 * where their comment does not allow it.
 *
 * Context.  A header's first comment says which threads may call its functions, and whether signal handlers may; a function's own
 * "Context" says where it differs.
 */
#ifndef PERFRING_BASE_H
#define PERFRING_BASE_H

#if defined(__cplusplus) ? __cplusplus < 201103L : !defined(__STDC_VERSION__) || __STDC_VERSION__ < 201112L
#error "perfring's headers need C11 or newer, or C++11 or newer: -std=c11, -std=gnu11, -std=c++11"
#define PERFRING_TOO_OLD 1
#endif

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <linux/perf_event.h>

#if defined(PERFRING_TOO_OLD) && !defined(static_assert)
#define static_assert(condition, text) struct perfring_too_old /* that error, and no others */
#endif

#define PERFRING_VERSION_MAJOR 0
#define PERFRING_VERSION_MINOR 9
#define PERFRING_VERSION_PATCH 0
#define PERFRING_VERSION "0.9.0"

/* An exported function; package/perfring.map, or perfring-profile.map, has its symbol version. */
#define PERFRING_API __attribute__((visibility("default")))

/* The same of a function that only tests use yet: it works and is tested, but its form may still change, or it may go. */
#define PERFRING_EXPERIMENTAL PERFRING_API

/* A public inline: runs once per record.  package/inlines.c compiles one linkable copy of each, for callers that
 * are not C. */
#ifndef PERFRING_INLINE
#define PERFRING_INLINE static inline __attribute__((unused))
#endif

/* An inline that only these headers and the library call: no linkable copy, and no promise that it stays. */
#define PERFRING_INNER static inline __attribute__((unused))

#ifdef __cplusplus
#define PERFRING_BEGIN extern "C" {
#define PERFRING_END }
#else
#define PERFRING_BEGIN
#define PERFRING_END
#endif

#define PERFRING_LIKELY(x) __builtin_expect(!!(x), 1)
#define PERFRING_UNLIKELY(x) __builtin_expect(!!(x), 0)

PERFRING_BEGIN

/* A u64 inside a record, at any address: records in files need not be aligned (docs/abi.md 14.36), nor are the fields after a RAW of
 * odd size.  On x86 and arm64 that is the same load. */
typedef uint64_t perfring_word __attribute__((__may_alias__, __aligned__(1)));

/* A word of a struct that several threads access, or a thread and its handlers: on i386 too at a multiple of 8, where a
 * uint64_t has 4.  There an access that crosses a cache line is not atomic, and a locked one takes 100 us or is a
 * SIGBUS. */
typedef uint64_t perfring_u64 __attribute__((__aligned__(8)));

#define PERFRING_RECORD_MAX 65528 /* the largest size that is a multiple of 8 and fits the header's u16 */
#define PERFRING_RECORD_OF_PERF 64 /* the perf tool's types begin here: no trailer, and no padding at the end (docs/abi.md 10) */

/* Where bytes are wrong, and what is wrong there.  `at` counts from the start of the record, ring or file that the
 * function was given; `what` is a constant text that is never freed. */
struct perfring_fault {
	int64_t at;
	const char *what;
};

struct perfring_format;

/* What every source returns: one record; the format of its event (NULL if it belongs to none, as perf's own records); its
 * time (0: none).  The source's header says how long an item is valid. */
struct perfring_item {
	const struct perf_event_header *record;
	const struct perfring_format *format;
	uint64_t time;
};

/* The version of the library that is linked in, which may differ from PERFRING_VERSION: a constant text.  Context: any. */
PERFRING_API const char *perfring_version(void);

PERFRING_END

#endif
