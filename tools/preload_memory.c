/* preload_memory.c - libperfring_preload.so's own memory: each allocation is a mapping.
 *
 * The object runs inside the program's calls, also in the child of a fork that a handler made: the C library's heap may be
 * half changed there.  So this object allocates nothing from it.  A mapping needs no lock and no state, and the library's
 * allocations are few and large.
 *
 * Linked with --wrap (CMakeLists.txt).  Memory that the C library allocated and returned is freed by the C library.
 */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ALIGNED = 64 }; /* no less is asked for, and no piece begins where the C library's do by chance alone: `mark` */

/* Right before the piece. */
struct head {
	size_t mapped;
	size_t size;
	uintptr_t mark;
};

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__wrap_reallocarray(void *old, size_t count, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t most);
void __wrap_free(void *piece);
void __real_free(void *piece);
void *__real_realloc(void *old, size_t size);

static struct head *head_of(void *piece)
{
	return (struct head *)piece - 1;
}

static uintptr_t mark_of(const void *piece)
{
	return (uintptr_t)piece ^ (uintptr_t)UINT64_C(0x9e3779b97f4a7c15);
}

/* The C library's pieces have two words before them. */
static bool is_ours(void *piece)
{
	return !((uintptr_t)piece % ALIGNED) && head_of(piece)->mark == mark_of(piece);
}

static void *page_of(void *piece)
{
	return (void *)((uintptr_t)piece & ~(uintptr_t)(sysconf(_SC_PAGESIZE) - 1));
}

/* alignment: a power of two, up to half a page. */
static void *take(size_t alignment, size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), before = alignment > ALIGNED ? alignment : ALIGNED, mapped;
	char *mapping, *piece;

	if (size > PTRDIFF_MAX - 2 * page || before > page / 2) {
		errno = ENOMEM;
		return NULL;
	}
	mapped = (before + size + page - 1) / page * page;
	mapping = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (mapping == MAP_FAILED)
		return NULL;
	piece = mapping + before;
	*head_of(piece) = (struct head){.mapped = mapped, .size = size, .mark = mark_of(piece)};
	return piece;
}

void *__wrap_malloc(size_t size)
{
	return take(ALIGNED, size);
}

void *__wrap_calloc(size_t count, size_t size)
{
	if (__builtin_mul_overflow(count, size, &size)) {
		errno = ENOMEM;
		return NULL;
	}
	return take(ALIGNED, size); /* what is mapped is zero */
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
	return take(alignment, size);
}

void *__wrap_realloc(void *old, size_t size)
{
	struct head *head;
	void *grown;

	if (!old)
		return take(ALIGNED, size);
	if (!is_ours(old))
		return __real_realloc(old, size);
	head = head_of(old);
	if (size <= (size_t)((char *)page_of(old) + head->mapped - (char *)old)) {
		head->size = size;
		return old;
	}
	grown = take(ALIGNED, size);
	if (!grown)
		return NULL;
	memcpy(grown, old, head->size);
	__wrap_free(old);
	return grown;
}

void *__wrap_reallocarray(void *old, size_t count, size_t size)
{
	if (__builtin_mul_overflow(count, size, &size)) {
		errno = ENOMEM;
		return NULL;
	}
	return __wrap_realloc(old, size);
}

char *__wrap_strndup(const char *text, size_t most)
{
	size_t length = strnlen(text, most);
	char *copy = take(ALIGNED, length + 1);

	return copy ? memcpy(copy, text, length) : NULL;
}

char *__wrap_strdup(const char *text)
{
	return __wrap_strndup(text, SIZE_MAX);
}

void __wrap_free(void *piece)
{
	int saved = errno;

	if (!piece)
		return;
	if (is_ours(piece))
		munmap(page_of(piece), head_of(piece)->mapped);
	else
		__real_free(piece);
	errno = saved;
}
