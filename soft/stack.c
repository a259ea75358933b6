/* stack.c - the stack that the clocks' handler runs on.
 *
 * A thread may stand on a stack of any size when a tick comes: a coroutine's may be of 8 KiB, of which the kernel's signal
 * frame alone takes 3376 bytes where there is AVX-512.  So a thread that joins and has no alternate signal stack gets one:
 *
 *     low                                                                high
 *     | a page that nothing may touch |              STACK              |
 *
 *     the program has one          it is never replaced.  Ticks stand on it, and are missed where less than ROOM of it is
 *                                  free.  One smaller than the kernel's frame (AT_MINSIGSTKSZ) ends the process with any
 *                                  signal that comes there, as the program's own would
 *     it sets one later            likewise; ours is unmapped when the thread leaves
 *     a handler of the program's   with SA_ONSTACK stands on ours: it is SS_AUTODISARM, so one that is left by a jump, or
 *                                  suspended by swapcontext, is not written over.  From then on there is none, and ticks
 *                                  stand on what they interrupt: only on the thread's own stack, and where there is ROOM
 *     fork                         the child stands on what its parent's thread stood on, and keeps that; others' go
 *     exec, thread's birth         the kernel forgets it
 */
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "soft_private.h"

#ifndef SS_AUTODISARM
#define SS_AUTODISARM (1U << 31)
#endif

/* Bytes that a tick is given, below its signal frame.  With a group read, a chain, registers and the stack it was measured to
 * take 1.3 KB; several times as much where nothing is optimized, or a sanitizer watches. */
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define ROOM 3072u
#else
#define ROOM 10240u
#endif

enum {
	STACK = 65536,
};

static size_t guard; /* bytes; by the first thread that joins */

/* Of this thread, also while it takes no part: after a fork it joins again. */
static __thread unsigned char *mine __attribute__((tls_model("initial-exec")));

static bool set(void *low)
{
	stack_t wanted = {.ss_sp = low, .ss_size = STACK, .ss_flags = (int)SS_AUTODISARM};

	if (!sigaltstack(&wanted, NULL))
		return true;
	wanted.ss_flags = 0; /* where SS_AUTODISARM is not known */
	return !sigaltstack(&wanted, NULL);
}

static void unmap(unsigned char *stack)
{
	munmap(stack - guard, guard + STACK);
}

/* Without memory for it there is none: ticks stand where a program without one has them. */
void perfring_soft_stack_make(struct soft_thread *thread)
{
	unsigned char *low;
	stack_t now;

	guard = (size_t)sysconf(_SC_PAGESIZE);
	if (sigaltstack(NULL, &now))
		return;
	if (!(now.ss_flags & SS_DISABLE)) {
		if (mine && now.ss_sp == mine) /* over a fork */
			thread->stack = mine;
		return;
	}
	low = mmap(NULL, guard + STACK, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (low == MAP_FAILED)
		return;
	low += guard;
	if (mprotect(low, STACK, PROT_READ | PROT_WRITE) || !set(low)) {
		unmap(low);
		return;
	}
	thread->stack = mine = low;
}

static bool is_on(uintptr_t here, const unsigned char *stack)
{
	return stack && here - (uintptr_t)stack < STACK;
}

void perfring_soft_stack_free(struct soft_thread *thread)
{
	stack_t none = {.ss_flags = SS_DISABLE}, now;
	unsigned char *stack = thread->stack;

	thread->stack = NULL;
	if (!stack || is_on((uintptr_t)__builtin_frame_address(0), stack)) /* pthread_exit in a handler: it stays */
		return;
	if (!sigaltstack(NULL, &now) && !(now.ss_flags & SS_DISABLE) && now.ss_sp == stack)
		sigaltstack(&none, NULL);
	mine = NULL;
	unmap(stack);
}

void perfring_soft_stacks_forget(void)
{
	for (struct soft_thread *thread = perfring_soft_threads; thread; thread = thread->next) {
		if (thread->stack && thread->stack != mine)
			unmap(thread->stack);
		thread->stack = NULL;
	}
}

bool perfring_soft_stack_fits(const struct soft_thread *thread, const stack_t *alternate)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0), low = (uintptr_t)alternate->ss_sp;

	if (!(alternate->ss_flags & SS_DISABLE) && here - low < alternate->ss_size)
		return here - low >= ROOM;
	if (is_on(here, thread->stack)) /* over a handler of the program's */
		return here - (uintptr_t)thread->stack >= ROOM;
	/* Of other stacks, coroutines', nothing is known. */
	return here < thread->stack_high && here >= thread->stack_low && here - thread->stack_low >= ROOM;
}
