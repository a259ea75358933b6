/* cursor.h - bounded take and put of bytes.
 *
 * The decoders and encoders of sample.h, record.h and swap.h are made of these.  A cursor is a base and two offsets, not two
 * pointers: with a constant format and one test of the least size, the compiler knows the result of every later test, and drops it.
 * Invariant: position <= length.
 *
 * Each function returns true and moves the cursor, or returns false and leaves it, if too few bytes are left.  Numbers are in native
 * byte order, at any address.
 * Context: any thread, also signal handlers; a cursor belongs to one thread.
 */
#ifndef PERFRING_CURSOR_H
#define PERFRING_CURSOR_H

#include <perfring/base.h>

PERFRING_BEGIN

struct perfring_cursor {
	unsigned char *base;
	uint32_t position;
	uint32_t length;
};

static_assert(sizeof(struct perfring_cursor) == sizeof(void *) + 8, "cursor");

/* A cursor over `length` bytes at `bytes`, at `position`.  take only reads them; put writes, so they must be writable then. */
PERFRING_INLINE struct perfring_cursor perfring_cursor_init(const void *bytes, uint32_t position, uint32_t length)
{
	struct perfring_cursor cursor;

	cursor.base = (unsigned char *)(uintptr_t)bytes;
	cursor.position = position;
	cursor.length = length;
	return cursor;
}

/* Bytes from the position to the end. */
PERFRING_INLINE uint32_t perfring_cursor_left(const struct perfring_cursor *cursor)
{
	return cursor->length - cursor->position;
}

/* Written so that clang too can fold it against an earlier test of length. */
PERFRING_INLINE bool perfring_cursor_holds(const struct perfring_cursor *cursor, uint32_t size)
{
	return (uint64_t)cursor->position + size <= cursor->length;
}

/* `size` bytes, which are not copied: *bytes points into the record. */
PERFRING_INLINE bool perfring_take_bytes(struct perfring_cursor *cursor, const void **bytes, uint64_t size)
{
	if (PERFRING_UNLIKELY(size > perfring_cursor_left(cursor)))
		return false;
	*bytes = cursor->base + cursor->position;
	cursor->position += (uint32_t)size;
	return true;
}

/* Takes 8 bytes, in native order, into *value. */
PERFRING_INLINE bool perfring_take_word(struct perfring_cursor *cursor, uint64_t *value)
{
	if (PERFRING_UNLIKELY(!perfring_cursor_holds(cursor, 8)))
		return false;
	memcpy(value, cursor->base + cursor->position, 8);
	cursor->position += 8;
	return true;
}

/* Takes 4 bytes. */
PERFRING_INLINE bool perfring_take_half(struct perfring_cursor *cursor, uint32_t *value)
{
	if (PERFRING_UNLIKELY(!perfring_cursor_holds(cursor, 4)))
		return false;
	memcpy(value, cursor->base + cursor->position, 4);
	cursor->position += 4;
	return true;
}

/* Takes 2 bytes. */
PERFRING_INLINE bool perfring_take_short(struct perfring_cursor *cursor, uint16_t *value)
{
	if (PERFRING_UNLIKELY(!perfring_cursor_holds(cursor, 2)))
		return false;
	memcpy(value, cursor->base + cursor->position, 2);
	cursor->position += 2;
	return true;
}

/* `nr` words, which are not copied.  nr may come from foreign bytes: it is bounded before it is multiplied. */
PERFRING_INLINE bool perfring_take_words(struct perfring_cursor *cursor, const perfring_word **words, uint64_t nr)
{
	if (PERFRING_UNLIKELY(nr > perfring_cursor_left(cursor) / 8))
		return false;
	*words = (const perfring_word *)(const void *)(cursor->base + cursor->position);
	cursor->position += (uint32_t)nr * 8;
	return true;
}

/* Writes `size` bytes; `bytes` may be NULL if it is 0. */
PERFRING_INLINE bool perfring_put_bytes(struct perfring_cursor *cursor, const void *bytes, uint64_t size)
{
	if (PERFRING_UNLIKELY(size > perfring_cursor_left(cursor)))
		return false;
	if (size)
		memcpy(cursor->base + cursor->position, bytes, (size_t)size);
	cursor->position += (uint32_t)size;
	return true;
}

/* Writes 8 bytes, in native order. */
PERFRING_INLINE bool perfring_put_word(struct perfring_cursor *cursor, uint64_t value)
{
	return perfring_put_bytes(cursor, &value, 8);
}

/* Writes 4 bytes. */
PERFRING_INLINE bool perfring_put_half(struct perfring_cursor *cursor, uint32_t value)
{
	return perfring_put_bytes(cursor, &value, 4);
}

/* Writes 2 bytes. */
PERFRING_INLINE bool perfring_put_short(struct perfring_cursor *cursor, uint16_t value)
{
	return perfring_put_bytes(cursor, &value, 2);
}

/* Writes `size` zeros. */
PERFRING_INLINE bool perfring_put_zeros(struct perfring_cursor *cursor, uint64_t size)
{
	if (PERFRING_UNLIKELY(size > perfring_cursor_left(cursor)))
		return false;
	if (size)
		memset(cursor->base + cursor->position, 0, (size_t)size);
	cursor->position += (uint32_t)size;
	return true;
}

PERFRING_END

#endif
