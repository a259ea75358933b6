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

PERFRING_END

#endif
