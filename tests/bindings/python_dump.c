/* python_dump.c - what the Python package must say too, from C: a line for each record of a file or of a ring, a line for each
 * sample, and where each member of a struct lies.
 *
 *     python_dump items|samples FILE...     python_dump ring FILE     python_dump layout
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <perfring/file.h>
#include <perfring/maps.h>
#include <perfring/rows.h>
#include <perfring/session.h>
#include <perfring/soft.h>
#include <perfring/text.h>

static struct perfring_maps *maps;

static uint64_t sum_of(const struct perfring_list *list)
{
	uint64_t sum = 0;

	for (uint64_t i = 0; i < list->nr; i++)
		sum = sum * 31 + list->words[i];
	return sum;
}

static uint64_t sum_of_bytes(const struct perfring_raw *raw)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < raw->size; i++)
		sum = sum * 31 + ((const unsigned char *)raw->data)[i];
	return sum;
}

static void print_number(bool has, const char *name, int64_t number)
{
	if (has)
		printf(" %s=%" PRId64, name, number);
}

static void print_word(bool has, const char *name, uint64_t word)
{
	if (has)
		printf(" %s=%" PRIu64, name, word);
}

/* Every field that the Python package knows, in the order of perfring.FIELDS. */
static void print_sample(const struct perfring_item *item, const char *event)
{
	struct perfring_sample sample;
	const char *comm = NULL;
	uint64_t has;

	perfring_sample_decode(item->format, item->record, &sample, NULL);
	has = sample.present;
	printf("SAMPLE at=%" PRIu64 " size=%u event=%s", item->time, item->record->size, event);
	if (has & PERFRING_SAMPLE_TID) {
		comm = perfring_maps_comm(maps, sample.tid);
		if (comm)
			printf(" comm=%s", comm);
		else
			printf(" comm=:%d", (int32_t)sample.tid);
	}
	print_number(has & PERFRING_SAMPLE_TID, "pid", (int32_t)sample.pid);
	print_number(has & PERFRING_SAMPLE_TID, "tid", (int32_t)sample.tid);
	print_number(has & PERFRING_SAMPLE_CPU, "cpu", (int32_t)sample.cpu);
	print_word(has & PERFRING_SAMPLE_TIME, "time", sample.time);
	print_word(has & PERFRING_SAMPLE_IP, "ip", sample.ip);
	print_word(has & PERFRING_SAMPLE_ADDR, "addr", sample.addr);
	print_word(has & PERFRING_SAMPLE_PERIOD, "period", sample.period);
	if (has & PERFRING_SAMPLE_CALLCHAIN)
		printf(" callchain=%" PRIu64 "/%" PRIu64, sample.callchain.nr, sum_of(&sample.callchain));
	print_word(has & PERFRING_SAMPLE_IDENTIFIER, "identifier", sample.identifier);
	print_word(has & PERFRING_SAMPLE_ID, "id", sample.id);
	print_word(has & PERFRING_SAMPLE_STREAM_ID, "stream_id", sample.stream_id);
	print_word(has & PERFRING_SAMPLE_WEIGHT, "weight", sample.weight);
	print_word(has & PERFRING_SAMPLE_DATA_SRC, "data_src", sample.data_src);
	print_word(has & PERFRING_SAMPLE_TRANSACTION, "transaction", sample.transaction);
	print_word(has & PERFRING_SAMPLE_PHYS_ADDR, "phys_addr", sample.phys_addr);
	print_word(has & PERFRING_SAMPLE_CGROUP, "cgroup", sample.cgroup);
	print_word(has & PERFRING_SAMPLE_DATA_PAGE_SIZE, "data_page_size", sample.data_page_size);
	print_word(has & PERFRING_SAMPLE_CODE_PAGE_SIZE, "code_page_size", sample.code_page_size);
	print_word(true, "present", has);
	print_word(true, "misc", sample.misc);
	if (has & PERFRING_SAMPLE_RAW)
		printf(" raw=%" PRIu32 "/%" PRIu64, sample.raw.size, sum_of_bytes(&sample.raw));
	printf("\n");
}

static void print_other(const struct perfring_item *item, const char *event)
{
	static char text[1 << 20];
	struct perfring_record record;
	const int64_t none = INT64_MAX;
	int64_t pid = none, tid = none, cpu = none;

	if (!perfring_record_decode(item->format, item->record, &record, NULL)) {
		if (record.trailer.present & PERFRING_SAMPLE_TID) {
			pid = (int32_t)record.trailer.pid;
			tid = (int32_t)record.trailer.tid;
		}
		if (record.trailer.present & PERFRING_SAMPLE_CPU)
			cpu = (int32_t)record.trailer.cpu;
		switch (record.type) {
#define OF(NAME, noun) \
	case PERFRING_RECORD_##NAME: \
		pid = (int32_t)record.is.noun.pid; \
		tid = (int32_t)record.is.noun.tid; \
		break;
			OF(COMM, comm)
			OF(FORK, fork)
			OF(EXIT, exit)
			OF(MMAP, mmap)
			OF(MMAP2, mmap2)
		}
		perfring_maps_take_record(maps, &record);
	}
	print_number(pid != none, "pid", pid);
	print_number(tid != none, "tid", tid);
	print_number(cpu != none, "cpu", cpu);
	if (event)
		printf(" event=%s", event);
	perfring_record_text(item->format, item->record, text, sizeof(text));
	printf(" %s\n", text);
}

static void print_item(const struct perfring_item *item, const char *event, bool samples_only)
{
	const char *name = perfring_record_name(item->record->type);
	struct perfring_record record;

	if (item->record->type == PERFRING_RECORD_SAMPLE && item->format) {
		print_sample(item, event);
		return;
	}
	if (samples_only) {
		if (!perfring_record_decode(item->format, item->record, &record, NULL))
			perfring_maps_take_record(maps, &record);
		return;
	}
	if (name)
		printf("%s", name);
	else
		printf("%" PRIu32, item->record->type);
	printf(" at=%" PRIu64 " size=%u", item->time, item->record->size);
	print_other(item, event);
}

/* To the end, or to the first error, whose sentence is a line. */
static void file(const char *path, bool samples_only)
{
	struct perfring_file *of;
	struct perfring_item item;
	struct perfring_sample sample;
	struct perfring_fault fault = {0};
	int one = perfring_file_open(&of, path);

	perfring_maps_open(&maps);
	while (!one && (one = perfring_file_next(of, &item)) == 1) {
		one = 0;
		if (item.record->type == PERFRING_RECORD_SAMPLE && item.format)
			one = perfring_sample_decode(item.format, item.record, &sample, &fault);
		if (!one)
			print_item(&item, item.format ? perfring_file_event_name(of, item.format->index) : NULL, samples_only);
		fault.at += perfring_file_position(of);
	}
	if (one == -EBADMSG || one == -EOPNOTSUPP) {
		if (!fault.what)
			fault = perfring_file_fault(of);
		printf("at 0x%" PRIx64 ": %s\n", (uint64_t)fault.at, fault.what);
	} else if (one) {
		printf("%s\n", strerror(-one));
	}
	perfring_file_close(of);
	perfring_maps_close(maps);
}

static int ring(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC), one;
	struct perfring_session *session;
	struct perfring_item item;
	struct perfring_ring opened;
	char name[256];

	if (fd < 0 || perfring_ring_attach(&opened, fd, 0, NULL) || perfring_session_open(&session, 0) ||
	    perfring_session_describe_ring(session, &opened) < 0 || perfring_session_add_ring(session, &opened, -1, 1) < 0)
		return 1;
	perfring_session_flush(session);
	while ((one = perfring_session_next(session, &item)) == 1) {
		if (item.format)
			perfring_event_name(perfring_format_set_attr(perfring_session_formats(session), item.format->index),
					    name, sizeof(name));
		print_item(&item, item.format ? name : NULL, false);
	}
	perfring_session_return(session);
	perfring_session_close(session);
	perfring_ring_close(&opened);
	close(fd);
	return one != 0;
}

/* ---- layout ---- */

#define SIZE(noun) printf("%s %zu\n", #noun, sizeof(struct perfring_##noun))
#define AT(noun, member) \
	printf("%s.%s %zu %zu\n", #noun, #member, offsetof(struct perfring_##noun, member), \
	       sizeof(((struct perfring_##noun *)0)->member))
#define ATTR(member) \
	printf("attr.%s %zu %zu\n", #member, offsetof(struct perf_event_attr, member), \
	       sizeof(((struct perf_event_attr *)0)->member))
#define NUMBER(name) printf("%s %ld\n", #name, (long)PERFRING_##name)
#define FLAG(name) printf("FLAG %s %d\n", #name, (int)PERFRING_ATTR_FLAG_##name)
#define COLUMN(bit, a) printf("COLUMN %d %s %zu\n", bit, #a, sizeof(*((struct perfring_columns *)0)->a));
#define COLUMN_number(bit, a, b) COLUMN(bit, a)
#define COLUMN_numbers(bit, a, b) COLUMN(bit, a) COLUMN(bit, b)
#define COLUMN_own(bit, a, b)

static void layout(void)
{
	/* In the order of struct perfring_columns, which is theirs but for fields that were added. */
#define PERFRING_FIELD(NAME, bit, kind, a, b, ...) \
	PERFRING_FIELD_BY(COLUMN_, PERFRING_FIELD_KIND_##kind)(bit, a, b)
#define PERFRING_FIELD_ADDED(...)
#include <perfring/fields.def>
#define PERFRING_FIELD(...)
#define PERFRING_FIELD_ADDED(NAME, bit, kind, a, b, ...) \
	PERFRING_FIELD_BY(COLUMN_, PERFRING_FIELD_KIND_##kind)(bit, a, b)
#include <perfring/fields.def>
	SIZE(fault), AT(fault, at), AT(fault, what);
	SIZE(format), AT(format, sample_type), AT(format, read_format), AT(format, branch_sample_type);
	AT(format, sample_regs_user), AT(format, sample_regs_intr), AT(format, flags), AT(format, index), AT(format, least);
	AT(format, trailer), AT(format, sample_id_at), AT(format, sample_time_at), AT(format, trailer_id_back);
	AT(format, trailer_time_back), AT(format, sample_regs_user_nr), AT(format, sample_regs_intr_nr), AT(format, arch);
	AT(format, sample_stack_user), AT(format, reserved);
	SIZE(item), AT(item, record), AT(item, format), AT(item, time);
	SIZE(columns);
#undef COLUMN
#define COLUMN(bit, a) AT(columns, a);
#define PERFRING_FIELD(NAME, bit, kind, a, b, ...) \
	PERFRING_FIELD_BY(COLUMN_, PERFRING_FIELD_KIND_##kind)(bit, a, b)
#define PERFRING_FIELD_ADDED(...)
#include <perfring/fields.def>
#define PERFRING_FIELD(...)
#define PERFRING_FIELD_ADDED(NAME, bit, kind, a, b, ...) \
	PERFRING_FIELD_BY(COLUMN_, PERFRING_FIELD_KIND_##kind)(bit, a, b)
#include <perfring/fields.def>
	AT(columns, reserved);
	SIZE(rows), AT(rows, columns), AT(rows, present), AT(rows, event), AT(rows, misc), AT(rows, chain_at), AT(rows, chain);
	AT(rows, raw_at), AT(rows, raw), AT(rows, capacity), AT(rows, chain_capacity), AT(rows, raw_capacity);
	AT(rows, count), AT(rows, stops), AT(rows, reserved);
	SIZE(trailer), AT(trailer, present), AT(trailer, identifier), AT(trailer, pid), AT(trailer, tid), AT(trailer, time);
	AT(trailer, id), AT(trailer, stream_id), AT(trailer, cpu), AT(trailer, cpu_reserved), AT(trailer, reserved);
	SIZE(string), AT(string, data), AT(string, size), AT(string, space);
	SIZE(file_id), AT(file_id, maj), AT(file_id, min), AT(file_id, ino), AT(file_id, ino_generation);
	AT(file_id, build_id), AT(file_id, build_id_size), AT(file_id, has_build_id);
	SIZE(record), AT(record, type), AT(record, misc), AT(record, size), AT(record, trailing), AT(record, trailing_size);
	AT(record, padding), AT(record, trailer);
	printf("record.is_ %zu %zu\n", offsetof(struct perfring_record, is), sizeof(((struct perfring_record *)0)->is));
	SIZE(record_comm), AT(record_comm, reserved_), AT(record_comm, pid), AT(record_comm, tid), AT(record_comm, comm);
	SIZE(record_fork), AT(record_fork, reserved_), AT(record_fork, pid), AT(record_fork, ppid), AT(record_fork, tid);
	AT(record_fork, ptid), AT(record_fork, time);
	SIZE(record_exit), AT(record_exit, reserved_), AT(record_exit, pid), AT(record_exit, ppid), AT(record_exit, tid);
	AT(record_exit, ptid), AT(record_exit, time);
	SIZE(record_mmap), AT(record_mmap, reserved_), AT(record_mmap, pid), AT(record_mmap, tid), AT(record_mmap, addr);
	AT(record_mmap, len), AT(record_mmap, pgoff), AT(record_mmap, filename);
	SIZE(record_mmap2), AT(record_mmap2, reserved_), AT(record_mmap2, pid), AT(record_mmap2, tid), AT(record_mmap2, addr);
	AT(record_mmap2, len), AT(record_mmap2, pgoff), AT(record_mmap2, file), AT(record_mmap2, prot), AT(record_mmap2, flags);
	AT(record_mmap2, filename);
	SIZE(ring), AT(ring, page), AT(ring, data), AT(ring, size), AT(ring, span), AT(ring, mapping), AT(ring, mapping_size);
	AT(ring, flags), AT(ring, fd), AT(ring, padding);
	SIZE(totals), AT(totals, records), AT(totals, samples), AT(totals, bytes), AT(totals, lost), AT(totals, lost_samples);
	AT(totals, throttles), AT(totals, unthrottles), AT(totals, late), AT(totals, unknown_ids), AT(totals, corrupt);
	AT(totals, skipped), AT(totals, first_time), AT(totals, last_time), AT(totals, aux), AT(totals, aux_truncated);
	AT(totals, aux_partial), AT(totals, aux_collisions);
	ATTR(type), ATTR(size), ATTR(config), ATTR(sample_period), ATTR(sample_type), ATTR(read_format), ATTR(wakeup_events);
	ATTR(bp_type), ATTR(config1), ATTR(config2), ATTR(branch_sample_type), ATTR(sample_regs_user), ATTR(sample_stack_user);
	ATTR(clockid), ATTR(sample_regs_intr), ATTR(aux_watermark), ATTR(sample_max_stack), ATTR(aux_sample_size);
	FLAG(disabled), FLAG(inherit), FLAG(exclude_kernel), FLAG(exclude_hv), FLAG(mmap), FLAG(comm), FLAG(freq), FLAG(task);
	FLAG(sample_id_all), FLAG(mmap2), FLAG(comm_exec), FLAG(use_clockid);
	NUMBER(RECORD_MMAP), NUMBER(RECORD_COMM), NUMBER(RECORD_EXIT), NUMBER(RECORD_FORK), NUMBER(RECORD_SAMPLE);
	NUMBER(RECORD_MISC_FORK_EXEC), NUMBER(RECORD_MMAP2), NUMBER(RECORD_OF_PERF), NUMBER(RECORD_MAX), NUMBER(ROWS_CHAIN_MIN), NUMBER(ROWS_RAW_MIN);
	NUMBER(READER_COPY), NUMBER(SESSION_SHRINK), NUMBER(SESSION_RAISE_FILES), NUMBER(FALLBACK_ALL), NUMBER(SOFT_PROCESS);
	NUMBER(FEATURE_HOSTNAME), NUMBER(FEATURE_OSRELEASE), NUMBER(FEATURE_VERSION), NUMBER(FEATURE_ARCH);
	NUMBER(FEATURE_CPUDESC), NUMBER(FEATURE_CPUID);
	printf("CALLCHAIN %d\nRAW %d\n", __builtin_ctz(PERFRING_SAMPLE_CALLCHAIN), __builtin_ctz(PERFRING_SAMPLE_RAW));
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "layout")) {
		layout();
		return 0;
	}
	if (argc == 3 && !strcmp(argv[1], "ring")) {
		perfring_maps_open(&maps);
		return ring(argv[2]);
	}
	if (argc < 3)
		return 2;
	for (int i = 2; i < argc; i++) {
		if (argc > 3)
			printf("== %s\n", argv[i]);
		file(argv[i], !strcmp(argv[1], "samples"));
	}
	return 0;
}
