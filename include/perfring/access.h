/* access.h - every access of perfring to memory that another CPU, or a signal handler of the same thread, accesses too.
 *
 * perfring's rings, writers and readers use them; programs do not need them.  A test or a checker of memory orders
 * (tests/checks/mc_orders.h) replaces them: it defines PERFRING_ACCESS and its own of each before the first perfring header.
 *
 *   shared  between threads, processes and the kernel.  Orders are C11's, and a comment at each use names its partner.
 *   local   between a thread and the signal handlers that interrupt it.  A handler runs to its end between two instructions of the
 *           thread: one instruction is atomic, and program order is enough.  So only the compiler must not reorder, and a
 *           read-modify-write needs no lock prefix.  Under a sanitizer, which does not understand assembly, and on other
 *           processors than x86-64: the same by C11 atomics.
 */
#ifndef PERFRING_ACCESS_H
#define PERFRING_ACCESS_H

#include <perfring/base.h>

PERFRING_BEGIN

#ifndef PERFRING_ACCESS

/* ---- shared ---- */

#define PERFRING_LOAD_ACQUIRE(word) __atomic_load_n((word), __ATOMIC_ACQUIRE)
#define PERFRING_STORE_RELEASE(word, value) __atomic_store_n((word), (value), __ATOMIC_RELEASE)

/* Without order: a comment at the use says why none is needed. */
#define PERFRING_LOAD(word) __atomic_load_n((word), __ATOMIC_RELAXED)
#define PERFRING_STORE(word, value) __atomic_store_n((word), (value), __ATOMIC_RELAXED)

/* Read-modify-writes by several CPUs; each returns the old value.  Sequentially consistent: of two threads that each store by one of
 * these and then load the other's word by LOAD_ORDERED, at least one sees the other's store. */
#define PERFRING_LOAD_ORDERED(word) __atomic_load_n((word), __ATOMIC_SEQ_CST)
#define PERFRING_ADD(word, value) __atomic_fetch_add((word), (value), __ATOMIC_SEQ_CST)
#define PERFRING_AND(word, bits) __atomic_fetch_and((word), (bits), __ATOMIC_SEQ_CST)
#define PERFRING_OR(word, bits) __atomic_fetch_or((word), (bits), __ATOMIC_SEQ_CST)
#define PERFRING_EXCHANGE(word, value) __atomic_exchange_n((word), (value), __ATOMIC_SEQ_CST)
/* Stores `value` if the word equals *expected; else stores the word into *expected and returns false. */
#define PERFRING_COMPARE_EXCHANGE(word, expected, value) \
	__atomic_compare_exchange_n((word), (expected), (value), false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)

/* A full barrier; one that orders earlier stores before later stores (the writer's half of a sequence lock); one that orders
 * earlier loads before later loads (the reader's half). */
#define PERFRING_FENCE() __atomic_thread_fence(__ATOMIC_SEQ_CST)
#define PERFRING_FENCE_STORES() __atomic_thread_fence(__ATOMIC_RELEASE)
#define PERFRING_FENCE_LOADS() __atomic_thread_fence(__ATOMIC_ACQUIRE)

/* For a loop that waits for another thread: the processor spends less on it. */
#if defined(__x86_64__) || defined(__i386__)
#define PERFRING_RELAX() __builtin_ia32_pause()
#elif defined(__aarch64__)
#define PERFRING_RELAX() __asm__ volatile("isb" : : : "memory")
#else
#define PERFRING_RELAX() __asm__ volatile("" : : : "memory")
#endif

/* ---- local: this thread and its signal handlers ---- */

/* A barrier for the compiler only. */
#define PERFRING_FENCE_LOCAL() __atomic_signal_fence(__ATOMIC_SEQ_CST)

#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__) && !defined(PERFRING_PORTABLE)
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define PERFRING_PORTABLE 1
#endif
#endif
#else
#define PERFRING_PORTABLE 1
#endif

/* One unlocked xadd.  Returns the old value. */
PERFRING_INNER uint64_t perfring_access_add_local(uint64_t *word, uint64_t value)
{
#ifndef PERFRING_PORTABLE
	__asm__ volatile("xaddq %0, %1" : "+r"(value), "+m"(*word) : : "memory", "cc");
#else
	PERFRING_FENCE_LOCAL();
	value = __atomic_fetch_add(word, value, __ATOMIC_RELAXED);
	PERFRING_FENCE_LOCAL();
#endif
	return value;
}

/* One unlocked cmpxchg.  Returns whether the word was `expected`; then it is `value` now. */
PERFRING_INNER bool perfring_access_compare_exchange_local(uint64_t *word, uint64_t expected, uint64_t value)
{
	bool swapped;

#ifndef PERFRING_PORTABLE
	__asm__ volatile("cmpxchgq %3, %1" : "=@ccz"(swapped), "+m"(*word), "+a"(expected) : "r"(value) : "memory");
#else
	PERFRING_FENCE_LOCAL();
	swapped = __atomic_compare_exchange_n(word, &expected, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	PERFRING_FENCE_LOCAL();
#endif
	return swapped;
}

#define PERFRING_ADD_LOCAL(word, value) perfring_access_add_local((word), (value))
#define PERFRING_COMPARE_EXCHANGE_LOCAL(word, expected, value) \
	perfring_access_compare_exchange_local((word), (expected), (value))

#endif /* PERFRING_ACCESS */

/* Marks a place between two accesses where an interruption matters.  Nothing in a normal build; a test defines it to send a signal,
 * kill the thread or run a second writer there (tests/checks/step.c). */
#ifndef PERFRING_POINT
#define PERFRING_POINT(name) ((void)0)
#endif

PERFRING_END

#endif
