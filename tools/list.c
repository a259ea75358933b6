/* list.c - `perfring list`: the events that can be named on this machine.
 *
 * perfring_event_names_ of event.h lists; hardware, software and cache events are tried to open, and refusals explained once
 * each.
 */
#include <stdlib.h>
#include <unistd.h>
#include <perfring/config.h>
#include <perfring/event.h>
#include "options.h"
#include "tools.h"

static const struct kind {
	const char *word;
	const char *other; /* as perf says it too */
	const char *label;
	const char *heading;
} KINDS[] = {
	[PERFRING_EVENT_HARDWARE] = {"hw", "hardware", "Hardware event", "Hardware events"},
	[PERFRING_EVENT_SOFTWARE] = {"sw", "software", "Software event", "Software events"},
	[PERFRING_EVENT_CACHE] = {"cache", "hwcache", "Hardware cache event", "Hardware cache events"},
	[PERFRING_EVENT_PMU] = {"pmu", "pmu", "Kernel PMU event", "Events of the kernel's PMUs"},
	[PERFRING_EVENT_TRACEPOINT] = {"tracepoint", "tracepoint", "Tracepoint event", "Tracepoints"},
	[PERFRING_EVENT_PFM] = {"pfm", "pfm", "libpfm4 event", "Events by libpfm4's names"},
	[PERFRING_EVENT_FORM] = {"form", "form", "", "Forms of other events"},
};
#define KIND_COUNT (sizeof(KINDS) / sizeof(*KINDS))

static bool is_tried(enum perfring_event_kind kind)
{
	return kind <= PERFRING_EVENT_CACHE;
}

/* The reason in few words; the full sentences follow the list. */
static const char *reason_of(int error)
{
	return error == -ENOENT                       ? "no such counter"
	       : error == -EACCES || error == -EPERM  ? "not permitted"
	       : error == -EOPNOTSUPP                 ? "not supported"
	       : error == -EMFILE || error == -ENFILE ? "too many open files"
						      : strerror(-error);
}

/* The errnos of a list: each once, with the first event that had it. */
struct refusals {
	int errors[8];
	char names[8][128];
	size_t count;
};

static void note(struct refusals *refusals, const struct perfring_event_listed *name)
{
	size_t i = 0;

	while (i < refusals->count && refusals->errors[i] != name->error)
		i++;
	if (i < refusals->count || i == sizeof(refusals->errors) / sizeof(refusals->errors[0]))
		return;
	refusals->errors[i] = name->error;
	snprintf(refusals->names[i], sizeof(refusals->names[i]), "%s", name->name);
	refusals->count++;
}

static void explain(const struct refusals *refusals)
{
	struct perf_event_attr attr;
	char text[1024];

	for (size_t i = 0; i < refusals->count; i++) {
		memset(&attr, 0, sizeof(attr));
		attr.size = sizeof(attr);
		if (perfring_event_parse(refusals->names[i], &attr, NULL))
			continue;
		/* The least that a user may observe. */
		attr.exclude_kernel = refusals->errors[i] == -EACCES || refusals->errors[i] == -EPERM;
		perfring_event_explain(refusals->errors[i], &attr, 0, -1, text, sizeof(text));
		printf("%sDoes not open, for example ", i ? "" : "\n");
		tool_print(stdout, text, 0, false);
		putchar('\n');
	}
}

static void show(const struct perfring_event_listed *name, bool details)
{
	const char *joint = *name->alias ? " OR " : "";
	int used = 2 + tool_print(NULL, name->name, 0, false) + (int)strlen(joint) +
		   tool_print(NULL, name->alias, 0, false);

	fputs("  ", stdout);
	tool_print(stdout, name->name, 0, false);
	fputs(joint, stdout);
	tool_print(stdout, name->alias, 0, false);
	printf("%*s[", used < 53 ? 53 - used : 1, "");
	if (name->kind == PERFRING_EVENT_FORM)
		tool_print(stdout, name->text, 0, false);
	else
		fputs(KINDS[name->kind].label, stdout);
	if (is_tried(name->kind) && !name->opens)
		printf(", does not open here: %s", reason_of(name->error));
	puts("]");
	if (details && *name->text && name->kind != PERFRING_EVENT_FORM) {
		fputs("       ", stdout);
		tool_print(stdout, name->text, 0, false);
		putchar('\n');
	}
}

/* Lists the events of a kind, -1: all, that match.  Returns how many there were, or -errno. */
static int64_t list(const char *glob, int kind, bool details, bool *begun, struct refusals *refusals)
{
	struct perfring_event_names *names;
	struct perfring_event_listed name;
	int64_t count = 0;
	int last = -1;
	int ret = perfring_event_names_open(&names, glob, kind < 0 || is_tried((enum perfring_event_kind)kind));

	if (ret)
		return ret;
	while ((ret = perfring_event_names_next(names, &name)) == 1) {
		if (kind >= 0 && (int)name.kind != kind)
			continue;
		if ((int)name.kind != last) {
			printf("%s%s:\n\n", *begun ? "\n" : "", KINDS[name.kind].heading);
			*begun = true;
		}
		last = (int)name.kind;
		show(&name, details);
		if (is_tried(name.kind) && !name.opens)
			note(refusals, &name);
		count++;
	}
	perfring_event_names_close(names);
	return ret < 0 ? ret : count;
}

static int list_word(const char *word, bool details, bool *begun, struct refusals *refusals)
{
	char *glob = NULL;
	int64_t count;
	int kind = -1;

	for (int i = 0; i < (int)KIND_COUNT; i++)
		if (!strcmp(word, KINDS[i].word) || !strcmp(word, KINDS[i].other))
			kind = i;
	if (kind < 0) {
		size_t size = strlen(word) + 3;

		glob = tool_allocate(NULL, size, 1);
		snprintf(glob, size, strpbrk(word, "*?[") ? "%s" : "*%s*", word);
	}
	count = list(glob, kind, details, begun, refusals);
	free(glob);
	if (count < 0) {
		tool_complain("events cannot be listed: %s", strerror((int)-count));
		return TOOL_FAILED;
	}
	if (count)
		return TOOL_DONE;
	if (kind == PERFRING_EVENT_PFM && !PERFRING_HAS_PFM)
		tool_complain("list: no names of libpfm4: this perfring was built without libpfm4");
	else if ((kind == PERFRING_EVENT_TRACEPOINT || kind < 0) && access("/sys/kernel/tracing/events", R_OK | X_OK) &&
		 access("/sys/kernel/debug/tracing/events", R_OK | X_OK))
		tool_complain("list: nothing on this machine matches '%s', and tracepoints cannot be seen: tracefs is not mounted "
			      "or may not be read (as root: mount -t tracefs none /sys/kernel/tracing)",
			      word);
	else
		tool_complain("list: nothing on this machine matches '%s'", word);
	return TOOL_FAILED;
}

enum {
	DETAILS = TOOL_OPTION_LONG,
	PERF_ONLY, /* rows that are refused */
};

static int list_command(int argc, char **argv)
{
	struct tool_options options = {.command = &tool_list};
	struct refusals refusals = {.count = 0};
	bool details = false, begun = false;
	int found, status = TOOL_DONE;

	while ((found = tool_options_next(&options, argc, argv)) > 0) {
		switch (found) {
		case DETAILS:
			details = true;
			break;
		default:
			return tool_options_forgotten(&options, found);
		}
	}
	if (!found)
		return options.status;
	if (optind == argc)
		status = list_word("*", details, &begun, &refusals);
	for (; optind < argc; optind++)
		if (list_word(argv[optind], details, &begun, &refusals))
			status = TOOL_FAILED;
	explain(&refusals);
	return tool_flush() ? status : TOOL_FAILED;
}

#define DESCRIBED "--details has what sysfs or libpfm4 says about each event"

static const struct tool_option ROWS[] = {
	{DETAILS, "details", .help = "what sysfs or libpfm4 says about each"},
	{'d', "desc", .refused = DESCRIBED},
	{'v', "long-desc", .refused = DESCRIBED},
	{PERF_ONLY, "no-desc", .refused = "there are no descriptions without --details"},
	{PERF_ONLY, "deprecated", .refused = "all events of this machine are listed"},
	{PERF_ONLY, "debug", .refused = "a line says why an event does not open"},
	{PERF_ONLY, "cputype", .value = "TYPE", .takes = "a PMU", .refused = "name the PMU as the GLOB, such as cpu_core"},
	TOOL_OPTIONS_END,
};

static const struct tool_example EXAMPLES[] = {
	{"What the processor counts:", "perfring list hw cache"},
	{"The scheduler's tracepoints:", "perfring list 'sched:*'"},
	{"All that is known of events about cache misses:", "perfring list --details cache-misses"},
	{0},
};

const struct tool_command tool_list = {
	.name = "list",
	.summary = "the events that can be named on this machine",
	.usage = "[--details] [hw|sw|cache|pmu|tracepoint|pfm|form|GLOB]...",
	.description =
		"Lists the events that -e takes on this machine: all of them, those of a kind, or those whose name "
		"matches.  A GLOB without * ? [ stands for *GLOB*.  Hardware, software and cache events are tried: "
		"where the kernel does not open one for this user, the line says why.  Tracepoints need a readable "
		"tracefs.",
	.options = ROWS,
	.notes = "Modifiers after an event: u k h (only in user space, kernel, hypervisor), p pp ppp P (precise), G H "
		 "(only guests, only the host), I (not idle), S (read the group), D (pinned), e (exclusive), as in "
		 "cycles:u or {cycles,cs}:S.",
	.exit_status = "0 done; 1 nothing matches, or the events cannot be listed; 2 usage error.",
	.examples = EXAMPLES,
	.see_also = "perfring-record perfring-stat perfring-doctor perfring",
	.run = list_command,
};
