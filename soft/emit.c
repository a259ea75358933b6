/* emit.c - an overflow as a SAMPLE, encoded where it lies in the ring; THROTTLE and UNTHROTTLE; trailers.
 *
 * The time is taken when room was given: so a LOST record that the writer puts in front of a record is not younger than
 * it, and of two records of one thread the later one has the later time, but for a handler's that comes between.
 */
#include <sched.h>

#include <perfring/cpus.h>
#include <perfring/sample.h>

#include "os/clock.h"
#include "soft_private.h"

enum {
	/* One word each, and RAW, which is given: nearly every point's samples. */
	SHORT = PERFRING_SAMPLE_IDENTIFIER | PERFRING_SAMPLE_IP | PERFRING_SAMPLE_TID | PERFRING_SAMPLE_TIME |
		PERFRING_SAMPLE_ADDR | PERFRING_SAMPLE_ID | PERFRING_SAMPLE_STREAM_ID | PERFRING_SAMPLE_CPU |
		PERFRING_SAMPLE_PERIOD | PERFRING_SAMPLE_RAW,
	/* What must be found out first.  The stack is the last field. */
	LONG = SHORT | PERFRING_SAMPLE_READ | PERFRING_SAMPLE_CALLCHAIN | PERFRING_SAMPLE_REGS_USER,
	CHAIN_MOST = 127,
	TRAILER_MOST = 48,
	TRIES = 8, /* while others change what is encoded */
};

uint64_t perfring_soft_now(const struct perfring_soft_event *event)
{
	return perfring_os_clock_of(event->attr.use_clockid ? event->attr.clockid : CLOCK_MONOTONIC);
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

/* Whose it is: all words that are in trailers too, but the time. */
PERFRING_FOLDED void fill_ids(struct perfring_sample *sample, const struct soft_instance *instance, uint64_t type)
{
	const struct soft_thread *self =
		instance->thread; /* also in the child of a handler that has forked on top of us */

	sample->identifier = sample->id = instance->event->id;
	sample->stream_id = instance->id;
	sample->pid = self->pid;
	sample->tid = self->tid;
	sample->cpu = type & PERFRING_SAMPLE_CPU ? this_cpu() : 0;
	sample->cpu_reserved = 0;
}

/* ---- samples ---- */

PERFRING_FOLDED void fill(struct perfring_sample *sample, const struct soft_instance *instance, uint64_t period,
			  const struct perfring_soft_site *site, uint64_t ip)
{
	fill_ids(sample, instance, instance->event->format.sample_type);
	sample->trailing_size = 0;
	sample->misc = PERF_RECORD_MISC_USER;
	sample->ip = ip;
	sample->time = 0;
	sample->addr = site->addr;
	sample->period = period;
	sample->raw = perfring_raw_of(site->raw, site->raw_size);
}

/* A field of one word; those of others are not looked at. */
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

/* Most raw data is short, and a call of the C library's costs as much as the rest of a sample. */
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

/* The size is known, so words follow one another without a look at where they end: 3 ns less than by the codec. */
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
	/* First, while there is little to be kept across the call. */
	if (type & PERFRING_SAMPLE_TIME)
		*time = now = perfring_soft_now(event);
	fill(&sample, instance, period, site, (uintptr_t)caller);
	sample.time = now;
	*(perfring_header *)(void *)word++ = (perfring_header){PERF_RECORD_SAMPLE, sample.misc, (uint16_t)size};
#define PERFRING_FIELD(NAME, bit, kind, a, b, ...) \
	if (SHORT & PERFRING_SAMPLE_##NAME && type & PERFRING_SAMPLE_##NAME && \
	    PERFRING_FIELD_KIND_##kind(PERFRING_BY_WORD, sample, a, b)) \
		*word++ = PERFRING_FIELD_BY(WORD_, PERFRING_FIELD_KIND_##kind)(a, b);
#include <perfring/fields.def>
	if (type & PERFRING_SAMPLE_RAW) {
		memset(claim.room + size - 8, 0, 8); /* the padding lies in it */
		half = sample.raw.size + sample.raw.padding;
		memcpy(word, &half, sizeof(half));
		if (sample.raw.size)
			copy_raw((unsigned char *)word + sizeof(half), sample.raw.data, sample.raw.size);
	}
	perfring_writer_commit(writer, &claim);
	return true;
}

/* ---- what must be found out first ---- */

/* It is found out twice: how much there is, then what, straight into the ring.  So nothing of it lies on the stack, which may
 * be small.  Between the two others may change the group, or a stack that is not the thread's own: then once more. */

struct sizes {
	uint64_t front; /* bytes, without the stack */
	uint32_t read, raw, regs;
	uint32_t chain; /* words */
	uint64_t stack; /* bytes */
};

static uint64_t size_of(const struct sizes *sizes, const struct perfring_soft_site *site, uint64_t field)
{
	switch (field) {
	case PERFRING_SAMPLE_READ:
		return sizes->read;
	case PERFRING_SAMPLE_CALLCHAIN:
		return 8 + 8 * (uint64_t)sizes->chain;
	case PERFRING_SAMPLE_RAW:
		return (uint64_t)4 + site->raw_size + sizes->raw;
	case PERFRING_SAMPLE_REGS_USER:
		return sizes->regs;
	default:
		return 8;
	}
}

/* Bytes of stack to have room for behind `size` others: as the kernel, cut where the record would be too large. */
static uint64_t stack_room(const struct perfring_soft_event *event, uint64_t size)
{
	uint64_t most = size + 16 < PERFRING_RECORD_MAX ? PERFRING_RECORD_MAX - 16 - size : 0;
	uint64_t stack = event->attr.sample_stack_user & ~7u;

	return stack < most ? stack : most;
}

static uint32_t chain_most(const struct perf_event_attr *attr)
{
	uint32_t most = attr->sample_max_stack;

	return 1 + (!most || most > CHAIN_MOST ? CHAIN_MOST : most);
}

/* Returns the record's size; UINT64_MAX: too large for one, refused by the writer like all that it refuses. */
static uint64_t measure(struct sizes *sizes, const struct soft_instance *instance,
			const struct perfring_soft_site *site, const struct soft_registers *registers)
{
	const struct perfring_soft_event *event = instance->event;
	uint64_t type = event->format.sample_type;

	sizes->read = type & PERFRING_SAMPLE_READ ? perfring_soft_read_size(instance) : 0;
	sizes->raw = (4u - site->raw_size) & 7;
	sizes->regs = 8;
	if (registers->abi != PERFRING_SAMPLE_REGS_ABI_NONE)
		sizes->regs += 8 * (uint32_t)__builtin_popcountll(event->format.sample_regs_user);
	sizes->chain = 0;
	if (type & PERFRING_SAMPLE_CALLCHAIN && !event->attr.exclude_callchain_user)
		sizes->chain = perfring_soft_unwind(NULL, chain_most(&event->attr), registers, instance->thread);
	sizes->front = 8;
#define PERFRING_FIELD(NAME, bit, kind, ...) \
	if (LONG & PERFRING_SAMPLE_##NAME && type & PERFRING_SAMPLE_##NAME) \
		sizes->front += size_of(sizes, site, PERFRING_SAMPLE_##NAME);
#include <perfring/fields.def>
	sizes->stack = 0;
	if (sizes->front > PERFRING_RECORD_MAX)
		return UINT64_MAX;
	if (!(type & PERFRING_SAMPLE_STACK_USER))
		return sizes->front;
	sizes->stack = stack_room(event, sizes->front);
	return sizes->front + 8 + (sizes->stack ? sizes->stack + 8 : 0);
}

static void put_stack(unsigned char *room, uint64_t stack, uint64_t sp, const struct soft_thread *thread)
{
	uint64_t copied;

	memcpy(room, &stack, 8);
	if (!stack) /* nothing behind it: docs/abi.md 14.3 */
		return;
	copied = perfring_soft_stack_copy(room + 8, sp, stack, thread);
	memset(room + 8 + copied, 0, (size_t)(stack - copied));
	memcpy(room + 8 + stack, &copied, 8);
}

/* Each returns what lies behind it, or NULL: it is no longer as it was measured. */

PERFRING_FOLDED perfring_word *put_one(perfring_word *to, uint64_t word)
{
	*to = word;
	return to + 1;
}

static perfring_word *put_read(perfring_word *to, const struct soft_instance *instance, const struct sizes *sizes)
{
	return perfring_soft_read_in_thread(instance, to, sizes->read) == sizes->read ? to + sizes->read / 8 : NULL;
}

static perfring_word *put_chain(perfring_word *to, const struct soft_instance *instance, const struct sizes *sizes,
				const struct soft_registers *registers)
{
	*to++ = sizes->chain;
	if (sizes->chain && perfring_soft_unwind(to, sizes->chain, registers, instance->thread) != sizes->chain)
		return NULL;
	return to + sizes->chain;
}

static perfring_word *put_raw(perfring_word *to, const struct perfring_soft_site *site, const struct sizes *sizes)
{
	unsigned char *bytes = (unsigned char *)to;
	uint32_t size = site->raw_size + sizes->raw;

	memcpy(bytes, &size, sizeof(size));
	if (site->raw_size)
		memcpy(bytes + sizeof(size), site->raw, site->raw_size);
	memset(bytes + sizeof(size) + site->raw_size, 0, sizes->raw);
	return to + (sizeof(size) + size) / 8;
}

static perfring_word *put_regs(perfring_word *to, const struct soft_instance *instance,
			       const struct soft_registers *registers)
{
	uint64_t mask = instance->event->format.sample_regs_user;

	*to++ = registers->abi;
	for (; registers->abi != PERFRING_SAMPLE_REGS_ABI_NONE && mask; mask &= mask - 1)
		*to++ = perfring_soft_register(registers, (unsigned)__builtin_ctzll(mask));
	return to;
}

/* word: of a field that has no more. */
PERFRING_FOLDED perfring_word *put_field(perfring_word *to, uint64_t field, uint64_t word,
					 const struct soft_instance *instance, const struct perfring_soft_site *site,
					 const struct soft_registers *registers, const struct sizes *sizes)
{
	switch (field) {
	case PERFRING_SAMPLE_READ:
		return put_read(to, instance, sizes);
	case PERFRING_SAMPLE_CALLCHAIN:
		return put_chain(to, instance, sizes, registers);
	case PERFRING_SAMPLE_RAW:
		return put_raw(to, site, sizes);
	case PERFRING_SAMPLE_REGS_USER:
		return put_regs(to, instance, registers);
	default:
		return put_one(to, word);
	}
}

/* Whether all of it is as it was measured. */
static bool encode(const struct soft_instance *instance, uint64_t period, const struct perfring_soft_site *site,
		   const struct soft_registers *registers, const struct sizes *sizes, unsigned char *room,
		   uint64_t size, uint64_t time)
{
	uint64_t type = instance->event->format.sample_type;
	perfring_word *to = (perfring_word *)(void *)room;
	struct perfring_sample sample;

	fill(&sample, instance, period, site, registers->ip);
	sample.time = time;
	*(perfring_header *)(void *)to++ = (perfring_header){PERF_RECORD_SAMPLE, sample.misc, (uint16_t)size};
#define PERFRING_FIELD(NAME, bit, kind, a, b, ...) \
	if (LONG & PERFRING_SAMPLE_##NAME && type & PERFRING_SAMPLE_##NAME) { \
		to = put_field(to, PERFRING_SAMPLE_##NAME, PERFRING_FIELD_BY(WORD_, PERFRING_FIELD_KIND_##kind)(a, b), \
			       instance, site, registers, sizes); \
		if (!to) \
			return false; \
	}
#include <perfring/fields.def>
	if (type & PERFRING_SAMPLE_STACK_USER)
		put_stack(room + sizes->front, sizes->stack, registers->sp, instance->thread);
	return true;
}

static __attribute__((noinline)) bool put_long(struct soft_instance *instance, struct perfring_writer *writer,
					       uint64_t period, const struct perfring_soft_site *site,
					       const void *frame, const void *caller, uint64_t *time)
{
	const struct perfring_soft_event *event = instance->event;
	struct soft_registers registers;
	struct perfring_claim claim;
	struct sizes sizes;
	unsigned char *room;
	uint64_t size, now;

	perfring_soft_registers(&registers, site->context, frame, caller);
	for (unsigned i = 0; i < TRIES; i++) {
		size = measure(&sizes, instance, site, &registers);
		room = perfring_writer_reserve(writer, &instance->output, size, &claim);
		if (PERFRING_UNLIKELY(!room))
			return false;
		now = event->format.sample_type & PERFRING_SAMPLE_TIME ? perfring_soft_now(event) : 0;
		if (PERFRING_LIKELY(encode(instance, period, site, &registers, &sizes, room, size, now))) {
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

bool perfring_soft_put_sample(struct soft_instance *instance, uint64_t period, const struct perfring_soft_site *site,
			      const void *frame, const void *caller, uint64_t *time)
{
	struct perfring_writer *writer = PERFRING_LOAD_ACQUIRE(&instance->writer); /* soft_event.c's release */
	uint64_t type = instance->event->format.sample_type;

	if (PERFRING_UNLIKELY(!writer))
		return true;
	if (site->context || type & ~(uint64_t)SHORT)
		return put_long(instance, writer, period, site, frame, caller, time);
	return put_short(instance, writer, period, site, caller, time);
}

/* ---- other records ---- */

uint32_t perfring_soft_put_trailer(const struct soft_instance *instance, unsigned char *room, uint64_t time)
{
	const struct perfring_format *format = &instance->event->format;
	struct perfring_cursor cursor = perfring_cursor_init(room, 0, TRAILER_MOST);
	uint64_t type = format->sample_type;
	struct perfring_sample ids, *sample = &ids;

	if (!perfring_format_has_trailer(format))
		return 0;
	fill_ids(sample, instance, type);
	sample->time = time;
#define PERFRING_FIELD(NAME, bit, kind, a, b, trailer, ...) \
	if (PERFRING_TRAILER_##trailer == PERFRING_TRAILER_yes && (type & PERFRING_SAMPLE_##NAME)) \
		perfring_put_##kind(&cursor, PERFRING_FIELD_KIND_##kind(PERFRING_BY_FROM, sample, a, b));
#include <perfring/fields.def>
	if (type & PERFRING_SAMPLE_IDENTIFIER)
		perfring_put_word(&cursor, sample->identifier);
	return cursor.position;
}

static void put_lost_trailer(const struct perfring_output *output, void *room)
{
	const struct soft_instance *instance = output->data;

	perfring_soft_put_trailer(instance, room, perfring_soft_now(instance->event));
}

void perfring_soft_output_init(struct soft_instance *instance)
{
	const struct perfring_soft_event *event = instance->event;
	struct perfring_output *output = &instance->output;

	output->id = event->id;
	output->wakeup_events = event->attr.watermark ? 0 : event->attr.wakeup_events;
	output->trailer_size = perfring_format_trailer(&event->format);
	output->trailer = put_lost_trailer;
	output->data = instance;
}

void perfring_soft_put_throttle(struct soft_instance *group, bool unthrottle)
{
	const struct perfring_soft_event *leader = group->event;
	struct perfring_writer *writer = PERFRING_LOAD_ACQUIRE(&group->writer); /* soft_event.c's release */
	struct perfring_claim claim;
	unsigned char *room;
	uint64_t words[3];
	uint32_t size;

	if (!writer)
		return;
	size = 8 + sizeof(words) + perfring_format_trailer(&leader->format);
	room = perfring_writer_reserve(writer, &group->output, size, &claim);
	if (!room)
		return;
	words[0] = perfring_soft_now(leader);
	words[1] = leader->id;
	words[2] = group->id;
	memcpy(room, &(perfring_header){unthrottle ? PERF_RECORD_UNTHROTTLE : PERF_RECORD_THROTTLE, 0, (uint16_t)size},
	       8);
	memcpy(room + 8, words, sizeof(words));
	perfring_soft_put_trailer(group, room + 8 + sizeof(words), words[0]);
	perfring_writer_commit(writer, &claim);
}
