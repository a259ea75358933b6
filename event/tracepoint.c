/* tracepoint.c - the tracepoints of tracefs: one by its name or number, all that match a glob.
 *
 * event_syntax.c asks for the id of a name ("sched:sched_switch", attr.config of PERF_TYPE_TRACEPOINT) and the name of an id,
 * event_list.c and event_catalogue.c for all names that match a glob.  The functions are declared in pmu.h.  They read files: for threads, not
 * signal handlers.  tracefs is mounted at one of two places, and usually readable by root alone: then open fails with EACCES.
 */
#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "os/small_file.h"
#include "pmu.h"

static const char *const TRACEFS[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};

/* Opens a file of the first place that has it; the caller closes it.  Returns the descriptor; of two failures the last one that is
 * not ENOENT. */
int perfring__event_tracefs(const char *path)
{
	char whole[PATH_MAX];
	int error = -ENOENT;

	for (size_t i = 0; i < sizeof(TRACEFS) / sizeof(*TRACEFS); i++) {
		int fd;

		if (snprintf(whole, sizeof(whole), "%s/%s", TRACEFS[i], path) >= (int)sizeof(whole))
			return -ENAMETOOLONG;
		fd = open(whole, O_RDONLY | O_CLOEXEC);
		if (fd >= 0)
			return fd;
		if (errno != ENOENT)
			error = -errno;
	}
	return error;
}

int perfring__tracepoints_each(const char *system_glob, const char *event_glob,
			       int (*take)(void *to, const char *name, int folder, const char *id), void *to)
{
	int folder = perfring__event_tracefs("events"), systems, ret = 0;
	struct dirent **system, **event;

	if (folder < 0)
		return folder;
	systems = perfring__event_folder(folder, ".", &system);
	for (int i = 0; i < systems && !ret; i++) {
		int events = fnmatch(system_glob, system[i]->d_name, 0)
				     ? 0
				     : perfring__event_folder(folder, system[i]->d_name, &event);

		for (int j = 0; j < events && !ret; j++) {
			char name[512], id[544];

			if (fnmatch(event_glob, event[j]->d_name, 0) ||
			    snprintf(name, sizeof(name), "%s:%s", system[i]->d_name, event[j]->d_name) >=
				    (int)sizeof(name))
				continue;
			snprintf(id, sizeof(id), "%s/%s/id", system[i]->d_name, event[j]->d_name);
			ret = take(to, name, folder, id);
		}
		if (events > 0)
			perfring__event_folder_free(event, events);
	}
	if (systems > 0)
		perfring__event_folder_free(system, systems);
	close(folder);
	return systems < 0 ? systems : ret;
}

/* The text has a colon: the caller has looked. */
int perfring__tracepoint_id(const char *text, size_t length, uint64_t *id, struct perfring_fault *fault)
{
	const char *colon = memchr(text, ':', length);
	size_t system = (size_t)(colon - text), event = length - system - 1;
	char path[512], number[32], *end;
	ssize_t got;
	int fd, error;

	for (size_t i = 0; i < length; i++)
		if (text[i] == '/' || text[i] == '.')
			return perfring__event_invalid(fault, i, "not a tracepoint's name");
	if (!system || !event ||
	    snprintf(path, sizeof(path), "events/%.*s/%.*s/id", (int)system, text, (int)event, colon + 1) >=
		    (int)sizeof(path))
		return perfring__event_invalid(fault, 0, "not a tracepoint's name");
	fd = perfring__event_tracefs(path);
	if (fd < 0)
		return perfring__event_fault(
			fault, 0,
			fd == -EACCES || fd == -EPERM
				? "tracefs may not be read: run as root, or make /sys/kernel/tracing readable"
			: access("/sys/kernel/tracing/events", R_OK | X_OK) == 0 ||
					access("/sys/kernel/debug/tracing/events", R_OK | X_OK) == 0
				? "no such tracepoint, or event"
				: "no such event; or a tracepoint, but tracefs is not mounted or not readable "
				  "(mount -t tracefs none /sys/kernel/tracing)",
			fd);
	got = read(fd, number, sizeof(number) - 1);
	error = got < 0 ? -errno : -EIO;
	close(fd);
	number[got > 0 ? got : 0] = 0;
	*id = strtoull(number, &end, 10);
	return end == number ? perfring__event_fault(fault, 0, "tracefs has no number for this tracepoint", error) : 0;
}

/* The tracepoint with this id, and where its name goes. */
struct sought {
	uint64_t id;
	char *buffer;
	size_t size;
};

static int take_name(void *to, const char *name, int folder, const char *id)
{
	const struct sought *sought = to;
	char number[32];

	if (perfring__os_file_read_at(folder, id, number, sizeof(number)) <= 0 ||
	    strtoull(number, NULL, 10) != sought->id)
		return 0;
	snprintf(sought->buffer, sought->size, "%s", name);
	return 1;
}

void perfring__tracepoint_name(uint64_t id, char *buffer, size_t size)
{
	perfring__tracepoints_each("*", "*", take_name, &(struct sought){id, buffer, size});
}
