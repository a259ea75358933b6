/* record_unwind.c - `perfring record --unwind`: callchains take the place of stack copies before a sample is written.
 *
 * record_file.c gives it each ring's spans in place of a file.  symbol/ and unwind/ find the frames (stacks.h); memory is bounded
 * by what the rings held in two rounds.
 *
 *     first look   --spans--.
 *     second look  --spans--+--> records by time, up to the latest of the first look --> mappings, callchains --> file
 *     kept         ---------'                                   the later ones --> kept, for the next round
 *
 * The mapping that a stack leads to may be in the ring of another CPU than the sample.  It was published before the sample was
 * taken, so a look that comes after the one that has found the sample finds it.
 */
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <perfring/build_id.h>
#include <perfring/maps.h>
#include <perfring/stacks.h>
#include "record_command.h"
#include "symbol_names.h"

enum {
	GATHERED = 256 << 10, /* bytes for one file, in one write */
	BLOCK = 256 << 10,    /* of records that are copied; or the size of a larger one */
};

/* A record that waits for its turn. */
struct waiting {
	const struct perf_event_header *record;
	const struct perfring_format *format; /* NULL: its id is unknown */
	uint64_t time;
	uint32_t number; /* in the order of reading */
	uint32_t into;
};

struct block {
	struct block *next;
	size_t used, size;
	uint64_t words[];
};

/* The pieces that are written next into one file. */
struct gathered {
	unsigned char *bytes; /* GATHERED */
	size_t used;
	uint64_t records, samples;
};

struct recorded_unwinding {
	struct perfring_maps *maps;
	struct perfring_symbols *symbols;
	struct perfring_stacks *stacks;
	struct perfring_format *formats; /* of each event, as its samples are written */
	struct waiting *waiting;
	size_t count, capacity;
	uint64_t bound;       /* the latest time of the first look */
	bool is_second;       /* look */
	struct block *blocks; /* copies of this round */
	struct block *kept;   /* and for the next one */
	struct gathered *gathered;
	uint32_t gathered_count;
	uint32_t ring; /* of the span before: a ring may have several in a row ... */
	uint64_t time; /* ... and its last time */
};

/* ---- copies ---- */

static void *take_bytes(struct block **blocks, size_t size)
{
	struct block *block = *blocks;
	void *bytes;

	size = (size + 7) & ~(size_t)7;
	if (!block || block->size - block->used < size) {
		size_t space = size > BLOCK ? size : BLOCK;

		block = tool_allocate(NULL, 1, sizeof(*block) + space);
		*block = (struct block){.next = *blocks, .size = space};
		*blocks = block;
	}
	bytes = (char *)block->words + block->used;
	block->used += size;
	return bytes;
}

static void free_blocks(struct block **blocks)
{
	while (*blocks) {
		struct block *next = (*blocks)->next;

		free(*blocks);
		*blocks = next;
	}
}

/* ---- reading ---- */

/* `size` bytes of a span in one piece: in the span, or copied if they are in two. */
static const void *bytes_at(struct recorded_unwinding *unwinding, const struct perfring_span *span, uint64_t at,
			    uint64_t size)
{
	const struct iovec *first = &span->pieces[0], *second = &span->pieces[1];
	uint64_t before;
	char *copy;

	if (at >= first->iov_len)
		return (const char *)second->iov_base + (at - first->iov_len);
	before = first->iov_len - at;
	if (size <= before)
		return (const char *)first->iov_base + at;
	copy = take_bytes(&unwinding->blocks, (size_t)size);
	memcpy(copy, (const char *)first->iov_base + at, (size_t)before);
	memcpy(copy + before, second->iov_base, (size_t)(size - before));
	return copy;
}

static void add(struct recorded_unwinding *unwinding, const struct waiting *one)
{
	if (unwinding->count == unwinding->capacity) {
		unwinding->capacity = unwinding->capacity ? 2 * unwinding->capacity : 1024;
		unwinding->waiting =
			tool_allocate(unwinding->waiting, unwinding->capacity, sizeof(*unwinding->waiting));
	}
	unwinding->waiting[unwinding->count] = *one;
	unwinding->waiting[unwinding->count].number = (uint32_t)unwinding->count;
	unwinding->count++;
	if (!unwinding->is_second && one->time > unwinding->bound)
		unwinding->bound = one->time;
}

void tool_unwinding_take(struct recording *recording, const struct perfring_span *read, uint32_t into)
{
	struct recorded_unwinding *unwinding = recording->unwinding;
	const struct perfring_format_set *formats = perfring_session_formats(recording->session);
	struct perfring_span span = *read;
	struct waiting one = {.into = into, .time = read->ring == unwinding->ring ? unwinding->time : 0};

	/* The copy that tool_peers_vet makes is of one span. */
	if (recording->soft && span.size) {
		span.pieces[0].iov_base = take_bytes(&unwinding->blocks, (size_t)span.size);
		memcpy(span.pieces[0].iov_base, read->pieces[0].iov_base, (size_t)span.size);
	}
	for (uint64_t at = 0; span.size - at >= sizeof(*one.record); at += one.record->size) {
		uint64_t time;

		one.record = bytes_at(unwinding, &span, at, sizeof(*one.record));
		if (one.record->size < sizeof(*one.record) || one.record->size > span.size - at)
			break;
		one.record = bytes_at(unwinding, &span, at, one.record->size);
		if (perfring_format_set_of(formats, one.record, &one.format, NULL))
			one.format = NULL;
		time = one.format ? perfring_format_time_of(one.format, one.record) : 0;
		/* what has no time follows what is before it in its ring */
		one.time = time ? time : one.time;
		add(unwinding, &one);
	}
	unwinding->ring = read->ring;
	unwinding->time = one.time;
}

void tool_unwinding_look_again(struct recording *recording)
{
	recording->unwinding->is_second = true;
}

/* ---- mappings ---- */

/* Whether the process sees another file by that path than this one does. */
static bool is_elsewhere(uint32_t pid, const char *path)
{
	int fd = pid && pid <= INT32_MAX ? perfring_object_open((int32_t)pid, path) : -1;
	struct stat theirs, here;
	bool is_other = false;

	if (fd < 0)
		return false;
	if (!fstat(fd, &theirs))
		is_other = stat(path, &here) || here.st_dev != theirs.st_dev || here.st_ino != theirs.st_ino;
	close(fd);
	return is_other;
}

/* Takes a record that is no sample, for mappings.  A path does not identify a file: of a mapping without a build id, whose
 * process is in another root or mount namespace, it becomes one that leads to the file from here. */
static void take_record(struct recorded_unwinding *unwinding, const struct perfring_item *item)
{
	struct perfring_record record;
	struct perfring_record_mmap2 *map = &record.is.mmap2;
	char path[PATH_MAX], seen[PATH_MAX + 32];

	if (perfring_record_decode(item->format, item->record, &record, NULL))
		return;
	if (record.type == PERFRING_RECORD_MMAP2 && !map->file.has_build_id && map->filename.size > 1 &&
	    map->filename.size < sizeof(path) && map->filename.data[0] == '/' && map->filename.data[1] != '/') {
		snprintf(path, sizeof(path), "%.*s", (int)map->filename.size, map->filename.data);
		if (is_elsewhere(map->pid, path)) {
			int length = snprintf(seen, sizeof(seen), "/proc/%" PRIu32 "/root%s", map->pid, path);

			map->filename = (struct perfring_string){.data = seen, .size = (uint32_t)length + 1};
		}
	}
	if (perfring_maps_take_record(unwinding->maps, &record) == -ENOMEM)
		tool_out_of_memory();
}

/* ---- writing ---- */

static int flush(struct recording *recording, uint32_t into)
{
	struct gathered *gathered = &recording->unwinding->gathered[into];
	struct iovec piece = {gathered->bytes, gathered->used};
	int ret = gathered->used ? tool_record_write_pieces(recording, recording->writer, into, &piece, 1,
							    gathered->records, gathered->samples)
				 : 0;

	/* in complaints */
	if (ret && into)
		recording->ring = into - 1;
	gathered->used = 0;
	gathered->records = gathered->samples = 0;
	return ret;
}

/* Space for one more record.  NULL: *ret is why. */
static struct gathered *gather(struct recording *recording, uint32_t into, int *ret)
{
	struct recorded_unwinding *unwinding = recording->unwinding;
	struct gathered *gathered;

	while (into >= unwinding->gathered_count) {
		unwinding->gathered = tool_allocate(unwinding->gathered, unwinding->gathered_count + (size_t)1,
						    sizeof(*unwinding->gathered));
		unwinding->gathered[unwinding->gathered_count++] = (struct gathered){.used = 0};
	}
	gathered = &unwinding->gathered[into];
	if (!gathered->bytes)
		gathered->bytes = tool_allocate(NULL, 1, GATHERED);
	if (GATHERED - gathered->used < UINT16_MAX)
		*ret = flush(recording, into);
	return *ret ? NULL : gathered;
}

/* Makes the record that is written.  Returns its size; 0: the record is damaged, and left out. */
static int64_t put(struct recorded_unwinding *unwinding, const struct waiting *one, unsigned char *bytes)
{
	const struct perfring_format *format = one->format;
	struct perfring_item item = {.record = one->record, .format = format, .time = one->time};
	enum perfring_unwind_end end;
	struct perfring_sample sample;
	int64_t size = one->record->size;

	if (format && one->record->type == PERFRING_RECORD_SAMPLE &&
	    format->sample_type & PERFRING_SAMPLE_STACK_USER) {
		if (perfring_sample_decode_any(format, one->record, &sample, NULL))
			return 0;
		size = perfring_stacks_encode(unwinding->stacks, &sample, perfring_stacks_user_frames(&sample, UINT64_MAX),
					      &unwinding->formats[format->index], bytes, UINT16_MAX, &end);
		if (size == -ENOMEM)
			tool_out_of_memory();
		return size < 0 ? 0 : size;
	}
	if (format && one->record->type != PERFRING_RECORD_SAMPLE)
		take_record(unwinding, &item);
	memcpy(bytes, one->record, (size_t)size);
	return size;
}

static int compare(const void *a, const void *b)
{
	const struct waiting *one = a, *other = b;

	if (one->time != other->time)
		return one->time < other->time ? -1 : 1;
	return one->number < other->number ? -1 : one->number > other->number;
}

/* Copies the records from the i-th on, which wait for the next round, because their rings are returned before. */
static void keep(struct recorded_unwinding *unwinding, size_t i)
{
	size_t count = unwinding->count - i;

	if (count)
		memmove(unwinding->waiting, unwinding->waiting + i, count * sizeof(*unwinding->waiting));
	unwinding->count = 0;
	unwinding->is_second = false;
	unwinding->bound = 0;
	while (unwinding->count < count) {
		struct waiting one = unwinding->waiting[unwinding->count];
		void *bytes = take_bytes(&unwinding->kept, one.record->size);

		memcpy(bytes, one.record, one.record->size);
		one.record = bytes;
		add(unwinding, &one);
	}
	free_blocks(&unwinding->blocks);
	unwinding->blocks = unwinding->kept;
	unwinding->kept = NULL;
}

int tool_unwinding_write(struct recording *recording, bool is_last)
{
	struct recorded_unwinding *unwinding = recording->unwinding;
	size_t i = 0;
	int ret = 0;

	if (unwinding->count)
		qsort(unwinding->waiting, unwinding->count, sizeof(*unwinding->waiting), compare);
	for (; i < unwinding->count && (is_last || unwinding->waiting[i].time <= unwinding->bound); i++) {
		const struct waiting *one = &unwinding->waiting[i];
		struct gathered *gathered = gather(recording, one->into, &ret);
		int64_t size = gathered ? put(unwinding, one, gathered->bytes + gathered->used) : 0;

		if (ret)
			break;
		gathered->used += (size_t)size;
		gathered->records += size != 0;
		gathered->samples += size && one->record->type == PERFRING_RECORD_SAMPLE;
	}
	/* Also after an error: the others' files may have space. */
	for (uint32_t into = 0; into < unwinding->gathered_count; into++) {
		int error = flush(recording, into);

		ret = ret ? ret : error;
	}
	keep(unwinding, i);
	return ret;
}

/* ---- what runs already ---- */

/* Takes the records of a state in memory (record_side.c), for mappings; writes: and puts them into the file. */
static int take_state(struct recording *recording, const struct recorded_side *state, bool writes)
{
	const struct perfring_format *format = perfring_format_set_at(perfring_session_formats(recording->session), 0);
	uint64_t size = perfring_file_writer_size(state->writer) - state->state;
	struct perfring_item item = {.format = format};
	struct iovec piece;
	char *bytes;
	int ret = 0;

	if (!size)
		return 0;
	bytes = mmap(NULL, (size_t)(state->state + size), PROT_READ, MAP_SHARED, state->file, 0);
	if (bytes == MAP_FAILED)
		return -errno;
	piece = (struct iovec){bytes + state->state, (size_t)size};
	for (uint64_t at = 0; at < size; at += item.record->size) {
		item.record = (const void *)((const char *)piece.iov_base + at);
		take_record(recording->unwinding, &item);
	}
	if (writes)
		ret = perfring_file_writer_write(recording->writer, &piece, 1);
	munmap(bytes, (size_t)(state->state + size));
	return ret;
}

int tool_unwinding_put_state(struct recording *recording, struct recorded_pids *pids)
{
	const uint32_t mappings = SYNTHESIZE_TASKS | SYNTHESIZE_MAPS;
	bool is_same = !recording->tail && (recording->synthesis & mappings) == mappings;
	struct recording whole = *recording;
	struct recorded_side state = {.file = -1};
	struct recorded_pids unused = {0};
	int ret = tool_record_open_memory(recording, &state);

	whole.synthesis |= mappings;
	if (!ret)
		ret = tool_record_put_state(&whole, state.writer, is_same ? pids : &unused);
	if (!ret)
		ret = take_state(recording, &state, is_same);
	if (!ret && !is_same && !recording->tail)
		ret = tool_record_put_state(recording, recording->writer, pids);
	free(unused.list);
	tool_record_close_memory(&state);
	return ret;
}

/* ---- all of it ---- */

void tool_unwinding_tell(const struct recording *recording)
{
	if (recording->unwinding)
		tool_symbols_complain_of_stacks(recording->unwinding->stacks);
}

bool tool_unwinding_open(struct recording *recording)
{
	static const struct perfring_symbols_options options = {.flags = PERFRING_SYMBOLS_NAMELESS};
	struct recorded_unwinding *unwinding;

	if (!recording->unwinds)
		return true;
	unwinding = recording->unwinding = tool_allocate(NULL, 1, sizeof(*unwinding));
	memset(unwinding, 0, sizeof(*unwinding));
	unwinding->formats = tool_allocate(NULL, recording->event_count, sizeof(*unwinding->formats));
	for (uint32_t i = 0; i < recording->event_count; i++) {
		struct perf_event_attr attr = recording->events[i].attr;

		perfring_stacks_attr(&attr);
		if (perfring_format_from_attr(&unwinding->formats[i], &attr))
			tool_out_of_memory();
	}
	if (perfring_maps_open(&unwinding->maps) || perfring_symbols_open(&unwinding->symbols, &options) ||
	    perfring_stacks_open(&unwinding->stacks, unwinding->maps, unwinding->symbols))
		tool_out_of_memory();
	return true;
}

void tool_unwinding_close(struct recording *recording)
{
	struct recorded_unwinding *unwinding = recording->unwinding;

	recording->unwinding = NULL;
	if (!unwinding)
		return;
	perfring_stacks_close(unwinding->stacks);
	perfring_symbols_close(unwinding->symbols);
	perfring_maps_close(unwinding->maps);
	while (unwinding->gathered_count)
		free(unwinding->gathered[--unwinding->gathered_count].bytes);
	free_blocks(&unwinding->blocks);
	free(unwinding->gathered);
	free(unwinding->waiting);
	free(unwinding->formats);
	free(unwinding);
}
