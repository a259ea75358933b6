/* event_name.c - names, as perf has them, of events that have none in the file.
 *
 * metadata.c names events of a file that is read, file_writer.c those of one that is written.  Tracepoints have their names from
 * the formats in TRACING_DATA, which are foreign text.
 */
#include <stdio.h>
#include <stdlib.h>
#include "file_private.h"

enum {
	FORMAT_HEAD = 512, /* bytes of a tracepoint's format that contain its name and id */
	MAX_NAME = 128,
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
		/* perf shows cpu-cycles and branch-instructions as cycles and branches */
		return type == PERFRING_TYPE_HARDWARE && (config == PERFRING_COUNT_HW_CPU_CYCLES ||
							  config == PERFRING_COUNT_HW_BRANCH_INSTRUCTIONS)
			       ? known[i].alias
			       : known[i].name;
	}
	return NULL;
}

/* Names a hardware event.  The upper half of config may have a PMU's number, which perf shows as "cpu". */
static int name_hardware(uint64_t config, char *buffer, size_t size)
{
	const char *name = plain_name(PERFRING_TYPE_HARDWARE, (uint32_t)config);

	if (!name)
		return 0;
	return snprintf(buffer, size, config >> 32 ? "cpu/%s/" : "%s", name);
}

/* Names a cache event, of config cache | operation << 8 | result << 16; perf ignores the other bits. */
static int name_cache(uint64_t config, char *buffer, size_t size)
{
	static const struct {
		char name[12];
		bool can[3]; /* read, write, prefetch */
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
	return snprintf(buffer, size, "%s-%s", caches[cache].name, operations[operation][result]);
}

static int name_breakpoint(const struct perf_event_attr *attr, char *buffer, size_t size)
{
	return snprintf(buffer, size, "mem:0x%llx:%s%s%s", (unsigned long long)attr->bp_addr,
			attr->bp_type & BREAKPOINT_R ? "r" : "", attr->bp_type & BREAKPOINT_W ? "w" : "",
			attr->bp_type & BREAKPOINT_X ? "x" : "");
}

/* Modifiers, where they are not perf's defaults: with a level or precision host and guests, else the host only. */
static void put_modifiers(const struct perf_event_attr *attr, char *text, size_t size)
{
	bool has_level = attr->exclude_kernel || attr->exclude_user || attr->exclude_hv;
	bool has_more = has_level || attr->precise_ip;
	bool has_place = attr->exclude_host || (bool)attr->exclude_guest == has_more;
	int length = snprintf(text, size, ":%s%s%s%.*s%s%s", has_level && !attr->exclude_kernel ? "k" : "",
			      has_level && !attr->exclude_user ? "u" : "", has_level && !attr->exclude_hv ? "h" : "",
			      (int)attr->precise_ip, "ppp", has_place && !attr->exclude_host ? "H" : "",
			      has_place && !attr->exclude_guest ? "G" : "");

	if (length == 1)
		*text = 0;
}

void perfring__file_default_name(const struct perf_event_attr *attr, char *buffer, size_t size)
{
	char modifiers[16];
	int length = 0;

	if (attr->type == PERFRING_TYPE_HARDWARE) {
		length = name_hardware(attr->config, buffer, size);
	} else if (attr->type == PERFRING_TYPE_HW_CACHE) {
		length = name_cache(attr->config, buffer, size);
	} else if (attr->type == PERFRING_TYPE_RAW) {
		length = snprintf(buffer, size, "raw 0x%llx", (unsigned long long)attr->config);
	} else if (attr->type == PERFRING_TYPE_BREAKPOINT) {
		length = name_breakpoint(attr, buffer, size);
	} else {
		const char *name = plain_name(attr->type, attr->config);

		length = name ? snprintf(buffer, size, "%s", name) : 0;
	}
	if (!length) {
		snprintf(buffer, size, "type=%u,config=0x%llx", attr->type, (unsigned long long)attr->config);
		return;
	}
	put_modifiers(attr, modifiers, sizeof(modifiers));
	snprintf(buffer + length, size - (size_t)length, "%s", modifiers);
}

/* ---- tracepoints ---- */

/* An event without a name. */
struct unnamed {
	uint64_t id;
	uint32_t event;
};

static int compare(const void *a, const void *b)
{
	const struct unnamed *one = a, *other = b;

	if (one->id != other->id)
		return one->id < other->id ? -1 : 1;
	return one->event < other->event ? -1 : one->event > other->event;
}

/* "name: NAME" and "ID: NUMBER" are a format's first lines. */
static bool read_head(const struct perfring_layout_member *format, char name[MAX_NAME], uint64_t *id)
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
	if (!length || length >= MAX_NAME)
		return false;
	memcpy(name, head + 6, length);
	name[length] = 0;
	*id = strtoull(number + 5, NULL, 10);
	return true;
}

/* Names the events of this id. */
static void name_events(struct perfring_file *file, const struct unnamed *unnamed, uint32_t count, uint64_t id,
			const char *system, const char *name)
{
	uint32_t first = 0, end = count;

	while (first < end) {
		uint32_t middle = first + (end - first) / 2;

		if (unnamed[middle].id < id)
			first = middle + 1;
		else
			end = middle;
	}
	for (; first < count && unnamed[first].id == id; first++) {
		struct perfring_file_event *event = &file->events[unnamed[first].event];
		char *own;

		/* then all of them have: a file may repeat a format any number of times */
		if (event->name || asprintf(&own, "%.*s:%s", MAX_NAME, system, name) < 0)
			return;
		event->name = event->own_name = own;
	}
}

void perfring__file_name_tracepoints(struct perfring_file *file)
{
	struct perfring_layout_member member;
	struct perfring_layout_walk walk;
	struct unnamed *unnamed = NULL;
	uint32_t count = 0, capacity = 0;
	uint64_t size = 0, id;
	const void *payload;
	const char *system = "";
	char name[MAX_NAME];

	for (uint32_t i = 0; i < file->event_count; i++) {
		const struct perfring_file_event *event = &file->events[i];

		if (event->attr->type != PERFRING_TYPE_TRACEPOINT || event->name)
			continue;
		if (perfring__os_array_grow(&unnamed, count, &capacity, sizeof(*unnamed))) {
			file->features->error = -ENOMEM;
			free(unnamed);
			return;
		}
		unnamed[count++] = (struct unnamed){event->attr->config, i};
	}
	payload = count ? perfring_file_feature(file, PERFRING_FEATURE_TRACING_DATA, &size) : NULL;
	if (payload) {
		qsort(unnamed, count, sizeof(*unnamed), compare);
		perfring_feature_open(&walk, PERFRING_FEATURE_TRACING_DATA, payload, size, 0);
	}
	while (payload && perfring_layout_next(&walk, &member) == 1) {
		if (!strcmp(member.name, "system") && member.kind == PERFRING_LAYOUT_STRING)
			system = member.bytes;
		else if (!strcmp(member.name, "format") && *system && read_head(&member, name, &id))
			name_events(file, unnamed, count, id, system, name);
	}
	free(unnamed);
}
