/* flame_command.c - `perfring flame` and `perfring html`: a page with the flame graph of a perf.data file, and one with its samples over
 * time, too.
 *
 * profile_input.c reads the samples, profile.h writes the page, profile_output.c opens the file.  html is flame with the samples
 * over time.
 */
#include <stdlib.h>
#include "options.h"
#include "profile_output.h"

enum {
	OUTPUT = 'o',
	DIFF = TOOL_OPTION_LONG,
	TITLE,
	WEIGHT,
	COLOURS,
	WIDTH,
	PERCENT_LIMIT,
};

struct request {
	struct perfring_profile_flame flame;
	const char *output;
	const char *old; /* NULL: no other recording */
};

static const char *const colours[] = {
	[PERFRING_PROFILE_BY_FUNCTION] = "function",
	[PERFRING_PROFILE_BY_OBJECT] = "object",
	[PERFRING_PROFILE_BY_KIND] = "kind",
};

static int write_flame(const struct perfring_profile *profile, const void *of, FILE *out)
{
	const struct request *request = of;

	return perfring_profile_write_flame(profile, &request->flame, out);
}

/* Returns -1 to go on, else the exit status. */
static int take_value(struct request *request, const struct tool_options *options, int found)
{
	struct perfring_profile_flame *flame = &request->flame;
	const char *value = options->value;
	bool good = true;
	char *end;

	switch (found) {
	case OUTPUT:
		request->output = value;
		good = *value;
		break;
	case DIFF:
		request->old = value;
		good = *value;
		break;
	case TITLE:
		flame->title = value;
		good = *value;
		break;
	case WIDTH:
		flame->width = (uint32_t)options->number;
		break;
	case WEIGHT:
		flame->by_samples = !strcmp(value, "samples");
		good = flame->by_samples || !strcmp(value, "period");
		break;
	case COLOURS:
		for (flame->colours = 0; flame->colours < PERFRING_PROFILE_BY_COUNT; flame->colours++)
			if (!strcmp(value, colours[flame->colours]))
				break;
		good = flame->colours < PERFRING_PROFILE_BY_COUNT;
		break;
	case PERCENT_LIMIT:
		flame->share = strtod(value, &end) / 100;
		good = *value >= '0' && *value <= '9' && (!*end || !strcmp(end, "%")) && flame->share <= 1;
		break;
	default:
		return tool_options_forgotten(options, found);
	}
	return good ? -1 : tool_options_refuse(options, found, value);
}

/* Returns -1 to go on, else the exit status. */
static int read_options(struct tool_profile_options *profile, struct request *request, struct tool_options *options,
			int argc, char **argv)
{
	int found, status = -1;

	while (status < 0 && (found = tool_options_next(options, argc, argv)) > 0) {
		int taken = tool_profile_take(profile, options, found);

		if (taken < 0)
			return TOOL_MISUSED;
		if (!taken)
			status = take_value(request, options, found);
	}
	return status >= 0 || found ? status : options->status;
}

static int run(const struct tool_command *command, bool over_time, int argc, char **argv)
{
	struct tool_profile_input input = {.shown = 0}, old = {.shown = 0};
	struct tool_options options = {.command = command}, old_options = options;
	struct request request = {.flame = {.event = PERFRING_PROFILE_NONE, .over_time = over_time}};
	int status = read_options(&input.options, &request, &options, argc, argv), end;

	if (status >= 0)
		return status;
	input.options.has_lines = true;
	input.options.lists = over_time;
	if (request.old) {
		old.options = input.options; /* the filters too: they are opened with the file */
		old_options.input = request.old;
		status = tool_profile_read(&old, command->name, &old_options, optind, argv);
		if (status)
			return status;
		request.flame.old = old.profile;
		request.flame.old_title = request.old;
	}
	status = tool_profile_read(&input, command->name, &options, argc, argv);
	if (!status) {
		if (!request.flame.title)
			request.flame.title = input.input.path;
		if (!tool_profile_output(&input, command->name, request.output, ".html", write_flame, &request))
			status = TOOL_FAILED;
		end = tool_profile_close(&input);
		status = status ? status : end;
	}
	end = request.old ? tool_profile_close(&old) : TOOL_DONE;
	return status ? status : end;
}

static int flame_command(int argc, char **argv)
{
	return run(&tool_flame, false, argc, argv);
}

static int html_command(int argc, char **argv)
{
	return run(&tool_html, true, argc, argv);
}

/* Runs both commands. */
#define OUTPUT_ROW \
	{OUTPUT, "output", .value = "FILE", .takes = "a file's name", \
	 .help = "written there (default: the recording's name with the ending .html, here); -: standard output"}
#define PICTURE_ROWS \
	{TITLE, "title", .value = "TEXT", .takes = "a text", \
	 .help = "above the picture (default: the recording's name)"}, \
	{WEIGHT, "weight", .value = "WHAT", .takes = "period or samples", \
	 .help = "shown first: a sample counts its period (default), or 1"}, \
	{COLOURS, "colours", .value = "WHAT", .takes = "function, object or kind", \
	 .help = "shown first: colours are made of the function's name (default), its object's, or whose code it is"}, \
	{WIDTH, "width", .value = "PIXELS", .takes = "a number of pixels", .min = 100, .max = 100000, \
	 .help = "of the picture (default: the window's)"}, \
	{PERCENT_LIMIT, "percent-limit", .value = "PERCENT", .takes = "a percentage, up to 100", \
	 .help = "frames below PERCENT are not drawn, as those below a pixel"}

static const struct tool_option HTML_ROWS[] = {
	OUTPUT_ROW,
	{.heading = "the picture"},
	PICTURE_ROWS,
	TOOL_PROFILE_ROWS,
	TOOL_OPTIONS_END,
};

static const struct tool_option ROWS[] = {
	OUTPUT_ROW,
	{.heading = "the picture"},
	{DIFF, "diff", .value = "OLD", .takes = "a perf.data file's name",
	 .help = "colours are of the change since the recording OLD: red frames have a larger share of all than in it, blue ones a smaller one"},
	PICTURE_ROWS,
	TOOL_PROFILE_ROWS,
	TOOL_OPTIONS_END,
};

static const struct tool_example EXAMPLES[] = {
	{"Of a program:", "perfring record -g ./program\nperfring flame"},
	{"What a change has made of it:", "perfring flame --diff old.data new.data"},
	{0},
};

const struct tool_command tool_flame = {
	.name = "flame",
	.summary = "a page with the flame graph of a perf.data file",
	.usage = "[-o FILE.html] [[-i] FILE] [OPTIONS]",
	.description =
		"Writes one HTML file, which needs nothing else, to be opened in a browser.  Frames are as wide as the samples that are in them; a click zooms.\n"
		"All events and threads are in it, what was lost too.  There it can be turned upside down, begin with the innermost functions, and be searched.  What is seen stands in the address, which can be passed on.",
	.options = ROWS,
	.exit_status = "0 done; 1 a file has faults or cannot be read, or the page cannot be written; 2 usage error.",
	.examples = EXAMPLES,
	.see_also = "perfring-record perfring-report perfring-export perfring",
	.run = flame_command,
};

static const struct tool_example HTML_EXAMPLES[] = {
	{"Of a program, with the time that it waited:", "perfring record -g --off-cpu ./program\nperfring html"},
	{"Of the system, an hour of it:", "perfring record -a -g -F 99 -o hour.data sleep 3600\nperfring html hour.data"},
	{0},
};

const struct tool_command tool_html = {
	.name = "html",
	.summary = "a page with the samples of a perf.data file over time, by CPU and thread",
	.usage = "[-o FILE.html] [[-i] FILE] [OPTIONS]",
	.description =
		"Writes one HTML file, which needs nothing else, to be opened in a browser.  A heat map shows when samples were, lanes on which CPUs and in which threads, and where something was lost.\n"
		"What is selected there is what the flame graph, the table of functions, and the callers and callees of a function show.",
	.options = HTML_ROWS,
	.exit_status = "0 done; 1 a file has faults or cannot be read, or the page cannot be written; 2 usage error.",
	.examples = HTML_EXAMPLES,
	.see_also = "perfring-record perfring-flame perfring-export perfring",
	.run = html_command,
};
