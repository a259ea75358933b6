/* auxtrace.h - what AUX areas of a session hold, as records of a perf.data file.
 *
 * record_aux.c uses it; the struct is the recording's.
 */
#ifndef PERFRING_TOOLS_AUXTRACE_H
#define PERFRING_TOOLS_AUXTRACE_H

#include <perfring/file_writer.h>
#include <perfring/session.h>

#define TOOL_AUXTRACE_PMUS "/sys/bus/event_source/devices"

/* A PMU that has an AUX area, and what a decoder of it must know: AUXTRACE_INFO. */
struct tool_auxtrace {
	uint32_t type; /* of the decoder: AUXTRACE_ in values.def; 0: perf has none */
	uint32_t pmu;  /* attr.type */
	char name[64];
	/* about the recording */
	bool is_snapshot;
	bool is_per_cpu;
	uint32_t switches;                       /* as perf numbers it: 0 none, 2 of tasks, 3 of CPUs */
	const char *filter;                      /* of addresses; NULL: none */
	const struct perf_event_mmap_page *page; /* with the parameters of the kernel's clock; NULL: not known */
};

/* Finds the PMU with this attr.type among the folders of `pmus`.  Returns whether it is one with an AUX area. */
bool tool_auxtrace_find(struct tool_auxtrace *auxtrace, const char *pmus, uint32_t pmu);

/* Sets in an event of the PMU the defaults that perf sets: terms that its text does not name, a period if it has none. */
void tool_auxtrace_shape(const struct tool_auxtrace *auxtrace, const char *pmus, const char *text,
			 struct perf_event_attr *attr);

/* Writes AUXTRACE_INFO, without which perf refuses a file with AUXTRACE records.  Returns 0 or -errno. */
int tool_auxtrace_put_info(const struct tool_auxtrace *auxtrace, const char *pmus, struct perfring_file_writer *writer);

/* Writes what is unread in each area as one AUXTRACE record, as perf does: padded to 8 bytes; in an overwriting one the newest
 * `most` bytes.  *bytes grows by what was written, without padding.  An area with impossible positions is skipped; the session's
 * totals count it.  Returns 0 or -errno of the writer. */
int tool_auxtrace_write(struct perfring_session *session, struct perfring_file_writer *writer, uint64_t most,
			uint64_t *bytes);

#endif
