/* machine_info.c - what a file says about the machine it was made on (docs/abi.md 11.3). */
#include <stdio.h>
#include <stdlib.h>
#include <sys/utsname.h>
#include <unistd.h>
#include "lines.h"
#include "file_writer_private.h"

/* What stands behind "name : " in the first line of a /proc file that begins with name; NULL: there is none, or *unread says
 * why. */
static const char *find(struct perfring_lines *lines, const char *path, const char *name, int *unread)
{
	int error = perfring_lines_open(lines, path);
	const char *found = NULL;
	char *line;

	if (!*unread)
		*unread = perfring_pass_over(error);
	if (error)
		return NULL;
	while (!found && (line = perfring_lines_next(lines))) {
		size_t length = strlen(name);

		if (strncmp(line, name, length))
			continue;
		line += length + strspn(line + length, " \t");
		if (*line == ':')
			found = line + 1 + strspn(line + 1, " \t");
	}
	if (!*unread)
		*unread = perfring_pass_over(lines->error);
	perfring_lines_close(lines);
	return found;
}

static int describe_machine(struct perfring_file_writer *writer, int *unread)
{
	long available = sysconf(_SC_NPROCESSORS_CONF), online = sysconf(_SC_NPROCESSORS_ONLN);
	uint32_t cpus[2] = {(uint32_t)available, (uint32_t)online};
	struct perfring_lines lines;
	struct utsname system;
	const char *text;
	uint64_t memory;
	int error = 0;

	if (!uname(&system)) {
		error = perfring_file_writer_put_string(writer, PERFRING_FEATURE_HOSTNAME, system.nodename);
		if (!error)
			error = perfring_file_writer_put_string(writer, PERFRING_FEATURE_OSRELEASE, system.release);
		if (!error)
			error = perfring_file_writer_put_string(writer, PERFRING_FEATURE_ARCH, system.machine);
	}
	if (!error && available > 0 && online > 0)
		error = perfring_file_writer_put_feature(writer, PERFRING_FEATURE_NRCPUS, cpus, sizeof(cpus));
	/* perf takes what stands here for a version of its own */
	if (!error)
		error = perfring_file_writer_put_string(writer, PERFRING_FEATURE_VERSION, "perfring " PERFRING_VERSION);
	text = find(&lines, "/proc/meminfo", "MemTotal", unread);
	memory = text ? strtoull(text, NULL, 10) : 0;
	if (!error && memory)
		error = perfring_file_writer_put_feature(writer, PERFRING_FEATURE_TOTAL_MEM, &memory, sizeof(memory));
	text = find(&lines, "/proc/cpuinfo", "model name", unread);
	if (!error && text)
		error = perfring_file_writer_put_string(writer, PERFRING_FEATURE_CPUDESC, text);
	return error;
}

int perfring_file_writer_describe(struct perfring_file_writer *writer, char *const argv[])
{
	struct perfring_byte_buffer pile = {0};
	uint32_t count = 0, i;
	int unread = 0, error = describe_machine(writer, &unread);

	if (!error)
		error = perfring_file_topology(writer, &unread);
	if (!error)
		error = perfring_file_clock(writer);
	if (error)
		return error;
	if (argv) {
		while (argv[count])
			count++;
		perfring_byte_buffer_put_half(&pile, count);
		for (i = 0; i < count; i++)
			perfring_byte_buffer_put_string(&pile, argv[i]);
		error = pile.error ? pile.error
				   : perfring_file_writer_put_feature(writer, PERFRING_FEATURE_CMDLINE, pile.bytes, pile.used);
	}
	pile.used = 0;
	if (!error)
		error = perfring_file_tracing(writer, &pile);
	if (!error && pile.used)
		error = perfring_file_writer_put_feature(writer, PERFRING_FEATURE_TRACING_DATA, pile.bytes, pile.used);
	perfring_byte_buffer_close(&pile);
	return error ? error : unread;
}
