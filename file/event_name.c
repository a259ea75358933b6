/* event_name.c - names of events that have none in the file, as perf makes them up. */
#include <stdio.h>
#include <stdlib.h>
#include "file_private.h"

/* The bytes of a format in which its name and number stand, and of a name at most. */
enum {
	FORMAT_HEAD = 512,
	MOST_NAME = 128,
	BREAKPOINT_R = 1, /* of attr.bp_type */
	BREAKPOINT_W = 2,
	BREAKPOINT_X = 4,
};

static const char *plain_name(uint32_t type, uint64_t config)
{
	static const struct {
		char name[24], alias[24];
		uint32_t type;
		uint32_t config;
	} known[] = {
#define PERFRING_EVENT(name, alias, type, config) {name, alias, type, config},
#include <perfring/values.def>
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (type != known[i].type || config != known[i].config)
			continue;
		/* what perf lists as cpu-cycles and branch-instructions it shows as cycles and branches */
		return type == PERFRING_TYPE_HARDWARE && (config == PERFRING_COUNT_HW_CPU_CYCLES ||
							  config == PERFRING_COUNT_HW_BRANCH_INSTRUCTIONS)
			       ? known[i].alias
			       : known[i].name;
	}
	return NULL;
}

/* Of a processor's PMU that the config names: perf says "cpu" where it does not look for the machine's name of it. */
static int name_hardware(uint64_t config, char *room, size_t size)
{
	const char *name = plain_name(PERFRING_TYPE_HARDWARE, (uint32_t)config);

	if (!name)
		return 0;
	return snprintf(room, size, config >> 32 ? "cpu/%s/" : "%s", name);
}

/* cache | operation << 8 | result << 16; what is above perf does not look at. */
static int name_cache(uint64_t config, char *room, size_t size)
{
	static const struct {
		char name[12];
		bool can[3]; /* read, written, prefetched */
	} caches[] = {
		{"L1-dcache", {true, true, true}}, {"L1-icache", {true, false, true}}, {"LLC", {true, true, true}},
		{"dTLB", {true, true, true}},      {"iTLB", {true, false, false}},     {"branch", {true, false, false}},
		{"node", {true, true, true}},
	};
	static const char *const operations[3][2] = {
		{"loads", "load-misses"}, {"stores", "store-misses"}, {"prefetches", "prefetch-misses"}};
	uint32_t cache = config & 255, operation = config >> 8 & 255, result = config >> 16 & 255;

	if (cache >= sizeof(caches) / sizeof(caches[0]) || operation > 2 || result > 1 || !caches[cache].can[operation])
		return 0;
	return snprintf(room, size, "%s-%s", caches[cache].name, operations[operation][result]);
}

static int name_breakpoint(const struct perf_event_attr *attr, char *room, size_t size)
{
	return snprintf(room, size, "mem:0x%llx:%s%s%s", (unsigned long long)attr->bp_addr,
			attr->bp_type & BREAKPOINT_R ? "r" : "", attr->bp_type & BREAKPOINT_W ? "w" : "",
			attr->bp_type & BREAKPOINT_X ? "x" : "");
}

/* What it observes, where that is not what perf observes by itself: with a level or precision all of host and guests,
 * without either the host alone. */
static void put_modifiers(const struct perf_event_attr *attr, char *text)
{
	bool has_level = attr->exclude_kernel || attr->exclude_user || attr->exclude_hv;
	bool has_more = has_level || attr->precise_ip;
	bool has_place = attr->exclude_host || (bool)attr->exclude_guest == has_more;
	char *at = text;

	*at++ = ':';
	if (has_level && !attr->exclude_kernel)
		*at++ = 'k';
	if (has_level && !attr->exclude_user)
		*at++ = 'u';
	if (has_level && !attr->exclude_hv)
		*at++ = 'h';
	for (uint32_t i = 0; i < attr->precise_ip; i++)
		*at++ = 'p';
	if (has_place && !attr->exclude_host)
		*at++ = 'H';
	if (has_place && !attr->exclude_guest)
		*at++ = 'G';
	if (at == text + 1)
		at = text;
	*at = 0;
}

void perfring_file_make_up_name(const struct perf_event_attr *attr, char *room, size_t size)
{
	char modifiers[16];
	int length = 0;

	if (attr->type == PERFRING_TYPE_HARDWARE) {
		length = name_hardware(attr->config, room, size);
	} else if (attr->type == PERFRING_TYPE_HW_CACHE) {
		length = name_cache(attr->config, room, size);
	} else if (attr->type == PERFRING_TYPE_RAW) {
		length = snprintf(room, size, "raw 0x%llx", (unsigned long long)attr->config);
	} else if (attr->type == PERFRING_TYPE_BREAKPOINT) {
		length = name_breakpoint(attr, room, size);
	} else {
		const char *name = plain_name(attr->type, attr->config);

		length = name ? snprintf(room, size, "%s", name) : 0;
	}
	if (!length) {
		snprintf(room, size, "type=%u,config=0x%llx", attr->type, (unsigned long long)attr->config);
		return;
	}
	put_modifiers(attr, modifiers);
	snprintf(room + length, size - (size_t)length, "%s", modifiers);
}

/* ---- tracepoints ---- */

struct wanted {
	uint64_t id;
	uint32_t event;
};

static int compare(const void *a, const void *b)
{
	const struct wanted *one = a, *other = b;

	if (one->id != other->id)
		return one->id < other->id ? -1 : 1;
	return one->event < other->event ? -1 : one->event > other->event;
}

/* "name: NAME" and "ID: NUMBER" are a format's first lines. */
static bool read_head(const struct perfring_layout_member *format, char name[MOST_NAME], uint64_t *id)
{
	char head[FORMAT_HEAD + 1];
	size_t size = format->size < FORMAT_HEAD ? (size_t)format->size : FORMAT_HEAD, length;
	const char *number;

	memcpy(head, format->bytes, size);
	head[size] = 0;
	number = strstr(head, "\nID: ");
	if (strncmp(head, "name: ", 6) || !number)
		return false;
	length = strcspn(head + 6, "\n");
	if (!length || length >= MOST_NAME)
		return false;
	memcpy(name, head + 6, length);
	name[length] = 0;
	*id = strtoull(number + 5, NULL, 10);
	return true;
}

static void name_all_of(struct perfring_file *file, const struct wanted *wanted, uint32_t count, uint64_t id,
			const char *system, const char *name)
{
	uint32_t first = 0, end = count;

	while (first < end) {
		uint32_t middle = first + (end - first) / 2;

		if (wanted[middle].id < id)
			first = middle + 1;
		else
			end = middle;
	}
	/* the first of them tells of all: a file may have the same format any number of times */
	for (; first < count && wanted[first].id == id; first++) {
		struct perfring_file_event *event = &file->events[wanted[first].event];
		char *own;

		if (event->name)
			return;
		if (asprintf(&own, "%.*s:%s", MOST_NAME, system, name) < 0)
			return;
		event->own_name = own;
		event->name = own;
	}
}

void perfring_file_name_tracepoints(struct perfring_file *file)
{
	struct perfring_layout_member member;
	struct perfring_layout_walk walk;
	uint64_t size = 0, id;
	const void *payload;
	const char *system = "";
	char name[MOST_NAME];
	struct wanted *wanted;
	uint32_t count = 0;

	for (uint32_t i = 0; i < file->event_count; i++)
		count += file->events[i].attr->type == PERFRING_TYPE_TRACEPOINT && !file->events[i].name;
	payload = count ? perfring_file_feature(file, PERFRING_FEATURE_TRACING_DATA, &size) : NULL;
	wanted = payload ? malloc(count * sizeof(*wanted)) : NULL;
	if (payload && !wanted)
		file->features->error = -ENOMEM;
	if (!wanted)
		return;
	count = 0;
	for (uint32_t i = 0; i < file->event_count; i++)
		if (file->events[i].attr->type == PERFRING_TYPE_TRACEPOINT && !file->events[i].name)
			wanted[count++] = (struct wanted){file->events[i].attr->config, i};
	qsort(wanted, count, sizeof(*wanted), compare);
	perfring_feature_open(&walk, PERFRING_FEATURE_TRACING_DATA, payload, size, 0);
	while (perfring_layout_next(&walk, &member) == 1) {
		if (!strcmp(member.name, "system") && member.kind == PERFRING_LAYOUT_STRING)
			system = member.bytes;
		else if (!strcmp(member.name, "format") && *system && read_head(&member, name, &id))
			name_all_of(file, wanted, count, id, system, name);
	}
	free(wanted);
}
