/* stack.c - the stack that the clocks' handler runs on.
 *
 * A tick may interrupt a thread on a stack of any size.  A coroutine's may have 8 KiB, of which the kernel's signal frame takes
 * 3376 bytes with AVX-512.  So a thread that joins without an alternate signal stack gets one:
 *
 *     low                                                                high
 *     |          guard page           |              STACK              |
 *
 *     the program has one       it is never replaced.  Ticks use it, and are missed if it has less than TICK_STACK bytes left.
 *                               If it is smaller than the kernel's frame (AT_MINSIGSTKSZ), any signal on it ends the process
 *     it sets one later         likewise; ours is unmapped when the thread leaves
 *     the program's handlers    with SA_ONSTACK use ours.  It is SS_AUTODISARM, so a handler that was left by a jump, or
 *                               suspended by swapcontext, is not overwritten.  After that the thread has none: ticks use the
 *                               interrupted stack, if it is the thread's own and has TICK_STACK bytes
 *     fork                      the child keeps its thread's; those of other threads are unmapped
 *     exec, thread creation     the kernel resets it
 */
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "soft_private.h"

#ifndef SS_AUTODISARM
#define SS_AUTODISARM (1U << 31)
#endif

/* Bytes for a tick below its signal frame, with 1 KiB for a handler (set_handler).  A group read, a chain, registers and the
 * stack take 1.3 KB; several times as much without optimisation or with a sanitizer. */
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define TICK_STACK 3072u
#else
#define TICK_STACK 10240u
#endif

enum {
	STACK = 65536,
};

static size_t guard; /* bytes; set by the first thread that joins */

/* The thread's, also when it has not joined: after fork it joins again. */
static __thread unsigned char *mine __attribute__((tls_model("initial-exec")));

static bool set(void *low)
{
	stack_t wanted = {.ss_sp = low, .ss_size = STACK, .ss_flags = (int)SS_AUTODISARM};

	if (!sigaltstack(&wanted, NULL))
		return true;
	wanted.ss_flags = 0; /* the kernel does not know SS_AUTODISARM */
	return !sigaltstack(&wanted, NULL);
}

static void unmap(unsigned char *stack)
{
	munmap(stack - guard, guard + STACK);
}

/* Without memory the thread has none. */
void perfring__soft_stack_make(struct soft_thread *thread)
{
	unsigned char *low;
	stack_t now;

	guard = (size_t)sysconf(_SC_PAGESIZE);
	if (sigaltstack(NULL, &now))
		return;
	if (!(now.ss_flags & SS_DISABLE)) {
		if (mine && now.ss_sp == mine) /* it joins again after fork */
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

void perfring__soft_stack_free(struct soft_thread *thread)
{
	stack_t none = {.ss_flags = SS_DISABLE}, now;
	unsigned char *stack = thread->stack;

	thread->stack = NULL;
	if (!stack || is_on((uintptr_t)__builtin_frame_address(0), stack)) /* left by pthread_exit: it stays */
		return;
	if (!sigaltstack(NULL, &now) && !(now.ss_flags & SS_DISABLE) && now.ss_sp == stack)
		sigaltstack(&none, NULL);
	mine = NULL;
	unmap(stack);
}

void perfring__soft_stacks_forget(void)
{
	for (struct soft_thread *thread = perfring__soft_threads; thread; thread = thread->next) {
		if (thread->stack && thread->stack != mine)
			unmap(thread->stack);
		thread->stack = NULL;
	}
}

bool perfring__soft_stack_fits(const struct soft_thread *thread, const stack_t *alternate)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0), low = (uintptr_t)alternate->ss_sp;

	if (!(alternate->ss_flags & SS_DISABLE) && here - low < alternate->ss_size)
		return here - low >= TICK_STACK;
	if (is_on(here, thread->stack)) /* after a handler of the program */
		return here - (uintptr_t)thread->stack >= TICK_STACK;
	/* Other stacks, as coroutines', have unknown bounds. */
	return here < thread->stack_high && here >= thread->stack_low && here - thread->stack_low >= TICK_STACK;
}
