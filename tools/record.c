/* record.c - `perfring record`: observes a command, threads or the system into a perf.data file. */
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <perfring/data.h>
#include <perfring/session.h>
#include "soft.h"
#include "tools.h"

enum {
	DEFAULT_FREQUENCY = 4000,
	/* How long records may lie in a quiet ring before they are in the file, where a kill cannot lose them. */
	ROUND_MS = 500,

	SOFT = 0x100, /* options without a letter */
};

struct recorded_event {
	struct perf_event_attr attr;
	char name[256];
};

struct recording {
	const char *output;
	struct recorded_event *events;
	uint32_t event_count;
	uint64_t frequency; /* 0: not asked for */
	uint64_t period;    /* 0: not asked for */
	bool callchain;
	bool all;
	bool inherit;
	bool soft; /* the command's processes raise the events themselves */
	char *pids, *tids, *cpus;
	uint32_t pages;
	char **command;

	struct perfring_target *target;
	struct perfring_session *session;
	struct perfring_peers *peers; /* when soft */
	uint64_t settled;             /* ms: when the file's last round was */
	struct perfring_command child;
	struct perfring_data_writer *writer;
	int file;
	int signals;
	bool child_ended;
	int child_status;
	uint64_t kept_records; /* that are in the file */
	uint64_t kept_samples;
};

static void help(FILE *out)
{
	fputs("usage: perfring record [OPTIONS] [--] [COMMAND...]\n"
	      "\n"
	      "Observes COMMAND and its children, a process, threads or the whole system, and writes perf.data.\n"
	      "\n"
	      "  -e, --event=EVENT[,EVENT]  what to sample: cycles, cpu-clock, page-faults, context-switches ..., "
	      "rNNN,\n"
	      "                             SUBSYSTEM:NAME tracepoints, mem:ADDR[/LEN][:rwx]; modifiers :u :k :h :p\n"
	      "                             (default: cycles; cpu-clock where there is no hardware counter)\n"
	      "  -F, --freq=HZ              samples a second, or max (default: 4000; tracepoints and mem: every one)\n"
	      "  -c, --count=PERIOD         one sample every PERIOD occurrences instead\n"
	      "  -g                         call chains, by frame pointers\n"
	      "  -a, --all-cpus             the whole system, until COMMAND ends or ^C\n"
	      "  -p, --pid=PID[,PID]        these processes with all their threads\n"
	      "  -t, --tid=TID[,TID]        these threads\n"
	      "  -C, --cpu=LIST             only on these CPUs, as in 0-3,6\n"
	      "  -i, --no-inherit           not the children\n"
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
	      "  -m, --mmap-pages=PAGES     data pages of each ring, a power of two, or a size with B, K, M, G "
	      "(default: 128)\n"
	      "  -o, --output=FILE          (default: perf.data; a FILE that is there becomes FILE.old)\n"
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

static bool read_pages(const char *text, uint32_t *pages)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), number, unit = page;
	char *end;

	errno = 0;
	number = strtoull(text, &end, 10);
	if (*text < '0' || *text > '9' || errno)
		return false;
	switch (*end) {
	case 'B':
		unit = 1;
		break;
	case 'K':
		unit = 1 << 10;
		break;
	case 'M':
		unit = 1 << 20;
		break;
	case 'G':
		unit = 1 << 30;
		break;
	case 0:
		break;
	default:
		return false;
	}
	if ((*end && end[1]) || number == 0 || number > (UINT64_C(1) << 40) / unit)
		return false;
	number = (number * unit + page - 1) / page;
	*pages = 1;
	while (*pages < number && *pages < 1u << 20)
		*pages *= 2;
	return *pages >= number;
}

static bool add_events(struct recording *recording, char *list)
{
	char *rest = list, *name;

	while ((name = strsep(&rest, ","))) {
		struct perfring_fault fault = {0, "unknown event"};
		struct recorded_event *event;

		recording->events =
			perfring_tool_room(recording->events, recording->event_count + 1, sizeof(*recording->events));
		event = &recording->events[recording->event_count++];
		memset(event, 0, sizeof(*event));
		event->attr.size = sizeof(event->attr);
		if (perfring_event_parse(name, &event->attr, &fault)) {
			perfring_tool_complain("record: event '%s': at %" PRId64 ": %s", name, fault.at, fault.what);
			return false;
		}
	}
	return true;
}

/* Whether processes can raise it themselves: one clock. */
static bool is_soft(const struct recording *recording)
{
	const struct perf_event_attr *attr = &recording->events[0].attr;

	return recording->event_count == 1 && attr->type == PERFRING_TYPE_SOFTWARE && !attr->exclude_user &&
	       (attr->config == PERFRING_COUNT_SW_CPU_CLOCK || attr->config == PERFRING_COUNT_SW_TASK_CLOCK);
}

static uint64_t max_sample_rate(void)
{
	FILE *file = fopen("/proc/sys/kernel/perf_event_max_sample_rate", "re");
	uint64_t rate = UINT64_MAX;

	if (!file)
		return rate;
	if (fscanf(file, "%" SCNu64, &rate) != 1)
		rate = UINT64_MAX;
	fclose(file);
	return rate;
}

/* Returns -1 to go on, else the exit status. */
static int read_options(struct recording *recording, int argc, char **argv)
{
	static const struct option LONG[] = {
		{"event", required_argument, NULL, 'e'},
		{"freq", required_argument, NULL, 'F'},
		{"count", required_argument, NULL, 'c'},
		{"all-cpus", no_argument, NULL, 'a'},
		{"pid", required_argument, NULL, 'p'},
		{"tid", required_argument, NULL, 't'},
		{"cpu", required_argument, NULL, 'C'},
		{"no-inherit", no_argument, NULL, 'i'},
		{"soft", no_argument, NULL, SOFT},
		{"mmap-pages", required_argument, NULL, 'm'},
		{"output", required_argument, NULL, 'o'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	int found;

	recording->output = "perf.data";
	recording->inherit = true;
	while ((found = getopt_long(argc, argv, "+:e:F:c:gap:t:C:im:o:h", LONG, NULL)) != -1) {
		bool good = true;

		switch (found) {
		case 'e':
			if (!add_events(recording, optarg))
				return PERFRING_TOOL_MISUSED;
			break;
		case 'F':
			if (!strcmp(optarg, "max"))
				recording->frequency = max_sample_rate();
			else
				good = read_number(optarg, &recording->frequency) && recording->frequency;
			break;
		case 'c':
			good = read_number(optarg, &recording->period) && recording->period;
			break;
		case 'g':
			recording->callchain = true;
			break;
		case 'a':
			recording->all = true;
			break;
		case 'p':
			recording->pids = optarg;
			break;
		case 't':
			recording->tids = optarg;
			break;
		case 'C':
			recording->cpus = optarg;
			break;
		case 'i':
			recording->inherit = false;
			break;
		case SOFT:
			recording->soft = true;
			break;
		case 'm':
			good = read_pages(optarg, &recording->pages);
			break;
		case 'o':
			recording->output = optarg;
			break;
		case 'h':
			help(stdout);
			return PERFRING_TOOL_DONE;
		default:
			return perfring_tool_misused(found, argv);
		}
		if (!good) {
			perfring_tool_complain("record: -%c does not take '%s' (perfring record --help)", found,
					       optarg);
			return PERFRING_TOOL_MISUSED;
		}
	}
	if (optind < argc)
		recording->command = argv + optind;
	if (recording->frequency && recording->period) {
		perfring_tool_complain("record: -F and -c exclude one another");
		return PERFRING_TOOL_MISUSED;
	}
	if (recording->all && (recording->pids || recording->tids)) {
		perfring_tool_complain("record: -a and -p or -t exclude one another");
		return PERFRING_TOOL_MISUSED;
	}
	if (recording->cpus && !recording->command && !recording->pids && !recording->tids)
		recording->all = true;
	if (!recording->all && !recording->pids && !recording->tids && !recording->command) {
		perfring_tool_complain("record: whom? name a COMMAND, -a, -p PID or -t TID (perfring record --help)");
		return PERFRING_TOOL_MISUSED;
	}
	if (recording->soft &&
	    (!recording->command || recording->all || recording->pids || recording->tids || recording->cpus)) {
		perfring_tool_complain("record: --soft observes a COMMAND, and no -a, -p, -t or -C");
		return PERFRING_TOOL_MISUSED;
	}
	if (!recording->event_count) {
		char cycles[] = "cycles", clock[] = "task-clock";

		add_events(recording, recording->soft ? clock : cycles);
	}
	if (recording->soft && !is_soft(recording)) {
		perfring_tool_complain(
			"record: --soft: a process samples its task-clock or its cpu-clock, nothing else");
		return PERFRING_TOOL_MISUSED;
	}
	return -1;
}

/* ---- what to observe ---- */

static bool add_ids(struct recording *recording, char *list, int (*add)(struct perfring_target *, int32_t))
{
	char *rest = list, *word;

	while ((word = strsep(&rest, ","))) {
		uint64_t number;
		int ret;

		if (!read_number(word, &number) || number == 0 || number > INT32_MAX) {
			perfring_tool_complain("record: '%s' is not a process or thread id", word);
			return false;
		}
		ret = add(recording->target, (int32_t)number);
		if (ret) {
			perfring_tool_complain("record: %s: %s", word, strerror(-ret));
			return false;
		}
	}
	return true;
}

/* The command alone is observed when nobody else is named. */
static bool observes_command(const struct recording *recording)
{
	return recording->command && !recording->all && !recording->pids && !recording->tids;
}

static bool choose_target(struct recording *recording)
{
	int ret = perfring_target_open(&recording->target);

	if (!ret)
		ret = perfring_target_add_cpus(recording->target, recording->cpus);
	if (ret) {
		perfring_tool_complain("record: -C %s: %s", recording->cpus ? recording->cpus : "(all)",
				       ret == -EINVAL   ? "not a list of CPUs such as 0-3,6"
				       : ret == -ENODEV ? "not all of these CPUs are online"
							: strerror(-ret));
		return false;
	}
	if (recording->pids && !add_ids(recording, strdupa(recording->pids), perfring_target_add_process))
		return false;
	if (recording->tids && !add_ids(recording, strdupa(recording->tids), perfring_target_add_thread))
		return false;
	if (recording->command) {
		ret = perfring_command_open(&recording->child, recording->command);
		if (!ret && observes_command(recording))
			ret = perfring_target_add_thread(recording->target, recording->child.pid);
		if (ret)
			perfring_tool_complain("record: %s: %s", recording->command[0], strerror(-ret));
	}
	return !ret;
}

static bool is_every_one(const struct perf_event_attr *attr)
{
	return attr->type == PERFRING_TYPE_TRACEPOINT || attr->type == PERFRING_TYPE_BREAKPOINT ||
	       (attr->type == PERFRING_TYPE_SOFTWARE && attr->config == PERFRING_COUNT_SW_BPF_OUTPUT);
}

static void shape_attr(const struct recording *recording, struct perf_event_attr *attr, bool first)
{
	if (recording->period) {
		attr->sample_period = recording->period;
	} else if (!recording->frequency && is_every_one(attr)) {
		attr->sample_period = 1;
	} else {
		uint64_t rate = max_sample_rate();

		attr->freq = 1;
		attr->sample_freq = recording->frequency ? recording->frequency : DEFAULT_FREQUENCY;
		if (!recording->frequency && attr->sample_freq > rate) {
			perfring_tool_complain("record: %d Hz is above kernel.perf_event_max_sample_rate: %" PRIu64
					       " Hz instead",
					       DEFAULT_FREQUENCY, rate);
			attr->sample_freq = rate;
		}
	}
	attr->sample_type =
		PERFRING_SAMPLE_IDENTIFIER | PERFRING_SAMPLE_IP | PERFRING_SAMPLE_TID | PERFRING_SAMPLE_TIME;
	/* With PERIOD a software event samples each occurrence, whatever its period (ABI.md 9.2). */
	if (attr->freq || attr->sample_period == 1)
		attr->sample_type |= PERFRING_SAMPLE_PERIOD;
	if (recording->callchain)
		attr->sample_type |= PERFRING_SAMPLE_CALLCHAIN;
	if (recording->all || recording->cpus || attr->type == PERFRING_TYPE_TRACEPOINT)
		attr->sample_type |= PERFRING_SAMPLE_CPU;
	if (attr->type == PERFRING_TYPE_TRACEPOINT ||
	    (attr->type == PERFRING_TYPE_SOFTWARE && attr->config == PERFRING_COUNT_SW_BPF_OUTPUT))
		attr->sample_type |= PERFRING_SAMPLE_RAW;
	if (attr->type == PERFRING_TYPE_BREAKPOINT ||
	    (attr->type == PERFRING_TYPE_SOFTWARE &&
	     (attr->config == PERFRING_COUNT_SW_PAGE_FAULTS || attr->config == PERFRING_COUNT_SW_PAGE_FAULTS_MIN ||
	      attr->config == PERFRING_COUNT_SW_PAGE_FAULTS_MAJ)))
		attr->sample_type |= PERFRING_SAMPLE_ADDR;
	attr->read_format = PERFRING_FORMAT_ID | PERFRING_FORMAT_LOST;
	attr->sample_id_all = 1;
	attr->disabled = 1;
	attr->inherit = recording->inherit && !recording->all;
	attr->enable_on_exec = observes_command(recording);
	/* One event tells of tasks and mappings for all. */
	attr->mmap = attr->mmap2 = attr->comm = attr->comm_exec = attr->task = first;
}

/* Opens one event, stepping down where the kernel refuses: each step is told. */
static bool open_event(struct recording *recording, struct recorded_event *event)
{
	struct perf_event_attr *attr = &event->attr;
	int ret;

	for (;;) {
		ret = perfring_session_add(recording->session, attr, recording->target);
		if (ret >= 0)
			break;
		if (ret == -EINVAL && (attr->read_format & PERFRING_FORMAT_LOST)) {
			attr->read_format &= ~(uint64_t)PERFRING_FORMAT_LOST; /* before Linux 6.0 */
			continue;
		}
		if ((ret == -ENOENT || ret == -ENODEV || ret == -EOPNOTSUPP) && attr->type == PERFRING_TYPE_HARDWARE &&
		    attr->config == PERFRING_COUNT_HW_CPU_CYCLES) {
			perfring_tool_complain("record: cycles: no hardware counter here, sampling cpu-clock instead");
			attr->type = PERFRING_TYPE_SOFTWARE;
			attr->config = PERFRING_COUNT_SW_CPU_CLOCK;
			attr->precise_ip = 0;
			continue;
		}
		if ((ret == -EACCES || ret == -EPERM) && !attr->exclude_kernel && !recording->all &&
		    attr->type != PERFRING_TYPE_TRACEPOINT &&
		    strstr(perfring_session_refusal(recording->session), ":u")) {
			attr->exclude_kernel = 1;
			attr->exclude_hv = 1;
			perfring_tool_complain("record: not permitted to observe the kernel: user space only");
			continue;
		}
		perfring_tool_complain("record: %s", perfring_session_refusal(recording->session));
		return false;
	}
	perfring_event_name(attr, event->name, sizeof(event->name));
	return true;
}

static bool open_events(struct recording *recording)
{
	int ret = perfring_session_open(&recording->session, recording->pages);

	if (ret) {
		perfring_tool_complain("record: %s", strerror(-ret));
		return false;
	}
	for (uint32_t i = 0; i < recording->event_count; i++) {
		shape_attr(recording, &recording->events[i].attr, i == 0);
		if (!open_event(recording, &recording->events[i]))
			return false;
	}
	return true;
}

/* ---- a command that observes itself ---- */

/* perf_event_open is refused: the command can do without, if it is all there is to observe, and by clocks. */
static void choose_soft(struct recording *recording)
{
	struct perf_event_attr *attr = &recording->events[0].attr;

	if (recording->soft || recording->cpus || !observes_command(recording))
		return;
	if (recording->event_count == 1 && attr->type == PERFRING_TYPE_HARDWARE &&
	    attr->config == PERFRING_COUNT_HW_CPU_CYCLES && !attr->exclude_user) {
		if (!perfring_peers_are_needed())
			return;
		attr->type = PERFRING_TYPE_SOFTWARE;
		attr->config = PERFRING_COUNT_SW_TASK_CLOCK;
		attr->precise_ip = 0;
	} else if (!is_soft(recording) || !perfring_peers_are_needed()) {
		return;
	}
	recording->soft = true;
	perfring_tool_complain("record: perf_event_open is refused here: the command samples %s by itself (--soft)",
			       attr->config == PERFRING_COUNT_SW_TASK_CLOCK ? "its task-clock" : "its cpu-clock");
}

/* The session, who is to come into it, and the command that waits for its release. */
static bool open_soft(struct recording *recording)
{
	struct soft_answer answer = {.version = SOFT_VERSION, .pages = SOFT_PAGES, .observes = 1};
	struct recorded_event *event = &recording->events[0];
	struct perf_event_attr *attr = &event->attr;
	int ret;

	if (recording->pages)
		answer.pages = recording->pages;
	if (!recording->frequency && !recording->period)
		recording->frequency = SOFT_FREQUENCY;
	if (recording->frequency > SOFT_FREQUENCY_MAX) {
		perfring_tool_complain("record: --soft: %" PRIu64 " Hz is too much: %d Hz instead",
				       recording->frequency, SOFT_FREQUENCY_MAX);
		recording->frequency = SOFT_FREQUENCY_MAX;
	}
	shape_attr(recording, attr, true);
	attr->sample_type &= ~(uint64_t)PERFRING_SAMPLE_IDENTIFIER;
	attr->read_format = 0;
	attr->inherit = attr->enable_on_exec = attr->comm_exec = 0;
	attr->exclude_kernel = attr->exclude_hv = 1; /* as it is */
	perfring_attr_set_flag(attr, PERFRING_ATTR_FLAG_build_id, true);
	attr->use_clockid = 1;
	attr->clockid = CLOCK_MONOTONIC;
	perfring_event_name(attr, event->name, sizeof(event->name));
	answer.attr = *attr;
	ret = perfring_session_open(&recording->session, 0);
	if (!ret) {
		ret = perfring_session_describe(recording->session, attr, NULL, 0);
		ret = ret < 0 ? ret : 0;
	}
	if (ret) {
		perfring_tool_complain("record: --soft: %s", strerror(-ret));
		return false;
	}
	if (!perfring_peers_open(&recording->peers, recording->session, &answer))
		return false;
	ret = perfring_command_open(&recording->child, recording->command);
	if (ret)
		perfring_tool_complain("record: %s: %s", recording->command[0], strerror(-ret));
	else if (!recording->inherit)
		perfring_peers_only(recording->peers, recording->child.pid);
	return !ret;
}

/* ---- the file ---- */

static bool complain_file(const struct recording *recording, int ret)
{
	if (ret)
		perfring_tool_complain("record: %s: %s", recording->output, strerror(-ret));
	return !ret;
}

static bool open_file(struct recording *recording, char **argv)
{
	struct perfring_session_event opened;
	struct stat status;
	int ret = 0;

	if (!strcmp(recording->output, "-")) {
		perfring_tool_complain("record: -o -: a pipe cannot be written yet; name a file");
		return false;
	}
	if (!stat(recording->output, &status) && S_ISREG(status.st_mode) && status.st_size) {
		char *old = perfring_tool_room(NULL, strlen(recording->output) + sizeof(".old"), 1);

		sprintf(old, "%s.old", recording->output);
		ret = rename(recording->output, old) ? -errno : 0;
		free(old);
	}
	if (!ret)
		recording->file = open(recording->output, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (!ret && recording->file < 0)
		ret = -errno;
	if (!ret)
		ret = perfring_data_create(&recording->writer, recording->file);
	for (uint32_t i = 0; !ret && i < recording->event_count; i++) {
		int index = perfring_data_add_event(recording->writer, &recording->events[i].attr,
						    recording->events[i].name);

		ret = index < 0 ? index : 0;
	}
	for (uint32_t i = 0; !ret && perfring_session_event_at(recording->session, i, &opened); i++)
		ret = perfring_data_add_id(recording->writer, opened.event, opened.id);
	if (!ret)
		ret = perfring_data_describe(recording->writer, argv);
	if (!ret)
		ret = perfring_data_begin(recording->writer);
	return complain_file(recording, ret);
}

/* The process of a thread: mappings belong to that one.  0: it has gone. */
static int32_t process_of(const char *tid)
{
	char path[64], line[256];
	int32_t pid = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%.10s/status", tid);
	file = fopen(path, "re");
	while (file && !pid && fgets(line, sizeof(line), file))
		if (!strncmp(line, "Tgid:", 5))
			pid = (int32_t)strtol(line + 5, NULL, 10);
	if (file)
		fclose(file);
	return pid;
}

/* The state of what is observed, as it is before the first record. */
static bool write_state(struct recording *recording)
{
	char *rest, *word;
	int ret;

	if (recording->soft)
		return true; /* each process tells its own */
	ret = perfring_data_put_kernel(recording->writer);
	if (!ret && recording->all)
		ret = perfring_data_put_process(recording->writer, -1);
	if (!ret && observes_command(recording))
		ret = perfring_data_put_process(recording->writer, recording->child.pid);
	for (rest = recording->pids ? strdupa(recording->pids) : NULL; !ret && (word = strsep(&rest, ","));)
		ret = perfring_data_put_process(recording->writer, (int32_t)strtol(word, NULL, 10));
	for (rest = recording->tids ? strdupa(recording->tids) : NULL; !ret && (word = strsep(&rest, ","));) {
		int32_t pid = process_of(word);

		ret = pid ? perfring_data_put_process(recording->writer, pid) : 0;
	}
	return complain_file(recording, ret);
}

/* The rings of processes that observe themselves are read more often: those that are new have then been read by the time
 * when a round is settled. */
static bool is_settling(struct recording *recording)
{
	struct timespec now;
	uint64_t time;

	if (!recording->soft)
		return true;
	clock_gettime(CLOCK_MONOTONIC, &now);
	time = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
	if (time - recording->settled < SOFT_MARK_MS)
		return false;
	recording->settled = time;
	return true;
}

/* One round of all rings into the file. */
static bool write_round(struct recording *recording)
{
	struct perfring_span span;
	bool any = false;
	int ret = 0, one;

	while (!ret && (one = perfring_session_next_span(recording->session, &span))) {
		if (one < 0) {
			uint32_t ring;
			struct perfring_fault fault = perfring_session_fault(recording->session, &ring);

			perfring_tool_complain("record: ring %u is corrupt at %" PRId64 ": %s", ring, fault.at,
					       fault.what);
			continue;
		}
		any = true;
		ret = perfring_data_write(recording->writer, span.pieces, (int)span.count);
		if (ret)
			break;
		recording->kept_records += span.records;
		recording->kept_samples += span.samples;
	}
	if (!ret && any && is_settling(recording))
		ret = perfring_data_round(recording->writer);
	perfring_session_return(recording->session);
	if (ret)
		perfring_tool_complain("record: %s: at 0x%" PRIx64
				       ": %s: the recording ends here, what was written before "
				       "is kept",
				       recording->output, perfring_data_size(recording->writer), strerror(-ret));
	return !ret;
}

/* Of all their rings, in one. */
static int put_soft_lost(struct recording *recording, uint64_t last_time, uint64_t *lost)
{
	struct perfring_record record = {.type = PERFRING_RECORD_LOST_SAMPLES};

	*lost = perfring_peers_lost(recording->peers);
	if (!*lost)
		return 0;
	record.is.lost_samples.lost = *lost;
	record.trailer.time = last_time;
	return perfring_data_put(recording->writer, 0, &record);
}

/* What each fd lost, LOST records that never found room included: as LOST_SAMPLES, which perf adds up too. */
static bool write_lost(struct recording *recording, uint64_t last_time, uint64_t *lost)
{
	struct perfring_session_event opened;
	int ret = recording->soft ? put_soft_lost(recording, last_time, lost) : 0;

	for (uint32_t i = 0; !ret && perfring_session_event_at(recording->session, i, &opened); i++) {
		const struct perfring_format *format =
			perfring_format_set_at(perfring_session_formats(recording->session), opened.event);
		struct perfring_record record;
		struct perfring_read values;
		uint64_t room[8];

		if (!(format->read_format & PERFRING_FORMAT_LOST) ||
		    perfring_event_read(opened.fd, format, &values, room, sizeof(room)) ||
		    !perfring_read_lost(&values, 0))
			continue;
		*lost += perfring_read_lost(&values, 0);
		memset(&record, 0, sizeof(record));
		record.type = PERFRING_RECORD_LOST_SAMPLES;
		record.is.lost_samples.lost = perfring_read_lost(&values, 0);
		record.trailer.pid = record.trailer.tid = (uint32_t)opened.tid;
		record.trailer.time = last_time;
		record.trailer.cpu = (uint32_t)opened.cpu;
		record.trailer.id = record.trailer.stream_id = record.trailer.identifier = opened.id;
		ret = perfring_data_put(recording->writer, opened.event, &record);
	}
	return complain_file(recording, ret);
}

/* ---- running ---- */

/* Whether to go on.  SIGCHLD of the command ends the recording, as does ^C. */
static bool take_signals(struct recording *recording)
{
	struct signalfd_siginfo signal;
	bool go_on = true;

	while (read(recording->signals, &signal, sizeof(signal)) == (ssize_t)sizeof(signal)) {
		if (signal.ssi_signo != SIGCHLD)
			go_on = false;
		else if (recording->command && !recording->child_ended &&
			 waitpid(recording->child.pid, &recording->child_status, WNOHANG) == recording->child.pid) {
			recording->child_ended = true;
			go_on = false;
		}
	}
	return go_on;
}

static bool run(struct recording *recording)
{
	struct pollfd ready[3] = {
		{.fd = perfring_session_fd(recording->session), .events = POLLIN},
		{.fd = recording->signals, .events = POLLIN},
		{.fd = recording->soft ? perfring_peers_fd(recording->peers) : -1, .events = POLLIN},
	};
	bool good = true;
	int ret = 0;

	if (!observes_command(recording))
		ret = perfring_session_enable(recording->session);
	if (!ret && recording->command) {
		ret = perfring_command_release(&recording->child);
		if (ret) {
			perfring_tool_complain("record: %s: %s", recording->command[0], strerror(-ret));
			return false;
		}
	}
	if (ret) {
		perfring_tool_complain("record: enabling the events: %s", strerror(-ret));
		return false;
	}
	while (good && take_signals(recording) && !perfring_session_is_over(recording->session)) {
		poll(ready, 3, recording->soft ? SOFT_ROUND_MS : ROUND_MS);
		if (recording->soft)
			perfring_peers_serve(recording->peers);
		perfring_session_wait(recording->session, 0);
		good = write_round(recording);
		if (recording->soft)
			perfring_peers_sweep(recording->peers);
	}
	perfring_session_disable(recording->session);
	/* All that has come: threads wait for nothing once they have sent their rings. */
	for (int i = 0; good && recording->soft && i < SOFT_LAST_ROUNDS && perfring_peers_serve(recording->peers); i++)
		;
	if (good) {
		perfring_session_flush(recording->session);
		good = write_round(recording);
	}
	return good;
}

static void tell(const struct recording *recording, uint64_t unread_lost)
{
	struct perfring_totals totals;
	uint64_t lost;

	/* What the rings lost, what the PMU lost, and what found no room in the file. */
	perfring_session_totals(recording->session, &totals);
	lost = (totals.lost > unread_lost ? totals.lost : unread_lost) + totals.lost_samples;
	lost += totals.records - recording->kept_records;
	fprintf(stderr,
		"[ perfring record: %" PRIu64 " samples, %" PRIu64 " bytes in %s; lost %" PRIu64 ", throttled %" PRIu64
		" times",
		recording->kept_samples, perfring_data_size(recording->writer), recording->output, lost,
		totals.throttles);
	if (recording->soft)
		fprintf(stderr, "; processes: %" PRIu64, perfring_peers_count(recording->peers));
	fputs(" ]\n", stderr);
	if (totals.corrupt)
		perfring_tool_complain("record: rings were corrupt %" PRIu64 " times: %" PRIu64 " bytes given up",
				       totals.corrupt, totals.skipped);
}

/* Signals are taken from a descriptor, after the child was forked: it keeps what the shell gave us. */
static bool open_signals(struct recording *recording, sigset_t *before)
{
	struct sigaction hangup;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	/* Blocked signals come even when they are ignored: nohup's must not. */
	if (sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler != SIG_IGN)
		sigaddset(&set, SIGHUP);
	/* Ignored by who started us, the command's end would not be told. */
	signal(SIGCHLD, SIG_DFL);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, before);
	/* A full disk or a file limit is told by the write. */
	signal(SIGXFSZ, SIG_IGN);
	recording->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (recording->signals < 0)
		perfring_tool_complain("record: signalfd: %s", strerror(errno));
	return recording->signals >= 0;
}

static void raise_file_limit(void)
{
	struct rlimit limit;

	if (!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
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
	struct recording recording = {.file = -1, .signals = -1, .child = {.fd = -1}};
	int status = read_options(&recording, argc, argv);
	sigset_t before;
	bool good, masked = false;

	if (status >= 0)
		goto out;
	status = PERFRING_TOOL_FAILED;
	choose_soft(&recording);
	good = recording.soft ? open_soft(&recording) : choose_target(&recording);
	if (good) {
		raise_file_limit();
		good = masked = open_signals(&recording, &before);
	}
	good = good && (recording.soft || open_events(&recording)) && open_file(&recording, argv) &&
	       write_state(&recording);
	if (good) {
		struct perfring_totals totals;
		uint64_t lost = 0;

		good = run(&recording);
		perfring_session_totals(recording.session, &totals);
		good = (!good || write_lost(&recording, totals.last_time, &lost)) && good;
		if (totals.first_time)
			perfring_data_put_times(recording.writer, totals.first_time, totals.last_time);
		good = complain_file(&recording, perfring_data_finish(recording.writer)) && good;
		if (good && recording.soft && !perfring_peers_count(recording.peers))
			perfring_tool_complain("record: --soft: nobody took part: is the command linked statically or "
					       "with AddressSanitizer, "
					       "is it set-user-id, or " SOFT_OBJECT " not installed?");
		tell(&recording, lost);
	}
	if (masked) {
		/* The file is closed: a second ^C ends the wait for a command that does not mind the first. */
		take_signals(&recording);
		sigprocmask(SIG_SETMASK, &before, NULL);
	}
	/* Processes of the command that still come are refused at once; what they have mapped stays theirs. */
	perfring_session_close(recording.session);
	perfring_peers_close(recording.peers);
	recording.session = NULL;
	recording.peers = NULL;
	if (recording.child.pid)
		status = end_command(&recording);
	else if (good)
		status = PERFRING_TOOL_DONE;
	if (!good)
		status = PERFRING_TOOL_FAILED;
out:
	if (recording.writer)
		perfring_data_writer_close(recording.writer);
	perfring_session_close(recording.session);
	perfring_peers_close(recording.peers);
	perfring_target_close(recording.target);
	if (recording.file >= 0)
		close(recording.file);
	if (recording.signals >= 0)
		close(recording.signals);
	free(recording.events);
	return status;
}
