/* soft_source.c - the recorder of processes that raise their events themselves: the processes and their rings.
 *
 * No process is trusted, not even with its own rings: all of the command's processes have the token, also those that have
 * changed their user.  What they send has bounds:
 *
 *     a ring       a memfd of exactly the size that was agreed on, sealed against shrinking, growing and (here) holes, allocated by
 *                  its maker: reading it allocates nothing, and no store of a peer raises SIGBUS here
 *     rings        SOFT_RINGS of a process, half of the machine's memory for all of them
 *     messages     one of each process in turn, SOFT_AT_ONCE between two drains; texts and connections: soft_source.h
 *     pids         a process of another pid namespace has another pid in its records than here: never one that another
 *                  process has at the time
 *     records      copied, then checked: the types that the object writes (may_write), well-formed, of the process's own pid;
 *                  the periods of a ring's samples, of both events, add up to no more than one thread's time
 *     complaints   COMPLAINTS, then they are counted
 *
 * A process that does what the object never does is barred: nothing more is read of it, which is reported once.
 *
 * record_events.c opens it, record_command.c polls and serves, record_file.c has each span vetted before it is written.  One thread.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#include <perfring/check.h>
#include <perfring/config.h>
#include <perfring/page.h>
#include "preload.h"
#include "soft_source.h"
#include "tools.h"

enum {
	COMPLAINTS = 8, /* complaints one by one */
	TEXTS = 2,      /* of them, what one process sends */
	NO_ONE = UINT32_MAX,
	UNKNOWN_PEERS = 64, /* of another user, without a hello yet */
	PATIENCE_MS = 1000, /* with each of them; with a full table of descriptors */
	RINGS_MORE = 256,   /* places at a time */
	HELLO_MS = 10000,   /* with connections of our own user */
	QUEUE = 4096,       /* connections that may wait, where net.core.somaxconn allows it */
};

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

struct peer {
	int socket;  /* -1: closed */
	int process; /* a pidfd; -1: none */
	uint32_t pid;
	uint32_t own;   /* its pid in its own namespace, which its records have */
	uint32_t rings; /* that are still in the session */
	uint32_t texts;
	uint64_t image;
	uint64_t since; /* ms */
	bool taken;     /* false: a free place */
	bool strange;   /* of another user */
	bool greeted;   /* it has said hello */
	bool known;     /* it is counted */
	bool ended;
	bool barred; /* nothing is taken of it any more */
};

/* By its number in the session. */
struct peer_ring {
	struct perfring_ring ring; /* page NULL: a free place */
	uint32_t peer;
	uint64_t sampled; /* ns: the sum of its samples' periods */
	bool last;        /* its process had ended before the round that is read now: all is in it */
};

struct tool_peers {
	struct perfring_session *session;
	struct soft_terms terms;
	uint64_t token;
	int32_t only; /* the pid that takes part; 0: all */
	int listener;
	int epoll;
	bool deaf;  /* the listener is not in the epoll set: no descriptor was free */
	bool freed; /* one is, since */
	uint64_t deaf_since;
	uint32_t queue;  /* connections that may wait */
	uint32_t came;   /* connections since the queue was last seen empty */
	bool overflowed; /* the queue may have been full */
	struct peer *peers;
	uint32_t peer_count; /* places */
	struct peer_ring *rings;
	uint32_t ring_count;        /* places */
	uint64_t bytes, most_bytes; /* of all rings */
	unsigned char *copy;        /* of a span: a ring's data */
	uint64_t opened;            /* ns */
	uint64_t seen;
	uint64_t refused;      /* texts of processes that have sent no ring */
	uint64_t unobserved;   /* rings and processes that were beyond a bound */
	uint64_t lost;         /* in rings that were dropped */
	uint64_t reported, unreported; /* complaints */
};

static void __attribute__((format(printf, 2, 3))) complain(struct tool_peers *peers, const char *form, ...)
{
	char text[256];
	va_list list;

	if (peers->reported >= COMPLAINTS) {
		peers->unreported++;
		return;
	}
	peers->reported++;
	va_start(list, form);
	vsnprintf(text, sizeof(text), form, list);
	va_end(list);
	tool_complain("record: --soft: %s", text);
}

/* ---- the object to preload ---- */

#if PERFRING_HAS_SOFT
#define NOT_THERE "no " SOFT_OBJECT " beside this command, in ../lib or where the loader looks (install perfring, or set LD_LIBRARY_PATH)"
#else
#define NOT_THERE "built without liburcu-bp: install it (apt-get install liburcu-dev) and build perfring again"
#endif

static bool is_there(const char *folder, const char *suffix, char *path)
{
	char pattern[PATH_MAX];
	glob_t found;
	bool good;

	int ret;

	snprintf(pattern, sizeof(pattern), "%s%s", folder, suffix);
	ret = glob(pattern, GLOB_NOSORT, NULL, &found);
	if (ret == GLOB_NOSPACE)
		errno = ENOMEM;
	if (ret)
		return false;
	good = realpath(found.gl_pathv[0], path);
	globfree(&found);
	return good;
}

/* Finds the object: beside the command, in the lib directories next to its own, or where the loader finds it.  If it is not
 * found, errno is 0 or the reason why the search failed. */
bool tool_peers_find(char *path)
{
	static const char *const places[] = {"/" SOFT_OBJECT, "/../lib*/" SOFT_OBJECT, "/../lib*/*/" SOFT_OBJECT};
	char folder[PATH_MAX] = "", *end;
	int error = 0;
	void *object;

	if (readlink("/proc/self/exe", folder, sizeof(folder) - 1) < 0)
		error = errno;
	else if ((end = strrchr(folder, '/')))
		*end = 0;
	for (unsigned i = 0; !error && i < sizeof(places) / sizeof(*places); i++) {
		errno = 0;
		if (is_there(folder, places[i], path))
			return true;
		if (errno != ENOENT && errno != ENOTDIR)
			error = errno;
	}
	strcpy(path, SOFT_OBJECT);
	object = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
	if (object)
		dlclose(object);
	errno = error;
	return object;
}

/* Writes the value of the environment's variable: NAME/TOKEN/TERMS. */
static void spell(char word[SOFT_WORD], const char *name, uint64_t token, const struct soft_terms *terms)
{
	const unsigned char *bytes = (const unsigned char *)terms;
	int used = snprintf(word, SOFT_WORD, "%s/%016" PRIx64 "/", name, token);

	static_assert(2 * sizeof(*terms) + 32 + sizeof(((struct sockaddr_un *)NULL)->sun_path) < SOFT_WORD, "spell");
	for (size_t i = 0; i < sizeof(*terms); i++)
		used += snprintf(word + used, SOFT_WORD - (size_t)used, "%02x", bytes[i]);
}

static bool set_environment(const struct tool_peers *peers, const char *name)
{
	const char *old = getenv("LD_PRELOAD");
	char path[PATH_MAX], word[SOFT_WORD], *list;
	bool good;

	if (!tool_peers_find(path)) {
		if (errno)
			tool_complain("record: --soft: looking for " SOFT_OBJECT ": %s", strerror(errno));
		else
			tool_complain("record: --soft: " NOT_THERE);
		return false;
	}
	if (strpbrk(path, " :")) {
		tool_complain("record: --soft: %s: LD_PRELOAD takes no path with blanks or colons", path);
		return false;
	}
	spell(word, name, peers->token, &peers->terms);
	if (asprintf(&list, "%s%s%s", path, old && *old ? ":" : "", old ? old : "") < 0)
		list = NULL;
	good = list && !setenv("LD_PRELOAD", list, 1) && !setenv(SOFT_VARIABLE, word, 1);
	if (!good)
		tool_complain("record: --soft: %s", strerror(ENOMEM));
	free(list);
	return good;
}

bool tool_peers_are_needed(void)
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
	return (errno == EPERM || errno == EACCES || errno == ENOSYS) && tool_peers_find(path);
}

/* ---- open, close ---- */

/* How many connections wait at most. */
static uint32_t queue_length(void)
{
	FILE *file = fopen("/proc/sys/net/core/somaxconn", "re");
	unsigned limit = QUEUE;

	if (file && fscanf(file, "%u", &limit) != 1)
		limit = QUEUE;
	if (file)
		fclose(file);
	return limit < QUEUE ? limit : QUEUE;
}

static bool listen_to(struct tool_peers *peers)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct epoll_event interest = {.events = EPOLLIN, .data.u32 = NO_ONE};
	socklen_t size = sizeof(address);
	char name[sizeof(address.sun_path)];

	peers->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	peers->epoll = epoll_create1(EPOLL_CLOEXEC);
	/* An abstract name, chosen by the kernel: it ends with this process, and processes in a chroot see it. */
	if (peers->listener < 0 || peers->epoll < 0 ||
	    bind(peers->listener, (struct sockaddr *)&address, sizeof(address.sun_family)) ||
	    listen(peers->listener, QUEUE) || epoll_ctl(peers->epoll, EPOLL_CTL_ADD, peers->listener, &interest) ||
	    getsockname(peers->listener, (struct sockaddr *)&address, &size) ||
	    getrandom(&peers->token, sizeof(peers->token), 0) != sizeof(peers->token)) {
		tool_complain("record: --soft: a socket to listen on: %s", strerror(errno));
		return false;
	}
	size -= (socklen_t)offsetof(struct sockaddr_un, sun_path) + 1;
	memcpy(name, address.sun_path + 1, size);
	name[size] = 0;
	return set_environment(peers, name);
}

static uint64_t data_size(const struct tool_peers *peers)
{
	return peers->terms.pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* The size of a ring's fd: control page and data. */
static uint64_t ring_size(const struct tool_peers *peers)
{
	return data_size(peers) + (uint64_t)sysconf(_SC_PAGESIZE);
}

bool tool_peers_open(struct tool_peers **result, struct perfring_session *session, const struct soft_terms *terms)
{
	struct tool_peers *peers = tool_allocate(NULL, 1, sizeof(*peers));

	memset(peers, 0, sizeof(*peers));
	*result = peers;
	peers->session = session;
	peers->terms = *terms;
	peers->terms.filters = tool_filter_count();
	peers->listener = peers->epoll = -1;
	peers->queue = queue_length();
	peers->opened = tool_now();
	peers->most_bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) / 2;
	peers->copy = tool_allocate(NULL, (size_t)data_size(peers), 1);
	return listen_to(peers);
}

void tool_peers_only(struct tool_peers *peers, int32_t pid)
{
	peers->only = pid;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* Frees all peers.  Their rings are in the session, which must be closed before. */
void tool_peers_close(struct tool_peers *peers)
{
	if (!peers)
		return;
	for (uint32_t i = 0; i < peers->ring_count; i++)
		if (peers->rings[i].ring.page)
			perfring_ring_close(&peers->rings[i].ring);
	for (uint32_t i = 0; i < peers->peer_count; i++) {
		close_fd(&peers->peers[i].socket);
		close_fd(&peers->peers[i].process);
	}
	close_fd(&peers->listener);
	close_fd(&peers->epoll);
	free(peers->rings);
	free(peers->peers);
	free(peers->copy);
	free(peers);
}

int tool_peers_fd(const struct tool_peers *peers)
{
	return peers->epoll;
}

/* ---- processes ---- */

static uint64_t now_ms(void)
{
	return tool_now() / NS_PER_MS;
}

/* Frees a peer without rings. */
static void forget(struct tool_peers *peers, struct peer *peer)
{
	close_fd(&peer->socket);
	close_fd(&peer->process);
	peer->taken = false;
	peers->freed = true;
}

/* Closes the connection, which leaves the epoll set by that.  The process stays while it has rings, or is barred. */
static void hang_up(struct tool_peers *peers, struct peer *peer)
{
	close_fd(&peer->socket);
	peers->freed = true;
	if (!peer->rings && !peer->barred)
		forget(peers, peer);
}

/* Complains once; from then on its rings are not read and its connections are refused. */
static void bar(struct tool_peers *peers, struct peer *peer, const char *what)
{
	if (peer->barred)
		return;
	peer->barred = true;
	complain(peers, "process %u is no longer observed: %s", peer->pid, what);
	hang_up(peers, peer);
}

static bool is_unknown(const struct peer *peer)
{
	return peer->taken && peer->strange && !peer->greeted;
}

static int open_process(int socket, pid_t pid)
{
	socklen_t size = sizeof(int);
	int process;

	/* Linux 6.5: also when the number is another process's by now. */
	if (!getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &process, &size))
		return process;
	return pid ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
}

static void add_peer(struct tool_peers *peers, int socket)
{
	struct epoll_event interest = {.events = EPOLLIN};
	struct ucred who = {.uid = (uid_t)-1};
	socklen_t size = sizeof(who);
	uint32_t at = 0, unknown_peers = 0;
	struct peer *peer;
	bool strange;

	/* The pid in this namespace.  Every process may connect; the token is checked later. */
	getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &size);
	strange = who.uid && who.uid != geteuid();
	for (uint32_t i = 0; i < peers->peer_count; i++)
		unknown_peers += is_unknown(&peers->peers[i]);
	if (strange && unknown_peers >= UNKNOWN_PEERS) {
		close(socket);
		return;
	}
	while (at < peers->peer_count && peers->peers[at].taken)
		at++;
	interest.data.u32 = at;
	if (epoll_ctl(peers->epoll, EPOLL_CTL_ADD, socket, &interest)) {
		complain(peers, "a process could not be taken: %s", strerror(errno));
		close(socket);
		return;
	}
	if (at == peers->peer_count)
		peers->peers = tool_allocate(peers->peers, ++peers->peer_count, sizeof(*peers->peers));
	peer = &peers->peers[at];
	memset(peer, 0, sizeof(*peer));
	peer->taken = true;
	peer->socket = socket;
	peer->strange = strange;
	peer->since = now_ms();
	peer->pid = (uint32_t)who.pid;
	peer->process = open_process(socket, who.pid);
}

/* Whether the process has ended.  One without a socket may run on: a daemon closes all descriptors. */
static bool has_ended(struct peer *peer)
{
	struct pollfd ready = {.fd = peer->process, .events = POLLIN};

	if (!peer->ended)
		peer->ended = peer->process >= 0 ? poll(&ready, 1, 0) > 0 : peer->socket < 0;
	return peer->ended;
}

/* Whether this is the pid of the process in its innermost pid namespace. */
static bool is_called(struct tool_peers *peers, uint32_t pid, uint32_t own)
{
	char path[64], line[256], *last = NULL;
	FILE *file;

	if (pid == own)
		return pid;
	snprintf(path, sizeof(path), "/proc/%u/status", pid);
	file = fopen(path, "re");
	if (!file && errno != ENOENT && errno != ESRCH)
		complain(peers, "process %u could not be taken: %s: %s", pid, path, strerror(errno));
	while (file && !last && fgets(line, sizeof(line), file))
		if (!strncmp(line, "NSpid:", 6))
			last = strrchr(line, '\t');
	if (file)
		fclose(file);
	return last && strtoul(last + 1, NULL, 10) == own;
}

/* Another connection of the process, which this one continues; NULL: none. */
static struct peer *find_same(struct tool_peers *peers, const struct peer *peer)
{
	for (uint32_t i = 0; i < peers->peer_count; i++) {
		struct peer *other = &peers->peers[i];

		if (other != peer && other->taken && other->greeted && other->pid == peer->pid &&
		    other->image == peer->image && other->socket < 0 && !has_ended(other))
			return other;
	}
	return NULL;
}

/* Whether the process of a hello may take part; notes whether it is counted already.  Another image: it has called exec. */
static bool may_join(struct tool_peers *peers, struct peer *peer)
{
	uint32_t images = 0;

	for (uint32_t i = 0; i < peers->peer_count; i++) {
		struct peer *other = &peers->peers[i];

		if (other == peer || !other->taken || !other->greeted || other->pid != peer->pid)
			continue;
		if (other->barred && !has_ended(other))
			return false;
		peer->known = peer->known || other->known;
		other->ended = other->ended || other->image != peer->image;
		images++;
	}
	peers->unobserved += images >= SOFT_IMAGES;
	return images < SOFT_IMAGES;
}

/* Whether no other process has the pid of this one's records.  The owner of a pid in this namespace is known: a process of
 * another namespace with the same number is not observed any longer. */
static bool may_be_called(struct tool_peers *peers, const struct peer *peer)
{
	char text[96];

	for (uint32_t i = 0; i < peers->peer_count; i++) {
		struct peer *other = &peers->peers[i];

		if (!other->taken || !other->greeted || other->pid == peer->pid || other->own != peer->own ||
		    other->barred || has_ended(other))
			continue;
		if (peer->own != peer->pid) {
			complain(peers,
				"process %u is not observed: in its pid namespace it is %u, and another process has "
				"that number",
				peer->pid, peer->own);
			return false;
		}
		snprintf(text, sizeof(text), "in its pid namespace it is %u, and another process has that number",
			 peer->own);
		bar(peers, other, text);
	}
	return true;
}

static void greet(struct tool_peers *peers, uint32_t at, const struct soft_message *message)
{
	struct peer *peer = &peers->peers[at], *same;
	struct epoll_event interest = {.events = EPOLLIN};

	peer->image = message->image;
	peer->own = message->pid;
	if ((peers->only && (uint32_t)peers->only != peer->pid) || !is_called(peers, peer->pid, peer->own) ||
	    !may_join(peers, peer) || !may_be_called(peers, peer)) {
		hang_up(peers, peer);
		return;
	}
	peer->greeted = true;
	if (message->version != SOFT_VERSION) {
		bar(peers, peer, "it has a " SOFT_OBJECT " of another version");
		return;
	}
	/* A program that has closed the socket that it found open: its rings are still there. */
	same = find_same(peers, peer);
	if (!same)
		return;
	interest.data.u32 = (uint32_t)(same - peers->peers);
	if (epoll_ctl(peers->epoll, EPOLL_CTL_MOD, peer->socket, &interest))
		return;
	same->socket = peer->socket;
	peer->socket = -1;
	forget(peers, peer);
}

/* ---- rings ---- */

/* The first look at the fd: for a file of a FUSE file system even fstat would wait for another process.  Returns what is
 * wrong, or NULL. */
static const char *judge_seals(int fd)
{
	const int needed = F_SEAL_SHRINK | F_SEAL_GROW;
	int seals = fcntl(fd, F_GET_SEALS);

	return seals >= 0 && (seals & needed) == needed
		       ? NULL
		       : "a ring that is not a memfd sealed against shrinking and growing";
}

/* No holes, now and later: since Linux 5.1 they cannot be punched into a file that is sealed against further writes.  Before
 * that, the bytes of all rings bound what holes can cost. */
static const char *keep_whole(const struct perfring_ring *ring, uint64_t size)
{
	struct stat status;

	if (fcntl(ring->fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) && errno != EINVAL)
		return "a ring that cannot be sealed";
	if (fstat(ring->fd, &status) || (uint64_t)status.st_size != size || (uint64_t)status.st_blocks * 512 < size)
		return "a ring with holes, or of a size that was not agreed on";
	return NULL;
}

static void add_ring(struct tool_peers *peers, uint32_t at, int fd)
{
	struct peer *peer = &peers->peers[at];
	struct perfring_fault fault = {0, ""};
	const char *wrong = judge_seals(fd);
	struct perfring_ring ring;
	int ret = 0;

	if (!wrong && (peer->rings >= SOFT_RINGS || ring_size(peers) > peers->most_bytes - peers->bytes)) {
		peers->unobserved++;
		return;
	}
	if (!wrong)
		ret = perfring_ring_attach(&ring, fd, 0, &fault);
	if (ret == -EBADMSG || ret == -EACCES)
		wrong = ret == -EACCES ? "a ring that may not be written here" : fault.what;
	if (wrong || ret) {
		if (wrong)
			bar(peers, peer, wrong);
		else
			complain(peers, "a ring of process %u: %s", peer->pid, strerror(-ret));
		return;
	}
	wrong = ring.flags != PERFRING_RING_OWN || ring.size != data_size(peers)
			? "a ring of another size or kind than was agreed on"
			: keep_whole(&ring, ring_size(peers));
	/* Without copies by the session, which would be as large as all rings: tool_peers_vet copies one span. */
	ret = wrong ? 0 : perfring_session_add_ring(peers->session, &ring, -1, 0);
	if (wrong || ret < 0) {
		perfring_ring_close(&ring);
		if (wrong)
			bar(peers, peer, wrong);
		else
			complain(peers, "a ring of process %u: %s", peer->pid, strerror(-ret));
		return;
	}
	/* The mapping is enough: thousands of threads have a ring each. */
	close_fd(&ring.fd);
	while ((uint32_t)ret >= peers->ring_count) {
		peers->rings = tool_allocate(peers->rings, peers->ring_count + (size_t)RINGS_MORE, sizeof(*peers->rings));
		memset(peers->rings + peers->ring_count, 0, RINGS_MORE * sizeof(*peers->rings));
		peers->ring_count += RINGS_MORE;
	}
	peers->rings[ret] = (struct peer_ring){.ring = ring, .peer = at};
	peers->bytes += ring_size(peers);
	peer->rings++;
	peers->seen += !peer->known;
	peer->known = true;
}

static void take_text(struct tool_peers *peers, struct peer *peer, struct soft_message *message)
{
	message->text[sizeof(message->text) - 1] = 0;
	peers->refused += !peer->known;
	if (peer->texts++ < TEXTS)
		complain(peers, "process %u: %s", peer->pid, message->text);
	else
		peers->unreported++;
	if (peer->texts > SOFT_TEXTS)
		bar(peers, peer, "it sends too many messages");
}

/* Reads one message, if there is one. */
static void take(struct tool_peers *peers, uint32_t at)
{
	struct peer *peer = &peers->peers[at];
	struct soft_message message;
	union {
		struct cmsghdr header;
		char buffer[CMSG_SPACE(sizeof(int))];
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
	if (got < 0 && errno != ECONNRESET)
		complain(peers, "process %u: a message could not be taken: %s", peer->pid, strerror(errno));
	first = got > 0 ? CMSG_FIRSTHDR(&header) : NULL;
	if (first && first->cmsg_level == SOL_SOCKET && first->cmsg_type == SCM_RIGHTS &&
	    first->cmsg_len >= CMSG_LEN(sizeof(fd)))
		memcpy(&fd, CMSG_DATA(first), sizeof(fd));
	/* The token: a process that can list abstract names cannot yet read our command's environment. */
	if (got != (ssize_t)sizeof(message) || message.token != peers->token ||
	    (message.kind == SOFT_HELLO) == peer->greeted)
		hang_up(peers, peer);
	else if (message.kind == SOFT_HELLO)
		greet(peers, at, &message);
	else if (message.kind == SOFT_RING && fd >= 0)
		add_ring(peers, at, fd);
	else if (message.kind == SOFT_COMPLAINT)
		take_text(peers, peer, &message);
	else
		bar(peers, peer, "a message of no known kind, or a ring without its descriptor");
	close_fd(&fd);
}

/* Whether it is in the epoll set. */
static void listen_again(struct tool_peers *peers, bool listens)
{
	struct epoll_event interest = {.events = EPOLLIN, .data.u32 = NO_ONE};

	peers->deaf = !listens;
	peers->freed = false;
	peers->deaf_since = now_ms();
	epoll_ctl(peers->epoll, listens ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, peers->listener, &interest);
}

static void take_peer(struct tool_peers *peers)
{
	int socket = accept4(peers->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (socket >= 0) {
		peers->overflowed = peers->overflowed || ++peers->came > peers->queue;
		add_peer(peers, socket);
	} else if (errno == EMFILE || errno == ENFILE) {
		complain(peers, "a process could not be taken: %s", strerror(errno));
		listen_again(peers, false); /* it waits until there is space */
	}
}

bool tool_peers_serve(struct tool_peers *peers)
{
	struct epoll_event ready[SOFT_AT_ONCE];
	int count, served = 0;

	/* One message each, in turn, which is the order of epoll. */
	while (served < SOFT_AT_ONCE && (count = epoll_wait(peers->epoll, ready, SOFT_AT_ONCE - served, 0)) > 0) {
		bool listened = count == SOFT_AT_ONCE - served;

		for (int i = 0; i < count; i++) {
			uint32_t at = ready[i].data.u32;

			listened = listened || at == NO_ONE;
			if (at == NO_ONE)
				take_peer(peers);
			else if (peers->peers[at].taken && peers->peers[at].socket >= 0)
				take(peers, at);
		}
		if (!listened)
			peers->came = 0; /* the queue was empty */
		served += count;
	}
	return served >= SOFT_AT_ONCE;
}

/* ---- records ---- */

/* Whether the preloaded object writes records of this type.  Others could do harm: an AUXTRACE record makes a reader skip the
 * bytes after it. */
static bool may_write(uint32_t type)
{
	switch (type) {
	case PERFRING_RECORD_SAMPLE:
	case PERFRING_RECORD_LOST:
	case PERFRING_RECORD_COMM:
	case PERFRING_RECORD_FORK:
	case PERFRING_RECORD_EXIT:
	case PERFRING_RECORD_MMAP2:
	case PERFRING_RECORD_READ: /* of -s, when a thread ends */
	case PERFRING_RECORD_THROTTLE:
	case PERFRING_RECORD_UNTHROTTLE:
		return true;
	default:
		return false;
	}
}

static bool tells_of_process(uint32_t type)
{
	return type == PERFRING_RECORD_COMM || type == PERFRING_RECORD_FORK || type == PERFRING_RECORD_EXIT ||
	       type == PERFRING_RECORD_MMAP2 || type == PERFRING_RECORD_READ;
}

static uint64_t elapsed_since_open(const struct tool_peers *peers)
{
	return tool_now() - peers->opened;
}

/* At most one lost record per microsecond: a larger count of a peer would drown the losses of the others. */
static uint64_t most_lost(uint64_t elapsed)
{
	return elapsed / 1000;
}

/* A thread runs or waits, for `elapsed` in sum at most, plus a tick and the difference of the kernel's clocks. */
static const char *judge_period(const struct tool_peers *peers, struct peer_ring *ring, uint64_t elapsed,
				const struct perfring_format *format, const struct perf_event_header *record)
{
	const struct perf_event_attr *attr =
		perfring_format_set_attr(perfring_session_formats(peers->session), format->index);
	uint64_t most = elapsed + elapsed / 64 + 100 * NS_PER_MS;
	uint64_t period = attr->freq ? 0 : attr->sample_period;

	perfring_format_word_of(record, perfring_format_field_offset(format->sample_type, PERFRING_SAMPLE_PERIOD), 0,
				&period);
	if (ring->sampled > most || period > most - ring->sampled)
		return "a longer period than there was time for";
	ring->sampled += period;
	return NULL;
}

/* Records are sorted by time: one of the future would let all rounds end at once, and those of others come out of order.
 * What has no TIME has no place to lie about.  (tools/record_events.c: the clock is CLOCK_MONOTONIC, as that of tool_now.) */
static const char *judge_time(const struct tool_peers *peers, uint64_t elapsed, const struct perfring_format *format,
			      const struct perf_event_header *record)
{
	uint64_t time;

	if (!(format->sample_type & PERFRING_SAMPLE_TIME))
		return NULL;
	time = perfring_format_time_of(format, record);
	if (time < peers->opened || time - peers->opened > elapsed)
		return "a time that is not of this recording (is the process in another time namespace?)";
	return NULL;
}

/* A record of the copy, of which `left` bytes follow, `elapsed` ns after the recording began.  Returns what is wrong with it,
 * or NULL. */
static const char *judge(const struct tool_peers *peers, struct peer_ring *ring, uint64_t elapsed,
			 const struct perf_event_header *record, uint64_t left)
{
	const struct perfring_format_set *formats = perfring_session_formats(peers->session);
	uint32_t pid = peers->peers[ring->peer].own, at, back;
	const struct perfring_format *format;
	struct perfring_fault fault = {0, ""};
	const char *wrong;
	uint64_t word = 0;
	uint32_t found;

	if (left < sizeof(*record) || !may_write(record->type))
		return "a type that no program writes";
	if (record->size < sizeof(*record) || record->size > left)
		return "a size that is not one";
	if (perfring_format_set_of(formats, record, &format, &fault) ||
	    perfring_record_check(format, record, (size_t)left, &fault))
		return fault.what;
	at = perfring_format_field_offset(format->sample_type, PERFRING_SAMPLE_TID);
	back = perfring_format_field_back(format->sample_type, PERFRING_SAMPLE_TID);
	/* A field of samples, in the trailer of other records, and the first member of records of tasks and mappings. */
	perfring_format_word_of(record, at, back, &word);
	memcpy(&found, &word, sizeof(found));
	if (found == pid && tells_of_process(record->type))
		memcpy(&found, record + 1, sizeof(found));
	if (found != pid)
		return "the pid of another process";
	wrong = judge_time(peers, elapsed, format, record);
	if (wrong)
		return wrong;
	if (record->type == PERFRING_RECORD_SAMPLE)
		return judge_period(peers, ring, elapsed, format, record);
	if (record->type != PERFRING_RECORD_LOST)
		return NULL;
	memcpy(&word, (const unsigned char *)record + sizeof(*record) + 8, sizeof(word));
	return word > most_lost(elapsed) ? "more lost records than it had time to write" : NULL;
}

static void bar_for_record(struct tool_peers *peers, struct peer *peer, uint32_t type, const char *wrong)
{
	char text[160];

	snprintf(text, sizeof(text), "a record of type %" PRIu32 " in its ring: %s", type, wrong);
	bar(peers, peer, text);
}

void tool_peers_vet(struct tool_peers *peers, struct perfring_span *span)
{
	struct peer_ring *ring = &peers->rings[span->ring];
	struct peer *peer = &peers->peers[ring->peer];
	uint64_t elapsed = elapsed_since_open(peers); /* all of the span was written by now */
	const char *wrong = NULL;
	uint64_t end = 0, at = 0;

	for (uint32_t i = 0; i < span->count; end += span->pieces[i++].iov_len)
		memcpy(peers->copy + end, span->pieces[i].iov_base, span->pieces[i].iov_len);
	span->pieces[0].iov_base = peers->copy;
	span->count = 1;
	span->records = span->samples = 0;
	while (!peer->barred && at < end) {
		const struct perf_event_header *record = (const void *)(peers->copy + at);

		wrong = judge(peers, ring, elapsed, record, end - at);
		if (wrong) {
			bar_for_record(peers, peer, record->type, wrong);
			break;
		}
		span->records++;
		span->samples += record->type == PERFRING_RECORD_SAMPLE;
		at += record->size;
	}
	span->pieces[0].iov_len = (size_t)at;
	span->size = at;
}

void tool_peers_corrupt(struct tool_peers *peers, uint32_t ring, const struct perfring_fault *fault)
{
	bar(peers, &peers->peers[peers->rings[ring].peer], fault->what);
}

/* ---- rings that have ended ---- */

/* Whether everything is read, and its thread writes no more or its process is barred.  The peer writes this state: a lie
 * costs only its own records. */
static bool is_done(const struct peer_ring *ring, const struct peer *peer)
{
	const struct perf_event_mmap_page *page = ring->ring.page;

	if (peer->barred || ring->last)
		return true;
	/* Acquire: what its writer published before it closed is seen below (rb/set.c does the same by `gone`). */
	return !PERFRING_LOAD_ACQUIRE(&perfring_ring_state_of(page)->writer) &&
	       perfring_page_observe(page) == perfring_page_reclaim(page);
}

static uint64_t lost_in(const struct tool_peers *peers, const struct peer_ring *ring)
{
	uint64_t lost = PERFRING_LOAD(&perfring_ring_state_of(ring->ring.page)->lost_total), most = most_lost(elapsed_since_open(peers));

	return lost < most ? lost : most;
}

static void sweep_ring(struct tool_peers *peers, uint32_t number)
{
	struct peer_ring *ring = &peers->rings[number];
	struct peer *peer = &peers->peers[ring->peer];

	/* Refused while the round has something of it. */
	if (!is_done(ring, peer) || perfring_session_remove_ring(peers->session, number)) {
		ring->last = peer->ended;
		return;
	}
	if (!peer->barred)
		peers->lost += lost_in(peers, ring);
	perfring_ring_close(&ring->ring);
	peers->bytes -= ring_size(peers);
	peer->rings--;
}

void tool_peers_sweep(struct tool_peers *peers)
{
	uint64_t now = now_ms();

	for (uint32_t i = 0; i < peers->peer_count; i++)
		if (peers->peers[i].taken)
			has_ended(&peers->peers[i]);
	for (uint32_t i = 0; i < peers->ring_count; i++)
		if (peers->rings[i].ring.page)
			sweep_ring(peers, i);
	for (uint32_t i = 0; i < peers->peer_count; i++) {
		struct peer *peer = &peers->peers[i];

		if (!peer->taken)
			continue;
		if ((peer->ended && !peer->rings && peer->socket < 0) ||
		    (!peer->greeted && !peer->barred &&
		     now - peer->since > (uint64_t)(peer->strange ? PATIENCE_MS : HELLO_MS)))
			forget(peers, peer);
	}
	if (peers->deaf && (peers->freed || now - peers->deaf_since > PATIENCE_MS))
		listen_again(peers, true);
}

bool tool_peers_tell(const struct tool_peers *peers)
{
	bool none = !peers->seen && peers->refused;

	if (!peers->seen && !peers->reported && !peers->unobserved)
		tool_complain("record: --soft: no process took part: is the command linked statically or with "
			      "AddressSanitizer, is it set-user-id or under a seccomp filter, or " SOFT_OBJECT
			      " not installed?");
	if (peers->unreported)
		tool_complain("record: --soft: %" PRIu64 " more complaints like these", peers->unreported);
	if (peers->unobserved)
		tool_complain("record: --soft: %" PRIu64 " threads or processes were not observed: a process may "
			      "have %d rings, all of them %" PRIu64 " MiB (-m makes them smaller)",
			      peers->unobserved, SOFT_RINGS, peers->most_bytes >> 20);
	if (peers->overflowed)
		tool_complain("record: --soft: %" PRIu32 " processes waited for this recorder, as many as may wait "
			      "(net.core.somaxconn): others may not have been observed",
			      peers->queue);
	if (none)
		tool_complain("record: --soft: no process could be observed: there is nothing in this file");
	return !none;
}

uint64_t tool_peers_count(const struct tool_peers *peers)
{
	return peers->seen;
}

uint64_t tool_peers_lost(const struct tool_peers *peers)
{
	uint64_t lost = peers->lost;

	for (uint32_t i = 0; i < peers->ring_count; i++)
		if (peers->rings[i].ring.page)
			lost += lost_in(peers, &peers->rings[i]);
	return lost;
}
