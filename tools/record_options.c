/* record_options.c - the command line of `perfring record`.
 *
 * tool_record_read_options: parses the rows of record_rows.c into struct recording, then checks what options require or exclude
 * of one another.  Values are read by record_values.c.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "record_command.h"
#include "record_rows.h"
#include "observed.h"

/* As perf: these PMUs report more than one weight. */
#if defined(__x86_64__) || defined(__i386__) || defined(__powerpc__)
#define WEIGHT PERFRING_SAMPLE_WEIGHT_STRUCT
#else
#define WEIGHT PERFRING_SAMPLE_WEIGHT
#endif

/* Returns -1 to go on, else the exit status. */
static int read_option(struct recording *recording, const struct tool_options *options, int found)
{
	char *value = options->value;
	uint64_t *registers;
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
		recording->callchain = recording->callchain ? recording->callchain : "fp";
		break;
	case CALL_GRAPH:
		good = tool_record_read_call_graph(recording, value);
		break;
	case UNWIND:
		recording->unwinds = true;
		break;
	case MAX_STACK:
		recording->max_stack = (uint16_t)options->number;
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
		recording->extra |= WEIGHT;
		break;
	case TRANSACTION:
		recording->extra |= PERFRING_SAMPLE_TRANSACTION;
		break;
	case 'P':
		recording->periods = true;
		break;
	case 's':
		recording->thread_stats = true;
		break;
	case RUNNING_TIME:
		recording->running_times = true;
		break;
	case 'n':
		recording->no_samples = true;
		break;
	case KERNEL_CHAINS:
		recording->kernel_chains = true;
		break;
	case USER_CHAINS:
		recording->user_chains = true;
		break;
	case NO_BPF_EVENT:
		recording->no_bpf = true;
		break;
	case GROUP:
		recording->grouped = true;
		break;
	case EXCLUDE_PERF:
		if (!tool_record_exclude_own(recording))
			return TOOL_MISUSED;
		break;
	case STRICT_FREQ:
		recording->strict_rate = true;
		break;
	case BUILDID_ALL:
		recording->all_build_ids = true;
		break;
	case PROC_MAP_TIMEOUT:
		recording->maps_ms = (uint32_t)options->number;
		break;
	case SYNTH:
		good = tool_record_read_synthesis(value, &recording->synthesis);
		break;
	case TAIL_SYNTHESIZE:
		recording->tail = true;
		break;
	case TIMESTAMP_FILENAME:
		recording->stamped = true;
		break;
	case SWITCH_MAX_FILES:
		recording->most_files = (uint32_t)options->number;
		break;
	case THREADS:
		recording->directory = true;
		good = !value || tool_record_is_threads(value);
		break;
	case DRY_RUN:
		recording->dry = true;
		break;
	case 'r':
		recording->real_time = (int)options->number;
		break;
	case 'u':
		recording->user = value;
		break;
	case 'v':
		recording->verbose = true;
		break;
	/* what is so anyway */
	case 'T':
	case 'N':
	case TIMESTAMP_BOUNDARY:
	case NUM_THREAD_SYNTHESIZE:
		break;
	case 'R':
		recording->raw = true;
		break;
	case 'I':
	case USER_REGS:
		if (value && !strcmp(value, "?")) {
			tool_record_list_registers(found == 'I');
			return tool_flush() ? TOOL_DONE : TOOL_FAILED;
		}
		registers = found == 'I' ? &recording->interrupt_registers : &recording->user_registers;
		good = tool_record_read_registers(value, registers);
		if (good && !tool_record_can_sample(*registers, found == 'I'))
			return TOOL_MISUSED;
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
	case OFF_CPU:
		recording->off_cpu = true;
		recording->is_waits_given = value;
		recording->waits_ms = value ? (uint32_t)options->number : SOFT_WAITS_MS;
		break;
	case WAKERS:
		recording->switches = recording->off_cpu = recording->wakers = true;
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
		recording->cgroup = tool_target_cgroups_join(recording->cgroup, value);
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
		recording->snapshots = recording->any_snapshots = true;
		good = !value || tool_record_read_aux_snapshot(recording, value);
		break;
	case OVERWRITE:
		recording->snapshots = true;
		break;
	case 'S':
		good = tool_record_read_aux_snapshot(recording, value);
		break;
	case SWITCH_OUTPUT:
		good = tool_record_read_switch(recording, value);
		break;
	case TRIGGER:
		good = tool_record_add_trigger(recording, value);
		break;
	case TRIGGER_PAUSE:
		good = tool_record_read_pause(recording, value);
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
	bool has_threads = recording->pids || recording->tids || recording->user;

	if (recording->level && !can_compress())
		return contradict("-z: this perfring was built without libzstd");
	if (recording->frequency && recording->period)
		return contradict("-F and -c exclude one another");
	if (recording->all && has_threads)
		return contradict("-a and -p, -t or -u exclude one another");
	if (recording->pids && recording->user)
		return contradict("-p and -u exclude one another");
	if (recording->kernel_chains && recording->user_chains)
		return contradict("--kernel-callchains and --user-callchains exclude one another");
	if (recording->unwinds && !tool_record_copies_stacks(recording))
		return contradict("--unwind is for --call-graph dwarf: the others copy no stack that could be unwound");
	if (recording->max_stack && !tool_record_has_chains(recording))
		return contradict("--max-stack bounds call chains, which no event has: add -g or --call-graph");
	if (recording->unwinds && recording->kernel_chains)
		return contradict("--unwind and --kernel-callchains exclude one another");
	if (recording->unwinds && recording->user_registers)
		return contradict("--unwind and --user-regs exclude one another: it keeps no registers");
	if (recording->unwinds && recording->snapshots)
		return contradict(
			"--unwind does not go with --snapshot or --overwrite: most of what rings hold is never written");
	if (recording->strict_rate && recording->frequency > tool_record_max_rate())
		return contradict("--strict-freq: -F is above kernel.perf_event_max_sample_rate");
	if (recording->most_files && (!recording->switched || recording->directory))
		return contradict("--switch-max-files goes with --switch-output, and not with --directory");
	if (recording->stamped && !strcmp(recording->output, "-"))
		return contradict("--timestamp-filename does not go with -o -");
	if (recording->cgroup && tool_target_cgroup_count(recording->cgroup) > recording->event_count)
		return contradict("-G has more cgroups than there are events: one for each event, or one for all");
	if (recording->soft && !recording->command)
		return contradict("--soft observes a COMMAND: name it");
	if (recording->soft && tool_record_not_soft(recording))
		return contradict(tool_record_not_soft(recording));
	if (recording->is_waits_given && !recording->soft)
		return contradict(
			"--off-cpu=MS goes with --soft: the kernel's switches are recorded however short they are");
	if (recording->per_thread && (recording->all || recording->cpus || recording->cgroup))
		return contradict("--per-thread and -a, -C or -G exclude one another");
	if (recording->cgroup && (has_threads || recording->per_thread))
		return contradict("-G and -p, -t or -u exclude one another");
	if (recording->cgroup && recording->command && !recording->all && !recording->cpus)
		return contradict("-G observes the members of a cgroup, not COMMAND: add -a to record them until "
				  "COMMAND ends");
	if (recording->user_only && recording->kernel_only)
		return contradict("--all-user and --all-kernel exclude one another");
	if (recording->snapshots && recording->switched)
		return contradict("--snapshot and --switch-output exclude one another");
	if ((recording->snapshots || recording->switched) && !strcmp(recording->output, "-"))
		return contradict("--snapshot and --switch-output do not write to standard output");
	if (recording->trigger_count && !recording->snapshots && !recording->aux_snapshots && !recording->switched)
		return contradict("--trigger goes with --snapshot, --overwrite, -S or --switch-output");
	if (recording->has_trigger_pause && !recording->trigger_count)
		return contradict("--trigger-pause goes with --trigger");
	if (tool_record_has_span_trigger(recording) && !recording->command)
		return contradict("--trigger span:NAME>TIME is of the processes of a COMMAND, which count their own spans: name one");
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
	recording->synthesis = SYNTHESIZE_ALL;
	recording->trigger_pause = 1000 * NS_PER_MS;
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
	/* As in perf and in perfring stat: without a target the whole system; with CPUs the COMMAND is not the target, its end is
	 * the end of the recording. */
	if ((recording->cpus || !recording->command) && !recording->pids && !recording->tids && !recording->user &&
	    !recording->cgroup && !recording->soft)
		recording->all = true;
	if (!recording->event_count && !tool_record_add_events(recording, recording->soft ? "task-clock" : "cycles"))
		return TOOL_FAILED;
	if (recording->off_cpu && !recording->soft && !tool_record_add_off_cpu(recording))
		return TOOL_FAILED;
	if (!tool_record_take_overwrite(recording) || !is_sound(recording))
		return TOOL_MISUSED;
	if (recording->grouped)
		tool_record_group(recording);
	if (recording->soft && !tool_record_is_soft(recording)) {
		tool_complain("record: --soft: a process samples its task-clock or its cpu-clock, nothing else");
		return TOOL_MISUSED;
	}
	return -1;
}
