/* fuzz_decoder.c - a decoder of one's own against perfring's, on valid and on damaged records: fuzz_decoder [SEED] */
#include <perfring/generate.h>
#include <stdio.h>
#include <stdlib.h>

/* The decoder to be tested: the time of a sample of IP | TID | TIME; 0: the record is too short. */
static uint64_t time_of(const struct perf_event_header *record)
{
	return record->size < 32 ? 0 : ((const uint64_t *)(const void *)record)[3];
}

int main(int argc, char **argv)
{
	struct perfring_format format = {.sample_type = PERFRING_SAMPLE_IP | PERFRING_SAMPLE_TID | PERFRING_SAMPLE_TIME};
	static union { struct perf_event_header header; uint64_t words[8192]; } record;
	struct perfring_generator generator;
	struct perfring_sample sample;

	perfring_generator_seed(&generator, argc > 1 ? strtoull(argv[1], NULL, 0) : 1);
	for (int i = 0; i < 1000000; i++) {
		perfring_generate_record(&generator, &format, PERFRING_RECORD_SAMPLE, &record, 512);
		if (i % 2)
			perfring_generate_damage(&generator, &format, PERFRING_DAMAGES, &record, sizeof(record));
		bool valid = !perfring_sample_decode(&format, &record.header, &sample, NULL);
		if (record.header.type == PERFRING_RECORD_SAMPLE && time_of(&record.header) != (valid ? sample.time : 0))
			return printf("record %d: another time\n", i), 1;
	}
	return puts("1000000 records: the same"), 0;
}
