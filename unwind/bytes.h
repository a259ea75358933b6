/* bytes.h - bounded take of little-endian numbers.
 *
 * cfi.c and functions.c read by it.
 *
 * A take beyond the end returns 0 and moves to the end, and `is_short` stays set: a caller may ask once, after several.
 * Context: any.
 */
#ifndef PERFRING_UNWIND_BYTES_H
#define PERFRING_UNWIND_BYTES_H

#include <stdbool.h>
#include <stdint.h>

struct bytes {
	const uint8_t *at;
	const uint8_t *end;
	bool is_short;
};

static inline struct bytes bytes_init(const uint8_t *at, const uint8_t *end)
{
	return (struct bytes){at, end, false};
}

static inline uint64_t bytes_left(const struct bytes *bytes)
{
	return (uint64_t)(bytes->end - bytes->at);
}

static inline void bytes_skip(struct bytes *bytes, uint64_t size)
{
	bytes->is_short = bytes->is_short || size > bytes_left(bytes);
	bytes->at = size > bytes_left(bytes) ? bytes->end : bytes->at + size;
}

/* A number of 1, 2, 4 or 8 bytes. */
static inline uint64_t bytes_take(struct bytes *bytes, unsigned size)
{
	const uint8_t *from = bytes->at;
	uint64_t value = 0;
	unsigned i;

	bytes_skip(bytes, size);
	if (bytes->is_short)
		return 0;
	for (i = 0; i < size; i++)
		value |= (uint64_t)from[i] << (8 * i);
	return value;
}

/* A LEB128 number; bits beyond the 64th are dropped.  At most as many turns as there are bytes. */
static inline uint64_t bytes_leb(struct bytes *bytes, bool is_signed)
{
	uint64_t value = 0;
	unsigned shift = 0;

	while (bytes->at < bytes->end) {
		uint8_t byte = *bytes->at++;

		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		shift = shift < 64 ? shift + 7 : shift;
		if (byte & 0x80)
			continue;
		if (is_signed && shift < 64 && (byte & 0x40))
			value |= ~(uint64_t)0 << shift;
		return value;
	}
	bytes->is_short = true;
	return 0;
}

#endif
