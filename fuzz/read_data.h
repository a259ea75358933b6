/* read_data.h - everything that a reader of perf.data can be asked, on bytes that may be anything. */
#ifndef FUZZ_READ_DATA_H
#define FUZZ_READ_DATA_H

#include <stdlib.h>
#include <perfring/feature.h>
#include <perfring/file.h>
#include <perfring/split.h>
#include <perfring/text.h>
#include "machine.h"

static inline void must(bool held)
{
	if (!held)
		abort();
}

static void walk_feature(const struct perfring_file *data, uint32_t feature)
{
	struct perfring_layout_member member;
	struct perfring_layout_walk walk;
	uint64_t size = 0, cpus_size = 0;
	const void *payload = perfring_file_feature(data, feature, &size);
	const uint32_t *cpus;
	const char *text;
	int one;

	if (!payload)
		return;
	cpus = perfring_file_feature(data, PERFRING_FEATURE_NRCPUS, &cpus_size);
	text = perfring_file_string(data, feature);
	must(!text || strlen(text) < size);
	perfring_feature_open(&walk, feature, payload, size, cpus_size >= sizeof(*cpus) ? *cpus : 0);
	while ((one = perfring_layout_next(&walk, &member)) == 1)
		if (member.size)
			must((const char *)member.bytes >= (const char *)payload &&
			     (const char *)member.bytes + member.size <= (const char *)payload + size);
	must(!one || (one == -EBADMSG && walk.fault.what && walk.fault.at >= 0 && (uint64_t)walk.fault.at <= size));
}

static void ask(const struct perfring_file *data, bool has_text)
{
	uint64_t id;

	/* and a few that are the header's, but no feature */
	for (uint32_t feature = 0; feature < 64; feature++)
		walk_feature(data, feature);
	walk_feature(data, PERFRING_FEATURE_BITS - 1);
	for (uint32_t index = 0; perfring_file_attr(data, index); index++) {
		char text[256];

		if (has_text)
			perfring_attr_text(perfring_file_attr(data, index), text, sizeof(text));
		must(perfring_file_event_name(data, index) && strlen(perfring_file_event_name(data, index)) < 65536);
		for (uint32_t i = 0; perfring_file_event_id(data, index, i, &id); i++)
			must(!id || perfring_format_set_find(perfring_file_formats(data), id));
	}
	perfring_file_is_finished(data);
	perfring_file_is_pipe(data);
	perfring_file_is_foreign(data);
}

/* What came, in the order in which it came. */
static uint64_t mix(uint64_t digest, const struct perfring_item *item)
{
	const unsigned char *bytes = (const unsigned char *)item->record;
	size_t size = item->record->size;

	digest = (digest ^ item->time ^ (item->format ? item->format->index + 1 : 0)) * UINT64_C(0x9e3779b97f4a7c15);
	for (size_t at = 0; at < size; at += 8) {
		uint64_t word = 0;

		memcpy(&word, bytes + at, size - at < 8 ? size - at : 8);
		digest = (digest ^ word ^ digest >> 29) * UINT64_C(0x9e3779b97f4a7c15);
	}
	return digest;
}

/* A sample as those of its group's events.  Returns a digest of them. */
static uint64_t walk_split(struct perfring_split *split, const struct perfring_item *item)
{
	const struct perfring_format *format;
	struct perfring_sample sample;
	uint64_t digest = 0, nr = 0, most;
	int one;

	if (item->record->type != PERFRING_RECORD_SAMPLE || !item->format ||
	    perfring_sample_decode(item->format, item->record, &sample, NULL))
		return 0;
	most = sample.present & PERFRING_SAMPLE_READ && sample.read.nr > 1 ? sample.read.nr : 1;
	perfring_split_begin(split, item->format, &sample);
	while ((one = perfring_split_next(split, &format)) == 1) {
		must(++nr <= most);
		digest = digest * 31 + format->index + (sample.present & PERFRING_SAMPLE_PERIOD ? sample.period : 0);
	}
	must(one == 0);
	return digest;
}

/* To the end.  Returns a digest of what came. */
static uint64_t read_all(struct perfring_file *data, unsigned seed)
{
	struct perfring_split *split;
	struct perfring_item item;
	unsigned char trace[512];
	/* text is slow, and has a fuzzer of its own */
	bool has_text = seed % 8 == 0;
	uint64_t digest = 1;
	char text[256];
	int one;

	ask(data, false);
	must(!perfring_split_open(&split, perfring_file_formats(data)));
	do {
		item.record = NULL;
		one = perfring_file_next(data, &item);
		must(one != -EBADMSG || perfring_file_fault(data).what);
		if (item.record) {
			digest = mix(digest, &item) ^ walk_split(split, &item);
			must((uintptr_t)item.record % 8 == 0 && item.record->size >= sizeof(*item.record));
			must(perfring_file_position(data) >= 0 && perfring_file_part(data) == 0);
			must(!perfring_file_was_late(data) || perfring_file_late(data));
			if (has_text)
				perfring_record_text(item.format, item.record, text, sizeof(text));
			/* all, some, or none of what comes after it */
			for (int64_t got = seed % 3; got > 0; got = seed % 3 == 1 ? got : 0) {
				got = perfring_file_read_trace(data, trace, 1 + seed % sizeof(trace));
				must(got <= (int64_t)sizeof(trace));
			}
		}
	} while (one > 0 || item.record);
	must(perfring_file_next(data, &item) == one);
	perfring_split_close(split);
	ask(data, has_text);
	return digest;
}

/* A reader of these bytes.  Returns a digest of what came, 0 when it cannot be opened. */
static uint64_t read_bytes(const void *bytes, size_t size, bool is_pipe, enum machine_mood mood, unsigned seed)
{
	struct perfring_file *data = NULL;
	uint64_t digest = 0;
	int error;

	machine_set(bytes, size, is_pipe, mood, seed);
	error = perfring_file_open(&data, MACHINE_PATH);
	if (!error)
		digest = read_all(data, seed);
	else
		must((error != -EBADMSG && error != -EOPNOTSUPP) || perfring_file_fault(data).what);
	perfring_file_close(data);
	must(machine_is_idle());
	return digest;
}

#endif
