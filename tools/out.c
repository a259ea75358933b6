/* out.c - text on its way to stdout, by the million lines, and to stderr. */
#include <stdarg.h>
#include <search.h>
#include <stdlib.h>
#include "out.h"

struct perfring_out perfring_out;

void perfring_out_flush(size_t size)
{
	if (perfring_out.at)
		fwrite(perfring_out.text, 1, perfring_out.at, stdout);
	perfring_out.at = 0;
	if (perfring_out.room >= size)
		return;
	perfring_out.room = size < PERFRING_OUT_PIECE ? PERFRING_OUT_PIECE : size;
	perfring_out.text = perfring_tool_room(perfring_out.text, perfring_out.room, 1);
}

void perfring_out_close(void)
{
	free(perfring_out.text);
	perfring_out.text = NULL;
	perfring_out.at = perfring_out.room = 0;
}

void perfring_out_print(const char *text, bool solid)
{
	for (; *text; text++)
		perfring_out.at += perfring_tool_escape(perfring_out_room(4), (unsigned char)*text, solid);
}

void *perfring_tool_room(void *old, size_t nr, size_t size)
{
	void *room = reallocarray(old, nr, size);

	if (!room) {
		perfring_tool_complain("out of memory");
		exit(PERFRING_TOOL_FAILED);
	}
	return room;
}

void **perfring_tool_insert(void *item, void **tree, int (*compare)(const void *, const void *))
{
	void *at = tsearch(item, tree, compare);

	if (!at) {
		free(item); /* nothing else has it */
		perfring_tool_complain("out of memory");
		exit(PERFRING_TOOL_FAILED);
	}
	return at;
}

int perfring_tool_print(FILE *out, const char *text, int width, bool solid)
{
	char room[4];
	int used = 0;

	for (; *text; text++) {
		unsigned size = perfring_tool_escape(room, (unsigned char)*text, solid);

		used += (int)size;
		for (unsigned i = 0; out && i < size; i++)
			putc_unlocked(room[i], out);
	}
	if (out && used < width)
		fprintf(out, "%*s", width - used, "");
	return used < width ? width : used;
}

void perfring_tool_print_right(FILE *out, const char *text, int width)
{
	int used = perfring_tool_print(NULL, text, 0, false);

	if (used < width)
		fprintf(out, "%*s", width - used, "");
	perfring_tool_print(out, text, 0, false);
}

void perfring_tool_print_bytes(const struct perf_event_header *record)
{
	const unsigned char *bytes = (const unsigned char *)record;
	unsigned size = record->size, at, i;

	perfring_out_flush(0);
	for (at = 0; at < size; at += 16) {
		printf("    %04x ", at);
		for (i = at; i < at + 16; i++)
			if (i < size)
				printf(" %02x", bytes[i]);
			else
				fputs("   ", stdout);
		fputs("  ", stdout);
		for (i = at; i < at + 16 && i < size; i++)
			putchar(bytes[i] >= 0x20 && bytes[i] < 0x7f ? bytes[i] : '.');
		putchar('\n');
	}
}

void perfring_tool_complain(const char *form, ...)
{
	static const char beyond[] = "perfring: out of memory\n";
	char *text = NULL, *line = NULL, *end;
	va_list list;

	va_start(list, form);
	if (vasprintf(&text, form, list) >= 0)
		line = malloc(sizeof("perfring: \n") + 4 * strlen(text));
	else
		text = NULL;
	va_end(list);
	perfring_out_flush(0);
	fflush(stdout);
	/* in one piece: others write there too */
	if (line) {
		end = stpcpy(line, "perfring: ");
		for (const char *at = text; *at; at++)
			end += perfring_tool_escape(end, (unsigned char)*at, false);
		*end++ = '\n';
		fwrite(line, 1, (size_t)(end - line), stderr);
	} else {
		fwrite(beyond, 1, sizeof(beyond) - 1, stderr);
	}
	free(line);
	free(text);
}
