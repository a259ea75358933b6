/* record_trigger.c - what makes `perfring record` save a snapshot by itself: --trigger.
 *
 *     psi:RESOURCE[:full]>STALL/WINDOW    the kernel's monitor of pressure (docs of the kernel: accounting/psi.rst)
 *     EVENT>N/TIME                        a count of what is recorded, read every TIME
 *     fifo:PATH                           each line that is written to a FIFO
 *     span:NAME>TIME                      spans of the COMMAND's processes that last longer (soft.h), read every SPAN_MS
 *
 * After a snapshot, triggers are only counted for --trigger-pause: what lasts does not fill the disk.
 *
 * record_command.c polls the descriptors and asks after each wait; counts are fds of their own (count.h).
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>
#include <perfring/config.h>
#include <perfring/count.h>
#if PERFRING_HAS_SOFT
#include <perfring/soft.h>
#endif
#include "options.h"
#include "record_command.h"

enum {
	FIFO_BYTES = 4096, /* read at once; what is left triggers again, or within the pause does not */
	SPAN_MS = 20,      /* between two readings of spans: rings that overwrite hold more */
};

enum kind {
	PRESSURE,
	COUNT,
	LINE,
	SPAN,
};

struct recorded_trigger {
	enum kind kind;
	const char *text;  /* as given */
	char *name;        /* the resource, the event, the path, the point */
	bool is_full;      /* of pressure: all tasks stall */
	uint64_t most;     /* of pressure and spans: us; of a count: occurrences */
	uint64_t every_us; /* the window */
	int fd;            /* of pressure and lines; -1: none */
	struct perfring_counts *counts;
	uint64_t last;  /* the count at the last reading */
	uint64_t next;  /* ns: the next reading */
};

/* ---- options ---- */

/* Reads a time: "150ms", "20us", "1s". */
static bool read_time(const char *text, uint64_t *us)
{
	static const struct {
		const char *unit;
		uint64_t us;
	} UNITS[] = {{"us", 1}, {"ms", 1000}, {"s", 1000000}};
	size_t digits = strspn(text, "0123456789");
	char number[16];

	if (!digits || digits >= sizeof(number))
		return false;
	memcpy(number, text, digits);
	number[digits] = 0;
	for (size_t i = 0; i < sizeof(UNITS) / sizeof(*UNITS); i++)
		if (!strcmp(text + digits, UNITS[i].unit))
			return tool_options_number(number, 1, UINT32_MAX, us) && (*us *= UNITS[i].us);
	return false;
}

bool tool_record_read_pause(struct recording *recording, const char *text)
{
	uint64_t us;

	recording->has_trigger_pause = true;
	recording->trigger_pause = 0;
	if (!strcmp(text, "0"))
		return true;
	if (!read_time(text, &us))
		return false;
	recording->trigger_pause = us * 1000;
	return true;
}

/* Splits "NAME>MOST/TIME", of pressure and of counts; ends the name at the '>'. */
static bool read_threshold(struct recorded_trigger *trigger)
{
	char *most = strrchr(trigger->name, '>'), *window;

	if (!most || most == trigger->name)
		return false;
	*most++ = 0;
	window = strchr(most, '/');
	if (!window)
		return false;
	*window++ = 0;
	return read_time(window, &trigger->every_us) &&
	       (trigger->kind == PRESSURE ? read_time(most, &trigger->most) && trigger->most <= trigger->every_us
					  : tool_options_number(most, 1, UINT64_MAX, &trigger->most));
}

/* Splits "span:NAME>MOST"; ends the name at the '>'. */
static bool read_span(struct recorded_trigger *trigger)
{
	char *most = strrchr(trigger->name, '>');

	if (!most || most == trigger->name + strlen("span:"))
		return false;
	*most++ = 0;
	trigger->every_us = SPAN_MS * UINT64_C(1000);
	return read_time(most, &trigger->most);
}

static bool is_resource(struct recorded_trigger *trigger)
{
	static const char *const NAMES[] = {"cpu", "memory", "io", "irq"};
	char *colon = strchr(trigger->name, ':');

	trigger->is_full = colon && !strcmp(colon, ":full");
	if (colon && !trigger->is_full && strcmp(colon, ":some"))
		return false;
	if (colon)
		*colon = 0;
	for (size_t i = 0; i < sizeof(NAMES) / sizeof(*NAMES); i++)
		if (!strcmp(trigger->name, NAMES[i]))
			return true;
	return false;
}

bool tool_record_add_trigger(struct recording *recording, const char *text)
{
	struct recorded_trigger *trigger;
	bool is_pressure = !strncmp(text, "psi:", 4), is_line = !strncmp(text, "fifo:", 5), is_span = !strncmp(text, "span:", 5);

	if (recording->trigger_count == TRIGGERS_MAX)
		return false;
	recording->triggers = tool_allocate(recording->triggers, recording->trigger_count + (size_t)1,
					    sizeof(*recording->triggers));
	trigger = &recording->triggers[recording->trigger_count++];
	*trigger = (struct recorded_trigger){.kind = is_pressure ? PRESSURE
						     : is_line	 ? LINE
						     : is_span	 ? SPAN
								 : COUNT,
					     .text = text,
					     .name = strcpy(tool_allocate(NULL, strlen(text) + 1, 1),
							    text + (is_pressure ? 4 : is_line ? 5 : 0)),
					     .fd = -1};
	if (is_line)
		return *trigger->name;
	if (is_span)
		return read_span(trigger);
	return read_threshold(trigger) && (!is_pressure || is_resource(trigger));
}

void tool_record_close_triggers(struct recording *recording)
{
	for (uint32_t i = 0; i < recording->trigger_count; i++) {
		struct recorded_trigger *trigger = &recording->triggers[i];

		if (trigger->fd >= 0)
			close(trigger->fd);
		perfring_counts_close(trigger->counts);
		free(trigger->name);
	}
#if PERFRING_HAS_SOFT
	perfring_soft_watch_close(recording->watch);
	recording->watch = NULL;
#endif
	free(recording->triggers);
	recording->triggers = NULL;
	recording->trigger_count = 0;
}

/* ---- what is watched ---- */

static bool refuse(const struct recorded_trigger *trigger, const char *why)
{
	tool_complain("record: --trigger %s: %s", trigger->text, why);
	return false;
}

static bool open_pressure(struct recorded_trigger *trigger)
{
	char path[64], line[64];
	int length = snprintf(line, sizeof(line), "%s %" PRIu64 " %" PRIu64, trigger->is_full ? "full" : "some",
			      trigger->most, trigger->every_us);

	snprintf(path, sizeof(path), "/proc/pressure/%s", trigger->name);
	trigger->fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (trigger->fd < 0 && (errno == ENOENT || errno == EOPNOTSUPP))
		return refuse(trigger, "this kernel does not account pressure (CONFIG_PSI, psi=1)");
	if (trigger->fd < 0)
		return refuse(trigger, strerror(errno));
	/* The NUL is part of what the kernel reads. */
	if (write(trigger->fd, line, (size_t)length + 1) >= 0)
		return true;
	return refuse(trigger, errno == EINVAL ? "the kernel takes windows from 500ms to 10s, and from users without "
						 "CAP_SYS_RESOURCE multiples of 2s"
					       : strerror(errno));
}

static bool open_line(struct recorded_trigger *trigger)
{
	/* Also for writing: a FIFO without another process opens at once, and has no end. */
	trigger->fd = open(trigger->name, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	return trigger->fd >= 0 || refuse(trigger, strerror(errno));
}

/* Opens the counts of a trigger, for the recording's target. */
static bool open_count(const struct recording *recording, struct recorded_trigger *trigger)
{
	struct perf_event_attr base = {.size = sizeof(base), .exclude_guest = 1, .inherit = recording->inherit};
	uint64_t allowed = PERFRING_FALLBACK_NEWER | PERFRING_FALLBACK_GUESTS | PERFRING_FALLBACK_EXCLUDE_KERNEL;
	struct perfring_fault fault = {0, "unknown event"};
	struct perfring_events *events;
	int ret = perfring_events_open(&events);

	if (ret)
		return refuse(trigger, strerror(-ret));
	ret = perfring_events_add(events, trigger->name, &base, &fault);
	if (ret) {
		perfring_events_close(events);
		return refuse(trigger, fault.what);
	}
	ret = perfring_counts_open(&trigger->counts, recording->strict ? 0 : allowed);
	if (!ret)
		ret = perfring_counts_add(trigger->counts, events, recording->target);
	if (ret)
		refuse(trigger, perfring_counts_refusal(trigger->counts) && *perfring_counts_refusal(trigger->counts)
					? perfring_counts_refusal(trigger->counts)
					: strerror(-ret));
	perfring_events_close(events);
	return !ret;
}

/* ---- spans ---- */

bool tool_record_has_span_trigger(const struct recording *recording)
{
	for (uint32_t i = 0; i < recording->trigger_count; i++)
		if (recording->triggers[i].kind == SPAN)
			return true;
	return false;
}

#if PERFRING_HAS_SOFT
/* Names a span for the processes of the command that is started later. */
static bool watch(struct recording *recording, const struct recorded_trigger *trigger)
{
	int ret = recording->watch ? 0 : perfring_soft_watch_open(&recording->watch);

	if (!ret)
		ret = perfring_soft_watch_add(recording->watch, trigger->name, trigger->most * 1000);
	if (ret >= 0 && setenv(PERFRING_SOFT_WATCH, perfring_soft_watch_path(recording->watch), 1))
		ret = -errno;
	return ret >= 0 || refuse(trigger, strerror(-ret));
}

/* How many spans were longer, in all processes: each span trigger has the next number. */
static uint64_t count_spans(const struct recording *recording, const struct recorded_trigger *trigger)
{
	uint32_t number = 0;

	for (const struct recorded_trigger *one = recording->triggers; one < trigger; one++)
		number += one->kind == SPAN;
	return perfring_soft_watch_count(recording->watch, number);
}
#else
static bool watch(struct recording *recording, const struct recorded_trigger *trigger)
{
	(void)recording;
	return refuse(trigger, "built without liburcu-bp: install it (apt-get install liburcu-dev) and build perfring again");
}

static uint64_t count_spans(const struct recording *recording, const struct recorded_trigger *trigger)
{
	(void)recording;
	(void)trigger;
	return 0;
}
#endif

bool tool_record_watch_spans(struct recording *recording)
{
	for (uint32_t i = 0; i < recording->trigger_count; i++)
		if (recording->triggers[i].kind == SPAN && !watch(recording, &recording->triggers[i]))
			return false;
	return true;
}

bool tool_record_open_triggers(struct recording *recording)
{
	bool good = true;

	for (uint32_t i = 0; good && i < recording->trigger_count; i++) {
		struct recorded_trigger *trigger = &recording->triggers[i];

		good = trigger->kind == SPAN	 ? true
		       : trigger->kind == PRESSURE ? open_pressure(trigger)
		       : trigger->kind == LINE	   ? open_line(trigger)
						   : open_count(recording, trigger);
		trigger->next = tool_now() + trigger->every_us * 1000;
	}
	return good;
}

uint32_t tool_record_poll_triggers(const struct recording *recording, struct pollfd *ready)
{
	for (uint32_t i = 0; i < recording->trigger_count; i++) {
		const struct recorded_trigger *trigger = &recording->triggers[i];

		ready[i] = (struct pollfd){.fd = trigger->fd, .events = trigger->kind == PRESSURE ? POLLPRI : POLLIN};
	}
	return recording->trigger_count;
}

uint64_t tool_record_next_reading_ms(const struct recording *recording)
{
	uint64_t next = UINT64_MAX, now = tool_now();

	for (uint32_t i = 0; i < recording->trigger_count; i++)
		if ((recording->triggers[i].counts || recording->triggers[i].kind == SPAN) &&
		    recording->triggers[i].next < next)
			next = recording->triggers[i].next;
	return next == UINT64_MAX ? next : next > now ? (next - now + NS_PER_MS - 1) / NS_PER_MS : 0;
}

/* ---- whether it happened ---- */

/* Whether the kernel's monitor has fired, as the last poll reported: that poll has consumed the event. */
static bool has_pressure(struct recorded_trigger *trigger, struct pollfd *ready)
{
	short seen = ready->revents;

	ready->revents = 0; /* an interrupted poll leaves it */
	if (!(seen & POLLERR))
		return seen & POLLPRI;
	/* The monitor is gone. */
	close(trigger->fd);
	trigger->fd = ready->fd = -1;
	return false;
}

/* Reads the lines of a FIFO.  Returns how many there were. */
static uint64_t read_lines(struct recorded_trigger *trigger)
{
	char bytes[FIFO_BYTES];
	ssize_t got = read(trigger->fd, bytes, sizeof(bytes));
	uint64_t lines = 0;

	for (ssize_t i = 0; i < got; i++)
		lines += bytes[i] == '\n';
	return lines;
}

/* Returns how many spans were longer since the last reading. */
static uint64_t read_spans(const struct recording *recording, struct recorded_trigger *trigger)
{
	uint64_t now = tool_now(), count, more;

	if (now < trigger->next)
		return 0;
	trigger->next = now + trigger->every_us * 1000;
	count = count_spans(recording, trigger);
	more = count > trigger->last ? count - trigger->last : 0;
	trigger->last = count;
	return more;
}

static bool has_counted(struct recorded_trigger *trigger)
{
	struct perfring_count sum;
	uint64_t now = tool_now(), more;

	if (now < trigger->next)
		return false;
	trigger->next = now + trigger->every_us * 1000;
	if (perfring_counts_read(trigger->counts) ||
	    perfring_counts_sum(trigger->counts, 0, PERFRING_COUNTS_ALL, 0, &sum))
		return false;
	more = sum.value > trigger->last ? sum.value - trigger->last : 0;
	trigger->last = sum.value;
	return more > trigger->most;
}

bool tool_record_is_triggered(struct recording *recording, struct pollfd *ready)
{
	bool is_pause = recording->triggered && tool_now() < recording->triggered + recording->trigger_pause;
	const struct recorded_trigger *first = NULL;

	for (uint32_t i = 0; i < recording->trigger_count; i++) {
		struct recorded_trigger *trigger = &recording->triggers[i];
		uint64_t times = trigger->kind == COUNT	 ? has_counted(trigger)
				 : trigger->kind == SPAN ? read_spans(recording, trigger)
				 : trigger->fd < 0	 ? 0
				 : trigger->kind == LINE ? read_lines(trigger)
							 : has_pressure(trigger, &ready[i]);

		if (times && !is_pause && !first) {
			first = trigger;
			times--;
		}
		recording->trigger_skipped += times;
	}
	if (!first)
		return false;
	recording->triggered = tool_now();
	if (!recording->quiet)
		tool_complain("record: --trigger %s", first->text);
	return true;
}

void tool_record_tell_triggers(const struct recording *recording)
{
	if (recording->trigger_skipped)
		tool_complain("record: triggers together with one that saved a snapshot, or within --trigger-pause of it: %" PRIu64,
			      recording->trigger_skipped);
}
