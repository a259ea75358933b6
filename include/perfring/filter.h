/* filter.h - which samples count: by task, CPU, time, event, object and function.  In libperfring-profile.
 *
 *     struct perfring_filter filter = {.comms = "nginx,redis", .symbols = "main"};
 *     perfring_filter_set_time(&filter, "10.5,20", 0, 0);
 *     for each sample
 *             if (perfring_filter_counts(&filter, &sample) && perfring_filter_shows(&filter, &sample, comm, object, symbol))
 *                     use(&sample);
 *
 * profile_fill.h takes a filter; the options of perfring's commands are one.  Two members are for the caller to apply, where it does
 * not leave that to profile_fill.h: `events` (perfring_filter_has_word) and `frames` (perfring_filter_modes).
 *
 * Context: a filter is memory of the caller.  Any thread; not signal handlers. */
#ifndef PERFRING_FILTER_H
#define PERFRING_FILTER_H

#include <perfring/record.h>
#include <perfring/sample.h>

PERFRING_BEGIN

enum {
	PERFRING_FILTER_SPANS_MAX = 64, /* of time */
	PERFRING_FILTER_SHORT_NAME = 32,
};

/* Which frames of a stack are kept. */
enum perfring_filter_frames {
	PERFRING_FILTER_ALL_FRAMES,
	PERFRING_FILTER_KERNEL, /* of the kernel alone, also of a guest's */
	PERFRING_FILTER_USER,   /* of user space alone */
	PERFRING_FILTER_FRAMES_COUNT
};

/* ns, both included. */
struct perfring_filter_span {
	uint64_t first, last;
};

/* Lists are words with commas between them; NULL: all.  Texts are the caller's, and must stay.  All 0 is no filter. */
struct perfring_filter {
	const char *comms;   /* names of threads */
	const char *objects; /* of the innermost function: paths, or their last parts */
	const char *symbols; /* names of the innermost function */
	const char *pids, *tids; /* "12,345" */
	const char *cpus;        /* "0-3,6" */
	const char *events;      /* names, as perfring_file_event_name's */
	const char *time;        /* as it was written; perfring_filter_set_time sets it */
	uint32_t frames;         /* enum perfring_filter_frames; a sample without such frames is left out */
	uint32_t span_count;     /* 0: each time */
	struct perfring_filter_span spans[PERFRING_FILTER_SPANS_MAX];
	uint64_t reserved[8];
};

/* Whether pids, tids, cpus, frames and span_count are what they may be.  Returns 0 or -EINVAL. */
PERFRING_API int perfring_filter_check(const struct perfring_filter *filter);

/* Sets the time: "FROM,TO" in seconds, of which either may be empty, several with blanks between them; or parts of the time from
 * first to last (ns): "10%/2" is the second tenth, "0%-10%,50%-60%".  The text is kept as `time`.  Returns 0; -EINVAL: the text is
 * neither, or has more than PERFRING_FILTER_SPANS_MAX spans; the filter is as it was. */
PERFRING_API int perfring_filter_set_time(struct perfring_filter *filter, const char *text, uint64_t first, uint64_t last);

/* Whether the sample is of a CPU and a time that were asked for: others do not count at all.  A sample without a time is of each,
 * one without a CPU of none. */
PERFRING_API bool perfring_filter_counts(const struct perfring_filter *filter, const struct perfring_sample *sample);

/* Whether a record that is no sample is of a CPU that was asked for: one without a CPU is of each.  Times do not matter, as in
 * perf. */
PERFRING_API bool perfring_filter_takes_record(const struct perfring_filter *filter, const struct perfring_trailer *trailer);

/* Whether the sample is of a task, object and symbol that were asked for.  comm, object, symbol: NULL: unknown. */
PERFRING_API bool perfring_filter_shows(const struct perfring_filter *filter, const struct perfring_sample *sample,
					const char *comm, const char *object, const char *symbol);

/* The kinds of code whose frames are kept, as a set of bits 1 << cpumode (PERFRING_RECORD_MISC_CPUMODE_MASK): for
 * perfring_stacks_innermost.  UINT32_MAX: all. */
PERFRING_API uint32_t perfring_filter_modes(const struct perfring_filter *filter);

/* Whether a word is in a list with commas. */
PERFRING_API bool perfring_filter_has_word(const char *list, const char *word);

/* The last part of a name that begins with a slash and does not end with one, else the whole name; /tmp/perf-PID.map is "[JIT] tid PID", as in perf, which is written
 * into `made`. */
PERFRING_API const char *perfring_filter_short_name(const char *path, char made[PERFRING_FILTER_SHORT_NAME]);

PERFRING_END

#endif
