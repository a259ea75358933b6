/* preload.c - libperfring_preload.so: a program that samples itself, for `perfring record --soft` or into a file.
 *
 *     PERFRING_SOFT_SOCKET=...    set by the recorder: rings go to it (soft.h)
 *     PERFRING_PROFILE=FILE              a thread of this object's drains them into FILE; %p is the pid
 *
 * What it does to the program:
 *
 *   threads         pthread_create and thrd_create: the new thread joins before its start routine runs
 *   dlopen          what is mapped by it is written before it returns, and its unwind tables are read
 *   signals         the events' signal stays unblocked (pthread_sigmask, sigprocmask) and handled: to reset it does
 *                   nothing, a handler of the program's own for it ends our events
 *   descriptors     one socket, above those that programs count on; one that closes it finds it opened again (FILE's is
 *                   not: it ends there)
 *   fork            the child begins anew, as a process of its own; in a FILE without %p it has no place.  Also a fork in a
 *                   handler, wherever it struck: our memory is our own (preload_memory.c)
 *   unshare, setns  of what a process with threads may not: FILE's thread has ended meanwhile
 *   seccomp         prctl and syscall are looked at: before a filter is installed that does not let all our system calls
 *                   through, and before strict mode or PR_SET_TSC, we end.  One that would refuse to begin another FILE:
 *                   children of forks have none, and this one ends before an unshare.  Not seen: what a program does by an
 *                   instruction of its own, and a filter under which it was exec'd that lets through what the loader does
 *                   and kills for more (the recorder's own are all right)
 *   exec            the new program is preloaded and begins anew
 *   calls that      with --off-cpu: measured, and raised where they waited (preload_waits.c)
 *   wait
 *   exit, kill      what was written lies in the rings, which are the recorder's as well; FILE is finished at exit, also by
 *                   _exit, _Exit and quick_exit; after a kill, an abort, an exec or the system call exit_group it ends with
 *                   its last round
 *
 * When something fails here, the program runs on without its events; the recorder gets the reason.  soft.h raises, soft_source.h
 * has the messages.  All of this runs inside calls of a program that knows nothing of it: any thread, any handler.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <link.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>
#include <perfring/file.h>
#include <perfring/file_writer.h>
#include <perfring/profile_fill.h>
#include <perfring/soft.h>
#include "path.h"
#include "preload.h"
#include "preload_waits.h"
#include "soft_source.h"
#include "tools.h"

sighandler_t bsd_signal(int number, sighandler_t handler); /* hidden by glibc since POSIX gave it up */

/* The functions that are wrapped. */
#define EACH_REAL(of) \
	of(pthread_create) of(thrd_create) of(dlopen) of(pthread_sigmask) of(sigaction) of(sigignore) of(signal) \
		of(bsd_signal) of(ssignal) of(sysv_signal) of(__sysv_signal) of(sigset) of(prctl) of(syscall) \
			of(unshare) of(setns) of(_exit) of(_Exit)

/* sigset, sigignore: not by us. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
EACH_REAL(DECLARE)

enum {
	HIGH = 1000,   /* descriptors from here on, where the limit allows */
	SHOWN = 200,   /* ms: between looks at the rings, in a program that drains its own */
	LAST = 10,     /* ms: at the end of a process whose recorder is held up */
	PATIENCE = 100 /* ms: at an end by _exit, whose thread may have been interrupted where it has the lock */
};

enum stage {
	UNTRIED,
	TRYING,
	OFF,
	ON,
};

static struct {
	uint32_t stage;
	uint32_t stale; /* something may be mapped that is not written yet */
	bool by_tables; /* of the events' call chains: tables are read again after a dlopen */
	bool confined;  /* a system call of ours may kill the process: children of forks take no part either */
	uint32_t is_away; /* and all that would make one has been put away */
	pid_t pid;      /* a child of vfork or a bare clone has another one: nothing is done in it */
	struct perfring_soft_event *event;
	struct perfring_soft_event *waits; /* offcpu-time, in the other's rings; NULL: not asked for */
	pthread_mutex_t lock; /* the socket and the walk over the rings */

	/* with a recorder */
	int socket; /* -1: none */
	dev_t device;
	ino_t inode;
	uint64_t image;

	/* into a file */
	bool drains;
	bool is_last; /* no other file can be begun: neither by children of forks nor by another thread */
	int file;
	dev_t file_device;
	ino_t file_inode;
	bool has_drainer;
	bool is_joined; /* `joiner` waits for the drainer's end */
	pthread_t drainer, joiner;
	pid_t drainer_tid;
	pthread_cond_t over; /* the drainer's end is asked for, or has come */
	bool is_over;
	uint32_t is_ended; /* by the first thread that ends the process */
	struct perfring_session *session;
	struct perfring_file_writer *writer;
} self = {.lock = PTHREAD_MUTEX_INITIALIZER, .over = PTHREAD_COND_INITIALIZER, .socket = -1, .file = -1};

/* What the environment asked for, taken from it by decide.  Read only afterwards: setenv of another thread moves environ, and
 * no lock of the C library's is there for its readers. */
static struct {
	bool has_recorder;
	socklen_t size; /* of the address */
	struct sockaddr_un address;
	uint64_t token;
	struct soft_terms terms; /* version 0: of another build */
	char file[PATH_MAX];     /* PERFRING_PROFILE; "": none */
} asked;

static bool is_on(void)
{
	/* partner: the release in begin */
	return PERFRING_LOAD_ACQUIRE(&self.stage) == ON && self.pid == getpid();
}

/* Also where sampling is off and not yet put away: at a stop, while the process ends.  No system call is made where it is put away, or was
 * never asked for (pid is 0): another filter may kill for it. */
static bool is_begun(void)
{
	/* partner of is_away: the release in confine */
	return PERFRING_LOAD_ACQUIRE(&self.stage) >= OFF && self.pid && !PERFRING_LOAD_ACQUIRE(&self.is_away) && self.pid == getpid();
}

int __wrap_pthread_sigmask(int how, const sigset_t *set, sigset_t *old);

/* Without the signals that an instruction raises, as in soft/thread.c: under an unseen filter that traps, the program's
 * handler of SIGSYS answers these system calls. */
static void block_signals(sigset_t *before)
{
	static const int synchronous[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS};
	sigset_t all;

	sigfillset(&all);
	for (size_t i = 0; i < sizeof(synchronous) / sizeof(synchronous[0]); i++)
		sigdelset(&all, synchronous[i]);
	__wrap_pthread_sigmask(SIG_BLOCK, &all, before);
}

/* Signals first: a handler in between might jump away, and leave the thread uncancellable. */
struct tool_held tool_hold(void)
{
	struct tool_held held;

	block_signals(&held.signals);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &held.cancel);
	return held;
}

void tool_give(const struct tool_held *held)
{
	pthread_setcancelstate(held->cancel, NULL);
	__wrap_pthread_sigmask(SIG_SETMASK, &held->signals, NULL);
}

/* ---- the recorder ---- */

/* Moves a descriptor above those that the program opens. */
static int raise_fd(int fd)
{
	struct rlimit limit;
	int from = HIGH, high;

	if (fd < 0)
		return fd;
	if (!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur < HIGH + 16)
		from = limit.rlim_cur > 32 ? (int)limit.rlim_cur - 16 : 0;
	high = fcntl(fd, F_DUPFD_CLOEXEC, from);
	if (high < 0)
		return fd;
	close(fd);
	return high;
}

static int send_message(uint32_t kind, int fd, const char *text)
{
	struct soft_message message = {.kind = kind, .version = SOFT_VERSION, .pid = (uint32_t)getpid()};

	message.token = asked.token;
	message.image = self.image;
	if (text)
		snprintf(message.text, sizeof(message.text), "%s", text);
	return soft_send(self.socket, &message, sizeof(message), fd);
}

/* Whether the descriptor is still this socket: programs close what they find open. */
static bool is_still(int fd, dev_t device, ino_t inode)
{
	struct stat status;

	return fd >= 0 && !fstat(fd, &status) && status.st_dev == device && status.st_ino == inode;
}

static bool has_socket(void)
{
	return is_still(self.socket, self.device, self.inode);
}

static bool has_file(void)
{
	return is_still(self.file, self.file_device, self.file_inode);
}

/* Connects and sends the first message.  Does not wait.  Returns 0 or -errno. */
static int meet(void)
{
	struct stat status;
	int ret;

	if (asked.terms.parent && asked.terms.parent != (uint32_t)getppid())
		return -ECHILD;
	self.socket = raise_fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
	if (self.socket < 0 || fstat(self.socket, &status))
		return -errno;
	self.device = status.st_dev;
	self.inode = status.st_ino;
	if (connect(self.socket, (struct sockaddr *)&asked.address, asked.size))
		return -errno;
	ret = send_message(SOFT_HELLO, -1, NULL);
	return ret || asked.terms.version ? ret : -EPROTO;
}

static void leave_recorder(void)
{
	if (has_socket())
		close(self.socket);
	self.socket = -1;
}

/* Sends the new rings; the walk also frees drained rings of threads that have ended.  -EAGAIN: the queue is full because the
 * recorder is delayed; the next call sends the rest.  Context: self.lock is held. */
static int send_rings(void)
{
	struct perfring_set *rings = perfring_soft_rings(self.event);
	struct perfring_set_ring *member = NULL;
	int ret = 0;

	while (!ret && (member = perfring_set_next(rings, member))) {
		if (member->data || member->drained)
			continue;
		if (!has_socket()) {
			self.socket = -1;
			ret = meet();
			if (ret)
				leave_recorder();
		}
		if (!ret)
			ret = send_message(SOFT_RING, member->ring.fd, NULL);
		if (!ret) {
			member->data = member;
			/* The mapping is enough, and the program's own descriptors keep their numbers. */
			close(member->ring.fd);
			member->ring.fd = -1;
		}
	}
	return ret;
}

/* ---- events ---- */

/* Context: self.lock is held, except in the thread that drains. */
static void stop_event(void)
{
	PERFRING_STORE(&self.stage, OFF);
	if (self.waits)
		perfring_soft_disable(self.waits, false);
	if (self.event)
		perfring_soft_disable(self.event, false);
}

/* For the library itself, linked with --wrap=pthread_sigmask: what it blocks stays blocked. */
int __real_pthread_sigmask(int how, const sigset_t *set, sigset_t *old); /* ours, below */

int __wrap_pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
	REAL(pthread_sigmask)
	return real_pthread_sigmask(how, set, old);
}

/* Unblocks the events' signal: a thread begins with its creator's mask, a program with that of the one that exec'd it. */
static void unblock_signal(struct tool_held *held)
{
	sigdelset(&held->signals, perfring_soft_signal());
}

/* Context: self.lock is held, or no other thread has the event yet. */
static void put_state(void)
{
	PERFRING_STORE(&self.stale, 0);
	/* Not in begin, which has just done it, nor in a fork's child, where another thread may have had the loader's lock.  Without
	 * memory the new object has no tables. */
	if (self.by_tables && PERFRING_LOAD(&self.stage) == ON)
		perfring_soft_unwind_load();
	if (self.event && perfring_soft_put_state(self.event) < 0)
		PERFRING_STORE(&self.stale, 1); /* this thread takes no part: the next one may */
}

/* offcpu-time: its records are in the rings of the clock's.  Returns 0 or -errno. */
static int open_waits(const struct soft_terms *terms)
{
	struct perfring_soft_point *point = perfring_soft_define(PERFRING_PROFILE_OFF_CPU);
	struct perf_event_attr attr = terms->attr;
	int ret;

	static_assert((uint32_t)SOFT_WAITS_TYPE == (uint32_t)PERFRING_SOFT_TYPE, "soft_source.h");
	if (!point)
		return -ENOMEM;
	soft_waits_attr(&attr);
	attr.config = point->config;
	ret = perfring_soft_open(&self.waits, &attr, PERFRING_SOFT_PROCESS, NULL);
	if (!ret)
		ret = perfring_soft_set_id(self.waits, SOFT_WAITS_ID);
	if (!ret && self.by_tables)
		ret = perfring_soft_set_unwind(self.waits, true);
	if (!ret)
		ret = perfring_soft_set_output(self.waits, self.event);
	tool_waits.least = (terms->waits - UINT64_C(1)) * 1000000;
	PERFRING_STORE_RELEASE(&tool_waits.point, point); /* partner: tool_wait_is_measured */
	return ret;
}

/* Returns 0 or -errno. */
static int open_event(const struct soft_terms *terms)
{
	int ret = perfring_soft_open(&self.event, &terms->attr, PERFRING_SOFT_PROCESS, NULL);

	self.by_tables = terms->by_tables;
	/* In a fork's child the parent's tables are there: it does not wait for the loader. */
	if (!ret && self.by_tables)
		ret = perfring_soft_set_unwind(self.event, true);
	if (!ret && terms->waits)
		ret = perfring_soft_set_id(self.event, SOFT_CLOCK_ID);
	if (!ret)
		ret = perfring_soft_map(self.event, terms->pages, -1);
	return ret || !terms->waits ? ret : open_waits(terms);
}

static void close_event(void)
{
	if (self.waits)
		perfring_soft_close(self.waits);
	self.waits = NULL;
	if (self.event)
		perfring_soft_close(self.event);
	self.event = NULL;
}

static void enable_event(void)
{
	put_state();
	perfring_soft_enable(self.event, false);
	if (self.waits)
		perfring_soft_enable(self.waits, false);
}

/* ---- with a recorder ---- */

static bool begin_with_recorder(bool is_child)
{
	struct soft_terms terms = asked.terms;
	char text[96];
	int ret;

	if (getrandom(&self.image, sizeof(self.image), GRND_NONBLOCK) != sizeof(self.image))
		self.image = (uint64_t)time(NULL) << 32 | (uint32_t)getpid();
	ret = meet();
	if (ret) { /* no recorder there, its queue is full, or it does not want us */
		leave_recorder();
		return false;
	}
	/* Build-ids come from the loader, whose lock another thread of the parent's may have had. */
	if (is_child)
		perfring_attr_set_flag(&terms.attr, PERFRING_ATTR_FLAG_build_id, false);
	ret = open_event(&terms);
	if (!ret)
		ret = send_rings();
	if (ret) {
		snprintf(text, sizeof(text), "is not observed: %s", strerror(-ret));
		if (has_socket())
			send_message(SOFT_COMPLAINT, -1, text);
		close_event();
		leave_recorder();
		return false;
	}
	enable_event();
	return true;
}

/* ---- into a file ---- */

static void complain(const char *path, int ret)
{
	fputs("perfring: PERFRING_PROFILE: ", stderr);
	for (; *path; path++) {
		char buffer[4];

		fwrite(buffer, 1, tool_escape(buffer, (unsigned char)*path, false), stderr);
	}
	fprintf(stderr, ": %s\n", strerror(-ret));
}

/* Writes the path of PERFRING_PROFILE, with the pid for %p.  Returns false: it does not fit, or this is a child and there is no %p. */
static bool name_file(char *path, size_t size, bool is_child)
{
	const char *from = asked.file;
	size_t used = 0;
	bool has_pid = false;

	for (; *from && used + 16 < size; from++) {
		if (from[0] == '%' && from[1] == 'p') {
			used += (size_t)snprintf(path + used, size - used, "%d", (int)getpid());
			has_pid = true;
			from++;
		} else {
			path[used++] = *from;
		}
	}
	path[used] = 0;
	return !*from && (has_pid || !is_child);
}

/* What is there becomes FILE.old, and goes if it is an empty file: its maker may have opened it for others to read.  So does a
 * link: nothing is written into its target.  Pipes, devices and descriptors (/dev/stdout) are written as they are.
 * Returns 0 or -errno. */
static int make_way(const char *path, bool *is_new)
{
	struct stat own, status;
	char old[PATH_MAX + 8];

	*is_new = true;
	if (lstat(path, &own))
		return errno == ENOENT ? 0 : -errno;
	if (stat(path, &status)) {
		if (!S_ISLNK(own.st_mode) || errno != ENOENT)
			return -errno;
	} else if (!S_ISREG(status.st_mode) || (S_ISLNK(own.st_mode) && tool_path_is_descriptor(path))) {
		*is_new = false;
		return 0;
	}
	if (S_ISREG(own.st_mode) && !own.st_size)
		return unlink(path) ? -errno : 0;
	snprintf(old, sizeof(old), "%s.old", path);
	return rename(path, old) ? -errno : 0;
}

static int open_file(const char *path, const struct perf_event_attr *attr)
{
	const int made = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	const int found = O_RDWR | O_TRUNC | O_NOCTTY | O_CLOEXEC;
	char *argv[] = {program_invocation_name, NULL};
	struct stat status;
	bool is_new;
	int ret = make_way(path, &is_new);

	if (!ret)
		self.file = raise_fd(open(path, is_new ? made : found, 0600));
	if (!ret && (self.file < 0 || fstat(self.file, &status)))
		ret = -errno;
	if (!ret) {
		self.file_device = status.st_dev;
		self.file_inode = status.st_ino;
		ret = perfring_file_writer_open(&self.writer, self.file);
	}
	if (!ret)
		ret = perfring_file_writer_add_event(self.writer, attr, "task-clock:u");
	if (!ret)
		ret = perfring_session_describe(self.session, attr, NULL, 0);
	if (ret)
		return ret;
	ret = perfring_file_writer_describe(self.writer, argv);
	if (ret == -ENOMEM)
		return ret;
	if (ret)
		complain("the profile does not describe all of this machine", ret);
	return perfring_file_writer_begin(self.writer);
}

/* Adds new rings to the session and removes those that are drained.  Context: self.lock is held. */
static void find_rings(void)
{
	struct perfring_set *rings = perfring_soft_rings(self.event);
	struct perfring_set_ring *member = NULL;
	int one;

	while ((member = perfring_set_next(rings, member))) {
		/* Its number in the session, and 1. */
		if (member->drained && member->data)
			perfring_session_remove_ring(self.session, (uint32_t)(uintptr_t)member->data - 1);
		if (member->drained || member->data)
			continue;
		one = perfring_session_add_ring(self.session, &member->ring, -1, 0);
		if (one >= 0)
			member->data = (void *)((uintptr_t)one + 1);
		if (member->ring.fd >= 0)
			close(member->ring.fd); /* as in send_rings */
		member->ring.fd = -1;
	}
}

/* Writes one round of all rings into the file.  Context: self.lock is held. */
static int drain(bool last)
{
	struct perfring_span span;
	bool any = false;
	int ret = 0, one;

	if (!has_file())
		return -EBADF;
	find_rings();
	if (last)
		perfring_session_flush(self.session);
	else
		perfring_session_wait(self.session, 0);
	while (!ret && (one = perfring_session_next_span(self.session, &span))) {
		if (one < 0)
			continue;
		any = true;
		ret = perfring_file_writer_write(self.writer, span.pieces, (int)span.count);
	}
	if (!ret && any)
		ret = perfring_file_writer_end_round(self.writer);
	perfring_session_return(self.session);
	return ret;
}

/* ms from now on. */
static struct timespec time_after(long ms)
{
	struct timespec time;

	clock_gettime(CLOCK_REALTIME, &time);
	time.tv_nsec += ms * 1000000;
	time.tv_sec += time.tv_nsec / 1000000000;
	time.tv_nsec %= 1000000000;
	return time;
}

static void *drain_always(void *nothing)
{
	struct timespec until;

	prctl(PR_SET_NAME, "perfring");
	pthread_mutex_lock(&self.lock);
	self.drainer_tid = (pid_t)syscall(SYS_gettid);
	while (!self.is_over && !drain(false)) {
		until = time_after(SHOWN);
		pthread_cond_timedwait(&self.over, &self.lock, &until);
	}
	if (!self.is_over)
		stop_event(); /* there is no reader any more: reported at the end */
	pthread_mutex_unlock(&self.lock);
	return nothing;
}

static void close_file(void)
{
	perfring_session_close(self.session);
	if (self.writer)
		perfring_file_writer_close(self.writer);
	if (has_file())
		close(self.file);
	self.session = NULL;
	self.writer = NULL;
	self.file = -1;
}

static int create_thread(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *argument)
{
	REAL(pthread_create)
	return real_pthread_create(thread, attr, start, argument);
}

/* Starts the thread.  Handlers of the program run in it only for signals of its own instructions.  Returns 0 or -errno. */
static int start_drainer(void)
{
	sigset_t before;
	int ret;

	self.is_over = false;
	block_signals(&before);
	ret = -create_thread(&self.drainer, NULL, drain_always, NULL);
	__wrap_pthread_sigmask(SIG_SETMASK, &before, NULL);
	self.has_drainer = !ret;
	return ret;
}

/* Takes self.lock.  Of threads that come here at once one joins the drainer, and the others wait for that, at most until `until` where
 * there is one: without it the drainer makes no system call afterwards that a filter could kill it for.  A handler of the program's that
 * ends the process may come here in the drainer, or in who joins it: neither waits for itself.  From is_over on the drainer touches
 * neither rings nor file. */
static void end_drainer(const struct timespec *until)
{
	pthread_t own = pthread_self();

	pthread_mutex_lock(&self.lock);
	while (self.has_drainer && !pthread_equal(self.drainer, own)) {
		if (!self.is_over) {
			self.is_over = true;
			pthread_cond_broadcast(&self.over);
		}
		if (self.is_joined) {
			if (pthread_equal(self.joiner, own))
				break;
			if (!until)
				pthread_cond_wait(&self.over, &self.lock);
			else if (pthread_cond_timedwait(&self.over, &self.lock, until))
				break;
			continue;
		}
		self.is_joined = true;
		self.joiner = own;
		pthread_mutex_unlock(&self.lock);
		pthread_join(self.drainer, NULL);
		pthread_mutex_lock(&self.lock);
		self.is_joined = self.has_drainer = false;
		pthread_cond_broadcast(&self.over);
	}
}

static bool begin_with_file(bool is_child)
{
	struct soft_terms terms = {.version = SOFT_VERSION, .pages = SOFT_PAGES};
	struct perf_event_attr *attr = &terms.attr;
	char path[PATH_MAX];
	int ret;

	if (!name_file(path, sizeof(path), is_child))
		return false;
	attr->type = PERFRING_TYPE_SOFTWARE;
	attr->config = PERFRING_COUNT_SW_TASK_CLOCK;
	attr->size = sizeof(*attr);
	attr->freq = 1;
	attr->sample_freq = SOFT_FREQUENCY;
	attr->sample_type = PERFRING_SAMPLE_IP | PERFRING_SAMPLE_TID | PERFRING_SAMPLE_TIME | PERFRING_SAMPLE_PERIOD |
			    PERFRING_SAMPLE_CALLCHAIN;
	attr->sample_id_all = attr->disabled = 1;
	attr->mmap = attr->mmap2 = attr->comm = attr->task = 1;
	perfring_attr_set_flag(attr, PERFRING_ATTR_FLAG_build_id, !is_child);
	attr->exclude_kernel = attr->exclude_hv = 1;
	attr->use_clockid = 1;
	attr->clockid = CLOCK_MONOTONIC;
	ret = open_event(&terms);
	if (!ret)
		ret = perfring_session_open(&self.session, 0);
	if (!ret)
		ret = open_file(path, attr);
	if (!ret) {
		find_rings();
		enable_event();
		ret = start_drainer();
	}
	if (ret) {
		complain(path, ret);
		close_event();
		close_file();
		return false;
	}
	self.drains = true;
	return true;
}

/* Context: self.lock is held. */
static void finish_session(void)
{
	struct perfring_totals totals;
	int ret = drain(true);

	perfring_session_totals(self.session, &totals);
	if (!ret && totals.first_time)
		perfring_file_writer_put_times(self.writer, totals.first_time, totals.last_time);
	if (!ret)
		ret = perfring_file_writer_finish(self.writer);
	if (ret)
		complain("the file", ret);
	close_file();
}

/* By the thread that ends the process, and by one that is about to forbid what it does: a second one finds it finished. */
static void finish_file(const struct timespec *until)
{
	struct tool_held held = tool_hold();

	end_drainer(until); /* takes the lock: threads may still join */
	if (self.session)
		finish_session();
	pthread_mutex_unlock(&self.lock);
	tool_give(&held);
}

/* ---- begin, fork, end ---- */

static void begin_again(void);
static void end(void);

static void begin(bool is_child)
{
	static bool hooked;
	struct tool_held held = tool_hold();
	bool good;

	self.pid = getpid();
	if (asked.has_recorder)
		good = begin_with_recorder(is_child);
	else
		good = begin_with_file(is_child);
	/* After the library's hooks, which must run in the child before these. */
	if (good)
		unblock_signal(&held);
	if (good && !hooked) {
		hooked = !pthread_atfork(NULL, NULL, begin_again);
		at_quick_exit(end);
	}
	if (!good)
		perfring_soft_confine(); /* this thread may have joined */
	PERFRING_STORE(&self.is_away, !good);
	PERFRING_STORE_RELEASE(&self.stage, good ? ON : OFF);
	tool_give(&held);
}

/* In the child of a fork: of the parent's events only memory is left, to be freed. */
static void begin_again(void)
{
	static const pthread_mutex_t UNLOCKED = PTHREAD_MUTEX_INITIALIZER;
	static const pthread_cond_t NEVER = PTHREAD_COND_INITIALIZER;
	struct tool_held held;

	if (self.confined) { /* its rings and its socket are closed, or were about to be */
		PERFRING_STORE(&self.is_away, 1);
		return;
	}
	held = tool_hold();
	self.lock = UNLOCKED;
	self.over = NEVER;
	self.stage = TRYING;
	self.drains = self.has_drainer = self.is_joined = false;
	self.is_ended = 0;
	leave_recorder();
	close_event();
	close_file();
	if (self.is_last) {
		PERFRING_STORE(&self.is_away, 1);
		PERFRING_STORE(&self.stage, OFF);
	}
	tool_give(&held);
	if (!self.is_last)
		begin(true);
}

static int digit_of(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : 0;
}

/* Reads the recorder's variable: NAME/TOKEN/TERMS. */
static void take_word(const char *word)
{
	const char *token = strchr(word, '/'), *digits = token ? strchr(token + 1, '/') : NULL;
	unsigned char *bytes = (unsigned char *)&asked.terms;
	size_t size = token ? (size_t)(token - word) : 0;

	if (!token || size >= sizeof(asked.address.sun_path))
		return;
	asked.has_recorder = true;
	asked.address.sun_family = AF_UNIX;
	memcpy(asked.address.sun_path + 1, word, size);
	asked.size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + size);
	asked.token = strtoull(token + 1, NULL, 16);
	if (!digits || strlen(++digits) != 2 * sizeof(asked.terms))
		return;
	for (size_t i = 0; i < sizeof(asked.terms); i++)
		bytes[i] = (unsigned char)(digit_of(digits[2 * i]) << 4 | digit_of(digits[2 * i + 1]));
	if (asked.terms.version != SOFT_VERSION)
		asked.terms.version = 0;
}

/* Context: this object's constructor, or before the first thread if an earlier constructor makes one.  environ is read only
 * here, in the first call, before main.  Order of the exchange: a second caller finds another stage and reads no environ. */
static void __attribute__((constructor)) decide(void)
{
	uint32_t untried = UNTRIED;
	const char *word, *file;

	if (!PERFRING_COMPARE_EXCHANGE(&self.stage, &untried, TRYING))
		return;
	word = secure_getenv(SOFT_VARIABLE);
	file = secure_getenv("PERFRING_PROFILE");
	if (word)
		take_word(word);
	if (file && strlen(file) < sizeof(asked.file))
		strcpy(asked.file, file);
	/* A filter that the recorder has not may kill for what we are about to do. */
	if (asked.has_recorder && asked.terms.version) {
		uint32_t filters = tool_filter_count();

		asked.has_recorder = filters == UINT32_MAX || filters <= asked.terms.filters;
	}
	if (asked.has_recorder || (!word && *asked.file))
		begin(false);
	else
		PERFRING_STORE(&self.stage, OFF);
}

/* Looked up now: a handler that calls one of them first must not wait for the loader's lock. */
static void __attribute__((constructor)) find_real(void)
{
	EACH_REAL(REAL)
}

/* Sends the rings that found the queue full, if there is space within LAST ms. */
static void send_last(void)
{
	struct pollfd ready = {.fd = self.socket, .events = POLLOUT};
	struct tool_held held = tool_hold();

	pthread_mutex_lock(&self.lock);
	/* Without an event another thread has confined the process since. */
	if (self.event && send_rings() == -EAGAIN && poll(&ready, 1, LAST) > 0)
		send_rings();
	pthread_mutex_unlock(&self.lock);
	tool_give(&held);
}

static void __attribute__((destructor)) end(void)
{
	if (self.drains && self.pid == getpid()) {
		if (!PERFRING_EXCHANGE(&self.is_ended, 1)) {
			struct tool_held held = tool_hold();

			pthread_mutex_lock(&self.lock);
			stop_event();
			pthread_mutex_unlock(&self.lock);
			finish_file(NULL);
			tool_give(&held);
		}
	} else if (is_on()) {
		send_last();
	}
}

/* By _exit, in a handler too.  Signals stay blocked.  The lock is not waited for without end: the handler of an instruction's signal
 * may have interrupted its holder, and a pipe without a reader holds the drainer. */
static void end_at_once(void)
{
	struct timespec until;

	if (!self.drains || self.pid != getpid() || PERFRING_EXCHANGE(&self.is_ended, 1))
		return;
	tool_hold();
	until = time_after(PATIENCE);
	if (pthread_mutex_timedlock(&self.lock, &until))
		return;
	stop_event();
	pthread_mutex_unlock(&self.lock);
	finish_file(&until);
}

/* ---- the wrappers ---- */

struct task {
	void *(*start)(void *);
	int (*start_c11)(void *);
	void *argument;
};

/* Joins this thread. */
static void join(struct tool_held *held)
{
	int joined = perfring_soft_join(), ret = 0;
	char text[96];

	if (!joined)
		unblock_signal(held);
	pthread_mutex_lock(&self.lock);
	if (!self.event) /* confined meanwhile */
		ret = -ECONNRESET;
	else if (!self.drains)
		ret = send_rings();
	else if (self.session) /* still */
		find_rings();
	if (!ret && joined && !self.drains) {
		snprintf(text, sizeof(text), "one of its threads is not observed: %s", strerror(-joined));
		send_message(SOFT_COMPLAINT, -1, text);
	}
	if (ret == -EPIPE || ret == -ECONNRESET || ret == -ECONNREFUSED)
		stop_event(); /* the recorder has gone, or does not listen */
	else if (!joined && PERFRING_LOAD(&self.stale))
		put_state();
	pthread_mutex_unlock(&self.lock);
}

static void take_part(void)
{
	struct tool_held held;

	if (!is_on())
		return;
	held = tool_hold();
	join(&held);
	tool_give(&held);
}

static struct task take_task(void *of)
{
	struct task task = *(struct task *)of;

	free(of);
	take_part();
	return task;
}

static void *run(void *of)
{
	struct task task = take_task(of);

	return task.start(task.argument);
}

static int run_c11(void *of)
{
	struct task task = take_task(of);

	return task.start_c11(task.argument);
}

static struct task *make_task(void *argument)
{
	struct task *task;

	if (PERFRING_UNLIKELY(PERFRING_LOAD(&self.stage) == UNTRIED))
		decide();
	task = is_on() ? calloc(1, sizeof(*task)) : NULL;
	if (task)
		task->argument = argument;
	return task;
}

WRAPS int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *argument)
{
	struct task *task = make_task(argument);
	int ret;

	if (!task)
		return create_thread(thread, attr, start, argument);
	task->start = start;
	ret = create_thread(thread, attr, run, task);
	if (ret)
		free(task);
	return ret;
}

WRAPS int thrd_create(thrd_t *thread, thrd_start_t start, void *argument)
{
	struct task *task = make_task(argument);
	int ret;

	REAL(thrd_create)
	if (!task)
		return real_thrd_create(thread, start, argument);
	task->start_c11 = start;
	ret = real_thrd_create(thread, run_c11, task);
	if (ret != thrd_success)
		free(task);
	return ret;
}

/* The process is about to forbid itself what sampling does: doing it then kills.  So sampling ends first: timers are
 * deleted, and what was raised is passed on.  Of threads that come here at once none goes on before that, nor one that comes while
 * another ends the process: its own leaving is a record, which has a time. */
static void confine(const char *why)
{
	struct tool_held held;
	char text[96];
	int saved = errno;

	if (!is_begun())
		return;
	held = tool_hold();
	pthread_mutex_lock(&self.lock);
	if (self.drains) {
		stop_event();
		pthread_mutex_unlock(&self.lock);
		finish_file(NULL);
		pthread_mutex_lock(&self.lock);
	}
	PERFRING_STORE(&self.stage, OFF);
	self.drains = false;
	self.confined = true;
	if (self.socket >= 0 && !send_rings()) {
		snprintf(text, sizeof(text), "is no longer observed: %s", why);
		send_message(SOFT_COMPLAINT, -1, text);
	}
	close_event();
	perfring_soft_confine();
	leave_recorder();
	PERFRING_STORE_RELEASE(&self.is_away, 1); /* partner: is_begun */
	pthread_mutex_unlock(&self.lock);
	tool_give(&held);
	errno = saved;
}

/* Strict mode forbids the processor's time counter too, which gives a sample its time. */
static void before_seccomp(unsigned long operation, unsigned long flags, const void *filter)
{
	enum tool_filter_verdict verdict;

	if (operation == SECCOMP_SET_MODE_STRICT && !flags && !filter)
		confine("it has entered seccomp's strict mode");
	if (operation != SECCOMP_SET_MODE_FILTER || !is_begun())
		return;
	verdict = tool_filter_judge(filter);
	if (verdict < (self.drains ? TOOL_FILTER_DRAINS : TOOL_FILTER_TICKS))
		confine("it has installed a seccomp filter that may refuse what sampling needs");
	else if (self.drains && verdict < TOOL_FILTER_ALL)
		self.is_last = true;
}

static void before_prctl(int option, unsigned long value, const void *filter)
{
	if (option == PR_SET_SECCOMP && value == SECCOMP_MODE_STRICT)
		before_seccomp(SECCOMP_SET_MODE_STRICT, 0, NULL);
	else if (option == PR_SET_SECCOMP && value == SECCOMP_MODE_FILTER)
		before_seccomp(SECCOMP_SET_MODE_FILTER, 0, filter);
	else if (option == PR_SET_TSC && value == PR_TSC_SIGSEGV)
		confine("it has forbidden itself to read the time-stamp counter (PR_SET_TSC)");
}

WRAPS int prctl(int option, ...)
{
	unsigned long words[4];
	va_list list;

	/* As many as there can be, as the C library does. */
	va_start(list, option);
	for (int i = 0; i < 4; i++)
		words[i] = va_arg(list, unsigned long);
	va_end(list);
	REAL(prctl)
	if (PERFRING_UNLIKELY(option == PR_SET_SECCOMP || option == PR_SET_TSC))
		before_prctl(option, words[0], (const void *)words[1]);
	return real_prctl(option, words[0], words[1], words[2], words[3]);
}

/* Whether an operation of SYS_futex may wait. */
static bool may_wait(long operation)
{
	switch (operation & FUTEX_CMD_MASK) {
	case FUTEX_WAIT:
	case FUTEX_WAIT_BITSET:
	case FUTEX_WAIT_REQUEUE_PI:
	case FUTEX_LOCK_PI:
	case FUTEX_LOCK_PI + 7: /* LOCK_PI2, since 5.14 */
		return true;
	default:
		return false;
	}
}

/* The system calls that are examined; and any, before its function is found. */
long tool_preload_syscall(long number, ...) __attribute__((used));

long tool_preload_syscall(long number, ...)
{
	struct tool_wait wait;
	long words[6], ret;
	va_list list;

	va_start(list, number);
	for (int i = 0; i < 6; i++)
		words[i] = va_arg(list, long);
	va_end(list);
	REAL(syscall)
	if (number == SYS_seccomp)
		before_seccomp((unsigned long)words[0], (unsigned long)words[1], (const void *)words[2]);
	else if (number == SYS_prctl)
		before_prctl((int)words[0], (unsigned long)words[1], (const void *)words[2]);
	if (PERFRING_LIKELY(number != SYS_futex || !may_wait(words[1]) ||
			    !tool_wait_is_measured(__builtin_return_address(0))))
		return real_syscall(number, words[0], words[1], words[2], words[3], words[4], words[5]);
	tool_wait_begin(&wait);
	ret = real_syscall(number, words[0], words[1], words[2], words[3], words[4], words[5]);
	TOOL_WAIT_RAISE(&wait);
	return ret;
}

/* A jump, where the architecture allows: the caller's stack stays untouched, to which SYS_vfork and SYS_clone return. */
#if defined(__x86_64__)
#define TEXT_OF(number) #number
#define TEXT(number) TEXT_OF(number)

__asm__(".pushsection .text\n"
	".globl syscall\n"
	".type syscall, @function\n"
	"syscall:\n"
	".cfi_startproc\n"
	"	cmpq $" TEXT(SYS_seccomp) ", %rdi\n"
					  "	je 1f\n"
					  "	cmpq $" TEXT(SYS_prctl) ", %rdi\n"
									"	je 1f\n"
	"	cmpq $" TEXT(SYS_futex) ", %rdi\n"
									"	je 1f\n"
									"	movq real_syscall(%rip), %rax\n"
									"	testq %rax, %rax\n"
									"	je 1f\n"
									"	jmp *%rax\n"
									"1:	jmp tool_preload_syscall\n"
									".cfi_endproc\n"
									".size syscall, . - syscall\n"
									".popsection\n");
#else
long any_syscall(long number, ...) __asm__("syscall")
	__attribute__((alias("tool_preload_syscall"), visibility("default")));
#endif

/* Some namespaces need a process of one thread: FILE's thread ends before the call, and begins again after it. */
static bool leave_alone(struct tool_held *held)
{
	enum {
		TURNS = 100000
	};
	pid_t tid;

	if (!self.has_drainer || !is_on())
		return false;
	if (self.is_last) {
		confine("it may go into another namespace under a seccomp filter");
		return false;
	}
	*held = tool_hold();
	end_drainer(NULL);
	tid = self.drainer_tid;
	pthread_mutex_unlock(&self.lock);
	/* After the join the kernel still counts the thread for a moment. */
	for (int i = 0; i < TURNS && !real_syscall(SYS_tgkill, self.pid, tid, 0); i++)
		sched_yield();
	return true;
}

static void come_back(struct tool_held *held)
{
	int saved = errno, ret = 0;

	pthread_mutex_lock(&self.lock);
	/* Another thread may have finished FILE meanwhile, or have come back, too. */
	if (self.session && !self.has_drainer)
		ret = start_drainer();
	if (ret) /* threads of a new process namespace's maker: the kernel makes none */
		stop_event();
	pthread_mutex_unlock(&self.lock);
	if (ret)
		complain("ends here", ret);
	tool_give(held);
	errno = saved;
}

WRAPS int unshare(int flags)
{
	bool is_alone = flags & (CLONE_NEWUSER | CLONE_THREAD | CLONE_SIGHAND | CLONE_VM);
	struct tool_held held;
	int ret;

	REAL(unshare)
	is_alone = is_alone && leave_alone(&held);
	ret = real_unshare(flags);
	if (is_alone)
		come_back(&held);
	return ret;
}

WRAPS int setns(int fd, int type)
{
	struct tool_held held;
	bool is_alone;
	int ret;

	REAL(setns)
	is_alone = leave_alone(&held);
	ret = real_setns(fd, type);
	if (is_alone)
		come_back(&held);
	return ret;
}

#define ENDS(name) \
	WRAPS void name(int status) \
	{ \
		REAL(name) \
		end_at_once(); \
		real_##name(status); \
		__builtin_unreachable(); \
	}

ENDS(_exit)
ENDS(_Exit)

/* Whether the loader searches this name in places that depend on the caller of dlopen. */
static bool depends_on_caller(const char *name, const void *caller)
{
	const ElfW(Dyn) * entry;
	struct link_map *map;
	Dl_info where;

	if (!name)
		return false;
	if (strchr(name, '$'))
		return true;
	if (strchr(name, '/'))
		return false;
	if (!dladdr1(caller, &where, (void **)&map, RTLD_DL_LINKMAP) || !map)
		return true;
	for (entry = map->l_ld; entry && entry->d_tag != DT_NULL; entry++)
		if (entry->d_tag == DT_RUNPATH || entry->d_tag == DT_RPATH)
			return true;
	return false;
}

WRAPS void *dlopen(const char *name, int mode)
{
	struct tool_held held;
	void *loaded;

	REAL(dlopen)
	if (!is_on())
		return real_dlopen(name, mode);
	if (depends_on_caller(name, __builtin_return_address(0))) {
		/* A jump (with optimisation): the loader is to see our caller.  What it maps is written by the next one. */
		PERFRING_STORE(&self.stale, 1);
		return real_dlopen(name, mode);
	}
	loaded = real_dlopen(name, mode);
	if (loaded && name) {
		held = tool_hold();
		pthread_mutex_lock(&self.lock);
		put_state();
		pthread_mutex_unlock(&self.lock);
		tool_give(&held);
	}
	return loaded;
}

/* The set to block, without our signal: in buffer, if the program's set has it. */
static const sigset_t *without_ours(int how, const sigset_t *set, sigset_t *buffer)
{
	int ours = perfring_soft_signal();

	if (!set || how == SIG_UNBLOCK || ours <= 0 || sigismember(set, ours) != 1)
		return set;
	*buffer = *set;
	sigdelset(buffer, ours);
	return buffer;
}

WRAPS int pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
	sigset_t buffer;

	return __wrap_pthread_sigmask(how, without_ours(how, set, &buffer), old);
}

/* As in the C library: by pthread_sigmask.  Without --wrap the name is not defined, and -z defs makes the link fail. */
WRAPS int sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
	int ret = __real_pthread_sigmask(how, set, old);

	if (ret)
		errno = ret;
	return ret ? -1 : 0;
}

/* Whether the program may change the handler.  False: the next tick would kill it; the call then does nothing and returns
 * success.  Events end when the program puts its own handler in place of theirs. */
static bool may_handle(int number, bool resets)
{
	struct tool_held held;

	if (!is_on() || number != perfring_soft_signal())
		return true;
	if (resets)
		return false;
	held = tool_hold();
	pthread_mutex_lock(&self.lock);
	stop_event();
	if (!self.drains && has_socket())
		send_message(SOFT_COMPLAINT, -1, "is no longer observed: it has taken the signal of its timers");
	pthread_mutex_unlock(&self.lock);
	tool_give(&held);
	return true;
}

WRAPS int sigaction(int number, const struct sigaction *action, struct sigaction *old)
{
	REAL(sigaction)
	if (action && !may_handle(number, action->sa_handler == SIG_DFL || action->sa_handler == SIG_IGN))
		action = NULL;
	return real_sigaction(number, action, old);
}

#define HANDLES(name) \
	WRAPS sighandler_t name(int number, sighandler_t handler) \
	{ \
		REAL(name) \
		return may_handle(number, handler == SIG_DFL || handler == SIG_IGN || handler == SIG_HOLD) \
			       ? real_##name(number, handler) \
			       : SIG_DFL; \
	}

HANDLES(signal)
HANDLES(bsd_signal)
HANDLES(ssignal)
HANDLES(sysv_signal)
HANDLES(__sysv_signal)
HANDLES(sigset)

WRAPS int sigignore(int number)
{
	REAL(sigignore)
	return may_handle(number, true) ? real_sigignore(number) : 0;
}
