/* pfm.c - the processors' own event names, by libpfm4 when it is built in (PERFRING_HAS_PFM).
 *
 * event_syntax.c asks for a name, event_catalogue.c for all of them.  libpfm4 has global state, and is initialised once.
 */
#include "pmu.h"

#ifdef PERFRING_HAS_PFM

#include <pthread.h>
#include <stdio.h>
#include <perfmon/pfmlib.h>
#include <perfmon/pfmlib_perf_event.h>

/* libpfm4 examines the machine once, in one thread. */
static pthread_once_t begun = PTHREAD_ONCE_INIT;

static void begin(void)
{
	pfm_initialize();
}

int perfring__pfm_parse(const char *text, uint64_t configs[PERFRING_CONFIGS], struct perf_event_attr *attr)
{
	struct perf_event_attr found = {.size = sizeof(found)};
	pfm_perf_encode_arg_t arg = {.attr = &found, .size = sizeof(arg)};
	int error;

	pthread_once(&begun, begin);
	/* All levels: where the text names none, the caller's exclude_ bits stay. */
	error = pfm_get_os_event_encoding(text, PFM_PLM0 | PFM_PLM3 | PFM_PLMH, PFM_OS_PERF_EVENT, &arg);
	/* Where debugfs is mounted libpfm4 takes tracepoints for its own events, "sched" too, with the config 0. */
	if (error != PFM_SUCCESS || found.type == PERFRING_TYPE_TRACEPOINT)
		return -ENOENT;
	attr->type = found.type;
	configs[0] = found.config;
	configs[1] = found.config1;
	configs[2] = found.config2;
	if (found.exclude_user || found.exclude_kernel) {
		attr->exclude_user = found.exclude_user;
		attr->exclude_kernel = found.exclude_kernel;
		attr->exclude_hv = found.exclude_hv;
	}
	if (found.precise_ip)
		attr->precise_ip = found.precise_ip;
	return 0;
}

/* Leaves out what this machine cannot open: libpfm4 knows the processor's uncore, whose PMU the kernel may not have. */
static int take_name(const char *name, const char *text, int (*take)(void *to, const char *, const char *), void *to)
{
	struct perf_event_attr attr = {.size = sizeof(attr)};
	uint64_t configs[PERFRING_CONFIGS] = {0};

	return perfring__pfm_parse(name, configs, &attr) ? 0 : take(to, name, text ? text : "");
}

static int take_masks(pfm_pmu_info_t *pmu, pfm_event_info_t *event, int (*take)(void *to, const char *, const char *),
		      void *to)
{
	bool has_masks = false;
	char name[512];
	int error = 0;

	for (int i = 0; i < event->nattrs && !error; i++) {
		pfm_event_attr_info_t attr = {.size = sizeof(attr)};

		if (pfm_get_event_attr_info(event->idx, i, PFM_OS_PERF_EVENT, &attr) != PFM_SUCCESS ||
		    attr.type != PFM_ATTR_UMASK)
			continue;
		has_masks = true;
		if (snprintf(name, sizeof(name), "%s::%s:%s", pmu->name, event->name, attr.name) < (int)sizeof(name))
			error = take_name(name, attr.desc, take, to);
	}
	if (!has_masks && !error && snprintf(name, sizeof(name), "%s::%s", pmu->name, event->name) < (int)sizeof(name))
		error = take_name(name, event->desc, take, to);
	return error;
}

int perfring__pfm_each(int (*take)(void *to, const char *name, const char *text), void *to)
{
	int error = 0;

	pthread_once(&begun, begin);
	for (int i = PFM_PMU_NONE; i < PFM_PMU_MAX && !error; i++) {
		pfm_pmu_info_t pmu = {.size = sizeof(pmu)};

		if (pfm_get_pmu_info((pfm_pmu_t)i, &pmu) != PFM_SUCCESS || !pmu.is_present)
			continue;
		for (int at = pmu.first_event; at >= 0 && !error; at = pfm_get_event_next(at)) {
			pfm_event_info_t event = {.size = sizeof(event)};

			if (pfm_get_event_info(at, PFM_OS_PERF_EVENT, &event) == PFM_SUCCESS)
				error = take_masks(&pmu, &event, take, to);
		}
	}
	return error;
}

#else

int perfring__pfm_parse(const char *text, uint64_t configs[PERFRING_CONFIGS], struct perf_event_attr *attr)
{
	(void)text;
	(void)configs;
	(void)attr;
	return -ENOENT;
}

int perfring__pfm_each(int (*take)(void *to, const char *name, const char *text), void *to)
{
	(void)take;
	(void)to;
	return 0;
}

#endif
