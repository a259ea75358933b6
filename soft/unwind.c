/* unwind.c - where a thread stands: its registers, its call chain by frame pointers, its stack's bytes.
 *
 *     a frame, x86-64 and aarch64          upwards
 *       [bp]      the caller's bp          caller's frame: above this one
 *       [bp + 8]  the return address
 *
 * A frame pointer may be anything: code that was built without them keeps numbers in that register.  So memory is read in
 * two ways only:
 *   - in the thread's own stack, from a place that is known to be in use (sp, or a frame that the kernel has read for us)
 *     upwards: what is above it is mapped, and stays so while the thread is here;
 *   - elsewhere (alternate stacks, coroutines) by process_vm_readv of ourselves, which says EFAULT where a load would fault.
 * Who stands on its own stack has all its frames there: in the usual case there is no system call.
 *
 * A handler's chain goes on behind the signal frame, as the kernel's does: the word behind the handler is the C library's
 * restorer, the next one the caller of what was interrupted.
 */
#include <sys/syscall.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

#include <perfring/sample.h>

#include "soft_private.h"

/* Where frames look so, and registers are known by perf's numbers. */
#if defined(__LP64__) && (defined(__x86_64__) || defined(__aarch64__))
#define ABI PERFRING_SAMPLE_REGS_ABI_64
#else
#define ABI PERFRING_SAMPLE_REGS_ABI_NONE
#endif

/* Stacks are read as they are, red zones of the sanitizers too. */
#define UNTOUCHED __attribute__((noinline, no_sanitize("address"), no_sanitize("thread"), no_sanitize("undefined")))

static bool is_in(uint64_t address, const struct soft_thread *thread)
{
	return address >= thread->stack_low && address < thread->stack_high;
}

/* Copies our own memory, wherever it is; how many bytes could be. */
static uint64_t copy_far(void *room, uint64_t from, uint64_t size, const struct soft_thread *thread)
{
	struct iovec to = {room, (size_t)size}, of = {(void *)(uintptr_t)from, (size_t)size};
	int saved = errno;
	long copied;

	copied = syscall(SYS_process_vm_readv, (long)thread->pid, &to, 1l, &of, 1l, 0l);
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

/* By perf's numbers; -1: not in a context, or 16 bits of one. */
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

/* A frame is that of a function that was called: behind it its return address, and behind that the caller's stack (aarch64:
 * somewhere above it).  What it and those that it called have kept of the caller's other registers is not known. */
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

/* Frames lie close together, and a system call brings many words as fast as two. */
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

/* A signed return address (pointer authentication) without its signature. */
static uint64_t plain(uint64_t address)
{
#ifdef __aarch64__
	register uint64_t x30 __asm__("x30") = address;

	__asm__("hint #7" : "+r"(x30)); /* xpaclri; nothing on processors that do not sign */
	return x30;
#else
	return address;
#endif
}

/* Nothing is called from the first page, nor from the half of the addresses that is the kernel's. */
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

/* Frames on another stack than the thread's own: the chain may fall once, from an alternate stack to what was interrupted,
 * and else only rises; once in the thread's own stack it stays there. */
static __attribute__((noinline)) uint64_t climb_far(perfring_word *words, uint32_t *count, uint32_t most, uint64_t at,
						    const struct soft_thread *thread)
{
	struct window window;
	struct frame frame;
	bool fell = false;

	window.at = window.size = 0;
	while (*count < most && !(at & 7) && at && !is_in(at, thread)) {
		if (!frame_far(&window, at, &frame, thread) || !may_be_code(plain(frame.from)))
			return 0;
		put_word(words, count, plain(frame.from));
		if (frame.next <= at && !is_in(frame.next, thread)) {
			if (fell || frame.next == at)
				return 0;
			fell = true;
		}
		at = frame.next;
	}
	/* From a frame that the kernel could read, upwards, everything is mapped. */
	if (!is_in(at, thread) || copy_far(&frame, at, sizeof(frame), thread) < sizeof(frame))
		return 0;
	return at;
}

uint32_t perfring_soft_unwind(perfring_word *words, uint32_t most, const struct soft_registers *registers,
			      const struct soft_thread *thread)
{
	uint64_t at = registers->bp, lowest = registers->sp;
	struct frame frame;
	uint32_t count = 0;

	if (count < most)
		put_word(words, &count, (uint64_t)(int64_t)PERFRING_CONTEXT_USER);
	if (count < most)
		put_word(words, &count, registers->ip);
	if (ABI == PERFRING_SAMPLE_REGS_ABI_NONE)
		return count;
	if (!is_in(lowest, thread))
		lowest = at = climb_far(words, &count, most, at, thread);
	/* Strictly upwards: nobody walks in a circle. */
	while (count < most && at && at >= lowest && !(at & 7) && at < thread->stack_high &&
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

/* Not memcpy, which a sanitizer would watch. */
static UNTOUCHED void copy_near(unsigned char *room, uint64_t from, uint64_t size)
{
	const volatile perfring_word *words = (const volatile perfring_word *)(uintptr_t)from;
	const volatile unsigned char *bytes = (const volatile unsigned char *)(uintptr_t)from;
	perfring_word *to = (perfring_word *)(void *)room;
	uint64_t i;

	for (i = 0; i < size / 8; i++)
		to[i] = words[i];
	for (i = size & ~UINT64_C(7); i < size; i++)
		room[i] = bytes[i];
}

uint64_t perfring_soft_stack_copy(void *room, uint64_t sp, uint64_t most, const struct soft_thread *thread)
{
	if (!is_in(sp, thread))
		return copy_far(room, sp, most, thread);
	if (most > thread->stack_high - sp)
		most = thread->stack_high - sp;
	copy_near(room, sp, most);
	return most;
}
