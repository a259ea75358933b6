/* profile_output.c - the file that a command writes of a profile.
 *
 * export and flame: writes beside what is there (outfile.h), or to stdout.
 */
#include "profile_output.h"
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>
#include "outfile.h"

/* perf.data -> perf.collapsed, beside this process. */
static char *name_output(const char *path, const char *suffix)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	size_t length = strlen(name);
	char *output;

	if (!strcmp(name, "-") || !length)
		name = "perf", length = 4;
	else if (length > 5 && !strcmp(name + length - 5, ".data"))
		length -= 5;
	output = tool_allocate(NULL, length + strlen(suffix) + 1, 1);
	memcpy(output, name, length);
	strcpy(output + length, suffix);
	return output;
}

/* Whose samples are intervals, which need no callers. */
static bool is_of_spans(const struct tool_input *input)
{
	const char *name = perfring_file_event_name(input->data, 0);

	return name && !strncmp(name, "span:", 5);
}

bool tool_profile_output(const struct tool_profile_input *input, const char *command, const char *given,
			 const char *suffix, tool_profile_writer *write, const void *request)
{
	char *own = given ? NULL : name_output(input->input.path, suffix);
	const char *path = own ? own : given;
	struct tool_outfile file;
	FILE *out = NULL;
	int error, copy;
	bool good = tool_outfile_open(&file, command, path, TOOL_OUTFILE_TEXT);

	if (good) {
		copy = fcntl(file.fd, F_DUPFD_CLOEXEC, 3);
		out = copy < 0 ? NULL : fdopen(copy, "w");
		error = out ? write(input->profile, request, out) : -errno;
		if (out && fclose(out) && !error)
			error = -errno;
		if (error == -EFBIG)
			tool_complain("%s: %s: more than %" PRIu64
				      " MiB, which no browser opens: --time, --comms or --tid choose fewer samples",
				      command, path, (PERFRING_PROFILE_JSON_MAX + (1 << 20) - 1) >> 20);
		else if (error && error != -EPIPE)
			tool_complain("%s: %s: %s", command, path, strerror(-error));
		good = !error && tool_outfile_settle(&file);
	}
	error = tool_outfile_close(&file);
	if (good && error) {
		tool_complain("%s: %s: %s", command, path, strerror(-error));
		good = false;
	}
	if (good && own && !input->options.is_quiet)
		fprintf(stderr, "[ perfring %s: %" PRIu64 " samples in %s%s ]\n", command, input->shown, path,
			tool_input_has_chains(&input->input) || is_of_spans(&input->input)
				? ""
				: "; they have no callchains: record them with -g");
	free(own);
	return good;
}
