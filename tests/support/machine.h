/* machine.h - what tests must know of the machine: its byte order, and what its kernel says of itself and of the process;
 * and whether its system does what a fork and the end of a process rely on (qemu-user says yes to each, and does
 * nothing). */
#ifndef MACHINE_H
#define MACHINE_H

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include "sanitizers.h"

#define NO_WIPEONFORK "SKIP-ENV: madvise(MADV_WIPEONFORK): does nothing: needs Linux 4.14, not emulated"
#define NO_DONTFORK "SKIP-ENV: madvise(MADV_DONTFORK): does nothing: needs Linux, not emulated"
#define NO_ROBUST "SKIP-ENV: pthread_mutex_trylock: EBUSY when its owner is dead: needs set_robust_list, not emulated"

/* The first word of a record, in the machine's byte order. */
static inline uint64_t header_word(uint32_t type, uint16_t size)
{
	struct perf_event_header header = {type, 0, size};
	uint64_t word;

	memcpy(&word, &header, sizeof(word));
	return word;
}

/* The last word of a handler that comes at any instruction: qemu-arm keeps the handler's exclusive monitor when it
 * returns, so that a swap which it interrupted succeeds though the word has changed.  A processor drops it. */
static inline void handler_ends(void)
{
#ifdef __arm__
	__asm__ volatile("clrex" : : : "memory");
#endif
}

/* Whether this is that kernel, or a younger one. */
static inline bool is_at_least(unsigned major, unsigned minor)
{
	unsigned have[2] = {0, 0};
	FILE *file = fopen("/proc/sys/kernel/osrelease", "r");

	if (file) {
		if (fscanf(file, "%u.%u", &have[0], &have[1]) != 2)
			have[0] = 0;
		fclose(file);
	}
	return have[0] > major || (have[0] == major && have[1] >= minor);
}

/* The number that a file begins with; 0: it has none, or cannot be read. */
static inline uint64_t number_in(const char *path)
{
	FILE *file = fopen(path, "r");
	unsigned long long value = 0;

	if (file) {
		if (fscanf(file, "%llu", &value) != 1)
			value = 0;
		fclose(file);
	}
	return value;
}

/* With the directory that they are counted in. */
static inline uint64_t open_files(void)
{
	DIR *files = opendir("/proc/self/fd");
	struct dirent *entry;
	uint64_t count = 0;

	while (files && (entry = readdir(files)))
		count += entry->d_name[0] != '.';
	if (files)
		closedir(files);
	return count;
}

/* A page fault each. */
static inline void touch_pages(int pages)
{
	char *memory = mmap(NULL, (size_t)pages * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	madvise(memory, (size_t)pages * 4096, MADV_NOHUGEPAGE);
	for (int i = 0; i < pages; i++)
		((volatile char *)memory)[(size_t)i * 4096] = 1;
	munmap(memory, (size_t)pages * 4096);
}

/* This thread's time as the kernel's ticks count it: by a whole tick, each time that one finds the thread running.  For what
 * waits for such a tick, as CPU timers do: beside others a thread may run 50 ms between two.  (The clock's name is made as
 * pthread_getcpuclockid makes its own: of this thread, and of the kernel's CPUCLOCK_PROF.  Where the kernel was built to
 * count each switch, it goes on between ticks too.) */
#define CLOCK_THREAD_TICKS ((clockid_t)-4)

/* Whether there is time for everything (scripts/prove). */
static inline bool is_long(void)
{
	return getenv("PERFRING_PROVE") != NULL;
}

/* Seconds that a storm takes, and the measure of all that is random: PERFRING_SOAK; without it 1, and 16 in the long form. */
static inline double soak_seconds(void)
{
	const char *text = getenv("PERFRING_SOAK");

	if (text)
		return strtod(text, NULL);
	return is_long() ? 16 : 1;
}

/* Of places that are tried one by one, where the release build tries each: the sanitizers' builds try every fifth. */
static inline unsigned stride(void)
{
	return IS_SANITIZED && !is_long() ? 5 : 1;
}

/* How many of `all` random trials are made: all of them in 4 seconds and more, and a share in less. */
static inline unsigned trials(unsigned all)
{
	double seconds = soak_seconds();
	unsigned share = seconds < 4 ? (unsigned)(all * seconds / 4) : all;

	return share ? share : 1;
}

/* Whether a forked child finds no 1 in memory so advised. */
static inline bool is_kept_from_child(int advice)
{
	size_t size = (size_t)sysconf(_SC_PAGESIZE);
	volatile int *word = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *page = (void *)(uintptr_t)word;
	int status = -1;
	pid_t child;

	if (page == MAP_FAILED)
		return false;
	*word = 1;
	if (madvise(page, size, advice) == 0) {
		child = fork();
		if (child == 0)
			_exit(msync(page, size, MS_ASYNC) == 0 && *word);
		waitpid(child, &status, 0);
	}
	munmap(page, size);
	return status == 0;
}

/* Whether a robust mutex tells that the process that held it has ended. */
static inline bool deaths_are_seen(void)
{
	pthread_mutex_t *held = mmap(NULL, sizeof(*held), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_mutexattr_t attr;
	pid_t child;
	int error;

	if (held == MAP_FAILED)
		return false;
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(held, &attr);
	child = fork();
	if (child == 0)
		_exit(pthread_mutex_lock(held));
	waitpid(child, NULL, 0);
	error = pthread_mutex_trylock(held);
	/* While it is locked, this thread's robust list leads through it. */
	if (error == EOWNERDEAD)
		pthread_mutex_consistent(held);
	if (error == 0 || error == EOWNERDEAD)
		pthread_mutex_unlock(held);
	munmap(held, sizeof(*held));
	return error == EOWNERDEAD;
}

#endif
