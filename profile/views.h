/* views.h - the writers of a profile's formats, and what they share.
 *
 * perfring_profile_write calls one of them.  Context: threads; the tables and `out` are of the calling thread meanwhile. */
#ifndef PERFRING_PROFILE_VIEWS_H
#define PERFRING_PROFILE_VIEWS_H

#include <errno.h>
#include <stdlib.h>
#include <perfring/profile.h>

/* Each returns 0 or -ENOMEM.  perfring_profile_write, which calls them, finds errors of writing in `out`. */
int perfring_write_collapsed(const struct perfring_profile_tables *tables, const struct perfring_profile_view *view,
			     FILE *out);

int perfring_write_json_lines(const struct perfring_profile_tables *tables, const struct perfring_profile_view *view,
			      FILE *out);

int perfring_write_speedscope(const struct perfring_profile_tables *tables, const struct perfring_profile_view *view,
			      FILE *out);
int perfring_write_pprof(const struct perfring_profile_tables *tables, const struct perfring_profile_view *view,
			 FILE *out);
int perfring_write_callgrind(const struct perfring_profile_tables *tables, const struct perfring_profile_view *view,
			     FILE *out);
int perfring_write_firefox(const struct perfring_profile_tables *tables, const struct perfring_profile_view *view,
			   FILE *out);
int perfring_write_chrome(const struct perfring_profile_tables *tables, const struct perfring_profile_view *view,
			  FILE *out);

/* Space for the functions of the deepest stack, to be freed.  NULL without memory. */
uint32_t *perfring_view_path(const struct perfring_profile_tables *tables);

/* The weights by thread and event, to be freed.  NULL without memory. */
uint32_t *perfring_view_order(const struct perfring_profile_tables *tables);

/* As a text of JSON: what was recorded, and what was lost; a thread, and what is looked at of it. */
void perfring_view_put_title(FILE *out, const struct perfring_profile_tables *tables);
void perfring_view_put_thread(FILE *out, const struct perfring_profile_tables *tables, uint32_t thread,
			      const char *what);

/* As members of a JSON object that has some: a loss's CPU and event, where they are known. */
void perfring_view_put_loss(FILE *out, const struct perfring_profile_tables *tables,
			    const struct perfring_profile_loss *loss);

/* The text without what ends a line; and without blanks either. */
void perfring_view_put_line(FILE *out, const char *text);
void perfring_view_put_word(FILE *out, const char *text);

/* "lost records", "lost samples", "throttled", "unread records" */
const char *perfring_view_loss_name(uint32_t kind);

/* Functions by what they share.  All 0 is empty. */
struct perfring_view_groups {
	uint32_t *of;    /* by function: its group; PERFRING_PROFILE_NONE: it is in none */
	uint32_t *first; /* by group: its first function */
	uint32_t count;
};

/* What functions of one group have in common; UINT64_MAX: such a function is in no group. */
typedef uint64_t perfring_view_key(const struct perfring_profile_function *function);

/* The object and its build; the source file. */
perfring_view_key perfring_view_object_key, perfring_view_file_key;

/* Returns 0 or -ENOMEM; to be closed in both cases. */
int perfring_view_group(struct perfring_view_groups *groups, const struct perfring_profile_tables *tables,
			perfring_view_key *key);
void perfring_view_ungroup(struct perfring_view_groups *groups);

/* A time that no other of the profile, of samples and losses, is before; of what has no time, its time. */
uint64_t perfring_view_origin(const struct perfring_profile_tables *tables);

static inline uint64_t perfring_view_since(uint64_t origin, uint64_t time)
{
	return time > origin ? time - origin : 0;
}

/* ns / unit as a number of JSON, exactly.  unit: a power of ten. */
void perfring_view_put_time(FILE *out, uint64_t ns, uint64_t unit);

/* What a weight counts in this view. */
static inline uint64_t perfring_view_number(const struct perfring_profile_view *view,
					    const struct perfring_profile_weight *weight)
{
	return view->by_samples ? weight->samples : weight->weight;
}

static inline bool perfring_view_has_event(const struct perfring_profile_view *view, uint32_t event)
{
	return view->event == PERFRING_PROFILE_NONE || event == view->event;
}

static inline bool perfring_view_has(const struct perfring_profile_view *view,
				     const struct perfring_profile_weight *weight)
{
	return perfring_view_has_event(view, weight->event);
}

/* The weight of lost samples or records: as many samples of the mean weight of those that are there; at least 1. */
uint64_t perfring_view_lost(const struct perfring_profile_tables *tables, const struct perfring_profile_view *view,
			    unsigned kind);

/* The last part of a path; what is no path is itself. */
const char *perfring_view_short_name(const char *path);

/* A function as people read it: its name; without one the object in brackets, "[libc.so.6]"; without that "[unknown]".  Returns the
 * text, of the tables or in `buffer`. */
const char *perfring_view_label(const struct perfring_profile_function *function, char *buffer, size_t size);

#endif
