/* feature.h - features of perf.data files: their bits, and what is in their payloads (docs/abi.md 11.3).
 *
 * Context: any thread, signal handlers too; nothing is allocated. */
#ifndef PERFRING_FEATURE_H
#define PERFRING_FEATURE_H

#include <perfring/layout.h>

PERFRING_BEGIN

/* Features by their bit in the file header (docs/abi.md 11.3); feature.def has them with their layouts. */
enum perfring_feature {
#define PERFRING_FEATURE(NAME, bit, layout) PERFRING_FEATURE_##NAME = (bit),
#include <perfring/feature.def>
	PERFRING_FEATURE_BITS = 256, /* bits in the bitmap */
};

/* A feature's name ("HOSTNAME"), or NULL if the bit is unknown. */
PERFRING_API const char *perfring_feature_name(uint32_t feature);

/* Begins a walk (layout.h).  cpus: `available` of NRCPUS, the length of some lists; 0 if unknown: such a list is then returned
 * as bytes.  A feature without a layout is one member of kind BYTES.  The payload is in native byte order and stays the
 * caller's. */
PERFRING_API void perfring_feature_open(struct perfring_layout_walk *walk, uint32_t feature, const void *payload,
					uint64_t size, uint32_t cpus);

/* Changes the byte order of a payload in place: from foreign to native, or with `to_foreign` from native to foreign.  Bytes
 * after damage, and bytes without a layout, are not changed.  Returns 0 or -EBADMSG. */
PERFRING_API int perfring_feature_swap(uint32_t feature, void *payload, uint64_t size, uint32_t cpus, bool to_foreign);

/* A build id of the feature BUILD_ID, in the payload's bytes. */
struct perfring_feature_build_id {
	const char *name; /* of the object; without a NUL where its space is full */
	size_t name_size;
	const unsigned char *id;
	size_t id_size;
};

/* The next build id of a walk that perfring_feature_open has begun over the feature BUILD_ID.  Returns 1; 0 at the end; -EBADMSG, as
 * perfring_layout_next.  Valid as long as the payload. */
PERFRING_API int perfring_feature_next_build_id(struct perfring_layout_walk *walk,
						struct perfring_feature_build_id *build_id);

PERFRING_END

#endif
