/* auxtrace_test.c - AUX areas of a session as AUXTRACE records of a file, which perf, the library and the command read.
 *
 * No PMU of the machines that this was made on has an AUX area: the areas are a ring's of perfring with its producer, and memory
 * laid out as the kernel's mapping is, once. */
#include "test.h"

#include "tools/auxtrace.c"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <perfring/aux.h>
#include <perfring/file.h>
#include "session/session_private.h"
#include "stream.h"

TestSuite(auxtrace, .timeout = 120);

enum {
	PAGE = 4096,
	RECORDS = 400,
};

static unsigned char byte_of(uint64_t position)
{
	return (unsigned char)(position * 37 + (position >> 12) * 11 + 3);
}

/* What each AUXTRACE record is to say. */
struct expected {
	uint64_t offset, size; /* without padding */
	uint32_t idx;
};

struct rig {
	struct perfring_session *session;
	struct stream stream;
	struct perfring_aux_area aux;
	/* as the kernel's */
	unsigned char *page, *bytes;
	struct perfring_ring ring;
	struct perfring_aux_area flat;
	struct perfring_file_writer *writer;
	char path[64];
	int fd;
	struct expected expected[RECORDS];
	uint32_t count;
	uint64_t written;
};

static void rig_open(struct rig *rig, unsigned flags)
{
	/* with a clock, by which perf divides */
	const struct perf_event_mmap_page clock = {.cap_user_time_zero = 1, .time_mult = 1};
	const struct tool_auxtrace spe = {
		.type = PERFRING_AUXTRACE_ARM_SPE, .pmu = 77, .is_per_cpu = true, .page = &clock};
	struct perf_event_attr attr = stream_attr();

	memset(rig, 0, sizeof(*rig));
	attr.type = PERF_TYPE_SOFTWARE;
	attr.config = PERF_COUNT_SW_DUMMY;
	rig->session = stream_session(100, 1, 0);
	stream_open(&rig->stream, rig->session, 8, 0, 2, -1);
	cr_assert_eq(perfring_aux_open(&rig->aux, &rig->stream.ring, flags), 0);
	cr_assert_eq(perfring_session_add_aux(rig->session, 0, &rig->aux), 0);
	rig->stream.id = 100;
	stream_begin(&rig->stream);
	cr_assert_eq(perfring_aux_produce(&rig->aux, rig->stream.writer, NULL, 0), 0);
	rig->page = aligned_alloc(PAGE, 2 * PAGE);
	rig->bytes = aligned_alloc(PAGE, 2 * PAGE);
	cr_assert(rig->page && rig->bytes);
	memset(rig->page, 0, 2 * PAGE);
	memset(rig->bytes, 0, 2 * PAGE);
	cr_assert_eq(perfring_ring_wrap(&rig->ring, rig->page, 2 * PAGE), 0);
	cr_assert_eq(perfring_session_add_ring(rig->session, &rig->ring, -1, 0), 1);
	cr_assert_eq(perfring_aux_wrap(&rig->flat, rig->ring.page, rig->bytes, 2 * PAGE, flags), 0);
	cr_assert_eq(perfring_session_add_aux(rig->session, 1, &rig->flat), 0);

	snprintf(rig->path, sizeof(rig->path), "/tmp/auxtrace_test.XXXXXX");
	rig->fd = mkstemp(rig->path);
	cr_assert_geq(rig->fd, 0);
	cr_assert_eq(perfring_file_writer_open(&rig->writer, rig->fd), 0);
	cr_assert_eq(perfring_file_writer_add_event(rig->writer, &attr, NULL), 0);
	cr_assert_eq(perfring_file_writer_add_id(rig->writer, 0, 100), 0);
	cr_assert_eq(perfring_file_writer_begin(rig->writer), 0);
	/* perf refuses AUXTRACE records without it; of all PMUs this is the simplest */
	cr_assert_eq(tool_auxtrace_put_info(&spe, TOOL_AUXTRACE_PMUS, rig->writer), 0);
}

static void rig_close(struct rig *rig)
{
	perfring_file_writer_close(rig->writer);
	close(rig->fd);
	unlink(rig->path);
	perfring_session_close(rig->session);
	perfring_aux_close(&rig->aux);
	stream_close(&rig->stream);
	free(rig->page);
	free(rig->bytes);
}

/* A transaction of the ring of perfring's; returns what begin said. */
static int64_t produce(struct rig *rig, uint64_t size, uint64_t flags)
{
	struct perfring_aux_area *aux = &rig->aux;
	unsigned char *buffer;
	int64_t n = perfring_aux_begin(aux, &buffer);

	if (n <= 0)
		return n;
	if ((int64_t)size > n && !(aux->flags & PERFRING_RING_OVERWRITE))
		size = (uint64_t)n;
	for (uint64_t i = 0; i < size; i++)
		aux->data[(aux->position + i) & (aux->size - 1)] = byte_of(aux->position + i);
	rig->stream.time++;
	cr_assert_eq(perfring_aux_end(aux, size, flags), 0);
	return n;
}

/* Into the memory that is mapped once. */
static void write_flat(struct rig *rig, uint64_t size)
{
	uint64_t head = rig->ring.page->aux_head;

	for (uint64_t i = 0; i < size; i++)
		rig->bytes[(head + i) % (2 * PAGE)] = byte_of(head + i);
	perfring_page_publish_aux(rig->ring.page, head + size);
}

static void expect(struct rig *rig, uint32_t idx, uint64_t offset, uint64_t size)
{
	cr_assert_lt(rig->count, RECORDS);
	rig->expected[rig->count++] = (struct expected){offset, size, idx};
}

/* A round of a recorder. */
static void write_round(struct rig *rig, uint64_t most)
{
	uint64_t heads[2] = {rig->stream.ring.page->aux_head, rig->ring.page->aux_head}, before = rig->written, sum = 0;
	uint64_t tails[2] = {rig->aux.returned, rig->flat.returned};
	struct perfring_span span;

	perfring_session_flush(rig->session);
	while (perfring_session_next_span(rig->session, &span) == 1)
		cr_assert_eq(perfring_file_writer_write(rig->writer, span.pieces, (int)span.count), 0);
	for (uint32_t i = 0; i < 2; i++) {
		uint64_t size = heads[i] - tails[i];

		size = size > 2 * PAGE ? 2 * PAGE : size;
		size = size > most ? most : size;
		if (size)
			expect(rig, i, heads[i] - size, size);
		sum += size;
	}
	cr_assert_eq(tool_auxtrace_write(rig->session, rig->writer, most, &rig->written), 0);
	cr_assert_eq(rig->written, before + sum);
	cr_assert_eq(perfring_file_writer_end_round(rig->writer), 0);
	perfring_session_return(rig->session);
}

/* ---- what is read ---- */

/* The library: each record, and the bytes that follow it. */
static void check_library(const struct rig *rig, const char *path)
{
	static unsigned char trace[4 * PAGE];
	uint64_t references = 0, records = 0;
	struct perfring_record record;
	struct perfring_file *file;
	struct perfring_item item;
	uint32_t at = 0;

	cr_assert_eq(perfring_file_open(&file, path), 0);
	while (perfring_file_next(file, &item) == 1) {
		const struct perfring_record_auxtrace *one = &record.is.auxtrace;
		const struct expected *expected = &rig->expected[at];

		records += item.record->type == PERF_RECORD_AUX;
		if (item.record->type != PERFRING_RECORD_AUXTRACE)
			continue;
		cr_assert_lt(at++, rig->count);
		cr_assert_eq(perfring_record_decode(NULL, item.record, &record, NULL), 0);
		cr_assert_eq(one->offset, expected->offset);
		cr_assert_eq(one->size, (expected->size + 7) / 8 * 8);
		cr_assert_eq(one->idx, expected->idx);
		cr_assert_eq(one->tid, UINT32_MAX);
		cr_assert_eq(one->cpu, UINT32_MAX);
		cr_assert(one->reference >= references, "in their order");
		references = one->reference;
		cr_assert_eq(perfring_file_read_trace(file, trace, sizeof(trace)), (int64_t)one->size);
		for (uint64_t i = 0; i < one->size; i++)
			cr_assert_eq(trace[i], i < expected->size ? byte_of(expected->offset + i) : 0);
	}
	cr_assert_eq(at, rig->count);
	cr_assert_gt(records, 0);
	perfring_file_close(file);
}

/* perf report -D: one line a record; false: there is no perf. */
static bool check_perf(const struct rig *rig, const char *path)
{
	char line[512];
	uint32_t at = 0;
	FILE *lines;

	if (system("perf version >/dev/null 2>&1"))
		return false;
	snprintf(line, sizeof(line), "perf report -D -i %s 2>&1", path);
	lines = popen(line, "r");
	cr_assert_not_null(lines);
	while (fgets(line, sizeof(line), lines)) {
		const char *found = strstr(line, "PERF_RECORD_AUXTRACE ");
		uint64_t size, offset, reference;
		int tid, cpu;
		uint32_t idx;

		cr_assert_null(strstr(line, "failed to process"), "%s", line);
		if (!found)
			continue;
		cr_assert_eq(sscanf(found,
				    "PERF_RECORD_AUXTRACE size: %" SCNx64 " offset: %" SCNx64 " ref: %" SCNx64
				    " idx: %" SCNu32 " tid: %d cpu: %d",
				    &size, &offset, &reference, &idx, &tid, &cpu),
			     6, "%s", line);
		cr_assert_lt(at, rig->count);
		cr_assert_eq(size, (rig->expected[at].size + 7) / 8 * 8, "%s", line);
		cr_assert_eq(offset, rig->expected[at].offset, "%s", line);
		cr_assert_eq(idx, rig->expected[at].idx, "%s", line);
		cr_assert_eq(tid, -1);
		cr_assert_eq(cpu, -1);
		at++;
	}
	pclose(lines);
	cr_assert_eq(at, rig->count, "%u of %u", at, rig->count);
	return true;
}

/* The command: its exit status. */
static int run(const char *arguments, const char *path, const char *after)
{
	char line[1024];

	snprintf(line, sizeof(line), "\"$PERFRING_TOOL\" %s %s %s", arguments, path, after);
	return system(line);
}

static void check_tool(const struct rig *rig, const char *path)
{
	char after[256], copy[128];

	cr_assert_eq(run("check", path, ">/dev/null"), 0);
	snprintf(after, sizeof(after), "2>/dev/null | grep -c ' AUXTRACE ' | grep -qx %u", rig->count);
	cr_assert_eq(run("dump", path, after), 0);
	snprintf(copy, sizeof(copy), "%s.copy", path);
	snprintf(after, sizeof(after), "%s >/dev/null 2>&1", copy);
	cr_assert_eq(run("convert", path, after), 0);
	check_library(rig, copy);
	unlink(copy);
}

static void finish(struct rig *rig)
{
	cr_assert_eq(perfring_file_writer_finish(rig->writer), 0);
	check_library(rig, rig->path);
	if (getenv("PERFRING_TOOL"))
		check_tool(rig, rig->path);
}

/* ---- the tests ---- */

Test(auxtrace, rounds_of_bytes)
{
	struct perfring_totals totals;
	struct rig rig;
	bool has_perf;

	rig_open(&rig, 0);
	for (unsigned round = 0; round < 60; round++) {
		cr_assert_gt(produce(&rig, 1000 + round % 7 * 301, 0), 0);
		cr_assert_gt(produce(&rig, 500, round % 5 == 2 ? PERFRING_AUX_PARTIAL : 0), 0);
		if (round % 3)
			write_flat(&rig, 3000 + round);
		write_round(&rig, UINT64_MAX);
		cr_assert_eq(rig.stream.ring.page->aux_tail, rig.stream.ring.page->aux_head);
		cr_assert_eq(rig.ring.page->aux_tail, rig.ring.page->aux_head);
	}
	/* Nothing new: no record. */
	write_round(&rig, UINT64_MAX);
	cr_assert_eq(rig.count, 100);
	perfring_session_totals(rig.session, &totals);
	cr_assert_eq(totals.aux, 120);
	cr_assert_eq(totals.aux_partial, 12);
	cr_assert_eq(totals.aux_truncated, 0);
	finish(&rig);
	has_perf = check_perf(&rig, rig.path);
	rig_close(&rig);
	if (!has_perf)
		cr_skip_test("SKIP-ENV: perf version: not found: perf, which reads the same file");
}

static bool says(const char *command, const char *path, const char *sentence)
{
	char after[512];

	snprintf(after, sizeof(after), "2>&1 >/dev/null | grep -qF '%s'", sentence);
	return run(command, path, after) == 0;
}

/* What is lost is counted by the session, and by those who read the file, in perf's words. */
Test(auxtrace, what_is_lost)
{
	struct perfring_totals totals;
	struct rig rig;
	char line[128];
	uint64_t records = 0, truncated = 0;

	rig_open(&rig, 0);
	for (unsigned round = 0; round < 12; round++) {
		while (produce(&rig, 3000,
			       round % 2 && rig.aux.position - rig.aux.returned > PAGE ? PERFRING_AUX_TRUNCATED : 0) >
		       0) {
			records++;
			truncated += PERFRING_LOAD(&rig.aux.stopped);
		}
		write_round(&rig, UINT64_MAX);
	}
	cr_assert_gt(produce(&rig, 8, PERFRING_AUX_COLLISION), 0);
	cr_assert_gt(produce(&rig, 8, PERFRING_AUX_COLLISION | PERFRING_AUX_PARTIAL), 0);
	records += 2;
	write_round(&rig, UINT64_MAX);
	perfring_session_totals(rig.session, &totals);
	cr_assert_eq(totals.aux, records);
	cr_assert_eq(totals.aux_truncated, truncated);
	cr_assert_eq(truncated, 6);
	cr_assert_eq(totals.aux_collisions, 2);
	cr_assert_eq(totals.aux_partial, 1);
	finish(&rig);
	if (!getenv("PERFRING_TOOL"))
		cr_skip_test("SKIP-ENV: PERFRING_TOOL is not set: ctest sets it");
	snprintf(line, sizeof(line), "AUX data lost 6 times out of %" PRIu64 "!", records);
	cr_assert_not(says("dump", rig.path, "AUX data"), "as perf report and perf script alone");
	cr_assert(says("report -i", rig.path, line));
	cr_assert(says("script -i", rig.path, line));
	snprintf(line, sizeof(line), "AUX data had gaps in it 1 times out of %" PRIu64 "!", records);
	cr_assert(says("script -i", rig.path, line));
	snprintf(line, sizeof(line), "AUX data detected collision 2 times out of %" PRIu64 "!", records);
	cr_assert(says("script -i", rig.path, line));
	if (!system("perf version >/dev/null 2>&1")) {
		char command[512];

		snprintf(command, sizeof(command),
			 "perf report --no-itrace -i %s --stdio 2>&1 | grep -qF 'AUX data lost 6 times out of %" PRIu64
			 "!'",
			 rig.path, records);
		cr_assert_eq(system(command), 0, "perf's words and numbers");
	}
	rig_close(&rig);
}

/* Overwriting areas: the newest bytes, as many as were asked for. */
Test(auxtrace, snapshots)
{
	struct rig rig;

	rig_open(&rig, PERFRING_RING_OVERWRITE);
	produce(&rig, 1234, 0);
	write_round(&rig, 1000);
	for (int i = 0; i < 9; i++)
		produce(&rig, 4321, 0);
	write_flat(&rig, 777);
	write_round(&rig, UINT64_MAX);
	for (int i = 0; i < 9; i++)
		write_flat(&rig, 4001);
	produce(&rig, 3 * PAGE, 0);
	write_round(&rig, 5000);
	/* two pieces, of which the first is left out, or a part of it */
	write_flat(&rig, 2 * PAGE);
	write_round(&rig, 100);
	write_flat(&rig, 2 * PAGE);
	write_round(&rig, 2 * PAGE - 50);
	cr_assert_eq(rig.count, 7);
	finish(&rig);
	check_perf(&rig, rig.path);
	rig_close(&rig);
}

/* ---- what decoders must know ---- */

static void put_file(const char *folder, const char *name, const char *text)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	for (char *slash = strchr(path + strlen(folder) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = 0;
		mkdir(path, 0700);
		*slash = '/';
	}
	file = fopen(path, "w");
	cr_assert_not_null(file);
	fputs(text, file);
	fclose(file);
}

/* The lines of perf report -D that belong to AUXTRACE_INFO, without runs of blanks; false: there is no perf. */
static bool get_info(const char *path, char *text, size_t size)
{
	char line[512];
	size_t used;
	FILE *lines;

	if (system("perf version >/dev/null 2>&1"))
		return false;
	snprintf(
		line, sizeof(line),
		"perf report -D -i %s 2>&1 | sed -n '/AUXTRACE_INFO/,/^$/p' | sed '1d;/^\\./d;/^0x/d;/TSC:CTC/d;/events:/d' | tr -s ' ' | sed 's/^ //;/^$/d'",
		path);
	lines = popen(line, "r");
	cr_assert_not_null(lines);
	used = fread(text, 1, size - 1, lines);
	text[used] = 0;
	pclose(lines);
	return true;
}

static bool describe(const struct tool_auxtrace *auxtrace, const char *pmus, char *text, size_t size)
{
	const struct perf_event_attr attr = {.size = sizeof(attr),
					     .type = PERF_TYPE_SOFTWARE,
					     .config = PERF_COUNT_SW_DUMMY,
					     .sample_id_all = 1,
					     .sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TIME};
	char path[] = "/tmp/auxtrace_test.XXXXXX";
	struct perfring_file_writer *writer;
	int fd = mkstemp(path);
	bool has_perf;

	cr_assert_geq(fd, 0);
	cr_assert_eq(perfring_file_writer_open(&writer, fd), 0);
	cr_assert_eq(perfring_file_writer_add_event(writer, &attr, NULL), 0);
	cr_assert_eq(perfring_file_writer_add_id(writer, 0, 100), 0);
	cr_assert_eq(perfring_file_writer_begin(writer), 0);
	cr_assert_eq(tool_auxtrace_put_info(auxtrace, pmus, writer), 0);
	cr_assert_eq(perfring_file_writer_finish(writer), 0);
	perfring_file_writer_close(writer);
	close(fd);
	has_perf = get_info(path, text, size);
	unlink(path);
	return has_perf;
}

/* The files of a PMU as Linux has them, with numbers of this test; perf says what it takes them for. */
Test(auxtrace, what_decoders_must_know)
{
	const struct perf_event_mmap_page clock = {
		.cap_user_time_zero = 1, .time_mult = 1234, .time_shift = 9, .time_zero = 77777};
	char folder[] = "/tmp/auxtrace_pmus.XXXXXX", text[4096] = "", command[128];
	struct tool_auxtrace found;
	bool has_perf;

	cr_assert_not_null(mkdtemp(folder));
	put_file(folder, "intel_pt/type", "8\n");
	put_file(folder, "intel_pt/format/tsc", "config:10\n");
	put_file(folder, "intel_pt/format/noretcomp", "config:11\n");
	put_file(folder, "intel_pt/format/mtc", "config:9\n");
	put_file(folder, "intel_pt/format/mtc_period", "config:14-17\n");
	put_file(folder, "intel_pt/format/cyc", "config:1\n");
	put_file(folder, "intel_pt/max_nonturbo_ratio", "38\n");
	put_file(folder, "intel_pt/caps/event_trace", "1\n");
	put_file(folder, "intel_pty/type", "80\n");
	put_file(folder, "intel_bts/type", "9\n");
	put_file(folder, "arm_spe_0/type", "10\n");
	put_file(folder, "hisi_ptt0_2/type", "11\n");
	put_file(folder, "cs_etm/type", "12\n");
	put_file(folder, "msr/type", "13\n");
	cr_assert_not(tool_auxtrace_find(&found, folder, 13), "it has no area");
	cr_assert_not(tool_auxtrace_find(&found, folder, 80), "another's name");
	cr_assert_not(tool_auxtrace_find(&found, folder, 14), "no such number");
	cr_assert(tool_auxtrace_find(&found, folder, 12));
	cr_assert_eq(found.type, PERFRING_AUXTRACE_CS_ETM);
	cr_assert(tool_auxtrace_find(&found, folder, 11));
	cr_assert_eq(found.type, PERFRING_AUXTRACE_HISI_PTT);
	cr_assert_str_eq(found.name, "hisi_ptt0_2");

	cr_assert(tool_auxtrace_find(&found, folder, 8));
	cr_assert_eq(found.type, PERFRING_AUXTRACE_INTEL_PT);
	found.page = &clock;
	found.is_snapshot = true;
	found.switches = 3;
	found.filter = "filter main";
	has_perf = describe(&found, folder, text, sizeof(text));
	if (has_perf)
		cr_assert_str_eq(
			text,
			"PMU Type 8\nTime Shift 9\nTime Muliplier 1234\nTime Zero 77777\nCap Time Zero 1\n"
			"TSC bit 0x400\nNoRETComp bit 0x800\nHave sched_switch 3\nSnapshot mode 1\nPer-cpu maps 0\n"
			"MTC bit 0x200\nMTC freq bits 0x3c000\nCYC bit 0x2\nMax non-turbo ratio 38\n"
			"Filter string len. 16\nFilter string filter main\n");
	cr_assert(tool_auxtrace_find(&found, folder, 9));
	found.page = &clock;
	if (describe(&found, folder, text, sizeof(text)))
		cr_assert_str_eq(text,
				 "PMU Type 9\nTime Shift 9\nTime Muliplier 1234\nTime Zero 77777\nCap Time Zero 1\n"
				 "Snapshot mode 0\n");
	cr_assert(tool_auxtrace_find(&found, folder, 10));
	found.is_per_cpu = true;
	if (describe(&found, folder, text, sizeof(text)))
		cr_assert_str_eq(text, "PMU Type 10\n");
	snprintf(command, sizeof(command), "rm -r %s", folder);
	cr_assert_eq(system(command), 0);
	if (!has_perf)
		cr_skip_test("SKIP-ENV: perf version: not found: perf, which says what it reads");
}

static uint64_t config_of(const struct tool_auxtrace *auxtrace, const char *pmus, const char *text, uint64_t given)
{
	struct perf_event_attr attr = {.config = given};

	tool_auxtrace_shape(auxtrace, pmus, text, &attr);
	cr_assert_eq(attr.sample_period, 1);
	return attr.config;
}

/* The bits that perf's own files have in their attrs. */
Test(auxtrace, what_perf_adds_to_an_event)
{
	static const char *const formats[][2] = {{"pt", "config:0"},
						 {"cyc", "config:1"},
						 {"mtc", "config:9"},
						 {"tsc", "config:10"},
						 {"noretcomp", "config:11"},
						 {"branch", "config:13"},
						 {"mtc_period", "config:14-17"},
						 {"psb_period", "config:24-27"}};
	char folder[] = "/tmp/auxtrace_pmus.XXXXXX", name[64], command[128];
	struct perf_event_attr attr = {.config = 0};
	struct tool_auxtrace found;

	cr_assert_not_null(mkdtemp(folder));
	put_file(folder, "intel_pt/type", "8\n");
	for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++) {
		snprintf(name, sizeof(name), "intel_pt/format/%s", formats[i][0]);
		put_file(folder, name, formats[i][1]);
	}
	put_file(folder, "intel_pt/caps/mtc", "1\n");
	put_file(folder, "intel_pt/caps/mtc_periods", "249\n");
	put_file(folder, "intel_pt/caps/psb_cyc", "1\n");
	put_file(folder, "intel_pt/caps/psb_periods", "3f\n");
	cr_assert(tool_auxtrace_find(&found, folder, 8));
	cr_assert_eq(config_of(&found, folder, "intel_pt//u", 0), 0x300e601);
	cr_assert_eq(config_of(&found, folder, "intel_pt/cyc/u", 2), 0x300e603);
	cr_assert_eq(config_of(&found, folder, "intel_pt/tsc=0,mtc=0/", 0), 0x300e001);
	cr_assert_eq(config_of(&found, folder, "intel_pt/mtc_period=6/", 6 << 14), 0x301a601);
	put_file(folder, "intel_pt/caps/mtc_periods", "240\n");
	cr_assert_eq(config_of(&found, folder, "intel_pt//", 0), 0x301a601, "the smallest of larger ones");
	put_file(folder, "intel_pt/caps/mtc", "0\n");
	put_file(folder, "intel_pt/caps/psb_periods", "0\n");
	cr_assert_eq(config_of(&found, folder, "intel_pt//", 0), 0x2401);

	put_file(folder, "arm_spe_0/type", "9\n");
	put_file(folder, "arm_spe_0/format/ts_enable", "config:0\n");
	cr_assert(tool_auxtrace_find(&found, folder, 9));
	tool_auxtrace_shape(&found, folder, "arm_spe_0//", &attr);
	cr_assert_eq(attr.config, 0);
	cr_assert_eq(attr.sample_period, 4096);
	put_file(folder, "arm_spe_0/caps/min_interval", "1024\n");
	found.is_per_cpu = true;
	attr.sample_period = 0;
	tool_auxtrace_shape(&found, folder, "arm_spe_0//", &attr);
	cr_assert_eq(attr.config, 1);
	cr_assert_eq(attr.sample_period, 1024);
	attr.sample_period = 5000;
	tool_auxtrace_shape(&found, folder, "arm_spe_0/period=5000/", &attr);
	cr_assert_eq(attr.sample_period, 5000);
	snprintf(command, sizeof(command), "rm -r %s", folder);
	cr_assert_eq(system(command), 0);
}
