/* unwind.c - registers, call chain by frame pointers, bytes of the stack.
 *
 *     a frame, x86-64 and aarch64          upwards
 *       [bp]      the caller's bp          caller's frame: above this one
 *       [bp + 8]  the return address
 *
 * A frame pointer may have any value, because code without frame pointers uses the register for other things.  So memory is
 * read in two ways only:
 *   - in the thread's own stack, upwards from an address in use (sp, or a frame that the kernel could read).  What is above
 *     it is mapped while the thread is in this code.  In the usual case this needs no system call;
 *   - elsewhere (alternate stacks, coroutines) by process_vm_readv of our own process, which returns EFAULT.
 *
 * The chain of a raise in a handler continues after the signal frame, as the kernel's does: the word after the handler is the
 * restorer (x86-64: of the C library; aarch64: of the vDSO), the next one the caller of the interrupted function.
 *
 * Context: the thread whose stack it is, and its handlers: the stack stays mapped meanwhile.
 */
#include <sys/syscall.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

#include <perfring/sample.h>

#include "soft_private.h"

/* Architectures with these frames and perf's register numbers. */
#if defined(__LP64__) && (defined(__x86_64__) || defined(__aarch64__))
#define ABI PERFRING_SAMPLE_REGS_ABI_64
#else
#define ABI PERFRING_SAMPLE_REGS_ABI_NONE
#endif

/* Reads the sanitizers' red zones too. */
#define UNTOUCHED __attribute__((noinline, no_sanitize("address"), no_sanitize("thread"), no_sanitize("undefined")))

static bool is_in(uint64_t address, const struct soft_thread *thread)
{
	return address >= thread->stack_low && address < thread->stack_high;
}

/* Copies memory of our own process.  Returns the number of readable bytes: the kernel copies up to the first page that is
 * not readable. */
static uint64_t copy_far(void *to, uint64_t from, uint64_t size, const struct soft_thread *thread)
{
	struct iovec local = {to, (size_t)size}, remote = {(void *)(uintptr_t)from, (size_t)size};
	int saved = errno;
	long copied;

	copied = syscall(SYS_process_vm_readv, (long)thread->pid, &local, 1l, &remote, 1l, 0l);
	errno = saved;
	return copied < 0 ? 0 : (uint64_t)copied;
}

/* ---- registers ---- */

#if defined(__x86_64__)

enum {
	BP = 6,
	SP,
	IP,
	CS = 10,
	SS,
};

/* By perf's numbers; -1: not in a context, or only 16 bits of one. */
static const int8_t gregs_of[] = {
	REG_RAX, REG_RBX, REG_RCX, REG_RDX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_RIP, REG_EFL, -1,      -1,
	-1,      -1,      -1,      -1,      REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15,
};

static uint64_t word_of(const ucontext_t *context, unsigned number)
{
	const greg_t *gregs = context->uc_mcontext.gregs;

	/* cs, gs, fs, ss: 16 bits each */
	if (number == CS)
		return (uint64_t)gregs[REG_CSGSFS] & 0xffff;
	if (number == SS)
		return (uint64_t)gregs[REG_CSGSFS] >> 48;
	if (number >= sizeof(gregs_of) || gregs_of[number] < 0)
		return 0;
	return (uint64_t)gregs[gregs_of[number]];
}

#elif defined(__aarch64__)

enum {
	BP = 29, /* FP */
	LR,
	SP,
	IP, /* PC */
};

static uint64_t word_of(const ucontext_t *context, unsigned number)
{
	const mcontext_t *machine = &context->uc_mcontext;

	if (number == SP)
		return machine->sp;
	if (number == IP)
		return machine->pc;
	return number <= LR ? machine->regs[number] : 0;
}

#else

enum {
	BP,
	SP,
	IP,
};

static uint64_t word_of(const ucontext_t *context, unsigned number)
{
	(void)context;
	(void)number;
	return 0;
}

#endif

/* The caller's registers: the frame has its bp and return address, and its stack begins after them (aarch64: somewhere
 * above).  Its other registers are unknown. */
void perfring_soft_registers(struct soft_registers *registers, const void *context, const void *frame,
			     const void *caller)
{
	const uint64_t *words = frame;

	registers->abi = ABI;
	registers->context = context;
	if (context) {
		registers->ip = word_of(context, IP);
		registers->sp = word_of(context, SP);
		registers->bp = word_of(context, BP);
		return;
	}
	registers->ip = (uintptr_t)caller;
	registers->sp = (uintptr_t)(ABI == PERFRING_SAMPLE_REGS_ABI_NONE ? words : words + 2);
	registers->bp = ABI == PERFRING_SAMPLE_REGS_ABI_NONE ? 0 : *words;
}

uint64_t perfring_soft_register(const struct soft_registers *registers, unsigned number)
{
	if (registers->context)
		return word_of(registers->context, number);
	if (ABI == PERFRING_SAMPLE_REGS_ABI_NONE)
		return 0;
	return number == IP ? registers->ip : number == SP ? registers->sp : number == BP ? registers->bp : 0;
}

/* ---- the call chain ---- */

struct frame {
	uint64_t next, from;
};

static UNTOUCHED struct frame frame_at(uint64_t at)
{
	const volatile uint64_t *words = (const volatile uint64_t *)(uintptr_t)at;

	return (struct frame){words[0], words[1]};
}

/* Frames are close together, and a system call reads many words as fast as two. */
struct window {
	uint64_t at, size;
	unsigned char bytes[256];
};

static bool frame_far(struct window *window, uint64_t at, struct frame *frame, const struct soft_thread *thread)
{
	if (at < window->at || at - window->at > window->size || window->size - (at - window->at) < sizeof(*frame)) {
		window->at = at;
		window->size = copy_far(window->bytes, at, sizeof(window->bytes), thread);
		if (window->size < sizeof(*frame))
			return false;
	}
	memcpy(frame, window->bytes + (at - window->at), sizeof(*frame));
	return true;
}

/* Strips the signature of pointer authentication. */
static uint64_t plain(uint64_t address)
{
#ifdef __aarch64__
	register uint64_t x30 __asm__("x30") = address;

	__asm__("hint #7" : "+r"(x30)); /* xpaclri; a nop on older processors */
	return x30;
#else
	return address;
#endif
}

/* Not in the first page, nor in the kernel's half of the addresses. */
static bool may_be_code(uint64_t address)
{
	return address >= 4096 && (int64_t)address > 0;
}

PERFRING_FOLDED void put_word(perfring_word *words, uint32_t *count, uint64_t word)
{
	if (words)
		words[*count] = word;
	++*count;
}

/* Frames on other stacks.  The chain may go down once, from an alternate stack to the interrupted one, and else only
 * up.  Once in the thread's own stack it stays there. */
static __attribute__((noinline)) uint64_t climb_far(perfring_word *words, uint32_t *count, uint32_t max, uint64_t at,
						    const struct soft_thread *thread)
{
	struct window window;
	struct frame frame;
	bool went_down = false;

	window.at = window.size = 0;
	while (*count < max && !(at & 7) && at && !is_in(at, thread)) {
		if (!frame_far(&window, at, &frame, thread) || !may_be_code(plain(frame.from)))
			return 0;
		put_word(words, count, plain(frame.from));
		if (frame.next <= at && !is_in(frame.next, thread)) {
			if (went_down || frame.next == at)
				return 0;
			went_down = true;
		}
		at = frame.next;
	}
	/* If the kernel can read this frame, the thread's stack is mapped from there upwards. */
	if (!is_in(at, thread) || copy_far(&frame, at, sizeof(frame), thread) < sizeof(frame))
		return 0;
	return at;
}

uint32_t perfring_soft_unwind(perfring_word *words, uint32_t max, const struct soft_registers *registers,
			      const struct soft_thread *thread)
{
	uint64_t at = registers->bp, lowest = registers->sp;
	struct frame frame;
	uint32_t count = 0;

	if (count < max)
		put_word(words, &count, (uint64_t)(int64_t)PERFRING_CONTEXT_USER);
	if (count < max)
		put_word(words, &count, registers->ip);
	if (ABI == PERFRING_SAMPLE_REGS_ABI_NONE)
		return count;
	if (!is_in(lowest, thread))
		lowest = at = climb_far(words, &count, max, at, thread);
	/* Only upwards: a cycle would fill the chain up to `max`. */
	while (count < max && at && at >= lowest && !(at & 7) && at < thread->stack_high &&
	       thread->stack_high - at >= sizeof(frame)) {
		frame = frame_at(at);
		if (!may_be_code(plain(frame.from)))
			break;
		put_word(words, &count, plain(frame.from));
		lowest = at + sizeof(frame);
		at = frame.next;
	}
	return count;
}

/* ---- the stack's bytes ---- */

/* Not memcpy, which a sanitizer checks. */
static UNTOUCHED void copy_near(unsigned char *to, uint64_t from, uint64_t size)
{
	const volatile perfring_word *words = (const volatile perfring_word *)(uintptr_t)from;
	const volatile unsigned char *bytes = (const volatile unsigned char *)(uintptr_t)from;
	perfring_word *to_words = (perfring_word *)(void *)to;
	uint64_t i;

	for (i = 0; i < size / 8; i++)
		to_words[i] = words[i];
	for (i = size & ~UINT64_C(7); i < size; i++)
		to[i] = bytes[i];
}

uint64_t perfring_soft_stack_copy(void *to, uint64_t sp, uint64_t max, const struct soft_thread *thread)
{
	if (!is_in(sp, thread))
		return copy_far(to, sp, max, thread);
	if (max > thread->stack_high - sp)
		max = thread->stack_high - sp;
	copy_near(to, sp, max);
	return max;
}
