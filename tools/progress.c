/* progress.c - a line on the terminal, for files whose reading takes seconds.
 *
 * stderr, if it is a terminal; erased at the end.
 */
#include "progress.h"
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	KEEP = 16384, /* records between looks at the clock */
};

void tool_progress_begin(struct tool_progress *progress, const char *command, const struct tool_input *input,
			 uint64_t least)
{
	struct stat file;

	*progress = (struct tool_progress){.command = command};
	if (!stat(input->path, &file) && S_ISREG(file.st_mode))
		progress->size = (uint64_t)file.st_size;
	progress->is_watched = progress->size >= least && isatty(STDERR_FILENO);
}

void tool_progress_show(struct tool_progress *progress, const struct tool_input *input)
{
	time_t now;

	if (++progress->records % KEEP || !progress->is_watched)
		return;
	now = time(NULL);
	if (now == progress->shown)
		return;
	progress->shown = now;
	fprintf(stderr, "\rperfring: %s: %" PRIu64 " records", progress->command, progress->records);
	if (progress->size && !perfring_file_part(input->data))
		fprintf(stderr, ", %.0f%%",
			100.0 * (double)perfring_file_position(input->data) / (double)progress->size);
	fputs("\033[K", stderr);
}

void tool_progress_end(struct tool_progress *progress)
{
	if (progress->shown)
		fputs("\r\033[K", stderr);
}
