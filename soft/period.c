/* period.c - an occurrence: what it counts, what overflows, what is sampled (docs/abi.md 9.2, 9.5, 9.6; frequency is our own).
 *
 * perfring__soft_period_start, _set and _resume run in any thread.  All else runs in the instance's own thread, and in handlers
 * that interrupt it at any instruction and run to their end (or leave by a jump).  So each step is one local read-modify-write,
 * or a local compare-exchange, and between two steps the instance is valid:
 *
 *     count      only grows (RESET moves `base`)
 *     left       V, in the letters of docs/abi.md 9.2.  V < 0: -V occurrences are left.  V >= 0: the interrupted code has
 *                added to V and not yet taken its periods.  The first compare-exchange takes the handler's and the
 *                interrupted code's periods, and the other finds V < 0.  A sample has the period by which it was taken, so
 *                samples * period + progress is always the sum of all weights
 *     zero_kept  V is 0 by a request, not by an interrupted occurrence
 *     throttle   tick and overflows in one word, which a handler sees together
 *     throttled  0, or the tick in which the group was throttled, + 1
 *
 * Other threads store period, freq, resumed and requests, and of a clock `left`.  The thread itself moves V by a request: a
 * plain store from another CPU could be undone by a local read-modify-write, which has no lock prefix.
 */
#include <signal.h>

#include "os/clock.h"
#include "soft_private.h"

/* ---- time ---- */

/* The current tick, at least the one that was returned last (unless ticks have become longer).  now: CLOCK_MONOTONIC
 * just before, 0: unknown.  The coarse clock lags by up to its step, which is at most a tick. */
PERFRING_FOLDED uint64_t tick_of(struct soft_instance *group, uint64_t now)
{
	uint64_t length = PERFRING_LOAD(&perfring__soft_tick); /* no order: only a number */
	uint64_t known = PERFRING_LOAD(&group->tick);
	uint64_t tick;

	if (!now)
		now = perfring__os_clock_of(group->clock);
	if (PERFRING_LIKELY(now - (known - 2) * length < 3 * length))
		return known;
	tick = now / length;
	if (tick < known) /* `now` is long past, or ticks are now shorter than the coarse clock's steps */
		tick = perfring__os_clock_now() / length;
	PERFRING_POINT(tick_found);
	if (PERFRING_COMPARE_EXCHANGE_LOCAL(&group->tick, known, tick))
		return tick;
	return PERFRING_LOAD(&group->tick); /* a handler's, which is later */
}

/* The leader's instance in this thread; without a group, the instance itself. */
PERFRING_FOLDED struct soft_instance *group_of(struct soft_instance *instance)
{
	const struct perfring_soft_event *leader = PERFRING_LOAD_ACQUIRE(&instance->event->leader);
	struct soft_instance *group = instance;

	if (PERFRING_UNLIKELY(leader != instance->event))
		group = PERFRING_LOAD_ACQUIRE(&leader->instances[instance->thread->index]);
	return PERFRING_LIKELY(group) ? group : instance;
}

/* ---- frequency ---- */

/* The kernel's loop (docs/abi.md 9.3) changes the period by an eighth of the difference in each tick, and relies on
 * schedule-ins to bring it back near 1; without them it takes seconds after each change of the rate.  Here a phase counts:
 *
 *     occurrence of weight w   phase += w * share, modulo 2^64; a sample is due each time it wraps
 *     share                    2^64 * freq / rate; 0 if the rate is below freq: each occurrence is a sample
 *     rate                     measured between two occurrences that are a window apart: a tick, or half a sample's time if
 *                              that is longer.  Earlier once twice as many came as expected: at the second occurrence, the
 *                              fourth, eighth ..., and after a step of the rate
 *     due by time              a sample's time has passed since the end of the last sample's tick: after a step down of the
 *                              rate, and for rare occurrences
 *     period of a sample       the count since the last sample, so the sum of periods is the count
 *
 * After a step the first window has both rates; the second is right. */

/* 2^64 * freq * nsec / (count * SECOND), bit by bit, because not every machine has 128-bit words. */
static uint64_t share_of(uint64_t nsec, uint64_t count, uint64_t freq)
{
	uint64_t above, below, share = 0;

	/* nsec < 2^31, count < 2^33 and freq < 2^32 keep both products below 2^63, so that `above` can be doubled. */
	for (; nsec >> 31 || count >> 33; nsec /= 2)
		count /= 2;
	above = nsec * freq; /* freq <= max_sample_rate */
	below = count * SECOND;
	if (above >= below)
		return 0;
	for (unsigned i = 0; i < 64; i++) {
		above *= 2;
		share *= 2;
		if (above >= below) {
			above -= below;
			share++;
		}
	}
	return share ? share : 1;
}

/* Returns the upper half of a * b. */
static uint64_t product(uint64_t a, uint64_t b, uint64_t *low)
{
	uint64_t a0 = (uint32_t)a, a1 = a >> 32, b0 = (uint32_t)b, b1 = b >> 32;
	uint64_t middle = a1 * b0 + (a0 * b0 >> 32), upper = a0 * b1 + (uint32_t)middle;

	*low = a * b;
	return a1 * b1 + (middle >> 32) + (upper >> 32);
}

/* count: including this occurrence.  Returns whether a sample is due by time.  A handler may measure in between: then the
 * compare-exchange fails, and the stores of both are valid. */
static __attribute__((noinline)) bool measure(struct soft_instance *instance, uint64_t count, uint64_t freq)
{
	uint64_t stamp = PERFRING_LOAD(&instance->freq_stamp), before = PERFRING_LOAD(&instance->freq_count);
	uint64_t tick = PERFRING_LOAD(&perfring__soft_tick), sample_time = SECOND / freq;
	uint64_t window = sample_time / 2 > tick ? sample_time / 2 : tick;
	uint64_t now = perfring__os_clock_now(), nsec = now - stamp;
	bool due = !stamp || now > (PERFRING_LOAD(&instance->freq_sampled) + 1) * tick + sample_time;

	PERFRING_POINT(measure_timed);
	if (stamp && nsec < window) {
		if (count < PERFRING_LOAD(&instance->freq_next) || count <= before || !nsec)
			return due;
		PERFRING_STORE(&instance->freq_next, count + (count - before) + 1);
		PERFRING_STORE(&instance->freq_share, share_of(nsec, count - before, freq));
		return due;
	}
	if (!PERFRING_COMPARE_EXCHANGE_LOCAL(&instance->freq_stamp, stamp, now))
		return false;
	PERFRING_POINT(measure_claimed);
	PERFRING_STORE(&instance->freq_count, count);
	if (!stamp || count <= before) { /* the first, or a handler has measured meanwhile */
		PERFRING_STORE(&instance->freq_next, count + 1);
		return due;
	}
	PERFRING_STORE(&instance->freq_next, count + 2 * (count - before) / (nsec / window) + 1);
	PERFRING_STORE(&instance->freq_share, share_of(nsec, count - before, freq));
	PERFRING_POINT(measure_done);
	return due;
}

/* count: including these nr occurrences.  Returns how many samples are due with them. */
PERFRING_FOLDED uint64_t advance(struct soft_instance *instance, struct soft_instance *group, uint64_t nr,
				 uint64_t count, uint64_t freq)
{
	uint64_t tick = tick_of(group, 0), share, low, n;
	bool due = false;

	PERFRING_POINT(frequency_looked);
	if (PERFRING_UNLIKELY(tick != PERFRING_LOAD(&instance->freq_tick) ||
			      count >= PERFRING_LOAD(&instance->freq_next))) {
		PERFRING_STORE(&instance->freq_tick, tick);
		due = measure(instance, count, freq);
	}
	share = PERFRING_LOAD(&instance->freq_share);
	n = nr;
	if (PERFRING_LIKELY(share)) {
		low = share;
		n = PERFRING_LIKELY(nr == 1) ? 0 : product(nr, share, &low);
		n += PERFRING_ADD_LOCAL(&instance->freq_phase, low) + low < low; /* carry: the phase wrapped */
	}
	if (PERFRING_UNLIKELY(due && !n)) {
		PERFRING_STORE(&instance->freq_phase, 0);
		n = 1;
	}
	if (n)
		PERFRING_STORE(&instance->freq_sampled, tick);
	return n;
}

/* Returns the count since the last sample; 0: a handler has sampled it. */
PERFRING_FOLDED uint64_t take_count(struct soft_instance *instance)
{
	uint64_t taken, count;

	do {
		taken = PERFRING_LOAD(&instance->freq_taken);
		PERFRING_POINT(frequency_taking);
		count = PERFRING_LOAD(&instance->count);
	} while (!PERFRING_COMPARE_EXCHANGE_LOCAL(&instance->freq_taken, taken, count));
	return count - taken;
}

/* ---- requests from outside ---- */

enum {
	REQUEST_LAST = 1, /* L := resumed; V is set to -L if it is 0 or more */
	REQUEST_ZERO = 2, /* V := 0 */
	REQUEST_FULL = 4, /* V := -L */
};

static void move_left(struct soft_instance *instance, uint32_t requests)
{
	uint64_t left, next;
	bool kept;

	do {
		left = PERFRING_LOAD(&instance->left);
		kept = !left && PERFRING_LOAD(&instance->zero_kept);
		/* Another V >= 0 belongs to the occurrence that this handler has interrupted, which will take it. */
		if ((int64_t)left < 0 ? !(requests & (REQUEST_ZERO | REQUEST_FULL)) : !kept)
			return;
		next = requests & REQUEST_ZERO ? 0 : -PERFRING_LOAD(&instance->last_period);
		PERFRING_POINT(requests_looked);
	} while (!PERFRING_COMPARE_EXCHANGE_LOCAL(&instance->left, left, next));
	PERFRING_POINT(requests_moved);
	/* After V: a handler that adds to V before this store leaves V < 0 and this flag wrong; the next occurrence clears
	 * it. */
	PERFRING_STORE(&instance->zero_kept, !next);
}

/* Returns whether there were any. */
static __attribute__((noinline)) bool take_requests(struct soft_instance *instance)
{
	uint32_t requests;

	PERFRING_POINT(requests_seen);
	requests = PERFRING_EXCHANGE(&instance->requests, 0); /* partner: period_set, period_resume */
	PERFRING_POINT(requests_taken);
	if (!requests) /* a handler has taken them */
		return false;
	if (requests & REQUEST_LAST)
		PERFRING_STORE(&instance->last_period, PERFRING_LOAD(&instance->resumed));
	if (!instance->event->is_clock)
		move_left(instance, requests);
	return true;
}

void perfring__soft_period_start(struct soft_instance *instance)
{
	const struct perfring_soft_event *event = instance->event;
	uint64_t period = event->attr.freq ? 1 : event->attr.sample_period;
	uint64_t step = perfring__os_clock_step(CLOCK_MONOTONIC_COARSE);

	PERFRING_STORE(&instance->freq, event->attr.freq ? event->attr.sample_freq : 0);
	PERFRING_STORE(&instance->period, period);
	PERFRING_STORE(&instance->last_period, period);
	PERFRING_STORE(&instance->resumed, period);
	/* As the first set_period does: V = P gives 2 overflows, then V = -P. */
	PERFRING_STORE(&instance->left, event->is_clock ? 0 : -period);
	PERFRING_STORE(&instance->freq_share, 1); /* the first sample is due by time, not by weight */
	/* The coarse clock costs an eighth of the other, and is good enough if its step is no longer than a tick. */
	instance->clock =
		step && step <= PERFRING_LOAD(&perfring__soft_tick) ? CLOCK_MONOTONIC_COARSE : CLOCK_MONOTONIC;
}

void perfring__soft_period_set(struct soft_instance *instance, uint64_t value)
{
	uint32_t requests = PERFRING_LOAD(&instance->requests);

	if (PERFRING_LOAD(&instance->freq))
		PERFRING_STORE(&instance->freq, value);
	else
		PERFRING_STORE(&instance->period, value);
	if (instance->event->is_clock)
		PERFRING_STORE(&instance->left, 0); /* no occurrence adds to it */
	/* After the value: partner is take_requests' exchange. */
	while (!PERFRING_COMPARE_EXCHANGE(&instance->requests, &requests, (requests & REQUEST_LAST) | REQUEST_ZERO))
		;
}

void perfring__soft_period_resume(struct soft_instance *instance)
{
	uint32_t requests = PERFRING_LOAD(&instance->requests);

	/* The current P: set_period may come before the next occurrence.  Before the request: partner is take_requests. */
	PERFRING_STORE(&instance->resumed, PERFRING_LOAD(&instance->period));
	/* A pending REQUEST_ZERO becomes REQUEST_FULL: a V of 0 is set to -L; a V below 0 stays. */
	while (!PERFRING_COMPARE_EXCHANGE(&instance->requests, &requests,
					  requests & (REQUEST_ZERO | REQUEST_FULL) ? REQUEST_LAST | REQUEST_FULL
										   : REQUEST_LAST))
		;
}

/* ---- throttling: each event counts its overflows; the one that reaches the limit throttles its group ---- */

enum verdict {
	PASSED,
	REACHED,   /* this sample is written, the next is not */
	THROTTLED, /* already throttled; this sample is not written */
};

/* Counts one overflow.  now: as for tick_of.  Returns the overflows of this tick. */
PERFRING_FOLDED uint32_t account(struct soft_instance *instance, struct soft_instance *group, uint64_t now)
{
	uint64_t old, new, tick;

	do {
		old = PERFRING_LOAD(&instance->throttle);
		PERFRING_POINT(account_looked);
		tick = tick_of(group, now); /* after the load: a tick before that in `old` would reset its count */
		new = old >> 32 == (uint32_t)tick ? old + ((uint32_t)old < UINT32_MAX) : tick << 32 | 1;
		PERFRING_POINT(account_swaps);
	} while (!PERFRING_COMPARE_EXCHANGE_LOCAL(&instance->throttle, old, new));
	PERFRING_POINT(account_swapped);
	return (uint32_t) new;
}

/* The next member of the group, from the leader on, that has an instance in this thread. */
static struct soft_instance *next_of(const struct soft_instance *group, const struct perfring_soft_event **member)
{
	struct soft_instance *instance = NULL;

	while (!instance && *member) {
		instance = PERFRING_LOAD_ACQUIRE(&(*member)->instances[group->thread->index]);
		*member = PERFRING_LOAD_ACQUIRE(&(*member)->next);
	}
	return instance;
}

static enum verdict check_throttling(struct soft_instance *instance, struct soft_instance *group)
{
	const struct perfring_soft_event *member = group->event;
	uint64_t hz = PERFRING_LOAD(&perfring__soft_hz);
	struct soft_instance *other;

	/* M of docs/abi.md 9.6 */
	if (account(instance, group, 0) < (PERFRING_LOAD(&perfring__soft_max_rate) + hz - 1) / hz)
		return PASSED;
	while ((other = next_of(group, &member))) {
		if (PERFRING_LOAD(&other->requests)) /* older than this overflow: they do not end the throttling */
			(void)take_requests(other);
	}
	/* Fails: a handler has throttled it. */
	return PERFRING_COMPARE_EXCHANGE_LOCAL(&group->throttled, 0, PERFRING_LOAD(&group->tick) + 1) ? REACHED : THROTTLED;
}

/* Ends the throttling: in a later tick, or at once after a request.  First marks it as throttled in this tick: until UNTHROTTLE
 * is written, no handler writes a sample or another UNTHROTTLE.  If a handler's longjmp skips the rest, the next tick repeats
 * it. */
static __attribute__((noinline)) void unthrottle(struct soft_instance *group, uint64_t old, bool at_once)
{
	const struct perfring_soft_event *member = group->event;
	uint64_t tick = tick_of(group, 0);
	struct soft_instance *instance;

	if (old == tick + 1 && !at_once)
		return;
	PERFRING_POINT(unthrottle_due);
	if (!PERFRING_COMPARE_EXCHANGE_LOCAL(&group->throttled, old, tick + 1)) /* a handler has done it */
		return;
	PERFRING_POINT(unthrottle_claimed);
	perfring__soft_put_throttle(group, true);
	PERFRING_POINT(unthrottle_written);
	/* Forgets the overflows of this tick, and makes the swap of an interrupted account fail. */
	while (at_once && (instance = next_of(group, &member)))
		PERFRING_STORE(&instance->throttle, 0);
	/* Fails: a handler in a later tick has throttled it again. */
	(void)PERFRING_COMPARE_EXCHANGE_LOCAL(&group->throttled, tick + 1, 0);
}

/* Called after the mark is set.  If a handler in a later tick has cleared the mark, its UNTHROTTLE precedes this THROTTLE, so
 * another is written. */
static __attribute__((noinline)) void put_throttle(struct soft_instance *group)
{
	PERFRING_POINT(throttle_due);
	perfring__soft_put_throttle(group, false);
	if (!PERFRING_LOAD(&group->throttled))
		perfring__soft_put_throttle(group, true);
}

/* ---- event_limit ---- */

/* Returns whether the overflow may be sampled; takes it from the limit, if there is one.  Overflows counted before a disable
 * still are. */
PERFRING_FOLDED bool take_limit(struct perfring_soft_event *event, bool *last)
{
	uint32_t limit;

	*last = false;
	limit = PERFRING_LOAD(&event->limit); /* no order: the compare-exchange finds whether it was stale */
	do {
		if (PERFRING_LIKELY(!limit))
			return true;
		if (limit & SOFT_LIMIT_SPENT)
			return false;
		PERFRING_POINT(limit_looked);
	} while (!PERFRING_COMPARE_EXCHANGE(&event->limit, &limit, limit > 1 ? limit - 1 : SOFT_LIMIT_SPENT));
	*last = limit == 1;
	return true;
}

/* ---- overflows ---- */

/* The signal of an occurrence that has overflowed, however many samples it makes. */
enum {
	SIGNAL_IN = 1,
	SIGNAL_HUP = 2, /* the limit is spent */
};

/* Returns whether more samples of this occurrence may follow.  *signal: set if this one was made. */
PERFRING_FOLDED bool sample(struct soft_instance *instance, uint64_t period, const struct perfring_soft_site *site,
			    const void *frame, const void *caller, uint64_t *time, uint32_t *signal)
{
	struct perfring_soft_event *event = instance->event;
	bool last;

	if (PERFRING_UNLIKELY(event->is_inherited) || !take_limit(event, &last)) /* a handler has forked */
		return false;
	if (PERFRING_UNLIKELY(last)) {
		PERFRING_POINT(limit_spent);
		perfring__soft_event_stop(event);
		PERFRING_POINT(limit_stopped);
	}
	(void)perfring__soft_put_sample(instance, period, site, frame, caller, time); /* refusals are counted there */
	if (PERFRING_UNLIKELY(event->is_inherited))
		return false;
	*signal = last ? SIGNAL_HUP : SIGNAL_IN;
	return !last;
}

/* Both return whether more samples of this occurrence may follow.  Throttled overflows are taken out of V and counted, but not
 * sampled. */

/* The first of an occurrence, which is not tested against the limit.  Counted after its sample, which has read the clock. */
PERFRING_FOLDED bool first_overflow(struct soft_instance *instance, struct soft_instance *group, uint64_t period,
				    const struct perfring_soft_site *site, const void *frame, const void *caller,
				    uint32_t *signal)
{
	uint64_t time = 0;
	bool more;

	if (PERFRING_UNLIKELY(PERFRING_LOAD(&group->throttled))) /* an earlier tick's ends with the next occurrence */
		return false;
	PERFRING_POINT(overflow_next);
	more = sample(instance, period, site, frame, caller, &time, signal);
	(void)account(instance, group, instance->event->is_monotonic ? time : 0);
	return more;
}

/* The later ones of an occurrence, and a clock's. */
static bool next_overflow(struct soft_instance *instance, struct soft_instance *group, uint64_t period,
			  const struct perfring_soft_site *site, const void *frame, const void *caller, uint32_t *signal)
{
	enum verdict verdict;
	uint64_t time;

	if (PERFRING_LOAD(&group->throttled))
		return false;
	verdict = check_throttling(instance, group);
	if (verdict == THROTTLED)
		return false;
	if (verdict == REACHED) /* before the sample that reached the limit, as the kernel does */
		put_throttle(group);
	PERFRING_POINT(overflow_next);
	return sample(instance, period, site, frame, caller, &time, signal) && verdict == PASSED;
}

/* set_period of docs/abi.md 9.2: takes all whole periods out of V.  Returns their number, and their length in *period. */
static uint64_t take_overflows(struct soft_instance *instance, uint64_t *period)
{
	uint64_t left, n;

	/* A handler after this load has taken V itself, by its own periods. */
	*period = PERFRING_LOAD(&instance->last_period);
	PERFRING_POINT(take_begun);
	PERFRING_STORE(&instance->last_period, PERFRING_LOAD(&instance->period));
	do {
		left = PERFRING_LOAD(&instance->left);
		if ((int64_t)left < 0)
			return 0;
		n = left < *period ? 1 : 1 + left / *period; /* rarely a division */
		PERFRING_POINT(take_looked);
	} while (!PERFRING_COMPARE_EXCHANGE_LOCAL(&instance->left, left, left - n * *period));
	PERFRING_POINT(take_taken);
	return n;
}

/* ---- occurrences ---- */

/* Before each occurrence: requests, and the end of throttling. */
PERFRING_FOLDED void begin(struct soft_instance *instance, struct soft_instance *group)
{
	bool at_once = false;
	uint64_t throttled;

	/* Relaxed: a request may be seen late; the exchange in take_requests synchronises. */
	if (PERFRING_UNLIKELY(PERFRING_LOAD(&instance->requests)))
		at_once = take_requests(instance);
	throttled = PERFRING_LOAD(&group->throttled);
	if (PERFRING_UNLIKELY(throttled))
		unthrottle(group, throttled, at_once);
}

/* Returns the signal, or 0. */
PERFRING_FOLDED uint32_t count_and_sample(struct soft_instance *instance, uint64_t nr, const struct perfring_soft_site *site,
					  const void *frame, const void *caller)
{
	const struct perfring_soft_event *event = instance->event;
	struct soft_instance *group;
	uint64_t freq, period, count, n = 1, time;
	uint32_t signal = 0;
	bool more;

	if (!perfring__soft_is_active(event))
		return signal;
	if (!event->samples) {
		PERFRING_ADD_LOCAL(&instance->count, nr);
		return signal;
	}
	group = group_of(instance);
	begin(instance, group);
	PERFRING_POINT(occur_counts);
	count = PERFRING_ADD_LOCAL(&instance->count, nr) + nr;
	PERFRING_POINT(occur_counted);

	freq = PERFRING_LOAD(&instance->freq);
	if (PERFRING_UNLIKELY(freq)) {
		n = nr ? advance(instance, group, nr, count, freq) : 0;
		count = n ? take_count(instance) : 0;
		n = n < count ? n : count;
		more = n && first_overflow(instance, group, count / n, site, frame, caller, &signal);
		while (more && --n) {
			count -= count / (n + 1);
			more = next_overflow(instance, group, count / n, site, frame, caller, &signal);
		}
		return signal;
	}
	if (event->attr.sample_type & PERFRING_SAMPLE_PERIOD) { /* docs/abi.md 9.2, case a; never throttled */
		if (!PERFRING_LOAD(&group->throttled))
			(void)sample(instance, nr, site, frame, caller, &time, &signal);
		return signal;
	}
	period = PERFRING_LOAD(&instance->last_period);
	if (nr != 1 || PERFRING_LOAD(&instance->period) != 1) {
		/* Before V changes: a handler that then finds V == 0 leaves it to this code. */
		PERFRING_STORE(&instance->zero_kept, 0);
		if ((int64_t)(PERFRING_ADD_LOCAL(&instance->left, nr) + nr) < 0)
			return signal;
		PERFRING_POINT(occur_added);
		n = take_overflows(instance, &period);
	}
	more = n && first_overflow(instance, group, period, site, frame, caller, &signal);
	while (PERFRING_UNLIKELY(more && --n))
		more = next_overflow(instance, group, period, site, frame, caller, &signal);
	return signal;
}

/* For perfring__soft_send.  Handlers that raise in between add theirs, or send this one too. */
static __attribute__((noinline)) bool note_signal(struct soft_instance *instance, uint32_t signal)
{
	uint64_t pending;

	do {
		pending = PERFRING_LOAD(&instance->pending);
	} while (!PERFRING_COMPARE_EXCHANGE_LOCAL(
		&instance->pending, pending, (pending + SOFT_SIGNAL) | (signal == SIGNAL_HUP ? SOFT_SIGNAL_HUP : 0)));
	return true;
}

bool perfring__soft_occur(struct soft_instance *instance, uint64_t nr, const struct perfring_soft_site *site,
			  const void *frame, const void *caller)
{
	uint32_t signal = count_and_sample(instance, nr, site, frame, caller);

	return PERFRING_UNLIKELY(signal && PERFRING_LOAD(&instance->event->signal)) && note_signal(instance, signal);
}

/* Sends at once: all signals are blocked until the handler of the timer returns. */
void perfring__soft_tick_of_clock(struct soft_instance *instance, uint64_t intervals,
				  const struct perfring_soft_site *site)
{
	struct soft_instance *group = group_of(instance);
	uint32_t signal = 0;
	uint64_t period;

	if (!perfring__soft_is_active(instance->event))
		return;
	begin(instance, group);
	period = PERFRING_LOAD(&instance->period);
	PERFRING_STORE(&instance->last_period, period);
	(void)next_overflow(instance, group, intervals * period, site, NULL, NULL, &signal);
	if (PERFRING_UNLIKELY(signal && PERFRING_LOAD(&instance->event->signal)) && note_signal(instance, signal))
		perfring__soft_send(instance);
}
