/* access.h - every shared access that perfring makes: between threads, processes and kernel, and between a thread and
 * the signal handlers that interrupt it.
 *
 * A test or a checker of memory orders replaces them: it defines PERFRING_ACCESS and its own of each before it includes
 * the first perfring header.
 *
 * Two families.
 *   shared: another CPU looks.  Orders are C11's, and each use names its partner.
 *   local:  only signal handlers of the same thread look.  A handler runs to its end between two instructions of the
 *           thread, so one instruction is atomic and program order is order enough: only the compiler must be held,
 *           and a read-modify-write needs no lock prefix, which makes a writer cheap.  Under a sanitizer, which cannot
 *           see through assembly, and on other processors: the same by C11 atomics.
 */
#ifndef PERFRING_ACCESS_H
#define PERFRING_ACCESS_H

#include <perfring/base.h>

PERFRING_BEGIN

#ifndef PERFRING_ACCESS

/* ---- shared ---- */

#define PERFRING_LOAD_ACQUIRE(word) __atomic_load_n((word), __ATOMIC_ACQUIRE)
#define PERFRING_STORE_RELEASE(word, value) __atomic_store_n((word), (value), __ATOMIC_RELEASE)

/* No order: the use says why none is needed. */
#define PERFRING_LOAD(word) __atomic_load_n((word), __ATOMIC_RELAXED)
#define PERFRING_STORE(word, value) __atomic_store_n((word), (value), __ATOMIC_RELAXED)

/* Read-modify-writes of several CPUs: each gives what was there.  Sequentially consistent: who looks by LOAD_ORDERED after
 * one of them sees what another had stored by one of them before it looked in its turn, or is seen. */
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

/* Another thread is waited for: the processor may do something else meanwhile. */
#if defined(__x86_64__) || defined(__i386__)
#define PERFRING_RELAX() __builtin_ia32_pause()
#elif defined(__aarch64__)
#define PERFRING_RELAX() __asm__ volatile("isb" : : : "memory")
#else
#define PERFRING_RELAX() __asm__ volatile("" : : : "memory")
#endif

/* ---- local: this thread and its signal handlers ---- */

/* The compiler moves nothing across. */
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

/* One unlocked xadd: gives what was there. */
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

/* One unlocked cmpxchg: whether `expected` was there, and `value` is there now. */
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
#define PERFRING_SWAP_LOCAL(word, expected, value) perfring_access_compare_exchange_local((word), (expected), (value))

#endif /* PERFRING_ACCESS */

/* A place where a race may strike.  A test that defines this strikes there (a signal, a kill, a second writer). */
#ifndef PERFRING_POINT
#define PERFRING_POINT(name) ((void)0)
#endif

PERFRING_END

#endif
