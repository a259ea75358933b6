/* export.c - `perfring export`: the stacks of a perf.data file in the formats of others' viewers.
 *
 * profile_input.c reads the samples, profile.h writes the format, profile_output.c opens the file.  A format is a row of the
 * table here.
 */
#include <perfring/config.h>
#include "options.h"
#include "profile_output.h"

#if PERFRING_HAS_ZLIB
#define PPROF_SUFFIX ".pb.gz"
#define PPROF_HELP "for go tool pprof"
#else
#define PPROF_SUFFIX ".pb"
#define PPROF_HELP "for go tool pprof; not packed: this perfring was built without zlib"
#endif

/* The formats.  NAME, name, what its file is called after the recording's name, whether it needs each sample, addresses, lines, build
 * ids; help */
#define FORMATS(FORMAT) \
	FORMAT(COLLAPSED, "collapsed", ".collapsed", false, false, false, false, \
	       "a line for each stack, COMM;FUNCTION;FUNCTION WEIGHT: for flame graphs") \
	FORMAT(JSON_LINES, "json-lines", ".jsonl", true, true, true, false, \
	       "a JSON object a line for each sample, with names") \
	FORMAT(SPEEDSCOPE, "speedscope", ".speedscope.json", false, false, false, false, \
	       "for https://www.speedscope.app") \
	FORMAT(CALLGRIND, "callgrind", ".callgrind", false, false, false, false, \
	       "for callgrind_annotate and KCachegrind: of the first event, or that of --events") \
	FORMAT(PPROF, "pprof", PPROF_SUFFIX, false, true, true, true, PPROF_HELP) \
	FORMAT(FIREFOX, "firefox", ".firefox.json", true, true, true, true, "for https://profiler.firefox.com") \
	FORMAT(CHROME, "chrome", ".trace.json", true, false, false, false, \
	       "for chrome://tracing and https://ui.perfetto.dev")

enum {
	OUTPUT = 'o',
	TO_STDOUT = TOOL_OPTION_LONG,
	WEIGHT,
	FIRST_FORMAT,
};

static const struct format {
	const char *name, *suffix;
	bool lists, has_addresses, has_lines, has_builds;
} formats[] = {
#define FORMAT(NAME, name, suffix, lists, addresses, lines, builds, help) \
	[PERFRING_PROFILE_##NAME] = {name, suffix, lists, addresses, lines, builds},
	FORMATS(FORMAT)
#undef FORMAT
};

struct request {
	int format; /* -1: none yet */
	const char *output;
	bool by_samples;
};

static int write_format(const struct perfring_profile *profile, const void *of, FILE *out)
{
	const struct request *request = of;
	const struct perfring_profile_view view = {.event = PERFRING_PROFILE_NONE, .by_samples = request->by_samples};

	return perfring_profile_write(profile, (enum perfring_profile_format)request->format, &view, out);
}

/* Returns -1 to go on, else the exit status. */
static int read_options(struct tool_profile_input *input, struct request *request, struct tool_options *options,
			int argc, char **argv)
{
	int found;

	while ((found = tool_options_next(options, argc, argv)) > 0) {
		int taken = tool_profile_take(&input->options, options, found);

		if (taken < 0)
			return TOOL_MISUSED;
		if (taken)
			continue;
		if (found == OUTPUT) {
			request->output = options->value;
		} else if (found == TO_STDOUT) {
			request->output = "-";
		} else if (found == WEIGHT) {
			request->by_samples = !strcmp(options->value, "samples");
			if (!request->by_samples && strcmp(options->value, "period") != 0)
				return tool_options_refuse(options, found, options->value);
		} else if (found >= FIRST_FORMAT && found < FIRST_FORMAT + PERFRING_PROFILE_FORMAT_COUNT) {
			if (request->format >= 0 && request->format != found - FIRST_FORMAT) {
				tool_complain("export: --%s and --%s: one format at a time",
					      formats[request->format].name, formats[found - FIRST_FORMAT].name);
				return TOOL_MISUSED;
			}
			request->format = found - FIRST_FORMAT;
		} else {
			return tool_options_forgotten(options, found);
		}
	}
	return found ? -1 : options->status;
}

static int export_command(int argc, char **argv)
{
	struct tool_profile_input input = {.shown = 0};
	struct tool_options options = {.command = &tool_export};
	struct request request = {.format = -1};
	int status = read_options(&input, &request, &options, argc, argv), end;

	if (status >= 0)
		return status;
	if (request.format < 0) {
		tool_complain("export: which format? --collapsed ... (perfring export --help)");
		return TOOL_MISUSED;
	}
	input.options.lists = formats[request.format].lists;
	input.options.has_addresses = formats[request.format].has_addresses;
	input.options.has_lines = formats[request.format].has_lines;
	input.options.has_builds = formats[request.format].has_builds;
	if (request.format == PERFRING_PROFILE_PPROF && !PERFRING_HAS_ZLIB)
		tool_complain("export: built without zlib: the profile is not packed by gzip");
	status = tool_profile_read(&input, "export", &options, argc, argv);
	if (status)
		return status;
	if (!tool_profile_output(&input, "export", request.output, formats[request.format].suffix, write_format,
				 &request))
		status = TOOL_FAILED;
	end = tool_profile_close(&input);
	return status ? status : end;
}

static const struct tool_option ROWS[] = {
	{.heading = "formats"},
#define FORMAT(NAME, name, suffix, lists, addresses, lines, builds, text) \
	{FIRST_FORMAT + PERFRING_PROFILE_##NAME, name, .help = text},
	FORMATS(FORMAT)
#undef FORMAT
		{.heading = "output"},
	{OUTPUT, "output", .value = "FILE", .takes = "a file's name",
	 .help = "written there (default: the recording's name with the format's ending, here); -: standard output"},
	{TO_STDOUT, "stdout", .help = "as -o -"},
	{WEIGHT, "weight", .value = "WHAT", .takes = "period or samples",
	 .help = "a sample counts its period (default), or 1"},
	TOOL_PROFILE_ROWS,
	TOOL_OPTIONS_END,
};

static const struct tool_example EXAMPLES[] = {
	{"For a flame graph by others' tools:", "perfring export --collapsed --stdout"},
	{0},
};

const struct tool_command tool_export = {
	.name = "export",
	.summary = "stacks of a perf.data file in the formats of others' viewers",
	.usage = "--FORMAT [-o OUTPUT] [[-i] FILE] [OPTIONS]",
	.description =
		"Writes the stacks of a perf.data file, with names, in one format.  What the recording lost is in each of them.",
	.options = ROWS,
	.exit_status =
		"0 done; 1 the file has faults or cannot be read, or the output cannot be written; 2 usage error.",
	.examples = EXAMPLES,
	.see_also = "perfring-record perfring-report perfring",
	.run = export_command,
};
