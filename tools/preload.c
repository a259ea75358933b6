/* preload.c - libperfring_preload.so: a program that samples itself, for `perfring record --soft` or into a file.
 *
 *     PERFRING_SOFT_SOCKET=NAME/TOKEN    set by the recorder: rings go to it (soft.h)
 *     PERFRING_PROFILE=FILE              a thread of this object's drains them into FILE; %p is the pid
 *
 * What it does to the program:
 *
 *   threads         pthread_create and thrd_create: the new thread joins before its start routine runs
 *   dlopen          what is mapped by it is written before it returns
 *   signals         the events' signal stays unblocked (pthread_sigmask, sigprocmask) and handled: to reset it does
 *                   nothing, a handler of the program's own for it ends our events
 *   descriptors     one socket, above those that programs count on; one that closes it finds it opened again (FILE's is
 *                   not: it ends there)
 *   fork            the child begins anew, as a process of its own; in a FILE without %p it has no place.  The program's
 *                   own hooks for liburcu-bp are kept, so that ours and they do not lock it twice
 *   exec            the new program is preloaded and begins anew
 *   exit, kill      what was written lies in the rings, which are the recorder's as well; FILE is finished at exit, and
 *                   after a kill ends with its last round
 *
 * Whatever fails here, the program runs on without its events; the recorder is told why.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
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
#include <perfring/data.h>
#include <perfring/soft.h>
#include "soft.h"

#define WRAPS __attribute__((visibility("default")))

sighandler_t bsd_signal(int number, sighandler_t handler); /* hidden by glibc since POSIX gave it up */

/* Those that we stand before. */
#define EACH_REAL(of) \
	of(pthread_create) of(thrd_create) of(dlopen) of(pthread_sigmask) of(sigaction) of(sigignore) of(signal) \
		of(bsd_signal) of(ssignal) of(sysv_signal) of(__sysv_signal) of(sigset) of(urcu_bp_before_fork) \
			of(urcu_bp_after_fork_parent) of(urcu_bp_after_fork_child)

/* sigset, sigignore: not by us. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#define DECLARE(name) static __typeof__(&name) real_##name;

/* A function's address comes as a pointer to an object: POSIX lets it. */
#define REAL(name) \
	if (!PERFRING_LOAD(&real_##name)) { \
		void *found = dlsym(RTLD_NEXT, #name); \
		PERFRING_STORE(&real_##name, (__typeof__(&name))found); \
	}

void urcu_bp_before_fork(void);
void urcu_bp_after_fork_parent(void);
void urcu_bp_after_fork_child(void);

EACH_REAL(DECLARE)

enum {
	HIGH = 1000, /* descriptors from here on, where the limit allows */
	SHOWN = 200, /* ms: between looks at the rings, in a program that drains its own */
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
	pid_t pid;      /* a child by vfork or a bare clone is another one, and no business of ours */
	struct perfring_soft_event *event;
	pthread_mutex_t lock; /* the socket and the walk over the rings */

	/* with a recorder */
	int socket; /* -1: none */
	dev_t device;
	ino_t inode;
	uint64_t token, image;

	/* into a file */
	bool drains;
	int file;
	dev_t file_device;
	ino_t file_inode;
	pthread_t drainer;
	pthread_cond_t over;
	bool is_over;
	struct perfring_session *session;
	struct perfring_data_writer *writer;
} self = {.lock = PTHREAD_MUTEX_INITIALIZER, .over = PTHREAD_COND_INITIALIZER, .socket = -1, .file = -1};

static bool is_on(void)
{
	/* partner: the release in begin */
	return PERFRING_LOAD_ACQUIRE(&self.stage) == ON && self.pid == getpid();
}

/* Who is cancelled in here would take the lock along: what we call are cancellation points. */
static int hold_cancel(void)
{
	int before;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	return before;
}

static void give_cancel(int before)
{
	pthread_setcancelstate(before, NULL);
}

/* ---- the recorder ---- */

/* Out of the way of what the program opens. */
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

	message.token = self.token;
	message.image = self.image;
	if (text)
		snprintf(message.text, sizeof(message.text), "%s", text);
	return soft_send(self.socket, &message, sizeof(message), fd);
}

/* Whether the descriptor is still ours: programs close what they find open. */
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

/* The recorder's answer.  Returns 0 or -errno. */
static int meet(struct soft_answer *answer)
{
	const char *word = secure_getenv(SOFT_VARIABLE);
	const char *token = word ? strchr(word, '/') : NULL;
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct timeval patience = {1, 0};
	struct stat status;
	ssize_t got;
	int ret;

	if (!token || token - word > 64)
		return -EINVAL;
	memcpy(address.sun_path + 1, word, (size_t)(token - word));
	self.token = strtoull(token + 1, NULL, 16);
	self.socket = raise_fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
	if (self.socket < 0 || fstat(self.socket, &status))
		return -errno;
	self.device = status.st_dev;
	self.inode = status.st_ino;
	setsockopt(self.socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(self.socket, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (connect(self.socket, (struct sockaddr *)&address,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)(token - word))))
		return -errno;
	ret = send_message(SOFT_HELLO, -1, NULL);
	if (ret)
		return ret;
	do
		got = recv(self.socket, answer, sizeof(*answer), 0);
	while (got < 0 && errno == EINTR);
	if (got <= 0)
		return got ? -errno : -ECONNRESET;
	if (got != (ssize_t)sizeof(*answer) || answer->version != SOFT_VERSION)
		return -EPROTO;
	return answer->observes ? 0 : -ECONNREFUSED;
}

static void leave_recorder(void)
{
	if (has_socket())
		close(self.socket);
	self.socket = -1;
}

/* Self.lock.  Sends the rings that are new; walking, what is drained of threads that have gone is freed. */
static int send_rings(void)
{
	struct perfring_set *rings = perfring_soft_rings(self.event);
	struct perfring_member *member = NULL;
	struct soft_answer answer;
	int ret = 0;

	while (!ret && (member = perfring_set_next(rings, member))) {
		if (member->data || member->drained)
			continue;
		if (!has_socket()) {
			self.socket = -1;
			ret = meet(&answer);
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

static void stop_event(void)
{
	PERFRING_STORE(&self.stage, OFF);
	perfring_soft_disable(self.event, false);
}

/* What perfring itself blocks stays blocked: linked with --wrap=pthread_sigmask. */
int __wrap_pthread_sigmask(int how, const sigset_t *set, sigset_t *old);
int __real_pthread_sigmask(int how, const sigset_t *set, sigset_t *old); /* ours, below */

int __wrap_pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
	REAL(pthread_sigmask)
	return real_pthread_sigmask(how, set, old);
}

/* A thread begins with its creator's mask, a program with that of who exec'd it. */
static void unblock_signal(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, perfring_soft_signal());
	__wrap_pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

static void put_state(void)
{
	PERFRING_STORE(&self.stale, 0);
	if (perfring_soft_put_state(self.event) < 0)
		PERFRING_STORE(&self.stale, 1); /* this thread takes no part: the next one may */
}

/* Returns 0 or -errno. */
static int open_event(const struct soft_answer *answer)
{
	int ret = perfring_soft_open(&self.event, &answer->attr, PERFRING_SOFT_PROCESS, NULL);

	return ret ? ret : perfring_soft_map(self.event, answer->pages, -1);
}

static void close_event(void)
{
	perfring_soft_close(self.event);
	self.event = NULL;
}

static void enable_event(void)
{
	unblock_signal();
	put_state();
	perfring_soft_enable(self.event, false);
}

/* ---- with a recorder ---- */

static bool begin_with_recorder(bool is_child)
{
	struct soft_answer answer;
	char text[96];
	int ret;

	if (getrandom(&self.image, sizeof(self.image), GRND_NONBLOCK) != sizeof(self.image))
		self.image = (uint64_t)time(NULL) << 32 | (uint32_t)getpid();
	ret = meet(&answer);
	if (ret) { /* nobody there, or nobody who wants us */
		leave_recorder();
		return false;
	}
	/* Build-ids come from the loader, whose lock another thread of the parent's may have had. */
	if (is_child)
		perfring_attr_set_flag(&answer.attr, PERFRING_ATTR_FLAG_build_id, false);
	ret = open_event(&answer);
	if (!ret)
		ret = send_rings();
	if (ret) {
		snprintf(text, sizeof(text), "is not observed: %s", strerror(-ret));
		if (has_socket())
			send_message(SOFT_TROUBLE, -1, text);
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
	fprintf(stderr, "perfring: PERFRING_PROFILE: %s: %s\n", path, strerror(-ret));
}

/* PERFRING_PROFILE with its %p.  False: it does not fit, or a child asks and it has none. */
static bool name_file(char *path, size_t size, bool is_child)
{
	const char *from = secure_getenv("PERFRING_PROFILE");
	size_t used = 0;
	bool has_pid = false;

	if (!from || !*from)
		return false;
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

static int open_file(const char *path, const struct soft_answer *answer)
{
	char old[PATH_MAX + 8], *argv[] = {program_invocation_name, NULL};
	struct stat status;
	int ret = 0;

	if (!stat(path, &status) && S_ISREG(status.st_mode) && status.st_size) {
		snprintf(old, sizeof(old), "%s.old", path);
		ret = rename(path, old) ? -errno : 0;
	}
	if (!ret)
		self.file = raise_fd(open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
	if (!ret && (self.file < 0 || fstat(self.file, &status)))
		ret = -errno;
	if (!ret) {
		self.file_device = status.st_dev;
		self.file_inode = status.st_ino;
		ret = perfring_data_create(&self.writer, self.file);
	}
	if (!ret)
		ret = perfring_data_add_event(self.writer, &answer->attr, "task-clock:u");
	if (!ret)
		ret = perfring_session_describe(self.session, &answer->attr, NULL, 0);
	if (!ret)
		ret = perfring_data_describe(self.writer, argv);
	return ret ? ret : perfring_data_begin(self.writer);
}

/* Self.lock.  Rings that are new come into the session, those that are drained out of it. */
static void find_rings(void)
{
	struct perfring_set *rings = perfring_soft_rings(self.event);
	struct perfring_member *member = NULL;
	int one;

	while ((member = perfring_set_next(rings, member))) {
		/* Its number in the session, and 1. */
		if (member->drained && member->data)
			perfring_session_remove_ring(self.session, (uint32_t)(uintptr_t)member->data - 1);
		if (member->drained || member->data)
			continue;
		one = perfring_session_add_ring(self.session, &member->ring, -1);
		if (one >= 0)
			member->data = (void *)((uintptr_t)one + 1);
		if (member->ring.fd >= 0)
			close(member->ring.fd); /* as in send_rings */
		member->ring.fd = -1;
	}
}

/* Self.lock.  One round of all rings into the file. */
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
		ret = perfring_data_write(self.writer, span.pieces, (int)span.count);
	}
	if (!ret && any)
		ret = perfring_data_round(self.writer);
	perfring_session_return(self.session);
	return ret;
}

static void *drain_always(void *nothing)
{
	struct timespec until;

	prctl(PR_SET_NAME, "perfring");
	pthread_mutex_lock(&self.lock);
	while (!self.is_over && !drain(false)) {
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += SHOWN * 1000000;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		pthread_cond_timedwait(&self.over, &self.lock, &until);
	}
	if (!self.is_over)
		stop_event(); /* nobody reads any more: told at the end */
	pthread_mutex_unlock(&self.lock);
	return nothing;
}

static void close_file(void)
{
	perfring_session_close(self.session);
	if (self.writer)
		perfring_data_writer_close(self.writer);
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

static bool begin_with_file(bool is_child)
{
	struct soft_answer answer = {.version = SOFT_VERSION, .pages = SOFT_PAGES, .observes = 1};
	struct perf_event_attr *attr = &answer.attr;
	char path[PATH_MAX];
	sigset_t all, before;
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
	self.is_over = false;
	ret = open_event(&answer);
	if (!ret)
		ret = perfring_session_open(&self.session, 0);
	if (!ret)
		ret = open_file(path, &answer);
	if (!ret) {
		find_rings();
		enable_event();
		sigfillset(&all);
		__wrap_pthread_sigmask(SIG_SETMASK, &all, &before);
		ret = -create_thread(&self.drainer, NULL, drain_always, NULL);
		__wrap_pthread_sigmask(SIG_SETMASK, &before, NULL);
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

static void finish_file(void)
{
	struct perfring_totals totals;
	int before = hold_cancel(), ret;

	pthread_mutex_lock(&self.lock);
	self.is_over = true;
	pthread_cond_signal(&self.over);
	pthread_mutex_unlock(&self.lock);
	pthread_join(self.drainer, NULL);
	pthread_mutex_lock(&self.lock); /* threads may still join */
	ret = drain(true);
	perfring_session_totals(self.session, &totals);
	if (!ret && totals.first_time)
		perfring_data_put_times(self.writer, totals.first_time, totals.last_time);
	if (!ret)
		ret = perfring_data_finish(self.writer);
	if (ret)
		complain("the file", ret);
	close_file();
	pthread_mutex_unlock(&self.lock);
	give_cancel(before);
}

/* ---- begin, fork, end ---- */

static void begin_again(void);

static void begin(bool is_child)
{
	static bool hooked;
	int before = hold_cancel();
	bool good;

	self.pid = getpid();
	if (secure_getenv(SOFT_VARIABLE))
		good = begin_with_recorder(is_child);
	else
		good = begin_with_file(is_child);
	/* Behind perfring's own hooks: theirs must have run in the child before ours. */
	if (good && !hooked)
		hooked = !pthread_atfork(NULL, NULL, begin_again);
	PERFRING_STORE_RELEASE(&self.stage, good ? ON : OFF);
	give_cancel(before);
}

/* The child of a fork.  Nothing is left of the parent's events but what is to be freed. */
static void begin_again(void)
{
	static const pthread_mutex_t UNLOCKED = PTHREAD_MUTEX_INITIALIZER;
	static const pthread_cond_t NEVER = PTHREAD_COND_INITIALIZER;
	int before = hold_cancel();

	self.lock = UNLOCKED;
	self.over = NEVER;
	self.stage = TRYING;
	self.drains = false;
	leave_recorder();
	close_event();
	close_file();
	begin(true);
	give_cancel(before);
}

static struct {
	uintptr_t from, to;
} urcu; /* the code of liburcu-bp */

/* Before main; or before the first thread, which a constructor that ran earlier makes. */
static void __attribute__((constructor)) begin_once(void)
{
	uint32_t untried = UNTRIED;

	if (!secure_getenv(SOFT_VARIABLE) && !secure_getenv("PERFRING_PROFILE"))
		return;
	if (!PERFRING_SWAP(&self.stage, &untried, TRYING))
		return;
	begin(false);
}

static int find_code(struct dl_phdr_info *object, size_t size, void *place)
{
	(void)size;
	for (int i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &object->dlpi_phdr[i];
		uintptr_t from = object->dlpi_addr + header->p_vaddr;

		if (header->p_type != PT_LOAD || !(header->p_flags & PF_X) || (uintptr_t)place < from ||
		    (uintptr_t)place >= from + header->p_memsz)
			continue;
		urcu.from = from;
		urcu.to = from + header->p_memsz;
		return 1;
	}
	return 0;
}

/* Before any event: where liburcu-bp's code is. */
static void __attribute__((constructor(101))) find_urcu(void)
{
	void *place = dlsym(RTLD_DEFAULT, "urcu_bp_register");

	if (place)
		dl_iterate_phdr(find_code, place);
}

/* Found now: a handler that is the first to call one of them must not meet the loader's lock. */
static void __attribute__((constructor)) find_real(void)
{
	EACH_REAL(REAL)
}

static void __attribute__((destructor)) end(void)
{
	if (!self.drains || self.pid != getpid())
		return;
	stop_event();
	finish_file();
}

/* ---- what stands before the C library's ---- */

struct task {
	void *(*start)(void *);
	int (*start_c11)(void *);
	void *argument;
};

/* This thread takes part from now on. */
static void join(void)
{
	int joined = perfring_soft_join(), ret = 0;
	char text[96];

	if (!joined)
		unblock_signal();
	pthread_mutex_lock(&self.lock);
	if (!self.drains)
		ret = send_rings();
	else if (self.session) /* still */
		find_rings();
	if (!ret && joined && !self.drains) {
		snprintf(text, sizeof(text), "a thread of it is not observed: %s", strerror(-joined));
		send_message(SOFT_TROUBLE, -1, text);
	}
	pthread_mutex_unlock(&self.lock);
	if (ret == -EPIPE || ret == -ECONNRESET || ret == -ECONNREFUSED || ret == -EAGAIN)
		stop_event(); /* the recorder has gone, or does not listen */
	else if (!joined && PERFRING_LOAD(&self.stale))
		put_state();
}

static void take_part(void)
{
	int before;

	if (!is_on())
		return;
	before = hold_cancel();
	join();
	give_cancel(before);
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

	begin_once();
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

/* liburcu must be led over a fork once, and the program may do so itself: who is first, before and behind it, does it. */
static __thread bool is_forking;

#define LEADS(name, when) \
	WRAPS void name(void) \
	{ \
		REAL(name) \
		if (is_forking == (when)) \
			return; \
		is_forking = (when); \
		real_##name(); \
	}

LEADS(urcu_bp_before_fork, true)
LEADS(urcu_bp_after_fork_parent, false)
LEADS(urcu_bp_after_fork_child, false)

/* Whether who calls dlopen by this name has it looked up in places of its own. */
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
	void *loaded;
	int before;

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
		before = hold_cancel();
		put_state();
		give_cancel(before);
	}
	return loaded;
}

/* The set without our signal, in room, when it would be blocked by it. */
static const sigset_t *without_ours(int how, const sigset_t *set, sigset_t *room)
{
	int ours = perfring_soft_signal();

	if (!set || how == SIG_UNBLOCK || ours <= 0 || sigismember(set, ours) != 1)
		return set;
	*room = *set;
	sigdelset(room, ours);
	return room;
}

/* What liburcu-bp blocks stays blocked too: it does so while it holds the lock by which a handler of ours, on top of it,
 * would register the same thread. */
WRAPS int pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
	uintptr_t caller = (uintptr_t)__builtin_return_address(0);
	sigset_t room;

	if (caller < urcu.from || caller >= urcu.to)
		set = without_ours(how, set, &room);
	return __wrap_pthread_sigmask(how, set, old);
}

/* As the C library has it: by the other.  Without --wrap the name is nobody's: -z defs makes such a link fail. */
WRAPS int sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
	int ret = __real_pthread_sigmask(how, set, old);

	if (ret)
		errno = ret;
	return ret ? -1 : 0;
}

/* Whether the program may do so: 1; 0: it would end by the next tick, and is told that it is done.  Events in whose place
 * the program puts something of its own end. */
static bool may_handle(int number, bool resets)
{
	int before;

	if (!is_on() || number != perfring_soft_signal())
		return true;
	if (resets)
		return false;
	stop_event();
	if (!self.drains) {
		before = hold_cancel();
		pthread_mutex_lock(&self.lock);
		if (has_socket())
			send_message(SOFT_TROUBLE, -1,
				     "is observed no longer: it has taken the signal that its timers had");
		pthread_mutex_unlock(&self.lock);
		give_cancel(before);
	}
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
