/* out.c - text on its way to stdout, by the million lines, and to stderr.
 *
 * One buffer of the process, written when it is full, before a complaint, and at the end.  Without memory the program ends with
 * one line.
 */
#include <stdarg.h>
#include <search.h>
#include <stdlib.h>
#include "out.h"
#include "progress.h"

struct tool_out tool_out;

void tool_out_flush(size_t size)
{
	if (tool_out.at)
		fwrite(tool_out.text, 1, tool_out.at, stdout);
	tool_out.at = 0;
	if (tool_out.capacity >= size)
		return;
	tool_out.capacity = size < TOOL_OUT_PIECE ? TOOL_OUT_PIECE : size;
	tool_out.text = tool_allocate(tool_out.text, tool_out.capacity, 1);
}

void tool_out_close(void)
{
	free(tool_out.text);
	tool_out.text = NULL;
	tool_out.at = tool_out.capacity = 0;
}

void tool_out_print(const char *text, bool solid)
{
	for (; *text; text++)
		tool_out.at += tool_escape(tool_out_space(4), (unsigned char)*text, solid);
}

void tool_out_of_memory(void)
{
	tool_complain("out of memory");
	exit(TOOL_FAILED);
}

void *tool_allocate(void *old, size_t nr, size_t size)
{
	void *buffer = reallocarray(old, nr, size);

	if (!buffer)
		tool_out_of_memory();
	return buffer;
}

void **tool_insert(void *item, void **tree, int (*compare)(const void *, const void *))
{
	void *at = tsearch(item, tree, compare);

	if (!at) {
		free(item); /* nothing else has it */
		tool_out_of_memory();
	}
	return at;
}

int tool_print(FILE *out, const char *text, int width, bool solid)
{
	char buffer[4];
	int used = 0;

	for (; *text; text++) {
		unsigned size = tool_escape(buffer, (unsigned char)*text, solid);

		used += (int)size;
		for (unsigned i = 0; out && i < size; i++)
			putc_unlocked(buffer[i], out);
	}
	if (out && used < width)
		fprintf(out, "%*s", width - used, "");
	return used < width ? width : used;
}

void tool_print_right(FILE *out, const char *text, int width)
{
	int used = tool_print(NULL, text, 0, false);

	if (used < width)
		fprintf(out, "%*s", width - used, "");
	tool_print(out, text, 0, false);
}

void tool_out_form(const char *form, ...)
{
	va_list list;
	int length;

	va_start(list, form);
	length = vsnprintf(tool_out_space(TOOL_OUT_FORM), TOOL_OUT_FORM, form, list);
	va_end(list);
	tool_out.at += length > 0 && length < TOOL_OUT_FORM ? (size_t)length : 0;
}

void tool_print_bytes(const struct perf_event_header *record)
{
	const unsigned char *bytes = (const unsigned char *)record;
	unsigned size = record->size, at, i;

	tool_out_flush(0);
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

void tool_complain(const char *form, ...)
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
	tool_progress_clear();
	tool_out_flush(0);
	fflush(stdout);
	/* in one piece: others write there too */
	if (line) {
		end = stpcpy(line, "perfring: ");
		for (const char *at = text; *at; at++)
			end += tool_escape(end, (unsigned char)*at, false);
		*end++ = '\n';
		fwrite(line, 1, (size_t)(end - line), stderr);
	} else {
		fwrite(beyond, 1, sizeof(beyond) - 1, stderr);
	}
	free(line);
	free(text);
}
