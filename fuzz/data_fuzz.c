/* data_fuzz.c - any bytes as a perf.data file: opened, read to its end, every record decoded. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include <perfring/data.h>
#include <perfring/text.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void read_all(struct perfring_data *data)
{
	struct perfring_item item;
	uint64_t length;
	char text[256];
	int one;

	for (uint32_t feature = 0; feature < PERFRING_DATA_FEATURES; feature++) {
		perfring_data_feature(data, feature, &length);
		perfring_data_string(data, feature);
	}
	for (uint32_t index = 0; perfring_data_attr(data, index); index++) {
		perfring_attr_text(perfring_data_attr(data, index), text, sizeof(text));
		perfring_data_event_name(data, index);
	}
	do {
		item.record = NULL;
		one = perfring_data_next(data, &item);
		if (one > 0)
			perfring_record_text(item.format, item.record, text, sizeof(text));
		if (one == -EBADMSG && !perfring_data_fault(data).what)
			abort();
	} while (one > 0 || item.record);
	perfring_data_is_finished(data);
	perfring_data_late(data);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct perfring_data *data = NULL;
	char path[64];
	int fd = memfd_create("data", MFD_CLOEXEC), ret;

	if (fd < 0 || write(fd, bytes, size) != (ssize_t)size)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ret = perfring_data_open(&data, path);
	if (ret == 0)
		read_all(data);
	else if (ret == -EBADMSG && !perfring_data_fault(data).what)
		abort();
	perfring_data_close(data);
	close(fd);
	return 0;
}
