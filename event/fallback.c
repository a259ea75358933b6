/* fallback.c - what is dropped so that an event opens: as little as possible, and explained.
 *
 * perfring_event_open_fallback and perfring_fallback_explain of event.h; sessions and counts open every event by them (opener.c).
 * Each step answers certain errnos and changes the attr; the first allowed one is tried, until the kernel accepts.
 */
#include <perfring/event.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "event_private.h"

/* Flags without which only some records are missing.  Not among them: what an event is (config3), where its records go
 * (write_backward, aux_output), what it does to the process (sigtrap, remove_on_exec). */
#define FLAG(flag) (UINT64_C(1) << PERFRING_ATTR_FLAG_##flag)
static const uint64_t OPTIONAL_FLAGS = FLAG(defer_output) | FLAG(defer_callchain) | FLAG(inherit_thread) |
				       FLAG(build_id) | FLAG(text_poke) | FLAG(cgroup) | FLAG(bpf_event) |
				       FLAG(ksymbol) | FLAG(namespaces) | FLAG(context_switch) | FLAG(comm_exec) |
				       FLAG(mmap2);

static bool drop_newer(struct perf_event_attr *attr)
{
	uint64_t flags = perfring__probe_unknown(attr, PERFRING_ATTR_AT_flags) & OPTIONAL_FLAGS;
	uint64_t sample_type = perfring__probe_unknown(attr, PERFRING_ATTR_AT_sample_type);
	uint64_t read_format = perfring__probe_unknown(attr, PERFRING_ATTR_AT_read_format);

	for (uint32_t bit = 0; bit < 64; bit++)
		if (flags >> bit & 1)
			perfring_attr_set_flag(attr, bit, false);
	attr->sample_type &= ~sample_type;
	attr->read_format &= ~read_format;
	return flags | sample_type | read_format;
}

static bool drop_precise(struct perf_event_attr *attr)
{
	if (!attr->precise_ip)
		return false;
	attr->precise_ip--;
	return true;
}

static bool drop_clockid(struct perf_event_attr *attr)
{
	bool had = attr->use_clockid;

	attr->use_clockid = 0;
	attr->clockid = 0;
	return had;
}

/* An event of hosts alone, which H asks for, then counts guests too; one of guests alone would become another event. */
static bool drop_guests(struct perf_event_attr *attr)
{
	if (!attr->exclude_guest || attr->exclude_host)
		return false;
	attr->exclude_guest = 0;
	return true;
}

static bool drop_branch_stack(struct perf_event_attr *attr)
{
	bool had = attr->sample_type & PERFRING_SAMPLE_BRANCH_STACK;

	attr->sample_type &= ~(uint64_t)PERFRING_SAMPLE_BRANCH_STACK;
	attr->branch_sample_type = 0;
	return had;
}

/* A branch stack covers each level that is not excluded, also the hypervisor's, unless its mask names levels. */
static bool drop_kernel(struct perf_event_attr *attr)
{
	const uint64_t levels = PERFRING_SAMPLE_BRANCH_KERNEL | PERFRING_SAMPLE_BRANCH_HV;
	bool branches = attr->sample_type & PERFRING_SAMPLE_BRANCH_STACK;
	bool had = !attr->exclude_kernel || (branches && (!attr->exclude_hv || attr->branch_sample_type & levels));

	/* Of an event of the kernel alone nothing would be left. */
	if (attr->exclude_user)
		return false;
	attr->exclude_kernel = 1;
	attr->exclude_hv = 1;
	if (branches)
		attr->branch_sample_type &= ~levels;
	return had;
}

/* cpu-clock counts guests and hosts alike, also where user space and the kernel are excluded: it cannot replace an
 * event of guests or of a hypervisor alone. */
static bool drop_counter(struct perf_event_attr *attr)
{
	if (attr->exclude_host || (attr->exclude_user && attr->exclude_kernel))
		return false;
	if (attr->type != PERFRING_TYPE_HARDWARE && attr->type != PERFRING_TYPE_HW_CACHE &&
	    attr->type != PERFRING_TYPE_RAW)
		return false;
	attr->type = PERFRING_TYPE_SOFTWARE;
	attr->config = PERFRING_COUNT_SW_CPU_CLOCK;
	attr->config1 = 0;
	attr->config2 = 0;
	if (!attr->freq && attr->sample_period)
		attr->sample_period = 1000000;
	return true;
}

/* The steps, in their order: the refusals that each answers, and what it drops.  A step may be taken again while it
 * returns true. */
static const struct step {
	enum perfring_fallback bit;
	int errors[3];
	bool (*drop)(struct perf_event_attr *attr);
} STEPS[] = {
	{PERFRING_FALLBACK_NEWER, {E2BIG, EINVAL, 0}, drop_newer},
	{PERFRING_FALLBACK_PRECISE, {EOPNOTSUPP, EINVAL, 0}, drop_precise},
	{PERFRING_FALLBACK_CLOCKID, {EINVAL, 0, 0}, drop_clockid},
	{PERFRING_FALLBACK_GUESTS, {EINVAL, 0, 0}, drop_guests},
	{PERFRING_FALLBACK_BRANCH_STACK, {EOPNOTSUPP, 0, 0}, drop_branch_stack},
	{PERFRING_FALLBACK_EXCLUDE_KERNEL, {EACCES, EPERM, 0}, drop_kernel},
	{PERFRING_FALLBACK_CPU_CLOCK, {ENOENT, ENODEV, EOPNOTSUPP}, drop_counter},
};

enum {
	STEP_COUNT = sizeof(STEPS) / sizeof(*STEPS),
};

static bool answers(const struct step *step, int error)
{
	return error == step->errors[0] || error == step->errors[1] || error == step->errors[2];
}

/* Takes the first allowed step that answers the error. */
static bool take_step(union perfring_attr *attr, int error, uint64_t allowed, uint64_t *taken)
{
	for (int i = 0; i < STEP_COUNT; i++)
		if (allowed & STEPS[i].bit && answers(&STEPS[i], error) && STEPS[i].drop(&attr->attr)) {
			*taken |= STEPS[i].bit;
			return true;
		}
	return false;
}

/* Takes allowed steps until *attr opens; otherwise *attr and *taken are those of the last refusal. */
static int descend(union perfring_attr *attr, int32_t pid, int32_t cpu, int group_fd, uint64_t flags, uint64_t allowed,
		   uint64_t *taken)
{
	int fd;

	*taken = 0;
	do
		fd = perfring_event_open(&attr->attr, pid, cpu, group_fd, flags);
	while (fd < 0 && take_step(attr, -fd, allowed, taken));
	return fd;
}

int perfring_event_open_fallback(struct perf_event_attr *attr, int32_t pid, int32_t cpu, int group_fd, uint64_t flags,
				 uint64_t allowed, uint64_t *taken)
{
	uint32_t size = perfring__attr_own_size(attr);
	union perfring_attr asked, best, now;
	int first = perfring_event_open(attr, pid, cpu, group_fd, flags), fd, again;
	uint64_t steps, fewer;

	*taken = 0;
	if (first >= 0 || size < PERFRING_ATTR_MIN || size > PERFRING_ATTR_MAX)
		return first;
	memset(&asked, 0, sizeof(asked));
	memcpy(&asked, attr, size);
	best = asked;
	fd = descend(&best, pid, cpu, group_fd, flags, allowed, &steps);
	if (fd < 0) {
		memcpy(attr, &best, size);
		*taken = steps;
		return fd;
	}
	/* One errno has many reasons: restores what was dropped before the right step. */
	for (int i = 0; i < STEP_COUNT; i++) {
		if (!(steps & STEPS[i].bit) || steps == STEPS[i].bit)
			continue;
		now = asked;
		again = descend(&now, pid, cpu, group_fd, flags, steps & ~(uint64_t)STEPS[i].bit, &fewer);
		if (again < 0)
			continue;
		close(fd);
		fd = again;
		best = now;
		steps = fewer;
	}
	/* precise_ip may have been lowered before another step. */
	for (uint32_t more = asked.attr.precise_ip; steps & PERFRING_FALLBACK_PRECISE && more > best.attr.precise_ip;
	     more--) {
		now = best;
		now.attr.precise_ip = more & 3;
		again = perfring_event_open(&now.attr, pid, cpu, group_fd, flags);
		if (again >= 0) {
			close(fd);
			fd = again;
			best = now;
		}
	}
	memcpy(attr, &best, size);
	*taken = steps;
	return fd;
}

/* ---- explanation ---- */

/* The names of the bits that were dropped from a word. */
static void say_bits(struct perfring_words *text, uint64_t dropped, const char *const names[64], const char **separator)
{
	for (uint32_t bit = 0; bit < 64; bit++)
		if (dropped >> bit & 1) {
			if (names[bit])
				perfring__say(text, "%s%s", *separator, names[bit]);
			else
				perfring__say(text, "%sbit %u", *separator, bit);
			*separator = ", ";
		}
}

static void say_newer(struct perfring_words *text, const struct perf_event_attr *asked,
		      const struct perf_event_attr *opened)
{
	static const char *const FLAGS[64] = {
#define PERFRING_ATTR_FLAG(flag, bit, width) [bit] = #flag,
#include <perfring/values.def>
	};
	static const char *const SAMPLES[64] = {
#define PERFRING_FIELD(NAME, bit, ...) [bit] = #NAME " in samples",
#include <perfring/fields.def>
	};
	static const char *const READS[64] = {[4] = "lost counts in reads (FORMAT_LOST)"};
	const char *separator = "";

	perfring__say(text, "this kernel does not know ");
	say_bits(text, perfring__attr_flags(asked) & ~perfring__attr_flags(opened) & OPTIONAL_FLAGS, FLAGS, &separator);
	say_bits(text, asked->sample_type & ~opened->sample_type & ~(uint64_t)PERFRING_SAMPLE_BRANCH_STACK, SAMPLES,
		 &separator);
	say_bits(text, asked->read_format & ~opened->read_format, READS, &separator);
	perfring__say(text, ", which is left out");
}

int64_t perfring_fallback_explain(uint64_t taken, const struct perf_event_attr *asked_from,
				  const struct perf_event_attr *opened_from, char *buffer, size_t size)
{
	struct perf_event_attr asked = perfring__attr_whole(asked_from), opened = perfring__attr_whole(opened_from);
	struct perfring_words text = perfring__words_in(buffer, size);
	char name[256];

	asked.size = sizeof(asked);
	perfring__event_plain_name(&asked, name, sizeof(name));
	for (int i = 0; i < STEP_COUNT; i++) {
		if (!(taken & STEPS[i].bit))
			continue;
		perfring__say(&text, "%s%s", text.length ? "; " : name, text.length ? "" : ": ");
		switch (STEPS[i].bit) {
		case PERFRING_FALLBACK_NEWER:
			say_newer(&text, &asked, &opened);
			break;
		case PERFRING_FALLBACK_PRECISE:
			perfring__say(
				&text,
				"its PMU has no precise_ip %u: with %u an address may be that of a later instruction",
				(unsigned)asked.precise_ip, (unsigned)opened.precise_ip);
			break;
		case PERFRING_FALLBACK_CLOCKID:
			perfring__say(&text, "clock %d cannot be used: times are of perf's own clock", asked.clockid);
			break;
		case PERFRING_FALLBACK_GUESTS:
			perfring__say(&text, "its PMU cannot leave guests out: what they do is counted too");
			break;
		case PERFRING_FALLBACK_BRANCH_STACK:
			perfring__say(&text, "its PMU has no branch stacks: samples have none");
			break;
		case PERFRING_FALLBACK_EXCLUDE_KERNEL:
			perfring__say(&text,
				      "user space only (the kernel needs CAP_PERFMON or perf_event_paranoid <= 1)");
			break;
		case PERFRING_FALLBACK_CPU_CLOCK:
			perfring__say(&text, "no such hardware counter here: cpu-clock instead%s",
				      opened.sample_period && !opened.freq ? ", a sample each ms" : "");
			break;
		case PERFRING_FALLBACK_MISSING: /* no step */
		case PERFRING_FALLBACK_ALL:
			break;
		}
	}
	if (text.length)
		perfring__say(&text, ".");
	return (int64_t)text.length;
}
