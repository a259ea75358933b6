/* inject_preload.c - preloaded into a program by inject.c: fails the n-th allocation, or gives its system calls to who started
 * it, which fails the n-th.
 *
 * INJECT is "FD N": the socket to tell it on, and the number of the allocation that fails (0: none, and system calls are asked
 * about; UINT64_MAX: none, and of each one its caller is told).  What is counted are
 * malloc and its kin from any caller, libc included, mappings without a file and threads.  Under a sanitizer these go on to
 * the sanitizer's own.
 *
 * What the program runs is preloaded too where the word after N is p: its calls are counted from there on.
 */
#include <dlfcn.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "inject.h"

#define EXPORT __attribute__((visibility("default")))

static _Atomic bool is_armed;
static _Atomic uint64_t allocations;
static _Atomic int64_t mapped; /* bytes by mmap less those by munmap, while armed or not */
static uint64_t fails;         /* which */
static int told = -1;
static pid_t main_process;

/* Not another preloaded object's, which looks at what is called by it. */
static long (*call_of)(long number, ...);

static void find_call(void)
{
	void *found = dlsym(RTLD_NEXT, "syscall");

	memcpy(&call_of, &found, sizeof(found));
}

/* ---- what fails ---- */

/* By a call that is not counted. */
static int send_header(struct msghdr *header)
{
	struct mmsghdr one = {.msg_hdr = *header};

	return (int)call_of(SYS_sendmmsg, told, &one, 1, MSG_NOSIGNAL);
}

static void send_message(struct inject_message *message)
{
	struct iovec piece = {message, sizeof(*message)};
	struct msghdr header = {.msg_iov = &piece, .msg_iovlen = 1};

	send_header(&header);
}

static void tell(uint32_t kind, const void *caller)
{
	struct inject_message message = {kind, 0, 0, ""};
	Dl_info info;

	/* dladdr does not allocate. */
	if (dladdr(caller, &info) && info.dli_fname) {
		const char *name = strrchr(info.dli_fname, '/');

		snprintf(message.text, sizeof(message.text), "%.40s+%#lx", name ? name + 1 : info.dli_fname,
			 (unsigned long)((const char *)caller - (const char *)info.dli_fbase));
	}
	send_message(&message);
}

static bool is_failed(const void *caller)
{
	uint64_t n;

	if (!atomic_load(&is_armed))
		return false;
	n = atomic_fetch_add(&allocations, 1) + 1;
	if ((n != fails && fails != UINT64_MAX) || getpid() != main_process)
		return false;
	tell(fails == UINT64_MAX ? INJECT_MET : INJECT_ALLOCATION, caller);
	if (fails == UINT64_MAX)
		return false;
	errno = ENOMEM;
	return true;
}

/* ---- the allocator, and what is behind it ---- */

/* dlsym may allocate, before it can say where from.  It keeps that: free is not ours. */
static _Alignas(16) char first_space[4096];
static size_t first_used;

static void *first_alloc(size_t size)
{
	size_t at = first_used;

	first_used += (size + 15) & ~(size_t)15;
	if (first_used > sizeof(first_space))
		abort();
	return first_space + at;
}

static __thread int asks __attribute__((tls_model("initial-exec")));

static void *next_of(const char *name, void **kept)
{
	if (!*kept) {
		asks++;
		*kept = dlsym(RTLD_NEXT, name);
		asks--;
	}
	return *kept;
}

#define NEXT(name) \
	static void *kept_##name; \
	__typeof__(&(name)) next = (__typeof__(next))next_of(#name, &kept_##name)

#define CALLER __builtin_return_address(0)

EXPORT void *malloc(size_t size)
{
	if (asks)
		return first_alloc(size);
	NEXT(malloc);
	return is_failed(CALLER) ? NULL : next(size);
}

EXPORT void *calloc(size_t nr, size_t size)
{
	if (asks)
		return first_alloc(nr * size);
	NEXT(calloc);
	return is_failed(CALLER) ? NULL : next(nr, size);
}

EXPORT void *realloc(void *old, size_t size)
{
	if (asks)
		return memcpy(first_alloc(size), old, size);
	NEXT(realloc);
	return is_failed(CALLER) ? NULL : next(old, size);
}

EXPORT void *reallocarray(void *old, size_t nr, size_t size)
{
	NEXT(reallocarray);
	return is_failed(CALLER) ? NULL : next(old, nr, size);
}

EXPORT int posix_memalign(void **to, size_t align, size_t size)
{
	NEXT(posix_memalign);
	return is_failed(CALLER) ? ENOMEM : next(to, align, size);
}

EXPORT void *aligned_alloc(size_t align, size_t size)
{
	NEXT(aligned_alloc);
	return is_failed(CALLER) ? NULL : next(align, size);
}

EXPORT void *mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
	void *memory;

	NEXT(mmap);
	if (fd < 0 && is_failed(CALLER))
		return MAP_FAILED;
	memory = next(at, size, protection, flags, fd, offset);
	if (memory != MAP_FAILED && !(flags & MAP_FIXED))
		atomic_fetch_add(&mapped, (int64_t)((size + 4095) & ~(size_t)4095));
	return memory;
}

EXPORT int munmap(void *at, size_t size)
{
	NEXT(munmap);
	atomic_fetch_sub(&mapped, (int64_t)((size + 4095) & ~(size_t)4095));
	return next(at, size);
}

EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *of)
{
	NEXT(pthread_create);
	return is_failed(CALLER) ? EAGAIN : next(thread, attr, run, of);
}

/* ---- for programs that say themselves what is to fail ---- */

EXPORT void inject_arm(bool armed)
{
	atomic_store(&is_armed, armed);
	call_of(SYS_prctl, INJECT_PRCTL, armed, 0, 0, 0);
}

EXPORT int64_t inject_mapped(void)
{
	return atomic_load(&mapped);
}

/* ---- the filter ---- */

static const int calls[] = {
#define INJECT_CALL(name, ...) SYS_##name,
#include "inject.def"
};

enum {
	CALLS = sizeof(calls) / sizeof(*calls)
};

static int open_filter(void)
{
	static struct sock_filter filter[16 + 2 * CALLS];
	struct sock_fprog program = {0, filter};
	unsigned short at = 0;

#define LOAD(member) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, member))
#define IS(value, then, otherwise) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(value), then, otherwise)
	const struct sock_filter ask = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
	const struct sock_filter let = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);

	/* Mappings without a file are counted above: the allocators have theirs from the kernel too. */
	filter[at++] = (struct sock_filter)LOAD(nr);
	filter[at++] = (struct sock_filter)IS(SYS_mmap, 0, 4);
	filter[at++] = (struct sock_filter)LOAD(args[4]);
	filter[at++] = (struct sock_filter)IS(-1, 0, 1);
	filter[at++] = let;
	filter[at++] = ask;
	filter[at++] = (struct sock_filter)IS(SYS_prctl, 0, 4);
	filter[at++] = (struct sock_filter)LOAD(args[0]);
	filter[at++] = (struct sock_filter)IS(INJECT_PRCTL, 0, 1);
	filter[at++] = ask;
	filter[at++] = let;
	for (unsigned i = 0; i < CALLS; i++) {
		filter[at++] = (struct sock_filter)IS(calls[i], 0, 1);
		filter[at++] = ask;
	}
	filter[at++] = let;
	program.len = at;
	call_of(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	return (int)call_of(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
			    SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, &program);
}

static void send_listener(int listener)
{
	union {
		struct cmsghdr header;
		char buffer[CMSG_SPACE(sizeof(int))];
	} control = {.header = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
	struct inject_message message = {INJECT_LISTENER, 0, 0, ""};
	struct iovec piece = {&message, sizeof(message)};
	struct msghdr header = {
		.msg_iov = &piece, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control.buffer)};

	memcpy(CMSG_DATA(&control.header), &listener, sizeof(listener));
	if (send_header(&header) != 1)
		_exit(INJECT_BROKEN);
}

__attribute__((constructor)) static void begin(void)
{
	const char *text = getenv("INJECT");
	unsigned long long n = 0;
	char by_itself = 0;
	int listener;

	find_call();
	if (!text && getenv("INJECT_CHILD"))
		inject_arm(true);
	if (!text || sscanf(text, "%d %llu %c", &told, &n, &by_itself) != 3)
		return;
	fails = n;
	main_process = getpid();
	unsetenv("INJECT");
	if (by_itself == 'p')
		setenv("INJECT_CHILD", "1", 1);
	else
		unsetenv("LD_PRELOAD");
	if (n == 0) {
		listener = open_filter();
		if (listener < 0)
			_exit(INJECT_BROKEN);
		send_listener(listener);
		close(listener);
	}
	if (by_itself == 'a')
		atomic_store(&is_armed, true);
}

/* What was counted. */
__attribute__((destructor)) static void end(void)
{
	struct inject_message message = {INJECT_COUNT, 0, atomic_load(&allocations), ""};

	if (told >= 0 && getpid() == main_process)
		send_message(&message);
}
