/* callchain.c - samples with a deferred callchain, kept until its second part arrives (docs/abi.md 5, 6).
 *
 * perfring_deferral_ of callchain.h; the walk over one chain is inline there.  Samples wait in a queue and in two hash tables, by
 * cookie and by cookie and thread.  The memory is bounded by `most`; hash factors are random, because cookies are foreign.
 */
#include <stdlib.h>
#include <sys/queue.h>
#include <perfring/callchain.h>

#include "os/hash.h"

#define USER ((uint64_t)(int64_t)PERFRING_CONTEXT_USER)
#define DEFERRED ((uint64_t)(int64_t)PERFRING_CONTEXT_USER_DEFERRED)

enum {
	SLOTS_MIN = 1 << 6,
	SLOTS_MAX = 1 << 16,
};

/* The two hash tables of waiting samples: a deferred record may lack its thread. */
enum {
	BY_COOKIE,
	BY_THREAD,
	TABLES,
};

TAILQ_HEAD(queue, part);
LIST_HEAD(slot, part);

/* A sample, as its record; or the words of a deferred record, queued before the samples that they complete.  A joined
 * record is made when it is returned, so one buffer of 64 KiB serves all. */
struct part {
	TAILQ_ENTRY(part) queue;
	LIST_ENTRY(part) in[TABLES];
	const struct perfring_format *format; /* NULL: words */
	uint64_t time;
	uint64_t cookie;
	uint32_t tid;
	uint32_t size;
	bool is_complete;
	uint64_t words[];
};

struct perfring_deferral {
	struct queue waiting; /* oldest first */
	struct queue ready;
	struct part *shown; /* the sample that was returned last */
	struct part *rest;  /* the words for the complete samples that are returned now */
	struct slot *slots[TABLES];
	uint64_t factor; /* spreads keys over the slots */
	uint32_t slot_bits;
	size_t most;
	size_t held;
	uint64_t incomplete;
	uint64_t unmatched;
	uint64_t record[PERFRING_RECORD_MAX / 8];
	uint64_t chain[PERFRING_RECORD_MAX / 8];
};

int perfring_deferral_open(struct perfring_deferral **deferral, size_t most)
{
	struct perfring_deferral *opened = calloc(1, sizeof(*opened));
	size_t slots = SLOTS_MIN;

	*deferral = NULL;
	if (!opened)
		return -ENOMEM;
	opened->most = most ? most : 1 << 20;
	while (slots < SLOTS_MAX && slots < opened->most / 64)
		slots *= 2;
	opened->slot_bits = (uint32_t)__builtin_ctzll(slots);
	opened->slots[BY_COOKIE] = calloc(2 * slots, sizeof(struct slot));
	if (!opened->slots[BY_COOKIE]) {
		free(opened);
		return -ENOMEM;
	}
	opened->slots[BY_THREAD] = opened->slots[BY_COOKIE] + slots;
	TAILQ_INIT(&opened->waiting);
	TAILQ_INIT(&opened->ready);
	opened->factor = perfring__os_hash_factor(opened);
	*deferral = opened;
	return 0;
}

static struct part *take_first(struct queue *queue)
{
	struct part *part = TAILQ_FIRST(queue);

	if (part)
		TAILQ_REMOVE(queue, part, queue);
	return part;
}

void perfring_deferral_close(struct perfring_deferral *deferral)
{
	struct part *part;

	if (!deferral)
		return;
	TAILQ_CONCAT(&deferral->ready, &deferral->waiting, queue);
	while ((part = take_first(&deferral->ready)))
		free(part);
	free(deferral->shown);
	free(deferral->rest);
	free(deferral->slots[BY_COOKIE]);
	free(deferral);
}

static struct part *part_of(const void *bytes, uint32_t size)
{
	struct part *part = malloc(sizeof(*part) + size);

	if (!part)
		return NULL;
	part->format = NULL;
	part->size = size;
	part->is_complete = false;
	if (size) /* else bytes may be NULL */
		memcpy(part->words, bytes, size);
	return part;
}

/* Whether the first deferred marker and its cookie are the last two words.  Words after a user marker come from the
 * memory of a process and are no markers. */
static bool is_deferred(const struct perfring_list *list)
{
	uint64_t i, word;

	for (i = 0; i < list->nr; i++) {
		word = list->words[i];
		if (word == DEFERRED)
			return i + 2 == list->nr;
		if (perfring_list_is_user(word))
			return false;
	}
	return false;
}

static struct slot *slot_of(const struct perfring_deferral *deferral, unsigned table, uint64_t cookie, uint32_t tid)
{
	uint64_t key = table == BY_THREAD ? cookie + tid * deferral->factor : cookie;

	return &deferral->slots[table][key * deferral->factor >> (64 - deferral->slot_bits)];
}

static void begin_wait(struct perfring_deferral *deferral, struct part *part)
{
	TAILQ_INSERT_TAIL(&deferral->waiting, part, queue);
	for (unsigned table = 0; table < TABLES; table++)
		LIST_INSERT_HEAD(slot_of(deferral, table, part->cookie, part->tid), part, in[table]);
	deferral->held += sizeof(*part) + part->size;
}

static void end_wait(struct perfring_deferral *deferral, struct part *part)
{
	TAILQ_REMOVE(&deferral->waiting, part, queue);
	for (unsigned table = 0; table < TABLES; table++)
		LIST_REMOVE(part, in[table]);
	deferral->held -= sizeof(*part) + part->size;
}

static void release_oldest(struct perfring_deferral *deferral)
{
	struct part *part = TAILQ_FIRST(&deferral->waiting);

	end_wait(deferral, part);
	TAILQ_INSERT_TAIL(&deferral->ready, part, queue);
}

void perfring_deferral_flush(struct perfring_deferral *deferral)
{
	while (!TAILQ_EMPTY(&deferral->waiting))
		release_oldest(deferral);
}

static int put_sample(struct perfring_deferral *deferral, const struct perfring_item *item)
{
	const uint64_t needed = PERFRING_SAMPLE_CALLCHAIN | PERFRING_SAMPLE_TID;
	struct perfring_sample sample;
	perfring_header *header;
	struct part *part;

	if (!item->format || (item->format->sample_type & needed) != needed ||
	    perfring_sample_decode_any(item->format, item->record, &sample, NULL) || !is_deferred(&sample.callchain))
		return 1;
	part = part_of(item->record,
		       (uint32_t)((const unsigned char *)sample.trailing - (const unsigned char *)item->record) +
			       sample.trailing_size);
	if (!part)
		return -ENOMEM;
	header = (perfring_header *)(void *)part->words;
	header->size = (uint16_t)part->size; /* the size that was checked */
	part->format = item->format;
	part->time = item->time;
	part->cookie = sample.callchain.words[sample.callchain.nr - 1];
	part->tid = sample.tid;
	begin_wait(deferral, part);
	while (deferral->held > deferral->most)
		release_oldest(deferral);
	return 0;
}

/* The first match from `part` on; of any thread, unless the table is by thread. */
static struct part *first_of(struct part *part, unsigned table, uint64_t cookie, uint32_t tid)
{
	while (part && (part->cookie != cookie || (table == BY_THREAD && part->tid != tid)))
		part = LIST_NEXT(part, in[table]);
	return part;
}

static int put_rest(struct perfring_deferral *deferral, const struct perfring_item *item)
{
	const struct perfring_list *ips;
	struct queue found = TAILQ_HEAD_INITIALIZER(found);
	struct perfring_record record;
	struct part *part, *next, *rest;
	uint64_t cookie;
	uint32_t tid = 0;
	unsigned table = BY_COOKIE;

	if (perfring_record_decode(item->format, item->record, &record, NULL))
		return 1;
	ips = &record.is.callchain_deferred.ips;
	cookie = record.is.callchain_deferred.cookie;
	if (record.trailer.present & PERFRING_SAMPLE_TID) {
		table = BY_THREAD;
		tid = record.trailer.tid;
	}
	part = first_of(LIST_FIRST(slot_of(deferral, table, cookie, tid)), table, cookie, tid);
	if (!part) {
		deferral->unmatched++;
		return 1;
	}
	rest = part_of(ips->words, (uint32_t)ips->nr * 8);
	if (!rest)
		return -ENOMEM;
	TAILQ_INSERT_TAIL(&deferral->ready, rest, queue);
	/* A slot has the newest first. */
	for (; part; part = next) {
		next = first_of(LIST_NEXT(part, in[table]), table, cookie, tid);
		end_wait(deferral, part);
		part->is_complete = true;
		TAILQ_INSERT_HEAD(&found, part, queue);
	}
	TAILQ_CONCAT(&deferral->ready, &found, queue);
	return 0;
}

int perfring_deferral_put(struct perfring_deferral *deferral, const struct perfring_item *item)
{
	switch (((const perfring_header *)item->record)->type) {
	case PERFRING_RECORD_SAMPLE:
		return put_sample(deferral, item);
	case PERFRING_RECORD_CALLCHAIN_DEFERRED:
		return put_rest(deferral, item);
	default:
		return 1;
	}
}

/* Returns the joined record, or NULL: the sample is returned as it is. */
static const void *join(struct perfring_deferral *deferral, const struct part *part)
{
	const uint64_t *rest, most = sizeof(deferral->chain) / 8;
	uint64_t at, nr, *chain = deferral->chain;
	struct perfring_sample sample;

	if (!part->is_complete || perfring_sample_decode_any(part->format, (const void *)part->words, &sample, NULL) ||
	    !is_deferred(&sample.callchain))
		return NULL;
	at = sample.callchain.nr - 2;
	rest = deferral->rest->words;
	nr = deferral->rest->size / 8;
	while (nr && *rest == USER) {
		rest++;
		nr--;
	}
	if (at + 1 + nr > most)
		return NULL;
	memcpy(chain, sample.callchain.words, (size_t)at * 8);
	chain[at] = USER;
	memcpy(chain + at + 1, rest, (size_t)nr * 8);
	sample.callchain.words = chain;
	sample.callchain.nr = at + 1 + nr;
	if (perfring_sample_encode_any(part->format, &sample, deferral->record, sizeof(deferral->record)) < 0)
		return NULL;
	return deferral->record;
}

int perfring_deferral_next(struct perfring_deferral *deferral, struct perfring_item *item)
{
	struct part *part;

	if (!deferral)
		return -EINVAL;
	free(deferral->shown);
	deferral->shown = NULL;
	for (;;) {
		part = take_first(&deferral->ready);
		if (!part)
			return 0;
		if (part->format)
			break;
		free(deferral->rest);
		deferral->rest = part;
	}
	deferral->shown = part;
	item->record = join(deferral, part);
	item->format = part->format;
	item->time = part->time;
	if (!item->record) {
		item->record = (const void *)part->words;
		deferral->incomplete++;
	}
	return 1;
}

uint64_t perfring_deferral_incomplete(const struct perfring_deferral *deferral)
{
	return deferral->incomplete;
}

uint64_t perfring_deferral_unmatched(const struct perfring_deferral *deferral)
{
	return deferral->unmatched;
}
