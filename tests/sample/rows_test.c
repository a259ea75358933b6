/* rows_test.c - samples as rows of columns: each number and list that decoding one by one finds, in order, within the space. */
#include <perfring/file.h>
#include <perfring/generate.h>
#include <perfring/ring.h>
#include <perfring/rows.h>
#include <perfring/session.h>
#include <perfring/writer.h>
#include "file_rig.h"
#include "test.h"

TestSuite(rows, .timeout = 60);

enum {
	EVENTS = 3,
	SAMPLES = 3000,
	ROWS_MAX = 1000,
	CHAIN_MAX = 2 * PERFRING_ROWS_CHAIN_MIN,
	RAW_MAX = 2 * PERFRING_ROWS_RAW_MIN,
};

/* ---- rows with every column ---- */

#define SPACE(a) static __typeof__(*((struct perfring_columns *)0)->a) space_##a[ROWS_MAX];
#define SPACE_number(a, b) SPACE(a)
#define SPACE_numbers(a, b) SPACE(a) SPACE(b)
#define SPACE_own(a, b)
#define PERFRING_FIELD(NAME, bit, kind, a, b, ...) PERFRING_FIELD_BY(SPACE_, PERFRING_FIELD_KIND_##kind)(a, b)
#include <perfring/fields.def>

static uint64_t present[ROWS_MAX], chain_at[ROWS_MAX + 1], chain[CHAIN_MAX], raw_at[ROWS_MAX + 1];
static unsigned char raw[RAW_MAX];
static uint32_t event[ROWS_MAX];
static uint16_t misc[ROWS_MAX];

static struct perfring_rows all_columns(size_t capacity)
{
	struct perfring_rows rows = {
		.present = present,
		.event = event,
		.misc = misc,
		.chain_at = chain_at,
		.chain = chain,
		.raw_at = raw_at,
		.raw = raw,
		.capacity = capacity,
		.chain_capacity = CHAIN_MAX,
		.raw_capacity = RAW_MAX,
	};

#define SET(a) rows.columns.a = space_##a;
#define SET_number(a, b) SET(a)
#define SET_numbers(a, b) SET(a) SET(b)
#define SET_own(a, b)
#define PERFRING_FIELD(NAME, bit, kind, a, b, ...) PERFRING_FIELD_BY(SET_, PERFRING_FIELD_KIND_##kind)(a, b)
#include <perfring/fields.def>
	return rows;
}

#define SAME(a) \
	cr_assert_eq(space_##a[row], has ? sample.a : 0, "row %zu: " #a " of event %u", row, item->format->index);
#define SAME_number(a, b) SAME(a)
#define SAME_numbers(a, b) SAME(a) SAME(b)
#define SAME_own(a, b)

/* Row `row` is this sample. */
static void compare(size_t row, const struct perfring_item *item)
{
	struct perfring_sample sample;
	uint64_t nr;
	bool has;

	cr_assert_eq(perfring_sample_decode(item->format, item->record, &sample, NULL), 0);
#define PERFRING_FIELD(NAME, bit, kind, a, b, ...) \
	has = sample.present & PERFRING_SAMPLE_##NAME; \
	PERFRING_FIELD_BY(SAME_, PERFRING_FIELD_KIND_##kind)(a, b)
#include <perfring/fields.def>
	cr_assert_eq(present[row], sample.present);
	cr_assert_eq(event[row], item->format->index);
	cr_assert_eq(misc[row], sample.misc);
	nr = sample.present & PERFRING_SAMPLE_CALLCHAIN ? sample.callchain.nr : 0;
	cr_assert_eq(chain_at[row + 1] - chain_at[row], nr);
	cr_assert(!nr || !memcmp(chain + chain_at[row], sample.callchain.words, nr * 8));
	nr = sample.present & PERFRING_SAMPLE_RAW ? sample.raw.size : 0;
	cr_assert_eq(raw_at[row + 1] - raw_at[row], nr);
	cr_assert(!nr || !memcmp(raw + raw_at[row], sample.raw.data, nr));
}

/* ---- a file ---- */

/* SAMPLES random samples of EVENTS random events that between them have every field, and a COMM after each 100. */
static void write_random(uint64_t seed)
{
	static const char comm[] = "comm";
	struct perfring_format formats[EVENTS];
	struct perfring_generator generator;
	static unsigned char bytes[8192], encoded[8192];
	struct perfring_record record = {.type = PERFRING_RECORD_COMM, .is.comm.comm = {.data = comm, .size = 4}};
	struct perf_event_attr attr;
	struct perfring_file_writer *writer;
	struct perfring_sample sample;
	uint64_t fields = 0;
	int fd;

	perfring_generator_seed(&generator, seed);
	writer = create((struct mode){0}, &fd);
	for (uint32_t i = 0; i < EVENTS; i++) {
		cr_assert_eq(perfring_generate_attr(&generator, &attr, sizeof(attr)), 0);
		attr.sample_type |= PERFRING_SAMPLE_IDENTIFIER | PERFRING_SAMPLE_TIME;
		/* The last has what the others lack. */
		if (i == EVENTS - 1)
			attr.sample_type |= PERFRING_SAMPLE_KNOWN & ~(fields | PERFRING_SAMPLE_WEIGHT_STRUCT);
		if (attr.sample_type & PERFRING_SAMPLE_WEIGHT)
			attr.sample_type &= ~(uint64_t)PERFRING_SAMPLE_WEIGHT_STRUCT;
		fields |= attr.sample_type;
		attr.sample_id_all = 1;
		cr_assert_eq(perfring_format_from_attr(&formats[i], &attr), 0);
		cr_assert_eq(perfring_file_writer_add_event(writer, &attr, "random"), (int)i);
		cr_assert_eq(perfring_file_writer_add_id(writer, i, i + 1), 0);
	}
	cr_assert_eq(perfring_file_writer_begin(writer), 0);
	for (uint32_t i = 0; i < SAMPLES; i++) {
		uint32_t index = (uint32_t)perfring_generator_draw(&generator, EVENTS);
		int64_t size;

		cr_assert_geq(
			perfring_generate_sample(&generator, &formats[index], &sample, bytes, sizeof(bytes), 4096), 0);
		sample.identifier = sample.id = index + 1;
		sample.time = i + 1;
		size = perfring_sample_encode_any(&formats[index], &sample, encoded, sizeof(encoded));
		cr_assert_gt(size, 0);
		write_bytes(writer, encoded, (size_t)size);
		if (i % 100 == 99) {
			record.is.comm.tid = i;
			record.trailer = (struct perfring_trailer){.identifier = 1, .id = 1, .time = i + 1};
			cr_assert_eq(perfring_file_writer_put(writer, 0, &record), 0);
		}
	}
	end(writer, fd);
}

static struct perfring_file *opened(void)
{
	struct perfring_file *file;

	cr_assert_eq(perfring_file_open(&file, path), 0);
	return file;
}

/* The next sample of a file that is read one by one; NULL: none. */
static const struct perfring_item *next_sample(struct perfring_file *file)
{
	static struct perfring_item item;
	int one;

	while ((one = perfring_file_next(file, &item)) == 1)
		if (item.record->type == PERF_RECORD_SAMPLE)
			return &item;
	cr_assert_eq(one, 0);
	return NULL;
}

Test(rows, what_decoding_one_by_one_finds)
{
	static const size_t capacities[] = {1, 7, ROWS_MAX};

	make_folder();
	for (uint64_t seed = 1; seed <= 4; seed++) {
		write_random(seed);
		for (size_t i = 0; i < 3; i++) {
			struct perfring_rows rows = all_columns(capacities[i]);
			struct perfring_file *one = opened(), *many = opened();
			const struct perfring_item *sample;
			size_t count = 0, calls = 0;
			struct perfring_item item;
			int ret;

			do {
				rows.count = 0;
				ret = perfring_file_fill(many, &rows, &item);
				cr_assert(ret == 0 || (ret == 1 && !item.record && perfring_rows_is_full(&rows)));
				for (size_t row = 0; row < rows.count; row++) {
					sample = next_sample(one);
					cr_assert_not_null(sample);
					compare(row, sample);
				}
				count += rows.count;
				calls++;
			} while (ret == 1);
			cr_assert_eq(count, SAMPLES);
			cr_assert_null(next_sample(one));
			cr_assert(calls >= SAMPLES / capacities[i]);
			rows.count = 0;
			cr_assert_eq(perfring_file_fill(many, &rows, &item), 0);
			cr_assert_eq(rows.count, 0);
			perfring_file_close(one);
			perfring_file_close(many);
		}
	}
	remove_folder();
}

Test(rows, stops_where_it_is_asked_to)
{
	struct perfring_rows rows = all_columns(ROWS_MAX);
	struct perfring_record record;
	struct perfring_item item;
	uint32_t stops = 0, count = 0;
	struct perfring_file *file;
	int ret;

	make_folder();
	write_random(1);
	rows.stops = 1 << PERFRING_RECORD_COMM | UINT64_C(1) << 63;
	file = opened();
	do {
		rows.count = 0;
		ret = perfring_file_fill(file, &rows, &item);
		count += (uint32_t)rows.count;
		if (ret == 1 && item.record) {
			cr_assert_eq(perfring_record_decode(item.format, item.record, &record, NULL), 0);
			cr_assert_eq(record.type, PERFRING_RECORD_COMM);
			cr_assert_eq(record.is.comm.tid, count - 1);
			stops++;
		}
	} while (ret == 1);
	cr_assert_eq(ret, 0);
	cr_assert_eq(stops, SAMPLES / 100);
	cr_assert_eq(count, SAMPLES);
	perfring_file_close(file);
	remove_folder();
}

/* With `rows.count` kept, rows go on after those that are there. */
Test(rows, more_rows_after_those_there)
{
	struct perfring_rows rows = all_columns(10);
	struct perfring_file *one, *many;
	struct perfring_item item;

	make_folder();
	write_random(2);
	one = opened();
	many = opened();
	cr_assert_eq(perfring_file_fill(many, &rows, &item), 1);
	cr_assert_leq(rows.count, 10);
	while (rows.count < 20 && perfring_rows_is_full(&rows) && rows.capacity < 20)
		rows.capacity = 20;
	if (!perfring_rows_is_full(&rows))
		cr_assert_eq(perfring_file_fill(many, &rows, &item), 1);
	for (size_t row = 0; row < rows.count; row++)
		compare(row, next_sample(one));
	perfring_file_close(one);
	perfring_file_close(many);
	remove_folder();
}

Test(rows, full)
{
	struct perfring_rows rows = all_columns(1);
	struct perfring_item item;
	struct perfring_file *file;
	uint64_t was;

	make_folder();
	write_random(3);
	file = opened();
	cr_assert_eq(perfring_file_fill(file, &rows, &item), 1);
	cr_assert_eq(rows.count, 1);
	was = space_time[0];
	cr_assert_eq(perfring_file_fill(file, &rows, &item), -ENOSPC);
	/* Nothing was read. */
	cr_assert_eq(rows.count, 1);
	cr_assert_eq(space_time[0], was);
	rows.count = 0;
	cr_assert_eq(perfring_file_fill(file, &rows, &item), 1);
	cr_assert_eq(space_time[0], was + 1);
	/* Too little for a sample of any size. */
	rows = all_columns(ROWS_MAX);
	rows.chain_capacity = PERFRING_ROWS_CHAIN_MIN - 1;
	cr_assert(perfring_rows_is_full(&rows));
	cr_assert_eq(perfring_file_fill(file, &rows, &item), -ENOSPC);
	rows = all_columns(ROWS_MAX);
	rows.raw_capacity = PERFRING_ROWS_RAW_MIN - 1;
	cr_assert(perfring_rows_is_full(&rows));
	rows = all_columns(0);
	cr_assert_eq(perfring_file_fill(file, &rows, &item), -ENOSPC);
	cr_assert_eq(perfring_file_fill(NULL, &rows, &item), -ENOSPC);
	rows = all_columns(1);
	cr_assert_eq(perfring_file_fill(NULL, &rows, &item), -EINVAL);
	perfring_file_close(file);
	remove_folder();
}

/* The largest chain that a record can hold goes into the least space that is asked for. */
Test(rows, the_largest_sample)
{
	static uint64_t record[65536 / 8];
	static uint64_t least[PERFRING_ROWS_CHAIN_MIN];
	struct perf_event_header header = {.type = PERF_RECORD_SAMPLE, .size = PERFRING_RECORD_MAX};
	struct perfring_format format = {.sample_type = PERFRING_SAMPLE_CALLCHAIN};
	struct perfring_item item = {.record = (void *)record, .format = &format};
	struct perfring_rows rows = {
		.chain_at = chain_at, .chain = least, .capacity = 2, .chain_capacity = PERFRING_ROWS_CHAIN_MIN};

	perfring_format_plan(&format);
	memcpy(record, &header, sizeof(header));
	record[1] = PERFRING_RECORD_MAX / 8 - 2;
	for (size_t i = 2; i < PERFRING_RECORD_MAX / 8; i++)
		record[i] = i;
	cr_assert_eq(perfring_rows_put(&rows, &item, NULL), 1);
	cr_assert_eq(rows.count, 1);
	cr_assert_eq(chain_at[0], 0);
	cr_assert_eq(chain_at[1], PERFRING_RECORD_MAX / 8 - 2);
	cr_assert_eq(memcmp(least, record + 2, (size_t)chain_at[1] * 8), 0);
	cr_assert_eq(perfring_rows_put(&rows, &item, NULL), -ENOSPC);
	cr_assert_eq(rows.count, 1);
}

Test(rows, damaged)
{
	struct perf_event_attr attr = attr_of(TIMED | PERFRING_SAMPLE_CALLCHAIN);
	struct perfring_rows rows = all_columns(ROWS_MAX);
	struct perfring_file_writer *writer;
	struct perfring_item item;
	struct perfring_file *file;
	struct {
		struct timed timed;
		uint64_t nr;
	} sample = {0};
	int fd;

	make_folder();
	writer = create((struct mode){0}, &fd);
	cr_assert_eq(perfring_file_writer_add_event(writer, &attr, "one"), 0);
	cr_assert_eq(perfring_file_writer_begin(writer), 0);
	sample.timed.header = (struct perf_event_header){.type = PERF_RECORD_SAMPLE, .size = sizeof(sample)};
	for (uint64_t i = 1; i <= 3; i++) {
		sample.timed.time = i;
		sample.nr = i == 2 ? 5 : 0;
		write_bytes(writer, &sample, sizeof(sample));
	}
	end(writer, fd);
	file = opened();
	cr_assert_eq(perfring_file_fill(file, &rows, &item), -EBADMSG);
	cr_assert_eq(rows.count, 1);
	cr_assert_eq(space_time[0], 1);
	cr_assert_not_null(item.record);
	cr_assert_eq(item.time, 2);
	cr_assert_eq(perfring_file_fault(file).at,
		     perfring_file_position(file) + (int64_t)offsetof(__typeof__(sample), nr));
	cr_assert_str_eq(perfring_file_fault(file).what, "list longer than the record");
	cr_assert_eq(perfring_file_fill(file, &rows, &item), 0);
	cr_assert_eq(rows.count, 2);
	cr_assert_eq(space_time[1], 3);
	perfring_file_close(file);
	remove_folder();
}

/* ---- a session ---- */

Test(rows, of_a_session)
{
	struct perf_event_attr attr = attr_of(TIMED | PERFRING_SAMPLE_IDENTIFIER | PERFRING_SAMPLE_CALLCHAIN);
	struct perfring_ring_options options = {.pages = 4, .attr = &attr, .id = 5};
	struct perfring_rows rows = all_columns(ROWS_MAX);
	uint64_t words[3] = {1, 2, 3}, buffer[32];
	struct perfring_writer *writer;
	struct perfring_session *session;
	struct perfring_format format;
	struct perfring_item item;
	struct perfring_ring ring;
	uint32_t number = 0;

	attr.use_clockid = 1;
	cr_assert_eq(perfring_format_from_attr(&format, &attr), 0);
	cr_assert_eq(perfring_ring_create(&ring, &options), 0);
	cr_assert_eq(perfring_writer_open(&writer, &ring, NULL), 0);
	for (uint64_t i = 1; i <= 20; i++) {
		struct perfring_sample sample = {.identifier = 5, .ip = i * 10, .tid = 7, .time = i, .misc = 2};
		int64_t size;

		sample.callchain = (struct perfring_list){.words = words, .nr = i % 4};
		size = perfring_sample_encode_any(&format, &sample, buffer, sizeof(buffer));
		/* The tenth has a longer chain than fits. */
		if (i == 10)
			buffer[5] = 100;
		cr_assert(perfring_writer_write(writer, NULL, buffer, (uint64_t)size));
	}
	cr_assert_eq(perfring_session_open(&session, 0), 0);
	cr_assert_geq(perfring_session_describe_ring(session, &ring), 0);
	cr_assert_geq(perfring_session_add_ring(session, &ring, -1, 0), 0);
	perfring_session_flush(session);
	rows.capacity = 5;
	cr_assert_eq(perfring_session_fill(session, &rows, &item), 1);
	cr_assert_null(item.record);
	cr_assert_eq(rows.count, 5);
	cr_assert_eq(perfring_session_fill(session, &rows, &item), -ENOSPC);
	rows.capacity = ROWS_MAX;
	cr_assert_eq(perfring_session_fill(session, &rows, &item), -EBADMSG);
	cr_assert_eq(rows.count, 9);
	cr_assert_eq(item.time, 10);
	cr_assert_eq(perfring_session_fault(session, &number).at, 5 * 8);
	cr_assert_eq(number, UINT32_MAX);
	cr_assert_eq(perfring_session_fill(session, &rows, &item), 0);
	perfring_session_return(session);
	cr_assert_eq(rows.count, 19);
	for (uint64_t row = 0; row < 19; row++) {
		uint64_t i = row + 1 + (row >= 9);

		cr_assert_eq(space_time[row], i);
		cr_assert_eq(space_ip[row], i * 10);
		cr_assert_eq(space_tid[row], 7);
		cr_assert_eq(misc[row], 2);
		cr_assert_eq(chain_at[row + 1] - chain_at[row], i % 4);
		cr_assert_eq(memcmp(chain + chain_at[row], words, (i % 4) * 8), 0);
		cr_assert_eq(present[row], attr.sample_type);
	}
	perfring_session_close(session);
	perfring_writer_close(writer);
	perfring_ring_close(&ring);
}
