/* huge_pages.h - memory that is about to be filled: a page fault for each 4 KiB of it takes as long as to fill them. */
#ifndef PERFRING_OS_HUGE_PAGES_H
#define PERFRING_OS_HUGE_PAGES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#define PERFRING_OS_HUGE_PAGE ((size_t)2 << 20)

/* Asks for huge pages for memory of at least one; of less it asks nothing.  Where there are none, ordinary ones stay.
 * errno: may change. */
static inline void perfring__os_use_huge_pages(void *memory, size_t size)
{
	const uintptr_t page = 4096;
	uintptr_t start = ((uintptr_t)memory + page - 1) & ~(page - 1), end = ((uintptr_t)memory + size) & ~(page - 1);

	if (memory && size >= PERFRING_OS_HUGE_PAGE)
		madvise((void *)start, end - start, MADV_HUGEPAGE);
}

#endif
