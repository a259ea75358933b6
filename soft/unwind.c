/* unwind.c - registers, call chains by frame pointers or unwind tables, bytes of the stack.
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
 * By tables (tables.c) the same two ways of reading hold.  Code that is in no object, as a JIT's, has frame pointers or ends the
 * chain.
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

#define EXACT_SP true /* a frame ends where its caller's begins */

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

#define EXACT_SP false

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

#define EXACT_SP false

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
void perfring__soft_registers(struct soft_registers *registers, const void *context, const void *frame,
			      const void *caller)
{
	const uint64_t *words = frame;

	registers->abi = ABI;
	registers->context = context;
	registers->has_sp = context || EXACT_SP;
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

uint64_t perfring__soft_register(const struct soft_registers *registers, unsigned number)
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

static bool read_far(struct window *window, uint64_t at, void *to, uint64_t size, const struct soft_thread *thread)
{
	if (at < window->at || at - window->at > window->size || window->size - (at - window->at) < size) {
		window->at = at;
		window->size = copy_far(window->bytes, at, sizeof(window->bytes), thread);
		if (window->size < size)
			return false;
	}
	memcpy(to, window->bytes + (at - window->at), (size_t)size);
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
		if (!read_far(&window, at, &frame, sizeof(frame), thread) || !may_be_code(plain(frame.from)))
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

uint32_t perfring__soft_unwind(perfring_word *words, uint32_t max, const struct soft_registers *registers,
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

/* ---- the call chain by unwind tables ---- */

/* A sanitizer's red zones are read like other words, word by word. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_SANITIZED true
#else
#define IS_SANITIZED false
#endif

enum {
	PIECE = 8,         /* frames of a walk at a time, on a handler's stack */
	BELOW_MAX = 65536, /* bytes below sp that are the same stack's */
};

/* What a walk sees of stacks: `stack` the thread's own, from a word in use on; its `read` the others. */
struct view {
	struct perfring_unwind_stack stack;
	const struct soft_thread *thread;
	uint64_t low; /* from here up to stack_high the thread's own is mapped */
	struct window window;
};

static void see_own(struct view *view, uint64_t low)
{
	view->low = low;
	if (!IS_SANITIZED && view->thread->stack_high - low >= sizeof(uint64_t)) {
		view->stack.bytes = (const unsigned char *)(uintptr_t)low;
		view->stack.start = low;
		view->stack.limit = view->thread->stack_high - low - 7;
	}
}

static UNTOUCHED uint64_t word_at(uint64_t at)
{
	return *(const volatile perfring_word *)(uintptr_t)at;
}

/* The first read of the thread's own stack, from an alternate one, shows that it is mapped from there upwards. */
static enum perfring_unwind_end read_word(const struct perfring_unwind_stack *stack, uint64_t sp, uint64_t at,
					  uint64_t *word)
{
	struct view *view = (struct view *)(uintptr_t)stack;

	if (at < sp && sp - at <= BELOW_MAX) /* what has been left */
		return PERFRING_UNWIND_BAD;
	if (!is_in(at, view->thread) || view->thread->stack_high - at < sizeof(*word))
		return read_far(&view->window, at, word, sizeof(*word), view->thread) ? PERFRING_UNWIND_STEPPED
										      : PERFRING_UNWIND_TRUNCATED;
	if (at < view->low) {
		if (copy_far(word, at, sizeof(*word), view->thread) < sizeof(*word))
			return PERFRING_UNWIND_TRUNCATED;
		see_own(view, at);
	}
	*word = word_at(at);
	return PERFRING_UNWIND_STEPPED;
}

/* Out of code without tables: upwards, as by frame pointers.  Returns false: the chain ends here. */
static bool step_by_pointer(const struct perfring_unwind_space *space, const struct view *view,
			    struct perfring_unwind_registers *registers)
{
	uint64_t at = registers->fp, next, from;

	if (perfring_unwind_map_at(space, registers->ip - registers->is_return) || registers->has_no_fp || at & 7 ||
	    at < registers->sp ||
	    perfring_unwind_read(&view->stack, registers->sp, at, &next) != PERFRING_UNWIND_STEPPED ||
	    perfring_unwind_read(&view->stack, registers->sp, at + 8, &from) != PERFRING_UNWIND_STEPPED ||
	    !may_be_code(plain(from)))
		return false;
	registers->ip = plain(from);
	registers->sp = at + sizeof(struct frame);
	registers->fp = next;
	registers->lr = 0;
	registers->is_return = true;
	return true;
}

/* Of a context. */
static bool get_other(const void *context, uint32_t number, uint64_t *value)
{
#ifdef __x86_64__
	number = perfring_unwind_register_bit(PERFRING_UNWIND_X86_64, number);
#endif
	*value = word_of(context, number);
	return true;
}

/* At most `max` steps, each of which puts a word; with frames in one walk, which the cache follows best. */
uint32_t perfring__soft_unwind_by_tables(perfring_word *words, struct soft_frames *frames, uint32_t max,
					 const struct soft_registers *from, const struct soft_thread *thread,
					 const struct soft_tables *tables)
{
	struct perfring_unwind_registers registers = {
		.ip = from->ip, .sp = from->sp, .fp = from->bp, .is_return = !from->context};
	enum perfring_unwind_end end = PERFRING_UNWIND_FULL;
	struct perfring_unwind_cache *cache = frames ? frames->cache : NULL;
	uint32_t count = 0, most = frames ? max : PIECE, nr;
	uint64_t piece[PIECE], *ips = piece;
	struct view view;

	if (frames)
		words = frames->words;
	if (!from->has_sp)
		return perfring__soft_unwind(words, max, from, thread);
#ifdef __aarch64__
	registers.lr = from->context ? word_of(from->context, LR) : 0;
	registers.pac_mask = ~((UINT64_C(1) << 52) - 1);
#endif
	registers.other = from->context ? get_other : NULL;
	registers.of = from->context;
	view.stack = perfring_unwind_stack_init(NULL, 0, 0);
	view.stack.read = read_word;
	view.thread = thread;
	view.low = UINT64_MAX;
	view.window.at = view.window.size = 0;
	if (is_in(registers.sp, thread))
		see_own(&view, registers.sp);
	if (count < max)
		put_word(words, &count, (uint64_t)(int64_t)PERFRING_CONTEXT_USER);
	while (count < max && (end == PERFRING_UNWIND_FULL || (end == PERFRING_UNWIND_NO_RULE &&
							       step_by_pointer(&tables->space, &view, &registers)))) {
		if (frames)
			ips = frames->words + count;
		nr = perfring_unwind_walk(&tables->space, cache, &registers, &view.stack, ips,
					  max - count < most ? max - count : most, &end);
		/* a wrong row may lead to any word, and some are markers of chains; the first one is the registers' */
		for (uint32_t i = count == 1; i < nr; i++)
			if (!may_be_code(ips[i])) {
				nr = i;
				end = PERFRING_UNWIND_BAD;
			}
		if (words && !frames)
			memcpy(words + count, piece, nr * sizeof(piece[0]));
		count += nr;
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

uint64_t perfring__soft_stack_copy(void *to, uint64_t sp, uint64_t max, const struct soft_thread *thread)
{
	if (!is_in(sp, thread))
		return copy_far(to, sp, max, thread);
	if (max > thread->stack_high - sp)
		max = thread->stack_high - sp;
	copy_near(to, sp, max);
	return max;
}
