/* preload_waits.c - calls of the C library that wait (preload_waits.def): what `record --soft --off-cpu` measures of a program.
 *
 * Each wrapper reads the thread's CPU clock and the time before and after the function that the program would have called.  What the
 * call was off the CPU, the difference, is raised as one occurrence of the point offcpu-time, if it is long enough (preload_waits.h).
 *
 *     not asked for      two loads and a jump
 *     by a handler       as by a thread: what a call inside another has raised is not in the other's
 *     cancelled, left    by a jump, or not ended: nothing is raised
 *     errno              is the function's
 *     while it raises    signals and cancellations wait: what left the raise would never end it
 *
 * A lock that is free is taken by its trylock, which costs no look at a clock.  (Not a semaphore: sem_wait is a cancellation point.)
 *
 * To the C library a call of its own is no call of these names: nothing is measured twice, and waits inside of other functions, as of
 * stdio's, are not seen.
 */
#undef _FORTIFY_SOURCE /* its headers have some of these functions inline */
#undef _TIME_BITS      /* and others' names for these */
#undef _FILE_OFFSET_BITS

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <threads.h>
#include <unistd.h>

#include "preload_waits.h"

struct tool_waits tool_waits;
__thread perfring_u64 tool_waited __attribute__((tls_model("initial-exec")));

/* What is called where _FORTIFY_SOURCE knows the size of the memory. */
int __poll_chk(struct pollfd *fds, nfds_t count, int ms, size_t size);
int __ppoll_chk(struct pollfd *fds, nfds_t count, const struct timespec *time, const sigset_t *set, size_t size);
ssize_t __read_chk(int fd, void *to, size_t size, size_t space);
ssize_t __pread_chk(int fd, void *to, size_t size, off_t at, size_t space);
ssize_t __pread64_chk(int fd, void *to, size_t size, off64_t at, size_t space);
ssize_t __recv_chk(int fd, void *to, size_t size, size_t space, int flags);
ssize_t __recvfrom_chk(int fd, void *to, size_t size, size_t space, int flags, __SOCKADDR_ARG from, socklen_t *length);

/* ---- the wrappers ---- */

#define WAIT(type, name, parameters, arguments) \
	DECLARE(name) \
	WRAPS type name parameters \
	{ \
		struct tool_wait this_wait; \
		type ret; \
		REAL(name) \
		if (PERFRING_LIKELY(!tool_wait_is_measured(__builtin_return_address(0)))) \
			return real_##name arguments; \
		tool_wait_begin(&this_wait); \
		ret = real_##name arguments; \
		TOOL_WAIT_RAISE(&this_wait); \
		return ret; \
	}

#define LOCK(name, tries, is_taken, type) \
	DECLARE(name) \
	WRAPS int name(type *lock) \
	{ \
		struct tool_wait this_wait; \
		int ret; \
		REAL(name) \
		if (PERFRING_LIKELY(!tool_wait_is_measured(__builtin_return_address(0)))) \
			return real_##name(lock); \
		ret = tries(lock); \
		if (PERFRING_LIKELY(ret != (is_taken))) \
			return ret; \
		tool_wait_begin(&this_wait); \
		ret = real_##name(lock); \
		TOOL_WAIT_RAISE(&this_wait); \
		return ret; \
	}

#include "preload_waits.def"
#undef WAIT
#undef LOCK

/* One word, if any, follows the command, and it is passed on whatever it is, as the C library does. */
#define LOCK_OF_FILE(name) \
	DECLARE(name) \
	WRAPS int name(int fd, int command, ...) \
	{ \
		struct tool_wait this_wait; \
		void *argument; \
		va_list list; \
		int ret; \
		va_start(list, command); \
		argument = va_arg(list, void *); \
		va_end(list); \
		REAL(name) \
		if (PERFRING_LIKELY((command != F_SETLKW && command != F_OFD_SETLKW) || \
				    !tool_wait_is_measured(__builtin_return_address(0)))) \
			return real_##name(fd, command, argument); \
		tool_wait_begin(&this_wait); \
		ret = real_##name(fd, command, argument); \
		TOOL_WAIT_RAISE(&this_wait); \
		return ret; \
	}

#define LOCKS_OF_FILES(of) of(fcntl) of(fcntl64)
LOCKS_OF_FILES(LOCK_OF_FILE)

/* ---- what they wrap ---- */

/* On x86 the library has pthread_cond_ functions of two kinds: a program of the last twenty years calls those of 2.3.2. */
void *tool_preload_find(const char *name)
{
	void *found = strncmp(name, "pthread_cond_", 13) ? NULL : dlvsym(RTLD_NEXT, name, "GLIBC_2.3.2");

	return found ? found : dlsym(RTLD_NEXT, name);
}

#define WAIT(type, name, parameters, arguments) REAL(name)
#define LOCK(name, tries, is_taken, type) REAL(name)

/* As in preload.c: a handler may be the first to call one. */
static void __attribute__((constructor)) find_real(void)
{
#include "preload_waits.def"
	LOCKS_OF_FILES(REAL)
	dlerror(); /* what is not there is no error of the program's */
}
