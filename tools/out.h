/* out.h - text for stdout, millions of lines: gathered here, written in large pieces. */
#ifndef OUT_H
#define OUT_H

#include <perfring/text.h>
#include "tools.h"

/* Text that precedes what stdio's buffer gets from now on: a caller that prints, complains or flushes by other means
 * flushes this first. */
extern struct perfring_out {
	char *text;
	size_t at, room;
} perfring_out;

enum {
	PERFRING_OUT_PIECE = 1 << 17, /* bytes written at once */
	PERFRING_OUT_DIGITS = 24,     /* no number takes more */
};

/* Writes the gathered text, and makes space for `size` bytes. */
void perfring_out_flush(size_t size);
void perfring_out_close(void);

/* Space for `size` bytes; the caller advances `at`.  Valid until the next call. */
static inline char *perfring_out_room(size_t size)
{
	if (PERFRING_UNLIKELY(perfring_out.room - perfring_out.at < size))
		perfring_out_flush(size);
	return perfring_out.text + perfring_out.at;
}

static inline void perfring_out_char(char c)
{
	*perfring_out_room(1) = c;
	perfring_out.at++;
}

/* Usually a literal, whose length the compiler knows. */
static inline __attribute__((always_inline)) void perfring_out_text(const char *text)
{
	size_t size = strlen(text);

	memcpy(perfring_out_room(size), text, size);
	perfring_out.at += size;
}

/* The digits before `end`; the text has space after them: a copy of fixed size is faster. */
static inline void perfring_out_digits(const char *text, const char *end)
{
	memcpy(perfring_out_room(PERFRING_OUT_DIGITS), text, PERFRING_OUT_DIGITS);
	perfring_out.at += (size_t)(end - text);
}

static inline void perfring_out_decimal(uint64_t number)
{
	char room[2 * PERFRING_OUT_DIGITS] = {0}, *end = room + PERFRING_OUT_DIGITS;

	perfring_out_digits(perfring_digits_decimal(end, number), end);
}

static inline void perfring_out_signed(int64_t number)
{
	if (number < 0)
		perfring_out_char('-');
	perfring_out_decimal(number < 0 ? 0 - (uint64_t)number : (uint64_t)number);
}

static inline void perfring_out_hex(uint64_t number)
{
	char room[2 * PERFRING_OUT_DIGITS] = {0}, *end = room + PERFRING_OUT_DIGITS;

	perfring_out_digits(perfring_digits_hex(end, number), end);
}

/* Seconds, with nine or six digits after the point. */
static inline void perfring_out_time(uint64_t time, bool nanoseconds)
{
	char room[2 * PERFRING_OUT_DIGITS] = {0}, *end = room + PERFRING_OUT_DIGITS, *text = end;
	uint32_t fraction = (uint32_t)(time % 1000000000);

	if (nanoseconds) {
		*--text = (char)('0' + fraction % 10);
		text = perfring_digits_padded(text, fraction / 10, 8);
	} else {
		text = perfring_digits_padded(text, fraction / 1000, 6);
	}
	*--text = '.';
	perfring_out_digits(perfring_digits_decimal(text, time / 1000000000), end);
}

/* As perfring_tool_print; `solid` makes blanks \x20, so that a column stays one. */
void perfring_out_print(const char *text, bool solid);

#endif
