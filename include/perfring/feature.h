/* feature.h - features of perf.data files: their bits, and what is in their payloads (docs/abi.md 11.3).
 *
 * Context: any thread, signal handlers too; nothing is allocated. */
#ifndef PERFRING_FEATURE_H
#define PERFRING_FEATURE_H

#include <perfring/base.h>

PERFRING_BEGIN

/* Features by their bit in the file header (docs/abi.md 11.3); feature.def has them with their layouts. */
enum perfring_feature {
#define PERFRING_FEATURE(NAME, bit, layout) PERFRING_FEATURE_##NAME = (bit),
#include <perfring/feature.def>
	PERFRING_FEATURE_BITS = 256, /* bits in the bitmap */
};

enum perfring_feature_kind {
	PERFRING_FEATURE_NUMBER,
	PERFRING_FEATURE_STRING,
	PERFRING_FEATURE_BYTES,
};

/* One member of a payload. */
struct perfring_feature_member {
	char name[24]; /* as in feature.def; "rest" for bytes beyond the layout */
	enum perfring_feature_kind kind;
	uint32_t depth;    /* number of lists around it */
	uint64_t number;   /* NUMBER */
	const void *bytes; /* in the payload; a STRING ends with NUL */
	uint64_t size;     /* bytes; of a STRING without its NUL; of a NUMBER 1, 2, 4 or 8 */
};

/* A walk through one payload, member by member.  Allocated by the caller; nothing to free. */
struct perfring_feature_walk {
	const unsigned char *payload;
	uint64_t size;
	uint64_t at;
	const char *part; /* position in the layout */
	uint64_t registers[26];
	struct {
		const char *begin;
		uint64_t left;
	} lists[4];
	uint32_t depth;
	uint32_t cpus;
	uint32_t order; /* internal */
	uint32_t padding;
	struct perfring_fault fault; /* of a -EBADMSG: place in the payload */
	uint64_t reserved[2];
};

/* A feature's name ("HOSTNAME"), or NULL if the bit is unknown. */
PERFRING_API const char *perfring_feature_name(uint32_t feature);

/* Begins a walk.  cpus: `available` of NRCPUS, the length of some lists; 0 if unknown: such a list is then returned as bytes.
 * A feature without a layout is one member of kind BYTES.  The payload is in native byte order and stays the caller's. */
PERFRING_API void perfring_feature_open(struct perfring_feature_walk *walk, uint32_t feature, const void *payload,
					uint64_t size, uint32_t cpus);

/* The next member.  Bytes beyond the layout are the last member, "rest".  Returns 1; 0 at the end; -EBADMSG with walk->fault.
 * Valid as long as the payload. */
PERFRING_API int perfring_feature_next(struct perfring_feature_walk *walk, struct perfring_feature_member *member);

/* Changes the byte order of a payload in place: from foreign to native, or with `to_foreign` from native to foreign.  Bytes
 * after damage, and bytes without a layout, are not changed.  Returns 0 or -EBADMSG. */
PERFRING_API int perfring_feature_swap(uint32_t feature, void *payload, uint64_t size, uint32_t cpus, bool to_foreign);

PERFRING_END

#endif
