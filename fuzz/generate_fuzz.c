/* generate_fuzz.c - a record of any format from any seed: well-formed, its own inverse, the same after two swaps; then
 * damaged and mutated, which nothing may stumble over.  Bytes: seed (8), most (2), type, damage, the attr's members that
 * shape records (48). */
#include <stdlib.h>
#include <perfring/check.h>
#include <perfring/generate.h>
#include <perfring/swap.h>
#include <perfring/text.h>

enum {
	ROOM = 640, /* small: the shapes are the same */
};

struct input {
	uint64_t seed;
	uint16_t most;
	uint8_t type;
	uint8_t damage;
	uint8_t members[48];
};

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void must(bool held)
{
	if (!held)
		abort();
}

/* In memory of its own size, so that a sanitizer sees the first byte after it. */
static struct perf_event_header *exact(const void *bytes, int64_t size)
{
	void *copy = malloc((size_t)size);

	must(copy);
	memcpy(copy, bytes, (size_t)size);
	return copy;
}

static void try_valid(const struct perfring_format *format, const struct perf_event_header *record, int64_t size)
{
	unsigned char foreign[ROOM], again[ROOM];
	struct perfring_finding finding;
	struct perfring_record decoded;
	struct perfring_sample sample;

	must(record->size == size);
	must(!perfring_record_examine(format, record, (size_t)size, &finding));
	if (record->type == PERFRING_RECORD_SAMPLE) {
		must(!perfring_sample_decode(format, record, &sample, NULL));
		must(perfring_sample_size(format, &sample) == size);
		must(perfring_sample_encode(format, &sample, again, sizeof(again)) == size);
	} else {
		must(!perfring_record_decode(format, record, &decoded, NULL));
		must(perfring_record_size(format, &decoded) == size);
		must(perfring_record_encode(format, &decoded, again, sizeof(again)) == size);
	}
	must(!memcmp(record, again, (size_t)size));
	must(perfring_record_to_foreign(format, record, foreign, sizeof(foreign), NULL) == size);
	must(perfring_record_to_native(format, (const void *)foreign, again, sizeof(again), NULL) == size);
	must(!memcmp(record, again, (size_t)size));
}

/* Any bytes: everything comes to its end and reads no byte outside.  Returns whether they are well-formed, and nothing
 * is to be remarked.  Text is slow, and has a fuzzer of its own. */
static bool try_any(const struct perfring_format *format, const struct perf_event_header *record, int64_t size,
		    bool has_text)
{
	unsigned char other[ROOM];
	struct perfring_fault fault = {-1, NULL};
	struct perfring_record decoded;
	struct perfring_sample sample;
	struct perfring_finding finding;
	char text[64];
	int ret = perfring_record_check(format, record, (size_t)size, &fault), decodes, examined;

	must(ret ? ret == -EBADMSG && fault.what && fault.at >= 0 && fault.at <= size : fault.at == -1);
	examined = perfring_record_examine(format, record, (size_t)size, &finding);
	must(examined == ret || (examined == 1 && !ret));
	if (size < (int64_t)sizeof(*record) || record->size > size)
		return false;
	decodes = record->type == PERFRING_RECORD_SAMPLE ? perfring_sample_decode(format, record, &sample, NULL)
							 : perfring_record_decode(format, record, &decoded, NULL);
	must(!decodes || ret);
	if (has_text)
		perfring_record_text(format, record, text, sizeof(text));
	perfring_record_to_foreign(format, record, other, sizeof(other), NULL);
	if (__builtin_bswap16(record->size) <= size)
		perfring_record_to_native(format, record, other, sizeof(other), NULL);
	return !examined;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	unsigned char buffer[ROOM + 16];
	struct perfring_generator generator;
	struct perf_event_header *record;
	struct perfring_format format;
	struct input input;
	int64_t made, now;
	uint32_t most;
	bool is_good;

	if (size != sizeof(input.members) + 12)
		return 0;
	memcpy(&input.seed, bytes, 8);
	memcpy(&input.most, bytes + 8, 2);
	input.type = bytes[10];
	input.damage = bytes[11] % (PERFRING_DAMAGES + 1);
	memset(&format, 0, sizeof(format));
	memcpy(&format, bytes + 12, sizeof(input.members));
	perfring_format_plan(&format);
	perfring_generator_seed(&generator, input.seed);
	most = input.most % (ROOM + 1);
	memset(buffer + most, 0xa5, 16);
	made = perfring_generate_record(&generator, &format, input.type, buffer, most);
	if (made == -ENOSPC)
		return 0;
	must(made >= 8 && made <= most);
	record = exact(buffer, made);
	try_valid(&format, record, made);
	free(record);
	now = perfring_generate_damage(&generator, &format, input.damage, buffer, most);
	must(now >= 0 && now <= most);
	if (now) {
		record = exact(buffer, now);
		is_good = try_any(&format, record, now, input.seed % 8 == 0);
		must(!is_good || input.damage >= PERFRING_DAMAGES || input.damage == PERFRING_DAMAGE_ID ||
		     input.damage == PERFRING_DAMAGE_TYPE || input.damage == PERFRING_DAMAGE_BYTES);
		free(record);
	}
	made = (int64_t)perfring_generate_mutate(&format, buffer, (size_t)(now ? now : made), most, input.seed);
	must(made <= most);
	record = exact(buffer, made);
	try_any(&format, record, made, input.seed % 8 == 1);
	free(record);
	for (int i = 0; i < 16; i++)
		must(buffer[most + (uint32_t)i] == 0xa5);
	return 0;
}
