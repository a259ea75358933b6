/* preload_filter.c - seccomp filters: which system calls of this object they let through.
 *
 * A filter may kill for a system call that this object makes and the program never does.  The wrapper sees the filter before
 * it is installed, and runs it here, by the rules of classic BPF, for each of these calls.  soft_source.c counts the recorder's own
 * filters.  A filter is the program's memory: read once, by a system call, and its steps are bounded by its length.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "preload.h"

#if defined(__x86_64__) && defined(__LP64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__) && defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define ARCH AUDIT_ARCH_AARCH64
#else
#define ARCH 0 /* not known: no filter that looks at it lets us through */
#endif

/* Found by strace, and in the code for rare paths: full queues, turns of grace periods.  With any arguments, and in each form
 * that the C library uses. */

/* What threads that join and leave, ticks, dlopen, a fork's child and the end of a process call. */
static const uint16_t OURS[] = {
	SYS_brk,
	SYS_clock_gettime,
	SYS_clock_nanosleep,
	SYS_close,
	SYS_connect,
	SYS_fallocate,
	SYS_fcntl,
	SYS_fstat,
	SYS_futex,
	SYS_getcpu,
	SYS_getpid,
	SYS_getppid,
	SYS_getrandom,
	SYS_gettid,
	SYS_madvise,
	SYS_membarrier,
	SYS_memfd_create,
	SYS_mmap,
	SYS_mprotect,
	SYS_munmap,
#ifdef SYS_newfstatat
	SYS_newfstatat,
#endif
	SYS_openat,
#ifdef SYS_poll
	SYS_poll,
#else
	SYS_ppoll,
#endif
	SYS_prctl,
	SYS_prlimit64,
	SYS_process_vm_readv,
	SYS_read,
	SYS_rt_sigaction,
	SYS_rt_sigprocmask,
	SYS_rt_sigreturn,
	SYS_rt_sigtimedwait,
	SYS_sched_getaffinity,
	SYS_sched_yield,
	SYS_sendmsg,
	SYS_sigaltstack,
	SYS_socket,
	SYS_tgkill,
	SYS_timer_create,
	SYS_timer_delete,
	SYS_timer_gettime,
	SYS_timer_settime,
};

/* And the thread that drains into a file, and the end of that. */
static const uint16_t DRAINS[] = {
#ifdef SYS_epoll_wait
	SYS_epoll_wait,
#else
	SYS_epoll_pwait,
#endif
	SYS_exit,
	SYS_ftruncate,
	SYS_pwrite64,
	SYS_pwritev,
	SYS_write,
	SYS_writev,
};

/* And to begin such a file: to make it, to write the machine's features, to start its thread. */
static const uint16_t BEGINS[] = {
#ifdef SYS_access
	SYS_access,
#endif
	SYS_clone,
#ifdef SYS_clone3
	SYS_clone3,
#endif
	SYS_epoll_create1,
	SYS_epoll_ctl,
	SYS_fstatfs,
	SYS_getdents64,
	SYS_lseek,
	SYS_pread64,
	SYS_readlinkat,
#ifdef SYS_rename
	SYS_rename,
#else
	SYS_renameat,
#endif
#ifdef SYS_rseq
	SYS_rseq,
#endif
	SYS_set_robust_list,
	SYS_uname,
#ifdef SYS_unlink
	SYS_unlink,
#else
	SYS_unlinkat,
#endif
};

/* ---- one run ---- */

struct machine {
	uint32_t a, x, memory[BPF_MEMWORDS];
};

/* Returns false for what no filter that the kernel takes has, and for words that are not known here: arguments, the
 * instruction's address. */
static bool load(struct machine *machine, const struct sock_filter *code, uint32_t number)
{
	uint32_t *to = BPF_CLASS(code->code) == BPF_LD ? &machine->a : &machine->x;

	switch (BPF_MODE(code->code)) {
	case BPF_IMM:
		*to = code->k;
		return true;
	case BPF_MEM:
		if (code->k >= BPF_MEMWORDS)
			return false;
		*to = machine->memory[code->k];
		return true;
	case BPF_LEN:
		*to = sizeof(struct seccomp_data);
		return true;
	case BPF_ABS:
		*to = code->k == offsetof(struct seccomp_data, nr) ? number : ARCH;
		return code->k == offsetof(struct seccomp_data, nr) ||
		       (ARCH && code->k == offsetof(struct seccomp_data, arch));
	default:
		return false;
	}
}

static bool compute(struct machine *machine, const struct sock_filter *code)
{
	uint32_t by = BPF_SRC(code->code) == BPF_X ? machine->x : code->k;

	switch (BPF_OP(code->code)) {
	case BPF_ADD:
		machine->a += by;
		return true;
	case BPF_SUB:
		machine->a -= by;
		return true;
	case BPF_MUL:
		machine->a *= by;
		return true;
	case BPF_DIV:
		machine->a = by ? machine->a / by : 0;
		return by;
	case BPF_AND:
		machine->a &= by;
		return true;
	case BPF_OR:
		machine->a |= by;
		return true;
	case BPF_XOR:
		machine->a ^= by;
		return true;
	case BPF_LSH:
		machine->a = by < 32 ? machine->a << by : 0;
		return by < 32;
	case BPF_RSH:
		machine->a = by < 32 ? machine->a >> by : 0;
		return by < 32;
	case BPF_NEG:
		machine->a = 0 - machine->a;
		return true;
	default:
		return false;
	}
}

/* By how many instructions it jumps. */
static uint32_t jump(const struct machine *machine, const struct sock_filter *code)
{
	uint32_t to = BPF_SRC(code->code) == BPF_X ? machine->x : code->k;

	switch (BPF_OP(code->code)) {
	case BPF_JEQ:
		return machine->a == to ? code->jt : code->jf;
	case BPF_JGT:
		return machine->a > to ? code->jt : code->jf;
	case BPF_JGE:
		return machine->a >= to ? code->jt : code->jf;
	case BPF_JSET:
		return machine->a & to ? code->jt : code->jf;
	default: /* BPF_JA */
		return code->k;
	}
}

/* Jumps only go forward: at most `count` steps. */
static bool allows(const struct sock_filter *code, uint32_t count, uint32_t number)
{
	struct machine machine = {0, 0, {0}};

	for (uint64_t at = 0; at < count; at++) {
		const struct sock_filter *now = &code[at];
		bool good = true;
		uint32_t action;

		switch (BPF_CLASS(now->code)) {
		case BPF_LD:
		case BPF_LDX:
			good = load(&machine, now, number);
			break;
		case BPF_ST:
		case BPF_STX:
			good = now->k < BPF_MEMWORDS;
			if (good)
				machine.memory[now->k] = BPF_CLASS(now->code) == BPF_ST ? machine.a : machine.x;
			break;
		case BPF_ALU:
			good = compute(&machine, now);
			break;
		case BPF_JMP:
			at += jump(&machine, now);
			break;
		case BPF_MISC:
			if (BPF_MISCOP(now->code) == BPF_TAX)
				machine.x = machine.a;
			else
				machine.a = machine.x;
			break;
		default: /* BPF_RET */
			action = (BPF_RVAL(now->code) == BPF_A ? machine.a : now->k) & SECCOMP_RET_ACTION_FULL;
			return action == SECCOMP_RET_ALLOW || action == SECCOMP_RET_LOG;
		}
		if (!good)
			return false;
	}
	return false;
}

/* ---- the program's ---- */

/* Reads the caller's memory: where a load would be killed, the kernel returns EFAULT. */
static bool copy(void *to, const void *from, size_t size)
{
	struct iovec here = {to, size}, there = {(void *)(uintptr_t)from, size};

	return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == (ssize_t)size;
}

static bool allows_all(const struct sock_filter *code, uint32_t length, const uint16_t *calls, size_t count)
{
	size_t i = 0;

	while (i < count && allows(code, length, calls[i]))
		i++;
	return i == count;
}

enum tool_filter_verdict tool_filter_judge(const void *program)
{
	enum tool_filter_verdict verdict = TOOL_FILTER_ALL;
	struct sock_fprog filter;
	struct sock_filter *code;
	size_t size;

	if (!program || !copy(&filter, program, sizeof(filter)) || !filter.len || filter.len > BPF_MAXINSNS)
		return TOOL_FILTER_ALL;
	size = filter.len * sizeof(*code);
	code = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (code == MAP_FAILED)
		return TOOL_FILTER_NOTHING;
#define ALLOWS(calls) allows_all(code, filter.len, calls, sizeof(calls) / sizeof((calls)[0]))
	if (copy(code, filter.filter, size))
		verdict = !ALLOWS(OURS)     ? TOOL_FILTER_NOTHING
			  : !ALLOWS(DRAINS) ? TOOL_FILTER_TICKS
			  : !ALLOWS(BEGINS) ? TOOL_FILTER_DRAINS
					    : TOOL_FILTER_ALL;
#undef ALLOWS
	munmap(code, size);
	return verdict;
}

/* Seccomp_filters is in it since Linux 5.9; before it Seccomp: 2, which is one at least. */
uint32_t tool_filter_count(void)
{
	static const char name[] = "\nSeccomp_filters:\t", mode[] = "\nSeccomp:\t";
	int fd = open("/proc/thread-self/status", O_RDONLY | O_CLOEXEC), saved = errno;
	char text[8192];
	const char *found;
	ssize_t got = 0;

	if (fd >= 0) {
		got = read(fd, text, sizeof(text) - 1);
		close(fd);
	}
	errno = saved;
	if (got <= 0)
		return UINT32_MAX;
	text[got] = 0;
	found = strstr(text, name);
	if (found)
		return (uint32_t)strtoul(found + sizeof(name) - 1, NULL, 10);
	found = strstr(text, mode);
	return found ? (uint32_t)(found[sizeof(mode) - 1] != '0') : UINT32_MAX;
}
