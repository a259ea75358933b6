/* rows.c - samples as rows of columns: rows.h.
 *
 * perfring_file_fill and perfring_session_fill put items by it, and so may a program, in signal handlers too: no allocation, no
 * lock, no static state.  A column is a view of one row of fields.def.  All memory is the caller's.
 */
#include <perfring/rows.h>

/* Where the next list goes: the index of its first item. */
static uint64_t end_of(const uint64_t *at, size_t count)
{
	return count ? at[count] : 0;
}

bool perfring_rows_is_full(const struct perfring_rows *rows)
{
	return rows->count >= rows->capacity ||
	       (rows->chain && rows->chain_capacity - end_of(rows->chain_at, rows->count) < PERFRING_ROWS_CHAIN_MIN) ||
	       (rows->raw && rows->raw_capacity - end_of(rows->raw_at, rows->count) < PERFRING_ROWS_RAW_MIN);
}

/* Appends the list of a row: nr items of `size` bytes, which end at at[row + 1] now.  The caller has seen that there is space. */
static void put_list(uint64_t *at, void *to, size_t row, const void *from, uint64_t nr, size_t size)
{
	uint64_t begin = end_of(at, row);

	at[0] = row ? at[0] : 0;
	at[row + 1] = begin + nr;
	if (nr)
		memcpy((unsigned char *)to + begin * size, from, (size_t)nr * size);
}

#define PUT(a) \
	if (rows->columns.a) \
		rows->columns.a[row] = has ? sample.a : 0;
#define PUT_number(a, b) PUT(a)
#define PUT_numbers(a, b) PUT(a) PUT(b)
#define PUT_own(a, b)

int perfring_rows_put(struct perfring_rows *rows, const struct perfring_item *item, struct perfring_fault *fault)
{
	uint32_t type = perfring_format_header_of(item->record).type;
	struct perfring_sample sample;
	size_t row = rows->count;
	int error;
	bool has;

	if (PERFRING_UNLIKELY(type != PERF_RECORD_SAMPLE))
		return type >= PERFRING_RECORD_OF_PERF || !(rows->stops >> type & 1);
	if (PERFRING_UNLIKELY(!item->format))
		return 1;
	if (PERFRING_UNLIKELY(perfring_rows_is_full(rows)))
		return -ENOSPC;
	error = perfring_sample_decode_any(item->format, item->record, &sample, fault);
	if (PERFRING_UNLIKELY(error))
		return error;
#define PERFRING_FIELD(NAME, bit, kind, a, b, ...) \
	has = sample.present & PERFRING_SAMPLE_##NAME; \
	PERFRING_FIELD_BY(PUT_, PERFRING_FIELD_KIND_##kind)(a, b)
#include <perfring/fields.def>
	if (rows->present)
		rows->present[row] = sample.present;
	if (rows->event)
		rows->event[row] = item->format->index;
	if (rows->misc)
		rows->misc[row] = sample.misc;
	has = sample.present & PERFRING_SAMPLE_CALLCHAIN;
	if (rows->chain)
		put_list(rows->chain_at, rows->chain, row, sample.callchain.words, has ? sample.callchain.nr : 0, 8);
	has = sample.present & PERFRING_SAMPLE_RAW;
	if (rows->raw)
		put_list(rows->raw_at, rows->raw, row, sample.raw.data, has ? sample.raw.size : 0, 1);
	rows->count++;
	return 1;
}
