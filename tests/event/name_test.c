/* name_test.c - events by name: texts, PMUs as sysfs has them, lists and groups, probes, and all of it beside perf. */
#include "test.h"

#include <elf.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <perfring/event.h>
#include <perfring/format.h>

#include "event/pmu.h"
#include "machine.h"

TestSuite(name, .timeout = 60);

/* ---- names ---- */

Test(name, and_back)
{
	static const struct {
		const char *text;
		uint32_t type;
		uint64_t config;
		const char *back;
	} GOOD[] = {
		{"cycles", 0, 0, "cycles"},
		{"cpu-cycles", 0, 0, "cycles"},
		{"instructions:u", 0, 1, "instructions:u"},
		{"branches:uk", 0, 4, "branches:uk"},
		{"cpu-clock", 1, 0, "cpu-clock"},
		{"task-clock:k", 1, 1, "task-clock:k"},
		{"page-faults", 1, 2, "page-faults"},
		{"faults", 1, 2, "page-faults"},
		{"cs", 1, 3, "context-switches"},
		{"migrations", 1, 4, "cpu-migrations"},
		{"minor-faults", 1, 5, "minor-faults"},
		{"cgroup-switches", 1, 11, "cgroup-switches"},
		{"r1a8", 4, 0x1a8, "r1a8"},
		{"rFFFFFFFFFFFFFFFF:pp", 4, UINT64_MAX, "rffffffffffffffff:pp"},
		{"mem:0x1000", 5, 0, "mem:0x1000/4:rw"},
		{"mem:4096/8:w", 5, 0, "mem:0x1000/8:w"},
		{"mem:0x1000:x:u", 5, 0, "mem:0x1000/8:x:u"},
		{"mem:0x1000:u", 5, 0, "mem:0x1000/4:rw:u"},
		{"mem:010", 5, 0, "mem:0xa/4:rw"},
		{"cycles:P", 0, 0, "cycles:ppp"},
		{"cycles:GH", 0, 0, "cycles"},
		{"cycles:kGIDe", 0, 0, "cycles:kGIDe"},
		{"cycles//", 0, 0, "cycles"},
		{"cycles//u", 0, 0, "cycles:u"},
		{"cycles//:u", 0, 0, "cycles:u"},
		{"L1-dcache", 3, 0, "L1-dcache-loads"},
		{"l1i-miss-speculative-load:k", 3, 0x10201, "L1-icache-prefetch-misses:k"},
		{"Data-TLB-write-access", 3, 0x103, "dTLB-stores"},
		{"branch-misses", 0, 5, "branch-misses"},
		{"branch-loads", 3, 5, "branch-loads"},
	};

	for (size_t i = 0; i < sizeof(GOOD) / sizeof(*GOOD); i++) {
		struct perf_event_attr attr = {.size = sizeof(attr), .sample_period = 17};
		struct perfring_fault fault = {-1, NULL};
		char name[64];

		cr_assert_eq(perfring_event_parse(GOOD[i].text, &attr, &fault), 0, "%s: %s", GOOD[i].text, fault.what);
		cr_assert_eq(attr.type, GOOD[i].type, "%s", GOOD[i].text);
		cr_assert_eq(attr.config, GOOD[i].config, "%s", GOOD[i].text);
		cr_assert_eq(attr.sample_period, 17, "the rest stays");
		cr_assert_eq(perfring_event_name(&attr, name, sizeof(name)), (int64_t)strlen(GOOD[i].back));
		cr_assert_str_eq(name, GOOD[i].back);
	}
}

Test(name, none)
{
	static const struct {
		const char *text;
		int64_t at;
	} BAD[] = {
		{"", 0},
		{":u", 0},
		{"cycle", 0},
		{"cycles:", 7},
		{"cycles:x", 7},
		{"rxyz", 0},
		{"r", 0},
		{"cycles:pppp", 10},
		{"mem:", 4},
		{"mem:0x10/3", 9},
		{"mem:1:rr", 7},
		{"mem:1:rx", 7},
		{"mem:0x10z", 8},
		{"r11112222333344445", 1},
		{"../a:b", 0},
		{"cycles:uu", 8},
		{"cycles:p:u", 8},
		{"cycles/", 7},
		{"cycles/u=1/", 7},
		{"cycles/period/", 7},
		{"cycles/period=x/", 14},
		{"cycles/name=/", 12},
		{"cycles/period=1,/", 16},
		{"cycles/config=1/", 7},
		{"cycles/period=18446744073709551616/", 14},
		{"L1-dcache-loads-stores", 0},
		{"L1-dcache-", 0},
		{"L1-dcach", 0},
		{"mem:0x", 4},
		{"uprobe:/bin/true:main", 0},
	};

	for (size_t i = 0; i < sizeof(BAD) / sizeof(*BAD); i++) {
		struct perf_event_attr attr = {.size = sizeof(attr)};
		struct perfring_fault fault = {-1, NULL};

		cr_assert_eq(perfring_event_parse(BAD[i].text, &attr, &fault), -EINVAL, "%s", BAD[i].text);
		cr_assert_not_null(fault.what);
		cr_assert_eq(fault.at, BAD[i].at, "%s: at %ld", BAD[i].text, fault.at);
	}
}

Test(name, modifiers)
{
	struct perf_event_attr attr = {.size = sizeof(attr)};

	cr_assert_eq(perfring_event_parse("cycles:ukpppHID", &attr, NULL), 0);
	cr_assert_eq(attr.exclude_user, 0);
	cr_assert_eq(attr.exclude_kernel, 0);
	cr_assert_eq(attr.exclude_hv, 1);
	cr_assert_eq(attr.precise_ip, 3);
	cr_assert_eq(attr.exclude_guest, 1);
	cr_assert_eq(attr.exclude_host, 0);
	cr_assert_eq(attr.exclude_idle, 1);
	cr_assert_eq(attr.pinned, 1);
}

/* Terms of every event, as perf evlist -v shows what they do. */
Test(name, terms_of_every_event)
{
	static const struct {
		const char *text;
		uint64_t sample_type, branches;
		uint32_t stack, max_stack, terms, aux;
		int inherit, backward, user_chain_not;
	} GOOD[] = {
		{"cs/call-graph=fp/", PERFRING_SAMPLE_CALLCHAIN, .terms = PERFRING_TERM_CALLCHAIN},
		{"cs/call-graph=no/", 0, .terms = PERFRING_TERM_CALLCHAIN},
		{"cs/max-stack=5/", PERFRING_SAMPLE_CALLCHAIN, .max_stack = 5, .terms = PERFRING_TERM_CALLCHAIN},
		{"cs/max-stack=5,call-graph=no/", 0, .max_stack = 5, .terms = PERFRING_TERM_CALLCHAIN},
		{"cs/call-graph=no,max-stack=5/", 0, .max_stack = 5, .terms = PERFRING_TERM_CALLCHAIN},
		{"cs/inherit/", 0, .inherit = 1, .terms = PERFRING_TERM_INHERIT},
		{"cs/no-inherit=0/", 0, .inherit = 1, .terms = PERFRING_TERM_INHERIT},
		{"cs/no-inherit/u", 0, .terms = PERFRING_TERM_INHERIT},
		{"cs/time=1/", PERFRING_SAMPLE_TIME, .terms = PERFRING_TERM_TIME},
		{"cs/time=0/", 0, .terms = PERFRING_TERM_TIME},
		{"cs/overwrite/", 0, .backward = 1, .terms = PERFRING_TERM_OVERWRITE},
		{"cs/no-overwrite/", 0, .terms = PERFRING_TERM_OVERWRITE},
		{"cs/percore/", 0, .terms = PERFRING_TERM_PERCORE},
		{"cs/aux-sample-size=0x100/", PERFRING_SAMPLE_AUX, .aux = 0x100},
		{"cs/branch_type=any_call|k/", PERFRING_SAMPLE_BRANCH_STACK, .branches = 0x12,
		 .terms = PERFRING_TERM_BRANCHES},
		{"cs/branch_type=u/", PERFRING_SAMPLE_BRANCH_STACK, .branches = 9, .terms = PERFRING_TERM_BRANCHES},
		{"cs/call-graph=lbr/", PERFRING_SAMPLE_CALLCHAIN | PERFRING_SAMPLE_BRANCH_STACK,
		 .branches = 0x2c801, .terms = PERFRING_TERM_CALLCHAIN},
#ifdef __x86_64__
		{"cs/stack-size=1000,call-graph=dwarf/",
		 PERFRING_SAMPLE_CALLCHAIN | PERFRING_SAMPLE_STACK_USER | PERFRING_SAMPLE_REGS_USER, .stack = 1000,
		 .user_chain_not = 1, .terms = PERFRING_TERM_CALLCHAIN},
		{"cs/call-graph=dwarf,stack-size=1001/",
		 PERFRING_SAMPLE_CALLCHAIN | PERFRING_SAMPLE_STACK_USER | PERFRING_SAMPLE_REGS_USER, .stack = 1008,
		 .user_chain_not = 1, .terms = PERFRING_TERM_CALLCHAIN},
#endif
	};
	static const struct {
		const char *text;
		int64_t at;
	} BAD[] = {
		{"cs/call-graph/", 3},       {"cs/call-graph=lbx/", 14},   {"cs/max-stack/", 3},
		{"cs/max-stack=65536/", 13}, {"cs/stack-size=65529/", 14}, {"cs/time=2/", 8},
		{"cs/inherit=x/", 11},       {"cs/branch_type=/", 15},     {"cs/branch_type=any|/", 15},
		{"cs/nr=1/", 3},             {"cs/aux-output=2/", 14},
	};
	struct perf_event_attr shortest = {.size = 64};

	for (size_t i = 0; i < sizeof(GOOD) / sizeof(*GOOD); i++) {
		struct perf_event_attr base = {.size = sizeof(base), .read_format = 5};
		const struct perfring_events_one *one;
		struct perfring_events *events;
		struct perfring_format format;

		cr_assert_eq(perfring_events_open(&events), 0);
		cr_assert_eq(perfring_events_add(events, GOOD[i].text, &base, NULL), 0, "%s", GOOD[i].text);
		one = perfring_events_at(events, 0);
		cr_assert_eq(one->terms, GOOD[i].terms, "%s", GOOD[i].text);
		cr_assert_eq(one->attr->sample_type, GOOD[i].sample_type, "%s", GOOD[i].text);
		cr_assert_eq(one->attr->branch_sample_type, GOOD[i].branches, "%s: %#llx", GOOD[i].text,
			     (unsigned long long)one->attr->branch_sample_type);
		cr_assert_eq(one->attr->sample_stack_user, GOOD[i].stack, "%s", GOOD[i].text);
		cr_assert_eq(one->attr->sample_max_stack, GOOD[i].max_stack, "%s", GOOD[i].text);
		cr_assert_eq(one->attr->aux_sample_size, GOOD[i].aux, "%s", GOOD[i].text);
		cr_assert_eq(one->attr->inherit, GOOD[i].inherit, "%s", GOOD[i].text);
		cr_assert_eq(one->attr->exclude_callchain_user, GOOD[i].user_chain_not, "%s", GOOD[i].text);
		cr_assert_eq(one->attr->read_format, 5, "the rest stays");
		cr_assert_eq(perfring_format_from_attr(&format, one->attr), 0);
		cr_assert_eq((int)(format.flags >> PERFRING_ATTR_FLAG_write_backward & 1), GOOD[i].backward, "%s",
			     GOOD[i].text);
		perfring_events_close(events);
	}
	for (size_t i = 0; i < sizeof(BAD) / sizeof(*BAD); i++) {
		struct perf_event_attr attr = {.size = sizeof(attr)};
		struct perfring_fault fault = {-1, NULL};

		cr_assert_eq(perfring_event_parse(BAD[i].text, &attr, &fault), -EINVAL, "%s", BAD[i].text);
		cr_assert_eq(fault.at, BAD[i].at, "%s: at %ld", BAD[i].text, fault.at);
	}
	/* an attr that ends before the member */
	cr_assert_eq(perfring_event_parse("cs/max-stack=5/", &shortest, NULL), -EINVAL);
	cr_assert_eq(perfring_event_parse("cs/call-graph=fp/", &shortest, NULL), 0);
	cr_assert_eq(shortest.sample_type, PERFRING_SAMPLE_CALLCHAIN);
}

Test(name, a_name_fits_any_room)
{
	struct perf_event_attr attr = {.size = sizeof(attr)};
	char buffer[32];

	cr_assert_eq(perfring_event_parse("page-faults:u", &attr, NULL), 0);
	for (size_t size = 0; size <= 20; size++) {
		memset(buffer, 'z', sizeof(buffer));
		cr_assert_eq(perfring_event_name(&attr, buffer, size), 13);
		cr_assert_eq(buffer[size], 'z');
		if (size)
			cr_assert_eq(strncmp(buffer, "page-faults:u", size - 1), 0);
	}
}

Test(name, tracepoints)
{
	struct perf_event_attr attr = {.size = sizeof(attr)};
	struct perfring_fault fault = {-1, NULL};
	char name[64], number[32] = "";
	int ret = perfring_event_parse("sched:sched_switch:u", &attr, &fault);
	FILE *file;

	if (ret)
		cr_skip_test("SKIP-ENV: tracepoint: %s: %s", strerror(-ret), fault.what);
	file = fopen("/sys/kernel/tracing/events/sched/sched_switch/id", "r");
	if (!file)
		file = fopen("/sys/kernel/debug/tracing/events/sched/sched_switch/id", "r");
	cr_assert_not_null(file);
	cr_assert_not_null(fgets(number, sizeof(number), file));
	fclose(file);
	cr_assert_eq(attr.type, PERF_TYPE_TRACEPOINT);
	cr_assert_eq(attr.config, strtoull(number, NULL, 10));
	cr_assert_eq(attr.exclude_kernel, 1);
	perfring_event_name(&attr, name, sizeof(name));
	cr_assert_str_eq(name, "sched:sched_switch:u");
	cr_assert_eq(perfring_event_parse("sched:no_such_event", &attr, &fault), -ENOENT);
	cr_assert_not_null(strstr(fault.what, "no such tracepoint"));
}

/* Tracepoints of a tracefs of our own, whose files of ids have these texts; NULL: a folder. */
static const struct {
	const char *name;
	const char *text;
	int error;
} damaged[] = {{"good", "77\n", 0}, {"empty", "", -EIO}, {"word", "none\n", -EIO}, {"folder", NULL, -EISDIR}};

static bool put_tracepoint(const char *name, const char *text)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "/sys/kernel/tracing/events/x/%s", name);
	if (mkdir(path, 0755))
		return false;
	strcat(path, "/id");
	if (!text)
		return !mkdir(path, 0755);
	file = fopen(path, "w");
	return file && fputs(text, file) >= 0 && !fclose(file);
}

/* In a child.  Returns 0; 99: no such mount here; another number: what did not hold. */
static int look_into_own_tracefs(void)
{
	struct perf_event_attr attr = {.size = sizeof(attr)};

	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", "/sys/kernel/tracing", "tmpfs", 0, NULL))
		return 99;
	if (mkdir("/sys/kernel/tracing/events", 0755) || mkdir("/sys/kernel/tracing/events/x", 0755))
		return 98;
	for (int i = 0; i < (int)(sizeof(damaged) / sizeof(damaged[0])); i++) {
		struct perfring_fault fault = {-1, NULL};
		char name[32];

		if (!put_tracepoint(damaged[i].name, damaged[i].text))
			return 98;
		snprintf(name, sizeof(name), "x:%s", damaged[i].name);
		if (perfring_event_parse(name, &attr, &fault) != damaged[i].error)
			return 10 + i;
		if (damaged[i].error ? fault.at || !fault.what || !strstr(fault.what, "no number") : attr.config != 77)
			return 20 + i;
	}
	return 0;
}

/* An id that cannot be read has a text too. */
Test(name, tracepoints_without_a_number)
{
	int status;
	pid_t child = fork();

	cr_assert_geq(child, 0);
	if (!child)
		_exit(look_into_own_tracefs());
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFEXITED(status));
	if (WEXITSTATUS(status) == 99)
		cr_skip_test("SKIP-ENV: mount: tmpfs on /sys/kernel/tracing: run as root");
	cr_assert_eq(WEXITSTATUS(status), 0);
}

/* ---- terms, as a sysfs of our own describes them ---- */

static char root[64];

static void put_file(const char *path, const char *text)
{
	char whole[256];
	FILE *file;

	snprintf(whole, sizeof(whole), "%s/%s", root, path);
	file = fopen(whole, "w");
	cr_assert_not_null(file);
	fputs(text, file);
	fclose(file);
}

static void put_folder(const char *path)
{
	char whole[256];

	snprintf(whole, sizeof(whole), "%s/%s", root, path);
	cr_assert_eq(mkdir(whole, 0755), 0);
}

static void make_sysfs(void)
{
	strcpy(root, "/tmp/perfring_name.XXXXXX");
	cr_assert_not_null(mkdtemp(root));
	put_folder("box");
	put_folder("box/format");
	put_folder("box/events");
	put_file("box/type", "77\n");
	put_file("box/format/event", "config:0-7,32-35\n");
	put_file("box/format/umask", "config:8-15\n");
	put_file("box/format/odd", "config:63\n");
	put_file("box/format/thresh", "config1:0-63\n");
	put_file("box/format/spread", "config2:0,2,4\n");
	put_file("box/format/far", "config3:4-5\n");
	put_file("box/format/last", "config4:0-3\n");
	put_file("box/format/backward", "config:9-3\n");
	put_file("box/format/outside", "config:60-64\n");
	put_file("box/format/unknown", "konfig:0\n");
	put_file("box/events/plain", "event=0x1ff,umask=0x03\n");
	put_file("box/events/worth", "event=2\n");
	put_file("box/events/worth.scale", "6.103515625e-05\n");
	put_file("box/events/worth.unit", "MiB\n");
	put_file("box/events/open", "event=5,umask=?\n");
	put_file("box/events/bad", "nosuch=1\n");
	put_file("box/events/whole", "config=0x1000,thresh=7\n");
	put_file("box/cpumask", "0,64\n");
	put_folder("nothing");
	put_file("nothing/type", "78\n");
	put_folder("broken");
	put_file("broken/type", "many\n");
}

static int unlink_one(const char *path, const struct stat *status, int flag, struct FTW *walk)
{
	(void)status;
	(void)flag;
	(void)walk;
	return remove(path);
}

static void drop_sysfs(void)
{
	nftw(root, unlink_one, 16, FTW_DEPTH | FTW_PHYS);
}

union newest {
	struct perf_event_attr attr;
	unsigned char bytes[PERFRING_ATTR_SIZE_9];
};

Test(name, terms_of_a_pmu, .init = make_sysfs, .fini = drop_sysfs)
{
	static const struct {
		const char *text;
		uint64_t configs[PERFRING_CONFIGS];
		const char *back;
	} GOOD[] = {
		{"box/event=0x3c/", {0x3c}, "box/config=0x3c/"},
		{"box/event=60,umask=1/", {0x13c}, "box/config=0x13c/"},
		{"box/umask=1,event=0xfff/", {0xf000001ff}, "box/config=0xf000001ff/"},
		{"box/odd/", {UINT64_C(1) << 63}, "box/config=0x8000000000000000/"},
		{"box/odd=0/", {0}, "box/config=0x0/"},
		{"box//", {0}, "box/config=0x0/"},
		{"box/thresh=0xffffffffffffffff/", {0, UINT64_MAX}, "box/config=0x0,config1=0xffffffffffffffff/"},
		{"box/spread=7/", {0, 0, 0x15}, "box/config=0x0,config2=0x15/"},
		{"box/spread=2/", {0, 0, 4}, "box/config=0x0,config2=0x4/"},
		{"box/far=3,last=9/", {0, 0, 0, 0x30, 9}, "box/config=0x0,config3=0x30,config4=0x9/"},
		{"box/config=1,config1=2,config2=3,config3=4/",
		 {1, 2, 3, 4},
		 "box/config=0x1,config1=0x2,config2=0x3,config3=0x4/"},
		{"box/config/", {1}, "box/config=0x1/"},
		/* as perf does: terms are OR'ed, config= first */
		{"box/event=1,config=0x10,event=2/", {0x13}, "box/config=0x13/"},
		{"box/plain/", {0x1000003ff}, "box/plain/"},
		{"box/plain,umask=4/", {0x1000007ff}, "box/config=0x1000007ff/"},
		{"plain", {0x1000003ff}, "box/plain/"},
		{"plain:u", {0x1000003ff}, "box/plain/u"},
		{"box/plain/u", {0x1000003ff}, "box/plain/u"},
		{"box/plain/:u", {0x1000003ff}, "box/plain/u"},
		{"box/open,umask=0x11/", {0x1105}, "box/config=0x1105/"},
		{"box/umask=2,open/pp", {0x205}, "box/config=0x205/pp"},
		{"box/whole/", {0x1000, 7}, "box/whole/"},
		{"box/r1a8/", {0x1a8}, "box/config=0x1a8/"},
		{"box/ event=1, umask=1/", {0x101}, "box/config=0x101/"},
		{"box/event=010/", {10}, "box/config=0xa/"},
	};

	for (size_t i = 0; i < sizeof(GOOD) / sizeof(*GOOD); i++) {
		struct perfring_fault fault = {-1, "none"};
		union newest newest, again;
		char name[256];
		uint64_t configs[PERFRING_CONFIGS];

		memset(&newest, 0xff, sizeof(newest));
		newest.attr.size = sizeof(newest);
		newest.attr.exclude_kernel = newest.attr.exclude_hv = newest.attr.exclude_user = 0;
		cr_assert_eq(perfring__event_parse_under(root, GOOD[i].text, NULL, &newest.attr, NULL, &fault), 0,
			     "%s: %s", GOOD[i].text, fault.what);
		cr_assert_eq(newest.attr.type, 77);
		cr_assert_eq(newest.attr.bp_type, 0);
		cr_assert_eq(newest.attr.wakeup_events, UINT32_MAX, "the rest stays");
		perfring__configs_get(&newest.attr, configs);
		for (int j = 0; j < PERFRING_CONFIGS; j++)
			cr_assert_eq(configs[j], GOOD[i].configs[j], "%s: config%d is 0x%llx", GOOD[i].text, j,
				     (unsigned long long)configs[j]);
		memset(&again, 0, sizeof(again));
		again.attr.size = sizeof(again);
		cr_assert_eq(perfring__event_parse_under(root, GOOD[i].text, NULL, &again.attr, NULL, NULL), 0);
		cr_assert_gt(perfring__event_name_under(root, &again.attr, name, sizeof(name)), 0);
		cr_assert_str_eq(name, GOOD[i].back);
	}
}

Test(name, terms_that_are_none, .init = make_sysfs, .fini = drop_sysfs)
{
	static const struct {
		const char *text;
		int error;
		int64_t at;
		const char *word;
	} BAD[] = {
		{"box/umask=0x100/", -EINVAL, 10, "bits"},
		{"box/event=0x1000/", -EINVAL, 10, "bits"},
		{"box/odd,umask=256/", -EINVAL, 14, "bits"},
		{"box/umask=/", -EINVAL, 10, "number"},
		{"box/umask=-1/", -EINVAL, 10, "number"},
		{"box/umask=0x/", -EINVAL, 10, "number"},
		{"box/umask=1x/", -EINVAL, 10, "number"},
		{"box/thresh=0x10000000000000000/", -EINVAL, 11, "number"},
		{"box/nosuch/", -EINVAL, 4, "no such term"},
		{"box/umask=1,nosuch=1/", -EINVAL, 12, "no such term"},
		{"box/plain=1/", -EINVAL, 4, "no such term"},
		{"box/worth.scale/", -EINVAL, 4, "no such term"},
		{"box/..=1/", -EINVAL, 4, "no such term"},
		{"box/,/", -EINVAL, 4, "no term"},
		{"box/umask,/", -EINVAL, 10, "no term"},
		{"box/open/", -EINVAL, 4, "?"},
		{"box/open,umask/", -EINVAL, 4, "?"},
		{"box/bad/", -EINVAL, 4, "not known here"},
		{"box/backward/", -EINVAL, 4, "not known here"},
		{"box/outside/", -EINVAL, 4, "not known here"},
		{"box/unknown/", -EINVAL, 4, "not known here"},
		{"box/umask=1", -EINVAL, 11, "slash"},
		{"box/umask=1/x", -EINVAL, 12, "modifier"},
		{"box/umask=1/u,", -EINVAL, 13, "modifier"},
		{"box/umask=1/:", -EINVAL, 13, "no modifier"},
		{"broken//", -EINVAL, 0, "PMU"},
		{"nobox//", -ENOENT, 0, "no such PMU"},
		{"./box//", -EINVAL, 0, "PMU"},
		{"nothing/event=1/", -EINVAL, 8, "no such term"},
	};

	for (size_t i = 0; i < sizeof(BAD) / sizeof(*BAD); i++) {
		struct perf_event_attr attr = {.size = sizeof(attr), .type = 1234, .config = 5678}, before = attr;
		struct perfring_fault fault = {-1, "none"};
		int error = perfring__event_parse_under(root, BAD[i].text, NULL, &attr, NULL, &fault);

		cr_assert_eq(error, BAD[i].error, "%s: %d", BAD[i].text, error);
		cr_assert_eq(fault.at, BAD[i].at, "%s: at %ld: %s", BAD[i].text, (long)fault.at, fault.what);
		cr_assert_not_null(strstr(fault.what, BAD[i].word), "%s: %s", BAD[i].text, fault.what);
		cr_assert_eq(memcmp(&attr, &before, sizeof(attr)), 0, "nothing is changed");
	}
}

Test(name, terms_that_are_no_bits, .init = make_sysfs, .fini = drop_sysfs)
{
	struct perf_event_attr attr = {.size = sizeof(attr)};
	struct perfring_naming naming;

	cr_assert_eq(
		perfring__event_parse_under(root, "box/worth,name=how much,period=1000/", NULL, &attr, &naming, NULL),
		0);
	cr_assert_str_eq(naming.name, "how much");
	cr_assert_str_eq(naming.unit, "MiB");
	cr_assert_eq(naming.scale, 0x1p-14);
	cr_assert_str_eq(naming.cpus, "0,64");
	cr_assert_eq(attr.sample_period, 1000);
	cr_assert_eq(attr.freq, 0);
	cr_assert_eq(perfring__event_parse_under(root, "box/plain,freq=99/S", NULL, &attr, &naming, NULL), 0);
	cr_assert_str_eq(naming.name, "");
	cr_assert_str_eq(naming.unit, "");
	cr_assert_eq(naming.scale, 1.0);
	cr_assert_eq(attr.sample_freq, 99);
	cr_assert_eq(attr.freq, 1);
	cr_assert(naming.reads);
	cr_assert_eq(perfring__event_parse_under(root, "nothing/config=1/", NULL, &attr, &naming, NULL), 0);
	cr_assert_str_eq(naming.cpus, "");
}

/* Its bytes end where its size says. */
Test(name, attrs_of_older_sizes, .init = make_sysfs, .fini = drop_sysfs)
{
	static const struct {
		const char *text;
		uint32_t least;
	} NEEDS[] = {{"cycles", 64},         {"box/thresh=1/", 64}, {"mem:0x1000:w", 72},
		     {"box/config2=1/", 72}, {"box/far=1/", 136},   {"box/config3=1/", 136},
		     {"box/config4=0/", 64}, {"box/last=1/", 144},  {"box/config3=0/", 64}};
	static const uint32_t SIZES[] = {0, 64, 72, 80, 96, 104, 112, 120, 128, 136, 144};

	for (size_t i = 0; i < sizeof(NEEDS) / sizeof(*NEEDS); i++)
		for (size_t j = 0; j < sizeof(SIZES) / sizeof(*SIZES); j++) {
			uint32_t size = SIZES[j] ? SIZES[j] : 64;
			struct perf_event_attr *attr = calloc(1, size);
			struct perfring_fault fault = {-1, ""};
			int error;

			attr->size = SIZES[j];
			error = perfring__event_parse_under(root, NEEDS[i].text, NULL, attr, NULL, &fault);
			cr_assert_eq(error, size < NEEDS[i].least ? -EINVAL : 0, "%s in %u", NEEDS[i].text, size);
			if (error)
				cr_assert_not_null(strstr(fault.what, "attr->size"));
			free(attr);
		}
}

/* ---- lists ---- */

static struct perfring_events *list_of(const char *text)
{
	struct perf_event_attr base = {.size = sizeof(base), .sample_type = PERF_SAMPLE_IP};
	struct perfring_fault fault = {-1, "none"};
	struct perfring_events *events;

	cr_assert_eq(perfring_events_open(&events), 0);
	cr_assert_eq(perfring_events_add(events, text, &base, &fault), 0, "%s: at %ld: %s", text, (long)fault.at,
		     fault.what);
	return events;
}

Test(name, list)
{
	static const struct {
		const char *name, *back;
		uint32_t leader;
		bool reads;
	} WANT[] = {
		{"cycles", "cycles", UINT32_MAX, false},    {"cs:u", "context-switches:uk", 1, true},
		{"faults", "page-faults:k", 1, true},       {"two words", "instructions:u", UINT32_MAX, false},
		{"mem:0x10/4:w", "mem:0x10/4:w", 4, false}, {"L1-dcache-loads:S", "L1-dcache-loads", UINT32_MAX, true},
	};
	struct perfring_events *events =
		list_of("cycles,{cs:u , faults}:kS, instructions/name=two words/u,{mem:0x10/4:w},L1-dcache-loads:S");

	cr_assert_eq(perfring_events_count(events), 6);
	for (uint32_t i = 0; i < 6; i++) {
		const struct perfring_events_one *one = perfring_events_at(events, i);
		char name[64];

		cr_assert_str_eq(one->name, WANT[i].name);
		cr_assert_eq(one->leader, WANT[i].leader, "%s: %u", one->name, one->leader);
		cr_assert_eq(one->reads, WANT[i].reads, "%s", one->name);
		cr_assert_eq(one->scale, 1.0);
		cr_assert_str_eq(one->unit, "");
		cr_assert_eq(one->attr->sample_type, PERF_SAMPLE_IP, "as in base");
		cr_assert_eq(one->attr, perfring_events_attr(events, i));
		perfring_event_name(one->attr, name, sizeof(name));
		cr_assert_str_eq(name, WANT[i].back);
	}
	cr_assert_null(perfring_events_at(events, 6));
	perfring_events_close(events);
}

Test(name, group_modifiers)
{
	struct perfring_events *events = list_of("{cycles:p,cs:up,faults}:pD,cycles");

	cr_assert_eq(perfring_events_at(events, 0)->attr->precise_ip, 2);
	cr_assert_eq(perfring_events_at(events, 1)->attr->precise_ip, 2);
	cr_assert_eq(perfring_events_at(events, 2)->attr->precise_ip, 1);
	/* the kernel refuses a pinned sibling */
	cr_assert_eq(perfring_events_at(events, 0)->attr->pinned, 1);
	cr_assert_eq(perfring_events_at(events, 1)->attr->pinned, 0);
	cr_assert_eq(perfring_events_at(events, 2)->attr->pinned, 0);
	cr_assert_eq(perfring_events_at(events, 1)->attr->exclude_kernel, 1);
	cr_assert_eq(perfring_events_at(events, 2)->attr->exclude_kernel, 0);
	cr_assert_eq(perfring_events_at(events, 3)->attr->precise_ip, 0);
	perfring_events_close(events);
}

Test(name, lists_that_are_none)
{
	static const struct {
		const char *text;
		int error;
		int64_t at;
	} BAD[] = {
		{"", -EINVAL, 0},
		{",cs", -EINVAL, 0},
		{"cs,", -EINVAL, 3},
		{"cs,,cs", -EINVAL, 3},
		{"cs cs", -EINVAL, 0},
		{"cs,nothing", -EINVAL, 3},
		{"cs,cs:ux", -EINVAL, 7},
		{"{cs", -EINVAL, 3},
		{"{cs,", -EINVAL, 4},
		{"{}", -EINVAL, 1},
		{"{cs,}", -EINVAL, 4},
		{"{cs,{cs}}", -EINVAL, 4},
		{"cs}", -EINVAL, 2},
		{"cs{cs}", -EINVAL, 2},
		{"{cs}cs", -EINVAL, 4},
		{"{cs}:", -EINVAL, 5},
		{"{cs}:x", -EINVAL, 5},
		{"{cs,cs:pp}:pp", -EINVAL, 4},
		{"cs,sched:sched_*:x", -EINVAL, 17},
		{"cs,sched:sched_*:", -EINVAL, 17},
		{"cs,nopmu/x/", -ENOENT, 3},
		{"cs,uprobe:/bin/true", -EINVAL, 19},
		{"cs,uprobe::main", -EINVAL, 10},
		{"cs,uprobe:/no/such/file:main", -ENOENT, 10},
		{"cs,uprobe:/etc/passwd:main", -EINVAL, 10},
		{"cs,uretprobe:/proc/self/exe:no_such_function", -ENOENT, 28},
		{"cs,uprobe:/proc/self/exe:", -EINVAL, 25},
		{"cs,uprobe:/proc/self/exe:12", -EINVAL, 25},
		{"cs,uprobe:/proc/self/exe:name_test_target+x", -EINVAL, 42},
		{"cs,uprobe:/proc/self/exe:name_test_target+100000", -EINVAL, 42},
	};

	for (size_t i = 0; i < sizeof(BAD) / sizeof(*BAD); i++) {
		struct perfring_events *events = list_of("cycles");
		struct perf_event_attr base = {.size = sizeof(base)};
		struct perfring_fault fault = {-1, "none"};
		int error = perfring_events_add(events, BAD[i].text, &base, &fault);

		cr_assert_eq(error, BAD[i].error, "%s: %d: %s", BAD[i].text, error, fault.what);
		cr_assert_eq(fault.at, BAD[i].at, "%s: at %ld: %s", BAD[i].text, (long)fault.at, fault.what);
		cr_assert_eq(perfring_events_count(events), 1, "nothing was appended");
		cr_assert_eq(perfring_events_add(events, BAD[i].text, &base, NULL), BAD[i].error);
		perfring_events_close(events);
	}
}

Test(name, list_of_attrs)
{
	struct perf_event_attr attr = {.size = 64, .type = 1, .config = 3};
	struct perfring_events *events;

	cr_assert_eq(perfring_events_open(&events), 0);
	cr_assert_eq(perfring_events_add_attr(events, &attr, "none before", true), -EINVAL);
	for (int i = 0; i < 100; i++) {
		char name[32];

		snprintf(name, sizeof(name), "number %d", i);
		attr.config = (unsigned)i;
		cr_assert_eq(perfring_events_add_attr(events, &attr, name, i % 4 > 1), 0);
	}
	cr_assert_eq(perfring_events_count(events), 100);
	for (uint32_t i = 0; i < 100; i++) {
		static const uint32_t LEADERS[] = {UINT32_MAX, 1, 1, 1};
		const struct perfring_events_one *one = perfring_events_at(events, i);

		cr_assert_eq(one->attr->config, i);
		cr_assert_eq(one->leader, i % 4 ? i / 4 * 4 + LEADERS[i % 4] : UINT32_MAX);
	}
	cr_assert_str_eq(perfring_events_at(events, 99)->name, "number 99");
	perfring_events_attr(events, 7)->config = 1000;
	cr_assert_eq(perfring_events_at(events, 7)->attr->config, 1000);
	perfring_events_close(events);
	perfring_events_close(NULL);
}

Test(name, globs_of_tracepoints)
{
	struct perf_event_attr base = {.size = sizeof(base)};
	struct perfring_fault fault = {-1, "none"};
	struct perfring_events *events;
	uint32_t count;
	int ret;

	cr_assert_eq(perfring_events_open(&events), 0);
	ret = perfring_events_add(events, "cs,{sched:sched_[wms]*:u,faults}:S", &base, &fault);
	if (ret)
		cr_skip_test("SKIP-ENV: tracepoints: %s: %s", strerror(-ret), fault.what);
	count = perfring_events_count(events);
	cr_assert_gt(count, 6);
	for (uint32_t i = 1; i < count - 1; i++) {
		const struct perfring_events_one *one = perfring_events_at(events, i);
		struct perf_event_attr alone = base;

		cr_assert_eq(strncmp(one->name, "sched:sched_", 12), 0);
		cr_assert_not_null(strchr("wms", one->name[12]));
		cr_assert_str_eq(one->name + strlen(one->name) - 2, ":u");
		cr_assert_eq(one->leader, 1);
		cr_assert(one->reads);
		cr_assert_eq(perfring_event_parse(one->name, &alone, NULL), 0);
		cr_assert_eq(memcmp(&alone, one->attr, sizeof(alone)), 0);
		if (i > 1)
			cr_assert_gt(strcmp(one->name, perfring_events_at(events, i - 1)->name), 0);
	}
	cr_assert_eq(perfring_events_add(events, "cs,sched:nothing*", &base, &fault), -ENOENT);
	cr_assert_eq(fault.at, 3);
	cr_assert_eq(perfring_events_count(events), count);
	cr_assert_eq(perfring_events_add(events, "sch?d:sched_switch", &base, &fault), 0);
	cr_assert_str_eq(perfring_events_at(events, count)->name, "sched:sched_switch");
	perfring_events_close(events);
}

/* ---- probes of user code ---- */

int name_test_target(int value);

__attribute__((noinline)) int name_test_target(int value)
{
	__asm__ volatile("" : "+r"(value));
	return value + 1;
}

/* Observed, and never called. */
int name_test_idle(int value);

__attribute__((noinline)) int name_test_idle(int value)
{
	return value ? name_test_target(value) : 7;
}

static int (*volatile idle)(int) = name_test_idle;
static volatile int called;

Test(name, probes)
{
	struct perf_event_attr base = {.size = sizeof(base), .disabled = 1};
	char path[PATH_MAX], text[4 * PATH_MAX], name[PATH_MAX + 64];
	ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
	struct perfring_fault fault = {-1, "none"};
	struct perfring_events *events, *again;
	int fds[3], ret;

	cr_assert_gt(length, 0);
	path[length] = 0;
	snprintf(text, sizeof(text),
		 "uprobe:%s:name_test_target,uretprobe:%s:name_test_target:u,uprobe:%s:name_test_idle:u", path, path,
		 path);
	cr_assert_eq(perfring_events_open(&events), 0);
	ret = perfring_events_add(events, text, &base, &fault);
	if (ret == -ENOENT && strstr(fault.what, "kernel"))
		cr_skip_test("SKIP-ENV: uprobes: %s", fault.what);
	cr_assert_eq(ret, 0, "at %ld: %s", (long)fault.at, fault.what);
	cr_assert_eq(perfring_events_count(events), 3);

	for (uint32_t i = 0; i < 3; i++) {
		const struct perf_event_attr *attr = perfring_events_at(events, i)->attr;
		struct perf_event_attr *back;

		cr_assert_eq(attr->exclude_kernel, i > 0);
		cr_assert_eq(attr->exclude_user, 0);
		/* back to text, by the place in the file */
		cr_assert_gt(perfring_event_name(attr, name, sizeof(name)), 0);
		cr_assert_eq(strncmp(name, i == 1 ? "uretprobe:/" : "uprobe:/", i == 1 ? 11 : 8), 0, "%s", name);
		cr_assert_eq(perfring_events_open(&again), 0);
		cr_assert_eq(perfring_events_add(again, name, &base, &fault), 0, "%s: %s", name, fault.what);
		back = perfring_events_attr(again, 0);
		cr_assert_neq(back->config1, attr->config1);
		cr_assert_str_eq((const char *)(uintptr_t)back->config1, path);
		back->config1 = attr->config1;
		cr_assert_eq(memcmp(back, attr, sizeof(*back)), 0);
		perfring_events_close(again);

		fds[i] = perfring_event_open(attr, 0, -1, -1, 0);
		if (fds[i] == -EACCES || fds[i] == -EPERM || fds[i] == -ENOSYS)
			cr_skip_test("SKIP-ENV: perf_event_open of a uprobe: %s: CAP_SYS_ADMIN", strerror(-fds[i]));
		cr_assert_geq(fds[i], 0, "%s: %d", name, fds[i]);
		cr_assert_eq(ioctl(fds[i], PERF_EVENT_IOC_ENABLE, 0), 0);
	}
	for (int i = 0; i < 1000; i++)
		called = name_test_target(called);
	for (uint32_t i = 0; i < 3; i++) {
		uint64_t count = 0;

		cr_assert_eq(read(fds[i], &count, sizeof(count)), sizeof(count));
		cr_assert_eq(count, i < 2 ? 1000 : 0, "%s: %lu", perfring_events_at(events, i)->name,
			     (unsigned long)count);
		close(fds[i]);
	}
	perfring_events_close(events);
	cr_assert_eq(called, 1000);
	cr_assert_eq(idle(0), 7);
}

Test(name, places_of_probes)
{
	struct perf_event_attr base = {.size = sizeof(base)};
	struct perfring_events *events;
	uint64_t at;
	int ret;

	cr_assert_eq(perfring_events_open(&events), 0);
	ret = perfring_events_add(events,
				  "{uprobe:/proc/self/exe:name_test_target,uprobe:/proc/self/exe:name_test_target+1,"
				  "uprobe:/proc/self/exe:name_test_target+0x2:k,uprobe:/proc/self/exe:0x1234:p}:D",
				  &base, NULL);
	if (ret == -ENOENT)
		cr_skip_test("SKIP-ENV: uprobe PMU: CONFIG_UPROBE_EVENTS");
	cr_assert_eq(ret, 0);
	at = perfring_events_at(events, 0)->attr->config2;
	cr_assert_gt(at, 0);
	cr_assert_eq(perfring_events_at(events, 1)->attr->config2, at + 1);
	cr_assert_eq(perfring_events_at(events, 2)->attr->config2, at + 2);
	cr_assert_eq(perfring_events_at(events, 2)->attr->exclude_user, 1);
	cr_assert_eq(perfring_events_at(events, 3)->attr->config2, 0x1234);
	cr_assert_eq(perfring_events_at(events, 3)->attr->precise_ip, 1);
	cr_assert_eq(perfring_events_at(events, 0)->attr->pinned, 1);
	cr_assert_eq(perfring_events_at(events, 3)->attr->pinned, 0);
	cr_assert_eq(perfring_events_at(events, 3)->leader, 0);
	perfring_events_close(events);
}

/* An attr of somebody else's: what it points to is not here. */
Test(name, probes_of_strangers)
{
	struct perf_event_attr attr = {.size = sizeof(attr), .config1 = 0x1234, .config2 = 0x10};
	char name[256];
	char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	FILE *file = fopen("/sys/bus/event_source/devices/uprobe/type", "r");

	if (!file)
		cr_skip_test("SKIP-ENV: uprobe PMU: %s: CONFIG_UPROBE_EVENTS", strerror(errno));
	cr_assert_eq(fscanf(file, "%u", &attr.type), 1);
	fclose(file);
	perfring_event_name(&attr, name, sizeof(name));
	cr_assert_str_eq(name, "uprobe/config=0x0,config1=0x1234,config2=0x10/");
	/* a text that ends with the mapping, and one that does not end in it */
	munmap(page + 4096, 4096);
	strcpy(page + 4096 - 5, "/bin");
	attr.config1 = (uintptr_t)page + 4096 - 5;
	perfring_event_name(&attr, name, sizeof(name));
	cr_assert_str_eq(name, "uprobe:/bin:0x10");
	page[4095] = 'x';
	perfring_event_name(&attr, name, sizeof(name));
	cr_assert_eq(strncmp(name, "uprobe/config=0x0,config1=0x7", 29), 0, "%s", name);
	munmap(page, 4096);
}

/* ---- symbols of ELF files ---- */

struct made_elf {
	unsigned char bytes[4096];
	size_t size;
};

/* Two segments, five symbols, its names: a file written by hand. */
#define MAKE_ELF(bits) \
	static void make_elf_##bits(struct made_elf *made) \
	{ \
		static const char NAMES[] = "\0static_one\0one\0two\0data\0undefined\0"; \
		Elf##bits##_Ehdr header = {.e_ident = {0x7f, 'E', 'L', 'F', bits / 32, 1, 1}, \
					   .e_type = ET_DYN, \
					   .e_phoff = 0x100, \
					   .e_phentsize = sizeof(Elf##bits##_Phdr), \
					   .e_phnum = 2, \
					   .e_shoff = 0x200, \
					   .e_shentsize = sizeof(Elf##bits##_Shdr), \
					   .e_shnum = 3}; \
		Elf##bits##_Phdr programs[2] = { \
			{.p_type = PT_LOAD, .p_offset = 0, .p_vaddr = 0x10000, .p_filesz = 0x800, .p_flags = PF_R}, \
			{.p_type = PT_LOAD, \
			 .p_offset = 0x800, \
			 .p_vaddr = 0x11800, \
			 .p_filesz = 0x400, \
			 .p_flags = PF_X}}; \
		Elf##bits##_Shdr sections[3] = { \
			{0}, \
			{.sh_type = SHT_SYMTAB, \
			 .sh_offset = 0x400, \
			 .sh_link = 2, \
			 .sh_size = 6 * sizeof(Elf##bits##_Sym), \
			 .sh_entsize = sizeof(Elf##bits##_Sym)}, \
			{.sh_type = SHT_STRTAB, .sh_offset = 0x600, .sh_size = sizeof(NAMES)}}; \
		Elf##bits##_Sym symbols[6] = { \
			{0}, \
			{.st_name = 12, .st_info = STT_FUNC, .st_shndx = 1, .st_value = 0x11810, .st_size = 8}, \
			{.st_name = 12, \
			 .st_info = 1 << 4 | STT_FUNC, \
			 .st_shndx = 1, \
			 .st_value = 0x11a00, \
			 .st_size = 16}, \
			{.st_name = 16, .st_info = STT_FUNC, .st_shndx = 1, .st_value = 0x11bff, .st_size = 1}, \
			{.st_name = 20, .st_info = 1 << 4 | STT_OBJECT, .st_shndx = 1, .st_value = 0x10010}, \
			{.st_name = 25, .st_info = 1 << 4 | STT_FUNC, .st_shndx = 0, .st_value = 0x11900}}; \
\
		memset(made, 0, sizeof(*made)); \
		made->size = 0xc00; \
		memcpy(made->bytes, &header, sizeof(header)); \
		memcpy(made->bytes + 0x100, programs, sizeof(programs)); \
		memcpy(made->bytes + 0x200, sections, sizeof(sections)); \
		memcpy(made->bytes + 0x400, symbols, sizeof(symbols)); \
		memcpy(made->bytes + 0x600, NAMES, sizeof(NAMES)); \
	}
MAKE_ELF(32)
MAKE_ELF(64)

static int symbol_of(const struct made_elf *made, const char *symbol, uint64_t *offset, uint64_t *size)
{
	static int fd = -1;

	if (fd < 0)
		fd = memfd_create("elf", MFD_CLOEXEC);
	cr_assert_geq(fd, 0);
	cr_assert_eq(pwrite(fd, made->bytes, made->size, 0), (ssize_t)made->size);
	cr_assert_eq(ftruncate(fd, (off_t)made->size), 0);
	return perfring__uprobe_symbol(fd, symbol, strlen(symbol), offset, size);
}

Test(name, symbols)
{
	static const struct {
		const char *name;
		int ret;
		uint64_t offset, size;
	} WANT[] = {
		{"one", 0, 0xa00, 16}, /* the one that others see, though a static one comes first */
		{"two", 0, 0xbff, 1},    {"ne", -ENOENT, 0, 0},        {"tw", -ENOENT, 0, 0},
		{"data", -ENOENT, 0, 0}, {"undefined", -ENOENT, 0, 0}, {"static_one", -ENOENT, 0, 0},
	};
	struct made_elf made;
	uint64_t offset, size;

	if (__BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__)
		cr_skip_test("SKIP-ENV: the file is written for little-endian machines");
	for (int wide = 0; wide < 2; wide++) {
		(wide ? make_elf_64 : make_elf_32)(&made);
		for (size_t i = 0; i < sizeof(WANT) / sizeof(*WANT); i++) {
			cr_assert_eq(symbol_of(&made, WANT[i].name, &offset, &size), WANT[i].ret, "%s", WANT[i].name);
			if (WANT[i].ret)
				continue;
			cr_assert_eq(offset, WANT[i].offset, "%s: 0x%lx", WANT[i].name, (unsigned long)offset);
			cr_assert_eq(size, WANT[i].size);
		}
		made.bytes[5] = 2; /* the other byte order */
		cr_assert_eq(symbol_of(&made, "one", &offset, &size), -EBADMSG);
		made.bytes[5] = 1;
		made.bytes[0] = 0;
		cr_assert_eq(symbol_of(&made, "one", &offset, &size), -EBADMSG);
	}
}

static uint64_t draw(uint64_t *state)
{
	*state += 0x9e3779b97f4a7c15;
	uint64_t z = (*state ^ *state >> 30) * 0xbf58476d1ce4e5b9;

	return z ^ z >> 31;
}

Test(name, symbols_of_damaged_files)
{
	static const uint16_t PLACES[] = {0, 0x100, 0x200, 0x400, 0x600};
	uint64_t seed = 1, offset, size, found = 0, refused = 0;
	struct made_elf made;

	for (int i = 0; i < 20000; i++) {
		int ret;

		(i & 1 ? make_elf_64 : make_elf_32)(&made);
		for (uint64_t n = draw(&seed) % 4 + 1; n; n--) {
			size_t at = PLACES[draw(&seed) % 5] + draw(&seed) % 192;
			static const unsigned char BYTES[] = {0, 1, 0x7f, 0x80, 0xff};

			made.bytes[at] = draw(&seed) & 1 ? BYTES[draw(&seed) % 5] : (unsigned char)draw(&seed);
		}
		if (draw(&seed) % 8 == 0)
			made.size = draw(&seed) % made.size;
		offset = 0;
		ret = symbol_of(&made, "one", &offset, &size);
		found += !ret;
		refused += ret == -EBADMSG;
		if (!ret)
			cr_assert_lt(offset, made.size);
		else
			cr_assert(ret == -EBADMSG || ret == -ENOENT, "%d", ret);
	}
	cr_assert_gt(found, 1000);
	cr_assert_gt(refused, 1000);
}

/* Names of a file that is a hole are read up to a bound. */
Test(name, symbols_of_many_names)
{
	enum {
		NAMES_SIZE_AT = 0x200 + 2 * sizeof(Elf64_Shdr) + offsetof(Elf64_Shdr, sh_size),
		MOST = 64 << 20
	};
	int fd = memfd_create("names", MFD_CLOEXEC);
	struct made_elf made;
	uint64_t offset, size;

	if (__BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__)
		cr_skip_test("SKIP-ENV: the file is written for little-endian machines");
	make_elf_64(&made);
	cr_assert_eq(ftruncate(fd, 2 * (off_t)MOST), 0);
	for (uint64_t more = 0; more < 2; more++) {
		memcpy(made.bytes + NAMES_SIZE_AT, &(uint64_t){MOST + more}, sizeof(more));
		cr_assert_eq(pwrite(fd, made.bytes, made.size, 0), (ssize_t)made.size);
		cr_assert_eq(perfring__uprobe_symbol(fd, "one", 3, &offset, &size), more ? -EBADMSG : 0);
	}
	close(fd);
}

/* What is no file is not opened, whatever it does then. */
Test(name, uprobes_of_no_file)
{
	char fifo[] = "/tmp/name_test.XXXXXX", text[64], told[512];
	int watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	struct perf_event_attr base = {.size = sizeof(base)};
	struct perfring_fault fault = {-1, "none"};
	struct perfring_events *events;

	cr_assert_not_null(mkdtemp(fifo));
	cr_assert_eq(rmdir(fifo), 0);
	cr_assert_eq(mkfifo(fifo, 0600), 0);
	cr_assert_geq(inotify_add_watch(watch, fifo, IN_OPEN), 0);
	snprintf(text, sizeof(text), "uprobe:%s:main", fifo);
	if (access("/sys/bus/event_source/devices/uprobe/type", R_OK)) {
		unlink(fifo);
		cr_skip_test("SKIP-ENV: uprobe PMU: CONFIG_UPROBE_EVENTS");
	}
	cr_assert_eq(perfring_events_open(&events), 0);
	cr_assert_eq(perfring_events_add(events, text, &base, &fault), -EINVAL, "%s", fault.what);
	perfring_events_close(events);
	cr_assert_eq(fault.at, 7, "%ld: %s", (long)fault.at, fault.what);
	cr_assert_eq(read(watch, told, sizeof(told)), -1, "the pipe was opened");
	unlink(fifo);
	close(watch);
}

/* A file with a hole of many TiB, all of it a table of symbols, is not searched for hours. */
Test(name, symbols_of_an_endless_file)
{
	enum {
		TABLE_SIZE_AT = 0x200 + sizeof(Elf64_Shdr) + offsetof(Elf64_Shdr, sh_size)
	};
	uint64_t many = UINT64_C(24) << 38, offset, size;
	int fd = memfd_create("endless", MFD_CLOEXEC);
	struct made_elf made;

	if (__BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__)
		cr_skip_test("SKIP-ENV: the file is written for little-endian machines");
	make_elf_64(&made);
	memcpy(made.bytes + TABLE_SIZE_AT, &many, sizeof(many));
	cr_assert_eq(pwrite(fd, made.bytes, made.size, 0), (ssize_t)made.size);
	cr_assert_eq(ftruncate(fd, (off_t)(many + made.size)), 0);
	cr_assert_eq(perfring__uprobe_symbol(fd, "nowhere", 7, &offset, &size), -EBADMSG);
	close(fd);
}

/* ---- libpfm4's names ---- */

Test(name, pfm)
{
	static const struct {
		const char *text;
		uint64_t config;
		const char *flags;
	} WANT[] = {
		{"RETIRED_INSTRUCTIONS", 0xc0, ""},
		{"RETIRED_INSTRUCTIONS:u", 0xc0, "u"},
		{"RETIRED_INSTRUCTIONS:upp", 0xc0, "upp"},
		{"RETIRED_INSTRUCTIONS:kD", 0xc0, "kD"},
		{"CYCLES_NOT_IN_HALT:c=2:u", 0x2000076, "u"},
		{"CYCLES_NOT_IN_HALT:c=2:uI", 0x2000076, "uI"},
		{"amd64_fam19h_zen3::RETIRED_SSE_AVX_FLOPS:ANY", 0xf03, ""},
		/* libpfm4's own letter: edge */
		{"amd64_fam19h_zen3::RETIRED_SSE_AVX_FLOPS:ANY:e", 0x40f03, ""},
		{"amd64_fam19h_zen3::RETIRED_SSE_AVX_FLOPS:ADD_SUB_FLOPS:MULT_FLOPS:k", 0x303, "k"},
	};
	struct perf_event_attr base = {.size = sizeof(base)};
	uint64_t configs[PERFRING_CONFIGS];
	struct perfring_events *events;

	setenv("LIBPFM_FORCE_PMU", "amd64_fam19h_zen3", 1);
	if (perfring__pfm_parse("RETIRED_INSTRUCTIONS", configs, &base))
		cr_skip_test("SKIP-ENV: libpfm4: not built in (libpfm4-dev), or it knows no Zen 3");
	for (size_t i = 0; i < sizeof(WANT) / sizeof(*WANT); i++) {
		struct perf_event_attr attr = {.size = sizeof(attr)};
		struct perfring_fault fault = {-1, "none"};
		char name[64], want[64];

		cr_assert_eq(perfring_event_parse(WANT[i].text, &attr, &fault), 0, "%s: %s", WANT[i].text, fault.what);
		cr_assert_eq(attr.type, 4);
		snprintf(want, sizeof(want), "r%llx%s%s", (unsigned long long)WANT[i].config, *WANT[i].flags ? ":" : "",
			 WANT[i].flags);
		perfring_event_name(&attr, name, sizeof(name));
		cr_assert_str_eq(name, want);
	}
	cr_assert_eq(perfring_events_open(&events), 0);
	base = (struct perf_event_attr){.size = sizeof(base)};
	cr_assert_eq(perfring_events_add(events, "{RETIRED_INSTRUCTIONS:u,cs}:k", &base, NULL), 0);
	cr_assert_eq(perfring_events_at(events, 0)->attr->exclude_user, 0);
	cr_assert_eq(perfring_events_at(events, 0)->attr->exclude_kernel, 0);
	cr_assert_eq(perfring_events_at(events, 0)->attr->exclude_hv, 1);
	perfring_events_close(events);
}

/* In debugfs libpfm4 looks for tracepoints itself, and takes the name of a system for one. */
Test(name, pfm_knows_no_tracepoints)
{
	static const char *const NONE[] = {"sched", "SCHED", "Sched:pp", "perf::sched", "perf::sched:u"};

	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", "/sys/kernel/debug", "debugfs", 0, NULL))
		cr_skip_test("SKIP-ENV: mount: a debugfs needs CAP_SYS_ADMIN");
	for (size_t i = 0; i < sizeof(NONE) / sizeof(*NONE); i++) {
		struct perf_event_attr attr = {.size = sizeof(attr)};

		cr_assert_lt(perfring_event_parse(NONE[i], &attr, NULL), 0, "%s: type %u, config %llu", NONE[i],
			     attr.type, (unsigned long long)attr.config);
	}
}

/* ---- beside perf: the attr that it prints, and ours ---- */

struct printed {
	struct perf_event_attr attr;
	bool unknown; /* it does not know this text */
};

static const struct {
	const char *key;
	size_t at; /* of a u32 or u64, and its size; size 0: a flag of this number */
	unsigned size;
} FIELDS[] = {
	{"type ", 0, 4},
	{"config ", 8, 8},
	{"bp_type ", 52, 4},
	{"{ bp_addr, config1 } ", 56, 8},
	{"{ bp_len, config2 } ", 64, 8},
	{"pinned ", 2, 0},
	{"exclusive ", 3, 0},
	{"exclude_user ", 4, 0},
	{"exclude_kernel ", 5, 0},
	{"exclude_hv ", 6, 0},
	{"exclude_idle ", 7, 0},
	{"exclude_host ", 19, 0},
	{"exclude_guest ", 20, 0},
};

/* Runs perf on a text and reads the attrs that it opens, in their order; one that it tries again only once.  Returns how
 * many, or -1 when it does not know the text. */
static int perf_prints(const char *text, struct perf_event_attr *attrs, int buffer)
{
	char command[8192], line[1024];
	int count = 0;
	bool inside = false, unknown = false;
	FILE *file;

	cr_assert_lt(snprintf(command, sizeof(command),
			      "exec timeout 20 perf stat -vv -e '%s' true 2>&1 >/dev/null </dev/null", text),
		     (int)sizeof(command));
	file = popen(command, "r");
	cr_assert_not_null(file);
	while (fgets(line, sizeof(line), file)) {
		char *at = line + strspn(line, " ");

		if (strstr(line, "event syntax error") || strstr(line, "invalid or unsupported event"))
			unknown = true;
		if (!strncmp(line, "perf_event_attr:", 16)) {
			inside = true;
			cr_assert_lt(count, buffer);
			memset(&attrs[count++], 0, sizeof(*attrs));
			attrs[count - 1].size = sizeof(*attrs);
		} else if (inside && !strncmp(line, "-----", 5)) {
			inside = false;
			if (count > 1 && attrs[count - 1].type == attrs[count - 2].type &&
			    attrs[count - 1].config == attrs[count - 2].config)
				count--; /* as it was tried first */
		} else if (inside) {
			struct perf_event_attr *attr = &attrs[count - 1];

			if (!strncmp(at, "precise_ip ", 11))
				attr->precise_ip = (unsigned)strtoul(at + 11, NULL, 10) & 3;
			for (size_t i = 0; i < sizeof(FIELDS) / sizeof(*FIELDS); i++) {
				uint64_t value;

				if (strncmp(at, FIELDS[i].key, strlen(FIELDS[i].key)))
					continue;
				value = strtoull(at + strlen(FIELDS[i].key), NULL, 0);
				if (FIELDS[i].size) {
					memcpy((char *)attr + FIELDS[i].at, &value, FIELDS[i].size);
				} else {
					uint64_t flags;

					memcpy(&flags, (char *)attr + 40, 8);
					flags |= value << FIELDS[i].at;
					memcpy((char *)attr + 40, &flags, 8);
				}
			}
		}
	}
	pclose(file);
	return unknown ? -1 : count;
}

static void expect_perfs(const char *text, const struct perf_event_attr *ours, const struct perf_event_attr *perfs)
{
	struct perf_event_attr theirs = *perfs;

	cr_assert_eq(ours->type, theirs.type, "%s: type %u, perf's %u", text, ours->type, theirs.type);
	cr_assert_eq(ours->config, theirs.config, "%s: config 0x%llx, perf's 0x%llx", text, ours->config,
		     theirs.config);
	cr_assert_eq(ours->config1, theirs.config1, "%s", text);
	cr_assert_eq(ours->config2, theirs.config2, "%s", text);
	cr_assert_eq(ours->bp_type, theirs.bp_type, "%s", text);
	cr_assert_eq(ours->precise_ip, theirs.precise_ip, "%s", text);
	cr_assert_eq(memcmp(ours, &theirs, sizeof(theirs)), 0, "%s: flags 0x%llx, perf's 0x%llx", text,
		     ((const unsigned long long *)(const void *)ours)[5],
		     ((const unsigned long long *)(const void *)&theirs)[5]);
}

static void need_perf(void)
{
	struct perf_event_attr attr[8];

	if (system("perf stat true >/dev/null 2>&1") || perf_prints("cs:u", attr, 8) != 1)
		cr_skip_test("SKIP-ENV: perf stat -vv: no attr printed: a perf that runs here");
}

Test(name, as_perf_has_it, .timeout = 120)
{
	static const char *const TEXTS[] = {
		"cycles",
		"cpu-cycles",
		"instructions",
		"cache-references",
		"cache-misses",
		"branches",
		"branch-instructions",
		"branch-misses",
		"bus-cycles",
		"stalled-cycles-frontend",
		"idle-cycles-backend",
		"ref-cycles",
		"cpu-clock",
		"task-clock",
		"page-faults",
		"faults",
		"context-switches",
		"cs",
		"cpu-migrations",
		"migrations",
		"minor-faults",
		"major-faults",
		"alignment-faults",
		"emulation-faults",
		"dummy",
		"bpf-output",
		"cgroup-switches",
		"cycles:u",
		"cycles:k",
		"cycles:h",
		"cycles:uk",
		"cycles:uh",
		"cycles:kh",
		"cycles:p",
		"cycles:pp",
		"cycles:ppp",
		"cycles:upp",
		"cycles:G",
		"cycles:H",
		"cycles:GH",
		"cycles:I",
		"cycles:D",
		"cycles:e",
		"cycles:S",
		"cycles:uD",
		"cycles:kID",
		"cs:u",
		"cs:k",
		"page-faults:up",
		"cpu-clock:uH",
		"cycles/period=1000/",
		"cycles/name=x/u",
		"cs/period=3/k",
		"r1a8",
		"r1a8:u",
		"r00ff",
		"rfff:p",
		"r1A8",
		"rffffffffffffffff",
		"mem:0x1000",
		"mem:0x1000/8",
		"mem:0x1000/1:w",
		"mem:0x1000:r",
		"mem:0x1000:x",
		"mem:0x1000:rw:u",
		"mem:0x1000/2:w:u",
		"mem:010",
		"mem:4096",
		"sched:sched_switch",
		"sched:sched_switch:u",
		"raw_syscalls:sys_enter",
		"raw_syscalls:sys_exit:k",
		"software/config=1/",
		"software/config=3/u",
		"software/config=2,config1=5/",
		"tracepoint/config=1/",
		"breakpoint/config=0/",
		"msr/tsc/",
		"msr/tsc/u",
		"msr/event=0/",
		"msr/event=4/",
		"tsc",
		"uprobe/retprobe/",
		"uprobe/ref_ctr_offset=0x10/",
		"uprobe/config=1,config2=7/",
		"cpu/event=0x3c/",
		"cpu/event=0x3c,umask=1/",
		"cpu/event=60,umask=0x1/u",
		"cpu/event=0x3c/k",
		"cpu/event=0x3c/pp",
		"cpu/cpu-cycles/",
		"cpu/cache-misses/",
		"cpu/cache-misses,cmask=2/upp",
		"cpu/cache-misses,umask=2/",
		"cpu/edge,inv,event=0xc0/",
		"cpu/config=0x10,config1=2,config2=3/",
		"cpu/r1a/",
		"cpu/event=1,event=2/",
		"cpu/umask=2,config=1/",
		"cpu//",
		"cpu/ event=1/",
		"cpu/event=0xc0,name=mine/",
		"cpu/config=010/",
	};
	struct perf_event_attr perfs[32];
	int compared = 0;

	need_perf();
	for (size_t i = 0; i < sizeof(TEXTS) / sizeof(*TEXTS); i++) {
		const char *text = TEXTS[i];
		struct perf_event_attr ours = {.size = sizeof(ours), .exclude_guest = 1};
		struct perfring_fault fault = {-1, "none"};
		int count = perf_prints(text, perfs, 32), error;

		if (count < 1)
			continue; /* a PMU, a term or tracefs that is not here */
		error = perfring_event_parse(text, &ours, &fault);
		cr_assert_eq(error, 0, "%s: %s", text, fault.what);
		ours.sample_period = ours.freq = 0;
		expect_perfs(text, &ours, &perfs[0]);
		compared++;
	}
	cr_assert_geq(compared, 60, "%d compared", compared);
	printf("compared %d of %zu texts with perf\n", compared, sizeof(TEXTS) / sizeof(*TEXTS));
}

Test(name, groups_as_perf_has_them)
{
	static const struct {
		const char *text;
		int count;
	} TEXTS[] = {
		{"{cs,page-faults}", 2},
		{"{cs,page-faults}:u", 2},
		{"{cs:u,page-faults}:k", 2},
		{"{cs, page-faults:u},cpu-clock", 3},
		{"cs ,{page-faults},task-clock:u", 3},
		{"{cs:p,page-faults}:p", 2},
		{"{cs,page-faults:u,minor-faults}:S", 3},
		{"{sched:sched_switch,cs}:u,{cpu-clock,dummy}:k", 4},
		{"software/config=3/u,cs:u", 1}, /* alike: seen as one */
	};
	struct perf_event_attr perfs[32];
	int compared = 0;

	need_perf();
	for (size_t i = 0; i < sizeof(TEXTS) / sizeof(*TEXTS); i++) {
		struct perf_event_attr base = {.size = sizeof(base), .exclude_guest = 1};
		int count = perf_prints(TEXTS[i].text, perfs, 32);
		struct perfring_events *events;

		if (count < 0)
			continue; /* tracefs is not here */
		cr_assert_eq(count, TEXTS[i].count, "%s: %d", TEXTS[i].text, count);
		cr_assert_eq(perfring_events_open(&events), 0);
		cr_assert_eq(perfring_events_add(events, TEXTS[i].text, &base, NULL), 0);
		for (int j = 0; j < count; j++)
			expect_perfs(TEXTS[i].text, perfring_events_at(events, (uint32_t)j)->attr, &perfs[j]);
		perfring_events_close(events);
		compared++;
	}
	cr_assert_geq(compared, 8);
}

/* perfring_event_callchain sets what the term does, whatever was set before. */
Test(name, call_chains)
{
	static const char *const WAYS[] = {"no", "fp", "dwarf", "lbr"};

	for (size_t i = 0; i < sizeof(WAYS) / sizeof(*WAYS); i++) {
		struct perf_event_attr term = {.size = sizeof(term)}, attr = {.size = PERF_ATTR_SIZE_VER0};
		char text[64];
		int error;

		snprintf(text, sizeof(text), "cs/call-graph=%s/", WAYS[i]);
		error = perfring_event_parse(text, &term, NULL);
		cr_assert(!error || (i == 2 && !perfring_event_unwind_registers()), "%s", text);
		cr_assert_eq(perfring_event_callchain(WAYS[i], strlen(WAYS[i]), &attr), error);
		if (error)
			continue;
		attr.size = term.size;
		attr.type = term.type;
		attr.config = term.config;
		cr_assert_eq(memcmp(&attr, &term, sizeof(attr)), 0, "%s", text);
	}
	for (size_t length = 0; length < 4; length++)
		cr_assert_eq(perfring_event_callchain("lbrr", length == 3 ? 4 : length, &(struct perf_event_attr){0}),
			     -EINVAL);
}

/* The ways to write a cache event: each name with each operation and with a result, and each result. */
Test(name, caches_as_perf_has_them, .timeout = 120)
{
	static const char *const CACHES[] = {
		"L1-dcache", "l1-d", "l1d",  "L1-data", "L1-icache", "l1-i", "l1i",   "L1-instruction",
		"LLC",       "L2",   "dTLB", "d-tlb",   "Data-TLB",  "iTLB", "i-tlb", "Instruction-TLB",
		"branch",    "bpu",  "btb",  "bpc",     "node"};
	static const char *const WORDS[] = {"",
					    "-load",
					    "-loads",
					    "-read",
					    "-store",
					    "-stores",
					    "-write",
					    "-prefetch",
					    "-prefetches",
					    "-speculative-read",
					    "-speculative-load"};
	static const char *const RESULTS[] = {"", "-misses", "-miss", "-refs", "-Reference", "-ops", "-access"};
	struct perf_event_attr perfs[32];
	bool is_short = soak_seconds() < 4; /* perf takes 20 ms for each */
	int compared = 0, unknown = 0;

	need_perf();
	for (size_t c = 0; c < sizeof(CACHES) / sizeof(*CACHES); c++)
		for (size_t w = 0; w < 11; w++)
			for (size_t r = 0; r < 7; r++) {
				struct perf_event_attr ours = {.size = sizeof(ours), .exclude_guest = 1};
				bool swapped = (c + w + r) % 3 == 0;
				char text[64];

				if (is_short && (c + w + r) % 3)
					continue;
				if (r > 1 ? (c + w) % 11 : c % 4 && (c + w + r) % 2)
					continue;
				snprintf(text, sizeof(text), "%s%s%s", CACHES[c], swapped ? RESULTS[r] : WORDS[w],
					 swapped ? WORDS[w] : RESULTS[r]);
				if (perf_prints(text, perfs, 32) < 1) {
					unknown++;
					continue;
				}
				cr_assert_eq(perfring_event_parse(text, &ours, NULL), 0, "%s", text);
				expect_perfs(text, &ours, &perfs[0]);
				compared++;
			}
	printf("compared %d texts with perf, which does not know %d\n", compared, unknown);
	cr_assert_gt(compared, is_short ? 60 : 200);
}

/* ---- the catalogue ---- */

Test(name, catalogue)
{
	struct perfring_event_names *names;
	struct perfring_event_listed name;
	int counts[PERFRING_EVENT_FORM + 1] = {0}, ret, last = -1;
	char before[512] = "";

	cr_assert_eq(perfring_event_names_open(&names, NULL, true), 0);
	while ((ret = perfring_event_names_next(names, &name)) == 1) {
		struct perf_event_attr attr = {.size = sizeof(attr)}, other = attr;
		struct perfring_fault fault = {-1, "none"};

		cr_assert_geq((int)name.kind, last);
		if ((int)name.kind == last)
			cr_assert_gt(strcmp(name.name, before), 0, "%s", name.name);
		last = (int)name.kind;
		snprintf(before, sizeof(before), "%s", name.name);
		counts[name.kind]++;
		if (name.kind == PERFRING_EVENT_FORM)
			continue;
		ret = perfring_event_parse(name.name, &attr, &fault);
		/* sysfs may leave a term open */
		cr_assert(!ret || (name.kind == PERFRING_EVENT_PMU && strchr(name.text, '?')), "%s: %s", name.name,
			  fault.what);
		if (*name.alias) {
			cr_assert_eq(perfring_event_parse(name.alias, &other, &fault), 0, "%s: %s", name.alias,
				     fault.what);
			cr_assert_eq(memcmp(&attr, &other, sizeof(attr)), 0);
		}
		if (name.opens) {
			attr.exclude_kernel = 1;
			ret = perfring_event_open(&attr, 0, -1, -1, 0);
			cr_assert_geq(ret, 0, "%s", name.name);
			close(ret);
		}
	}
	cr_assert_eq(ret, 0);
	perfring_event_names_close(names);
	cr_assert_eq(counts[PERFRING_EVENT_HARDWARE], 10);
	cr_assert_eq(counts[PERFRING_EVENT_SOFTWARE], 12);
	cr_assert_eq(counts[PERFRING_EVENT_CACHE], 32);
	cr_assert_geq(counts[PERFRING_EVENT_FORM], 5);

	/* by its name, and by its alias */
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(perfring_event_names_open(&names, i ? "cs" : "context-sw*[st]", false), 0);
		cr_assert_eq(perfring_event_names_next(names, &name), 1);
		cr_assert_str_eq(name.name, "context-switches");
		cr_assert_str_eq(name.alias, "cs");
		cr_assert(!name.opens);
		cr_assert_eq(perfring_event_names_next(names, &name), 0);
		cr_assert_eq(perfring_event_names_next(names, &name), 0);
		perfring_event_names_close(names);
	}
	cr_assert_eq(perfring_event_names_open(&names, "no such thing", true), 0);
	cr_assert_eq(perfring_event_names_next(names, &name), 0);
	perfring_event_names_close(names);
	perfring_event_names_close(NULL);
}

/* ---- any text ---- */

static const char *const SEEDS[] = {
	"cycles:ukp",
	"instructions:GHIDe",
	"cs/period=100,name=x/u",
	"rdeadbeef:pp",
	"mem:0x1000/8:rw:u",
	"L1-dcache-load-misses:k",
	"Data-TLB-speculative-load-ops",
	"box/event=0x3c,umask=1/u",
	"box/plain,umask=4/:H",
	"box/config=1,config1=2,config2=3/",
	"box/open,umask=0x11,thresh=99/pp",
	"box/spread=5,odd,freq=9/",
	"nothing/config=7/G",
	"plain:D",
	"box/far=1,last/",
};
static const char *const LISTS[] = {"{cs:u,cycles}:k,faults", "cs,{mem:0x10/4:w,r1},cycles/name=a b/",
				    "uprobe:/proc/self/exe:main+1:u,cs", "{uretprobe:/proc/self/exe:main}:S",
				    "{cs,cpu-clock}:upS,sched:sched_w*:u"};

static void mutate(char *text, size_t buffer, const char *const *seeds, size_t count, uint64_t *state)
{
	static const char LETTERS[] = "ukhpPGHISDe:/,={}0123456789xrwabcdf-+*? ._";

	snprintf(text, buffer, "%s", seeds[draw(state) % count]);
	for (uint64_t n = draw(state) % 4; n; n--) {
		size_t length = strlen(text), at = draw(state) % (length + 1);
		const char *other = seeds[draw(state) % count];

		switch (draw(state) % 5) {
		case 0: /* changed */
			if (at < length)
				text[at] = LETTERS[draw(state) % (sizeof(LETTERS) - 1)];
			break;
		case 1: /* taken out */
			if (at < length)
				memmove(text + at, text + at + 1, length - at);
			break;
		case 2: /* put in */
			if (length + 2 < buffer) {
				memmove(text + at + 1, text + at, length - at + 1);
				text[at] = LETTERS[draw(state) % (sizeof(LETTERS) - 1)];
			}
			break;
		case 3: /* cut */
			text[at] = 0;
			break;
		default: /* gone on with as another */
			other += draw(state) % strlen(other);
			snprintf(text + at, buffer - at, "%s", other);
			break;
		}
	}
}

/* What can be parsed is named back, and that name means the same. */
Test(name, any_text, .init = make_sysfs, .fini = drop_sysfs, .timeout = 120)
{
	int texts = (int)trials(100000);
	uint64_t seed = 5, parsed = 0;

	for (int i = 0; i < texts; i++) {
		char text[256], name[512];
		union newest first, second;
		struct perfring_fault fault = {-1, NULL};

		mutate(text, sizeof(text), SEEDS, sizeof(SEEDS) / sizeof(*SEEDS), &seed);
		memset(&first, 0, sizeof(first));
		first.attr.size = sizeof(first);
		second = first;
		if (perfring__event_parse_under(root, text, NULL, &first.attr, NULL, &fault)) {
			cr_assert_not_null(fault.what, "%s", text);
			cr_assert(fault.at >= 0 && fault.at <= (int64_t)strlen(text), "%s: at %ld", text,
				  (long)fault.at);
			cr_assert_eq(memcmp(&first, &second, sizeof(first)), 0, "%s: changed", text);
			continue;
		}
		parsed++;
		cr_assert_lt(perfring__event_name_under(root, &first.attr, name, sizeof(name)), (int64_t)sizeof(name));
		cr_assert_eq(perfring__event_parse_under(root, name, NULL, &second.attr, NULL, &fault), 0, "%s: %s: %s",
			     text, name, fault.what);
		first.attr.sample_period = first.attr.freq = 0;
		cr_assert_eq(memcmp(&first, &second, sizeof(first)), 0, "%s is named %s", text, name);
	}
	printf("%lu of %d texts are events\n", (unsigned long)parsed, texts);
	cr_assert_gt(parsed, (uint64_t)texts / 5);
}

Test(name, any_list, .timeout = 120)
{
	struct perf_event_attr base = {.size = sizeof(base)};
	int lists = (int)trials(5000);
	uint64_t seed = 6, added = 0;

	for (int i = 0; i < lists; i++) {
		struct perfring_fault fault = {-1, NULL};
		struct perfring_events *events;
		char text[256];

		mutate(text, sizeof(text), LISTS, sizeof(LISTS) / sizeof(*LISTS), &seed);
		cr_assert_eq(perfring_events_open(&events), 0);
		if (perfring_events_add(events, text, &base, &fault)) {
			cr_assert_eq(perfring_events_count(events), 0);
			cr_assert_not_null(fault.what, "%s", text);
			cr_assert(fault.at >= 0 && fault.at <= (int64_t)strlen(text), "%s: at %ld", text,
				  (long)fault.at);
		} else {
			added++;
			cr_assert_gt(perfring_events_count(events), 0);
		}
		for (uint32_t j = 0; j < perfring_events_count(events); j++) {
			uint32_t leader = perfring_events_at(events, j)->leader;

			cr_assert(leader == UINT32_MAX || leader <= j);
			cr_assert(leader == UINT32_MAX || perfring_events_at(events, leader)->leader == leader);
		}
		perfring_events_close(events);
	}
	cr_assert_gt(added, (uint64_t)lists / 10);
}
