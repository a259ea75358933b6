/* record_counts.c - how many records a file has, by kind and by event.
 *
 * Counts are of records as they are read, by input.c's events.
 */
#include <inttypes.h>
#include <string.h>
#include "record_counts.h"

/* A stream may announce more events at any time. */
static struct tool_counts_event *counts_of(struct tool_counts *counts, uint32_t index)
{
	if (index >= counts->event_capacity) {
		counts->events = tool_allocate(counts->events, (size_t)index + 16, sizeof(*counts->events));
		memset(counts->events + counts->event_capacity, 0,
		       (index + 16 - counts->event_capacity) * sizeof(*counts->events));
		counts->event_capacity = index + 16;
	}
	return &counts->events[index];
}

/* A sample of a group counts for each event that counted. */
static void take_sample(struct tool_counts *counts, struct tool_input *input, const struct perfring_item *item,
			struct perfring_fault *fault)
{
	const struct perfring_format *format;
	struct perfring_sample sample;
	bool more;

	if (!item->format)
		return;
	if (perfring_sample_decode(item->format, item->record, &sample, fault)) {
		counts_of(counts, item->format->index)->samples++;
		return;
	}
	for (more = tool_input_event(input, item->format, &sample, &format); more; more = tool_input_more(input, &format))
		counts_of(counts, format->index)->samples++;
}

static void take_record(struct tool_counts *counts, const struct perfring_item *item, struct perfring_fault *fault)
{
	struct perfring_record record;

	if (perfring_record_decode(item->format, item->record, &record, fault))
		return;
	if (record.type == PERFRING_RECORD_LOST)
		counts->lost += record.is.lost.lost;
	if (record.type == PERFRING_RECORD_LOST_SAMPLES && item->format)
		counts_of(counts, item->format->index)->lost += record.is.lost_samples.lost;
}

void tool_counts_take(struct tool_counts *counts, struct tool_input *input, const struct perfring_item *item)
{
	struct perfring_fault fault = {0, NULL};
	uint32_t type = item->record->type;

	counts->records++;
	counts->kinds[type < TOOL_COUNTS_KINDS ? type : TOOL_COUNTS_KINDS]++;
	if (type == PERFRING_RECORD_SAMPLE)
		take_sample(counts, input, item, &fault);
	else
		take_record(counts, item, &fault);
	if (fault.what)
		tool_input_fault(input, &fault);
}

static void print_count(const char *name, uint64_t nr, uint64_t of)
{
	printf("%16s events: %10" PRIu64, name, nr);
	if (of)
		printf("  (%4.1f%%)", 100.0 * (double)nr / (double)of);
	putchar('\n');
}

void tool_counts_print(struct tool_counts *counts, const struct perfring_file *data)
{
	struct perfring_file_compressed compression;
	uint32_t events = perfring_format_set_count(perfring_file_formats(data)), i;
	const char *name;
	char number[24];

	/* Records that could not be read count too. */
	perfring_file_compression(data, &compression);
	counts->records += compression.compressed - counts->kinds[PERFRING_RECORD_COMPRESSED];
	counts->records += compression.compressed2 - counts->kinds[PERFRING_RECORD_COMPRESSED2];
	counts->kinds[PERFRING_RECORD_COMPRESSED] = compression.compressed;
	counts->kinds[PERFRING_RECORD_COMPRESSED2] = compression.compressed2;
	printf("\nAggregated stats:\n");
	print_count("TOTAL", counts->records, 0);
	for (i = 0; i < TOOL_COUNTS_KINDS; i++) {
		name = perfring_record_name(i);
		/* as perf calls them here */
		if (name && !strncmp(name, "HEADER_", 7))
			name += 7;
		snprintf(number, sizeof(number), "RECORD_%" PRIu32, i);
		if (counts->kinds[i])
			print_count(name ? name : number, counts->kinds[i], counts->records);
	}
	if (counts->kinds[TOOL_COUNTS_KINDS])
		print_count("UNKNOWN", counts->kinds[TOOL_COUNTS_KINDS], counts->records);
	if (counts->lost)
		printf("%16s records: %9" PRIu64 "\n", "lost", counts->lost);
	/* As perf: an event that nothing happened to is not shown, and LOST_SAMPLES is what was lost, not how many
	 * records say so. */
	for (i = 0; i < events && i < counts->event_capacity; i++) {
		if (!counts->events[i].samples && !counts->events[i].lost)
			continue;
		name = perfring_file_event_name(data, i);
		tool_print(stdout, name ? name : "?", 0, false);
		printf(" stats:\n");
		if (counts->events[i].samples)
			print_count("SAMPLE", counts->events[i].samples, 0);
		if (counts->events[i].lost)
			print_count("LOST_SAMPLES", counts->events[i].lost, 0);
	}
}
