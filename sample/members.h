/* members.h - the members of records, in wire order, as rows that a loop can walk.
 *
 * swap.c, check.c, damage.c, generate.c and text.c walk by rows; record.c, which must be fast, expands the table instead.
 */
#ifndef PERFRING_SAMPLE_MEMBERS_H
#define PERFRING_SAMPLE_MEMBERS_H

#include <perfring/record.h>

/* The column `show` of the tables.  Groups of values.def come first. */
enum show {
#define PERFRING_VALUE_GROUP(group, prefix, is_set) SHOW_##group,
#include <perfring/values.def>
	SHOW_float,
	SHOW_dec,
	SHOW_signed,
	SHOW_hex,
	SHOW_time,
	SHOW_str,
	SHOW_both,
	SHOW_data_src,
	SHOW_sample,
	SHOW_flag,
};

struct member_row {
	const char *name;
	uint16_t offset; /* in `is` of struct perfring_record */
	uint16_t size;   /* there */
	uint8_t kind;    /* PERFRING_KIND_; PERFRING_KINDS after the last row */
	uint8_t show;
	bool is_conditional;
};

/* The first row of a type, or the end row of a type that is not in records.def. */
const struct member_row *perfring__members_of(uint32_t type);

/* Whether a record has this member.  The members before it must be decoded. */
bool perfring__members_has(const struct perfring_record *record, const struct member_row *row);

static inline void *perfring__member_in(struct perfring_record *record, const struct member_row *row)
{
	return (unsigned char *)&record->is + row->offset;
}

static inline const void *perfring__member_of(const struct perfring_record *record, const struct member_row *row)
{
	return (const unsigned char *)&record->is + row->offset;
}

#endif
