/* period.c - an occurrence: what it counts, what overflows, what is sampled (docs/abi.md 9.2, 9.5, 9.6; frequency is our own).
 *
 * All of it runs in the instance's own thread, and in handlers that interrupt it at any instruction and come back here
 * with the same instance.  A handler runs to its end, so each step is one local read-modify-write, or a compare and
 * swap of what was read before, and between two steps the instance is whole:
 *
 *     count     only grows (RESET is soft_event.c's)
 *     left      V < 0: so many to go.  V >= 0: somebody below us has added and not yet taken: who swaps first takes
 *               what both have added, and the other finds V < 0 and nothing to do.  What is taken is sampled with the
 *               period that it was taken by, so samples * period + progress is the sum of all nr, whoever struck where
 *     throttle  tick and overflows in one word: no handler sees the one without the other
 *     shut      0, or the tick in which the group was throttled
 *
 * From outside come period, freq and orders.  Only orders moves V, by the thread itself: another CPU's plain store
 * could be undone by a read-modify-write that is not locked.  (Such a store, at any instant, would give or cost no more
 * than the period that V was working on: each swap takes V as it is.)
 */
#include "os/clock.h"
#include "soft_private.h"

#define SECOND 1000000000u

/* ---- time ---- */

/* The tick that it is; now: CLOCK_MONOTONIC a moment ago, 0: not known.  Never an earlier one than was told before, unless
 * ticks are longer now: the cheap clock lags behind the other by up to its step, which is no longer than a tick. */
PERFRING_FOLDED uint64_t tick_of(struct soft_instance *group, uint64_t now)
{
	uint64_t length = PERFRING_LOAD(&perfring_soft_tick); /* no order: just a number */
	uint64_t known = PERFRING_LOAD(&group->tick);
	uint64_t tick;

	if (!now)
		now = perfring_os_clock_of(group->clock);
	if (PERFRING_LIKELY(now - (known - 2) * length < 3 * length))
		return known;
	tick = now / length;
	if (tick < known) /* that moment is long past, or ticks have become shorter than the cheap clock's steps */
		tick = perfring_os_clock_now() / length;
	PERFRING_POINT(tick_found);
	if (PERFRING_SWAP_LOCAL(&group->tick, known, tick))
		return tick;
	return PERFRING_LOAD(&group->tick); /* a handler's, which is newer */
}

/* The leader's, of this thread.  Alone, an event is its own leader. */
PERFRING_FOLDED struct soft_instance *group_of(struct soft_instance *instance)
{
	const struct perfring_soft_event *leader = PERFRING_LOAD_ACQUIRE(&instance->event->leader);
	struct soft_instance *group = instance;

	if (PERFRING_UNLIKELY(leader != instance->event))
		group = PERFRING_LOAD_ACQUIRE(&leader->instances[instance->thread->index]);
	return PERFRING_LIKELY(group) ? group : instance;
}

/* The clock of the kernel's own tick costs an eighth of the fine one, and will do where our ticks are no shorter. */
static int32_t clock_of_ticks(void)
{
	uint64_t step = perfring_os_clock_step(CLOCK_MONOTONIC_COARSE);

	return step && step <= PERFRING_LOAD(&perfring_soft_tick) ? CLOCK_MONOTONIC_COARSE : CLOCK_MONOTONIC;
}

/* ---- frequency ---- */

/* The kernel's loop (docs/abi.md 9.3) moves a period an eighth of the way a tick, and counts on each schedule-in to bring it back
 * near 1: without those it takes seconds after each change of the rate.  Ours is a phase:
 *
 *     an occurrence of weight w     phase += w * share, by 2^64; as often as that wraps, a sample is due
 *     share                         2^64 * freq / rate; 0: each is a sample, because the rate is below freq
 *     rate                          measured from one occurrence to another that comes a window later: a tick, or half a
 *                                   sample's time if that is longer.  Sooner once twice as many have come as should: at the
 *                                   second of all, at the third, fifth ..., and after a step of the rate
 *     due by time alone             a sample's time has passed since the tick of the last one: after a step down, and where
 *                                   occurrences are rare
 *     the samples' period           the count since the last sample: their sum is the count, whoever struck where
 *
 * After a step the first window's rate is of both sides; from the second on it is right. */

/* 2^64 * freq * nsec / (count * SECOND), bit by bit: 64-bit words are all that there is everywhere. */
static uint64_t share_of(uint64_t nsec, uint64_t count, uint64_t freq)
{
	uint64_t above, below, share = 0;

	for (; nsec >> 31 || count >> 33; nsec /= 2)
		count /= 2;
	above = nsec * freq; /* freq is no larger than max_sample_rate */
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

/* The upper half of the product. */
static uint64_t product(uint64_t a, uint64_t b, uint64_t *low)
{
	uint64_t a0 = (uint32_t)a, a1 = a >> 32, b0 = (uint32_t)b, b1 = b >> 32;
	uint64_t middle = a1 * b0 + (a0 * b0 >> 32), upper = a0 * b1 + (uint32_t)middle;

	*low = a * b;
	return a1 * b1 + (middle >> 32) + (upper >> 32);
}

/* A handler here measures too: whose swap fails leaves it at that, and what the two have stored is right for either.
 * count: with this occurrence.  Returns whether a sample is due by time alone. */
static __attribute__((noinline)) bool measure(struct soft_instance *instance, uint64_t count, uint64_t freq)
{
	uint64_t stamp = PERFRING_LOAD(&instance->freq_stamp), before = PERFRING_LOAD(&instance->freq_count);
	uint64_t tick = PERFRING_LOAD(&perfring_soft_tick), each = SECOND / freq;
	uint64_t window = each / 2 > tick ? each / 2 : tick, now = perfring_os_clock_now(), nsec = now - stamp;
	bool due = !stamp || now > (PERFRING_LOAD(&instance->freq_sampled) + 1) * tick + each;

	PERFRING_POINT(measure_timed);
	if (stamp && nsec < window) {
		if (count < PERFRING_LOAD(&instance->freq_again) || count <= before || !nsec)
			return due;
		PERFRING_STORE(&instance->freq_again, count + (count - before) + 1);
		PERFRING_STORE(&instance->freq_share, share_of(nsec, count - before, freq));
		return due;
	}
	if (!PERFRING_SWAP_LOCAL(&instance->freq_stamp, stamp, now))
		return false;
	PERFRING_POINT(measure_claimed);
	PERFRING_STORE(&instance->freq_count, count);
	if (!stamp || count <= before) { /* the first; or a handler has measured since */
		PERFRING_STORE(&instance->freq_again, count + 1);
		return due;
	}
	PERFRING_STORE(&instance->freq_again, count + 2 * (count - before) / (nsec / window) + 1);
	PERFRING_STORE(&instance->freq_share, share_of(nsec, count - before, freq));
	PERFRING_POINT(measure_done);
	return due;
}

/* How many samples are due with these nr occurrences.  count: with them. */
PERFRING_FOLDED uint64_t advance(struct soft_instance *instance, struct soft_instance *group, uint64_t nr,
				 uint64_t count, uint64_t freq)
{
	uint64_t tick = tick_of(group, 0), share, low, n;
	bool due = false;

	PERFRING_POINT(frequency_looked);
	if (PERFRING_UNLIKELY(tick != PERFRING_LOAD(&instance->freq_tick) ||
			      count >= PERFRING_LOAD(&instance->freq_again))) {
		PERFRING_STORE(&instance->freq_tick, tick);
		due = measure(instance, count, freq);
	}
	share = PERFRING_LOAD(&instance->freq_share);
	n = nr;
	if (PERFRING_LIKELY(share)) {
		low = share;
		n = PERFRING_LIKELY(nr == 1) ? 0 : product(nr, share, &low);
		n += PERFRING_ADD_LOCAL(&instance->freq_phase, low) + low < low;
	}
	if (PERFRING_UNLIKELY(due && !n)) {
		PERFRING_STORE(&instance->freq_phase, 0);
		n = 1;
	}
	if (n)
		PERFRING_STORE(&instance->freq_sampled, tick);
	return n;
}

/* What was counted since the last sample; 0: a handler has sampled it. */
PERFRING_FOLDED uint64_t take_count(struct soft_instance *instance)
{
	uint64_t taken, count;

	do {
		taken = PERFRING_LOAD(&instance->freq_taken);
		PERFRING_POINT(frequency_taking);
		count = PERFRING_LOAD(&instance->count);
	} while (!PERFRING_SWAP_LOCAL(&instance->freq_taken, taken, count));
	return count - taken;
}

/* ---- orders from outside ---- */

enum {
	ORDER_LAST = 1, /* L := resumed; a V that is not below 0 is loaded */
	ORDER_ZERO = 2, /* V := 0 */
	ORDER_FULL = 4, /* V := -L */
};

static void move_left(struct soft_instance *instance, uint32_t orders)
{
	uint64_t left, next;
	bool kept;

	do {
		left = PERFRING_LOAD(&instance->left);
		kept = !left && PERFRING_LOAD(&instance->kept);
		/* Another V >= 0 is of an occurrence that this handler has interrupted, which takes it when we return. */
		if ((int64_t)left < 0 ? !(orders & (ORDER_ZERO | ORDER_FULL)) : !kept)
			return;
		next = orders & ORDER_ZERO ? 0 : -PERFRING_LOAD(&instance->last_period);
		PERFRING_POINT(orders_looked);
	} while (!PERFRING_SWAP_LOCAL(&instance->left, left, next));
	PERFRING_POINT(orders_moved);
	/* After V: a handler between the two that adds to V leaves it below 0, and the next occurrence clears this. */
	PERFRING_STORE(&instance->kept, !next);
}

/* Returns whether there were any. */
static __attribute__((noinline)) bool take_orders(struct soft_instance *instance)
{
	uint32_t orders;

	PERFRING_POINT(orders_seen);
	orders = PERFRING_EXCHANGE(&instance->orders, 0); /* partner: the swaps of period_set, period_resume */
	PERFRING_POINT(orders_taken);
	if (!orders) /* a handler has taken them */
		return false;
	if (orders & ORDER_LAST)
		PERFRING_STORE(&instance->last_period, PERFRING_LOAD(&instance->resumed));
	if (!instance->event->is_clock)
		move_left(instance, orders);
	return true;
}

void perfring_soft_period_start(struct soft_instance *instance)
{
	const struct perfring_soft_event *event = instance->event;
	uint64_t period = event->attr.freq ? 1 : event->attr.sample_period;

	PERFRING_STORE(&instance->freq, event->attr.freq ? event->attr.sample_freq : 0);
	PERFRING_STORE(&instance->period, period);
	PERFRING_STORE(&instance->last_period, period);
	PERFRING_STORE(&instance->resumed, period);
	PERFRING_STORE(&instance->left, event->is_clock ? 0 : -period); /* set_period with V = P gives 2, and -P */
	PERFRING_STORE(&instance->kept, 0);
	PERFRING_STORE(&instance->tick, 0);
	PERFRING_STORE(&instance->shut, 0);
	PERFRING_STORE(&instance->throttle, 0);
	PERFRING_STORE(&instance->orders, 0);
	PERFRING_STORE(&instance->freq_phase, 0);
	PERFRING_STORE(&instance->freq_share, 1); /* nothing by its weight: the first is due by time */
	PERFRING_STORE(&instance->freq_taken, PERFRING_LOAD(&instance->count));
	PERFRING_STORE(&instance->freq_tick, 0);
	PERFRING_STORE(&instance->freq_stamp, 0);
	PERFRING_STORE(&instance->freq_count, PERFRING_LOAD(&instance->count));
	PERFRING_STORE(&instance->freq_again, 0);
	PERFRING_STORE(&instance->freq_sampled, 0);
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
	while (!PERFRING_COMPARE_EXCHANGE(&instance->orders, &orders, (orders & ORDER_LAST) | ORDER_ZERO))
		;
}

void perfring_soft_period_resume(struct soft_instance *instance)
{
	uint32_t orders = PERFRING_LOAD(&instance->orders);

	/* P as it is now: set_period may come before the next occurrence.  Before the order: partner is the exchange. */
	PERFRING_STORE(&instance->resumed, PERFRING_LOAD(&instance->period));
	/* A V of 0 that no occurrence has met is loaded now, one below 0 stays. */
	while (!PERFRING_COMPARE_EXCHANGE(&instance->orders, &orders,
			      orders & (ORDER_ZERO | ORDER_FULL) ? ORDER_LAST | ORDER_FULL : ORDER_LAST))
		;
}

/* ---- throttling: overflows are counted for each event, whoever has too many shuts its group ---- */

enum verdict {
	GO,
	HIT,  /* this one is written, the next is not */
	SHUT, /* throttled already */
};

static uint64_t most_in_a_tick(void)
{
	uint64_t hz = PERFRING_LOAD(&perfring_soft_hz);

	return (PERFRING_LOAD(&perfring_soft_max_rate) + hz - 1) / hz;
}

/* One overflow more; now: as tick_of's.  Returns how many there were in this tick. */
PERFRING_FOLDED uint32_t account(struct soft_instance *instance, struct soft_instance *group, uint64_t now)
{
	uint64_t old, new, tick;

	do {
		old = PERFRING_LOAD(&instance->throttle);
		PERFRING_POINT(account_looked);
		tick = tick_of(group, now); /* behind the look: nobody whose swap is ours to follow knows a later one */
		new = old >> 32 == (uint32_t)tick ? old + ((uint32_t)old < UINT32_MAX) : tick << 32 | 1;
		PERFRING_POINT(account_swaps);
	} while (!PERFRING_SWAP_LOCAL(&instance->throttle, old, new));
	PERFRING_POINT(account_swapped);
	return (uint32_t) new;
}

/* The group's next member, from the leader on, and its instance in this thread. */
static struct soft_instance *next_of(const struct soft_instance *group, const struct perfring_soft_event **member)
{
	struct soft_instance *instance = NULL;

	while (!instance && *member) {
		instance = PERFRING_LOAD_ACQUIRE(&(*member)->instances[group->thread->index]);
		*member = PERFRING_LOAD_ACQUIRE(&(*member)->next);
	}
	return instance;
}

static enum verdict test(struct soft_instance *instance, struct soft_instance *group)
{
	const struct perfring_soft_event *member = group->event;
	struct soft_instance *other;

	if (account(instance, group, 0) < most_in_a_tick())
		return GO;
	while ((other = next_of(group, &member))) {
		if (PERFRING_LOAD(&other->orders)) /* are older than this, and do not end it */
			(void)take_orders(other);
	}
	/* Fails: a handler has done it. */
	return PERFRING_SWAP_LOCAL(&group->shut, 0, PERFRING_LOAD(&group->tick) + 1) ? HIT : SHUT;
}

/* What the group's events have counted in this tick is forgotten. */
static void forget_overflows(const struct soft_instance *group)
{
	const struct perfring_soft_event *member = group->event;
	struct soft_instance *instance;

	while ((instance = next_of(group, &member)))
		PERFRING_STORE(&instance->throttle, 0); /* fails the swap of whom we have interrupted */
}

/* In a later tick, or at once.  First it becomes shut in this tick: until UNTHROTTLE is written, no handler's sample lies
 * before it, and no handler writes another.  If we never come back (longjmp), the next tick does it again. */
static __attribute__((noinline)) void unthrottle(struct soft_instance *group, uint64_t old, bool at_once)
{
	uint64_t tick = tick_of(group, 0);

	if (old == tick + 1 && !at_once)
		return;
	PERFRING_POINT(unthrottle_due);
	if (!PERFRING_SWAP_LOCAL(&group->shut, old, tick + 1)) /* a handler has done it */
		return;
	PERFRING_POINT(unthrottle_claimed);
	perfring_soft_put_throttle(group, true);
	PERFRING_POINT(unthrottle_written);
	if (at_once)
		forget_overflows(group);
	/* Fails: a handler in a later tick. */
	(void)PERFRING_SWAP_LOCAL(&group->shut, tick + 1, 0);
}

/* Behind what shut the group.  A handler of a later tick between the two has ended it, and its UNTHROTTLE lies in front. */
static __attribute__((noinline)) void put_throttle(struct soft_instance *group)
{
	PERFRING_POINT(throttle_due);
	perfring_soft_put_throttle(group, false);
	if (!PERFRING_LOAD(&group->shut))
		perfring_soft_put_throttle(group, true);
}

/* ---- event_limit ---- */

/* One overflow's share of the limit, which all threads and handlers take from.  0: no limit; what was counted before
 * somebody disabled the event is sampled. */
PERFRING_FOLDED bool take_limit(struct perfring_soft_event *event, bool *last)
{
	uint32_t limit;

	*last = false;
	limit = PERFRING_LOAD(&event->limit); /* no order: the swap says whether it was old */
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

/* Returns whether there may be more. */
PERFRING_FOLDED bool sample(struct soft_instance *instance, uint64_t period, const struct perfring_soft_site *site,
			    const void *frame, const void *caller, uint64_t *time)
{
	struct perfring_soft_event *event = instance->event;
	bool last;

	if (!take_limit(event, &last))
		return false;
	if (PERFRING_UNLIKELY(last)) {
		PERFRING_POINT(limit_spent);
		perfring_soft_event_stop(event);
		PERFRING_POINT(limit_stopped);
	}
	(void)perfring_soft_put_sample(instance, period, site, frame, caller, time); /* refusals are counted there */
	return !last;
}

/* Both return whether there may be more.  What throttling keeps back has been taken out of V, and is counted but not
 * sampled. */

/* An occurrence's first, which throttling does not test: accounted behind its sample, which has looked at the clock. */
PERFRING_FOLDED bool first_overflow(struct soft_instance *instance, struct soft_instance *group, uint64_t period,
				    const struct perfring_soft_site *site, const void *frame, const void *caller)
{
	uint64_t time = 0;
	bool more;

	if (PERFRING_UNLIKELY(PERFRING_LOAD(&group->shut))) /* if in an earlier tick, the next occurrence finds that */
		return false;
	PERFRING_POINT(overflow_next);
	more = sample(instance, period, site, frame, caller, &time);
	(void)account(instance, group, instance->event->tells ? time : 0);
	return more;
}

/* Those behind it, and a clock's. */
static bool next_overflow(struct soft_instance *instance, struct soft_instance *group, uint64_t period,
			  const struct perfring_soft_site *site, const void *frame, const void *caller)
{
	enum verdict verdict;
	uint64_t time;

	if (PERFRING_LOAD(&group->shut))
		return false;
	verdict = test(instance, group);
	if (verdict == SHUT)
		return false;
	if (verdict == HIT) /* before the sample that hit it: so the kernel's lies */
		put_throttle(group);
	PERFRING_POINT(overflow_next);
	return sample(instance, period, site, frame, caller, &time) && verdict == GO;
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

/* ---- occurrences ---- */

/* Before each: what is due. */
PERFRING_FOLDED void begin(struct soft_instance *instance, struct soft_instance *group)
{
	bool at_once = false;
	uint64_t shut;

	/* No order: seen sooner or later, and the exchange has it. */
	if (PERFRING_UNLIKELY(PERFRING_LOAD(&instance->orders)))
		at_once = take_orders(instance);
	shut = PERFRING_LOAD(&group->shut);
	if (PERFRING_UNLIKELY(shut))
		unthrottle(group, shut, at_once);
}

void perfring_soft_occur(struct soft_instance *instance, uint64_t nr, const struct perfring_soft_site *site,
			 const void *frame, const void *caller)
{
	const struct perfring_soft_event *event = instance->event;
	struct soft_instance *group;
	uint64_t freq, period, count, n = 1, time;

	if (!perfring_soft_is_active(event))
		return;
	if (!event->samples) {
		PERFRING_ADD_LOCAL(&instance->count, nr);
		return;
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
		if (n && first_overflow(instance, group, count / n, site, frame, caller)) {
			while (count -= count / n,
			       --n && next_overflow(instance, group, count / n, site, frame, caller))
				;
		}
		return;
	}
	if ((event->attr.sample_type & PERFRING_SAMPLE_PERIOD)) { /* 9.2a; throttling never tests it */
		if (!PERFRING_LOAD(&group->shut))
			(void)sample(instance, nr, site, frame, caller, &time);
		return;
	}
	period = PERFRING_LOAD(&instance->last_period);
	if (nr != 1 || PERFRING_LOAD(&instance->period) != 1) {
		PERFRING_STORE(&instance->kept, 0); /* before V changes: a 0 that a handler finds is ours to take */
		if ((int64_t)(PERFRING_ADD_LOCAL(&instance->left, nr) + nr) < 0)
			return;
		PERFRING_POINT(occur_added);
		n = take_overflows(instance, &period);
	}
	if (n && first_overflow(instance, group, period, site, frame, caller)) {
		while (PERFRING_UNLIKELY(--n) && next_overflow(instance, group, period, site, frame, caller))
			;
	}
}

void perfring_soft_tick_of_clock(struct soft_instance *instance, uint64_t intervals,
				 const struct perfring_soft_site *site)
{
	struct soft_instance *group = group_of(instance);
	uint64_t period;

	if (!perfring_soft_is_active(instance->event))
		return;
	begin(instance, group);
	period = PERFRING_LOAD(&instance->period);
	PERFRING_STORE(&instance->last_period, period);
	(void)next_overflow(instance, group, intervals * period, site, NULL, NULL);
}
