/* identity.c - what /proc says of a thread: when it began, and in which boot. */
#include "identity.h"

#include <errno.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/file.h"
#include "os/thread.h"

static uint64_t start_of(uint32_t pid, uint32_t tid)
{
	uint64_t start;

	perfring_os_thread_start(pid, tid, &start);
	return start & 0xfffff;
}

uint64_t perfring_identity_of(uint32_t tid)
{
	uint32_t pid = (uint32_t)getpid();

	return (uint64_t)pid << 42 | (uint64_t)tid << 20 | start_of(pid, tid);
}

uint64_t perfring_identity_own(void)
{
	return perfring_identity_of((uint32_t)syscall(SYS_gettid));
}

bool perfring_identity_lives(uint64_t identity)
{
	uint32_t pid = (uint32_t)(identity >> 42), tid = perfring_identity_tid(identity);
	int saved = errno;
	bool lives = !syscall(SYS_tgkill, pid, tid, 0) || errno == EPERM;
	uint64_t start = lives ? start_of(pid, tid) : 0;

	errno = saved;
	return lives && (!start || start == (identity & 0xfffff));
}

uint64_t perfring_identity_namespaces(void)
{
	struct stat pids, times;

	if (stat("/proc/self/ns/pid", &pids) < 0)
		return 0;
	/* Start times are those of the reader's time namespace (Linux 5.6). */
	if (stat("/proc/self/ns/time", &times) < 0)
		times.st_ino = 0;
	return (uint64_t)pids.st_ino << 32 ^ times.st_ino;
}

uint64_t perfring_identity_boot(void)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);
	char text[64];

	if (perfring_os_file_read("/proc/sys/kernel/random/boot_id", text, sizeof(text)) <= 0)
		return 0;
	for (const char *at = text; *at; at++)
		hash = (hash ^ (unsigned char)*at) * UINT64_C(0x100000001b3);
	return hash ? hash : 1;
}
