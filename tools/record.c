/* record.c - `perfring record`: observes a command, threads or the system into a perf.data file. */
#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>
#include "record.h"

enum {
	/* How long records may lie in a quiet ring before they are in the file, where a kill cannot lose them. */
	ROUND_MS = 500,

	SOFT = 0x100, /* options without a letter */
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

	STACK = 8192,       /* bytes of each copy, unless said */
	STACK_MOST = 65528, /* a multiple of 8 below USHRT_MAX */
};

static void help(FILE *out)
{
	fputs("usage: perfring record [OPTIONS] [--] [COMMAND...]\n"
	      "\n"
	      "Observes COMMAND and its children, a process, threads or the whole system, and writes perf.data.\n"
	      "\n"
	      "what\n"
	      "  -e, --event=EVENT[,EVENT]  perf's names (perfring list), modifiers and groups {EVENT,EVENT}:S\n"
	      "                             (default: cycles; cpu-clock where there is no hardware counter)\n"
	      "      --filter=FILTER        for the tracepoints\n"
	      "  -F, --freq=HZ              samples a second, or max (default: 4000; tracepoints and mem: every one)\n"
	      "  -c, --count=PERIOD         one sample every PERIOD occurrences instead\n"
	      "      --all-user, --all-kernel  only there\n"
	      "      --strict               nothing but what was asked for: no fallback, however honest\n"
	      "with each sample\n"
	      "  -g                         call chains, by frame pointers\n"
	      "      --call-graph=fp        the same; dwarf[,SIZE]: registers and SIZE bytes of the user's stack\n"
	      "                             (default: 8192), for whoever reads the file to unwind; x86-64 and aarch64\n"
	      "  -d, --data                 data addresses, and mappings of data\n"
	      "      --phys-data, --data-page-size, --code-page-size   more of them\n"
	      "  -W, --weight               what the event cost, where the PMU tells\n"
	      "  -R, --raw-samples          raw data     -I, --intr-regs, --user-regs   registers\n"
	      "      --sample-cpu           the CPU (without it: where it may be several)\n"
	      "  -k, --clockid=CLOCK        monotonic, monotonic_raw, realtime, boottime, tai or a number\n"
	      "      --switch-events, --namespaces, --all-cgroups, --buildid-mmap   side records\n"
	      "whom\n"
	      "  -a, --all-cpus             the whole system, until COMMAND ends or ^C\n"
	      "  -p, --pid=PID[,PID]        these processes with all their threads\n"
	      "  -t, --tid=TID[,TID]        these threads\n"
	      "  -G, --cgroup=PATH          members of this cgroup\n"
	      "  -C, --cpu=LIST             only on these CPUs, as in 0-3,6\n"
	      "  -i, --no-inherit           not the children\n"
	      "      --per-thread           a ring for each thread instead of each CPU; not the children\n"
	      "  -D, --delay=MS             begin so many ms after COMMAND did\n"
	      "      --soft                 without the kernel's help: an object that is preloaded samples each "
	      "process from\n"
	      "                             within, by timers (task-clock, the default, or cpu-clock; -F 1000).  "
	      "Chosen\n"
	      "                             where perf_event_open is refused.  Not observed: what is linked statically "
	      "or\n"
	      "                             set-user-id or built with AddressSanitizer, what drops LD_PRELOAD, "
	      "threads\n"
	      "                             made by a bare clone.  One real-time signal is taken, and kept "
	      "unblocked; a\n"
	      "                             program that handles it has it back, one that resets every signal by "
	      "the raw\n"
	      "                             system call is ended by it\n"
	      "where to\n"
	      "  -o, --output=FILE          (default: perf.data; a FILE that is there becomes FILE.old); - is a stream "
	      "on\n"
	      "                             standard output\n"
	      "      --directory            FILE is a directory with a file for each ring, as perf record --threads "
	      "leaves it\n"
	      "  -z, --compression-level[=N]  by zstd, 1 to 22 (default: 1)\n"
	      "      --snapshot             rings overwrite: SIGUSR2 writes their last moments into FILE.TIME, the "
	      "end\n"
	      "                             into FILE\n"
	      "      --switch-output[=signal|SIZE|TIME]  files FILE.TIME, a new one at SIGUSR2, after so many bytes\n"
	      "                             (B, K, M, G) or so long (s, m, h)\n"
	      "      --max-size=SIZE        the recording ends there\n"
	      "  -m, --mmap-pages=PAGES     data pages of each ring, a power of two, or a size with B, K, M, G "
	      "(default: 128)\n"
	      "  -B, --no-buildid           no build ids of what was hit\n"
	      "  -q, --quiet                no word but of failure\n"
	      "  -h, --help\n"
	      "\n"
	      "Exit status: COMMAND's (128 + its signal when it was killed); 1 when recording failed, 2 misused.\n",
	      out);
}

/* ---- options ---- */

static bool read_number(const char *text, uint64_t *number)
{
	char *end;

	errno = 0;
	*number = strtoull(text, &end, 10);
	return *text >= '0' && *text <= '9' && !*end && !errno;
}

/* A number and what stands behind it. */
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

static bool read_pages(const char *text, uint32_t *pages)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), bytes;

	if (!read_size(text, page, &bytes))
		return false;
	bytes = (bytes + page - 1) / page;
	*pages = 1;
	while (*pages < bytes && *pages < 1u << 20)
		*pages *= 2;
	return *pages >= bytes;
}

static bool read_call_graph(struct recording *recording, const char *how)
{
	uint64_t size = STACK;

	recording->callchain = true;
	recording->stack = 0;
	if (!strcmp(how, "fp"))
		return true;
	if (!perfring_record_can_unwind() || strncmp(how, "dwarf", 5) ||
	    (how[5] && (how[5] != ',' || !read_number(how + 6, &size))) || !size || size > STACK_MOST)
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
	recording->clockid = read_number(name, &number) ? (int32_t)number : -1;
	return recording->clockid >= 0 && number <= INT32_MAX;
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

static bool read_option(struct recording *recording, int found, const char *value)
{
	uint64_t number;

	switch (found) {
	case 'F':
		if (!strcmp(value, "max"))
			recording->frequency = perfring_record_max_rate();
		else
			return read_number(value, &recording->frequency) && recording->frequency;
		return true;
	case 'c':
		return read_number(value, &recording->period) && recording->period;
	case 'g':
		recording->callchain = true;
		return true;
	case CALL_GRAPH:
		return read_call_graph(recording, value);
	case 'd':
		recording->addresses = true;
		return true;
	case PHYS_DATA:
		recording->extra |= PERFRING_SAMPLE_ADDR | PERFRING_SAMPLE_PHYS_ADDR;
		return true;
	case DATA_PAGE_SIZE:
		recording->extra |= PERFRING_SAMPLE_ADDR | PERFRING_SAMPLE_DATA_PAGE_SIZE;
		return true;
	case CODE_PAGE_SIZE:
		recording->extra |= PERFRING_SAMPLE_CODE_PAGE_SIZE;
		return true;
	case 'W':
		recording->extra |= PERFRING_SAMPLE_WEIGHT;
		return true;
	case 'R':
		recording->raw = true;
		return true;
	case 'I':
		recording->interrupt_registers = true;
		return perfring_record_can_unwind();
	case USER_REGS:
		recording->user_registers = true;
		return perfring_record_can_unwind();
	case SAMPLE_CPU:
		recording->sample_cpu = true;
		return true;
	case SAMPLE_IDENTIFIER: /* as ever */
		return true;
	case 'k':
		return read_clock(recording, value);
	case SWITCH_EVENTS:
		recording->switches = true;
		return true;
	case NAMESPACES:
		recording->namespaces = true;
		return true;
	case ALL_CGROUPS:
		recording->cgroups = true;
		return true;
	case BUILD_ID_MMAP:
		recording->build_id_mmap = true;
		return true;
	case ALL_USER:
		recording->user_only = true;
		return true;
	case ALL_KERNEL:
		recording->kernel_only = true;
		return true;
	case FILTER:
		recording->filter = value;
		return true;
	case STRICT:
		recording->strict = true;
		return true;
	case 'a':
		recording->all = true;
		return true;
	case 'p':
		recording->pids = (char *)(uintptr_t)value;
		return true;
	case 't':
		recording->tids = (char *)(uintptr_t)value;
		return true;
	case 'G':
		recording->cgroup = value;
		return true;
	case 'C':
		recording->cpus = (char *)(uintptr_t)value;
		return true;
	case 'i':
		recording->inherit = false;
		return true;
	case PER_THREAD:
		recording->per_thread = true;
		return true;
	case 'D':
		if (!read_number(value, &number) || number > INT32_MAX)
			return false;
		recording->delay_ms = (int64_t)number;
		return true;
	case SOFT:
		recording->soft = true;
		return true;
	case 'm':
		return read_pages(value, &recording->pages);
	case 'o':
		recording->output = value;
		return *value;
	case DIRECTORY:
		recording->directory = true;
		return true;
	case 'z':
		recording->level = value ? atoi(value) : 1;
		return recording->level >= 1 && recording->level <= 22;
	case SNAPSHOT:
		recording->snapshots = true;
		return true;
	case SWITCH_OUTPUT:
		return read_switch(recording, value);
	case MAX_SIZE:
		return read_size(value, 1, &recording->most_bytes);
	case 'B':
		recording->no_build_ids = true;
		return true;
	default:
		recording->quiet = true;
		return true;
	}
}

static bool contradict(const char *text)
{
	perfring_tool_complain("record: %s", text);
	return false;
}

static bool is_sound(const struct recording *recording)
{
	bool has_threads = recording->pids || recording->tids;

	if (recording->frequency && recording->period)
		return contradict("-F and -c exclude one another");
	if (recording->all && has_threads)
		return contradict("-a and -p or -t exclude one another");
	if (!recording->all && !has_threads && !recording->command && !recording->cgroup)
		return contradict("whom? name a COMMAND, -a, -p PID or -t TID (perfring record --help)");
	if (recording->soft && (!recording->command || recording->all || has_threads || recording->cpus ||
				recording->cgroup || recording->per_thread))
		return contradict("--soft observes a COMMAND, and no -a, -p, -t, -G or -C");
	if (recording->soft &&
	    (recording->snapshots || recording->switched || recording->has_clockid || recording->delay_ms))
		return contradict("--soft does not go with --snapshot, --switch-output, -k or -D");
	if (recording->per_thread && (recording->all || recording->cpus || recording->cgroup))
		return contradict("--per-thread and -a, -C or -G exclude one another");
	if (recording->cgroup && (has_threads || recording->per_thread))
		return contradict("-G and -p or -t exclude one another");
	if (recording->user_only && recording->kernel_only)
		return contradict("--all-user and --all-kernel exclude one another");
	if (recording->snapshots && recording->switched)
		return contradict("--snapshot and --switch-output exclude one another");
	if ((recording->snapshots || recording->switched) && !strcmp(recording->output, "-"))
		return contradict("several files do not go to standard output");
	if (recording->directory && (recording->soft || recording->snapshots || !strcmp(recording->output, "-")))
		return contradict("--directory does not go with --soft, --snapshot or -o -");
	return true;
}

static void complain_value(const struct option *options, int found, const char *value)
{
	char name[64];

	snprintf(name, sizeof(name), "-%c", found);
	for (; found >= SOFT && options->name; options++)
		if (options->val == found)
			snprintf(name, sizeof(name), "--%s", options->name);
	perfring_tool_complain("record: %s does not take '%s' (perfring record --help)", name, value ? value : "");
}

/* Returns -1 to go on, else the exit status. */
static int read_options(struct recording *recording, int argc, char **argv)
{
	static const struct option LONG[] = {
		{"event", required_argument, NULL, 'e'},
		{"filter", required_argument, NULL, FILTER},
		{"freq", required_argument, NULL, 'F'},
		{"count", required_argument, NULL, 'c'},
		{"all-user", no_argument, NULL, ALL_USER},
		{"all-kernel", no_argument, NULL, ALL_KERNEL},
		{"strict", no_argument, NULL, STRICT},
		{"call-graph", required_argument, NULL, CALL_GRAPH},
		{"data", no_argument, NULL, 'd'},
		{"phys-data", no_argument, NULL, PHYS_DATA},
		{"data-page-size", no_argument, NULL, DATA_PAGE_SIZE},
		{"code-page-size", no_argument, NULL, CODE_PAGE_SIZE},
		{"weight", no_argument, NULL, 'W'},
		{"raw-samples", no_argument, NULL, 'R'},
		{"intr-regs", no_argument, NULL, 'I'},
		{"user-regs", no_argument, NULL, USER_REGS},
		{"sample-cpu", no_argument, NULL, SAMPLE_CPU},
		{"sample-identifier", no_argument, NULL, SAMPLE_IDENTIFIER},
		{"clockid", required_argument, NULL, 'k'},
		{"switch-events", no_argument, NULL, SWITCH_EVENTS},
		{"namespaces", no_argument, NULL, NAMESPACES},
		{"all-cgroups", no_argument, NULL, ALL_CGROUPS},
		{"buildid-mmap", no_argument, NULL, BUILD_ID_MMAP},
		{"all-cpus", no_argument, NULL, 'a'},
		{"pid", required_argument, NULL, 'p'},
		{"tid", required_argument, NULL, 't'},
		{"cgroup", required_argument, NULL, 'G'},
		{"cpu", required_argument, NULL, 'C'},
		{"no-inherit", no_argument, NULL, 'i'},
		{"per-thread", no_argument, NULL, PER_THREAD},
		{"delay", required_argument, NULL, 'D'},
		{"soft", no_argument, NULL, SOFT},
		{"output", required_argument, NULL, 'o'},
		{"directory", no_argument, NULL, DIRECTORY},
		{"compression-level", optional_argument, NULL, 'z'},
		{"snapshot", no_argument, NULL, SNAPSHOT},
		{"overwrite", no_argument, NULL, SNAPSHOT},
		{"switch-output", optional_argument, NULL, SWITCH_OUTPUT},
		{"max-size", required_argument, NULL, MAX_SIZE},
		{"mmap-pages", required_argument, NULL, 'm'},
		{"no-buildid", no_argument, NULL, 'B'},
		{"quiet", no_argument, NULL, 'q'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	int found;

	recording->output = "perf.data";
	recording->inherit = true;
	recording->arguments = argv;
	while ((found = getopt_long(argc, argv, "+:e:F:c:gdWRIk:ap:t:G:C:iD:m:o:z::Bqh", LONG, NULL)) != -1) {
		switch (found) {
		case 'e':
			if (!perfring_record_add_events(recording, optarg))
				return PERFRING_TOOL_MISUSED;
			break;
		case 'h':
			help(stdout);
			return perfring_tool_flush() ? PERFRING_TOOL_DONE : PERFRING_TOOL_FAILED;
		case '?':
		case ':':
			return perfring_tool_misused(found, argv);
		default:
			if (read_option(recording, found, optarg))
				break;
			complain_value(LONG, found, optarg);
			return PERFRING_TOOL_MISUSED;
		}
	}
	if (optind < argc)
		recording->command = argv + optind;
	if (recording->cpus && !recording->command && !recording->pids && !recording->tids && !recording->cgroup)
		recording->all = true;
	if (!is_sound(recording))
		return PERFRING_TOOL_MISUSED;
	if (!recording->event_count &&
	    !perfring_record_add_events(recording, recording->soft ? "task-clock" : "cycles"))
		return PERFRING_TOOL_FAILED;
	if (recording->soft && !perfring_record_is_soft(recording)) {
		perfring_tool_complain(
			"record: --soft: a process samples its task-clock or its cpu-clock, nothing else");
		return PERFRING_TOOL_MISUSED;
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
	return (recording->switch_bytes && perfring_data_size(recording->writer) >= recording->switch_bytes) ||
	       (recording->switch_ms && perfring_tool_now() - recording->opened >= recording->switch_ms * NS_PER_MS);
}

static int enable(struct recording *recording)
{
	int ret = perfring_session_enable(recording->session);

	return !ret && recording->side ? perfring_session_enable(recording->side) : ret;
}

static bool start(struct recording *recording)
{
	bool by_exec = perfring_record_observes_command(recording) && !recording->delay_ms;
	int ret = by_exec || recording->delay_ms ? 0 : enable(recording);

	if (!ret && recording->command) {
		ret = perfring_command_release(&recording->child);
		if (ret) {
			perfring_tool_complain("record: %s: %s", recording->command[0], strerror(-ret));
			return false;
		}
	}
	if (!ret && recording->delay_ms) {
		struct pollfd signals = {.fd = recording->signals, .events = POLLIN};

		poll(&signals, 1, (int)recording->delay_ms);
		ret = enable(recording);
	}
	if (ret)
		perfring_tool_complain("record: enabling the events: %s", strerror(-ret));
	return !ret;
}

static bool serve(struct recording *recording, enum asked asked)
{
	bool good;

	if (recording->soft)
		perfring_peers_serve(recording->peers);
	perfring_session_wait(recording->snapshots ? recording->side : recording->session, 0);
	good = perfring_record_write_round(recording);
	if (recording->soft)
		perfring_peers_sweep(recording->peers);
	if (good && asked == SWITCH && recording->snapshots)
		good = perfring_record_snapshot(recording, false);
	else if (good && recording->switched && (asked == SWITCH || is_full(recording)))
		good = perfring_record_switch_file(recording);
	return good;
}

static bool run(struct recording *recording)
{
	struct perfring_session *session = recording->snapshots ? recording->side : recording->session;
	struct pollfd ready[3] = {
		{.fd = perfring_session_fd(session), .events = POLLIN},
		{.fd = recording->signals, .events = POLLIN},
		{.fd = recording->soft ? perfring_peers_fd(recording->peers) : -1, .events = POLLIN},
	};
	enum asked asked;
	bool good = start(recording);

	if (!good)
		return false;
	while (good && (asked = take_signals(recording)) != END && !perfring_session_is_over(recording->session)) {
		/* Under a flood the rings are kept as empty as they can be, not half full: that is for when we are held up. */
		poll(ready, 3, recording->is_pressed ? 0 : recording->soft ? SOFT_ROUND_MS : ROUND_MS);
		good = serve(recording, asked);
		if (recording->most_bytes && recording->writer &&
		    perfring_data_size(recording->writer) >= recording->most_bytes) {
			perfring_tool_complain("record: %s: --max-size is reached: the recording ends here",
					       recording->path);
			break;
		}
	}
	perfring_session_disable(recording->session);
	if (recording->side)
		perfring_session_disable(recording->side);
	/* All that has come: threads wait for nothing once they have sent their rings. */
	for (int i = 0; good && recording->soft && i < SOFT_LAST_ROUNDS && perfring_peers_serve(recording->peers); i++)
		;
	if (good && recording->snapshots)
		return perfring_record_snapshot(recording, true);
	if (good) {
		perfring_session_flush(recording->session);
		good = perfring_record_write_round(recording);
	}
	return good;
}

static void tell(const struct recording *recording)
{
	struct perfring_totals totals;
	uint64_t lost;

	if (recording->quiet)
		return;
	/* What the rings lost, what the PMU lost, and what found no room in the file. */
	perfring_session_totals(recording->session, &totals);
	lost = (totals.lost > recording->lost ? totals.lost : recording->lost) + totals.lost_samples;
	if (!recording->snapshots)
		lost += totals.records - recording->kept_records;
	fprintf(stderr,
		"[ perfring record: %" PRIu64 " samples, %" PRIu64 " bytes in %s; lost %" PRIu64 ", throttled %" PRIu64
		" times",
		recording->kept_samples, recording->kept_bytes, recording->is_stream ? "a stream" : recording->path,
		lost, totals.throttles);
	if (recording->files > 1)
		fprintf(stderr, "; files: %u", recording->files);
	if (recording->soft)
		fprintf(stderr, "; processes: %" PRIu64, perfring_peers_count(recording->peers));
	fputs(" ]\n", stderr);
	if (totals.corrupt)
		perfring_tool_complain("record: rings were corrupt %" PRIu64 " times: %" PRIu64 " bytes given up",
				       totals.corrupt, totals.skipped);
}

static bool open_signals(struct recording *recording, sigset_t *before)
{
	/* A full disk, a file limit or a stream that nobody reads is told by the write. */
	signal(SIGXFSZ, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	return perfring_tool_open_signals(&recording->signals,
					  recording->snapshots || recording->switched ? SIGUSR2 : 0, before);
}

static int end_command(struct recording *recording)
{
	/* Never released: close kills it. */
	if (recording->child.fd >= 0) {
		perfring_command_close(&recording->child);
		return PERFRING_TOOL_FAILED;
	}
	if (!recording->child_ended) {
		kill(recording->child.pid, SIGTERM);
		while (waitpid(recording->child.pid, &recording->child_status, 0) < 0 && errno == EINTR)
			;
	}
	return WIFSIGNALED(recording->child_status) ? 128 + WTERMSIG(recording->child_status)
						    : WEXITSTATUS(recording->child_status);
}

int perfring_tool_record(int argc, char **argv)
{
	struct recording recording = {.file = -1, .folder = -1, .keep_file = -1, .signals = -1, .child = {.fd = -1}};
	int status = read_options(&recording, argc, argv);
	sigset_t before;
	bool good, masked = false;

	if (status >= 0)
		goto out;
	status = PERFRING_TOOL_FAILED;
	perfring_record_choose_soft(&recording);
	good = recording.soft ? perfring_record_open_soft(&recording) : perfring_record_choose_target(&recording);
	if (good)
		good = masked = open_signals(&recording, &before);
	good = good && (recording.soft || perfring_record_open_events(&recording)) &&
	       perfring_record_open_file(&recording);
	if (good) {
		good = run(&recording);
		if (!recording.snapshots && recording.writer)
			good = perfring_record_finish_file(&recording) && good;
		if (good && recording.soft && !perfring_peers_count(recording.peers))
			perfring_tool_complain("record: --soft: nobody took part: is the command linked statically or "
					       "with AddressSanitizer, "
					       "is it set-user-id, or " SOFT_OBJECT " not installed?");
		if (recording.writer)
			tell(&recording);
	}
	if (masked) {
		/* The file is closed: a second ^C ends the wait for a command that does not mind the first. */
		take_signals(&recording);
		sigprocmask(SIG_SETMASK, &before, NULL);
	}
	/* Processes of the command that still come are refused at once; what they have mapped stays theirs. */
	perfring_session_close(recording.session);
	perfring_session_close(recording.side);
	perfring_peers_close(recording.peers);
	recording.session = recording.side = NULL;
	recording.peers = NULL;
	if (recording.child.pid)
		status = end_command(&recording);
	else if (good)
		status = PERFRING_TOOL_DONE;
	if (!good)
		status = PERFRING_TOOL_FAILED;
out:
	perfring_record_close_file(&recording);
	perfring_data_writer_close(recording.keep);
	if (recording.keep_file >= 0)
		close(recording.keep_file);
	perfring_session_close(recording.session);
	perfring_session_close(recording.side);
	perfring_peers_close(recording.peers);
	perfring_target_close(recording.target);
	perfring_events_close(recording.names);
	if (recording.signals >= 0)
		close(recording.signals);
	free(recording.events);
	free(recording.told);
	return status;
}
