/* record_control.c - when the events of a recording count: delays, ranges of time, and commands from another process.
 *
 * record_command.c asks for the next edge of a range before each wait, and gives the descriptor of --control here when it is
 * readable.  A command is one line; the answer to one that is known, also if it failed, is perf's, once it is done: "ack\n" and a
 * NUL.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>
#include <perfring/text.h>
#include "options.h"
#include "record_command.h"

/* ---- options ---- */

bool tool_record_read_delay(struct recording *recording, const char *text)
{
	struct recorded_range *last = NULL;
	char *copy, *rest, *word;
	uint64_t ms;

	recording->range_count = 0;
	recording->is_delayed = true;
	if (!strcmp(text, "-1"))
		return true;
	if (tool_options_number(text, 0, INT32_MAX, &ms)) {
		recording->is_delayed = ms;
		recording->ranges = tool_allocate(recording->ranges, 1, sizeof(*recording->ranges));
		recording->ranges[0] = (struct recorded_range){ms, UINT64_MAX};
		recording->range_count = ms ? 1 : 0;
		return true;
	}
	for (rest = copy = strdupa(text); (word = strsep(&rest, ","));) {
		char *dash = strchr(word, '-');
		struct recorded_range range;

		if (!dash)
			return false;
		*dash = 0;
		if (!tool_options_number(word, 0, INT32_MAX, &range.from) ||
		    !tool_options_number(dash + 1, 0, INT32_MAX, &range.to) || range.to <= range.from ||
		    (last && range.from <= last->to))
			return false;
		recording->ranges = tool_allocate(recording->ranges, recording->range_count + (size_t)1,
						  sizeof(*recording->ranges));
		last = &recording->ranges[recording->range_count++];
		*last = range;
	}
	return true;
}

/* Duplicates a descriptor, so that the command does not inherit it. */
static int open_one(const char *name, bool is_file)
{
	uint64_t number;
	int fd;

	if (is_file) /* for writing too: a FIFO without another process opens at once, and has no end */
		fd = open(name, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	else if (tool_options_number(name, 0, INT32_MAX, &number))
		fd = fcntl((int)number, F_DUPFD_CLOEXEC, 3);
	else
		return -EINVAL;
	return fd < 0 ? -errno : fd;
}

/* "fd:N[,N]" or "fifo:PATH[,PATH]"; NULL: not one. */
static char *paths_of(char *text, bool *is_file)
{
	*is_file = !strncmp(text, "fifo:", 5);
	if (!*is_file && strncmp(text, "fd:", 3))
		return NULL;
	return text + (*is_file ? 5 : 3);
}

bool tool_record_open_control(struct recording *recording)
{
	struct recorded_control *control = &recording->control;
	char *names = strdupa(recording->control_text), *name;
	int *fds[] = {&control->fd, &control->ack};
	bool is_file;

	names = paths_of(names, &is_file);
	for (size_t i = 0; names && i < 2 && (name = strsep(&names, ",")); i++) {
		*fds[i] = open_one(name, is_file);
		if (*fds[i] >= 0)
			continue;
		tool_complain("record: --control: %s: %s", name, strerror(-*fds[i]));
		return false;
	}
	return true;
}

bool tool_record_is_control(const char *text)
{
	bool is_file;
	char *names = paths_of(strdupa(text), &is_file), *second = names ? strchr(names, ',') : NULL;
	uint64_t number;

	if (second)
		*second++ = 0;
	if (!names || !*names || (second && (!*second || strchr(second, ','))))
		return false;
	return is_file || (tool_options_number(names, 0, INT32_MAX, &number) &&
			   (!second || tool_options_number(second, 0, INT32_MAX, &number)));
}

void tool_record_close_control(struct recording *recording)
{
	if (recording->control.fd >= 0)
		close(recording->control.fd);
	if (recording->control.ack >= 0)
		close(recording->control.ack);
	recording->control.fd = recording->control.ack = -1;
	free(recording->ranges);
	recording->ranges = NULL;
}

/* ---- events on and off ---- */

/* Enables or disables the fds of one event, or (UINT32_MAX) of all, but not of the one for tasks and mappings.  Siblings follow their
 * leader. */
static bool switch_events(struct recording *recording, uint32_t which, bool on)
{
	struct perfring_session_event opened;
	int ret = 0;

	for (uint32_t i = 0; !ret && perfring_session_event_at(recording->session, i, &opened); i++) {
		struct recorded_event *event = &recording->events[opened.event];
		bool is_wanted = which == UINT32_MAX ? !event->is_side && (event->leader == UINT32_MAX ||
									   event->leader == opened.event)
						     : which == opened.event;

		if (opened.fd < 0 || !is_wanted)
			continue;
		ret = on ? perfring_event_enable(opened.fd, false) : perfring_event_disable(opened.fd, false);
		event->is_off = ret ? event->is_off : !on;
	}
	if (ret)
		tool_complain("record: %s the events: %s", on ? "enabling" : "disabling", strerror(-ret));
	return !ret;
}

/* Reports that events were enabled or disabled, as perf does. */
static void tell(const struct recording *recording, const char *what)
{
	if (!recording->quiet)
		tool_complain("record: events %s", what);
}

void tool_record_start_ranges(struct recording *recording)
{
	recording->range = 0;
	recording->is_in_range = false;
	recording->ranges_at = tool_now();
}

/* The time at which the next range begins or ends; UINT64_MAX: none does. */
static uint64_t next_edge(const struct recording *recording)
{
	const struct recorded_range *range = &recording->ranges[recording->range];
	uint64_t ms;

	if (recording->range >= recording->range_count)
		return UINT64_MAX;
	ms = recording->is_in_range ? range->to : range->from;
	return ms == UINT64_MAX ? ms : recording->ranges_at + ms * NS_PER_MS;
}

uint64_t tool_record_next_edge_ms(const struct recording *recording)
{
	uint64_t edge = next_edge(recording), now = tool_now();

	return edge == UINT64_MAX ? edge : edge > now ? (edge - now + NS_PER_MS - 1) / NS_PER_MS : 0;
}

bool tool_record_keep_ranges(struct recording *recording)
{
	while (tool_now() >= next_edge(recording)) {
		recording->is_in_range = !recording->is_in_range;
		if (!switch_events(recording, UINT32_MAX, recording->is_in_range))
			return false;
		if (!recording->is_in_range)
			recording->range++;
	}
	return true;
}

/* ---- commands ---- */

enum {
	CONTROL_BYTES = 256, /* read in one turn of the recorder: poll() tells it of the rest */
};

/* Executes "enable EVENT" or "disable EVENT". */
static bool switch_named(struct recording *recording, const char *name, bool on)
{
	for (uint32_t i = 0; i < recording->event_count; i++)
		if (!strcmp(recording->events[i].name, name))
			return switch_events(recording, i, on);
	tool_complain("record: --control: %s %s: no event of this name is recorded", on ? "enable" : "disable", name);
	return true;
}

/* Executes evlist [-v|-g|-F]: prints to standard error, as perf. */
static void list(const struct recording *recording, const char *way)
{
	char text[4096];

	for (uint32_t i = 0; i < recording->event_count; i++) {
		const struct recorded_event *event = &recording->events[i];
		bool is_leader = !strcmp(way, "-g") && event->leader == i;
		bool is_last = !strcmp(way, "-g") && event->leader != UINT32_MAX &&
			       (i + 1 == recording->event_count || recording->events[i + 1].leader != event->leader);

		if (is_leader)
			fputc('{', stderr);
		tool_print(stderr, event->name, 0, false);
		if (!strcmp(way, "-v") && perfring_attr_text(&event->attr, text, sizeof(text)) > 0) {
			fputs(": ", stderr);
			tool_print(stderr, text, 0, false);
		} else if (!strcmp(way, "-F")) {
			fprintf(stderr, ": sample_%s=%" PRIu64, event->attr.freq ? "freq" : "period",
				(uint64_t)event->attr.sample_period);
		}
		if (is_last)
			fputc('}', stderr);
		fputc(!strcmp(way, "-g") && event->leader != UINT32_MAX && !is_last ? ',' : '\n', stderr);
	}
}

/* Whether the line is `word`, alone or with a word after it; *argument: that, or "". */
static bool is_word(char *line, const char *word, char **argument)
{
	size_t length = strlen(word);

	if (strncmp(line, word, length) || (line[length] && line[length] != ' '))
		return false;
	*argument = line + length + strspn(line + length, " ");
	return true;
}

static enum asked obey(struct recording *recording, char *line)
{
	enum asked asked = GO_ON;
	char *argument;

	if (is_word(line, "enable", &argument)) {
		if (*argument)
			switch_named(recording, argument, true);
		else if (switch_events(recording, UINT32_MAX, true))
			tell(recording, "enabled");
	} else if (is_word(line, "disable", &argument)) {
		if (*argument)
			switch_named(recording, argument, false);
		else if (switch_events(recording, UINT32_MAX, false))
			tell(recording, "disabled");
	} else if (is_word(line, "evlist", &argument)) {
		list(recording, argument);
	} else if (is_word(line, "snapshot", &argument)) {
		if (recording->snapshots || recording->aux_snapshots || recording->switched)
			asked = SWITCH;
		else
			tool_complain("record: --control: snapshot needs --snapshot or --switch-output");
	} else if (is_word(line, "stop", &argument)) {
		asked = END;
	} else if (!is_word(line, "ping", &argument)) {
		tool_complain("record: --control: '%s': one of enable, disable, snapshot, evlist, ping, stop", line);
		return GO_ON;
	}
	recording->control.unanswered++;
	return asked;
}

void tool_record_answer(struct recording *recording)
{
	struct recorded_control *control = &recording->control;

	for (; control->unanswered; control->unanswered--) {
		struct pollfd ready = {.fd = control->ack, .events = POLLOUT};

		/* An unread answer must not stop the recording. */
		if (control->ack < 0 || (poll(&ready, 1, 0) == 1 && write(control->ack, "ack\n", 5) == 5))
			continue;
		tool_complain("record: --control: the answer cannot be written");
		close(control->ack);
		control->ack = -1;
	}
}

enum asked tool_record_take_commands(struct recording *recording)
{
	struct recorded_control *control = &recording->control;
	struct pollfd ready = {.fd = control->fd, .events = POLLIN};
	enum asked asked = GO_ON;
	char byte;

	/* One byte at a time: what another process is to read from the descriptor later stays in it.  So many and no more: who
	 * writes without end does not keep the recorder from its rings, and there are never more answers to give than bytes read. */
	for (int turn = 0; turn < CONTROL_BYTES && asked == GO_ON && control->fd >= 0 && poll(&ready, 1, 0) == 1;
	     turn++) {
		ssize_t got = read(control->fd, &byte, 1);

		if (got < 0 && (errno == EINTR || errno == EAGAIN))
			break;
		if (got <= 0) {
			close(control->fd);
			control->fd = -1;
		} else if (byte != '\n') {
			if (control->length < sizeof(control->line) - 1)
				control->line[control->length] = byte;
			control->length++;
		} else {
			size_t length = control->length;

			control->length = 0;
			control->line[length < sizeof(control->line) ? length : 0] = 0;
			if (length >= sizeof(control->line))
				tool_complain("record: --control: a line of more than %zu bytes",
					      sizeof(control->line) - 1);
			else if (length)
				asked = obey(recording, control->line);
		}
	}
	return asked;
}
