/* dwarf_ranges.c - ranges of addresses of entries of DWARF: .debug_ranges of DWARF 3 and 4, .debug_rnglists of 5.
 *
 * source_lines.c and dwarf_entries.c ask for the ranges of units, functions and calls.  Numbers are those of sections 2.17 and
 * 7.28 of the DWARF standard.
 */
#include "dwarf.h"

enum {
	FORM_ADDR = 0x01,
	FORM_ADDRX = 0x1b,
	FORM_RNGLISTX = 0x23,
	FORM_ADDRX1 = 0x29,
	FORM_ADDRX4 = 0x2c,
};

/* Entries of a list of DWARF 5 (7.25). */
enum {
	END_OF_LIST,
	BASE_ADDRESSX,
	STARTX_ENDX,
	STARTX_LENGTH,
	OFFSET_PAIR,
	BASE_ADDRESS,
	START_END,
	START_LENGTH,
};

/* The n-th address of the unit. */
static bool address_at(const struct perfring_dwarf_unit *unit, uint64_t number, uint64_t *address)
{
	struct perfring_dwarf_bytes bytes;

	if (number > unit->file->sections[PERFRING_DWARF_ADDR].size)
		return false;
	bytes = perfring__dwarf_bytes_at(unit->file, PERFRING_DWARF_ADDR,
					 unit->addresses + number * unit->address_size);
	*address = perfring__dwarf_take(&bytes, unit->address_size);
	return !bytes.is_short;
}

static bool is_address(uint8_t form)
{
	return form == FORM_ADDR || form == FORM_ADDRX || (form >= FORM_ADDRX1 && form <= FORM_ADDRX4);
}

bool perfring__dwarf_address(const struct perfring_dwarf_unit *unit, const struct perfring_dwarf_value *value,
			     uint64_t *address)
{
	if (!is_address(value->form))
		return false;
	if (value->form != FORM_ADDR)
		return address_at(unit, value->number, address);
	*address = value->number;
	return true;
}

static bool take_own(struct perfring_dwarf_ranges *ranges, const struct perfring_dwarf_entry *entry)
{
	const struct perfring_dwarf_value *high = &entry->values[PERFRING_DWARF_HIGH];

	if (!perfring__dwarf_has(entry, PERFRING_DWARF_LOW) || !perfring__dwarf_has(entry, PERFRING_DWARF_HIGH) ||
	    !perfring__dwarf_address(ranges->unit, &entry->values[PERFRING_DWARF_LOW], &ranges->start))
		return false;
	if (is_address(high->form))
		return perfring__dwarf_address(ranges->unit, high, &ranges->end);
	ranges->end = ranges->start + high->number;
	return true;
}

/* Where the list of that number begins in .debug_rnglists. */
static uint64_t list_at(const struct perfring_dwarf_unit *unit, uint64_t number)
{
	struct perfring_dwarf_bytes bytes;
	uint64_t at;

	if (number > unit->file->sections[PERFRING_DWARF_RNGLISTS].size)
		return UINT64_MAX;
	bytes = perfring__dwarf_bytes_at(unit->file, PERFRING_DWARF_RNGLISTS, unit->lists + number * unit->offset_size);
	at = perfring__dwarf_take(&bytes, unit->offset_size);
	return bytes.is_short ? UINT64_MAX : unit->lists + at;
}

void perfring__dwarf_ranges_begin(struct perfring_dwarf_ranges *ranges, const struct perfring_dwarf_unit *unit,
				  const struct perfring_dwarf_entry *entry)
{
	const struct perfring_dwarf_value *list = &entry->values[PERFRING_DWARF_LIST];

	ranges->unit = unit;
	ranges->kind = PERFRING_DWARF_NO_RANGES;
	if (take_own(ranges, entry)) {
		ranges->kind = PERFRING_DWARF_ONE_RANGE;
	} else if (perfring__dwarf_has(entry, PERFRING_DWARF_LIST)) {
		ranges->base = unit->base;
		ranges->kind = unit->version < 5 ? PERFRING_DWARF_LIST_4 : PERFRING_DWARF_LIST_5;
		ranges->bytes = perfring__dwarf_bytes_at(
			unit->file, unit->version < 5 ? PERFRING_DWARF_RANGES : PERFRING_DWARF_RNGLISTS,
			list->form == FORM_RNGLISTX ? list_at(unit, list->number) : list->number);
	}
}

static bool next_of_4(struct perfring_dwarf_ranges *ranges)
{
	const unsigned size = ranges->unit->address_size;
	const uint64_t highest = size == 8 ? UINT64_MAX : UINT32_MAX;
	uint64_t start = perfring__dwarf_take(&ranges->bytes, size), end = perfring__dwarf_take(&ranges->bytes, size);

	if (ranges->bytes.is_short || (!start && !end))
		return false;
	ranges->start = ranges->end = 0;
	if (start == highest) {
		ranges->base = end;
	} else {
		ranges->start = (ranges->base + start) & highest;
		ranges->end = (ranges->base + end) & highest;
	}
	return true;
}

static bool next_of_5(struct perfring_dwarf_ranges *ranges)
{
	const struct perfring_dwarf_unit *unit = ranges->unit;
	struct perfring_dwarf_bytes *bytes = &ranges->bytes;
	bool is_known = true;

	ranges->start = ranges->end = 0;
	switch (perfring__dwarf_take(bytes, 1)) {
	case BASE_ADDRESSX:
		is_known = address_at(unit, perfring__dwarf_leb(bytes), &ranges->base);
		break;
	case STARTX_ENDX:
		is_known = address_at(unit, perfring__dwarf_leb(bytes), &ranges->start) &&
			   address_at(unit, perfring__dwarf_leb(bytes), &ranges->end);
		break;
	case STARTX_LENGTH:
		is_known = address_at(unit, perfring__dwarf_leb(bytes), &ranges->start);
		ranges->end = ranges->start + perfring__dwarf_leb(bytes);
		break;
	case OFFSET_PAIR:
		ranges->start = ranges->base + perfring__dwarf_leb(bytes);
		ranges->end = ranges->base + perfring__dwarf_leb(bytes);
		break;
	case BASE_ADDRESS:
		ranges->base = perfring__dwarf_take(bytes, unit->address_size);
		break;
	case START_END:
		ranges->start = perfring__dwarf_take(bytes, unit->address_size);
		ranges->end = perfring__dwarf_take(bytes, unit->address_size);
		break;
	case START_LENGTH:
		ranges->start = perfring__dwarf_take(bytes, unit->address_size);
		ranges->end = ranges->start + perfring__dwarf_leb(bytes);
		break;
	default: /* END_OF_LIST, or not known */
		return false;
	}
	return is_known && !bytes->is_short;
}

bool perfring__dwarf_ranges_next(struct perfring_dwarf_ranges *ranges)
{
	switch (ranges->kind) {
	case PERFRING_DWARF_ONE_RANGE:
		ranges->kind = PERFRING_DWARF_NO_RANGES;
		return true;
	case PERFRING_DWARF_LIST_4:
		return next_of_4(ranges);
	case PERFRING_DWARF_LIST_5:
		return next_of_5(ranges);
	default:
		return false;
	}
}
