/* filter_options.h - the options that say which samples of a file a command shows: perf's --comms, --dsos, --symbols, --pid, --tid,
 * --cpu and --time, and --events, --kernel and --user, as one filter of the library (filter.h).
 *
 *     static const struct tool_option ROWS[] = {..., TOOL_FILTER_ROWS, TOOL_FILTER_DSOS_ROW('d'), TOOL_OPTIONS_END};
 *     taken = tool_filter_take(&filter, &options, found);      for each option
 *     tool_filter_open(&filter, "report", data)                once the file is open
 */
#ifndef PERFRING_TOOLS_FILTER_OPTIONS_H
#define PERFRING_TOOLS_FILTER_OPTIONS_H

#include <perfring/file.h>
#include <perfring/filter.h>
#include "options.h"

enum {
	/* `found` of the rows without a letter, above those of any command. */
	TOOL_FILTER_DSOS = TOOL_OPTION_LONG + 0x100,
	TOOL_FILTER_PID,
	TOOL_FILTER_TID,
	TOOL_FILTER_TIME,
	TOOL_FILTER_EVENTS,
	TOOL_FILTER_KERNEL,
	TOOL_FILTER_USER,
};

#define TOOL_FILTER_ROWS \
	{'c', "comms", .value = "COMM[,COMM]", .takes = "names of commands", .help = "samples of these commands"}, \
		{'S', "symbols", .also = "symbol", .value = "SYMBOL[,SYMBOL]", .takes = "names of functions", \
		 .help = "samples in these functions"}, \
		{TOOL_FILTER_PID, "pid", .value = "PID[,PID]", .takes = "ids of processes, such as 12,345", \
		 .help = "samples of these processes"}, \
		{TOOL_FILTER_TID, "tid", .value = "TID[,TID]", .takes = "ids of threads, such as 12,345", \
		 .help = "samples of these threads"}, \
		{'C', "cpu", .value = "LIST", .takes = "a list of CPUs, such as 0-3,6", \
		 .help = "samples of these CPUs"}, \
		{TOOL_FILTER_EVENTS, "events", .value = "EVENT[,EVENT]", .takes = "names of events", \
		 .help = "samples of these events, as perfring evlist names them (default: all)"}, \
		{TOOL_FILTER_KERNEL, "kernel", \
		 .help = "frames of the kernel alone; samples without one are left out"}, \
		{TOOL_FILTER_USER, "user", \
		 .help = "frames of user space alone: what a function does in the kernel is its own; samples without " \
			 "one are left out"}, \
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

/* Takes an option of these rows.  Returns 1; 0: it is none of them; -1: its value is wrong, which was reported. */
int tool_filter_take(struct perfring_filter *filter, const struct tool_options *options, int found);

/* Prepares for this file.  Returns false after a complaint: an event that has samples has no CPU (-C), or parts of its time were
 * asked for and the file does not say when it begins and ends. */
bool tool_filter_open(struct perfring_filter *filter, const char *command, const struct perfring_file *data);

/* Whether the event's samples were asked for. */
bool tool_filter_wants(const struct perfring_filter *filter, const struct perfring_file *data, uint32_t event);

/* The list's only word, or NULL. */
const char *tool_filter_only(const char *list);

/* The last part of a path, or the whole name if it has no slash.  /tmp/perf-PID.map becomes "[JIT] tid PID", as in perf, which is
 * valid until the next call. */
const char *tool_filter_short_name(const char *path);

#endif
