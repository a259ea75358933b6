/* rows.h - many samples of a file or a session as rows of columns, for consumers to which each call is dear, as Python.
 *
 *     struct perfring_rows rows = {.columns = {.time = times, .ip = ips}, .capacity = 4096};
 *
 *     do {
 *             rows.count = 0;
 *             ret = perfring_file_fill(file, &rows, &item);    or perfring_session_fill
 *             use(times, ips, rows.count);                     also at the end, and before an error
 *     } while (ret == 1);
 *
 * Row i is the i-th SAMPLE, of whatever event:
 *
 *     columns.ip[i] ...                       its members (sample.h)
 *     present[i] event[i] misc[i]             which of them it has, the number of its event, misc of its header
 *     chain[chain_at[i]] to chain_at[i + 1]   its callchain, markers and all: the shape of a large list of Arrow
 *     raw[raw_at[i]] to raw_at[i + 1]         its RAW bytes, likewise
 *
 * A member whose field its event does not have is 0, a list empty.  Everything is copied: rows stay valid.
 *
 * Context: one thread at a time for each object.  Signal handlers may call perfring_rows_is_full and perfring_rows_put.
 */
#ifndef PERFRING_ROWS_H
#define PERFRING_ROWS_H

#include <perfring/record.h>
#include <perfring/sample.h>

PERFRING_BEGIN

/* Space that each row must find, so that a sample of any size fits. */
enum {
	PERFRING_ROWS_CHAIN_MIN = PERFRING_RECORD_MAX / 8, /* words */
	PERFRING_ROWS_RAW_MIN = PERFRING_RECORD_MAX,       /* bytes */
};

/* Memory of the caller; a column that is NULL is left out.  All else is 0. */
struct perfring_rows {
	struct perfring_columns columns; /* `capacity` numbers each */
	uint64_t *present;               /* likewise: PERFRING_SAMPLE_ bits */
	uint32_t *event;                 /* likewise: format->index */
	uint16_t *misc;                  /* likewise */
	uint64_t *chain_at;              /* capacity + 1 numbers: with `chain` */
	uint64_t *chain;                 /* chain_capacity words */
	uint64_t *raw_at;                /* capacity + 1 numbers: with `raw` */
	unsigned char *raw;              /* raw_capacity bytes */
	size_t capacity;
	size_t chain_capacity;
	size_t raw_capacity;
	size_t count; /* rows so far; the caller sets it to 0 to begin anew */
	uint64_t
		stops; /* 1 << PERFRING_RECORD_ bits of the kernel's other records at which filling stops, to show them */
	uint64_t reserved[4];
};

static_assert(sizeof(void *) != 8 || sizeof(struct perfring_rows) == 320, "rows");

/* Whether a sample may not fit any more: the next put of one would be -ENOSPC. */
PERFRING_API bool perfring_rows_is_full(const struct perfring_rows *rows);

/* Adds an item.  Returns 1: it is a row now, or no sample, or of an unknown event, which are left out; 0: its type is in
 * rows->stops; -ENOSPC: a sample, and perfring_rows_is_full; -EBADMSG: a damaged sample, *fault (may be NULL) says where in the
 * record, and what.  Rows change only where a row is added.  Context: also signal handlers. */
PERFRING_API int perfring_rows_put(struct perfring_rows *rows, const struct perfring_item *item,
				   struct perfring_fault *fault);

PERFRING_END

#endif
