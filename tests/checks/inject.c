/* inject.c - runs a command again and again; the n-th time its n-th allocation, or its n-th system call, fails.
 *
 *     inject alloc|call [-t SECONDS] [-n N [-v V]] [-s SETUP] [-w WHOLE] [-l FILES] [-o LOG] [-ack] [-x PRELOAD] -- COMMAND...
 *
 * Each run is in a new folder, in which SETUP has been done.  It holds when the command ends by itself and in time, no sanitizer
 * speaks, no process and no file but FILES is left, and
 *   - it exits 0, and WHOLE (a shell's command, which finds stdout in ../out and stderr in ../err) exits 0; or there is a
 *     line on stderr that a run without failure has not;
 *   - or it fails, and its last line on stderr is "perfring: " and has the failure's text.
 * -k: the command is observed, and not ours.  It exits 0 and WHOLE holds whatever fails: it runs on.  -c: what the command runs
 * is counted instead of the command, from when it is preloaded on.
 *
 * WHOLE finds in RESULT whether it is "whole" or "failed", in WHAT the call and in ERROR its errno.  After a failure it says
 * what must hold then.
 *
 * Without -t each n is tried, with each error that is plausible there, until a run has fewer calls.  With -t first one of each
 * kind, then others, as many as there is time for.  A kind: an allocation's caller; the call, its file with
 * N for each number, and how large the piece is, as a power of two.
 *
 * Exit status: 0 it held each time, 1 not, 77 the machine cannot.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "inject.h"

/* Errors that are none. */
enum {
	INJECT_INTR = 10000, /* EINTR, where something can be waited for */
	INJECT_SHORT,        /* half of it is done */
	ERRORS_MOST = 5,
};

#define SYNC_WAKE_UP _IOW('!', 4, uint64_t) /* SECCOMP_IOCTL_NOTIF_SET_FLAGS */

enum word {
	NONE,
	FD,
	FD5,
	PATH1,
	PATH2
};

static const struct call {
	int nr;
	const char *name;
	enum word word;
	int errors[ERRORS_MOST];
} calls[] = {
#define INJECT_CALL(name, word, ...) {SYS_##name, #name, word, {__VA_ARGS__}},
#include "inject.def"
};

/* ---- what was asked for ---- */

static struct {
	bool allocations;
	double seconds; /* 0: all */
	uint64_t n;     /* 0: all */
	unsigned variant;
	const char *setup;
	const char *whole;
	const char *files;
	const char *log;
	const char *preload;
	bool arms;    /* the command says itself from where on */
	bool child;   /* of the command, and not itself */
	bool runs_on; /* whatever fails */
	char **command;
} asked;

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void fatal(const char *what)
{
	printf("inject: %s: %s\n", what, strerror(errno));
	exit(2);
}

static char *read_text(const char *path)
{
	static char text[2][65536];
	static int which;
	char *to = text[which ^= 1];
	FILE *file = fopen(path, "re");
	size_t size = 0;

	if (file) {
		size = fread(to, 1, sizeof(text[0]) - 1, file);
		fclose(file);
	}
	to[size] = 0;
	return to;
}

/* ---- kinds of calls: what is tried first ---- */

static char kinds[8192][160];
static unsigned kinds_nr;
static uint64_t firsts[8192];

static void count_kind(const char *text, uint64_t n)
{
	unsigned i;

	for (i = 0; i < kinds_nr; i++)
		if (!strcmp(kinds[i], text))
			return;
	if (kinds_nr == sizeof(kinds) / sizeof(*kinds))
		return;
	snprintf(kinds[i], sizeof(kinds[i]), "%s", text);
	firsts[kinds_nr++] = n;
}

/* ---- one run ---- */

static struct {
	uint64_t n;
	unsigned variant;
	bool keeps_kinds;
	/* what came of it */
	uint64_t count;
	bool is_reached;
	unsigned variants; /* how many there are at the n-th */
	int error;
	char what[256];
	bool is_late;
	bool is_broken;
	int status;
} run;

static pid_t child;
static int listener = -1;
static bool is_armed;

static struct range {
	uint64_t from, to;
} sanitizers[32];
static unsigned sanitizers_nr;

static struct task {
	pid_t tid, tgid;
	bool is_foreign;
} tasks[256];
static unsigned tasks_nr;

static void read_sanitizers(void)
{
	char path[64], line[512];
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%d/maps", child);
	maps = fopen(path, "re");
	sanitizers_nr = 0;
	while (maps && fgets(line, sizeof(line), maps)) {
		struct range *range = &sanitizers[sanitizers_nr];

		if ((strstr(line, "/libasan") || strstr(line, "/liblsan") || strstr(line, "/libubsan")) &&
		    strstr(line, " r-xp ") && sanitizers_nr < 32 &&
		    sscanf(line, "%lx-%lx", (unsigned long *)&range->from, (unsigned long *)&range->to) == 2)
			sanitizers_nr++;
	}
	if (maps)
		fclose(maps);
}

static pid_t tgid_of(pid_t tid)
{
	char path[64], *line;
	int tgid = tid;

	snprintf(path, sizeof(path), "/proc/%d/status", tid);
	line = strstr(read_text(path), "\nTgid:");
	if (line)
		sscanf(line, "\nTgid: %d", &tgid);
	return tgid;
}

static bool same_image(pid_t pid)
{
	static char own[PATH_MAX];
	static pid_t of;
	char path[64], image[PATH_MAX];
	ssize_t size;

	if (of != child) {
		snprintf(path, sizeof(path), "/proc/%d/exe", child);
		size = readlink(path, own, sizeof(own) - 1);
		own[size < 0 ? 0 : size] = 0;
		of = child;
	}
	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	size = readlink(path, image, sizeof(image) - 1);
	image[size < 0 ? 0 : size] = 0;
	return !strcmp(image, own);
}

/* What the command runs is none of ours, from its exec on. */
static bool is_foreign(pid_t tid)
{
	struct task *task = NULL;

	for (unsigned i = 0; i < tasks_nr; i++)
		if (tasks[i].tid == tid)
			task = &tasks[i];
	if (!task) {
		task = &tasks[tasks_nr < 255 ? tasks_nr++ : 255];
		*task = (struct task){tid, tgid_of(tid), false};
	}
	if (task->tgid != child && !task->is_foreign)
		task->is_foreign = !same_image(task->tgid);
	return task->is_foreign;
}

static const struct call *call_of(int nr)
{
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		if (calls[i].nr == nr)
			return &calls[i];
	return NULL;
}

static void read_from(pid_t pid, uint64_t at, char *to, size_t size)
{
	struct iovec local = {to, size - 1}, remote = {(void *)(uintptr_t)at, 0};
	ssize_t got;

	/* not beyond a page that there is */
	remote.iov_len = 4096 - at % 4096 < size - 1 ? 4096 - at % 4096 : size - 1;
	got = process_vm_readv(pid, &local, 1, &remote, 1, 0);
	to[got < 0 ? 0 : got] = 0;
}

/* The call, and what it is about; numbers become N. */
static void describe(const struct seccomp_notif *asks, const struct call *call, char *to, size_t size, bool folds)
{
	char path[64], about[160] = "";
	int fd = -1;

	switch (call->word) {
	case FD:
		fd = (int)asks->data.args[0];
		break;
	case FD5:
		fd = (int)asks->data.args[4];
		break;
	case PATH1:
		read_from((pid_t)asks->pid, asks->data.args[0], about, sizeof(about));
		break;
	case PATH2:
		read_from((pid_t)asks->pid, asks->data.args[1], about, sizeof(about));
		if (!*about)
			fd = (int)asks->data.args[0];
		break;
	case NONE:
		break;
	}
	if (fd >= 0) {
		ssize_t got;

		snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)asks->pid, fd);
		got = readlink(path, about, sizeof(about) - 1);
		about[got < 0 ? 0 : got] = 0;
	}
	if (call->nr == SYS_ioctl || call->nr == SYS_fcntl)
		snprintf(to, size, "%s(%.128s, %#llx)", call->name, about, (unsigned long long)asks->data.args[1]);
	else
		snprintf(to, size, "%s(%.128s)", call->name, about);
	if (folds) {
		char *put = to;
		uint64_t piece = asks->data.args[2];

		for (const char *at = to; *at; at++)
			if (*at < '0' || *at > '9')
				*put++ = *at;
			else if (put == to || put[-1] != 'N')
				*put++ = 'N';
		*put = 0;
		if (call->nr == SYS_read || call->nr == SYS_pread64 || call->nr == SYS_write ||
		    call->nr == SYS_pwrite64)
			snprintf(put, size - (size_t)(put - to), " %d", piece ? 64 - __builtin_clzll(piece) : 0);
	}
}

static mode_t mode_of(const struct seccomp_notif *asks)
{
	char path[64];
	struct stat about;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)asks->pid, (int)asks->data.args[0]);
	return stat(path, &about) ? 0 : about.st_mode & S_IFMT;
}

/* What others than we must bear: a library that dlopen cannot read costs ld.so the memory of its name, and libpfm4 crashes
 * when /proc/mounts cannot be read. */
static bool is_of_others(const struct seccomp_notif *asks)
{
	return asks->data.nr == SYS_read && (strstr(run.what, ".so") || strstr(run.what, "/mounts"));
}

/* Whether that can happen there. */
static bool is_plausible(const struct seccomp_notif *asks, int error)
{
	mode_t mode = error >= INJECT_INTR || error == ENOSPC || error == EIO ? mode_of(asks) : 0;

	if (error == INJECT_INTR)
		return mode == S_IFIFO || mode == S_IFSOCK || mode == 0;
	if (is_of_others(asks))
		return false;
	if (asks->data.nr == SYS_wait4)
		return !(asks->data.args[2] & WNOHANG);
	if (error == INJECT_SHORT)
		/* A sysctl, or a file of sysfs, is given whole: from its middle on it cannot be read. */
		return (mode == S_IFREG || mode == S_IFIFO) && asks->data.args[2] > 1 && !strstr(run.what, "(/sys/") &&
		       !strstr(run.what, "(/proc/sys/");
	return true;
}

static int fd_from(pid_t pid, int fd)
{
	int pidfd = (int)syscall(SYS_pidfd_open, tgid_of(pid), 0);
	int got = pidfd < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, pidfd, fd, 0);

	if (pidfd >= 0)
		close(pidfd);
	return got;
}

/* Half of a write: from up to 64 pieces. */
static int64_t write_half(const struct seccomp_notif *asks)
{
	const uint64_t *words = (const uint64_t *)asks->data.args;
	bool is_vector = asks->data.nr == SYS_writev || asks->data.nr == SYS_pwritev;
	bool has_place = asks->data.nr == SYS_pwrite64 || asks->data.nr == SYS_pwritev;
	struct iovec pieces[64] = {{(void *)(uintptr_t)words[1], words[2]}}, local, remote;
	unsigned nr = 1;
	size_t size = 0, half = 0;
	int64_t done = -EIO;
	char *space;
	int fd;

	if (is_vector) {
		nr = words[2] < 64 ? (unsigned)words[2] : 64;
		local = (struct iovec){pieces, nr * sizeof(*pieces)};
		remote = (struct iovec){(void *)(uintptr_t)words[1], nr * sizeof(*pieces)};
		if (process_vm_readv((pid_t)asks->pid, &local, 1, &remote, 1, 0) < 0)
			return -EIO;
	}
	for (unsigned i = 0; i < nr; i++)
		size += pieces[i].iov_len;
	if (size > 64 << 20)
		return -EIO;
	space = malloc(size + 1);
	local = (struct iovec){space, size};
	half = size > 1 ? size / 2 : size;
	fd = fd_from((pid_t)asks->pid, (int)words[0]);
	if (fd >= 0 && process_vm_readv((pid_t)asks->pid, &local, 1, pieces, nr, 0) == (ssize_t)size) {
		done = has_place ? pwrite(fd, space, half, (off_t)words[3]) : write(fd, space, half);
		if (done < 0)
			done = -errno;
	}
	if (fd >= 0)
		close(fd);
	free(space);
	return done;
}

static int64_t read_half(const struct seccomp_notif *asks)
{
	const uint64_t *words = (const uint64_t *)asks->data.args;
	size_t size = words[2] < 4 << 20 ? words[2] : 4 << 20;
	struct iovec local, remote = {(void *)(uintptr_t)words[1], 0};
	bool is_pipe = mode_of(asks) == S_IFIFO;
	int64_t got = -EIO, half;
	int fd = fd_from((pid_t)asks->pid, (int)words[0]), there = 0;
	char *space = malloc(size + 1);

	if (is_pipe && (ioctl(fd, FIONREAD, &there) < 0 || there < 2)) {
		got = INT64_MIN;
		goto out;
	}
	if (is_pipe && (size_t)there < size)
		size = (size_t)there;
	if (is_pipe)
		size /= 2;
	if (fd < 0)
		goto out;
	got = asks->data.nr == SYS_pread64 ? pread(fd, space, size, (off_t)words[3]) : read(fd, space, size);
	if (got < 0)
		got = -errno;
	if (got > 1 && !is_pipe) {
		half = got / 2;
		if (asks->data.nr == SYS_read && lseek(fd, half - got, SEEK_CUR) < 0)
			half = got;
		got = half;
	}
	if (got > 0) {
		local = (struct iovec){space, (size_t)got};
		remote.iov_len = (size_t)got;
		if (process_vm_writev((pid_t)asks->pid, &local, 1, &remote, 1, 0) != got)
			got = -EFAULT;
	}
out:
	if (fd >= 0)
		close(fd);
	free(space);
	return got;
}

static bool is_counted(const struct seccomp_notif *asks)
{
	if (!is_armed || is_foreign((pid_t)asks->pid) != asked.child)
		return false;
	for (unsigned i = 0; i < sanitizers_nr; i++)
		if (asks->data.instruction_pointer >= sanitizers[i].from &&
		    asks->data.instruction_pointer < sanitizers[i].to)
			return false;
	/* By the C library's function, when a thread begins: it ends the program if that fails. */
	if (asks->data.nr == SYS_sigaltstack && sanitizers_nr)
		return false;
	if (asks->data.nr == SYS_fcntl && asks->data.args[1] != F_DUPFD && asks->data.args[1] != F_DUPFD_CLOEXEC &&
	    asks->data.args[1] != F_ADD_SEALS)
		return false;
	return true;
}

static void answer(void)
{
	struct seccomp_notif asks;
	struct seccomp_notif_resp says;
	const struct call *call;
	int errors[ERRORS_MOST], error;

	memset(&asks, 0, sizeof(asks));
	memset(&says, 0, sizeof(says));
	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &asks))
		return;
	says.id = asks.id;
	says.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	call = call_of(asks.data.nr);
	if (asks.data.nr == SYS_prctl) {
		is_armed = asks.data.args[1];
		says.flags = 0;
	} else if (call && is_counted(&asks)) {
		run.count++;
		if (run.keeps_kinds) {
			char text[160];

			describe(&asks, call, text, sizeof(text), true);
			count_kind(text, run.count);
		}
		if (run.count == run.n) {
			run.is_reached = true;
			describe(&asks, call, run.what, sizeof(run.what), false);
			run.variants = 0;
			for (unsigned i = 0; i < ERRORS_MOST && call->errors[i]; i++)
				if (is_plausible(&asks, call->errors[i]))
					errors[run.variants++] = call->errors[i];
			if (run.variants) {
				error = run.error = errors[run.variant % run.variants];
				if (error == INJECT_SHORT)
					says.val = call->nr == SYS_read || call->nr == SYS_pread64 ? read_half(&asks)
												   : write_half(&asks);
				else
					says.error = -(error == INJECT_INTR ? EINTR : error);
				if (says.val < 0 && says.val != INT64_MIN) {
					says.error = (int)says.val;
					says.val = 0;
				}
				if (says.val != INT64_MIN)
					says.flags = 0;
				else
					says.val = 0;
			}
		}
	}
	ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &says);
}

/* Whether there was a message. */
static bool hear(int socket)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} control;
	struct inject_message message;
	struct iovec piece = {&message, sizeof(message)};
	struct msghdr header = {
		.msg_iov = &piece, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control.space)};

	if (recvmsg(socket, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) != sizeof(message))
		return false;
	switch (message.kind) {
	case INJECT_LISTENER:
		memcpy(&listener, CMSG_DATA(&control.header), sizeof(listener));
		read_sanitizers();
		/* Who asks and who answers take turns (Linux 6.6; older ones refuse). */
		ioctl(listener, SYNC_WAKE_UP, 1);
		is_armed = !asked.arms && !asked.child;
		break;
	case INJECT_ALLOCATION:
		run.is_reached = true;
		run.variants = 1;
		run.error = ENOMEM;
		snprintf(run.what, sizeof(run.what), "allocation by %.112s", message.text);
		break;
	case INJECT_MET:
		count_kind(message.text, ++run.count);
		break;
	case INJECT_COUNT:
		if (asked.allocations)
			run.count = message.count;
		break;
	}
	return true;
}

static void begin_command(const int sockets[2])
{
	char text[64];
	int out = open("../out", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	int err = open("../err", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	int in = open("/dev/null", O_RDONLY | O_CLOEXEC);

	setpgid(0, 0);
	close(sockets[0]);
	snprintf(text, sizeof(text), "%d %llu %c", sockets[1],
		 asked.allocations ? (unsigned long long)(run.n ? run.n : UINT64_MAX) : 0,
		 asked.child  ? 'p'
		 : asked.arms ? 'c'
			      : 'a');
	setenv("INJECT", text, 1);
	setenv("LD_PRELOAD", asked.preload, 1);
	if (dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0)
		_exit(INJECT_BROKEN);
	execvp(asked.command[0], asked.command);
	_exit(INJECT_BROKEN);
}

/* Whoever is left in the end is a fault; the command's own child is given a moment. */
static bool reap(void)
{
	double end = now() + 5;
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) >= 0) {
		if (pid == 0 && now() > end) {
			kill(-child, SIGKILL);
			while (waitpid(-1, &status, 0) > 0)
				;
			return false;
		}
		if (pid == 0) {
			struct pollfd polled = {.fd = listener, .events = POLLIN};

			if (poll(&polled, listener >= 0, 5) > 0 && polled.revents & POLLIN)
				answer();
		}
	}
	return true;
}

static bool run_once(uint64_t n, unsigned variant)
{
	struct pollfd polled[3];
	int sockets[2], pidfd, most = getenv("PERFRING_SANITIZE") && *getenv("PERFRING_SANITIZE") ? 60 : 30;
	double end;
	int hears;
	bool is_over = false;

	run.n = n;
	run.variant = variant;
	run.count = run.variants = 0;
	run.is_reached = run.is_late = run.is_broken = false;
	run.error = 0;
	run.what[0] = 0;
	tasks_nr = 0;
	listener = -1;
	is_armed = false;
	if (system("rm -rf ../run/* ../run/.[a-z]*"))
		fatal("rm");
	if (asked.setup && system(asked.setup))
		fatal(asked.setup);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets))
		fatal("socketpair");
	fcntl(sockets[0], F_SETFD, FD_CLOEXEC);
	fflush(stdout);
	child = fork();
	if (child < 0)
		fatal("fork");
	if (!child)
		begin_command(sockets);
	close(sockets[1]);
	hears = sockets[0];
	pidfd = (int)syscall(SYS_pidfd_open, child, 0);
	end = now() + most;
	while (!is_over) {
		polled[0] = (struct pollfd){.fd = pidfd, .events = POLLIN};
		polled[1] = (struct pollfd){.fd = hears, .events = POLLIN};
		polled[2] = (struct pollfd){.fd = listener, .events = POLLIN};
		if (poll(polled, 3, 1000) < 0)
			fatal("poll");
		if (polled[1].revents && !hear(sockets[0]))
			hears = -1;
		if (polled[2].revents & POLLIN)
			answer();
		is_over = polled[0].revents && !(polled[1].revents & POLLIN && hears >= 0);
		if (now() > end) {
			run.is_late = true;
			kill(-child, SIGKILL);
			kill(child, SIGKILL);
			is_over = true;
		}
	}
	waitpid(child, &run.status, 0);
	run.is_broken = WIFEXITED(run.status) && WEXITSTATUS(run.status) == INJECT_BROKEN;
	is_over = reap();
	if (listener >= 0)
		close(listener);
	listener = -1;
	close(pidfd);
	close(sockets[0]);
	return is_over;
}

/* ---- whether it held ---- */

static unsigned lines_of(const char *text)
{
	unsigned lines = 0;

	for (; *text; text++)
		lines += *text == '\n';
	return lines;
}

static char usual[65536]; /* stderr without a failure */

/* Files that none should be. */
static const char *find_left(void)
{
	static char left[512];
	DIR *folder = opendir(".");
	struct dirent *entry;

	left[0] = 0;
	while (folder && (entry = readdir(folder))) {
		char word[300];

		snprintf(word, sizeof(word), " %.280s ", entry->d_name);
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
		    !strstr(asked.files ? asked.files : "", word))
			snprintf(left, sizeof(left), "%s is left", entry->d_name);
	}
	if (folder)
		closedir(folder);
	return left[0] ? left : NULL;
}

/* Whether it says what was short of memory, or the file that the call was about. */
static bool names_it(const char *err)
{
	char name[256];
	const char *from = strrchr(run.what, '/');

	if (run.error == ENOMEM && strstr(err, "memory"))
		return true;
	/* What refuses an event is explained: who has the PMU, which sysctl, how to ask for less. */
	if (!strncmp(run.what, "perf_event_open", 15))
		return strstr(err, "clock: ") || strstr(err, "faults: ");
	snprintf(name, sizeof(name), "%s", from ? from + 1 : "");
	name[strcspn(name, "),")] = 0;
	return *name && strstr(err, name);
}

static const char *error_text(void)
{
	return run.error == INJECT_SHORT ? "short" : run.error == INJECT_INTR ? "Interrupted" : strerror(run.error);
}

static int checks(const char *how)
{
	char status[16], text[24];

	if (!asked.whole)
		return 0;
	snprintf(status, sizeof(status), "%d", WEXITSTATUS(run.status));
	snprintf(text, sizeof(text), "%d", run.error);
	setenv("RESULT", how, 1);
	setenv("STATUS", status, 1);
	setenv("WHAT", run.what, 1);
	setenv("ERROR", text, 1);
	return system(asked.whole);
}

/* NULL: it held. */
static const char *judge(bool is_alone)
{
	const char *err = read_text("../err"), *last;
	unsigned lines = lines_of(err);

	if (run.is_late)
		return "it hangs";
	if (strstr(err, "Sanitizer: ") || strstr(err, "Sanitizer has") || strstr(err, "runtime error:"))
		return "a sanitizer speaks";
	if (WIFSIGNALED(run.status))
		return "it crashes";
	if (!is_alone)
		return "a process is left";
	if (find_left())
		return find_left();
	/* The recorder of what runs on ends with 1 where it has nothing of it, and says so. */
	if (asked.runs_on)
		return WEXITSTATUS(run.status) && !strstr(err, "no process could be observed") ? "it does not run on" : checks("whole") ? "it is not as without" : NULL;
	if (WEXITSTATUS(run.status) == 0) {
		if (checks("whole") == 0)
			return NULL;
		return lines > lines_of(usual) ? NULL : "not whole, and nothing says so";
	}
	if (checks("failed"))
		return "it failed, and what must be kept is not";
	if (!lines)
		return "it fails without a word";
	if (lines > lines_of(usual) + 3)
		return "it says too much";
	last = strstr(err, "perfring: ");
	if (!last)
		return "no sentence of its own";
	if (run.error < INJECT_INTR && !strcasestr(err, strerror(run.error)) && !names_it(err))
		return "a riddle";
	return NULL;
}

static unsigned runs, faults;

static void one(uint64_t n, unsigned variant)
{
	bool is_alone = run_once(n, variant);
	const char *fault;
	FILE *log;

	runs++;
	fault = !run.error && WIFEXITED(run.status) && WEXITSTATUS(run.status) == 0 && is_alone ? NULL
												: judge(is_alone);
	if (asked.log && (log = fopen(asked.log, "ae"))) {
		fprintf(log, "%s n=%llu v=%u %s: %s -> %d%s%s\n", fault ? "WRONG" : "ok", (unsigned long long)n,
			variant, run.what, error_text(), run.status, fault ? ": " : "", fault ? fault : "");
		fputs(read_text("../err"), log);
		fclose(log);
	}
	if (fault) {
		faults++;
		printf("  %s: n=%llu v=%u %s: %s -> %s %d\n", fault, (unsigned long long)n, variant, run.what,
		       error_text(), WIFSIGNALED(run.status) ? "signal" : "status",
		       WIFSIGNALED(run.status) ? WTERMSIG(run.status) : WEXITSTATUS(run.status));
		printf("    %.1500s", read_text("../err"));
		fflush(stdout);
	}
}

static void shuffle(uint64_t *of, size_t nr)
{
	uint64_t state = 88172645463325252u;

	for (size_t i = nr; i > 1; i--) {
		uint64_t at, kept;

		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		at = state % i;
		kept = of[i - 1];
		of[i - 1] = of[at];
		of[at] = kept;
	}
}

static void run_sample(uint64_t count)
{
	double end = now() + asked.seconds;
	uint64_t *order = calloc(kinds_nr + count, sizeof(*order));
	size_t nr = kinds_nr;

	memcpy(order, firsts, kinds_nr * sizeof(*order));
	shuffle(order, nr);
	for (uint64_t n = 1; n <= count; n++)
		order[nr++] = n;
	shuffle(order + kinds_nr, nr - kinds_nr);
	for (size_t i = 0; i < nr && now() < end; i++)
		one(order[i], (unsigned)i);
	free(order);
}

static void run_all(void)
{
	unsigned beyond = 0;

	for (uint64_t n = 1; beyond < 3; n++) {
		unsigned variant = 0;

		do {
			one(n, variant);
			beyond = run.is_reached ? 0 : beyond + 1;
		} while (++variant < run.variants);
	}
}

int main(int argc, char **argv)
{
	int option;
	uint64_t count;

	if (argc < 2)
		return 2;
	asked.allocations = !strcmp(argv[1], "alloc");
	argc--, argv++;
	while ((option = getopt(argc, argv, "+t:n:v:s:w:l:o:ackx:")) >= 0)
		switch (option) {
		case 't':
			asked.seconds = atof(optarg);
			break;
		case 'n':
			asked.n = strtoull(optarg, NULL, 10);
			break;
		case 'v':
			asked.variant = (unsigned)atoi(optarg);
			break;
		case 's':
			asked.setup = optarg;
			break;
		case 'w':
			asked.whole = optarg;
			break;
		case 'l':
			asked.files = optarg;
			break;
		case 'o':
			asked.log = optarg;
			break;
		case 'a':
			asked.arms = true;
			break;
		case 'c':
			asked.child = true;
			break;
		case 'k':
			asked.runs_on = true;
			break;
		case 'x':
			asked.preload = optarg;
			break;
		default:
			return 2;
		}
	asked.command = argv + optind;
	prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	signal(SIGPIPE, SIG_IGN);
	mkdir("run", 0700);
	if (chdir("run"))
		fatal("run");
	/* as it is without a failure */
	run.keeps_kinds = true;
	run_once(0, 0);
	run.keeps_kinds = false;
	count = run.count;
	if (run.is_broken) {
		printf("SKIP-ENV: seccomp: no notifications of system calls\n");
		return 77;
	}
	snprintf(usual, sizeof(usual), "%s", read_text("../err"));
	if (run.is_late || !WIFEXITED(run.status) || WEXITSTATUS(run.status) || checks("whole")) {
		printf("  it fails by itself: status %d\n%s", run.status, usual);
		return 1;
	}
	if (asked.n)
		one(asked.n, asked.variant);
	else if (asked.seconds > 0)
		run_sample(count);
	else
		run_all();
	printf("  %llu %s of %u kinds, %u runs, %u faults\n", (unsigned long long)count,
	       asked.allocations ? "allocations" : "calls", kinds_nr, runs, faults);
	return faults != 0;
}
