/* symbol_table.c - symbols sorted by address.
 *
 * Entries are added in any order, sorted once, then searched by halves.
 */
#include <stdlib.h>
#include <string.h>
#include "demangle.h"
#include "os/array.h"
#include "symbol_table.h"

enum {
	TEXT = 4096,     /* of a demangled name that is compared */
	DIGIT_BITS = 11, /* that a pass of the sort looks at */
	DIGIT_MASK = (1 << DIGIT_BITS) - 1,
};

int perfring__symbol_table_add(struct perfring_symbol_table *table, uint64_t start, uint64_t end, const char *name,
			       unsigned flags)
{
	int error = perfring__os_array_grow(&table->entries, table->count, &table->capacity, sizeof(*table->entries));

	if (error)
		return error;
	table->entries[table->count] =
		(struct perfring_symbol_entry){.start = start, .end = end, .name = name, .flags = (uint8_t)flags};
	table->count++;
	return 0;
}

/* Sorts by some bits of the addresses; equal ones stay in their order.  Returns the sorted list: `other`, or the same if these bits
 * are equal in all. */
static struct perfring_symbol_entry *sort_by(struct perfring_symbol_entry *list, struct perfring_symbol_entry *other,
					     uint32_t count, unsigned shift)
{
	uint32_t places[1 << DIGIT_BITS] = {0}, at = 0;

	for (uint32_t i = 0; i < count; i++)
		places[list[i].start >> shift & DIGIT_MASK]++;
	if (places[list[0].start >> shift & DIGIT_MASK] == count)
		return list;
	for (uint32_t i = 0; i <= DIGIT_MASK; i++) {
		uint32_t these = places[i];

		places[i] = at;
		at += these;
	}
	for (uint32_t i = 0; i < count; i++)
		other[places[list[i].start >> shift & DIGIT_MASK]++] = list[i];
	return other;
}

/* Sorts by addresses, from their lowest bits on; of one address in the order of their additions.  Returns 0 or -ENOMEM. */
static int sort_entries(struct perfring_symbol_table *table)
{
	struct perfring_symbol_entry *list = table->entries, *other = NULL;

	if (perfring__os_array_resize(&other, table->count, sizeof(*other)))
		return -ENOMEM;
	for (unsigned shift = 0; shift < 64; shift += DIGIT_BITS) {
		struct perfring_symbol_entry *sorted = sort_by(list, other, table->count, shift);

		other = sorted == list ? other : list;
		list = sorted;
	}
	if (list != table->entries)
		table->capacity = table->count;
	table->entries = list;
	free(other);
	return 0;
}

/* Of two with one address.  Names that are mangled alike, such as those of a constructor, are compared as they are. */
static bool is_better(const struct perfring_symbol_entry *one, const struct perfring_symbol_entry *other,
		      bool demangles)
{
	const char *a = one->name, *b = other->name;
	char text[2][TEXT];
	size_t length[2], underscores[2];

	if (one->flags != other->flags)
		return one->flags > other->flags;
	if (demangles && strlen(a) != strlen(b)) {
		a = perfring__demangle(a, text[0], TEXT) ? text[0] : a;
		b = perfring__demangle(b, text[1], TEXT) ? text[1] : b;
	}
	length[0] = strlen(a);
	length[1] = strlen(b);
	underscores[0] = strspn(a, "_");
	underscores[1] = strspn(b, "_");
	if (underscores[0] != underscores[1])
		return underscores[0] < underscores[1];
	return length[0] > length[1];
}

static uint64_t page_after(uint64_t start)
{
	return start < UINT64_MAX - 8192 ? (start + 4095) / 4096 * 4096 + 4096 : UINT64_MAX;
}

static int sort(struct perfring_symbol_table *table, bool demangles, bool prefers_last)
{
	const struct perfring_symbol_entry *added = table->entries;
	struct perfring_symbol_entry *entries;
	uint32_t i, count = 0;

	if (!table->count)
		return 0;
	/* kallsyms is in order already */
	for (i = 1; i < table->count && added[i - 1].start <= added[i].start; i++)
		;
	if (i < table->count && sort_entries(table))
		return -ENOMEM;
	entries = table->entries;
	for (i = 0; i < table->count; i++) {
		if (!count || entries[count - 1].start != entries[i].start)
			entries[count++] = entries[i];
		else if (prefers_last || is_better(&entries[i], &entries[count - 1], demangles))
			entries[count - 1] = entries[i];
	}
	table->count = count;
	/* What has no size ends with its section, or where the next one begins. */
	for (i = 0; i < count; i++)
		if (entries[i].end == entries[i].start)
			entries[i].end = i + 1 < count ? entries[i + 1].start : page_after(entries[i].start);
		else if (!(entries[i].flags & PERFRING_ENTRY_SIZED) && i + 1 < count &&
			 entries[i].end > entries[i + 1].start)
			entries[i].end = entries[i + 1].start;
	return 0;
}

int perfring__symbol_table_sort(struct perfring_symbol_table *table, bool demangles)
{
	return sort(table, demangles, false);
}

int perfring__symbol_table_sort_last(struct perfring_symbol_table *table)
{
	return sort(table, false, true);
}

struct perfring_symbol_entry *perfring__symbol_table_find(const struct perfring_symbol_table *table, uint64_t address)
{
	uint32_t low = 0, high = table->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (table->entries[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low && address < table->entries[low - 1].end ? &table->entries[low - 1] : NULL;
}

void perfring__symbol_table_close(struct perfring_symbol_table *table)
{
	free(table->entries);
	*table = (struct perfring_symbol_table){.count = 0};
}
