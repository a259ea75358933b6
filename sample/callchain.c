/* callchain.c - samples whose callchain comes in two parts, kept until the second part is there (docs/abi.md 5, 6). */
#include <stdlib.h>
#include <sys/random.h>
#include <perfring/callchain.h>

#define USER ((uint64_t)(int64_t)PERFRING_CONTEXT_USER)
#define DEFERRED ((uint64_t)(int64_t)PERFRING_CONTEXT_USER_DEFERRED)

enum {
	SLOTS_LEAST = 1 << 6,
	SLOTS_MOST = 1 << 16,
};

/* The lists that a waiting sample is in.  Two tables, because a deferred record may not tell its thread: whatever is
 * looked up, a slot holds nothing but what is sought and chance collisions. */
enum {
	LINE, /* all, from the oldest on; later those that are ready */
	BY_COOKIE,
	BY_THREAD,
	WAYS,
};

/* A sample, which is its record; or the words of a deferred record, which stand in front of the samples that they
 * complete: a joined record is made when it is asked for, so 64 KiB serve them all. */
struct part {
	struct part *next[WAYS];
	struct part **from[WAYS];
	const struct perfring_format *format; /* NULL: words */
	uint64_t time;
	uint64_t cookie;
	uint32_t tid;
	uint32_t size;
	bool is_complete;
	uint64_t words[];
};

struct perfring_deferral {
	struct part *waiting;
	struct part **waiting_end;
	struct part *ready;
	struct part **ready_end;
	struct part *shown; /* the sample that the last item is, or was made of */
	struct part *rest;  /* the words for the complete samples that come out now */
	struct part **slots[WAYS];
	uint64_t odd; /* random: a stream cannot choose what collides */
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
	size_t slots = SLOTS_LEAST;

	*deferral = NULL;
	if (!opened)
		return -ENOMEM;
	opened->most = most ? most : 1 << 20;
	while (slots < SLOTS_MOST && slots < opened->most / 64)
		slots *= 2;
	opened->slot_bits = (uint32_t)__builtin_ctzll(slots);
	opened->slots[BY_COOKIE] = calloc(2 * slots, sizeof(struct part *));
	if (!opened->slots[BY_COOKIE]) {
		free(opened);
		return -ENOMEM;
	}
	opened->slots[BY_THREAD] = opened->slots[BY_COOKIE] + slots;
	opened->waiting_end = &opened->waiting;
	opened->ready_end = &opened->ready;
	if (getrandom(&opened->odd, sizeof(opened->odd), GRND_NONBLOCK) != sizeof(opened->odd))
		opened->odd = (uintptr_t)opened * UINT64_C(0x9e3779b97f4a7c15);
	opened->odd |= 1;
	*deferral = opened;
	return 0;
}

static void free_line(struct part *part)
{
	struct part *next;

	for (; part; part = next) {
		next = part->next[LINE];
		free(part);
	}
}

void perfring_deferral_close(struct perfring_deferral *deferral)
{
	if (!deferral)
		return;
	free_line(deferral->waiting);
	free_line(deferral->ready);
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
	if (size) /* no bytes may be NULL */
		memcpy(part->words, bytes, size);
	return part;
}

/* Whether the first deferred marker and its cookie are the last two words.  Behind a user marker it is none: what
 * stands there comes from the memory of a process. */
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

static struct part **slot_of(const struct perfring_deferral *deferral, unsigned way, uint64_t cookie, uint32_t tid)
{
	uint64_t key = way == BY_THREAD ? cookie + tid * deferral->odd : cookie;

	return &deferral->slots[way][key * deferral->odd >> (64 - deferral->slot_bits)];
}

static void link_at(struct part **at, struct part *part, unsigned way)
{
	part->next[way] = *at;
	part->from[way] = at;
	if (*at)
		(*at)->from[way] = &part->next[way];
	*at = part;
}

static void wait_for_rest(struct perfring_deferral *deferral, struct part *part)
{
	link_at(deferral->waiting_end, part, LINE);
	deferral->waiting_end = &part->next[LINE];
	link_at(slot_of(deferral, BY_COOKIE, part->cookie, part->tid), part, BY_COOKIE);
	link_at(slot_of(deferral, BY_THREAD, part->cookie, part->tid), part, BY_THREAD);
	deferral->held += sizeof(*part) + part->size;
}

static void wait_no_more(struct perfring_deferral *deferral, struct part *part)
{
	unsigned way;

	if (deferral->waiting_end == &part->next[LINE])
		deferral->waiting_end = part->from[LINE];
	for (way = 0; way < WAYS; way++) {
		*part->from[way] = part->next[way];
		if (part->next[way])
			part->next[way]->from[way] = part->from[way];
	}
	deferral->held -= sizeof(*part) + part->size;
}

static void make_ready(struct perfring_deferral *deferral, struct part *part)
{
	part->next[LINE] = NULL;
	*deferral->ready_end = part;
	deferral->ready_end = &part->next[LINE];
}

static void give_up_oldest(struct perfring_deferral *deferral)
{
	struct part *part = deferral->waiting;

	wait_no_more(deferral, part);
	make_ready(deferral, part);
}

void perfring_deferral_flush(struct perfring_deferral *deferral)
{
	while (deferral->waiting)
		give_up_oldest(deferral);
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
	part = part_of(item->record, (uint32_t)((const unsigned char *)sample.trailing -
						(const unsigned char *)item->record) + sample.trailing_size);
	if (!part)
		return -ENOMEM;
	header = (perfring_header *)(void *)part->words;
	header->size = (uint16_t)part->size; /* the one that was checked */
	part->format = item->format;
	part->time = item->time;
	part->cookie = sample.callchain.words[sample.callchain.nr - 1];
	part->tid = sample.tid;
	wait_for_rest(deferral, part);
	while (deferral->held > deferral->most)
		give_up_oldest(deferral);
	return 0;
}

/* What is sought: of any thread when the table is not that of the threads. */
static struct part *first_of(struct part *part, unsigned way, uint64_t cookie, uint32_t tid)
{
	while (part && (part->cookie != cookie || (way == BY_THREAD && part->tid != tid)))
		part = part->next[way];
	return part;
}

static int put_rest(struct perfring_deferral *deferral, const struct perfring_item *item)
{
	const struct perfring_list *ips;
	struct part *part, *next, *rest, *found = NULL;
	struct perfring_record record;
	uint64_t cookie;
	uint32_t tid = 0;
	unsigned way = BY_COOKIE;

	if (perfring_record_decode(item->format, item->record, &record, NULL))
		return 1;
	ips = &record.is.callchain_deferred.ips;
	cookie = record.is.callchain_deferred.cookie;
	if (record.trailer.present & PERFRING_SAMPLE_TID) {
		way = BY_THREAD;
		tid = record.trailer.tid;
	}
	part = first_of(*slot_of(deferral, way, cookie, tid), way, cookie, tid);
	if (!part) {
		deferral->unmatched++;
		return 1;
	}
	rest = part_of(ips->words, (uint32_t)ips->nr * 8);
	if (!rest)
		return -ENOMEM;
	make_ready(deferral, rest);
	/* A slot has the youngest first. */
	for (; part; part = next) {
		next = first_of(part->next[way], way, cookie, tid);
		wait_no_more(deferral, part);
		part->is_complete = true;
		part->next[LINE] = found;
		found = part;
	}
	for (; found; found = next) {
		next = found->next[LINE];
		make_ready(deferral, found);
	}
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

/* NULL when it comes out as it is. */
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
		part = deferral->ready;
		if (!part)
			return 0;
		deferral->ready = part->next[LINE];
		if (!deferral->ready)
			deferral->ready_end = &deferral->ready;
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
