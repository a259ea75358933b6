/* speedscope.c - a file of speedscope.app: docs/formats.md.
 *
 * One profile for each event of each thread: stacks with their weights, equal stacks once.
 *
 * Called by perfring_profile_write (views.h).  Weights are sorted by thread and event first: memory of one word for each.
 */
#include <inttypes.h>

#include "json_out.h"
#include "views.h"

static void put_frames(const struct perfring_profile_tables *tables, FILE *out)
{
	char label[512];

	fputs("\"shared\":{\"frames\":[", out);
	for (uint32_t i = 0; i < tables->function_count; i++) {
		const struct perfring_profile_function *function = &tables->functions[i];

		fputs(i ? ",{\"name\":" : "{\"name\":", out);
		perfring__json_text(out, perfring__view_label(function, label, sizeof(label)));
		if (function->file || function->object) {
			fputs(",\"file\":", out);
			perfring__json_text(out, function->file ? function->file : function->object);
		}
		putc_unlocked('}', out);
	}
	fputs("]}", out);
}

static void put_stack(const struct perfring_profile_tables *tables, uint32_t stack, uint32_t *path, FILE *out)
{
	uint32_t depth = 0;

	for (; stack != PERFRING_PROFILE_NONE; stack = tables->stacks[stack].caller)
		path[depth++] = tables->frames[tables->stacks[stack].frame].function;
	putc_unlocked('[', out);
	while (depth--)
		fprintf(out, depth ? "%" PRIu32 "," : "%" PRIu32, path[depth]);
	putc_unlocked(']', out);
}

/* The weights from the i-th on that are of one thread and event.  Returns how many. */
static uint32_t put_profile(const struct perfring_profile_tables *tables, const struct perfring_profile_view *view,
			    const uint32_t *order, uint32_t i, uint32_t *path, FILE *out)
{
	const struct perfring_profile_weight *first = &tables->weights[order[i]];
	const struct perfring_profile_event *event = &tables->events[first->event];
	bool is_time = event->unit && !view->by_samples;
	uint32_t count = 0;
	uint64_t sum = 0;

	while (i + count < tables->weight_count && tables->weights[order[i + count]].thread == first->thread &&
	       tables->weights[order[i + count]].event == first->event)
		sum = perfring__view_plus(sum, perfring__view_number(view, &tables->weights[order[i + count++]]));
	fputs("{\"type\":\"sampled\",\"name\":", out);
	perfring__view_put_thread(out, tables, first->thread, event->name);
	fprintf(out, ",\"unit\":\"%s\",\"startValue\":0,\"endValue\":%" PRIu64 ",\"samples\":[",
		is_time ? "nanoseconds" : "none", sum);
	for (uint32_t j = 0; j < count; j++) {
		if (j)
			putc_unlocked(',', out);
		put_stack(tables, tables->weights[order[i + j]].stack, path, out);
	}
	fputs("],\"weights\":[", out);
	for (uint32_t j = 0; j < count; j++)
		fprintf(out, j ? ",%" PRIu64 : "%" PRIu64, perfring__view_number(view, &tables->weights[order[i + j]]));
	fputs("]}", out);
	return count;
}

int perfring__write_speedscope(const struct perfring_profile_tables *tables, const struct perfring_profile_view *view,
			       FILE *out)
{
	uint32_t *path = perfring__view_path(tables), *order = perfring__view_order(tables), count;
	const char *before = "";

	if (!path || !order) {
		free(path);
		free(order);
		return -ENOMEM;
	}
	fputs("{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"exporter\":\"perfring\",\"name\":",
	      out);
	perfring__view_put_title(out, tables);
	putc_unlocked(',', out);
	put_frames(tables, out);
	fputs(",\"profiles\":[", out);
	for (uint32_t i = 0; i < tables->weight_count && !ferror(out); i += count) {
		const struct perfring_profile_weight *weight = &tables->weights[order[i]];

		count = 1;
		if (!perfring__view_has(view, weight))
			continue;
		fputs(before, out);
		count = put_profile(tables, view, order, i, path, out);
		before = ",";
	}
	fputs("]}\n", out);
	free(path);
	free(order);
	return 0;
}
