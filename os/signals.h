/* signals.h - blocking of signals while no handler may run.
 *
 * rb/set.c and soft/ hold a lock, or change state that handlers read, between block and pthread_sigmask(SIG_SETMASK).
 */
#ifndef PERFRING_OS_SIGNALS_H
#define PERFRING_OS_SIGNALS_H

#include <signal.h>
#include <stddef.h>

/* All signals except those that an instruction raises: blocked, a fault would end the process despite its handler, and so would
 * each system call in a sandbox that answers by SIGSYS.  Context: also signal handlers. */
static inline void perfring__os_signals_fill(sigset_t *all)
{
	static const int synchronous[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS};

	sigfillset(all);
	for (size_t i = 0; i < sizeof(synchronous) / sizeof(synchronous[0]); i++)
		sigdelset(all, synchronous[i]);
}

/* Blocks these.  Context: also signal handlers. */
static inline void perfring__os_signals_block(sigset_t *before)
{
	sigset_t all;

	perfring__os_signals_fill(&all);
	pthread_sigmask(SIG_BLOCK, &all, before);
}

#endif
