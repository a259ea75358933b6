/* views.h - the writers of a profile's formats, and what they share.
 *
 * perfring_profile_write calls one of them.  Context: threads; the tables and `out` are of the calling thread meanwhile. */
#ifndef PERFRING_PROFILE_VIEWS_H
#define PERFRING_PROFILE_VIEWS_H

#include <errno.h>
#include <stdlib.h>
#include <perfring/profile.h>

/* Each returns 0 or -ENOMEM.  perfring_profile_write, which calls them, finds errors of writing in `out`. */
int perfring__write_collapsed(const struct perfring_profile_tables *tables, const struct perfring_profile_view *view,
			      FILE *out);

int perfring__write_json_lines(const struct perfring_profile_tables *tables, const struct perfring_profile_view *view,
			       FILE *out);

int perfring__write_speedscope(const struct perfring_profile_tables *tables, const struct perfring_profile_view *view,
			       FILE *out);
int perfring__write_pprof(const struct perfring_profile_tables *tables, const struct perfring_profile_view *view,
			  FILE *out);
int perfring__write_callgrind(const struct perfring_profile_tables *tables, const struct perfring_profile_view *view,
			      FILE *out);
int perfring__write_firefox(const struct perfring_profile_tables *tables, const struct perfring_profile_view *view,
			    FILE *out);
int perfring__write_chrome(const struct perfring_profile_tables *tables, const struct perfring_profile_view *view,
			   FILE *out);

/* An array for the functions of the deepest stack, which the caller frees.  NULL without memory. */
uint32_t *perfring__view_path(const struct perfring_profile_tables *tables);

/* The indices of the weights, sorted by thread and event, which the caller frees.  NULL without memory. */
uint32_t *perfring__view_order(const struct perfring_profile_tables *tables);

/* Write a text of JSON: what was recorded and lost; a thread's name, with `what` of it. */
void perfring__view_put_title(FILE *out, const struct perfring_profile_tables *tables);
void perfring__view_put_thread(FILE *out, const struct perfring_profile_tables *tables, uint32_t thread,
			       const char *what);

/* Writes ",..." members of a JSON object: a loss's CPU and event, if they are known. */
void perfring__view_put_loss(FILE *out, const struct perfring_profile_tables *tables,
			     const struct perfring_profile_loss *loss);

/* Write a text without control characters, which could end a line; _word: without blanks too. */
void perfring__view_put_line(FILE *out, const char *text);
void perfring__view_put_word(FILE *out, const char *text);

/* "lost records", "lost samples", "throttled", "unread records" */
const char *perfring__view_loss_name(uint32_t kind);

/* Groups of functions with an equal key.  All 0 is empty. */
struct perfring_view_groups {
	uint32_t *of;    /* by function: its group; PERFRING_PROFILE_NONE: it is in none */
	uint32_t *first; /* by group: its first function */
	uint32_t count;
};

/* The key of a function; UINT64_MAX: it is in no group. */
typedef uint64_t perfring__view_key(const struct perfring_profile_function *function);

/* Keys: the object with its build; the source file. */
perfring__view_key perfring__view_object_key, perfring__view_file_key;

/* Groups all functions.  Returns 0 or -ENOMEM; perfring__view_ungroup frees it in both cases. */
int perfring__view_group(struct perfring_view_groups *groups, const struct perfring_profile_tables *tables,
			 perfring__view_key *key);
void perfring__view_ungroup(struct perfring_view_groups *groups);

/* The earliest time of the profile's samples and losses, which formats use for those without a time too. */
uint64_t perfring__view_origin(const struct perfring_profile_tables *tables);

static inline uint64_t perfring__view_since(uint64_t origin, uint64_t time)
{
	return time > origin ? time - origin : 0;
}

/* The sum; UINT64_MAX if it is larger. */
static inline uint64_t perfring__view_plus(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* ns / unit as a number of JSON, exactly.  unit: a power of ten. */
void perfring__view_put_time(FILE *out, uint64_t ns, uint64_t unit);

/* The number that a weight has in this view: samples, or their weight. */
static inline uint64_t perfring__view_number(const struct perfring_profile_view *view,
					     const struct perfring_profile_weight *weight)
{
	return view->by_samples ? weight->samples : weight->weight;
}

static inline bool perfring__view_has_event(const struct perfring_profile_view *view, uint32_t event)
{
	return view->event == PERFRING_PROFILE_NONE || event == view->event;
}

static inline bool perfring__view_has(const struct perfring_profile_view *view,
				      const struct perfring_profile_weight *weight)
{
	return perfring__view_has_event(view, weight->event);
}

/* The weight of lost samples or records: as many samples of the mean weight of the recorded ones; at least 1. */
uint64_t perfring__view_lost(const struct perfring_profile_tables *tables, const struct perfring_profile_view *view,
			     unsigned kind);

/* The last part of a path; a name without a slash as it is. */
const char *perfring__view_short_name(const char *path);

/* A function as people read it: its name; without one the object in brackets, "[libc.so.6]"; without that "[unknown]".  Returns the
 * text, of the tables or in `buffer`. */
const char *perfring__view_label(const struct perfring_profile_function *function, char *buffer, size_t size);

#endif
