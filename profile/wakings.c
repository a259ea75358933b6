/* wakings.c - where a sample of sched:sched_waking says who is woken.
 *
 * fill.c asks once for each event, and then for each sample.  A format is text of the kernel, or of a file, which may hold any bytes:
 *
 *     name: sched_waking
 *     format:
 *             field:unsigned char common_flags;    offset:2;    size:1;    signed:0;
 */
#include "wakings.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "os/small_file.h"

enum {
	LINE = 256, /* bytes of a line that has a field */
};

#define NAME "name: sched_waking\n"

/* Whether a line of a format is the field of this name; sets its place. */
static bool is_field(const char *line, const char *name, struct perfring_waking_field *field)
{
	const char *declared = strstr(line, "field:"), *end = declared ? strchr(declared, ';') : NULL;
	const char *offset = end ? strstr(end, "offset:") : NULL, *size = offset ? strstr(offset, "size:") : NULL;
	size_t length = strlen(name);

	if (!size || (size_t)(end - declared) <= length || memcmp(end - length, name, length) || end[-(ptrdiff_t)length - 1] != ' ')
		return false;
	field->offset = (uint32_t)strtoul(offset + 7, NULL, 10);
	field->size = (uint32_t)strtoul(size + 5, NULL, 10);
	return true;
}

/* Finds both fields in the lines of a format. */
static void find_in(struct perfring_waking_fields *fields, const char *format, size_t size)
{
	while (size) {
		const char *newline = memchr(format, '\n', size);
		size_t length = newline ? (size_t)(newline - format) : size;
		char line[LINE];

		if (length < sizeof(line)) {
			memcpy(line, format, length);
			line[length] = 0;
			if (!is_field(line, "pid", &fields->tid))
				is_field(line, "common_flags", &fields->flags);
		}
		length += newline != NULL;
		format += length;
		size -= length;
	}
}

/* Finds the format in TRACING_DATA. */
static void find_in_file(struct perfring_waking_fields *fields, const struct perfring_file *file)
{
	struct perfring_layout_member member;
	struct perfring_layout_walk walk;
	const char *system = "";
	uint64_t size = 0;
	const void *payload = perfring_file_feature(file, PERFRING_FEATURE_TRACING_DATA, &size);

	if (!payload)
		return;
	perfring_feature_open(&walk, PERFRING_FEATURE_TRACING_DATA, payload, size, 0);
	while (!fields->tid.size && perfring_layout_next(&walk, &member) == 1) {
		if (!strcmp(member.name, "system") && member.kind == PERFRING_LAYOUT_STRING)
			system = member.bytes;
		else if (!strcmp(member.name, "format") && !strcmp(system, "sched") && member.size > strlen(NAME) &&
			 !memcmp(member.bytes, NAME, strlen(NAME)))
			find_in(fields, member.bytes, (size_t)member.size);
	}
}

static void find_in_kernel(struct perfring_waking_fields *fields)
{
	static const char *const places[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};

	for (size_t i = 0; !fields->tid.size && i < sizeof(places) / sizeof(*places); i++) {
		char path[80], *text;
		size_t size;

		snprintf(path, sizeof(path), "%s/events/sched/sched_waking/format", places[i]);
		if (perfring__os_file_load(path, &text, &size))
			continue;
		find_in(fields, text, size);
		free(text);
	}
}

void perfring__waking_find(struct perfring_waking_fields *fields, const struct perfring_file *file)
{
	*fields = (struct perfring_waking_fields){.is_foreign = file && perfring_file_is_foreign(file)};
	if (file)
		find_in_file(fields, file);
	else
		find_in_kernel(fields);
}

/* Reads a number of 1, 2 or 4 bytes.  Returns false where it is not in the payload, or of another size. */
static bool read_field(const struct perfring_waking_field *field, const struct perfring_raw *raw, bool is_foreign,
		       uint32_t *number)
{
	unsigned char bytes[4] = {0};

	if (!field->size || field->size > sizeof(bytes) || field->size == 3 || field->offset > raw->size ||
	    field->size > raw->size - field->offset)
		return false;
	memcpy(bytes, (const unsigned char *)raw->data + field->offset, field->size);
	if (field->size == 1) {
		*number = bytes[0];
	} else if (field->size == 2) {
		uint16_t half;

		memcpy(&half, bytes, sizeof(half));
		*number = is_foreign ? __builtin_bswap16(half) : half;
	} else {
		memcpy(number, bytes, sizeof(*number));
		*number = is_foreign ? __builtin_bswap32(*number) : *number;
	}
	return true;
}

bool perfring__waking_read(const struct perfring_waking_fields *fields, const struct perfring_raw *raw, uint32_t *tid,
			   uint64_t *flags)
{
	uint32_t number;

	if (!read_field(&fields->tid, raw, fields->is_foreign, tid))
		return false;
	if (read_field(&fields->flags, raw, fields->is_foreign, &number))
		*flags = number;
	return true;
}
