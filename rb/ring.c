/* ring.c - mapping ring memory, and why the kernel would not. */
#include <perfring/ring.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

static uint64_t page_size(void)
{
	return (uint64_t)sysconf(_SC_PAGESIZE);
}

static bool is_power_of_two(uint64_t value)
{
	return value && !(value & (value - 1));
}

int perfring_ring_map(struct perfring_ring *ring, int fd, uint32_t pages, unsigned flags)
{
	uint64_t page = page_size();
	int protection = flags & PERFRING_RING_OVERWRITE ? PROT_READ : PROT_READ | PROT_WRITE;
	void *memory;

	memset(ring, 0, sizeof(*ring));
	if (pages && !is_power_of_two(pages))
		return -EINVAL;
	memory = mmap(NULL, (1 + (size_t)pages) * page, protection, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED)
		return -errno;
	ring->mapping = memory;
	ring->mapping_size = (1 + (uint64_t)pages) * page;
	ring->page = memory;
	/* Kernels before 4.1 leave data_offset and data_size 0 (ABI.md 14.21); later ones say what we asked for. */
	ring->data = (unsigned char *)memory + page;
	ring->size = pages * page;
	ring->span = ring->size;
	ring->flags = flags;
	return 0;
}

int perfring_ring_over(struct perfring_ring *ring, void *memory, size_t size)
{
	struct perf_event_mmap_page *page = memory;
	uint64_t offset, data;

	memset(ring, 0, sizeof(*ring));
	if (!memory || ((uintptr_t)memory & 7) || size <= page_size())
		return -EINVAL;
	offset = page->data_offset;
	data = page->data_size;
	if (offset == 0)
		offset = page_size();
	if (data == 0)
		data = size - offset;
	if (offset < sizeof(*page) || (offset & 7) || offset > size || data > size - offset || !is_power_of_two(data) ||
	    data < 8)
		return -EINVAL;
	ring->page = page;
	ring->data = (unsigned char *)memory + offset;
	ring->size = data;
	ring->span = data;
	return 0;
}

void perfring_ring_close(struct perfring_ring *ring)
{
	if (ring->mapping)
		munmap(ring->mapping, ring->mapping_size);
	memset(ring, 0, sizeof(*ring));
}

/* A sysctl's number; -1 when it cannot be read. */
static long sysctl_number(const char *path)
{
	char text[32];
	ssize_t size;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -1;
	size = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (size <= 0)
		return -1;
	text[size] = 0;
	return strtol(text, NULL, 10);
}

int64_t perfring_ring_explain(int error, uint32_t pages, char *room, size_t size)
{
	struct rlimit limit = {0, 0};
	uint64_t ring_kb = (1 + (uint64_t)pages) * page_size() / 1024;
	long budget;

	switch (error < 0 ? -error : error) {
	case EPERM:
		budget = sysctl_number("/proc/sys/kernel/perf_event_mlock_kb");
		getrlimit(RLIMIT_MEMLOCK, &limit);
		return snprintf(
			room, size,
			"mapping a ring of %llu KiB was refused (EPERM): it does not fit what this user may lock. "
			"kernel.perf_event_mlock_kb allows %ld KiB for each CPU, for all of the user's rings "
			"together; beyond it RLIMIT_MEMLOCK (%llu KiB now) counts. Use smaller rings, raise one of "
			"the two, or run with CAP_IPC_LOCK or kernel.perf_event_paranoid = -1.",
			(unsigned long long)ring_kb, budget, (unsigned long long)limit.rlim_cur / 1024);
	case EINVAL:
		return snprintf(
			room, size,
			"mapping a ring of %u data pages was refused (EINVAL): the number must be a power of two, "
			"an event that is already mapped keeps its size, and an inherited event can be mapped only "
			"when it is bound to a CPU.",
			pages);
	case EBUSY:
		return snprintf(
			room, size,
			"mapping the ring was refused (EBUSY): this event writes into another event's ring; map "
			"that one.");
	case ENOMEM:
		return snprintf(room, size, "no memory for a ring of %llu KiB (ENOMEM): use smaller rings.",
				(unsigned long long)ring_kb);
	default:
		return snprintf(room, size, "mapping a ring of %llu KiB failed: %s.", (unsigned long long)ring_kb,
				strerror(error < 0 ? -error : error));
	}
}
