/* set.c - a ring for each thread, found by one reader: the list of rings, and what happens to a ring when its thread ends.
 *
 * The list is in the order of the rings' numbers.  Threads append under the lock.  The reader walks without it, and unlinks under it.
 * Rings are created and freed outside the lock, so it is held for a few pointers only.
 *
 *     thread that joins                               reader
 *       member complete                                 load-acquire the link
 *       store-release the link to it        --pairs-->  ... may read the member
 *
 *     thread that leaves                              reader
 *       all is published, writer closed                 load-acquire gone
 *       store-release gone                  --pairs-->  ... data_head does not change any more
 */
#include <perfring/set.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/signals.h"
#include "writer_private.h"

struct member {
	struct perfring_set_ring member; /* the reader's, except ring, number and tid, which never change */
	char *file;                      /* of its ring; NULL: none */
	struct member *next;
	struct perfring_writer *writer; /* its thread's */
	bool gone;
};

struct perfring_set {
	pthread_key_t key;    /* a thread's member.  pthread_getspecific is async-signal-safe in glibc and musl */
	pthread_mutex_t lock; /* last, the links, numbers, rings, lost */
	struct member *first;
	struct member **last;
	uint64_t numbers;
	uint64_t lost;  /* by rings that are freed */
	uint64_t files; /* numbers of files given so far */
	uint32_t rings;
	uint32_t limit;
	pid_t pid; /* a child after fork has another: there the rings are not mapped, and the lock may stay locked */
	struct perfring_ring_options ring; /* attr: a copy */
	struct perfring_writer_options writer;
	char *file; /* the first part of the names of the rings' files; NULL: memfds */
	void *attr;
};

enum {
	DEFAULT_LIMIT = 1024
};

static bool is_childs(const struct perfring_set *set)
{
	return set->pid != getpid();
}

static void free_member(struct member *member)
{
	perfring_writer_close(member->writer);
	perfring_reader_close(&member->member.reader);
	perfring_ring_close(&member->member.ring);
	free(member->file);
	free(member);
}

/* The key's destructor: runs in the thread that ends, when the key is empty already.  A handler from here on finds no
 * writer, and one that had found it has ended. */
static void leave(void *of)
{
	struct member *member = of;
	struct perfring_writer *writer = member->writer;

	/* No order needed: dismiss looks for another thread's writer, which is open.  First, because another writer may
	 * be opened at this address. */
	PERFRING_STORE(&member->writer, NULL);
	perfring_writer_close(writer);
	PERFRING_POINT(set_closed);
	PERFRING_STORE_RELEASE(&member->gone, true);
}

int perfring_set_open(struct perfring_set **result, const struct perfring_ring_options *ring,
		      const struct perfring_writer_options *writer, uint32_t limit)
{
	struct perfring_set *set;
	int ret;

	*result = NULL;
	/* A reader of rings that overwrite copies them (snapshot.h); a backward ring that stops would have none. */
	if (ring->aux_pages || ring->flags & (PERFRING_RING_STRICT | PERFRING_RING_LEASED) ||
	    !(ring->flags & PERFRING_RING_BACKWARD) != !(ring->flags & PERFRING_RING_OVERWRITE))
		return -EINVAL;
	if (ring->attr && ring->attr->size > PERFRING_RING_ATTR_SIZE)
		return -EINVAL;
	set = calloc(1, sizeof(*set));
	if (!set)
		return -ENOMEM;
	set->file = ring->file ? strdup(ring->file) : NULL;
	set->attr = ring->attr ? calloc(1, PERFRING_RING_ATTR_SIZE) : NULL;
	if ((ring->file && !set->file) || (ring->attr && !set->attr))
		ret = ENOMEM;
	else
		ret = pthread_key_create(&set->key, leave);
	if (ret) {
		free(set->file);
		free(set->attr);
		free(set);
		return -ret;
	}
	pthread_mutex_init(&set->lock, NULL);
	set->last = &set->first;
	set->pid = getpid();
	set->limit = limit ? limit : DEFAULT_LIMIT;
	set->ring = *ring;
	if (ring->attr) {
		memcpy(set->attr, ring->attr, ring->attr->size ? ring->attr->size : PERF_ATTR_SIZE_VER0);
		set->ring.attr = set->attr;
	}
	if (writer)
		set->writer = *writer;
	else
		set->writer.wake_fd = -1;
	*result = set;
	return 0;
}

void perfring_set_close(struct perfring_set *set)
{
	struct member *next;
	bool childs;

	if (!set)
		return;
	childs = is_childs(set);
	pthread_key_delete(set->key);
	for (struct member *member = set->first; member; member = next) {
		next = member->next;
		if (childs) { /* the mappings were not inherited, and something else may be there */
			perfring_reader_close(&member->member.reader);
			free(member->file);
			free(member);
		} else {
			free_member(member);
		}
	}
	if (!childs)
		pthread_mutex_destroy(&set->lock);
	free(set->file);
	free(set->attr);
	free(set);
}

/* ---- the lock ---- */

/* With signals blocked: a handler of the holder may fork, whose hooks may wait for a thread that wants the lock. */
static void lock(struct perfring_set *set, sigset_t *signals)
{
	perfring__os_signals_block(signals);
	pthread_mutex_lock(&set->lock);
	PERFRING_POINT(set_locked);
}

static void unlock(struct perfring_set *set, const sigset_t *signals)
{
	PERFRING_POINT(set_unlocks);
	pthread_mutex_unlock(&set->lock);
	pthread_sigmask(SIG_SETMASK, signals, NULL);
}

/* ---- threads ---- */

/* Counts a ring against the limit, and takes a number for its file; give_ring undoes it. */
static bool take_ring(struct perfring_set *set, uint64_t *file)
{
	sigset_t signals;
	bool is_taken;

	lock(set, &signals);
	is_taken = set->rings < set->limit;
	set->rings += is_taken;
	*file = set->files++;
	unlock(set, &signals);
	return is_taken;
}

static void give_ring(struct perfring_set *set)
{
	sigset_t signals;

	lock(set, &signals);
	set->rings--;
	unlock(set, &signals);
}

/* Undoes make_member: nothing can be in its file. */
static int unmake_member(struct perfring_set *set, struct member *member, int ret)
{
	if (member->file && member->member.ring.page)
		unlink(member->file);
	free_member(member);
	give_ring(set);
	return ret;
}

static int make_member(struct perfring_set *set, struct member **result)
{
	struct perfring_ring_options options = set->ring;
	struct member *member;
	uint64_t file;
	int ret = 0;

	if (!take_ring(set, &file))
		return -EUSERS;
	*result = member = calloc(1, sizeof(*member));
	if (!member) {
		give_ring(set);
		return -ENOMEM;
	}
	if (set->file && asprintf(&member->file, "%s.%llu", set->file, (unsigned long long)file) < 0) {
		member->file = NULL;
		ret = -ENOMEM;
	}
	options.file = member->file;
	if (!ret)
		ret = perfring_ring_create(&member->member.ring, &options);
	if (!ret)
		ret = perfring_writer_open(&member->writer, &member->member.ring, &set->writer);
	if (!ret && !(set->ring.flags & PERFRING_RING_OVERWRITE))
		ret = perfring_reader_open(&member->member.reader, &member->member.ring, 0);
	if (ret)
		return unmake_member(set, member, ret);
	member->member.tid = (uint32_t)syscall(SYS_gettid);
	member->member.cpu = -1;
	return 0;
}

/* Links it, so that the reader finds it. */
static void append(struct perfring_set *set, struct member *member)
{
	sigset_t signals;

	lock(set, &signals);
	member->member.number = set->numbers++;
	PERFRING_STORE_RELEASE(set->last, member);
	set->last = &member->next;
	unlock(set, &signals);
}

int perfring_set_join(struct perfring_set *set, struct perfring_writer **writer)
{
	struct member *member;
	int ret;

	/* Also clears what a deleted key of this number has left: a handler in pthread_setspecific could find it. */
	*writer = perfring_set_current(set);
	if (*writer)
		return 0;
	ret = make_member(set, &member);
	if (ret)
		return ret;
	ret = -pthread_setspecific(set->key, member);
	if (ret)
		return unmake_member(set, member, ret);
	PERFRING_POINT(set_joined);
	append(set, member);
	*writer = member->writer;
	return 0;
}

int perfring_set_admit(struct perfring_set *set, pthread_t thread, uint32_t tid, struct perfring_writer **writer)
{
	struct member *member;
	int ret;

	*writer = NULL;
	ret = make_member(set, &member);
	if (ret)
		return ret;
	perfring__writer_hand_over(member->writer, thread, tid);
	member->member.tid = tid;
	append(set, member);
	*writer = member->writer;
	return 0;
}

void perfring_set_dismiss(struct perfring_set *set, struct perfring_writer *writer)
{
	struct member *member;
	sigset_t signals;

	/* The links change under the lock only, and a ring whose writer is open is not freed. */
	lock(set, &signals);
	for (member = set->first; member && PERFRING_LOAD(&member->writer) != writer; member = member->next)
		;
	unlock(set, &signals);
	if (member)
		leave(member);
}

struct perfring_writer *perfring_set_current(struct perfring_set *set)
{
	const struct member *member = pthread_getspecific(set->key);

	return member ? member->writer : NULL;
}

void perfring_set_leave(struct perfring_set *set)
{
	struct member *member = pthread_getspecific(set->key);

	if (!member)
		return;
	/* First: a handler finds an open writer, or none.  Cannot fail: the key has a value. */
	pthread_setspecific(set->key, NULL);
	PERFRING_POINT(set_leaving);
	leave(member);
}

/* ---- the reader ---- */

static uint64_t lost_of(const struct member *member)
{
	return PERFRING_LOAD(&perfring_ring_state_of(member->member.ring.page)->lost_total);
}

/* Unlinks *link's member and frees it.  Only the reader does; the lock is for the last link, which threads change. */
static void drop(struct perfring_set *set, struct member **link)
{
	struct member *member = *link;
	sigset_t signals;

	lock(set, &signals);
	PERFRING_STORE(link, member->next);
	if (set->last == &member->next)
		set->last = link;
	set->lost += lost_of(member);
	set->rings--;
	unlock(set, &signals);
	if (member->file)
		unlink(member->file);
	free_member(member);
}

struct perfring_set_ring *perfring_set_next(struct perfring_set *set, struct perfring_set_ring *after)
{
	struct member **link, *member;

	if (!set)
		return NULL;
	/* The public part is the first member. */
	link = after ? &((struct member *)(void *)after)->next : &set->first;
	for (;;) {
		member = PERFRING_LOAD_ACQUIRE(link);
		if (!member || !member->member.drained)
			break;
		drop(set, link);
	}
	if (member && PERFRING_LOAD_ACQUIRE(&member->gone)) {
		const struct perf_event_mmap_page *page = member->member.ring.page;

		member->member.left = true;
		/* data_tail is the reader's, whichever reader it used.  Of a ring that overwrites it stays 0. */
		member->member.drained = perfring_page_observe(page) == perfring_page_reclaim(page);
	}
	return member ? &member->member : NULL;
}

uint64_t perfring_set_lost(struct perfring_set *set)
{
	sigset_t signals;
	uint64_t lost;

	if (is_childs(set))
		return 0;
	lock(set, &signals);
	lost = set->lost;
	for (const struct member *member = set->first; member; member = member->next)
		lost += lost_of(member);
	unlock(set, &signals);
	return lost;
}
