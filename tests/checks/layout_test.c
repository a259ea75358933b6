/* layout_test.c - structs that only append: where each member of a sample, a trailer, a record and the columns lies.
 *
 * Once there, a member stays: programs that were compiled against an older header find theirs.  A new field gets a line at the
 * end. */
#include <perfring/record.h>
#include <perfring/sample.h>

#include "test.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct place {
	const char *member;
	size_t sample;
	size_t trailer; /* 0: it is not in there */
	size_t column;  /* its index and 1; 0: it has none */
};

/* By hand, on machines of 64 bits. */
static const struct place should[] = {
	{"identifier", 24, 8, 1},
	{"ip", 32, 0, 2},
	{"pid", 40, 16, 3},
	{"tid", 44, 20, 4},
	{"time", 48, 24, 5},
	{"addr", 56, 0, 6},
	{"id", 64, 32, 7},
	{"stream_id", 72, 40, 8},
	{"cpu", 80, 48, 9},
	{"cpu_reserved", 84, 52, 10},
	{"period", 88, 0, 11},
	{"read", 96, 0, 0},
	{"callchain", 136, 0, 0},
	{"raw", 152, 0, 0},
	{"branch_stack", 168, 0, 0},
	{"regs_user", 208, 0, 0},
	{"stack_user", 240, 0, 0},
	{"weight", 264, 0, 12},
	{"weight_struct", 272, 0, 0},
	{"data_src", 280, 0, 13},
	{"transaction", 288, 0, 14},
	{"regs_intr", 296, 0, 0},
	{"phys_addr", 328, 0, 15},
	{"cgroup", 336, 0, 16},
	{"data_page_size", 344, 0, 17},
	{"code_page_size", 352, 0, 18},
	{"aux", 360, 0, 0},
};

#define IN_no(a) 0
#define IN_yes(a) offsetof(struct perfring_trailer, a)
#define IN_last(a) offsetof(struct perfring_trailer, a)
#define PLACE(trailer, a, column) {#a, offsetof(struct perfring_sample, a), IN_##trailer(a), column},
#define COLUMN(a) offsetof(struct perfring_columns, a) / sizeof(void *) + 1
#define PLACES_number(trailer, a, b) PLACE(trailer, a, COLUMN(a))
#define PLACES_numbers(trailer, a, b) PLACE(trailer, a, COLUMN(a)) PLACE(trailer, b, COLUMN(b))
#define PLACES_own(trailer, a, b) PLACE(trailer, a, 0)

static const struct place is[] = {
#define PERFRING_FIELD(NAME, bit, kind, a, b, trailer, ...) \
	PERFRING_FIELD_BY(PLACES_, PERFRING_FIELD_KIND_##kind)(trailer, a, b)
#include <perfring/fields.def>
};

Test(layout, each_member_stays)
{
	cr_assert_eq(COUNT(is), COUNT(should), "%zu members, %zu lines: a new member gets its line", COUNT(is),
		     COUNT(should));
	if (sizeof(void *) != 8)
		cr_skip_test("SKIP-ENV: offsets: pointers of %zu bytes: a machine of 64 bits", sizeof(void *));
	for (size_t i = 0, j; i < COUNT(is); i++) {
		for (j = 0; j < COUNT(should) && strcmp(is[i].member, should[j].member); j++)
			;
		cr_assert_lt(j, COUNT(should), "%s has no line", is[i].member);
		cr_assert_eq(is[i].sample, should[j].sample, "%s: at %zu of a sample", is[i].member, is[i].sample);
		cr_assert_eq(is[i].trailer, should[j].trailer, "%s: at %zu of a trailer", is[i].member, is[i].trailer);
		cr_assert_eq(is[i].column, should[j].column, "%s: column %zu", is[i].member, is[i].column);
	}
}

/* Those that are no fields. */
Test(layout, heads)
{
	cr_assert_eq(offsetof(struct perfring_sample, present), 0);
	cr_assert_eq(offsetof(struct perfring_sample, trailing), 8);
	cr_assert_eq(offsetof(struct perfring_trailer, present), 0);
	cr_assert_eq(offsetof(struct perfring_record, type), 0);
	cr_assert_eq(offsetof(struct perfring_record, misc), 4);
	cr_assert_eq(offsetof(struct perfring_record, size), 6);
	cr_assert_eq(offsetof(struct perfring_record, trailing), 8);
	if (sizeof(void *) != 8)
		cr_skip_test("SKIP-ENV: offsets: pointers of %zu bytes: a machine of 64 bits", sizeof(void *));
	cr_assert_eq(offsetof(struct perfring_sample, trailing_size), 16);
	cr_assert_eq(offsetof(struct perfring_sample, misc), 20);
	cr_assert_eq(offsetof(struct perfring_record, trailing_size), 16);
	cr_assert_eq(offsetof(struct perfring_record, trailer), 24);
	cr_assert_eq(offsetof(struct perfring_record, is), 96);
	cr_assert_eq(sizeof(struct perfring_sample), 408);
	cr_assert_eq(sizeof(struct perfring_trailer), 72);
	cr_assert_eq(sizeof(struct perfring_record), 288);
	cr_assert_eq(sizeof(struct perfring_columns), 192);
}
