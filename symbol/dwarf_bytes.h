/* dwarf_bytes.h - bounded takes of DWARF's numbers, of either byte order.
 *
 * dwarf_entries.c, dwarf_ranges.c and dwarf_rows.c read by it.  Inline, without state but for the bytes that are left.
 *
 * A take beyond the end returns 0 and moves to the end, and `is_short` stays set: a caller may ask once, after several.
 */
#ifndef PERFRING_SYMBOL_DWARF_BYTES_H
#define PERFRING_SYMBOL_DWARF_BYTES_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct perfring_dwarf_bytes {
	const unsigned char *at;
	const unsigned char *end;
	bool is_big;
	bool is_short;
};

static inline uint64_t perfring__dwarf_left(const struct perfring_dwarf_bytes *bytes)
{
	return (uint64_t)(bytes->end - bytes->at);
}

static inline void perfring__dwarf_skip(struct perfring_dwarf_bytes *bytes, uint64_t size)
{
	bytes->is_short = bytes->is_short || size > perfring__dwarf_left(bytes);
	bytes->at = bytes->is_short ? bytes->end : bytes->at + size;
}

/* A number of up to 8 bytes. */
static inline uint64_t perfring__dwarf_number(const unsigned char *from, unsigned size, bool is_big)
{
	uint64_t number = 0;
	uint32_t word;
	uint16_t half;

	switch (size) {
	case 1:
		return *from;
	case 2:
		memcpy(&half, from, 2);
		return is_big ? be16toh(half) : le16toh(half);
	case 4:
		memcpy(&word, from, 4);
		return is_big ? be32toh(word) : le32toh(word);
	case 8:
		memcpy(&number, from, 8);
		return is_big ? be64toh(number) : le64toh(number);
	default:
		for (unsigned i = 0; i < size; i++)
			number |= (uint64_t)from[is_big ? size - 1 - i : i] << 8 * i;
		return number;
	}
}

static inline uint64_t perfring__dwarf_take(struct perfring_dwarf_bytes *bytes, unsigned size)
{
	const unsigned char *from = bytes->at;

	perfring__dwarf_skip(bytes, size);
	return bytes->is_short ? 0 : perfring__dwarf_number(from, size, bytes->is_big);
}

/* A LEB128 number; bits beyond the 64th are dropped.  At most as many turns as there are bytes. */
static inline uint64_t perfring__dwarf_leb_long(struct perfring_dwarf_bytes *bytes, bool is_signed)
{
	uint64_t number = 0;
	unsigned shift = 0;

	while (bytes->at < bytes->end) {
		unsigned char byte = *bytes->at++;

		if (shift < 64)
			number |= (uint64_t)(byte & 0x7f) << shift;
		shift = shift < 64 ? shift + 7 : shift;
		if (byte & 0x80)
			continue;
		if (is_signed && shift < 64 && byte & 0x40)
			number |= ~UINT64_C(0) << shift;
		return number;
	}
	bytes->is_short = true;
	return 0;
}

/* Most are of one byte or two. */
static inline uint64_t perfring__dwarf_leb(struct perfring_dwarf_bytes *bytes)
{
	const unsigned char *at = bytes->at;

	if (at < bytes->end && at[0] < 0x80) {
		bytes->at++;
		return at[0];
	}
	if (bytes->end - at >= 2 && at[1] < 0x80) {
		bytes->at += 2;
		return (at[0] & 0x7fu) | (uint64_t)at[1] << 7;
	}
	return perfring__dwarf_leb_long(bytes, false);
}

static inline int64_t perfring__dwarf_leb_signed(struct perfring_dwarf_bytes *bytes)
{
	if (bytes->at < bytes->end && *bytes->at < 0x80)
		return (*bytes->at++ ^ 0x40) - 0x40;
	return (int64_t)perfring__dwarf_leb_long(bytes, true);
}

/* A text with its NUL, or NULL. */
static inline const char *perfring__dwarf_text(struct perfring_dwarf_bytes *bytes)
{
	const unsigned char *from = bytes->at,
			    *end = from < bytes->end ? memchr(from, 0, (size_t)(bytes->end - from)) : NULL;

	bytes->is_short = bytes->is_short || !end;
	bytes->at = end ? end + 1 : bytes->end;
	return end ? (const char *)from : NULL;
}

/* The length at the beginning of a unit, or of a table of lines.  Returns the size of offsets in it, or 0: there is none. */
static inline unsigned perfring__dwarf_take_length(struct perfring_dwarf_bytes *bytes, uint64_t *length)
{
	unsigned size = 4;

	*length = perfring__dwarf_take(bytes, 4);
	if (*length == UINT32_MAX) {
		size = 8;
		*length = perfring__dwarf_take(bytes, 8);
	} else if (*length >= 0xfffffff0) {
		return 0;
	}
	return bytes->is_short ? 0 : size;
}

#endif
