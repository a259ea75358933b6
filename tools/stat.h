/* stat.h - what the files of `perfring stat` share: options and counts. */
#ifndef PERFRING_TOOLS_STAT_H
#define PERFRING_TOOLS_STAT_H

#include <sys/resource.h>
#include <perfring/command.h>
#include <perfring/count.h>
#include "outfile.h"
#include "tools.h"

#define NS_PER_S UINT64_C(1000000000)

/* One number over several runs: its mean and how far from it they were. */
struct spread {
	uint64_t runs;
	double mean;
	double squares; /* the sum of the squared distances from the mean */
};

/* One line: an event, of all or of one CPU or thread. */
struct row {
	bool supported;
	bool counted;
	struct perfring_count before; /* at the last read of the counters, for intervals */
	struct perfring_count count;  /* of this interval, or of the last run */
	struct perfring_estimate estimate;
	struct spread values;
	struct spread enabled;
	struct spread running;
};

struct place {
	int32_t which; /* CPU or thread */
	char comm[32];
};

struct counting {
	struct perfring_events *events;
	const char *separator; /* NULL: columns */
	const char *output;
	char *pids, *tids, *cpus;
	uint64_t interval; /* ms; 0: at the end alone */
	uint64_t interval_count;
	uint64_t repeat;
	uint64_t delay; /* ms */
	bool all;
	bool inherit;
	bool apart; /* each CPU by itself */
	bool per_thread;
	bool json;
	bool append;
	bool verbose;
	char **command;

	FILE *out;
	int out_error; /* of the first flush that failed */
	struct tool_outfile file; /* unless it is stderr, or appended to */
	struct perfring_target *target;
	struct perfring_counts *counts;
	struct perfring_command child;
	bool *user_only;  /* events that leave out the kernel because it may not be observed */
	struct row *rows; /* event by event, at each the places */
	struct place *places;
	uint32_t place_count;
	int unit_width;
	int signals;
	struct rlimit files; /* the command's limit, if has_files */
	bool has_files;
	uint64_t run;
	uint64_t started, next, printed; /* ns */
	uint64_t intervals;
	struct spread elapsed; /* ns */
	struct rusage usage;
	bool child_ended;
	int child_status;
	int interrupts;
	int ended_by; /* the signal that ended the counting; 0: none did */
};

static inline const struct perfring_events_one *tool_stat_event(const struct counting *counting, uint32_t event)
{
	return perfring_events_at(counting->events, event);
}

static inline struct row *tool_stat_row(const struct counting *counting, uint32_t event, uint32_t place)
{
	return &counting->rows[(size_t)event * counting->place_count + place];
}

static inline bool tool_stat_is_plain(const struct counting *counting)
{
	return !counting->json && !counting->separator;
}

/* Whether only the command is observed: no other target is named. */
static inline bool tool_stat_is_of_command(const struct counting *counting)
{
	return counting->command && !counting->all && !counting->pids && !counting->tids;
}

/* stat_print.c */
const char *tool_stat_unit(const struct perfring_events_one *one);
/* Writes the printed text. */
void tool_stat_flush(struct counting *counting);

void tool_stat_print_head(struct counting *counting);
void tool_stat_print_title(const struct counting *counting);
/* at: ns since the start, of an interval. */
void tool_stat_print_rows(struct counting *counting, uint64_t at);
void tool_stat_print_times(struct counting *counting);
void tool_stat_print_raw(const struct counting *counting);

#endif
