/* progress.c - a line on the terminal, for files whose reading takes longer than a second.
 *
 * input.c shows it after each record, for every command that has begun it; out.c removes it before a complaint.
 */
#include "progress.h"
#include <inttypes.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
	KEEP = 16384, /* records between looks at the clock */
};

static bool stands; /* on the terminal */

void tool_progress_begin(struct tool_input *input, const char *command, unsigned flags)
{
	struct stat file;

	if (flags & TOOL_PROGRESS_QUIET || !isatty(STDERR_FILENO) ||
	    (flags & TOOL_PROGRESS_LINES && isatty(STDOUT_FILENO)))
		return;
	input->progress.command = command;
	input->progress.records = 0;
	input->progress.shown = time(NULL) + 1; /* in one second at the earliest */
	if (!stat(input->path, &file) && S_ISREG(file.st_mode))
		input->progress.size = (uint64_t)file.st_size;
}

void tool_progress_show(struct tool_input *input)
{
	time_t now;

	if (!input->progress.command || ++input->progress.records % KEEP)
		return;
	now = time(NULL);
	if (now <= input->progress.shown)
		return;
	input->progress.shown = now;
	fprintf(stderr, "\rperfring: %s: %" PRIu64 " records", input->progress.command, input->progress.records);
	if (input->progress.size && !perfring_file_part(input->data))
		fprintf(stderr, ", %.0f%%",
			100.0 * (double)perfring_file_position(input->data) / (double)input->progress.size);
	fputs("\033[K", stderr);
	stands = true;
}

void tool_progress_clear(void)
{
	if (stands)
		fputs("\r\033[K", stderr);
	stands = false;
}
