/* record_aux.c - AUX areas of `perfring record`: whose PMU has one, how large, when they are written.
 *
 * record_events.c finds the events with an AUX area, record_command.c maps and stops, record_file.c writes each round.
 * auxtrace.c has the bytes.
 */
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <perfring/aux.h>
#include <perfring/event.h>
#include "options.h"
#include "record_command.h"

enum {
	AREA = 4 << 20,           /* bytes, as perf */
	UNPRIVILEGED = 128 << 10, /* where the budget is too small for it */
};

/* ---- options ---- */

bool tool_record_read_aux_snapshot(struct recording *recording, const char *text)
{
	recording->aux_snapshots = true;
	recording->aux_at_end = text && *text == 'e';
	if (!text || !strcmp(text, "e"))
		return true;
	text += *text == 'e';
	if (!strncmp(text, "0x", 2)) /* as perf */
		return tool_options_number(text, 1, UINT64_MAX, &recording->aux_snapshot_size);
	return tool_record_read_size(text, 1, &recording->aux_snapshot_size);
}

/* ---- whose PMU has one ---- */

/* As perf: the first event of a ring is mapped, and its area with it.  Filters are by the events' numbers. */
static void put_first(struct recording *recording, uint32_t which)
{
	struct recorded_event event = recording->events[which];

	for (uint32_t i = 0; i < recording->event_count; i++)
		if (recording->events[i].leader != UINT32_MAX || recording->filters.count)
			return;
	memmove(recording->events + 1, recording->events, which * sizeof(event));
	recording->events[0] = event;
}

static bool find(struct recording *recording)
{
	struct tool_auxtrace found;

	for (uint32_t i = 0; i < recording->event_count; i++) {
		struct recorded_event *event = &recording->events[i];

		if (event->attr.type <= PERFRING_TYPE_BREAKPOINT ||
		    !tool_auxtrace_find(&found, TOOL_AUXTRACE_PMUS, event->attr.type))
			continue;
		if (found.type == PERFRING_AUXTRACE_CS_ETM) {
			tool_complain(
				"record: -e %s: what decoders of CoreSight need is not written here: perf record does it",
				event->name);
			return false;
		}
		if (recording->has_aux && recording->auxtrace.type != found.type) {
			tool_complain("record: -e %s: AUX areas of one kind of PMU alone: make two recordings",
				      event->name);
			return false;
		}
		found.is_per_cpu = !recording->per_thread;
		tool_auxtrace_shape(&found, TOOL_AUXTRACE_PMUS, event->name, &event->attr);
		if (!recording->has_aux && i < recording->filters.count)
			found.filter = recording->filters.texts[i];
		if (!recording->has_aux)
			recording->auxtrace = found;
		event->has_aux = recording->has_aux = true;
		/* As perf: by these the decoder finds whose code a CPU ran. */
		recording->switches = recording->switches || found.type == PERFRING_AUXTRACE_INTEL_PT ||
				      found.type == PERFRING_AUXTRACE_ARM_SPE;
		put_first(recording, i);
	}
	return true;
}

bool tool_record_find_aux(struct recording *recording)
{
	bool overwrites = recording->snapshots && !recording->any_snapshots;

	if (!find(recording))
		return false;
	if (!recording->has_aux && recording->aux_snapshots) {
		tool_complain("record: -S: none of the events has an AUX area; --overwrite keeps what rings hold last");
		return false;
	}
	if (!recording->has_aux)
		return true;
	if (overwrites || recording->directory) {
		tool_complain("record: %s: the AUX areas of events are not recorded so: leave it out",
			      overwrites ? "--overwrite" : "--directory, --threads");
		return false;
	}
	/* --snapshot is of the areas then, as perf's */
	if (recording->snapshots)
		recording->aux_snapshots = true;
	recording->snapshots = false;
	return true;
}

/* ---- mapping ---- */

static uint32_t pages_of(uint64_t bytes)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint32_t pages = 1;

	while (pages * page < bytes && pages < UINT32_C(1) << 31)
		pages *= 2;
	return pages;
}

bool tool_record_map_aux(struct recording *recording)
{
	uint32_t pages = recording->aux_pages;
	char text[512];
	int ret;

	if (!recording->has_aux)
		return true;
	if (!pages)
		pages = pages_of(recording->aux_snapshot_size ? recording->aux_snapshot_size : AREA);
	ret = perfring_session_map_aux(recording->session, pages, recording->aux_snapshots);
	if (ret == -EPERM && !recording->aux_pages && !recording->aux_snapshot_size)
		ret = perfring_session_map_aux(recording->session, pages = pages_of(UNPRIVILEGED),
					       recording->aux_snapshots);
	if (ret >= 0) {
		if (!recording->aux_snapshot_size)
			recording->aux_snapshot_size = pages * (uint64_t)sysconf(_SC_PAGESIZE);
		return true;
	}
	perfring_ring_explain(ret, pages, text, sizeof(text));
	tool_complain("record: AUX areas: %s", text);
	return false;
}

/* ---- writing ---- */

/* A page of this kernel's, with the parameters of its clock. */
static bool map_clock(struct perfring_ring *ring)
{
	const struct perf_event_attr attr = {.size = sizeof(attr),
					     .type = PERFRING_TYPE_SOFTWARE,
					     .config = PERFRING_COUNT_SW_DUMMY,
					     .exclude_kernel = 1,
					     .exclude_hv = 1};
	int fd = perfring_event_open(&attr, 0, -1, -1, 0);
	int ret = fd < 0 ? fd : perfring_ring_map(ring, fd, 0, 0);

	if (fd >= 0)
		close(fd);
	return !ret;
}

int tool_record_put_aux_info(struct recording *recording)
{
	struct tool_auxtrace *auxtrace = &recording->auxtrace;
	struct perfring_ring clock;
	bool has_clock;
	int ret;

	if (!recording->has_aux)
		return 0;
	has_clock = map_clock(&clock);
	auxtrace->page = has_clock ? clock.page : NULL;
	auxtrace->is_snapshot = recording->aux_snapshots;
	auxtrace->switches = !recording->switches ? 0 : recording->all || recording->cpus ? 3 : 2;
	ret = tool_auxtrace_put_info(auxtrace, TOOL_AUXTRACE_PMUS, recording->writer);
	if (has_clock)
		perfring_ring_close(&clock);
	return ret;
}

int tool_record_write_aux(struct recording *recording, bool *any)
{
	uint64_t before = recording->aux_bytes;
	int ret;

	if (!recording->has_aux || recording->aux_snapshots)
		return 0;
	ret = tool_auxtrace_write(recording->session, recording->writer, UINT64_MAX, &recording->aux_bytes);
	*any = *any || recording->aux_bytes != before;
	return ret;
}

/* What is disabled otherwise stays so. */
static void switch_aux(const struct recording *recording, unsigned long request)
{
	struct perfring_session_event opened;

	for (uint32_t i = 0; perfring_session_event_at(recording->session, i, &opened); i++) {
		const struct recorded_event *event = &recording->events[opened.event];

		if (event->has_aux && opened.fd >= 0 && !(event->is_off && request == PERF_EVENT_IOC_ENABLE))
			ioctl(opened.fd, request, 0);
	}
}

/* The producers stop, or they would overwrite what is written. */
bool tool_record_aux_snapshot(struct recording *recording, bool is_last)
{
	int ret;

	switch_aux(recording, PERF_EVENT_IOC_DISABLE);
	if (is_last)
		perfring_session_flush(recording->session);
	else
		perfring_session_wait(recording->session, 0);
	if (!tool_record_write_round(recording))
		return false;
	ret = tool_auxtrace_write(recording->session, recording->writer, recording->aux_snapshot_size,
				  &recording->aux_bytes);
	if (!ret)
		ret = perfring_file_writer_end_round(recording->writer);
	perfring_session_return(recording->session);
	if (ret)
		tool_complain("record: %s: %s", recording->path, strerror(-ret));
	else if (!is_last)
		switch_aux(recording, PERF_EVENT_IOC_ENABLE);
	return !ret;
}
