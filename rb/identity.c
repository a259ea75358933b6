/* identity.c - a thread's start time, namespaces and boot, from /proc.
 *
 * What /proc says of a thread, packed into one word.  No allocation; all functions may be called by signal handlers.
 */
#include "identity.h"

#include <errno.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/small_file.h"
#include "os/task.h"

enum {
	START = 0xfffff,    /* of a start time in clock ticks: what an identity holds */
	GLOBAL_TID_AT = 42, /* perfring__identity_global */
	GLOBAL_START_AT = 22,
};

#define GLOBAL_NAMESPACES ((UINT64_C(1) << GLOBAL_START_AT) - 1)

static uint64_t start_of(uint32_t pid, uint32_t tid)
{
	struct perfring_os_task thread;

	perfring__os_task_stat(pid, tid, &thread);
	return thread.start & START;
}

uint64_t perfring__identity_of(uint32_t tid)
{
	uint32_t pid = (uint32_t)getpid();

	return (uint64_t)pid << 42 | (uint64_t)tid << 20 | start_of(pid, tid);
}

uint64_t perfring__identity_own(void)
{
	return perfring__identity_of((uint32_t)syscall(SYS_gettid));
}

/* `found`: a signal can be sent to a thread of that number.  So it can to one that has ended and is not reaped: of a
 * process whose parent does not wait, or a main thread after pthread_exit.  Such a thread never writes again: the
 * kernel's exit_mm comes before its state Z. */
static bool runs(bool found, uint32_t pid, uint32_t tid, uint64_t start)
{
	struct perfring_os_task thread;

	if (!found)
		return false;
	perfring__os_task_stat(pid, tid, &thread);
	if (thread.state == 'Z' || thread.state == 'X')
		return false;
	return !(thread.start & START) || (thread.start & START) == start;
}

bool perfring__identity_lives(uint64_t identity)
{
	uint32_t pid = (uint32_t)(identity >> 42), tid = perfring__identity_tid(identity);
	int saved = errno;
	bool found = !syscall(SYS_tgkill, pid, tid, 0) || errno == EPERM;
	bool lives = runs(found, pid, tid, identity & START);

	errno = saved;
	return lives;
}

/* 0: not known. */
static uint64_t namespaces_hash(void)
{
	uint64_t namespaces = perfring__identity_namespaces();
	uint64_t hash = namespaces * UINT64_C(0x9e3779b97f4a7c15) >> (64 - GLOBAL_START_AT);

	return namespaces && !hash ? 1 : hash;
}

uint64_t perfring__identity_global(void)
{
	uint32_t tid = (uint32_t)syscall(SYS_gettid);

	return (uint64_t)tid << GLOBAL_TID_AT | start_of((uint32_t)getpid(), tid) << GLOBAL_START_AT |
	       namespaces_hash();
}

bool perfring__identity_global_ended(uint64_t identity)
{
	uint32_t tid = (uint32_t)(identity >> GLOBAL_TID_AT);
	uint64_t namespaces = identity & GLOBAL_NAMESPACES;
	int saved = errno;
	bool ended = false;

	/* /proc has every thread by its number, though it lists processes only */
	if (namespaces && namespaces == namespaces_hash())
		ended = !runs(!syscall(SYS_tkill, tid, 0) || errno == EPERM, tid, tid,
			      identity >> GLOBAL_START_AT & START);
	errno = saved;
	return ended;
}

uint64_t perfring__identity_namespaces(void)
{
	struct stat pids, times;

	if (stat("/proc/self/ns/pid", &pids) < 0)
		return 0;
	/* Start times are those of the reader's time namespace (Linux 5.6). */
	if (stat("/proc/self/ns/time", &times) < 0)
		times.st_ino = 0;
	return (uint64_t)pids.st_ino << 32 ^ times.st_ino;
}

uint64_t perfring__identity_boot(void)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);
	char text[64];

	if (perfring__os_file_read("/proc/sys/kernel/random/boot_id", text, sizeof(text)) <= 0)
		return 0;
	for (const char *at = text; *at; at++)
		hash = (hash ^ (unsigned char)*at) * UINT64_C(0x100000001b3);
	return hash ? hash : 1;
}
