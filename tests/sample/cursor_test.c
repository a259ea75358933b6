/* cursor_test.c - takes and puts stay within their bytes. */
#include "test.h"

#include <perfring/cursor.h>
#include <stdlib.h>

Test(cursor, takes_in_order, .timeout = 30)
{
	struct __attribute__((__packed__)) {
		uint16_t quarter;
		uint32_t half;
		uint64_t word;
		char rest[2];
	} in = {1, 2, 3, {'x', 'y'}};
	struct perfring_cursor cursor = perfring_cursor_init(&in, 0, sizeof(in));
	const void *rest = NULL;
	uint16_t quarter = 0;
	uint32_t half = 0;
	uint64_t word = 0;

	cr_assert(perfring_take_short(&cursor, &quarter));
	cr_assert_eq(quarter, 1);
	cr_assert(perfring_take_half(&cursor, &half));
	cr_assert_eq(half, 2);
	cr_assert(perfring_take_word(&cursor, &word));
	cr_assert_eq(word, 3);
	cr_assert_not(perfring_take_half(&cursor, &half));
	cr_assert_not(perfring_take_word(&cursor, &word));
	cr_assert_eq(perfring_cursor_left(&cursor), 2);
	cr_assert(perfring_take_bytes(&cursor, &rest, 2));
	cr_assert(rest == in.rest);
	cr_assert_not(perfring_take_short(&cursor, &quarter));
	cr_assert(perfring_take_bytes(&cursor, &rest, 0));
	cr_assert_eq(cursor.position, 16);
}

/* Lengths from the bytes may be anything. */
Test(cursor, refuses_what_is_not_there, .timeout = 30)
{
	static const uint64_t many[] = {
		3, UINT64_C(1) << 29, UINT64_C(1) << 32, UINT64_C(1) << 61, UINT64_MAX / 8, UINT64_MAX};
	const perfring_word *words = NULL;
	const void *bytes = NULL;
	struct perfring_cursor cursor;
	uint64_t *buffer = malloc(16);
	size_t i;

	cr_assert_not_null(buffer);
	buffer[0] = 7;
	buffer[1] = 8;
	cursor = perfring_cursor_init(buffer, 0, 16);
	for (i = 0; i < sizeof(many) / sizeof(many[0]); i++) {
		cr_assert_not(perfring_take_words(&cursor, &words, many[i]));
		cr_assert_not(perfring_take_bytes(&cursor, &bytes, many[i] < 17 ? 17 : many[i]));
		cr_assert_eq(cursor.position, 0);
	}
	cr_assert(perfring_take_words(&cursor, &words, 2));
	cr_assert_eq(words[1], 8);
	cr_assert_eq(perfring_cursor_left(&cursor), 0);
	cr_assert(perfring_take_words(&cursor, &words, 0));
	cr_assert_not(perfring_take_words(&cursor, &words, 1));
	free(buffer);
}

/* Near the end of the largest length, sums must not wrap. */
Test(cursor, holds_at_the_end_of_the_range, .timeout = 30)
{
	struct perfring_cursor cursor = perfring_cursor_init(NULL, UINT32_MAX - 4, UINT32_MAX);

	cr_assert(perfring_cursor_holds(&cursor, 4));
	cr_assert_not(perfring_cursor_holds(&cursor, 5));
	cr_assert_not(perfring_cursor_holds(&cursor, UINT32_MAX));
}

Test(cursor, puts_and_stops, .timeout = 30)
{
	static const struct __attribute__((__packed__)) {
		uint16_t quarter;
		uint32_t half;
		uint64_t word;
		char rest[5];
	} expected = {0x1234, 0x12345678, UINT64_C(0x0102030405060708), {'a', 'b'}};
	unsigned char *buffer = calloc(1, sizeof(expected));
	struct perfring_cursor cursor = perfring_cursor_init(buffer, 0, sizeof(expected));

	cr_assert_not_null(buffer);
	cr_assert(perfring_put_short(&cursor, 0x1234));
	cr_assert(perfring_put_half(&cursor, 0x12345678));
	cr_assert(perfring_put_word(&cursor, UINT64_C(0x0102030405060708)));
	cr_assert(perfring_put_bytes(&cursor, "ab", 2));
	cr_assert(perfring_put_bytes(&cursor, NULL, 0));
	cr_assert_not(perfring_put_half(&cursor, 1));
	cr_assert_not(perfring_put_zeros(&cursor, UINT64_MAX));
	cr_assert_not(perfring_put_bytes(&cursor, &expected, UINT64_C(1) << 32));
	cr_assert(perfring_put_zeros(&cursor, 3));
	cr_assert_not(perfring_put_zeros(&cursor, 1));
	cr_assert_eq(memcmp(buffer, &expected, sizeof(expected)), 0);
	free(buffer);
}
