/* period.c - an occurrence: what it counts, what overflows, what is sampled (ABI.md 9.2, 9.3, 9.5, 9.6).
 *
 * All of it runs in the instance's own thread, and in handlers that interrupt it at any instruction and come back here
 * with the same instance.  A handler runs to its end, so each step is one local read-modify-write, or a compare and
 * swap of what was read before, and between two steps the instance is whole:
 *
 *     count     only grows (RESET is event.c's)
 *     left      V < 0: so many to go.  V >= 0: somebody below us has added and not yet taken: who swaps first takes
 *               what both have added, and the other finds V < 0 and nothing to do.  What is taken is sampled with the
 *               period that it was taken by, so samples * period + progress is the sum of all nr, whoever struck where
 *     throttle  tick and overflows in one word: no handler sees the one without the other
 *
 * From outside come period, freq and orders.  Only orders moves V, by the thread itself: another CPU's plain store
 * could be undone by a read-modify-write that is not locked.  (Such a store, at any instant, would give or cost no more
 * than the period that V was working on: each swap takes V as it is.)
 */
#include <time.h>

#include "own.h"

enum {
	FIELD_PERIOD = 1 << 8, /* of sample_type */
};

#define THROTTLED UINT32_MAX
#define SECOND 1000000000u

/* ---- time ---- */

static uint64_t time_of(clockid_t clock)
{
	struct timespec time = {0};

	clock_gettime(clock, &time);
	return (uint64_t)time.tv_sec * SECOND + (uint64_t)time.tv_nsec;
}

/* Mostly the time of the last look, as the cheap clock stands still for long.  A handler between the two words of a
 * look or of a store makes them a later tick's, or a pair for a time that is over: the clock does not come back to it.
 * */
static uint32_t tick_of(struct soft_instance *instance)
{
	uint64_t now = time_of(instance->clock);
	uint32_t tick;

	if (PERFRING_LOAD(&instance->tick_time) == now) {
		PERFRING_POINT(tick_known);
		return PERFRING_LOAD(&instance->tick);
	}
	tick = (uint32_t)perfring_soft_tick(now);
	PERFRING_STORE(&instance->tick, tick);
	PERFRING_FENCE_LOCAL();
	PERFRING_POINT(tick_stored);
	PERFRING_STORE(&instance->tick_time, now);
	return tick;
}

static uint64_t ticks_in_a_second(void)
{
	return PERFRING_LOAD(&perfring_soft_hz); /* no order: just a number */
}

/* The clock of the kernel's own tick costs an eighth of the fine one, and will do where our ticks are no shorter. */
static int32_t clock_of_ticks(void)
{
	struct timespec step;

	if (clock_getres(CLOCK_MONOTONIC_COARSE, &step) < 0 || step.tv_sec ||
	    (uint64_t)step.tv_nsec * ticks_in_a_second() > SECOND)
		return CLOCK_MONOTONIC;
	return CLOCK_MONOTONIC_COARSE;
}

/* ---- frequency ---- */

static unsigned bits(uint64_t value)
{
	return value ? 64 - (unsigned)__builtin_clzll(value) : 0;
}

/* The second, if they are equally long. */
static void halve_longer(uint64_t *a, uint64_t *b)
{
	if (bits(*a) > bits(*b))
		*a >>= 1;
	else
		*b >>= 1;
}

static bool is_too_long(uint64_t a, uint64_t b)
{
	return bits(a) + bits(b) > 64;
}

/* a * b; what is halved to fit, is halved in `other` too. */
static uint64_t product(uint64_t a, uint64_t b, uint64_t *other)
{
	for (; is_too_long(a, b); *other >>= 1)
		halve_longer(&a, &b);
	return a * b;
}

uint64_t perfring_soft_adjusted(uint64_t period, uint64_t nsec, uint64_t count, uint64_t freq)
{
	uint64_t second = SECOND, above, below, target, step;

	while (is_too_long(count, second) && is_too_long(nsec, freq)) {
		halve_longer(&nsec, &freq);
		halve_longer(&second, &count);
	}
	if (is_too_long(count, second)) {
		below = nsec * freq;
		above = product(count, second, &below);
	} else {
		above = count * second;
		below = product(nsec, freq, &above);
	}
	target = below ? above / below : above;

	/* An eighth of the way, rounded away from where it stands. */
	if (target >= period) {
		step = target - period;
		period += step / 8 + (step % 8 != 0);
	} else {
		step = period - target;
		period -= step / 8 + (step % 8 != 0);
	}
	if (period > INT64_MAX) /* V is signed */
		period = INT64_MAX;
	return period ? period : 1;
}

/* The V := 0 that 9.3 has for V > 8 P is left out: V is above 0 only between an occurrence's add and its take, so it
 * could only be a handler that throws away what the occurrence below it has not sampled yet. */
static void adjust(struct soft_instance *instance, uint64_t nsec, uint64_t count)
{
	uint64_t period = PERFRING_LOAD(&instance->period);
	uint64_t adjusted;

	adjusted = perfring_soft_adjusted(period, nsec, count, PERFRING_LOAD(&instance->freq));
	PERFRING_POINT(adjust_computed);
	(void)PERFRING_SWAP_LOCAL(&instance->period, period, adjusted); /* fails: a handler's is newer */
}

/* The tick that the kernel would have had since the last occurrence.  What was counted since the last adjustment lies
 * in that adjustment's own tick, as the first occurrence in any other comes here: it is one tick's count, however many
 * have passed, and for those without any the kernel does nothing. */
static void adjust_by_tick(struct soft_instance *instance)
{
	uint64_t old = PERFRING_LOAD(&instance->freq_tick);
	uint64_t tick = tick_of(instance);
	uint64_t before, count;

	PERFRING_POINT(tick_looked);
	if (tick == old || !PERFRING_SWAP_LOCAL(&instance->freq_tick, old, tick)) /* fails: a handler does it */
		return;
	PERFRING_POINT(tick_claimed);
	before = PERFRING_LOAD(&instance->freq_count); /* in this order: a handler makes the difference grow */
	count = PERFRING_LOAD(&instance->count);
	PERFRING_POINT(tick_counted);
	/* Fails: a handler, a tick later yet, has taken this count with its own.  Below 0: RESET. */
	if (PERFRING_SWAP_LOCAL(&instance->freq_count, before, count) && (int64_t)(count - before) > 0)
		adjust(instance, SECOND / ticks_in_a_second(), count - before);
}

static void adjust_by_overflow(struct soft_instance *instance)
{
	uint64_t stamp = PERFRING_LOAD(&instance->freq_stamp);
	uint64_t now = time_of(CLOCK_MONOTONIC);
	uint64_t nsec = now - stamp;

	PERFRING_POINT(overflow_timed);
	/* Fails: a handler's overflow came between these two. */
	if (PERFRING_SWAP_LOCAL(&instance->freq_stamp, stamp, now) && nsec && nsec < 2 * (SECOND / ticks_in_a_second()))
		adjust(instance, nsec, PERFRING_LOAD(&instance->last_period));
}

/* ---- throttling ---- */

enum verdict {
	GO,
	HIT,  /* this one is written, the next is not */
	SHUT, /* throttled already */
};

static uint64_t most_in_a_tick(void)
{
	uint64_t hz = ticks_in_a_second();

	return (PERFRING_LOAD(&perfring_soft_max_rate) + hz - 1) / hz;
}

static enum verdict account(struct soft_instance *instance, bool tested)
{
	uint64_t old, new, tick;
	enum verdict verdict;

	do {
		verdict = GO;
		old = PERFRING_LOAD(&instance->throttle);
		if ((uint32_t)old == THROTTLED) /* if in an earlier tick, the next occurrence finds that */
			return SHUT;
		PERFRING_POINT(account_looked);
		tick = tick_of(instance); /* behind the look: nobody whose swap is ours to follow knows a later one */
		new = old >> 32 == tick ? old + ((uint32_t)old < THROTTLED - 1) : tick << 32 | 1;
		if (tested && (new &UINT32_MAX) >= most_in_a_tick()) {
			new |= THROTTLED;
			verdict = HIT;
		}
		PERFRING_POINT(account_swaps);
	} while (!PERFRING_SWAP_LOCAL(&instance->throttle, old, new));
	PERFRING_POINT(account_swapped);
	return verdict;
}

/* In a later tick, or at once.  First it becomes throttled in this tick: until UNTHROTTLE is written, no handler's
 * sample lies before it, and no handler writes another.  If we never come back (longjmp), the next tick does it again.
 * */
static void unthrottle(struct soft_instance *instance, bool at_once)
{
	uint64_t old = PERFRING_LOAD(&instance->throttle);
	uint64_t tick;

	if (PERFRING_LIKELY((uint32_t)old != THROTTLED))
		return;
	tick = tick_of(instance);
	if (old >> 32 == tick && !at_once)
		return;
	PERFRING_POINT(unthrottle_due);
	if (!PERFRING_SWAP_LOCAL(&instance->throttle, old, tick << 32 | THROTTLED)) /* a handler has done it */
		return;
	PERFRING_POINT(unthrottle_claimed);
	perfring_soft_put_throttle(instance, true);
	PERFRING_POINT(unthrottle_written);
	/* Fails: a handler in a later tick. */
	(void)PERFRING_SWAP_LOCAL(&instance->throttle, tick << 32 | THROTTLED, tick << 32);
}

/* ---- event_limit ---- */

/* One overflow's share of the limit, which all threads and handlers take from.  SPENT keeps them out from the last
 * share until the event is off: only then does 0 mean "no limit" again. */
static bool take_limit(struct perfring_soft_event *event, bool *last)
{
	uint32_t limit;

	*last = false;
	limit = PERFRING_LOAD_ORDERED(&event->limit); /* partner: sample's PERFRING_AND, behind the event's end */
	do {
		if (limit & SOFT_LIMIT_SPENT)
			return false;
		if (!limit) /* PROCESS has none: what was counted before somebody disabled it is sampled */
			return event->scope == PERFRING_SOFT_PROCESS || perfring_soft_is_active(event);
		PERFRING_POINT(limit_looked);
	} while (!PERFRING_SWAP(&event->limit, &limit, limit > 1 ? limit - 1 : SOFT_LIMIT_SPENT));
	*last = limit == 1;
	return true;
}

/* ---- overflows ---- */

/* Returns whether there may be more. */
static bool sample(struct soft_instance *instance, uint64_t period, const struct perfring_soft_site *site,
		   const void *frame, const void *caller)
{
	struct perfring_soft_event *event = instance->event;
	bool last;

	if (!take_limit(event, &last))
		return false;
	if (last) {
		PERFRING_POINT(limit_spent);
		perfring_soft_event_stop(event);
		PERFRING_POINT(limit_stopped);
		PERFRING_AND(&event->limit, ~SOFT_LIMIT_SPENT); /* what a refresh has added meanwhile stays */
	}
	(void)perfring_soft_put_sample(instance, period, site, frame, caller); /* refusals are counted there */
	return !last;
}

/* What throttling keeps back has been taken out of V, and is counted but not sampled. */
static void overflow(struct soft_instance *instance, uint64_t n, uint64_t period, bool tested,
		     const struct perfring_soft_site *site, const void *frame, const void *caller)
{
	enum verdict verdict;

	for (; n; n--, tested = true) {
		verdict = account(instance, tested);
		if (verdict == SHUT)
			return;
		if (verdict == HIT) /* before the sample that hit it: so the kernel's lies */
			perfring_soft_put_throttle(instance, false);
		if (PERFRING_LOAD(&instance->freq))
			adjust_by_overflow(instance);
		PERFRING_POINT(overflow_next);
		if (!sample(instance, period, site, frame, caller) || verdict == HIT)
			return;
	}
}

/* set_period of 9.2: how many periods of what length V holds. */
static uint64_t take_overflows(struct soft_instance *instance, uint64_t *period)
{
	uint64_t left, n;

	/* A handler here has done the same with V before us, by periods of its own. */
	*period = PERFRING_LOAD(&instance->last_period);
	PERFRING_POINT(take_begun);
	PERFRING_STORE(&instance->last_period, PERFRING_LOAD(&instance->period));
	do {
		left = PERFRING_LOAD(&instance->left);
		if ((int64_t)left < 0)
			return 0;
		n = left < *period ? 1 : 1 + left / *period; /* nearly always without a division */
		PERFRING_POINT(take_looked);
	} while (!PERFRING_SWAP_LOCAL(&instance->left, left, left - n * *period));
	PERFRING_POINT(take_taken);
	return n;
}

/* ---- orders from outside ---- */

enum {
	ORDER_LAST = 1, /* L := P */
	ORDER_ZERO = 2, /* V := 0 */
	ORDER_FULL = 4, /* V := -P */
};

void perfring_soft_period_start(struct soft_instance *instance)
{
	const struct perfring_soft_event *event = instance->event;
	uint64_t period = event->attr.freq ? 1 : event->attr.sample_period;

	PERFRING_STORE(&instance->freq, event->attr.freq ? event->attr.sample_freq : 0);
	PERFRING_STORE(&instance->period, period);
	PERFRING_STORE(&instance->last_period, period);
	PERFRING_STORE(&instance->left, event->is_clock ? 0 : -period); /* set_period with V = P gives 2, and -P */
	PERFRING_STORE(&instance->tick_time, 0);
	PERFRING_STORE(&instance->throttle, 0);
	PERFRING_STORE(&instance->orders, 0);
	PERFRING_STORE(&instance->freq_stamp, 0);
	PERFRING_STORE(&instance->freq_tick, 0);
	PERFRING_STORE(&instance->freq_count, PERFRING_LOAD(&instance->count));
	instance->clock = clock_of_ticks();
}

void perfring_soft_period_set(struct soft_instance *instance, uint64_t value)
{
	uint32_t orders = PERFRING_LOAD(&instance->orders);

	if (PERFRING_LOAD(&instance->freq))
		PERFRING_STORE(&instance->freq, value);
	else
		PERFRING_STORE(&instance->period, value);
	if (instance->event->is_clock)
		PERFRING_STORE(&instance->left, 0); /* nobody adds to it */
	/* Behind the value: partner is obey's exchange. */
	while (!PERFRING_SWAP(&instance->orders, &orders, (orders & ORDER_LAST) | ORDER_ZERO))
		;
}

void perfring_soft_period_resume(struct soft_instance *instance)
{
	uint32_t orders = PERFRING_LOAD(&instance->orders);

	/* A V of 0 that no occurrence has met is loaded now, one below 0 stays. */
	while (!PERFRING_SWAP(&instance->orders, &orders,
			      orders & (ORDER_ZERO | ORDER_FULL) ? ORDER_LAST | ORDER_FULL : ORDER_LAST))
		;
}

static void obey(struct soft_instance *instance)
{
	uint32_t orders;
	uint64_t period;

	PERFRING_POINT(orders_seen);
	orders = PERFRING_EXCHANGE(&instance->orders, 0); /* partner: the swaps above */
	PERFRING_POINT(orders_taken);
	if (!orders) /* a handler has taken them */
		return;
	period = PERFRING_LOAD(&instance->period);
	if (orders & ORDER_LAST)
		PERFRING_STORE(&instance->last_period, period);
	if ((orders & (ORDER_ZERO | ORDER_FULL)) && !instance->event->is_clock &&
	    (int64_t)PERFRING_LOAD(&instance->left) < 0) { /* else the occurrence below us takes it in a moment */
		PERFRING_POINT(orders_looked);
		/* Each handler leaves it below 0, as it found it. */
		PERFRING_STORE(&instance->left, orders & ORDER_ZERO ? 0 : -period);
	}
	unthrottle(instance, true);
}

/* ---- occurrences ---- */

void perfring_soft_occur(struct soft_instance *instance, uint64_t nr, const struct perfring_soft_site *site,
			 const void *frame, const void *caller)
{
	const struct perfring_soft_event *event = instance->event;
	uint64_t freq, period, n;

	if (!perfring_soft_is_active(event))
		return;
	if (!event->samples) {
		PERFRING_ADD_LOCAL(&instance->count, nr);
		return;
	}
	/* No order: seen sooner or later, and obey's exchange has it. */
	if (PERFRING_UNLIKELY(PERFRING_LOAD(&instance->orders)))
		obey(instance);
	unthrottle(instance, false);
	freq = PERFRING_LOAD(&instance->freq);
	if (freq)
		adjust_by_tick(instance); /* before this occurrence is counted: it lies behind the tick */
	PERFRING_POINT(occur_counts);
	PERFRING_ADD_LOCAL(&instance->count, nr);
	PERFRING_POINT(occur_counted);

	if (!freq && (event->attr.sample_type & FIELD_PERIOD)) { /* 9.2a; throttling never tests it */
		(void)sample(instance, nr, site, frame, caller);
		return;
	}
	if (!freq && nr == 1 && PERFRING_LOAD(&instance->period) == 1) {
		overflow(instance, 1, PERFRING_LOAD(&instance->last_period), false, site, frame, caller);
		return;
	}
	if ((int64_t)(PERFRING_ADD_LOCAL(&instance->left, nr) + nr) < 0)
		return;
	PERFRING_POINT(occur_added);
	n = take_overflows(instance, &period);
	overflow(instance, n, period, false, site, frame, caller);
}

void perfring_soft_tick_of_clock(struct soft_instance *instance, const struct perfring_soft_site *site)
{
	uint64_t period;

	if (!perfring_soft_is_active(instance->event))
		return;
	if (PERFRING_UNLIKELY(PERFRING_LOAD(&instance->orders)))
		obey(instance);
	unthrottle(instance, false);
	period = PERFRING_LOAD(&instance->period);
	PERFRING_STORE(&instance->last_period, period);
	overflow(instance, 1, period, true, site, NULL, NULL);
}
