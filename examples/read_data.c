/* read_data.c - counts the records of a perf.data file by name, and its samples by event.
 *
 *     read_data FILE
 */
#include <inttypes.h>
#include <stdio.h>
#include <perfring/file.h>

int main(int argc, char **argv)
{
	uint64_t kinds[128] = {0}, samples[64] = {0};
	struct perfring_file *data = NULL;
	struct perfring_fault fault;
	struct perfring_item item;
	int one;

	if (argc != 2) {
		fprintf(stderr, "usage: read_data FILE\n");
		return 2;
	}
	one = perfring_file_open(&data, argv[1]);
	if (one == 0) {
		while ((one = perfring_file_next(data, &item)) == 1) {
			kinds[item.record->type < 128 ? item.record->type : 0]++;
			if (item.record->type == PERFRING_RECORD_SAMPLE && item.format && item.format->index < 64)
				samples[item.format->index]++;
		}
	}
	for (uint32_t type = 0; type < 128; type++) {
		const char *name = perfring_record_name(type);

		if (kinds[type])
			printf("%10" PRIu64 " %s\n", kinds[type], name ? name : "(unknown)");
	}
	for (uint32_t index = 0; index < 64; index++)
		if (samples[index])
			printf("%10" PRIu64 " SAMPLE of %s\n", samples[index], perfring_file_event_name(data, index));
	if (one == -EBADMSG) {
		fault = perfring_file_fault(data);
		fprintf(stderr, "read_data: %s: at %" PRId64 ": %s\n", argv[1], fault.at, fault.what);
	} else if (one < 0) {
		fprintf(stderr, "read_data: %s: %s\n", argv[1], strerror(-one));
	}
	perfring_file_close(data);
	return one < 0;
}
