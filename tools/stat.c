/* stat.c - `perfring stat`: counts the events of a command, of threads or of the system.
 *
 * tool_stat_run and the loop: opens counts (count.h) or --soft's accounts, starts the command, reads at each interval and at the
 * end.  One thread; signals are read from a descriptor.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "options.h"
#include "stat.h"
#include "observed.h"
#include "program.h"

enum {
	LOOK_MS = 100, /* how often to look whether observed processes are still there */

	UNIT_WIDTH = 4, /* perf's column */
};

/* ---- arithmetic ---- */

static void spread_add(struct spread *spread, double value)
{
	double distance = value - spread->mean;

	spread->mean += distance / (double)++spread->runs;
	spread->squares += distance * (value - spread->mean);
}

/* ---- what was counted ---- */

/* Computes the estimate of a row's count, and adds it to the runs' means. */
static void take_row(const struct counting *counting, struct row *row, bool counts)
{
	row->estimate = perfring_event_estimate(row->count.value, row->count.enabled, row->count.running);
	/* As perf: whole occurrences. */
	if (counting->unscaled)
		row->estimate.value = (double)row->count.value;
	else if (row->estimate.value < 1e18)
		row->estimate.value = (double)(uint64_t)row->estimate.value;
	if (!counts)
		return;
	spread_add(&row->values, row->estimate.value);
	spread_add(&row->enabled, (double)row->count.enabled);
	spread_add(&row->running, (double)row->count.running);
}

/* Reads the counters: each row then has the difference to the last read. */
static void take_counts(struct counting *counting)
{
	uint32_t events = perfring_events_count(counting->events);

	if (!counting->soft && !counting->is_read)
		perfring_counts_read(counting->counts);
	if (!counting->soft)
		tool_stat_sum(counting);
	for (uint32_t i = 0; i < events; i++)
		for (uint32_t j = 0; j < counting->place_count; j++) {
			struct row *row = tool_stat_row(counting, i, j);
			struct perfring_count sum = row->sum;

			row->supported = counting->soft || counting->is_read || !perfring_counts_error(counting->counts, i);
			row->counted = row->supported && (counting->soft ? tool_stat_soft_sum(counting, i, &sum)
									 : sum.fds || sum.failed);
			if (!row->counted)
				continue;
			row->count = sum;
			/* The sum shrinks by the count of a counter that cannot be read any more. */
			row->counted = sum.value >= row->before.value && sum.running > row->before.running;
			if (sum.enabled >= row->before.enabled)
				row->count.enabled -= row->before.enabled;
			if (sum.running >= row->before.running)
				row->count.running -= row->before.running;
			if (sum.value >= row->before.value)
				row->count.value -= row->before.value;
			row->before = sum;
			take_row(counting, row, row->counted);
		}
}

static uint32_t row_count(const struct counting *counting)
{
	return perfring_events_count(counting->events) * counting->place_count;
}

/* Resets the state that belongs to open counters; called before they are opened. */
static void forget_reads(struct counting *counting)
{
	for (uint32_t i = 0; i < row_count(counting); i++)
		memset(&counting->rows[i].before, 0, sizeof(counting->rows[i].before));
}

/* Resets the means, before something that is printed by itself: an interval, a summary, a run of -r 0. */
static void forget_values(struct counting *counting)
{
	static const struct spread NONE = {0, 0, 0};

	for (uint32_t i = 0; i < row_count(counting); i++)
		counting->rows[i].values = counting->rows[i].enabled = counting->rows[i].running = NONE;
	counting->elapsed = NONE;
}

void tool_stat_take(struct counting *counting, uint64_t ns)
{
	forget_values(counting);
	spread_add(&counting->elapsed, (double)ns);
	take_counts(counting);
}

static void print_interval(struct counting *counting)
{
	uint64_t at = tool_now();

	if (counting->clear && isatty(fileno(counting->out)))
		fputs("\033[H\033[J", counting->out);
	tool_stat_take(counting, at - counting->printed);
	counting->printed = at;
	if (counting->verbose && tool_stat_is_plain(counting))
		tool_stat_print_raw(counting);
	tool_stat_print_rows(counting, at - counting->started);
	if (counting->data && !tool_stat_put_round(counting, at - counting->started, false))
		counting->is_broken = true;
	counting->intervals++;
}

/* Sets the rows to the counts since the start, for --summary. */
static void sum_up(struct counting *counting)
{
	forget_values(counting);
	for (uint32_t i = 0; i < row_count(counting); i++) {
		struct row *row = &counting->rows[i];

		row->count = row->before;
		if (row->supported && row->count.running)
			take_row(counting, row, true);
	}
	spread_add(&counting->elapsed, (double)(tool_now() - counting->started));
	counting->in_summary = true;
}

/* ---- opening ---- */

static bool choose_target(struct counting *counting)
{
	int ret = perfring_target_open(&counting->target);

	if (ret) {
		tool_complain("out of memory");
		return false;
	}
	if ((counting->all && counting->apart == APART_THREAD) || counting->user) {
		char *list = tool_target_processes("stat", counting->user);
		bool good = list && tool_target_add_processes("stat", counting->target, list, true);

		free(list);
		if (!good)
			return false;
	}
	if (((counting->all && counting->apart != APART_THREAD) || counting->cpus) &&
	    !tool_target_add_cpus("stat", counting->target, counting->cpus))
		return false;
	if (counting->pids && !tool_target_add_processes("stat", counting->target, counting->pids, false))
		return false;
	if (counting->tids && !tool_target_add_threads("stat", counting->target, counting->tids))
		return false;
	if (!counting->command || counting->soft)
		return true;
	/* Opening raised the limit: the command gets the old one. */
	if (counting->has_files)
		setrlimit(RLIMIT_NOFILE, &counting->files);
	ret = perfring_command_open(&counting->child, counting->command);
	if (!ret && tool_stat_is_of_command(counting))
		ret = perfring_target_add_thread(counting->target, counting->child.pid);
	if (ret)
		tool_complain("stat: %s: %s", counting->command[0], strerror(-ret));
	return !ret;
}

struct perf_event_attr tool_stat_shape(const struct counting *counting, uint32_t event)
{
	struct perf_event_attr attr = *tool_stat_event(counting, event)->attr;
	bool first = !tool_stat_is_sibling(counting, event);

	/* A leader that is off stops its group (docs/abi.md trap 32). */
	attr.disabled = first;
	attr.enable_on_exec = first && tool_stat_is_of_command(counting) && !counting->delay;
	attr.inherit = counting->inherit && !counting->all;
	/* Only a leader may be pinned or exclusive: modifiers after a group are the leader's. */
	attr.pinned = attr.pinned && first;
	attr.exclusive = attr.exclusive && first;
	attr.exclude_kernel |= counting->user_part;
	attr.exclude_user |= counting->kernel_part;
	attr.freq = 0;
	attr.sample_period = 0;
	attr.sample_type = 0;
	return attr;
}

/* Reports what was dropped, once: counting only user space is the same for every event. */
static void tell_given_up(struct counting *counting)
{
	const uint64_t user_only = PERFRING_FALLBACK_EXCLUDE_KERNEL;
	uint32_t count = perfring_events_count(counting->events);
	bool reported = false;
	char text[1024];

	for (uint32_t i = 0; i < count; i++) {
		uint64_t given_up = perfring_counts_given_up(counting->counts, i);
		int error = perfring_counts_error(counting->counts, i);

		counting->user_only[i] = given_up & user_only;
		if (counting->run)
			continue;
		reported |= !error && given_up & user_only;
		perfring_counts_explain(counting->counts, i, text, sizeof(text));
		/* Guests are left out by default, where the PMU can. */
		if (!(tool_stat_event(counting, i)->terms & PERFRING_TERM_GUESTS))
			given_up &= ~(uint64_t)PERFRING_FALLBACK_GUESTS;
		if (error ? counting->verbose : given_up & ~user_only)
			tool_complain("stat: %s", text);
	}
	if (reported)
		tool_complain("stat: of the events shown with u only user space is counted: counting the kernel needs "
			      "kernel.perf_event_paranoid <= 1 or CAP_PERFMON");
}

/* Opens events from ... to - 1, which are of one cgroup or of none.  Returns 0 or -errno after a complaint. */
static int open_some(struct counting *counting, uint32_t from, uint32_t to)
{
	const char *cgroup = tool_stat_cgroup(counting, from);
	struct perfring_target *target = cgroup ? tool_stat_open_cgroup(counting, cgroup) : counting->target;
	struct perfring_events *list = NULL;
	int ret = target ? perfring_events_open(&list) : -EINVAL;

	for (uint32_t i = from; !ret && i < to; i++) {
		const struct perfring_events_one *one = tool_stat_event(counting, i);
		struct perf_event_attr attr = tool_stat_shape(counting, i);

		ret = perfring_events_add_attr(list, &attr, one->name, tool_stat_is_sibling(counting, i));
	}
	if (ret && target)
		tool_complain("out of memory");
	else if (!ret && (ret = perfring_counts_add(counting->counts, list, target)))
		tool_complain("stat: %s", perfring_counts_refusal(counting->counts));
	perfring_events_close(list);
	if (cgroup)
		perfring_target_close(target);
	return ret;
}

/* Opens all events, on the CPUs and threads that exist. */
static int open_events(struct counting *counting)
{
	uint32_t count = perfring_events_count(counting->events), to;
	int ret = 0;

	for (uint32_t from = 0; !ret && from < count; from = to) {
		for (to = from + 1; to < count && tool_stat_cgroup(counting, to) == tool_stat_cgroup(counting, from);
		     to++)
			;
		ret = open_some(counting, from, to);
	}
	return ret;
}

static bool set_filters(const struct counting *counting)
{
	struct perfring_counts_fd fd;

	for (uint32_t i = 0; perfring_counts_at(counting->counts, i, &fd); i++)
		if (!tool_filters_set("stat", &counting->filters, counting->events,
				      counting->each ? fd.event % counting->event_count : fd.event, fd.fd))
			return false;
	return true;
}

void tool_stat_measure(struct counting *counting)
{
	counting->unit_width = UNIT_WIDTH;
	for (uint32_t i = 0; i < perfring_events_count(counting->events); i++) {
		int width = tool_print(NULL, tool_stat_unit(counting, i), 0, false);

		if (width > counting->unit_width)
			counting->unit_width = width;
	}
}

static bool open_counts(struct counting *counting)
{
	uint32_t count = perfring_events_count(counting->events);
	int ret = perfring_counts_open(&counting->counts, PERFRING_FALLBACK_NEWER | PERFRING_FALLBACK_PRECISE |
								  PERFRING_FALLBACK_EXCLUDE_KERNEL |
								  PERFRING_FALLBACK_GUESTS | PERFRING_FALLBACK_MISSING);

	if (ret) {
		tool_complain("stat: %s", strerror(-ret));
		return false;
	}
	counting->user_only = tool_allocate(counting->user_only, count + 1u, sizeof(*counting->user_only));
	tool_stat_measure(counting);
	if (counting->soft) {
		memset(counting->user_only, 0, (count + 1u) * sizeof(*counting->user_only));
		if (!counting->rows)
			tool_stat_find_places(counting);
		return true;
	}
	if (count && open_events(counting)) {
		if (tool_stat_is_of_command(counting) && !tool_stat_soft_unknown(counting))
			tool_complain("stat: --soft counts clocks, switches and faults without perf_event_open");
		return false;
	}
	if (!set_filters(counting))
		return false;
	tell_given_up(counting);
	if (!counting->rows)
		tool_stat_find_places(counting);
	return true;
}

/* ---- running ---- */

/* The command gets ^C from the terminal as well.  Any other signal ends the command by SIGTERM, the second one by
 * SIGKILL. */
static void interrupt(struct counting *counting, const struct signalfd_siginfo *signal)
{
	bool is_shared = signal->ssi_signo == SIGINT && signal->ssi_code == SI_KERNEL && !counting->interrupts;

	counting->interrupts++;
	if (counting->command && is_shared)
		return;
	counting->ended_by = (int)signal->ssi_signo;
	if (counting->command && !counting->child_ended)
		kill(counting->child.pid, counting->interrupts > 1 ? SIGKILL : SIGTERM);
}

static void take_signals(struct counting *counting)
{
	struct signalfd_siginfo signal;

	while (read(counting->signals, &signal, sizeof(signal)) == (ssize_t)sizeof(signal)) {
		if (signal.ssi_signo != SIGCHLD) {
			interrupt(counting, &signal);
		} else if (counting->soft) {
			tool_stat_soft_reap(counting);
		} else if (counting->command && !counting->child_ended &&
			   wait4(counting->child.pid, &counting->child_status, WNOHANG, &counting->usage) ==
				   counting->child.pid) {
			counting->child_ended = true;
		}
	}
}

/* Whether every observed thread is gone. */
static bool are_gone(const struct counting *counting)
{
	struct perfring_counts_fd fd;

	if (counting->all || counting->command)
		return false;
	for (uint32_t i = 0; perfring_counts_at(counting->counts, i, &fd); i++)
		if (!kill(fd.tid, 0) || errno != ESRCH)
			return false;
	return true;
}

/* --timeout: the command gets SIGTERM, and counting ends. */
static bool has_timed_out(struct counting *counting)
{
	if (!counting->timeout || tool_now() < counting->started + counting->timeout * NS_PER_MS)
		return false;
	if (!counting->has_timed_out && counting->command && !counting->child_ended)
		kill(counting->child.pid, SIGTERM);
	counting->has_timed_out = true;
	return true;
}

static bool is_done(struct counting *counting)
{
	take_signals(counting);
	if (has_timed_out(counting) && !counting->command)
		return true;
	if (counting->command)
		return counting->child_ended;
	return counting->interrupts || (counting->interval_count && counting->intervals >= counting->interval_count) ||
	       are_gone(counting);
}

/* Sleeps until `until`, a signal, or for LOOK_MS. */
static void rest(const struct counting *counting, uint64_t until)
{
	struct pollfd ready = {.fd = counting->signals, .events = POLLIN};
	uint64_t at = tool_now(), most = counting->command ? UINT64_MAX : at + LOOK_MS * NS_PER_MS;
	struct timespec time;

	until = until < most ? until : most;
	if (until == UINT64_MAX) {
		poll(&ready, 1, -1);
		return;
	}
	if (until <= at)
		return;
	time = (struct timespec){(time_t)((until - at) / NS_PER_S), (long)((until - at) % NS_PER_S)};
	ppoll(&ready, 1, &time, NULL);
}

/* The time of the next look: the next interval or the timeout. */
static uint64_t next_look(const struct counting *counting)
{
	if (counting->timeout && !counting->has_timed_out)
		return counting->started + counting->timeout * NS_PER_MS;
	return UINT64_MAX;
}

static bool counts_intervals(const struct counting *counting)
{
	return counting->interval && (!counting->interval_count || counting->intervals < counting->interval_count);
}

static bool begin(struct counting *counting)
{
	bool on_exec = tool_stat_is_of_command(counting) && !counting->delay;
	int ret = on_exec || counting->delay ? 0 : perfring_counts_enable(counting->counts);

	counting->started = tool_now();
	if (!ret && counting->command) {
		ret = counting->soft ? tool_stat_soft_start(counting) : perfring_command_release(&counting->child);
		if (ret) {
			tool_program_complain("stat", counting->command[0], ret);
			return false;
		}
	}
	/* From here on there is output to replace FILE. */
	if (!counting->run && !tool_outfile_settle(&counting->file))
		return false;
	if (counting->delay) {
		uint64_t end = counting->started + counting->delay * (NS_PER_S / 1000);

		while (tool_now() < end && !is_done(counting))
			rest(counting, end);
		counting->started = tool_now();
		if (!ret)
			ret = perfring_counts_enable(counting->counts);
	}
	counting->printed = counting->started;
	if (ret)
		tool_complain("stat: enabling the events: %s", strerror(-ret));
	return !ret;
}

static void time_run(struct counting *counting, double ns)
{
	spread_add(&counting->elapsed, ns);
	if (!counting->table)
		return;
	counting->times = tool_allocate(counting->times, counting->elapsed.runs, sizeof(*counting->times));
	counting->times[counting->elapsed.runs - 1] = ns;
}

static bool run(struct counting *counting)
{
	const uint64_t step = counting->interval * (NS_PER_S / 1000);

	if (!begin(counting))
		return false;
	counting->next = counting->started + step;
	while (!is_done(counting)) {
		rest(counting, counts_intervals(counting) ? counting->next : next_look(counting));
		if (!counts_intervals(counting) || tool_now() < counting->next)
			continue;
		take_signals(counting);
		if (counting->child_ended)
			break;
		print_interval(counting);
		/* An interval that was late includes those that were missed. */
		while (counting->next <= counting->printed)
			counting->next += step;
	}
	if (!counting->interval)
		time_run(counting, (double)(tool_now() - counting->started));
	perfring_counts_disable(counting->counts);
	if (counts_intervals(counting))
		print_interval(counting);
	if (counting->interval) {
		if (counting->summary)
			sum_up(counting);
		return true;
	}
	take_counts(counting);
	if (counting->data && !tool_stat_put_round(counting, tool_now() - counting->started, true))
		return false;
	if (counting->verbose && tool_stat_is_plain(counting))
		tool_stat_print_raw(counting);
	return true;
}

/* Runs the command line of --pre or --post. */
static bool run_line(const char *option, const char *line)
{
	int status = line ? system(line) : 0;

	if (!status)
		return true;
	if (status < 0)
		tool_complain("stat: %s '%s': %s", option, line, strerror(errno));
	else
		tool_complain("stat: %s '%s': exit status %d", option, line, tool_status(status, 0));
	return false;
}

static bool run_once(struct counting *counting)
{
	bool good, masked = false;

	if (!run_line("--pre", counting->before))
		return false;
	if (counting->sync)
		sync();
	counting->has_timed_out = false;

	/* The child of the last run has been waited for: another process may have its pid. */
	counting->child = (struct perfring_command){.fd = -1};
	counting->child_ended = false;
	good = choose_target(counting);
	if (good)
		good = masked = tool_open_signals(&counting->signals, 0, &counting->mask);
	good = good && open_counts(counting) && (!counting->data || tool_stat_open_data(counting));
	if (good && !counting->run)
		tool_stat_print_head(counting);
	forget_reads(counting);
	good = good && run(counting);
	/* Never released: close kills it. */
	if (counting->child.fd >= 0) {
		perfring_command_close(&counting->child);
	} else if (counting->child.pid && !counting->child_ended) {
		kill(counting->child.pid, SIGTERM);
		while (wait4(counting->child.pid, &counting->child_status, 0, &counting->usage) < 0 && errno == EINTR)
			;
	}
	/* A signal of this run's end is not for the next run. */
	if (masked) {
		take_signals(counting);
		sigprocmask(SIG_SETMASK, &counting->mask, NULL);
	}
	if (counting->data)
		good = tool_stat_close_data(counting) && good && !counting->is_broken;
	perfring_counts_close(counting->counts);
	perfring_target_close(counting->target);
	counting->counts = NULL;
	counting->target = NULL;
	return good && run_line("--post", counting->after);
}

static bool open_output(struct counting *counting)
{
	counting->out = stderr;
	if (counting->quiet) {
		counting->out = fopen("/dev/null", "we");
	} else if (counting->log_fd >= 0) {
		int fd = fcntl(counting->log_fd, F_DUPFD_CLOEXEC, 3);

		counting->out = fd < 0 ? NULL : fdopen(fd, "w");
	} else if (!counting->output) {
		return true;
	}
	if (!counting->out)
		tool_complain(counting->quiet ? "stat: /dev/null: %s" : "stat: --log-fd: %s", strerror(errno));
	if (counting->quiet || counting->log_fd >= 0)
		return counting->out;
	if (counting->append && strcmp(counting->output, "-")) {
		counting->out = fopen(counting->output, "ae");
	} else {
		if (!tool_outfile_open(&counting->file, "stat", counting->output, TOOL_OUTFILE_TEXT))
			return false;
		counting->out = counting->file.fd == STDOUT_FILENO ? stdout : fdopen(counting->file.fd, "w");
	}
	if (!counting->out)
		tool_complain("stat: %s: %s", counting->output, strerror(errno));
	return counting->out;
}

static bool close_output(struct counting *counting)
{
	tool_stat_flush(counting);
	if (counting->out != stderr && counting->out != stdout) {
		if (fclose(counting->out) && !counting->out_error)
			counting->out_error = errno;
		counting->file.fd = -1;
	}
	if (counting->out_error && counting->output)
		tool_complain("stat: %s: not everything could be written: %s", counting->output,
			      strerror(counting->out_error));
	tool_outfile_close(&counting->file);
	return !counting->out_error;
}

static void print_all(struct counting *counting)
{
	if (tool_stat_is_plain(counting))
		tool_stat_print_title(counting);
	tool_stat_print_rows(counting, 0);
	if (!tool_stat_is_plain(counting))
		return;
	tool_stat_print_table(counting);
	tool_stat_print_times(counting);
}

/* -r 0: runs the command until a signal, and prints each run. */
static bool run_on(struct counting *counting)
{
	while (!counting->interrupts) {
		forget_values(counting);
		if (!run_once(counting))
			return false;
		print_all(counting);
		counting->run++;
	}
	return true;
}

static bool run_all(struct counting *counting)
{
	bool good = true;

	if (!counting->repeat)
		return run_on(counting);
	for (; good && counting->run < counting->repeat && !counting->interrupts; counting->run++)
		good = run_once(counting);
	if (good && (!counting->interval || counting->in_summary))
		print_all(counting);
	return good;
}

int tool_stat_run(int argc, char **argv)
{
	struct counting counting = {.signals = -1, .file = {.fd = -1}, .data_file = {.fd = -1}, .child = {.fd = -1}};
	int status = TOOL_FAILED;
	bool good = true;

	counting.has_files = !getrlimit(RLIMIT_NOFILE, &counting.files);
	if (perfring_events_open(&counting.events)) {
		tool_complain("out of memory");
		return status;
	}
	if (argc > 1 && !strcmp(argv[1], "report")) {
		setlocale(LC_NUMERIC, "");
		status = tool_stat_report(&counting, argc - 1, argv + 1);
		goto out;
	}
	status = tool_stat_read_options(&counting, argc, argv);
	if (status >= 0)
		goto out;
	status = TOOL_FAILED;
	if (!open_output(&counting)) {
		tool_outfile_close(&counting.file);
		goto out;
	}
	if (tool_stat_is_plain(&counting) && !counting.small_numbers)
		setlocale(LC_NUMERIC, ""); /* its digits' groups and its decimal point, as perf */
	good = run_all(&counting);
	good = close_output(&counting) && good;
	if (good)
		status = TOOL_DONE;
out:
	for (uint32_t i = 0; counting.read_events && i < perfring_events_count(counting.events); i++)
		free(counting.read_events[i].unit);
	perfring_events_close(counting.events);
	if (counting.signals >= 0)
		close(counting.signals);
	free(counting.earlier);
	free(counting.user_only);
	free(counting.rows);
	free(counting.places);
	free(counting.place_of);
	tool_filters_close(&counting.filters);
	free(counting.cgroup);
	free(counting.cgroups);
	free(counting.cgroup_names);
	free(counting.texts);
	free(counting.read);
	free(counting.read_fresh);
	free(counting.threads);
	free(counting.read_events);
	tool_topology_free(&counting.topology);
	for (char **word = counting.words; word && *word; word++)
		free(*word);
	free(counting.words);
	free(counting.singles);
	free(counting.times);
	/* ^C that killed the command was for this process too. */
	if (counting.interrupts && WIFSIGNALED(counting.child_status))
		counting.ended_by = SIGINT;
	/* SIGTERM was the timeout's. */
	if (counting.has_timed_out && WIFSIGNALED(counting.child_status) && !counting.ended_by)
		return status;
	return status ? status : tool_status(counting.child_status, counting.ended_by);
}
