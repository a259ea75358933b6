/* collapsed.c - stacks as lines of text: docs/formats.md.
 *
 *     COMM;FUNCTION;FUNCTION WEIGHT
 *
 * All lines are made in memory, one for each row of the table of weights, sorted as bytes, and equal ones added up: so threads of one name
 * share their lines.  Lost records and samples are lines of their own, at the mean weight of the samples that are there.  Called by
 * perfring_profile_write (views.h) only, in the one thread that has the profile meanwhile.  -ENOMEM comes before anything is written.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "views.h"

/* All lines without their weights, one after the other in `text`; the place, length and weight of each in `list`. */
struct lines {
	char *text;
	size_t size, capacity;
	struct line {
		size_t at, length;
		uint64_t number;
	} * list;
	size_t count, space;
	bool failed;
};

/* Appends a name.  is_first: it is the command's, whose blanks become _ (tools that read the format end the command at a blank). */
static void put(struct lines *lines, const char *text, bool is_first)
{
	for (; *text; text++) {
		unsigned char byte = (unsigned char)*text;

		if (lines->size == lines->capacity) {
			size_t capacity = lines->capacity ? 2 * lines->capacity : 65536;
			char *more = realloc(lines->text, capacity);

			if (!more) {
				lines->failed = true;
				return;
			}
			lines->text = more;
			lines->capacity = capacity;
		}
		/* a frame ends at ';', a line at a control character */
		lines->text[lines->size++] = byte == ';'                  ? ':'
					     : byte < ' ' || byte == 0x7f ? '_'
					     : is_first && byte == ' '    ? '_'
									  : (char)byte;
	}
}

static void put_char(struct lines *lines, char c)
{
	char text[2] = {c, 0};

	put(lines, text, false);
	/* put has replaced a ';' */
	if (!lines->failed)
		lines->text[lines->size - 1] = c;
}

/* path: space for the deepest stack of the tables. */
static void put_stack(struct lines *lines, const struct perfring_profile_tables *tables, uint32_t stack, uint32_t *path)
{
	uint32_t depth = 0;
	char label[512];

	for (; stack != PERFRING_PROFILE_NONE; stack = tables->stacks[stack].caller)
		path[depth++] = tables->frames[tables->stacks[stack].frame].function;
	while (depth--) {
		put_char(lines, ';');
		put(lines, perfring__view_label(&tables->functions[path[depth]], label, sizeof(label)), false);
	}
}

static void add(struct lines *lines, size_t at, uint64_t number)
{
	if (lines->count == lines->space) {
		size_t space = lines->space ? 2 * lines->space : 1024;
		struct line *list = reallocarray(lines->list, space, sizeof(*list));

		if (!list) {
			lines->failed = true;
			return;
		}
		lines->list = list;
		lines->space = space;
	}
	lines->list[lines->count++] = (struct line){at, lines->size - at, number};
}

static int compare(const void *a, const void *b, void *text)
{
	const struct line *one = a, *other = b;
	size_t least = one->length < other->length ? one->length : other->length;
	int order = memcmp((char *)text + one->at, (char *)text + other->at, least);

	return order ? order : one->length < other->length ? -1 : one->length > other->length;
}

int perfring__write_collapsed(const struct perfring_profile_tables *tables, const struct perfring_profile_view *view,
			      FILE *out)
{
	struct lines lines = {.text = NULL};
	uint32_t *path = perfring__view_path(tables);

	lines.failed = !path;
	for (uint32_t i = 0; !lines.failed && i < tables->weight_count; i++) {
		const struct perfring_profile_weight *weight = &tables->weights[i];
		const struct perfring_profile_thread *thread = &tables->threads[weight->thread];
		size_t at = lines.size;

		if (!perfring__view_has(view, weight))
			continue;
		put(&lines, thread->comm ? thread->comm : "[unknown]", true);
		put_stack(&lines, tables, weight->stack, path);
		add(&lines, at, perfring__view_number(view, weight));
	}
	if (!lines.failed && lines.count)
		qsort_r(lines.list, lines.count, sizeof(*lines.list), compare, lines.text);
	for (size_t i = 0; !lines.failed && i < lines.count; i++) {
		const struct line *line = &lines.list[i];
		uint64_t number = line->number;

		while (i + 1 < lines.count && !compare(line, &lines.list[i + 1], lines.text))
			number = perfring__view_plus(number, lines.list[++i].number);
		fwrite(lines.text + line->at, 1, line->length, out);
		fprintf(out, " %" PRIu64 "\n", number);
	}
	for (unsigned kind = PERFRING_PROFILE_LOST_RECORDS; !lines.failed && kind <= PERFRING_PROFILE_LOST_SAMPLES;
	     kind++)
		if (tables->lost[kind])
			fprintf(out, "[lost %" PRIu64 " %s] %" PRIu64 "\n", tables->lost[kind],
				kind == PERFRING_PROFILE_LOST_RECORDS ? "records" : "samples",
				perfring__view_lost(tables, view, kind));
	free(path);
	free(lines.list);
	free(lines.text);
	return lines.failed ? -ENOMEM : 0;
}
