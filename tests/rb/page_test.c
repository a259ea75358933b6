/* page_test.c - the control page: what user space counts and converts by it (docs/abi.md 3.2, 3.3) on pages made here, to the
 * number; and each rule of docs/abi.md 3.1 to 3.3 on the kernel's.
 *
 * The code under test is compiled in here, and its counters are this file's.
 */
#include "test.h"

#define PERFRING_POINT(name) strike(#name)
static void strike(const char *name);

#include "rb/page.c"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <perfring/event.h>
#include <perfring/ring.h>
#include "watch.h"

TestSuite(page, .timeout = 240);

static void (*struck)(const char *name); /* at each named place */

static void strike(const char *name)
{
	if (struck)
		struck(name);
}

/* ---- pages made here ---- */

static struct perf_event_mmap_page made;
static uint64_t raw_is, cycles_are; /* what the counters say */
static uint32_t asked, asked_for;   /* how often, and for which */

static bool tell_count(uint32_t counter, uint64_t *raw)
{
	asked++;
	asked_for = counter;
	*raw = raw_is;
	return counter < 64;
}

static uint64_t tell_cycles(void)
{
	return cycles_are;
}

static const struct perfring_page_counters COUNTERS = {tell_count, tell_cycles};

static void make(uint64_t capabilities, uint32_t index, int64_t offset)
{
	memset(&made, 0, sizeof(made));
	made.capabilities = 2 | capabilities;
	made.index = index;
	made.offset = offset;
	made.pmc_width = 48;
	made.time_enabled = 1000;
	made.time_running = 400;
	made.size = 96;
	asked = 0;
	raw_is = 0;
	cycles_are = 0;
	struck = NULL;
}

/* docs/abi.md 3.2, by its table. */
Test(page, members)
{
#define MEMBER(name, at, bytes) \
	cr_assert_eq(offsetof(struct perf_event_mmap_page, name), (at)); \
	cr_assert_eq(sizeof(made.name), (bytes))
	MEMBER(version, 0, 4);
	MEMBER(compat_version, 4, 4);
	MEMBER(lock, 8, 4);
	MEMBER(index, 12, 4);
	MEMBER(offset, 16, 8);
	MEMBER(time_enabled, 24, 8);
	MEMBER(time_running, 32, 8);
	MEMBER(capabilities, 40, 8);
	MEMBER(pmc_width, 48, 2);
	MEMBER(time_shift, 50, 2);
	MEMBER(time_mult, 52, 4);
	MEMBER(time_offset, 56, 8);
	MEMBER(time_zero, 64, 8);
	MEMBER(size, 72, 4);
	MEMBER(time_cycles, 80, 8);
	MEMBER(time_mask, 88, 8);
	MEMBER(data_head, 1024, 8);
	MEMBER(data_tail, 1032, 8);
	MEMBER(data_offset, 1040, 8);
	MEMBER(data_size, 1048, 8);
	MEMBER(aux_head, 1056, 8);
	MEMBER(aux_tail, 1064, 8);
	MEMBER(aux_offset, 1072, 8);
	MEMBER(aux_size, 1080, 8);
	make(0, 0, 0);
	if (*(const uint16_t *)"\1" != 1)
		return; /* bits are numbered from the other end there */
	made.capabilities = 1;
	cr_assert_eq(made.cap_bit0, 1);
	made.capabilities = 2;
	cr_assert_eq(made.cap_bit0_is_deprecated, 1);
	made.capabilities = USER_RDPMC;
	cr_assert_eq(made.cap_user_rdpmc, 1);
	made.capabilities = USER_TIME;
	cr_assert_eq(made.cap_user_time, 1);
	made.capabilities = USER_TIME_ZERO;
	cr_assert_eq(made.cap_user_time_zero, 1);
}

Test(page, counters_of_each_width)
{
	static const struct {
		uint16_t width;
		uint64_t raw;
		int64_t offset;
		uint64_t value;
	} CASES[] = {
		{48, 0, 0, 0},
		{48, 7, 100, 107},
		{48, 0x7fffffffffff, 0, 0x7fffffffffff},
		/* As the kernel begins: a counter far below 0, and what that is less in the offset. */
		{48, 0x800000000000, INT64_C(0x800000000000), 0},
		{48, 0x800000000007, INT64_C(0x7fffffffffff), 6},
		{48, 0xffffffffffff, 0, UINT64_MAX},
		{48, 0xffffffffffff, 5, 4},
		/* What stands above the counter's bits is not its. */
		{48, 0xabcd000000000005, 1, 6},
		{48, 0xabcd800000000000, 0, 0xffff800000000000},
		{32, 0x7fffffff, 0, 0x7fffffff},
		{32, 0x80000000, 0, 0xffffffff80000000},
		{32, 0x1ffffffff, 2, 1},
		{40, 0x8000000000, 0, 0xffffff8000000000},
		{63, 0x4000000000000000, 0, 0xc000000000000000},
		{63, 0x3fffffffffffffff, 0, 0x3fffffffffffffff},
		{64, 0x8000000000000000, 0, 0x8000000000000000},
		{64, UINT64_MAX, 0, UINT64_MAX},
		{64, UINT64_MAX, 1, 0},
		{64, 0x7fffffffffffffff, 1, 0x8000000000000000},
		{64, 1, -2, UINT64_MAX},
		{1, 1, 0, UINT64_MAX},
		{1, 2, 9, 9},
	};
	struct perfring_page_count count;

	for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
		make(USER_RDPMC, 3, CASES[i].offset);
		made.pmc_width = CASES[i].width;
		raw_is = CASES[i].raw;
		cr_assert_eq(perfring__page_read_by(&COUNTERS, &made, &count), 0, "%zu", i);
		cr_assert_eq(count.value, CASES[i].value, "%zu: %llx", i, (unsigned long long)count.value);
		cr_assert_eq(count.enabled, 1000);
		cr_assert_eq(count.running, 400);
		cr_assert(count.is_counting && !count.is_current);
		cr_assert_eq(asked, 1);
		cr_assert_eq(asked_for, 2, "index is one more");
	}
	/* No counter has these. */
	for (unsigned i = 0; i < 3; i++) {
		make(USER_RDPMC, 3, 0);
		made.pmc_width = (const uint16_t[]){0, 65, UINT16_MAX}[i];
		cr_assert_eq(perfring__page_read_by(&COUNTERS, &made, &count), -EOPNOTSUPP);
		cr_assert_eq(asked, 0);
	}
}

Test(page, what_cannot_be_counted_here)
{
	static const struct perfring_page_counters NO_COUNT = {NULL, tell_cycles}, NO_CYCLES = {tell_count, NULL};
	struct perfring_page_count count;

	/* Software events' pages: index 0, nothing in offset. */
	make(0, 0, 0);
	cr_assert_eq(perfring__page_read_by(&COUNTERS, &made, &count), -EOPNOTSUPP);
	cr_assert_eq(perfring_page_read(&made, &count), -EOPNOTSUPP);
	/* Without the capability an index means nothing: the instruction would fault. */
	make(USER_TIME | USER_TIME_ZERO, 1, 5);
	cr_assert_eq(perfring__page_read_by(&COUNTERS, &made, &count), -EOPNOTSUPP);
	cr_assert_eq(perfring_page_read(&made, &count), -EOPNOTSUPP);
	cr_assert_eq(asked, 0);
	/* A counter that the architecture has not. */
	make(USER_RDPMC, 65, 5);
	cr_assert_eq(perfring__page_read_by(&COUNTERS, &made, &count), -EOPNOTSUPP);
	cr_assert_eq(asked_for, 64);
	make(USER_RDPMC, 1, 5);
	cr_assert_eq(perfring__page_read_by(&NO_COUNT, &made, &count), -EOPNOTSUPP);
	make(USER_RDPMC | USER_TIME, 1, 5);
	cr_assert_eq(perfring__page_read_by(&NO_CYCLES, &made, &count), 0);
	cr_assert_eq(count.value, 5);
	cr_assert_eq(count.enabled, 1000);
	cr_assert_not(count.is_current);
}

Test(page, off_its_counter)
{
	struct perfring_page_count count;

	make(USER_RDPMC, 0, 123456);
	raw_is = 99;
	cr_assert_eq(perfring__page_read_by(&COUNTERS, &made, &count), 0);
	cr_assert_eq(asked, 0);
	cr_assert_eq(count.value, 123456);
	cr_assert_not(count.is_counting);
	cr_assert_eq(count.enabled, 1000);
	cr_assert_eq(count.running, 400);
	/* It waits for a counter: enabled goes on, running does not.  11 >> 1 = 5, 5 * 3 + (1 * 3 >> 1) = 16, + 9. */
	make(USER_RDPMC | USER_TIME, 0, 123456);
	made.time_mult = 3;
	made.time_shift = 1;
	made.time_offset = 9;
	cycles_are = 11;
	cr_assert_eq(perfring__page_read_by(&COUNTERS, &made, &count), 0);
	cr_assert(count.is_current && !count.is_counting);
	cr_assert_eq(count.enabled, 1025);
	cr_assert_eq(count.running, 400);
}

Test(page, times_up_to_now)
{
	static const struct {
		uint64_t capabilities, cycles, offset, at, mask, delta;
		uint32_t mult;
		uint16_t shift;
	} CASES[] = {
		{0, 11, 0, 0, 0, 16, 3, 1},
		/* time_offset is what the clock began with, less the time of the update: below 0. */
		{0, 11, (uint64_t)-10, 0, 0, 6, 3, 1},
		{0, 4096, 0, 0, 0, 1, 1, 12},
		{0, 4095, 0, 0, 0, 0, 1, 12},
		{0, 0x100000000, 0, 0, 0, 0xffffffff, UINT32_MAX, 32},
		{0, UINT64_MAX, 0, 0, 0, UINT64_MAX, 1, 0},
		/* The parts' sum, not the product, must fit: (2^32 - 1) * (2^32 - 1) + (2^32 - 2). */
		{0, UINT64_MAX, 0, 0, 0, 0xfffffffeffffffff, UINT32_MAX, 32},
		/* Of 32 bits, and it has wrapped: 0x20 behind the time of the update. */
		{USER_TIME_SHORT, 0x10, 0, 0xfffffff0, 0xffffffff, 0x100000010, 1, 0},
		/* Garbage above its bits. */
		{USER_TIME_SHORT, 0xabc00000010, 0, 0xfffffff0, 0xffffffff, 0x100000010, 1, 0},
		/* It has not wrapped since. */
		{USER_TIME_SHORT, 0x10, 0, 0x700000004, 0xffffffff, 0x700000010, 1, 0},
		/* Without the bit, time_cycles and time_mask mean nothing. */
		{0, 0x10, 0, 0xfffffff0, 0xffffffff, 0x10, 1, 0},
	};
	struct perfring_page_count count;

	for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
		make(USER_RDPMC | USER_TIME | CASES[i].capabilities, 1, 0);
		cycles_are = CASES[i].cycles;
		made.time_offset = CASES[i].offset;
		made.time_cycles = CASES[i].at;
		made.time_mask = CASES[i].mask;
		made.time_mult = CASES[i].mult;
		made.time_shift = CASES[i].shift;
		cr_assert_eq(perfring__page_read_by(&COUNTERS, &made, &count), 0);
		cr_assert(count.is_current);
		cr_assert_eq(count.enabled, 1000 + CASES[i].delta, "%zu: %llu", i, (unsigned long long)count.enabled);
		cr_assert_eq(count.running, 400 + CASES[i].delta);
	}
	/* A shift that no kernel publishes. */
	make(USER_RDPMC | USER_TIME, 1, 0);
	made.time_shift = 33;
	made.time_mult = 1;
	cr_assert_eq(perfring__page_read_by(&COUNTERS, &made, &count), 0);
	cr_assert_not(count.is_current);
	cr_assert_eq(count.enabled, 1000);
}

/* ---- cycles and time ---- */

Test(page, cycles_to_time)
{
	uint64_t time = 77, cycles = 77;

	make(USER_TIME, 0, 0);
	made.time_mult = 3;
	made.time_shift = 1;
	made.time_zero = 1000;
	made.time_offset = 55; /* not of this */
	/* user_time_zero alone says that time_zero means something. */
	cr_assert_eq(perfring_page_to_time(&made, 11, &time), -EOPNOTSUPP);
	cr_assert_eq(perfring_page_to_cycles(&made, 1016, &cycles), -EOPNOTSUPP);
	cr_assert_eq(time, 77);
	cr_assert_eq(cycles, 77);
	made.capabilities = USER_TIME_ZERO;
	/* 11 >> 1 = 5, 5 * 3 + (1 * 3 >> 1) = 16. */
	cr_assert_eq(perfring_page_to_time(&made, 11, &time), 0);
	cr_assert_eq(time, 1016);
	/* 16 / 3 = 5 << 1 = 10, + (1 << 1) / 3 = 0. */
	cr_assert_eq(perfring_page_to_cycles(&made, 1016, &cycles), 0);
	cr_assert_eq(cycles, 10);
	/* The product at one go would not fit 64 bits. */
	cr_assert_eq(perfring_page_to_time(&made, (UINT64_C(1) << 63) + 1, &time), 0);
	cr_assert_eq(time, 1000 + (UINT64_C(1) << 62) * 3 + 1);
	/* Narrow, and wrapped: 0x100000010 cycles. */
	made.capabilities = USER_TIME_ZERO | USER_TIME_SHORT;
	made.time_cycles = 0xfffffff0;
	made.time_mask = 0xffffffff;
	cr_assert_eq(perfring_page_to_time(&made, 0x10, &time), 0);
	cr_assert_eq(time, 1000 + UINT64_C(0x80000008) * 3);
	/* What no kernel publishes. */
	made.time_shift = 33;
	cr_assert_eq(perfring_page_to_time(&made, 11, &time), -EOPNOTSUPP);
	cr_assert_eq(perfring_page_to_cycles(&made, 11, &cycles), -EOPNOTSUPP);
	made.time_shift = UINT16_MAX;
	cr_assert_eq(perfring_page_to_time(&made, 11, &time), -EOPNOTSUPP);
	made.time_shift = 1;
	made.time_mult = 0;
	cr_assert_eq(perfring_page_to_cycles(&made, 11, &cycles), -EOPNOTSUPP);
}

#ifdef __SIZEOF_INT128__

static uint64_t draw(uint64_t *state)
{
	static const uint64_t EDGES[] = {0,          1,          2,          0x7fffffff, 0x80000000,
					 UINT32_MAX, 1ull << 32, 1ull << 63, UINT64_MAX};
	uint64_t number;

	*state = *state * UINT64_C(6364136223846793005) + 1442695040888963407u;
	number = *state ^ *state >> 29;
	return number % 4 ? number >> (number >> 8) % 40 : EDGES[(number >> 8) % 9];
}

/* As no reader of the page may compute, for most have no 128 bits. */
Test(page, conversions_against_128_bits)
{
	uint64_t state = 1, cycles, time, zero, again;
	unsigned __int128 product;
	uint64_t nonzero = 0;

	make(USER_TIME_ZERO, 0, 0);
	for (unsigned i = 0; i < 300000; i++) {
		made.time_mult = (uint32_t)draw(&state);
		made.time_shift = (uint16_t)(draw(&state) % 33);
		zero = made.time_zero = draw(&state);
		cycles = draw(&state);
		cr_assert_eq(perfring_page_to_time(&made, cycles, &time), 0);
		product = (unsigned __int128)cycles * made.time_mult >> made.time_shift;
		cr_assert_eq(time, zero + (uint64_t)product, "%u", i);
		if (!made.time_mult)
			continue;
		nonzero++;
		time = draw(&state);
		cr_assert_eq(perfring_page_to_cycles(&made, time, &again), 0);
		product = ((unsigned __int128)(uint64_t)(time - zero) << made.time_shift) / made.time_mult;
		cr_assert_eq(again, (uint64_t)product, "%u", i);
	}
	cr_assert_gt(nonzero, 200000);
}

#endif

/* ---- the sequence lock ---- */

static unsigned strikes;

static void count_strikes(const char *name)
{
	(void)name;
	strikes++;
}

static void end_update(const char *name)
{
	if (strcmp(name, "page_read") == 0 && ++strikes == 20)
		made.lock++;
}

Test(page, an_odd_lock)
{
	struct perfring_page_count count;
	uint64_t time;

	make(USER_RDPMC | USER_TIME_ZERO, 1, 5);
	made.lock = 7;
	strikes = 0;
	struck = count_strikes;
	cr_assert_eq(perfring__page_read_by(&COUNTERS, &made, &count), -EAGAIN);
	cr_assert_geq(strikes, 100, "not given up at once");
	cr_assert_eq(asked, 0, "no counter is read under it");
	cr_assert_eq(perfring_page_to_time(&made, 1, &time), -EAGAIN);
	cr_assert_eq(perfring_page_to_cycles(&made, 1, &time), -EAGAIN);
	/* The update ends meanwhile. */
	strikes = 0;
	struck = end_update;
	cr_assert_eq(perfring__page_read_by(&COUNTERS, &made, &count), 0);
	cr_assert_eq(count.value, 5);
	cr_assert_eq(strikes, 21);
	cr_assert_eq(asked, 1);
	/* One that never rests. */
	make(USER_RDPMC, 1, 5);
	made.lock = UINT32_MAX - 1;
	cr_assert_eq(perfring__page_read_by(&COUNTERS, &made, &count), 0);
	cr_assert_eq(count.value, 5);
}

/* All members follow from the turn. */
static void set_page(uint32_t turn, uint32_t lock)
{
	PERFRING_STORE(&made.lock, lock + 1);
	PERFRING_FENCE_STORES();
	PERFRING_STORE(&made.time_enabled, turn * UINT64_C(16));
	PERFRING_STORE(&made.time_running, turn * UINT64_C(8));
	PERFRING_STORE(&made.index, 1 + turn % 4);
	PERFRING_STORE(&made.offset, turn * INT64_C(32));
	PERFRING_STORE(&made.pmc_width, (uint16_t)(16 + turn % 4));
	PERFRING_STORE(&made.time_mult, turn);
	PERFRING_STORE(&made.time_shift, (uint16_t)(turn % 4));
	PERFRING_STORE(&made.time_offset, turn * UINT64_C(3));
	PERFRING_STORE(&made.time_zero, turn * UINT64_C(5));
	PERFRING_STORE_RELEASE(&made.lock, lock + 2);
}

/* The counter's sign bit is set for the width of its own turn alone. */
static bool tell_by_index(uint32_t counter, uint64_t *raw)
{
	*raw = (UINT64_C(1) << (15 + counter)) + counter;
	return true;
}

static uint64_t tell_sixteen(void)
{
	return 16;
}

static const struct perfring_page_counters BY_TURN = {tell_by_index, tell_sixteen};

/* Which turn all of it is of; it is of none when it is torn. */
static uint32_t turn_of(const struct perfring_page_count *count)
{
	uint32_t turn = 0;

	for (uint32_t shift = 0; shift < 4; shift++) {
		/* enabled - running = 8 * turn, whatever the clock added to both. */
		turn = (uint32_t)((count->enabled - count->running) / 8);
		if (turn % 4 != shift)
			continue;
		cr_assert_eq(count->enabled, turn * 16ull + turn * 3ull + (16 >> shift) * (uint64_t)turn, "torn at %u",
			     turn);
		cr_assert_eq(count->value, turn * 32ull + shift - (UINT64_C(1) << (15 + shift)), "torn at %u", turn);
	}
	return turn;
}

static const char *strike_at;
static uint32_t turn_now, lock_now;
static unsigned strike_in;

static void update_once(const char *name)
{
	if (strcmp(name, strike_at) != 0 || strike_in == 0 || --strike_in)
		return;
	set_page(++turn_now, lock_now);
	lock_now += 2;
}

/* An update between any two looks: what comes out is the new one, whole. */
Test(page, updated_at_every_named_place)
{
	static const char *const PLACES[] = {"page_enabled", "page_clock", "page_index", "page_read"};
	struct perfring_page_count count;
	uint64_t time;

	make(USER_RDPMC | USER_TIME | USER_TIME_ZERO, 0, 0);
	set_page(turn_now = 1, lock_now = UINT32_MAX - 9); /* which wraps */
	lock_now += 2;
	struck = update_once;
	for (unsigned i = 0; i < 64; i++) {
		strike_at = PLACES[i % 4];
		strike_in = 1;
		cr_assert_eq(perfring__page_read_by(&BY_TURN, &made, &count), 0);
		cr_assert_eq(strike_in, 0, "%s was not passed", strike_at);
		cr_assert_eq(turn_of(&count), turn_now);
		if (i % 4 != 1 && i % 4 != 3)
			continue;
		strike_in = 1;
		cr_assert_eq(perfring_page_to_time(&made, 16, &time), 0);
		cr_assert_eq(strike_in, 0);
		cr_assert_eq(time, turn_now * 5ull + (16 >> turn_now % 4) * (uint64_t)turn_now);
	}
}

static bool is_over;
static uint32_t wanted, done;

static void *keep_updating(void *unused)
{
	uint32_t turn = 1;

	while (!PERFRING_LOAD(&is_over)) {
		if (PERFRING_LOAD_ACQUIRE(&wanted) == PERFRING_LOAD(&done)) {
			sched_yield();
			continue;
		}
		turn++;
		set_page(turn, turn * 2);
		PERFRING_STORE_RELEASE(&done, PERFRING_LOAD(&done) + 1);
	}
	return unused;
}

/* Asks for an update and waits until it is there, until it has perhaps begun, or not at all. */
static void ask_for_update(const char *name)
{
	static uint32_t number;

	(void)name;
	number = number * 1664525 + 1013904223;
	if (number >> 28 < 8)
		return;
	PERFRING_STORE_RELEASE(&wanted, PERFRING_LOAD(&wanted) + 1);
	for (uint32_t spins = number >> 24 & 7; PERFRING_LOAD_ACQUIRE(&done) != PERFRING_LOAD(&wanted); sched_yield())
		if (number >> 30 & 1 && spins-- == 0)
			break;
}

Test(page, against_a_writing_thread)
{
	struct perfring_page_count count;
	uint32_t last = 0, turn, changed = 0;
	pthread_t writer;

	make(USER_RDPMC | USER_TIME, 0, 0);
	set_page(1, 2);
	is_over = false;
	cr_assert_eq(pthread_create(&writer, NULL, keep_updating, NULL), 0);
	struck = ask_for_update;
	for (unsigned i = 0; i < 3000; i++) {
		if (perfring__page_read_by(&BY_TURN, &made, &count))
			continue;
		turn = turn_of(&count);
		cr_assert_geq(turn, last);
		changed += turn != last;
		last = turn;
	}
	struck = NULL;
	PERFRING_STORE(&is_over, true);
	pthread_join(writer, NULL);
	cr_assert_gt(changed, 100);
}

/* ---- the kernel's pages ---- */

static size_t page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

/* A size of the first attr in which all that is used here lies. */
static struct perf_event_attr attr_of(uint32_t type, uint64_t config)
{
	struct perf_event_attr attr = {.type = type, .size = 112, .config = config, .read_format = 3};

	attr.exclude_kernel = 1;
	attr.exclude_hv = 1;
	return attr;
}

/* Each hit is one occurrence, and one record of 24 bytes. */
static struct perf_event_attr watch(volatile uint64_t *word)
{
	struct perf_event_attr attr = watch_hits(word);

	attr.size = 112;
	attr.read_format = 3;
	attr.sample_period = 1;
	attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TIME;
	return attr;
}

static int open_on(const struct perf_event_attr *attr, int cpu)
{
	int fd = perfring_event_open(attr, 0, cpu, -1, 0);

	if (fd == -EACCES || fd == -EPERM || fd == -ENOSYS || fd == -ENOENT || fd == -ENOSPC || fd == -EOPNOTSUPP)
		cr_skip_test("SKIP-ENV: perf_event_open(type %u): %s: needs perf_event_paranoid <= 2, the event",
			     attr->type, strerror(-fd));
	cr_assert_geq(fd, 0, "perf_event_open: %s", strerror(-fd));
	return fd;
}

static int open_watch(volatile uint64_t *word)
{
	struct perf_event_attr attr = watch(word);

	return open_on(&attr, -1);
}

static int open_dummy(void)
{
	struct perf_event_attr attr = attr_of(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY);

	return open_on(&attr, -1);
}

/* pages: with the control page. */
static void *try_map(int fd, size_t pages, int protection)
{
	void *memory = mmap(NULL, pages * page_size(), protection, MAP_SHARED, fd, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

static struct perf_event_mmap_page *map(int fd, size_t pages, int protection)
{
	struct perf_event_mmap_page *page = try_map(fd, pages, protection);

	if (!page && errno == EPERM)
		cr_skip_test("SKIP-ENV: mmap: EPERM: needs RLIMIT_MEMLOCK");
	cr_assert_not_null(page, "mmap: %s", strerror(errno));
	return page;
}

static void unmap(void *memory, size_t pages)
{
	cr_assert_eq(munmap(memory, pages * page_size()), 0);
}

static uint64_t value_of(int fd, uint64_t values[3])
{
	cr_assert_eq(read(fd, values, 24), 24);
	return values[0];
}

#define BOTH (PROT_READ | PROT_WRITE)

/* docs/abi.md 3.1, first rule. */
Test(page, lengths_that_map)
{
	int fd = open_dummy();

	for (size_t pages = 0; pages <= 16; pages++) {
		void *memory = try_map(fd, 1 + pages, BOTH);
		int error = errno;

		if ((pages & (pages - 1)) == 0) {
			cr_assert_not_null(memory, "%zu: %s", pages, strerror(error));
			unmap(memory, 1 + pages);
		} else {
			cr_assert_null(memory, "%zu", pages);
			cr_assert_eq(error, EINVAL, "%zu: %s", pages, strerror(error));
		}
	}
	cr_assert(mmap(NULL, 2 * page_size(), BOTH, MAP_PRIVATE, fd, 0) == MAP_FAILED);
	cr_assert_eq(errno, EINVAL);
	cr_assert(mmap(NULL, 2 * page_size(), BOTH, MAP_SHARED, fd, (off_t)page_size()) == MAP_FAILED);
	cr_assert_eq(errno, EINVAL);
	close(fd);
}

/* Second: a control page alone. */
Test(page, without_data)
{
	struct perf_event_attr attr = watch(&watched);
	struct perf_event_mmap_page *page;
	uint64_t values[4];
	int fd;

	attr.read_format = 16 | 3; /* LOST: Linux 6.0 */
	fd = perfring_event_open(&attr, 0, -1, -1, 0);
	if (fd == -EINVAL)
		cr_skip_test("SKIP-ENV: perf_event_open: EINVAL: PERF_FORMAT_LOST needs Linux 6.0");
	if (fd < 0)
		fd = open_watch(&watched); /* skips */
	page = map(fd, 1, BOTH);
	cr_assert_eq(page->data_size, 0);
	hit(&watched, 5);
	cr_assert_eq(perfring_page_observe(page), 0);
	cr_assert_eq(read(fd, values, sizeof(values)), 32);
	cr_assert_eq(values[0], 5);
	cr_assert_eq(values[3], 0, "not counted as lost");
	cr_assert_eq(ioctl(fd, PERF_EVENT_IOC_PAUSE_OUTPUT, 1), -1);
	cr_assert_eq(errno, EINVAL);
	unmap(page, 1);
	close(fd);
}

static sigjmp_buf back;

static void jump_back(int number)
{
	siglongjmp(back, number);
}

/* Third: writable stops, read-only overwrites; data pages cannot be stored to. */
Test(page, protection_decides_the_mode)
{
	struct sigaction action = {.sa_handler = jump_back}, before;
	struct perf_event_mmap_page *page;
	uint64_t size = page_size(), records = size / 24;
	int fd = open_watch(&watched), number;

	page = map(fd, 2, BOTH);
	hit(&watched, (int)records + 100);
	cr_assert_leq(perfring_page_observe(page), size);
	cr_assert_gt(perfring_page_observe(page), size - 100);
	sigaction(SIGBUS, &action, &before);
	number = sigsetjmp(back, 1);
	if (number == 0) {
		*((volatile char *)page + size) = 1;
		sigaction(SIGBUS, &before, NULL);
		cr_assert_fail("a data page was stored to");
	}
	sigaction(SIGBUS, &before, NULL);
	cr_assert_eq(number, SIGBUS);
	/* The control page can be: but the kernel publishes its own head again. */
	records = perfring_page_observe(page);
	PERFRING_STORE(&page->data_head, 8);
	perfring_page_return(page, records);
	hit(&watched, 1);
	cr_assert_gt(perfring_page_observe(page), size - 100);
	unmap(page, 2);
	page = map(fd, 2, PROT_READ);
	hit(&watched, (int)(size / 24) + 100);
	cr_assert_eq(perfring_page_observe(page), (size / 24 + 100) * 24, "nothing was dropped");
	unmap(page, 2);
	close(fd);
}

/* Fourth: mapped again it is the same ring, of the same size. */
Test(page, mapped_again)
{
	struct perf_event_mmap_page *page, *again;
	int fd = open_dummy();

	page = map(fd, 3, BOTH);
	again = map(fd, 3, BOTH);
	cr_assert(again != page);
	perfring_page_return(page, 4711);
	cr_assert_eq(again->data_tail, 4711);
	for (size_t pages = 0; pages <= 4; pages++) {
		if (pages == 2)
			continue;
		cr_assert_null(try_map(fd, 1 + pages, BOTH), "%zu", pages);
		cr_assert_eq(errno, EINVAL);
	}
	unmap(again, 3);
	unmap(page, 3);
	close(fd);
}

/* Fifth; EBUSY is of current kernels. */
Test(page, an_event_whose_output_goes_elsewhere)
{
	int fd = open_dummy(), other = open_dummy();
	struct perf_event_mmap_page *page = map(fd, 2, BOTH);

	cr_assert_eq(ioctl(other, PERF_EVENT_IOC_SET_OUTPUT, fd), 0);
	if (try_map(other, 2, BOTH))
		cr_skip_test("SKIP-ENV: mmap: this kernel maps the target's ring: EBUSY needs a later one");
	cr_assert_eq(errno, EBUSY);
	unmap(page, 2);
	close(other);
	close(fd);
}

/* Sixth: each child would write from its own CPU. */
Test(page, inherited_events)
{
	struct perf_event_attr attr = attr_of(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY);
	int fd;

	attr.inherit = 1;
	fd = open_on(&attr, -1);
	cr_assert_null(try_map(fd, 2, BOTH));
	cr_assert_eq(errno, EINVAL);
	close(fd);
	fd = open_on(&attr, 0);
	unmap(map(fd, 2, BOTH), 2);
	close(fd);
}

/* Seventh: a mapping stays whole, and at home. */
Test(page, cannot_be_inherited_grown_or_split)
{
	int fd = open_dummy(), status = -1;
	char *memory = (char *)map(fd, 5, BOTH);
	size_t size = page_size();
	pid_t child = fork();

	if (child == 0)
		_exit(msync(memory, size, MS_ASYNC) == -1 && errno == ENOMEM ? 0 : 1);
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert_eq(status, 0, "the child has a mapping there");
	cr_assert_eq(msync(memory, size, MS_ASYNC), 0);
	cr_assert(mremap(memory, 5 * size, 9 * size, MREMAP_MAYMOVE) == MAP_FAILED);
	cr_assert_eq(errno, EFAULT);
	cr_assert_eq(munmap(memory, size), -1);
	cr_assert_eq(errno, EINVAL);
	cr_assert_eq(munmap(memory + 2 * size, size), -1);
	cr_assert_eq(errno, EINVAL);
	cr_assert_eq(mprotect(memory + size, size, PROT_READ), -1);
	cr_assert_eq(errno, EINVAL);
	unmap(memory, 5);
	close(fd);
}

/* Eighth: the last unmapping ends the ring, for all who wrote into it. */
Test(page, the_last_unmapping)
{
	int fd = open_watch(&watched), other = open_watch(&watched_too);
	struct perf_event_mmap_page *page = map(fd, 2, BOTH), *again = map(fd, 2, BOTH);
	struct pollfd ready = {.fd = other, .events = POLLIN};

	cr_assert_eq(ioctl(other, PERF_EVENT_IOC_SET_OUTPUT, fd), 0);
	hit(&watched_too, 1);
	cr_assert_eq(perfring_page_observe(page), 24);
	unmap(page, 2);
	hit(&watched_too, 1);
	cr_assert_eq(perfring_page_observe(again), 48, "one mapping is left");
	cr_assert_eq(poll(&ready, 1, 0) == 1 && ready.revents & POLLHUP, false);
	unmap(again, 2);
	cr_assert_eq(poll(&ready, 1, 0), 1);
	cr_assert(ready.revents & POLLHUP, "the other one is detached");
	page = map(fd, 5, BOTH);
	cr_assert_eq(perfring_page_observe(page), 0);
	cr_assert_eq(page->data_size, 4 * page_size());
	hit(&watched_too, 1);
	cr_assert_eq(perfring_page_observe(page), 0);
	hit(&watched, 1);
	cr_assert_eq(perfring_page_observe(page), 24);
	unmap(page, 5);
	close(other);
	close(fd);
}

/* Ninth. */
Test(page, the_ring_outlives_its_fd)
{
	int fd = open_watch(&watched), other = open_watch(&watched_too);
	struct perf_event_mmap_page *page = map(fd, 2, BOTH);

	cr_assert_eq(ioctl(other, PERF_EVENT_IOC_SET_OUTPUT, fd), 0);
	close(fd);
	hit(&watched_too, 3);
	cr_assert_eq(perfring_page_observe(page), 72);
	/* The mapping keeps the event too. */
	hit(&watched, 1);
	cr_assert_eq(perfring_page_observe(page), 96);
	unmap(page, 2);
	close(other);
}

/* docs/abi.md 3.2 on the kernel's page; and 3.3: what has no counter says so. */
Test(page, of_events_without_a_counter)
{
	struct perf_event_attr attrs[2] = {attr_of(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK), watch(&watched)};

	for (int i = 0; i < 2; i++) {
		struct perf_event_mmap_page *page;
		struct perfring_page_count count;
		struct perfring_self_count self;
		uint64_t before[3], after[3];
		int fd;

		/* A switch to another thread would put the clock's count into `offset`. */
		attrs[i].disabled = 1;
		fd = open_on(&attrs[i], -1);
		page = map(fd, 3, BOTH);
		cr_assert_eq(page->version, 0);
		cr_assert_eq(page->compat_version, 0);
		cr_assert_eq(page->lock % 2, 0);
		cr_assert_eq(page->index, 0);
		cr_assert_eq(page->offset, 0);
		cr_assert_eq(page->capabilities & 7, 2);
		cr_assert_eq(page->size, 96);
		cr_assert_eq(perfring_page_observe(page), 0);
		cr_assert_eq(page->data_tail, 0);
		cr_assert_eq(page->data_offset, page_size());
		cr_assert_eq(page->data_size, 2 * page_size());
		cr_assert_eq(page->aux_head, 0);
		cr_assert_eq(page->aux_tail, 0);
		cr_assert_eq(page->aux_offset, 0);
		cr_assert_eq(page->aux_size, 0);
		for (const unsigned char *byte = (unsigned char *)page + 96; byte < (unsigned char *)page + 1024;
		     byte++)
			cr_assert_eq(*byte, 0);
		cr_assert_eq(perfring_page_read(page, &count), -EOPNOTSUPP);
		cr_assert_eq(ioctl(fd, PERF_EVENT_IOC_ENABLE, 0), 0);
		hit(&watched, 3);
		value_of(fd, before);
		cr_assert_eq(perfring_event_count_self(fd, page, &self), 0);
		value_of(fd, after);
		cr_assert_eq(self.way, PERFRING_COUNT_READ);
		cr_assert_geq(self.value, before[0]);
		cr_assert_leq(self.value, after[0]);
		cr_assert_geq(self.enabled, before[1]);
		cr_assert_leq(self.enabled, after[1]);
		cr_assert_geq(self.running, before[2]);
		cr_assert_leq(self.running, after[2]);
		if (i == 1)
			cr_assert_eq(self.value, 3);
		unmap(page, 3);
		close(fd);
	}
}

/* Resets an event that shares its page with one that counts, which updates it too when this thread comes and goes.  Until
 * it did not: then what the page says is `fd`'s. */
static uint64_t enabled_by_reset(const struct perf_event_mmap_page *page, int fd)
{
	uint64_t enabled;
	uint32_t lock;

	for (int i = 0; i < 1000; i++) {
		lock = PERFRING_LOAD(&page->lock);
		cr_assert_eq(ioctl(fd, PERF_EVENT_IOC_RESET, 0), 0);
		enabled = PERFRING_LOAD(&page->time_enabled);
		if (PERFRING_LOAD_ACQUIRE(&page->lock) == lock + 2)
			return enabled;
	}
	cr_assert_fail("an update is not two steps of the lock");
	return 0;
}

/* 3.3: the page is updated at times, not on and on; and by whoever writes into the ring. */
Test(page, updates_of_several_events)
{
	struct perf_event_attr attr = attr_of(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK);
	struct perf_event_mmap_page *page;
	uint64_t values[3], enabled, begin;
	bool stood = false;
	uint32_t lock;
	int fd, other;

	other = open_on(&attr, -1);
	attr.disabled = 1;
	fd = open_on(&attr, -1);
	page = map(fd, 2, BOTH);
	cr_assert_eq(page->time_enabled, 0);
	cr_assert_eq(enabled_by_reset(page, fd), 0, "it was never enabled");
	cr_assert_eq(ioctl(other, PERF_EVENT_IOC_SET_OUTPUT, fd), 0);
	enabled = enabled_by_reset(page, other);
	cr_assert_gt(enabled, 0, "the other one's");
	value_of(other, values);
	cr_assert_geq(values[1], enabled);
	for (int i = 0; i < 20000 && !stood; i++) { /* others may wake up and take the processor each 0.1 ms, for a while */
		lock = PERFRING_LOAD(&page->lock);
		enabled = PERFRING_LOAD(&page->time_enabled);
		begin = value_of(other, values);
		while (value_of(other, values) < begin + 200000)
			;
		/* Unless the thread came and went. */
		stood = PERFRING_LOAD(&page->lock) == lock;
		if (stood)
			cr_assert_eq(page->time_enabled, enabled);
	}
	cr_assert(stood);
	cr_assert_eq(enabled_by_reset(page, fd), 0);
	unmap(page, 2);
	close(other);
	close(fd);
}

/* ---- where there are counters ---- */

static int open_counter(uint64_t config, struct perf_event_mmap_page **page)
{
	struct perf_event_attr attr = attr_of(PERF_TYPE_HARDWARE, config);
	int fd = open_on(&attr, -1);

	*page = map(fd, 1, PROT_READ);
	if (!((*page)->capabilities & USER_RDPMC))
		cr_skip_test("SKIP-ENV: cap_user_rdpmc: 0: needs 1 or 2 in /sys/bus/event_source/devices/cpu/rdpmc");
	return fd;
}

static volatile uint32_t sink;

static void work(unsigned times)
{
	for (unsigned i = 0; i < times; i++)
		sink += i;
}

/* Nothing but read(2) knows better: each count lies between the two around it. */
Test(page, against_read)
{
	struct perf_event_mmap_page *page;
	struct perfring_page_count count;
	struct perfring_self_count self;
	uint64_t before[3], after[3], last = 0;
	unsigned counted = 0;
	int fd = open_counter(PERF_COUNT_HW_INSTRUCTIONS, &page);

	for (int i = 0; i < 2000; i++) {
		work((unsigned)i);
		value_of(fd, before);
		cr_assert_eq(perfring_page_read(page, &count), 0);
		cr_assert_eq(perfring_event_count_self(fd, page, &self), 0);
		value_of(fd, after);
		cr_assert_geq(count.value, before[0]);
		cr_assert_leq(count.value, after[0]);
		cr_assert_geq(self.value, count.value);
		cr_assert_leq(self.value, after[0]);
		cr_assert_leq(self.enabled, after[1]);
		cr_assert_leq(self.running, after[2]);
		cr_assert_gt(count.value, last);
		last = count.value;
		if (count.is_current) {
			cr_assert_geq(count.enabled, before[1]);
			cr_assert_leq(count.enabled, after[1]);
		}
		counted += self.way == PERFRING_COUNT_RDPMC;
	}
	/* Another's event may take its counter for a while. */
	cr_assert_gt(counted, 1000);
	cr_assert_eq(ioctl(fd, PERF_EVENT_IOC_DISABLE, 0), 0);
	value_of(fd, before);
	work(1000);
	cr_assert_eq(perfring_page_read(page, &count), 0);
	cr_assert_not(count.is_counting);
	cr_assert_eq(count.value, before[0]);
	cr_assert_eq(perfring_event_count_self(fd, page, &self), 0);
	cr_assert_eq(self.way, PERFRING_COUNT_READ);
	cr_assert_eq(self.value, before[0]);
	cr_assert_eq(self.enabled, before[1], "it is disabled");
	cr_assert_eq(ioctl(fd, PERF_EVENT_IOC_RESET, 0), 0);
	cr_assert_eq(perfring_page_read(page, &count), 0);
	cr_assert_eq(count.value, 0);
	unmap(page, 1);
	close(fd);
}

/* How much is executed between two looks, by the counter itself: no system call's worth. */
Test(page, costs_no_system_call)
{
	struct perf_event_mmap_page *page;
	struct perfring_page_count first, second;
	uint64_t least = UINT64_MAX;
	int fd = open_counter(PERF_COUNT_HW_INSTRUCTIONS, &page);

	for (int i = 0; i < 100; i++) {
		cr_assert_eq(perfring_page_read(page, &first), 0);
		cr_assert_eq(perfring_page_read(page, &second), 0);
		if (second.value - first.value < least)
			least = second.value - first.value;
	}
	cr_assert_gt(least, 10);
	cr_assert_lt(least, 2000);
	unmap(page, 1);
	close(fd);
}

/* More events than counters: those that wait are known for it. */
Test(page, more_events_than_counters)
{
	enum {
		NR = 16
	};
	struct perf_event_mmap_page *pages[NR];
	struct perfring_self_count self;
	uint64_t before[3], after[3];
	unsigned ways[2] = {0, 0};
	int fds[NR];

	for (int i = 0; i < NR; i++)
		fds[i] =
			open_counter(i % 2 ? PERF_COUNT_HW_INSTRUCTIONS : PERF_COUNT_HW_BRANCH_INSTRUCTIONS, &pages[i]);
	for (int round = 0; round < 300; round++) {
		work(30000);
		for (int i = 0; i < NR; i++) {
			value_of(fds[i], before);
			cr_assert_eq(perfring_event_count_self(fds[i], pages[i], &self), 0);
			value_of(fds[i], after);
			cr_assert_geq(self.value, before[0]);
			cr_assert_leq(self.value, after[0]);
			cr_assert_leq(self.enabled, after[1]);
			cr_assert_leq(self.running, after[2]);
			ways[self.way]++;
		}
	}
	cr_assert_gt(ways[PERFRING_COUNT_READ], 0);
	for (int i = 0; i < NR; i++) {
		unmap(pages[i], 1);
		close(fds[i]);
	}
}

/* Another read_format than its own cannot be understood; an fd that is none is told. */
Test(page, counted_wrongly)
{
	struct perf_event_attr attr = attr_of(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY);
	struct perfring_self_count self;
	int fd;

	make(0, 0, 0);
	cr_assert_eq(perfring_event_count_self(-1, &made, &self), -EBADF);
	attr.read_format = 0;
	fd = open_on(&attr, -1);
	cr_assert_eq(perfring_event_count_self(fd, &made, &self), -EINVAL);
	close(fd);
}
