/* hostile_peer.c - a process of `perfring record --soft` that does to its recorder what it can.  soft_peer_test runs it.
 *
 *     hostile_peer WAY [NUMBER]     exit status 0: the recorder is alive, and has not grown; what else it prints is for the test
 *
 * Linked statically, so nothing is preloaded: it speaks the protocol of tools/soft_source.h itself.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <perfring/ring.h>

#include "../../tools/soft_source.h"

enum {
	PAGE = 4096,
	MANY_FDS = 253, /* SCM_MAX_FD */
};

static struct sockaddr_un address = {.sun_family = AF_UNIX};
static socklen_t address_size;
static uint64_t token;
static struct soft_terms terms;
static pid_t recorder;

static void fail(const char *what)
{
	fprintf(stderr, "hostile_peer: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* ---- the protocol ---- */

static void read_environment(void)
{
	const char *word = getenv(SOFT_VARIABLE), *end;
	unsigned byte;

	if (!word || !(end = strchr(word, '/')))
		fail("no " SOFT_VARIABLE);
	memcpy(address.sun_path + 1, word, (size_t)(end - word));
	address_size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)(end - word));
	token = strtoull(end + 1, NULL, 16);
	end = strchr(end + 1, '/') + 1;
	for (size_t i = 0; i < sizeof(terms) && sscanf(end + 2 * i, "%2x", &byte) == 1; i++)
		((unsigned char *)&terms)[i] = (unsigned char)byte;
}

static struct soft_message message_of(uint32_t kind)
{
	struct soft_message message = {
		.kind = kind, .version = SOFT_VERSION, .pid = (uint32_t)getpid(), .token = token};

	message.image = (uint64_t)getpid() << 20 | 1;
	return message;
}

static int connect_only(void)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (fd >= 0 && connect(fd, (struct sockaddr *)&address, address_size)) {
		close(fd);
		return -1;
	}
	return fd;
}

/* All of it goes, or the recorder has hung up. */
static int send_all(int socket, const struct soft_message *message, int fd)
{
	struct pollfd ready = {.fd = socket, .events = POLLOUT};
	int ret;

	while ((ret = soft_send(socket, message, sizeof(*message), fd)) == -EAGAIN)
		poll(&ready, 1, 100);
	return ret;
}

static int hello(void)
{
	struct soft_message message = message_of(SOFT_HELLO);
	int fd = connect_only();

	if (fd < 0 || send_all(fd, &message, -1))
		fail("hello");
	return fd;
}

static int give(int socket, int fd)
{
	struct soft_message message = message_of(SOFT_RING);

	return send_all(socket, &message, fd);
}

/* ---- rings ---- */

struct ring {
	int fd;
	uint64_t size;
	struct perf_event_mmap_page *page;
	struct perfring_ring_state *state;
	unsigned char *data;
	uint64_t head;
};

static uint64_t agreed(void)
{
	return (uint64_t)terms.pages * PAGE;
}

/* As perfring_ring_create makes it, with other seals, or only its first page allocated. */
static struct ring make_with(uint64_t data, int seals, int allocates)
{
	struct ring ring = {.fd = memfd_create("hostile", MFD_CLOEXEC | MFD_ALLOW_SEALING), .size = PAGE + data};

	if (ring.fd < 0 || ftruncate(ring.fd, (off_t)ring.size) ||
	    (allocates && posix_fallocate(ring.fd, 0, (off_t)ring.size)) ||
	    (seals && fcntl(ring.fd, F_ADD_SEALS, seals)))
		fail("a ring");
	ring.page = mmap(NULL, ring.size, PROT_READ | PROT_WRITE, MAP_SHARED, ring.fd, 0);
	if (ring.page == MAP_FAILED)
		fail("a ring's mapping");
	ring.state = perfring_ring_state_of(ring.page);
	ring.data = (unsigned char *)ring.page + PAGE;
	ring.page->data_offset = PAGE;
	ring.page->data_size = data;
	ring.state->version = PERFRING_RING_VERSION;
	ring.state->magic = PERFRING_RING_MAGIC;
	ring.state->writer = 1;
	return ring;
}

static struct ring make(void)
{
	return make_with(agreed(), F_SEAL_SHRINK | F_SEAL_GROW, 1);
}

static void publish(struct ring *ring)
{
	__atomic_store_n(&ring->page->data_head, ring->head, __ATOMIC_RELEASE);
}

static void put(struct ring *ring, const void *bytes, uint32_t size)
{
	for (uint32_t i = 0; i < size; i++)
		ring->data[(ring->head + i) & (agreed() - 1)] = ((const unsigned char *)bytes)[i];
	ring->head += size;
}

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static uint64_t ids_of(uint32_t pid)
{
	return (uint64_t)pid << 32 | pid;
}

/* What --soft asks for without options: IP, TID, TIME, PERIOD. */
static void put_sample_at(struct ring *ring, uint32_t pid, uint64_t time, uint64_t period)
{
	uint64_t words[5] = {UINT64_C(40) << 48 | UINT64_C(2) << 32 | PERF_RECORD_SAMPLE, 0x1000, ids_of(pid), time,
			     period};

	put(ring, words, sizeof(words));
}

static void put_sample_of(struct ring *ring, uint32_t pid, uint64_t period)
{
	put_sample_at(ring, pid, now(), period);
}

static void put_sample(struct ring *ring)
{
	put_sample_of(ring, (uint32_t)getpid(), 1);
}

/* A record of any type: words of body, then the trailer. */
static void put_record(struct ring *ring, uint32_t type, const uint64_t *body, uint32_t words)
{
	uint32_t size = 8 * (3 + words);
	uint64_t header = (uint64_t)size << 48 | type, trailer[2] = {ids_of((uint32_t)getpid()), now()};

	put(ring, &header, 8);
	put(ring, body, 8 * words);
	put(ring, trailer, 16);
}

/* ---- what becomes of it ---- */

/* Until the recorder has read as far, or has hung up, which says that it has judged. */
static int wait_for(int socket, const struct ring *ring)
{
	struct pollfd hung = {.fd = socket, .events = POLLIN};

	for (int i = 0; i < 1000; i++) {
		if (poll(&hung, 1, 10) > 0)
			return 1;
		if (ring && __atomic_load_n(&ring->page->data_tail, __ATOMIC_ACQUIRE) == ring->head)
			return 0;
	}
	return 2;
}

static int is_barred(int socket)
{
	return wait_for(socket, NULL) == 1;
}

static long status_of(const char *member)
{
	char path[64], line[256];
	long value = -1;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)recorder);
	file = fopen(path, "r");
	while (file && fgets(line, sizeof(line), file))
		if (!strncmp(line, member, strlen(member)))
			value = atol(line + strlen(member) + 1);
	if (file)
		fclose(file);
	return value;
}

static int fds_of_recorder(void)
{
	char path[64];
	DIR *folder;
	int count = 0;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)recorder);
	folder = opendir(path);
	while (folder && readdir(folder))
		count++;
	if (folder)
		closedir(folder);
	return count;
}

/* ---- ways ---- */

/* Each in a child, for who is barred stays so: its status is 0 when it was. */
static int each(int count, int (*way)(int))
{
	int status, wrong = 0;

	for (int i = 0; i < count; i++) {
		pid_t child = fork();

		if (!child)
			_exit(way(i));
		if (waitpid(child, &status, 0) != child || status) {
			printf("%d: status 0x%x\n", i, status);
			wrong = 1;
		}
	}
	return wrong;
}

/* A ring that is none: every one is refused. */
static int bad_ring(int i)
{
	const int good = F_SEAL_SHRINK | F_SEAL_GROW;
	struct ring ring = {.fd = -1};
	char path[64];
	int socket = hello(), pipes[2];

	switch (i) {
	case 0: /* a file, to be truncated */
		ring = make();
		snprintf(path, sizeof(path), "ring.%d", (int)getpid());
		ring.fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
		if (write(ring.fd, ring.page, ring.size) != (ssize_t)ring.size)
			return 1;
		break;
	case 1:
		ring = make_with(agreed(), 0, 1);
		break;
	case 2:
		ring = make_with(agreed(), F_SEAL_GROW, 1);
		break;
	case 3:
		ring = make_with(agreed(), F_SEAL_SHRINK, 1);
		break;
	case 4: /* no more seals: holes could not be kept out */
		ring = make_with(agreed(), good | F_SEAL_SEAL, 1);
		break;
	case 5: /* sparse */
		ring = make_with(agreed(), good, 0);
		break;
	case 6:
		ring = make_with(UINT64_C(1) << 30, good, 0);
		break;
	case 7:
		ring = make_with(2 * agreed(), good, 1);
		break;
	case 8:
		ring = make_with(agreed() / 2, good, 1);
		break;
	case 9: /* its page speaks of more than there is, or of less */
		ring = make();
		ring.page->data_size = UINT64_C(1) << 30;
		break;
	case 10:
		ring = make();
		ring.page->data_size = PAGE;
		break;
	case 11:
		ring = make();
		ring.page->data_size = UINT64_MAX;
		break;
	case 12:
		ring = make();
		ring.page->data_offset = 0;
		break;
	case 13:
		ring = make();
		ring.state->flags = PERFRING_RING_BACKWARD;
		break;
	case 14:
		ring = make();
		ring.state->flags = PERFRING_RING_BACKWARD | PERFRING_RING_OVERWRITE;
		break;
	case 15: /* shared, its marks and owners outside */
		ring = make();
		ring.state->flags = PERFRING_RING_STRICT;
		ring.state->grain = 8;
		ring.state->owners = 64;
		break;
	case 16:
		ring = make_with(agreed() + PAGE, good, 1);
		ring.page->data_size = agreed();
		ring.page->aux_offset = PAGE + agreed();
		ring.page->aux_size = PAGE;
		break;
	case 17: /* read-only */
		ring = make();
		snprintf(path, sizeof(path), "/proc/self/fd/%d", ring.fd);
		ring.fd = open(path, O_RDONLY);
		break;
	case 18:
		ring.fd = pipe(pipes) ? -1 : pipes[0];
		break;
	case 19:
		ring.fd = socket;
		break;
	case 20:
		ring.fd = open("/dev/zero", O_RDWR);
		break;
	case 21:
		ring.fd = open("/", O_RDONLY);
		break;
	case 22:
		ring.fd = eventfd(0, 0);
		break;
	case 23: /* holes at its end */
		ring = make();
		fallocate(ring.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)agreed(), PAGE);
		break;
	case 24: /* no magic */
		ring = make();
		ring.state->magic = 0;
		break;
	default:
		return 2;
	}
	if (give(socket, ring.fd))
		return 3;
	return is_barred(socket) ? 0 : 4;
}

/* Records that no object of ours writes.  The sample before them stays. */
static int bad_record(int i)
{
	uint64_t body[16] = {ids_of((uint32_t)getpid()), 0}, word;
	uint32_t other = (uint32_t)recorder;
	struct ring ring = make();
	int socket = hello();

	put_sample(&ring);
	switch (i) {
	case 0: /* AUXTRACE: a TiB of others' records is its own */
		body[0] = UINT64_C(1) << 40;
		put_record(&ring, 71, body, 5);
		break;
	case 1:
		put_sample_of(&ring, other, 1);
		break;
	case 2:
		body[0] = ids_of(other);
		body[1] = 'x';
		put_record(&ring, PERF_RECORD_COMM, body, 2);
		break;
	case 3: /* MMAP2 of another */
		body[0] = ids_of(other);
		put_record(&ring, PERF_RECORD_MMAP2, body, 9);
		break;
	case 4:
		body[0] = ids_of(other);
		put_record(&ring, PERF_RECORD_EXIT, body, 3);
		break;
	case 5: /* no NUL */
		memset(body + 1, 'x', 16);
		put_record(&ring, PERF_RECORD_COMM, body, 3);
		break;
	case 6: /* sizes */
	case 7:
	case 8:
	case 9:
	case 10:
		word = (uint64_t)(const uint16_t[]){0, 4, 44, 16, 65528}[i - 6] << 48 | PERF_RECORD_SAMPLE;
		put(&ring, &word, 8);
		put(&ring, body, 40);
		break;
	case 11: /* a trailer of another */
		body[0] = body[1] = 0;
		put_record(&ring, PERF_RECORD_LOST, body, 2);
		word = ids_of(other);
		memcpy(ring.data + ring.head - 16, &word, 8);
		break;
	case 12: /* a THROTTLE too short for its trailer */
		word = UINT64_C(24) << 48 | PERF_RECORD_THROTTLE;
		put(&ring, &word, 8);
		put(&ring, body, 16);
		break;
	case 13: /* positions */
		ring.head = UINT64_C(1) << 63;
		break;
	case 14:
		ring.head = 44;
		break;
	case 15:
		ring.head = agreed() + 40;
		break;
	case 16:
		ring.head = UINT64_MAX - 7;
		break;
	default:
		return 2;
	}
	publish(&ring);
	return give(socket, ring.fd) || !is_barred(socket);
}

/* A sample that hides everybody's share, and many that do. */
static int bad_period(int is_many)
{
	struct ring ring = make();
	int socket = hello();

	put_sample(&ring);
	for (int i = is_many ? 12000 : 1; i > 0; i--)
		put_sample_of(&ring, (uint32_t)getpid(), is_many ? 50000000 : UINT64_C(1) << 63);
	publish(&ring);
	return give(socket, ring.fd) || !is_barred(socket);
}

/* With --off-cpu records have ids.  One of no event; waits that are longer than there was time for, beside samples that are not; a record of
 * one event with the size of the other's. */
static int bad_id(int i)
{
	const uint64_t tid = ids_of((uint32_t)getpid()), ids[] = {SOFT_WAITS_ID + 1, SOFT_WAITS_ID, SOFT_WAITS_ID};
	struct ring ring = make();
	int socket = hello();

	for (int k = i == 1 ? 9000 : 2; k > 0; k--) {
		uint64_t id = k > 1 ? SOFT_CLOCK_ID : ids[i];
		/* IDENTIFIER, IP, TID, TIME, PERIOD; and CALLCHAIN, of none */
		uint64_t words[7] = {0, i == 1 && k % 2 ? SOFT_WAITS_ID : id, 0x1000, tid, now(), i == 1 ? 50000000 : 1,
				     0};
		uint64_t size = words[1] == SOFT_WAITS_ID && i < 2 ? 56 : 48;

		words[0] = size << 48 | UINT64_C(2) << 32 | PERF_RECORD_SAMPLE;
		put(&ring, words, (uint32_t)size);
	}
	publish(&ring);
	return give(socket, ring.fd) || !is_barred(socket);
}

/* A time that has not come, or that was long ago: samples of others would come out of order.  Also in a trailer. */
static int bad_time(int i)
{
	const uint64_t times[] = {0, 1, now() + UINT64_C(3600000000000), UINT64_MAX, 0, UINT64_MAX};
	uint64_t body[2] = {0};
	struct ring ring = make();
	int socket = hello();

	put_sample(&ring);
	if (i < 4)
		put_sample_at(&ring, (uint32_t)getpid(), times[i], 1);
	else {
		put_record(&ring, PERF_RECORD_LOST, body, 2);
		memcpy(ring.data + ring.head - 8, &times[i], 8);
	}
	publish(&ring);
	return give(socket, ring.fd) || !is_barred(socket);
}

/* Each type that there is, and more. */
static int any_type(int type)
{
	static const uint64_t taken = UINT64_C(1) << PERF_RECORD_LOST | UINT64_C(1) << PERF_RECORD_COMM |
				      UINT64_C(1) << PERF_RECORD_EXIT | UINT64_C(1) << PERF_RECORD_THROTTLE |
				      UINT64_C(1) << PERF_RECORD_UNTHROTTLE | UINT64_C(1) << PERF_RECORD_FORK |
				      UINT64_C(1) << PERF_RECORD_SAMPLE | UINT64_C(1) << PERF_RECORD_MMAP2 |
				      UINT64_C(1) << PERF_RECORD_READ;
	uint64_t body[5] = {0};
	struct ring ring = make();
	int socket = hello();

	if (type < 64 && taken >> type & 1)
		return 0;
	put_record(&ring, (uint32_t)type, body, 5);
	publish(&ring);
	return give(socket, ring.fd) || !is_barred(socket);
}

static struct ring flipped;
static int flips = 1;

/* One of the records is another one half of the time: a recorder that looks at one and writes the other has a file that
 * cannot be read. */
static void *flip(void *nothing)
{
	volatile uint64_t *header = (volatile uint64_t *)(void *)(flipped.data + 400);
	const uint64_t good = *header;

	for (uint64_t i = 0; __atomic_load_n(&flips, __ATOMIC_RELAXED); i++) {
		*header = i % 2 ? good : UINT64_C(40) << 48 | 71;
		for (volatile int wait = 0; wait < 300; wait++)
			;
	}
	*header = good;
	return nothing;
}

/* Changed while it is read. */
static int flipping(int nothing)
{
	pthread_t thread;
	int socket = hello(), hung = 0;

	(void)nothing;
	flipped = make();
	while (flipped.head < agreed() / 2)
		put_sample(&flipped);
	publish(&flipped);
	pthread_create(&thread, NULL, flip, NULL);
	give(socket, flipped.fd);
	for (int i = 0; i < 20 && !hung; i++) {
		hung = wait_for(socket, &flipped);
		while (!hung && flipped.head - flipped.page->data_tail < agreed() / 2)
			put_sample(&flipped);
		publish(&flipped);
	}
	__atomic_store_n(&flips, 0, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	return hung == 2;
}

/* ---- two processes of one number ---- */

static pid_t fork_as(pid_t number)
{
	struct clone_args arguments = {.exit_signal = SIGCHLD};

	arguments.set_tid = (uint64_t)(uintptr_t)&number;
	arguments.set_tid_size = 1;
	return (pid_t)syscall(SYS_clone3, &arguments, sizeof(arguments));
}

static int pass(int fd)
{
	return write(fd, "x", 1) != 1;
}

static int wait_until(int fd)
{
	char byte;

	return read(fd, &byte, 1) != 1;
}

/* Taken: its records are. */
static int is_taken(int socket, struct ring *ring)
{
	put_sample(ring);
	publish(ring);
	return !wait_for(socket, ring);
}

static int be_honest(const int go[2], const int done[2])
{
	struct ring ring = make();
	int socket;

	if (wait_until(go[0]))
		return 1;
	socket = hello();
	if (give(socket, ring.fd) || !is_taken(socket, &ring) || pass(done[1]))
		return 2;
	return wait_until(go[0]) || !is_taken(socket, &ring);
}

/* In a pid namespace of its own it has the honest one's number.  It comes after that one, or before. */
static int be_called(pid_t number, int is_first, const int go[2], const int done[2])
{
	struct ring ring = make();
	int socket;

	if (getpid() != number || (!is_first && (pass(go[1]) || wait_until(done[0]))))
		return 3;
	socket = hello();
	give(socket, ring.fd);
	if (!is_first)
		return !is_barred(socket) || pass(go[1]);
	if (!is_taken(socket, &ring) || pass(go[1]) || wait_until(done[0]))
		return 4;
	return !is_barred(socket) || pass(go[1]);
}

static int status_of_child(pid_t child)
{
	int status;

	if (child < 0 || waitpid(child, &status, 0) != child)
		return 10;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 11;
}

static int namesakes(int is_first)
{
	int go[2], done[2], wrong;
	pid_t honest, child;

	if (pipe(go) || pipe(done))
		return 5;
	honest = fork();
	if (!honest)
		_exit(be_honest(go, done));
	if (unshare(CLONE_NEWPID))
		fail("unshare");
	child = fork(); /* the first of a namespace is 1 */
	if (!child) {
		child = fork_as(honest);
		if (!child)
			_exit(be_called(honest, is_first, go, done));
		_exit(status_of_child(child));
	}
	wrong = status_of_child(child);
	if (wrong)
		kill(honest, SIGKILL);
	return status_of_child(honest) | wrong;
}

/* Messages that are none. */
static int bad_message(int i)
{
	struct soft_message message = message_of(SOFT_HELLO);
	int socket = i < 3 ? connect_only() : hello();

	switch (i) {
	case 0: /* half of one */
		send(socket, &message, sizeof(message) / 2, MSG_NOSIGNAL);
		break;
	case 1: /* another token */
		message.token ^= 1;
		send_all(socket, &message, -1);
		break;
	case 2: /* a ring before hello */
		give(socket, make().fd);
		break;
	case 3: /* hello twice */
		send_all(socket, &message, -1);
		break;
	case 4:
		message.kind = 77;
		send_all(socket, &message, -1);
		break;
	case 5: /* a ring without one */
		message.kind = SOFT_RING;
		send_all(socket, &message, -1);
		break;
	case 6: /* more than one at a time */
		send(socket, (char[4 * sizeof(message)]){0}, 4 * sizeof(message), MSG_NOSIGNAL);
		break;
	case 7: /* nothing, then the end */
		shutdown(socket, SHUT_WR);
		return 0;
	case 8: /* what a terminal obeys, too often */
		message.kind = SOFT_COMPLAINT;
		memcpy(message.text, "\033]0;owned\a\b\x9b\x33\x31m", 15);
		memset(message.text + 15, 0xc2, sizeof(message.text) - 15);
		for (int k = 0; k < 10000 && !send_all(socket, &message, -1); k++)
			;
		break;
	case 9: /* a pid that it has not */
		close(socket);
		socket = connect_only();
		message.pid = 1;
		message.image++;
		send_all(socket, &message, -1);
		break;
	case 10: /* another version */
		close(socket);
		socket = connect_only();
		message.version = 77;
		message.image++;
		send_all(socket, &message, -1);
		break;
	default:
		return 2;
	}
	return !is_barred(socket);
}

/* Descriptors, as many as one message can bring. */
static int flood_fds(int nothing)
{
	union {
		struct cmsghdr header;
		char buffer[CMSG_SPACE(MANY_FDS * sizeof(int))];
	} control = {.header = {CMSG_LEN(MANY_FDS * sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
	struct soft_message message = message_of(SOFT_RING);
	struct iovec piece = {&message, sizeof(message)};
	struct msghdr header = {
		.msg_iov = &piece, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control.buffer)};
	int socket = hello(), before = fds_of_recorder(), zero = open("/dev/zero", O_RDONLY);

	(void)nothing;
	for (int i = 0; i < MANY_FDS; i++)
		memcpy(CMSG_DATA(&control.header) + (size_t)i * sizeof(int), &zero, sizeof(int));
	for (int i = 0; i < 100; i++)
		if (sendmsg(socket, &header, MSG_NOSIGNAL) < 0)
			break;
	if (!is_barred(socket))
		return 1;
	return fds_of_recorder() > before + 16;
}

/* Connections that say nothing, and such that come and go. */
static int flood_connections(int nothing)
{
	struct rlimit limit;
	int sockets[400], before = fds_of_recorder(), last = 0;

	(void)nothing;
	getrlimit(RLIMIT_NOFILE, &limit);
	for (size_t i = 0; i < 400; i++)
		sockets[i] = connect_only();
	for (size_t i = 0; i < 400; i++)
		close(sockets[i]);
	for (uint64_t i = 0; i < 3000; i++) {
		struct soft_message message = message_of(SOFT_HELLO);
		int socket = connect_only();

		message.image = i / 2; /* each twice */
		if (socket >= 0)
			send_all(socket, &message, -1);
		close(socket);
	}
	for (int i = 0; i < 500; i++) {
		last = fds_of_recorder();
		if (last <= before + 40)
			return 0;
		usleep(10000);
	}
	printf("the recorder has %d descriptors, it had %d\n", last, before);
	return 1;
}

/* Rings upon rings, good ones: as many as are taken. */
static int flood_rings(int nothing)
{
	int socket = hello(), sent = 0;

	(void)nothing;
	for (; sent < 20000; sent++) {
		struct ring ring = make();

		if (give(socket, ring.fd))
			break;
		munmap(ring.page, ring.size);
		close(ring.fd);
	}
	return sent < 20000;
}

/* Good rings, in which holes are punched from the moment when they are sent. */
static int punch(int nothing)
{
	int socket = hello(), refused;
	struct ring ring;

	(void)nothing;
	for (int k = 0; k < 20; k++) {
		refused = 0;
		ring = make();
		if (give(socket, ring.fd))
			return 0; /* holes were seen */
		for (int i = 0; i < 5000 && !refused; i++)
			refused =
				fallocate(ring.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, PAGE, (off_t)agreed()) &&
				errno == EPERM;
		if (!refused)
			return wait_for(socket, NULL) != 1;
		if (madvise(ring.data, agreed(), MADV_REMOVE) == 0)
			return 3;
		put_sample(&ring);
		publish(&ring);
	}
	return 0;
}

/* Anything. */
static int any(int seed)
{
	struct ring ring = make();
	int socket, count;

	srand((unsigned)seed);
	count = rand() % 8;
	for (int i = 0; i < count; i++) {
		uint64_t body[8];

		for (int k = 0; k < 8; k++)
			body[k] = rand() % 3 ? ids_of((uint32_t)getpid()) : (uint64_t)rand() << 33 ^ (uint64_t)rand();
		put_sample(&ring);
		put_record(&ring, (uint32_t)(rand() % 24), body, (uint32_t)(rand() % 8));
	}
	for (int i = rand() % 12; i > 0; i--) {
		unsigned char *at = (unsigned char *)ring.page;
		int where = rand() % 4;

		at += where == 0 ? 1024 + rand() % 64 : where == 1 ? 2048 + rand() % 384 : PAGE + rand() % 256;
		*at = rand() % 2 ? (unsigned char)rand() : *at ^ (unsigned char)(1 << rand() % 8);
	}
	__atomic_store_n(&ring.page->data_head, rand() % 5 ? ring.head : (uint64_t)rand() << 33 ^ (uint64_t)rand(),
			 __ATOMIC_RELEASE);
	socket = hello();
	if (rand() % 8 == 0) {
		struct soft_message message = message_of((uint32_t)(rand() % 4));

		((unsigned char *)&message)[(size_t)rand() % sizeof(message)] ^= (unsigned char)rand();
		send_all(socket, &message, rand() % 2 ? ring.fd : -1);
	}
	give(socket, ring.fd);
	if (rand() % 4 == 0) {
		struct pollfd hung = {.fd = socket, .events = POLLIN};

		for (int i = 0; i < 5; i++) {
			ring.page->data_head = (uint64_t)rand() << 33 ^ (uint64_t)rand() ^ 8;
			poll(&hung, 1, 1);
		}
	}
	return 0;
}

int main(int count, char **words)
{
	static const struct {
		const char *name;
		int (*way)(int);
		int times;
	} ways[] = {
		{"rings", bad_ring, 25},
		{"records", bad_record, 17},
		{"periods", bad_period, 2},
		{"ids", bad_id, 3},
		{"times", bad_time, 6},
		{"names", namesakes, 2},
		{"types", any_type, 128},
		{"messages", bad_message, 11},
		{"flips", flipping, 20},
		{"fds", flood_fds, 1},
		{"connections", flood_connections, 1},
		{"many", flood_rings, 1},
		{"holes", punch, 5},
		{"any", any, 200},
	};
	int wrong = 2, times = count > 2 ? atoi(words[2]) : 0;
	long before;

	recorder = getppid();
	read_environment();
	before = status_of("VmHWM:");
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++)
		if (count > 1 && !strcmp(words[1], ways[i].name))
			wrong = each(times ? times : ways[i].times, ways[i].way);
	while (wait(NULL) > 0) /* neighbours, which the shell has begun before it exec'd us */
		;
	printf("VmHWM before %ld kB, after %ld kB\n", before, status_of("VmHWM:"));
	return wrong;
}
