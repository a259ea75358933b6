/* session_rig.h - sessions on page faults of this thread, and what time it is. */
#ifndef SESSION_RIG_H
#define SESSION_RIG_H

#include <time.h>
#include "test.h"

static inline uint64_t monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static inline struct perf_event_attr fault_attr(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_PAGE_FAULTS,
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TIME | PERF_SAMPLE_TID | PERF_SAMPLE_ADDR |
			       PERF_SAMPLE_CPU,
		.disabled = 1,
		.sample_id_all = 1,
		.exclude_kernel = 1,
		.inherit = 1,
	};

	return attr;
}

static inline int64_t milliseconds(void)
{
	return (int64_t)(monotonic_ns() / 1000000);
}

#endif
