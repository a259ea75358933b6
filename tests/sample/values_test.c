/* values_test.c - every number of our tables against <linux/perf_event.h>. */
#include "test.h"

#include <perfring/record.h>
#include <sys/ioctl.h>

struct abi_number {
	const char *name;
	uint64_t value;
};

struct abi_flag {
	const char *name;
	uint32_t width;
};

struct abi_member {
	const char *name;
	size_t offset;
	size_t size;
};

#include "abi_names.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Everything we have, under the kernel's names. */
static const struct abi_number ours[] = {
#define PERFRING_FIELD(NAME, bit, ...) {"PERF_SAMPLE_" #NAME, UINT64_C(1) << (bit)},
#include <perfring/fields.def>
#define PERFRING_RECORD(NAME, type, noun) {"PERF_RECORD_" #NAME, (type)},
#define PERFRING_MEMBER(kind, member, show)
#define PERFRING_RECORD_END(NAME, type, noun)
#include <perfring/records.def>
#define PERFRING_VALUE(group, NAME, value) {"PERF_" #NAME, (uint64_t)(int64_t)(value)},
#include <perfring/values.def>
#define PERFRING_ATTR_SIZE(version, size) {"PERF_ATTR_SIZE_VER" #version, (size)},
#include <perfring/values.def>
};

/* What the header names and we do not. */
static const struct {
	const char *begins;
	const char *ends;
} exceptions[] = {
	{"PERF_", "_MAX"},                  /* "non-ABI": one more than the last */
	{"PERF_SAMPLE_BRANCH_", "_SHIFT"},  /* the bits themselves are held */
	{"PERF_SAMPLE_BRANCH_PLM_ALL", ""}, /* three bits in one */
	{"PERF_SAMPLE_WEIGHT_TYPE", ""},    /* two bits in one */
	{"PERF_TXN_ABORT_MASK", ""},        /* TXN_ABORT_SHIFT says as much */
	{"PERF_PMU_TYPE_SHIFT", ""},        /* where hybrid CPUs put a PMU into config */
	{"PERF_HW_EVENT_MASK", ""},         /* the same */
	{"PERF_BR_ARM64_", ""},             /* other names of BR_NEW_ARCH_n */
	{"PERF_EVENT_IOC_", ""},            /* ioctls: the header's own are used */
	{"PERF_IOC_FLAG_GROUP", ""},        /* the same */
};

static bool is_exception(const char *name)
{
	size_t i, size = strlen(name), begin, end;

	for (i = 0; i < COUNT(exceptions); i++) {
		begin = strlen(exceptions[i].begins);
		end = strlen(exceptions[i].ends);
		if (begin + end <= size && !strncmp(name, exceptions[i].begins, begin) &&
		    !strcmp(name + size - end, exceptions[i].ends))
			return true;
	}
	return false;
}

static const struct abi_number *find(const char *name)
{
	size_t i;

	for (i = 0; i < COUNT(ours); i++)
		if (!strcmp(ours[i].name, name))
			return &ours[i];
	return NULL;
}

Test(values, header_knows_nothing_that_we_do_not, .timeout = 30)
{
	size_t i, held = 0;

	for (i = 0; i < COUNT(abi_numbers); i++) {
		const struct abi_number *mine = find(abi_numbers[i].name);

		if (!mine) {
			cr_assert(is_exception(abi_numbers[i].name), "<linux/perf_event.h> has %s, the tables do not",
				  abi_numbers[i].name);
			continue;
		}
		cr_assert_eq(mine->value, abi_numbers[i].value, "%s is %llx in the tables, %llx in the header",
			     mine->name, (unsigned long long)mine->value, (unsigned long long)abi_numbers[i].value);
		held++;
	}
	/* Linux 5.10's header has about 200 of them, 6.1's about 250. */
	cr_assert_geq(held, 190, "only %zu numbers were held against the header", held);
}

Test(values, names_stand_once, .timeout = 30)
{
	size_t i;

	cr_assert_geq(COUNT(ours), 300);
	for (i = 0; i < COUNT(ours); i++)
		cr_assert(find(ours[i].name) == &ours[i], "%s stands twice", ours[i].name);
}

Test(values, rows_are_in_the_order_of_their_groups, .timeout = 30)
{
	enum {
#define PERFRING_VALUE_GROUP(group, prefix, is_set) GROUP_##group,
#include <perfring/values.def>
		GROUPS
	};
	static const int groups[] = {
#define PERFRING_VALUE(group, NAME, value) GROUP_##group,
#include <perfring/values.def>
	};
	size_t i;

	cr_assert_eq(groups[0], 0);
	cr_assert_eq(groups[COUNT(groups) - 1], GROUPS - 1);
	for (i = 1; i < COUNT(groups); i++)
		cr_assert(groups[i] == groups[i - 1] || groups[i] == groups[i - 1] + 1, "row %zu", i);
}

Test(values, flag_bits, .timeout = 30)
{
	static const struct {
		const char *name;
		uint32_t bit;
		uint32_t width;
	} flags[] = {
#define PERFRING_ATTR_FLAG(flag, bit, width) {#flag, (bit), (width)},
#include <perfring/values.def>
	};
	size_t i;
	uint32_t bit = 0;

	cr_assert_eq(COUNT(flags), 39);
	cr_assert_geq(COUNT(abi_flags), 32);
	for (i = 0; i < COUNT(abi_flags); i++) {
		if (!strncmp(abi_flags[i].name, "__reserved", 10)) {
			cr_assert_eq(bit + abi_flags[i].width, 64);
			break;
		}
		cr_assert_lt(i, COUNT(flags), "the tables end before %s", abi_flags[i].name);
		cr_assert_str_eq(flags[i].name, abi_flags[i].name);
		cr_assert_eq(flags[i].bit, bit, "%s", flags[i].name);
		cr_assert_eq(flags[i].width, abi_flags[i].width, "%s", flags[i].name);
		bit += flags[i].width;
	}
	cr_assert_lt(i, COUNT(abi_flags), "no reserved bits behind the flags");
	for (; i < COUNT(flags); bit += flags[i].width, i++)
		cr_assert_eq(flags[i].bit, bit, "%s leaves a gap", flags[i].name);
}

Test(values, attr_members, .timeout = 30)
{
	static const struct abi_member members[] = {
#define PERFRING_ATTR(member, offset, size, show) {#member, (offset), (size)},
#include <perfring/values.def>
	};
	size_t i, j, held = 0;

	cr_assert_eq(COUNT(members), 24);
	for (i = 0; i < COUNT(abi_members); i++) {
		for (j = 0; j < COUNT(members); j++) {
			if (strcmp(abi_members[i].name, members[j].name))
				continue;
			cr_assert_eq(members[j].offset, abi_members[i].offset, "%s", members[j].name);
			cr_assert_eq(members[j].size, abi_members[i].size, "%s", members[j].name);
			held++;
		}
		/* A member under another name of its union, or reserved, still needs a row at its place. */
		for (j = 0; j < COUNT(members); j++)
			if (members[j].offset == abi_members[i].offset && members[j].size == abi_members[i].size)
				break;
		cr_assert_lt(j, COUNT(members), "no row at %zu for %s", abi_members[i].offset, abi_members[i].name);
	}
	cr_assert_geq(held, 17, "only %zu members were held", held);
	for (j = 1; j < COUNT(members); j++)
		cr_assert_eq(members[j].offset, members[j - 1].offset + members[j - 1].size, "%s", members[j].name);
}

/* Fields and records that are in no 6.1 header, from docs/abi.md 5 and 10. */
Test(values, counts, .timeout = 30)
{
	size_t fields = 0, kernel = 0, user = 0, sizes = 0, events = 0;

#define PERFRING_FIELD(NAME, ...) fields++;
#include <perfring/fields.def>
#define PERFRING_RECORD(NAME, type, noun) (type) < 64 ? kernel++ : user++;
#define PERFRING_MEMBER(kind, member, show)
#define PERFRING_RECORD_END(NAME, type, noun)
#include <perfring/records.def>
#define PERFRING_ATTR_SIZE(version, size) sizes++;
#define PERFRING_EVENT(name, alias, type, config) events++;
#include <perfring/values.def>
	cr_assert_eq(kernel, 22);
	cr_assert_eq(user, 23);
	cr_assert_eq(sizes, 10);
	cr_assert_eq(events, 22);
	cr_assert_eq(PERFRING_SAMPLE_KNOWN, (UINT64_C(1) << fields) - 1);
}
