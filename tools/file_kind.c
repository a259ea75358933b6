/* file_kind.c - what a file is that is not what a command reads, by its first bytes; and what to do with it.
 *
 * input.c and ring_command.c end a complaint with it.  Reads at most HEAD_SIZE bytes, of regular files alone: to open a device or a
 * pipe may do something.
 */
#include "file_kind.h"
#include <ctype.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	HEAD_SIZE = 4096,
};

#define AS_DATA "perfring report, script and dump read it"
#define BESIDE "perfring report reads it with the recording of its process"
#define BY(program) program " -d unpacks it"

static const struct kind {
	const char *magic;
	size_t size;
	const char *is;
	const char *instead[2]; /* by what is wanted; NULL: as of any file */
} KINDS[] = {
	{"\177ELF", 4, "a program or an object", {NULL, NULL}},
	{"PERFILE2", 8, "a perf.data file", {NULL, AS_DATA}},
	{"2ELIFREP", 8, "a perf.data file", {NULL, AS_DATA}},
	{"PERFFILE", 8, "a perf.data file", {NULL, AS_DATA}},
	{"\037\213", 2, "packed by gzip", {BY("gzip"), BY("gzip")}},
	{"\050\265\057\375", 4, "packed by zstd", {BY("zstd"), BY("zstd")}},
	{"\3757zXZ", 5, "packed by xz", {BY("xz"), BY("xz")}},
	{"BZh", 3, "packed by bzip2", {BY("bzip2"), BY("bzip2")}},
	{"JiTD", 4, "a dump of a JIT's code", {BESIDE, BESIDE}},
	{"DTiJ", 4, "a dump of a JIT's code", {BESIDE, BESIDE}},
	{"<!", 2, "a page", {"a browser shows it", "a browser shows it"}},
};

enum {
	PROGRAM, /* the first kind */
};

static const char *const ANY[] = {
	[TOOL_WANTS_DATA] = "perfring record writes such files",
	[TOOL_WANTS_RING] = "perfring ring shows the file of a flight recorder, or a process's ring as /proc/PID/fd/N",
};

/* The kind of a file without a magic, whose first bytes these are. */
static const char *kind_of_text(const unsigned char *head, size_t size)
{
	size_t first = 0;

	if (!size)
		return "empty";
	for (size_t i = 0; i < size; i++)
		if (!head[i] || (head[i] < 0x80 && !isprint(head[i]) && !isspace(head[i]) && head[i] != '\033'))
			return NULL;
	while (first < size && isspace(head[first]))
		first++;
	return first < size && (head[first] == '{' || head[first] == '[') ? "JSON" : "text";
}

/* The first bytes of a regular file.  Returns their number; -1: they cannot be read. */
static ssize_t read_head(const char *path, unsigned char *head, struct stat *file)
{
	bool is_input = !strcmp(path, "-");
	ssize_t got = -1;
	int fd;

	if ((is_input ? fstat(STDIN_FILENO, file) : stat(path, file)) || !S_ISREG(file->st_mode))
		return -1;
	fd = is_input ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd >= 0)
		got = pread(fd, head, HEAD_SIZE, 0);
	if (fd >= 0 && !is_input)
		close(fd);
	return got;
}

void tool_file_kind(const char *path, enum tool_file_wanted wanted, char text[TOOL_FILE_KIND_SIZE])
{
	const char *is = NULL, *instead = ANY[wanted];
	unsigned char head[HEAD_SIZE];
	struct stat file = {.st_mode = 0};
	ssize_t got = read_head(path, head, &file);

	text[0] = 0;
	if (!strcmp(path, "-") && !S_ISREG(file.st_mode))
		return;
	if (S_ISDIR(file.st_mode) && wanted == TOOL_WANTS_DATA)
		instead = "perfring record --threads writes directories that have one";
	else if (S_ISDIR(file.st_mode))
		is = "a directory";
	for (size_t i = 0; !is && i < sizeof(KINDS) / sizeof(KINDS[0]); i++) {
		const struct kind *kind = &KINDS[i];

		if (got < (ssize_t)kind->size || memcmp(head, kind->magic, kind->size))
			continue;
		is = kind->is;
		instead = kind->instead[wanted] ? kind->instead[wanted] : instead;
		if (i == PROGRAM && wanted == TOOL_WANTS_DATA) {
			snprintf(text, TOOL_FILE_KIND_SIZE, "; it is %s: perfring record %s%s records one", is,
				 strchr(path, '/') ? "" : "./", path);
			return;
		}
	}
	if (!is && got >= 0)
		is = kind_of_text(head, (size_t)got);
	snprintf(text, TOOL_FILE_KIND_SIZE, "%s%s: %s", is ? "; it is " : "", is ? is : "", instead);
}
