/* chrome.c - trace events, for chrome://tracing and ui.perfetto.dev: docs/formats.md.
 *
 *     stackFrames    each stack by its index: the function, and its caller's index
 *     "M"            names of processes and threads
 *     "P"            a sample, with its stack
 *     "X"            an interval, with its stack
 *     "i"            a loss
 *
 * Called by perfring_profile_write (views.h), for a profile that keeps its samples.  Written row by row from the tables, without
 * memory of its own; stops at ferror(out), which views.c's stream has after bytes_max.  Texts of a profile that are equal are one
 * pointer.
 */
#include <inttypes.h>

#include "json_out.h"
#include "views.h"

#define MICROSECOND 1000

static void put_stacks(const struct perfring_profile_tables *tables, FILE *out)
{
	char label[512];

	fputs(",\n\"stackFrames\":{", out);
	for (uint32_t i = 0; i < tables->stack_count && !ferror(out); i++) {
		const struct perfring_profile_stack *stack = &tables->stacks[i];
		const struct perfring_profile_function *function =
			&tables->functions[tables->frames[stack->frame].function];

		fprintf(out, i ? ",\n\"%" PRIu32 "\":{\"name\":" : "\n\"%" PRIu32 "\":{\"name\":", i);
		perfring__json_text(out, perfring__view_label(function, label, sizeof(label)));
		fputs(",\"category\":", out);
		perfring__json_text(out, function->object ? perfring__view_short_name(function->object) : "[unknown]");
		if (stack->caller != PERFRING_PROFILE_NONE)
			fprintf(out, ",\"parent\":%" PRIu32, stack->caller);
		putc_unlocked('}', out);
	}
	putc_unlocked('}', out);
}

static void put_ids(const struct perfring_profile_thread *thread, FILE *out)
{
	fprintf(out, "\"pid\":%" PRId32 ",\"tid\":%" PRId32, (int32_t)thread->pid, (int32_t)thread->tid);
}

static void put_name(const struct perfring_profile_thread *thread, const char *what, const char *name, FILE *out)
{
	fprintf(out, ",\n{\"ph\":\"M\",\"name\":\"%s\",", what);
	put_ids(thread, out);
	fputs(",\"args\":{\"name\":", out);
	perfring__json_text(out, name);
	fputs("}}", out);
}

/* Names the processes and threads, and process 0 for what belongs to no thread. */
static void put_names(const struct perfring_profile_tables *tables, FILE *out)
{
	fputs("\n{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":0,\"tid\":0,\"args\":{\"name\":\"recording\"}}", out);
	for (uint32_t i = 0; i < tables->thread_count && !ferror(out); i++) {
		const struct perfring_profile_thread *thread = &tables->threads[i], *last = i ? thread - 1 : NULL;

		if (thread->process_comm &&
		    !(last && last->pid == thread->pid && last->process_comm == thread->process_comm))
			put_name(thread, "process_name", thread->process_comm, out);
		if (thread->comm)
			put_name(thread, "thread_name", thread->comm, out);
	}
}

static void put_sample(const struct perfring_profile_tables *tables, const struct perfring_profile_view *view,
		       const struct perfring_profile_sample *sample, uint64_t origin, FILE *out)
{
	const struct perfring_profile_event *event = &tables->events[sample->event];
	const char *before = "";

	fprintf(out, ",\n{\"ph\":\"%c\",\"name\":", event->lasts ? 'X' : 'P');
	perfring__json_text(out, event->name);
	fputs(event->lasts ? ",\"cat\":\"interval\"," : ",\"cat\":\"sample\",", out);
	put_ids(&tables->threads[sample->thread], out);
	fputs(",\"ts\":", out);
	perfring__view_put_time(out, perfring__view_since(origin, sample->time), MICROSECOND);
	if (event->lasts) {
		fputs(",\"dur\":", out);
		perfring__view_put_time(out, sample->weight, MICROSECOND);
	}
	if (sample->stack != PERFRING_PROFILE_NONE)
		fprintf(out, ",\"sf\":%" PRIu32, sample->stack);
	fputs(",\"args\":{", out);
	if (!event->lasts) {
		fprintf(out, "\"weight\":%" PRIu64, view->by_samples ? 1 : sample->weight);
		before = ",";
	}
	if (sample->cpu != PERFRING_PROFILE_NONE)
		fprintf(out, "%s\"cpu\":%" PRIu32, before, sample->cpu);
	fputs("}}", out);
}

static void put_loss(const struct perfring_profile_tables *tables, const struct perfring_profile_loss *loss,
		     uint64_t origin, FILE *out)
{
	bool is_of_thread = loss->thread != PERFRING_PROFILE_NONE;

	fprintf(out, ",\n{\"ph\":\"i\",\"s\":\"%c\",\"name\":\"%s\",\"cat\":\"loss\",", is_of_thread ? 't' : 'g',
		perfring__view_loss_name(loss->kind));
	if (is_of_thread)
		put_ids(&tables->threads[loss->thread], out);
	else
		fputs("\"pid\":0,\"tid\":0", out);
	fputs(",\"ts\":", out);
	perfring__view_put_time(out, perfring__view_since(origin, loss->time), MICROSECOND);
	fprintf(out, ",\"args\":{\"count\":%" PRIu64, loss->count);
	perfring__view_put_loss(out, tables, loss);
	fputs("}}", out);
}

static void put_heads(const struct perfring_profile_tables *tables, uint64_t origin, FILE *out)
{
	fputs("{\"displayTimeUnit\":\"ns\",\"otherData\":{\"producer\":\"perfring\",\"title\":", out);
	perfring__view_put_title(out, tables);
	fputs(",\"host\":", out);
	perfring__json_text(out, tables->host);
	fprintf(out, ",\"start\":\"%" PRIu64 "\"", origin);
	if (tables->epoch)
		fprintf(out, ",\"since 1970\":\"%" PRIu64 "\"", tables->epoch + origin);
	putc_unlocked('}', out);
}

int perfring__write_chrome(const struct perfring_profile_tables *tables, const struct perfring_profile_view *view,
			   FILE *out)
{
	uint64_t origin = perfring__view_origin(tables);

	put_heads(tables, origin, out);
	put_stacks(tables, out);
	fputs(",\n\"traceEvents\":[", out);
	put_names(tables, out);
	for (uint64_t i = 0; i < tables->sample_count && !ferror(out); i++)
		if (perfring__view_has_event(view, tables->samples[i].event))
			put_sample(tables, view, &tables->samples[i], origin, out);
	for (uint32_t i = 0; i < tables->loss_count && !ferror(out); i++)
		put_loss(tables, &tables->losses[i], origin, out);
	fputs("\n]}\n", out);
	return 0;
}
