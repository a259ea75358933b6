/* deferred_test.c - report, script and export of a file whose samples have deferred callchains (record --call-graph fp,defer).
 *
 * The kernel writes such files since Linux 6.19; this one is written by hand.  Samples, in the order of their times:
 *
 *     1, 2   thread 7, cookie 5: in the kernel; their rest comes at 5
 *     3      thread 7: whole
 *     4      thread 8, cookie 5: another thread's, whose rest comes at 6
 *     7      thread 7, cookie 9: its rest never comes
 */
#include "hostile.h"

TestSuite(deferred, .timeout = 60);

enum {
	INNER = 0x1000,
	MIDDLE = 0x2000,
	OUTER = 0x3000,
};

#define BASE UINT64_C(0x7f0000000000)
#define KERNEL UINT64_C(0xffffffff90000010)
#define MARK(context) ((uint64_t)(int64_t)PERFRING_CONTEXT_##context)

static char data[64], object[64];
static struct perfring_file_writer *writer;
static struct perfring_format format;

static void put_sample(uint32_t tid, uint64_t time, const uint64_t *words, uint64_t nr)
{
	struct perfring_sample sample = {.pid = 7, .tid = tid, .time = time, .misc = PERFRING_RECORD_MISC_KERNEL};
	uint64_t buffer[64];
	struct iovec piece = {.iov_base = buffer};
	int64_t size;

	sample.ip = KERNEL;
	sample.period = 1;
	sample.callchain = (struct perfring_list){.nr = nr, .words = (const perfring_word *)words};
	size = perfring_sample_encode(&format, &sample, buffer, sizeof(buffer));
	cr_assert_gt(size, 0);
	piece.iov_len = (size_t)size;
	cr_assert_eq(perfring_file_writer_write(writer, &piece, 1), 0);
}

static void put_deferred(uint32_t tid, uint64_t time, uint64_t cookie)
{
	const uint64_t words[] = {MARK(KERNEL), KERNEL, MARK(USER_DEFERRED), cookie};

	put_sample(tid, time, words, 4);
}

/* The rest, as the kernel writes it: with a user marker. */
static void put_rest(uint32_t tid, uint64_t time, uint64_t cookie, const uint64_t *words, uint64_t nr)
{
	struct perfring_record record = {.type = PERFRING_RECORD_CALLCHAIN_DEFERRED, .misc = PERFRING_RECORD_MISC_USER};

	record.is.callchain_deferred.cookie = cookie;
	record.is.callchain_deferred.ips = (struct perfring_list){.nr = nr, .words = (const perfring_word *)words};
	record.trailer.pid = 7;
	record.trailer.tid = tid;
	record.trailer.time = time;
	cr_assert_eq(perfring_file_writer_put(writer, 0, &record), 0);
}

static void put_mapping(void)
{
	struct perfring_record record = {.type = PERFRING_RECORD_MMAP2, .misc = PERFRING_RECORD_MISC_USER};

	record.is.mmap2.pid = record.is.mmap2.tid = 7;
	record.is.mmap2.addr = BASE;
	record.is.mmap2.len = 0x10000;
	record.is.mmap2.prot = 5;
	record.is.mmap2.filename.data = object;
	record.is.mmap2.filename.size = (uint32_t)strlen(object);
	record.trailer.pid = record.trailer.tid = 7;
	cr_assert_eq(perfring_file_writer_put(writer, 0, &record), 0);
}

static void make(void)
{
	static const char strings[] = "\0inner\0middle\0outer";
	static const struct hostile_symbol symbols[] = {{1, INNER, 0x100}, {7, MIDDLE, 0x100}, {14, OUTER, 0x100}};
	const uint64_t whole[] = {MARK(KERNEL), KERNEL, MARK(USER), BASE + MIDDLE + 4};
	const uint64_t rest[] = {MARK(USER), BASE + INNER + 4, BASE + MIDDLE + 4, BASE + OUTER + 4};
	struct perf_event_attr attr = {.size = sizeof(attr), .type = PERFRING_TYPE_SOFTWARE, .sample_period = 1};
	int fd;

	attr.sample_type = PERFRING_SAMPLE_IP | PERFRING_SAMPLE_TID | PERFRING_SAMPLE_TIME | PERFRING_SAMPLE_CALLCHAIN;
	attr.sample_id_all = attr.mmap = attr.mmap2 = 1;
	perfring_attr_set_flag(&attr, PERFRING_ATTR_FLAG_defer_callchain, true);
	perfring_attr_set_flag(&attr, PERFRING_ATTR_FLAG_defer_output, true);
	cr_assert_eq(perfring_format_from_attr(&format, &attr), 0);
	snprintf(object, sizeof(object), "/tmp/deferred_test.XXXXXX");
	fd = mkostemp(object, O_CLOEXEC);
	cr_assert_geq(fd, 0);
	close(fd);
	hostile_write_elf(object, strings, sizeof(strings), symbols, 3);
	snprintf(data, sizeof(data), "/tmp/deferred_test.XXXXXX");
	fd = mkostemp(data, O_CLOEXEC);
	cr_assert_geq(fd, 0);
	cr_assert_eq(perfring_file_writer_open(&writer, fd), 0);
	cr_assert_eq(perfring_file_writer_add_event(writer, &attr, "made"), 0);
	cr_assert_eq(perfring_file_writer_begin(writer), 0);
	put_mapping();
	put_deferred(7, 1000000000, 5);
	put_deferred(7, 2000000000, 5);
	put_sample(7, 3000000000, whole, 4);
	put_deferred(8, 4000000000, 5);
	put_rest(7, 5000000000, 5, rest, 4);
	put_rest(8, 6000000000, 5, rest, 2);
	put_deferred(7, 7000000000, 9);
	cr_assert_eq(perfring_file_writer_finish(writer), 0);
	perfring_file_writer_close(writer);
	close(fd);
}

/* Runs `perfring WORDS`, whose "-i" is followed by the file.  The caller leaves the run. */
static void run(struct hostile_run *of, char *const words[])
{
	make();
	hostile_tool(of, 20, words);
	unlink(data);
	unlink(object);
	cr_assert_eq(of->status, 0, "status %d: %s", of->status, (char *)of->err);
}

static const char LACKS[] =
	": warning: 1 samples lack the user's part of their callchains: no CALLCHAIN_DEFERRED record has it\n";

/* Each sample is printed when it is whole: 3, then 1 and 2 by the rest at 5, 4 by that at 6; 7 at the end. */
Test(deferred, script)
{
#define KERNEL_LINE "\tffffffff90000010 [unknown]\n"
#define LINE(ip, name) "\t            " ip " " name "\n"
	static const char WANTED[] = "    7     3.000000000: \n" KERNEL_LINE LINE(
		"2004",
		"middle") "\n"
			  "    7     1.000000000: \n" KERNEL_LINE LINE("1004", "inner") LINE("2004", "middle") LINE(
				  "3004",
				  "outer") "\n"
					   "    7     2.000000000: \n" KERNEL_LINE LINE("1004", "inner") LINE("2004",
													      "middle")
						   LINE("3004",
							"outer") "\n"
								 "    8     4.000000000: \n" KERNEL_LINE LINE(
									 "1004",
									 "inner") "\n"
										  "    7     7.000000000: \n" KERNEL_LINE
										  "\n";
	struct hostile_run of;

	run(&of, (char *[]){(char[]){"script"}, (char[]){"-i"}, data, (char[]){"-F"}, (char[]){"tid,time,ip,sym"},
			    (char[]){"--ns"}, NULL});
	cr_assert_str_eq((char *)of.out, WANTED);
	cr_assert(strstr((char *)of.err, LACKS), "%s", (char *)of.err);
	hostile_leave(&of);
}

Test(deferred, export)
{
	struct hostile_run of;

	run(&of, (char *[]){(char[]){"export"}, (char[]){"--collapsed"}, (char[]){"--stdout"}, data, NULL});
	cr_assert_str_eq((char *)of.out, ":7;[unknown] 1\n"
					 ":7;middle;[unknown] 1\n"
					 ":7;outer;middle;inner;[unknown] 2\n"
					 ":8;inner;[unknown] 1\n");
	cr_assert(strstr((char *)of.err, LACKS), "%s", (char *)of.err);
	hostile_leave(&of);
}

/* Of five samples two have outer and three inner. */
Test(deferred, report)
{
	struct hostile_run of;

	run(&of, (char *[]){(char[]){"report"}, (char[]){"-i"}, data, (char[]){"-s"}, (char[]){"sym"},
			    (char[]){"--children"}, (char[]){"--call-graph=none"}, NULL});
	cr_assert(strstr((char *)of.out, "\n    40.00%     0.00%  [.] outer"), "%s", (char *)of.out);
	cr_assert(strstr((char *)of.out, "\n    60.00%     0.00%  [.] inner"), "%s", (char *)of.out);
	cr_assert(strstr((char *)of.out, "\n    60.00%     0.00%  [.] middle"), "%s", (char *)of.out);
	cr_assert(strstr((char *)of.err, LACKS), "%s", (char *)of.err);
	hostile_leave(&of);
}

/* A dump has the records of the file. */
Test(deferred, as_recorded)
{
	struct hostile_run of;

	run(&of, (char *[]){(char[]){"script"}, (char[]){"-D"}, (char[]){"-i"}, data, NULL});
	cr_assert(strstr((char *)of.out, "CALLCHAIN_DEFERRED"), "%s", (char *)of.out);
	cr_assert(!strstr((char *)of.err, LACKS), "%s", (char *)of.err);
	hostile_leave(&of);
}
