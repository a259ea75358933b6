/* record_rows.c - the options of `perfring record` as help shows them, and those of perf's that it does not take.
 *
 * `struct tool_command` of record.  Options of perf's that are not taken have a row too, with what to use instead.
 */
#include "record_command.h"
#include "record_rows.h"

static const struct tool_option ROWS[] = {
	{.heading = "events"},
	{'e', "event", .value = "EVENT[,EVENT]", .takes = "events, as perfring list shows them",
	 .help = "perf's names (perfring list), modifiers and groups {EVENT,EVENT}:S (default: cycles; cpu-clock "
		 "where there is no hardware counter)"},
	{FILTER, "filter", .value = "FILTER", .takes = "a comparison of fields of a tracepoint, such as count > 1",
	 .help = "for the tracepoints of the -e before it; of several, all must hold"},
	{EXCLUDE_PERF, "exclude-perf", .help = "of the tracepoints of the -e before it not what perfring does"},
	{GROUP, "group", .help = "all events in one group"},
	{'F', "freq", .value = "HZ", .takes = "a number of samples a second, from 1 on, or max",
	 .help = "samples a second, or max (default: 4000; tracepoints, mem: every one)"},
	{'c', "count", .value = "PERIOD", .takes = "a number of occurrences", .min = 1, .max = UINT64_MAX,
	 .help = "one sample every PERIOD occurrences instead"},
	{STRICT_FREQ, "strict-freq", .help = "fail where the kernel does not sample as often as -F asks for"},
	{'n', "no-samples", .help = "no samples: only the records of tasks and mappings"},
	{ALL_USER, "all-user", .help = "user space only"},
	{ALL_KERNEL, "all-kernel", .help = "the kernel only"},
	{STRICT, "strict", .help = "fail instead of falling back"},
	{.heading = "fields of each sample"},
	{'g', NULL, .help = "call chains, by frame pointers"},
	{CALL_GRAPH, "call-graph", .value = "fp[,defer]|dwarf[,SIZE]|lbr",
	 .takes = "fp, fp,defer, lbr, or on x86-64 and aarch64 dwarf or dwarf,BYTES with at most 65528 bytes",
	 .help = "fp: the same; fp,defer: the user's part is taken when the thread returns to user space, once for all samples "
		 "of one stay in the kernel (Linux 6.19, else as fp); dwarf: registers and SIZE bytes of the user stack (default: 8192), for the program "
		 "that reads the file to unwind, and what -d adds; x86-64 and aarch64; with --soft and no SIZE nothing is copied: "
		 "the process unwinds its own stack; lbr: the user's part from the processor's record of "
		 "branches, where it keeps one"},
	{UNWIND, "unwind",
	 .help = "unwind the stacks of dwarf while recording: samples have call chains in place of registers and copies of the "
		 "stack, so that files are small with SIZE up to 65528; records of mappings have build ids, but of all processes"},
	{MAX_STACK, "max-stack", .value = "N", .takes = "a number of frames", .min = 1, .max = UINT16_MAX,
	 .help = "at most N frames of each call chain that the kernel writes, as the term max-stack=N of an event; at most "
		 "kernel.perf_event_max_stack, which is the default; of --call-graph dwarf it bounds the kernel's part"},
	{KERNEL_CHAINS, "kernel-callchains", .help = "of call chains the kernel's part alone"},
	{USER_CHAINS, "user-callchains", .help = "of call chains the user's part alone"},
	{'b', "branch-any", .help = "the last branches taken, where the PMU keeps them"},
	{'j', "branch-filter", .value = "KIND[,KIND]", .takes = "kinds of branches, such as any_call,u",
	 .help = "the last branches of these kinds: any any_call any_ret ind_call ind_jmp call cond in_tx no_tx abort_tx "
		 "stack, u k hv for where, and save_type, priv, counter"},
	{'d', "data", .help = "data addresses, and mappings of data"},
	{PHYS_DATA, "phys-data", .help = "physical addresses of the data"},
	{DATA_PAGE_SIZE, "data-page-size", .help = "the size of the page that the data address is in"},
	{CODE_PAGE_SIZE, "code-page-size", .help = "the size of the page that the instruction is in"},
	{'W', "weight", .help = "what the event cost, where the PMU reports it"},
	{TRANSACTION, "transaction", .help = "flags of hardware transactions, where the PMU reports them"},
	{'P', "period", .help = "the period (always with -F)"},
	{'T', "timestamp", .help = "accepted as by perf: samples always have the time"},
	{RUNNING_TIME, "running-time", .help = "how long the events were enabled and counting, in what :S reads"},
	{'R', "raw-samples", .help = "raw data"},
	{'I', "intr-regs", .value = "REG[,REG]", .is_optional = true,
	 .takes = "names of registers, or ? for their list",
	 .help = "registers at the interrupt, or these of them; ? lists their names; x86-64 and aarch64; XMM0 to XMM15 by name "
		 "alone, of a precise event (cycles:p) where the PMU has them"},
	{USER_REGS, "user-regs", .value = "REG[,REG]", .is_optional = true,
	 .takes = "names of registers, or ? for their list",
	 .help = "registers of user space, or these of them; x86-64 and aarch64"},
	{SAMPLE_CPU, "sample-cpu", .help = "the CPU (always with -a, -C, -G, and for tracepoints)"},
	{SAMPLE_IDENTIFIER, "sample-identifier", .help = "accepted as by perf, without an effect"},
	{'k', "clockid", .value = "CLOCK",
	 .takes = "monotonic, monotonic_raw, realtime, boottime, tai, or a clock's number",
	 .help = "monotonic, monotonic_raw, realtime, boottime, tai or a number"},
	{.heading = "side records"},
	{SWITCH_EVENTS, "switch-events", .help = "context switches"},
	{OFF_CPU, "off-cpu", .value = "MS", .is_optional = true, .takes = "a number of ms", .min = 0, .max = SOFT_WAITS_MAX,
	 .help = "where threads wait, too: each context switch with its call chain, from which export and flame make the event offcpu-time "
		 "(ns), and runqueue-time where a thread was ready.  With --soft: each wait of MS milliseconds (1 by default, 0: each) in "
		 "a blocking call of the C library, as a sample of offcpu-time with the caller's chain: sleeps, poll, select and epoll, "
		 "read, write, send, recv, accept and connect and what is like them, locks, conditions, semaphores, barriers and joins "
		 "of threads, wait for processes and for signals, syscall(SYS_futex).  Not in it: waits inside other functions, "
		 "as fgets and getaddrinfo; page faults; the time that a ready thread has no CPU; a wait that has not ended"},
	{WAKERS, "wakers",
	 .help = "--off-cpu, and who ended each wait, as its innermost frame: by the tracepoint sched:sched_waking, so threads alone that are "
		 "observed (all with -a)"},
	{NAMESPACES, "namespaces", .help = "namespaces of processes"},
	{ALL_CGROUPS, "all-cgroups", .help = "cgroups, and in each sample which one it was in"},
	{'s', "stat", .help = "the counts of each thread when it ends"},
	{NO_BPF_EVENT, "no-bpf-event", .help = "no names of BPF programs that are loaded meanwhile"},
	{SYNTH, "synth", .value = "no|all|task|mmap|cgroup[,...]", .takes = "no, all, or some of task, mmap and cgroup",
	 .help = "what is written of what runs already: the tasks, the tasks and their mappings, the cgroups (of "
		 "--all-cgroups), nothing, or all (default)"},
	{TAIL_SYNTHESIZE, "tail-synthesize", .help = "what runs already at the end of the file, as it is then"},
	{PROC_MAP_TIMEOUT, "proc-map-timeout", .value = "MS", .takes = "a number of ms", .min = 1, .max = UINT32_MAX,
	 .help = "at most MS milliseconds for the mappings of each process that runs already; the last record of a list "
		 "that is cut is marked as perf marks it"},
	{NUM_THREAD_SYNTHESIZE, "num-thread-synthesize", .value = "N", .takes = "a number of threads", .min = 1,
	 .max = UINT32_MAX, .help = "accepted as by perf: one thread does it"},
	{BUILD_ID_MMAP, "buildid-mmap", .help = "build ids in the records of mappings"},
	{.heading = "target"},
	{'a', "all-cpus", .help = "the whole system, until COMMAND ends or ^C (default without a target)"},
	{'p', "pid", .value = "PID[,PID]", .takes = "ids of processes, such as 12,345",
	 .help = "these processes with all their threads"},
	{'t', "tid", .value = "TID[,TID]", .takes = "ids of threads, such as 12,345", .help = "these threads"},
	{'u', "uid", .value = "USER", .takes = "a user's name or number",
	 .help = "the processes that USER runs now, and their children"},
	{'G', "cgroup", .value = "NAME[,NAME]", .takes = "names of cgroups",
	 .help = "members of this cgroup, named from its mount on (/ is all); of several names one for each event, "
		 "nothing between commas for the whole system; with a COMMAND add -a"},
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
	{TIMESTAMP_FILENAME, "timestamp-filename", .help = "write FILE.TIME"},
	{DIRECTORY, "directory",
	 .help = "FILE is a directory with a file for each ring, as perf record --threads writes it"},
	{THREADS, "threads", .value = "SPEC", .is_optional = true, .takes = "cpu, core, package, numa, or perf's masks",
	 .help = "the same: one thread reads all rings, however SPEC would have perf's threads share them"},
	{'z', "compression-level", .value = "N", .is_optional = true, .takes = "a level", .min = 1, .max = 22,
	 .help = "compress by zstd, 1 to 22 (default: 1)"},
	{SNAPSHOT, "snapshot", .value = "[e][SIZE]", .is_optional = true,
	 .takes = "e, a size such as 1M (B, K, M, G), or both",
	 .help = "with an event whose PMU has an AUX area -S; else --overwrite"},
	{OVERWRITE, "overwrite",
	 .help = "rings overwrite: SIGUSR2 writes what they hold into FILE.TIME, the end of the recording into FILE.  "
		 "Records of tasks and mappings are kept beside the rings: the last 4 to 8 MiB, and the state of the "
		 "processes then running"},
	{'S', "aux-snapshot", .value = "[e][SIZE]", .is_optional = true,
	 .takes = "e, a size such as 1M (B, K, M, G), or both",
	 .help = "AUX areas overwrite: SIGUSR2 writes the newest SIZE bytes of each into FILE (default: all), with e the end "
		 "of the recording, too"},
	{TRIGGER, "trigger", .value = "WHAT",
	 .takes = "psi:RESOURCE>TIME/TIME, EVENT>N/TIME, span:NAME>TIME or fifo:PATH (at most 16), with times such as 150ms",
	 .help = "do what SIGUSR2 does, by itself, when WHAT happens: psi:memory>150ms/1s: tasks waited for memory longer "
		 "than that in a second (cpu, memory, io or irq; with :full all tasks at once); page-faults>100000/1s: an event of the "
		 "target, counted every second; span:NAME>20ms: a span of COMMAND's processes lasts longer (perfring_soft_span_end); "
		 "fifo:PATH: a line is written into it"},
	{TRIGGER_PAUSE, "trigger-pause", .value = "TIME", .takes = "a time such as 500ms or 10s, or 0",
	 .help = "after a trigger the others are only counted for TIME (default: 1s)"},
	{SWITCH_OUTPUT, "switch-output", .value = "signal|SIZE|TIME", .is_optional = true,
	 .takes = "signal, a size such as 100M (B, K, M, G) or a time such as 30s (s, m, h)",
	 .help = "write FILE.TIME; begin a new file at SIGUSR2, after SIZE bytes (B, K, M, G) or after TIME (s, m, h)"},
	{SWITCH_MAX_FILES, "switch-max-files", .value = "N", .takes = "a number of files", .min = 1, .max = 1 << 20,
	 .help = "keep the last N of the files of --switch-output"},
	{MAX_SIZE, "max-size", .value = "SIZE", .takes = "a size such as 100M (B, K, M, G)",
	 .help = "end the recording at this size"},
	{'m', "mmap-pages", .value = "[PAGES][,AUX]",
	 .takes =
		 "a number of pages from 1 to 1048576, or a size such as 512K (B, K, M, G); of AUX areas another after a comma",
	 .help = "data pages of each ring, or a size with B, K, M, G, rounded up to the next power of two (default: "
		 "128); AUX: of each AUX area, for events whose PMU has one (default: 4M, or 128K where no more may be "
		 "locked)"},
	{'B', "no-buildid", .help = "no build ids of the objects that were hit"},
	{BUILDID_ALL, "buildid-all", .help = "build ids of all objects that were mapped, hit or not"},
	{'N', "no-buildid-cache", .help = "accepted as by perf: there is no cache"},
	{TIMESTAMP_BOUNDARY, "timestamp-boundary", .help = "accepted as by perf: every file has these times"},
	{'r', "realtime", .value = "N", .takes = "a priority", .min = 1, .max = 99,
	 .help = "read the rings with this SCHED_FIFO priority"},
	{DRY_RUN, "dry-run", .help = "look at the options and end"},
	{'v', "verbose", .help = "print the attr of each event as it was opened"},
	{'q', "quiet", .help = "print errors only"},
	{PERF_ONLY, "aux-sample", .value = "OPTIONS", .is_optional = true, .takes = "perf's options",
	 .refused = "pieces of AUX areas in samples are not recorded"},
	{PERF_ONLY, "aio", .value = "N", .is_optional = true, .takes = "a number",
	 .refused = "whole rings are written by one system call each; -m makes them larger where writing is slow"},
	{PERF_ONLY, "affinity", .value = "node|cpu", .takes = "node or cpu",
	 .refused = "one thread reads all rings; taskset says where it runs"},
	{PERF_ONLY, "mmap-flush", .value = "N", .takes = "a number",
	 .refused = "rings are read when they fill up or every half second"},
	{PERF_ONLY, "no-buffering", .refused = "rings are read when they fill up or every half second"},
	{PERF_ONLY, "switch-output-event", .value = "EVENT", .takes = "an event",
	 .refused = "send SIGUSR2, or the command snapshot of --control, when it happens"},
	{PERF_ONLY, "kcore", .refused = "the kernel's code is not copied; report names it by /proc/kallsyms"},
	{PERF_ONLY, "debuginfod", .value = "URLS", .is_optional = true, .takes = "URLs",
	 .refused = "a recording asks no server; debuginfod-find fetches what build ids name"},
	{PERF_ONLY, "clang-path", .value = "FILE", .takes = "a file's name",
	 .refused = "no BPF program is compiled here"},
	{PERF_ONLY, "clang-opt", .value = "OPTIONS", .takes = "options", .refused = "no BPF program is compiled here"},
	{PERF_ONLY, "vmlinux", .value = "FILE", .takes = "a file's name",
	 .refused = "it is for probes in BPF programs, which are not compiled here"},
	TOOL_OPTIONS_END,
};

static const struct tool_example EXAMPLES[] = {
	{"A program with its call chains, and where its time went:", "perfring record -g ./program\nperfring report"},
	{"The same of a program without frame pointers, into a small file:",
	 "perfring record --call-graph dwarf,65528 --unwind ./program"},
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
