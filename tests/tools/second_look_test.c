/* second_look_test.c - `record --unwind`: a mapping whose record comes into another ring after the look that found the sample.
 *
 * On a machine that is a moment between two rings of one look.  Here the record is written between the two looks. */
#include "test.h"

#ifdef __x86_64__
#include "tools/record_unwind.c"

#include <inttypes.h>
#include <stdio.h>
#include <perfring/writer.h>

/* ---- what tools/record_unwind.c asks of the command, as far as it is asked here ---- */

void *tool_allocate(void *old, size_t nr, size_t size)
{
	void *memory = realloc(old, nr * size + 1);

	if (!memory)
		abort();
	return memory;
}

void tool_out_of_memory(void)
{
	abort();
}

int tool_record_write_pieces(struct recording *recording, struct perfring_file_writer *writer, uint32_t into,
			     const struct iovec *pieces, int count, uint64_t records, uint64_t samples)
{
	(void)recording;
	(void)into;
	(void)records;
	(void)samples;
	return perfring_file_writer_write(writer, pieces, count);
}

/* Of what runs already, which is not part of this. */
int tool_record_open_memory(struct recording *recording, struct recorded_side *side)
{
	(void)recording;
	(void)side;
	abort();
}

void tool_record_close_memory(struct recorded_side *side)
{
	(void)side;
	abort();
}

int tool_record_put_state(const struct recording *recording, struct perfring_file_writer *writer,
			  struct recorded_pids *pids)
{
	(void)recording;
	(void)writer;
	(void)pids;
	abort();
}

void tool_symbols_complain_of_stacks(const struct perfring_stacks *of)
{
	(void)of;
}

/* ---- two rings ---- */

enum {
	ID = 7,
	BP = 6,
	SP = 7,
	IP = 8,
	STACK = 0x7000,
};

struct rig {
	struct recording recording;
	struct recorded_event event;
	struct perfring_format format;
	struct perfring_ring rings[2];
	struct perfring_writer *writers[2];
	FILE *file;
	char path[64];
};

static void rig_open(struct rig *rig)
{
	const struct perfring_ring_options ring = {.pages = 4};
	const struct perfring_writer_options writer = {.wake_fd = -1};
	struct perf_event_attr *attr = &rig->event.attr;
	uint64_t id = ID;

	memset(rig, 0, sizeof(*rig));
	attr->size = sizeof(*attr);
	attr->sample_type = PERFRING_SAMPLE_IDENTIFIER | PERFRING_SAMPLE_IP | PERFRING_SAMPLE_TID |
			    PERFRING_SAMPLE_TIME | PERFRING_SAMPLE_REGS_USER | PERFRING_SAMPLE_STACK_USER;
	attr->sample_regs_user = 1 << IP | 1 << SP | 1 << BP;
	attr->sample_stack_user = 64;
	attr->sample_id_all = attr->mmap = attr->mmap2 = attr->use_clockid = 1;
	attr->clockid = 1; /* CLOCK_MONOTONIC */
	cr_assert_eq(perfring_format_from_attr(&rig->format, attr), 0);
	rig->recording.events = &rig->event;
	rig->recording.event_count = 1;
	rig->recording.unwinds = true;
	cr_assert_eq(perfring_session_open(&rig->recording.session, 0), 0);
	cr_assert_eq(perfring_session_describe(rig->recording.session, attr, &id, 1), 0);
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(perfring_ring_create(&rig->rings[i], &ring), 0);
		cr_assert_eq(perfring_session_add_ring(rig->recording.session, &rig->rings[i], -1, 0), i);
		cr_assert_eq(perfring_writer_open(&rig->writers[i], &rig->rings[i], &writer), 0);
	}
	rig->file = tmpfile();
	cr_assert_not_null(rig->file);
	snprintf(rig->path, sizeof(rig->path), "/proc/self/fd/%d", fileno(rig->file));
	cr_assert_eq(perfring_file_writer_open(&rig->recording.writer, fileno(rig->file)), 0);

	struct perf_event_attr written = *attr;

	cr_assert(perfring_stacks_attr(&written));
	cr_assert_eq(perfring_file_writer_add_event(rig->recording.writer, &written, "made"), 0);
	cr_assert_eq(perfring_file_writer_add_id(rig->recording.writer, 0, ID), 0);
	cr_assert_eq(perfring_file_writer_begin(rig->recording.writer), 0);
	cr_assert(tool_unwinding_open(&rig->recording));
}

static void rig_close(struct rig *rig)
{
	tool_unwinding_close(&rig->recording);
	perfring_file_writer_close(rig->recording.writer);
	fclose(rig->file);
	perfring_session_close(rig->recording.session);
	for (int i = 0; i < 2; i++) {
		perfring_writer_close(rig->writers[i]);
		perfring_ring_close(&rig->rings[i]);
	}
}

static void write_record(struct rig *rig, int ring, const void *bytes, int64_t size)
{
	struct perfring_claim claim;
	void *buffer;

	cr_assert_gt(size, 0);
	buffer = perfring_writer_reserve(rig->writers[ring], NULL, (uint32_t)size, &claim);
	cr_assert_not_null(buffer);
	memcpy(buffer, bytes, (size_t)size);
	perfring_writer_commit(rig->writers[ring], &claim);
}

/* Three functions, of which each has called the one before. */
static __attribute__((noinline)) void leaf(void)
{
	__asm__ volatile("");
}

static __attribute__((noinline)) void caller(void)
{
	leaf();
}

static __attribute__((noinline)) void root(void)
{
	caller();
}

/* A sample at the first instruction of `leaf`: of that instruction the return address is at sp, whatever the compiler made of the rest. */
static void write_sample(struct rig *rig, int ring, uint64_t time)
{
	const uint64_t stack[8] = {(uintptr_t)caller + 1, (uintptr_t)root + 1, 0};
	const uint64_t registers[] = {0, STACK, (uintptr_t)leaf}; /* in rising order of their bits */
	struct perfring_sample sample = {.misc = PERFRING_RECORD_MISC_USER,
					 .identifier = ID,
					 .ip = (uintptr_t)leaf,
					 .pid = (uint32_t)getpid(),
					 .tid = (uint32_t)getpid(),
					 .time = time};
	_Alignas(8) unsigned char bytes[512];

	sample.regs_user.abi = 2; /* of 64 bits */
	sample.regs_user.nr = 3;
	sample.regs_user.mask = rig->event.attr.sample_regs_user;
	sample.regs_user.values = (const perfring_word *)registers;
	sample.stack_user.data = (const void *)stack;
	sample.stack_user.size = sample.stack_user.dyn_size = sizeof(stack);
	write_record(rig, ring, bytes, perfring_sample_encode(&rig->format, &sample, bytes, sizeof(bytes)));
}

/* The MMAP2 of this program's code. */
static void write_mapping(struct rig *rig, int ring, uint64_t time)
{
	struct perfring_record record = {.type = PERFRING_RECORD_MMAP2, .misc = PERFRING_RECORD_MISC_USER};
	struct perfring_record_mmap2 *map = &record.is.mmap2;
	FILE *file = fopen("/proc/self/maps", "re");
	uint64_t start, end, offset;
	char line[1024], path[1024];
	_Alignas(8) unsigned char bytes[2048];

	cr_assert_not_null(file);
	while (!map->len && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64 " %*s %*s %1023s", &start, &end, &offset,
			   path) != 4 ||
		    (uintptr_t)leaf < start || (uintptr_t)leaf >= end)
			continue;
		map->addr = start;
		map->len = end - start;
		map->pgoff = offset;
	}
	fclose(file);
	cr_assert(map->len);
	map->pid = map->tid = (uint32_t)getpid();
	map->prot = 5;
	map->filename = (struct perfring_string){.data = path, .size = (uint32_t)strlen(path)};
	record.trailer.pid = record.trailer.tid = map->pid;
	record.trailer.time = time;
	record.trailer.identifier = ID;
	write_record(rig, ring, bytes, perfring_record_encode(&rig->format, &record, bytes, sizeof(bytes)));
}

/* ---- looks ---- */

static void look(struct rig *rig)
{
	struct perfring_span span;

	cr_assert_geq(perfring_session_wait(rig->recording.session, 0), 0);
	while (perfring_session_next_span(rig->recording.session, &span) == 1)
		tool_unwinding_take(&rig->recording, &span, 0);
}

static void write_round(struct rig *rig, bool is_last)
{
	cr_assert_eq(tool_unwinding_write(&rig->recording, is_last), 0);
	perfring_session_return(rig->recording.session);
}

/* The types of the file's records, in the order in which they were written, and the chain of the last sample. */
static void read_file(struct rig *rig, char *types, uint64_t *chain, uint64_t *nr)
{
	struct perfring_file *file;
	struct perfring_sample sample;
	struct perfring_item item;
	int one;

	cr_assert_eq(perfring_file_writer_finish(rig->recording.writer), 0);
	cr_assert_eq(perfring_file_open(&file, rig->path), 0);
	*nr = 0;
	while ((one = perfring_file_next(file, &item)) == 1) {
		*types++ = item.record->type == PERFRING_RECORD_SAMPLE  ? 'S'
			   : item.record->type == PERFRING_RECORD_MMAP2 ? 'M'
									: '?';
		if (item.record->type != PERFRING_RECORD_SAMPLE)
			continue;
		cr_assert_eq(perfring_sample_decode_any(item.format, item.record, &sample, NULL), 0);
		*nr = sample.callchain.nr;
		cr_assert_leq(*nr, 8);
		for (uint64_t i = 0; i < *nr; i++)
			chain[i] = sample.callchain.words[i];
	}
	cr_assert_eq(one, 0);
	*types = 0;
	perfring_file_close(file);
}

/* The first look finds the sample, the second one the mapping, which is older: the stack is whole.  With one look the sample is
 * written before its mapping is known. */
Test(second_look, a_mapping_of_another_ring, .timeout = 60)
{
	for (int looks = 1; looks <= 2; looks++) {
		uint64_t chain[8], nr;
		char types[16];
		struct rig rig;

		rig_open(&rig);
		write_sample(&rig, 1, 20);
		look(&rig);
		write_mapping(&rig, 0, 10);
		if (looks == 2) {
			tool_unwinding_look_again(&rig.recording);
			look(&rig);
		}
		write_round(&rig, false);
		look(&rig);
		write_round(&rig, true);
		read_file(&rig, types, chain, &nr);
		cr_assert_str_eq(types, "MS", "in the order of their times");
		cr_assert_eq(chain[0], (uint64_t)(int64_t)PERFRING_CONTEXT_USER);
		cr_assert_eq(chain[1], (uintptr_t)leaf);
		if (looks == 1) {
			cr_assert_eq(nr, 2, "only the sample's own address");
		} else {
			cr_assert_eq(nr, 4);
			cr_assert_eq(chain[2], (uintptr_t)caller);
			cr_assert_eq(chain[3], (uintptr_t)root);
		}
		rig_close(&rig);
	}
}

/* What only the second look finds, and is younger than all of the first, waits for the next round: its own mapping may be in a ring that
 * this look had passed. */
Test(second_look, what_is_younger_waits, .timeout = 60)
{
	uint64_t chain[8], nr;
	char types[16];
	struct rig rig;

	rig_open(&rig);
	write_sample(&rig, 1, 20);
	look(&rig);
	write_sample(&rig, 1, 40);
	tool_unwinding_look_again(&rig.recording);
	look(&rig);
	write_round(&rig, false);
	cr_assert_eq(rig.recording.unwinding->count, 1);
	look(&rig);
	write_mapping(&rig, 0, 30);
	tool_unwinding_look_again(&rig.recording);
	look(&rig);
	write_round(&rig, false);
	cr_assert_eq(rig.recording.unwinding->count, 0);
	read_file(&rig, types, chain, &nr);
	cr_assert_str_eq(types, "SMS");
	cr_assert_eq(nr, 4);
	rig_close(&rig);
}

#else

Test(second_look, a_mapping_of_another_ring)
{
	cr_skip_test("SKIP-ENV: this test's registers are x86-64's");
}

#endif
