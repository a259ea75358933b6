/* members.c - the members of records as rows.
 *
 * The rows are records.def, in an array; a record's are found by its type.
 */
#include "members.h"

const struct member_row *perfring__members_of(uint32_t type)
{
	static const struct member_row none = {.kind = PERFRING_KINDS};

	switch (type) {
#define PERFRING_RECORD(NAME, type, noun) \
	case PERFRING_RECORD_##NAME: { \
		typedef struct perfring_record_##noun record; \
		static const struct member_row rows[] = {
#define ROW(kind, member, show, when) \
	{#member, offsetof(record, member), sizeof(perfring_kind_##kind), PERFRING_KIND_##kind, SHOW_##show, when},
#define PERFRING_MEMBER(kind, member, show) ROW(kind, member, show, false)
#define PERFRING_MEMBER_WHEN(when, kind, member, show) ROW(kind, member, show, true)
#define PERFRING_RECORD_END(NAME, type, noun) \
	{NULL, sizeof(record), 0, PERFRING_KINDS, 0, false}, \
	} \
	; \
\
	return rows; \
	}
#include <perfring/records.def>
	default:
		return &none;
	}
}

bool perfring__members_has(const struct perfring_record *record, const struct member_row *row)
{
	long i = 0, which = row - perfring__members_of(record->type);

	if (!row->is_conditional)
		return true;
	switch (record->type) {
#define PERFRING_RECORD(NAME, type, noun) \
	case PERFRING_RECORD_##NAME: { \
		const struct perfring_record_##noun *is = &record->is.noun; \
\
		(void)is;
#define PERFRING_MEMBER(kind, member, show) i++;
#define PERFRING_MEMBER_WHEN(when, kind, member, show) \
	if (i++ == which) \
		return when;
#define PERFRING_RECORD_END(NAME, type, noun) \
	break; \
	}
#include <perfring/records.def>
	default:
		break;
	}
	return false;
}
