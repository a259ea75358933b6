/* ring.c - ring memory: made, attached, mapped; and why the kernel would not.
 *
 * The functions of ring.h.  Creates and attaches perfring rings (memfd or file), maps kernel rings, and explains refusals of
 * mmap.  Context: threads; values of an attached page are foreign, and checked before use.  A mapping is shared by handles, and
 * the last close unmaps it.
 */
#include <perfring/ring.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <perfring/page.h>

#include "os/clock.h"
#include "os/small_file.h"
#include "shared_private.h"

enum {
	HUGE_PAGE = 2 << 20,
	KINDS = PERFRING_RING_OVERWRITE | PERFRING_RING_BACKWARD | PERFRING_RING_STRICT | PERFRING_RING_LEASED |
		PERFRING_RING_LOST_FILLERS,
};

static const uint64_t data_limit = UINT64_C(1) << 30;

static uint64_t page_size(void)
{
	return (uint64_t)sysconf(_SC_PAGESIZE);
}

static bool is_power_of_two(uint64_t value)
{
	return value && !(value & (value - 1));
}

static uint64_t round_up(uint64_t size)
{
	return (size + page_size() - 1) & ~(page_size() - 1);
}

/* ---- the layout of an fd ---- */

struct layout {
	uint64_t data;
	uint64_t marks_offset, marks_size;
	uint64_t owners_offset, owners_size;
	uint64_t mapped; /* end of the mapping */
	uint64_t aux_offset, aux_size;
	uint64_t size; /* of the fd */
};

static struct layout lay_out(uint64_t data, uint32_t flags, uint32_t grain, uint32_t owners, uint64_t aux)
{
	struct layout layout = {.data = data};
	uint64_t at = page_size() + data;

	if (flags & (PERFRING_RING_STRICT | PERFRING_RING_LEASED)) {
		layout.marks_offset = at;
		layout.marks_size = data / grain * 8 * (flags & PERFRING_RING_LEASED ? 2 : 1);
		at += round_up(layout.marks_size);
		layout.owners_offset = at;
		layout.owners_size = (uint64_t)owners * PERFRING_OWNER_SIZE;
		at += round_up(layout.owners_size);
	}
	layout.mapped = at;
	if (aux) {
		layout.aux_offset = at;
		layout.aux_size = aux;
		at += aux;
	}
	layout.size = at;
	return layout;
}

static bool is_kind(uint32_t flags)
{
	uint32_t shared = flags & (PERFRING_RING_STRICT | PERFRING_RING_LEASED);

	if (flags & ~(uint32_t)KINDS || shared == (PERFRING_RING_STRICT | PERFRING_RING_LEASED))
		return false;
	if (flags & PERFRING_RING_STRICT)
		flags &= ~(uint32_t)PERFRING_RING_LOST_FILLERS;
	return shared ? flags == shared : !(flags & PERFRING_RING_LOST_FILLERS);
}

/* Whether data or an AUX area may have this size. */
static bool is_area(uint64_t size)
{
	return is_power_of_two(size) && size >= page_size() && size <= data_limit;
}

/* ---- mapping a perfring ring ---- */

/* Whether the kernel makes huge pages of shared memory when asked. */
static bool gives_huge_pages(void)
{
	static const char path[] = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";
	char text[128];

	return perfring__os_file_read(path, text, sizeof(text)) > 0 && !strstr(text, "[never]") &&
	       !strstr(text, "[deny]");
}

/* The number of handles beside the first: in a page after the mapping, private to this process. */
static uint32_t *handles_of(const struct perfring_ring *ring)
{
	return (uint32_t *)(void *)((unsigned char *)ring->mapping + ring->mapping_size);
}

/* Control page and data, then from the data on once more; then the page of the handles. */
static int map_own(struct perfring_ring *ring, int fd, const struct layout *layout, uint32_t kind, unsigned flags)
{
	/* At most 1 GiB of data each: no sum of them is above 32 bits. */
	size_t page = (size_t)page_size(), data = (size_t)layout->data, again = (size_t)layout->mapped - page;
	size_t size = page + data + again, spare = 0;
	int protection = flags & PERFRING_RING_READ_ONLY ? PROT_READ : PROT_READ | PROT_WRITE;
	unsigned char *memory, *base;
	int error;

	if (flags & PERFRING_RING_HUGE && (layout->data < HUGE_PAGE || !gives_huge_pages()))
		flags &= ~(unsigned)PERFRING_RING_HUGE;
	if (flags & PERFRING_RING_HUGE)
		spare = HUGE_PAGE; /* offset and address must agree below a huge page */
	memory = mmap(NULL, size + page + spare, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		return -errno;
	base = memory;
	if (spare) {
		base += (0 - (uintptr_t)memory) & (HUGE_PAGE - 1);
		if (base > memory)
			munmap(memory, (size_t)(base - memory));
		if (memory + spare > base)
			munmap(base + size + page, (size_t)(memory + spare - base));
	}
	if (mmap(base, page + data, protection, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED ||
	    mmap(base + page + data, again, protection, MAP_SHARED | MAP_FIXED, fd, (off_t)page) == MAP_FAILED ||
	    mprotect(base + size, page, PROT_READ | PROT_WRITE)) {
		error = errno;
		munmap(base, size + page);
		return -error;
	}
	if (flags & PERFRING_RING_HUGE)
		madvise(base, size, MADV_HUGEPAGE);
	ring->mapping = base;
	ring->mapping_size = size;
	ring->page = (struct perf_event_mmap_page *)(void *)base;
	ring->data = base + page;
	ring->size = layout->data;
	ring->span = 2 * layout->data;
	ring->flags = kind | PERFRING_RING_OWN | (flags & (PERFRING_RING_HUGE | PERFRING_RING_READ_ONLY));
	return 0;
}

/* ---- creating ---- */

/* Allocates the memory now, not during the first lap in a signal handler.  Returns 0 or -errno. */
static int populate(const struct perfring_ring *ring)
{
	const unsigned char *memory = ring->mapping;

	if (!madvise(ring->mapping, (size_t)ring->mapping_size, MADV_POPULATE_WRITE))
		return 0;
	if (errno != EINVAL)
		return -errno;
	/* Before Linux 5.14.  A load allocates too: the mapping is shared. */
	for (uint64_t at = 0; at < ring->mapping_size; at += page_size())
		PERFRING_LOAD(memory + at);
	return 0;
}

static int open_memory(const struct perfring_ring_options *options, const struct layout *layout)
{
	off_t size = (off_t)layout->size, from = 0;
	int fd, error;

	if (options->file) {
		if (options->flags & PERFRING_RING_REPLACE && unlink(options->file) < 0 && errno != ENOENT)
			return -errno;
		fd = open(options->file, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	} else {
		fd = memfd_create("perfring", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	}
	if (fd < 0)
		return -errno;
	if (options->flags & PERFRING_RING_HIGH_FD)
		fd = perfring__os_file_raise(fd);
	/* Allocates all but a memfd's huge pages, which the first access allocates. */
	if (options->flags & PERFRING_RING_HUGE && !options->file)
		from = (off_t)layout->mapped;
	error = from && ftruncate(fd, size) < 0 ? errno : 0;
	while (!error && from < size && (error = posix_fallocate(fd, from, size - from)) == EINTR)
		error = 0;
	/* A peer that shrank it would cause SIGBUS here.  No F_SEAL_SEAL: a peer may seal it against holes. */
	if (!error && !options->file && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) < 0)
		error = errno;
	if (error) {
		close(fd);
		if (options->file)
			unlink(options->file);
		return -error;
	}
	return fd;
}

/* The effective watermark in bytes (docs/abi.md 7.7). */
static uint64_t watermark_of(const struct perfring_ring_options *options, uint64_t data)
{
	if (!options->watermark || !options->wakeup)
		return data / 2;
	return options->wakeup < data ? options->wakeup : data;
}

/* Fills the control page as that of a new kernel ring (docs/abi.md 3.2). */
static void fill_page(struct perf_event_mmap_page *page, const struct layout *layout)
{
	page->size = 96;
	page->capabilities = 2;
	page->data_offset = page_size();
	page->data_size = layout->data;
	page->aux_offset = layout->aux_offset;
	page->aux_size = layout->aux_size;
}

static void fill_state(struct perfring_ring_state *state, const struct perfring_ring_options *options,
		       const struct layout *layout, uint32_t grain, uint32_t owners)
{
	state->version = PERFRING_RING_VERSION;
	state->flags = options->flags & KINDS;
	state->watermark = watermark_of(options, layout->data);
	state->marks_offset = layout->marks_offset;
	state->marks_size = layout->marks_size;
	state->owners_offset = layout->owners_offset;
	state->owners = owners;
	state->grain = grain;
	state->creator_pid = (int32_t)getpid();
	state->created = perfring__os_clock_of(CLOCK_REALTIME);
}

/* 0 is the oldest size. */
static uint32_t attr_size(const struct perf_event_attr *attr)
{
	return attr->size ? attr->size : PERF_ATTR_SIZE_VER0;
}

int perfring_ring_attr(const struct perfring_ring *ring, struct perf_event_attr *attr, uint64_t *id)
{
	const struct perfring_ring_state *state;
	uint64_t size;

	memset(attr, 0, sizeof(*attr));
	if (!(ring->flags & PERFRING_RING_OWN))
		return 0;
	state = perfring_ring_state_of(ring->page);
	size = PERFRING_LOAD(&state->attr_size);
	if (size < PERF_ATTR_SIZE_VER0 || size > PERFRING_RING_ATTR_SIZE)
		return 0;
	if (size > sizeof(*attr))
		size = sizeof(*attr);
	memcpy(attr, (const unsigned char *)ring->page + PERFRING_RING_ATTR_AT, (size_t)size);
	attr->size = (uint32_t)size; /* a peer may have changed it */
	if (id)
		*id = PERFRING_LOAD(&state->attr_id);
	return 1;
}

int perfring_ring_create(struct perfring_ring *ring, const struct perfring_ring_options *options)
{
	uint64_t data = options->pages * page_size(), aux = options->aux_pages * page_size();
	uint32_t kind = options->flags & KINDS, grain = 0, owners = 0;
	struct perfring_ring_state *state;
	struct layout layout;
	int fd, error;

	memset(ring, 0, sizeof(*ring));
	ring->fd = -1;
	if (!is_power_of_two(options->pages) || (options->aux_pages && !is_power_of_two(options->aux_pages)) ||
	    !is_kind(kind) ||
	    options->flags & ~(uint32_t)(KINDS | PERFRING_RING_HUGE | PERFRING_RING_REPLACE | PERFRING_RING_HIGH_FD))
		return -EINVAL;
	if (options->attr &&
	    (attr_size(options->attr) < PERF_ATTR_SIZE_VER0 || attr_size(options->attr) > PERFRING_RING_ATTR_SIZE))
		return -EINVAL;
	if (data > data_limit || aux > data_limit)
		return -EFBIG;
	if (kind & (PERFRING_RING_STRICT | PERFRING_RING_LEASED)) {
		owners = options->owners ? options->owners : 64;
		grain = 8;
		if (kind & PERFRING_RING_LEASED)
			grain = options->chunk ? options->chunk : data / 4 < 4096 ? (uint32_t)(data / 4) : 4096;
		if (owners > PERFRING_OWNERS_MAX || !perfring__ring_is_grain(kind, grain, data))
			return -EINVAL;
	}
	layout = lay_out(data, kind, grain, owners, aux);
	fd = open_memory(options, &layout);
	if (fd < 0)
		return fd;
	error = map_own(ring, fd, &layout, kind, options->flags & PERFRING_RING_HUGE);
	if (!error) {
		ring->fd = fd;
		error = populate(ring);
	}
	if (!error) {
		/* an emulator may not have populated it: without holes */
		if (options->flags & PERFRING_RING_HUGE)
			do
				error = -posix_fallocate(fd, 0, (off_t)layout.size);
			while (error == -EINTR);
		state = perfring_ring_state_of(ring->page);
		fill_page(ring->page, &layout);
		fill_state(state, options, &layout, grain, owners);
		if (options->attr) {
			state->attr_id = options->id;
			state->attr_size = attr_size(options->attr);
			memcpy((unsigned char *)ring->page + PERFRING_RING_ATTR_AT, options->attr,
			       attr_size(options->attr));
		}
		if (owners && !error)
			error = perfring__shared_prepare(ring);
		/* Last, after the rest; pairs with the program order of attach, by the fd. */
		PERFRING_STORE_RELEASE(&state->magic, PERFRING_RING_MAGIC);
	}
	if (error) {
		if (ring->mapping)
			perfring_ring_close(ring);
		else
			close(fd);
		if (options->file)
			unlink(options->file);
	}
	return error;
}

/* ---- attaching ---- */

#define AT_PAGE(member) offsetof(struct perf_event_mmap_page, member)
#define AT_STATE(member) (PERFRING_RING_STATE_AT + offsetof(struct perfring_ring_state, member))

static int wrong(struct perfring_fault *fault, uint64_t at, const char *what)
{
	if (fault) {
		fault->at = (int64_t)at;
		fault->what = what;
	}
	return -EBADMSG;
}

/* Copies size bytes at `at`.  Returns 0, -EBADMSG (there are fewer), -errno. */
static int copy_from(int fd, void *to, size_t size, uint64_t at)
{
	ssize_t got;

	do
		got = pread(fd, to, size, (off_t)at);
	while (got < 0 && errno == EINTR);
	return got < 0 ? -errno : got == (ssize_t)size ? 0 : -EBADMSG;
}

int perfring_ring_attach(struct perfring_ring *ring, int fd, unsigned flags, struct perfring_fault *fault)
{
	struct perf_event_mmap_page page;
	struct perfring_ring_state state;
	struct layout layout;
	struct stat status;
	uint64_t size;
	int error, seals;
	bool is_memory;

	memset(ring, 0, sizeof(*ring));
	ring->fd = -1;
	if (flags & ~(unsigned)(PERFRING_RING_READ_ONLY | PERFRING_RING_HUGE))
		return -EINVAL;
	if (fstat(fd, &status) < 0)
		return -errno;
	if (!S_ISREG(status.st_mode))
		return wrong(fault, 0, "neither a file nor a memfd");
	seals = fcntl(fd, F_GET_SEALS);
	is_memory = seals >= 0 && !status.st_nlink;
	if (is_memory && !(seals & F_SEAL_SHRINK))
		return wrong(fault, 0, "a memfd that others may shrink: it has no F_SEAL_SHRINK");
	size = (uint64_t)status.st_size;
	if (size < 2 * page_size())
		return wrong(fault, 0, "not a ring: shorter than a control page and a data page");
	/* Copies: what is checked here is what is used. */
	error = copy_from(fd, &page, sizeof(page), 0);
	if (!error)
		error = copy_from(fd, &state, sizeof(state), PERFRING_RING_STATE_AT);
	if (error)
		return error == -EBADMSG ? wrong(fault, 0, "the control page cannot be read") : error;

	if (state.magic == __builtin_bswap64(PERFRING_RING_MAGIC))
		return wrong(fault, PERFRING_RING_STATE_AT, "a ring of a machine with the other byte order");
	if (state.magic != PERFRING_RING_MAGIC)
		return wrong(fault, PERFRING_RING_STATE_AT, "not a ring made by perfring_ring_create");
	if (state.version != PERFRING_RING_VERSION)
		return wrong(fault, AT_STATE(version), "a ring of another version");
	if (page.data_offset != page_size())
		return wrong(fault, AT_PAGE(data_offset), "data_offset is not this machine's page size");
	if (!is_area(page.data_size))
		return wrong(fault, AT_PAGE(data_size), "data_size is not a power of two of pages up to 1 GiB");
	if (!is_kind(state.flags))
		return wrong(fault, AT_STATE(flags), "flags that exclude one another");
	if (state.flags & (PERFRING_RING_STRICT | PERFRING_RING_LEASED)) {
		if (!perfring__ring_is_grain(state.flags, state.grain, page.data_size))
			return wrong(fault, AT_STATE(grain), "grain does not fit the ring");
		if (!state.owners || state.owners > PERFRING_OWNERS_MAX)
			return wrong(fault, AT_STATE(owners), "owners are not 1 to 1024");
	}
	if (page.aux_size && !is_area(page.aux_size))
		return wrong(fault, AT_PAGE(aux_size), "aux_size is not a power of two of pages up to 1 GiB");
	layout = lay_out(page.data_size, state.flags, state.grain, state.owners, page.aux_size);
	if (state.marks_offset != layout.marks_offset || state.marks_size != layout.marks_size ||
	    state.owners_offset != layout.owners_offset)
		return wrong(fault, AT_STATE(marks_offset), "marks or owners are not where they belong");
	if (page.aux_offset != layout.aux_offset)
		return wrong(fault, AT_PAGE(aux_offset), "aux_offset is not after the ring");
	if (size < layout.size)
		return wrong(fault, size, "shorter than what its control page describes");
	/* a hole is charged to the process that touches it first, which may be this one */
	if (is_memory && (uint64_t)status.st_blocks * 512 < layout.size)
		return wrong(fault, (uint64_t)status.st_blocks * 512,
			     "a memfd with holes: its maker has not allocated all of it");

	error = map_own(ring, fd, &layout, state.flags, flags);
	if (error)
		return error;
	ring->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (ring->fd < 0) {
		error = -errno;
		perfring_ring_close(ring);
	}
	return error;
}

/* ---- rings that others made ---- */

int perfring_ring_map(struct perfring_ring *ring, int fd, uint32_t pages, unsigned flags)
{
	uint64_t page = page_size();
	int protection = flags & PERFRING_RING_OVERWRITE ? PROT_READ : PROT_READ | PROT_WRITE;
	void *memory;

	memset(ring, 0, sizeof(*ring));
	ring->fd = -1;
	if (pages && !is_power_of_two(pages))
		return -EINVAL;
	if (pages > SIZE_MAX / page - 1)
		return -ENOMEM;
	memory = mmap(NULL, (size_t)((1 + pages) * page), protection, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED)
		return -errno;
	ring->mapping = memory;
	ring->mapping_size = (1 + (uint64_t)pages) * page;
	ring->page = memory;
	/* before 4.1, data_offset and data_size are 0 (docs/abi.md 14.21); later, they are the same */
	ring->data = (unsigned char *)memory + page;
	ring->size = pages * page;
	ring->span = ring->size;
	ring->flags = flags;
	return 0;
}

int perfring_ring_wrap(struct perfring_ring *ring, void *memory, size_t size)
{
	struct perf_event_mmap_page *page = memory;
	uint64_t offset, data;

	memset(ring, 0, sizeof(*ring));
	ring->fd = -1;
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

int perfring_ring_share(struct perfring_ring *handle, const struct perfring_ring *ring)
{
	if (!ring->page) {
		memset(handle, 0, sizeof(*handle));
		handle->fd = -1;
		return -EINVAL;
	}
	*handle = *ring;
	handle->fd = -1;
	if (ring->flags & PERFRING_RING_OWN && ring->mapping)
		PERFRING_ADD(handles_of(ring), 1u);
	else
		handle->mapping = NULL;
	return 0;
}

void perfring_ring_close(struct perfring_ring *ring)
{
	bool is_own;

	if (!ring)
		return;
	is_own = ring->flags & PERFRING_RING_OWN;
	/* Ordered, as in every other close: the last one unmaps after the others' last accesses. */
	if (ring->mapping && !is_own)
		munmap(ring->mapping, (size_t)ring->mapping_size);
	else if (ring->mapping && !PERFRING_ADD(handles_of(ring), -1u))
		munmap(ring->mapping, (size_t)(ring->mapping_size + page_size()));
	if (is_own && ring->fd >= 0)
		close(ring->fd);
	memset(ring, 0, sizeof(*ring));
	ring->fd = -1;
}

int64_t perfring_ring_explain(int error, uint32_t pages, char *buffer, size_t size)
{
	struct rlimit limit = {0, 0};
	uint64_t ring_kb = (1 + (uint64_t)pages) * page_size() / 1024;
	int64_t budget;

	switch (error < 0 ? -error : error) {
	case EPERM:
		budget = (int64_t)perfring__os_file_number("/proc/sys/kernel/perf_event_mlock_kb", UINT64_MAX);
		getrlimit(RLIMIT_MEMLOCK, &limit);
		return snprintf(
			buffer, size,
			"mapping a ring of %llu KiB was refused (EPERM): it does not fit what this user may lock. "
			"kernel.perf_event_mlock_kb allows %lld KiB for each CPU, for all of the user's rings "
			"together; beyond it RLIMIT_MEMLOCK (%llu KiB now) counts. Use smaller rings, raise one of "
			"the two, or run with CAP_IPC_LOCK or kernel.perf_event_paranoid = -1.",
			(unsigned long long)ring_kb, (long long)budget, (unsigned long long)limit.rlim_cur / 1024);
	case EINVAL:
		return snprintf(
			buffer, size,
			"mapping a ring of %u data pages was refused (EINVAL): the number must be a power of two, "
			"an event that is already mapped keeps its size, and an inherited event can be mapped only "
			"when it is bound to a CPU.",
			pages);
	case EBUSY:
		return snprintf(
			buffer, size,
			"mapping the ring was refused (EBUSY): this event writes into another event's ring; map "
			"that one.");
	case ENOMEM:
		return snprintf(buffer, size, "no memory for a ring of %llu KiB (ENOMEM): use smaller rings.",
				(unsigned long long)ring_kb);
	default:
		return snprintf(buffer, size, "mapping a ring of %llu KiB failed: %s.", (unsigned long long)ring_kb,
				strerror(error < 0 ? -error : error));
	}
}
