/* unwind_fuzz.c - any bytes as an object's unwind tables, and as a stack that is walked by them.
 *
 *     byte 0     bit 0: aarch64; bits 1 and 2: an ELF image, .eh_frame, .eh_frame with its .eh_frame_hdr, or .debug_frame
 *     byte 1     of the third: bytes of .eh_frame_hdr, times 4
 *     the rest   the bytes
 */
#include <stdlib.h>
#include <perfring/unwind.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

enum {
	HEAD = 2,
	SECTION_AT = 0x10000, /* the section's address; .eh_frame_hdr's is 0x8000 */
	STACK_AT = 0x70000000,
	FRAMES = 64,
	PLACES = 64,
};

static void must(bool held)
{
	if (!held)
		abort();
}

static int open_as(struct perfring_unwind **unwind, const uint8_t *bytes, size_t size)
{
	struct perfring_unwind_sections sections;
	const uint8_t *from = bytes + HEAD;
	size_t header = 4 * (size_t)bytes[1];

	memset(&sections, 0, sizeof(sections));
	size -= HEAD;
	sections.machine = bytes[0] & 1 ? PERFRING_UNWIND_AARCH64 : PERFRING_UNWIND_X86_64;
	switch (bytes[0] >> 1 & 3) {
	case 0:
		return perfring_unwind_open(unwind, from, size);
	case 1:
		sections.eh_frame = (struct perfring_unwind_section){from, size, SECTION_AT};
		break;
	case 2:
		if (header > size)
			header = size;
		sections.eh_frame_hdr = (struct perfring_unwind_section){from, header, 0x8000};
		sections.eh_frame = (struct perfring_unwind_section){from + header, size - header, SECTION_AT};
		sections.plt = (struct perfring_unwind_section){from, header, 0x4000};
		break;
	default:
		sections.debug_frame = (struct perfring_unwind_section){from, size, 0};
		break;
	}
	return perfring_unwind_open_sections(unwind, &sections);
}

/* Registers that are not followed lead into the stack. */
static bool get_other(const void *of, uint32_t number, uint64_t *value)
{
	*value = STACK_AT + 24 * (uint64_t)number;
	return of && number < 12;
}

/* A walk over the bytes: with rows or without, the same. */
static void walk(struct perfring_unwind *unwind, const uint8_t *bytes, size_t size, uint64_t ip)
{
	const struct perfring_unwind_map map = {0, UINT64_MAX, 0, unwind};
	const struct perfring_unwind_stack stack = perfring_unwind_stack_init(bytes, STACK_AT, size);
	uint64_t ips[2][FRAMES];
	enum perfring_unwind_end end[2];
	uint32_t nr[2], i;

	for (i = 0; i < 2; i++) {
		struct perfring_unwind_space space = {&map, 1, 1, i > 0, false};
		struct perfring_unwind_registers registers;
		struct perfring_unwind_cache *cache;

		memset(&registers, 0, sizeof(registers));
		registers.ip = ip;
		registers.sp = STACK_AT;
		registers.fp = STACK_AT + size / 2;
		registers.pac_mask = 0xffff000000000000;
		registers.other = get_other;
		registers.of = bytes;
		must(!perfring_unwind_cache_open(&cache, 64));
		nr[i] = perfring_unwind_walk(&space, cache, &registers, &stack, ips[i], FRAMES, &end[i]);
		must(nr[i] >= 1 && nr[i] <= FRAMES && end[i] != PERFRING_UNWIND_STEPPED);
		perfring_unwind_cache_close(cache);
	}
	must(nr[0] == nr[1] && end[0] == end[1] && !memcmp(ips[0], ips[1], nr[0] * sizeof(ips[0][0])));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct perfring_unwind_totals totals;
	struct perfring_unwind_rule before, after;
	struct perfring_unwind *unwind;
	uint64_t start, end, row, first = 0, i;

	if (size < HEAD || open_as(&unwind, bytes, size))
		return 0;
	perfring_unwind_count(unwind, &totals);
	for (i = 0; i < totals.functions && i < PLACES; i++) {
		uint64_t at;

		if (!perfring_unwind_function(unwind, i, &start, &end))
			continue;
		first = first ? first : start;
		at = start + (end - start) / 2;
		perfring_unwind_rule_at(unwind, at, &before, &row);
		must(row > at || row == 0);
		if (i % 2)
			continue;
		perfring_unwind_make(unwind, start);
		perfring_unwind_rule_at(unwind, at, &after, NULL);
		must(!memcmp(&before, &after, sizeof(after)));
	}
	walk(unwind, bytes, size, first);
	walk(unwind, bytes, size, first + 9);
	perfring_unwind_count(unwind, &totals);
	must(totals.memory <= PERFRING_UNWIND_MEMORY_MAX * size + (1 << 16));
	perfring_unwind_close(unwind);
	return 0;
}
