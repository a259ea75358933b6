/* format.c - formats made of attrs, and found by the ids in records.
 *
 * The functions of format.h, which sessions, files and soft.h use for every attr.  attr.h reads an attr by its own size.  A set
 * is a hash table from ids to formats that never moves its formats, so that a format stays valid while others are added.  Ids are
 * foreign: the hash factor is random.
 */
#include "attr.h"
#include "layout_private.h"
#include "mirror.h"
#include "os/array.h"
#include "os/hash.h"

/* The sizes of attr, ascending. */
static const uint32_t attr_sizes[] = {
#define PERFRING_ATTR_SIZE(version, size) (size),
#include <perfring/values.def>
};

/* A member of 2, 4 or 8 bytes.  The attr may end inside it (docs/abi.md 1.3), and need not be aligned. */
static uint64_t attr_member(const void *attr, uint32_t own, uint32_t offset, uint32_t size)
{
	unsigned char bytes[8] = {0};

	if (offset < own)
		memcpy(bytes, (const unsigned char *)attr + offset, size < own - offset ? size : own - offset);
	return perfring__number_get(bytes, size);
}

uint64_t perfring__attr_flags(const struct perf_event_attr *attr)
{
	uint64_t word;

	memcpy(&word, (const unsigned char *)attr + PERFRING_ATTR_AT_flags, sizeof(word));
	return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? word : mirror_attr_flags(word, true);
}

void perfring_attr_set_flag(struct perf_event_attr *attr, uint32_t flag, bool set)
{
	uint64_t word, bit = UINT64_C(1) << (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? flag : 63 - flag);
	unsigned char *at = (unsigned char *)attr + PERFRING_ATTR_AT_flags;

	memcpy(&word, at, sizeof(word));
	word = set ? word | bit : word & ~bit;
	memcpy(at, &word, sizeof(word));
}

int perfring__attr_read(struct perfring_attr_members *members, const struct perf_event_attr *attr)
{
	uint32_t own = perfring__attr_own_size(attr);

	if (own < PERFRING_ATTR_MIN || own > PERFRING_ATTR_MAX)
		return -EINVAL;
#define PERFRING_ATTR(member, offset, size, show) members->member = attr_member(attr, own, offset, size);
#include <perfring/values.def>
	members->flags = perfring__attr_flags(attr);
	if (__BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__)
		members->aux_action = mirror_bits(members->aux_action) >> 32;
	return 0;
}

uint32_t perfring_attr_size(const struct perf_event_attr *attr)
{
	uint32_t own = perfring__attr_own_size(attr);
	uint32_t end = own < PERFRING_ATTR_MAX ? own : PERFRING_ATTR_MAX;
	size_t i;

	while (end > PERFRING_ATTR_MIN && !((const unsigned char *)attr)[end - 1])
		end--;
	for (i = 0; i < sizeof(attr_sizes) / sizeof(attr_sizes[0]); i++)
		if (attr_sizes[i] >= end)
			return attr_sizes[i];
	return own;
}

void perfring_format_plan(struct perfring_format *format)
{
	uint64_t type = format->sample_type;
	uint64_t id = type & PERFRING_SAMPLE_IDENTIFIER ? PERFRING_SAMPLE_IDENTIFIER : PERFRING_SAMPLE_ID;
	bool trailer = perfring_format_has_trailer(format);

	format->least = (uint16_t)perfring_format_least(format);
	format->trailer = (uint16_t)perfring_format_trailer(format);
	format->sample_id_at = (uint16_t)perfring_format_field_offset(type, id);
	format->sample_time_at = (uint16_t)perfring_format_field_offset(type, PERFRING_SAMPLE_TIME);
	format->trailer_id_back = trailer ? (uint16_t)perfring_format_field_back(type, id) : 0;
	format->trailer_time_back = trailer ? (uint16_t)perfring_format_field_back(type, PERFRING_SAMPLE_TIME) : 0;
	format->sample_regs_user_nr = (uint8_t)__builtin_popcountll(format->sample_regs_user);
	format->sample_regs_intr_nr = (uint8_t)__builtin_popcountll(format->sample_regs_intr);
}

int perfring_format_from_attr(struct perfring_format *format, const struct perf_event_attr *attr)
{
	struct perfring_attr_members members;
	int error = perfring__attr_read(&members, attr);

	if (error)
		return error;
	memset(format, 0, sizeof(*format));
	format->sample_type = members.sample_type;
	format->read_format = members.read_format;
	format->branch_sample_type = members.branch_sample_type;
	format->sample_regs_user = members.sample_regs_user;
	format->sample_regs_intr = members.sample_regs_intr;
	format->flags = members.flags;
	format->sample_stack_user = (uint32_t)members.sample_stack_user;
	if (format->sample_type & PERFRING_SAMPLE_WEIGHT_STRUCT)
		format->sample_type &= ~(uint64_t)PERFRING_SAMPLE_WEIGHT;
	perfring_format_plan(format);
	return 0;
}

struct slot {
	uint64_t id; /* 0: empty */
	const struct perfring_format *format;
};

/* Where records have their id: bit n stands for the word 8 * n bytes from the start of a SAMPLE, or from the end of
 * another record, bit 0 for no id. */
struct places {
	uint64_t at;
	uint32_t bare; /* the first event whose records have no id, if bit 0 is set */
};

struct known_id {
	uint64_t id;
	uint32_t index;
};

/* slots: open addressing, at most half full.  slot_count is a power of two. */
struct perfring_format_set {
	struct perfring_format **formats; /* each with a copy of its attr after it */
	uint32_t count;
	uint32_t capacity;
	struct known_id *ids; /* in the order of perfring_format_set_put */
	uint32_t id_count;
	uint32_t id_capacity;
	struct slot *slots;
	uint64_t slot_count;
	uint64_t slots_used;
	uint64_t factor; /* spreads ids over the slots */
	struct places sample;
	struct places trailer;
	uint16_t arch;
};

int perfring_format_set_open(struct perfring_format_set **set)
{
	struct perfring_format_set *opened = calloc(1, sizeof(*opened));

	*set = NULL;
	if (!opened)
		return -ENOMEM;
	opened->slot_count = 16;
	opened->slots = calloc((size_t)opened->slot_count, sizeof(*opened->slots));
	if (!opened->slots) {
		free(opened);
		return -ENOMEM;
	}
	opened->factor = perfring__os_hash_factor(opened);
	*set = opened;
	return 0;
}

void perfring_format_set_close(struct perfring_format_set *set)
{
	uint32_t i;

	if (!set)
		return;
	for (i = 0; i < set->count; i++)
		free(set->formats[i]);
	free(set->formats);
	free(set->ids);
	free(set->slots);
	free(set);
}

static void places_add(struct places *places, uint32_t place, uint32_t index)
{
	if (!place && !(places->at & 1))
		places->bare = index;
	places->at |= UINT64_C(1) << place / 8;
}

int perfring_format_set_add(struct perfring_format_set *set, const struct perf_event_attr *attr)
{
	uint32_t size = perfring__attr_own_size(attr);
	struct perfring_format *format;
	int error;

	if (size > PERFRING_ATTR_MAX)
		return -EINVAL;
	error = perfring__os_array_grow(&set->formats, set->count, &set->capacity, sizeof(*set->formats));
	if (error)
		return error;
	format = calloc(1, sizeof(*format) + (size > sizeof(*attr) ? size : sizeof(*attr)));
	if (!format)
		return -ENOMEM;
	error = perfring_format_from_attr(format, attr);
	if (error) {
		free(format);
		return error;
	}
	memcpy(format + 1, attr, size);
	((struct perf_event_attr *)(void *)(format + 1))->size = size; /* it may have been 0 */
	format->index = set->count;
	format->arch = set->arch;
	set->formats[set->count++] = format;
	places_add(&set->sample, format->sample_id_at, format->index);
	places_add(&set->trailer, format->trailer_id_back, format->index);
	return (int)format->index;
}

void perfring_format_set_arch(struct perfring_format_set *set, uint32_t arch)
{
	uint32_t i;

	set->arch = (uint16_t)arch;
	for (i = 0; i < set->count; i++)
		set->formats[i]->arch = set->arch;
}

/* The slot of the id, or the empty slot for it. */
static struct slot *slot_of(const struct perfring_format_set *set, uint64_t id)
{
	uint64_t mask = set->slot_count - 1;
	uint64_t i = id * set->factor >> __builtin_clzll(mask);

	while (set->slots[i].id && set->slots[i].id != id)
		i = (i + 1) & mask;
	return &set->slots[i];
}

static int slots_grow(struct perfring_format_set *set)
{
	struct perfring_format_set grown = *set;
	uint64_t i;

	grown.slot_count = set->slot_count * 2;
	grown.slots = calloc((size_t)grown.slot_count, sizeof(*grown.slots));
	if (!grown.slots)
		return -ENOMEM;
	for (i = 0; i < set->slot_count; i++)
		if (set->slots[i].id)
			*slot_of(&grown, set->slots[i].id) = set->slots[i];
	free(set->slots);
	*set = grown;
	return 0;
}

int perfring_format_set_put(struct perfring_format_set *set, uint64_t id, uint32_t index)
{
	struct slot *slot;
	int error;

	if (!id || index >= set->count)
		return -EINVAL;
	slot = slot_of(set, id);
	if (slot->id)
		return slot->format->index == index ? 0 : -EEXIST;
	if (set->slots_used >= set->slot_count / 2) {
		error = slots_grow(set);
		if (error)
			return error;
		slot = slot_of(set, id);
	}
	error = perfring__os_array_grow(&set->ids, set->id_count, &set->id_capacity, sizeof(*set->ids));
	if (error)
		return error;
	set->ids[set->id_count++] = (struct known_id){id, index};
	slot->id = id;
	slot->format = set->formats[index];
	set->slots_used++;
	return 0;
}

const struct perfring_format *perfring_format_set_find(const struct perfring_format_set *set, uint64_t id)
{
	return id ? slot_of(set, id)->format : NULL;
}

const struct perfring_format *perfring_format_set_at(const struct perfring_format_set *set, uint32_t index)
{
	return index < set->count ? set->formats[index] : NULL;
}

uint32_t perfring_format_set_count(const struct perfring_format_set *set)
{
	return set->count;
}

const struct perf_event_attr *perfring_format_set_attr(const struct perfring_format_set *set, uint32_t index)
{
	return index < set->count ? (const struct perf_event_attr *)(const void *)(set->formats[index] + 1) : NULL;
}

int perfring_format_set_id_at(const struct perfring_format_set *set, uint32_t i, uint64_t *id, uint32_t *index)
{
	if (i >= set->id_count)
		return 0;
	*id = set->ids[i].id;
	*index = set->ids[i].index;
	return 1;
}

static uint32_t place_of(const struct perfring_format *format, bool is_sample)
{
	return is_sample ? format->sample_id_at : format->trailer_id_back;
}

/* No record place held the id of an event that has its ids there. */
static int format_without_id(const struct perfring_format_set *set, const struct perf_event_header *header,
			     const void *record, const struct perfring_format **format, struct perfring_fault *fault)
{
	bool is_sample = header->type == PERF_RECORD_SAMPLE;
	const struct places *places = is_sample ? &set->sample : &set->trailer;
	uint32_t place = place_of(set->formats[0], is_sample);
	uint64_t id = 0;
	bool has_word = perfring_format_word_with(header, record, place, place, &id);

	if (!place || (has_word && !id)) {
		*format = set->formats[0];
		return 0;
	}
	if (places->at & 1) {
		*format = set->formats[places->bare];
		return 0;
	}
	if (!has_word)
		return perfring_fault_set(fault, header->size, "record too short for its id");
	return perfring_fault_set(fault, is_sample ? place : header->size - place, "id of no event");
}

int perfring_format_set_of(const struct perfring_format_set *set, const struct perf_event_header *record,
			   const struct perfring_format **format, struct perfring_fault *fault)
{
	struct perf_event_header header = perfring_format_header_of(record);

	return perfring_format_set_with(set, &header, record, format, fault);
}

int perfring_format_set_with(const struct perfring_format_set *set, const struct perf_event_header *header,
			     const void *record, const struct perfring_format **format, struct perfring_fault *fault)
{
	bool is_sample = header->type == PERF_RECORD_SAMPLE;
	const struct perfring_format *found;
	uint64_t left, id;
	uint32_t place;

	*format = NULL;
	if (header->type >= PERFRING_RECORD_OF_PERF)
		return 0;
	if (set->count == 1) {
		*format = set->formats[0];
		return 0;
	}
	if (!set->count)
		return perfring_fault_set(fault, 0, "no event that it could belong to");
	left = (is_sample ? set->sample.at : set->trailer.at) & ~UINT64_C(1);
	for (; left; left &= left - 1) {
		place = 8 * (uint32_t)__builtin_ctzll(left);
		if (!perfring_format_word_with(header, record, place, place, &id))
			continue;
		found = perfring_format_set_find(set, id);
		if (found && place_of(found, is_sample) == place) {
			*format = found;
			return 0;
		}
	}
	return format_without_id(set, header, record, format, fault);
}
