/* json_lines.c - samples with names, one JSON object a line: docs/formats.md.
 *
 * Written from the tables of a profile that keeps its samples, one line at a time: no memory is allocated, and the file may be of any
 * length.  Numbers of 64 bits are strings, because JSON readers keep 53 bits.  Called by perfring_profile_write (views.h) only, in the
 * one thread that has the profile meanwhile; it finds errors of writing in `out`.
 */
#include <inttypes.h>

#include "json_out.h"
#include "views.h"

static const char *const kinds[] = {
	[PERFRING_PROFILE_UNKNOWN] = "unknown", [PERFRING_PROFILE_USER] = "user",
	[PERFRING_PROFILE_INLINED] = "inlined", [PERFRING_PROFILE_MADE] = "jit",
	[PERFRING_PROFILE_KERNEL] = "kernel",   [PERFRING_PROFILE_GUEST] = "guest",
};

/* A function of the stack; inlined ones are frames of their own. */
static void put_frame(const struct perfring_profile_tables *tables, uint32_t index, FILE *out)
{
	const struct perfring_profile_place *frame = &tables->frames[index];
	const struct perfring_profile_function *function = &tables->functions[frame->function];

	fputs("{\"function\":", out);
	perfring__json_text(out, function->name);
	fputs(",\"object\":", out);
	perfring__json_text(out, function->object);
	fprintf(out, ",\"kind\":\"%s\",\"address\":\"0x%" PRIx64 "\"", kinds[function->kind], frame->address);
	if (function->file) {
		fputs(",\"file\":", out);
		perfring__json_text(out, function->file);
		fprintf(out, ",\"line\":%" PRIu32, frame->line);
	}
	putc_unlocked('}', out);
}

/* One line.  Members that are unknown are left out; texts that are unknown are null. */
static void put_sample(const struct perfring_profile_tables *tables, const struct perfring_profile_sample *sample,
		       FILE *out)
{
	const struct perfring_profile_thread *thread = &tables->threads[sample->thread];
	const char *before = "";

	fputs("{\"event\":", out);
	perfring__json_text(out, tables->events[sample->event].name);
	if (sample->time)
		fprintf(out, ",\"time\":\"%" PRIu64 "\"", sample->time);
	if (thread->tid != PERFRING_PROFILE_NONE)
		fprintf(out, ",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32, thread->pid, thread->tid);
	fputs(",\"comm\":", out);
	perfring__json_text(out, thread->comm);
	if (sample->cpu != PERFRING_PROFILE_NONE)
		fprintf(out, ",\"cpu\":%" PRIu32, sample->cpu);
	fprintf(out, ",\"weight\":\"%" PRIu64 "\",\"stack\":[", sample->weight);
	for (uint32_t stack = sample->stack; stack != PERFRING_PROFILE_NONE; stack = tables->stacks[stack].caller) {
		fputs(before, out);
		put_frame(tables, tables->stacks[stack].frame, out);
		before = ",";
	}
	fputs("]}\n", out);
}

int perfring__write_json_lines(const struct perfring_profile_tables *tables, const struct perfring_profile_view *view,
			       FILE *out)
{
	for (uint64_t i = 0; i < tables->sample_count && !ferror(out); i++)
		if (perfring__view_has_event(view, tables->samples[i].event))
			put_sample(tables, &tables->samples[i], out);
	for (uint32_t i = 0; i < tables->loss_count; i++) {
		const struct perfring_profile_loss *loss = &tables->losses[i];

		fprintf(out, "{\"%s\":\"%" PRIu64 "\"", perfring__view_loss_name(loss->kind), loss->count);
		if (loss->time)
			fprintf(out, ",\"time\":\"%" PRIu64 "\"", loss->time);
		perfring__view_put_loss(out, tables, loss);
		fputs("}\n", out);
	}
	return 0;
}
