/* rows_fill.h - the loop that fills rows (rows.h) from whatever returns items one by one.
 *
 * perfring_file_fill and perfring_session_fill are it, each with its own next and its own place for a fault.  Inline, so that next
 * is called directly.  Threads as those of next.
 */
#ifndef PERFRING_SAMPLE_ROWS_FILL_H
#define PERFRING_SAMPLE_ROWS_FILL_H

#include <perfring/rows.h>

/* next: as perfring_file_next, with `of` as its first argument.  Returns what perfring_file_fill (file.h) does.  *is_fault: the error is
 * that of a record, and *fault has it. */
static inline __attribute__((always_inline)) int perfring__rows_fill(struct perfring_rows *rows,
								     struct perfring_item *item,
								     int (*next)(void *of, struct perfring_item *item),
								     void *of, struct perfring_fault *fault,
								     bool *is_fault)
{
	int one;

	*is_fault = false;
	if (perfring_rows_is_full(rows))
		return -ENOSPC;
	do {
		item->record = NULL;
		one = next(of, item);
		if (PERFRING_UNLIKELY(one != 1))
			return one;
		one = perfring_rows_put(rows, item, fault);
		if (PERFRING_UNLIKELY(one != 1)) {
			*is_fault = one < 0;
			return one ? one : 1;
		}
	} while (!perfring_rows_is_full(rows));
	item->record = NULL;
	return 1;
}

#endif
