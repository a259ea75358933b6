/* machine.c - what a reader of perf.data asks the system for, without asking it: its file, and the blocks to read it into.
 *
 * Under a sanitizer, a block of the allocator's is mapped, poisoned and unmapped again, and a file takes a dozen system
 * calls: ten times as long as reading it.  And this system does on demand what another does once in a year.
 *
 * Linked with --wrap of all that is here.  A block that is not in use is poisoned, and so is a gap after each. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef PERFRING_HAS_ZSTD
#define ZSTD_STATIC_LINKING_ONLY /* another allocator */
#include <zstd.h>
#endif
#include "machine.h"
#ifndef __has_feature
#define __has_feature(feature) 0
#endif
#if __has_feature(address_sanitizer) || defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/lsan_interface.h>
#else
#define __lsan_register_root_region(begin, size) ((void)(begin), (void)(size))
#define ASAN_POISON_MEMORY_REGION(begin, size) ((void)(begin), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(begin, size) ((void)(begin), (void)(size))
#endif

enum {
	FD = 1 << 24, /* more than any system has */
	LARGEST = 1 << 20,
	STRIDE = 2 * LARGEST,
	BLOCKS = 16,
	LONGEST = 1 << 16, /* of a fuzzer's file, and of what it holds */
};

void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
void __real_free(void *memory);
void __wrap_free(void *memory);
int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __real_fstat(int fd, struct stat *file);
int __wrap_fstat(int fd, struct stat *file);
ssize_t __real_read(int fd, void *buffer, size_t size);
ssize_t __wrap_read(int fd, void *buffer, size_t size);
ssize_t __real_pread(int fd, void *buffer, size_t size, off_t at);
ssize_t __wrap_pread(int fd, void *buffer, size_t size, off_t at);
int __real_close(int fd);
int __wrap_close(int fd);

/* ---- the file ---- */

static unsigned char filling;

static struct {
	const unsigned char *bytes;
	size_t size;
	size_t at; /* in a pipe */
	bool is_pipe;
	enum machine_mood mood;
	unsigned with;
	unsigned reads;
	unsigned opened;
} file;

void machine_set(const void *bytes, size_t size, bool is_pipe, enum machine_mood mood, unsigned with)
{
	memset(&file, 0, sizeof(file));
	filling ^= 0xff;
	file.bytes = bytes;
	file.size = size;
	file.is_pipe = is_pipe;
	file.mood = mood;
	file.with = with;
}

static ssize_t take(void *buffer, size_t size, uint64_t at)
{
	unsigned number = file.reads++;
	size_t left = at < file.size ? file.size - (size_t)at : 0;

	if (!file.opened)
		abort();
	if (file.mood == MACHINE_SIGNAL && number % 2 == 0) {
		errno = EINTR;
		return -1;
	}
	if (file.mood == MACHINE_FAULT && number >= file.with % 16) {
		errno = EIO;
		return -1;
	}
	if (file.mood == MACHINE_SHORT && size > 1 + file.with % 61)
		size = 1 + file.with % 61;
	if (size > left)
		size = left;
	if (size)
		memcpy(buffer, file.bytes + at, size);
	return (ssize_t)size;
}

int __wrap_open(const char *path, int flags, ...)
{
	va_list more;
	mode_t mode;

	if (!strcmp(path, MACHINE_PATH)) {
		file.opened++;
		return FD;
	}
	va_start(more, flags);
	mode = flags & O_CREAT ? va_arg(more, mode_t) : 0;
	va_end(more);
	return __real_open(path, flags, mode);
}

int __wrap_fstat(int fd, struct stat *status)
{
	if (fd != FD)
		return __real_fstat(fd, status);
	memset(status, 0, sizeof(*status));
	status->st_mode = file.is_pipe ? S_IFIFO | 0600 : S_IFREG | 0600;
	status->st_size = file.is_pipe ? 0 : (off_t)(file.size + (file.mood == MACHINE_CUT ? file.with : 0));
	return 0;
}

ssize_t __wrap_read(int fd, void *buffer, size_t size)
{
	ssize_t got;

	if (fd != FD)
		return __real_read(fd, buffer, size);
	if (!file.is_pipe) /* whose place is not known */
		abort();
	got = take(buffer, size, file.at);
	file.at += got > 0 ? (size_t)got : 0;
	return got;
}

ssize_t __wrap_pread(int fd, void *buffer, size_t size, off_t at)
{
	if (fd != FD)
		return __real_pread(fd, buffer, size, at);
	if (file.is_pipe || at < 0) {
		errno = file.is_pipe ? ESPIPE : EINVAL;
		return -1;
	}
	return take(buffer, size, (uint64_t)at);
}

int __wrap_close(int fd)
{
	if (fd != FD)
		return __real_close(fd);
	if (!file.opened)
		abort();
	file.opened--;
	return 0;
}

/* ---- blocks ---- */

static unsigned char *blocks;
static size_t sizes[BLOCKS];
static bool is_used[BLOCKS];
static unsigned used, last;

static size_t least(size_t one, size_t other)
{
	return one < other ? one : other;
}

static void reserve(void)
{
	unsigned char *memory = mmap(NULL, (BLOCKS + 1) * (size_t)STRIDE, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (memory == MAP_FAILED)
		abort();
	blocks = memory + (STRIDE - (uintptr_t)memory % STRIDE);
}

/* In turn, so that one that was left stays poisoned for a while. */
void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
	unsigned char *block;

	if (alignment > STRIDE || size > LARGEST || !size || used == BLOCKS)
		return __real_aligned_alloc(alignment, size);
	if (!blocks)
		reserve();
	do
		last = (last + 1) % BLOCKS;
	while (is_used[last]);
	used++;
	is_used[last] = true;
	block = blocks + last * (size_t)STRIDE;
	if (sizes[last] != size) {
		ASAN_POISON_MEMORY_REGION(block, STRIDE);
		ASAN_UNPOISON_MEMORY_REGION(block, size);
		sizes[last] = size;
	}
	ASAN_UNPOISON_MEMORY_REGION(block, least(size, LONGEST));
	/* what was not written is another thing in the next file, and must not matter */
	memset(block, filling, least(size, 4096));
	return block;
}

void __wrap_free(void *memory)
{
	uintptr_t place = (uintptr_t)memory - (uintptr_t)blocks;

	if (!memory)
		return;
	if (!blocks || place >= BLOCKS * (size_t)STRIDE) {
		__real_free(memory);
		return;
	}
	if (place % STRIDE || !is_used[place / STRIDE])
		abort();
	ASAN_POISON_MEMORY_REGION(memory, least(sizes[place / STRIDE], LONGEST));
	is_used[place / STRIDE] = false;
	used--;
}

/* ---- zstd ---- */

static bool is_inflating;
static unsigned kept; /* blocks of the inflater's, between two files */

#ifdef PERFRING_HAS_ZSTD
ZSTD_DCtx *__wrap_ZSTD_createDCtx(void);
size_t __wrap_ZSTD_freeDCtx(ZSTD_DCtx *left);

static ZSTD_DCtx *inflater;

static void *take_block(void *opaque, size_t size)
{
	unsigned before = used;
	void *block = __wrap_aligned_alloc(64, (size + 63) / 64 * 64);

	(void)opaque;
	kept += used - before;
	return block;
}

static void leave_block(void *opaque, void *block)
{
	unsigned before = used;

	(void)opaque;
	__wrap_free(block);
	kept -= before - used;
}

/* One as good as new: a new one asks what processor this is, and under a hypervisor that takes as long as a file. */
ZSTD_DCtx *__wrap_ZSTD_createDCtx(void)
{
	if (is_inflating)
		abort();
	if (!inflater) {
		inflater = ZSTD_createDCtx_advanced((ZSTD_customMem){take_block, leave_block, NULL});
		/* that of an old format it allocates past these */
		__lsan_register_root_region(inflater, ZSTD_sizeof_DCtx(inflater));
	}
	ZSTD_DCtx_reset(inflater, ZSTD_reset_session_and_parameters);
	is_inflating = true;
	return inflater;
}

size_t __wrap_ZSTD_freeDCtx(ZSTD_DCtx *left)
{
	if (left && (left != inflater || !is_inflating))
		abort();
	is_inflating = is_inflating && !left;
	return 0;
}
#endif

bool machine_is_idle(void)
{
	return used == kept && !file.opened && !is_inflating;
}

/* A fuzzer's allocations are many, small and gone at once.  ASAN_OPTIONS in the environment goes before. */
const char *__asan_default_options(void);

const char *__asan_default_options(void)
{
	return "quarantine_size_mb=8:malloc_context_size=2:max_malloc_fill_size=256";
}
