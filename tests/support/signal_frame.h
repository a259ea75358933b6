/* signal_frame.h - what the kernel's signal frame takes of a stack. */
#ifndef SIGNAL_FRAME_H
#define SIGNAL_FRAME_H

#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include "test.h"

static volatile uintptr_t signal_frame_low;

static inline void signal_frame_mark(int number)
{
	(void)number;
	signal_frame_low = (uintptr_t)__builtin_frame_address(0);
}

/* Bytes, as they are now, within 64.  AT_MINSIGSTKSZ is the largest: it has 8 KiB of AMX, which a process must ask for. */
static inline size_t signal_frame_size(void)
{
	static unsigned char stack[65536];
	stack_t alternate = {.ss_sp = stack, .ss_size = sizeof(stack)}, before;
	struct sigaction mark = {.sa_handler = signal_frame_mark, .sa_flags = SA_ONSTACK}, old;

	cr_assert_eq(sigaltstack(&alternate, &before), 0);
	cr_assert_eq(sigaction(SIGUSR2, &mark, &old), 0);
	cr_assert_eq(raise(SIGUSR2), 0);
	cr_assert_eq(sigaction(SIGUSR2, &old, NULL), 0);
	cr_assert_eq(sigaltstack(&before, NULL), 0);
	cr_assert_lt(signal_frame_low - (uintptr_t)stack, sizeof(stack));
	return (uintptr_t)stack + sizeof(stack) - signal_frame_low;
}

#endif
