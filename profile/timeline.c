/* timeline.c - the samples of a profile over time, for its page: docs/flame.md.
 *
 * Called by flame.c for `perfring html`.
 *
 * {"from","unit","last","untimed","ranks","streams","losses"}: times are numbers of `unit` ns after `from`.
 *
 *     ranks     the numbers of the profile's weights, those of most samples first
 *     streams   {"cpu" (-1: unknown),"event","count","data"}: samples of one CPU and event in order of time.  Each is numbers of
 *               7 bits a byte, the lowest first, in base64: time since the last one, index in `ranks`, and of an interval its length
 *     losses    [time, kind, cpu, event, count, ...]: -1: unknown
 *
 * So a sample takes three or four characters.  What a sample weighs is not in it: the mean of its weight's samples.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "timeline.h"

enum {
	UNIT = 100000,      /* ns */
	UNITS = 1 << 24,    /* at most: of a longer recording a unit is longer */
};

/* Bytes as base64, three at a time. */
struct base64 {
	FILE *out;
	unsigned char bytes[3];
	unsigned count;
};

static void put_three(struct base64 *text)
{
	static const char DIGITS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	uint32_t bits = (uint32_t)text->bytes[0] << 16 | (uint32_t)text->bytes[1] << 8 | text->bytes[2];

	for (unsigned i = 0; i < 4; i++)
		putc_unlocked(i > text->count ? '=' : DIGITS[bits >> (18 - 6 * i) & 63], text->out);
	memset(text->bytes, 0, sizeof(text->bytes));
	text->count = 0;
}

static void put_number(struct base64 *text, uint64_t number)
{
	do {
		text->bytes[text->count++] = (unsigned char)((number & 127) | (number > 127 ? 128 : 0));
		if (text->count == 3)
			put_three(text);
		number >>= 7;
	} while (number);
}

static int compare_samples(const void *a, const void *b, void *of)
{
	const struct perfring_profile_sample *samples = of, *one = &samples[*(const uint32_t *)a],
					     *other = &samples[*(const uint32_t *)b];

	if (one->cpu != other->cpu)
		return one->cpu < other->cpu ? -1 : 1;
	if (one->event != other->event)
		return one->event < other->event ? -1 : 1;
	return one->time < other->time ? -1 : one->time > other->time;
}

static int compare_keys(const struct perfring_profile_weight *one, uint32_t stack, uint32_t thread, uint32_t event)
{
	if (one->stack != stack)
		return one->stack < stack ? -1 : 1;
	if (one->thread != thread)
		return one->thread < thread ? -1 : 1;
	return one->event < event ? -1 : one->event > event;
}

static int compare_weights(const void *a, const void *b, void *of)
{
	const struct perfring_profile_weight *weights = of, *other = &weights[*(const uint32_t *)b];

	return compare_keys(&weights[*(const uint32_t *)a], other->stack, other->thread, other->event);
}

static int compare_counts(const void *a, const void *b, void *of)
{
	const struct perfring_profile_weight *weights = of, *one = &weights[*(const uint32_t *)a],
					     *other = &weights[*(const uint32_t *)b];

	if (one->samples != other->samples)
		return one->samples > other->samples ? -1 : 1;
	return *(const uint32_t *)a < *(const uint32_t *)b ? -1 : 1;
}

/* Tables for the streams: samples in their order, and weights by their keys. */
struct lookup {
	const struct perfring_profile_tables *tables;
	uint32_t *samples; /* those with a time, by CPU, event and time */
	uint32_t count;
	uint32_t *weights; /* by key */
	uint32_t *ranks;   /* of each weight */
	uint64_t unit;
};

static uint32_t rank_of(const struct lookup *lookup, const struct perfring_profile_sample *sample)
{
	const struct perfring_profile_weight *weights = lookup->tables->weights;
	uint32_t from = 0, to = lookup->tables->weight_count;

	while (to - from > 1) {
		uint32_t middle = from + (to - from) / 2;

		if (compare_keys(&weights[lookup->weights[middle]], sample->stack, sample->thread, sample->event) <= 0)
			from = middle;
		else
			to = middle;
	}
	return lookup->ranks[lookup->weights[from]];
}

static uint64_t unit_of(const struct lookup *lookup, uint64_t time)
{
	return time > lookup->tables->first ? (time - lookup->tables->first) / lookup->unit : 0;
}

static void put_streams(const struct lookup *lookup, FILE *out)
{
	const struct perfring_profile_tables *tables = lookup->tables;
	uint32_t end;

	for (uint32_t i = 0; i < lookup->count && !ferror(out); i = end) {
		const struct perfring_profile_sample *first = &tables->samples[lookup->samples[i]];
		bool lasts = tables->events[first->event].lasts;
		struct base64 text = {.out = out};
		uint64_t last = 0, time;

		for (end = i + 1; end < lookup->count; end++)
			if (tables->samples[lookup->samples[end]].cpu != first->cpu ||
			    tables->samples[lookup->samples[end]].event != first->event)
				break;
		fprintf(out, "%s{\"cpu\":%" PRId64 ",\"event\":%" PRIu32 ",\"count\":%" PRIu32 ",\"data\":\"",
			i ? ",\n" : "", first->cpu == PERFRING_PROFILE_NONE ? -1 : (int64_t)first->cpu, first->event,
			end - i);
		for (uint32_t j = i; j < end; j++) {
			const struct perfring_profile_sample *sample = &tables->samples[lookup->samples[j]];

			time = unit_of(lookup, sample->time);
			put_number(&text, time - last);
			put_number(&text, rank_of(lookup, sample));
			if (lasts)
				put_number(&text, sample->weight / lookup->unit);
			last = time;
		}
		if (text.count)
			put_three(&text);
		fputs("\"}", out);
	}
}

static void put_losses(const struct lookup *lookup, FILE *out)
{
	for (uint32_t i = 0; i < lookup->tables->loss_count && !ferror(out); i++) {
		const struct perfring_profile_loss *loss = &lookup->tables->losses[i];

		fprintf(out, "%s%" PRId64 ",%" PRIu32 ",%" PRId64 ",%" PRId64 ",%" PRIu64, i ? "," : "",
			loss->time ? (int64_t)unit_of(lookup, loss->time) : -1, loss->kind,
			loss->cpu == PERFRING_PROFILE_NONE ? -1 : (int64_t)loss->cpu,
			loss->event == PERFRING_PROFILE_NONE ? -1 : (int64_t)loss->event, loss->count);
	}
}

static bool look_up(struct lookup *lookup)
{
	const struct perfring_profile_tables *tables = lookup->tables;
	uint32_t count = tables->weight_count, *order;

	lookup->samples = malloc((tables->sample_count + 1) * sizeof(*lookup->samples));
	lookup->weights = malloc((count + (size_t)1) * sizeof(*lookup->weights));
	lookup->ranks = malloc((count + (size_t)1) * sizeof(*lookup->ranks));
	order = malloc((count + (size_t)1) * sizeof(*order));
	if (!lookup->samples || !lookup->weights || !lookup->ranks || !order) {
		free(order);
		return false;
	}
	for (uint32_t i = 0; i < tables->sample_count; i++)
		if (tables->samples[i].time)
			lookup->samples[lookup->count++] = i;
	qsort_r(lookup->samples, lookup->count, sizeof(*lookup->samples), compare_samples,
		(void *)(uintptr_t)tables->samples);
	for (uint32_t i = 0; i < count; i++)
		lookup->weights[i] = order[i] = i;
	qsort_r(lookup->weights, count, sizeof(*lookup->weights), compare_weights, (void *)(uintptr_t)tables->weights);
	qsort_r(order, count, sizeof(*order), compare_counts, (void *)(uintptr_t)tables->weights);
	for (uint32_t i = 0; i < count; i++)
		lookup->ranks[order[i]] = i;
	free(order);
	return true;
}

int perfring__timeline_write(const struct perfring_profile_tables *tables, FILE *out)
{
	struct lookup lookup = {.tables = tables, .unit = UNIT};
	uint64_t length = tables->last > tables->first ? tables->last - tables->first : 0, last = 0;
	uint32_t *by_rank;

	if (length / UNITS >= lookup.unit)
		lookup.unit = length / UNITS + 1;
	by_rank = malloc((tables->weight_count + (size_t)1) * sizeof(*by_rank));
	if (tables->sample_count >= UINT32_MAX || !by_rank || !look_up(&lookup)) {
		free(by_rank);
		free(lookup.samples);
		free(lookup.weights);
		free(lookup.ranks);
		return tables->sample_count >= UINT32_MAX ? -E2BIG : -ENOMEM;
	}
	for (uint32_t i = 0; i < lookup.count; i++) {
		const struct perfring_profile_sample *sample = &tables->samples[lookup.samples[i]];
		uint64_t end = unit_of(&lookup, sample->time) +
			       (tables->events[sample->event].lasts ? sample->weight / lookup.unit : 0);

		last = end > last ? end : last;
	}
	fprintf(out,
		"{\"from\":\"%" PRIu64 "\",\"unit\":%" PRIu64 ",\"last\":%" PRIu64 ",\"untimed\":%" PRIu64 ",\n\"ranks\":[",
		tables->first, lookup.unit, last, tables->sample_count - lookup.count + tables->unlisted);
	for (uint32_t i = 0; i < tables->weight_count; i++)
		by_rank[lookup.ranks[i]] = i;
	for (uint32_t i = 0; i < tables->weight_count && !ferror(out); i++)
		fprintf(out, "%s%" PRIu32, i ? "," : "", by_rank[i]);
	fputs("],\n\"streams\":[", out);
	put_streams(&lookup, out);
	fputs("],\n\"losses\":[", out);
	put_losses(&lookup, out);
	fputs("]}", out);
	free(by_rank);
	free(lookup.samples);
	free(lookup.weights);
	free(lookup.ranks);
	return 0;
}
