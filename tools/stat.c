/* stat.c - `perfring stat`: counts the events of a command, of threads or of the system. */
#include <inttypes.h>
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

enum {
	INTERVAL_COUNT = TOOL_OPTION_LONG, /* options without a letter */
	PER_THREAD,
	APPEND,

	LOOK_MS = 100, /* how often to look whether observed processes are still there */

	UNIT_WIDTH = 4, /* perf's column */
};

#define DEFAULT_EVENTS \
	"task-clock,context-switches,cpu-migrations,page-faults,cycles,instructions,branches,branch-misses"

/* ---- options ---- */

static bool add_events(struct counting *counting, const char *text)
{
	static const struct perf_event_attr BASE = {.size = sizeof(BASE)};
	struct perfring_fault fault = {0, "unknown event"};
	int ret = perfring_events_add(counting->events, text, &BASE, &fault);

	if (ret)
		tool_options_refuse_event("stat", text, ret, &fault);
	return !ret;
}

static bool misused(const char *what)
{
	tool_complain("stat: %s (perfring stat --help)", what);
	return true;
}

/* Options that exclude one another. */
static bool is_misused(const struct counting *counting)
{
	bool tasks = counting->pids || counting->tids;

	if (counting->all && tasks)
		return misused("-a and -p or -t exclude one another");
	if (!counting->all && !tasks && !counting->command)
		return misused("nothing to count: name a COMMAND, -a, -C LIST, -p PID or -t TID");
	if (counting->repeat > 1 && !counting->command)
		return misused("-r repeats a COMMAND");
	if (counting->repeat > 1 && counting->interval)
		return misused("-I and -r exclude one another");
	if (counting->interval_count && !counting->interval)
		return misused("--interval-count counts the intervals of -I");
	if (counting->separator && counting->json)
		return misused("-x and --json exclude one another");
	if (counting->apart && counting->per_thread)
		return misused("--no-aggr and --per-thread exclude one another");
	if (counting->apart && !counting->all && !counting->cpus)
		return misused("--no-aggr goes with -a or -C");
	if (counting->per_thread && !tasks)
		return misused("--per-thread goes with -p or -t");
	if (counting->append && !counting->output)
		return misused("--append goes with -o");
	return false;
}

/* Returns -1 to go on, else the exit status. */
static int read_options(struct counting *counting, int argc, char **argv)
{
	struct tool_options options = {.command = &tool_stat};
	int found;

	counting->inherit = true;
	counting->repeat = 1;
	while ((found = tool_options_next(&options, argc, argv)) > 0) {
		char *value = options.value;
		bool good = true;

		switch (found) {
		case 'e':
			if (!add_events(counting, value))
				return TOOL_MISUSED;
			break;
		case 'a':
			counting->all = true;
			break;
		case 'C':
			counting->cpus = value;
			good = tool_options_cpus(value);
			break;
		case 'p':
			counting->pids = value;
			good = tool_options_ids(value);
			break;
		case 't':
			counting->tids = value;
			good = tool_options_ids(value);
			break;
		case 'i':
			counting->inherit = false;
			break;
		case 'D':
			counting->delay = options.number;
			break;
		case 'r':
			counting->repeat = options.number;
			break;
		case 'I':
			counting->interval = options.number;
			break;
		case INTERVAL_COUNT:
			counting->interval_count = options.number;
			break;
		case 'A':
			counting->apart = true;
			break;
		case PER_THREAD:
			counting->per_thread = true;
			break;
		case 'x':
			counting->separator = strcmp(value, "\\t") ? value : "\t";
			break;
		case 'j':
			counting->json = true;
			break;
		case 'o':
			counting->output = value;
			break;
		case APPEND:
			counting->append = true;
			break;
		case 'v':
			counting->verbose = true;
			break;
		default:
			return tool_options_forgotten(&options, found);
		}
		if (!good)
			return tool_options_refuse(&options, found, value);
	}
	if (!found)
		return options.status;
	if (optind < argc)
		counting->command = argv + optind;
	if (counting->cpus && !counting->pids && !counting->tids)
		counting->all = true;
	if (is_misused(counting))
		return TOOL_MISUSED;
	if (!perfring_events_count(counting->events) && !add_events(counting, DEFAULT_EVENTS))
		return TOOL_FAILED;
	return -1;
}

/* ---- arithmetic ---- */

static void spread_add(struct spread *spread, double value)
{
	double distance = value - spread->mean;

	spread->mean += distance / (double)++spread->runs;
	spread->squares += distance * (value - spread->mean);
}

/* ---- what was counted ---- */

static enum perfring_counts_scope scope_of(const struct counting *counting)
{
	return counting->apart        ? PERFRING_COUNTS_CPU
	       : counting->per_thread ? PERFRING_COUNTS_THREAD
				      : PERFRING_COUNTS_ALL;
}

/* Reads the counters: each row then has the difference to the last read. */
static void take_counts(struct counting *counting)
{
	uint32_t events = perfring_events_count(counting->events);

	perfring_counts_read(counting->counts);
	for (uint32_t i = 0; i < events; i++)
		for (uint32_t j = 0; j < counting->place_count; j++) {
			struct row *row = tool_stat_row(counting, i, j);
			struct perfring_count sum;

			row->supported = !perfring_counts_error(counting->counts, i);
			row->counted = row->supported && !perfring_counts_sum(counting->counts, i, scope_of(counting),
									      counting->places[j].which, &sum);
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
			row->estimate =
				perfring_event_estimate(row->count.value, row->count.enabled, row->count.running);
			if (!row->counted)
				continue;
			spread_add(&row->values, row->estimate.value);
			spread_add(&row->enabled, (double)row->count.enabled);
			spread_add(&row->running, (double)row->count.running);
		}
}

/* Before a run or an interval.  between: of one run. */
static void forget(struct counting *counting, bool between)
{
	uint32_t count = perfring_events_count(counting->events) * counting->place_count;

	for (uint32_t i = 0; i < count; i++) {
		if (between)
			counting->rows[i].values = counting->rows[i].enabled = counting->rows[i].running =
				(struct spread){0, 0, 0};
		else
			memset(&counting->rows[i].before, 0, sizeof(counting->rows[i].before));
	}
}

static void print_interval(struct counting *counting)
{
	uint64_t at = tool_now();

	forget(counting, true);
	counting->elapsed = (struct spread){0, 0, 0};
	spread_add(&counting->elapsed, (double)(at - counting->printed));
	take_counts(counting);
	counting->printed = at;
	if (counting->verbose && tool_stat_is_plain(counting))
		tool_stat_print_raw(counting);
	tool_stat_print_rows(counting, at - counting->started);
	counting->intervals++;
}

/* ---- opening ---- */

static bool add_ids(struct counting *counting, char *list, int (*add)(struct perfring_target *, int32_t))
{
	char *rest = list, *word;

	while ((word = strsep(&rest, ","))) {
		int ret = add(counting->target, (int32_t)strtol(word, NULL, 10));

		if (ret) {
			tool_complain("stat: %s: %s", word, strerror(-ret));
			return false;
		}
	}
	return true;
}

static bool choose_target(struct counting *counting)
{
	int ret = perfring_target_open(&counting->target);

	if (!ret && (counting->all || counting->cpus))
		ret = perfring_target_add_cpus(counting->target, counting->cpus);
	if (ret) {
		tool_complain("stat: %s%s: %s", counting->cpus ? "-C " : "",
			      counting->cpus ? counting->cpus : "the CPUs that are online",
			      ret == -EINVAL   ? "not a list of CPUs such as 0-3,6"
			      : ret == -ENODEV ? "not all of these CPUs are online"
					       : strerror(-ret));
		return false;
	}
	if (counting->pids && !add_ids(counting, strdupa(counting->pids), perfring_target_add_process))
		return false;
	if (counting->tids && !add_ids(counting, strdupa(counting->tids), perfring_target_add_thread))
		return false;
	if (!counting->command)
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

static struct perf_event_attr shape_attr(const struct counting *counting, uint32_t event)
{
	const struct perfring_events_one *one = tool_stat_event(counting, event);
	struct perf_event_attr attr = *one->attr;
	bool first = one->leader == UINT32_MAX || one->leader == event;

	/* A leader that is off stops its group (docs/abi.md trap 32). */
	attr.disabled = first;
	attr.enable_on_exec = first && tool_stat_is_of_command(counting) && !counting->delay;
	attr.inherit = counting->inherit && !counting->all;
	/* Only a leader may be pinned or exclusive: modifiers after a group are the leader's. */
	attr.pinned = attr.pinned && first;
	attr.exclusive = attr.exclusive && first;
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
		if (error ? counting->verbose : given_up & ~user_only)
			tool_complain("stat: %s", text);
	}
	if (reported)
		tool_complain("stat: of the events shown with u only user space is counted: counting the kernel needs "
			      "kernel.perf_event_paranoid <= 1 or CAP_PERFMON");
}

/* Opens all events, on the CPUs and threads that exist. */
static int open_events(struct counting *counting)
{
	struct perfring_events *list;
	int ret = perfring_events_open(&list);

	if (ret) {
		tool_complain("out of memory");
		return ret;
	}
	for (uint32_t i = 0; !ret && i < perfring_events_count(counting->events); i++) {
		const struct perfring_events_one *one = tool_stat_event(counting, i);
		struct perf_event_attr attr = shape_attr(counting, i);

		ret = perfring_events_add_attr(list, &attr, one->name, one->leader != UINT32_MAX && one->leader != i);
	}
	if (ret)
		tool_complain("out of memory");
	else if ((ret = perfring_counts_add(counting->counts, list, counting->target)))
		tool_complain("stat: %s", perfring_counts_refusal(counting->counts));
	perfring_events_close(list);
	return ret;
}

/* The CPUs or threads that have fds, once each. */
static void find_places(struct counting *counting)
{
	struct perfring_counts_fd fd;
	uint32_t count = 0;

	for (uint32_t i = 0; scope_of(counting) != PERFRING_COUNTS_ALL && perfring_counts_at(counting->counts, i, &fd);
	     i++) {
		int32_t which = counting->apart ? fd.cpu : fd.tid;
		char path[64];
		FILE *file;
		uint32_t j = 0;

		while (j < count && counting->places[j].which != which)
			j++;
		if (j < count)
			continue;
		counting->places = tool_allocate(counting->places, ++count, sizeof(*counting->places));
		counting->places[j] = (struct place){.which = which};
		snprintf(path, sizeof(path), "/proc/%d/comm", which);
		file = counting->per_thread ? fopen(path, "re") : NULL;
		if (!file)
			continue;
		if (fgets(counting->places[j].comm, sizeof(counting->places[j].comm), file))
			counting->places[j].comm[strcspn(counting->places[j].comm, "\n")] = 0;
		fclose(file);
	}
	if (!count) {
		counting->places = tool_allocate(NULL, 1, sizeof(*counting->places));
		counting->places[count++] = (struct place){.which = -1};
	}
	counting->place_count = count;
	counting->rows =
		tool_allocate(NULL, (size_t)perfring_events_count(counting->events) * count, sizeof(*counting->rows));
	memset(counting->rows, 0, (size_t)perfring_events_count(counting->events) * count * sizeof(*counting->rows));
}

static bool open_counts(struct counting *counting)
{
	uint32_t count = perfring_events_count(counting->events);
	int ret = perfring_counts_open(&counting->counts, PERFRING_FALLBACK_NEWER | PERFRING_FALLBACK_PRECISE |
								  PERFRING_FALLBACK_EXCLUDE_KERNEL |
								  PERFRING_FALLBACK_MISSING);

	if (ret) {
		tool_complain("stat: %s", strerror(-ret));
		return false;
	}
	counting->user_only = tool_allocate(counting->user_only, count, sizeof(*counting->user_only));
	counting->unit_width = UNIT_WIDTH;
	for (uint32_t i = 0; i < count; i++) {
		int width = tool_print(NULL, tool_stat_unit(tool_stat_event(counting, i)), 0, false);

		if (width > counting->unit_width)
			counting->unit_width = width;
	}
	if (open_events(counting))
		return false;
	tell_given_up(counting);
	if (!counting->rows)
		find_places(counting);
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

static bool is_done(struct counting *counting)
{
	take_signals(counting);
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
		ret = perfring_command_release(&counting->child);
		if (ret) {
			tool_complain("stat: %s: %s", counting->command[0], strerror(-ret));
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

static bool run(struct counting *counting)
{
	const uint64_t step = counting->interval * (NS_PER_S / 1000);

	if (!begin(counting))
		return false;
	counting->next = counting->started + step;
	while (!is_done(counting)) {
		rest(counting, counts_intervals(counting) ? counting->next : UINT64_MAX);
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
		spread_add(&counting->elapsed, (double)(tool_now() - counting->started));
	perfring_counts_disable(counting->counts);
	if (counts_intervals(counting))
		print_interval(counting);
	if (counting->interval)
		return true;
	take_counts(counting);
	if (counting->verbose && tool_stat_is_plain(counting))
		tool_stat_print_raw(counting);
	return true;
}

static bool run_once(struct counting *counting)
{
	sigset_t before;
	bool good, masked = false;

	/* The child of the last run has been waited for: another process may have its pid. */
	counting->child = (struct perfring_command){.fd = -1};
	counting->child_ended = false;
	good = choose_target(counting);
	if (good)
		good = masked = tool_open_signals(&counting->signals, 0, &before);
	good = good && open_counts(counting);
	if (good && !counting->run)
		tool_stat_print_head(counting);
	forget(counting, false);
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
		sigprocmask(SIG_SETMASK, &before, NULL);
	}
	perfring_counts_close(counting->counts);
	perfring_target_close(counting->target);
	counting->counts = NULL;
	counting->target = NULL;
	return good;
}

static bool open_output(struct counting *counting)
{
	counting->out = stderr;
	if (!counting->output)
		return true;
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

static int stat_command(int argc, char **argv)
{
	struct counting counting = {.signals = -1, .file = {.fd = -1}, .child = {.fd = -1}};
	int status = TOOL_FAILED;
	bool good = true;

	counting.has_files = !getrlimit(RLIMIT_NOFILE, &counting.files);
	if (perfring_events_open(&counting.events)) {
		tool_complain("out of memory");
		return status;
	}
	status = read_options(&counting, argc, argv);
	if (status >= 0)
		goto out;
	status = TOOL_FAILED;
	if (!open_output(&counting)) {
		tool_outfile_close(&counting.file);
		goto out;
	}
	for (; good && counting.run < counting.repeat && !counting.interrupts; counting.run++)
		good = run_once(&counting);
	if (good && !counting.interval) {
		if (tool_stat_is_plain(&counting))
			tool_stat_print_title(&counting);
		tool_stat_print_rows(&counting, 0);
		if (tool_stat_is_plain(&counting))
			tool_stat_print_times(&counting);
	}
	good = close_output(&counting) && good;
	if (good)
		status = TOOL_DONE;
out:
	perfring_events_close(counting.events);
	if (counting.signals >= 0)
		close(counting.signals);
	free(counting.user_only);
	free(counting.rows);
	free(counting.places);
	/* ^C that killed the command was for this process too. */
	if (counting.interrupts && WIFSIGNALED(counting.child_status))
		counting.ended_by = SIGINT;
	return status ? status : tool_status(counting.child_status, counting.ended_by);
}

static const struct tool_option ROWS[] = {
	{.heading = "events"},
	{'e', "event", .value = "EVENT[,EVENT]", .takes = "events, as perfring list shows them",
	 .help = "what to count, as for perfring record; {EVENT,EVENT} is a group, counted together or not at all "
		 "(default: clock, switches, faults, and the processor's cycles, instructions and branches)"},
	{.heading = "target"},
	{'a', "all-cpus", .help = "the whole system, until COMMAND ends or ^C"},
	{'C', "cpu", .value = "LIST", .takes = "a list of CPUs, such as 0-3,6",
	 .help = "only on these CPUs, as in 0-3,6"},
	{'p', "pid", .value = "PID[,PID]", .takes = "ids of processes, such as 12,345",
	 .help = "these processes with all their threads"},
	{'t', "tid", .value = "TID[,TID]", .takes = "ids of threads, such as 12,345", .help = "these threads"},
	{'i', "no-inherit", .help = "not the children"},
	{.heading = "time"},
	{'D', "delay", .value = "MS", .takes = "a number of ms", .max = UINT32_MAX,
	 .help = "begin to count MS milliseconds after the start"},
	{'r', "repeat", .value = "N", .takes = "a number of runs", .min = 1, .max = UINT32_MAX,
	 .help = "run COMMAND N times: means and their standard errors"},
	{'I', "interval-print", .value = "MS", .takes = "a number of ms", .min = 1, .max = UINT32_MAX,
	 .help = "the counts of every MS milliseconds (at least 1)"},
	{INTERVAL_COUNT, "interval-count", .value = "N", .takes = "a number of intervals", .min = 1, .max = UINT32_MAX,
	 .help = "end after N intervals"},
	{.heading = "output"},
	{'A', "no-aggr", .help = "each CPU separately (with -a or -C)"},
	{PER_THREAD, "per-thread", .help = "each thread separately (with -p or -t)"},
	{'x', "field-separator", .value = "SEP", .takes = "what stands between fields, such as a comma",
	 .help = "fields with SEP between them"},
	{'j', "json", .help = "one JSON object a line"},
	{'o', "output", .value = "FILE", .takes = "a file's name, or -",
	 .help = "(default: standard error); - is standard output"},
	{APPEND, "append", .help = "append to FILE"},
	{'v', "verbose", .help = "raw counts, the margin of estimates, and why an event is not supported"},
	TOOL_OPTIONS_END,
};

static const struct tool_example EXAMPLES[] = {
	{"The default events of a command, as the mean of five runs:", "perfring stat -r 5 ./program"},
	{"Two events of each CPU, every second:", "perfring stat -a -A -I 1000 -e cycles,instructions"},
	{"A process for ten seconds, for a spreadsheet:", "perfring stat -p 1234 -x , -o counts.csv sleep 10"},
	{0},
};

const struct tool_command tool_stat = {
	.name = "stat",
	.summary = "count the events of a command or the system",
	.usage = "[OPTIONS] [--] [COMMAND...]",
	.description =
		"Counts the events of COMMAND and its children, of processes, of threads or of the whole system.",
	.options = ROWS,
	.has_command = true,
	.notes = "A percentage in parentheses says that events shared counters: the count is an estimate from that "
		 "part of the time.  Its margin (-v, --json) is half of a 95 % interval if events occur independently "
		 "of one another.",
	.exit_status =
		"COMMAND's (128 + its signal when it was killed, else 128 + the signal, such as ^C, that ended the "
		"counting); 1 when counting failed; 2 usage error.",
	.examples = EXAMPLES,
	.see_also = "perfring-list perfring-record perfring",
	.run = stat_command,
};
