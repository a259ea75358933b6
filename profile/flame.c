/* flame.c - a profile as one HTML page with a flame graph: docs/flame.md.
 *
 * The page is profile/flame/; here are its data, tables as JSON: {"title","settings","profile":{...},"old":{...} or null,"time":{...}
 * or null (timeline.c)}.  Of a profile:
 *
 *     texts      [text, ...]
 *     functions  [name, object, file, kind, ...]: indices of texts, -1: unknown
 *     stacks     [function, line, difference to the caller's index (0: none), ...]
 *     weights    [stack (-1: none), thread, event, samples, weight, ...]
 *
 * perfring_profile_write_flame of profile.h, for `perfring flame` and `html`.  Texts of programs are escaped (json_out.h), so
 * that none ends the script.  -ENOMEM comes before the page's first byte; errors of writing are found in `out`.
 */
#include <errno.h>
#include <inttypes.h>

#include "flame.h"
#include "json_out.h"
#include "timeline.h"
#include "views.h"

static const char *const colours[] = {
	[PERFRING_PROFILE_BY_FUNCTION] = "function",
	[PERFRING_PROFILE_BY_OBJECT] = "object",
	[PERFRING_PROFILE_BY_KIND] = "kind",
};

static void put_member(FILE *out, const char *before, const char *name, const char *text)
{
	fprintf(out, "%s\"%s\":", before, name);
	perfring__json_page_text(out, text);
}

static void put_id(FILE *out, uint32_t id)
{
	if (id == PERFRING_PROFILE_NONE)
		fputs("-1,", out);
	else
		fprintf(out, "%" PRIu32 ",", id);
}

static void put_heads(const struct perfring_profile_tables *tables, FILE *out)
{
	fprintf(out, "\"lost\":[%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "],",
		tables->lost[PERFRING_PROFILE_LOST_RECORDS], tables->lost[PERFRING_PROFILE_LOST_SAMPLES],
		tables->lost[PERFRING_PROFILE_THROTTLED], tables->lost[PERFRING_PROFILE_UNREAD]);
	fprintf(out, "\"nameless\":%" PRIu64 ",\"truncated\":%" PRIu64 ",\"crowded\":%" PRIu64 ",\n\"events\":[",
		tables->nameless, tables->truncated, tables->crowded);
	for (uint32_t i = 0; i < tables->event_count; i++) {
		const struct perfring_profile_event *event = &tables->events[i];

		put_member(out, i ? ",{" : "{", "name", event->name ? event->name : "");
		put_member(out, ",", "unit", event->unit);
		fprintf(out, ",\"lasts\":%d", event->lasts != 0);
		fprintf(out, ",\"samples\":%" PRIu64 ",\"weight\":%" PRIu64 ",\"lost\":%" PRIu64 "}", event->samples,
			event->weight, event->lost_samples);
	}
	fputs("],\n\"threads\":[", out);
	for (uint32_t i = 0; i < tables->thread_count; i++) {
		const struct perfring_profile_thread *thread = &tables->threads[i];

		fputs(i ? ",[" : "[", out);
		put_id(out, thread->tid == PERFRING_PROFILE_NONE ? thread->tid : thread->pid);
		put_id(out, thread->tid);
		perfring__json_page_text(out, thread->comm ? thread->comm : "[unknown]");
		putc_unlocked(']', out);
	}
}

static void put_profile(const struct perfring_profile_tables *tables, const char *title, FILE *out)
{
	put_member(out, "{", "title", title);
	put_member(out, ",", "command", tables->command);
	put_member(out, ",", "host", tables->host);
	putc_unlocked(',', out);
	put_heads(tables, out);
	fputs("],\n\"texts\":[", out);
	for (uint32_t i = 0; i < tables->text_count && !ferror(out); i++) {
		fputs(i ? ",\n" : "", out);
		perfring__json_page_text(out, tables->texts[i]);
	}
	fputs("],\n\"functions\":[", out);
	for (uint32_t i = 0; i < tables->function_count && !ferror(out); i++) {
		const struct perfring_profile_function *function = &tables->functions[i];

		fputs(i ? "," : "", out);
		put_id(out, function->name_id);
		put_id(out, function->object_id);
		put_id(out, function->file_id);
		fprintf(out, "%" PRIu32, function->kind);
	}
	fputs("],\n\"stacks\":[", out);
	for (uint32_t i = 0; i < tables->stack_count && !ferror(out); i++) {
		const struct perfring_profile_stack *stack = &tables->stacks[i];
		const struct perfring_profile_place *frame = &tables->frames[stack->frame];

		fprintf(out, "%s%" PRIu32 ",%" PRIu32 ",%" PRIu32, i ? "," : "", frame->function, frame->line,
			stack->caller == PERFRING_PROFILE_NONE ? 0 : i - stack->caller);
	}
	fputs("],\n\"weights\":[", out);
	for (uint32_t i = 0; i < tables->weight_count && !ferror(out); i++) {
		const struct perfring_profile_weight *weight = &tables->weights[i];

		fputs(i ? "," : "", out);
		put_id(out, weight->stack);
		fprintf(out, "%" PRIu32 ",%" PRIu32 ",%" PRIu64 ",%" PRIu64, weight->thread, weight->event,
			weight->samples, weight->weight);
	}
	fputs("]}", out);
}

/* The first event that has samples; one of intervals, as of waiting, only if there is no other. */
static uint32_t first_event(const struct perfring_profile_tables *tables)
{
	for (uint64_t lasts = 0; lasts < 2; lasts++)
		for (uint32_t i = 0; i < tables->event_count; i++)
			if (tables->events[i].samples && tables->events[i].lasts == lasts)
				return i;
	return 0;
}

int perfring_profile_write_flame(const struct perfring_profile *profile, const struct perfring_profile_flame *given,
				 FILE *out)
{
	static const struct perfring_profile_flame plain = {.event = PERFRING_PROFILE_NONE};
	const struct perfring_profile_flame *flame = given ? given : &plain;
	struct perfring_profile_tables tables, old;
	const char *title = flame->title;
	int error = 0;

	perfring_profile_read(profile, &tables);
	if (flame->over_time && tables.weight_count && !tables.samples)
		return -EINVAL;
	if ((flame->event != PERFRING_PROFILE_NONE && flame->event >= tables.event_count) ||
	    flame->colours >= PERFRING_PROFILE_BY_COUNT || !(flame->share >= 0 && flame->share <= 1))
		return -EINVAL;
	if (!title)
		title = tables.command ? tables.command : "profile";
	fwrite(perfring__flame_begin, 1, perfring__flame_begin_size, out);
	put_member(out, "{", "title", title);
	fprintf(out,
		",\"settings\":{\"event\":%" PRIu32 ",\"weigh\":\"%s\",\"colours\":\"%s\",\"width\":%" PRIu32
		",\"share\":%" PRIu32 "e-9},\n\"profile\":",
		flame->event == PERFRING_PROFILE_NONE ? first_event(&tables) : flame->event,
		flame->by_samples ? "samples" : "period", colours[flame->colours], flame->width,
		(uint32_t)(flame->share * 1e9)); /* no locale has its own point in it */
	put_profile(&tables, NULL, out);
	fputs(",\n\"old\":", out);
	if (flame->old) {
		perfring_profile_read(flame->old, &old);
		put_profile(&old, flame->old_title, out);
	} else {
		fputs("null", out);
	}
	fputs(",\n\"time\":", out);
	if (flame->over_time)
		error = perfring__timeline_write(&tables, out);
	else
		fputs("null", out);
	putc_unlocked('}', out);
	if (error)
		return error;
	fwrite(perfring__flame_end, 1, perfring__flame_end_size, out);
	return fflush(out) || ferror(out) ? (errno ? -errno : -EIO) : 0;
}
