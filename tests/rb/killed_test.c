/* killed_test.c - shared writers that end, and are killed or stopped, anywhere in a record. */
#include "shared_rig.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <perfring/reader.h>
#include "machine.h"
#include "os/task.h"
#include "test.h"

TestSuite(killed, .timeout = 120);

/* ---- writers that end ---- */

static void *end_in_a_record(void *data)
{
	struct perfring_shared *shared;
	struct perfring_claim claim;

	if (perfring_shared_open(&shared, data, NULL) == 0)
		perfring_shared_reserve(shared, NULL, 64, &claim);
	return shared;
}

Test(killed, a_thread_that_ends_is_dead)
{
	struct perfring_shared *shared, *ended;
	struct perfring_owner owner;
	struct perfring_ring ring;
	pthread_t thread;
	unsigned i;

	if (!deaths_are_seen())
		cr_skip_test(NO_ROBUST);
	for (i = 0; i < 2; i++) {
		make_ring(&ring, modes[i], 1, 512, 2);
		cr_assert_eq(perfring_shared_open(&shared, &ring, NULL), 0);
		cr_assert_eq(pthread_create(&thread, NULL, end_in_a_record, &ring), 0);
		pthread_join(thread, (void **)&ended);
		cr_assert_not_null(ended);
		cr_assert_eq(perfring_shared_owner_at(&ring, 1, &owner), 1);
		cr_assert_not(owner.is_alive);
		cr_assert(write_plain(shared, NULL, 1, 24));
		/* In a strict ring the dead one holds it back. */
		cr_assert_eq(ring.page->data_head, 0);
		perfring_shared_flush(shared);
		cr_assert_eq(perfring_shared_abandoned(&ring), 1);
		cr_assert_eq(perfring_shared_lost(&ring), 1);
		cr_assert_eq(ring.page->data_head, shared_claimed_of(&ring, ring.page->data_head));
		munmap(ended, private_size());
		cr_assert_eq(perfring_shared_open(&ended, &ring, NULL), 0);
		perfring_shared_close(ended);
		perfring_shared_close(shared);
		perfring_ring_close(&ring);
	}
}

/* As a consumer that calls every other type an error. */
static uint64_t read_known_types_alone(const struct perfring_ring *ring, uint64_t *lost, uint64_t *fillers)
{
	uint64_t position = ring->page->data_tail, records = 0;

	for (*lost = *fillers = 0; position != ring->page->data_head;) {
		const unsigned char *at = ring->data + (position & (ring->size - 1));
		struct perf_event_header header;
		uint64_t count, trailer[2];

		memcpy(&header, at, sizeof(header));
		cr_assert_geq(header.size, 24);
		cr_assert(header.type == RECORD_TYPE || header.type == PLAIN_TYPE || header.type == PERF_RECORD_LOST,
			  "type %u", header.type);
		records += header.type != PERF_RECORD_LOST;
		if (header.type == PERF_RECORD_LOST) {
			memcpy(&count, at + 16, 8);
			*lost += count;
			*fillers += perfring_ring_is_filler(&header);
			memcpy(trailer, at + header.size - 16, 16);
			if (header.size >= 40)
				cr_assert(!trailer[0] && !trailer[1], "a trailer of zeros");
		}
		position += header.size;
	}
	return records;
}

/* Space that is not used: discarded, and left by a writer that died. */
Test(killed, fillers_may_be_lost_records)
{
	static const uint32_t sizes[] = {24, 32, 40, 72, 4096, 65528};
	struct perfring_ring_options options = {
		.pages = 256, .flags = PERFRING_RING_STRICT | PERFRING_RING_LOST_FILLERS, .owners = 2};
	uint64_t lost, fillers;
	struct perfring_shared *shared, *ended;
	struct perfring_claim outer, inner;
	struct perfring_reader reader;
	const struct perf_event_header *record;
	struct perfring_ring ring, attached;
	pthread_t thread;
	unsigned seen = 0;

	cr_assert_eq(perfring_ring_create(&ring, &options), 0);
	cr_assert(ring.flags & PERFRING_RING_LOST_FILLERS);
	cr_assert_eq(perfring_ring_attach(&attached, ring.fd, 0, NULL), 0);
	cr_assert_eq(attached.flags, ring.flags);
	cr_assert_eq(perfring_shared_open(&shared, &attached, NULL), 0);
	cr_assert_null(perfring_shared_reserve(shared, NULL, 16, &outer), "no filler is so small");
	cr_assert(write_plain(shared, NULL, 1, 24));
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		memset(ring.data + (ring.page->data_head & (ring.size - 1)), 0xa5, sizes[i]);
		cr_assert_not_null(perfring_shared_reserve(shared, NULL, sizes[i], &outer));
		cr_assert_not_null(perfring_shared_reserve(shared, NULL, 24, &inner));
		encode(inner.space, 1, 2, 24);
		perfring_shared_commit(shared, &inner);
		perfring_shared_discard(shared, &outer);
	}
	cr_assert_eq(read_known_types_alone(&ring, &lost, &fillers), 7);
	cr_assert_eq(lost, 1);
	cr_assert_eq(fillers, 6);
	if (deaths_are_seen()) {
		cr_assert_eq(pthread_create(&thread, NULL, end_in_a_record, &attached), 0);
		pthread_join(thread, (void **)&ended);
		perfring_shared_flush(shared);
		cr_assert(write_plain(shared, NULL, 1, 24));
		cr_assert_eq(read_known_types_alone(&ring, &lost, &fillers), 8);
		cr_assert_eq(lost, 2);
		cr_assert_eq(fillers, 7);
		munmap(ended, private_size());
	}
	/* Our reader passes over them, and not over those that lost something. */
	cr_assert_eq(perfring_reader_open(&reader, &ring, 0), 0);
	cr_assert_gt(perfring_reader_observe(&reader), 0);
	while (perfring_reader_next(&reader, &record) == 1)
		seen += record->type == PERF_RECORD_LOST;
	cr_assert_eq(seen, deaths_are_seen() ? 2 : 1);
	perfring_reader_close(&reader);
	perfring_shared_close(shared);
	perfring_ring_close(&attached);
	perfring_ring_close(&ring);
}

/* Writes until the first record is seen lost with its writer, for at most 10 s. */
static void write_until_recovered(struct perfring_shared *shared, const struct perfring_ring *ring)
{
	for (unsigned tries = 0; tries < 1000 && !perfring_shared_abandoned(ring); tries++) {
		while (write_plain(shared, NULL, 1, 64))
			;
		nanosleep(&(struct timespec){0, 10000000}, NULL);
	}
	cr_assert_eq(perfring_shared_abandoned(ring), 1);
	cr_assert(write_plain(shared, NULL, 1, 64) || ring->page->data_head >= ring->size / 2);
}

/* In a child: reserves a record, and unmaps the ring. */
static bool reserve_and_unmap(int fd)
{
	struct perfring_shared *shared;
	struct perfring_claim claim;
	struct perfring_ring own;

	if (perfring_ring_attach(&own, fd, 0, NULL) < 0 || perfring_shared_open(&shared, &own, NULL) < 0 ||
	    !perfring_shared_reserve(shared, NULL, 64, &claim))
		return false;
	perfring_ring_close(&own);
	return true;
}

enum death {
	REAPED,
	NOT_REAPED,
	THREADS_GO_ON, /* the main thread ends by pthread_exit; its process does not */
	DEATHS,
};

static void *go_on(void *unused)
{
	for (;;)
		pause();
	return unused;
}

static pid_t start_unmapped(int fd, enum death death)
{
	pid_t child = fork();
	pthread_t thread;

	if (child)
		return child;
	if (!reserve_and_unmap(fd))
		_exit(2);
	if (death == THREADS_GO_ON && !pthread_create(&thread, NULL, go_on, NULL))
		pthread_exit(NULL);
	_exit(death == THREADS_GO_ON ? 3 : 0);
}

/* Until its main thread is a zombie, for at most 10 s. */
static void await_zombie(pid_t child)
{
	struct perfring_os_task thread = {0};

	for (unsigned tries = 0; tries < 1000 && thread.state != 'Z'; tries++) {
		cr_assert_eq(perfring__os_task_stat((uint32_t)child, (uint32_t)child, &thread), 0);
		nanosleep(&(struct timespec){0, 10000000}, NULL);
	}
	cr_assert_eq(thread.state, 'Z');
}

/* The kernel marks no mutex that it cannot reach. */
Test(killed, a_writer_that_dies_with_the_ring_unmapped_is_dead)
{
	struct perfring_shared *shared;
	struct perfring_owner owner;
	struct perfring_ring ring;
	int status;
	pid_t child;

	for (unsigned i = 0; i < 2 * DEATHS; i++) {
		enum death death = (enum death)(i / 2);

		make_ring(&ring, modes[i % 2], 4, 512, 2);
		child = start_unmapped(ring.fd, death);
		cr_assert_gt(child, 0);
		if (death == REAPED) {
			cr_assert_eq(waitpid(child, &status, 0), child);
			cr_assert_eq(status, 0);
		} else {
			await_zombie(child);
		}
		cr_assert_eq(perfring_shared_owner_at(&ring, 0, &owner), 1);
		cr_assert_not(owner.is_alive);
		/* In a full ring, without an open or a flush. */
		cr_assert_eq(perfring_shared_open(&shared, &ring, NULL), 0);
		write_until_recovered(shared, &ring);
		perfring_shared_close(shared);
		perfring_ring_close(&ring);
		if (death == REAPED)
			continue;
		if (death == THREADS_GO_ON)
			kill(child, SIGKILL);
		cr_assert_eq(waitpid(child, &status, 0), child);
		cr_assert(death == THREADS_GO_ON ? WIFSIGNALED(status) : status == 0, "status %x", status);
	}
}

/* ---- slots that change hands while another looks ---- */

/* Another process and what it is told, one byte each: it answers when it has done so. */
static struct {
	pid_t pid;
	int order[2], answer[2];
	int fd;                           /* of its ring, */
	const struct perfring_ring *ring; /* as this process has it */
	unsigned struck;
	bool died; /* the slot's owner was not alive, as strike_locked saw it */
} peer;

/* The peer: 'o' opens, 'w' writes a record, 'c' closes, 'u' reserves a record, unmaps the ring and ends.  Ends with the pipe. */
static void obey(int fd)
{
	struct perfring_shared *shared = NULL;
	struct perfring_claim claim;
	struct perfring_ring own;
	char order;

	if (perfring_ring_attach(&own, fd, 0, NULL) < 0)
		_exit(2);
	while (read(peer.order[0], &order, 1) == 1) {
		if (order == 'o' && perfring_shared_open(&shared, &own, NULL) < 0)
			_exit(3);
		if (order == 'w' && !write_plain(shared, NULL, 1, 24))
			_exit(4);
		if (order == 'c')
			perfring_shared_close(shared);
		if (order == 'u') {
			if (!perfring_shared_reserve(shared, NULL, 64, &claim))
				_exit(5);
			perfring_ring_close(&own);
			_exit(0);
		}
		if (write(peer.answer[1], &order, 1) != 1)
			_exit(6);
	}
	_exit(0);
}

static void start_peer(int fd)
{
	cr_assert_eq(pipe(peer.order), 0);
	cr_assert_eq(pipe(peer.answer), 0);
	peer.pid = fork();
	if (peer.pid) {
		close(peer.answer[1]); /* then its end ends a read */
		return;
	}
	striker.action = NO_ACTION;
	close(peer.order[1]);
	obey(fd);
}

static void tell_peer(char order)
{
	char answer = 0;

	cr_assert_eq(write(peer.order[1], &order, 1), 1);
	cr_assert_eq(read(peer.answer[0], &answer, 1), order == 'u' ? 0 : 1);
	cr_assert_eq(answer, order == 'u' ? 0 : order);
}

/* `status`: of its end. */
static void end_peer(int status)
{
	int ended;

	close(peer.order[1]);
	cr_assert_eq(waitpid(peer.pid, &ended, 0), peer.pid);
	cr_assert_eq(ended, status);
	close(peer.order[0]);
	close(peer.answer[0]);
}

static void strike_vanished(const char *name)
{
	if (strcmp(name, "shared_vanished") != 0 || peer.pid)
		return;
	start_peer(peer.fd);
	tell_peer('o');
	tell_peer('w');
}

/* Concurrent: mark_vanished, which has read the dead owner's lock word and identity; its partner is take_slot of another process,
 * which takes the slot between that and the exchange of the word.  The exchange compares: else it would mark the new owner's
 * mutex, and two threads would own one slot. */
Test(killed, who_marks_a_vanished_owner_late_takes_no_slot_of_the_living)
{
	struct perfring_shared *shared;
	struct perfring_owner owner;
	struct perfring_ring ring;
	int status;
	pid_t child;

	board_make();
	for (unsigned i = 0; i < 2; i++) {
		board_clear();
		make_ring(&ring, modes[i], 4, 512, 1);
		child = start_unmapped(ring.fd, REAPED);
		cr_assert_gt(child, 0);
		cr_assert_eq(waitpid(child, &status, 0), child);
		cr_assert_eq(status, 0);
		peer.fd = ring.fd;
		peer.pid = 0;
		striker.call = strike_vanished;
		striker.action = CALL;
		cr_assert_eq(perfring_shared_open(&shared, &ring, NULL), -EUSERS);
		striker.action = NO_ACTION;
		cr_assert_gt(peer.pid, 0, "shared_vanished is never passed");
		cr_assert_eq(perfring_shared_owner_at(&ring, 0, &owner), 1);
		cr_assert(owner.is_alive);
		cr_assert_eq(owner.pid, (uint32_t)peer.pid);
		cr_assert_eq(perfring_shared_abandoned(&ring), 1);
		tell_peer('w');
		tell_peer('c');
		cr_assert_eq(perfring_shared_open(&shared, &ring, NULL), 0);
		perfring_shared_flush(shared);
		cr_assert_eq(ring.page->data_head, shared_claimed_of(&ring, ring.page->data_head));
		perfring_shared_close(shared);
		end_peer(0);
		perfring_ring_close(&ring);
	}
}

/* Killed as it takes a dead owner's slot, when it has cleared the identity and has not locked the mutex: the next one still
 * finds the slot free, and recovers what its first owner left. */
Test(killed, killed_between_identity_and_lock_of_a_slot)
{
	struct perfring_shared *shared;
	struct perfring_ring ring, own;
	struct perfring_claim claim;
	pid_t child;
	int status;

	if (!deaths_are_seen())
		cr_skip_test(NO_ROBUST);
	board_make();
	for (unsigned i = 0; i < 6; i++) {
		unsigned kind = i / 2; /* of the slot: its owner was killed, vanished, has closed */

		board_clear();
		make_ring(&ring, modes[i % 2], 4, 512, 1);
		child = kind == 1 ? start_unmapped(ring.fd, REAPED) : fork();
		if (!child) {
			if (perfring_ring_attach(&own, ring.fd, 0, NULL) < 0 ||
			    perfring_shared_open(&shared, &own, NULL) < 0)
				_exit(2);
			if (kind == 2)
				perfring_shared_close(shared);
			else
				perfring_shared_reserve(shared, NULL, 64, &claim);
			_exit(0);
		}
		cr_assert_eq(waitpid(child, &status, 0), child);
		cr_assert_eq(status, 0);
		for (unsigned k = 0; k < 2; k++) { /* the second time the identity is cleared already */
			child = fork();
			if (!child) {
				striker.point = "shared_cleared";
				striker.pass = 0;
				striker.action = KILL;
				if (perfring_ring_attach(&own, ring.fd, 0, NULL) < 0)
					_exit(2);
				perfring_shared_open(&shared, &own, NULL);
				_exit(3);
			}
			cr_assert_eq(waitpid(child, &status, 0), child);
			cr_assert(WIFSIGNALED(status), "kind %u: status %x", kind, status);
		}
		cr_assert_eq(perfring_shared_open(&shared, &ring, NULL), 0, "kind %u", kind);
		cr_assert_eq(perfring_shared_abandoned(&ring), kind < 2);
		cr_assert_eq(perfring_shared_lost(&ring), kind < 2);
		cr_assert(write_plain(shared, NULL, 1, 24));
		perfring_shared_flush(shared);
		cr_assert_eq(ring.page->data_head, shared_claimed_of(&ring, ring.page->data_head));
		perfring_shared_close(shared);
		perfring_ring_close(&ring);
	}
}

static void strike_locked(const char *name)
{
	struct perfring_owner owner;

	if (strcmp(name, "shared_locked") != 0)
		return;
	peer.struck++;
	perfring_shared_owner_at(peer.ring, 0, &owner);
	peer.died |= !owner.is_alive;
}

/* The dead owner's thread had the number that this thread has now.  Concurrent: has_vanished in any process, between this
 * thread's lock of the mutex and the store of its identity; it must not take the dead one's identity for the word's. */
Test(killed, a_number_that_is_used_again_is_not_the_dead_owners)
{
	struct perfring_shared *shared;
	struct perfring_ring ring;
	uint32_t grain, owners;
	pid_t child;
	int status;

	if (!deaths_are_seen())
		cr_skip_test(NO_ROBUST);
	board_make();
	for (unsigned i = 0; i < 2; i++) {
		board_clear();
		make_ring(&ring, modes[i], 4, 512, 1);
		child = start_unmapped(ring.fd, REAPED);
		cr_assert_eq(waitpid(child, &status, 0), child);
		cr_assert_eq(status, 0);
		tables_of(&ring, &grain, &owners)->identity =
			(uint64_t)child << 42 | (uint64_t)syscall(SYS_gettid) << 20 | 1;
		tables_of(&ring, &grain, &owners)->held.__data.__lock = (int)FUTEX_OWNER_DIED;
		peer.ring = &ring;
		peer.struck = 0;
		peer.died = false;
		striker.call = strike_locked;
		striker.action = CALL;
		cr_assert_eq(perfring_shared_open(&shared, &ring, NULL), 0);
		striker.action = NO_ACTION;
		cr_assert_eq(peer.struck, 1);
		cr_assert_not(peer.died);
		perfring_shared_close(shared);
		perfring_ring_close(&ring);
	}
}

static void strike_reopened(const char *name)
{
	if (strcmp(name, "shared_sought") == 0 && peer.struck == 0) {
		peer.struck++;
		tell_peer('c');
	}
	if (strcmp(name, "shared_found") == 0 && peer.struck == 1) {
		peer.struck++;
		tell_peer('o');
	}
}

/* Concurrent: take_slot, which has read the identity of an owner; its partner is that owner, which closes the slot and opens it
 * again before the identity is cleared.  It keeps its name: else none would see it vanish. */
Test(killed, an_owner_that_reopens_keeps_its_identity)
{
	struct perfring_shared *shared;
	struct perfring_owner owner;
	struct perfring_ring ring;

	board_make();
	for (unsigned i = 0; i < 2; i++) {
		board_clear();
		make_ring(&ring, modes[i], 4, 512, 1);
		start_peer(ring.fd);
		tell_peer('o');
		peer.struck = 0;
		striker.call = strike_reopened;
		striker.action = CALL;
		cr_assert_eq(perfring_shared_open(&shared, &ring, NULL), -EUSERS);
		striker.action = NO_ACTION;
		cr_assert_eq(peer.struck, 2);
		cr_assert_eq(perfring_shared_owner_at(&ring, 0, &owner), 1);
		cr_assert(owner.is_alive);
		tell_peer('u');
		end_peer(0);
		cr_assert_eq(perfring_shared_owner_at(&ring, 0, &owner), 1);
		cr_assert_not(owner.is_alive);
		cr_assert_eq(perfring_shared_open(&shared, &ring, NULL), 0);
		cr_assert_eq(perfring_shared_abandoned(&ring), 1);
		perfring_shared_close(shared);
		perfring_ring_close(&ring);
	}
}

/* As a machine that went down leaves it: the ring's file, from another boot; here a copy of it. */
Test(killed, a_writer_of_another_boot_is_dead)
{
	for (unsigned i = 0; i < 2; i++) {
		struct perfring_shared *living, *shared;
		struct perfring_ring ring, copy;
		struct perfring_owner owner;
		struct perfring_claim claim;
		uint32_t grain, owners;
		char *bytes;
		size_t size;
		int fd;

		make_ring(&ring, modes[i], 4, 512, 2);
		cr_assert_eq(perfring_shared_open(&living, &ring, NULL), 0);
		cr_assert_not_null(perfring_shared_reserve(living, NULL, 64, &claim));

		size = (size_t)lseek(ring.fd, 0, SEEK_END);
		bytes = malloc(size);
		cr_assert_eq(pread(ring.fd, bytes, size, 0), (ssize_t)size);
		fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
		cr_assert_geq(fd, 0);
		cr_assert_eq(pwrite(fd, bytes, size, 0), (ssize_t)size);
		free(bytes);

		cr_assert_eq(perfring_ring_attach(&copy, fd, 0, NULL), 0);
		/* The copy's owner is the thread that has the original: it lives, and what it has reserved is waited for. */
		cr_assert_eq(perfring_shared_owner_at(&copy, 0, &owner), 1);
		cr_assert(owner.is_alive);
		cr_assert_eq(perfring_shared_open(&shared, &copy, NULL), 0);
		cr_assert(write_plain(shared, NULL, 1, 64));
		perfring_shared_flush(shared);
		cr_assert_eq(perfring_shared_abandoned(&copy), 0);

		tables_of(&copy, &grain, &owners)->boot++;
		cr_assert_eq(perfring_shared_owner_at(&copy, 0, &owner), 1);
		cr_assert_not(owner.is_alive);
		write_until_recovered(shared, &copy);
		perfring_shared_close(shared);
		perfring_ring_close(&copy);
		close(fd);
		perfring_shared_commit(living, &claim);
		perfring_shared_close(living);
		perfring_ring_close(&ring);
	}
}

/* ---- killed and stopped at every point ---- */

/* In a child: attaches by the fd alone. */
static int attach_author(struct author *author, struct perfring_ring *ring, int fd, unsigned writer)
{
	memset(author, 0, sizeof(*author));
	author->writer = writer;
	if (perfring_ring_attach(ring, fd, 0, NULL) != 0)
		return -1;
	return perfring_shared_open(&author->shared, ring, NULL);
}

static pid_t start_victim(int fd, const char *point, enum action action, uint32_t pass)
{
	struct perfring_reader reader;
	struct perfring_ring ring;
	struct author author;
	pid_t child = fork();

	if (child)
		return child;
	if (attach_author(&author, &ring, fd, 1) != 0 || perfring_reader_open(&reader, &ring, 0) != 0)
		_exit(2);
	striker.point = point;
	striker.pass = pass;
	striker.author = &author;
	striker.action = action;
	play(&author, &reader, 13);
	striker.action = NO_ACTION;
	perfring_shared_close(author.shared);
	_exit(0);
}

/* What a killed writer left: what it had committed is there; what it was in is there whole, or counted as lost. */
static void check_victim(unsigned writer, bool leased, uint64_t *refused, uint64_t *must, uint64_t *may)
{
	uint32_t i;

	for (i = 0; i < board->begun[writer]; i++) {
		const struct story *story = &board->story[writer][i];
		bool in_another = story->base != i && board->story[writer][story->base].outcome <= DISCARDING &&
				  board->story[writer][story->base].outcome != NOTHING;

		switch (story->outcome) {
		case COMMITTED:
			/* In a lease, what handlers wrote is the interrupted record's. */
			if (!story->seen && !(leased && in_another))
				wrong("committed, and not seen", writer, i);
			*must += !story->seen;
			break;
		case RESERVED:
			*must += !story->seen;
			break;
		case DISCARDED:
		case REFUSED:
			if (story->seen)
				wrong("seen, though refused", writer, i);
			*refused += story->outcome == REFUSED;
			break;
		case BEGUN:
		case DISCARDING:
			*may += !story->seen;
			break;
		default:
			break;
		}
	}
}

static void kill_at(uint32_t mode, const char *point, uint32_t pass, uint32_t owners)
{
	struct author survivor = {.writer = 2}, reopened = {.writer = 3};
	uint64_t refused = 0, must = 0, may = 0;
	struct perfring_reader reader;
	struct perfring_ring ring;
	int status;
	pid_t child;
	unsigned i;

	board_clear();
	make_ring(&ring, mode, 2, 512, owners);
	child = start_victim(ring.fd, point, KILL, pass);
	cr_assert_gt(child, 0);
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "%s %u: status %x", point, pass, status);
	/* One that comes later recovers when it opens; its reader goes on where the dead one's was. */
	cr_assert_eq(perfring_reader_open(&reader, &ring, 0), 0);
	cr_assert_eq(perfring_shared_open(&survivor.shared, &ring, NULL), 0);
	drain(&reader);
	for (i = 0; i < 30; i++) {
		put(&survivor, 16 + i % 5 * 80);
		if (i % 7 == 6) {
			perfring_shared_flush(survivor.shared);
			drain(&reader);
		}
	}
	if (owners > 1) {
		cr_assert_eq(perfring_shared_open(&reopened.shared, &ring, NULL), 0);
		put(&reopened, 40);
		perfring_shared_close(reopened.shared);
	}
	perfring_shared_flush(survivor.shared);
	drain(&reader);
	check_victim(1, mode == PERFRING_RING_LEASED, &refused, &must, &may);
	check_writer(2, &refused);
	check_writer(3, &refused);
	check_nothing_wrong(point, pass);
	cr_assert_eq(ring.page->data_head, shared_claimed_of(&ring, ring.page->data_head), "%s %u", point, pass);
	/* Killed between two words of a count, it is wrong by one. */
	if (strcmp(point, "shared_nested") == 0 || strcmp(point, "shared_committed") == 0)
		may++;
	cr_assert_geq(perfring_shared_lost(&ring), refused + must, "%s %u", point, pass);
	cr_assert_leq(perfring_shared_lost(&ring), refused + must + may, "%s %u", point, pass);
	cr_assert_leq(board->told + state_of(&ring)->lost, perfring_shared_lost(&ring));
	if (must)
		cr_assert_gt(perfring_shared_abandoned(&ring), 0, "%s %u", point, pass);
	cr_assert_leq(perfring_shared_abandoned(&ring), must + may, "%s %u", point, pass);
	perfring_shared_close(survivor.shared);
	perfring_reader_close(&reader);
	perfring_ring_close(&ring);
}

static uint32_t passes_of(uint32_t mode, const char *point)
{
	struct perfring_ring ring;
	int status;
	pid_t child;

	board_clear();
	make_ring(&ring, mode, 2, 512, 2);
	child = start_victim(ring.fd, point, COUNT, 0);
	cr_assert_gt(child, 0);
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	check_nothing_wrong(point, 0);
	perfring_ring_close(&ring);
	return board->passes;
}

static void kill_everywhere(uint32_t mode, const char *const *points, size_t count)
{
	uint32_t passes, pass;
	unsigned i;

	if (!deaths_are_seen())
		cr_skip_test(NO_ROBUST);
	board_make();
	for (i = 0; i < count; i++) {
		passes = passes_of(mode, points[i]);
		cr_assert_gt(passes, 0, "%s is never passed", points[i]);
		for (pass = 1; pass <= passes; pass += passes / (30 / stride()) + 1)
			kill_at(mode, points[i], pass, pass % 2 ? 2 : 1);
	}
}

Test(killed, killed_at_every_point_strict)
{
	kill_everywhere(PERFRING_RING_STRICT, strict_points, sizeof(strict_points) / sizeof(strict_points[0]));
}

Test(killed, killed_at_every_point_leased)
{
	kill_everywhere(PERFRING_RING_LEASED, leased_points, sizeof(leased_points) / sizeof(leased_points[0]));
}

/* A crossing is told before it is told no more: by the one that is killed, or by the next. */
Test(killed, a_crossing_is_told_though_its_writer_is_killed)
{
	static const char *const points[] = {"shared_stamped", "shared_published"};
	struct perfring_ring_options options = {
		.pages = 2, .flags = PERFRING_RING_STRICT, .watermark = true, .wakeup = 600, .owners = 2};
	struct perfring_shared *shared;
	struct perfring_ring ring;
	struct author author;
	int status;
	unsigned i;
	pid_t child;

	board_make();
	for (i = 0; i < 2; i++) {
		board_clear();
		cr_assert_eq(perfring_ring_create(&ring, &options), 0);
		child = fork();
		if (!child) {
			struct perfring_ring own;

			if (attach_author(&author, &own, ring.fd, 1) != 0)
				_exit(2);
			put(&author, 600);
			striker.point = points[i];
			striker.pass = 0;
			striker.action = KILL;
			put(&author, 600);
			_exit(0);
		}
		cr_assert_eq(waitpid(child, &status, 0), child);
		cr_assert(WIFSIGNALED(status), "%s", points[i]);
		cr_assert_eq(ring.page->data_head, 1200);
		if (i == 1) {
			cr_assert_eq(perfring_wakeup_poll(&ring), 0);
			cr_assert_eq(perfring_shared_open(&shared, &ring, NULL), 0);
			cr_assert(write_plain(shared, NULL, 1, 24));
			perfring_shared_close(shared);
		}
		cr_assert_neq(perfring_wakeup_poll(&ring), 0, "%s", points[i]);
		perfring_ring_close(&ring);
	}
}

/* Stopped, it is waited for: nobody writes over it, or publishes past it, or waits in a call; then all is there. */
static void stop_at(uint32_t mode, const char *point, uint32_t pass)
{
	struct author survivor = {.writer = 2};
	struct perfring_reader reader;
	struct perfring_ring ring;
	uint64_t refused = 0;
	unsigned i, refusals = 0;
	int status;
	pid_t child;

	board_clear();
	make_ring(&ring, mode, 2, 512, 2);
	child = start_victim(ring.fd, point, STOP, pass);
	cr_assert_gt(child, 0);
	cr_assert_eq(waitpid(child, &status, WUNTRACED), child);
	cr_assert(WIFSTOPPED(status), "%s %u: status %x", point, pass, status);
	cr_assert_eq(perfring_shared_open(&survivor.shared, &ring, NULL), 0);
	for (i = 0; i < 400; i++)
		refusals += !put(&survivor, 64);
	perfring_shared_flush(survivor.shared);
	cr_assert_gt(refusals, 0);
	cr_assert_eq(perfring_shared_abandoned(&ring), 0, "%s %u", point, pass);
	kill(child, SIGCONT);
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s %u: status %x", point, pass, status);
	cr_assert_eq(perfring_reader_open(&reader, &ring, 0), 0);
	perfring_shared_flush(survivor.shared);
	drain(&reader);
	check_writer(1, &refused);
	check_writer(2, &refused);
	check_nothing_wrong(point, pass);
	cr_assert_eq(ring.page->data_head, shared_claimed_of(&ring, ring.page->data_head), "%s %u", point, pass);
	cr_assert_eq(perfring_shared_lost(&ring), refused, "%s %u", point, pass);
	cr_assert_eq(board->told + state_of(&ring)->lost, refused, "%s %u", point, pass);
	perfring_shared_close(survivor.shared);
	perfring_reader_close(&reader);
	perfring_ring_close(&ring);
}

static void stop_everywhere(uint32_t mode, const char *const *points, size_t count)
{
	uint32_t passes, pass;
	unsigned i;

	board_make();
	for (i = 0; i < count; i++) {
		passes = passes_of(mode, points[i]);
		for (pass = 1; pass <= passes; pass += passes / trials(10) + 1)
			stop_at(mode, points[i], pass);
	}
}

Test(killed, stopped_at_every_point_strict)
{
	stop_everywhere(PERFRING_RING_STRICT, strict_points, sizeof(strict_points) / sizeof(strict_points[0]));
}

Test(killed, stopped_at_every_point_leased)
{
	stop_everywhere(PERFRING_RING_LEASED, leased_points, sizeof(leased_points) / sizeof(leased_points[0]));
}

/* ---- a recoverer and a sealer that are killed themselves ---- */

enum recoverer {
	BY_FLUSH, /* opens before the first dies */
	BY_OPEN,  /* opens afterwards, in a slot of its own */
	BY_SLOT,  /* opens in the dead one's slot: there is no other */
};

/* A writer dies in three records; a second dies while it recovers; the third finds all in order. */
static bool kill_recoverer(uint32_t mode, enum recoverer how, const char *point, uint32_t pass)
{
	struct author survivor = {.writer = 3};
	uint64_t refused = 0, must = 0, may = 0;
	struct piece outer, middle, inner;
	struct perfring_reader reader;
	struct perfring_ring ring, own;
	pid_t first, second;
	struct author author;
	int status;
	bool killed;

	board_clear();
	make_ring(&ring, mode, 2, 512, how == BY_SLOT ? 1 : 3);
	if (how == BY_OPEN) {
		/* Keeps the first slot, so that the dead one's is not the first to be looked at. */
		cr_assert_eq(perfring_shared_open(&survivor.shared, &ring, NULL), 0);
	}
	second = fork();
	if (!second) {
		if (how == BY_FLUSH && attach_author(&author, &own, ring.fd, 2) != 0)
			_exit(2);
		__atomic_store_n(&board->phase, 1, __ATOMIC_RELEASE);
		while (__atomic_load_n(&board->phase, __ATOMIC_ACQUIRE) != 2)
			usleep(100);
		striker.point = point;
		striker.pass = pass;
		striker.action = KILL;
		if (how != BY_FLUSH && attach_author(&author, &own, ring.fd, 2) != 0)
			_exit(2);
		perfring_shared_flush(author.shared);
		striker.action = NO_ACTION;
		put(&author, 48);
		perfring_shared_close(author.shared);
		_exit(0);
	}
	while (__atomic_load_n(&board->phase, __ATOMIC_ACQUIRE) != 1)
		usleep(100);
	first = fork();
	if (!first) {
		if (attach_author(&author, &own, ring.fd, 1) != 0)
			_exit(2);
		put(&author, 200);
		begin(&author, 64, &outer);
		begin(&author, 72, &middle);
		begin(&author, 400, &inner);
		kill(getpid(), SIGKILL);
	}
	cr_assert_eq(waitpid(first, &status, 0), first);
	cr_assert(WIFSIGNALED(status));
	__atomic_store_n(&board->phase, 2, __ATOMIC_RELEASE);
	cr_assert_eq(waitpid(second, &status, 0), second);
	killed = WIFSIGNALED(status);
	cr_assert(killed || (WIFEXITED(status) && WEXITSTATUS(status) == 0), "%s %u: %x", point, pass, status);
	if (!survivor.shared)
		cr_assert_eq(perfring_shared_open(&survivor.shared, &ring, NULL), 0);
	cr_assert(put(&survivor, 64));
	perfring_shared_flush(survivor.shared);
	cr_assert_eq(perfring_reader_open(&reader, &ring, 0), 0);
	drain(&reader);
	check_victim(1, mode == PERFRING_RING_LEASED, &refused, &must, &may);
	cr_assert_eq(must, 3);
	cr_assert_eq(may, 0);
	check_victim(2, mode == PERFRING_RING_LEASED, &refused, &must, &may);
	check_writer(3, &refused);
	check_nothing_wrong(point, pass);
	cr_assert_eq(ring.page->data_head, shared_claimed_of(&ring, ring.page->data_head), "%s %u", point, pass);
	/* One that dies between taking a space and counting it does not count it; of a lease it may be two. */
	may = strcmp(point, "shared_taken") == 0 && killed ? (mode == PERFRING_RING_LEASED ? 2 : 1) : 0;
	cr_assert_leq(perfring_shared_lost(&ring), must + refused);
	cr_assert_geq(perfring_shared_lost(&ring) + may, must + refused, "%s %u: %llu", point, pass,
		      (unsigned long long)perfring_shared_lost(&ring));
	perfring_shared_close(survivor.shared);
	perfring_reader_close(&reader);
	perfring_ring_close(&ring);
	return killed;
}

static void kill_recoverers(uint32_t mode)
{
	static const char *const points[] = {
		"shared_locked", "shared_taken",     "shared_counted",   "shared_lost_counted",       "shared_filled",
		"shared_first",  "shared_reopening", "shared_recovered", "shared_consistent", "shared_published"};
	unsigned how, i, pass, killed[10] = {0};

	if (!deaths_are_seen())
		cr_skip_test(NO_ROBUST);
	board_make();
	for (how = BY_FLUSH; how <= BY_SLOT; how++)
		for (i = 0; i < 10; i++)
			for (pass = 1; pass <= 4 && kill_recoverer(mode, (enum recoverer)how, points[i], pass); pass++)
				killed[i]++;
	for (i = 0; i < 10; i++)
		cr_assert_gt(killed[i], 0, "%s is never passed", points[i]);
}

Test(killed, recoverers_killed_strict)
{
	kill_recoverers(PERFRING_RING_STRICT);
}

Test(killed, recoverers_killed_leased)
{
	kill_recoverers(PERFRING_RING_LEASED);
}

/* The writer lives, and is idle in a chunk; who seals it dies at each point, and so does the next. */
Test(killed, sealers_killed)
{
	static const char *const points[] = {"shared_limited", "shared_barred", "shared_idle",  "shared_taken",
					     "shared_lost_counted",    "shared_filled", "shared_first", "shared_published"};
	struct author author, sealer;
	struct perfring_reader reader;
	struct perfring_ring ring, own;
	uint64_t refused;
	unsigned i, round;
	int status;
	pid_t child;

	if (!deaths_are_seen())
		cr_skip_test(NO_ROBUST);
	board_make();
	for (i = 0; i < 8; i++) {
		board_clear();
		make_ring(&ring, PERFRING_RING_LEASED, 2, 512, 4);
		cr_assert_eq(attach_author(&author, &own, ring.fd, 1), 0);
		for (round = 0; round < 3; round++) {
			cr_assert(put(&author, 64));
			cr_assert(put(&author, 72));
			child = fork();
			if (!child) {
				struct perfring_ring third;

				if (attach_author(&sealer, &third, ring.fd, 2) != 0)
					_exit(2);
				striker.point = points[i];
				striker.pass = 0;
				striker.action = KILL;
				perfring_shared_flush(sealer.shared);
				_exit(0);
			}
			cr_assert_eq(waitpid(child, &status, 0), child);
			cr_assert(WIFSIGNALED(status), "%s %u", points[i], round);
		}
		cr_assert(put(&author, 80));
		perfring_shared_flush(author.shared);
		cr_assert_eq(perfring_reader_open(&reader, &ring, 0), 0);
		drain(&reader);
		refused = 0;
		check_writer(1, &refused);
		check_nothing_wrong(points[i], 0);
		cr_assert_eq(board->read, 7);
		cr_assert_eq(perfring_shared_lost(&ring), 0);
		cr_assert_eq(perfring_shared_abandoned(&ring), 0);
		perfring_shared_close(author.shared);
		perfring_reader_close(&reader);
		perfring_ring_close(&own);
		perfring_ring_close(&ring);
	}
}

/* A flush looks at the first space as its owner publishes it, and behind it lies a dead writer's. */
Test(killed, a_dead_writers_room_behind_one_just_published)
{
	struct author first = {.writer = 2}, third = {.writer = 3};
	struct perfring_reader reader;
	struct perfring_ring ring;
	uint64_t refused = 0, must = 0, may = 0;
	struct piece piece;
	pid_t child;
	int status;

	if (!deaths_are_seen())
		cr_skip_test(NO_ROBUST);
	board_make();
	make_ring(&ring, PERFRING_RING_STRICT, 1, 0, 4);
	cr_assert_eq(perfring_reader_open(&reader, &ring, 0), 0);
	cr_assert_eq(perfring_shared_open(&first.shared, &ring, NULL), 0);
	cr_assert_eq(perfring_shared_open(&third.shared, &ring, NULL), 0);
	cr_assert(begin(&first, 40, &piece));
	child = start_victim(ring.fd, "shared_encoded", KILL, 0);
	cr_assert_gt(child, 0);
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFSIGNALED(status));
	cr_assert(put(&third, 64));
	cr_assert_eq(ring.page->data_head, 0);
	striker.point = "shared_recovering";
	board->passes = board->struck = 0;
	striker.pass = 1;
	striker.action = END_OTHER;
	striker.author = &first;
	striker.piece = &piece;
	perfring_shared_flush(third.shared);
	striker.action = NO_ACTION;
	cr_assert_eq(board->struck, 1);
	cr_assert_eq(perfring_shared_abandoned(&ring), 1);
	cr_assert_eq(ring.page->data_head, shared_claimed_of(&ring, ring.page->data_head));
	drain(&reader);
	check_victim(1, false, &refused, &must, &may);
	check_writer(2, &refused);
	check_writer(3, &refused);
	check_nothing_wrong("behind", 0);
	perfring_shared_close(first.shared);
	perfring_shared_close(third.shared);
	perfring_reader_close(&reader);
	perfring_ring_close(&ring);
}

/* ---- many processes, killed at random ---- */

static void run_massacre(uint32_t mode)
{
	uint64_t refused = 0, must = 0, may = 0, until;
	struct author survivor = {.writer = WRITERS - 1};
	struct perfring_reader reader;
	struct perfring_ring ring;
	unsigned i, generation;
	pid_t child[2];
	int status;

	if (!deaths_are_seen())
		cr_skip_test(NO_ROBUST);
	board_make();
	make_ring(&ring, mode, 4, 512, 4);
	cr_assert_eq(perfring_reader_open(&reader, &ring, 0), 0);
	cr_assert_eq(perfring_shared_open(&survivor.shared, &ring, NULL), 0);
	for (generation = 0; generation < 8; generation++) {
		for (i = 0; i < 2; i++) {
			child[i] = fork();
			if (!child[i]) {
				struct perfring_ring own;
				struct author author;

				if (attach_author(&author, &own, ring.fd, generation * 2 + i) != 0)
					_exit(2);
				while (board->begun[author.writer] + 100 < RECORDS)
					play(&author, NULL, 1);
				_exit(0);
			}
			cr_assert_gt(child[i], 0);
		}
		until = perfring__os_clock_now() + 20000000 + generation * 777777;
		while (perfring__os_clock_now() < until || !board->begun[generation * 2] ||
		       !board->begun[generation * 2 + 1]) {
			if (board->begun[survivor.writer] + 10 < RECORDS)
				put(&survivor, 64);
			perfring_shared_flush(survivor.shared);
			drain(&reader);
		}
		for (i = 0; i < 2; i++) {
			kill(child[i], SIGKILL);
			cr_assert_eq(waitpid(child[i], &status, 0), child[i]);
			cr_assert(WIFSIGNALED(status) || WEXITSTATUS(status) == 0, "%x", status);
		}
	}
	perfring_shared_flush(survivor.shared);
	drain(&reader);
	/* `claimed` stays where one died before it moved it, until the next claim. */
	cr_assert(put(&survivor, 64));
	perfring_shared_flush(survivor.shared);
	drain(&reader);
	for (i = 0; i < 16; i++) {
		cr_assert_gt(board->begun[i], 0, "writer %u", i);
		check_victim(i, mode == PERFRING_RING_LEASED, &refused, &must, &may);
	}
	check_writer(WRITERS - 1, &refused);
	check_nothing_wrong("massacre", 0);
	cr_assert_eq(ring.page->data_head, shared_claimed_of(&ring, ring.page->data_head));
	/* Each may have died in a count, or as a recoverer, with what it had taken over (shared.h). */
	cr_assert_geq(perfring_shared_lost(&ring) + 16, refused + must);
	cr_assert_leq(perfring_shared_lost(&ring), refused + must + may + 16);
	perfring_shared_close(survivor.shared);
	perfring_reader_close(&reader);
	perfring_ring_close(&ring);
}

Test(killed, processes_killed_at_random_strict)
{
	run_massacre(PERFRING_RING_STRICT);
}

Test(killed, processes_killed_at_random_leased)
{
	run_massacre(PERFRING_RING_LEASED);
}
