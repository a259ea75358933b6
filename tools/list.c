/* list.c - `perfring list`: the events that can be named on this machine. */
#include <getopt.h>
#include <stdlib.h>
#include <unistd.h>
#include <perfring/event.h>
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
	[PERFRING_EVENT_FORM] = {"form", "form", "", "Forms of others"},
};
#define KIND_COUNT (sizeof(KINDS) / sizeof(*KINDS))

static void help(void)
{
	fputs("usage: perfring list [--details] [hw|sw|cache|pmu|tracepoint|pfm|form|GLOB]...\n"
	      "\n"
	      "The events that -e takes on this machine: all of them, those of a kind, or those whose name matches.  A "
	      "GLOB\n"
	      "without * ? [ stands for *GLOB*.  Hardware, software and cache events are tried: those that the kernel "
	      "does\n"
	      "not open for this user, here and now, say so.  Tracepoints need a tracefs that may be read.\n"
	      "\n"
	      "      --details   what sysfs or libpfm4 says of each\n"
	      "\n"
	      "Behind an event: u k h (only in user space, kernel, hypervisor), p pp ppp P (precise), G H (only "
	      "guests, only\n"
	      "the host), I (not idle), S (read the group), D (pinned), e (exclusive), as in cycles:u or "
	      "{cycles,cs}:S.\n"
	      "\n"
	      "Exit status: 0 done, 1 nothing matches, or it cannot be listed, 2 misused.\n",
	      stdout);
}

static bool is_tried(enum perfring_event_kind kind)
{
	return kind <= PERFRING_EVENT_CACHE;
}

static void show(const struct perfring_event_name *name, bool details)
{
	const char *joint = *name->alias ? " OR " : "";
	int used = 2 + perfring_tool_print(NULL, name->name, 0, false) + (int)strlen(joint) +
		   perfring_tool_print(NULL, name->alias, 0, false);

	fputs("  ", stdout);
	perfring_tool_print(stdout, name->name, 0, false);
	fputs(joint, stdout);
	perfring_tool_print(stdout, name->alias, 0, false);
	printf("%*s[", used < 53 ? 53 - used : 1, "");
	if (name->kind == PERFRING_EVENT_FORM)
		perfring_tool_print(stdout, name->text, 0, false);
	else
		fputs(KINDS[name->kind].label, stdout);
	puts(is_tried(name->kind) && !name->opens ? ", does not open here]" : "]");
	if (details && *name->text && name->kind != PERFRING_EVENT_FORM) {
		fputs("       ", stdout);
		perfring_tool_print(stdout, name->text, 0, false);
		putchar('\n');
	}
}

/* kind -1: all of them.  Returns how many there were, or -errno. */
static int64_t list(const char *glob, int kind, bool details, bool *begun)
{
	struct perfring_event_names *names;
	struct perfring_event_name name;
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
		count++;
	}
	perfring_event_names_close(names);
	return ret < 0 ? ret : count;
}

static int list_word(const char *word, bool details, bool *begun)
{
	char *glob = NULL;
	int64_t count;
	int kind = -1;

	for (int i = 0; i < (int)KIND_COUNT; i++)
		if (!strcmp(word, KINDS[i].word) || !strcmp(word, KINDS[i].other))
			kind = i;
	if (kind < 0) {
		size_t size = strlen(word) + 3;

		glob = perfring_tool_room(NULL, size, 1);
		snprintf(glob, size, strpbrk(word, "*?[") ? "%s" : "*%s*", word);
	}
	count = list(glob, kind, details, begun);
	free(glob);
	if (count < 0) {
		perfring_tool_complain("events cannot be listed: %s", strerror((int)-count));
		return PERFRING_TOOL_FAILED;
	}
	if (count)
		return PERFRING_TOOL_DONE;
	if (kind == PERFRING_EVENT_TRACEPOINT && access("/sys/kernel/tracing/events", R_OK | X_OK) &&
	    access("/sys/kernel/debug/tracing/events", R_OK | X_OK))
		perfring_tool_complain(
			"list: no tracepoint: tracefs is not mounted or may not be read (as root: mount -t tracefs "
			"none /sys/kernel/tracing)");
	else
		perfring_tool_complain("list: nothing on this machine matches '%s'", word);
	return PERFRING_TOOL_FAILED;
}

int perfring_tool_list(int argc, char **argv)
{
	static const struct option options[] = {
		{"details", no_argument, NULL, 'd'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	bool details = false, begun = false;
	int found, status = PERFRING_TOOL_DONE;

	while ((found = getopt_long(argc, argv, ":h", options, NULL)) != -1) {
		switch (found) {
		case 'd':
			details = true;
			break;
		case 'h':
			help();
			return perfring_tool_flush() ? PERFRING_TOOL_DONE : PERFRING_TOOL_FAILED;
		default:
			return perfring_tool_misused(found, argv);
		}
	}
	if (optind == argc)
		status = list_word("*", details, &begun);
	for (; optind < argc; optind++)
		if (list_word(argv[optind], details, &begun))
			status = PERFRING_TOOL_FAILED;
	return perfring_tool_flush() ? status : PERFRING_TOOL_FAILED;
}
