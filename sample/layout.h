/* layout.h - the members of records by their layouts, for those who swap, check, damage and draw them. */
#ifndef PERFRING_SAMPLE_LAYOUT_H
#define PERFRING_SAMPLE_LAYOUT_H

#include <perfring/layout.h>
#include <perfring/record.h>

/* walk.order: what is read, and what stays in its place. */
enum {
	LAYOUT_NATIVE,
	LAYOUT_FROM_OTHER, /* foreign bytes, left native */
	LAYOUT_TO_OTHER,   /* native bytes, left foreign */
};

/* Begins a walk over a member of a record, from record[at] up to record[end - 1], the trailer's beginning. */
void perfring_layout_open_member(struct perfring_layout_walk *walk, enum perfring_kind kind, uint16_t misc, const void *record,
				 uint64_t at, uint64_t end);

/* The same over a field of a sample, or the read block of a record, by what fields.def's kinds have in their column `how`. */
void perfring_layout_open_field(struct perfring_layout_walk *walk, enum perfring_kind kind, uint64_t how,
				const void *record, uint64_t at, uint64_t end);

/* The fewest bytes that a member takes up, with its padding; a choice is what its layout has first. */
uint32_t perfring_layout_least(enum perfring_kind kind);

/* The bytes of a text, 0 of a string. */
uint32_t perfring_layout_text_size(enum perfring_kind kind);

/* A number of 1, 2, 4 or 8 bytes, in our order. */
static inline uint64_t perfring_number_get(const void *bytes, uint64_t size)
{
	uint64_t number = 0;

	memcpy((unsigned char *)&number + (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? 8 - size : 0), bytes, (size_t)size);
	return number;
}

static inline void perfring_number_put(void *bytes, uint64_t size, uint64_t number)
{
	memcpy(bytes, (unsigned char *)&number + (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? 8 - size : 0), (size_t)size);
}

#endif
