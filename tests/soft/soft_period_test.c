/* soft_period_test.c - what an occurrence counts and samples: docs/abi.md 9.2, 9.3, 9.5, 9.6 and 15, number by number; and
 * the same sums when handlers raise on top of it at every step.
 *
 * soft/period.c alone: the rest of soft/, and the clocks, are recorders here. */
#include "sanitizers.h"
#include "test.h"

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

/* Each place is visited; a test strikes at the one that it wants. */
static void visit(const char *place);
#define PERFRING_POINT(name) visit(#name)

static int told_time(clockid_t clock, struct timespec *time);
static int told_step(clockid_t clock, struct timespec *step);
#define clock_gettime told_time
#define clock_getres told_step
#include "soft/period.c"
#undef clock_gettime
#undef clock_getres

#include "machine.h"

TestSuite(soft_period, .timeout = 300);

enum {
	MOST = 1 << 16,
	TICK = 4000000, /* at 250 a second */
};

/* ---- the rest of soft/, recording ---- */

uint32_t perfring__soft_max_rate = 100000;
uint32_t perfring__soft_hz = 250;
uint64_t perfring__soft_tick = TICK;

static uint64_t now;       /* ns */
static uint64_t time_step; /* how much each look at the clock adds */
static uint64_t step_told = TICK;
static uint64_t lag; /* of the cheap clock */
static uint64_t looks_fine, looks_coarse;

static char log_text[MOST]; /* S sample, T throttle, U unthrottle, X stopped */
static uint64_t log_size;
static uint64_t log_period[MOST]; /* of the samples */
static uint64_t samples, sampled; /* how many, and the sum of their periods */
static uint64_t stops;
static uint64_t sample_step; /* samples tell their time, which is so much later; 0: they tell none */

static int told_time(clockid_t clock, struct timespec *time)
{
	uint64_t told = __atomic_add_fetch(&now, PERFRING_LOAD(&time_step), __ATOMIC_RELAXED);

	PERFRING_ADD(clock == CLOCK_MONOTONIC ? &looks_fine : &looks_coarse, 1);
	if (clock != CLOCK_MONOTONIC)
		told -= lag;
	time->tv_sec = (time_t)(told / 1000000000);
	time->tv_nsec = (long)(told % 1000000000);
	return 0;
}

static int told_step(clockid_t clock, struct timespec *step)
{
	(void)clock;
	step->tv_sec = 0;
	step->tv_nsec = (long)step_told;
	return 0;
}

static void set_hz(uint32_t hz)
{
	perfring__soft_hz = hz;
	perfring__soft_tick = 1000000000 / hz;
}

static void note(char what)
{
	uint64_t at = PERFRING_ADD(&log_size, 1);

	if (at < MOST - 1)
		log_text[at] = what;
}

void perfring__soft_event_stop(struct perfring_soft_event *event)
{
	note('X');
	PERFRING_ADD(&stops, 1);
	visit("stopping");
	PERFRING_EXCHANGE(&event->on, 0);
}

bool perfring__soft_put_sample(struct soft_instance *instance, uint64_t period, const struct perfring_soft_site *site,
			       const void *frame, const void *caller, uint64_t *time)
{
	uint64_t at = PERFRING_ADD(&samples, 1);

	(void)instance, (void)site, (void)frame, (void)caller;
	PERFRING_ADD(&sampled, period);
	if (at < MOST)
		log_period[at] = period;
	note('S');
	if (sample_step)
		*time = __atomic_add_fetch(&now, sample_step, __ATOMIC_RELAXED);
	visit("sampling");
	return at % 3; /* refusals change nothing */
}

static const struct soft_instance *throttled; /* whose THROTTLE was the last */

/* No event here signals. */
void perfring__soft_send(struct soft_instance *instance)
{
	cr_assert_eq(instance->pending, 0);
}

void perfring__soft_put_throttle(struct soft_instance *group, bool is_end)
{
	if (!is_end)
		throttled = group;
	note(is_end ? 'U' : 'T');
	visit("throttling");
}

/* ---- one event, one instance ---- */

static struct perfring_soft_event event;
static struct soft_instance instance;
static struct soft_thread thread_of_all;

static void open_event(uint64_t period, bool freq, uint64_t sample_type)
{
	memset(&event, 0, sizeof(event));
	memset(&instance, 0, sizeof(instance));
	event.attr.sample_period = period;
	event.attr.freq = freq;
	event.attr.sample_type = sample_type;
	event.samples = period != 0;
	event.on = 1;
	event.is_monotonic = true;
	event.leader = &event;
	event.instances[0] = &instance;
	instance.event = &event;
	instance.thread = &thread_of_all;
	perfring__soft_period_start(&instance);
	memset(log_text, 0, log_size < MOST ? log_size : MOST);
	log_size = samples = sampled = stops = 0;
}

static void occur(uint64_t nr)
{
	perfring__soft_occur(&instance, nr, NULL, NULL, NULL);
}

static void occur_often(uint64_t nr, unsigned times)
{
	while (times--)
		occur(nr);
}

static int64_t left_now(void)
{
	return (int64_t)PERFRING_LOAD(&instance.left);
}

/* ---- nobody strikes, unless a test says so ---- */

static void (*strike)(void);      /* what a handler would do there */
static unsigned visits;           /* places passed */
static unsigned strike_at[3];     /* at which of them; 0: never */
static unsigned depth, strikes;   /* now inside so many; ever */
static const char *struck_at;     /* the last one's name */
static const char *met_names[64]; /* that were struck, in all tests of this process */

static void meet(const char *place)
{
	unsigned i;

	for (i = 0; i < 64 && met_names[i]; i++)
		if (!strcmp(met_names[i], place))
			return;
	met_names[i % 64] = place;
}

static void visit(const char *place)
{
	unsigned i;

	if (!strike) /* no threads where one is set */
		return;
	visits++;
	for (i = 0; i < 3; i++)
		if (strike_at[i] == visits) {
			meet(place);
			struck_at = place;
			strikes++;
			depth++;
			strike();
			depth--;
		}
}

/* ---- periods ---- */

Test(soft_period, hundred_by_each_period)
{
	static const unsigned expected[] = {100, 50, 33, 25, 20, 16, 14};
	unsigned i, j;

	for (i = 0; i < 7; i++) {
		open_event(i + 1, false, 0);
		occur_often(1, 100);
		cr_assert_eq(samples, expected[i], "period %u: %u samples", i + 1, (unsigned)samples);
		cr_assert_eq(instance.count, 100);
		for (j = 0; j < samples; j++)
			cr_assert_eq(log_period[j], i + 1);
	}
}

Test(soft_period, sample_period_ignores_the_period)
{
	open_event(7, false, 1 << 8);
	occur_often(1, 100);
	cr_assert_eq(samples, 100);
	cr_assert_eq(log_period[99], 1);
	occur(19);
	cr_assert_eq(samples, 101);
	cr_assert_eq(log_period[100], 19);
	cr_assert_eq(left_now(), -7, "untouched");
	/* With a frequency it does not. */
	now = 1000 * (uint64_t)TICK;
	open_event(1000, true, 1 << 8);
	occur(1);
	cr_assert_eq(samples, 1);
	occur_often(1, 6);
	cr_assert_eq(samples, 1);
	now += 5 * TICK;
	occur(1);
	cr_assert_eq(samples, 2);
	cr_assert_eq(log_period[1], 7);
}

Test(soft_period, weights)
{
	unsigned i;

	open_event(1000000, false, 0);
	occur(19260000);
	cr_assert_eq(samples, 19);
	cr_assert_eq(left_now(), -740000); /* 19.26 periods are used: 0.74 to go */
	for (i = 0; i < 19; i++)
		cr_assert_eq(log_period[i], 1000000);
	occur(739999);
	cr_assert_eq(samples, 19);
	occur(1);
	cr_assert_eq(samples, 20);
	cr_assert_eq(instance.count, 20000000);

	open_event(1, false, 0); /* P = 1, but nr is not: through V */
	occur(3);
	cr_assert_eq(samples, 3);
	cr_assert_eq(left_now(), -1);

	open_event((uint64_t)INT64_MAX, false, 0);
	occur(INT64_MAX - 1);
	cr_assert_eq(samples, 0);
	occur(1);
	cr_assert_eq(samples, 1);
	cr_assert_eq(left_now(), -INT64_MAX);
	occur(0);
	cr_assert_eq(samples, 1);
}

Test(soft_period, counting_alone)
{
	open_event(0, false, 1 << 8); /* docs/abi.md 14.28: never samples, even with sample_type set */
	occur_often(3, 100);
	cr_assert_eq(instance.count, 300);
	cr_assert_eq(log_size, 0);
}

Test(soft_period, off_neither_counts_nor_samples)
{
	open_event(1, false, 0);
	event.on = 0;
	event.limit = 5;
	occur_often(5, 100);
	perfring__soft_tick_of_clock(&instance, 1, NULL);
	cr_assert_eq(instance.count, 0);
	cr_assert_eq(log_size, 0);
	cr_assert_eq(left_now(), -1);
}

/* docs/abi.md 15: (V, L, P) gives n, and V'. */
Test(soft_period, set_period_vectors)
{
	static const struct {
		int64_t v;
		uint64_t l, p, n;
		int64_t then;
	} vectors[] = {
		{3, 3, 3, 2, -3},  {0, 3, 3, 1, -3}, {10, 3, 3, 4, -2},
		{-1, 3, 3, 0, -1}, {9, 3, 5, 4, -3}, {1000000, 1, 1, 1000001, -1},
	};
	uint64_t period = 0, n;
	unsigned i;

	for (i = 0; i < 6; i++) {
		open_event(vectors[i].p, false, 0);
		instance.last_period = vectors[i].l;
		instance.left = (uint64_t)vectors[i].v;
		n = take_overflows(&instance, &period);
		cr_assert_eq(n, vectors[i].n, "vector %u", i);
		cr_assert_eq(left_now(), vectors[i].then, "vector %u", i);
		cr_assert_eq(period, vectors[i].l);
		cr_assert_eq(instance.last_period, vectors[i].p);
	}
}

/* ---- requests from outside ---- */

Test(soft_period, ioctl_period)
{
	open_event(10, false, 0);
	occur_often(1, 4);
	cr_assert_eq(left_now(), -6);
	perfring__soft_period_set(&instance, 3);
	cr_assert_eq(samples, 0);
	occur(1); /* V = 0 + 1: the first occurrence overflows, by the old period, and leaves a rest of that */
	cr_assert_eq(samples, 1);
	cr_assert_eq(log_period[0], 10);
	cr_assert_eq(left_now(), -9);
	occur_often(1, 9);
	cr_assert_eq(samples, 2);
	cr_assert_eq(log_period[1], 3);
	cr_assert_eq(left_now(), -3);
	occur_often(1, 6);
	cr_assert_eq(samples, 4);
	/* The same period again: V := 0 all the same. */
	occur(1);
	cr_assert_eq(samples, 4);
	perfring__soft_period_set(&instance, 3);
	occur(1);
	cr_assert_eq(samples, 5);
}

Test(soft_period, ioctl_period_while_off)
{
	open_event(10, false, 0);
	occur_often(1, 4);
	event.on = 0;
	perfring__soft_period_set(&instance, 3);
	event.on = 1;
	perfring__soft_period_resume(&instance); /* schedule-in loads a V of 0: -3 */
	occur_often(1, 2);
	cr_assert_eq(samples, 0);
	occur(1);
	cr_assert_eq(samples, 1);
	cr_assert_eq(log_period[0], 3);

	open_event(10, false, 0); /* progress survives disable and enable */
	occur_often(1, 4);
	event.on = 0;
	event.on = 1;
	perfring__soft_period_resume(&instance);
	occur_often(1, 5);
	cr_assert_eq(samples, 0);
	occur(1);
	cr_assert_eq(samples, 1);

	open_event(10, false, 0); /* enabled, and then set */
	perfring__soft_period_resume(&instance);
	perfring__soft_period_set(&instance, 3);
	occur(1);
	cr_assert_eq(samples, 1);
	cr_assert_eq(log_period[0], 10, "schedule-in made L so");
	cr_assert_eq(left_now(), -9);
}

/* P = 1 takes nothing out of V: a 0 that set_period left there is still there when a longer period is loaded. */
Test(soft_period, ioctl_period_after_one)
{
	open_event(2, false, 0);
	occur(1);
	perfring__soft_period_set(&instance, 1);
	occur(1);
	cr_assert_eq(samples, 1);
	perfring__soft_period_set(&instance, 3);
	perfring__soft_period_resume(&instance);
	occur_often(1, 2);
	cr_assert_eq(samples, 1);
	occur_often(1, 10);
	cr_assert_eq(samples, 5); /* at 2, 5, 8, 11, 14 */
	cr_assert_eq(left_now(), -3);

	open_event(2, false, 0); /* by a schedule-in alone */
	perfring__soft_period_set(&instance, 1);
	occur(1);
	cr_assert_eq(left_now(), 0);
	perfring__soft_period_resume(&instance);
	occur(1);
	cr_assert_eq(left_now(), -1);
	cr_assert_eq(samples, 2);
}

Test(soft_period, ioctl_period_unthrottles)
{
	perfring__soft_max_rate = 1000;
	open_event(1, false, 0);
	occur(10);
	cr_assert_str_eq(log_text, "SSSTS");
	occur(10);
	cr_assert_str_eq(log_text, "SSSTS");
	perfring__soft_period_set(&instance, 2);
	occur(1); /* V = 0 + 1, L = 1: two, each of 1 */
	cr_assert_str_eq(log_text, "SSSTSUSS");
	cr_assert_eq(sampled, 6);
	perfring__soft_period_resume(&instance); /* nothing to unthrottle */
	occur(1);
	cr_assert_str_eq(log_text, "SSSTSUSSS");
}

Test(soft_period, ioctl_frequency)
{
	now = 1000 * (uint64_t)TICK;
	open_event(1000, true, 0);
	cr_assert_eq(instance.freq, 1000);
	perfring__soft_period_set(&instance, 99);
	occur(1);
	cr_assert_eq(instance.freq, 99);
	cr_assert_eq(samples, 1);
	cr_assert_eq(log_period[0], 1);
}

/* ---- frequency ---- */

#ifdef __SIZEOF_INT128__
typedef __int128 wide;
#else
typedef int64_t wide;
#endif

static uint64_t seed = 88172645463325252;

static uint64_t random_word(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

/* Of all lengths alike. */
static uint64_t random_length(unsigned most)
{
	return random_word() >> (64 - 1 - random_word() % most);
}

#ifdef __SIZEOF_INT128__
Test(soft_period, products_and_shares)
{
	__extension__ typedef unsigned __int128 wider;
	uint64_t a, b, low, nsec, count, freq, got;
	wider exact;

	for (unsigned i = 0; i < 1000000; i++) {
		a = random_length(64);
		b = random_length(64);
		exact = (wider)a * b;
		got = product(a, b, &low);
		cr_assert(got == (uint64_t)(exact >> 64) && low == (uint64_t)exact, "%u", i);
		nsec = random_length(31);
		count = random_length(33) + 1;
		freq = random_length(31) + 1;
		got = share_of(nsec, count, freq);
		if ((wider)nsec * freq >= (wider)count * SECOND) {
			cr_assert_eq(got, 0, "%u", i);
			continue;
		}
		exact = ((wider)nsec * freq << 64) / ((wider)count * SECOND);
		cr_assert(got == (exact ? (uint64_t)exact : 1), "%u", i);
	}
	/* Shortened, and never 0 for less than all. */
	cr_assert_eq(share_of(UINT64_C(1) << 50, UINT64_C(1) << 50, 500000000), UINT64_C(1) << 63);
	cr_assert_eq(share_of(1, UINT64_MAX, 1), 1);
	cr_assert_eq(share_of(UINT64_MAX, 1, 1), 0);
}
#endif

/* `rate` occurrences a second, for so long, of weight nr; returns the samples. */
static uint64_t run_rate(uint64_t rate, uint64_t nr, uint64_t ns)
{
	uint64_t begin = now, before = samples;

	for (uint64_t i = 0; now - begin < ns; i++) {
		occur(nr);
		now = begin + (uint64_t)((double)(i + 1) * 1e9 / (double)rate);
	}
	return samples - before;
}

/* Within 20 %, and one; no more than there are occurrences. */
static void check_rate(uint64_t got, uint64_t freq, uint64_t rate, uint64_t ns, uint64_t before)
{
	double wanted = (double)(freq < rate ? freq : rate) * (double)ns / 1e9;

	cr_assert((double)got >= 0.8 * wanted - 1 && (double)got <= 1.2 * wanted + 1,
		  "%u Hz of %u a second after %u: %u of %u", (unsigned)freq, (unsigned)rate, (unsigned)before,
		  (unsigned)got, (unsigned)wanted);
}

static const uint64_t rates[] = {10, 99, 250, 1000, 1500, 10000, 123456, 1000000, 10000000};
static const uint64_t freqs[] = {10, 99, 1000, 4000, 10000};

enum {
	/* Without threads or handlers there: the highest rates tell this sanitizer nothing, and take it long. */
	RATES = sizeof(rates) / sizeof(rates[0]) - (IS_THREAD_SANITIZED ? 2 : 0),
	FREQS = sizeof(freqs) / sizeof(freqs[0]),
};

/* From the second tick on, or the second window where half a sample's time is longer. */
static uint64_t settling(uint64_t freq, uint64_t rate)
{
	uint64_t window = 500000000 / freq > TICK ? 500000000 / freq : TICK;

	return 2 * (window + 1000000000 / rate);
}

static uint64_t long_enough(uint64_t freq, uint64_t rate)
{
	return UINT64_C(20000000000) / (freq < rate ? freq : rate);
}

/* Whatever the rate. */
Test(soft_period, frequency_is_reached)
{
	unsigned i, k;
	uint64_t ns, got;

	perfring__soft_max_rate = UINT32_MAX;
	for (i = 0; i < RATES; i++)
		for (k = 0; k < FREQS; k++) {
			now = 1000 * (uint64_t)TICK;
			open_event(freqs[k], true, 0);
			occur(1);
			cr_assert_eq(samples, 1, "the first is sampled");
			got = run_rate(rates[i], 1, settling(freqs[k], rates[i]));
			cr_assert_leq(got, 2 + freqs[k] * settling(freqs[k], rates[i]) / 500000000,
				      "%u: it does not begin with a flood", (unsigned)got);
			ns = long_enough(freqs[k], rates[i]);
			check_rate(run_rate(rates[i], 1, ns), freqs[k], rates[i], ns, 0);
			occur(1);
			cr_assert_eq(sampled + (instance.count - instance.freq_taken), instance.count);
		}
}

/* And its changes: from each to each, up and down. */
Test(soft_period, frequency_follows_the_rate)
{
	unsigned i, j, k;
	uint64_t ns;

	perfring__soft_max_rate = UINT32_MAX;
	for (k = 1; k < FREQS; k++)
		for (i = 0; i < RATES; i++)
			for (j = 0; j < RATES; j++) {
				now = 1000 * (uint64_t)TICK;
				open_event(freqs[k], true, 0);
				run_rate(rates[i], 1, settling(freqs[k], rates[i]));
				run_rate(rates[j], 1, settling(freqs[k], rates[j]));
				ns = long_enough(freqs[k], rates[j]) / 2;
				check_rate(run_rate(rates[j], 1, ns), freqs[k], rates[j], ns, rates[i]);
				cr_assert_eq(sampled + (instance.count - instance.freq_taken), instance.count);
			}
}

/* Weights count as so many; an occurrence that is worth several samples gives them, and all of its weight is in them. */
Test(soft_period, frequency_of_weights)
{
	static const uint64_t weights[] = {3, 1000, 1000000, UINT64_C(1) << 40};
	unsigned i;
	uint64_t got;

	perfring__soft_max_rate = UINT32_MAX;
	for (i = 0; i < 4; i++) {
		now = 1000 * (uint64_t)TICK;
		open_event(1000, true, 0);
		run_rate(500, weights[i], 5 * TICK); /* two are due each time */
		got = run_rate(500, weights[i], 100000000);
		cr_assert(got >= 80 && got <= 120, "%u", (unsigned)got);
		cr_assert_eq(sampled + (instance.count - instance.freq_taken), instance.count);
	}
}

Test(soft_period, clock_period)
{
	open_event(1000000, false, 0);
	event.is_clock = true;
	perfring__soft_period_start(&instance);
	cr_assert_eq(instance.left, 0, "soft/timer.c's");
	perfring__soft_tick_of_clock(&instance, 1, NULL);
	cr_assert_eq(samples, 1);
	cr_assert_eq(log_period[0], 1000000);
	perfring__soft_period_set(&instance, 20000);
	perfring__soft_tick_of_clock(&instance, 1, NULL);
	cr_assert_eq(samples, 2);
	cr_assert_eq(log_period[1], 20000);
	cr_assert_eq(instance.left, 0);
	cr_assert_eq(instance.count, 0, "not counted here");
}

/* ---- event_limit ---- */

Test(soft_period, refresh_five_of_twenty)
{
	open_event(1, false, 0);
	event.limit = 5;
	occur_often(1, 20);
	cr_assert_str_eq(log_text, "SSSSXS");
	cr_assert_eq(instance.count, 5);
	cr_assert_eq(event.limit, SOFT_LIMIT_SPENT);
	cr_assert_eq(event.on, 0);
	event.limit = 0; /* REFRESH 0 just enables */
	event.on = 1;
	occur_often(1, 20);
	cr_assert_eq(samples, 25);
}

Test(soft_period, limit_ends_the_overflows_of_one_occurrence)
{
	open_event(2, false, 0);
	event.limit = 5;
	occur(100);
	cr_assert_str_eq(log_text, "SSSSXS");
	cr_assert_eq(instance.count, 100);
	cr_assert_eq(left_now(), -2);

	perfring__soft_max_rate = 1000; /* the fourth would be throttled */
	open_event(2, false, 0);
	event.limit = 3;
	occur(100);
	cr_assert_str_eq(log_text, "SSXS");

	open_event(7, false, 1 << 8);
	event.limit = 2;
	occur_often(1, 20);
	cr_assert_str_eq(log_text, "SXS");
	cr_assert_eq(instance.count, 2);
}

static void refresh_and_enable(void)
{
	PERFRING_ADD(&event.limit, 3);
	PERFRING_AND(&event.limit, ~SOFT_LIMIT_SPENT);
	event.on = 1;
}

/* A refresh that meets the last overflow: its shares stay, the event is off (docs/abi.md 9.5: the kernel's is, too). */
Test(soft_period, refresh_in_the_middle)
{
	unsigned at;

	for (at = 1; at < 100; at++) {
		open_event(1, false, 0);
		event.limit = 1;
		visits = strikes = 0;
		strike_at[0] = at;
		strike = refresh_and_enable;
		occur(1);
		strike = NULL;
		if (!strikes)
			break;
		cr_assert_eq(samples, 1, "%s", struck_at);
		cr_assert_eq(event.limit, 3, "%s", struck_at);
	}
	cr_assert_gt(at, 8);
	strike_at[0] = 0;
}

static void turn_off(void)
{
	event.on = 0;
}

/* Somebody disables it: what was counted before is sampled, what comes behind is neither. */
Test(soft_period, what_was_counted_is_sampled)
{
	unsigned at, limit;

	for (limit = 0; limit < 20; limit += 10) {
		for (at = 1; at < 100; at++) {
			open_event(2, false, 0);
			event.limit = limit;
			visits = strikes = 0;
			strike_at[0] = at;
			strike = turn_off;
			occur(6);
			strike = NULL;
			occur(6 * !event.on);
			if (!strikes)
				break;
			cr_assert_eq(samples, instance.count / 2, "%s: %s", struck_at, log_text);
		}
		cr_assert_gt(at, 12);
	}
	for (at = 1; at < 100; at++) {
		open_event(1, false, 1 << 8);
		visits = strikes = 0;
		strike_at[0] = at;
		strike = turn_off;
		occur(6);
		strike = NULL;
		if (!strikes)
			break;
		cr_assert_eq(sampled, instance.count, "%s: %s", struck_at, log_text);
	}
	cr_assert_gt(at, 2);
	strike_at[0] = 0;
}

/* ---- throttling ---- */

Test(soft_period, throttle_per_tick)
{
	unsigned i;

	now = 1000 * (uint64_t)TICK;
	open_event(1, false, 0); /* 100000 a second at 250 ticks: 400 */
	occur(1000);
	cr_assert_eq(samples, 400);
	cr_assert_eq(log_size, 401);
	cr_assert_eq(log_text[399], 'T', "before the sample that hit it");
	cr_assert_eq(instance.count, 1000);
	cr_assert_eq(left_now(), -1, "what is not sampled is used up all the same");
	occur(1000);
	occur(1);
	cr_assert_eq(log_size, 401);
	cr_assert_eq(instance.count, 2001, "counting continues");

	perfring__soft_max_rate = 1000; /* 4 */
	for (i = 0; i < 3; i++) {
		open_event(10, false, 0);
		now += TICK;
		occur(100);
		cr_assert_str_eq(log_text, "SSSTS");
		now += TICK - 1 - now % TICK; /* its end */
		occur(100);
		cr_assert_str_eq(log_text, "SSSTS");
		now++;
		occur(0); /* any occurrence does */
		cr_assert_str_eq(log_text, "SSSTSU");
		occur(100);
		cr_assert_str_eq(log_text, "SSSTSUSSSTS");
		cr_assert_eq(instance.count, 300);
	}
	perfring__soft_max_rate = 1001; /* 5 */
	open_event(10, false, 0);
	occur(100);
	cr_assert_str_eq(log_text, "SSSSTS");
	perfring__soft_max_rate = 1; /* 1: the first of an occurrence is never tested */
	open_event(10, false, 0);
	occur(100);
	cr_assert_str_eq(log_text, "STS");
}

Test(soft_period, one_by_one_is_never_throttled)
{
	now = 1000 * (uint64_t)TICK;
	perfring__soft_max_rate = 1000;
	open_event(1, false, 0);
	occur_often(1, 1000);
	open_event(7, false, 0);
	occur_often(1, 7000);
	cr_assert_eq(samples, 1000);
	cr_assert_null(strchr(log_text, 'T'));
	/* But they are counted: the second overflow of an occurrence finds the tick full. */
	occur(14);
	cr_assert_str_eq(log_text + 1000, "STS");
	open_event(7, false, 0);
	occur_often(7, 2);
	occur(70);
	cr_assert_str_eq(log_text, "SSSTS", "2 and 2");
	/* A new tick begins at 1. */
	open_event(7, false, 0);
	occur_often(7, 3);
	now += TICK;
	occur(70);
	cr_assert_str_eq(log_text, "SSSSSSTS", "3, then 4");
}

Test(soft_period, clock_throttle)
{
	unsigned i;

	now = 1000 * (uint64_t)TICK;
	perfring__soft_max_rate = 1000;
	open_event(50000, false, 0);
	event.is_clock = true;
	for (i = 0; i < 80; i++, now += 50000) /* 80 in a tick */
		perfring__soft_tick_of_clock(&instance, 1, NULL);
	cr_assert_str_eq(log_text, "SSSTS"); /* docs/abi.md 9.6: verified so */
	for (i = 0; i < 160; i++, now += 50000)
		perfring__soft_tick_of_clock(&instance, 1, NULL);
	cr_assert_str_eq(log_text, "SSSTSUSSSTSUSSSTS");
	cr_assert_eq(sampled, 12 * 50000);
}

/* The cheap clock where its steps are no longer than a tick. */
Test(soft_period, clock_of_the_tick)
{
	open_event(1, false, 0);
	occur(1);
	cr_assert_eq(looks_fine, 0);
	cr_assert_eq(looks_coarse, 1);
	step_told = TICK + 1;
	open_event(1, false, 0);
	occur(1);
	cr_assert_eq(looks_fine, 1);
	step_told = TICK;
	set_hz(1000);
	open_event(1, false, 0);
	occur(1);
	cr_assert_eq(looks_fine, 2);
	cr_assert_eq(looks_coarse, 1);
	open_event(1, false, 1 << 8); /* nothing to throttle: no clock at all */
	occur(1);
	cr_assert_eq(looks_fine + looks_coarse, 3);
}

/* The time that a sample tells is good enough for its tick. */
Test(soft_period, a_sample_tells_the_tick)
{
	now = 1000 * (uint64_t)TICK;
	sample_step = 1;
	perfring__soft_max_rate = 1000;
	open_event(1, false, 0);
	occur_often(1, 3);
	cr_assert_eq(looks_fine + looks_coarse, 0);
	cr_assert_eq(instance.throttle, UINT64_C(1000) << 32 | 3);
	now += TICK;
	occur(1);
	cr_assert_eq(instance.throttle, UINT64_C(1001) << 32 | 1);
	event.is_monotonic = false; /* another clock's */
	open_event(1, false, 0);
	event.is_monotonic = false;
	occur(1);
	cr_assert_eq(looks_coarse, 1);
	cr_assert_eq(instance.throttle, UINT64_C(1001) << 32 | 1);

	/* The second overflow of each looks at the cheap clock, which lags a tick behind what the first has told. */
	lag = TICK;
	open_event(1, false, 0);
	occur_often(2, 5);
	cr_assert_str_eq(log_text, "SSSTS");
	now += TICK - 2;
	occur(2);
	cr_assert_str_eq(log_text, "SSSTS", "the clock tells the tick before");
	now += TICK;
	occur(2);
	cr_assert_str_eq(log_text, "SSSTSUSS");
	lag = sample_step = 0;
}

static struct perfring_soft_event sibling;
static struct soft_instance siblings;

static void open_group(uint64_t period)
{
	open_event(period, false, 0);
	memset(&sibling, 0, sizeof(sibling));
	memset(&siblings, 0, sizeof(siblings));
	sibling = event;
	event.next = &sibling;
	sibling.instances[0] = &siblings;
	siblings.event = &sibling;
	siblings.thread = &thread_of_all;
	perfring__soft_period_start(&siblings);
}

static void occur_to_sibling(uint64_t nr)
{
	perfring__soft_occur(&siblings, nr, NULL, NULL, NULL);
}

/* docs/abi.md 9.6, since 6.16: one event has too many, and the group is throttled. */
Test(soft_period, a_group_is_throttled_as_one)
{
	unsigned way;

	now = 1000 * (uint64_t)TICK;
	perfring__soft_max_rate = 1000; /* 4, for each event */
	for (way = 0; way < 2; way++) {
		now += TICK;
		open_group(1);
		occur(3);
		occur_to_sibling(3);
		cr_assert_str_eq(log_text, "SSSSSS");
		(way ? occur_to_sibling : occur)(2);
		cr_assert_str_eq(log_text, "SSSSSSSTS");
		occur(10);
		occur_to_sibling(10);
		occur_to_sibling(1);
		cr_assert_str_eq(log_text, "SSSSSSSTS", "both");
		cr_assert_eq(instance.count + siblings.count, 3 + 3 + 2 + 10 + 10 + 1);
		now += TICK;
		(way ? occur : occur_to_sibling)(1);
		cr_assert_str_eq(log_text, "SSSSSSSTSUS");
		(way ? occur_to_sibling : occur)(3);
		cr_assert_str_eq(log_text, "SSSSSSSTSUSSSS");
	}
	/* What a sibling samples by each occurrence stays away too; its period's change ends it for all, at once. */
	open_group(1);
	sibling.attr.sample_type = 1 << 8;
	now += TICK;
	occur_to_sibling(7);
	occur(10);
	occur_to_sibling(7);
	cr_assert_str_eq(log_text, "SSSSTS");
	perfring__soft_period_set(&siblings, 5);
	occur_to_sibling(7);
	cr_assert_str_eq(log_text, "SSSSTSUS");
	occur(10);
	cr_assert_str_eq(log_text, "SSSSTSUSSSSTS", "counted from 0 again");
	/* Alone again, when the leader has gone. */
	sibling.leader = &sibling;
	sibling.attr.sample_type = 0;
	perfring__soft_period_start(&siblings);
	occur_to_sibling(1);
	cr_assert_str_eq(log_text, "SSSSTSUSSSSTSS");
}

/* ---- against a model: 9.2 read word by word, in numbers that cannot wrap ---- */

struct model {
	wide p, l, v;
	wide count, samples, sampled;
	bool has_period;
};

static void model_occur(struct model *model, wide nr)
{
	wide period, n;

	model->count += nr;
	if (model->has_period) {
		model->samples++;
		model->sampled += nr;
		return;
	}
	if (nr == 1 && model->p == 1) {
		model->samples++;
		model->sampled += model->l;
		return;
	}
	model->v += nr;
	if (model->v < 0)
		return;
	period = model->l;
	model->l = model->p;
	n = (period + model->v) / period;
	model->v -= n * period;
	model->samples += n;
	model->sampled += n * period;
}

Test(soft_period, model)
{
	unsigned round, i, most;
	struct model model;
	uint64_t nr, period;

	perfring__soft_max_rate = UINT32_MAX;
	set_hz(1);
	for (round = 0; round < trials(20000); round++) {
		most = 1 + (unsigned)(random_word() % (sizeof(wide) > 8 ? 62 : 58));
		period = random_length(most) + 1;
		memset(&model, 0, sizeof(model));
		model.has_period = random_word() % 16 == 0;
		model.p = model.l = period;
		model.v = -model.p;
		open_event(period, false, model.has_period ? 1 << 8 : 0);
		for (i = 0; i < 50; i++) {
			if (random_word() % 16 == 0) {
				period = random_length(most) + 1;
				perfring__soft_period_set(&instance, period);
				model.p = period;
				model.v = 0;
			}
			if (random_word() % 16 == 0) { /* schedule-in */
				perfring__soft_period_resume(&instance);
				model.l = model.p;
				if (model.v >= 0)
					model.v -= (model.l + model.v) / model.l * model.l;
			}
			/* Not more than 8 or so overflows: each is a call. */
			nr = random_length(most + 1) % ((uint64_t)(model.l < model.p ? model.l : model.p) * 8 + 1);
			if (nr >> 62)
				continue;
			occur(nr);
			model_occur(&model, nr);
			cr_assert(instance.count == (uint64_t)model.count && samples == (uint64_t)model.samples &&
					  sampled == (uint64_t)model.sampled && left_now() == (int64_t)model.v &&
					  instance.last_period == (uint64_t)model.l,
				  "round %u, occurrence %u", round, i);
		}
	}
}

/* ---- handlers at every step ---- */

static uint64_t raised; /* by main and handlers */
static uint64_t strike_nr;

static unsigned strike_times = 1;
static uint64_t strike_time;        /* passes before that */
static uint64_t strike_period;      /* set before that; 0: none */
static struct soft_instance behind; /* as the last strike left it */
static void raise_again(void)
{
	unsigned i;

	for (i = 0; i < strike_times; i++) {
		now += strike_time;
		if (strike_period)
			perfring__soft_period_set(&instance, strike_period);
		raised += strike_nr;
		occur(strike_nr);
	}
	behind = instance;
}

/* Runs `run` with a strike at each place that it visits, and with a second at each place behind or inside that; each
 * time `check` must find all well. */
static void strike_everywhere(void (*run)(void), void (*check)(void))
{
	unsigned first, second;

	for (first = 1;; first++) {
		for (second = first + 1;; second++) {
			strike_at[0] = first;
			strike_at[1] = second;
			visits = strikes = 0;
			raised = 0;
			memset(&behind, 0, sizeof(behind));
			strike = raise_again;
			run();
			strike = NULL;
			check();
			if (strikes < 2)
				break;
		}
		if (!strikes)
			break;
	}
	strike_at[0] = strike_at[1] = 0;
	cr_assert_gt(first, 5, "there are places");
}

static void raise_one(uint64_t nr)
{
	raised += nr;
	occur(nr);
}

static void run_periods(void)
{
	open_event(3, false, 0);
	raise_one(1);
	raise_one(2);
	raise_one(8);
	raise_one(1);
	raise_one(6);
}

/* Samples by their periods, and what has gone since. */
static void check_sums(uint64_t first_period)
{
	cr_assert_eq(instance.count, raised);
	cr_assert_lt(left_now(), 0);
	cr_assert_eq(sampled + first_period + instance.left, raised, "%s: %d + %d of %d", struck_at, (int)sampled,
		     (int)(first_period + instance.left), (int)raised);
}

static void check_periods(void)
{
	check_sums(3);
	cr_assert_eq(samples, raised / 3);
	cr_assert_eq(left_now(), (int64_t)(raised % 3) - 3);
}

static void run_frequency(void)
{
	unsigned i;

	now = 1000 * (uint64_t)TICK;
	open_event(1000, true, 0);
	for (i = 0; i < 6; i++) {
		raise_one(i);
		now += i % 3 ? TICK / 2 : 1000;
	}
}

static void check_frequency(void)
{
	cr_assert_eq(instance.count, raised);
	cr_assert_leq(instance.freq_taken, instance.count);
	cr_assert_eq(sampled, instance.freq_taken, "%s: %d of %d", struck_at, (int)sampled, (int)instance.freq_taken);
	cr_assert_leq(instance.freq_count, instance.count);
	cr_assert_geq(instance.freq_stamp, behind.freq_stamp, "%s", struck_at);
}

Test(soft_period, struck_periods)
{
	perfring__soft_max_rate = UINT32_MAX;
	for (strike_nr = 0; strike_nr < 9; strike_nr++)
		strike_everywhere(run_periods, check_periods);
}

/* Time goes on at each look: ticks pass anywhere. */
Test(soft_period, struck_frequency)
{
	perfring__soft_max_rate = UINT32_MAX;
	for (strike_nr = 1; strike_nr < 11; strike_nr += 9)
		for (time_step = 0; time_step < 2 * TICK; time_step += TICK / 2 + 1000)
			strike_everywhere(run_frequency, check_frequency);
	time_step = 0;
}

/* What throttling keeps back is counted and used up. */
static void check_sums_throttled(void)
{
	cr_assert_eq(instance.count, raised);
	cr_assert_lt(left_now(), 0);
	cr_assert_eq(left_now(), (int64_t)(raised % 2) - 2);
}

static void run_throttled(void)
{
	now = 1000 * (uint64_t)TICK;
	open_event(2, false, 0);
	raise_one(20);
	raise_one(6);
}

static void check_throttled(void)
{
	check_sums_throttled();
	/* Four, and those of each handler's occurrence that nothing tests. */
	cr_assert_geq(samples, 4, "%s: %s", struck_at, log_text);
	cr_assert_leq(samples, 6, "%s: %s", struck_at, log_text);
	cr_assert_not_null(strchr(log_text, 'T'));
	cr_assert_eq(strchr(log_text, 'T'), strrchr(log_text, 'T'), "%s: %s", struck_at, log_text);
	cr_assert_null(strchr(log_text, 'U'));
}

Test(soft_period, struck_throttle)
{
	perfring__soft_max_rate = 1000;
	for (strike_nr = 1; strike_nr < 9; strike_nr++)
		strike_everywhere(run_throttled, check_throttled);
}

static void run_unthrottled(void)
{
	open_event(2, false, 0);
	now = 1000 * (uint64_t)TICK;
	instance.tick = now / TICK - 1;
	instance.throttled = instance.tick + 1;
	perfring__soft_max_rate = 5000; /* 20 */
	raise_one(4);
}

static void check_unthrottled(void)
{
	check_sums_throttled();
	cr_assert_eq(log_text[0], 'U', "%s: %s", struck_at, log_text);
	cr_assert_null(strpbrk(log_text + 1, "UT"), "%s: %s", struck_at, log_text);
	cr_assert_geq(samples, 2);
	/* Only who comes before UNTHROTTLE is written is not sampled. */
	if (strikes == 1 && strcmp(struck_at, "unthrottle_claimed") != 0 && strcmp(struck_at, "throttling") != 0 &&
	    strcmp(struck_at, "unthrottle_written") != 0)
		cr_assert_eq(samples, raised / 2, "%s: %s", struck_at, log_text);
}

Test(soft_period, struck_unthrottle)
{
	for (strike_nr = 1; strike_nr < 9; strike_nr++)
		strike_everywhere(run_unthrottled, check_unthrottled);
}

static void run_limited(void)
{
	unsigned i;

	open_event(2, false, 0);
	event.limit = 5;
	for (i = 0; i < 20 && event.on; i++)
		occur(3);
}

static void check_limited(void)
{
	cr_assert_eq(samples, 5, "%s: %s", struck_at, log_text);
	cr_assert_eq(stops, 1, "%s: %s", struck_at, log_text);
	cr_assert_eq(event.limit, SOFT_LIMIT_SPENT);
	cr_assert_eq(event.on, 0);
}

Test(soft_period, struck_limit)
{
	perfring__soft_max_rate = UINT32_MAX;
	for (strike_nr = 1; strike_nr < 13; strike_nr++)
		strike_everywhere(run_limited, check_limited);
}

static void run_requests(void)
{
	open_event(100, false, 0);
	raise_one(50);
	perfring__soft_period_set(&instance, 10);
	raise_one(1);
	raise_one(99);
	raise_one(7);
}

static void check_requests(void)
{
	uint64_t used = 100 + instance.left; /* of V, behind what was sampled */

	cr_assert_eq(instance.count, raised);
	cr_assert_lt(left_now(), 0);
	/* V := 0 gave what was left of the old period, no more, and took nothing. */
	cr_assert_geq(sampled + used, raised, "%s", struck_at);
	cr_assert_leq(sampled + used, raised + 100, "%s", struck_at);
	cr_assert_eq(instance.last_period, 10);
}

Test(soft_period, struck_requests)
{
	perfring__soft_max_rate = UINT32_MAX;
	for (strike_nr = 0; strike_nr < 200; strike_nr += 13)
		strike_everywhere(run_requests, check_requests);
}

static void run_kept(void)
{
	open_event(1, false, 0);
	raise_one(3);
	perfring__soft_period_set(&instance, 1);
	raise_one(1);
	perfring__soft_period_set(&instance, 10);
	perfring__soft_period_resume(&instance);
	raise_one(7);
	raise_one(7);
}

/* Each of the two set_periods gives at most the period that was under way: 1, and 10 to a handler that comes before V is loaded. */
static void check_kept(void)
{
	uint64_t used = 10 + instance.left;

	cr_assert_eq(instance.count, raised);
	cr_assert_lt(left_now(), 0);
	cr_assert_geq(sampled + used, raised, "%s: %d of %d", struck_at, (int)(sampled + used), (int)raised);
	cr_assert_leq(sampled + used, raised + 1 + 10, "%s: %d of %d", struck_at, (int)(sampled + used), (int)raised);
	cr_assert_eq(instance.last_period, 10);
}

/* A 0 that a request left in V is never taken for an occurrence's, nor an occurrence's for a request's. */
Test(soft_period, struck_kept)
{
	perfring__soft_max_rate = UINT32_MAX;
	for (strike_nr = 0; strike_nr < 30; strike_nr++)
		strike_everywhere(run_kept, check_kept);
}

static void run_request_below(void)
{
	open_event(10, false, 0);
	raise_one(100);
}

/* A new period that a handler finds while V of the occurrence below it waits to be taken: that is not thrown away. */
static void check_request_below(void)
{
	uint64_t used = 10 + instance.left;

	cr_assert_eq(instance.count, raised);
	cr_assert_geq(sampled + used, raised, "%s", struck_at);
	cr_assert_leq(sampled + used, raised + 10 * strikes, "%s", struck_at);
}

Test(soft_period, struck_request_below)
{
	perfring__soft_max_rate = UINT32_MAX;
	strike_period = 10;
	for (strike_nr = 0; strike_nr < 30; strike_nr++)
		strike_everywhere(run_request_below, check_request_below);
	strike_period = 0;
}

static void run_request_throttle(void)
{
	now = 1000 * (uint64_t)TICK;
	open_event(2, false, 0);
	perfring__soft_period_set(&instance, 2);
	raise_one(1);
}

/* One request: what is throttled after it stays so in this tick. */
static void check_request_throttle(void)
{
	cr_assert_eq(instance.count, raised);
	cr_assert_null(strchr(log_text, 'U'), "%s: %s", struck_at, log_text);
}

Test(soft_period, struck_request_throttle)
{
	perfring__soft_max_rate = 1000;
	strike_nr = 100;
	strike_at[0] = 0;
	/* After requests are taken, an unthrottling at once is due to them. */
	for (strike_at[0] = 1; strike_at[0] < 30; strike_at[0]++) {
		visits = strikes = 0;
		raised = 0;
		strike = raise_again;
		run_request_throttle();
		strike = NULL;
		cr_assert_eq(instance.count, raised);
		if (strikes && strcmp(struck_at, "requests_taken") != 0 && strcmp(struck_at, "requests_looked") != 0 &&
		    strcmp(struck_at, "requests_moved") != 0)
			check_request_throttle();
	}
	strike_at[0] = 0;
}

static void check_unthrottled_late(void)
{
	cr_assert_eq(instance.count, raised);
	if (strikes == 1 && (!strcmp(struck_at, "unthrottle_claimed") || !strcmp(struck_at, "unthrottle_written")))
		cr_assert_eq(instance.throttled, behind.throttled, "%s: %s", struck_at, log_text);
}

/* A handler in a later tick, that throttles again: what it found and left stands. */
Test(soft_period, struck_unthrottle_late)
{
	strike_nr = 100;
	strike_time = TICK;
	strike_everywhere(run_unthrottled, check_unthrottled_late);
	strike_time = 0;
}

/* A handler of a later tick, before THROTTLE is written: whoever reads that the group is throttled reads its end behind it. */
static void check_throttle_ends(void)
{
	const char *begun = strrchr(log_text, 'T'), *ended = strrchr(log_text, 'U');

	cr_assert_eq(instance.count, raised);
	if (!instance.throttled)
		cr_assert(!begun || (ended && ended > begun), "%s: %s", struck_at, log_text);
}

Test(soft_period, struck_throttle_late)
{
	perfring__soft_max_rate = 1000;
	strike_time = TICK;
	for (strike_nr = 1; strike_nr < 30; strike_nr += 7)
		strike_everywhere(run_throttled, check_throttle_ends);
	strike_time = 0;
}

static void leader_goes(void)
{
	event.next = NULL;
	sibling.leader = &sibling;
}

/* The leader is closed under way: it is told of what was throttled. */
Test(soft_period, a_group_falls_apart)
{
	const struct soft_instance *shut;
	unsigned at;

	now = 1000 * (uint64_t)TICK;
	perfring__soft_max_rate = 1000;
	for (at = 1; at < 100; at++) {
		now += TICK;
		open_group(1);
		throttled = NULL;
		visits = strikes = 0;
		strike_at[0] = at;
		strike = leader_goes;
		occur_to_sibling(10);
		strike = NULL;
		if (!strikes)
			break;
		cr_assert_str_eq(log_text, "SSSTS", "%s", struck_at);
		shut = instance.throttled ? &instance : &siblings;
		cr_assert(shut->throttled && throttled == shut, "%s", struck_at);
	}
	cr_assert_gt(at, 12);
	strike_at[0] = 0;
}

static uint64_t tick_behind; /* the latest that a handler knew */

static void raise_late(void)
{
	now += 5 * (uint64_t)TICK;
	occur(1);
	tick_behind = instance.tick;
}

/* What a sample told before a long handler came, and the cheap clock, where ticks have become shorter than its steps. */
Test(soft_period, ticks_never_go_back)
{
	unsigned at;

	sample_step = 1;
	for (at = 1; at < 100; at++) {
		now = 1000 * (uint64_t)TICK;
		open_event(1, false, 0);
		visits = strikes = 0;
		strike_at[0] = at;
		strike = raise_late;
		occur(1);
		strike = NULL;
		if (!strikes)
			break;
		cr_assert_geq(instance.tick, tick_behind, "%s", struck_at);
	}
	cr_assert_gt(at, 5);
	strike_at[0] = 0;

	now = 1000 * (uint64_t)TICK;
	perfring__soft_max_rate = 4000; /* 4 at 1000 a second */
	open_event(1, false, 0);
	set_hz(1000);
	lag = TICK - 10;
	occur_often(4, 4);
	cr_assert_str_eq(log_text, "SSSTS");
	now += TICK / 4;
	occur(4);
	cr_assert_str_eq(log_text, "SSSTSUSSSTS");
	lag = sample_step = 0;
}

/* None of the places has been passed over. */
Test(soft_period, struck_at_all_places)
{
	static const char *const places[] = {
		"frequency_looked",   "frequency_taking", "measure_timed",   "measure_claimed", "measure_done",
		"account_looked",     "account_swaps",    "account_swapped", "unthrottle_due",  "unthrottle_claimed",
		"unthrottle_written", "limit_looked",     "limit_spent",     "limit_stopped",   "overflow_next",
		"take_begun",         "take_looked",      "take_taken",      "requests_seen",   "requests_taken",
		"requests_looked",    "occur_counts",     "occur_counted",   "occur_added",     "sampling",
		"tick_found",         "throttling",       "stopping",        "throttle_due",    "requests_moved",
	};
	unsigned i, j;

	strike_nr = 5;
	perfring__soft_max_rate = UINT32_MAX;
	strike_everywhere(run_requests, check_requests);
	strike_everywhere(run_limited, check_limited);
	strike_everywhere(run_frequency, check_frequency);
	perfring__soft_max_rate = 1000;
	strike_everywhere(run_throttled, check_throttled);
	strike_everywhere(run_unthrottled, check_unthrottled);
	for (i = 0; i < sizeof(places) / sizeof(*places); i++) {
		for (j = 0; j < 64 && met_names[j] && strcmp(met_names[j], places[i]) != 0; j++)
			;
		cr_assert(j < 64 && met_names[j], "%s", places[i]);
	}
	cr_assert(!met_names[i], "the list lacks one");
}

/* ---- a timer's handler, anywhere ---- */

static uint64_t handled, handled_sum, nested;
static uint64_t inside;

static void on_timer(int number)
{
	uint64_t nr = 1 + handled % 17;

	(void)number;
	handled++;
	handled_sum += nr;
	nested += PERFRING_LOAD(&inside);
	occur(nr);
	handler_ends();
}

/* 20,000 signals a second, on top of what main raises; while nobody runs they become one, so it may take longer. */
static void burn(double seconds)
{
	struct itimerval timer = {{0, 50}, {0, 50}}, none = {{0, 0}, {0, 0}};
	struct sigaction action = {.sa_handler = on_timer};
	struct timespec begin, at;
	uint64_t sum = 0, nr, least = (uint64_t)(seconds * 500);
	double elapsed;
	unsigned i;

	handled = handled_sum = nested = 0;
	sigaction(SIGALRM, &action, NULL);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	setitimer(ITIMER_REAL, &timer, NULL);
	do {
		for (i = 0; i < 10000; i++) {
			nr = i % 11;
			PERFRING_STORE(&inside, 1);
			occur(nr);
			PERFRING_STORE(&inside, 0);
			sum += nr;
		}
		clock_gettime(CLOCK_MONOTONIC, &at);
		elapsed = (double)(at.tv_sec - begin.tv_sec) + (double)(at.tv_nsec - begin.tv_nsec) / 1e9;
	} while (elapsed < seconds ||
		 ((PERFRING_LOAD(&handled) <= least || !PERFRING_LOAD(&nested)) && elapsed < seconds + 20));
	setitimer(ITIMER_REAL, &none, NULL);
	signal(SIGALRM, SIG_IGN);
	raised = sum + handled_sum;
	cr_assert_gt(handled, least);
	cr_assert_gt(nested, 0);
}

Test(soft_period, timer_on_top)
{
	perfring__soft_max_rate = UINT32_MAX;
	set_hz(1);
	open_event(7, false, 0);
	burn(trials(1000) / 1000.0);
	check_sums(7);
	cr_assert_eq(samples, raised / 7);
	cr_assert_eq(left_now(), (int64_t)(raised % 7) - 7);

	set_hz(250);
	time_step = 200000; /* a tick in 20 looks */
	open_event(1000, true, 0);
	burn(trials(1000) / 1000.0);
	check_frequency();

	/* Throttled and not, all the time: the records take turns. */
	perfring__soft_max_rate = 1000;
	open_event(2, false, 0);
	burn(trials(1000) / 1000.0);
	cr_assert_eq(instance.count, raised);
	cr_assert_eq(left_now(), (int64_t)(raised % 2) - 2);
}

/* ---- threads ---- */

enum {
	THREADS = 4,
};

static struct soft_instance of_thread[THREADS];
static pthread_barrier_t barrier;

static void *raise_until_off(void *argument)
{
	struct soft_instance *mine = argument;

	pthread_barrier_wait(&barrier);
	while (PERFRING_LOAD(&event.on))
		perfring__soft_occur(mine, 3, NULL, NULL, NULL);
	return NULL;
}

/* event_limit is the event's: all threads together sample so often. */
Test(soft_period, threads_share_the_limit)
{
	pthread_t threads[THREADS];
	unsigned round, i;

	perfring__soft_max_rate = UINT32_MAX;
	pthread_barrier_init(&barrier, NULL, THREADS);
	for (round = 0; round < trials(500); round++) {
		open_event(2, false, 0);
		event.limit = 1 + round % 50;
		for (i = 0; i < THREADS; i++) {
			memset(&of_thread[i], 0, sizeof(of_thread[i]));
			of_thread[i].event = &event;
			of_thread[i].thread = &thread_of_all;
			perfring__soft_period_start(&of_thread[i]);
			cr_assert_eq(pthread_create(&threads[i], NULL, raise_until_off, &of_thread[i]), 0);
		}
		for (i = 0; i < THREADS; i++)
			pthread_join(threads[i], NULL);
		cr_assert_eq(samples, 1 + round % 50, "round %u", round);
		cr_assert_eq(stops, 1);
		cr_assert_eq(event.limit, SOFT_LIMIT_SPENT);
	}
	pthread_barrier_destroy(&barrier);
}

static uint64_t done, requests_given;

static void *change_periods(void *argument)
{
	uint64_t i;

	(void)argument;
	for (i = 0; !PERFRING_LOAD_ACQUIRE(&done); i++) {
		perfring__soft_period_set(&instance, i % 2 ? 100 : 7);
		if (i % 5 == 0)
			perfring__soft_period_resume(&instance);
		if (i % 7 == 0)
			PERFRING_STORE(&instance.left, 0); /* not the way, but no harm */
		PERFRING_STORE_RELEASE(&requests_given, i + 1);
	}
	return NULL;
}

Test(soft_period, periods_change_under_way)
{
	uint64_t sum = 0, all = trials(10000000), i, requests;
	pthread_t thread;

	perfring__soft_max_rate = UINT32_MAX;
	open_event(100, false, 0);
	cr_assert_eq(pthread_create(&thread, NULL, change_periods, NULL), 0);
	for (i = 0; i < all || !PERFRING_LOAD_ACQUIRE(&requests_given); i++) {
		occur(i % 5);
		sum += i % 5;
		if (i % 1000 == 0)
			cr_assert(left_now() >= -100 && left_now() < 0 + 5, "%d", (int)left_now());
	}
	PERFRING_STORE_RELEASE(&done, 1);
	pthread_join(thread, NULL);
	requests = requests_given * 2;
	cr_assert_eq(instance.count, sum, "no count is lost");
	/* Each request gives or takes at most the period that was under way. */
	cr_assert_geq(sampled + requests * 100 + 100, sum);
	cr_assert_leq(sampled, sum + requests * 100 + 100);
	/* And afterwards all is as ever. */
	occur(0);
	occur_often(1, 200);
	samples = sampled = 0;
	i = 100 + instance.left;
	occur_often(1, 10000);
	cr_assert_eq(sampled + 100 + instance.left - i, 10000);
}
