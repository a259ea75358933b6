/* profile_fill.h - fills a profile (profile.h) from a stream of items, of a file or of a session of any rings, with the names of
 * functions.  In libperfring-profile.
 *
 *     perfring_profile_open(&profile, NULL);
 *     perfring_profile_fill_open(&fill, profile, &(struct perfring_profile_fill_options){.file = file});
 *     while (perfring_file_next(file, &item) == 1)                     or a session's: .session = session
 *             perfring_profile_fill_item(fill, &item, NULL);
 *     perfring_profile_fill_end(fill);
 *     perfring_profile_write(profile, PERFRING_PROFILE_COLLAPSED, NULL, stdout);
 *     perfring_profile_fill_close(fill);
 *     perfring_profile_close(profile);
 *
 * What becomes of the items, which must come in time order:
 *
 *     samples                    a sample of the profile; of a group one for each event that counted (split.h).  Its stack is the
 *                                callchain, or is unwound from the copy of the stack (stacks.h)
 *     context switches           if an event samples each switch and there are SWITCH records: an interval from the switch to the
 *                                thread's return.  Its event is PERFRING_PROFILE_OFF_CPU, or PERFRING_PROFILE_RUNQUEUE if the thread
 *                                was preempted
 *     PERFRING_PROFILE_WAKING    a frame "[woken by COMM]": the innermost one of the PERFRING_PROFILE_OFF_CPU interval that the
 *                                waking ends
 *     "span:..."                 intervals that end at the sample's time and last its period (perfring_soft_span_end); so do samples
 *                                whose own event is PERFRING_PROFILE_OFF_CPU
 *     LOST, LOST_SAMPLES, THROTTLE, and samples that cannot be decoded
 *                                losses
 *     COMM, FORK, EXIT, MMAP, MMAP2, KSYMBOL, NAMESPACES
 *                                names (names.h)
 *
 * Bounds: those of the profile and of names.h; 1 048 576 threads that have waited or ended: switches of further threads are kept as
 * ordinary samples (docs/limits.md).
 *
 * Context: one thread at a time for a fill, its profile and its names; not signal handlers.  The profile must stay until
 * perfring_profile_fill_close or _renew. */
#ifndef PERFRING_PROFILE_FILL_H
#define PERFRING_PROFILE_FILL_H

#include <perfring/file.h>
#include <perfring/filter.h>
#include <perfring/names.h>
#include <perfring/profile.h>
#include <perfring/session.h>

PERFRING_BEGIN

/* Names of events. */
#define PERFRING_PROFILE_OFF_CPU "offcpu-time"
#define PERFRING_PROFILE_RUNQUEUE "runqueue-time"
#define PERFRING_PROFILE_WAKING "sched:sched_waking"

enum {
	PERFRING_FILL_NO_INLINE = 1, /* functions that were inlined are not frames of their own */
	PERFRING_FILL_LINES = 2,     /* frames have the lines of their sources */
	PERFRING_FILL_BUILD_IDS = 4, /* frames have the build ids of their objects */
};

enum perfring_fill_addresses {
	PERFRING_FILL_NO_ADDRESSES, /* frames have address 0: a function is one frame */
	PERFRING_FILL_ADDRESSES,    /* frames that differ in their address are different frames */
	/* a frame's address is its function's start; without a symbol its offset in the object's file */
	PERFRING_FILL_FUNCTIONS,
	PERFRING_FILL_ADDRESSES_COUNT
};

/* What it points to must stay until perfring_profile_fill_close. */
struct perfring_profile_fill_options {
	uint32_t flags;                         /* PERFRING_FILL_ */
	uint32_t addresses;                     /* enum perfring_fill_addresses */
	uint64_t max_stack;                     /* the innermost frames of each stack, the others are left out; 0: all */
	const struct perfring_filter *filter;   /* NULL: all samples */
	const struct perfring_file *file;       /* whose items come; NULL: none */
	const struct perfring_session *session; /* likewise; not both: each numbers its events */
	struct perfring_names *names; /* the caller's; NULL: the fill opens its own, for the file, or for this machine's processes */
	uint64_t reserved[8];
};

struct perfring_profile_fill;

/* options: NULL is all 0, for perfring_profile_fill_stack alone.  Returns 0; -EINVAL (a flag or number that is not known, file and
 * session, a filter that perfring_filter_check refuses); -ENOMEM. */
PERFRING_API int perfring_profile_fill_open(struct perfring_profile_fill **fill, struct perfring_profile *profile,
					    const struct perfring_profile_fill_options *options);

/* Does not end open intervals, and does not close the profile. */
PERFRING_API void perfring_profile_fill_close(struct perfring_profile_fill *fill);

/* Takes the next item of the file or session.  fault: may be NULL.  Returns 0; -EINVAL (neither file nor session); -ENOMEM: then
 * the item may be in the profile in part; -EBADMSG: the item is damaged (*fault has the place in the record and a text), or its
 * event is unknown (fault->what is NULL).  If that item is a sample, it counts as PERFRING_PROFILE_UNREAD.  The next items can be
 * taken. */
PERFRING_API int perfring_profile_fill_item(struct perfring_profile_fill *fill, const struct perfring_item *item,
					    struct perfring_fault *fault);

/* After the last item: ends the intervals of threads that are still off their CPUs, at the time of the last switch, or
 * sample that the filter counts.  Called again it does nothing.  Returns 0 or -ENOMEM. */
PERFRING_API int perfring_profile_fill_end(struct perfring_profile_fill *fill);

/* Goes on with another profile, which is empty.  Open intervals are forgotten, and counts begin anew.  The old profile is the
 * caller's. */
PERFRING_API void perfring_profile_fill_renew(struct perfring_profile_fill *fill, struct perfring_profile *profile);

/* Names an event of the session, by its number, before its first sample: "span:request".  Otherwise its name is that of
 * perfring_event_name.  The text is copied.  Returns 0; -EINVAL (no session, or it has no such event); -ENOMEM. */
PERFRING_EXPERIMENTAL int perfring_profile_fill_name(struct perfring_profile_fill *fill, uint32_t event, const char *name);

/* Adds the stack of a sample to the profile, and no sample; for callers that take the items themselves.  Sets *stack to its index;
 * PERFRING_PROFILE_NONE: it has no frame that is wanted.  Returns 0 or -ENOMEM. */
PERFRING_API int perfring_profile_fill_stack(struct perfring_profile_fill *fill, const struct perfring_sample *sample,
					     uint32_t *stack);

/* The names, for perfring_names_take_process.  Valid until: perfring_profile_fill_close, unless they are the caller's. */
PERFRING_API struct perfring_names *perfring_profile_fill_names(const struct perfring_profile_fill *fill);

struct perfring_profile_fill_counts {
	uint64_t samples; /* so far, of all events, also those that a filter left out */
	uint64_t shown;   /* in the profile: of a group one for each event that counted */
	uint64_t unknown; /* members of groups in samples whose ids are of no known event */
	uint64_t reserved[5];
};

/* Copies the counts so far into *counts. */
PERFRING_API void perfring_profile_fill_count(const struct perfring_profile_fill *fill,
					      struct perfring_profile_fill_counts *counts);

PERFRING_END

#endif
