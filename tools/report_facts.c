/* report_facts.c - what a report says of its recording first: command, duration, loss, names.
 *
 * report_print.c and report_json.c call it.
 */
#include <inttypes.h>
#include "report.h"

/* The words that were recorded, with blanks between them; "" if the file does not have them. */
static void read_command(const struct perfring_file *data, char command[TOOL_REPORT_COMMAND])
{
	struct perfring_layout_member member;
	struct perfring_layout_walk walk;
	uint64_t size = 0;
	const void *payload = perfring_file_feature(data, PERFRING_FEATURE_CMDLINE, &size);
	size_t at = 0;

	command[0] = 0;
	if (!payload)
		return;
	memset(&member, 0, sizeof(member));
	perfring_feature_open(&walk, PERFRING_FEATURE_CMDLINE, payload, size, 0);
	while (at < TOOL_REPORT_COMMAND - 1 && perfring_layout_next(&walk, &member) == 1) {
		size_t left = TOOL_REPORT_COMMAND - at;
		int used;

		if (member.kind != PERFRING_LAYOUT_STRING)
			continue;
		used = snprintf(command + at, left, "%s%s", at ? " " : "", (const char *)member.bytes);
		at += (size_t)used < left ? (size_t)used : left - 1;
	}
	if (at == TOOL_REPORT_COMMAND - 1)
		memcpy(command + at - 3, "...", 3);
}

void tool_report_facts_read(const struct tool_report *report, struct tool_report_facts *facts)
{
	memset(facts, 0, sizeof(*facts));
	read_command(report->input.data, facts->command);
	facts->host = perfring_file_string(report->input.data, PERFRING_FEATURE_HOSTNAME);
	facts->seconds = (double)(report->last - report->first) / 1e9;
	for (uint32_t i = 0; i < report->event_count; i++) {
		if (report->events[i].name) /* no samples: times between them */
			continue;
		facts->events += report->events[i].seen != 0;
		facts->samples += report->events[i].seen;
		facts->lost += report->events[i].lost;
	}
	for (unsigned i = 0; i < PERFRING_NAMELESS_COUNT; i++)
		facts->named += report->nameless[i];
	facts->nameless = facts->named - report->nameless[PERFRING_NAMELESS_NONE];
}

static double percent(uint64_t part, uint64_t all)
{
	return all ? 100.0 * (double)part / (double)all : 0;
}

void tool_report_facts_print(const struct tool_report *report)
{
	struct tool_report_facts facts;

	tool_report_facts_read(report, &facts);
	printf("# Recorded: ");
	tool_print(stdout, *facts.command ? facts.command : "by an unknown command", 0, false);
	printf("; %.3f s%s\n", facts.seconds, report->has_header ? "" : "; more by --header");
	printf("# Counted: %" PRIu64 " samples of %" PRIu32 " event%s; lost: %" PRIu64 " samples, %" PRIu64
	       " records; throttled %" PRIu64 " times; unread: %" PRIu64 "\n",
	       facts.samples, facts.events, facts.events == 1 ? "" : "s", facts.lost, report->lost_records,
	       report->throttles, report->unread);
	printf("# Named: %.2f%% of the samples are without a name", percent(facts.nameless, facts.named));
	if (report->stacks)
		printf("; %.2f%% of the stacks do not reach their thread's start",
		       percent(report->truncated, report->stacks));
	putchar('\n');
	if (report->old) {
		tool_report_facts_read(report->old, &facts);
		printf("# Compared with: ");
		tool_print(stdout, report->old->input.path, 0, false);
		printf("; %.3f s; %" PRIu64 " samples; lost: %" PRIu64 " samples, %" PRIu64 " records\n", facts.seconds,
		       facts.samples, facts.lost, report->old->lost_records);
	}
	printf("#\n");
}
