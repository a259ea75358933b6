/* mc_orders.h - shared words under the orders of memory that C11 allows: what checkers of more than two threads have in
 * common.
 *
 * A load gives any store that C11 lets it see.  A word's stores are kept in the order in which they were made, which is
 * taken for its order of modification.  A store has a view: what an acquire that reads it must see from then on; a
 * read-modify-write passes on the view of the store that it replaces.  An ordered load sees no store older than the word's
 * last ordered one, nor one older than what a thread had seen at its last fence; neither does a load after a fence.
 * membarrier is a fence of each thread, where that thread is.  An unlocked read-modify-write of the owner is a load and a
 * store.  The bytes of records are plain: two accesses of which one is a store must be ordered, or it is a race.
 *
 * A checker defines MAX_WORDS, MAX_STORES (below 256), MAX_DATA (words of rings) and the functions declared here first.
 */
#ifndef MC_ORDERS_H
#define MC_ORDERS_H

#include "tests/checks/mc_model.h"

static bool is_shared_word(const void *word); /* else it is private to one thread */
static bool is_data(const void *place);
static size_t data_word(const void *place); /* below MAX_DATA */
static void *folded(const void *place);     /* where it really lies: the data are mapped twice in a row */
static const char *name_of(const void *word);
static void before_access(const void *word); /* another thread may go on */
static void after_load(const void *word);
static void after_store(void);

struct view {
	uint32_t clock[MAX_THREADS];
	uint8_t store[MAX_WORDS]; /* the oldest that can still be seen */
};

static struct word {
	const void *word;
	unsigned stores;
	unsigned ordered; /* index of the oldest store that an ordered load can still see */
	struct {
		uint64_t value;
		struct view view;
	} store[MAX_STORES];
} words[MAX_WORDS];
static unsigned word_count;

static struct thread {
	struct view view;
	struct view released; /* by its last fence */
	struct view seen;     /* by relaxed loads: a fence takes it */
	bool done, dead;
} threads[MAX_THREADS];

static struct {
	uint8_t writer;
	uint32_t wrote; /* the writer's clock */
	uint32_t read[MAX_THREADS];
} plain[MAX_DATA];

static void begin_orders(void)
{
	memset(threads, 0, sizeof(threads));
	memset(plain, 0, sizeof(plain));
	word_count = traced = choice_at = 0;
	at_rest = false;
	for (int i = 0; i < MAX_THREADS; i++)
		threads[i].view.clock[i] = 1;
}

/* NULL: private to one thread. */
static struct word *word_of(const void *word, size_t size)
{
	unsigned i;

	if (!is_shared_word(word))
		return NULL;
	for (i = 0; i < word_count; i++)
		if (words[i].word == word)
			return &words[i];
	if (i == MAX_WORDS)
		beyond("too many shared words: MAX_WORDS");
	words[i].word = word;
	words[i].stores = 1;
	words[i].ordered = 0;
	words[i].store[0].value = get(word, size);
	memset(&words[i].store[0].view, 0, sizeof(struct view));
	word_count++;
	return &words[i];
}

static void join(struct view *into, const struct view *view)
{
	unsigned i;

	for (i = 0; i < MAX_THREADS; i++)
		if (into->clock[i] < view->clock[i])
			into->clock[i] = view->clock[i];
	for (i = 0; i < word_count; i++)
		if (into->store[i] < view->store[i])
			into->store[i] = view->store[i];
}

/* All threads have ended, and this one knows what they did. */
static void know_all(int thread)
{
	for (unsigned i = 0; i < MAX_THREADS; i++)
		join(&threads[thread].view, &threads[i].view);
	for (unsigned i = 0; i < word_count; i++)
		threads[thread].view.store[i] = (uint8_t)(words[i].stores - 1);
}

/* Whether the thread may still see another value than 0 there. */
static bool may_see(int thread, const uint64_t *word)
{
	const struct word *is = word_of(word, sizeof(*word));

	for (unsigned i = threads[thread].view.store[is - words]; i < is->stores; i++)
		if (is->store[i].value)
			return true;
	return false;
}

/* ---- the bytes of records ---- */

/* To be ordered with what the other threads did to them. */
static void touch(const void *place, bool is_store)
{
	struct view *view = &threads[now_runs].view;
	size_t word = data_word(place);

	total.accesses++;
	if (plain[word].wrote > view->clock[plain[word].writer] && plain[word].writer != now_runs)
		wrong("race: %s %s ring + %zu, which %s stored into", name_of_thread(now_runs),
		      is_store ? "stores into" : "reads", word * 8, name_of_thread(plain[word].writer));
	if (is_store) {
		for (int i = 0; i < MAX_THREADS; i++)
			if (i != now_runs && plain[word].read[i] > view->clock[i])
				wrong("race: %s stores into ring + %zu, which %s may still read",
				      name_of_thread(now_runs), word * 8, name_of_thread(i));
		plain[word].writer = (uint8_t)now_runs;
		plain[word].wrote = view->clock[now_runs];
	} else {
		plain[word].read[now_runs] = view->clock[now_runs];
	}
}

static void *mc_copy(void *to, const void *from, size_t size)
{
	size_t at, piece;

	if (!is_data(to) && !is_data(from))
		return memcpy(to, from, size);
	for (at = 0; at < size; at += piece) {
		void *here = (char *)to + at;
		const void *there = (const char *)from + at;

		piece = size - at < 8 ? size - at : 8;
		if (is_data(there)) {
			touch(there, false);
			there = folded(there);
		}
		if (is_data(here)) {
			touch(here, true);
			here = folded(here);
		}
		memcpy(here, there, piece);
	}
	return to;
}

/* ---- accesses ---- */

static uint64_t word_load(const void *word, size_t size, enum order order)
{
	struct thread *thread;
	unsigned index, oldest, store;
	struct word *is;
	uint64_t value;

	total.accesses++;
	if (is_data(word)) {
		touch(word, false);
		return get(folded(word), size);
	}
	is = word_of(word, size);
	if (!is)
		return get(word, size);
	before_access(word);
	thread = &threads[now_runs];
	index = (unsigned)(is - words);
	oldest = thread->view.store[index];
	if (order == ORDERED && oldest < is->ordered)
		oldest = is->ordered;
	/* The newest first. */
	store = is->stores - 1 - choose(is->stores - oldest);
	if (store != is->stores - 1)
		total.stale++;
	value = is->store[store].value;
	thread->view.store[index] = (uint8_t)store;
	if (order & ACQUIRE)
		join(&thread->view, &is->store[store].view);
	else
		join(&thread->seen, &is->store[store].view);
	tell(order == ORDERED ? "ordered" : order & ACQUIRE ? "acquire" : "load", name_of(word), value);
	after_load(word);
	return value;
}

static void store_now(struct word *is, void *word, size_t size, uint64_t value, enum order order)
{
	struct thread *thread = &threads[now_runs];
	unsigned index = (unsigned)(is - words);

	if (is->stores == MAX_STORES)
		beyond("too many stores: MAX_STORES");
	put(word, size, value);
	is->store[is->stores].value = value;
	thread->view.store[index] = (uint8_t)is->stores;
	is->store[is->stores].view = order & RELEASE ? thread->view : thread->released;
	is->store[is->stores].view.store[index] = (uint8_t)is->stores;
	if (order == ORDERED)
		is->ordered = is->stores;
	is->stores++;
	/* What the thread does from here on is not in that view. */
	thread->view.clock[now_runs]++;
	after_store();
}

static void word_store(void *word, size_t size, uint64_t value, enum order order)
{
	struct word *is;

	total.accesses++;
	is = word_of(word, size);
	if (!is) {
		put(word, size, value);
		return;
	}
	before_access(word);
	tell(order & RELEASE ? "release" : "store", name_of(word), value);
	store_now(is, word, size, value, order);
}

/* Of a read-modify-write: what it reads is the newest, and its store passes on that one's view. */
static void replace(struct word *is, void *word, size_t size, uint64_t value)
{
	struct thread *thread = &threads[now_runs];
	struct view before = is->store[is->stores - 1].view;

	join(&thread->view, &before);
	store_now(is, word, size, value, ORDERED);
	join(&is->store[is->stores - 1].view, &before);
}

static uint64_t word_modify(void *word, size_t size, char how, uint64_t value)
{
	struct word *is = word_of(word, size);
	uint64_t before, after;

	total.accesses++;
	if (is)
		before_access(word);
	before = get(word, size);
	after = how == '+' ? before + value : how == '&' ? before & value : how == '|' ? before | value : value;
	tell("modify", name_of(word), after);
	if (is)
		replace(is, word, size, after);
	else
		put(word, size, after);
	return before;
}

static bool word_swap(void *word, size_t size, void *expected, uint64_t value)
{
	struct word *is = word_of(word, size);
	uint64_t before;

	total.accesses++;
	if (is)
		before_access(word);
	before = get(word, size);
	if (before != get(expected, size)) {
		if (is) { /* it reads the newest, ordered */
			struct thread *thread = &threads[now_runs];

			thread->view.store[is - words] = (uint8_t)(is->stores - 1);
			join(&thread->view, &is->store[is->stores - 1].view);
		}
		put(expected, size, before);
		tell("compare-exchange refused:", name_of(word), before);
		return false;
	}
	tell("compare-exchange", name_of(word), value);
	if (is)
		replace(is, word, size, value);
	else
		put(word, size, value);
	return true;
}

/* Unlocked: another thread may come between. */
static uint64_t word_add_local(uint64_t *word, uint64_t value)
{
	uint64_t before = word_load(word, sizeof(*word), RELAXED);

	word_store(word, sizeof(*word), before + value, RELAXED);
	return before;
}

static bool word_swap_local(uint64_t *word, uint64_t expected, uint64_t value)
{
	if (word_load(word, sizeof(*word), RELAXED) != expected)
		return false;
	word_store(word, sizeof(*word), value, RELAXED);
	return true;
}

static void fence(int which, enum order order)
{
	struct thread *thread = &threads[which];

	if (order & ACQUIRE)
		join(&thread->view, &thread->seen);
	for (unsigned i = 0; order == ORDERED && i < word_count; i++)
		if (words[i].ordered > thread->view.store[i])
			thread->view.store[i] = (uint8_t)words[i].ordered;
		else
			words[i].ordered = thread->view.store[i];
	if (order & RELEASE) {
		thread->released = thread->view;
		thread->view.clock[which]++;
	}
}

/* One has acted on what the other did before, and the other on what the one did. */
static void meet(int one, int other)
{
	fence(one, ORDERED);
	fence(other, ORDERED);
	join(&threads[one].view, &threads[other].view);
	join(&threads[other].view, &threads[one].view);
	threads[one].released = threads[one].view;
	threads[other].released = threads[other].view;
	threads[one].view.clock[one]++;
	threads[other].view.clock[other]++;
}

/* membarrier(2): each has passed a barrier after what the caller did, and before what it does. */
static void barrier_of_all(unsigned count)
{
	struct view before;

	fence(now_runs, ORDERED);
	before = threads[now_runs].view;
	for (unsigned i = 0; i < count; i++) {
		fence((int)i, ORDERED);
		join(&threads[now_runs].view, &threads[i].view);
		join(&threads[i].view, &before);
		threads[i].released = threads[i].view;
		threads[i].view.clock[i]++;
	}
	fence(now_runs, ORDERED);
}

#ifndef MC_OWN_ACCESS
#define PERFRING_ACCESS
#define PERFRING_LOAD_ACQUIRE(word) ((__typeof__(*(word)))word_load((word), sizeof(*(word)), ACQUIRE))
#define PERFRING_LOAD(word) ((__typeof__(*(word)))word_load((word), sizeof(*(word)), RELAXED))
#define PERFRING_LOAD_ORDERED(word) ((__typeof__(*(word)))word_load((word), sizeof(*(word)), ORDERED))
#define PERFRING_STORE_RELEASE(word, value) word_store((word), sizeof(*(word)), (uint64_t)(value), RELEASE)
#define PERFRING_STORE(word, value) word_store((word), sizeof(*(word)), (uint64_t)(value), RELAXED)
#endif
#define PERFRING_ADD(word, value) ((__typeof__(*(word)))word_modify((word), sizeof(*(word)), '+', (uint64_t)(value)))
#define PERFRING_AND(word, bits) ((__typeof__(*(word)))word_modify((word), sizeof(*(word)), '&', (uint64_t)(bits)))
#define PERFRING_OR(word, bits) ((__typeof__(*(word)))word_modify((word), sizeof(*(word)), '|', (uint64_t)(bits)))
#define PERFRING_EXCHANGE(word, value) \
	((__typeof__(*(word)))word_modify((word), sizeof(*(word)), '=', (uint64_t)(value)))
#define PERFRING_COMPARE_EXCHANGE(word, expected, value) word_swap((word), sizeof(*(word)), (expected), (uint64_t)(value))
#define PERFRING_FENCE() fence(now_runs, ORDERED)
#define PERFRING_FENCE_STORES() fence(now_runs, RELEASE)
#define PERFRING_FENCE_LOADS() fence(now_runs, ACQUIRE)
#define PERFRING_FENCE_LOCAL() ((void)0) /* nothing is reordered between a thread and its handlers */
#define PERFRING_RELAX() ((void)0)
#define PERFRING_ADD_LOCAL(word, value) word_add_local((word), (value))
#define PERFRING_COMPARE_EXCHANGE_LOCAL(word, expected, value) word_swap_local((word), (expected), (value))

#endif
