/* soft_attr.c - what an attr makes of an event, and the rules under which it is refused: docs/abi.md 1.3, 1.5.
 *
 * soft_event.c opens events by it, in any thread, not in handlers.  Sets members of an event that no other thread has yet;
 * allocates nothing.  Each refusal is the -errno that perf_event_open has for it; soft_refusal.c has the sentences.
 */
#include "sample/attr.h"
#include "soft_private.h"

enum {
	STACK_MAX = 65535,
};

#define FLAG(name) (UINT64_C(1) << PERFRING_ATTR_FLAG_##name)

/* The bits that are implemented.  A later bit may mean more. */
#define READ_BITS (2 * (uint64_t)PERFRING_FORMAT_LOST - 1)
#define FLAGS (2 * FLAG(defer_output) - 1)

/* Reserved registers of user mode by perf's numbers. */
#if defined(__x86_64__)
#define REGS_RESERVED (UINT64_C(0xf000) | UINT64_C(0xff000000)) /* DS ES FS GS, and none */
#elif defined(__aarch64__)
#define REGS_RESERVED (~((UINT64_C(1) << 33) - 1))
#else
#define REGS_RESERVED UINT64_C(0)
#endif

/* As many bytes as its own size says. */
static int copy_attr(struct perf_event_attr *copy, const struct perf_event_attr *attr, uint32_t *aux_action)
{
	const unsigned char *bytes = (const unsigned char *)attr;
	uint32_t size = perfring__attr_own_size(attr);
	struct perfring_attr_members members;

	if (perfring__attr_read(&members, attr))
		return -E2BIG;
	for (uint32_t i = PERFRING_ATTR_KNOWN; i < size; i++)
		if (bytes[i])
			return -E2BIG;
	*aux_action = (uint32_t)members.aux_action;
	*copy = perfring__attr_whole(attr);
	copy->size = size < sizeof(*copy) ? size : (uint32_t)sizeof(*copy);
	return 0;
}

/* The rules of every kernel. */
static int judge_shape(const struct perf_event_attr *attr, uint64_t flags, uint32_t aux_action)
{
	uint64_t type = attr->sample_type;

	if (type & ~(uint64_t)PERFRING_SAMPLE_KNOWN || attr->read_format & ~READ_BITS || flags & ~FLAGS ||
	    attr->__reserved_2 || aux_action & ~7u)
		return -EINVAL;
	if (type & PERF_SAMPLE_REGS_USER && (!attr->sample_regs_user || attr->sample_regs_user & REGS_RESERVED))
		return -EINVAL;
	if (type & PERF_SAMPLE_STACK_USER && (attr->sample_stack_user >= STACK_MAX || attr->sample_stack_user & 7))
		return -EINVAL;
	if (type & PERFRING_SAMPLE_WEIGHT && type & PERFRING_SAMPLE_WEIGHT_STRUCT)
		return -EINVAL;
	if ((flags & FLAG(inherit_thread) && !(flags & FLAG(inherit))) ||
	    (flags & FLAG(remove_on_exec) && flags & FLAG(enable_on_exec)) ||
	    (flags & FLAG(sigtrap) && !(flags & FLAG(remove_on_exec))))
		return -EINVAL;
	if (aux_action & 6) /* aux_pause, aux_resume: no leader here has an AUX area */
		return -EINVAL;
	return 0;
}

static bool clock_is_valid(const struct perf_event_attr *attr)
{
	return !attr->use_clockid || attr->clockid == CLOCK_MONOTONIC || attr->clockid == CLOCK_MONOTONIC_RAW ||
	       attr->clockid == CLOCK_REALTIME || attr->clockid == CLOCK_BOOTTIME || attr->clockid == CLOCK_TAI;
}

/* Sets the members of the event that attr gives. */
int perfring__soft_judge(struct perfring_soft_event *event, const struct perf_event_attr *from, unsigned scope)
{
	struct perf_event_attr *attr = &event->attr;
	uint32_t aux_action;
	uint64_t flags;
	int ret;

	ret = copy_attr(attr, from, &aux_action);
	if (ret)
		return ret;
	ret = perfring_format_from_attr(&event->format, attr);
	if (ret)
		return ret;
	flags = event->format.flags;
	ret = judge_shape(attr, flags, aux_action);
	if (ret)
		return ret;
	if (attr->freq ? attr->sample_freq > PERFRING_LOAD(&perfring__soft_max_rate) : attr->sample_period >> 63)
		return -EINVAL;
	if (scope == PERFRING_SOFT_PROCESS)
		flags |= FLAG(inherit);
	event->has_heirs = flags & FLAG(inherit);
	/* Only TID says whose values these are. */
	if (flags & FLAG(inherit) && attr->sample_type & PERF_SAMPLE_READ && !(attr->sample_type & PERF_SAMPLE_TID))
		return -EINVAL;
	if (!clock_is_valid(attr))
		return -EINVAL;
	ret = perfring__soft_pmu_find(attr, &event->pmu, &event->point);
	if (ret)
		return ret;
	if (perfring__soft_refused(attr, flags, event->pmu, event->point) || aux_action)
		return -EOPNOTSUPP;
	if (attr->sample_type & PERF_SAMPLE_CALLCHAIN && attr->sample_max_stack > SOFT_CHAIN_MAX)
		return -EOVERFLOW;
	event->is_clock = event->pmu == &perfring__soft_clocks;
	event->samples = attr->sample_period != 0;
	event->is_monotonic = !attr->use_clockid || attr->clockid == CLOCK_MONOTONIC;
	if (event->is_clock && attr->freq) { /* docs/abi.md 9.3: converted once */
		attr->sample_period = attr->sample_freq ? SECOND / attr->sample_freq : 0;
		attr->freq = 0;
	}
	return 0;
}
