/* feature_fuzz.c - any bytes as the payload of any feature: the walk comes to its end inside them, and two swaps are none.
 * Bytes: feature, cpus (2), then the payload. */
#include <stdlib.h>
#include <perfring/feature.h>
#include <perfring/file.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void must(bool held)
{
	if (!held)
		abort();
}

/* Sums up the members, each of which lies in the payload. */
static int walk_through(uint32_t feature, const uint8_t *payload, size_t size, uint32_t cpus, uint64_t *sum)
{
	struct perfring_layout_member member;
	struct perfring_layout_walk walk;
	size_t members = 0;
	int one;

	*sum = 0;
	perfring_feature_open(&walk, feature, payload, size, cpus);
	while ((one = perfring_layout_next(&walk, &member)) == 1) {
		const uint8_t *begin = member.bytes;

		must(memchr(member.name, 0, sizeof(member.name)) && *member.name);
		must(member.depth <= 4);
		must(++members <= size + 2);
		if (member.size || member.kind == PERFRING_LAYOUT_NUMBER)
			must(begin >= payload && member.size <= (size_t)(payload + size - begin));
		if (member.kind == PERFRING_LAYOUT_STRING)
			must(strlen(member.bytes) == member.size);
		*sum = *sum * 31 + (member.kind == PERFRING_LAYOUT_NUMBER ? member.number : member.size);
	}
	must(one == 0 || (one == -EBADMSG && walk.fault.what && walk.fault.at >= 0 && walk.fault.at <= (int64_t)size));
	must(perfring_layout_next(&walk, &member) == 0);
	return one;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	uint32_t feature, cpus;
	uint64_t before, after;
	uint8_t *swapped;
	int error;

	if (size < 3)
		return 0;
	feature = bytes[0] % 40;
	cpus = (uint32_t)bytes[1] | (uint32_t)bytes[2] << 8;
	bytes += 3;
	size -= 3;
	swapped = malloc(size ? size : 1);
	must(swapped);
	memcpy(swapped, bytes, size);
	error = walk_through(feature, bytes, size, cpus, &before);
	/* an attr whose own size is wrong can be walked, not swapped */
	must(perfring_feature_swap(feature, swapped, size, cpus, true) == error || feature == PERFRING_FEATURE_EVENT_DESC);
	error = perfring_feature_swap(feature, swapped, size, cpus, false);
	must(!memcmp(swapped, bytes, size));
	must(walk_through(feature, swapped, size, cpus, &after) == error || feature == PERFRING_FEATURE_EVENT_DESC);
	must(before == after);
	free(swapped);
	return 0;
}
