/* record_events.c - what `perfring record` observes: events by name, their attrs, their fds.
 *
 * Called by record_options.c for each -e, then once by record_command.c: makes the attrs as perf would, opens the session, and
 * prints what was dropped or refused.  soft_source.c takes the events of --soft.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>
#include <perfring/command.h>
#include <perfring/event.h>
#include <perfring/profile_fill.h>
#include <perfring/text.h>
#include <perfring/target.h>
#include "options.h"
#include "record_command.h"

enum {
	DEFAULT_FREQUENCY = 4000,
};

bool tool_record_can_unwind(void)
{
	return perfring_event_unwind_registers();
}

static bool is_chain(const struct recording *recording, const char *how)
{
	return recording->callchain && !strcmp(recording->callchain, how);
}

bool tool_record_has_chains(const struct recording *recording)
{
	for (uint32_t i = 0; i < recording->event_count; i++)
		if (recording->events[i].attr.sample_type & PERFRING_SAMPLE_CALLCHAIN)
			return true;
	return recording->callchain || recording->off_cpu;
}

bool tool_record_copies_stacks(const struct recording *recording)
{
	for (uint32_t i = 0; i < recording->event_count; i++)
		if (recording->events[i].attr.sample_type & PERFRING_SAMPLE_STACK_USER)
			return true;
	return is_chain(recording, "dwarf");
}

static struct recorded_event *new_event(struct recording *recording)
{
	struct recorded_event *event;

	recording->events =
		tool_allocate(recording->events, recording->event_count + (size_t)1, sizeof(*recording->events));
	event = &recording->events[recording->event_count++];
	memset(event, 0, sizeof(*event));
	event->attr.size = sizeof(event->attr);
	event->leader = UINT32_MAX;
	return event;
}

/* Terms that a recording cannot follow. */
static bool are_taken(const struct recorded_event *event)
{
	const char *what = NULL;

	if (event->terms & PERFRING_TERM_TIME && !(event->attr.sample_type & PERFRING_SAMPLE_TIME))
		what = "time=0: a file's records are put in order by their times: leave it out";
	else if (event->attr.sample_stack_user && !(event->attr.sample_type & PERFRING_SAMPLE_STACK_USER))
		what = "stack-size= needs call-graph=dwarf before it or after it";
	else if (event->attr.sample_type & PERFRING_SAMPLE_AUX || event->attr.aux_sample_size)
		what = "aux-sample-size=: pieces of AUX areas in samples are not recorded";
	if (what)
		tool_complain("record: -e %s: %s", event->name, what);
	return !what;
}

bool tool_record_add_events(struct recording *recording, const char *list)
{
	struct perfring_fault fault = {0, "unknown event"};
	struct perf_event_attr base;
	int ret = recording->names ? 0 : perfring_events_open(&recording->names);

	memset(&base, 0, sizeof(base));
	base.size = sizeof(base);
	base.exclude_guest = 1; /* as perf, unless modifiers say otherwise */
	if (!ret)
		ret = perfring_events_add(recording->names, list, &base, &fault);
	if (ret) {
		tool_options_refuse_event("record", list, ret, &fault);
		return false;
	}
	recording->last_list = recording->event_count;
	for (uint32_t i = recording->event_count; i < perfring_events_count(recording->names); i++) {
		const struct perfring_events_one *one = perfring_events_at(recording->names, i);
		struct recorded_event *event = new_event(recording);

		memcpy(&event->attr, one->attr,
		       one->attr->size < sizeof(event->attr) ? one->attr->size : sizeof(event->attr));
		snprintf(event->name, sizeof(event->name), "%s", one->name);
		event->leader = one->leader;
		event->reads = one->reads;
		event->terms = one->terms;
		if (!are_taken(event))
			return false;
	}
	return true;
}

static bool is_switch(const struct perf_event_attr *attr)
{
	return attr->type == PERFRING_TYPE_SOFTWARE && attr->config == PERFRING_COUNT_SW_CONTEXT_SWITCHES;
}

static bool is_waking(const struct recorded_event *event)
{
	return event->attr.type == PERFRING_TYPE_TRACEPOINT && !strcmp(event->name, PERFRING_PROFILE_WAKING);
}

bool tool_record_add_off_cpu(struct recording *recording)
{
	bool has_switches = false, has_wakings = !recording->wakers;

	for (uint32_t i = 0; i < recording->event_count; i++) {
		has_switches |= is_switch(&recording->events[i].attr);
		has_wakings |= is_waking(&recording->events[i]);
	}
	recording->has_switches_of_off_cpu = !has_switches;
	return (has_switches || tool_record_add_events(recording, "context-switches")) &&
	       (has_wakings || tool_record_add_events(recording, PERFRING_PROFILE_WAKING));
}

bool tool_record_take_overwrite(struct recording *recording)
{
	uint32_t with = 0, without = 0;

	for (uint32_t i = 0; i < recording->event_count; i++) {
		struct recorded_event *event = &recording->events[i];
		struct perfring_format format;

		if (!(event->terms & PERFRING_TERM_OVERWRITE))
			continue;
		perfring_format_from_attr(&format, &event->attr);
		if (format.flags >> PERFRING_ATTR_FLAG_write_backward & 1)
			with++;
		else
			without++;
		/* The session sets it. */
		perfring_attr_set_flag(&event->attr, PERFRING_ATTR_FLAG_write_backward, false);
	}
	if (recording->event_count && with == recording->event_count)
		recording->snapshots = true;
	else if (recording->event_count && without == recording->event_count)
		recording->snapshots = false;
	else if (recording->snapshots ? without : with) {
		tool_complain(
			"record: overwrite is for every event or for none: say --overwrite, or make two recordings");
		return false;
	}
	return true;
}

bool tool_record_add_filter(struct recording *recording, const char *filter)
{
	return tool_filters_add("record", &recording->filters, recording->names, recording->last_list, filter);
}

bool tool_record_exclude_own(struct recording *recording)
{
	char filter[48];

	for (uint32_t i = recording->last_list; i < recording->event_count; i++)
		if (recording->events[i].attr.type != PERFRING_TYPE_TRACEPOINT)
			recording->last_list = recording->event_count;
	if (recording->last_list == recording->event_count) {
		tool_complain("record: --exclude-perf must follow the -e of a tracepoint; other events do not observe "
			      "perfring with a COMMAND, -p or -t");
		return false;
	}
	snprintf(filter, sizeof(filter), "common_pid != %d", (int)getpid());
	return tool_record_add_filter(recording, filter);
}

void tool_record_group(struct recording *recording)
{
	for (uint32_t i = 0; i < recording->event_count; i++)
		if (recording->events[i].leader != UINT32_MAX)
			return;
	for (uint32_t i = 0; recording->event_count > 1 && i < recording->event_count; i++)
		recording->events[i].leader = 0;
}

/* Of the user's own. */
static bool has_one_event(const struct recording *recording)
{
	return recording->event_count == 1u + recording->has_switches_of_off_cpu;
}

bool tool_record_is_soft(const struct recording *recording)
{
	const struct perf_event_attr *attr = &recording->events[0].attr;

	return has_one_event(recording) && attr->type == PERFRING_TYPE_SOFTWARE && !attr->exclude_user &&
	       (attr->config == PERFRING_COUNT_SW_CPU_CLOCK || attr->config == PERFRING_COUNT_SW_TASK_CLOCK);
}

/* --raw-samples is not among them: a clock has no raw data, and in the kernel's samples of it the field is empty too. */
const char *tool_record_not_soft(const struct recording *recording)
{
#define KERNEL(option) "--soft does not go with " option ", which needs the kernel: a process cannot know it of itself"
#define APART(option) "--soft does not go with " option
	const struct {
		bool is_given;
		const char *sentence;
	} rows[] = {
		{recording->all || recording->pids || recording->tids || recording->cpus || recording->cgroup ||
			 recording->user,
		 "--soft observes a COMMAND, and no -a, -p, -t, -u, -G or -C"},
		{recording->per_thread, APART("--per-thread")},
		{recording->snapshots, APART("--snapshot: its rings are drained while they fill, and none overwrites")},
		{recording->aux_snapshots, APART("-S")},
		{recording->switched, APART("--switch-output")},
		{recording->directory, APART("--directory")},
		{recording->has_clockid, APART("-k")},
		{recording->is_delayed, APART("-D")},
		{recording->control_text, APART("--control")},
		{recording->kernel_only, APART("--all-kernel: a process samples itself in user space alone")},
		{recording->addresses, KERNEL("-d")},
		{recording->extra & PERFRING_SAMPLE_PHYS_ADDR, KERNEL("--phys-data")},
		{recording->extra & PERFRING_SAMPLE_DATA_PAGE_SIZE, KERNEL("--data-page-size")},
		{recording->extra & PERFRING_SAMPLE_CODE_PAGE_SIZE, KERNEL("--code-page-size")},
		{recording->extra & (PERFRING_SAMPLE_WEIGHT | PERFRING_SAMPLE_WEIGHT_STRUCT), KERNEL("-W")},
		{recording->branches, KERNEL("-b and -j")},
		{is_chain(recording, "lbr"), KERNEL("--call-graph lbr")},
		{recording->defers, KERNEL("--call-graph fp,defer")},
		{recording->interrupt_registers, KERNEL("-I")},
		{recording->wakers, KERNEL("--wakers")},
		{recording->switches, KERNEL("--switch-events")},
		{recording->namespaces, KERNEL("--namespaces")},
		{recording->cgroups, KERNEL("--all-cgroups")},
	};
#undef KERNEL
#undef APART

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].is_given)
			return rows[i].sentence;
	return NULL;
}

uint64_t tool_record_max_rate(void)
{
	FILE *file = fopen("/proc/sys/kernel/perf_event_max_sample_rate", "re");
	uint64_t rate = UINT64_MAX;

	if (!file)
		return rate;
	if (fscanf(file, "%" SCNu64, &rate) != 1)
		rate = UINT64_MAX;
	fclose(file);
	return rate;
}

/* ---- attrs ---- */

static bool is_every_one(const struct perf_event_attr *attr)
{
	return attr->type == PERFRING_TYPE_TRACEPOINT || attr->type == PERFRING_TYPE_BREAKPOINT ||
	       (attr->type == PERFRING_TYPE_SOFTWARE && attr->config == PERFRING_COUNT_SW_BPF_OUTPUT);
}

/* Sets the frequency or period; terms of the event override the options. */
static void shape_period(const struct recording *recording, struct perf_event_attr *attr)
{
	if (attr->sample_period)
		return;
	if (recording->no_samples) {
		return;
	} else if (recording->period) {
		attr->sample_period = recording->period;
	} else if (!recording->frequency && is_every_one(attr)) {
		attr->sample_period = 1;
	} else {
		uint64_t rate = tool_record_max_rate();

		attr->freq = 1;
		attr->sample_freq = recording->frequency ? recording->frequency : DEFAULT_FREQUENCY;
		if (attr->sample_freq > rate && !recording->strict) {
			tool_complain("record: %" PRIu64 " Hz is above kernel.perf_event_max_sample_rate: %" PRIu64
				      " Hz instead",
				      (uint64_t)attr->sample_freq, rate);
			attr->sample_freq = rate;
		}
	}
}

/* Sets what all events of a session have in common: the clock, and the place of the id. */
static void shape_common(const struct recording *recording, struct perf_event_attr *attr, uint32_t terms)
{
	attr->sample_type |=
		PERFRING_SAMPLE_IDENTIFIER | PERFRING_SAMPLE_IP | PERFRING_SAMPLE_TID | PERFRING_SAMPLE_TIME;
	if (recording->all || recording->cpus || recording->cgroup || recording->sample_cpu || recording->raw ||
	    attr->type == PERFRING_TYPE_TRACEPOINT)
		attr->sample_type |= PERFRING_SAMPLE_CPU;
	attr->read_format |= PERFRING_FORMAT_ID | PERFRING_FORMAT_LOST;
	if (recording->thread_stats || recording->running_times)
		attr->read_format |= PERFRING_FORMAT_TOTAL_TIME_ENABLED | PERFRING_FORMAT_TOTAL_TIME_RUNNING;
	attr->sample_id_all = 1;
	if (!(terms & PERFRING_TERM_INHERIT))
		attr->inherit = recording->inherit;
	if (recording->all || recording->per_thread || recording->cgroup)
		attr->inherit = 0;
	if (recording->has_clockid) {
		attr->use_clockid = 1;
		attr->clockid = recording->clockid;
	}
}

/* Whether processes that observe themselves (--soft) unwind their own stacks: they copy them only if a size is given. */
static bool unwinds_itself(const struct recording *recording)
{
	return recording->soft && is_chain(recording, "dwarf") && !recording->stack;
}

/* Whether samples have addresses: with -d, and, as perf, if the user's stack is copied into the file.  A process that observes itself
 * knows none. */
static bool has_addresses(const struct recording *recording, const struct perf_event_attr *attr)
{
	return recording->addresses ||
	       (!recording->soft && !recording->unwinds &&
		(is_chain(recording, "dwarf") || attr->sample_type & PERFRING_SAMPLE_STACK_USER));
}

/* Whether mappings have build ids for --unwind: for all processes only if asked for, because the kernel then marks records of other
 * recorders' events too (docs/abi.md 14.24). */
static bool unwinds_by_ids(const struct recording *recording)
{
	return recording->unwinds && !recording->all && !recording->cpus && !recording->cgroup;
}

/* Makes one event report tasks and mappings for all. */
static void shape_side(const struct recording *recording, struct perf_event_attr *attr)
{
	attr->mmap = attr->mmap2 = attr->comm = attr->comm_exec = attr->task = 1;
	/* Those who unwind what is in the file read an object's tables, whose mapping is not executable. */
	attr->mmap_data = recording->addresses ||
			  (tool_record_copies_stacks(recording) && !recording->unwinds && !unwinds_itself(recording));
	perfring_attr_set_flag(attr, PERFRING_ATTR_FLAG_context_switch, recording->switches);
	perfring_attr_set_flag(attr, PERFRING_ATTR_FLAG_namespaces, recording->namespaces);
	perfring_attr_set_flag(attr, PERFRING_ATTR_FLAG_cgroup, recording->cgroups);
	perfring_attr_set_flag(attr, PERFRING_ATTR_FLAG_build_id,
			       recording->build_id_mmap || unwinds_by_ids(recording));
	/* As in perf: of one event, for each that has defer_output gets a record of each chain. */
	perfring_attr_set_flag(attr, PERFRING_ATTR_FLAG_defer_output, recording->defers && !recording->kernel_chains);
	/* Names of BPF programs, as in perf: these run in any process.  A process that observes itself cannot know them. */
	perfring_attr_set_flag(attr, PERFRING_ATTR_FLAG_ksymbol, !recording->soft);
	perfring_attr_set_flag(attr, PERFRING_ATTR_FLAG_bpf_event, !recording->soft && !recording->no_bpf);
}

/* How callchains are recorded.  As in perf, lbr becomes frame pointers if branches are not of user space, or are recorded themselves. */
static const char *how_chain(const struct recording *recording, const struct perf_event_attr *attr)
{
	if (unwinds_itself(recording))
		return "fp"; /* the shape of the samples */
	if (!is_chain(recording, "lbr") || (!attr->exclude_user && !recording->branches))
		return recording->callchain;
	if (!recording->quiet)
		tool_complain(recording->branches
				      ? "record: --call-graph lbr does not go with -b or -j: call chains are by "
					"frame pointers"
				      : "record: --call-graph lbr is of user space, which an event leaves out: its "
					"call chains are by frame pointers");
	return "fp";
}

static void shape_callchain(const struct recording *recording, struct perf_event_attr *attr)
{
	const char *how = how_chain(recording, attr);

	if (!how)
		return;
	attr->sample_stack_user = recording->stack;
	perfring_event_callchain(how, strlen(how), attr);
	if (recording->kernel_chains)
		attr->exclude_callchain_user = 1;
	attr->exclude_callchain_kernel = recording->user_chains;
	perfring_attr_set_flag(attr, PERFRING_ATTR_FLAG_defer_callchain,
			       recording->defers && !attr->exclude_callchain_user);
	/* As perf: with a list of registers no more than it needs at least. */
	if (!strcmp(how, "dwarf") && recording->user_registers)
		attr->sample_regs_user =
			tool_record_register("SP", 2) | tool_record_register("IP", 2) | tool_record_register("PC", 2);
}

/* Whether this is the event of --off-cpu, which samples each context switch with the stack that waits; also one that the user has
 * named. */
static bool is_off_cpu(const struct recording *recording, const struct perf_event_attr *attr)
{
	return recording->off_cpu && is_switch(attr);
}

/* Each waking, without a stack: who it was is enough. */
static bool is_waker(const struct recording *recording, const struct recorded_event *event)
{
	return recording->wakers && is_waking(event);
}

static void shape(const struct recording *recording, struct recorded_event *event)
{
	struct perf_event_attr *attr = &event->attr;
	uint32_t terms = event->terms;

	if (is_off_cpu(recording, attr) || is_waker(recording, event)) {
		attr->freq = 0;
		attr->sample_period = 1;
	}
	shape_period(recording, attr);
	shape_common(recording, attr, terms);
	attr->disabled = 1;
	attr->enable_on_exec = tool_record_observes_command(recording) && !recording->is_delayed;
	event->is_off =
		recording->is_delayed && (event->leader == UINT32_MAX || &recording->events[event->leader] == event);
	/* With PERIOD a software event samples each occurrence, whatever its period (docs/abi.md 9.2). */
	if (attr->freq || attr->sample_period == 1 || recording->periods ||
	    (recording->no_samples && !recording->period))
		attr->sample_type |= PERFRING_SAMPLE_PERIOD;
	attr->inherit_stat = recording->thread_stats && attr->inherit;
	attr->sample_type |= recording->extra;
	if (!(terms & PERFRING_TERM_CALLCHAIN) && !is_waker(recording, event))
		shape_callchain(recording, attr);
	if (is_off_cpu(recording, attr)) {
		attr->sample_type |= PERFRING_SAMPLE_CALLCHAIN;
		perfring_attr_set_flag(attr, PERFRING_ATTR_FLAG_defer_callchain, 0); /* it would come after the return */
	}
	/* The event's own term max-stack= overrides the option. */
	if (attr->sample_type & PERFRING_SAMPLE_CALLCHAIN && !attr->sample_max_stack)
		attr->sample_max_stack = recording->max_stack;
	/* Where tables lead no further, frame pointers may.  Of a file with copies perf shows both, one after the other. */
	if (recording->unwinds && attr->sample_type & PERFRING_SAMPLE_STACK_USER)
		attr->exclude_callchain_user = 0;
	if (recording->user_registers) {
		attr->sample_type |= PERFRING_SAMPLE_REGS_USER;
		attr->sample_regs_user |= recording->user_registers;
	}
	if (recording->branches && !(terms & PERFRING_TERM_BRANCHES)) {
		attr->sample_type |= PERFRING_SAMPLE_BRANCH_STACK;
		attr->branch_sample_type |= recording->branches;
	}
	if (recording->interrupt_registers) {
		attr->sample_type |= PERFRING_SAMPLE_REGS_INTR;
		attr->sample_regs_intr = recording->interrupt_registers;
	}
	if (recording->cgroups)
		attr->sample_type |= PERFRING_SAMPLE_CGROUP;
	if (attr->type == PERFRING_TYPE_TRACEPOINT || recording->raw ||
	    (attr->type == PERFRING_TYPE_SOFTWARE && attr->config == PERFRING_COUNT_SW_BPF_OUTPUT))
		attr->sample_type |= PERFRING_SAMPLE_RAW;
	if (attr->type == PERFRING_TYPE_BREAKPOINT || has_addresses(recording, attr) ||
	    (attr->type == PERFRING_TYPE_SOFTWARE &&
	     (attr->config == PERFRING_COUNT_SW_PAGE_FAULTS || attr->config == PERFRING_COUNT_SW_PAGE_FAULTS_MIN ||
	      attr->config == PERFRING_COUNT_SW_PAGE_FAULTS_MAJ)))
		attr->sample_type |= PERFRING_SAMPLE_ADDR;
	if (has_addresses(recording, attr))
		attr->sample_type |= PERFRING_SAMPLE_DATA_SRC;
	if (recording->user_only)
		attr->exclude_kernel = attr->exclude_hv = 1;
	if (recording->kernel_only)
		attr->exclude_user = 1;
}

/* An event of their own reports tasks and mappings where the other events begin after the state of the target is known: after a
 * delay, or between commands of --control, or, for CPUs, after the state of all processes has been written.  It is enabled by the
 * exec, or when it is opened.  It observes nothing that the kernel would have to be asked for. */
static void add_side(struct recording *recording)
{
	struct recorded_event *side = new_event(recording);

	side->is_side = true;
	side->attr.type = PERFRING_TYPE_SOFTWARE;
	side->attr.config = PERFRING_COUNT_SW_DUMMY;
	side->attr.sample_period = 1;
	side->attr.exclude_kernel = side->attr.exclude_hv = 1;
	snprintf(side->name, sizeof(side->name), "dummy");
	shape_common(recording, &side->attr, 0);
	shape_side(recording, &side->attr);
	side->attr.disabled = side->attr.enable_on_exec = tool_record_observes_command(recording);
}

static bool has_side(const struct recording *recording)
{
	return recording->snapshots || recording->is_delayed || recording->control_text || recording->all ||
	       recording->cgroup;
}

static void shape_all(struct recording *recording)
{
	for (uint32_t i = 0; i < recording->event_count; i++) {
		struct recorded_event *event = &recording->events[i];
		struct perf_event_attr *attr = &event->attr;

		shape(recording, event);
		if (i == 0 && !has_side(recording))
			shape_side(recording, attr);
		if (!event->reads)
			continue;
		/* The leader's samples read them all; kernels before 6.13 read no group that is inherited. */
		attr->inherit = 0;
		attr->read_format |= PERFRING_FORMAT_GROUP;
		if (event->leader == i) {
			attr->sample_type |= PERFRING_SAMPLE_READ;
		} else {
			attr->freq = 0;
			attr->sample_period = 0;
		}
	}
	if (has_side(recording))
		add_side(recording);
}

/* ---- fds ---- */

/* The event's name, without the modifier H of those that leave out guests by default. */
static void name_event(struct recorded_event *event)
{
	struct perf_event_attr attr = event->attr;

	if (!(event->terms & PERFRING_TERM_GUESTS))
		attr.exclude_guest = 0;
	perfring_event_name(&attr, event->name, sizeof(event->name));
}

/* Takes over the attrs that the kernel accepted, and reports what was dropped for that. */
static void note_opened(const struct recording *recording, const struct perfring_session *session, uint32_t index,
			struct recorded_event *event)
{
	const struct perf_event_attr *opened = perfring_session_attr(session, index);
	struct perf_event_attr asked = event->attr;
	static const uint32_t unasked[] = {PERFRING_ATTR_FLAG_ksymbol, PERFRING_ATTR_FLAG_bpf_event,
					   PERFRING_ATTR_FLAG_defer_output};
	uint64_t given_up = perfring_session_given_up(session, index);
	struct perfring_format format;
	char text[4096];

	if (!opened)
		return;
	if (recording->verbose && perfring_attr_text(opened, text, sizeof(text)) > 0)
		tool_complain("record: %s: %s", event->name, text);
	memset(&event->attr, 0, sizeof(event->attr));
	memcpy(&event->attr, opened, opened->size < sizeof(event->attr) ? opened->size : sizeof(event->attr));
	/* The user asked neither for LOST (Linux 6.0) nor for names of BPF programs (5.1); that chains are not deferred (6.19) is
	 * said once, of the event that has them. */
	asked.read_format &= opened->read_format;
	perfring_format_from_attr(&format, &event->attr);
	for (size_t i = 0; i < sizeof(unasked) / sizeof(unasked[0]); i++)
		if (!(format.flags >> unasked[i] & 1))
			perfring_attr_set_flag(&asked, unasked[i], false);
	if (unwinds_by_ids(recording) && !recording->build_id_mmap &&
	    !(format.flags >> PERFRING_ATTR_FLAG_build_id & 1))
		perfring_attr_set_flag(&asked, PERFRING_ATTR_FLAG_build_id, false);
	/* Nor to leave out guests, without the modifier H. */
	if (!(event->terms & PERFRING_TERM_GUESTS)) {
		given_up &= ~(uint64_t)PERFRING_FALLBACK_GUESTS;
		asked.exclude_guest = event->attr.exclude_guest;
	}
	if (given_up == PERFRING_FALLBACK_NEWER && !memcmp(&asked, &event->attr, sizeof(asked)))
		given_up = 0;
	if (!given_up)
		return;
	if (given_up & PERFRING_FALLBACK_CPU_CLOCK)
		name_event(event);
	if (!recording->quiet && perfring_fallback_explain(given_up, &asked, &event->attr, text, sizeof(text)) > 0)
		tool_complain("record: %s", text);
}

static bool add_events(struct recording *recording, struct perfring_session *session, uint32_t from, uint32_t to)
{
	const struct perf_event_attr **attrs = tool_allocate(NULL, to - from + (size_t)1, sizeof(*attrs));
	uint32_t i = from;
	int ret = 0;

	while (ret >= 0 && i < to) {
		const struct recorded_event *event = &recording->events[i];
		const struct perfring_target *target = tool_record_target_of(recording, event);
		uint32_t members = 1;

		while (event->leader == i && i + members < to && recording->events[i + members].leader == i)
			members++;
		for (uint32_t j = 0; j < members; j++)
			attrs[j] = &recording->events[i + j].attr;
		ret = members == 1 ? perfring_session_add(session, attrs[0], target)
				   : perfring_session_add_group(session, attrs, members, target);
		if (ret < 0)
			tool_complain("record: %s", perfring_session_refusal(session));
		for (uint32_t j = 0; ret >= 0 && j < members; j++)
			note_opened(recording, session, (uint32_t)ret + j, &recording->events[i + j]);
		i += members;
	}
	free(attrs);
	return ret >= 0;
}

static bool set_filters(const struct recording *recording)
{
	struct perfring_session_event opened;

	for (uint32_t i = 0; perfring_session_event_at(recording->session, i, &opened); i++)
		if (!tool_filters_set("record", &recording->filters, recording->names, opened.event, opened.fd))
			return false;
	return true;
}

static bool is_cycles(const struct perf_event_attr *attr)
{
	return attr->type == PERFRING_TYPE_HARDWARE && attr->config == PERFRING_COUNT_HW_CPU_CYCLES;
}

static int open_session(struct recording *recording, struct perfring_session **session, uint32_t pages,
			uint32_t options)
{
	uint64_t allowed = recording->strict ? 0 : PERFRING_FALLBACK_ALL;
	int ret = perfring_session_open(session, pages);

	/* Only cycles and software events may fall back to a clock. */
	for (uint32_t i = 0; i < recording->event_count; i++)
		if (!is_cycles(&recording->events[i].attr) && recording->events[i].attr.type != PERFRING_TYPE_SOFTWARE)
			allowed &= ~(uint64_t)PERFRING_FALLBACK_CPU_CLOCK;
	if (recording->all || recording->kernel_only)
		allowed &= ~(uint64_t)PERFRING_FALLBACK_EXCLUDE_KERNEL;
	if (recording->has_clockid)
		allowed &= ~(uint64_t)PERFRING_FALLBACK_CLOCKID;
	return ret ? ret : perfring_session_configure(*session, options, allowed);
}

bool tool_record_open_events(struct recording *recording)
{
	uint32_t options = PERFRING_SESSION_RAISE_FILES | (recording->pages ? 0u : PERFRING_SESSION_SHRINK);
	uint32_t wanted, own;
	int ret;

	recording->switches = recording->switches || recording->off_cpu;
	if (!tool_record_find_aux(recording))
		return false;
	shape_all(recording);
	own = recording->event_count - recording->snapshots;
	ret = open_session(recording, &recording->session, recording->pages,
			   options | (recording->snapshots ? PERFRING_SESSION_BACKWARD : 0u));
	if (!ret && recording->snapshots)
		ret = open_session(recording, &recording->side, 0, options);
	if (ret) {
		tool_complain("record: rings to read: %s", strerror(-ret));
		return false;
	}
	wanted = perfring_session_pages(recording->session);
	if (!add_events(recording, recording->session, 0, own) ||
	    (recording->snapshots && !add_events(recording, recording->side, own, recording->event_count)) ||
	    !set_filters(recording))
		return false;
	if (perfring_session_pages(recording->session) < wanted && !recording->quiet)
		tool_complain("record: rings of %u pages instead of %u: more may not be locked here "
			      "(ulimit -l, kernel.perf_event_mlock_kb)",
			      perfring_session_pages(recording->session), wanted);
	return tool_record_map_aux(recording);
}

/* ---- a command that observes itself ---- */

/* Chooses --soft if perf_event_open is refused, the command is the only target, and the events are clocks. */
void tool_record_choose_soft(struct recording *recording)
{
	struct recorded_event *event = &recording->events[0];
	struct perf_event_attr *attr = &event->attr;

	if (recording->soft || recording->strict || !tool_record_observes_command(recording) ||
	    tool_record_not_soft(recording))
		return;
	if (has_one_event(recording) && is_cycles(attr) && !attr->exclude_user) {
		if (!tool_peers_are_needed())
			return;
		attr->type = PERFRING_TYPE_SOFTWARE;
		attr->config = PERFRING_COUNT_SW_TASK_CLOCK;
		attr->precise_ip = 0;
	} else if (!tool_record_is_soft(recording) || !tool_peers_are_needed()) {
		return;
	}
	recording->soft = true;
	recording->event_count = 1; /* what waits is seen without switches */
	tool_complain(
		"record: perf_event_open is refused here: %s is sampled%s from inside the command instead (--soft)",
		attr->config == PERFRING_COUNT_SW_TASK_CLOCK ? "task-clock" : "cpu-clock",
		recording->off_cpu ? ", and waits in calls of the C library are seen," : "");
}

/* Warns of a frequency that timers cannot reach: the kernel checks timers of a CPU clock only in its tick (soft/timer.c). */
static void complain_frequency(const struct recording *recording)
{
	const uint64_t second = 1000 * NS_PER_MS;
	uint64_t period = recording->period ? recording->period : second / recording->frequency;
	struct timespec tick = {0, 0};

	if (recording->quiet || clock_getres(CLOCK_MONOTONIC_COARSE, &tick) || period >= (uint64_t)tick.tv_nsec)
		return;
	tool_complain("record: --soft: a thread is sampled at most %" PRIu64 " times a second of CPU time here "
		      "(CONFIG_HZ): there are fewer samples than asked for, with longer periods",
		      second / (uint64_t)tick.tv_nsec);
}

/* The event of --off-cpu, beside the clock's. */
static void add_waits(struct recording *recording)
{
	struct recorded_event *waits = new_event(recording);

	waits->attr = recording->events[0].attr;
	soft_waits_attr(&waits->attr);
	snprintf(waits->name, sizeof(waits->name), PERFRING_PROFILE_OFF_CPU);
}

/* Opens the session, what processes that observe themselves connect to, and the command, which waits for its release. */
bool tool_record_open_soft(struct recording *recording)
{
	struct soft_terms terms = {.version = SOFT_VERSION, .pages = SOFT_PAGES};
	struct recorded_event *event = &recording->events[0];
	struct perf_event_attr *attr = &event->attr;
	bool is_given;
	int ret;

	if (recording->pages)
		terms.pages = recording->pages;
	if (!recording->inherit)
		terms.parent = (uint32_t)getpid();
	is_given = recording->frequency || recording->period;
	if (!is_given)
		recording->frequency = SOFT_FREQUENCY;
	if (recording->frequency > SOFT_FREQUENCY_MAX) {
		tool_complain("record: --soft: %" PRIu64 " Hz is too high: %d Hz instead", recording->frequency,
			      SOFT_FREQUENCY_MAX);
		recording->frequency = SOFT_FREQUENCY_MAX;
	}
	if (is_given)
		complain_frequency(recording);
	shape(recording, event);
	shape_side(recording, attr);
	if (recording->off_cpu)
		terms.waits = recording->waits_ms + 1;
	else
		attr->sample_type &= ~(uint64_t)PERFRING_SAMPLE_IDENTIFIER;
	attr->read_format = 0;
	attr->inherit = attr->enable_on_exec = attr->comm_exec = 0;
	attr->exclude_kernel = attr->exclude_hv = 1; /* as it is */
	attr->exclude_guest = 0;                     /* a process knows of none */
	perfring_attr_set_flag(attr, PERFRING_ATTR_FLAG_build_id, true);
	attr->use_clockid = 1;
	attr->clockid = CLOCK_MONOTONIC;
	name_event(event);
	terms.attr = *attr;
	terms.by_tables = unwinds_itself(recording) && attr->sample_type & PERFRING_SAMPLE_CALLCHAIN;
	if (terms.waits)
		add_waits(recording);
	ret = perfring_session_open(&recording->session, 0);
	for (uint32_t i = 0; ret >= 0 && i < recording->event_count; i++) {
		uint64_t id = SOFT_CLOCK_ID + (uint64_t)i;

		ret = perfring_session_describe(recording->session, &recording->events[i].attr, &id, !!terms.waits);
	}
	if (ret < 0) {
		tool_complain("record: --soft: %s", strerror(-ret));
		return false;
	}
	if (!tool_peers_open(&recording->peers, recording->session, &terms))
		return false;
	ret = perfring_command_open(&recording->child, recording->command);
	if (ret)
		tool_complain("record: %s: %s", recording->command[0], strerror(-ret));
	else if (!recording->inherit)
		tool_peers_only(recording->peers, recording->child.pid);
	return !ret;
}
