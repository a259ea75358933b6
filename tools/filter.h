/* filter.h - which samples of a file a command shows: perf's --comms, --dsos, --symbols, --pid, --tid, --cpu and --time.
 *
 * One filter for all commands that read samples:
 *
 *     static const struct tool_option ROWS[] = {..., TOOL_FILTER_ROWS, TOOL_FILTER_DSOS_ROW('d'), TOOL_OPTIONS_END};
 *     taken = tool_filter_take(&filter, &options, found);      for each option
 *     tool_filter_open(&filter, "report", data)                once the file is open
 *     tool_filter_counts(&filter, sample)                      of a CPU and a time that was asked for
 *     tool_filter_shows(&filter, sample, comm, object, symbol) of a task and a place that was asked for
 */
#ifndef PERFRING_TOOLS_FILTER_H
#define PERFRING_TOOLS_FILTER_H

#include "options.h"

enum {
	/* `found` of the rows without a letter, above those of any command. */
	TOOL_FILTER_DSOS = TOOL_OPTION_LONG + 0x100,
	TOOL_FILTER_PID,
	TOOL_FILTER_TID,
	TOOL_FILTER_TIME,
	TOOL_FILTER_SPANS = 64, /* of --time, at most */
};

#define TOOL_FILTER_ROWS \
	{'c', "comms", .value = "COMM[,COMM]", .takes = "names of commands", .help = "samples of these commands"}, \
		{'S', "symbols", .value = "SYMBOL[,SYMBOL]", .takes = "names of functions", \
		 .help = "samples in these functions"}, \
		{TOOL_FILTER_PID, "pid", .value = "PID[,PID]", .takes = "ids of processes, such as 12,345", \
		 .help = "samples of these processes"}, \
		{TOOL_FILTER_TID, "tid", .value = "TID[,TID]", .takes = "ids of threads, such as 12,345", \
		 .help = "samples of these threads"}, \
		{'C', "cpu", .value = "LIST", .takes = "a list of CPUs, such as 0-3,6", \
		 .help = "samples of these CPUs"}, \
	{ \
		TOOL_FILTER_TIME, "time", \
			.value = "SPAN", \
			.takes = "a span: FROM,TO in seconds, either may be empty; 10%/2; or 0%-10%,50%-60%", \
			.help = "samples of this time: FROM,TO in seconds, of which either may be empty (several with a " \
				"blank between them); 10%/2, the second tenth of the recording; 0%-10%,50%-60%" \
	}

/* The row of --dsos: report has a letter for it. */
#define TOOL_FILTER_DSOS_ROW(letter) \
	{ \
		letter, "dsos", .value = "DSO[,DSO]", .takes = "names of objects", \
				.help = "samples in these objects, by their names with or without their folders" \
	}

struct tool_filter_span {
	uint64_t first, last;
};

/* Words of a list with commas; NULL: all. */
struct tool_filter {
	const char *comms, *objects, *symbols;
	const char *pids, *tids, *cpus;
	const char *time; /* as it was written */
	uint32_t span_count;
	struct tool_filter_span spans[TOOL_FILTER_SPANS];
};

/* Takes an option of these rows.  Returns 1; 0: it is none of them; -1: its value is wrong, which was reported. */
int tool_filter_take(struct tool_filter *filter, const struct tool_options *options, int found);

/* Prepares for this file.  Returns false after a complaint: an event that has samples has no CPU (-C), or parts of its time were
 * asked for and the file does not say when it begins and ends. */
bool tool_filter_open(struct tool_filter *filter, const char *command, const struct perfring_file *data);

/* Whether the sample is of a CPU and a time that were asked for: others do not count at all.  Whether it has a CPU and a time:
 * one without a time is of each. */
bool tool_filter_counts(const struct tool_filter *filter, const struct perfring_sample *sample);

/* Whether a record that is no sample is of a CPU that was asked for: one without a CPU is of each.  Times do not matter, as in perf. */
bool tool_filter_takes_record(const struct tool_filter *filter, const struct perfring_trailer *trailer);

/* Whether the sample is of a task, object and symbol that were asked for.  object, symbol: NULL: unknown. */
bool tool_filter_shows(const struct tool_filter *filter, const struct perfring_sample *sample, const char *comm,
		       const char *object, const char *symbol);

/* Whether a word is in a list with commas. */
bool tool_filter_has_word(const char *list, const char *word);

/* The list's only word, or NULL. */
const char *tool_filter_only(const char *list);

/* The last part of a path, or the whole name if it has no slash.  /tmp/perf-PID.map becomes "[JIT] tid PID", as in perf, which is
 * valid until the next call. */
const char *tool_filter_short_name(const char *path);

#endif
