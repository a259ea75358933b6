/* emit.c - an overflow as a SAMPLE, encoded in place in the ring; other records; trailers.
 *
 * A record takes its time after its space is reserved.  So it is not older than a LOST record that the writer puts before it,
 * and of two records of one thread the later one has the later time, unless a handler's record is between them.
 */
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <perfring/cpus.h>
#include <perfring/record.h>
#include <perfring/sample.h>

#include "os/clock.h"
#include "soft_private.h"

enum {
	/* Fields of one word, and RAW: the samples of nearly every point. */
	SHORT = PERFRING_SAMPLE_IDENTIFIER | PERFRING_SAMPLE_IP | PERFRING_SAMPLE_TID | PERFRING_SAMPLE_TIME |
		PERFRING_SAMPLE_ADDR | PERFRING_SAMPLE_ID | PERFRING_SAMPLE_STREAM_ID | PERFRING_SAMPLE_CPU |
		PERFRING_SAMPLE_PERIOD | PERFRING_SAMPLE_RAW,
	/* With the fields that must be measured.  The stack, which is last, is apart. */
	LONG = SHORT | PERFRING_SAMPLE_READ | PERFRING_SAMPLE_CALLCHAIN | PERFRING_SAMPLE_REGS_USER,
	TRAILER_MAX = 48,
	TRIES = 8, /* while other threads change what is encoded */
};

uint64_t perfring__soft_now(const struct perfring_soft_event *event)
{
	return perfring__os_clock_of(event->attr.use_clockid ? event->attr.clockid : CLOCK_MONOTONIC);
}

static __attribute__((noinline)) uint32_t ask_cpu(void)
{
	int saved = errno, cpu = sched_getcpu();

	errno = saved;
	return (uint32_t)cpu;
}

static uint32_t this_cpu(void)
{
#ifdef PERFRING_HAS_RSEQ
	uint32_t cpu = perfring_cpus_here();

	if (PERFRING_LIKELY((int32_t)cpu >= 0))
		return cpu;
#endif
	return ask_cpu();
}

/* ---- samples ---- */

PERFRING_FOLDED void fill(struct perfring_sample *sample, const struct soft_instance *instance, uint64_t period,
			  const struct perfring_soft_site *site, uint64_t ip)
{
	const struct soft_thread *thread = instance->thread; /* also in a child that a handler has forked */

	sample->identifier = sample->id = instance->event->id;
	sample->stream_id = instance->id;
	sample->pid = thread->pid;
	sample->tid = thread->tid;
	sample->cpu = instance->event->format.sample_type & PERFRING_SAMPLE_CPU ? this_cpu() : 0;
	sample->cpu_reserved = 0;
	sample->trailing_size = 0;
	sample->misc = PERF_RECORD_MISC_USER;
	sample->ip = ip;
	sample->time = 0;
	sample->addr = site->addr;
	sample->period = period;
	sample->raw = perfring_raw_of(site->raw, site->raw_size);
}

/* A field of one word.  The words of other kinds are not used. */
#define WORD_number(a, b) sample.a
#define WORD_numbers(a, b) pair(sample.a, sample.b)
#define WORD_own(a, b) 0

PERFRING_FOLDED uint64_t pair(uint32_t first, uint32_t second)
{
	uint32_t halves[2] = {first, second};
	uint64_t word;

	memcpy(&word, halves, sizeof(word));
	return word;
}

/* Most raw data is short, and a call of memcpy costs as much as the rest of a sample. */
PERFRING_FOLDED void copy_raw(unsigned char *to, const unsigned char *from, uint32_t size)
{
	if (size - 16 > 48) {
		memcpy(to, from, size);
		return;
	}
	memcpy(to, from, 16); /* the pieces may overlap */
	if (size > 32) {
		memcpy(to + 16, from + 16, 16);
		memcpy(to + size - 32, from + size - 32, 16);
	}
	memcpy(to + size - 16, from + size - 16, 16);
}

/* The size is known, so words are stored without bounds checks: 3 ns less than the codec. */
static bool put_short(struct soft_instance *instance, struct perfring_writer *writer, uint64_t period,
		      const struct perfring_soft_site *site, const void *caller, uint64_t *time)
{
	const struct perfring_soft_event *event = instance->event;
	uint64_t type = event->format.sample_type, size = event->format.least, *word;
	struct perfring_sample sample;
	struct perfring_claim claim;
	uint64_t now = 0;
	uint32_t half;

	if (type & PERFRING_SAMPLE_RAW)
		size += site->raw_size + (uint64_t)((4u - site->raw_size) & 7);
	word = perfring_writer_reserve(writer, &instance->output, size, &claim);
	if (PERFRING_UNLIKELY(!word))
		return false;
	/* First, when few values are live across the call. */
	if (type & PERFRING_SAMPLE_TIME)
		*time = now = perfring__soft_now(event);
	fill(&sample, instance, period, site, (uintptr_t)caller);
	sample.time = now;
	*(perfring_header *)(void *)word++ = (perfring_header){PERF_RECORD_SAMPLE, sample.misc, (uint16_t)size};
#define PERFRING_FIELD(NAME, bit, kind, a, b, ...) \
	if (SHORT & PERFRING_SAMPLE_##NAME && type & PERFRING_SAMPLE_##NAME && \
	    PERFRING_FIELD_KIND_##kind(PERFRING_BY_WORD, sample, a, b)) \
		*word++ = PERFRING_FIELD_BY(WORD_, PERFRING_FIELD_KIND_##kind)(a, b);
#include <perfring/fields.def>
	if (type & PERFRING_SAMPLE_RAW) {
		memset(claim.space + size - 8, 0, 8); /* the padding is in it */
		half = sample.raw.size + sample.raw.padding;
		memcpy(word, &half, sizeof(half));
		if (sample.raw.size)
			copy_raw((unsigned char *)word + sizeof(half), sample.raw.data, sample.raw.size);
	}
	perfring_writer_commit(writer, &claim);
	return true;
}

/* ---- samples with fields of unknown size ---- */

/* put_fields measures first, then encodes into the ring, so no field needs stack.  Both are repeated if other threads
 * have changed the group, or a stack that is not the thread's own, in between. */

static uint32_t chain_max(const struct perf_event_attr *attr)
{
	uint32_t max = attr->sample_max_stack && attr->sample_max_stack < SOFT_CHAIN_MAX ? attr->sample_max_stack
											 : SOFT_CHAIN_MAX;

	return max + 1; /* PERF_CONTEXT_USER */
}

/* The number of words, and the words. */
static uint64_t put_chain(perfring_word *to, uint64_t space, const struct soft_instance *instance,
			  const struct soft_registers *registers, const struct soft_chain *chain)
{
	const struct perf_event_attr *attr = &instance->event->attr;
	uint32_t max = chain_max(attr), nr = 0;

	if (max > space / 8 - 1)
		max = (uint32_t)(space / 8 - 1);
	if (attr->exclude_callchain_user) {
		/* nothing */
	} else if (chain->frames) {
		nr = chain->frames->nr < max ? chain->frames->nr : max;
		if (to)
			memcpy(to + 1, chain->frames->words, 8 * (size_t)nr);
	} else if (chain->tables) {
		nr = perfring__soft_unwind_by_tables(to ? to + 1 : NULL, NULL, max, registers, instance->thread,
						     chain->tables);
	} else {
		nr = perfring__soft_unwind(to ? to + 1 : NULL, max, registers, instance->thread);
	}
	if (to)
		*to = nr;
	return 8 + 8 * (uint64_t)nr;
}

static uint64_t put_raw(perfring_word *to, uint64_t space, const struct perfring_raw *raw)
{
	uint64_t size = perfring_size_raw(raw);
	struct perfring_cursor cursor;

	if (to && size <= space) {
		cursor = perfring_cursor_init(to, 0, (uint32_t)size);
		perfring_put_raw(&cursor, raw);
	}
	return size;
}

static uint64_t put_regs(perfring_word *to, uint64_t space, const struct soft_instance *instance,
			 const struct soft_registers *registers)
{
	uint64_t mask = registers->abi != PERFRING_SAMPLE_REGS_ABI_NONE ? instance->event->format.sample_regs_user : 0;
	uint64_t size = 8 + 8 * (uint64_t)__builtin_popcountll(mask);

	if (!to || size > space)
		return size;
	for (*to++ = registers->abi; mask; mask &= mask - 1)
		*to++ = perfring__soft_register(registers, (unsigned)__builtin_ctzll(mask));
	return size;
}

static uint64_t put_read(perfring_word *to, uint64_t space, const struct soft_instance *instance)
{
	uint32_t size;

	if (!to)
		return perfring__soft_read_size(instance);
	size = perfring__soft_read_in_thread(instance, to, (uint32_t)space);
	return size ? size : UINT64_MAX;
}

/* Puts one field; `word` if it has one word.  to NULL: only measures.  space: 8 or more.  Returns the size; a field
 * larger than `space` was not written. */
PERFRING_FOLDED uint64_t put_field(perfring_word *to, uint64_t space, uint64_t field, uint64_t word,
				   const struct perfring_raw *raw, const struct soft_instance *instance,
				   const struct soft_registers *registers, const struct soft_chain *chain)
{
	switch (field) {
	case PERFRING_SAMPLE_READ:
		return put_read(to, space, instance);
	case PERFRING_SAMPLE_CALLCHAIN:
		return put_chain(to, space, instance, registers, chain);
	case PERFRING_SAMPLE_RAW:
		return put_raw(to, space, raw);
	case PERFRING_SAMPLE_REGS_USER:
		return put_regs(to, space, instance, registers);
	default:
		if (to)
			*to = word;
		return 8;
	}
}

/* All fields but the stack, after space for the header.  Returns their size with the header; 0: more than `space`. */
static uint64_t put_fields(perfring_word *to, uint64_t space, const struct soft_instance *instance, uint64_t period,
			   const struct perfring_soft_site *site, const struct soft_registers *registers,
			   const struct soft_chain *chain, uint64_t time)
{
	uint64_t type = instance->event->format.sample_type, at = 8, size;
	struct perfring_sample sample;

	fill(&sample, instance, period, site, registers->ip);
	sample.time = time;
#define PERFRING_FIELD(NAME, bit, kind, a, b, ...) \
	if (LONG & PERFRING_SAMPLE_##NAME && type & PERFRING_SAMPLE_##NAME) { \
		size = space - at < 8 ? UINT64_MAX \
				      : put_field(to ? to + at / 8 : NULL, space - at, PERFRING_SAMPLE_##NAME, \
						  PERFRING_FIELD_BY(WORD_, PERFRING_FIELD_KIND_##kind)(a, b), \
						  &sample.raw, instance, registers, chain); \
		if (size > space - at) \
			return 0; \
		at += size; \
	}
#include <perfring/fields.def>
	return at;
}

static void put_stack(unsigned char *to, uint64_t stack, uint64_t sp, const struct soft_thread *thread)
{
	uint64_t copied;

	memcpy(to, &stack, 8);
	if (!stack) /* without dyn_size: docs/abi.md 14.3 */
		return;
	copied = perfring__soft_stack_copy(to + 8, sp, stack, thread);
	memset(to + 8 + copied, 0, (size_t)(stack - copied));
	memcpy(to + 8 + stack, &copied, 8);
}

/* Cuts the stack to what fits into a record beside `size` bytes, as the kernel. */
static uint64_t stack_space(const struct perfring_soft_event *event, uint64_t size)
{
	uint64_t max = size + 16 < PERFRING_RECORD_MAX ? PERFRING_RECORD_MAX - 16 - size : 0;
	uint64_t stack = event->attr.sample_stack_user & ~7u;

	return stack < max ? stack : max;
}

static bool put_with_chain(struct soft_instance *instance, struct perfring_writer *writer, uint64_t period,
			   const struct perfring_soft_site *site, const struct soft_registers *registers,
			   const struct soft_chain *chain, uint64_t *time)
{
	const struct perfring_soft_event *event = instance->event;
	uint64_t type = event->format.sample_type, fields, stack, size, now;
	struct perfring_claim claim;
	unsigned char *space;

	for (unsigned i = 0; i < TRIES; i++) {
		fields = put_fields(NULL, PERFRING_RECORD_MAX, instance, period, site, registers, chain, 0);
		stack = type & PERFRING_SAMPLE_STACK_USER ? stack_space(event, fields) : 0;
		size = fields + (type & PERFRING_SAMPLE_STACK_USER ? 8 : 0) + (stack ? stack + 8 : 0);
		/* The writer refuses and counts a size that is too large. */
		space = perfring_writer_reserve(writer, &instance->output, fields ? size : UINT64_MAX, &claim);
		if (PERFRING_UNLIKELY(!space))
			return false;
		now = type & PERFRING_SAMPLE_TIME ? perfring__soft_now(event) : 0;
		if (PERFRING_LIKELY(put_fields((perfring_word *)(void *)space, fields, instance, period, site,
					       registers, chain, now) == fields)) {
			*(perfring_header *)(void *)space =
				(perfring_header){PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, (uint16_t)size};
			if (type & PERFRING_SAMPLE_STACK_USER)
				put_stack(space + fields, stack, registers->sp, instance->thread);
			perfring_writer_commit(writer, &claim);
			if (now)
				*time = now;
			return true;
		}
		perfring_writer_discard(writer, &claim);
	}
	perfring_writer_refuse(writer, &instance->output, 1);
	return false;
}

static __attribute__((noinline)) bool put_long(struct soft_instance *instance, struct perfring_writer *writer,
					       uint64_t period, const struct perfring_soft_site *site,
					       const void *frame, const void *caller, uint64_t *time)
{
	const struct perf_event_attr *attr = &instance->event->attr;
	struct soft_registers registers;
	struct soft_chain chain = {NULL, NULL};
	bool is_put;

	perfring__soft_registers(&registers, site->context, frame, caller);
	if (attr->sample_type & PERF_SAMPLE_CALLCHAIN && !attr->exclude_callchain_user)
		perfring__soft_chain_begin(&chain, instance, chain_max(attr), &registers);
	is_put = put_with_chain(instance, writer, period, site, &registers, &chain, time);
	perfring__soft_chain_end(&chain);
	return is_put;
}

/* An event with a handler has no ring.  Nor has a heir's instance, if the event writes into the rings of another
 * that has none for that heir: its samples are lost. */
static __attribute__((noinline)) void call_handler(struct soft_instance *instance, uint64_t period,
						   const struct perfring_soft_site *site, const void *frame,
						   const void *caller)
{
	struct perfring_soft_event *event = instance->event;
	void (*handler)(const struct perfring_soft_overflow *, void *) =
		PERFRING_LOAD_ACQUIRE(&event->handler); /* partner: perfring_soft_set_handler */
	struct perfring_soft_overflow overflow = {
		.event = event, .stream_id = instance->id, .period = period, .site = site};
	struct soft_registers registers;
	int saved = errno;

	if (!handler) {
		if (PERFRING_LOAD(&event->output))
			PERFRING_ADD(&instance->output.lost, 1);
		return;
	}
	perfring__soft_registers(&registers, site->context, frame, caller);
	overflow.ip = registers.ip;
	handler(&overflow, PERFRING_LOAD(&event->handler_data));
	errno = saved;
}

static void send(const struct soft_instance *instance, bool is_hup)
{
	uint64_t word = PERFRING_LOAD(&instance->event->signal);
	pid_t pid, self, tid = (pid_t)(word >> 8 & 0xffffff);
	siginfo_t what;
	int saved = errno;

	if (!word)
		return;
	pid = getpid();
	self = (pid_t)syscall(SYS_gettid);
	tid = tid ? tid : self;
	memset(&what, 0, sizeof(what));
	what.si_signo = (int)(word & 0xff);
	/* A code of the kernel's is taken from the thread itself alone. */
	what.si_code = tid != self ? SI_SIGIO : is_hup ? POLL_HUP : POLL_IN;
	what.si_band = is_hup ? POLLHUP | POLLERR : POLLIN | POLLRDNORM;
	what.si_fd = (int)(word >> 32);
	if (syscall(SYS_rt_tgsigqueueinfo, pid, tid, what.si_signo, &what) && errno == EAGAIN)
		syscall(SYS_tgkill, pid, tid, SIGIO);
	errno = saved;
}

/* Each is taken before it is sent: its handler may raise, and sends those that are left; or it forks, and the child sends none. */
void perfring__soft_send(struct soft_instance *instance)
{
	uint64_t pending, left;

	for (;;) {
		pending = PERFRING_LOAD(&instance->pending);
		if (!pending || instance->event->is_inherited)
			return;
		left = pending < 2 * SOFT_SIGNAL ? 0 : pending - SOFT_SIGNAL; /* HUP is the last one's */
		if (PERFRING_COMPARE_EXCHANGE_LOCAL(&instance->pending, pending, left))
			send(instance, !left && pending & SOFT_SIGNAL_HUP);
	}
}

bool perfring__soft_put_sample(struct soft_instance *instance, uint64_t period, const struct perfring_soft_site *site,
			       const void *frame, const void *caller, uint64_t *time)
{
	struct perfring_writer *writer = PERFRING_LOAD_ACQUIRE(&instance->writer); /* partner: soft_event.c */
	uint64_t type = instance->event->format.sample_type;

	if (PERFRING_UNLIKELY(!writer)) {
		call_handler(instance, period, site, frame, caller);
		return true;
	}
	if (site->context || type & ~(uint64_t)SHORT)
		return put_long(instance, writer, period, site, frame, caller, time);
	return put_short(instance, writer, period, site, caller, time);
}

/* ---- other records ---- */

static struct perfring_trailer trailer_of(const struct soft_instance *instance, uint64_t time)
{
	const struct perfring_soft_event *event = instance->event;

	return (struct perfring_trailer){
		.pid = instance->thread->pid,
		.tid = instance->thread->tid,
		.time = time,
		.id = event->id,
		.stream_id = instance->id,
		.cpu = event->format.sample_type & PERFRING_SAMPLE_CPU ? this_cpu() : 0,
		.identifier = event->id,
	};
}

uint32_t perfring__soft_put_trailer(const struct soft_instance *instance, unsigned char *to, uint64_t time)
{
	const struct perfring_format *format = &instance->event->format;
	struct perfring_cursor cursor = perfring_cursor_init(to, 0, TRAILER_MAX);
	struct perfring_trailer trailer;

	if (!perfring_format_has_trailer(format))
		return 0;
	trailer = trailer_of(instance, time);
#define PUT_no(...)
#define PUT_last(...)
#define PUT_yes(NAME, kind, a, b) \
	if (format->sample_type & PERFRING_SAMPLE_##NAME) \
		perfring_put_##kind(&cursor, PERFRING_FIELD_KIND_##kind(PERFRING_BY_FROM, (&trailer), a, b));
#define PERFRING_FIELD(NAME, bit, kind, a, b, place, ...) PUT_##place(NAME, kind, a, b)
#include <perfring/fields.def>
	if (format->sample_type & PERFRING_SAMPLE_IDENTIFIER)
		perfring_put_word(&cursor, trailer.identifier);
	return cursor.position;
}

static void put_lost_trailer(const struct perfring_output *output, void *to)
{
	const struct soft_instance *instance = output->data;

	perfring__soft_put_trailer(instance, to, perfring__soft_now(instance->event));
}

void perfring__soft_output_init(struct soft_instance *instance)
{
	const struct perfring_soft_event *event = instance->event;
	struct perfring_output *output = &instance->output;

	output->id = event->id;
	output->wakeup_events = event->attr.watermark ? 0 : event->attr.wakeup_events;
	output->trailer_size = perfring_format_trailer(&event->format);
	output->trailer = put_lost_trailer;
	output->data = instance;
}

bool perfring__soft_put_record(struct soft_instance *instance, struct perfring_record *record)
{
	struct perfring_writer *writer = PERFRING_LOAD_ACQUIRE(&instance->writer); /* partner: soft_event.c */
	const struct perfring_soft_event *event = instance->event;
	int64_t size = perfring_record_size(&event->format, record);
	struct perfring_claim claim;
	unsigned char *space;
	uint64_t time;

	if (!writer || size < 0)
		return false;
	space = perfring_writer_reserve(writer, &instance->output, (uint64_t)size, &claim);
	if (!space)
		return false;
	time = perfring__soft_now(event);
	record->trailer = trailer_of(instance, time);
	if (record->type == PERF_RECORD_THROTTLE || record->type == PERF_RECORD_UNTHROTTLE)
		record->is.throttle.time = time; /* UNTHROTTLE has the same members */
	else if (record->type == PERF_RECORD_FORK || record->type == PERF_RECORD_EXIT)
		record->is.fork.time = time; /* so has EXIT */
	perfring_record_encode(&event->format, record, space, (size_t)size);
	perfring_writer_commit(writer, &claim);
	return true;
}

void perfring__soft_put_read(struct soft_instance *instance)
{
	struct perfring_writer *writer = PERFRING_LOAD_ACQUIRE(&instance->writer); /* partner: soft_event.c */
	uint32_t body = perfring__soft_read_at_exit(instance, NULL, 0);
	uint32_t size = 16 + body + perfring_format_trailer(&instance->event->format);
	uint32_t ids[2] = {instance->thread->pid, instance->thread->tid};
	struct perfring_claim claim;
	unsigned char *space;

	space = writer ? perfring_writer_reserve(writer, &instance->output, size, &claim) : NULL;
	if (!space)
		return;
	*(perfring_header *)(void *)space = (perfring_header){PERF_RECORD_READ, 0, (uint16_t)size};
	memcpy(space + 8, ids, sizeof(ids));
	perfring__soft_read_at_exit(instance, space + 16, body);
	perfring__soft_put_trailer(instance, space + 16 + body, perfring__soft_now(instance->event));
	perfring_writer_commit(writer, &claim);
}

void perfring__soft_put_throttle(struct soft_instance *group, bool unthrottle)
{
	struct perfring_record record = {.type = unthrottle ? PERF_RECORD_UNTHROTTLE : PERF_RECORD_THROTTLE};

	record.is.throttle.id = group->event->id;
	record.is.throttle.stream_id = group->id;
	perfring__soft_put_record(group, &record);
}
