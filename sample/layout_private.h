/* layout_private.h - members of records by their layouts: for swapping, checks, damages and random records.
 *
 * record.c, swap.c, check.c, damage.c, generate.c and text.c walk by these.
 */
#ifndef PERFRING_SAMPLE_LAYOUT_PRIVATE_H
#define PERFRING_SAMPLE_LAYOUT_PRIVATE_H

#include <perfring/layout.h>
#include <perfring/record.h>

/* walk.order: the order of the bytes that are read, and of those left in their place. */
enum {
	LAYOUT_NATIVE,
	LAYOUT_FROM_FOREIGN, /* foreign bytes, left native */
	LAYOUT_TO_FOREIGN,   /* native bytes, left foreign */
};

/* Begins a walk over a member of a record, from record[at] up to record[end - 1], the trailer's beginning. */
void perfring__layout_open_member(struct perfring_layout_walk *walk, enum perfring_kind kind, uint16_t misc,
				  const void *record, uint64_t at, uint64_t end);

/* The same over a field of a sample, or the read block of a record; how: that column of the kind in kinds.def. */
void perfring__layout_open_field(struct perfring_layout_walk *walk, enum perfring_kind kind, uint64_t how,
				 const void *record, uint64_t at, uint64_t end);

/* The minimal size of a member, with its padding; of a choice, that of the first variant. */
uint32_t perfring__layout_least(enum perfring_kind kind);

/* The size of a text; 0 for a string. */
uint32_t perfring__layout_text_size(enum perfring_kind kind);

/* A number of 1, 2, 4 or 8 bytes, in native order. */
static inline uint64_t perfring__number_get(const void *bytes, uint64_t size)
{
	uint64_t number = 0;

	memcpy((unsigned char *)&number + (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? 8 - size : 0), bytes, (size_t)size);
	return number;
}

static inline void perfring__number_put(void *bytes, uint64_t size, uint64_t number)
{
	memcpy(bytes, (unsigned char *)&number + (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? 8 - size : 0), (size_t)size);
}

#endif
