/* report_bounds_test.c - the bounds of `perfring report` (docs/limits.md, which names the tests here): a file beyond each, and what is
 * said of it.
 *
 * Stacks are addresses of no mapping: a function each, without a name. */
#include <inttypes.h>
#include "hostile.h"

TestSuite(report_bounds, .timeout = 300);

enum {
	LEAF = 0x1000,       /* the innermost address of all */
	CALLERS = 0x2000000, /* and those of its callers */
	PIECE = 1 << 20,     /* bytes that are written at a time */
	PATHS_MAX = 4194304,
	CALLERS_MAX = 1048576,
	BATCH_MAX = 4194304, /* of which one is kept for trees */
	LINES_MAX = 10000,
	DEPTH_MAX = 512,
	MEMBERS_MAX = 64,
};

static char path[64];
static struct perfring_file_writer *writer;
static struct hostile_bytes piece;

static void begin(uint32_t events)
{
	struct perf_event_attr attr = {.size = sizeof(attr), .type = PERFRING_TYPE_SOFTWARE, .sample_period = 1};
	int fd;

	attr.sample_type = PERFRING_SAMPLE_IP | PERFRING_SAMPLE_TID | PERFRING_SAMPLE_CALLCHAIN;
	if (events > 1)
		attr.sample_type |= PERFRING_SAMPLE_IDENTIFIER;
	snprintf(path, sizeof(path), "/tmp/report_bounds_test.XXXXXX");
	fd = mkostemp(path, O_CLOEXEC);
	cr_assert_geq(fd, 0);
	cr_assert_eq(perfring_file_writer_open(&writer, fd), 0);
	for (uint32_t i = 0; i < events; i++) {
		cr_assert_eq(perfring_file_writer_add_event(writer, &attr, "made"), (int)i);
		if (events > 1)
			cr_assert_eq(perfring_file_writer_add_id(writer, i, i + 1), 0);
	}
	cr_assert_eq(perfring_file_writer_begin(writer), 0);
}

static void write_piece(void)
{
	struct iovec part = {piece.bytes, piece.size};

	cr_assert_eq(perfring_file_writer_write(writer, &part, 1), 0);
	piece.size = 0;
}

/* Adds a sample of user space, with `count` addresses of its callchain, the innermost first; id 0: the file has one event. */
static void add(uint64_t id, const uint64_t *ips, uint32_t count)
{
	struct perf_event_header header = {.type = PERFRING_RECORD_SAMPLE, .misc = PERFRING_RECORD_MISC_USER};

	header.size = (uint16_t)(sizeof(header) + (id ? 8 : 0) + 8 + 8 + 8 + 8 + 8 * (size_t)count);
	hostile_put(&piece, &header, sizeof(header));
	if (id)
		hostile_put_number(&piece, id, 8);
	hostile_put_number(&piece, ips[0], 8);
	hostile_put_number(&piece, 7, 4);
	hostile_put_number(&piece, 7, 4);
	hostile_put_number(&piece, count + UINT64_C(1), 8);
	hostile_put_number(&piece, (uint64_t)(int64_t)PERFRING_CONTEXT_USER, 8);
	for (uint32_t i = 0; i < count; i++)
		hostile_put_number(&piece, ips[i], 8);
	if (piece.size >= PIECE)
		write_piece();
}

static void finish(void)
{
	if (piece.size)
		write_piece();
	cr_assert_eq(perfring_file_writer_finish(writer), 0);
	perfring_file_writer_close(writer);
	free(piece.bytes);
	piece = (struct hostile_bytes){0};
}

/* Reports with two more options; the caller leaves the run. */
static void report(struct hostile_run *run, const char *one, const char *other)
{
	char form[8] = "-s", key[8] = "sym", input[8] = "-i", name[8] = "report", first[64], second[64];

	snprintf(first, sizeof(first), "%s", one);
	snprintf(second, sizeof(second), "%s", other);
	hostile_tool(run, 200, (char *[]){name, input, path, form, key, first, second, NULL});
	unlink(path);
	cr_assert_eq(run->status, 0, "status %d: %s", run->status, (char *)run->err);
}

/* Whether a line of the report is exactly this: `before`, the number, and `after`. */
static bool has_line(const struct hostile_run *run, const char *before, uint64_t number, const char *after)
{
	const char *at = (const char *)run->out;
	char line[160];
	size_t length = (size_t)snprintf(line, sizeof(line), "%s%" PRIu64 "%s", before, number, after);

	for (; (at = strstr(at, line)); at += length)
		if ((at == (const char *)run->out || at[-1] == '\n') && at[length] == '\n')
			return true;
	return false;
}

/* One chain of 600 frames, and one of 512, which is whole. */
Test(report_bounds, deep_stacks)
{
	uint64_t ips[600] = {LEAF};
	struct hostile_run run;

	begin(1);
	for (uint32_t i = 1; i < 600; i++)
		ips[i] = CALLERS + 16 * i;
	add(0, ips, 600);
	add(0, ips, DEPTH_MAX);
	finish();
	report(&run, "--no-children", "-gcallee");
	cr_assert(has_line(&run, "            (", 1, " stack cut: 512 frames are drawn)"), "%s", (char *)run.out);
	hostile_leave(&run);
}

/* 10 100 callers of one function: each has a line. */
Test(report_bounds, many_lines)
{
	uint64_t ips[2] = {LEAF};
	struct hostile_run run;

	begin(1);
	for (uint32_t i = 0; i < LINES_MAX + 100; i++) {
		ips[1] = CALLERS + 16 * i;
		add(0, ips, 2);
	}
	finish();
	report(&run, "--no-children", "-ggraph,0,callee");
	/* the function itself has the first line */
	cr_assert(has_line(&run, "            (", 101, " more not drawn)"), "%.2000s",
		  strstr((char *)run.out, "more not drawn") ? "another number" : (char *)run.out);
	hostile_leave(&run);
}

/* 4200 stacks of 260 frames, of which no two are of one function: more than a tree has nodes, and a report rows. */
static void add_functions(void)
{
	enum {
		STACKS = 4200,
		FRAMES = 260
	};
	uint64_t ips[FRAMES + 1] = {LEAF};

	begin(1);
	for (uint32_t i = 0; i < STACKS; i++) {
		for (uint32_t j = 1; j <= FRAMES; j++)
			ips[j] = CALLERS + 16 * (UINT64_C(1) * i * FRAMES + j);
		add(0, ips, FRAMES + 1);
	}
	finish();
}

Test(report_bounds, many_nodes)
{
	struct hostile_run run;
	char *at;

	add_functions();
	report(&run, "--no-children", "-gcallee");
	at = strstr((char *)run.out, " stacks cut: ");
	/* 1 048 576 nodes, of which one is the root and one the function itself, are 4033 stacks, and a part of another */
	cr_assert(at && has_line(&run, "            (", 4200 - 4032, " stacks cut: a tree has 1048576 branches)"), "%.200s",
		  at ? at - 20 : (char *)run.out);
	hostile_leave(&run);
}

Test(report_bounds, many_functions)
{
	struct hostile_run run;

	add_functions();
	report(&run, "-gnone", "--percent-limit=50");
	cr_assert(has_line(&run, "# ", 4200 * UINT64_C(260) - CALLERS_MAX, " frames are of too many different functions: they have no rows"),
		  "%s", (char *)run.out);
	hostile_leave(&run);
}

enum {
	DEEP = 511, /* frames of a stack that is added by add_deep */
};

/* Writes a file of stacks that differ in one frame alone; varied: which, from the innermost on. */
static void add_deep(uint32_t stacks, uint32_t varied)
{
	uint64_t ips[DEEP] = {LEAF};

	begin(1);
	for (uint32_t j = 1; j < DEEP; j++)
		ips[j] = CALLERS + 16 * j;
	for (uint32_t i = 0; i < stacks; i++) {
		ips[varied] = CALLERS + 16 * UINT64_C(1000) + 16 * i;
		add(0, ips, DEEP);
	}
	finish();
}

/* 12 000 stacks of 511 functions that differ in the outermost one: no two have a caller in common. */
Test(report_bounds, many_parts)
{
	enum {
		STACKS = 12000
	};
	struct hostile_run run;
	unsigned whole = 0;

	add_deep(STACKS, DEEP - 1);
	report(&run, "-gcaller", "--percent-limit=50");
	cr_assert(has_line(&run, "# ", STACKS - BATCH_MAX / 511, " samples have too many different stacks: they are in no tree of their callers"),
		  "%.2000s", (char *)run.out);
	/* each function's sum has all of them, LEAF's and those of the 509 above it */
	for (char *line = (char *)run.out; (line = strstr(line, "\n   100.00%")); line++)
		whole++;
	cr_assert_eq(whole, 510, "%u", whole);
	hostile_leave(&run);
}

/* Stacks that differ in their outermost frame have no frame in common: each is walked for the tree of each of its functions.  2200
 * times 511 * 510 / 2 frames are more than 2^28. */
Test(report_bounds, many_walks)
{
	struct hostile_run run;

	add_deep(2200, DEEP - 1);
	report(&run, "-gcaller", "--percent-limit=50");
	cr_assert(strstr((char *)run.out, "\n# the last trees are not drawn: all stacks have too many frames (docs/limits.md)\n"),
		  "%.2000s", (char *)run.out);
	hostile_leave(&run);
}

/* 2048 x 2049 stacks. */
Test(report_bounds, many_stacks)
{
	uint64_t ips[3] = {LEAF};
	struct hostile_run run;

	begin(1);
	for (uint32_t i = 0; i < 2048; i++)
		for (uint32_t j = 0; j < 2049; j++) {
			ips[1] = CALLERS + 16 * i;
			ips[2] = 2 * (uint64_t)CALLERS + 16 * j;
			add(0, ips, 3);
		}
	finish();
	report(&run, "-gnone", "--percent-limit=50");
	cr_assert(has_line(&run, "# ", 2048 * UINT64_C(2049) - PATHS_MAX, " samples have too many different stacks: their callers are not in this"),
		  "%s", (char *)run.out);
	hostile_leave(&run);
}

/* A group of 65 events has a table for each, one of 64 is one table. */
Test(report_bounds, large_groups)
{
	uint64_t ips[1] = {LEAF};
	struct hostile_run run;

	for (uint32_t events = MEMBERS_MAX; events <= MEMBERS_MAX + 1; events++) {
		struct hostile_bytes group = {0};
		size_t tables = 0;

		begin(events);
		for (uint32_t i = 0; i < events; i++)
			add(i + 1, ips, 1);
		hostile_put_number(&group, 1, 4);
		hostile_put_number(&group, 64, 4);
		hostile_put(&group, "{anon_group}", sizeof("{anon_group}"));
		hostile_put(&group, NULL, 64 - sizeof("{anon_group}"));
		hostile_put_number(&group, 0, 4);
		hostile_put_number(&group, events, 4);
		if (piece.size)
			write_piece();
		cr_assert_eq(perfring_file_writer_put_feature(writer, PERFRING_FEATURE_GROUP_DESC, group.bytes, group.size), 0);
		finish();
		report(&run, "-gnone", "--group");
		for (const char *at = (const char *)run.out; (at = strstr(at, "# Samples: ")); at++)
			tables++;
		cr_assert_eq(tables, events > MEMBERS_MAX ? events : 1, "%zu tables", tables);
		cr_assert_eq(strstr((char *)run.err, "perfring: report: a group of 65 events, which is more than 64, has a table for "
						     "each\n") != NULL,
			     events > MEMBERS_MAX, "%s", (char *)run.err);
		hostile_leave(&run);
		free(group.bytes);
	}
}
