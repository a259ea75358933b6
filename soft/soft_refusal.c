/* soft_refusal.c - what a process cannot know of itself: each with its sentence.
 *
 * perfring_soft_explain of soft.h, and soft_attr.c, which refuses by the same tables.  Any thread, not handlers.  Looks at the attr, and
 * for migrations into /proc; allocates nothing.  Sentences are constants.
 */
#include <stdio.h>

#include "sample/attr.h"
#include "soft_private.h"

struct refusal {
	uint64_t bit;
	const char *text;
};

#define FLAG(name) (UINT64_C(1) << PERFRING_ATTR_FLAG_##name)

/* What a process knows of itself. */
#define SAMPLE_BITS \
	((uint64_t)(PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR | PERF_SAMPLE_READ | \
		    PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD | \
		    PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_RAW | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER | \
		    PERF_SAMPLE_IDENTIFIER))

/* Registers of user mode by perf's numbers that only some PMUs have. */
#if defined(__x86_64__)
#define REGS_ELSEWHERE (UINT64_C(0xffffffff) << 32) /* XMM */
#elif defined(__aarch64__)
#define REGS_ELSEWHERE UINT64_C(0)
#else
#define REGS_ELSEWHERE UINT64_MAX
#endif

static const struct refusal FLAGS[] = {
	{FLAG(enable_on_exec), "enable_on_exec: exec ends the process's own events; open them in the new program"},
	{FLAG(context_switch),
	 "context_switch: a thread does not notice that it is switched; only the kernel knows when"},
	{FLAG(namespaces), "namespaces: only the kernel writes such records"},
	{FLAG(ksymbol), "ksymbol: only the kernel writes such records"},
	{FLAG(bpf_event), "bpf_event: only the kernel writes such records"},
	{FLAG(cgroup), "cgroup: only the kernel writes such records"},
	{FLAG(text_poke), "text_poke: only the kernel writes such records"},
	{FLAG(aux_output), "aux_output: software events have no AUX area"},
	{FLAG(sigtrap), "sigtrap: a signal of one's own, or a handler, takes its place (soft.h)"},
	{FLAG(defer_callchain), "defer_callchain: the call chain is taken at once"},
	{FLAG(defer_output), "defer_output: the call chain is taken at once"},
};

static const struct refusal FIELDS[] = {
	{PERFRING_SAMPLE_BRANCH_STACK, "BRANCH_STACK: the processor's last branches are the kernel's to read"},
	{PERFRING_SAMPLE_WEIGHT, "WEIGHT: only a processor's event has it"},
	{PERFRING_SAMPLE_WEIGHT_STRUCT, "WEIGHT_STRUCT: only a processor's event has it"},
	{PERFRING_SAMPLE_DATA_SRC, "DATA_SRC: only a processor's event has it"},
	{PERFRING_SAMPLE_TRANSACTION, "TRANSACTION: only a processor's event has it"},
	{PERFRING_SAMPLE_REGS_INTR, "REGS_INTR: use REGS_USER, which has the same registers here"},
	{PERFRING_SAMPLE_PHYS_ADDR, "PHYS_ADDR: a process does not know its physical addresses"},
	{PERFRING_SAMPLE_AUX, "AUX: software events have no AUX area"},
	{PERFRING_SAMPLE_CGROUP, "CGROUP: the kernel's number of a cgroup is not known"},
	{PERFRING_SAMPLE_DATA_PAGE_SIZE, "DATA_PAGE_SIZE: a process does not know the size of its pages"},
	{PERFRING_SAMPLE_CODE_PAGE_SIZE, "CODE_PAGE_SIZE: a process does not know the size of its pages"},
};

const char *perfring__soft_refused(const struct perf_event_attr *attr, uint64_t flags,
				   const struct perfring_soft_pmu *pmu, const struct perfring_soft_point *point)
{
	uint64_t type = attr->sample_type;

	for (size_t i = 0; i < sizeof(FLAGS) / sizeof(FLAGS[0]); i++)
		if (flags & FLAGS[i].bit)
			return FLAGS[i].text;
	for (size_t i = 0; i < sizeof(FIELDS) / sizeof(FIELDS[0]); i++)
		if (type & FIELDS[i].bit)
			return FIELDS[i].text;
	if (type & PERF_SAMPLE_REGS_USER && attr->sample_regs_user & REGS_ELSEWHERE)
		return "REGS_USER: a process has the general registers only; leave the others out of sample_regs_user";
	if (type & ~SAMPLE_BITS)
		return "a field that only the kernel knows";
	if (pmu == &perfring__soft_accounts && perfring__soft_account_refused(attr))
		return perfring__soft_account_refused(attr);
	if (attr->sample_period && !point && pmu != &perfring__soft_clocks)
		return "sample_period: the PMU of this event reads a counter, and does not see it overflow; count it with a period of 0";
	return NULL;
}

int64_t perfring_soft_explain(const struct perf_event_attr *attr, char *buffer, size_t size)
{
	struct perf_event_attr whole = perfring__attr_whole(attr);
	const struct perfring_soft_pmu *pmu;
	struct perfring_attr_members members;
	struct perfring_soft_point *point;
	struct perfring_format format;
	const char *text = NULL;

	if (perfring__attr_read(&members, attr) || perfring_format_from_attr(&format, &whole))
		text = "the attr is not valid";
	else if (members.aux_action)
		text = "aux_action: software events have no AUX area";
	else if (perfring__soft_pmu_find(&whole, &pmu, &point))
		text = "type, config: no PMU of this process has such an event; the processor's are the kernel's, or a PMU of "
		       "your own reads them (soft.h)";
	else
		text = perfring__soft_refused(&whole, format.flags, pmu, point);
	return snprintf(buffer, size, "%s", text ? text : "");
}
