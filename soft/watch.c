/* watch.c - spans that another process watches for: those that last longer than it asked for are counted in memory of both.
 *
 * The functions perfring_soft_watch_ of soft.h, and what point.c asks for each new point.  The memory is a file, which its maker
 * removes; the program maps it when its first point is defined, and writes counts alone.  Nothing else of it is believed later: limits
 * are copied.  A span's end makes no system call.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "soft_private.h"

#define MAGIC UINT64_C(0x68637461776e7073) /* "spnwatch" */

/* One name, and how many of its spans were longer than `limit` ns. */
struct watched {
	char name[PERFRING_SOFT_NAME_MAX + 1];
	uint64_t limit;
	perfring_u64 count; /* shared: added to by the programs, loaded by the maker; relaxed, as no other memory depends on it */
};

struct page {
	uint64_t magic;
	uint32_t version;
	uint32_t count;
	struct watched watched[PERFRING_SOFT_WATCHES_MAX];
};

/* ---- the observer ---- */

struct perfring_soft_watch {
	struct page *page;
	uint32_t count; /* page->count is for the programs, which may write into it */
	char path[64];
};

static int make_file(char *path, size_t size)
{
	static const char *const folders[] = {"/dev/shm", "/tmp"};
	int fd = -1;

	for (size_t i = 0; fd < 0 && i < sizeof(folders) / sizeof(*folders); i++) {
		snprintf(path, size, "%s/perfring-spans.XXXXXX", folders[i]);
		fd = mkostemp(path, O_CLOEXEC);
	}
	return fd < 0 ? -errno : fd;
}

int perfring_soft_watch_open(struct perfring_soft_watch **result)
{
	struct perfring_soft_watch *watch = calloc(1, sizeof(*watch));
	int fd, error = 0;

	*result = NULL;
	if (!watch)
		return -ENOMEM;
	fd = make_file(watch->path, sizeof(watch->path));
	if (fd < 0) {
		free(watch);
		return fd;
	}
	/* Space too: no store of a program may find the file system full. */
	error = -posix_fallocate(fd, 0, sizeof(*watch->page));
	watch->page = error ? MAP_FAILED : mmap(NULL, sizeof(*watch->page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (!error && watch->page == MAP_FAILED)
		error = -errno;
	close(fd);
	if (error) {
		unlink(watch->path);
		free(watch);
		return error;
	}
	watch->page->magic = MAGIC;
	watch->page->version = 1;
	*result = watch;
	return 0;
}

void perfring_soft_watch_close(struct perfring_soft_watch *watch)
{
	if (!watch)
		return;
	unlink(watch->path);
	munmap(watch->page, sizeof(*watch->page));
	free(watch);
}

int perfring_soft_watch_add(struct perfring_soft_watch *watch, const char *name, uint64_t ns)
{
	size_t length = strnlen(name, PERFRING_SOFT_NAME_MAX + 1);
	struct page *page = watch->page;
	struct watched *watched = &page->watched[watch->count];

	if (!length || length > PERFRING_SOFT_NAME_MAX)
		return -EINVAL;
	if (watch->count == PERFRING_SOFT_WATCHES_MAX)
		return -ENOSPC;
	memcpy(watched->name, name, length + 1);
	watched->limit = ns;
	page->count = ++watch->count;
	return (int)watch->count - 1;
}

const char *perfring_soft_watch_path(const struct perfring_soft_watch *watch)
{
	return watch->path;
}

uint64_t perfring_soft_watch_count(const struct perfring_soft_watch *watch, uint32_t i)
{
	return i < watch->count ? PERFRING_LOAD(&watch->page->watched[i].count) : 0;
}

/* ---- the program ---- */

/* perfring__soft_lock */
static struct page *page;
static uint32_t page_count;
static bool is_sought;

/* Maps the file that the environment names, if it is one of perfring_soft_watch_open, and of this user. */
static void seek(void)
{
	const char *path = secure_getenv(PERFRING_SOFT_WATCH);
	int fd = path ? open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY) : -1;
	struct page *mapped = MAP_FAILED;
	struct stat file;

	is_sought = true;
	if (fd < 0)
		return;
	if (!fstat(fd, &file) && S_ISREG(file.st_mode) && (uint64_t)file.st_size == sizeof(*page) &&
	    file.st_uid == geteuid())
		mapped = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (mapped == MAP_FAILED)
		return;
	if (mapped->magic != MAGIC || mapped->version != 1 || mapped->count > PERFRING_SOFT_WATCHES_MAX) {
		munmap(mapped, sizeof(*mapped));
		return;
	}
	page = mapped;
	page_count = mapped->count;
}

perfring_u64 *perfring__soft_watched(const char *name, uint64_t *limit)
{
	int saved = errno;

	if (!is_sought)
		seek();
	errno = saved;
	for (uint32_t i = 0; i < page_count; i++)
		if (!strncmp(page->watched[i].name, name, sizeof(page->watched[i].name))) {
			*limit = page->watched[i].limit;
			return &page->watched[i].count;
		}
	return NULL;
}
