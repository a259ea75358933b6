/* check.c - whether the kernel or perf could have written a record: checks beyond those of decoding.
 *
 * The functions of check.h, for `perfring check`, the recorder of foreign processes (tools/soft_source.c), and damage.c.  Decodes
 * the record first, then walks over it once more by the rows of the tables.  Allocates nothing; no input makes it read outside of
 * the record.
 */
#include <perfring/check.h>
#include "layout_private.h"
#include "members.h"
#include "shapes.h"
#include "within.h"

/* A walk over a record that can be decoded.  A check function finds `at` at the beginning of its member, and leaves it
 * after the member, or at what is wrong. */
struct check {
	const unsigned char *bytes;
	const struct perfring_format *format;
	uint32_t type;
	uint32_t at;
	uint32_t end; /* where the trailer begins */
	bool is_timed;
	uint32_t remark_at;
	const char *remark; /* the first */
};

static const char no_multiple[] = "size that is not a multiple of 8";

/* Notes what other writers than the kernel leave in well-formed records. */
static void remark(struct check *check, const char *what)
{
	if (!what || check->remark)
		return;
	check->remark = what;
	check->remark_at = check->at;
}

/* ---- the header ---- */

/* The types whose misc has the CPU's mode (docs/abi.md 4.1). */
static bool has_cpumode(uint32_t type)
{
	switch (type) {
	case PERFRING_RECORD_SAMPLE:
	case PERFRING_RECORD_MMAP:
	case PERFRING_RECORD_MMAP2:
	case PERFRING_RECORD_TEXT_POKE:
	case PERFRING_RECORD_CALLCHAIN_DEFERRED:
	case PERFRING_RECORD_HEADER_BUILD_ID:
		return true;
	default:
		return false;
	}
}

static int check_header(const struct perf_event_header *header, size_t size, struct perfring_fault *fault)
{
	uint32_t at = offsetof(struct perf_event_header, size);

	if (header->size < sizeof(*header))
		return perfring_fault_set(fault, at, "size smaller than the header");
	if (header->size > size)
		return perfring_fault_set(fault, at, "size larger than what is there");
	if (header->type < PERFRING_RECORD_OF_PERF && header->size % 8)
		return perfring_fault_set(fault, at, no_multiple);
	if (has_cpumode(header->type) &&
	    (header->misc & PERFRING_RECORD_MISC_CPUMODE_MASK) > PERFRING_RECORD_MISC_GUEST_USER)
		return perfring_fault_set(fault, offsetof(struct perf_event_header, misc),
					  "cpumode that does not exist");
	return 0;
}

/* ---- samples.  A check returns NULL, or what is wrong ---- */

static bool is_context(uint64_t word)
{
#define PERFRING_VALUE(group, NAME, value) \
	if (!strcmp(#group, "context") && word == (uint64_t)(int64_t)(value)) \
		return (value) != PERFRING_CONTEXT_MAX; /* which is only the bound of the markers */
#include <perfring/values.def>
	return false;
}

/* Words after a user marker come from the memory of a process: any of them may look like a marker. */
static const char *check_chain(struct check *check, const struct perfring_list *list)
{
	uint64_t i, word;

	for (i = 0, check->at += 8; i < list->nr; i++, check->at += 8) {
		word = list->words[i];
		if (!perfring_list_is_marker(word))
			continue;
		if (!is_context(word))
			return "callchain marker that does not exist";
		if (perfring_list_is_user(word))
			return NULL;
		if (word != (uint64_t)PERFRING_CONTEXT_USER_DEFERRED)
			continue;
		if (i + 1 == list->nr)
			return "deferred callchain marker without its cookie";
		return i + 2 == list->nr ? NULL : "deferred callchain marker with more than its cookie after it";
	}
	return NULL;
}

/* docs/abi.md 14.3.  With user registers and no stack to copy, the kernel reserves the word 0 and writes a second word,
 * a dyn_size of 0: every field after it is 8 bytes too far, and the next record overwrites the last word.  The bytes
 * alone seldom prove it, so is_shifted asks for several signs. */

static uint64_t word_at(const struct check *check, uint64_t at)
{
	uint64_t word = 0;

	if (at + 8 <= check->end)
		memcpy(&word, check->bytes + at, 8);
	return word;
}

static bool is_no_data_src(uint64_t word)
{
	const uint64_t na =
		PERFRING_MEM_OP_NA << PERFRING_MEM_OP_SHIFT | PERFRING_MEM_LVL_NA << PERFRING_MEM_LVL_SHIFT |
		PERFRING_MEM_SNOOP_NA << PERFRING_MEM_SNOOP_SHIFT | PERFRING_MEM_LOCK_NA << PERFRING_MEM_LOCK_SHIFT |
		PERFRING_MEM_TLB_NA << PERFRING_MEM_TLB_SHIFT;
	/* not in older kernels */
	const uint64_t number = (uint64_t)PERFRING_MEM_LVLNUM_NA << PERFRING_MEM_LVLNUM_SHIFT;

	return (word | number) == (na | number);
}

/* Where the fields after the stack end if they begin at `at`; *data_src_at: the place of DATA_SRC among them. */
static uint64_t end_after_stack(const struct check *check, uint64_t at, uint64_t *data_src_at)
{
	bool is_after = false;
	const struct perfring_format *format = check->format;
	uint64_t first, extent;

	*data_src_at = 0;
#define PERFRING_FIELD(NAME, bit, kind, a, b, ...) \
	if (is_after && (format->sample_type & PERFRING_SAMPLE_##NAME)) { \
		first = word_at(check, at); \
		(void)first; \
		extent = (uint64_t)(PERFRING_FIELD_KIND_##kind(PERFRING_BY_EXTENT, sample, a, b)); \
		if (!extent) \
			return 0; \
		if (PERFRING_SAMPLE_##NAME == PERFRING_SAMPLE_DATA_SRC) \
			*data_src_at = at; \
		at += extent; \
	} \
	is_after = is_after || PERFRING_SAMPLE_##NAME == PERFRING_SAMPLE_STACK_USER;
#include <perfring/fields.def>
	return at;
}

static bool is_shifted(struct check *check, const struct perfring_sample *sample)
{
	const struct perfring_format *format = check->format;
	bool has_regs = format->sample_type & PERFRING_SAMPLE_REGS_USER;
	uint64_t after = check->at + 8, as_is, shifted;

	if (has_regs && !sample->regs_user.abi)
		return false;
	if (after == check->end || word_at(check, after))
		return false;
	if ((format->sample_type & ~(uint64_t)PERFRING_SAMPLE_KNOWN) ||
	    end_after_stack(check, after + 8, &shifted) != check->end + 8)
		return false;
	if (has_regs && !format->sample_stack_user)
		return true;
	/* The stack was clamped to 0, or there are no registers: a DATA_SRC of nothing known shows the shift. */
	end_after_stack(check, after, &as_is);
	return shifted && !is_no_data_src(word_at(check, as_is)) && is_no_data_src(word_at(check, shifted));
}

static const char *check_stack(struct check *check, const struct perfring_sample *sample,
			       const struct perfring_stack *stack)
{
	if (!stack->size)
		return is_shifted(check, sample)
			       ? "stack of size 0 and a dyn_size: the fields after it are shifted by 8"
			       : NULL;
	if (stack->size % 8)
		return no_multiple;
	if (check->format->sample_stack_user && stack->size > check->format->sample_stack_user)
		return "stack larger than sample_stack_user";
	return NULL;
}

/* Fields of other kinds may have any value. */
static const char *check_field(struct check *check, enum perfring_kind kind, const struct perfring_sample *sample,
			       const void *field)
{
	switch (kind) {
	case PERFRING_KIND_list:
		return check_chain(check, field);
	case PERFRING_KIND_raw:
		return (((const struct perfring_raw *)field)->size + 4) % 8
			       ? "raw size that leaves the next field unaligned"
			       : NULL;
	case PERFRING_KIND_regs:
		return ((const struct perfring_regs *)field)->abi > PERFRING_SAMPLE_REGS_ABI_64
			       ? "register abi that does not exist"
			       : NULL;
	case PERFRING_KIND_stack:
		return check_stack(check, sample, field);
	case PERFRING_KIND_aux:
		return ((const struct perfring_aux *)field)->size % 8 ? no_multiple : NULL;
	default:
		return NULL;
	}
}

/* Decodes and checks field by field, so that the first fault is reported, not what follows from it. */
static const char *check_fields(struct check *check, struct perfring_sample *sample, unsigned shape)
{
	const struct perfring_format *format = check->format;
	struct perfring_cursor cursor = perfring_cursor_init(check->bytes, check->at, check->end);
	const char *what;

#define PERFRING_FIELD(NAME, bit, kind, a, b, ...) \
	if (format->sample_type & PERFRING_SAMPLE_##NAME) { \
		check->at = cursor.position; \
		what = perfring_take_##kind(&cursor, PERFRING_FIELD_KIND_##kind(PERFRING_BY_TO, sample, a, b)); \
		if (!what) \
			what = check_field(check, PERFRING_KIND_##kind, sample, &sample->a); \
		if (what) \
			return what; \
	}
#include <perfring/fields.def>
	return NULL;
}

static int check_sample(struct check *check, const struct perf_event_header *record, struct perfring_fault *fault)
{
	struct perfring_sample sample;
	const char *what;
	int error = perfring__sample_decode_within(check->format, record, check->end, &sample, fault);

	/* By the shape that decoding found. */
	what = check_fields(check, &sample, error ? 0 : shape_of(check->format, &sample));
	return what ? perfring_fault_set(fault, check->at, what) : error;
}

/* ---- every other record ---- */

/* Bytes that must be 0, up to `until`. */
static const char *check_zeros(struct check *check, uint32_t until)
{
	for (; check->at < until; check->at++)
		if (check->bytes[check->at])
			return "padding that is not 0";
	return NULL;
}

/* Up to where bytes after the NUL have to be 0.  After the padding of perf's string there may be a trailer, and without
 * a format its place is unknown.  perf itself, up to 5.11 for processes and still for modules, leaves old bytes after
 * the names of mappings; its own records have no time. */
static uint32_t string_end(const struct check *check, uint32_t nul, uint32_t end)
{
	uint32_t padded = (nul + 8) & ~7u;

	if ((check->type == PERFRING_RECORD_MMAP || check->type == PERFRING_RECORD_MMAP2) && !check->is_timed)
		return nul;
	return (check->type >= PERFRING_RECORD_OF_PERF || !check->format) && padded < end ? padded : end;
}

/* perf cuts a name at the first multiple of 8 that holds its characters, and the NUL with it if they fill it
 * (docs/abi.md 10). */
static bool is_cut(const struct check *check, enum perfring_kind kind, uint64_t space)
{
	return kind == PERFRING_KIND_text64 && check->type == PERFRING_RECORD_HEADER_EVENT_TYPE && space != 64 &&
	       space % 8 == 0;
}

static const char *check_string(struct check *check, enum perfring_kind kind,
				const struct perfring_layout_member *string)
{
	uint32_t end = check->at + (uint32_t)string->space;

	if (string->size == string->space)
		return is_cut(check, kind, string->space) ? NULL : "string without its NUL";
	check->at += (uint32_t)string->size;
	remark(check, check_zeros(check, kind == PERFRING_KIND_string ? string_end(check, check->at, end) : end));
	return NULL;
}

/* Checks a member by its kind's layout.  Strings in lists are not checked: perf truncates long names without a NUL. */
static const char *check_laid(struct check *check, enum perfring_kind kind, uint16_t misc)
{
	struct perfring_layout_member member;
	struct perfring_layout_walk walk;
	const char *what = NULL;

	perfring__layout_open_member(&walk, kind, misc, check->bytes, check->at, check->end);
	while (!what && perfring_layout_next(&walk, &member) == 1) {
		check->at = (uint32_t)(walk.at - member.space);
		if (member.kind == PERFRING_LAYOUT_NUMBER && member.number > member.most)
			what = "build id longer than 20 bytes";
		else if (member.kind == PERFRING_LAYOUT_PADDING)
			what = check_zeros(check, (uint32_t)walk.at);
		else if (member.kind == PERFRING_LAYOUT_STRING && !member.depth)
			what = check_string(check, kind, &member);
	}
	if (what)
		return what;
	check->at = (uint32_t)walk.at;
	return walk.fault.what;
}

/* Linux leaves the bit of a build id set in records of other events (docs/abi.md 14.24). */
static uint16_t check_bit(struct check *check, uint16_t misc, const struct perfring_file_id *file)
{
	if (file->has_build_id || !(misc & PERFRING_RECORD_MISC_MMAP_BUILD_ID))
		return misc;
	remark(check, "the bit of a build id, of another event's record: device and inode are here");
	return (uint16_t)(misc & ~PERFRING_RECORD_MISC_MMAP_BUILD_ID);
}

static const char *check_member(struct check *check, enum perfring_kind kind, uint16_t misc, const void *member)
{
	if (kind == PERFRING_KIND_id128)
		misc = check_bit(check, misc, member);
	if (kind != PERFRING_KIND_read)
		return check_laid(check, kind, misc);
	if (check->format)
		check->at += (uint32_t)perfring_size_read(member, check->format->read_format);
	return NULL;
}

static int check_record(struct check *check, const struct perf_event_header *record, struct perf_event_header header,
			struct perfring_fault *fault)
{
	const struct member_row *row;
	struct perfring_record decoded;
	const char *what;
	int error = perfring__record_decode_within(check->format, record, header, &decoded, fault);

	if (error)
		return error;
	check->end = (uint32_t)((const unsigned char *)decoded.trailing - check->bytes) + decoded.trailing_size;
	check->is_timed = (decoded.trailer.present & PERFRING_SAMPLE_TIME) && decoded.trailer.time;
	for (row = perfring__members_of(decoded.type); row->kind != PERFRING_KINDS; row++) {
		if (!perfring__members_has(&decoded, row))
			continue;
		what = check_member(check, (enum perfring_kind)row->kind, decoded.misc,
				    perfring__member_of(&decoded, row));
		if (what)
			return perfring_fault_set(fault, check->at, what);
	}
	return 0;
}

static int examine(struct check *check, const struct perf_event_header *record, size_t size,
		   struct perfring_fault *fault)
{
	struct perf_event_header header;
	int error;

	if (size < sizeof(header))
		return perfring_fault_set(fault, (uint32_t)size, "record ends inside its header");
	memcpy(&header, record, sizeof(header));
	error = check_header(&header, size, fault);
	if (error)
		return error;
	check->type = header.type;
	check->at = sizeof(header);
	check->end = header.size;
	if (header.type != PERFRING_RECORD_SAMPLE)
		return check_record(check, record, header, fault);
	return check->format ? check_sample(check, record, fault) : 0;
}

int perfring_record_check(const struct perfring_format *format, const struct perf_event_header *record, size_t size,
			  struct perfring_fault *fault)
{
	struct check check = {.bytes = (const unsigned char *)record, .format = format};

	return examine(&check, record, size, fault);
}

int perfring_record_examine(const struct perfring_format *format, const struct perf_event_header *record, size_t size,
			    struct perfring_finding *finding)
{
	struct check check = {.bytes = (const unsigned char *)record, .format = format};
	struct perfring_fault fault = {0, NULL};
	int error = examine(&check, record, size, &fault);

	memset(finding, 0, sizeof(*finding));
	if (error) {
		finding->severity = PERFRING_DAMAGE;
		finding->at = fault.at;
		finding->what = fault.what;
	} else if (check.remark) {
		finding->severity = PERFRING_REMARK;
		finding->at = check.remark_at;
		finding->what = check.remark;
	}
	return error ? error : check.remark != NULL;
}
