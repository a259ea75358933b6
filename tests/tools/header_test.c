/* header_test.c - what `perfring dump --header-only -I` prints of features: perf's lines, and no more than there is to say. */
#include "hostile.h"

TestSuite(header, .timeout = 120);

static char path[] = "/tmp/header_test.XXXXXX";

static struct perfring_file_writer *begin(int *fd, uint32_t events)
{
	struct perf_event_attr attr = {.size = sizeof(attr), .type = PERFRING_TYPE_SOFTWARE, .sample_period = 1};
	struct perfring_file_writer *writer;

	attr.sample_type = PERFRING_SAMPLE_IP | PERFRING_SAMPLE_IDENTIFIER;
	*fd = mkstemp(path);
	cr_assert_geq(*fd, 0);
	cr_assert_eq(perfring_file_writer_open(&writer, *fd), 0);
	for (uint32_t i = 0; i < events; i++) {
		char name[16];

		snprintf(name, sizeof(name), "event%u", i);
		cr_assert_eq(perfring_file_writer_add_event(writer, &attr, name), (int)i);
		cr_assert_eq(perfring_file_writer_add_id(writer, i, i + 1), 0);
	}
	cr_assert_eq(perfring_file_writer_begin(writer), 0);
	return writer;
}

static void end(struct perfring_file_writer *writer, int fd)
{
	cr_assert_eq(perfring_file_writer_end_round(writer), 0);
	cr_assert_eq(perfring_file_writer_finish(writer), 0);
	perfring_file_writer_close(writer);
	close(fd);
}

static void put_text(struct hostile_bytes *to, const char *text)
{
	hostile_put_number(to, 64, 4);
	hostile_put(to, text, strlen(text));
	hostile_put(to, NULL, 64 - strlen(text));
}

static void put_caps(struct hostile_bytes *to, unsigned count)
{
	hostile_put_number(to, count, 4);
	for (unsigned i = 0; i < count; i++) {
		put_text(to, i ? "max_precise" : "zen4_ibs_extensions");
		put_text(to, i ? "3" : "1");
	}
}

static void put_pmus(struct hostile_bytes *to, unsigned pmus)
{
	hostile_put_number(to, pmus, 4);
	for (unsigned i = 0; i < pmus; i++) {
		put_caps(to, i < 2 ? 2 - i : 0);
		put_text(to, i == 0 ? "cpu" : i == 1 ? "ibs_op" : "ibs_fetch");
	}
}

static void run(struct hostile_run *ran)
{
	hostile_tool(ran, 20, (char *[]){"dump", "--header-only", "-I", path, NULL});
	cr_assert_eq(ran->status, 0, "status %d: %s", ran->status, (char *)ran->err);
}

/* The line that begins so; the caller frees it. */
static char *line_of(const unsigned char *text, const char *begin)
{
	const char *at = strstr((const char *)text, begin);

	return at ? strndup(at, strcspn(at, "\n")) : strdup("");
}

static void says(const struct hostile_run *ran, const char *line)
{
	char *got = line_of(ran->out, line);

	cr_assert_str_eq(got, line, "%s", (char *)ran->out);
	free(got);
}

static unsigned count(const unsigned char *text, const char *what)
{
	unsigned count = 0;

	for (const char *at = (const char *)text; (at = strstr(at, what)); at++)
		count++;
	return count;
}

/* A time that has no text is not what was in memory. */
Test(header, time_beyond_any_year)
{
	struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = 100000000000000000}};
	struct perfring_file_writer *writer;
	struct hostile_run ran;
	struct stat file;
	char want[64];
	int fd;

	/* a tmpfs: others have no such time */
	if (access("/dev/shm", W_OK))
		cr_skip_test("SKIP-ENV: /dev/shm: %s", strerror(errno));
	strcpy(path, "/dev/shm/time.XXXXXX");
	writer = begin(&fd, 1);
	end(writer, fd);
	if (utimensat(AT_FDCWD, path, times, 0) || stat(path, &file) || file.st_mtime != times[1].tv_sec) {
		unlink(path);
		cr_skip_test("SKIP-ENV: utimensat: /dev/shm has no such time: a tmpfs has");
	}
	run(&ran);
	snprintf(want, sizeof(want), "# captured on    : %lld s after 1970", (long long)times[1].tv_sec);
	says(&ran, want);
	unlink(path);
	hostile_leave(&ran);
}

/* Each PMU once, with its own. */
Test(header, pmu_caps)
{
	for (unsigned pmus = 0; pmus < 4; pmus++) {
		struct hostile_bytes to = {0};
		struct perfring_file_writer *writer;
		struct hostile_run ran;
		int fd;

		strcpy(path, "/tmp/header_test.XXXXXX");
		writer = begin(&fd, 1);
		put_pmus(&to, pmus);
		cr_assert_eq(perfring_file_writer_put_feature(writer, PERFRING_FEATURE_PMU_CAPS, to.bytes, to.size), 0);
		end(writer, fd);
		run(&ran);
		cr_assert_eq(count(ran.out, " pmu capabilities: "), pmus, "%s", (char *)ran.out);
		if (pmus > 0)
			says(&ran, "# cpu pmu capabilities: zen4_ibs_extensions=1, max_precise=3");
		if (pmus > 1)
			says(&ran, "# ibs_op pmu capabilities: zen4_ibs_extensions=1");
		if (pmus > 2)
			says(&ran, "# ibs_fetch pmu capabilities: not available");
		unlink(path);
		hostile_leave(&ran);
		free(to.bytes);
	}
}

/* Each list three times, and what perf takes only one of. */
static void put_features(struct perfring_file_writer *writer)
{
	for (size_t i = 0; i < HOSTILE_COUNT; i++) {
		struct hostile_bytes to = {0};
		uint32_t feature = hostile_features[i].feature;

		/* what perf parses further, or the writer makes; and what this perf has no words for */
		if (feature == PERFRING_FEATURE_TRACING_DATA || feature == PERFRING_FEATURE_BUILD_ID ||
		    feature == PERFRING_FEATURE_EVENT_DESC || feature == PERFRING_FEATURE_GROUP_DESC ||
		    feature == PERFRING_FEATURE_AUXTRACE || feature == PERFRING_FEATURE_DIR_FORMAT ||
		    feature == PERFRING_FEATURE_BPF_PROG_INFO || feature == PERFRING_FEATURE_BPF_BTF ||
		    feature == PERFRING_FEATURE_COMPRESSED || feature > PERFRING_FEATURE_PMU_CAPS)
			continue;
		if (feature == PERFRING_FEATURE_PMU_CAPS)
			put_pmus(&to, 3);
		else if (feature == PERFRING_FEATURE_CPU_PMU_CAPS)
			put_caps(&to, 0);
		else
			hostile_fill(&to, hostile_features[i].layout, "0-1"); /* a list of CPUs is parsed */
		if (feature == PERFRING_FEATURE_NRCPUS)
			memcpy(to.bytes, (uint32_t[]){HOSTILE_CPUS, HOSTILE_CPUS}, 8);
		/* versions that perf knows */
		if (feature == PERFRING_FEATURE_CACHE || feature == PERFRING_FEATURE_CLOCK_DATA)
			memcpy(to.bytes, &(uint32_t){1}, 4);
		if (feature == PERFRING_FEATURE_MEM_TOPOLOGY)
			memcpy(to.bytes, &(uint64_t){1}, 8);
		cr_assert_eq(
			perfring_file_writer_put_feature(writer, feature, to.size ? to.bytes : (unsigned char[]){0}, to.size),
			0, "%s", hostile_features[i].name);
		free(to.bytes);
	}
}

/* Whole, and without those features that perf prints otherwise when others are missing. */
Test(header, perfs_lines)
{
	struct perfring_file_writer *writer;
	char command[256], *line = NULL;
	unsigned lines = 0;
	struct hostile_run ran;
	size_t buffer = 0;
	FILE *perf;
	int fd;

	if (system("perf version >/dev/null 2>&1"))
		cr_skip_test("SKIP-ENV: perf: to compare with");
	writer = begin(&fd, 4);
	put_features(writer);
	end(writer, fd);
	run(&ran);
	snprintf(command, sizeof(command), "perf report --header-only -I -f -i %s 2>/dev/null", path);
	perf = popen(command, "r");
	cr_assert_not_null(perf);
	while (getline(&line, &buffer, perf) > 0) {
		lines++;
		cr_assert_not_null(strstr((char *)ran.out, line), "perf: %s%s", line, (char *)ran.out);
	}
	pclose(perf);
	unlink(path);
	cr_assert_gt(lines, 40, "%u lines", lines);
	cr_assert_eq(count(ran.out, "\n"), lines, "%s", (char *)ran.out);
	free(line);
	hostile_leave(&ran);
}

/* 4000 groups of everything there is: an event is a member once. */
Test(header, groups_that_lie)
{
	struct hostile_bytes to = {0};
	struct perfring_file_writer *writer;
	struct hostile_run ran;
	int fd;

	writer = begin(&fd, 2000);
	hostile_put_number(&to, 4000, 4);
	for (unsigned i = 0; i < 4000; i++) {
		hostile_put_number(&to, 1, 4);
		hostile_put_number(&to, 0, 1);
		hostile_put_number(&to, i % 2000, 4);
		hostile_put_number(&to, UINT32_MAX, 4);
	}
	cr_assert_eq(perfring_file_writer_put_feature(writer, PERFRING_FEATURE_GROUP_DESC, to.bytes, to.size), 0);
	end(writer, fd);
	run(&ran);
	unlink(path);
	cr_assert_eq(count(ran.out, "# group: {event0,event1,"), 1);
	cr_assert_lt(ran.out_size, 1 << 20, "%zu bytes", ran.out_size);
	hostile_leave(&ran);
	free(to.bytes);
}
