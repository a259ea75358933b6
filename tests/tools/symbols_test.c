/* symbols_test.c - whose symbols `perfring report` shows: the object's, or those of the debug file that is its own. */
#include <netinet/in.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include "hostile.h"

TestSuite(symbols, .timeout = 120);

static char folder[64];
static char object[96];
static char data[96];
static bool is_in_records; /* what a recording says of builds */

static void make_folder(void)
{
	snprintf(folder, sizeof(folder), "/tmp/symbols_test.XXXXXX");
	cr_assert_not_null(mkdtemp(folder));
	snprintf(object, sizeof(object), "%s/object", folder);
	snprintf(data, sizeof(data), "%s/data", folder);
}

static void remove_folder(void)
{
	char command[96];

	snprintf(command, sizeof(command), "rm -rf %s", folder);
	cr_assert_eq(system(command), 0);
}

static const char *in_folder(const char *name)
{
	static char path[512];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

/* ---- sections ---- */

static const struct hostile_symbol here = {1, 0x2000, 0x100};

/* A note with a build id, all of that byte; 20 bytes long. */
static struct hostile_section id_section(unsigned char byte)
{
	static unsigned char notes[256][36];
	const uint32_t head[3] = {4, 20, NT_GNU_BUILD_ID};

	memcpy(notes[byte], head, sizeof(head));
	memcpy(notes[byte] + 12, "GNU", 4);
	memset(notes[byte] + 16, byte, 20);
	return (struct hostile_section){".note.gnu.build-id", SHT_NOTE, notes[byte], 36, 0, 0, 0, 0x200};
}

/* .gnu_debuglink; size: of the name with its NUL. */
static struct hostile_section link_section(const char *name, size_t size, uint32_t sum)
{
	static unsigned char bytes[8192];
	size_t padded = (size + 3) / 4 * 4;

	memset(bytes, 0, sizeof(bytes));
	memcpy(bytes, name, size);
	memcpy(bytes + padded, &sum, 4);
	return (struct hostile_section){".gnu_debuglink", SHT_PROGBITS, bytes, padded + 4, 0, 0, 0, 0};
}

static uint32_t sum_of(const char *path)
{
	size_t size;
	unsigned char *bytes = hostile_read(open(path, O_RDONLY), &size);
	uint32_t sum = UINT32_MAX;

	for (size_t i = 0; i < size; i++) {
		sum ^= bytes[i];
		for (int bit = 0; bit < 8; bit++)
			sum = sum >> 1 ^ (sum & 1 ? UINT32_C(0xedb88320) : 0);
	}
	free(bytes);
	return ~sum;
}

/* Of one symbol at 0x2000, and an id unless it is 0. */
static void write_named(const char *path, const char *name, unsigned char id)
{
	struct hostile_bytes table = hostile_table(&here, 1);
	char strings[64] = "";

	snprintf(strings + 1, sizeof(strings) - 1, "%s", name);
	hostile_write_object(path,
			     (struct hostile_section[]){
				     {".symtab", SHT_SYMTAB, table.bytes, table.size, 3, 0, 0, 0},
				     {".strtab", SHT_STRTAB, strings, sizeof(strings), 0, 0, 0, 0},
				     id_section(id),
			     },
			     id ? 3 : 2);
	free(table.bytes);
}

/* Without symbols, with a link and an id unless they are NULL and 0. */
static void write_stripped(const struct hostile_section *link, unsigned char id)
{
	struct hostile_section sections[2];
	size_t count = 0;

	if (link)
		sections[count++] = *link;
	if (id)
		sections[count++] = id_section(id);
	hostile_write_object(object, sections, count);
}

/* Whether a report on the object has that text; id: what the recording says of the object's build, 0: nothing. */
static bool reports(const char *text, unsigned char id)
{
	unsigned char bytes[20];
	struct hostile_run run;
	bool has;

	memset(bytes, id, sizeof(bytes));
	hostile_write_recording(data, (char *[]){object}, 1, 0x2010, id ? bytes : NULL, is_in_records);
	hostile_tool(&run, 20, (char *[]){"report", data, NULL});
	cr_assert_eq(run.status, 0, "status %d: %s", run.status, (char *)run.err);
	has = strstr((char *)run.out, text);
	hostile_leave(&run);
	return has;
}

/* ---- builds ---- */

/* Of an object that is another one than was recorded no name is shown. */
Test(symbols, builds)
{
	make_folder();
	write_named(object, "sound", 'a');
	cr_assert(reports("] sound\n", 0));
	for (int i = 0; i < 2; i++) {
		is_in_records = i;
		write_named(object, "sound", 'a');
		cr_assert(reports("] sound\n", 'a'));
		cr_assert_not(reports("sound", 'b'), "%d", i);
		cr_assert(reports("the object is another build or file now", 'b'));
		write_named(object, "sound", 0);
		cr_assert(reports("] sound\n", 0));
		cr_assert_not(reports("sound", 'a'), "the object had a build id and has none any more");
	}
	remove_folder();
}

/* One file under two names, which the recording knows as two builds. */
Test(symbols, builds_of_two_names)
{
	struct hostile_run run;
	char other[128], ids[2][20];
	struct perfring_file *read = NULL;

	make_folder();
	snprintf(other, sizeof(other), "%s/./object", folder);
	memset(ids, 'b', sizeof(ids));
	write_named(object, "sound", 'a');
	hostile_write_recording(data, (char *[]){object, other}, 2, 0x2010, ids[0], false);
	/* the second name's build becomes the right one, in its place */
	cr_assert_eq(perfring_file_open(&read, data), 0);
	perfring_file_close(read);
	{
		size_t size;
		unsigned char *bytes = hostile_read(open(data, O_RDONLY), &size), *at = bytes;
		unsigned found = 0;
		int fd = open(data, O_WRONLY);

		for (; at + 20 <= bytes + size; at++)
			if (!memcmp(at, ids[0], 20) && found++) {
				memset(ids[1], 'a', 20);
				cr_assert_eq(pwrite(fd, ids[1], 20, at - bytes), 20);
			}
		cr_assert_eq(found, 2);
		close(fd);
		free(bytes);
	}
	hostile_tool(&run, 20, (char *[]){"report", data, NULL});
	cr_assert(strstr((char *)run.out, "] sound\n"), "%s", (char *)run.out);
	cr_assert(strstr((char *)run.out, " 1  the object is another build or file now\n"), "%s", (char *)run.out);
	hostile_leave(&run);
	remove_folder();
}

/* ---- debug files ---- */

Test(symbols, debug_file_of_a_build)
{
	struct hostile_section link = link_section("object.debug", 13, 0);

	make_folder();
	write_stripped(&link, 'a');
	write_named(in_folder("object.debug"), "sound", 'a');
	cr_assert(reports("] sound\n", 0), "its build id is the object's");
	cr_assert(reports("] sound\n", 'a'));
	write_named(in_folder("object.debug"), "wrong", 'b');
	cr_assert_not(reports("wrong", 0), "its build id is another one");
	write_named(in_folder("object.debug"), "wrong", 0);
	cr_assert_not(reports("wrong", 0), "it has none");
	cr_assert_eq(unlink(in_folder("object.debug")), 0);
	cr_assert_eq(mkdir(in_folder(".debug"), 0700), 0);
	write_named(in_folder(".debug/object.debug"), "sound", 'a');
	cr_assert(reports("] sound\n", 0), "in .debug");
	remove_folder();
}

/* Of an object without a build id, the checksum tells. */
Test(symbols, debug_file_by_its_sum)
{
	struct hostile_section link;

	make_folder();
	write_named(in_folder("object.debug"), "sound", 0);
	link = link_section("object.debug", 13, sum_of(in_folder("object.debug")));
	write_stripped(&link, 0);
	cr_assert(reports("] sound\n", 0));
	write_named(in_folder("object.debug"), "wrong", 0);
	cr_assert_not(reports("wrong", 0), "its checksum is another one");
	/* a checksum says nothing against a build id */
	link = link_section("object.debug", 13, sum_of(in_folder("object.debug")));
	write_stripped(&link, 'a');
	cr_assert_not(reports("wrong", 0), "the object has a build id");
	remove_folder();
}

/* A link is a file's name, whatever stands there instead: nothing beyond the folders of debug files is opened. */
Test(symbols, links_that_lead_elsewhere)
{
	char absolute[128], told[4096], above[160], longest[8000];
	const char *const names[] = {
		"../elsewhere.debug", absolute, above, "x/../../elsewhere.debug", ".", "..", "", longest};
	int watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);

	make_folder();
	cr_assert_eq(mkdir(in_folder("inner"), 0700), 0);
	cr_assert_eq(mkdir(in_folder("inner/x"), 0700), 0);
	write_named(in_folder("elsewhere.debug"), "wrong", 'a');
	snprintf(absolute, sizeof(absolute), "%s/elsewhere.debug", folder);
	snprintf(above, sizeof(above), "../../../../..%s/elsewhere.debug", folder);
	memset(longest, 'a', sizeof(longest));
	snprintf(object, sizeof(object), "%s/inner/object", folder);
	cr_assert_geq(inotify_add_watch(watch, absolute, IN_OPEN), 0);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		size_t size = names[i] == longest ? sizeof(longest) : strlen(names[i]) + 1;
		struct hostile_section link = link_section(names[i], size, 0);

		write_stripped(&link, 'a');
		cr_assert_not(reports("wrong", 0), "%s", names[i]);
		cr_assert_eq(read(watch, told, sizeof(told)), -1, "%s: opened", names[i]);
		/* and without an end */
		link.size = size ? size - 1 : 0;
		write_stripped(&link, 'a');
		cr_assert_not(reports("wrong", 0), "%s", names[i]);
		cr_assert_eq(read(watch, told, sizeof(told)), -1, "%s: opened", names[i]);
	}
	close(watch);
	remove_folder();
}

/* The symbols that some distributions leave in their objects. */
Test(symbols, debugdata)
{
	struct hostile_section sections[2] = {{".gnu_debugdata", SHT_PROGBITS, NULL, 0, 0, 0, 0, 0}};
	char command[600];
	unsigned char *packed;
	size_t size;

	make_folder();
	write_named(in_folder("inner"), "sound", 0);
	snprintf(command, sizeof(command), "xz -k %s", in_folder("inner"));
	if (system("command -v xz >/dev/null") || system(command))
		cr_skip_test("SKIP-ENV: xz: not installed");
	packed = hostile_read(open(in_folder("inner.xz"), O_RDONLY), &size);
	sections[0].bytes = packed;
	sections[0].size = size;
	sections[1] = id_section('a');
	hostile_write_object(object, sections, 2);
	cr_assert(reports("] sound\n", 0));
	/* damaged anywhere, it ends, and what is beside it is still read */
	for (size_t i = 0; i < size; i += 1 + size / 40) {
		packed[i] ^= 0x55;
		hostile_write_object(object, sections, 2);
		cr_assert(reports("1 of 1 samples have no symbol", 0) || reports("] sound\n", 0), "%zu", i);
		packed[i] ^= 0x55;
	}
	sections[0].size = size / 2;
	hostile_write_object(object, sections, 2);
	cr_assert_not(reports("sound", 0));
	free(packed);
	remove_folder();
}

/* No server is asked, whatever the environment says. */
Test(symbols, no_server_is_asked)
{
	struct sockaddr_in place = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct hostile_section link = link_section("object.debug", 13, 0);
	socklen_t size = sizeof(place);
	char url[64], cache[96];

	make_folder();
	cr_assert_eq(bind(server, (struct sockaddr *)&place, size), 0);
	cr_assert_eq(listen(server, 16), 0);
	cr_assert_eq(getsockname(server, (struct sockaddr *)&place, &size), 0);
	snprintf(url, sizeof(url), "http://127.0.0.1:%u/", ntohs(place.sin_port));
	snprintf(cache, sizeof(cache), "%s/cache", folder);
	setenv("DEBUGINFOD_URLS", url, 1);
	setenv("DEBUGINFOD_CACHE_PATH", cache, 1);
	setenv("DEBUGINFOD_TIMEOUT", "2", 1);
	write_stripped(&link, 'a');
	cr_assert(reports("1 of 1 samples have no symbol", 'a'));
	cr_assert_eq(accept4(server, NULL, NULL, SOCK_CLOEXEC), -1, "a server was asked");
	cr_assert_eq(errno, EAGAIN);
	unsetenv("DEBUGINFOD_URLS");
	close(server);
	remove_folder();
}

/* ---- what takes long ---- */

static bool has_ended(pid_t child)
{
	siginfo_t ended = {0};

	return waitid(P_PID, (id_t)child, &ended, WEXITED | WNOHANG | WNOWAIT) || ended.si_pid;
}

/* Whether a process has an open file whose path ends so. */
static bool has_open(pid_t pid, const char *end)
{
	char path[64], target[4096];
	size_t length = strlen(end);
	bool found = false;
	ssize_t size;

	for (int fd = 3; fd < 64 && !found; fd++) {
		snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, fd);
		size = readlink(path, target, sizeof(target));
		found = size >= (ssize_t)length && !memcmp(target + size - length, end, length);
	}
	return found;
}

/* ^C ends a report while it reads an object: one whose debug file, a hole of 500 MB, is summed up. */
Test(symbols, interrupted)
{
	struct hostile_section link = link_section("object.debug", 13, 1);
	const char *tool = getenv("PERFRING_TOOL");
	int fd, status;
	pid_t child;

	if (!tool)
		cr_skip_test("SKIP-ENV: PERFRING_TOOL is not set: ctest sets it");
	make_folder();
	write_stripped(&link, 0);
	write_named(in_folder("object.debug"), "wrong", 0);
	cr_assert_eq(truncate(in_folder("object.debug"), 500 << 20), 0);
	hostile_write_recording(data, (char *[]){object}, 1, 0x2010, NULL, false);
	fflush(NULL);
	child = fork();
	if (!child) {
		signal(SIGINT, SIG_DFL);
		fd = open("/dev/null", O_RDWR);
		if (dup2(fd, 1) < 0 || dup2(fd, 2) < 0)
			_exit(126);
		execl(tool, tool, "report", data, NULL);
		_exit(127);
	}
	for (unsigned n = 0; n < 20000 && !has_ended(child) && !has_open(child, "/object.debug"); n++)
		usleep(500);
	kill(child, SIGINT);
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT, "%#x", (unsigned)status);
	remove_folder();
}
