/* record_command.c - `perfring record`: observes a command, threads or the system into a perf.data file. */
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>
#include "options.h"
#include "record_command.h"

enum {
	/* How long records stay in a quiet ring before they are written: a kill loses no older ones. */
	ROUND_MS = 500,

	SOFT = TOOL_OPTION_LONG, /* options without a letter */
	CALL_GRAPH,
	SNAPSHOT,
	SWITCH_OUTPUT,
	MAX_SIZE,
	DIRECTORY,
	STRICT,
	FILTER,
	USER_REGS,
	SAMPLE_CPU,
	SAMPLE_IDENTIFIER,
	PHYS_DATA,
	DATA_PAGE_SIZE,
	CODE_PAGE_SIZE,
	SWITCH_EVENTS,
	NAMESPACES,
	ALL_CGROUPS,
	BUILD_ID_MMAP,
	ALL_USER,
	ALL_KERNEL,
	PER_THREAD,

	MOST_PAGES = 1 << 20,

	STACK = 8192,       /* bytes of each copy by default */
	STACK_MOST = 65528, /* a multiple of 8 below USHRT_MAX */
};

/* ---- options ---- */

/* A number and the character after it. */
static bool read_unit(const char *text, uint64_t *number, char *unit)
{
	char *end;

	errno = 0;
	*number = strtoull(text, &end, 10);
	*unit = *end;
	return *text >= '0' && *text <= '9' && !errno && *number && (!*end || !end[1]);
}

static bool read_size(const char *text, uint64_t without, uint64_t *bytes)
{
	static const char units[] = "BKMG";
	const char *place;
	char unit;

	if (!read_unit(text, bytes, &unit))
		return false;
	place = unit ? strchr(units, unit) : NULL;
	if (unit && !place)
		return false;
	without = place ? UINT64_C(1) << 10 * (place - units) : without;
	if (*bytes > (UINT64_C(1) << 40) / without)
		return false;
	*bytes *= without;
	return true;
}

/* Up to the next power of two, as perf. */
static bool read_pages(struct recording *recording, const char *text)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), bytes;

	if (!read_size(text, page, &bytes))
		return false;
	recording->pages = 1;
	while (recording->pages * page < bytes && recording->pages < MOST_PAGES)
		recording->pages *= 2;
	recording->rounded = recording->pages * page == bytes ? NULL : text;
	return recording->pages * page >= bytes;
}

static bool read_call_graph(struct recording *recording, const char *how)
{
	uint64_t size = STACK;

	recording->callchain = true;
	recording->stack = 0;
	if (!strcmp(how, "fp"))
		return true;
	if (!tool_record_can_unwind() || strncmp(how, "dwarf", 5) ||
	    (how[5] && (how[5] != ',' || !tool_options_number(how + 6, 1, STACK_MOST, &size))))
		return false;
	recording->stack = (uint32_t)(size + 7) & ~7u;
	return true;
}

static bool read_clock(struct recording *recording, const char *name)
{
	static const struct {
		char name[20];
		int32_t clock;
	} known[] = {
		{"monotonic", CLOCK_MONOTONIC}, {"mono", CLOCK_MONOTONIC},    {"monotonic_raw", CLOCK_MONOTONIC_RAW},
		{"raw", CLOCK_MONOTONIC_RAW},   {"realtime", CLOCK_REALTIME}, {"real", CLOCK_REALTIME},
		{"boottime", CLOCK_BOOTTIME},   {"boot", CLOCK_BOOTTIME},     {"tai", CLOCK_TAI},
	};
	uint64_t number;

	if (!strncasecmp(name, "CLOCK_", 6))
		name += 6;
	recording->has_clockid = true;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (!strcasecmp(name, known[i].name)) {
			recording->clockid = known[i].clock;
			return true;
		}
	if (!tool_options_number(name, 0, INT32_MAX, &number))
		return false;
	recording->clockid = (int32_t)number;
	return true;
}

static bool read_switch(struct recording *recording, const char *when)
{
	char unit;

	recording->switched = true;
	if (!when || !strcmp(when, "signal"))
		return true;
	if (!read_unit(when, &recording->switch_ms, &unit))
		return false;
	if (unit == 's' || unit == 'm' || unit == 'h') {
		recording->switch_ms *= unit == 's' ? 1000 : unit == 'm' ? 60000 : 3600000;
		return true;
	}
	recording->switch_ms = 0;
	return unit && read_size(when, 1, &recording->switch_bytes);
}

/* Returns -1 to go on, else the exit status. */
static int read_option(struct recording *recording, const struct tool_options *options, int found)
{
	char *value = options->value;
	bool good = true;

	switch (found) {
	case 'e':
		if (!tool_record_add_events(recording, value))
			return TOOL_MISUSED;
		break;
	case FILTER:
		if (!tool_record_add_filter(recording, value))
			return TOOL_MISUSED;
		break;
	case 'F':
		if (!strcmp(value, "max"))
			recording->frequency = tool_record_max_rate();
		else
			good = tool_options_number(value, 1, UINT64_MAX, &recording->frequency);
		break;
	case 'c':
		recording->period = options->number;
		break;
	case 'g':
		recording->callchain = true;
		break;
	case CALL_GRAPH:
		good = read_call_graph(recording, value);
		break;
	case 'd':
		recording->addresses = true;
		break;
	case PHYS_DATA:
		recording->extra |= PERFRING_SAMPLE_ADDR | PERFRING_SAMPLE_PHYS_ADDR;
		break;
	case DATA_PAGE_SIZE:
		recording->extra |= PERFRING_SAMPLE_ADDR | PERFRING_SAMPLE_DATA_PAGE_SIZE;
		break;
	case CODE_PAGE_SIZE:
		recording->extra |= PERFRING_SAMPLE_CODE_PAGE_SIZE;
		break;
	case 'W':
		recording->extra |= PERFRING_SAMPLE_WEIGHT;
		break;
	case 'R':
		recording->raw = true;
		break;
	case 'I':
		recording->interrupt_registers = true;
		break;
	case USER_REGS:
		recording->user_registers = true;
		break;
	case SAMPLE_CPU:
		recording->sample_cpu = true;
		break;
	case SAMPLE_IDENTIFIER: /* samples have it anyway */
		break;
	case 'k':
		good = read_clock(recording, value);
		break;
	case SWITCH_EVENTS:
		recording->switches = true;
		break;
	case NAMESPACES:
		recording->namespaces = true;
		break;
	case ALL_CGROUPS:
		recording->cgroups = true;
		break;
	case BUILD_ID_MMAP:
		recording->build_id_mmap = true;
		break;
	case ALL_USER:
		recording->user_only = true;
		break;
	case ALL_KERNEL:
		recording->kernel_only = true;
		break;
	case STRICT:
		recording->strict = true;
		break;
	case 'a':
		recording->all = true;
		break;
	case 'p':
		recording->pids = value;
		good = tool_options_ids(value);
		break;
	case 't':
		recording->tids = value;
		good = tool_options_ids(value);
		break;
	case 'G':
		recording->cgroup = value;
		break;
	case 'C':
		recording->cpus = value;
		good = tool_options_cpus(value);
		break;
	case 'i':
		recording->inherit = false;
		break;
	case PER_THREAD:
		recording->per_thread = true;
		break;
	case 'D':
		recording->delay_ms = options->number;
		break;
	case SOFT:
		recording->soft = true;
		break;
	case 'm':
		good = read_pages(recording, value);
		break;
	case 'o':
		recording->output = value;
		break;
	case DIRECTORY:
		recording->directory = true;
		break;
	case 'z':
		recording->level = value ? (int)options->number : 1;
		break;
	case SNAPSHOT:
		recording->snapshots = true;
		break;
	case SWITCH_OUTPUT:
		good = read_switch(recording, value);
		break;
	case MAX_SIZE:
		good = read_size(value, 1, &recording->most_bytes);
		break;
	case 'B':
		recording->no_build_ids = true;
		break;
	case 'q':
		recording->quiet = true;
		break;
	default:
		return tool_options_forgotten(options, found);
	}
	return good ? -1 : tool_options_refuse(options, found, value);
}

static bool contradict(const char *text)
{
	tool_complain("record: %s", text);
	return false;
}

static bool can_compress(void)
{
	struct perfring_file_writer *writer;
	int file = memfd_create("perfring record", MFD_CLOEXEC);
	int ret = file < 0 ? -errno : perfring_file_writer_open(&writer, file);

	if (!ret) {
		ret = perfring_file_writer_compress(writer, 1);
		perfring_file_writer_close(writer);
	}
	if (file >= 0)
		close(file);
	return ret != -EOPNOTSUPP;
}

static bool is_sound(const struct recording *recording)
{
	bool has_threads = recording->pids || recording->tids;

	if ((recording->interrupt_registers || recording->user_registers) && !tool_record_can_unwind())
		return contradict("--intr-regs and --user-regs are for x86-64 and aarch64 only");
	if (recording->level && !can_compress())
		return contradict("-z: this perfring was built without libzstd");
	if (recording->frequency && recording->period)
		return contradict("-F and -c exclude one another");
	if (recording->all && has_threads)
		return contradict("-a and -p or -t exclude one another");
	if (!recording->all && !has_threads && !recording->command && !recording->cgroup)
		return contradict(
			"nothing to observe: name a COMMAND, -a, -C LIST, -G NAME, -p PID or -t TID (perfring record "
			"--help)");
	if (recording->soft && tool_record_not_soft(recording))
		return contradict(tool_record_not_soft(recording));
	if (recording->per_thread && (recording->all || recording->cpus || recording->cgroup))
		return contradict("--per-thread and -a, -C or -G exclude one another");
	if (recording->cgroup && (has_threads || recording->per_thread))
		return contradict("-G and -p or -t exclude one another");
	if (recording->cgroup && recording->command && !recording->all && !recording->cpus)
		return contradict("-G observes the members of a cgroup, not COMMAND: add -a to record them until "
				  "COMMAND ends");
	if (recording->user_only && recording->kernel_only)
		return contradict("--all-user and --all-kernel exclude one another");
	if (recording->snapshots && recording->switched)
		return contradict("--snapshot and --switch-output exclude one another");
	if ((recording->snapshots || recording->switched) && !strcmp(recording->output, "-"))
		return contradict("--snapshot and --switch-output do not write to standard output");
	if (recording->directory && (recording->snapshots || !strcmp(recording->output, "-")))
		return contradict("--directory does not go with --snapshot or -o -");
	return true;
}

/* Returns -1 to go on, else the exit status. */
static int read_options(struct recording *recording, int argc, char **argv)
{
	struct tool_options options = {.command = &tool_record};
	int found, status;

	recording->output = "perf.data";
	recording->inherit = true;
	recording->arguments = argv;
	while ((found = tool_options_next(&options, argc, argv)) > 0) {
		status = read_option(recording, &options, found);
		if (status >= 0)
			return status;
	}
	if (!found)
		return options.status;
	if (optind < argc)
		recording->command = argv + optind;
	/* As in perf and in perfring stat: the COMMAND is then not the target, its end is the end of the recording. */
	if (recording->cpus && !recording->pids && !recording->tids && !recording->cgroup)
		recording->all = true;
	if (!is_sound(recording))
		return TOOL_MISUSED;
	if (!recording->event_count && !tool_record_add_events(recording, recording->soft ? "task-clock" : "cycles"))
		return TOOL_FAILED;
	if (recording->soft && !tool_record_is_soft(recording)) {
		tool_complain("record: --soft: a process samples its task-clock or its cpu-clock, nothing else");
		return TOOL_MISUSED;
	}
	return -1;
}

/* ---- running ---- */

enum asked {
	GO_ON,
	SWITCH,
	END
};

/* SIGCHLD of the command ends the recording, as does ^C. */
static enum asked take_signals(struct recording *recording)
{
	struct signalfd_siginfo signal;
	enum asked asked = GO_ON;

	while (read(recording->signals, &signal, sizeof(signal)) == (ssize_t)sizeof(signal)) {
		if (signal.ssi_signo == SIGUSR2) {
			asked = asked == END ? END : SWITCH;
		} else if (signal.ssi_signo != SIGCHLD) {
			asked = END;
			recording->ended_by = (int)signal.ssi_signo;
		} else if (recording->command && !recording->child_ended &&
			   waitpid(recording->child.pid, &recording->child_status, WNOHANG) == recording->child.pid) {
			recording->child_ended = true;
			asked = END;
		}
	}
	return asked;
}

/* Whether the file is full, by size or by time. */
static bool is_full(const struct recording *recording)
{
	return (recording->switch_bytes && perfring_file_writer_size(recording->writer) >= recording->switch_bytes) ||
	       (recording->switch_ms && tool_now() - recording->opened >= recording->switch_ms * NS_PER_MS);
}

static bool enable(struct recording *recording)
{
	int ret = perfring_session_enable(recording->session);

	if (!ret && recording->side)
		ret = perfring_session_enable(recording->side);
	if (ret)
		tool_complain("record: enabling the events: %s", strerror(-ret));
	return !ret;
}

/* Running threads are observed before their state is written: changes meanwhile are recorded after it. */
static bool enable_first(struct recording *recording)
{
	recording->is_enabled = !recording->delay_ms && (recording->pids || recording->tids);
	return !recording->is_enabled || enable(recording);
}

/* Events that the exec enables need no call here, nor do those of a delay. */
static bool start(struct recording *recording)
{
	int ret = 0;

	if (!tool_record_observes_command(recording) && !recording->delay_ms && !recording->is_enabled &&
	    !enable(recording))
		return false;
	if (recording->command)
		ret = perfring_command_release(&recording->child);
	if (ret)
		tool_complain("record: %s: %s", recording->command[0], strerror(-ret));
	recording->enable_at = recording->delay_ms ? tool_now() + recording->delay_ms * NS_PER_MS : 0;
	return !ret;
}

/* How long to sleep.  Under a flood the rings are kept as empty as possible: their space is for when this process is
 * delayed. */
static int round_ms(const struct recording *recording)
{
	uint64_t most = recording->is_pressed     ? 0
			: recording->soft         ? SOFT_ROUND_MS
			: recording->is_unsettled ? MARK_MS
						  : ROUND_MS,
		 now, left;

	if (!recording->enable_at)
		return (int)most;
	now = tool_now();
	left = recording->enable_at > now ? (recording->enable_at - now + NS_PER_MS - 1) / NS_PER_MS : 0;
	return (int)(left < most ? left : most);
}

/* The end of a delay. */
static bool enable_in_time(struct recording *recording)
{
	if (!recording->enable_at || tool_now() < recording->enable_at)
		return true;
	recording->enable_at = 0;
	return enable(recording);
}

static bool serve(struct recording *recording, enum asked asked)
{
	bool good;

	if (recording->soft)
		tool_peers_serve(recording->peers);
	perfring_session_wait(recording->snapshots ? recording->side : recording->session, 0);
	good = tool_record_write_round(recording);
	if (recording->soft)
		tool_peers_sweep(recording->peers);
	if (good && asked == SWITCH && recording->snapshots)
		good = tool_record_snapshot(recording, false);
	else if (good && recording->switched && (asked == SWITCH || is_full(recording)))
		good = tool_record_switch_file(recording);
	return good;
}

static bool run(struct recording *recording)
{
	struct perfring_session *session = recording->snapshots ? recording->side : recording->session;
	struct pollfd ready[3] = {
		{.fd = perfring_session_fd(session), .events = POLLIN},
		{.fd = recording->signals, .events = POLLIN},
		{.fd = recording->soft ? tool_peers_fd(recording->peers) : -1, .events = POLLIN},
	};
	enum asked asked;
	bool good = true;

	while (good && !perfring_session_is_over(recording->session)) {
		poll(ready, 3, round_ms(recording));
		/* At once: a ring that overwrites does not keep the wanted records for long. */
		asked = take_signals(recording);
		if (asked == END)
			break;
		good = enable_in_time(recording) && serve(recording, asked);
		if (recording->most_bytes && recording->writer &&
		    perfring_file_writer_size(recording->writer) >= recording->most_bytes) {
			tool_complain("record: %s: the recording ends here, for --max-size is reached",
				      recording->path);
			break;
		}
	}
	perfring_session_disable(recording->session);
	if (recording->side)
		perfring_session_disable(recording->side);
	/* Until the queue is empty: threads run on as soon as they have sent their rings. */
	for (int i = 0; good && recording->soft && i < SOFT_LAST_ROUNDS && tool_peers_serve(recording->peers); i++)
		;
	if (good && recording->snapshots)
		return tool_record_snapshot(recording, true);
	if (good) {
		perfring_session_flush(recording->session);
		good = tool_record_write_round(recording);
	}
	return good;
}

static void tell(const struct recording *recording)
{
	struct perfring_totals totals;
	uint64_t lost;

	if (recording->quiet)
		return;
	/* Lost in rings, by the PMU, and for want of disk space. */
	perfring_session_totals(recording->session, &totals);
	if (recording->soft)
		totals.lost = totals.lost_samples =
			0; /* as processes say, that are not trusted: recording->lost has bounds */
	lost = (totals.lost > recording->lost ? totals.lost : recording->lost) + totals.lost_samples;
	if (!recording->snapshots)
		lost += totals.records - recording->kept_records;
	fprintf(stderr, "[ perfring record: %" PRIu64 " samples, %" PRIu64 " bytes in ", recording->kept_samples,
		recording->kept_bytes);
	tool_print(stderr, strcmp(recording->path, "-") ? recording->path : "a stream", 0, false);
	fprintf(stderr, "; lost %" PRIu64 ", throttled %" PRIu64 " times", lost, totals.throttles);
	if (recording->files > 1)
		fprintf(stderr, "; files: %u", recording->files);
	if (recording->soft)
		fprintf(stderr, "; processes: %" PRIu64, tool_peers_count(recording->peers));
	fputs(" ]\n", stderr);
	if (totals.corrupt)
		tool_complain("record: rings were corrupt %" PRIu64 " times: %" PRIu64 " bytes skipped", totals.corrupt,
			      totals.skipped);
}

static bool open_signals(struct recording *recording, sigset_t *before)
{
	/* A full disk, a file limit or a stream without a reader is reported by the write. */
	signal(SIGXFSZ, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	/* As perf: a recording that has no use for it is not ended by it. */
	if (!recording->snapshots && !recording->switched)
		signal(SIGUSR2, SIG_IGN);
	return tool_open_signals(&recording->signals, recording->snapshots || recording->switched ? SIGUSR2 : 0,
				 before);
}

static void end_command(struct recording *recording)
{
	/* Never released: close kills it. */
	if (recording->child.fd >= 0) {
		perfring_command_close(&recording->child);
	} else if (!recording->child_ended) {
		kill(recording->child.pid, SIGTERM);
		while (waitpid(recording->child.pid, &recording->child_status, 0) < 0 && errno == EINTR)
			;
	}
}

static int record_command(int argc, char **argv)
{
	struct recording recording = {.out = {.fd = -1}, .file = -1, .signals = -1, .child = {.fd = -1}};
	int status = read_options(&recording, argc, argv);
	sigset_t before;
	bool good, masked = false;

	if (status >= 0)
		goto out;
	status = TOOL_FAILED;
	if (recording.rounded && !recording.quiet)
		tool_complain("record: -m %s: rounded up to %u pages, %" PRIu64 "K: a ring has 2^N pages",
			      recording.rounded, recording.pages,
			      (uint64_t)recording.pages * (uint64_t)sysconf(_SC_PAGESIZE) / 1024);
	tool_record_choose_soft(&recording);
	good = recording.soft ? tool_record_open_soft(&recording) : tool_record_choose_target(&recording);
	if (good)
		good = masked = open_signals(&recording, &before);
	good = good && (recording.soft || tool_record_open_events(&recording)) && enable_first(&recording) &&
	       tool_record_open_file(&recording);
	good = good && start(&recording) && tool_record_settle_file(&recording);
	if (good) {
		good = run(&recording);
		if (!recording.snapshots && recording.writer)
			good = tool_record_finish_file(&recording) && good;
		if (good && recording.soft)
			good = tool_peers_tell(recording.peers);
		if (recording.writer)
			tell(&recording);
	}
	if (masked) {
		/* The file is closed: a second ^C ends the wait for a command that ignored the first. */
		take_signals(&recording);
		sigprocmask(SIG_SETMASK, &before, NULL);
	}
	/* Further processes of the command are refused; their mappings stay valid for them. */
	perfring_session_close(recording.session);
	perfring_session_close(recording.side);
	tool_peers_close(recording.peers);
	recording.session = recording.side = NULL;
	recording.peers = NULL;
	if (recording.child.pid)
		end_command(&recording);
	if (good)
		status = TOOL_DONE;
out:
	tool_record_close_file(&recording);
	tool_record_close_side(&recording);
	perfring_session_close(recording.session);
	perfring_session_close(recording.side);
	tool_peers_close(recording.peers);
	perfring_target_close(recording.target);
	perfring_events_close(recording.names);
	if (recording.signals >= 0)
		close(recording.signals);
	for (uint32_t i = 0; i < recording.event_count; i++)
		free(recording.events[i].filter);
	free(recording.events);
	free(recording.reported);
	return status ? status : tool_status(recording.child_status, recording.ended_by);
}

static const struct tool_option ROWS[] = {
	{.heading = "events"},
	{'e', "event", .value = "EVENT[,EVENT]", .takes = "events, as perfring list shows them",
	 .help = "perf's names (perfring list), modifiers and groups {EVENT,EVENT}:S (default: cycles; cpu-clock "
		 "where there is no hardware counter)"},
	{FILTER, "filter", .value = "FILTER", .takes = "a comparison of fields of a tracepoint, such as count > 1",
	 .help = "for the tracepoints of the -e before it; of several, all must hold"},
	{'F', "freq", .value = "HZ", .takes = "a number of samples a second, from 1 on, or max",
	 .help = "samples a second, or max (default: 4000; tracepoints, mem: every one)"},
	{'c', "count", .value = "PERIOD", .takes = "a number of occurrences", .min = 1, .max = UINT64_MAX,
	 .help = "one sample every PERIOD occurrences instead"},
	{ALL_USER, "all-user", .help = "user space only"},
	{ALL_KERNEL, "all-kernel", .help = "the kernel only"},
	{STRICT, "strict", .help = "fail instead of falling back"},
	{.heading = "fields of each sample"},
	{'g', NULL, .help = "call chains, by frame pointers"},
	{CALL_GRAPH, "call-graph", .value = "fp|dwarf[,SIZE]",
	 .takes = "fp, or on x86-64 and aarch64 dwarf or dwarf,BYTES with at most 65528 bytes",
	 .help = "fp: the same; dwarf: registers and SIZE bytes of the user stack (default: 8192), for the program "
		 "that reads the file to unwind; x86-64 and aarch64"},
	{'d', "data", .help = "data addresses, and mappings of data"},
	{PHYS_DATA, "phys-data", .help = "physical addresses of the data"},
	{DATA_PAGE_SIZE, "data-page-size", .help = "the size of the page that the data address is in"},
	{CODE_PAGE_SIZE, "code-page-size", .help = "the size of the page that the instruction is in"},
	{'W', "weight", .help = "what the event cost, where the PMU reports it"},
	{'R', "raw-samples", .help = "raw data"},
	{'I', "intr-regs", .help = "registers at the interrupt"},
	{USER_REGS, "user-regs", .help = "registers of user space"},
	{SAMPLE_CPU, "sample-cpu", .help = "the CPU (always with -a, -C, -G, and for tracepoints)"},
	{SAMPLE_IDENTIFIER, "sample-identifier", .help = "accepted as by perf, without an effect"},
	{'k', "clockid", .value = "CLOCK",
	 .takes = "monotonic, monotonic_raw, realtime, boottime, tai, or a clock's number",
	 .help = "monotonic, monotonic_raw, realtime, boottime, tai or a number"},
	{.heading = "side records"},
	{SWITCH_EVENTS, "switch-events", .help = "context switches"},
	{NAMESPACES, "namespaces", .help = "namespaces of processes"},
	{ALL_CGROUPS, "all-cgroups", .help = "cgroups, and in each sample which one it was in"},
	{BUILD_ID_MMAP, "buildid-mmap", .help = "build ids in the records of mappings"},
	{.heading = "target"},
	{'a', "all-cpus", .help = "the whole system, until COMMAND ends or ^C"},
	{'p', "pid", .value = "PID[,PID]", .takes = "ids of processes, such as 12,345",
	 .help = "these processes with all their threads"},
	{'t', "tid", .value = "TID[,TID]", .takes = "ids of threads, such as 12,345", .help = "these threads"},
	{'G', "cgroup", .value = "NAME", .takes = "a cgroup's name",
	 .help = "members of this cgroup, named from its mount on (/ is all); with a COMMAND add -a"},
	{'C', "cpu", .value = "LIST", .takes = "a list of CPUs, such as 0-3,6",
	 .help = "everything on these CPUs, as in 0-3,6; with -p, -t or -G only what these run there"},
	{'i', "no-inherit", .help = "not the children"},
	{PER_THREAD, "per-thread", .help = "a ring for each thread instead of each CPU; not the children"},
	{'D', "delay", .value = "MS", .takes = "a number of ms", .max = INT32_MAX,
	 .help = "begin MS milliseconds after the start of COMMAND"},
	{SOFT, "soft",
	 .help = "without the kernel: a preloaded library samples each process from inside, by timers (task-clock, "
		 "the default, or cpu-clock; -F 1000).  Chosen automatically where perf_event_open is refused and no "
		 "option needs the kernel (--all-kernel, -d, -W, -I, ...).  Not observed: programs that are "
		 "statically linked, set-user-id or built with AddressSanitizer, or that drop LD_PRELOAD; threads "
		 "made by a bare clone; a process after it enters seccomp's strict mode or a filter that may kill it "
		 "for what sampling does, or after an exec under such a filter.  One real-time signal is used, and "
		 "kept unblocked; a program that handles it gets it back, and a program that resets all signals by "
		 "the raw system call is killed by it"},
	{.heading = "output"},
	{'o', "output", .value = "FILE", .takes = "a file's name, or -",
	 .help = "(default: perf.data); an existing FILE is renamed to FILE.old; - is a stream on standard output"},
	{DIRECTORY, "directory",
	 .help = "FILE is a directory with a file for each ring, as perf record --threads writes it"},
	{'z', "compression-level", .value = "N", .is_optional = true, .takes = "a level", .min = 1, .max = 22,
	 .help = "compress by zstd, 1 to 22 (default: 1)"},
	{SNAPSHOT, "snapshot",
	 .help = "rings overwrite: SIGUSR2 writes what they hold into FILE.TIME, the end of the recording into FILE.  "
		 "Records of tasks and mappings are kept beside the rings: the last 4 to 8 MiB, and the state of the "
		 "processes then running"},
	{SNAPSHOT, "overwrite", .help = "the same"},
	{SWITCH_OUTPUT, "switch-output", .value = "signal|SIZE|TIME", .is_optional = true,
	 .takes = "signal, a size such as 100M (B, K, M, G) or a time such as 30s (s, m, h)",
	 .help = "write FILE.TIME; begin a new file at SIGUSR2, after SIZE bytes (B, K, M, G) or after TIME (s, m, h)"},
	{MAX_SIZE, "max-size", .value = "SIZE", .takes = "a size such as 100M (B, K, M, G)",
	 .help = "end the recording at this size"},
	{'m', "mmap-pages", .value = "PAGES",
	 .takes = "a number of pages from 1 to 1048576, or a size such as 512K (B, K, M, G)",
	 .help = "data pages of each ring, or a size with B, K, M, G, rounded up to the next power of two (default: "
		 "128)"},
	{'B', "no-buildid", .help = "no build ids of the objects that were hit"},
	{'q', "quiet", .help = "print errors only"},
	TOOL_OPTIONS_END,
};

static const struct tool_example EXAMPLES[] = {
	{"A program with its call chains, and where its time went:", "perfring record -g ./program\nperfring report"},
	{"The whole system for ten seconds:", "perfring record -a sleep 10"},
	{"Each time that process 1234 stops running:", "perfring record -e sched:sched_switch -g -p 1234"},
	{"The last moments of a service, written into a file at each kill -USR2:",
	 "perfring record --snapshot -m 4M -p 1234"},
	{0},
};

const struct tool_command tool_record = {
	.name = "record",
	.summary = "record a command or the system into a perf.data file",
	.usage = "[OPTIONS] [--] [COMMAND...]",
	.description =
		"Observes COMMAND and its children, processes, threads or the whole system, and writes perf.data.",
	.options = ROWS,
	.has_command = true,
	.exit_status =
		"COMMAND's (128 + its signal when it was killed, else 128 + the signal, such as ^C, that ended the "
		"recording); 1 when recording failed; 2 usage error.",
	.examples = EXAMPLES,
	.see_also = "perfring-report perfring-dump perfring-list perfring-stat perfring-doctor perfring",
	.run = record_command,
};
