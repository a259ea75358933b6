/* feature.c - features: their names, and their payloads by their layouts.
 *
 * The functions of feature.h: rows of feature.def, walked by sample/layout.c.  Signal handlers may call them.
 */
#include <perfring/feature.h>

#include "sample/layout_private.h"

static const struct {
	const char *name;
	const char *layout;
} known[] = {
#define PERFRING_FEATURE(NAME, bit, layout) [bit] = {#NAME, layout},
#include <perfring/feature.def>
};

const char *perfring_feature_name(uint32_t feature)
{
	return feature < sizeof(known) / sizeof(known[0]) ? known[feature].name : NULL;
}

void perfring_feature_open(struct perfring_layout_walk *walk, uint32_t feature, const void *payload, uint64_t size,
			   uint32_t cpus)
{
	perfring_layout_open(walk, perfring_feature_name(feature) ? known[feature].layout : "r:bytes", payload, 0,
			     size);
	walk->cpus = cpus;
}

int perfring_feature_swap(uint32_t feature, void *payload, uint64_t size, uint32_t cpus, bool to_foreign)
{
	struct perfring_layout_member member;
	struct perfring_layout_walk walk;
	int one;

	perfring_feature_open(&walk, feature, payload, size, cpus);
	walk.order = to_foreign ? LAYOUT_TO_FOREIGN : LAYOUT_FROM_FOREIGN;
	while ((one = perfring_layout_next(&walk, &member)) == 1)
		;
	return one;
}

int perfring_feature_next_build_id(struct perfring_layout_walk *walk, struct perfring_feature_build_id *build_id)
{
	struct perfring_layout_member member;
	int one;

	memset(build_id, 0, sizeof(*build_id));
	while ((one = perfring_layout_next(walk, &member)) == 1) {
		if (!strcmp(member.name, "build_id")) {
			build_id->id = member.bytes;
			build_id->id_size = (size_t)member.size;
		} else if (!strcmp(member.name, "length") && member.number && member.number < build_id->id_size) {
			build_id->id_size = (size_t)member.number;
		} else if (!strcmp(member.name, "file") && build_id->id) {
			build_id->name = member.bytes;
			build_id->name_size = strnlen(member.bytes, (size_t)member.size);
			return 1;
		}
	}
	return one;
}
