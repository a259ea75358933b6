/* name.c - events by name: text to attr and back, in perf's syntax. */
#include <perfring/event.h>

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "event.h"

static const char *const TRACEFS[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};

int64_t perfring_event_slurp(const char *path, char *room, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got;

	if (fd < 0)
		return -errno;
	got = read(fd, room, size - 1);
	if (got < 0)
		got = -errno;
	close(fd);
	if (got < 0)
		return got;
	while (got && room[got - 1] == '\n')
		got--;
	room[got] = 0;
	return got;
}

int perfring_event_tracefs(const char *path)
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

static int fault_at(struct perfring_fault *fault, size_t at, const char *what)
{
	if (fault) {
		fault->at = (int64_t)at;
		fault->what = what;
	}
	return -EINVAL;
}

/* ---- modifiers ---- */

static int parse_modifiers(const char *text, size_t at, struct perf_event_attr *attr, struct perfring_fault *fault)
{
	bool user = false, kernel = false, hypervisor = false, guest = false, host = false;
	unsigned precise = 0;

	if (!text[at])
		return fault_at(fault, at, "no modifier behind the colon");
	for (; text[at]; at++) {
		switch (text[at]) {
		case 'u':
			user = true;
			break;
		case 'k':
			kernel = true;
			break;
		case 'h':
			hypervisor = true;
			break;
		case 'G':
			guest = true;
			break;
		case 'H':
			host = true;
			break;
		case 'I':
			attr->exclude_idle = 1;
			break;
		case 'D':
			attr->pinned = 1;
			break;
		case 'p':
			if (++precise > 3)
				return fault_at(fault, at, "more than three p");
			break;
		default:
			return fault_at(fault, at, "unknown modifier: one of u k h p G H I D");
		}
	}
	if (user || kernel || hypervisor) {
		attr->exclude_user = !user;
		attr->exclude_kernel = !kernel;
		attr->exclude_hv = !hypervisor;
	}
	if (guest || host) {
		attr->exclude_guest = !guest;
		attr->exclude_host = !host;
	}
	if (precise)
		attr->precise_ip = precise & 3;
	return 0;
}

/* ---- tracepoints ---- */

static int parse_tracepoint(const char *text, size_t length, struct perf_event_attr *attr, struct perfring_fault *fault)
{
	char path[512], number[32], *end;
	const char *colon = memchr(text, ':', length);
	size_t system = (size_t)(colon - text), event = length - system - 1;
	ssize_t got;
	int fd;

	for (size_t i = 0; i < length; i++)
		if (text[i] == '/' || text[i] == '.')
			return fault_at(fault, i, "not a tracepoint's name");
	if (!system || !event ||
	    snprintf(path, sizeof(path), "events/%.*s/%.*s/id", (int)system, text, (int)event, colon + 1) >=
		    (int)sizeof(path))
		return fault_at(fault, 0, "not a tracepoint's name");
	fd = perfring_event_tracefs(path);
	if (fd < 0) {
		fault_at(
			fault, 0,
			fd == -EACCES || fd == -EPERM
				? "tracefs may not be read: run as root, or make /sys/kernel/tracing readable"
			: access(TRACEFS[0], R_OK | X_OK) == 0 || access(TRACEFS[1], R_OK | X_OK) == 0
				? "no such tracepoint, or tracefs is not mounted (mount -t tracefs none "
				  "/sys/kernel/tracing)"
				: "tracefs is not mounted or not readable (mount -t tracefs none /sys/kernel/tracing)");
		return fd;
	}
	got = read(fd, number, sizeof(number) - 1);
	close(fd);
	if (got <= 0)
		return -EIO;
	number[got] = 0;
	attr->type = PERFRING_TYPE_TRACEPOINT;
	attr->config = strtoull(number, &end, 10);
	return end == number ? -EIO : 0;
}

/* The name of tracepoint `id`, as "system:event"; false when tracefs does not tell. */
static bool name_tracepoint(uint64_t id, char *room, size_t size)
{
	bool found = false;

	for (size_t i = 0; i < sizeof(TRACEFS) / sizeof(*TRACEFS) && !found; i++) {
		char path[PATH_MAX], number[32];
		struct dirent *system, *event;
		DIR *systems, *events;

		snprintf(path, sizeof(path), "%s/events", TRACEFS[i]);
		systems = opendir(path);
		while (systems && !found && (system = readdir(systems))) {
			if (system->d_name[0] == '.')
				continue;
			snprintf(path, sizeof(path), "%s/events/%s", TRACEFS[i], system->d_name);
			events = opendir(path);
			while (events && !found && (event = readdir(events))) {
				if (event->d_name[0] == '.')
					continue;
				if (snprintf(path, sizeof(path), "%s/events/%s/%s/id", TRACEFS[i], system->d_name,
					     event->d_name) >= (int)sizeof(path) ||
				    perfring_event_slurp(path, number, sizeof(number)) <= 0 ||
				    strtoull(number, NULL, 10) != id)
					continue;
				found = true;
				snprintf(room, size, "%s:%s", system->d_name, event->d_name);
			}
			if (events)
				closedir(events);
		}
		if (systems)
			closedir(systems);
	}
	return found;
}

/* ---- breakpoints: mem:ADDR[/LEN][:rwx] ---- */

static int parse_breakpoint(const char *text, struct perf_event_attr *attr, struct perfring_fault *fault)
{
	const char *at = text + strlen("mem:");
	unsigned type = 0;
	char *end;

	attr->type = PERFRING_TYPE_BREAKPOINT;
	attr->config = 0;
	attr->bp_len = 0;
	errno = 0;
	attr->bp_addr = strtoull(at, &end, 0);
	if (end == at || errno)
		return fault_at(fault, (size_t)(at - text), "no address");
	at = end;
	if (*at == '/') {
		attr->bp_len = strtoull(++at, &end, 10);
		if (end == at || (attr->bp_len != 1 && attr->bp_len != 2 && attr->bp_len != 4 && attr->bp_len != 8))
			return fault_at(fault, (size_t)(at - text), "a length of 1, 2, 4 or 8 is wanted");
		at = end;
	}
	if (*at == ':' && (at[1] == 'r' || at[1] == 'w' || at[1] == 'x')) {
		for (at++; *at && *at != ':'; at++) {
			unsigned bit = *at == 'r' ? 1 : *at == 'w' ? 2 : *at == 'x' ? 4 : 0;

			if (!bit || (type & bit))
				return fault_at(fault, (size_t)(at - text), "r, w and x, each once");
			type |= bit;
		}
		if ((type & 4) && type != 4)
			return fault_at(fault, (size_t)(at - text) - 1, "x stands alone");
	}
	attr->bp_type = type ? type : 3;
	if (!attr->bp_len)
		attr->bp_len = type == 4 ? sizeof(long) : 4;
	if (*at == ':')
		return parse_modifiers(text, (size_t)(at - text) + 1, attr, fault);
	return *at ? fault_at(fault, (size_t)(at - text), "/LEN, :rwx or :MODIFIERS is wanted here") : 0;
}

static bool is_word(const char *text, size_t length, const char *word)
{
	return *word && strlen(word) == length && !memcmp(text, word, length);
}

int perfring_event_parse(const char *text, struct perf_event_attr *attr, struct perfring_fault *fault)
{
	const char *colon = strchr(text, ':');
	size_t length = colon ? (size_t)(colon - text) : strlen(text);
	const char *second = colon ? strchr(colon + 1, ':') : NULL;
	char *end;
	int ret;

	if (!length)
		return fault_at(fault, 0, "no event");
	if (!strncmp(text, "mem:", 4))
		return parse_breakpoint(text, attr, fault);

#define PERFRING_EVENT(name, alias, event_type, event_config) \
	if (is_word(text, length, name) || is_word(text, length, alias)) { \
		attr->type = (event_type); \
		attr->config = (event_config); \
		return colon ? parse_modifiers(text, length + 1, attr, fault) : 0; \
	}
#include <perfring/values.def>

	if (text[0] == 'r' && length > 1 && strspn(text + 1, "0123456789abcdefABCDEF") == length - 1) {
		errno = 0;
		attr->type = PERFRING_TYPE_RAW;
		attr->config = strtoull(text + 1, &end, 16);
		if (errno)
			return fault_at(fault, 1, "a raw event has at most 16 hexadecimal digits");
		return colon ? parse_modifiers(text, length + 1, attr, fault) : 0;
	}
	if (!colon)
		return fault_at(fault, 0, "unknown event");
	ret = parse_tracepoint(text, second ? (size_t)(second - text) : strlen(text), attr, fault);
	if (!ret && second)
		ret = parse_modifiers(text, (size_t)(second - text) + 1, attr, fault);
	return ret;
}

int64_t perfring_event_name(const struct perf_event_attr *from, char *room, size_t size)
{
	static const char *const BP[] = {"", "r", "w", "rw", "x"};
	struct perf_event_attr whole = perfring_attr_whole(from), *attr = &whole;
	char name[512] = "", modifiers[16] = "";
	size_t m = 0;

	if (attr->exclude_user | attr->exclude_kernel | attr->exclude_hv) {
		if (!attr->exclude_user)
			modifiers[m++] = 'u';
		if (!attr->exclude_kernel)
			modifiers[m++] = 'k';
		if (!attr->exclude_hv)
			modifiers[m++] = 'h';
	}
	for (unsigned i = 0; i < attr->precise_ip; i++)
		modifiers[m++] = 'p';
	modifiers[m] = 0;

#define PERFRING_EVENT(event_name, alias, event_type, event_config) \
	if (!*name && attr->type == (event_type) && attr->config == (event_config)) \
		snprintf(name, sizeof(name), "%s", *alias && (event_type) == 0 ? alias : event_name);
#include <perfring/values.def>

	if (attr->type == PERFRING_TYPE_RAW)
		snprintf(name, sizeof(name), "r%llx", (unsigned long long)attr->config);
	else if (attr->type == PERFRING_TYPE_BREAKPOINT && attr->bp_type <= 4)
		snprintf(name, sizeof(name), "mem:0x%llx/%llu:%s", (unsigned long long)attr->bp_addr,
			 (unsigned long long)attr->bp_len, BP[attr->bp_type]);
	else if (!*name &&
		 (attr->type != PERFRING_TYPE_TRACEPOINT || !name_tracepoint(attr->config, name, sizeof(name))))
		snprintf(name, sizeof(name), "type=%u,config=0x%llx", attr->type, (unsigned long long)attr->config);
	return snprintf(room, size, "%s%s%s", name, m ? ":" : "", modifiers);
}
