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
	TEXT = 4096, /* of a demangled name that is compared */
};

int perfring_symbol_table_add(struct perfring_symbol_table *table, uint64_t start, uint64_t end, const char *name,
			      unsigned flags)
{
	int error = perfring_os_array_grow(&table->entries, table->count, &table->capacity, sizeof(*table->entries));

	if (error)
		return error;
	table->entries[table->count] = (struct perfring_symbol_entry){
		.start = start, .end = end, .name = name, .order = table->count, .flags = (uint8_t)flags};
	table->count++;
	return 0;
}

static int compare_entries(const void *a, const void *b)
{
	const struct perfring_symbol_entry *one = a, *other = b;

	if (one->start != other->start)
		return one->start < other->start ? -1 : 1;
	return one->order < other->order ? -1 : one->order > other->order;
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
		a = perfring_demangle(a, text[0], TEXT) ? text[0] : a;
		b = perfring_demangle(b, text[1], TEXT) ? text[1] : b;
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

static void sort(struct perfring_symbol_table *table, bool demangles, bool prefers_last)
{
	struct perfring_symbol_entry *entries = table->entries;
	uint32_t i, count = 0;

	if (!table->count)
		return;
	/* kallsyms is in order already */
	for (i = 1; i < table->count && entries[i - 1].start <= entries[i].start; i++)
		;
	if (i < table->count)
		qsort(entries, table->count, sizeof(*entries), compare_entries);
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
}

void perfring_symbol_table_sort(struct perfring_symbol_table *table, bool demangles)
{
	sort(table, demangles, false);
}

void perfring_symbol_table_sort_last(struct perfring_symbol_table *table)
{
	sort(table, false, true);
}

struct perfring_symbol_entry *perfring_symbol_table_find(const struct perfring_symbol_table *table, uint64_t address)
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

void perfring_symbol_table_close(struct perfring_symbol_table *table)
{
	free(table->entries);
	*table = (struct perfring_symbol_table){.count = 0};
}
