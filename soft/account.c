/* account.c - the events that the kernel keeps an account of for each thread: page faults, context switches, migrations.
 *
 * They are counted as the kernel's events of that name, without perf_event_open.  The process does not see one occur, so they do not
 * sample.  The two differ where the kernel fills a page that the thread has not touched yet (MAP_POPULATE, mlock): a minor fault of the
 * account alone.  A migration counts when the thread is moved, and in the kernel's event when it runs next.
 *
 * soft_event.c reads them by the table at the end: threads, and handlers.  No lock, no allocation; an account that cannot be read
 * stays as it was read before (os/usage.h). */
#include "os/usage.h"
#include "soft_private.h"

static int find_account(const struct perf_event_attr *attr, struct perfring_soft_point **point)
{
	(void)point;
	/* Those before are clocks and points.  What is refused has its sentence. */
	return attr->config >= PERFRING_COUNT_SW_PAGE_FAULTS && attr->config <= PERFRING_COUNT_SW_CGROUP_SWITCHES &&
			       attr->config != PERFRING_COUNT_SW_DUMMY
		       ? 0
		       : -ENOENT;
}

const char *perfring__soft_account_refused(const struct perf_event_attr *attr)
{
	switch (attr->config) {
	case PERFRING_COUNT_SW_CPU_MIGRATIONS:
		if (!perfring__os_usage_has_migrations())
			return "cpu-migrations: this kernel does not say so of a thread (no /proc/PID/sched: CONFIG_SCHED_DEBUG)";
		break;
	case PERFRING_COUNT_SW_ALIGNMENT_FAULTS:
	case PERFRING_COUNT_SW_EMULATION_FAULTS:
		return "alignment-faults, emulation-faults: the kernel keeps no account of them";
	case PERFRING_COUNT_SW_BPF_OUTPUT:
		return "bpf-output: a program of BPF writes it, in the kernel";
	case PERFRING_COUNT_SW_CGROUP_SWITCHES:
		return "cgroup-switches: the kernel keeps no account of them";
	default:
		break;
	}
	if (attr->exclude_user || attr->exclude_kernel)
		return "exclude_user, exclude_kernel: the kernel's account of a thread does not tell the two apart";
	return NULL;
}

static uint64_t read_account(struct perfring_soft_counter *counter, bool here)
{
	switch (counter->attr->config) {
	case PERFRING_COUNT_SW_PAGE_FAULTS:
		return perfring__os_usage_faults(counter->tid, here, true, true);
	case PERFRING_COUNT_SW_PAGE_FAULTS_MIN:
		return perfring__os_usage_faults(counter->tid, here, true, false);
	case PERFRING_COUNT_SW_PAGE_FAULTS_MAJ:
		return perfring__os_usage_faults(counter->tid, here, false, true);
	case PERFRING_COUNT_SW_CONTEXT_SWITCHES:
		return perfring__os_usage_switches(counter->tid, here);
	default:
		return perfring__os_usage_migrations(counter->tid);
	}
}

const struct perfring_soft_pmu perfring__soft_accounts = {
	.type = PERF_TYPE_SOFTWARE, .init = find_account, .read = read_account};
