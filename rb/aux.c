/* aux.c - the AUX area: transactions of raw bytes beside the records (docs/abi.md 8).
 *
 * The functions of aux.h, which session/session_aux.c and programs with a PMU of their own call.  The producer's run in the
 * writer's thread and its handlers; the consumer's in another thread or process.  Positions in the control page are a peer's:
 * each is read once and bounded.
 */
#include <perfring/aux.h>

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <perfring/wakeup.h>

enum {
	AUX_SIZE = 32, /* without its trailer */
};

static bool overwrites(const struct perfring_aux_area *aux)
{
	return aux->flags & PERFRING_RING_OVERWRITE;
}

/* ---- memory ---- */

int perfring_aux_open(struct perfring_aux_area *aux, const struct perfring_ring *ring, unsigned flags)
{
	uint64_t page_size = (uint64_t)sysconf(_SC_PAGESIZE);
	int protection = ring->flags & PERFRING_RING_READ_ONLY ? PROT_READ : PROT_READ | PROT_WRITE;
	uint64_t offset, size;
	struct stat file;
	unsigned char *data;
	int error = 0;

	memset(aux, 0, sizeof(*aux));
	if (!ring->page || !(ring->flags & PERFRING_RING_OWN) || flags & ~(unsigned)PERFRING_RING_OVERWRITE ||
	    (ring->flags & PERFRING_RING_READ_ONLY && !(flags & PERFRING_RING_OVERWRITE)))
		return -EINVAL;
	/* No order needed: both are written before the fd is passed on.  Read once: a peer may change them. */
	offset = PERFRING_LOAD(&ring->page->aux_offset);
	size = PERFRING_LOAD(&ring->page->aux_size);
	if (!offset && !size)
		return -EINVAL;
	if (fstat(ring->fd, &file) < 0)
		return -errno;
	if (size < page_size || size & (size - 1) || offset & (page_size - 1) || offset < page_size + ring->size ||
	    size > (uint64_t)file.st_size || offset > (uint64_t)file.st_size - size)
		return -EBADMSG;
	if (size > SIZE_MAX / 2)
		return -ENOMEM;
	data = mmap(NULL, (size_t)(2 * size), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (data == MAP_FAILED)
		return -errno;
	if (mmap(data, (size_t)size, protection, MAP_SHARED | MAP_FIXED, ring->fd, (off_t)offset) == MAP_FAILED ||
	    mmap(data + size, (size_t)size, protection, MAP_SHARED | MAP_FIXED, ring->fd, (off_t)offset) ==
		    MAP_FAILED) {
		error = -errno;
		munmap(data, (size_t)(2 * size));
		return error;
	}
	perfring_aux_wrap(aux, ring->page, data, size, flags);
	aux->span = 2 * size;
	aux->mapping_size = 2 * size;
	return 0;
}

int perfring_aux_wrap(struct perfring_aux_area *aux, struct perf_event_mmap_page *page, void *memory, uint64_t size,
		      unsigned flags)
{
	memset(aux, 0, sizeof(*aux));
	if (!page || !memory || !size || size & (size - 1) || flags & ~(unsigned)PERFRING_RING_OVERWRITE)
		return -EINVAL;
	aux->page = page;
	aux->data = memory;
	aux->size = size;
	aux->span = size;
	aux->flags = flags;
	/* No order needed: only this end stores aux_tail. */
	if (!overwrites(aux))
		aux->returned = perfring_page_reclaim_aux(page);
	aux->observed = aux->returned;
	return 0;
}

void perfring_aux_close(struct perfring_aux_area *aux)
{
	if (!aux)
		return;
	if (aux->mapping_size)
		munmap(aux->data, (size_t)aux->mapping_size);
	memset(aux, 0, sizeof(*aux));
}

/* ---- producer ---- */

int perfring_aux_produce(struct perfring_aux_area *aux, struct perfring_writer *writer, struct perfring_output *output,
			 uint32_t watermark)
{
	/* The area is mapped twice in a row, so that each piece is contiguous; the writer is of the same ring. */
	if (!aux->mapping_size || !writer || writer->page != aux->page || aux->writer)
		return -EINVAL;
	/* as the ring (writer.h): in a child the writer reads as zeros */
	if (madvise(aux->data, (size_t)aux->mapping_size, MADV_DONTFORK) < 0)
		return -errno;
	aux->output = output ? output : &writer->output;
	aux->position = PERFRING_LOAD(&aux->page->aux_head); /* no order needed: the last producer has ended */
	if (!overwrites(aux)) {
		aux->watermark = watermark ? watermark : aux->size / 2;
		if (aux->watermark > UINT32_MAX)
			aux->watermark = UINT32_MAX;
		aux->woken = aux->position - aux->position % aux->watermark;
	}
	aux->writer = writer;
	return 0;
}

static bool can_produce(const struct perfring_aux_area *aux)
{
	return aux->writer && aux->writer->page;
}

static void wake(struct perfring_aux_area *aux)
{
	perfring_wakeup_raise(aux->page, aux->writer->wake_fd);
}

/* Before the wakeup: the woken reader enables the producer. */
static void stop(struct perfring_aux_area *aux)
{
	PERFRING_STORE(&aux->stopped, UINT64_C(1));
	PERFRING_POINT(aux_stopped);
}

/* Publishes the bytes below `position`.  Returns whether the watermark was reached: not strict, unlike the ring's. */
static bool publish(struct perfring_aux_area *aux)
{
	perfring_page_publish_aux(aux->page, aux->position); /* pairs with the consumer's observe */
	PERFRING_POINT(aux_published);
	if (!aux->watermark || aux->position - aux->woken < aux->watermark)
		return false;
	aux->woken = aux->position - aux->position % aux->watermark;
	return true;
}

static void leave(struct perfring_aux_area *aux)
{
	aux->space = 0;
	PERFRING_FENCE_LOCAL(); /* before: a handler that begins after it sees all other words */
	PERFRING_STORE(&aux->begun, UINT64_C(0));
}

int64_t perfring_aux_begin(struct perfring_aux_area *aux, unsigned char **space)
{
	uint64_t used;

	if (!can_produce(aux))
		return -EINVAL;
	/* one instruction: of a thread and its handler, one begins */
	if (!PERFRING_COMPARE_EXCHANGE_LOCAL(&aux->begun, 0, 1))
		return -EBUSY;
	PERFRING_POINT(aux_begun);
	if (PERFRING_LOAD(&aux->stopped)) {
		leave(aux);
		return -EAGAIN;
	}
	aux->space = aux->size;
	if (!overwrites(aux)) {
		/* Acquire: the consumer has read what will be overwritten.  One byte stays free (docs/abi.md 7.2); an
		 * invalid aux_tail, a masked one for example, leaves no space. */
		used = aux->position - perfring_page_reclaim_aux(aux->page);
		aux->space = used < aux->size ? aux->size - 1 - used : 0;
	}
	if (!aux->space) {
		stop(aux);
		wake(aux);
		leave(aux);
		return 0;
	}
	*space = aux->data + (aux->position & (aux->size - 1));
	return (int64_t)aux->space;
}

unsigned char *perfring_aux_skip(struct perfring_aux_area *aux, uint64_t n)
{
	if (!can_produce(aux) || !PERFRING_LOAD(&aux->begun) || n > aux->space)
		return NULL;
	aux->space -= n;
	aux->position += n;
	if (publish(aux))
		wake(aux);
	return aux->data + (aux->position & (aux->size - 1));
}

static void put_record(struct perfring_aux_area *aux, uint64_t offset, uint64_t size, uint64_t flags)
{
	struct perfring_output *output = aux->output;
	const uint16_t total = (uint16_t)(AUX_SIZE + output->trailer_size);
	const struct perf_event_header header = {PERF_RECORD_AUX, 0, total};
	const uint64_t words[3] = {offset, size, flags};
	struct perfring_claim claim;
	unsigned char *space = perfring_writer_reserve(aux->writer, output, total, &claim);

	if (!space)
		return;
	memcpy(space, &header, sizeof(header));
	memcpy(space + sizeof(header), words, sizeof(words));
	if (output->trailer_size)
		output->trailer(output, space + AUX_SIZE);
	perfring_writer_commit(aux->writer, &claim);
}

int perfring_aux_end(struct perfring_aux_area *aux, uint64_t size, uint64_t flags)
{
	uint64_t offset;
	bool wanted;

	if (!can_produce(aux) || !PERFRING_LOAD(&aux->begun) || (!overwrites(aux) && size > aux->space))
		return -EINVAL;
	offset = aux->position;
	aux->position += size;
	if (overwrites(aux)) {
		offset = aux->position;
		flags |= PERFRING_AUX_OVERWRITE;
	} else {
		flags &= ~(uint64_t)PERFRING_AUX_OVERWRITE;
	}
	if (size || flags & ~(uint64_t)(PERFRING_AUX_OVERWRITE | PERFRING_AUX_FORMAT))
		put_record(aux, offset, size, flags);
	PERFRING_POINT(aux_recorded);
	wanted = publish(aux);
	if (flags & PERFRING_AUX_TRUNCATED)
		stop(aux);
	if (wanted || flags & PERFRING_AUX_TRUNCATED)
		wake(aux);
	leave(aux);
	return 0;
}

void perfring_aux_enable(struct perfring_aux_area *aux)
{
	PERFRING_STORE(&aux->stopped, UINT64_C(0)); /* no order needed: aux_tail says what is free */
}

/* ---- consumer ---- */

int64_t perfring_aux_observe(struct perfring_aux_area *aux, const unsigned char **bytes)
{
	/* acquire: the bytes below it are there */
	uint64_t position = perfring_page_observe_aux_from(aux->page, aux->returned);
	uint64_t from, row, ready = position - aux->returned;

	if (ready > aux->size) {
		if (!overwrites(aux))
			return -EBADMSG;
		/* overwritten since, or an invalid position: the whole area */
		aux->returned = position - aux->size;
		ready = aux->size;
	}
	aux->observed = position;
	from = aux->returned & (aux->size - 1);
	row = aux->span - from;
	*bytes = aux->data + from;
	return (int64_t)(ready < row ? ready : row);
}

void perfring_aux_return(struct perfring_aux_area *aux, uint64_t n)
{
	uint64_t observed = aux->observed - aux->returned;

	aux->returned += n < observed ? n : observed;
	if (!overwrites(aux))
		perfring_page_return_aux(aux->page, aux->returned); /* pairs with the producer's reclaim */
}
