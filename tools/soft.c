/* soft.c - the recorder of processes that raise their events themselves: who they are, and their rings. */
#include <dlfcn.h>
#include <glob.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#include <perfring/page.h>
#include "soft.h"
#include "tools.h"

enum {
	TROUBLES = 8, /* told one by one */
	NO_ONE = UINT32_MAX,
	STRANGERS = 64,     /* of another user, who have not greeted yet */
	PATIENCE_MS = 1000, /* with each of them; with a table of descriptors that is full */
};

struct peer {
	int socket;  /* -1: closed */
	int process; /* a pidfd; -1: none */
	uint32_t pid;
	uint32_t rings; /* that are still in the session */
	uint64_t image;
	uint64_t since; /* ms */
	bool taken;     /* a free place has false */
	bool strange;   /* of another user */
	bool greeted;
	bool ended;
};

struct peer_ring {
	struct perfring_ring ring;
	uint32_t number; /* in the session */
	uint32_t peer;
};

struct perfring_peers {
	struct perfring_session *session;
	struct soft_answer answer;
	uint64_t token;
	int32_t only; /* 0: all */
	int listener;
	int epoll;
	bool deaf;  /* the listener is not in the epoll set: no descriptor was free */
	bool freed; /* one is, since */
	uint64_t deaf_since;
	struct peer *peers;
	uint32_t peer_count; /* places */
	struct peer_ring *rings;
	uint32_t ring_count;
	uint64_t seen;
	uint64_t lost; /* in rings that were given up */
	uint64_t troubles;
};

static void __attribute__((format(printf, 2, 3))) trouble(struct perfring_peers *peers, const char *form, ...)
{
	char text[256];
	va_list list;

	if (peers->troubles++ >= TROUBLES)
		return;
	va_start(list, form);
	vsnprintf(text, sizeof(text), form, list);
	va_end(list);
	perfring_tool_complain("record: %s", text);
}

/* ---- the object to preload ---- */

static bool is_there(const char *folder, const char *behind, char *path)
{
	char pattern[PATH_MAX];
	glob_t found;
	bool good;

	snprintf(pattern, sizeof(pattern), "%s%s", folder, behind);
	if (glob(pattern, GLOB_NOSORT, NULL, &found))
		return false;
	good = realpath(found.gl_pathv[0], path);
	globfree(&found);
	return good;
}

/* Beside the command, in the lib folders beside its own, else wherever the loader finds it. */
bool perfring_peers_find(char *path)
{
	char folder[PATH_MAX] = "", *end;
	void *object;

	if (readlink("/proc/self/exe", folder, sizeof(folder) - 1) > 0 && (end = strrchr(folder, '/'))) {
		*end = 0;
		if (is_there(folder, "/" SOFT_OBJECT, path) || is_there(folder, "/../lib*/" SOFT_OBJECT, path) ||
		    is_there(folder, "/../lib*/*/" SOFT_OBJECT, path))
			return true;
	}
	strcpy(path, SOFT_OBJECT);
	object = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
	if (object)
		dlclose(object);
	return object;
}

static bool set_environment(const struct perfring_peers *peers, const char *name)
{
	const char *old = getenv("LD_PRELOAD");
	char path[PATH_MAX], word[64], *list;

	if (!perfring_peers_find(path)) {
		perfring_tool_complain("record: --soft: no " SOFT_OBJECT
				       " beside this command, in ../lib or where the loader "
				       "looks");
		return false;
	}
	if (strpbrk(path, " :")) {
		perfring_tool_complain("record: --soft: %s: LD_PRELOAD takes no path with blanks or colons", path);
		return false;
	}
	if (asprintf(&list, "%s%s%s", path, old && *old ? ":" : "", old ? old : "") < 0) {
		perfring_tool_complain("record: --soft: %s", strerror(ENOMEM));
		return false;
	}
	snprintf(word, sizeof(word), "%s/%016" PRIx64, name, peers->token);
	setenv("LD_PRELOAD", list, 1);
	setenv(SOFT_VARIABLE, word, 1);
	free(list);
	return true;
}

bool perfring_peers_are_needed(void)
{
	struct perf_event_attr attr = {.type = PERFRING_TYPE_SOFTWARE, .size = PERF_ATTR_SIZE_VER0};
	char path[PATH_MAX];
	long fd;

	attr.config = PERFRING_COUNT_SW_DUMMY;
	attr.disabled = attr.exclude_kernel = attr.exclude_hv = 1;
	fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, 8 /* close on exec */);
	if (fd >= 0) {
		close((int)fd);
		return false;
	}
	return (errno == EPERM || errno == EACCES || errno == ENOSYS) && perfring_peers_find(path);
}

/* ---- open, close ---- */

static bool listen_to(struct perfring_peers *peers)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct epoll_event interest = {.events = EPOLLIN, .data.u32 = NO_ONE};
	socklen_t size = sizeof(address);
	char name[sizeof(address.sun_path)];

	peers->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	peers->epoll = epoll_create1(EPOLL_CLOEXEC);
	/* An abstract name, chosen by the kernel: it goes away with us, and chroots see it. */
	if (peers->listener < 0 || peers->epoll < 0 ||
	    bind(peers->listener, (struct sockaddr *)&address, sizeof(address.sun_family)) ||
	    listen(peers->listener, SOMAXCONN) || epoll_ctl(peers->epoll, EPOLL_CTL_ADD, peers->listener, &interest) ||
	    getsockname(peers->listener, (struct sockaddr *)&address, &size) ||
	    getrandom(&peers->token, sizeof(peers->token), 0) != sizeof(peers->token)) {
		perfring_tool_complain("record: --soft: a socket to listen on: %s", strerror(errno));
		return false;
	}
	size -= (socklen_t)offsetof(struct sockaddr_un, sun_path) + 1;
	memcpy(name, address.sun_path + 1, size);
	name[size] = 0;
	return set_environment(peers, name);
}

bool perfring_peers_open(struct perfring_peers **result, struct perfring_session *session,
			 const struct soft_answer *answer)
{
	struct perfring_peers *peers = perfring_tool_room(NULL, 1, sizeof(*peers));

	memset(peers, 0, sizeof(*peers));
	*result = peers;
	peers->session = session;
	peers->answer = *answer;
	peers->listener = peers->epoll = -1;
	return listen_to(peers);
}

void perfring_peers_only(struct perfring_peers *peers, int32_t pid)
{
	peers->only = pid;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* The rings are in the session to the last: close that first. */
void perfring_peers_close(struct perfring_peers *peers)
{
	if (!peers)
		return;
	for (uint32_t i = 0; i < peers->ring_count; i++)
		perfring_ring_close(&peers->rings[i].ring);
	for (uint32_t i = 0; i < peers->peer_count; i++) {
		close_fd(&peers->peers[i].socket);
		close_fd(&peers->peers[i].process);
	}
	close_fd(&peers->listener);
	close_fd(&peers->epoll);
	free(peers->rings);
	free(peers->peers);
	free(peers);
}

int perfring_peers_fd(const struct perfring_peers *peers)
{
	return peers->epoll;
}

/* ---- processes ---- */

static uint64_t now_ms(void)
{
	return perfring_tool_now() / NS_PER_MS;
}

/* Whose rings are none: nothing of it stays. */
static void forget(struct perfring_peers *peers, struct peer *peer)
{
	close_fd(&peer->socket);
	close_fd(&peer->process);
	peer->taken = false;
	peers->freed = true;
}

/* Out of the epoll set by that.  Its process and its rings stay, if it has greeted. */
static void hang_up(struct perfring_peers *peers, struct peer *peer)
{
	close_fd(&peer->socket);
	peers->freed = true;
	if (!peer->greeted)
		forget(peers, peer);
}

static bool is_stranger(const struct peer *peer)
{
	return peer->taken && peer->strange && !peer->greeted;
}

static void add_peer(struct perfring_peers *peers, int socket)
{
	struct epoll_event interest = {.events = EPOLLIN};
	struct ucred who = {.uid = (uid_t)-1};
	socklen_t size = sizeof(who);
	uint32_t at = 0, strangers = 0;
	struct peer *peer;
	bool strange;

	/* As we see it: it may know itself by another number.  Everybody may connect, the token comes later. */
	getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &size);
	strange = who.uid && who.uid != geteuid();
	for (uint32_t i = 0; i < peers->peer_count; i++)
		strangers += is_stranger(&peers->peers[i]);
	if (strange && strangers >= STRANGERS) {
		close(socket);
		return;
	}
	while (at < peers->peer_count && peers->peers[at].taken)
		at++;
	interest.data.u32 = at;
	if (epoll_ctl(peers->epoll, EPOLL_CTL_ADD, socket, &interest)) {
		trouble(peers, "--soft: a process could not be taken: %s", strerror(errno));
		close(socket);
		return;
	}
	if (at == peers->peer_count)
		peers->peers = perfring_tool_room(peers->peers, ++peers->peer_count, sizeof(*peers->peers));
	peer = &peers->peers[at];
	memset(peer, 0, sizeof(*peer));
	peer->taken = true;
	peer->socket = socket;
	peer->strange = strange;
	peer->since = now_ms();
	peer->pid = (uint32_t)who.pid;
	peer->process = who.pid ? (int)syscall(SYS_pidfd_open, who.pid, 0) : -1;
}

/* A process that greets has a past when it has exec'd, or lost its socket. */
static void greet(struct perfring_peers *peers, struct peer *peer, const struct soft_message *message)
{
	struct soft_answer answer = peers->answer;
	bool known = false;

	peer->greeted = true;
	peer->image = message->image;
	for (uint32_t i = 0; i < peers->peer_count; i++) {
		struct peer *other = &peers->peers[i];

		if (other == peer || !other->taken || !other->greeted || other->pid != peer->pid)
			continue;
		known = true;
		if (other->image != peer->image)
			other->ended = true;
	}
	if (message->version != SOFT_VERSION) {
		trouble(peers, "--soft: process %u has a " SOFT_OBJECT " of another version", peer->pid);
		answer.observes = 0;
	}
	if (peers->only && (uint32_t)peers->only != peer->pid)
		answer.observes = 0;
	if (answer.observes && !known)
		peers->seen++;
	if (soft_send(peer->socket, &answer, sizeof(answer), -1))
		peer->greeted = false;
}

static void add_ring(struct perfring_peers *peers, uint32_t at, int fd)
{
	struct perfring_fault fault = {0, ""};
	struct peer_ring *ring;
	int ret;

	peers->rings = perfring_tool_room(peers->rings, peers->ring_count + 1, sizeof(*peers->rings));
	ring = &peers->rings[peers->ring_count];
	ret = perfring_ring_attach(&ring->ring, fd, 0, &fault);
	if (ret) {
		trouble(peers, "--soft: a ring of process %u: %s", peers->peers[at].pid,
			ret == -EBADMSG ? fault.what : strerror(-ret));
		return;
	}
	/* The mapping is enough: thousands of threads have a ring each. */
	close_fd(&ring->ring.fd);
	ret = perfring_session_add_ring(peers->session, &ring->ring, -1);
	if (ret < 0) {
		trouble(peers, "--soft: a ring of process %u: %s", peers->peers[at].pid, strerror(-ret));
		perfring_ring_close(&ring->ring);
		return;
	}
	ring->number = (uint32_t)ret;
	ring->peer = at;
	peers->peers[at].rings++;
	peers->ring_count++;
}

/* One message, if there is one. */
static void take(struct perfring_peers *peers, uint32_t at)
{
	struct peer *peer = &peers->peers[at];
	struct soft_message message;
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec piece = {&message, sizeof(message)};
	/* LEN, not SPACE, into which another fd fits: what does not fit is closed by the kernel. */
	struct msghdr header = {
		.msg_iov = &piece, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = CMSG_LEN(sizeof(int))};
	struct cmsghdr *first;
	ssize_t got;
	int fd = -1;

	do
		got = recvmsg(peer->socket, &header, MSG_CMSG_CLOEXEC);
	while (got < 0 && errno == EINTR);
	if (got < 0 && errno == EAGAIN)
		return;
	first = got > 0 ? CMSG_FIRSTHDR(&header) : NULL;
	if (first && first->cmsg_level == SOL_SOCKET && first->cmsg_type == SCM_RIGHTS &&
	    first->cmsg_len >= CMSG_LEN(sizeof(fd)))
		memcpy(&fd, CMSG_DATA(first), sizeof(fd));
	/* The token: who can list abstract names cannot yet read our command's environment. */
	if (got != (ssize_t)sizeof(message) || message.token != peers->token ||
	    (message.kind == SOFT_HELLO) == peer->greeted) {
		close_fd(&fd);
		hang_up(peers, peer);
		return;
	}
	message.text[sizeof(message.text) - 1] = 0;
	if (message.kind == SOFT_HELLO)
		greet(peers, peer, &message);
	else if (message.kind == SOFT_RING && fd >= 0)
		add_ring(peers, at, fd);
	else if (message.kind == SOFT_RING)
		trouble(peers, "--soft: a ring of process %u came without its descriptor", peer->pid);
	else if (message.kind == SOFT_TROUBLE)
		trouble(peers, "process %u: %.*s", peer->pid, (int)strcspn(message.text, "\n\r\033"), message.text);
	close_fd(&fd);
}

/* Whether it is in the epoll set. */
static void listen_again(struct perfring_peers *peers, bool listens)
{
	struct epoll_event interest = {.events = EPOLLIN, .data.u32 = NO_ONE};

	peers->deaf = !listens;
	peers->freed = false;
	peers->deaf_since = now_ms();
	epoll_ctl(peers->epoll, listens ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, peers->listener, &interest);
}

static void take_peer(struct perfring_peers *peers)
{
	int socket = accept4(peers->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (socket >= 0) {
		add_peer(peers, socket);
	} else if (errno == EMFILE || errno == ENFILE) {
		trouble(peers, "--soft: a process could not be taken: %s", strerror(errno));
		listen_again(peers, false); /* it waits until there is room */
	}
}

bool perfring_peers_serve(struct perfring_peers *peers)
{
	struct epoll_event ready[SOFT_AT_ONCE];
	int count, served = 0;

	/* One message each, by turns: so does the kernel list them. */
	while (served < SOFT_AT_ONCE && (count = epoll_wait(peers->epoll, ready, SOFT_AT_ONCE - served, 0)) > 0) {
		for (int i = 0; i < count; i++) {
			uint32_t at = ready[i].data.u32;

			if (at == NO_ONE)
				take_peer(peers);
			else if (peers->peers[at].taken && peers->peers[at].socket >= 0)
				take(peers, at);
		}
		served += count;
	}
	return served >= SOFT_AT_ONCE;
}

/* ---- what has come to its end ---- */

/* Whose socket is closed need not have ended: a daemon closes all that it finds open. */
static bool has_ended(struct peer *peer)
{
	struct pollfd ready = {.fd = peer->process, .events = POLLIN};

	if (!peer->ended)
		peer->ended = peer->process >= 0 ? poll(&ready, 1, 0) > 0 : peer->socket < 0;
	return peer->ended;
}

/* Nobody writes into it any more, and everything is read. */
static bool is_done(const struct peer_ring *ring, const struct peer *peer)
{
	const struct perf_event_mmap_page *page = ring->ring.page;

	/* Acquire: what its writer published before it closed is seen below (set.c does the same by `gone`). */
	if (!peer->ended && PERFRING_LOAD_ACQUIRE(&perfring_ring_state_of(page)->writer))
		return false;
	return perfring_page_observe(page) == perfring_page_reclaim(page);
}

void perfring_peers_sweep(struct perfring_peers *peers)
{
	uint64_t now = now_ms();
	uint32_t kept = 0;

	for (uint32_t i = 0; i < peers->peer_count; i++)
		if (peers->peers[i].taken)
			has_ended(&peers->peers[i]);
	for (uint32_t i = 0; i < peers->ring_count; i++) {
		struct peer_ring *ring = &peers->rings[i];
		struct peer *peer = &peers->peers[ring->peer];

		if (is_done(ring, peer) && !perfring_session_remove_ring(peers->session, ring->number)) {
			peers->lost += PERFRING_LOAD(&perfring_ring_state_of(ring->ring.page)->lost_total);
			perfring_ring_close(&ring->ring);
			peer->rings--;
		} else {
			peers->rings[kept++] = *ring;
		}
	}
	peers->ring_count = kept;
	for (uint32_t i = 0; i < peers->peer_count; i++) {
		struct peer *peer = &peers->peers[i];

		if ((peer->taken && peer->ended && !peer->rings && peer->socket < 0) ||
		    (is_stranger(peer) && now - peer->since > PATIENCE_MS))
			forget(peers, peer);
	}
	if (peers->deaf && (peers->freed || now - peers->deaf_since > PATIENCE_MS))
		listen_again(peers, true);
}

uint64_t perfring_peers_count(const struct perfring_peers *peers)
{
	return peers->seen;
}

uint64_t perfring_peers_lost(const struct perfring_peers *peers)
{
	uint64_t lost = peers->lost;

	for (uint32_t i = 0; i < peers->ring_count; i++)
		lost += PERFRING_LOAD(&perfring_ring_state_of(peers->rings[i].ring.page)->lost_total);
	return lost;
}
