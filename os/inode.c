/* inode.c - whether an open file is the one that a record of a mapping names.
 *
 * Inode numbers are used again: the generation tells the files apart that had one number.  It is asked of the file system, which may
 * not have it (FS_IOC_GETVERSION: ext4, xfs, btrfs, f2fs), then of the kernel's record of a mapping of the file.
 */
#include "inode.h"

#include <linux/fs.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A record MMAP2 up to its file's name. */
struct mapped {
	struct perf_event_header header;
	uint32_t pid, tid;
	uint64_t addr, len, pgoff;
	uint32_t maj, min;
	uint64_t ino, ino_generation;
};

enum {
	RING_PAGES = 2, /* a record with a path may have more than one page */
};

static int open_event(void)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
				       .size = PERF_ATTR_SIZE_VER3,
				       .config = PERF_COUNT_SW_DUMMY,
				       .exclude_kernel = 1,
				       .mmap = 1,
				       .mmap_data = 1,
				       .mmap2 = 1};

	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

/* Finds the record of the mapping at `addr` in a ring that never wrapped. */
static bool find_record(const struct perf_event_mmap_page *page, size_t page_size, const void *addr,
			struct mapped *record)
{
	const unsigned char *data = (const unsigned char *)page + page_size;
	uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);

	if (head > RING_PAGES * page_size)
		head = RING_PAGES * page_size;
	for (uint64_t at = 0; at + sizeof(*record) <= head; at += record->header.size) {
		memcpy(record, data + at, sizeof(*record));
		if (record->header.type == PERF_RECORD_MMAP2 && record->addr == (uintptr_t)addr)
			return true;
		if (record->header.size < sizeof(record->header))
			break;
	}
	return false;
}

/* Maps a page of the file, and finds the kernel's record of it. */
static bool map_and_find(int fd, struct mapped *record)
{
	size_t size = (size_t)sysconf(_SC_PAGESIZE);
	int event = open_event();
	void *page, *map;
	bool is_found = false;

	if (event < 0)
		return false;
	page = mmap(NULL, (1 + RING_PAGES) * size, PROT_READ | PROT_WRITE, MAP_SHARED, event, 0);
	map = page == MAP_FAILED ? page : mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (map != MAP_FAILED) {
		is_found = find_record(page, size, map, record);
		munmap(map, size);
	}
	if (page != MAP_FAILED)
		munmap(page, (1 + RING_PAGES) * size);
	close(event);
	return is_found;
}

bool perfring__os_inode_is(int fd, uint64_t ino, uint64_t generation)
{
	struct mapped record;
	struct stat status;
	uint64_t version = 0; /* the kernel writes an int, whatever the request's size is */
	int32_t number;
	bool is_number;

	if (fstat(fd, &status))
		return false;
	is_number = (uint64_t)status.st_ino == ino;
	if (is_number && !generation)
		return true;
	if (is_number && !ioctl(fd, FS_IOC_GETVERSION, &version)) {
		memcpy(&number, &version, sizeof(number));
		return (uint32_t)number == generation;
	}
	if (map_and_find(fd, &record))
		return record.ino == ino && (!generation || record.ino_generation == generation);
	return is_number;
}
