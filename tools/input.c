/* input.c - the perf.data file that a command reads, and the reports of its faults.
 *
 * tool_input_ functions of tools.h, which every command that reads uses.  A ring's file is opened as one (ring_input.c).  The
 * first faults are reported, later ones counted; the exit status follows from them.
 */
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <perfring/aux.h>
#include <perfring/callchain.h>
#include "file_kind.h"
#include "options.h"
#include "progress.h"
#include "tools.h"

/* Faults shown one by one; a damaged file may hold millions. */
#define SHOWN 5

uint64_t tool_number(const void *bytes, size_t size)
{
	uint64_t number = 0;
	uint32_t word;
	uint16_t half;

	if (size == 2) {
		memcpy(&half, bytes, sizeof(half));
		return half;
	}
	if (size == 4) {
		memcpy(&word, bytes, sizeof(word));
		return word;
	}
	memcpy(&number, bytes, sizeof(number));
	return number;
}

static void complain_at(struct tool_input *input, const char *place, int64_t at, const char *what)
{
	if (input->faults++ < SHOWN)
		tool_complain("%s%s: at 0x%" PRIx64 ": %s", input->path, place, (uint64_t)at, what);
}

const char *tool_input_place(struct tool_input *input)
{
	uint32_t stream = perfring_file_part(input->data);

	input->place[0] = 0;
	if (stream)
		snprintf(input->place, sizeof(input->place), "/data.%" PRIu32, stream - 1);
	return input->place;
}

bool tool_input_has_chains(const struct tool_input *input)
{
	const uint64_t copies = PERFRING_SAMPLE_REGS_USER | PERFRING_SAMPLE_STACK_USER;
	const struct perf_event_attr *attr;
	uint32_t i;

	for (i = 0; (attr = perfring_file_attr(input->data, i)); i++)
		if (attr->sample_type & PERFRING_SAMPLE_CALLCHAIN || (attr->sample_type & copies) == copies)
			return true;
	return !i;
}

static void complain_error(struct tool_input *input, int error)
{
	const char *place = input->data ? tool_input_place(input) : "";
	struct perfring_fault fault = {0, NULL};

	if (input->data && (error == -EBADMSG || error == -EOPNOTSUPP))
		fault = perfring_file_fault(input->data);
	if (fault.what)
		complain_at(input, place, fault.at, fault.what);
	else if (input->faults++ < SHOWN)
		tool_complain("%s%s: %s%s", input->path, place, strerror(-error),
			      error == -ENOENT ? ": perfring record writes such files" : "");
}

/* Reports why the file is not opened; of a file that is none of perf's, what it is. */
static void complain_unopened(struct tool_input *input, int error)
{
	struct perfring_fault fault = input->data ? perfring_file_fault(input->data) : (struct perfring_fault){0, NULL};
	char kind[TOOL_FILE_KIND_SIZE];

	if (error != -EBADMSG || fault.at || !fault.what) {
		complain_error(input, error);
		return;
	}
	tool_file_kind(input->path, TOOL_WANTS_DATA, kind);
	tool_complain("%s: at 0x0: %s%s", input->path, fault.what, kind);
}

static void end_without_memory(void)
{
	tool_complain("out of memory");
	exit(TOOL_FAILED);
}

int tool_input_open(struct tool_input *input, const struct tool_options *options, int argc, char **argv)
{
	const char *path = options->input ? options->input : optind < argc ? argv[optind] : "perf.data";

	if (argc - optind > !options->input) {
		tool_complain("%s: one file at a time ('%s')", argv[0], argv[argc - 1]);
		return TOOL_MISUSED;
	}
	if (!*path) {
		tool_complain("%s: a file name is empty", argv[0]);
		return TOOL_MISUSED;
	}
	return tool_input_open_path(input, path);
}

int tool_input_open_path(struct tool_input *input, const char *path)
{
	struct perfring_file *ring = NULL;
	struct stat file;
	int error, is_ring;

	*input = (struct tool_input){.path = path, .pipe = -1};
	if (!strcmp(input->path, "-") && isatty(STDIN_FILENO)) {
		tool_complain("standard input is a terminal: redirect it from a file or a pipe");
		return TOOL_FAILED;
	}
	if (!strcmp(input->path, "-") && !fstat(STDIN_FILENO, &file) && !S_ISREG(file.st_mode))
		input->pipe = STDIN_FILENO;
	error = perfring_file_open(&input->data, input->path);
	is_ring = error == -EBADMSG ? tool_ring_open(input->path, &ring) : 0;
	if (is_ring) {
		perfring_file_close(input->data);
		input->data = ring;
		error = 0;
	}
	if (is_ring < 0) {
		tool_input_close(input);
		return TOOL_FAILED;
	}
	if (error) {
		complain_unopened(input, error);
		tool_input_close(input);
		return TOOL_FAILED;
	}
	if (perfring_split_open(&input->split, perfring_file_formats(input->data)))
		end_without_memory();
	if (!perfring_file_is_finished(input->data))
		tool_complain("%s: warning: its writer did not finish: the end may be missing", input->path);
	else if (perfring_file_lost_features(input->data))
		tool_complain("%s: warning: %" PRIu32 " of its features are cut off or damaged", input->path,
			      perfring_file_lost_features(input->data));
	/* Lines by the million follow. */
	setvbuf(stdout, NULL, _IOFBF, 1 << 16);
	return TOOL_DONE;
}

void tool_input_close(struct tool_input *input)
{
	perfring_deferral_close(input->deferral);
	perfring_split_close(input->split);
	perfring_file_close(input->data);
	input->deferral = NULL;
	input->split = NULL;
	input->data = NULL;
}

static void count_aux(struct tool_input *input, const struct perf_event_header *record)
{
	uint64_t flags;

	if (record->type != PERFRING_RECORD_AUX || record->size < 32)
		return;
	memcpy(&flags, (const unsigned char *)record + 24, sizeof(flags));
	input->aux++;
	input->aux_truncated += flags & PERFRING_AUX_TRUNCATED;
	input->aux_partial += !!(flags & PERFRING_AUX_PARTIAL);
	input->aux_collisions += !!(flags & PERFRING_AUX_COLLISION);
}

void tool_tell_aux(const char *path, uint64_t records, uint64_t truncated, uint64_t partial, uint64_t collisions)
{
	const struct {
		const char *what;
		uint64_t count;
	} rows[] = {{"lost", truncated}, {"had gaps in it", partial}, {"detected collision", collisions}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (rows[i].count)
			tool_complain("%s: warning: AUX data %s %" PRIu64 " times out of %" PRIu64 "!", path,
				      rows[i].what, rows[i].count, records);
}

/* The next record of the file itself. */
static bool read_next(struct tool_input *input, struct perfring_item *item)
{
	int one;

	memset(item, 0, sizeof(*item));
	one = perfring_file_next(input->data, item);
	if (one < 0)
		complain_error(input, one);
	if (!item->record) {
		tool_progress_clear();
		return one == 1;
	}
	count_aux(input, item->record);
	tool_progress_show(input);
	return one == 1 || one == -EBADMSG;
}

void tool_input_join(struct tool_input *input)
{
	input->joins = true;
}

/* Whether the item is not for the caller: a sample that waits for the rest of its callchain, or such a rest. */
static bool is_deferred(struct tool_input *input, const struct perfring_item *item)
{
	int ret = 1;

	if (!input->joins || !item->record || !item->format)
		return false;
	if (!input->deferral && item->format->flags >> PERFRING_ATTR_FLAG_defer_callchain & 1)
		ret = perfring_deferral_open(&input->deferral, 0);
	if (ret >= 0 && input->deferral)
		ret = perfring_deferral_put(input->deferral, item);
	if (ret == -ENOMEM)
		end_without_memory();
	return !ret;
}

bool tool_input_next(struct tool_input *input, struct perfring_item *item)
{
	do {
		memset(item, 0, sizeof(*item));
		if (input->deferral && perfring_deferral_next(input->deferral, item) == 1)
			return true;
		if (input->has_ended)
			return false;
		if (!read_next(input, item)) {
			input->has_ended = true;
			if (input->deferral)
				perfring_deferral_flush(input->deferral);
			memset(item, 0, sizeof(*item));
		}
	} while (input->has_ended || is_deferred(input, item));
	return true;
}

bool tool_input_is_idle(const struct tool_input *input)
{
	struct pollfd one = {.fd = input->pipe, .events = POLLIN};

	return input->pipe >= 0 && !poll(&one, 1, 0);
}

void tool_input_fault(struct tool_input *input, const struct perfring_fault *fault)
{
	complain_at(input, tool_input_place(input), perfring_file_position(input->data) + fault->at, fault->what);
}

int tool_input_end(struct tool_input *input)
{
	uint64_t unknown = input->unknown_counts + perfring_split_unknown(input->split);
	struct perfring_file_compressed compression;

	tool_progress_clear();
	if (input->faults > SHOWN)
		tool_complain("%s: %" PRIu64 " faults in all", input->path, input->faults);
	perfring_file_compression(input->data, &compression);
	if (compression.lost)
		tool_complain("%s: warning: %" PRIu64 " compressed records could not be read to their end", input->path,
			      compression.lost);
	if (unknown)
		tool_complain("%s: warning: %" PRIu64 " counts in group samples belong to no event of this file",
			      input->path, unknown);
	if (input->deferral && perfring_deferral_incomplete(input->deferral))
		tool_complain("%s: warning: %" PRIu64
			      " samples lack the user's part of their callchains: no CALLCHAIN_DEFERRED record has it",
			      input->path, perfring_deferral_incomplete(input->deferral));
	if (input->tells_aux)
		tool_tell_aux(input->path, input->aux, input->aux_truncated, input->aux_partial, input->aux_collisions);
	if (perfring_file_late(input->data))
		tool_complain("%s: warning: %" PRIu64 " records came too late to be in time order", input->path,
			      perfring_file_late(input->data));
	if (perfring_file_feature_error(input->data)) {
		input->faults++;
		tool_complain("%s: its features: %s", input->path, strerror(-perfring_file_feature_error(input->data)));
	}
	return input->faults ? TOOL_FAILED : TOOL_DONE;
}

bool tool_input_split(struct tool_input *input, const struct perfring_format **event)
{
	int one = perfring_split_next(input->split, event);

	if (one < 0)
		end_without_memory();
	return one;
}

uint64_t tool_input_period(const struct tool_input *input, const struct perfring_format *format,
			   const struct perfring_sample *sample)
{
	const struct perf_event_attr *attr;

	if (sample->present & PERFRING_SAMPLE_PERIOD)
		return sample->period;
	attr = perfring_file_attr(input->data, format->index);
	return attr && !attr->freq && attr->sample_period ? attr->sample_period : 1;
}
