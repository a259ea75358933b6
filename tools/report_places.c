/* report_places.c - the cgroups and cgroup namespaces of a report, from records.
 *
 * report_rows.c gives it CGROUP and NAMESPACES records, and asks for each sample's.
 */
#include <search.h>
#include <stdlib.h>
#include "report.h"

enum {
	CGROUP_NAMESPACE = 6, /* its place among the links of a NAMESPACES record */
};

struct cgroup {
	uint64_t id;
	const char *name;
};

struct member {
	uint32_t tid;
	struct tool_report_place place;
};

static int compare_cgroups(const void *a, const void *b)
{
	const struct cgroup *one = a, *other = b;

	return one->id < other->id ? -1 : one->id > other->id;
}

static int compare_members(const void *a, const void *b)
{
	const struct member *one = a, *other = b;

	return one->tid < other->tid ? -1 : one->tid > other->tid;
}

static void take_cgroup(struct tool_report *report, const struct perfring_record_cgroup *record)
{
	struct cgroup key = {.id = record->id}, *cgroup;
	void *at = tfind(&key, &report->cgroups, compare_cgroups);

	/* As perf: a cgroup keeps its first name. */
	if (at)
		return;
	cgroup = tool_allocate(NULL, 1, sizeof(*cgroup));
	cgroup->id = record->id;
	cgroup->name = tool_machine_name(report->machine, record->path.data, record->path.size);
	tool_insert(cgroup, &report->cgroups, compare_cgroups);
}

static void take_namespaces(struct tool_report *report, const struct perfring_record_namespaces *record)
{
	struct member key = {.tid = record->tid}, *member;
	void *at;

	if (record->links.nr <= CGROUP_NAMESPACE)
		return;
	at = tfind(&key, &report->places, compare_members);
	if (at) {
		member = *(struct member **)at;
	} else {
		member = tool_allocate(NULL, 1, sizeof(*member));
		member->tid = record->tid;
		tool_insert(member, &report->places, compare_members);
	}
	member->place.dev = record->links.words[2 * CGROUP_NAMESPACE];
	member->place.ino = record->links.words[2 * CGROUP_NAMESPACE + 1];
}

void tool_report_take_place(struct tool_report *report, const struct perfring_record *record)
{
	if (record->type == PERFRING_RECORD_CGROUP && report->has[TOOL_REPORT_CGROUP])
		take_cgroup(report, &record->is.cgroup);
	else if (record->type == PERFRING_RECORD_NAMESPACES && report->has[TOOL_REPORT_CGROUP_ID])
		take_namespaces(report, &record->is.namespaces);
}

const char *tool_report_cgroup(const struct tool_report *report, uint64_t id)
{
	struct cgroup key = {.id = id};
	void *const *at = id ? tfind(&key, (void *const *)&report->cgroups, compare_cgroups) : NULL;

	return at ? (*(struct cgroup *const *)at)->name : id ? "unknown" : "N/A";
}

struct tool_report_place tool_report_place(const struct tool_report *report, uint32_t tid)
{
	struct member key = {.tid = tid};
	void *const *at = tfind(&key, (void *const *)&report->places, compare_members);

	return at ? (*(struct member *const *)at)->place : (struct tool_report_place){0, 0};
}

void tool_report_forget_places(struct tool_report *report)
{
	tdestroy(report->cgroups, free);
	tdestroy(report->places, free);
	report->cgroups = report->places = NULL;
}
