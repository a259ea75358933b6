/* kept.c - the last records of a stream, to be saved as a perf.data file at any moment.
 *
 * top.c keeps a ring of records in memory, and writes it by file_writer.h when `w` is pressed.  Records are copied; the older
 * half is dropped when the bound is reached.
 */
#include "kept.h"

#include <inttypes.h>
#include <stdlib.h>
#include <perfring/file_writer.h>
#include <perfring/record.h>
#include "outfile.h"

enum {
	SPARE = 8 << 20, /* bytes that come before what is too old is looked for again */
};

/* Before each record, whose size is rounded up to a multiple of 8. */
struct entry {
	uint64_t time; /* 0: unknown */
	uint32_t size;
	uint32_t is_state; /* of a task or a mapping */
};

struct tool_kept {
	unsigned char *bytes; /* entries with their records, as they came */
	size_t size, capacity;
	size_t compacted; /* the size after the last time */
	uint64_t ns;
	uint64_t newest;
};

struct tool_kept *tool_kept_open(uint64_t ns)
{
	struct tool_kept *kept = tool_allocate(NULL, 1, sizeof(*kept));

	*kept = (struct tool_kept){.ns = ns};
	return kept;
}

void tool_kept_close(struct tool_kept *kept)
{
	if (kept)
		free(kept->bytes);
	free(kept);
}

/* What is needed to name samples. */
static bool is_state(uint32_t type)
{
	switch (type) {
	case PERFRING_RECORD_MMAP:
	case PERFRING_RECORD_MMAP2:
	case PERFRING_RECORD_COMM:
	case PERFRING_RECORD_FORK:
	case PERFRING_RECORD_EXIT:
	case PERFRING_RECORD_NAMESPACES:
	case PERFRING_RECORD_CGROUP:
	case PERFRING_RECORD_KSYMBOL:
	case PERFRING_RECORD_BPF_EVENT:
	case PERFRING_RECORD_TEXT_POKE:
		return true;
	default:
		return false;
	}
}

static bool is_old(const struct tool_kept *kept, const struct entry *entry)
{
	return !entry->is_state && entry->time && entry->time + kept->ns < kept->newest;
}

/* Drops what is too old, and all before `from`. */
static void compact(struct tool_kept *kept, size_t from)
{
	size_t to = 0;

	for (size_t at = 0; at < kept->size;) {
		const struct entry *entry = (const struct entry *)(const void *)(kept->bytes + at);
		size_t size = sizeof(*entry) + entry->size;

		if (at >= from && !is_old(kept, entry)) {
			memmove(kept->bytes + to, kept->bytes + at, size);
			to += size;
		}
		at += size;
	}
	kept->size = kept->compacted = to;
}

/* The offset at which the newer half begins. */
static size_t middle_of(const struct tool_kept *kept)
{
	size_t at = 0;

	while (at < kept->size / 2)
		at += sizeof(struct entry) + ((const struct entry *)(const void *)(kept->bytes + at))->size;
	return at;
}

void tool_kept_take(struct tool_kept *kept, const struct perfring_item *item)
{
	const struct perf_event_header *record = item->record;
	size_t size = record->size + (-(size_t)record->size & 7), whole = sizeof(struct entry) + size;
	struct entry entry = {item->time, (uint32_t)size, is_state(record->type)};

	if (record->type >= PERFRING_RECORD_OF_PERF) /* the file that is saved has its own */
		return;
	if (item->time > kept->newest)
		kept->newest = item->time;
	if (kept->size > kept->compacted + SPARE && kept->size > 2 * kept->compacted)
		compact(kept, 0);
	if (kept->size + whole > TOOL_KEPT_BYTES)
		compact(kept, middle_of(kept));
	if (kept->size + whole > kept->capacity) {
		kept->capacity = kept->capacity ? 2 * kept->capacity : 1 << 20;
		kept->bytes = tool_allocate(kept->bytes, kept->capacity, 1);
	}
	memcpy(kept->bytes + kept->size, &entry, sizeof(entry));
	memset(kept->bytes + kept->size + whole - 8, 0, 8);
	memcpy(kept->bytes + kept->size + sizeof(entry), record, record->size);
	kept->size += whole;
}

static int write_all(struct tool_kept *kept, struct perfring_file_writer *writer, uint64_t *samples)
{
	int error = 0;

	for (size_t at = 0; at < kept->size && !error;) {
		const struct entry *entry = (const struct entry *)(const void *)(kept->bytes + at);
		struct perfring_item item = {
			.record = (const struct perf_event_header *)(const void *)(kept->bytes + at + sizeof(*entry))};

		if (!is_old(kept, entry)) {
			error = perfring_file_writer_put_item(writer, &item);
			*samples += item.record->type == PERFRING_RECORD_SAMPLE;
		}
		at += sizeof(*entry) + entry->size;
	}
	return error;
}

bool tool_kept_save(struct tool_kept *kept, const struct perfring_file *data, const char *command, const char *path,
		    char *const argv[], uint64_t *samples)
{
	struct perfring_file_writer *writer = NULL;
	struct tool_outfile out;
	int error;

	*samples = 0;
	if (!tool_outfile_open(&out, command, path, TOOL_OUTFILE_PRIVATE | TOOL_OUTFILE_OLD)) {
		tool_outfile_close(&out);
		return false;
	}
	error = perfring_file_writer_open(&writer, out.fd);
	if (!error)
		error = perfring_file_writer_add_formats(writer, perfring_file_formats(data));
	if (!error)
		perfring_file_writer_describe(writer, argv); /* what the machine hides is left out */
	if (!error)
		error = perfring_file_writer_begin(writer);
	if (!error)
		error = write_all(kept, writer, samples);
	if (!error)
		error = perfring_file_writer_finish(writer);
	perfring_file_writer_close(writer);
	if (error)
		tool_complain("%s: %s: %s", command, path, strerror(-error));
	error = (error || !tool_outfile_settle(&out)) | tool_outfile_close(&out);
	return !error;
}
