/* soft.h - what `perfring record --soft` and the object that it preloads say to one another.
 *
 *     a process, in its constructor                       the recorder
 *       connects to the abstract socket named in
 *       PERFRING_SOFT_SOCKET=NAME/TOKEN, hello     ---->    takes it
 *       opens the events, maps, puts its state    <----    answer: what to observe
 *     each thread, as it joins
 *       new ring, with its fd                     ---->    attaches it, drains it into the file
 *
 * SOCK_SEQPACKET: one message is one struct.  A ring is given up by the recorder when it is drained and its writer has
 * closed it, or its process has ended; what was committed before a SIGKILL lies in it.
 */
#ifndef SOFT_H
#define SOFT_H

#include <sys/socket.h>
#include <perfring/session.h>

#define SOFT_VARIABLE "PERFRING_SOFT_SOCKET"
#define SOFT_OBJECT "libperfring_preload.so"

enum {
	SOFT_VERSION = 1,
	SOFT_FREQUENCY = 1000, /* samples a second, unless said */
	SOFT_FREQUENCY_MAX = 100000,
	SOFT_PAGES = 128,        /* of each ring, unless said */
	SOFT_ROUND_MS = 50,      /* how often rings are drained: their writers wake nobody */
	SOFT_MARK_MS = 500,      /* and how often what was drained is settled in the file */
	SOFT_AT_ONCE = 64,       /* messages taken between two drains */
	SOFT_LAST_ROUNDS = 1024, /* of so many, when the command has ended */
};

enum soft_kind {
	SOFT_HELLO,
	SOFT_RING,    /* an fd comes with it */
	SOFT_TROUBLE, /* text */
};

struct soft_message {
	uint32_t kind;
	uint32_t version;
	uint32_t pid; /* as the process knows itself */
	uint32_t padding;
	uint64_t token;
	uint64_t image; /* another one after exec, the same when a process has lost its socket and comes again */
	char text[96];
};

struct soft_answer {
	uint32_t version;
	uint32_t pages;    /* of each ring */
	uint32_t observes; /* 0: take no part */
	uint32_t padding;
	struct perf_event_attr attr; /* one, so its records need no id, which no two processes have the same */
};

/* ---- the recorder's side: soft.c ---- */

/* Processes that raise events themselves and send their rings. */
struct perfring_peers;

/* Where the object is that programs preload.  path: PATH_MAX. */
bool perfring_peers_find(char *path);

/* Whether the kernel refuses to observe even a command of our own in user space, and it can be done without. */
bool perfring_peers_are_needed(void);

/* Listens, and puts into the environment what makes commands started from now on take part.  False after a complaint. */
bool perfring_peers_open(struct perfring_peers **peers, struct perfring_session *session,
			 const struct soft_answer *answer);
void perfring_peers_close(struct perfring_peers *peers);

/* Only this process, not its children. */
void perfring_peers_only(struct perfring_peers *peers, int32_t pid);

/* Readable when there is something to serve. */
int perfring_peers_fd(const struct perfring_peers *peers);

/* Takes what has come: new processes, new rings.  True: there may be more.  Between a return and the next wait. */
bool perfring_peers_serve(struct perfring_peers *peers);

/* After a return: gives up rings that have come to their end. */
void perfring_peers_sweep(struct perfring_peers *peers);

/* Processes that have taken part. */
uint64_t perfring_peers_count(const struct perfring_peers *peers);

/* Records that found a ring full, whether a LOST record tells of them or not. */
uint64_t perfring_peers_lost(const struct perfring_peers *peers);

/* Both sides: one message, with an fd or without (-1).  Returns 0 or -errno. */
static inline int soft_send(int socket, const void *message, size_t size, int fd)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec piece = {(void *)(uintptr_t)message, size};
	struct msghdr header = {.msg_iov = &piece, .msg_iovlen = 1};
	ssize_t sent;

	if (fd >= 0) {
		memset(&control, 0, sizeof(control));
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&control.header), &fd, sizeof(int));
		header.msg_control = &control;
		header.msg_controllen = sizeof(control.room);
	}
	do
		sent = sendmsg(socket, &header, MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	return sent < 0 ? -errno : 0;
}

#endif
