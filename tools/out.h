/* out.h - text for stdout, millions of lines: gathered here, written in large pieces.
 *
 * dump, script and report print by it.  One thread; text of others is escaped by tool_escape (tools.h) before it is put.
 */
#ifndef PERFRING_TOOLS_OUT_H
#define PERFRING_TOOLS_OUT_H

#include <perfring/text.h>
#include "tools.h"

/* Text that precedes what stdio's buffer gets from now on: a caller that prints, complains or flushes by other means
 * flushes this first. */
extern struct tool_out {
	char *text;
	size_t at, capacity;
} tool_out;

enum {
	TOOL_OUT_PIECE = 1 << 17, /* bytes written at once */
	TOOL_OUT_DIGITS = 24,     /* no number takes more */
	TOOL_OUT_FORM = 96,       /* bytes of a number or two with what stands around them */
};

/* Writes the gathered text, and makes space for `size` bytes. */
void tool_out_flush(size_t size);
void tool_out_close(void);

/* Space for `size` bytes; the caller advances `at`.  Valid until the next call. */
static inline char *tool_out_space(size_t size)
{
	if (PERFRING_UNLIKELY(tool_out.capacity - tool_out.at < size))
		tool_out_flush(size);
	return tool_out.text + tool_out.at;
}

static inline void tool_out_char(char c)
{
	*tool_out_space(1) = c;
	tool_out.at++;
}

/* Usually a literal, whose length the compiler knows. */
static inline __attribute__((always_inline)) void tool_out_text(const char *text)
{
	size_t size = strlen(text);

	memcpy(tool_out_space(size), text, size);
	tool_out.at += size;
}

/* The digits before `end`; the text has space after them: a copy of fixed size is faster. */
static inline void tool_out_digits(const char *text, const char *end)
{
	memcpy(tool_out_space(TOOL_OUT_DIGITS), text, TOOL_OUT_DIGITS);
	tool_out.at += (size_t)(end - text);
}

static inline void tool_out_decimal(uint64_t number)
{
	char buffer[2 * TOOL_OUT_DIGITS] = {0}, *end = buffer + TOOL_OUT_DIGITS;

	tool_out_digits(perfring_digits_decimal(end, number), end);
}

static inline void tool_out_signed(int64_t number)
{
	if (number < 0)
		tool_out_char('-');
	tool_out_decimal(number < 0 ? 0 - (uint64_t)number : (uint64_t)number);
}

static inline void tool_out_hex(uint64_t number)
{
	char buffer[2 * TOOL_OUT_DIGITS] = {0}, *end = buffer + TOOL_OUT_DIGITS;

	tool_out_digits(perfring_digits_hex(end, number), end);
}

/* Seconds, with nine or six digits after the point. */
static inline void tool_out_time(uint64_t time, bool nanoseconds)
{
	char buffer[2 * TOOL_OUT_DIGITS] = {0}, *end = buffer + TOOL_OUT_DIGITS, *text = end;
	uint32_t fraction = (uint32_t)(time % 1000000000);

	if (nanoseconds) {
		*--text = (char)('0' + fraction % 10);
		text = perfring_digits_padded(text, fraction / 10, 8);
	} else {
		text = perfring_digits_padded(text, fraction / 1000, 6);
	}
	*--text = '.';
	tool_out_digits(perfring_digits_decimal(text, time / 1000000000), end);
}

/* As printf, of numbers: TOOL_OUT_FORM bytes at most. */
void tool_out_form(const char *form, ...) __attribute__((format(printf, 1, 2)));

/* As tool_print; `solid` makes blanks \x20, so that a column stays one. */
void tool_out_print(const char *text, bool solid);

#endif
