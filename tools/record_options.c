/* record_options.c - the command line of `perfring record`. */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "options.h"
#include "record_command.h"

enum {
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
	CONTROL,
};

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
		good = tool_record_read_call_graph(recording, value);
		break;
	case 'b':
		good = tool_record_read_branches(recording, "any");
		break;
	case 'j':
		good = tool_record_read_branches(recording, value);
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
		good = tool_record_read_clock(recording, value);
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
		good = tool_record_read_delay(recording, value);
		break;
	case CONTROL:
		recording->control_text = value;
		good = tool_record_is_control(value);
		break;
	case SOFT:
		recording->soft = true;
		break;
	case 'm':
		good = tool_record_read_pages(recording, value);
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
		good = tool_record_read_switch(recording, value);
		break;
	case MAX_SIZE:
		good = tool_record_read_size(value, 1, &recording->most_bytes);
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
int tool_record_read_options(struct recording *recording, int argc, char **argv)
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
	if (!tool_record_take_overwrite(recording) || !is_sound(recording))
		return TOOL_MISUSED;
	if (!recording->event_count && !tool_record_add_events(recording, recording->soft ? "task-clock" : "cycles"))
		return TOOL_FAILED;
	if (recording->soft && !tool_record_is_soft(recording)) {
		tool_complain("record: --soft: a process samples its task-clock or its cpu-clock, nothing else");
		return TOOL_MISUSED;
	}
	return -1;
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
	{'b', "branch-any", .help = "the last branches taken, where the PMU keeps them"},
	{'j', "branch-filter", .value = "KIND[,KIND]", .takes = "kinds of branches, such as any_call,u",
	 .help = "the last branches of these kinds: any any_call any_ret ind_call ind_jmp call cond in_tx no_tx abort_tx "
		 "stack, u k hv for where, and save_type, priv, counter"},
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
	{'D', "delay", .value = "MS|RANGES", .takes = "a number of ms, -1, or ranges of ms such as 10-20,30-40",
	 .help = "begin MS milliseconds after the start of COMMAND; -1: when --control says so; A-B,C-D: only in these "
		 "milliseconds"},
	{CONTROL, "control", .value = "fd:N[,N]|fifo:PATH[,PATH]", .takes = "fd:N, fd:N,N, fifo:PATH or fifo:PATH,PATH",
	 .help = "take commands, one a line, from the first descriptor or FIFO: enable [EVENT], disable [EVENT], "
		 "snapshot, evlist [-v|-g|-F], ping, stop; each is answered on the second by 'ack'"},
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
	.run = tool_record_run,
};
