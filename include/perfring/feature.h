/* feature.h - features of perf.data files: their bits, and what is in their payloads (ABI.md 11.3).
 *
 * Context: any thread, signal handlers too; nothing is allocated. */
#ifndef PERFRING_FEATURE_H
#define PERFRING_FEATURE_H

#include <perfring/base.h>

PERFRING_BEGIN

/* Features by their bit in the file header (ABI.md 11.3); feature.def has them with their layouts. */
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
	char name[24]; /* as in feature.def; "rest" for what no layout tells */
	enum perfring_feature_kind kind;
	uint32_t depth;    /* of how many lists it is an element */
	uint64_t number;   /* NUMBER */
	const void *bytes; /* in the payload; a STRING ends with NUL */
	uint64_t size;     /* of bytes; of a STRING without its NUL; 1, 2, 4 or 8 for a NUMBER */
};

/* A walk through one payload, member by member.  The caller's, on its stack. */
struct perfring_feature_walk {
	const unsigned char *payload;
	uint64_t size;
	uint64_t at;
	const char *part; /* of the layout */
	uint64_t registers[26];
	struct {
		const char *begin;
		uint64_t left;
	} lists[4];
	uint32_t depth;
	uint32_t cpus;
	uint32_t order; /* private */
	uint32_t padding;
	struct perfring_fault fault; /* of a -EBADMSG: place in the payload */
	uint64_t reserved[2];
};

/* Its name ("HOSTNAME"), or NULL. */
PERFRING_API const char *perfring_feature_name(uint32_t feature);

/* Begins.  cpus: NRCPUS' `available`, which some layouts count by; 0: unknown, the rest is then handed out as bytes.  A
 * feature without a layout is one member of BYTES.  The payload is in this machine's order and stays the caller's. */
PERFRING_API void perfring_feature_open(struct perfring_feature_walk *walk, uint32_t feature, const void *payload,
					uint64_t size, uint32_t cpus);

/* Returns 1, 0 at the end (bytes that the layout does not tell come first, as "rest"), -EBADMSG with walk->fault.  Valid
 * until: the payload goes. */
PERFRING_API int perfring_feature_next(struct perfring_feature_walk *walk, struct perfring_feature_member *member);

/* Turns a payload of the other byte order into ours, in its place, or, with `to_foreign`, ours into that.  What is wrong
 * in it, and what has no layout, stays as it is.  Returns 0, or -EBADMSG. */
PERFRING_API int perfring_feature_swap(uint32_t feature, void *payload, uint64_t size, uint32_t cpus, bool to_foreign);

PERFRING_END

#endif
