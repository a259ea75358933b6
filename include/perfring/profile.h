/* profile.h - samples as one table of stacks; every exported format and flame graph is a view of it.  In libperfring-profile.
 *
 * It knows no records: the caller decodes samples and names their addresses.  profile_fill.h does both, for items of a file or of a
 * live session.
 *
 *     perfring_profile_open(&profile, NULL);
 *     event = perfring_profile_add_event(profile, &(struct perfring_profile_event){.name = "cpu-clock", .unit = "ns"});
 *     thread = perfring_profile_add_thread(profile, &(struct perfring_profile_thread){.pid = 1, .tid = 1, .comm = "x"});
 *     for each frame of the sample, the outermost first:
 *             frame = perfring_profile_add_frame(profile, &(struct perfring_profile_frame){...});
 *             stack = perfring_profile_add_stack(profile, stack, frame);        stack: PERFRING_PROFILE_NONE at first
 *     perfring_profile_add_sample(profile, &(struct perfring_profile_sample){...});
 *     perfring_profile_read(profile, &tables);
 *     perfring_profile_close(profile);
 *
 * A text, a function, a frame and a stack stand once in their tables:
 *
 *     text      <-- function: name, object, source file
 *                       ^
 *                     frame: function, address, line
 *                       ^
 *                     stack: frame, and the stack of its caller
 *                       ^
 *                     weight: stack, thread, event: how many samples, of what weight
 *
 * An index stays as it is until perfring_profile_close.  A stack's caller has a lower index than the stack.
 *
 * Memory is bounded: stacks beyond PERFRING_PROFILE_BYTES_MAX are one, "[too many stacks]", threads likewise, and no sample is left
 * out of the weights.
 *
 * Context: one thread at a time for each profile; not signal handlers. */
#ifndef PERFRING_PROFILE_H
#define PERFRING_PROFILE_H

#include <perfring/base.h>
#include <stdio.h>

PERFRING_BEGIN

#define PERFRING_PROFILE_NONE UINT32_MAX

/* Bytes of all tables of one profile. */
#define PERFRING_PROFILE_BYTES_MAX (UINT64_C(1) << 30)

/* Which kind of code a function is. */
enum perfring_profile_kind {
	PERFRING_PROFILE_UNKNOWN, /* neither user nor kernel */
	PERFRING_PROFILE_USER,
	PERFRING_PROFILE_INLINED, /* of user space, in the frame before it */
	PERFRING_PROFILE_MADE,    /* made by the process while it ran: a JIT's */
	PERFRING_PROFILE_KERNEL,
	PERFRING_PROFILE_GUEST, /* of a virtual machine: its kernel or its user space */
	PERFRING_PROFILE_KIND_COUNT
};

/* What the caller adds.  Texts end with NUL, and are copied; in the tables equal texts are one pointer. */
struct perfring_profile_frame {
	const char *name;   /* of the function; NULL: unknown */
	const char *object; /* path or name of what is mapped there; NULL: unknown */
	const char *file;   /* of the source; NULL: unknown */
	uint32_t line;      /* the line that is executed; 0: unknown */
	uint32_t kind;      /* enum perfring_profile_kind */
	uint64_t address; /* as in the object's tables; of a caller, inside its call; frames that differ in it only are two */
	const char *build_id; /* of the object, in hexadecimal digits; NULL: unknown */
};

struct perfring_profile_event {
	const char *name;
	const char *unit; /* of weights: "ns"; NULL: they count occurrences */
	uint64_t lasts;   /* 1: a sample is an interval, its time the beginning, its weight the length in ns; else 0 */
	uint64_t samples; /* this and the following members are set by the profile */
	uint64_t weight;
	uint64_t lost_samples;
};

struct perfring_profile_thread {
	uint32_t pid;
	uint32_t tid;
	const char *comm;         /* a thread that changes its name is two threads here */
	const char *process_comm; /* NULL: unknown */
	uint64_t first, last;     /* ns: times of its samples; set by the profile */
};

struct perfring_profile_sample {
	uint64_t time;   /* ns; 0: unknown */
	uint64_t weight; /* its period */
	uint32_t stack;  /* PERFRING_PROFILE_NONE: unknown */
	uint32_t thread;
	uint32_t event;
	uint32_t cpu; /* PERFRING_PROFILE_NONE: unknown */
};

/* Kinds of what a recording lacks. */
enum perfring_profile_loss_kind {
	PERFRING_PROFILE_LOST_RECORDS, /* of any type, because a ring was full */
	PERFRING_PROFILE_LOST_SAMPLES, /* of one event, likewise */
	PERFRING_PROFILE_THROTTLED,    /* an event was switched off by the kernel: it had too many samples */
	PERFRING_PROFILE_UNREAD,       /* records that could not be decoded */
	PERFRING_PROFILE_LOSS_COUNT
};

struct perfring_profile_loss {
	uint64_t time; /* ns; 0: unknown */
	uint64_t count;
	uint32_t kind;
	uint32_t thread; /* PERFRING_PROFILE_NONE: unknown */
	uint32_t event;  /* likewise */
	uint32_t cpu;    /* likewise */
};

/* ---- tables: arrays of these; an index is a place in one of them ---- */

struct perfring_profile_function {
	const char *name, *object, *file; /* NULL: unknown */
	uint32_t kind;
	uint32_t name_id, object_id, file_id; /* of the texts; PERFRING_PROFILE_NONE: unknown */
	const char *build_id;
	uint32_t build_id_id;
	uint32_t reserved;
};

/* An entry of `frames`: a place in a function. */
struct perfring_profile_place {
	uint32_t function;
	uint32_t line;
	uint64_t address;
};

struct perfring_profile_stack {
	uint32_t caller; /* PERFRING_PROFILE_NONE: it is the outermost */
	uint32_t frame;
};

struct perfring_profile_weight {
	uint32_t stack;
	uint32_t thread;
	uint32_t event;
	uint32_t reserved;
	uint64_t samples; /* how many */
	uint64_t weight;  /* the sum of theirs; at most UINT64_MAX */
};

/* All of a profile.  Valid until: the next call that adds something. */
struct perfring_profile_tables {
	const char *const *texts;
	const struct perfring_profile_function *functions;
	const struct perfring_profile_place *frames;
	const struct perfring_profile_stack *stacks;
	const struct perfring_profile_thread *threads;
	const struct perfring_profile_event *events;
	const struct perfring_profile_weight *weights;
	const struct perfring_profile_sample
		*samples; /* in the order they came; none without PERFRING_PROFILE_SAMPLES */
	const struct perfring_profile_loss
		*losses; /* the first PERFRING_PROFILE_LOSSES_MAX; all of them count in `lost` */
	uint32_t text_count, function_count, frame_count, stack_count, thread_count, event_count, weight_count,
		loss_count;
	uint64_t sample_count;
	uint64_t lost[PERFRING_PROFILE_LOSS_COUNT];
	uint64_t nameless;    /* samples whose innermost function is unknown */
	uint64_t truncated;   /* samples whose stack does not reach its thread's start */
	uint64_t crowded;     /* samples whose stack is "[too many stacks]" */
	uint64_t unlisted;    /* samples that had no space in `samples`, and are in `weights` alone */
	uint64_t first, last; /* ns: of all samples; 0, 0: none has a time */
	const char *command;  /* that was recorded; NULL: unknown */
	const char *host;
	uint64_t epoch; /* ns since 1970 at time 0; 0: unknown */
	uint64_t reserved[7];
};

#define PERFRING_PROFILE_LOSSES_MAX 65536

/* ---- a profile ---- */

enum {
	PERFRING_PROFILE_SAMPLES = 1, /* keeps each sample: views over time need them */
};

struct perfring_profile_options {
	uint32_t flags;
	uint32_t reserved_word;
	uint64_t bytes_max;  /* 0: PERFRING_PROFILE_BYTES_MAX */
	const char *command; /* copied, as host */
	const char *host;
	uint64_t epoch;
	uint64_t reserved[8];
};

struct perfring_profile;

/* options: NULL is all 0.  Returns 0; -EINVAL (a flag that is not known), -ENOMEM. */
PERFRING_API int perfring_profile_open(struct perfring_profile **profile,
				       const struct perfring_profile_options *options);
/* Frees all tables. */
PERFRING_API void perfring_profile_close(struct perfring_profile *profile);

/* Each returns the index of the equal entry, which is added if there is none; -EINVAL (an index that is not one; `lasts` above 1),
 * -ENOMEM. */
PERFRING_API int64_t perfring_profile_add_event(struct perfring_profile *profile,
						const struct perfring_profile_event *event);
PERFRING_API int64_t perfring_profile_add_thread(struct perfring_profile *profile,
						 const struct perfring_profile_thread *thread);
PERFRING_API int64_t perfring_profile_add_frame(struct perfring_profile *profile,
						const struct perfring_profile_frame *frame);
PERFRING_API int64_t perfring_profile_add_stack(struct perfring_profile *profile, uint32_t caller, uint32_t frame);

/* Each returns 0; -EINVAL (an index or kind that is not one), -ENOMEM. */
PERFRING_API int perfring_profile_add_sample(struct perfring_profile *profile,
					     const struct perfring_profile_sample *sample);
PERFRING_API int perfring_profile_add_loss(struct perfring_profile *profile, const struct perfring_profile_loss *loss);

/* Counts one more truncated stack: that of a sample that was added, and does not reach its thread's start. */
PERFRING_API void perfring_profile_count_truncated(struct perfring_profile *profile);

/* Sets *tables to the profile's tables, which stay the profile's. */
PERFRING_API void perfring_profile_read(const struct perfring_profile *profile, struct perfring_profile_tables *tables);

/* ---- views ---- */

enum perfring_profile_format {
	/* "COMM;FUNCTION;FUNCTION WEIGHT" for each stack, the outermost first: docs/formats.md */
	PERFRING_PROFILE_COLLAPSED,
	/* a JSON object for each sample, with its time; needs PERFRING_PROFILE_SAMPLES */
	PERFRING_PROFILE_JSON_LINES,
	/* speedscope.app's JSON: a profile for each event of each thread */
	PERFRING_PROFILE_SPEEDSCOPE,
	/* callgrind_annotate's and KCachegrind's, of one event */
	PERFRING_PROFILE_CALLGRIND,
	/* pprof's profile.proto: all events; packed by gzip, if the library has zlib (config.h: PERFRING_HAS_ZLIB) */
	PERFRING_PROFILE_PPROF,
	/* the Firefox Profiler's processed profile, version 66; needs PERFRING_PROFILE_SAMPLES */
	PERFRING_PROFILE_FIREFOX,
	/* trace events, for chrome://tracing and ui.perfetto.dev; needs PERFRING_PROFILE_SAMPLES */
	PERFRING_PROFILE_CHROME,
	PERFRING_PROFILE_FORMAT_COUNT
};

struct perfring_profile_view {
	uint32_t event;     /* index, for formats of one event; PERFRING_PROFILE_NONE: all, each with its name */
	bool by_samples;    /* a sample counts 1; else its weight */
	uint64_t bytes_max; /* of a format in JSON for a browser; 0: PERFRING_PROFILE_JSON_MAX */
	uint64_t reserved[7];
};

/* Bytes of the longest text that a browser makes of a file: SPEEDSCOPE, FIREFOX and CHROME are not longer. */
#define PERFRING_PROFILE_JSON_MAX UINT64_C(0x1fffffe8)

/* Writes a view to `out`, which stays open; docs/formats.md.  view: NULL is all events, by weight.  Returns 0; -EINVAL (a format
 * or an event that is not known), -ENOMEM, -EFBIG (it would be longer than bytes_max: its beginning has been written), -errno of
 * writing. */
PERFRING_API int perfring_profile_write(const struct perfring_profile *profile, enum perfring_profile_format format,
					const struct perfring_profile_view *view, FILE *out);

/* What the colour of a frame depends on. */
enum perfring_profile_colours {
	PERFRING_PROFILE_BY_FUNCTION, /* its name: the same in each graph */
	PERFRING_PROFILE_BY_OBJECT,
	PERFRING_PROFILE_BY_KIND,
	PERFRING_PROFILE_BY_COUNT
};

struct perfring_profile_flame {
	const char *title;                  /* NULL: the recorded command, or "profile" */
	const struct perfring_profile *old; /* compared with; NULL: none */
	const char *old_title;              /* NULL: "the old recording" */
	double share;     /* of all, 0 to 1: frames below it, and those below a pixel, are counted and not drawn */
	uint32_t event;   /* the one that is shown first; PERFRING_PROFILE_NONE: the first that has samples */
	uint32_t width;   /* px; 0: the window's */
	uint32_t colours; /* enum perfring_profile_colours */
	bool by_samples;  /* a sample counts 1 at first; else its weight */
	bool over_time;   /* the page also has each sample's time, CPU and thread; needs PERFRING_PROFILE_SAMPLES */
	uint64_t reserved[8];
};

/* Writes an HTML page with a flame graph of all events and threads: docs/flame.md.  The page loads nothing else.  flame: NULL is
 * all 0, of the first event.  Returns 0; -EINVAL (a value that is none of these; over_time without the samples); -ENOMEM, -E2BIG
 * (2^32 samples over time); -errno of writing. */
PERFRING_API int perfring_profile_write_flame(const struct perfring_profile *profile,
					      const struct perfring_profile_flame *flame, FILE *out);

PERFRING_END

#endif
