/* inject_subject.c - each public constructor, what it needs before it, and its destructor: `inject_subject NAME` is run by
 * inject.c, which fails what is asked for between fails() and held().
 *
 * A constructor that fails says so as the tool does; in the end every descriptor and mapping that it took is given back.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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
#include <perfring/merge.h>
#include <perfring/reader.h>
#include <perfring/session.h>
#include <perfring/set.h>
#include <perfring/shared.h>
#include <perfring/snapshot.h>
#include <perfring/split.h>
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
	void *room;
	int ret;

	NEED(make_ring(&ring, PERFRING_RING_BACKWARD | PERFRING_RING_OVERWRITE, false, 0));
	NEED(perfring_writer_open(&writer, &ring, NULL));
	for (int i = 0; i < 10; i++) {
		room = perfring_writer_reserve(writer, NULL, 64, &claim);
		memcpy(room, &record, sizeof(record));
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
	held(0);
	if (!ret && perfring_events_count(events) != 5)
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
	held(0);
	if (target)
		perfring_target_close(target);
	return ret;
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

static int session_open(void)
{
	struct perf_event_attr attr = attr_of(PERF_COUNT_SW_PAGE_FAULTS),
			       other = attr_of(PERF_COUNT_SW_CONTEXT_SWITCHES);
	struct perfring_target *target = own_target();
	struct perfring_session *session = NULL;
	struct perfring_item item;
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
	/* what was refused leaves a session that can be read */
	if (session) {
		perfring_session_wait(session, 0);
		while (perfring_session_next(session, &item) == 1)
			;
		perfring_session_return(session);
		if (ret < 0 && *perfring_session_refusal(session))
			fprintf(stderr, "perfring: %s\n", perfring_session_refusal(session));
		perfring_session_close(session);
	}
	perfring_target_close(target);
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

/* ---- data/ ---- */

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

/* ---- soft/ ---- */

#ifdef PERFRING_HAS_SOFT
static int open_soft(bool is_clock)
{
	struct perf_event_attr attr = {.size = sizeof(attr), .sample_period = 1000000, .sample_id_all = 1};
	struct perfring_soft_event *event = NULL;
	struct perfring_soft_point *point;
	int ret = 0;

	attr.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME;
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
	SUBJECT(aux_open),
	SUBJECT(reader_open),
	SUBJECT(reader_open_copy),
	SUBJECT(writer_open),
	SUBJECT(shared_open_strict),
	SUBJECT(shared_open_leased),
	SUBJECT(snapshot_take),
	SUBJECT(set_open),
	SUBJECT(cpus_open),
	SUBJECT(deferral_open),
	SUBJECT(format_set_open),
	SUBJECT(event_open),
	SUBJECT(event_open_fallback),
	SUBJECT(events_open),
	SUBJECT(event_names_open),
	SUBJECT(target_open),
	SUBJECT(command_open),
	SUBJECT(session_open),
	SUBJECT(session_add_ring),
	SUBJECT(counts_open),
	SUBJECT(data_open),
	SUBJECT(data_create),
	SUBJECT(data_create_stream),
	SUBJECT(object_open),
#ifdef PERFRING_HAS_SOFT
	SUBJECT(soft_open),
	SUBJECT(soft_open_clock),
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
