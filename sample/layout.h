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

#endif
