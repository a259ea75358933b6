/* kernel_rig.h - recordings of this kernel's events: opened, read, decoded, and written again byte for byte. */
#ifndef KERNEL_RIG_H
#define KERNEL_RIG_H

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>
#include <linux/bpf.h>
#include <perfring/check.h>
#include <perfring/reader.h>
#include <perfring/record.h>
#include <perfring/sample.h>
#include "test.h"

/* Events may signal.  Criterion says that a signal came and not which: once one ended breakpoint_read_formats under the
 * address sanitizer, and nothing was known of it. */
static inline void name_signal(int number, siginfo_t *info, void *context)
{
	char text[128];
	int length = snprintf(text, sizeof(text), "signal %d, code %d, of pid %d, address %p\n", number, info->si_code,
			      info->si_code > 0 ? 0 : (int)info->si_pid, info->si_code > 0 ? info->si_addr : NULL);

	(void)context;
	if (write(2, text, (size_t)length) < 0)
		_exit(1);
	raise(number); /* SA_RESETHAND: it ends the test as it would have without this handler */
}

__attribute__((constructor)) static void name_signals(void)
{
	static const int numbers[] = {SIGTRAP, SIGIO,   SIGALRM, SIGVTALRM, SIGPROF,
				      SIGXCPU, SIGUSR1, SIGUSR2, SIGHUP,    SIGPIPE};
	struct sigaction action = {.sa_sigaction = name_signal, .sa_flags = SA_SIGINFO | (int)SA_RESETHAND};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		sigaction(numbers[i], &action, NULL);
}

enum {
	TIMES = 16,  /* occurrences in each recording */
	PAGES = 64,  /* of each ring */
	PAGE = 4096, /* pin looks */
	MARK = 64,
	STACK = 1024,
	BITS = 25,
	TRAILER = 1 << 1 | 1 << 2 | 1 << 6 | 1 << 7 | 1 << 9 | 1 << 16, /* all six fields */
};

/* ---- numbers of tracepoints, and what is mapped ---- */

struct run;

struct source {
	const char *name;
	void (*act)(unsigned i);
	void (*set)(struct perf_event_attr *attr); /* fills type and config, or skips */
	void (*opened)(const struct run *run);
	uint32_t mode;  /* cpumode of every sample; 0: either */
	unsigned least; /* of the TIMES occurrences, how many are seen where they were made */
	uint64_t period;
	uint64_t sampled_period; /* what PERIOD says */
	bool counts;             /* each sample is one more in the count */
	bool is_exact;           /* nothing but what we do makes samples */
};

/* 0, with errno, when it is not there. */
static inline uint64_t read_number(const char *path)
{
	unsigned long long number = 0;
	FILE *file = fopen(path, "r");

	if (file && fscanf(file, "%llu", &number) != 1)
		number = 0;
	if (file)
		fclose(file);
	return number;
}

/* The id of a tracepoint.  Where tracefs is not mounted, it is for as long as that takes. */
static inline uint64_t tracepoint_id(const char *name)
{
	static const char *const places[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};
	char path[256];
	uint64_t id;
	int error;
	size_t i;

	for (i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/events/%s/id", places[i], name);
		id = read_number(path);
		if (id)
			return id;
		if (errno != ENOENT)
			cr_skip_test("SKIP-ENV: %s: %s: needs root", path, strerror(errno));
	}
	if (mount("tracefs", places[0], "tracefs", 0, NULL))
		cr_skip_test("SKIP-ENV: mount of tracefs: %s: needs CAP_SYS_ADMIN, or tracefs at %s", strerror(errno),
			     places[0]);
	snprintf(path, sizeof(path), "%s/events/%s/id", places[0], name);
	id = read_number(path);
	error = errno;
	cr_assert_eq(umount(places[0]), 0, "%s: %s", places[0], strerror(errno));
	if (!id)
		cr_skip_test("SKIP-ENV: %s: %s: needs CONFIG_FTRACE_SYSCALLS, CONFIG_SCHEDSTATS", path,
			     strerror(error));
	return id;
}

struct mapping {
	uint64_t start, end, offset, inode;
	unsigned maj, min;
	char mode[8];
	char path[512];
};

static struct mapping mappings[512];
static size_t mappings_nr;

static inline void read_mappings(void)
{
	FILE *file = fopen("/proc/self/maps", "r");
	char line[1024];

	cr_assert_not_null(file);
	mappings_nr = 0;
	while (mappings_nr < sizeof(mappings) / sizeof(mappings[0]) && fgets(line, sizeof(line), file)) {
		struct mapping *one = &mappings[mappings_nr];
		unsigned long long start, end, offset, inode;

		one->path[0] = '\0';
		if (sscanf(line, "%llx-%llx %7s %llx %x:%x %llu %511[^\n]", &start, &end, one->mode, &offset, &one->maj,
			   &one->min, &inode, one->path) < 7)
			continue;
		one->start = start;
		one->end = end;
		one->offset = offset;
		one->inode = inode;
		mappings_nr++;
	}
	fclose(file);
}

static inline const struct mapping *mapping_of(uint64_t address)
{
	size_t i;

	for (i = 0; i < mappings_nr; i++)
		if (mappings[i].start <= address && address < mappings[i].end)
			return &mappings[i];
	return NULL;
}

/* ---- BPF, by hand ---- */

#define INSN(code_, dst, src, off_, imm_) \
	(struct bpf_insn) \
	{ \
		.code = (code_), .dst_reg = (dst), .src_reg = (src), .off = (off_), .imm = (imm_) \
	}

static inline int bpf_load(const struct bpf_insn *insns, size_t nr, const char *name)
{
	static const char license[] = "Dual MIT/GPL";
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.prog_type = BPF_PROG_TYPE_RAW_TRACEPOINT;
	attr.insns = (uintptr_t)insns;
	attr.insn_cnt = (uint32_t)nr;
	attr.license = (uintptr_t)license;
	memcpy(attr.prog_name, name, strlen(name));
	return (int)syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
}

/* ---- a recording ---- */

struct run {
	const struct source *source;
	struct perf_event_attr attr;
	struct perfring_format format;
	struct perfring_ring ring;
	struct perfring_reader reader;
	int fd[3];
	uint64_t id[3];
	unsigned fds;
	uint32_t cpu;
	uint64_t begun, ended; /* CLOCK_MONOTONIC */
	/* What read(2) says in the end: docs/abi.md 2.2. */
	uint64_t value[3], enabled, running;
	/* So far. */
	unsigned samples, records;
	unsigned hits[BITS];
	uint64_t time, first_time;
	uint64_t last_value[3], last_enabled, last_running;
};

static unsigned compared; /* samples and records, by this test */

static inline uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

/* On one CPU from now on, and children with it. */
static inline uint32_t pin(void)
{
	static int cpu = -1;
	cpu_set_t set;

	if (sysconf(_SC_PAGESIZE) != PAGE)
		cr_skip_test("SKIP-ENV: pages of %ld bytes: what is expected here is counted in pages of 4096",
			     sysconf(_SC_PAGESIZE));
	if (cpu < 0)
		cpu = sched_getcpu();
	CPU_ZERO(&set);
	CPU_SET((size_t)cpu, &set);
	cr_assert_eq(sched_setaffinity(0, sizeof(set), &set), 0);
	cr_assert_eq(sched_getcpu(), cpu);
	return (uint32_t)cpu;
}

static inline int open_event(struct perf_event_attr *attr, int pid, int cpu, int group)
{
	attr->size = sizeof(*attr);
	return (int)syscall(SYS_perf_event_open, attr, pid, cpu, group, (unsigned long)PERF_FLAG_FD_CLOEXEC);
}

/* Opens run->attr.  Returns 0 or -errno of the open. */
static inline int run_open_pages(struct run *run, int pid, int cpu, uint32_t pages)
{
	int ret;

	run->attr.disabled = 1;
	run->cpu = pin();
	run->fd[0] = open_event(&run->attr, pid, cpu, -1);
	if (run->fd[0] < 0)
		return -errno;
	run->fds = 1;
	ret = perfring_ring_map(&run->ring, run->fd[0], pages, 0);
	if (ret == -EPERM)
		cr_skip_test("SKIP-ENV: mmap of %u pages: %s: needs CAP_IPC_LOCK or RLIMIT_MEMLOCK", pages,
			     strerror(-ret));
	cr_assert_eq(ret, 0, "mmap: %s", strerror(-ret));
	cr_assert_eq(perfring_reader_open(&run->reader, &run->ring, 0), 0);
	cr_assert_eq(perfring_format_from_attr(&run->format, &run->attr), 0);
	cr_assert_eq(ioctl(run->fd[0], PERF_EVENT_IOC_ID, &run->id[0]), 0);
	cr_assert_neq(run->id[0], 0);
	return 0;
}

/* The Linux that first takes what the attr asks for, 5.12 as 512; 0 for those older than what perfring needs. */
static inline unsigned linux_of(const struct perf_event_attr *attr)
{
	if (attr->read_format & PERF_FORMAT_LOST)
		return 600;
	if (attr->build_id || attr->sample_type & PERF_SAMPLE_WEIGHT_STRUCT)
		return 512;
	if (attr->sample_type & (PERF_SAMPLE_DATA_PAGE_SIZE | PERF_SAMPLE_CODE_PAGE_SIZE))
		return 511;
	if (attr->cgroup || attr->sample_type & PERF_SAMPLE_CGROUP)
		return 507;
	if (attr->sample_type & PERF_SAMPLE_AUX)
		return 505;
	return attr->ksymbol || attr->bpf_event ? 501 : 0;
}

static inline unsigned linux_here(void)
{
	unsigned major_ = 0, minor_ = 0;
	struct utsname name;

	cr_assert_eq(uname(&name), 0);
	cr_assert_eq(sscanf(name.release, "%u.%u", &major_, &minor_), 2, "%s", name.release);
	return major_ * 100 + minor_;
}

/* What perf_event_open said: skips where this machine refuses, fails where it is wrong. */
static inline void must_be_open(const struct perf_event_attr *attr, int ret)
{
	unsigned needs = linux_of(attr);

	if (ret == -EACCES || ret == -EPERM)
		cr_skip_test("SKIP-ENV: perf_event_open: %s: needs CAP_PERFMON", strerror(-ret));
	if (ret == -ENOSYS || ret == -EOPNOTSUPP || ret == -ENOENT)
		cr_skip_test("SKIP-ENV: perf_event_open: %s: needs a kernel and a CPU with event %u:%llu",
			     strerror(-ret), attr->type, (unsigned long long)attr->config);
	if (ret == -ENOSPC && attr->type == PERF_TYPE_BREAKPOINT)
		cr_skip_test("SKIP-ENV: perf_event_open: %s: needs a free debug register", strerror(-ret));
	if (ret == -EINVAL && linux_here() < needs)
		cr_skip_test("SKIP-ENV: perf_event_open: %s: needs Linux %u.%u", strerror(-ret), needs / 100,
			     needs % 100);
	cr_assert_eq(ret, 0, "perf_event_open: %s", strerror(-ret));
}

static inline void must_open(struct run *run, int pid, int cpu)
{
	must_be_open(&run->attr, run_open_pages(run, pid, cpu, PAGES));
}

static inline void begin(struct run *run)
{
	run->begun = now();
	cr_assert_eq(ioctl(run->fd[0], PERF_EVENT_IOC_ENABLE, 0), 0);
}

static inline void end(struct run *run)
{
	cr_assert_eq(ioctl(run->fd[0], PERF_EVENT_IOC_DISABLE, 0), 0);
	run->ended = now();
}

static inline void run_close(struct run *run)
{
	perfring_reader_close(&run->reader);
	perfring_ring_close(&run->ring);
	while (run->fds)
		close(run->fd[--run->fds]);
}

/* The next record, which stays valid until run_close: the ring is larger than what is written. */
static inline const struct perf_event_header *next_of(struct run *run)
{
	const struct perf_event_header *record;
	int ret;

	perfring_reader_observe(&run->reader);
	ret = perfring_reader_next(&run->reader, &record);
	cr_assert_geq(ret, 0, "%s", run->reader.fault.what);
	return ret ? record : NULL;
}

static inline void is_sound(const struct run *run, const struct perf_event_header *record)
{
	struct perfring_finding finding;

	cr_assert_eq(perfring_record_examine(&run->format, record, record->size, &finding), 0, "type %u: %s at %lld",
		     record->type, finding.what, (long long)finding.at);
	compared++;
}

/* Says where two records differ. */
static inline void is_same(const struct perf_event_header *record, const unsigned char *buffer, int64_t size)
{
	const unsigned char *bytes = (const void *)record;
	size_t i;

	cr_assert_eq(size, record->size, "type %u: %lld of %u bytes", record->type, (long long)size, record->size);
	for (i = 0; i < record->size; i++)
		cr_assert_eq(bytes[i], buffer[i], "type %u of %u bytes: byte %zu is %02x, was %02x", record->type,
			     record->size, i, buffer[i], bytes[i]);
}

/* Decodes any record but SAMPLE, and writes it again. */
static inline void decode_record(struct run *run, const struct perf_event_header *record, struct perfring_record *is)
{
	static unsigned char buffer[65536];
	struct perfring_fault fault = {-1, "?"};

	memset(is, 0xa5, sizeof(*is));
	memset(buffer, 0x5a, record->size);
	cr_assert_eq(perfring_record_decode(&run->format, record, is, &fault), 0, "type %u: %s at %lld", record->type,
		     fault.what, (long long)fault.at);
	cr_assert_eq(is->type, record->type);
	cr_assert_eq(is->misc, record->misc);
	cr_assert_eq(is->trailing_size, 0, "type %u: %u bytes behind its members", record->type, is->trailing_size);
	cr_assert_eq(perfring_record_size(&run->format, is), record->size);
	is_same(record, buffer, perfring_record_encode(&run->format, is, buffer, record->size));
	is_sound(run, record);
	run->records++;
}

static inline void decode_sample(struct run *run, const struct perf_event_header *record,
				 struct perfring_sample *sample)
{
	static unsigned char buffer[65536];
	struct perfring_fault fault = {-1, "?"};

	memset(sample, 0xa5, sizeof(*sample));
	memset(buffer, 0x5a, record->size);
	cr_assert_eq(perfring_sample_decode(&run->format, record, sample, &fault), 0, "%s at %lld", fault.what,
		     (long long)fault.at);
	cr_assert_eq(sample->present, run->attr.sample_type);
	cr_assert_eq(sample->misc, record->misc);
	cr_assert_eq(sample->trailing_size, 0, "%u bytes behind the last field", sample->trailing_size);
	cr_assert_eq(perfring_sample_size(&run->format, sample), record->size);
	is_same(record, buffer, perfring_sample_encode(&run->format, sample, buffer, record->size));
	is_sound(run, record);
	run->samples++;
}

/* ---- what else can tell ---- */

static inline uint32_t thread_id(void)
{
	return (uint32_t)syscall(SYS_gettid);
}

static inline bool is_kernel(uint64_t address)
{
	return address >> 63;
}

static inline uint32_t half_at(const void *data, size_t at)
{
	uint32_t half;

	memcpy(&half, (const unsigned char *)data + at, 4);
	return half;
}

static inline void say_compared(const char *what, unsigned least)
{
	fprintf(stderr, "kernel: %s: %u samples and records came back\n", what, compared);
	cr_assert_geq(compared, least);
}

/* ---- records ---- */

/* A dummy event, for the records beside samples: with all six fields behind them, or with none. */
static inline void set_dummy(struct run *run, bool trailer)
{
	memset(run, 0, sizeof(*run));
	run->attr.type = PERF_TYPE_SOFTWARE;
	run->attr.config = PERF_COUNT_SW_DUMMY;
	run->attr.sample_type = TRAILER;
	run->attr.sample_id_all = trailer;
	run->attr.use_clockid = 1;
	run->attr.clockid = CLOCK_MONOTONIC;
}

static inline void is_in_time(const struct run *run, uint64_t time)
{
	cr_assert_geq(time, run->begun);
	cr_assert_leq(time, run->ended);
}

/* is_own: the record is of the event itself, not of a copy that a child has inherited. */
static inline void trailer_is(const struct run *run, const struct perfring_record *is, uint32_t pid, uint32_t tid,
			      bool is_own)
{
	const struct perfring_trailer *trailer = &is->trailer;

	if (!run->attr.sample_id_all) {
		cr_assert_eq(trailer->present, 0);
		return;
	}
	cr_assert_eq(trailer->present, TRAILER);
	cr_assert_eq(trailer->pid, pid);
	cr_assert_eq(trailer->tid, tid);
	is_in_time(run, trailer->time);
	cr_assert_eq(trailer->id, run->id[0]);
	cr_assert_eq(trailer->identifier, run->id[0]);
	cr_assert_eq(trailer->cpu, run->cpu);
	cr_assert_eq(trailer->cpu_reserved, 0);
	if (is_own)
		cr_assert_eq(trailer->stream_id, run->id[0]);
	else
		cr_assert_neq(trailer->stream_id, run->id[0]);
}

static inline bool next_record(struct run *run, struct perfring_record *is)
{
	const struct perf_event_header *record = next_of(run);

	if (record)
		decode_record(run, record, is);
	return record != NULL;
}

static inline void string_is(const struct perfring_string *string, const char *text)
{
	cr_assert_eq(string->size, strlen(text), "%.*s, not %s", (int)string->size, string->data, text);
	cr_assert_eq(memcmp(string->data, text, string->size + 1), 0, "%.*s, not %s", (int)string->size, string->data,
		     text);
}

/* A thread that acts when it is told to: its pid and its tid are not the same number. */
struct actor {
	pthread_t thread;
	pthread_barrier_t gate;
	uint32_t tid;
	void (*act)(void *with);
	void *with;
};

static inline void *actor_runs(void *of)
{
	struct actor *actor = of;

	actor->tid = thread_id();
	pthread_barrier_wait(&actor->gate);
	pthread_barrier_wait(&actor->gate);
	actor->act(actor->with);
	pthread_barrier_wait(&actor->gate);
	/* Nothing of its end is recorded. */
	pthread_barrier_wait(&actor->gate);
	return NULL;
}

static inline void actor_open(struct actor *actor, struct run *run, void (*act)(void *), void *with)
{
	pin();
	actor->act = act;
	actor->with = with;
	cr_assert_eq(pthread_barrier_init(&actor->gate, NULL, 2), 0);
	cr_assert_eq(pthread_create(&actor->thread, NULL, actor_runs, actor), 0);
	pthread_barrier_wait(&actor->gate);
	cr_assert_neq(actor->tid, (uint32_t)getpid());
	must_open(run, (int)actor->tid, -1);
}

static inline void actor_acts(struct actor *actor, struct run *run)
{
	begin(run);
	pthread_barrier_wait(&actor->gate);
	pthread_barrier_wait(&actor->gate);
	end(run);
	pthread_barrier_wait(&actor->gate);
	cr_assert_eq(pthread_join(actor->thread, NULL), 0);
	pthread_barrier_destroy(&actor->gate);
}

/* Opens for this task and its children, on this CPU: the one way to have them all in one ring.  A second event, not
 * inherited, keeps the scheduler from swapping the events of parent and child when it switches between them. */
static inline void open_inherited(struct run *run)
{
	struct perf_event_attr attr;

	run->attr.inherit = 1;
	must_open(run, 0, (int)pin());
	memset(&attr, 0, sizeof(attr));
	attr.type = PERF_TYPE_SOFTWARE;
	attr.config = PERF_COUNT_SW_DUMMY;
	run->fd[run->fds++] = open_event(&attr, 0, -1, -1);
	cr_assert_geq(run->fd[1], 0, "%s", strerror(errno));
}

/* A thread is joined before it is gone. */
static inline void wait_for_thread(uint32_t tid)
{
	char path[64];
	unsigned left;

	snprintf(path, sizeof(path), "/proc/self/task/%u", tid);
	for (left = 20000; left && access(path, F_OK) == 0; left--)
		usleep(500);
}

#endif
