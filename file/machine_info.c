/* machine_info.c - the features that describe this machine and the command (docs/abi.md 11.3).
 *
 * perfring_file_writer_describe of file_writer.h; topology.c and tracing_data.c have the longer ones.  What cannot be read is
 * left out, and the first error is returned.  Threads only.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/utsname.h>
#include <unistd.h>
#include "os/lines.h"
#include "file_writer_private.h"

/* perfring__os_lines_find, with *unread the first error. */
static bool find(const char *path, const char *name, char *rest, size_t size, int *unread)
{
	int found = perfring__os_lines_find(path, name, rest, size);

	if (found < 0 && !*unread)
		*unread = perfring__os_pass_over(found);
	return found == 1;
}

static int describe_machine(struct perfring_file_writer *writer, int *unread)
{
	long available = sysconf(_SC_NPROCESSORS_CONF), online = sysconf(_SC_NPROCESSORS_ONLN);
	uint32_t cpus[2] = {(uint32_t)available, (uint32_t)online};
	struct utsname system;
	uint64_t memory;
	char text[512];
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
	/* perf reads this as a version of perf */
	if (!error)
		error = perfring_file_writer_put_string(writer, PERFRING_FEATURE_VERSION, "perfring " PERFRING_VERSION);
	memory = find("/proc/meminfo", "MemTotal", text, sizeof(text), unread) ? strtoull(text, NULL, 10) : 0;
	if (!error && memory)
		error = perfring_file_writer_put_feature(writer, PERFRING_FEATURE_TOTAL_MEM, &memory, sizeof(memory));
	if (find("/proc/cpuinfo", "model name", text, sizeof(text), unread) && !error)
		error = perfring_file_writer_put_string(writer, PERFRING_FEATURE_CPUDESC, text);
	return error;
}

int perfring_file_writer_describe(struct perfring_file_writer *writer, char *const argv[])
{
	struct perfring_byte_buffer buffer = {0};
	uint32_t count = 0, i;
	int unread = 0, error = describe_machine(writer, &unread);

	if (!error)
		error = perfring__file_topology(writer, &unread);
	if (!error)
		error = perfring__file_clock(writer);
	if (error)
		return error;
	if (argv) {
		while (argv[count])
			count++;
		perfring__byte_buffer_put_u32(&buffer, count);
		for (i = 0; i < count; i++)
			perfring__byte_buffer_put_string(&buffer, argv[i]);
		error = perfring__file_put_buffer(writer, PERFRING_FEATURE_CMDLINE, &buffer);
	}
	if (!error)
		error = perfring__file_tracing(writer, &buffer);
	if (!error && buffer.used)
		error = perfring__file_put_buffer(writer, PERFRING_FEATURE_TRACING_DATA, &buffer);
	perfring__byte_buffer_close(&buffer);
	return error ? error : unread;
}
