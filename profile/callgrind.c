/* callgrind.c - a file of callgrind_annotate and KCachegrind: docs/formats.md.
 *
 *     fn=FUNCTION      LINE SELF            samples in it
 *     cfn=CALLEE       calls=N LINE         samples in it, called from here
 *                      LINE INCLUSIVE
 *
 * What a stack begins with is called by ALL: callgrind_annotate adds up a function's calls, and a stack may begin anywhere.  A
 * sample says who was on the stack, not how often it was called: N is the number of samples.  A function that is on a stack twice
 * counts once for each pair of caller and callee, and callgrind_annotate's inclusive numbers of recursive functions count it
 * twice, as those of callgrind itself.
 *
 * Called by perfring_profile_write (views.h), for one event.  Pairs are counted in a table (table.h); -ENOMEM
 * comes before anything is written.
 */
#include <inttypes.h>
#include <string.h>

#include "os/hash.h"
#include "table.h"
#include "views.h"

#define ALL "[all]" /* its number is that after the last function's */

/* The cost of one function itself, or of the calls from one function to another. */
struct cost {
	uint32_t caller; /* PERFRING_PROFILE_NONE: its own */
	uint32_t function;
	uint64_t number, samples;
};

static int compare(const void *a, const void *b)
{
	const struct cost *one = a, *other = b;
	uint32_t of_one = one->caller == PERFRING_PROFILE_NONE ? one->function : one->caller;
	uint32_t of_other = other->caller == PERFRING_PROFILE_NONE ? other->function : other->caller;

	if (of_one != of_other)
		return of_one < of_other ? -1 : 1;
	if ((one->caller == PERFRING_PROFILE_NONE) != (other->caller == PERFRING_PROFILE_NONE))
		return one->caller == PERFRING_PROFILE_NONE ? -1 : 1;
	return one->function < other->function ? -1 : one->function > other->function;
}

static int add(struct perfring_table *table, struct perfring_table_budget *budget, uint32_t caller, uint32_t function,
	       uint64_t number, uint64_t samples)
{
	struct cost key = {caller, function, 0, 0}, *cost;
	int64_t index = perfring__table_add(table, budget, &key, true);

	if (index < 0)
		return (int)index;
	cost = perfring__table_at(table, (uint64_t)index);
	cost->number = perfring__view_plus(cost->number, number);
	cost->samples = perfring__view_plus(cost->samples, samples);
	return 0;
}

/* Each pair of one stack once. */
static int add_stack(struct perfring_table *table, struct perfring_table_budget *budget,
		     const struct perfring_profile_tables *tables, const struct perfring_profile_weight *weight,
		     uint64_t number, uint32_t *path)
{
	uint32_t depth = 0;
	int error = 0;

	for (uint32_t stack = weight->stack; stack != PERFRING_PROFILE_NONE; stack = tables->stacks[stack].caller)
		path[depth++] = tables->frames[tables->stacks[stack].frame].function;
	if (!depth)
		return 0;
	error = add(table, budget, PERFRING_PROFILE_NONE, path[0], number, weight->samples);
	if (!error)
		error = add(table, budget, tables->function_count, path[depth - 1], number, weight->samples);
	for (uint32_t i = 1; !error && i < depth; i++) {
		bool is_new = true;

		for (uint32_t j = 1; is_new && j < i; j++)
			is_new = path[j] != path[i] || path[j - 1] != path[i - 1];
		if (is_new)
			error = add(table, budget, path[i], path[i - 1], number, weight->samples);
	}
	return error;
}

/* The name, once with its number, later by the number alone. */
static void put_name(FILE *out, const char *what, uint32_t id, const char *name, bool *seen)
{
	fprintf(out, "%s=(%" PRIu32 ")", what, id + 1);
	if (!*seen) {
		putc_unlocked(' ', out);
		perfring__view_put_line(out, name);
	}
	*seen = true;
	putc_unlocked('\n', out);
}

/* Viewers know a function by its file and its name: without a file it has its object's, which tells apart those of two objects. */
static const char *file_of(const struct perfring_profile_function *function)
{
	return function->file ? function->file : function->object ? function->object : "???";
}

static const char *object_of(const struct perfring_profile_function *function)
{
	return function->object ? function->object : "???";
}

static const struct perfring_profile_function *function_of(const struct perfring_profile_tables *tables, uint32_t index)
{
	static const struct perfring_profile_function all = {.name = ALL};

	return index < tables->function_count ? &tables->functions[index] : &all;
}

static void put_costs(const struct perfring_profile_tables *tables, const struct cost *costs, uint32_t count,
		      bool *seen, FILE *out)
{
	uint32_t last = PERFRING_PROFILE_NONE;
	char label[512];

	for (uint32_t i = 0; i < count; i++) {
		const struct cost *cost = &costs[i];
		uint32_t of = cost->caller == PERFRING_PROFILE_NONE ? cost->function : cost->caller;

		if (of != last) {
			fprintf(out, "\nob=");
			perfring__view_put_line(out, object_of(function_of(tables, of)));
			fprintf(out, "\nfl=");
			perfring__view_put_line(out, file_of(function_of(tables, of)));
			putc_unlocked('\n', out);
			put_name(out, "fn", of, perfring__view_label(function_of(tables, of), label, sizeof(label)),
				 &seen[of]);
		}
		last = of;
		if (cost->caller == PERFRING_PROFILE_NONE) {
			fprintf(out, "0 %" PRIu64 "\n", cost->number);
			continue;
		}
		fprintf(out, "cob=");
		perfring__view_put_line(out, object_of(&tables->functions[cost->function]));
		fprintf(out, "\ncfi=");
		perfring__view_put_line(out, file_of(&tables->functions[cost->function]));
		putc_unlocked('\n', out);
		put_name(out, "cfn", cost->function,
			 perfring__view_label(&tables->functions[cost->function], label, sizeof(label)),
			 &seen[cost->function]);
		fprintf(out, "calls=%" PRIu64 " 0\n0 %" PRIu64 "\n", cost->samples, cost->number);
	}
}

int perfring__write_callgrind(const struct perfring_profile_tables *tables, const struct perfring_profile_view *given,
			      FILE *out)
{
	struct perfring_table_budget budget = {.max = UINT64_MAX, .factor = perfring__os_hash_factor(out)};
	struct perfring_table table = {.size = sizeof(struct cost), .key_size = offsetof(struct cost, number)};
	struct perfring_profile_view view = *given;
	uint32_t *path = perfring__view_path(tables);
	bool *seen = calloc((size_t)tables->function_count + 1, sizeof(*seen));
	int error = path && seen ? 0 : -ENOMEM;

	/* the format has columns of events, and a call's line would need all of them: one event a file */
	if (view.event == PERFRING_PROFILE_NONE)
		view.event = 0;
	for (uint32_t i = 0; !error && i < tables->weight_count; i++)
		if (perfring__view_has(&view, &tables->weights[i]))
			error = add_stack(&table, &budget, tables, &tables->weights[i],
					  perfring__view_number(&view, &tables->weights[i]), path);
	if (!error) {
		fputs("# callgrind format\nversion: 1\ncreator: perfring\ncmd: ", out);
		perfring__view_put_line(out, tables->command ? tables->command : "");
		for (unsigned kind = 0; kind < PERFRING_PROFILE_LOSS_COUNT; kind++)
			if (tables->lost[kind])
				fprintf(out, "\ndesc: %s: %" PRIu64, perfring__view_loss_name(kind),
					tables->lost[kind]);
		fputs("\npositions: line\nevents: ", out);
		perfring__view_put_word(out, tables->event_count ? tables->events[view.event].name : "samples");
		putc_unlocked('\n', out);
		if (table.count)
			qsort(table.elements, table.count, table.size, compare);
		put_costs(tables, (const void *)table.elements, table.count, seen, out);
	}
	perfring__table_close(&table);
	free(path);
	free(seen);
	return error;
}
