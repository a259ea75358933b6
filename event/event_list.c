/* event_list.c - a list of events, as on a command line: groups, their modifiers, globs of tracepoints, probes.
 *
 * event_syntax.c parses each event.  Context: as event.h: threads, one at a time for each list. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "os/array.h"
#include "pmu.h"

/* One event, and what its public part points to. */
struct entry {
	struct perfring_events_one one;
	struct perf_event_attr *attr;
	char *name;
	char *path; /* of a probe, which attr->config1 points to */
	char unit[32];
	char cpus[128];
};

struct perfring_events {
	struct entry **entries;
	uint32_t count;
	uint32_t capacity;
};

int perfring_events_open(struct perfring_events **events)
{
	*events = calloc(1, sizeof(**events));
	return *events ? 0 : -ENOMEM;
}

static void drop(struct perfring_events *events, uint32_t count)
{
	while (events->count > count) {
		struct entry *entry = events->entries[--events->count];

		free(entry->attr);
		free(entry->name);
		free(entry->path);
		free(entry);
	}
}

void perfring_events_close(struct perfring_events *events)
{
	if (!events)
		return;
	drop(events, 0);
	free(events->entries);
	free(events);
}

uint32_t perfring_events_count(const struct perfring_events *events)
{
	return events->count;
}

const struct perfring_events_one *perfring_events_at(const struct perfring_events *events, uint32_t i)
{
	return i < events->count ? &events->entries[i]->one : NULL;
}

struct perf_event_attr *perfring_events_attr(struct perfring_events *events, uint32_t i)
{
	return i < events->count ? events->entries[i]->attr : NULL;
}

/* A new entry, last in the list, with a copy of `base`; NULL without memory. */
static struct entry *append(struct perfring_events *events, const struct perf_event_attr *base, const char *name,
			    size_t length)
{
	uint32_t bytes = perfring__attr_own_size(base);
	struct entry *entry = calloc(1, sizeof(*entry));

	if (!entry || perfring__os_array_grow(&events->entries, events->count, &events->capacity, sizeof(entry))) {
		free(entry);
		return NULL;
	}
	/* Callers may copy a whole struct of the installed header, whatever attr.size says. */
	entry->attr = calloc(1, bytes > sizeof(*base) ? bytes : sizeof(*base));
	entry->name = strndup(name, length);
	events->entries[events->count++] = entry;
	if (!entry->attr || !entry->name)
		return NULL; /* the caller drops the entry */
	memcpy(entry->attr, base, bytes);
	entry->one = (struct perfring_events_one){entry->attr, entry->name, UINT32_MAX, false,
						  1.0,         entry->unit, entry->cpus,   0};
	return entry;
}

int perfring_events_add_attr(struct perfring_events *events, const struct perf_event_attr *attr, const char *name,
			     bool joins)
{
	uint32_t count = events->count;
	struct entry *entry;

	if ((joins && !count) || perfring__attr_own_size(attr) > PERFRING_ATTR_MAX)
		return -EINVAL;
	entry = append(events, attr, name, strlen(name));
	if (!entry) {
		drop(events, count);
		return -ENOMEM;
	}
	if (joins) {
		struct perfring_events_one *before = &events->entries[count - 1]->one;

		if (before->leader == UINT32_MAX)
			before->leader = count - 1;
		entry->one.leader = before->leader;
		entry->one.reads = before->reads;
	}
	return 0;
}

/* ---- text ---- */

/* The state of an add. */
struct adding {
	struct perfring_events *events;
	const char *text;
	const char *root;
	const struct perf_event_attr *base;
	struct perfring_fault *fault;
	const struct perfring_modifiers *group;
	uint32_t leader; /* of the group being added; UINT32_MAX: none */
};

static int fault_at(struct adding *adding, size_t at, const char *what)
{
	return perfring__event_invalid(adding->fault, at, what);
}

/* One event as text; at: its place in the user's text. */
static int add_text(struct adding *adding, const char *text, size_t at)
{
	struct perfring_fault fault = {0, "cannot be named"};
	struct perfring_naming naming;
	struct entry *entry;
	int error;

	entry = append(adding->events, adding->base, text, strlen(text));
	if (!entry)
		return perfring__event_fault(adding->fault, at, "out of memory", -ENOMEM);
	error = perfring__event_parse_under(adding->root, text, adding->group, entry->attr, &naming, &fault);
	if (error)
		return perfring__event_fault(adding->fault, at + (size_t)fault.at, fault.what, error);
	if (naming.name[0]) {
		free(entry->name);
		entry->one.name = entry->name = strdup(naming.name);
		if (!entry->name)
			return perfring__event_fault(adding->fault, at, "out of memory", -ENOMEM);
	}
	memcpy(entry->unit, naming.unit, sizeof(entry->unit));
	memcpy(entry->cpus, naming.cpus, sizeof(entry->cpus));
	entry->one.scale = naming.scale;
	entry->one.reads = naming.reads;
	entry->one.terms = naming.terms;
	return 0;
}

/* The state of a glob. */
struct matching {
	struct adding *adding;
	const char *rest; /* ":MODIFIERS", "/TERMS/MODIFIERS" or "" */
	size_t at;
	bool has_matched;
	int error;
};

static int add_match(void *to, const char *name, int folder, const char *id)
{
	struct matching *matching = to;
	char whole[1024];

	if (faccessat(folder, id, F_OK, 0) ||
	    snprintf(whole, sizeof(whole), "%s%s", name, matching->rest) >= (int)sizeof(whole))
		return 0;
	matching->has_matched = true;
	matching->error = add_text(matching->adding, whole, matching->at);
	/* `whole` is not the caller's text: there the fault is at the glob. */
	if (matching->error && matching->adding->fault)
		matching->adding->fault->at = (int64_t)matching->at;
	return matching->error;
}

/* "SUBSYS:GLOB[/TERMS/][:MODIFIERS]": every tracepoint that matches. */
static int add_glob(struct adding *adding, const char *text, size_t at)
{
	const char *colon = strchr(text, ':'), *rest = strpbrk(colon + 1, ":/");
	struct matching matching = {adding, rest ? rest : text + strlen(text), at, false, 0};
	struct perfring_modifiers modifiers;
	struct perfring_fault fault = {0, NULL};
	char subsystem[128], glob[128];
	int error;

	if (snprintf(subsystem, sizeof(subsystem), "%.*s", (int)(colon - text), text) >= (int)sizeof(subsystem) ||
	    snprintf(glob, sizeof(glob), "%.*s", (int)(matching.rest - colon - 1), colon + 1) >= (int)sizeof(glob))
		return fault_at(adding, at, "not a tracepoint's name");
	if (rest && *rest == ':') {
		size_t from = (size_t)(rest - text) + 1;
		int64_t used = perfring__modifiers_parse(text, from, &modifiers, &fault);

		if (used >= 0 && text[from + (size_t)used])
			perfring__event_invalid(&fault, from + (size_t)used, "no modifier");
		if (fault.what)
			return fault_at(adding, at + (size_t)fault.at, fault.what);
	}
	error = perfring__tracepoints_each(subsystem, glob, add_match, &matching);
	if (error && !matching.error)
		return perfring__event_fault(
			adding->fault, at,
			"tracefs is not mounted or not readable (mount -t tracefs none /sys/kernel/tracing)", error);
	if (!matching.has_matched)
		return perfring__event_fault(adding->fault, at, "no tracepoint matches", -ENOENT);
	return error;
}

/* Adds "uprobe:PATH:PLACE[:MODIFIERS]".  With one part after PATH, this is the place, even if it reads as modifiers. */
static int add_probe(struct adding *adding, const char *text, size_t at, bool returns)
{
	size_t path = returns ? strlen("uretprobe:") : strlen("uprobe:"), end = strlen(text);
	struct perfring_modifiers modifiers = {0, 0};
	const char *last = strrchr(text + path, ':');
	struct perfring_fault fault = {0, NULL};
	uint64_t configs[PERFRING_CONFIGS] = {0};
	struct perfring_pmu_bits bits;
	struct perfring_pmu pmu;
	struct entry *entry;
	int error;

	if (last && memchr(text + path, ':', (size_t)(last - text) - path) &&
	    perfring__modifiers_parse(text, (size_t)(last + 1 - text), &modifiers, NULL) == (int64_t)strlen(last + 1)) {
		end = (size_t)(last - text);
		last = memrchr(text + path, ':', end - path);
	}
	if (!last)
		return fault_at(adding, at + end, "no :SYMBOL, :SYMBOL+OFFSET or :0xOFFSET after the path");
	error = perfring__uprobe_place(text, path, (size_t)(last + 1 - text), end, &configs[2], &fault);
	if (error)
		return perfring__event_fault(adding->fault, at + (size_t)fault.at, fault.what, error);
	error = perfring__pmu_open(&pmu, adding->root, "uprobe", strlen("uprobe"));
	if (error)
		return perfring__event_fault(adding->fault, at,
					     "this kernel has no probes of user code (CONFIG_UPROBE_EVENTS)", error);
	error = returns ? perfring__pmu_format(&pmu, "retprobe", strlen("retprobe"), &bits) : 0;
	if (!error && returns)
		perfring__pmu_spread(&bits, 1, configs);
	perfring__pmu_close(&pmu);
	if (error)
		return perfring__event_fault(adding->fault, at, "this kernel's uprobe PMU has no retprobe", error);

	entry = append(adding->events, adding->base, text, strlen(text));
	if (entry)
		entry->path = strndup(text + path, (size_t)(last - text) - path);
	if (!entry || !entry->path)
		return perfring__event_fault(adding->fault, at, "out of memory", -ENOMEM);
	configs[1] = (uintptr_t)entry->path;
	entry->attr->type = pmu.type;
	entry->attr->bp_type = 0;
	if (perfring__configs_set(entry->attr, configs))
		return fault_at(adding, at, "attr->size ends before config2, which this needs");
	entry->one.terms = perfring__modifiers_guests(&modifiers, adding->group, entry->attr);
	if (adding->group && perfring__modifiers_join(&modifiers, adding->group))
		return fault_at(adding, at, "with the group's, more than three p");
	perfring__modifiers_apply(&modifiers, entry->attr);
	entry->one.reads = perfring__modifiers_has(&modifiers, 'S');
	return 0;
}

/* Returns where the event at `at` ends.  In PMU/.../ a comma belongs to the event; the slash of a path or of mem:ADDR/LEN begins
 * nothing. */
static size_t end_of(const char *text, size_t at)
{
	bool plain = !strncmp(text + at, "mem:", 4) || !strncmp(text + at, "uprobe:", 7) ||
		     !strncmp(text + at, "uretprobe:", 10);
	bool inside = false;

	for (; text[at] && (inside || (text[at] != ',' && text[at] != '}' && text[at] != '{')); at++)
		inside ^= !plain && text[at] == '/';
	return at;
}

static int add_one(struct adding *adding, size_t from, size_t to)
{
	uint32_t first = adding->events->count;
	const char *colon;
	char *text;
	int error;

	while (to > from && (adding->text[to - 1] == ' ' || adding->text[to - 1] == '\t'))
		to--;
	if (from == to)
		return fault_at(adding, from, "no event");
	text = strndup(adding->text + from, to - from);
	if (!text)
		return perfring__event_fault(adding->fault, from, "out of memory", -ENOMEM);
	colon = strchr(text, ':');
	if (!strncmp(text, "uprobe:", 7) || !strncmp(text, "uretprobe:", 10))
		error = add_probe(adding, text, from, text[1] == 'r');
	else if (colon && colon < text + strcspn(text, "/") && strcspn(text, "*?[") < strcspn(text, "/"))
		error = add_glob(adding, text, from);
	else
		error = add_text(adding, text, from);
	free(text);
	if (error || adding->leader == UINT32_MAX)
		return error;
	for (uint32_t i = first; i < adding->events->count; i++) {
		struct entry *entry = adding->events->entries[i];

		entry->one.leader = adding->leader;
		if (i == adding->leader)
			continue;
		/* The kernel accepts these only of a leader. */
		entry->attr->pinned = 0;
		entry->attr->exclusive = 0;
	}
	return 0;
}

static size_t blanks(const char *text, size_t at)
{
	return at + strspn(text + at, " \t");
}

/* "{EVENT,EVENT}:MODIFIERS" at *at, which becomes its end. */
static int add_group(struct adding *adding, size_t *at)
{
	const char *text = adding->text;
	struct perfring_modifiers modifiers = {0, 0};
	size_t from, end = *at + 1;
	int64_t used;
	int error;

	/* First looks for the group's end: the modifiers after it apply to every event in it. */
	for (;;) {
		end = end_of(text, blanks(text, end));
		if (text[end] != ',')
			break;
		end++;
	}
	if (text[end] == '{')
		return fault_at(adding, end, "a group inside a group");
	if (!text[end])
		return fault_at(adding, end, "no } after the group");
	if (text[++end] == ':') {
		used = perfring__modifiers_parse(text, end + 1, &modifiers, adding->fault);
		if (used < 0)
			return (int)used;
		end += 1 + (size_t)used;
	}
	adding->group = &modifiers;
	adding->leader = adding->events->count;
	from = *at + 1;
	do {
		size_t to;

		from = blanks(text, from);
		to = end_of(text, from);
		error = add_one(adding, from, to);
		from = to + 1;
	} while (!error && text[from - 1] == ',');
	adding->group = NULL;
	adding->leader = UINT32_MAX;
	*at = end;
	return error;
}

int perfring_events_add(struct perfring_events *events, const char *text, const struct perf_event_attr *base,
			struct perfring_fault *fault)
{
	struct adding adding = {events, text, PERFRING_PMU_ROOT, base, fault, NULL, UINT32_MAX};
	uint32_t count = events->count;
	size_t at = 0;
	int error;

	if (perfring__attr_own_size(base) > PERFRING_ATTR_MAX)
		return fault_at(&adding, 0, "an attr has at most 4096 bytes");
	for (;;) {
		at = blanks(text, at);
		if (text[at] == '{') {
			error = add_group(&adding, &at);
		} else {
			size_t to = end_of(text, at);

			error = text[to] == '}' || text[to] == '{' ? fault_at(&adding, to, "unexpected brace")
								   : add_one(&adding, at, to);
			at = to;
		}
		if (error)
			break;
		at = blanks(text, at);
		if (!text[at])
			return 0;
		if (text[at++] != ',') {
			error = fault_at(&adding, at - 1, "a comma is expected here");
			break;
		}
	}
	drop(events, count);
	return error;
}
