/* far_stack.h - what tests of stacks that are not the thread's own need. */
#ifndef FAR_STACK_H
#define FAR_STACK_H

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>
#include "test.h"

/* Whether another stack than the thread's own can be read. */
static inline void needs_far(void)
{
	uint64_t from = 1, to;
	struct iovec local = {&to, 8}, remote = {&from, 8};

	if (process_vm_readv(getpid(), &local, 1, &remote, 1, 0) != 8)
		cr_skip_test("SKIP-ENV: process_vm_readv: %s: a kernel that has it, or a filter that lets it through",
			     strerror(errno));
}

#endif
