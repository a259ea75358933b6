/* soft_source.h - the protocol between the recorder and the object that `perfring record --soft` preloads.
 *
 *     the recorder                                           a process, in its constructor
 *       PERFRING_SOFT_SOCKET=NAME/TOKEN/TERMS      ---->       reads what to observe
 *       takes it from the abstract socket NAME     <----       connects, hello
 *                                                              opens the events, maps, puts its state
 *                                                            each thread, as it joins
 *       attaches the ring, drains it into the file <----       new ring, with its fd
 *
 * All messages go one way, and a process does not wait for their receipt: while the recorder is stopped (SIGSTOP, a slow
 * disk) messages stay in the socket and records in the rings, until it goes on.  What finds the queue full is not observed,
 * or sent with the next message.
 *
 * SOCK_SEQPACKET: one message is one struct.  A ring leaves the recorder when it is drained and its writer has closed it,
 * or its process has ended; what was committed before a SIGKILL lies in it.
 *
 * preload.c writes these messages, soft_source.c reads them; tests/soft has hostile peers.  Both ends are of one build, which the
 * version in each message shows.
 */
#ifndef PERFRING_TOOLS_SOFT_SOURCE_H
#define PERFRING_TOOLS_SOFT_SOURCE_H

#include <sys/socket.h>
#include <perfring/session.h>

#define SOFT_VARIABLE "PERFRING_SOFT_SOCKET"
#define SOFT_OBJECT "libperfring_preload.so"

enum {
	SOFT_VERSION = 4,
	SOFT_FREQUENCY = 1000, /* samples a second by default */
	SOFT_FREQUENCY_MAX = 100000,
	SOFT_PAGES = 128,        /* of each ring by default */
	SOFT_WAITS_MS = 1,       /* that a call waits at least to be in offcpu-time, by default */
	SOFT_WAITS_MAX = 3600000,
	SOFT_ROUND_MS = 50,      /* how often rings are drained: their writers do not wake the recorder */
	SOFT_MARK_MS = 500,      /* and how often what was drained is settled in the file */
	SOFT_AT_ONCE = 64,       /* messages taken between two drains */
	SOFT_LAST_ROUNDS = 1024, /* rounds at most, when the command has ended */

	/* The most that the recorder takes of a process. */
	SOFT_RINGS = 8192, /* not drained to their end: of 4096 threads, and of those that ended before them */
	SOFT_TEXTS = 1000, /* SOFT_COMPLAINT messages; further ones are not read */
	SOFT_IMAGES = 16,  /* connections: one for each program that it execs, until they are read */
};

enum {
	SOFT_WORD = 512, /* bytes of PERFRING_SOFT_SOCKET and more */
};

/* With --off-cpu, the ids of the two events in records and in the file: the same in all processes. */
enum {
	SOFT_CLOCK_ID = 1,
	SOFT_WAITS_ID,
};

enum {
	SOFT_WAITS_TYPE = 0x50465200 /* PERFRING_SOFT_TYPE of soft.h, which needs liburcu */
};

enum soft_kind {
	SOFT_HELLO,
	SOFT_RING,      /* an fd comes with it */
	SOFT_COMPLAINT, /* text */
};

struct soft_message {
	uint32_t kind;
	uint32_t version;
	uint32_t pid; /* in its own namespace */
	uint32_t padding;
	uint64_t token;
	uint64_t image; /* another one after exec, the same when a process has lost its socket and connects again */
	char text[96];
};

/* In the environment as the hexadecimal digits of its bytes: both sides are of one build. */
struct soft_terms {
	uint32_t version;
	uint32_t pages;     /* of each ring */
	uint32_t parent;    /* 0: every process takes part; else the children of this one alone */
	uint32_t filters;   /* seccomp's that the recorder has: a process that has more takes no part */
	uint32_t by_tables; /* call chains by unwind tables */
	uint32_t waits;     /* ms that a call has to wait for a sample of offcpu-time, and 1; 0: no such event */
	struct perf_event_attr attr; /* the clock's.  Alone it needs no id in its records */
};

/* The attr of the clock becomes that of offcpu-time: each occurrence is a sample, whose period is how many ns it lasted.  The config
 * is a point's, which each process numbers itself. */
static inline void soft_waits_attr(struct perf_event_attr *attr)
{
	attr->type = SOFT_WAITS_TYPE;
	attr->config = 0;
	attr->freq = 0;
	attr->sample_period = 1;
	attr->sample_type |= PERFRING_SAMPLE_PERIOD | PERFRING_SAMPLE_CALLCHAIN;
	attr->mmap = attr->mmap2 = attr->mmap_data = attr->comm = attr->task = 0;
	perfring_attr_set_flag(attr, PERFRING_ATTR_FLAG_build_id, false);
}

/* ---- the recorder's side: soft_source.c ---- */

/* Processes that raise events themselves and send their rings. */
struct tool_peers;

/* The path of the object that programs preload.  path: PATH_MAX. */
bool tool_peers_find(char *path);

/* Whether the kernel refuses to observe even the user space of a child, and --soft is possible. */
bool tool_peers_are_needed(void);

/* Listens, and sets the environment so that commands started from now on take part.  Returns false after a complaint. */
bool tool_peers_open(struct tool_peers **peers, struct perfring_session *session, const struct soft_terms *terms);
void tool_peers_close(struct tool_peers *peers);

/* From now on only this process takes part, not its children. */
void tool_peers_only(struct tool_peers *peers, int32_t pid);

/* A descriptor that is readable when there is something to serve. */
int tool_peers_fd(const struct tool_peers *peers);

/* Accepts new processes and rings.  Returns true if there may be more.  To be called between the session's return and its next wait. */
bool tool_peers_serve(struct tool_peers *peers);

/* Checks a span of the session's next_span before it is written, because its process may change it at any time: copies it, checks
 * each record of the copy, and sets *span to the copy up to the first record that the process may not write.  Such a process is
 * barred.  Valid until the next call. */
void tool_peers_vet(struct tool_peers *peers, struct perfring_span *span);

/* Bars the process of a ring that the session found corrupt. */
void tool_peers_corrupt(struct tool_peers *peers, uint32_t ring, const struct perfring_fault *fault);

/* Drops rings that have ended.  To be called after the session's return. */
void tool_peers_sweep(struct tool_peers *peers);

/* Reports at the end what was not observed.  Returns false if processes connected, and none could be observed. */
bool tool_peers_tell(const struct tool_peers *peers);

/* The number of processes that have taken part. */
uint64_t tool_peers_count(const struct tool_peers *peers);

/* The number of records that found a ring full, with or without a LOST record for them. */
uint64_t tool_peers_lost(const struct tool_peers *peers);

/* Sends one message, with an fd or without (-1).  Does not wait.  Returns 0 or -errno; -EAGAIN: the queue is full. */
static inline int soft_send(int socket, const void *message, size_t size, int fd)
{
	union {
		struct cmsghdr header;
		char buffer[CMSG_SPACE(sizeof(int))];
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
		header.msg_controllen = sizeof(control.buffer);
	}
	do
		sent = sendmsg(socket, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (sent < 0 && errno == EINTR);
	return sent < 0 ? -errno : 0;
}

#endif
