/* emit.c - an overflow as a SAMPLE, encoded where it lies in the ring; THROTTLE and UNTHROTTLE; trailers.
 *
 * The time is taken when room was given: so a LOST record that the writer puts in front of a record is not younger than
 * it, and of two records of one thread the later one has the later time, but for a handler's that comes between.
 */
#include <sched.h>
#include <time.h>

#include <perfring/sample.h>

#include "own.h"

enum {
	/* One word each, and RAW, which is given: nearly every point's samples. */
	SHORT = PERFRING_SAMPLE_IDENTIFIER | PERFRING_SAMPLE_IP | PERFRING_SAMPLE_TID | PERFRING_SAMPLE_TIME |
		PERFRING_SAMPLE_ADDR | PERFRING_SAMPLE_ID | PERFRING_SAMPLE_STREAM_ID | PERFRING_SAMPLE_CPU |
		PERFRING_SAMPLE_PERIOD | PERFRING_SAMPLE_RAW,
	/* What must be found out first.  The stack, which is the last field, is put behind the others. */
	LONG = SHORT | PERFRING_SAMPLE_READ | PERFRING_SAMPLE_CALLCHAIN | PERFRING_SAMPLE_REGS_USER,
	CHAIN_MOST = 127,
	READ_MOST = 2048, /* 84 events with everything */
	TRAILER_MOST = 48,
};

uint64_t perfring_soft_now(const struct perfring_soft_event *event)
{
	struct timespec time = {0, 0};

	clock_gettime(event->attr.use_clockid ? event->attr.clockid : CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
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

/* Too large for a record: refused by the writer, like all that it refuses. */
static uint64_t size_or_none(int64_t size)
{
	return size < 0 ? UINT64_MAX : (uint64_t)size;
}

/* A field of one word; those of others are not looked at. */
#define WORD_u64(a, b) sample.a
#define WORD_pair(a, b) pair(sample.a, sample.b)
#define WORD_weight(a, b) 0
#define WORD_read(a, b) 0
#define WORD_list(a, b) 0
#define WORD_raw(a, b) 0
#define WORD_branch(a, b) 0
#define WORD_regs(a, b) 0
#define WORD_stack(a, b) 0
#define WORD_aux(a, b) 0

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
	if (SHORT & PERFRING_SAMPLE_##NAME && PERFRING_IS_WORD_##kind && type & PERFRING_SAMPLE_##NAME) \
		*word++ = WORD_##kind(a, b);
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

/* Bytes of stack to have room for behind `size` others: as the kernel, cut where the record would be too large. */
static uint64_t stack_room(const struct perfring_soft_event *event, uint64_t size)
{
	uint64_t most = size + 16 < PERFRING_RECORD_MOST ? PERFRING_RECORD_MOST - 16 - size : 0;
	uint64_t stack = event->attr.sample_stack_user & ~7u;

	return stack < most ? stack : most;
}

static void put_stack(unsigned char *room, uint64_t stack, uint64_t sp, const struct soft_thread *thread)
{
	uint64_t copied;

	memcpy(room, &stack, 8);
	if (!stack) /* nothing behind it: ABI.md 14.3 */
		return;
	copied = perfring_soft_stack_copy(room + 8, sp, stack, thread);
	memset(room + 8 + copied, 0, (size_t)(stack - copied));
	memcpy(room + 8 + stack, &copied, 8);
}

/* With what must be found out first; `read` already is.  The stack is the last field: it goes behind the others. */
static __attribute__((noinline)) bool put_long(struct soft_instance *instance, struct perfring_writer *writer,
					       uint64_t period, const struct perfring_soft_site *site,
					       const void *frame, const void *caller, uint64_t *time,
					       const struct perfring_read *read)
{
	const struct perfring_soft_event *event = instance->event;
	uint64_t chain[1 + CHAIN_MOST], values[64], mask, front, size, stack = 0, type = event->format.sample_type;
	struct perfring_format format = event->format;
	struct soft_registers registers;
	struct perfring_sample sample;
	struct perfring_claim claim;
	unsigned char *room;
	uint32_t most;

	perfring_soft_registers(&registers, site->context, frame, caller);
	fill(&sample, instance, period, site, registers.ip);
	if (read)
		sample.read = *read;
	if (type & PERFRING_SAMPLE_CALLCHAIN) {
		most = event->attr.sample_max_stack;
		if (!most || most > CHAIN_MOST)
			most = CHAIN_MOST;
		sample.callchain.words = chain;
		sample.callchain.nr = event->attr.exclude_callchain_user
					      ? 0
					      : perfring_soft_unwind(chain, 1 + most, &registers, instance->thread);
	}
	if (type & PERFRING_SAMPLE_REGS_USER) {
		sample.regs_user.abi = registers.abi;
		sample.regs_user.values = values;
		sample.regs_user.nr = 0;
		for (mask = format.sample_regs_user; mask; mask &= mask - 1)
			values[sample.regs_user.nr++] = registers.words[__builtin_ctzll(mask)];
	}

	format.sample_type &= LONG;
	front = size = size_or_none(perfring_sample_size_any(&format, &sample));
	if (type & PERFRING_SAMPLE_STACK_USER && front <= PERFRING_RECORD_MOST) {
		stack = stack_room(event, front);
		size += 8 + (stack ? stack + 8 : 0);
	}
	room = perfring_writer_reserve(writer, &instance->output, size, &claim);
	if (PERFRING_UNLIKELY(!room))
		return false;
	if (type & PERFRING_SAMPLE_TIME)
		*time = sample.time = perfring_soft_now(event);
	perfring_sample_encode_any(&format, &sample, room, (size_t)front);
	if (size != front) {
		((perfring_header *)(void *)room)->size = (uint16_t)size;
		put_stack(room + front, stack, registers.sp, instance->thread);
	}
	perfring_writer_commit(writer, &claim);
	return true;
}

static __attribute__((noinline)) bool put_read(struct soft_instance *instance, struct perfring_writer *writer,
					       uint64_t period, const struct perfring_soft_site *site,
					       const void *frame, const void *caller, uint64_t *time)
{
	uint64_t words[READ_MOST / 8];
	uint32_t size = perfring_soft_read_in_thread(instance, words, sizeof(words));
	struct perfring_cursor cursor = perfring_cursor_over(words, 0, size);
	struct perfring_read read;

	if (perfring_take_read(&cursor, &read, instance->event->format.read_format)) { /* a group too large: 0 bytes */
		perfring_writer_refuse(writer, &instance->output, 1);
		return false;
	}
	return put_long(instance, writer, period, site, frame, caller, time, &read);
}

bool perfring_soft_put_sample(struct soft_instance *instance, uint64_t period, const struct perfring_soft_site *site,
			      const void *frame, const void *caller, uint64_t *time)
{
	struct perfring_writer *writer = PERFRING_LOAD_ACQUIRE(&instance->writer); /* event.c's release */
	uint64_t type = instance->event->format.sample_type;

	if (PERFRING_UNLIKELY(!writer))
		return true;
	if (type & PERFRING_SAMPLE_READ)
		return put_read(instance, writer, period, site, frame, caller, time);
	if (site->context || type & ~(uint64_t)SHORT)
		return put_long(instance, writer, period, site, frame, caller, time, NULL);
	return put_short(instance, writer, period, site, caller, time);
}

/* ---- other records ---- */

uint32_t perfring_soft_put_trailer(const struct soft_instance *instance, unsigned char *room, uint64_t time)
{
	const struct perfring_format *format = &instance->event->format;
	struct perfring_cursor cursor = perfring_cursor_over(room, 0, TRAILER_MOST);
	uint64_t type = format->sample_type;
	struct perfring_sample ids, *sample = &ids;

	if (!perfring_format_has_trailer(format))
		return 0;
	fill_ids(sample, instance, type);
	sample->time = time;
#define PERFRING_FIELD(NAME, bit, kind, a, b, trailer, ...) \
	if (PERFRING_TRAILER_##trailer == PERFRING_TRAILER_yes && (type & PERFRING_SAMPLE_##NAME)) \
		perfring_put_##kind(&cursor, PERFRING_FROM_##kind(a, b));
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
	struct perfring_writer *writer = PERFRING_LOAD_ACQUIRE(&group->writer); /* event.c's release */
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
