/* inject_subject.c - each public constructor, what it needs before it, and its destructor: `inject_subject NAME` is run by
 * inject.c, which fails what is asked for between fails() and held().
 *
 * A constructor that fails says so as the tool does; in the end every descriptor and mapping that it took is given back.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/bpf.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <perfring/aux.h>
#include <perfring/build_id.h>
#include <perfring/callchain.h>
#include <perfring/command.h>
#include <perfring/count.h>
#include <perfring/cpus.h>
#include <perfring/feature.h>
#include <perfring/file.h>
#include <perfring/file_writer.h>
#include <perfring/jit.h>
#include <perfring/maps.h>
#include <perfring/merge.h>
#include <perfring/names.h>
#include <perfring/profile_fill.h>
#include <perfring/reader.h>
#include <perfring/session.h>
#include <perfring/set.h>
#include <perfring/shared.h>
#include <perfring/snapshot.h>
#include <perfring/split.h>
#include <perfring/waits.h>
#include <perfring/stacks.h>
#include <perfring/symbol.h>
#include <perfring/unwind.h>
#ifdef PERFRING_HAS_SOFT
#include <perfring/soft.h>
#endif

__attribute__((weak)) void inject_arm(bool armed);
__attribute__((weak)) int64_t inject_mapped(void);

static void fails(void)
{
	if (inject_arm)
		inject_arm(true);
}

static int held(int ret)
{
	int error = errno;

	if (inject_arm)
		inject_arm(false);
	errno = error;
	return ret;
}

/* The constructor alone is in danger. */
#define TRY(call) (fails(), held(call))
/* What must be for it. */
#define NEED(call) need((int)(call), #call)

static void need(int ret, const char *what)
{
	if (ret >= 0)
		return;
	fprintf(stderr, "LEFT: %s: %s\n", what, strerror(-ret));
	exit(3);
}

static struct perf_event_attr attr_of(uint64_t config)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = config,
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME,
		.sample_id_all = 1,
		.disabled = 1,
		.exclude_kernel = 1,
	};

	return attr;
}

/* ---- rb/ ---- */

static int make_ring(struct perfring_ring *ring, uint32_t flags, bool in_file, uint32_t aux)
{
	struct perfring_ring_options options = {
		.pages = 4, .flags = flags, .file = in_file ? "x.data" : NULL, .aux_pages = aux};

	return perfring_ring_create(ring, &options);
}

static int ring_create(void)
{
	struct perfring_ring ring;
	int ret = TRY(make_ring(&ring, 0, false, 4));

	perfring_ring_close(&ring);
	return ret;
}

static int ring_create_file(void)
{
	struct perfring_ring ring;
	int ret = TRY(make_ring(&ring, PERFRING_RING_REPLACE, true, 0));

	perfring_ring_close(&ring);
	if (!ret)
		unlink("x.data");
	return ret;
}

static int ring_attach(void)
{
	struct perfring_ring ring, other;
	int ret;

	NEED(make_ring(&ring, PERFRING_RING_STRICT, false, 0));
	ret = TRY(perfring_ring_attach(&other, ring.fd, 0, NULL));
	perfring_ring_close(&other);
	perfring_ring_close(&ring);
	return ret;
}

static int ring_map(void)
{
	struct perf_event_attr attr = attr_of(PERF_COUNT_SW_PAGE_FAULTS);
	struct perfring_ring ring;
	int fd = perfring_event_open(&attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC), ret;

	NEED(fd);
	ret = TRY(perfring_ring_map(&ring, fd, 4, 0));
	perfring_ring_close(&ring);
	close(fd);
	return ret;
}

static int aux_open(void)
{
	struct perfring_aux_area aux;
	struct perfring_ring ring;
	int ret;

	NEED(make_ring(&ring, 0, false, 4));
	ret = TRY(perfring_aux_open(&aux, &ring, 0));
	if (!ret)
		perfring_aux_close(&aux);
	perfring_ring_close(&ring);
	return ret;
}

static int open_reader(unsigned flags)
{
	struct perfring_reader reader;
	struct perfring_ring ring;
	int ret;

	NEED(make_ring(&ring, 0, false, 0));
	ret = TRY(perfring_reader_open(&reader, &ring, flags));
	if (!ret)
		perfring_reader_close(&reader);
	perfring_ring_close(&ring);
	return ret;
}

static int reader_open(void)
{
	return open_reader(0);
}

static int reader_open_copy(void)
{
	return open_reader(PERFRING_READER_COPY);
}

static int writer_open(void)
{
	struct perfring_writer *writer = NULL;
	struct perfring_ring ring;
	int ret;

	NEED(make_ring(&ring, 0, false, 0));
	ret = TRY(perfring_writer_open(&writer, &ring, NULL));
	if (!ret)
		perfring_writer_close(writer);
	perfring_ring_close(&ring);
	return ret;
}

static int open_shared(uint32_t flags)
{
	struct perfring_shared *shared = NULL;
	struct perfring_ring ring;
	int ret;

	NEED(make_ring(&ring, flags, false, 0));
	ret = TRY(perfring_shared_open(&shared, &ring, NULL));
	if (!ret)
		perfring_shared_close(shared);
	perfring_ring_close(&ring);
	return ret;
}

static int shared_open_strict(void)
{
	return open_shared(PERFRING_RING_STRICT);
}

static int shared_open_leased(void)
{
	return open_shared(PERFRING_RING_LEASED);
}

static int snapshot_take(void)
{
	struct perfring_snapshot snapshot;
	struct perf_event_header record = {PERF_RECORD_LOST, 0, 64};
	struct perfring_writer *writer = NULL;
	struct perfring_claim claim;
	struct perfring_ring ring;
	void *buffer;
	int ret;

	NEED(make_ring(&ring, PERFRING_RING_BACKWARD | PERFRING_RING_OVERWRITE, false, 0));
	NEED(perfring_writer_open(&writer, &ring, NULL));
	for (int i = 0; i < 10; i++) {
		buffer = perfring_writer_reserve(writer, NULL, 64, &claim);
		memcpy(buffer, &record, sizeof(record));
		perfring_writer_commit(writer, &claim);
	}
	ret = TRY(perfring_snapshot_take(&snapshot, &ring, 0));
	perfring_snapshot_close(&snapshot);
	perfring_writer_close(writer);
	perfring_ring_close(&ring);
	return ret;
}

static int set_open(void)
{
	struct perfring_ring_options options = {.pages = 4};
	struct perfring_writer *writer = NULL;
	struct perfring_set *set = NULL;
	int ret;

	fails();
	ret = perfring_set_open(&set, &options, NULL, 0);
	if (!ret)
		ret = perfring_set_join(set, &writer);
	held(0);
	if (writer)
		perfring_set_leave(set);
	if (set)
		perfring_set_close(set);
	return ret;
}

static int cpus_open(void)
{
	struct perfring_ring_options options = {.pages = 4};
	struct perfring_cpus *cpus = NULL;
	int ret = TRY(perfring_cpus_open(&cpus, &options, NULL));

	if (!ret)
		perfring_cpus_close(cpus);
	return ret;
}

static int set_admit(void)
{
	struct perfring_ring_options options = {.pages = 4};
	struct perfring_writer *writer = NULL;
	struct perfring_set *set = NULL;
	int ret;

	NEED(perfring_set_open(&set, &options, NULL, 0));
	ret = TRY(perfring_set_admit(set, pthread_self(), (uint32_t)getpid(), &writer));
	if (!ret)
		perfring_set_dismiss(set, writer);
	perfring_set_close(set);
	return ret;
}

/* Once more, too: what the first call has asked for is known then. */
static int ring_calibrate(void)
{
	struct perfring_ring ring;
	int ret;

	NEED(make_ring(&ring, 0, false, 0));
	fails();
	ret = perfring_ring_calibrate(&ring);
	if (!ret)
		ret = perfring_ring_calibrate(&ring);
	held(0);
	perfring_ring_close(&ring);
	return ret == -EOPNOTSUPP ? 0 : ret;
}

/* ---- sample/ ---- */

static int deferral_open(void)
{
	struct perfring_deferral *deferral = NULL;
	int ret = TRY(perfring_deferral_open(&deferral, 0));

	if (!ret)
		perfring_deferral_close(deferral);
	return ret;
}

static int format_set_open(void)
{
	struct perfring_format_set *set = NULL;
	struct perfring_split *split = NULL;
	int ret;

	fails();
	ret = perfring_format_set_open(&set);
	for (uint64_t i = 0; i < 40 && ret >= 0; i++) {
		struct perf_event_attr attr = attr_of(i % 8);

		attr.sample_type |= i << 16;
		ret = perfring_format_set_add(set, &attr);
	}
	if (ret >= 0)
		ret = perfring_split_open(&split, set);
	held(0);
	perfring_split_close(split);
	perfring_format_set_close(set);
	return ret;
}

/* ---- unwind/ ---- */

/* A CIE, and a function of 64 bytes at 0x1000: def_cfa rsp+8, ra at cfa-8. */
static const uint8_t frame_section[] = {
	20, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, 16, 1, 3, 0x0c, 7, 8, 0x90, 1, 0, 0, /* the CIE */
	16, 0, 0, 0, 28, 0, 0, 0, 0, 0x10, 0, 0, 64, 0, 0, 0, 0, 0x41, 0x0e, 16,		/* the function */
};

static int unwind_open(void)
{
	const struct perfring_unwind_sections sections = {.machine = PERFRING_UNWIND_X86_64,
							  .eh_frame = {frame_section, sizeof(frame_section), 0}};
	struct perfring_unwind_cache *cache = NULL;
	struct perfring_unwind *unwind = NULL;
	int ret;

	if (perfring_unwind_open(&unwind, frame_section, sizeof(frame_section)) != -EINVAL)
		return -EINVAL;
	fails();
	ret = perfring_unwind_open_sections(&unwind, &sections);
	if (!ret)
		ret = perfring_unwind_make(unwind, 0x1000);
	if (ret >= 0)
		ret = perfring_unwind_make_all(unwind);
	if (ret >= 0)
		ret = perfring_unwind_cache_open(&cache, 64);
	held(0);
	perfring_unwind_cache_close(cache);
	perfring_unwind_close(unwind);
	return ret;
}

/* ---- event/ ---- */

static int event_open(void)
{
	struct perf_event_attr attr = attr_of(PERF_COUNT_SW_PAGE_FAULTS);
	int fd = TRY(perfring_event_open(&attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC));

	if (fd >= 0)
		close(fd);
	return fd;
}

static int event_open_fallback(void)
{
	struct perf_event_attr attr = attr_of(PERF_COUNT_SW_PAGE_FAULTS);
	uint64_t taken = 0;
	int fd = TRY(
		perfring_event_open_fallback(&attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC, PERFRING_FALLBACK_ALL, &taken));

	if (fd >= 0)
		close(fd);
	return fd;
}

static int events_open(void)
{
	struct perfring_events *events = NULL;
	struct perf_event_attr base = attr_of(0);
	struct perfring_fault fault = {0, NULL};
	int ret;

	fails();
	ret = perfring_events_open(&events);
	if (!ret)
		ret = perfring_events_add(events,
					  "{cpu-clock:u,page-faults},context-switches,sched:sched_switch,mem:0x10:w",
					  &base, &fault);
	if (!ret)
		ret = perfring_events_add_attr(events, &base, "one more", false);
	held(0);
	if (!ret && perfring_events_count(events) != 6)
		printf("LEFT: not all of the events\n");
	if (events)
		perfring_events_close(events);
	return ret;
}

static int event_names_open(void)
{
	struct perfring_event_listed name;
	struct perfring_event_names *names = (void *)&name;
	int ret = TRY(perfring_event_names_open(&names, "sched:*", false));
	unsigned count = 0;

	while (!ret && perfring_event_names_next(names, &name) == 1)
		count++;
	if (!ret)
		printf("%u names\n", count);
	if (ret && names)
		printf("LEFT: names that were never opened\n");
	else
		perfring_event_names_close(names);
	return ret;
}

static int target_open(void)
{
	struct perfring_target *target = NULL;
	int ret;

	fails();
	ret = perfring_target_open(&target);
	if (!ret)
		ret = perfring_target_add_cpus(target, NULL);
	if (!ret)
		ret = perfring_target_add_process(target, getpid());
	if (!ret)
		ret = perfring_target_add_thread(target, getpid());
	held(0);
	if (target)
		perfring_target_close(target);
	return ret;
}

static int target_add_cgroup(void)
{
	struct perfring_target *target = NULL;
	int ret;

	NEED(perfring_target_open(&target));
	NEED(perfring_target_add_cpus(target, NULL));
	ret = TRY(perfring_target_add_cgroup(target, "/"));
	perfring_target_close(target);
	return ret == -ENOENT && access("/sys/fs/cgroup", F_OK) ? 0 : ret;
}

static int command_open(void)
{
	char *const argv[] = {(char[]){"/bin/true"}, NULL};
	struct perfring_command command;
	int status = 0, ret;

	fails();
	ret = perfring_command_open(&command, argv);
	if (!ret)
		ret = perfring_command_release(&command);
	held(0);
	if (command.pid > 0)
		waitpid(command.pid, &status, 0);
	if (!ret && status)
		printf("LEFT: status %d\n", status);
	perfring_command_close(&command);
	return ret;
}

static struct perfring_target *own_target(void)
{
	struct perfring_target *target = NULL;

	NEED(perfring_target_open(&target));
	NEED(perfring_target_add_cpus(target, NULL));
	NEED(perfring_target_add_process(target, getpid()));
	return target;
}

/* What was refused leaves a session that can be read, and is explained. */
static void read_and_close(struct perfring_session *session, int ret)
{
	struct perfring_item item;

	if (!session)
		return;
	perfring_session_wait(session, 0);
	while (perfring_session_next(session, &item) == 1)
		;
	perfring_session_return(session);
	if (ret < 0 && *perfring_session_refusal(session))
		fprintf(stderr, "perfring: %s\n", perfring_session_refusal(session));
	perfring_session_close(session);
}

static int session_open(void)
{
	struct perf_event_attr attr = attr_of(PERF_COUNT_SW_PAGE_FAULTS),
			       other = attr_of(PERF_COUNT_SW_CONTEXT_SWITCHES);
	struct perfring_target *target = own_target();
	struct perfring_session *session = NULL;
	int ret;

	fails();
	ret = perfring_session_open(&session, 4);
	if (ret >= 0)
		ret = perfring_session_add(session, &attr, target);
	if (ret >= 0)
		ret = perfring_session_add(session, &other, target);
	if (ret >= 0)
		ret = perfring_session_enable(session);
	held(0);
	read_and_close(session, ret);
	perfring_target_close(target);
	return ret;
}

static int session_add_group(void)
{
	struct perf_event_attr attr = attr_of(PERF_COUNT_SW_PAGE_FAULTS),
			       other = attr_of(PERF_COUNT_SW_CONTEXT_SWITCHES);
	const struct perf_event_attr *const attrs[] = {&attr, &other};
	struct perfring_target *target = own_target();
	struct perfring_session *session = NULL;
	int ret;

	NEED(perfring_session_open(&session, 4));
	ret = TRY(perfring_session_add_group(session, attrs, 2, target));
	read_and_close(session, ret);
	perfring_target_close(target);
	return ret;
}

static pthread_barrier_t at_end;

static void *wait_for_end(void *nothing)
{
	/* Twice: the thread has begun, whose beginning a sanitizer does not let fail; and it may end. */
	pthread_barrier_wait(&at_end);
	pthread_barrier_wait(&at_end);
	return nothing;
}

/* With a thread that was born after the add. */
static int session_update(void)
{
	struct perf_event_attr attr = attr_of(PERF_COUNT_SW_PAGE_FAULTS);
	struct perfring_target *target = own_target();
	struct perfring_session *session = NULL;
	pthread_t thread;
	int ret;

	NEED(perfring_session_open(&session, 4));
	NEED(perfring_session_add(session, &attr, target));
	pthread_barrier_init(&at_end, NULL, 2);
	NEED(-pthread_create(&thread, NULL, wait_for_end, NULL));
	pthread_barrier_wait(&at_end);
	ret = TRY(perfring_session_update(session));
	if (ret == 0)
		printf("LEFT: the new thread is not observed\n");
	pthread_barrier_wait(&at_end);
	pthread_join(thread, NULL);
	read_and_close(session, ret);
	perfring_target_close(target);
	return ret;
}

static int session_snapshot(void)
{
	struct perf_event_attr attr = attr_of(PERF_COUNT_SW_PAGE_FAULTS);
	struct perfring_target *target = own_target();
	struct perfring_session *session = NULL;
	int ret;

	attr.disabled = 0;
	NEED(perfring_session_open(&session, 4));
	NEED(perfring_session_configure(session, PERFRING_SESSION_BACKWARD, 0));
	NEED(perfring_session_add(session, &attr, target));
	for (int i = 0; i < 20; i++) {
		char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		*(volatile char *)page = 1;
		munmap(page, 4096);
	}
	ret = TRY(perfring_session_snapshot(session));
	read_and_close(session, ret);
	perfring_target_close(target);
	return ret;
}

/* Of an event without one: a processor's trace needs its PMU. */
static int session_map_aux(void)
{
	struct perf_event_attr attr = attr_of(PERF_COUNT_SW_PAGE_FAULTS);
	struct perfring_target *target = own_target();
	struct perfring_session *session = NULL;
	int ret;

	NEED(perfring_session_open(&session, 4));
	NEED(perfring_session_add(session, &attr, target));
	ret = TRY(perfring_session_map_aux(session, 4, false));
	read_and_close(session, ret);
	perfring_target_close(target);
	return ret == -EOPNOTSUPP ? 0 : ret;
}

static int session_add_aux(void)
{
	struct perf_event_attr attr = attr_of(PERF_COUNT_SW_PAGE_FAULTS);
	struct perfring_session *session = NULL;
	struct perfring_aux_area aux;
	struct perfring_ring ring;
	uint64_t id = 7;
	int ret;

	NEED(make_ring(&ring, 0, false, 4));
	NEED(perfring_aux_open(&aux, &ring, 0));
	NEED(perfring_session_open(&session, 0));
	NEED(perfring_session_describe(session, &attr, &id, 1));
	NEED(perfring_session_add_ring(session, &ring, -1, 0));
	ret = TRY(perfring_session_add_aux(session, 0, &aux));
	read_and_close(session, ret);
	perfring_aux_close(&aux);
	perfring_ring_close(&ring);
	return ret;
}

static int session_describe_ring(void)
{
	struct perf_event_attr attr = attr_of(PERF_COUNT_SW_PAGE_FAULTS);
	struct perfring_ring_options options = {.pages = 4, .attr = &attr, .id = 7};
	struct perfring_session *session = NULL;
	struct perfring_ring ring;
	int ret;

	NEED(perfring_ring_create(&ring, &options));
	NEED(perfring_session_open(&session, 0));
	ret = TRY(perfring_session_describe_ring(session, &ring));
	read_and_close(session, ret);
	perfring_ring_close(&ring);
	return ret;
}

/* With the wait that finds the set's ring. */
static int session_add_set(void)
{
	struct perf_event_attr attr = attr_of(PERF_COUNT_SW_PAGE_FAULTS);
	struct perfring_ring_options options = {.pages = 4, .attr = &attr, .id = 7};
	struct perfring_session *session = NULL;
	struct perfring_writer *writer;
	struct perfring_set *set = NULL;
	int ret;

	NEED(perfring_set_open(&set, &options, NULL, 0));
	NEED(perfring_set_join(set, &writer));
	NEED(perfring_session_open(&session, 0));
	fails();
	ret = perfring_session_add_set(session, set, -1, 0);
	if (ret >= 0)
		ret = perfring_session_wait(session, 0);
	held(0);
	read_and_close(session, ret);
	perfring_set_leave(set);
	perfring_set_close(set);
	return ret;
}

static int open_map(void)
{
	union bpf_attr about = {
		.map_type = BPF_MAP_TYPE_PERF_EVENT_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 4096};

	return (int)syscall(SYS_bpf, BPF_MAP_CREATE, &about, sizeof(about));
}

static int session_put_map(void)
{
	struct perf_event_attr attr = attr_of(PERF_COUNT_SW_BPF_OUTPUT);
	struct perfring_target *target = NULL;
	struct perfring_session *session = NULL;
	int map = open_map(), ret;

	if (map < 0)
		return 0; /* this kernel or user has no maps */
	attr.sample_type |= PERF_SAMPLE_RAW;
	attr.exclude_kernel = 0;
	NEED(perfring_target_open(&target));
	NEED(perfring_target_add_cpus(target, NULL));
	NEED(perfring_session_open(&session, 4));
	NEED(perfring_session_add(session, &attr, target));
	ret = TRY(perfring_session_put_map(session, 0, map));
	read_and_close(session, ret);
	perfring_target_close(target);
	close(map);
	return ret;
}

static int session_add_ring(void)
{
	struct perf_event_attr attr = attr_of(PERF_COUNT_SW_PAGE_FAULTS);
	struct perfring_session *sessions[2] = {NULL, NULL};
	struct perfring_merge *merge = NULL;
	struct perfring_ring ring[2];
	uint64_t id = 7;
	int ret;

	for (int i = 0; i < 2; i++)
		NEED(make_ring(&ring[i], 0, false, 0));
	fails();
	ret = 0;
	for (int i = 0; i < 2 && ret >= 0; i++) {
		ret = perfring_session_open(&sessions[i], 0);
		if (ret >= 0)
			ret = perfring_session_describe(sessions[i], &attr, &id, 1);
		if (ret >= 0)
			ret = perfring_session_add_ring(sessions[i], &ring[i], -1, PERFRING_READER_COPY);
	}
	if (ret >= 0)
		ret = perfring_merge_open(&merge, sessions, 2);
	if (ret >= 0)
		ret = perfring_merge_wait(merge, 0);
	held(0);
	if (merge)
		perfring_merge_close(merge);
	for (int i = 0; i < 2; i++) {
		if (sessions[i])
			perfring_session_close(sessions[i]);
		perfring_ring_close(&ring[i]);
	}
	return ret == -ETIMEDOUT ? 0 : ret;
}

static int counts_open(void)
{
	struct perfring_target *target = own_target();
	struct perf_event_attr base = {.size = sizeof(base)};
	struct perfring_events *events = NULL;
	struct perfring_counts *counts = NULL;
	struct perfring_fault fault;
	int ret;

	NEED(perfring_events_open(&events));
	NEED(perfring_events_add(events, "{task-clock,page-faults},context-switches", &base, &fault));
	fails();
	ret = perfring_counts_open(&counts, PERFRING_FALLBACK_ALL);
	if (ret >= 0)
		ret = perfring_counts_add(counts, events, target);
	if (ret >= 0)
		ret = perfring_counts_read(counts);
	held(0);
	if (counts) {
		if (ret < 0 && *perfring_counts_refusal(counts))
			fprintf(stderr, "perfring: %s\n", perfring_counts_refusal(counts));
		perfring_counts_close(counts);
	}
	perfring_events_close(events);
	perfring_target_close(target);
	return ret;
}

static int counts_open_self(void)
{
	struct perfring_counts *counts = NULL;
	int ret;

	fails();
	ret = perfring_counts_open_self(&counts, "{task-clock,page-faults},context-switches");
	for (uint32_t i = 0; ret >= 0 && i < 3; i++)
		ret = perfring_counts_error(counts, i);
	if (ret >= 0)
		ret = perfring_counts_enable(counts);
	if (ret >= 0)
		ret = perfring_counts_read(counts);
	held(0);
	if (ret < 0 && *perfring_counts_refusal(counts))
		fprintf(stderr, "perfring: %s\n", perfring_counts_refusal(counts));
	perfring_counts_close(counts);
	return ret;
}

/* ---- file/ ---- */

static int data_open(void)
{
	struct perfring_file *data = NULL;
	struct perfring_item item;
	uint64_t records = 0;
	int ret;

	fails();
	ret = perfring_file_open(&data, getenv("SUBJECT_DATA"));
	while (ret >= 0 && (ret = perfring_file_next(data, &item)) == 1)
		records++;
	held(0);
	if (ret >= 0 && perfring_file_lost_features(data)) {
		fprintf(stderr, "perfring: features: %" PRIu32 " lost: %s\n", perfring_file_lost_features(data),
			strerror(EIO));
		ret = -EIO;
	}
	if (ret >= 0 && perfring_file_feature_error(data))
		ret = perfring_file_feature_error(data);
	if (ret >= 0)
		printf("%" PRIu64 " records of %s\n", records, perfring_file_event_name(data, 0));
	perfring_file_close(data);
	return ret;
}

static int write_data(bool is_stream)
{
	struct perf_event_attr attr = attr_of(PERF_COUNT_SW_PAGE_FAULTS);
	struct perfring_file_writer *writer = NULL;
	int fd = open("x.data", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), ret;

	NEED(fd);
	fails();
	ret = is_stream ? perfring_file_writer_open_stream(&writer, fd) : perfring_file_writer_open(&writer, fd);
	if (ret >= 0)
		ret = perfring_file_writer_compress(writer, 1) == -ENOMEM ? -ENOMEM : 0;
	if (ret >= 0)
		ret = perfring_file_writer_add_event(writer, &attr, "page-faults");
	if (ret >= 0)
		ret = perfring_file_writer_add_id(writer, 0, 7);
	if (ret >= 0)
		ret = perfring_file_writer_put_string(writer, PERFRING_FEATURE_HOSTNAME, "host");
	if (ret >= 0)
		ret = perfring_file_writer_begin(writer);
	if (ret >= 0)
		ret = perfring_file_writer_put_process(writer, getpid());
	if (ret >= 0)
		ret = perfring_file_writer_end_round(writer);
	if (ret >= 0)
		ret = perfring_file_writer_finish(writer);
	held(0);
	perfring_file_writer_close(writer);
	close(fd);
	return ret;
}

static int data_create(void)
{
	return write_data(false);
}

static int data_create_stream(void)
{
	return write_data(true);
}

/* A directory of two files, in the other byte order, of a session's events, with all that can be put. */
static int data_create_directory(void)
{
	struct perf_event_attr attr = attr_of(PERF_COUNT_SW_PAGE_FAULTS);
	struct {
		struct perf_event_header header;
		uint64_t size, offset, reference;
		uint32_t idx, tid, cpu, reserved;
	} trace = {{PERFRING_RECORD_AUXTRACE, 0, sizeof(trace)}, 8, 0, 0, 0, 0, 0, 0};
	struct {
		struct perf_event_header header;
		uint64_t id, lost, trailer[3];
	} lost = {{PERF_RECORD_LOST, 0, sizeof(lost)}, 7, 1, {0, 0, 7}};
	struct iovec piece = {&lost, sizeof(lost)};
	struct perfring_item item = {.record = &lost.header};
	struct perfring_file_writer *writer = NULL;
	struct perfring_format_set *formats = NULL;
	uint8_t id[PERFRING_BUILD_ID_SIZE] = {1, 2, 3};
	int fd = open("x.data", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), part = memfd_create("part", MFD_CLOEXEC),
	    ret;

	NEED(fd);
	NEED(part);
	NEED(perfring_format_set_open(&formats));
	NEED(perfring_format_set_add(formats, &attr));
	NEED(perfring_format_set_put(formats, 7, 0));
	fails();
	ret = perfring_file_writer_open(&writer, fd);
	if (ret >= 0)
		ret = perfring_file_writer_make_foreign(writer);
	if (ret >= 0)
		ret = perfring_file_writer_add_part(writer, part);
	if (ret >= 0)
		ret = perfring_file_writer_add_formats(writer, formats);
	if (ret >= 0)
		ret = perfring_file_writer_add_event(writer, &attr, NULL);
	if (ret >= 0)
		ret = perfring_file_writer_add_group(writer, "both", 0, 2);
	if (ret >= 0)
		ret = perfring_file_writer_begin(writer);
	if (ret >= 0)
		ret = perfring_file_writer_put_item(writer, &item);
	if (ret >= 0)
		ret = perfring_file_writer_put_auxtrace(writer, &trace.header, &(struct iovec){(char[8]){"8 bytes"}, 8}, 1);
	if (ret >= 0)
		ret = perfring_file_writer_put_cgroups(writer);
	if (ret >= 0)
		ret = perfring_file_writer_put_build_id(writer, PERFRING_RECORD_MISC_USER, -1, "/bin/sh", id,
							sizeof(id));
	if (ret >= 0)
		ret = perfring_file_writer_put_times(writer, 1, 2);
	if (ret >= 0)
		ret = perfring_file_writer_write_to(writer, 1, &piece, 1);
	if (ret >= 0)
		ret = perfring_file_writer_put_item(writer, &item);
	if (ret >= 0)
		ret = perfring_file_writer_finish(writer);
	held(0);
	perfring_file_writer_close(writer);
	perfring_format_set_close(formats);
	close(part);
	close(fd);
	return ret;
}

static int object_open(void)
{
	uint8_t id[PERFRING_BUILD_ID_SIZE];
	int64_t size;
	int fd;

	fails();
	fd = perfring_object_open(getpid(), "/bin/sh");
	size = fd < 0 ? 0 : perfring_build_id_in(fd, id);
	held(0);
	if (fd < 0)
		return fd;
	close(fd);
	return size < 0 ? (int)size : 0;
}

/* ---- symbol/ ---- */

/* A map of one piece of code, and a dump without any. */
static int jit_open(void)
{
	static const char text[] = "1000 10 code\n";
	const uint32_t header[10] = {0x4A695444, 1, 40, 62, 0, 7, 0, 0, 0, 0};
	struct perfring_jit_symbol symbol;
	struct perfring_jit_dump about;
	struct perfring_jit *map = NULL, *dump = NULL;
	int fds[2] = {memfd_create("map", MFD_CLOEXEC), memfd_create("dump", MFD_CLOEXEC)}, ret;

	if (fds[0] < 0 || fds[1] < 0 || write(fds[0], text, sizeof(text) - 1) != sizeof(text) - 1 ||
	    write(fds[1], header, sizeof(header)) != sizeof(header))
		return -errno;
	fails();
	ret = perfring_jit_open_map(&map, fds[0]);
	if (!ret)
		ret = perfring_jit_open_dump(&dump, fds[1], &about);
	held(0);
	if (!ret && !perfring_jit_find(map, 0x1008, &symbol))
		ret = -ENOENT;
	close(fds[0]);
	if (!dump)
		close(fds[1]);
	perfring_jit_close(map);
	perfring_jit_close(dump);
	return ret;
}

static int jit_file_open(void)
{
	int fd = TRY(perfring_jit_file_open(getpid(), "/etc/passwd", 0, 0));

	if (fd >= 0)
		close(fd);
	return fd < 0 ? fd : 0;
}

static int maps_take(void)
{
	struct perfring_record mapping = {.type = PERFRING_RECORD_MMAP2, .misc = PERFRING_RECORD_MISC_USER},
			       child = {.type = PERFRING_RECORD_FORK};
	struct {
		struct perf_event_header header;
		uint64_t words[3];
	} fork;
	struct perfring_maps *maps = NULL;
	int ret;

	mapping.is.mmap2 = (struct perfring_record_mmap2){.pid = 1, .addr = 0x1000, .len = 0x1000};
	mapping.is.mmap2.filename = (struct perfring_string){.data = "/a", .size = 2};
	child.is.fork = (struct perfring_record_fork){.pid = 2, .tid = 2, .ppid = 1, .ptid = 1, .time = 1};
	if (perfring_record_encode(NULL, &child, &fork, sizeof(fork)) != sizeof(fork))
		return -EINVAL;
	fails();
	ret = perfring_maps_open(&maps);
	if (!ret)
		ret = perfring_maps_take_record(maps, &mapping);
	if (!ret)
		ret = perfring_maps_take(maps, &(struct perfring_item){.record = &fork.header});
	held(0);
	if (!ret && !perfring_maps_find(maps, PERFRING_RECORD_MISC_USER, 2, 0x1000))
		ret = -ENOENT;
	perfring_maps_close(maps);
	return ret;
}

static int symbols_open(void)
{
	const struct perfring_symbol_file file = {.path = "/proc/self/exe"};
	struct perfring_symbols *symbols = NULL;
	struct perfring_symbol_object *object = NULL;
	struct perfring_symbol_state state = {.why = PERFRING_SYMBOL_KNOWN};
	struct perfring_symbol symbol;
	int ret;

	fails();
	ret = perfring_symbols_open(&symbols, NULL);
	if (!ret)
		ret = perfring_symbols_get(symbols, &file, &object);
	held(0);
	if (ret >= 0) {
		perfring_symbol_find(object, 0, &symbol);
		perfring_symbol_state_of(object, &state);
	}
	perfring_symbols_close(symbols);
	return ret < 0 ? ret : state.error;
}

extern char __executable_start;

/* A sample in this function, of whose stack nothing is known but its ip and sp. */
static int stacks_open(void)
{
	uint64_t here = (uint64_t)(uintptr_t)stacks_open;
	uint64_t values[] = {0x7000, here}, bytes[16] = {0};
	struct perfring_record mapping = {.type = PERFRING_RECORD_MMAP2, .misc = PERFRING_RECORD_MISC_USER};
	struct perfring_sample sample = {
		.present = PERFRING_SAMPLE_TID | PERFRING_SAMPLE_REGS_USER | PERFRING_SAMPLE_STACK_USER,
		.pid = 1,
		.tid = 1,
		.regs_user = {.values = (const perfring_word *)values, .abi = 2, .mask = 1 << 7 | 1 << 8, .nr = 2, .arch = PERFRING_ARCH_X86},
		.stack_user = {.data = bytes, .size = sizeof(bytes), .dyn_size = sizeof(bytes)},
	};
	struct perfring_maps *maps = NULL;
	struct perfring_symbols *symbols = NULL;
	struct perfring_stacks *stacks = NULL;
	enum perfring_unwind_end end = PERFRING_UNWIND_STEPPED;
	struct perfring_list chain;
	int ret;

	mapping.is.mmap2.pid = mapping.is.mmap2.tid = 1;
	mapping.is.mmap2.addr = here & ~UINT64_C(0xfff);
	mapping.is.mmap2.len = 0x1000;
	mapping.is.mmap2.pgoff = mapping.is.mmap2.addr - (uint64_t)(uintptr_t)&__executable_start;
	mapping.is.mmap2.prot = 5;
	mapping.is.mmap2.filename = (struct perfring_string){"/proc/self/exe", 15};
	fails();
	ret = perfring_maps_open(&maps);
	if (!ret)
		ret = perfring_maps_take_record(maps, &mapping);
	if (!ret)
		ret = perfring_symbols_open(&symbols, NULL);
	if (!ret)
		ret = perfring_stacks_open(&stacks, maps, symbols);
	if (!ret)
		ret = perfring_stacks_chain(stacks, &sample, 16, &chain, &end);
	held(0);
	perfring_stacks_close(stacks);
	perfring_symbols_close(symbols);
	perfring_maps_close(maps);
	if (ret < 0)
		return ret;
	/* what failed last is why there are no tables */
	return end == PERFRING_UNWIND_WHOLE ? 0 : -errno;
}

/* Of this process: its threads and its mappings of code. */
static int names_open(void)
{
	struct perfring_record record = {.type = PERFRING_RECORD_COMM};
	struct perfring_names *names = NULL;
	struct perfring_name name;
	perfring_word words[16];
	struct perfring_item item = {(const struct perf_event_header *)(const void *)words, NULL, 0};
	int ret;

	record.is.comm = (struct perfring_record_comm){.pid = 1, .tid = 1};
	record.is.comm.comm = (struct perfring_string){"x", 1};
	NEED(perfring_record_encode(NULL, &record, words, sizeof(words)));
	fails();
	ret = perfring_names_open(&names, NULL);
	if (!ret)
		ret = perfring_names_take_record(names, &record);
	if (!ret)
		ret = perfring_names_take(names, &item);
	if (!ret)
		ret = perfring_names_take_process(names, (uint32_t)getpid());
	if (!ret)
		ret = perfring_names_find(names, PERFRING_RECORD_MISC_USER, 1, 1, &name);
	held(0);
	perfring_names_close(names);
	return ret;
}

/* ---- profile/ ---- */

/* A sample of a session, of whose address nothing is known. */
static int profile_fill_open(void)
{
	const struct perf_event_attr attr = attr_of(PERF_COUNT_SW_DUMMY);
	struct perfring_sample sample = {.identifier = 1, .pid = 1, .tid = 1, .time = 1};
	struct perfring_profile_fill *fill = NULL;
	struct perfring_profile *profile;
	struct perfring_session *session;
	perfring_word words[16];
	struct perfring_item item = {(const struct perf_event_header *)(const void *)words, NULL, 1};
	const uint64_t id = 1;
	int ret;

	NEED(perfring_session_open(&session, 0));
	NEED(perfring_session_describe(session, &attr, &id, 1));
	NEED(perfring_profile_open(&profile, NULL));
	item.format = perfring_format_set_find(perfring_session_formats(session), id);
	NEED(perfring_sample_encode(item.format, &sample, words, sizeof(words)));
	fails();
	ret = perfring_profile_fill_open(&fill, profile, &(struct perfring_profile_fill_options){.session = session});
	if (!ret)
		ret = perfring_profile_fill_name(fill, 0, "x");
	if (!ret)
		ret = perfring_profile_fill_item(fill, &item, NULL);
	held(0);
	perfring_profile_fill_close(fill);
	perfring_profile_close(profile);
	perfring_session_close(session);
	return ret;
}

static int waits_open(void)
{
	const struct perfring_record record = {.type = PERFRING_RECORD_SWITCH, .trailer = {.present = PERFRING_SAMPLE_TID, .tid = 1}};
	struct perfring_waits *waits = NULL;
	int ret;

	fails();
	ret = perfring_waits_open(&waits);
	if (!ret)
		ret = perfring_waits_begin(waits, &(struct perfring_wait){.tid = 1, .begin = 1});
	if (!ret && !perfring_waits_take(waits, &record))
		ret = -ENOENT;
	held(0);
	perfring_waits_close(waits);
	return ret;
}

static int profile_open(void)
{
	struct perfring_profile_sample sample = {.weight = 1, .cpu = PERFRING_PROFILE_NONE};
	struct perfring_profile_loss loss = {.count = 1, .thread = PERFRING_PROFILE_NONE, .event = PERFRING_PROFILE_NONE};
	struct perfring_profile_options options = {.flags = PERFRING_PROFILE_SAMPLES, .command = "x"};
	struct perfring_profile *profile = NULL;
	FILE *out = fopen("/dev/null", "w");
	int64_t ret;

	if (!out)
		return -errno;
	fails();
	ret = perfring_profile_open(&profile, &options);
	if (!ret)
		ret = perfring_profile_add_event(profile, &(struct perfring_profile_event){.name = "e"});
	if (!ret)
		ret = perfring_profile_add_thread(profile, &(struct perfring_profile_thread){.comm = "x"});
	if (!ret)
		ret = perfring_profile_add_frame(profile, &(struct perfring_profile_frame){.name = "f"});
	if (!ret)
		ret = perfring_profile_add_stack(profile, PERFRING_PROFILE_NONE, 0);
	if (!ret)
		ret = perfring_profile_add_sample(profile, &sample);
	if (!ret)
		ret = perfring_profile_add_loss(profile, &loss);
	for (int format = 0; !ret && format < PERFRING_PROFILE_FORMAT_COUNT; format++)
		ret = perfring_profile_write(profile, (enum perfring_profile_format)format, NULL, out);
	held(0);
	fclose(out);
	perfring_profile_close(profile);
	return (int)ret;
}

static int vdso_open(void)
{
	int fd = TRY(perfring_vdso_open());

	if (fd >= 0)
		close(fd);
	return fd == -ENOENT ? 0 : fd;
}

/* ---- soft/ ---- */

#ifdef PERFRING_HAS_SOFT
static int soft_watch_open(void)
{
	struct perfring_soft_watch *watch = NULL;
	int ret;

	fails();
	ret = perfring_soft_watch_open(&watch);
	if (!ret)
		ret = perfring_soft_watch_add(watch, "span:x", 1);
	held(0);
	perfring_soft_watch_close(watch);
	return ret;
}

static int open_soft(bool is_clock)
{
	struct perf_event_attr attr = {.size = sizeof(attr), .sample_period = 1000000, .sample_id_all = 1};
	struct perfring_soft_event *event = NULL;
	struct perfring_soft_point *point;
	int ret = 0;

	attr.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CALLCHAIN;
	attr.type = PERF_TYPE_SOFTWARE;
	attr.config = PERF_COUNT_SW_TASK_CLOCK;
	attr.exclude_kernel = 1;
	fails();
	if (!is_clock) {
		point = perfring_soft_define("db:query_done");
		ret = point ? 0 : -ENOMEM;
		if (point) {
			attr.type = point->type;
			attr.config = point->config;
		}
	}
	if (ret >= 0)
		ret = perfring_soft_open(&event, &attr, PERFRING_SOFT_PROCESS, NULL);
	if (ret >= 0)
		ret = perfring_soft_map(event, 4, -1);
	if (ret >= 0)
		ret = perfring_soft_join();
	if (ret >= 0 && is_clock)
		ret = perfring_soft_set_unwind(event, true);
	if (ret == -EOPNOTSUPP) /* of this machine's stacks */
		ret = 0;
	held(0);
	if (event)
		perfring_soft_close(event);
	perfring_soft_leave();
	return ret;
}

static int soft_open(void)
{
	return open_soft(false);
}

static int soft_open_clock(void)
{
	return open_soft(true);
}

static void *live(void *of)
{
	return of;
}

/* What the calling thread has on itself, and a thread that inherits it. */
static int soft_open_on(void)
{
	struct perf_event_attr attr = attr_of(PERF_COUNT_SW_DUMMY);
	struct perfring_soft_event *event = NULL;
	pthread_t thread;
	int ret;

	attr.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME;
	attr.inherit = 1;
	NEED(perfring_soft_join());
	ret = TRY(perfring_soft_open_on(&event, &attr, (uint32_t)gettid(), NULL));
	if (!ret)
		ret = TRY(perfring_soft_map(event, 4, -1));
#ifdef __SANITIZE_ADDRESS__ /* its own part of a new thread allocates, and aborts when that fails */
	if (!ret)
		NEED(perfring_soft_thread_create(&thread, NULL, live, NULL));
#else
	if (!ret)
		ret = TRY(perfring_soft_thread_create(&thread, NULL, live, NULL));
#endif
	if (ret == -EAGAIN) /* pthread_create says that for memory too */
		ret = -errno;
	if (!ret)
		pthread_join(thread, NULL);
	perfring_soft_close(event);
	perfring_soft_leave();
	return ret;
}

static void *joins(void *nothing)
{
	NEED(perfring_soft_join());
	wait_for_end(nothing);
	perfring_soft_leave();
	return nothing;
}

/* A ring and a file for each of two threads: all, or none. */
static int soft_map_files(void)
{
	struct perf_event_attr attr = attr_of(PERF_COUNT_SW_DUMMY);
	struct perfring_soft_event *event = NULL;
	pthread_t thread;
	int ret;

	attr.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME;
	pthread_barrier_init(&at_end, NULL, 2);
	NEED(perfring_soft_join());
	NEED(-pthread_create(&thread, NULL, joins, NULL));
	pthread_barrier_wait(&at_end);
	NEED(perfring_soft_open(&event, &attr, PERFRING_SOFT_PROCESS, NULL));
	ret = TRY(perfring_soft_map_files(event, 4, "x.data", -1));
	if (!ret && (unlink("x.data.0") || unlink("x.data.1")))
		printf("LEFT: no file\n");
	perfring_soft_close(event);
	pthread_barrier_wait(&at_end);
	pthread_join(thread, NULL);
	perfring_soft_leave();
	return ret;
}
#endif

/* ---- all of them ---- */

static const struct {
	const char *name;
	int (*run)(void);
} subjects[] = {
#define SUBJECT(name) \
	{ \
#name, name \
	}
	SUBJECT(ring_create),
	SUBJECT(ring_create_file),
	SUBJECT(ring_attach),
	SUBJECT(ring_map),
	SUBJECT(ring_calibrate),
	SUBJECT(aux_open),
	SUBJECT(reader_open),
	SUBJECT(reader_open_copy),
	SUBJECT(writer_open),
	SUBJECT(shared_open_strict),
	SUBJECT(shared_open_leased),
	SUBJECT(snapshot_take),
	SUBJECT(set_open),
	SUBJECT(set_admit),
	SUBJECT(cpus_open),
	SUBJECT(deferral_open),
	SUBJECT(format_set_open),
	SUBJECT(unwind_open),
	SUBJECT(event_open),
	SUBJECT(event_open_fallback),
	SUBJECT(events_open),
	SUBJECT(event_names_open),
	SUBJECT(target_open),
	SUBJECT(target_add_cgroup),
	SUBJECT(command_open),
	SUBJECT(session_open),
	SUBJECT(session_add_group),
	SUBJECT(session_update),
	SUBJECT(session_snapshot),
	SUBJECT(session_map_aux),
	SUBJECT(session_add_aux),
	SUBJECT(session_describe_ring),
	SUBJECT(session_add_set),
	SUBJECT(session_put_map),
	SUBJECT(session_add_ring),
	SUBJECT(counts_open),
	SUBJECT(counts_open_self),
	SUBJECT(data_open),
	SUBJECT(data_create),
	SUBJECT(data_create_stream),
	SUBJECT(data_create_directory),
	SUBJECT(object_open),
	SUBJECT(jit_open),
	SUBJECT(names_open),
	SUBJECT(profile_open),
	SUBJECT(profile_fill_open),
	SUBJECT(waits_open),
	SUBJECT(jit_file_open),
	SUBJECT(maps_take),
	SUBJECT(symbols_open),
	SUBJECT(stacks_open),
	SUBJECT(vdso_open),
#ifdef PERFRING_HAS_SOFT
	SUBJECT(soft_open),
	SUBJECT(soft_watch_open),
	SUBJECT(soft_open_clock),
	SUBJECT(soft_open_on),
	SUBJECT(soft_map_files),
#endif
};

static unsigned count_fds(void)
{
	DIR *folder = opendir("/proc/self/fd");
	unsigned count = 0;

	while (folder && readdir(folder))
		count++;
	if (folder)
		closedir(folder);
	return count;
}

int main(int argc, char **argv)
{
	unsigned fds = count_fds();
	int64_t mapped;
	int ret = -ENOENT;

	if (argc < 2) {
		for (size_t i = 0; i < sizeof(subjects) / sizeof(*subjects); i++)
			puts(subjects[i].name);
		return 0;
	}
	mapped = inject_mapped ? inject_mapped() : 0;
	for (size_t i = 0; i < sizeof(subjects) / sizeof(*subjects); i++)
		if (!strcmp(argv[1], subjects[i].name))
			ret = subjects[i].run();
	if (count_fds() != fds)
		printf("LEFT: %u descriptors, there were %u\n", count_fds(), fds);
	if (inject_mapped && inject_mapped() != mapped)
		printf("LEFT: %" PRId64 " bytes are mapped\n", inject_mapped() - mapped);
	if (ret < 0)
		fprintf(stderr, "perfring: %s: %s\n", argv[1], strerror(-ret));
	return ret < 0;
}
