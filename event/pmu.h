/* pmu.h - shared by the files that name events: PMUs of sysfs, tracepoints, modifiers, and what a text has besides an
 * attr.
 *
 * Private to event/.  Paths and texts are the caller's; nothing here outlives a call but perfring_pmu.fd, which
 * perfring__pmu_close closes.
 */
#ifndef PERFRING_EVENT_PMU_H
#define PERFRING_EVENT_PMU_H

#include <dirent.h>

#include "event_private.h"

#define PERFRING_PMU_ROOT "/sys/bus/event_source/devices"

enum {
	PERFRING_CONFIGS = 5, /* config, config1 .. config4 */
	PERFRING_PMU_NAME = 128,
	PERFRING_PMU_TEXT = 4096, /* of a file of sysfs, which gives no more than a page */
};

/* A PMU's directory under `root`. */
struct perfring_pmu {
	int fd;
	uint32_t type;
};

/* The bits of a term's value: those set in mask, from the lowest on, of config number `config`. */
struct perfring_pmu_bits {
	unsigned config;
	uint64_t mask;
};

/* What an event's text has besides its attr. */
struct perfring_naming {
	double scale;
	char unit[32];
	char cpus[128];               /* its PMU's cpumask */
	char name[PERFRING_PMU_NAME]; /* of its `name=`, or "" */
	bool reads;                   /* S */
	uint32_t terms;               /* PERFRING_TERM_ bits */
};

struct perfring_piece {
	const char *text;
	size_t length;
};

/* One TERM[=VALUE] of a list. */
struct perfring_term {
	struct perfring_piece name;
	struct perfring_piece value; /* text NULL: none */
};

/* The terms of every event, in messages. */
#define PERFRING_TERMS \
	"period, freq, name, call-graph, stack-size, max-stack, inherit, no-inherit, time, overwrite, no-overwrite, " \
	"branch_type, aux-output, aux-sample-size, percore"

/* Letters after an event or a group. */
struct perfring_modifiers {
	uint32_t letters; /* 1 << position in PERFRING_MODIFIERS */
	uint32_t precise; /* how many p */
};

#define PERFRING_MODIFIERS "ukhGHISDeP"

/* Parses modifiers at text + at, up to NUL, ',', '}' or a blank.  Returns their number of bytes, or -EINVAL. */
int64_t perfring__modifiers_parse(const char *text, size_t at, struct perfring_modifiers *modifiers,
				  struct perfring_fault *fault);
bool perfring__modifiers_has(const struct perfring_modifiers *modifiers, char letter);

/* Returns 0, or -EINVAL: more than three p. */
int perfring__modifiers_join(struct perfring_modifiers *modifiers, const struct perfring_modifiers *more);
void perfring__modifiers_apply(const struct perfring_modifiers *modifiers, struct perf_event_attr *attr);

/* As perf: of an event with modifiers of its own, and without G and H, guests are left out when u or p is among them or the group's
 * (NULL: none).  Returns PERFRING_TERM_GUESTS if G or H is among them, or 0. */
uint32_t perfring__modifiers_guests(const struct perfring_modifiers *own, const struct perfring_modifiers *group,
				    struct perf_event_attr *attr);

/* perfring_event_parse with sysfs's directory of PMUs at `root`, the group's modifiers (or NULL), and more results (or
 * NULL). */
int perfring__event_parse_under(const char *root, const char *text, const struct perfring_modifiers *group,
				struct perf_event_attr *attr, struct perfring_naming *naming,
				struct perfring_fault *fault);
int64_t perfring__event_name_under(const char *root, const struct perf_event_attr *attr, char *buffer, size_t size);

/* Writes a fault (which may be NULL) and returns `error`; invalid: -EINVAL. */
int perfring__event_fault(struct perfring_fault *fault, size_t at, const char *what, int error);
int perfring__event_invalid(struct perfring_fault *fault, size_t at, const char *what);

/* The whole text as a number: decimal, also after a leading 0, or hexadecimal after 0x. */
bool perfring__event_number(const char *text, size_t length, uint64_t *value);

/* Returns 0, -ENOENT, -EINVAL (not a name), or -errno.  Closed with perfring__pmu_close. */
int perfring__pmu_open(struct perfring_pmu *pmu, const char *root, const char *name, size_t length);
void perfring__pmu_close(struct perfring_pmu *pmu);

/* sysfs's list of the CPUs on which it counts for all; "" without one. */
void perfring__pmu_cpus(const struct perfring_pmu *pmu, char *buffer, size_t size);

/* The bits of a term.  Returns 0, -ENOENT, or -EBADMSG for a text of sysfs that is not known here. */
int perfring__pmu_format(const struct perfring_pmu *pmu, const char *name, size_t length,
			 struct perfring_pmu_bits *bits);

/* The text of events/NAME with `suffix` ("", ".scale", ".unit").  Returns its length or -errno. */
int64_t perfring__pmu_event(const struct perfring_pmu *pmu, const char *name, size_t length, const char *suffix,
			    char *buffer, size_t size);

/* Whether this file of events/ is an event, not the unit or scale of one. */
bool perfring__pmu_is_event(const char *name, size_t length);

/* OR's value into the config; false when it needs more bits. */
bool perfring__pmu_spread(const struct perfring_pmu_bits *bits, uint64_t value, uint64_t *configs);

/* The terms text[from..to) of a PMU's event, into configs, *attr (how it samples) and *naming.  pmu NULL: only
 * terms of every event.  Returns 0, or -errno with a fault. */
int perfring__pmu_terms(const struct perfring_pmu *pmu, const char *text, size_t from, size_t to, uint64_t *configs,
			struct perf_event_attr *attr, struct perfring_naming *naming, struct perfring_fault *fault);

bool perfring__term_is(const struct perfring_piece *piece, const char *word);

/* Whether the term has no value, which leaves *value, or a number. */
bool perfring__term_number(const struct perfring_term *term, uint64_t *value);

/* A term of every event, or (has_config) of every PMU: config, config1 ..  text: whose part the term is.  Returns 1 for one of
 * these, 0, or -EINVAL with a fault. */
int perfring__term_own(const char *text, const struct perfring_term *term, bool has_config, uint64_t *configs,
		       struct perf_event_attr *attr, struct perfring_naming *naming, struct perfring_fault *fault);

/* The first PMU, by name, with this type, or (name given) with an event of this name.  Returns 0 or -ENOENT. */
int perfring__pmu_of_type(const char *root, uint32_t type, char name[PERFRING_PMU_NAME]);
int perfring__pmu_of_event(const char *root, const char *event, size_t length, char name[PERFRING_PMU_NAME]);

/* The entries of a directory, sorted by name, without hidden ones.  Returns their number; or -errno, and nothing is to
 * be freed. */
int perfring__event_folder(int at, const char *path, struct dirent ***entries);
void perfring__event_folder_free(struct dirent **entries, int count);

/* Calls take for each tracepoint that matches both globs, by name, until it returns another value than 0.  name:
 * "system:event"; id: the path of its id under the directory `folder`, where a folder of ftrace's own, or a plain file,
 * has none.  Returns what take returned last, or -errno when tracefs cannot be read. */
int perfring__tracepoints_each(const char *system_glob, const char *event_glob,
			       int (*take)(void *to, const char *name, int folder, const char *id), void *to);

/* The number of the tracepoint "system:event".  Returns 0, or -errno with a fault. */
int perfring__tracepoint_id(const char *text, size_t length, uint64_t *id, struct perfring_fault *fault);

/* Writes "system:event"; leaves the buffer alone when tracefs has no such number. */
void perfring__tracepoint_name(uint64_t id, char *buffer, size_t size);

/* The offset in the file of "PATH:SYMBOL+OFFSET".  Returns 0; or, with a fault, -ENOENT (no such file or symbol, or the symbol lies in
 * no segment), -EINVAL (the text; no valid ELF file) or another -errno. */
int perfring__uprobe_place(const char *text, size_t path, size_t place, size_t end, uint64_t *offset,
			   struct perfring_fault *fault);

/* The offset in the file of a symbol, and its size.  Returns 0; -ENOENT: it has none of that name in a segment; -EBADMSG: no valid ELF
 * file; or another -errno. */
int perfring__uprobe_symbol(int fd, const char *symbol, size_t length, uint64_t *offset, uint64_t *size);

/* config..config4 of an attr: those beyond its size are 0; and back.  -EINVAL: one of those is not 0. */
void perfring__configs_get(const struct perf_event_attr *attr, uint64_t configs[PERFRING_CONFIGS]);
int perfring__configs_set(struct perf_event_attr *attr, const uint64_t configs[PERFRING_CONFIGS]);

/* The name of cache event number i, as perf writes it.  Returns false after the last. */
bool perfring__cache_name(unsigned i, char *buffer, size_t size);

/* libpfm4's names; where it is not built in, -ENOENT and no names. */
int perfring__pfm_parse(const char *text, uint64_t configs[PERFRING_CONFIGS], struct perf_event_attr *attr);
int perfring__pfm_each(int (*take)(void *to, const char *name, const char *text), void *to);

#endif
