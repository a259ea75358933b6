/* foreign.h - a ring's reader as a stranger writes it from perf_event_open(2) alone: nothing of perfring is included. */
#ifndef FOREIGN_H
#define FOREIGN_H

#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include <linux/perf_event.h>
#include <sys/mman.h>

struct foreign {
	struct perf_event_mmap_page *page;
	const char *data;
	uint64_t size, tail, lost;
	char copy[65536];
};

static inline int foreign_open(struct foreign *reader, int fd, size_t pages)
{
	size_t page_size = (size_t)sysconf(_SC_PAGESIZE);
	char *memory = mmap(NULL, (1 + pages) * page_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (memory == MAP_FAILED)
		return -1;
	reader->page = (struct perf_event_mmap_page *)memory;
	reader->data = memory + reader->page->data_offset;
	reader->size = reader->page->data_size;
	reader->tail = reader->page->data_tail;
	reader->lost = 0;
	return 0;
}

/* The next record of a type that the man page knows, else NULL. */
static inline const struct perf_event_header *foreign_next(struct foreign *reader)
{
	struct perf_event_header *header = (struct perf_event_header *)reader->copy;
	uint64_t head = __atomic_load_n(&reader->page->data_head, __ATOMIC_ACQUIRE);

	while (reader->tail != head) {
		memcpy(header, reader->data + reader->tail % reader->size, sizeof(*header));
		for (size_t i = 0; i < header->size; i++)
			reader->copy[i] = reader->data[(reader->tail + i) % reader->size];
		reader->tail += header->size;
		if (header->type == PERF_RECORD_LOST)
			reader->lost += ((uint64_t *)reader->copy)[2];
		if (header->type >= PERF_RECORD_MMAP && header->type <= 21)
			return header;
	}
	return NULL;
}

/* Everything that was read may be overwritten. */
static inline void foreign_done(struct foreign *reader)
{
	__atomic_store_n(&reader->page->data_tail, reader->tail, __ATOMIC_RELEASE);
}

static inline void foreign_close(struct foreign *reader)
{
	munmap(reader->page, (size_t)(reader->data - (char *)reader->page) + (size_t)reader->size);
}

#endif
