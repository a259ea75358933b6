/* read_data.h - everything that a reader of perf.data can be asked, on bytes that may be anything. */
#ifndef FUZZ_READ_DATA_H
#define FUZZ_READ_DATA_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include <perfring/data.h>
#include <perfring/text.h>

static inline void must(bool held)
{
	if (!held)
		abort();
}

static void walk_feature(const struct perfring_data *data, uint32_t feature)
{
	struct perfring_feature_member member;
	struct perfring_feature_walk walk;
	uint64_t size = 0, cpus_size = 0;
	const void *payload = perfring_data_feature(data, feature, &size);
	const uint32_t *cpus = perfring_data_feature(data, PERFRING_DATA_NRCPUS, &cpus_size);
	const char *text = perfring_data_string(data, feature);
	int one;

	if (!payload)
		return;
	must(!text || strlen(text) < size);
	perfring_feature_open(&walk, feature, payload, size, cpus_size >= sizeof(*cpus) ? *cpus : 0);
	while ((one = perfring_feature_next(&walk, &member)) == 1)
		if (member.size)
			must((const char *)member.bytes >= (const char *)payload &&
			     (const char *)member.bytes + member.size <= (const char *)payload + size);
	must(!one || (one == -EBADMSG && walk.fault.what && walk.fault.at >= 0 && (uint64_t)walk.fault.at <= size));
}

static void ask(const struct perfring_data *data)
{
	uint64_t id;

	for (uint32_t feature = 0; feature < PERFRING_DATA_FEATURES; feature++)
		walk_feature(data, feature);
	for (uint32_t index = 0; perfring_data_attr(data, index); index++) {
		char text[256];

		perfring_attr_text(perfring_data_attr(data, index), text, sizeof(text));
		must(perfring_data_event_name(data, index) && strlen(perfring_data_event_name(data, index)) < 65536);
		for (uint32_t i = 0; perfring_data_event_id(data, index, i, &id); i++)
			must(!id || perfring_format_set_find(perfring_data_formats(data), id));
	}
	perfring_data_is_finished(data);
	perfring_data_is_pipe(data);
	perfring_data_is_foreign(data);
}

/* To the end, and what came. */
static size_t read_all(struct perfring_data *data, unsigned seed)
{
	struct perfring_item item;
	unsigned char trace[512];
	size_t items = 0;
	char text[256];
	int one;

	ask(data);
	do {
		item.record = NULL;
		one = perfring_data_next(data, &item);
		items += one == 1;
		must(one != -EBADMSG || perfring_data_fault(data).what);
		if (item.record) {
			must((uintptr_t)item.record % 8 == 0 && item.record->size >= sizeof(*item.record));
			must(perfring_data_position(data) >= 0 && perfring_data_stream(data) == 0);
			must(!perfring_data_was_late(data) || perfring_data_late(data));
			perfring_record_text(item.format, item.record, text, sizeof(text));
			/* all, some, or none of what stands behind it */
			for (int64_t got = seed % 3; got > 0; got = seed % 3 == 1 ? got : 0) {
				got = perfring_data_read_behind(data, trace, 1 + seed % sizeof(trace));
				must(got <= (int64_t)sizeof(trace));
			}
		}
	} while (one > 0 || item.record);
	must(perfring_data_next(data, &item) == one);
	ask(data);
	return items;
}

/* A file without a name, as long as the harness lives, to be written anew for each input. */
static inline int own_file(char path[64])
{
	static int fd = -1;

	if (fd < 0)
		fd = memfd_create("data", MFD_CLOEXEC);
	must(fd >= 0 && !ftruncate(fd, 0) && !lseek(fd, 0, SEEK_SET));
	snprintf(path, 64, "/proc/self/fd/%d", fd);
	return fd;
}

static inline void put(int fd, const void *bytes, size_t size, size_t at)
{
	must(pwrite(fd, bytes, size, (off_t)at) == (ssize_t)size);
}

/* What can be read there.  Returns how many items there were, 0 when it cannot be opened. */
static size_t read_path(const char *path, unsigned seed)
{
	struct perfring_data *data = NULL;
	size_t items = 0;
	int error = perfring_data_open(&data, path);

	if (!error)
		items = read_all(data, seed);
	else
		must((error != -EBADMSG && error != -EOPNOTSUPP) || perfring_data_fault(data).what);
	perfring_data_close(data);
	return items;
}

#endif
