/* stat.c - `perfring stat`: counts the events of a command, of threads or of the system. */
#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "stat.h"

enum {
	INTERVAL_COUNT = 0x100, /* options without a letter */
	PER_THREAD,
	APPEND,

	LOOK_MS = 100, /* how often to look whether observed processes are still there */

	UNIT_WIDTH = 4, /* perf's column */
};

#define DEFAULT_EVENTS \
	"task-clock,context-switches,cpu-migrations,page-faults,cycles,instructions,branches,branch-misses"

static void help(FILE *out)
{
	fputs("usage: perfring stat [OPTIONS] [--] [COMMAND...]\n"
	      "\n"
	      "Counts the events of COMMAND and its children, of processes, of threads or of the whole system.\n"
	      "\n"
	      "  -e, --event=EVENT[,EVENT]  what to count, as for perfring record; {EVENT,EVENT} is a group, counted\n"
	      "                             together or not at all (default: clock, switches, faults, and the\n"
	      "                             processor's cycles, instructions and branches)\n"
	      "  -a, --all-cpus             the whole system, until COMMAND ends or ^C\n"
	      "  -C, --cpu=LIST             only on these CPUs, as in 0-3,6\n"
	      "  -p, --pid=PID[,PID]        these processes with all their threads\n"
	      "  -t, --tid=TID[,TID]        these threads\n"
	      "  -i, --no-inherit           not the children\n"
	      "  -D, --delay=MS             counts from MS ms after the start on\n"
	      "  -r, --repeat=N             runs COMMAND N times: means, and how far they can be trusted\n"
	      "  -I, --interval-print=MS    what was counted in each MS ms (at least 1)\n"
	      "      --interval-count=N     so many times\n"
	      "  -A, --no-aggr              each CPU by itself (with -a or -C)\n"
	      "      --per-thread           each thread by itself (with -p or -t)\n"
	      "  -x, --field-separator=SEP  fields with SEP between them\n"
	      "  -j, --json                 one JSON object a line\n"
	      "  -o, --output=FILE          (default: standard error)\n"
	      "      --append               to the end of FILE\n"
	      "  -v, --verbose              raw counts, the margin of estimates, and why an event is not supported\n"
	      "  -h, --help\n"
	      "\n"
	      "A (share %) says that counters were shared out: the count is an estimate from that share of the time.  "
	      "Its\n"
	      "margin (-v, --json) is half of a 95 % interval if events come independently of one another.\n"
	      "Exit status: COMMAND's (128 + its signal when it was killed); 1 when counting failed, 2 misused.\n",
	      out);
}

/* ---- options ---- */

static bool read_number(const char *text, uint64_t *number)
{
	char *end;

	errno = 0;
	*number = strtoull(text, &end, 10);
	return *text >= '0' && *text <= '9' && !*end && !errno && *number <= UINT32_MAX;
}

static bool add_events(struct counting *counting, const char *text)
{
	static const struct perf_event_attr BASE = {.size = sizeof(BASE)};
	struct perfring_fault fault = {0, "unknown event"};
	int ret = perfring_events_add(counting->events, text, &BASE, &fault);

	if (ret)
		perfring_tool_complain("stat: event '%s': at %" PRId64 ": %s", text, fault.at, fault.what);
	return !ret;
}

static bool misused(const char *what)
{
	perfring_tool_complain("stat: %s (perfring stat --help)", what);
	return true;
}

/* What does not go together. */
static bool is_misused(const struct counting *counting)
{
	bool tasks = counting->pids || counting->tids;

	if (counting->all && tasks)
		return misused("-a and -p or -t exclude one another");
	if (!counting->all && !tasks && !counting->command)
		return misused("whom? name a COMMAND, -a, -C LIST, -p PID or -t TID");
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
	static const struct option LONG[] = {
		{"event", required_argument, NULL, 'e'},
		{"all-cpus", no_argument, NULL, 'a'},
		{"cpu", required_argument, NULL, 'C'},
		{"pid", required_argument, NULL, 'p'},
		{"tid", required_argument, NULL, 't'},
		{"no-inherit", no_argument, NULL, 'i'},
		{"delay", required_argument, NULL, 'D'},
		{"repeat", required_argument, NULL, 'r'},
		{"interval-print", required_argument, NULL, 'I'},
		{"interval-count", required_argument, NULL, INTERVAL_COUNT},
		{"no-aggr", no_argument, NULL, 'A'},
		{"per-thread", no_argument, NULL, PER_THREAD},
		{"field-separator", required_argument, NULL, 'x'},
		{"json", no_argument, NULL, 'j'},
		{"output", required_argument, NULL, 'o'},
		{"append", no_argument, NULL, APPEND},
		{"verbose", no_argument, NULL, 'v'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	int found;

	counting->inherit = true;
	counting->repeat = 1;
	while ((found = getopt_long(argc, argv, "+:e:aC:p:t:iD:r:I:Ax:jo:vh", LONG, NULL)) != -1) {
		const char *name = argv[optind - 1];
		bool good = true;

		switch (found) {
		case 'e':
			if (!add_events(counting, optarg))
				return PERFRING_TOOL_MISUSED;
			break;
		case 'a':
			counting->all = true;
			break;
		case 'C':
			counting->cpus = optarg;
			break;
		case 'p':
			counting->pids = optarg;
			break;
		case 't':
			counting->tids = optarg;
			break;
		case 'i':
			counting->inherit = false;
			break;
		case 'D':
			good = read_number(optarg, &counting->delay);
			break;
		case 'r':
			good = read_number(optarg, &counting->repeat) && counting->repeat;
			break;
		case 'I':
			good = read_number(optarg, &counting->interval) && counting->interval;
			break;
		case INTERVAL_COUNT:
			good = read_number(optarg, &counting->interval_count) && counting->interval_count;
			break;
		case 'A':
			counting->apart = true;
			break;
		case PER_THREAD:
			counting->per_thread = true;
			break;
		case 'x':
			counting->separator = strcmp(optarg, "\\t") ? optarg : "\t";
			good = *optarg;
			break;
		case 'j':
			counting->json = true;
			break;
		case 'o':
			counting->output = optarg;
			break;
		case APPEND:
			counting->append = true;
			break;
		case 'v':
			counting->verbose = true;
			break;
		case 'h':
			help(stdout);
			return perfring_tool_flush() ? PERFRING_TOOL_DONE : PERFRING_TOOL_FAILED;
		default:
			return perfring_tool_misused(found, argv);
		}
		if (!good) {
			perfring_tool_complain("stat: '%s' does not take '%s' (perfring stat --help)", name, optarg);
			return PERFRING_TOOL_MISUSED;
		}
	}
	if (optind < argc)
		counting->command = argv + optind;
	if (counting->cpus && !counting->pids && !counting->tids)
		counting->all = true;
	if (is_misused(counting))
		return PERFRING_TOOL_MISUSED;
	if (!perfring_events_count(counting->events) && !add_events(counting, DEFAULT_EVENTS))
		return PERFRING_TOOL_FAILED;
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

/* Looks at the counters: each row then has what came since the last look. */
static void take_counts(struct counting *counting)
{
	uint32_t events = perfring_events_count(counting->events);

	perfring_counts_read(counting->counts);
	for (uint32_t i = 0; i < events; i++)
		for (uint32_t j = 0; j < counting->place_count; j++) {
			struct row *row = perfring_stat_row(counting, i, j);
			struct perfring_count sum;

			row->supported = counting->numbers[i] != UINT32_MAX;
			row->counted = row->supported &&
				       !perfring_counts_sum(counting->counts, counting->numbers[i], scope_of(counting),
							    counting->places[j].which, &sum);
			if (!row->counted)
				continue;
			row->count = sum;
			/* A counter that cannot be read any more takes what it counted out of the sum. */
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
	uint64_t at = perfring_tool_now();

	forget(counting, true);
	counting->elapsed = (struct spread){0, 0, 0};
	spread_add(&counting->elapsed, (double)(at - counting->printed));
	take_counts(counting);
	counting->printed = at;
	if (counting->verbose && perfring_stat_is_plain(counting))
		perfring_stat_print_raw(counting);
	perfring_stat_print_rows(counting, at - counting->started);
	counting->intervals++;
}

/* ---- opening ---- */

static bool add_ids(struct counting *counting, char *list, int (*add)(struct perfring_target *, int32_t))
{
	char *rest = list, *word;

	while ((word = strsep(&rest, ","))) {
		uint64_t number;
		int ret;

		if (!read_number(word, &number) || number == 0 || number > INT32_MAX) {
			perfring_tool_complain("stat: '%s' is not a process or thread id", word);
			return false;
		}
		ret = add(counting->target, (int32_t)number);
		if (ret) {
			perfring_tool_complain("stat: %s: %s", word, strerror(-ret));
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
		perfring_tool_complain("stat: -C %s: %s", counting->cpus ? counting->cpus : "(all)",
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
	/* What opening raised is not for the command. */
	setrlimit(RLIMIT_NOFILE, &counting->files);
	ret = perfring_command_open(&counting->child, counting->command);
	if (!ret && perfring_stat_is_of_command(counting))
		ret = perfring_target_add_thread(counting->target, counting->child.pid);
	if (ret)
		perfring_tool_complain("stat: %s: %s", counting->command[0], strerror(-ret));
	return !ret;
}

/* Errors that mean: not here, whoever asks. */
static bool is_unsupported(int ret)
{
	return ret == -ENOENT || ret == -EOPNOTSUPP || ret == -ENXIO || ret == -ENODEV || ret == -EINVAL;
}

static bool leads(const struct counting *counting, uint32_t event)
{
	uint32_t leader = perfring_stat_event(counting, event)->leader;

	return leader == UINT32_MAX || leader == event;
}

static struct perf_event_attr shape_attr(const struct counting *counting, uint32_t event)
{
	struct perf_event_attr attr = *perfring_stat_event(counting, event)->attr;
	bool first = leads(counting, event);

	/* A leader that is off stops its group (ABI.md trap 32). */
	attr.disabled = first;
	attr.enable_on_exec = first && perfring_stat_is_of_command(counting) && !counting->delay;
	attr.inherit = counting->inherit && !counting->all;
	/* Only a leader may be pinned or exclusive: modifiers behind a group are its own. */
	attr.pinned = attr.pinned && first;
	attr.exclusive = attr.exclusive && first;
	attr.freq = 0;
	attr.sample_period = 0;
	attr.sample_type = 0;
	return attr;
}

/* Adds the group that `first` leads, or it alone, without those that are marked as not supported. */
static int add_group(struct counting *counting, uint32_t first)
{
	uint32_t next = perfring_counts_count(counting->counts), count = perfring_events_count(counting->events);
	struct perfring_events *list;
	bool joins = false;
	int ret = perfring_events_open(&list);

	if (ret)
		return ret;
	for (uint32_t i = first; !ret && i < count; i++) {
		struct perf_event_attr attr = shape_attr(counting, i);

		if ((i != first && perfring_stat_event(counting, i)->leader != first) ||
		    counting->numbers[i] == UINT32_MAX)
			continue;
		ret = perfring_events_add_attr(list, &attr, perfring_stat_event(counting, i)->name, joins);
		counting->numbers[i] = next++;
		joins = true;
	}
	if (!ret)
		ret = perfring_counts_add(counting->counts, list, counting->target);
	perfring_events_close(list);
	return ret;
}

/* Marks those of a group that cannot be had even alone.  A group without its leader is none. */
static bool drop_unsupported(struct counting *counting, uint32_t first)
{
	uint32_t count = perfring_events_count(counting->events);
	bool dropped = false;

	for (uint32_t i = first; i < count; i++) {
		struct perf_event_attr attr = shape_attr(counting, i);
		int fd;

		if (i != first && perfring_stat_event(counting, i)->leader != first)
			continue;
		fd = -ENOENT;
		if (counting->numbers[first] != UINT32_MAX)
			fd = perfring_event_open(&attr, counting->all ? -1 : 0, counting->all ? sched_getcpu() : -1, -1,
						 0);
		if (fd >= 0) {
			close(fd);
		} else if (is_unsupported(fd) && counting->numbers[i] != UINT32_MAX) {
			counting->numbers[i] = UINT32_MAX;
			dropped = true;
		}
	}
	return dropped;
}

/* What a group gave up, once: most often it is the same for every one. */
static void tell_given_up(struct counting *counting, uint32_t first)
{
	bool user_only = false;

	for (uint32_t i = first; i < perfring_events_count(counting->events); i++) {
		const struct perf_event_attr *opened = perfring_counts_attr(counting->counts, counting->numbers[i]);

		if ((i != first && perfring_stat_event(counting, i)->leader != first) || !opened)
			continue;
		counting->user_only[i] =
			opened->exclude_kernel && !perfring_stat_event(counting, i)->attr->exclude_kernel;
		user_only |= counting->user_only[i];
	}
	if (counting->run || (user_only && counting->told_user_only))
		return;
	counting->told_user_only |= user_only;
	if (user_only)
		perfring_tool_complain(
			"stat: observing the kernel is not permitted (kernel.perf_event_paranoid above 1, "
			"and no CAP_PERFMON): what ends in u is of user space only");
	else
		perfring_tool_complain("stat: %s", perfring_counts_refusal(counting->counts));
}

static bool open_group(struct counting *counting, uint32_t first)
{
	int ret = add_group(counting, first);

	if (is_unsupported(ret)) {
		if (counting->verbose && !counting->run)
			perfring_tool_complain("stat: %s", perfring_counts_refusal(counting->counts));
		if (perfring_stat_event(counting, first)->leader == first && drop_unsupported(counting, first) &&
		    counting->numbers[first] != UINT32_MAX)
			ret = add_group(counting, first);
	}
	if (is_unsupported(ret)) {
		for (uint32_t i = first; i < perfring_events_count(counting->events); i++)
			if (i == first || perfring_stat_event(counting, i)->leader == first)
				counting->numbers[i] = UINT32_MAX;
		return true;
	}
	if (ret)
		perfring_tool_complain("stat: %s", perfring_counts_refusal(counting->counts));
	else if (*perfring_counts_refusal(counting->counts))
		tell_given_up(counting, first);
	return !ret;
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
		counting->places = perfring_tool_room(counting->places, ++count, sizeof(*counting->places));
		counting->places[j] = (struct place){.which = which};
		snprintf(path, sizeof(path), "/proc/%d/comm", which);
		file = counting->per_thread ? fopen(path, "re") : NULL;
		if (!file)
			continue;
		if (fgets(counting->places[j].comm, sizeof(counting->places[j].comm), file))
			counting->places[j].comm[strcspn(counting->places[j].comm, "\n")] = 0;
		/* A thread names itself: not what a terminal obeys. */
		for (char *byte = counting->places[j].comm; *byte; byte++)
			if ((unsigned char)*byte < 0x20 || *byte == 0x7f)
				*byte = '?';
		fclose(file);
	}
	if (!count) {
		counting->places = perfring_tool_room(NULL, 1, sizeof(*counting->places));
		counting->places[count++] = (struct place){.which = -1};
	}
	counting->place_count = count;
	counting->rows = perfring_tool_room(NULL, (size_t)perfring_events_count(counting->events) * count,
					    sizeof(*counting->rows));
	memset(counting->rows, 0, (size_t)perfring_events_count(counting->events) * count * sizeof(*counting->rows));
}

static bool open_counts(struct counting *counting)
{
	uint32_t count = perfring_events_count(counting->events);
	int ret = perfring_counts_open(&counting->counts, PERFRING_FALLBACK_NEWER | PERFRING_FALLBACK_PRECISE |
								  PERFRING_FALLBACK_EXCLUDE_KERNEL);
	bool good = !ret;

	if (ret)
		perfring_tool_complain("stat: %s", strerror(-ret));
	counting->numbers = perfring_tool_room(counting->numbers, count, sizeof(*counting->numbers));
	memset(counting->numbers, 0, count * sizeof(*counting->numbers));
	counting->user_only = perfring_tool_room(counting->user_only, count, sizeof(*counting->user_only));
	memset(counting->user_only, 0, count * sizeof(*counting->user_only));
	counting->unit_width = UNIT_WIDTH;
	for (uint32_t i = 0; good && i < count; i++) {
		int width = (int)strlen(perfring_stat_unit(perfring_stat_event(counting, i)));

		if (width > counting->unit_width)
			counting->unit_width = width;
		if (leads(counting, i))
			good = open_group(counting, i);
	}
	if (good && !counting->rows)
		find_places(counting);
	return good;
}

/* ---- running ---- */

/* The first interrupt asks the command to end, the second one ends it. */
static void take_signals(struct counting *counting)
{
	struct signalfd_siginfo signal;

	while (read(counting->signals, &signal, sizeof(signal)) == (ssize_t)sizeof(signal)) {
		if (signal.ssi_signo != SIGCHLD) {
			counting->interrupts++;
			if (counting->command && !counting->child_ended)
				kill(counting->child.pid, counting->interrupts > 1 ? SIGKILL : SIGTERM);
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
	uint64_t at = perfring_tool_now(), most = counting->command ? UINT64_MAX : at + LOOK_MS * NS_PER_MS;
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
	bool on_exec = perfring_stat_is_of_command(counting) && !counting->delay;
	int ret = on_exec || counting->delay ? 0 : perfring_counts_enable(counting->counts);

	counting->started = perfring_tool_now();
	if (!ret && counting->command) {
		ret = perfring_command_release(&counting->child);
		if (ret) {
			perfring_tool_complain("stat: %s: %s", counting->command[0], strerror(-ret));
			return false;
		}
	}
	if (counting->delay) {
		uint64_t end = counting->started + counting->delay * (NS_PER_S / 1000);

		while (perfring_tool_now() < end && !is_done(counting))
			rest(counting, end);
		counting->started = perfring_tool_now();
		if (!ret)
			ret = perfring_counts_enable(counting->counts);
	}
	counting->printed = counting->started;
	if (ret)
		perfring_tool_complain("stat: enabling the events: %s", strerror(-ret));
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
		if (!counts_intervals(counting) || perfring_tool_now() < counting->next)
			continue;
		take_signals(counting);
		if (counting->child_ended)
			break;
		print_interval(counting);
		/* Those that were missed are in the one that was late. */
		while (counting->next <= counting->printed)
			counting->next += step;
	}
	if (!counting->interval)
		spread_add(&counting->elapsed, (double)(perfring_tool_now() - counting->started));
	perfring_counts_disable(counting->counts);
	if (counts_intervals(counting))
		print_interval(counting);
	if (counting->interval)
		return true;
	take_counts(counting);
	if (counting->verbose && perfring_stat_is_plain(counting))
		perfring_stat_print_raw(counting);
	return true;
}

static bool run_once(struct counting *counting)
{
	sigset_t before;
	bool good, masked = false;

	/* The child of the run before has been waited for: its number may be anybody's. */
	counting->child = (struct perfring_command){.fd = -1};
	counting->child_ended = false;
	good = choose_target(counting);
	if (good)
		good = masked = perfring_tool_open_signals(&counting->signals, 0, &before);
	good = good && open_counts(counting);
	if (good && !counting->run)
		perfring_stat_print_head(counting);
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
	/* What this run's end sent is not the next one's. */
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
	counting->out = fopen(counting->output, counting->append ? "ae" : "we");
	if (!counting->out)
		perfring_tool_complain("stat: %s: %s", counting->output, strerror(errno));
	return counting->out;
}

static bool close_output(struct counting *counting)
{
	bool good = !ferror(counting->out);

	if (counting->out != stderr && fclose(counting->out))
		good = false;
	if (!good && counting->output)
		perfring_tool_complain("stat: %s: not everything could be written", counting->output);
	return good;
}

int perfring_tool_stat(int argc, char **argv)
{
	struct counting counting = {.signals = -1, .child = {.fd = -1}};
	int status = PERFRING_TOOL_FAILED;
	bool good = true;

	getrlimit(RLIMIT_NOFILE, &counting.files);
	if (perfring_events_open(&counting.events)) {
		perfring_tool_complain("out of memory");
		return status;
	}
	status = read_options(&counting, argc, argv);
	if (status >= 0)
		goto out;
	status = PERFRING_TOOL_FAILED;
	if (!open_output(&counting))
		goto out;
	for (; good && counting.run < counting.repeat && !counting.interrupts; counting.run++)
		good = run_once(&counting);
	if (good && !counting.interval) {
		if (perfring_stat_is_plain(&counting))
			perfring_stat_print_title(&counting);
		perfring_stat_print_rows(&counting, 0);
		if (perfring_stat_is_plain(&counting))
			perfring_stat_print_times(&counting);
	}
	good = close_output(&counting) && good;
	if (good && counting.command)
		status = WIFSIGNALED(counting.child_status) ? 128 + WTERMSIG(counting.child_status)
							    : WEXITSTATUS(counting.child_status);
	else if (good)
		status = PERFRING_TOOL_DONE;
out:
	perfring_events_close(counting.events);
	if (counting.signals >= 0)
		close(counting.signals);
	free(counting.numbers);
	free(counting.user_only);
	free(counting.rows);
	free(counting.places);
	return status;
}
