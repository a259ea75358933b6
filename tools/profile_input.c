/* profile_input.c - the samples of a perf.data file as a profile.
 *
 * flame, html, export and top read by it.  profile_fill.h makes the profile; here are the options, the names' complaints
 * (symbol_names.c), progress and faults.  Memory is bounded by the profile's.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <perfring/feature.h>
#include "machine.h"
#include "options.h"
#include "profile_input.h"
#include "progress.h"

struct reader {
	struct tool_machine *machine;
	struct tool_symbols *symbols;
	struct perfring_profile_fill *fill;
};

/* ---- options ---- */

int tool_profile_take(struct tool_profile_options *profile, const struct tool_options *options, int found)
{
	int taken = tool_filter_take(&profile->filter, options, found);

	if (!taken)
		taken = tool_symbols_take(&profile->symbols, options, found);
	if (taken)
		return taken;
	switch (found) {
	case 'q':
		profile->is_quiet = true;
		return 1;
	case TOOL_PROFILE_NO_INLINE:
		profile->no_inline = true;
		return 1;
	case TOOL_PROFILE_MAX_STACK:
		profile->max_stack = options->number;
		return 1;
	case TOOL_PROFILE_FORCE:
		profile->symbols.is_forced = true;
		return 1;
	default:
		return 0;
	}
}

/* ---- all of it ---- */

/* The time of day at time 0 of the events' clock, in ns since 1970; 0: the file does not say. */
static uint64_t find_epoch(const struct perfring_file *data)
{
	struct perfring_layout_walk walk;
	struct perfring_layout_member member;
	uint64_t size = 0, wall = 0, clock = 0;
	const void *payload = perfring_file_feature(data, PERFRING_FEATURE_CLOCK_DATA, &size);

	if (!payload)
		return 0;
	perfring_feature_open(&walk, PERFRING_FEATURE_CLOCK_DATA, payload, size, 0);
	while (perfring_layout_next(&walk, &member) == 1) {
		if (!strcmp(member.name, "wall_clock"))
			wall = member.number;
		else if (!strcmp(member.name, "clock"))
			clock = member.number;
	}
	return wall > clock ? wall - clock : 0;
}

static void open_profile(struct tool_profile_input *input)
{
	const struct perfring_file *data = input->input.data;
	struct perfring_profile_options options = {
		.flags = input->options.lists ? PERFRING_PROFILE_SAMPLES : 0,
		.host = perfring_file_string(data, PERFRING_FEATURE_HOSTNAME),
		.epoch = find_epoch(data),
	};

	if (perfring_profile_open(&input->profile, &options))
		tool_out_of_memory();
}

static uint32_t flags_of(const struct tool_profile_options *options)
{
	return (options->no_inline ? PERFRING_FILL_NO_INLINE : 0) | (options->has_lines ? PERFRING_FILL_LINES : 0) |
	       (options->has_builds ? PERFRING_FILL_BUILD_IDS : 0);
}

/* Opens what is read from an open file. */
static void open_reader(struct tool_profile_input *input)
{
	struct perfring_profile_fill_options options = {
		.flags = flags_of(&input->options),
		.addresses = input->options.has_addresses ? PERFRING_FILL_ADDRESSES : PERFRING_FILL_NO_ADDRESSES,
		.max_stack = input->options.max_stack,
		.filter = &input->options.filter,
		.file = input->input.data,
	};
	struct reader *reader = tool_allocate(NULL, 1, sizeof(*reader));

	input->reader = reader;
	open_profile(input);
	reader->machine = tool_machine_open();
	reader->symbols = tool_symbols_open(&input->input, reader->machine, &input->options.symbols);
	options.names = tool_symbols_names(reader->symbols);
	if (perfring_profile_fill_open(&reader->fill, input->profile, &options))
		tool_out_of_memory();
}

/* Copies the counts, which stay when the reader is closed. */
static void count(struct tool_profile_input *input)
{
	struct perfring_profile_fill_counts counts;

	perfring_profile_fill_count(input->reader->fill, &counts);
	input->shown = counts.shown;
	input->all = counts.samples;
	input->input.unknown_counts = counts.unknown;
}

static void close_reader(struct tool_profile_input *input)
{
	struct reader *reader = input->reader;

	if (!reader)
		return;
	perfring_profile_fill_close(reader->fill);
	tool_symbols_close(reader->symbols);
	tool_machine_close(reader->machine);
	free(reader);
	input->reader = NULL;
}

int tool_profile_open(struct tool_profile_input *input, const char *command, const struct tool_options *options,
		      int argc, char **argv)
{
	int status = tool_input_open(&input->input, options, argc, argv);

	if (status)
		return status;
	if (!tool_filter_open(&input->options.filter, command, input->input.data)) {
		tool_input_close(&input->input);
		return TOOL_FAILED;
	}
	tool_input_join(&input->input);
	open_reader(input);
	return TOOL_DONE;
}

void tool_profile_take_item(struct tool_profile_input *input, const struct perfring_item *item)
{
	struct perfring_fault fault;

	if (perfring_profile_fill_item(input->reader->fill, item, &fault) == -ENOMEM)
		tool_out_of_memory();
	tool_symbols_end_progress(input->reader->symbols);
	if (fault.what)
		tool_input_fault(&input->input, &fault);
	count(input);
}

void tool_profile_renew(struct tool_profile_input *input)
{
	perfring_profile_close(input->profile);
	open_profile(input);
	perfring_profile_fill_renew(input->reader->fill, input->profile);
	count(input);
}

int tool_profile_read(struct tool_profile_input *input, const char *command, const struct tool_options *options,
		      int argc, char **argv)
{
	int status = tool_profile_open(input, command, options, argc, argv);
	struct perfring_item item;

	if (status)
		return status;
	tool_progress_begin(&input->input, command, input->options.is_quiet ? TOOL_PROGRESS_QUIET : 0);
	while (tool_input_next(&input->input, &item))
		tool_profile_take_item(input, &item);
	if (perfring_profile_fill_end(input->reader->fill))
		tool_out_of_memory();
	close_reader(input);
	return TOOL_DONE;
}

int tool_profile_close(struct tool_profile_input *input)
{
	int status;

	close_reader(input);
	status = tool_input_end(&input->input);
	perfring_profile_close(input->profile);
	tool_input_close(&input->input);
	return status;
}
