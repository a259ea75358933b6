/* firefox.c - a processed profile of the Firefox Profiler, version 66: docs/formats.md.
 *
 *     meta, libs    the recording; objects with their build ids
 *     shared        texts, functions, frames and stacks, with the indices of the profile's tables; objects and source files are groups of
 *                   functions (perfring_view_groups)
 *     threads       one for each thread and event, with its samples.  The first one of a thread has its intervals (off-cpu, spans) as
 *                   markers.  The last one, "[recording]", has the losses, and is as long as the recording
 *
 * A table is columns of one length:  {"length":2,"frame":[0,1],"prefixOffset":[0,1]}
 *
 * A column is written at once, by a function for the value of one row (put_cell).  Memory: a few words for each function, frame and
 * sample.  Called by perfring_profile_write (views.h) only, for a profile that keeps its samples, in the one thread that has the
 * profile meanwhile; -ENOMEM comes before anything is written, and errors of writing are found in `out`.
 */
#include <inttypes.h>
#include <string.h>

#include "json_out.h"
#include "views.h"

#define MILLISECOND 1000000

/* By enum perfring_profile_kind.  The profiler takes the first grey category for frames without one. */
static const struct {
	const char *name, *colour;
} categories[] = {
	[PERFRING_PROFILE_UNKNOWN] = {"Other", "grey"},   [PERFRING_PROFILE_USER] = {"User", "yellow"},
	[PERFRING_PROFILE_INLINED] = {"Inlined", "blue"}, [PERFRING_PROFILE_MADE] = {"JIT", "green"},
	[PERFRING_PROFILE_KERNEL] = {"Kernel", "orange"}, [PERFRING_PROFILE_GUEST] = {"Guest", "purple"},
};

struct writer {
	const struct perfring_profile_tables *tables;
	const struct perfring_profile_view *view;
	FILE *out;
	uint64_t origin;
	struct perfring_view_groups objects, files;
	uint32_t *labels; /* by function without a name: the index of its text ("[libc.so.6]"); else PERFRING_PROFILE_NONE */
	uint32_t label_count;
	uint8_t *depths;   /* by frame: 0: a function that was called; N: the Nth of those that were inlined in it, the outermost first */
	uint64_t *order;   /* indices of the view's samples, sorted by thread; in a thread samples before intervals; then by event and time */
	uint64_t ordered;  /* entries of order */
	const char *comma; /* before the next thread */
};

/* ---- computed before anything is written.  Each returns false without memory ---- */

static bool find_labels(struct writer *writer)
{
	const struct perfring_profile_tables *tables = writer->tables;

	writer->labels = malloc(((size_t)tables->function_count + 1) * sizeof(*writer->labels));
	for (uint32_t i = 0; writer->labels && i < tables->function_count; i++)
		writer->labels[i] =
			tables->functions[i].name ? PERFRING_PROFILE_NONE : tables->text_count + writer->label_count++;
	return writer->labels;
}

static bool is_inlined(const struct perfring_profile_tables *tables, uint32_t frame)
{
	return tables->functions[tables->frames[frame].function].kind == PERFRING_PROFILE_INLINED;
}

/* A stack's caller has a lower index: its depth is known when the stack's turn comes. */
static bool find_depths(struct writer *writer)
{
	const struct perfring_profile_tables *tables = writer->tables;

	writer->depths = calloc((size_t)tables->frame_count + 1, sizeof(*writer->depths));
	for (uint32_t i = 0; writer->depths && i < tables->stack_count; i++) {
		const struct perfring_profile_stack *stack = &tables->stacks[i];
		uint8_t *depth = &writer->depths[stack->frame], outer;

		if (*depth || stack->caller == PERFRING_PROFILE_NONE || !is_inlined(tables, stack->frame))
			continue;
		outer = writer->depths[tables->stacks[stack->caller].frame];
		*depth = (uint8_t)(outer < UINT8_MAX ? outer + 1 : outer);
	}
	return writer->depths;
}

static int compare_samples(const void *a, const void *b, void *of)
{
	const struct perfring_profile_tables *tables = of;
	uint64_t i = *(const uint64_t *)a, j = *(const uint64_t *)b;
	const struct perfring_profile_sample *one = &tables->samples[i], *other = &tables->samples[j];
	uint64_t one_lasts = tables->events[one->event].lasts, other_lasts = tables->events[other->event].lasts;

	if (one->thread != other->thread)
		return one->thread < other->thread ? -1 : 1;
	if (one_lasts != other_lasts)
		return one_lasts < other_lasts ? -1 : 1;
	if (!one_lasts && one->event != other->event)
		return one->event < other->event ? -1 : 1;
	if (one->time != other->time)
		return one->time < other->time ? -1 : 1;
	return i < j ? -1 : i > j;
}

static bool order_samples(struct writer *writer)
{
	const struct perfring_profile_tables *tables = writer->tables;

	if (tables->sample_count > SIZE_MAX / sizeof(*writer->order) - 1)
		return false;
	writer->order = malloc(((size_t)tables->sample_count + 1) * sizeof(*writer->order));
	for (uint64_t i = 0; writer->order && i < tables->sample_count; i++)
		if (perfring__view_has_event(writer->view, tables->samples[i].event))
			writer->order[writer->ordered++] = i;
	if (writer->order)
		qsort_r(writer->order, (size_t)writer->ordered, sizeof(*writer->order), compare_samples,
			(void *)(uintptr_t)tables);
	return writer->order;
}

/* ---- columns ---- */

/* Writes the value of row i. */
typedef void put_cell(struct writer *writer, uint64_t i);

/* Rows from `from` up to `to`, which is not one of them. */
struct range {
	uint64_t from, to;
};

static void put_range(struct writer *writer, const char *name, struct range range, put_cell *cell)
{
	fprintf(writer->out, ",\"%s\":[", name);
	for (uint64_t i = range.from; i < range.to && !ferror(writer->out); i++) {
		if (i > range.from)
			putc_unlocked(',', writer->out);
		cell(writer, i);
	}
	putc_unlocked(']', writer->out);
}

static void put_column(struct writer *writer, const char *name, uint64_t count, put_cell *cell)
{
	put_range(writer, name, (struct range){0, count}, cell);
}

/* A column with the same value in all rows. */
static void put_same(struct writer *writer, const char *name, uint64_t count, const char *value)
{
	fprintf(writer->out, ",\"%s\":[", name);
	for (uint64_t i = 0; i < count && !ferror(writer->out); i++) {
		if (i)
			putc_unlocked(',', writer->out);
		fputs(value, writer->out);
	}
	putc_unlocked(']', writer->out);
}

static void begin_table(struct writer *writer, const char *name, uint64_t count)
{
	fprintf(writer->out, ",\n\"%s\":{\"length\":%" PRIu64, name, count);
}

static void end_table(struct writer *writer)
{
	putc_unlocked('}', writer->out);
}

static void put_number(struct writer *writer, uint64_t number)
{
	fprintf(writer->out, "%" PRIu64, number);
}

static void put_group(struct writer *writer, uint32_t group, const char *none)
{
	if (group == PERFRING_PROFILE_NONE)
		fputs(none, writer->out);
	else
		put_number(writer, group);
}

static void put_ms(struct writer *writer, uint64_t time)
{
	perfring__view_put_time(writer->out, perfring__view_since(writer->origin, time), MILLISECOND);
}

/* ---- tables that all threads share ---- */

/* In this order: the profile's texts; labels of functions without a name; names of events; names of losses. */
static void put_texts(struct writer *writer)
{
	const struct perfring_profile_tables *tables = writer->tables;
	char label[512];
	FILE *out = writer->out;

	fputs("\"stringArray\":[", out);
	for (uint32_t i = 0; i < tables->text_count; i++) {
		perfring__json_text(out, tables->texts[i]);
		putc_unlocked(',', out);
	}
	for (uint32_t i = 0; i < tables->function_count; i++) {
		if (writer->labels[i] == PERFRING_PROFILE_NONE)
			continue;
		perfring__json_text(out, perfring__view_label(&tables->functions[i], label, sizeof(label)));
		putc_unlocked(',', out);
	}
	for (uint32_t i = 0; i < tables->event_count; i++) {
		perfring__json_text(out, tables->events[i].name);
		putc_unlocked(',', out);
	}
	for (uint32_t kind = 0; kind < PERFRING_PROFILE_LOSS_COUNT; kind++) {
		if (kind)
			putc_unlocked(',', out);
		perfring__json_text(out, perfring__view_loss_name(kind));
	}
	putc_unlocked(']', out);
}

static uint64_t event_text(const struct writer *writer, uint32_t event)
{
	return (uint64_t)writer->tables->text_count + writer->label_count + event;
}

static uint64_t loss_text(const struct writer *writer, uint32_t kind)
{
	return event_text(writer, writer->tables->event_count) + kind;
}

static const struct perfring_profile_function *function_of(const struct writer *writer, uint64_t frame)
{
	return &writer->tables->functions[writer->tables->frames[frame].function];
}

static void put_frame_address(struct writer *writer, uint64_t i)
{
	uint64_t address = writer->tables->frames[i].address;

	if (function_of(writer, i)->object && address && address <= UINT32_MAX) /* a larger one is not in a library's file */
		put_number(writer, address);
	else
		fputs("-1", writer->out);
}

static void put_frame_depth(struct writer *writer, uint64_t i)
{
	put_number(writer, writer->depths[i]);
}

static void put_frame_category(struct writer *writer, uint64_t i)
{
	put_number(writer, function_of(writer, i)->kind);
}

static void put_frame_function(struct writer *writer, uint64_t i)
{
	put_number(writer, writer->tables->frames[i].function);
}

static void put_frame_line(struct writer *writer, uint64_t i)
{
	if (writer->tables->frames[i].line)
		put_number(writer, writer->tables->frames[i].line);
	else
		fputs("null", writer->out);
}

static void put_frames(struct writer *writer)
{
	uint64_t count = writer->tables->frame_count;

	begin_table(writer, "frameTable", count);
	put_column(writer, "address", count, put_frame_address);
	put_column(writer, "inlineDepth", count, put_frame_depth);
	put_column(writer, "category", count, put_frame_category);
	put_same(writer, "subcategory", count, "0");
	put_column(writer, "func", count, put_frame_function);
	put_same(writer, "nativeSymbol", count, "null");
	put_same(writer, "innerWindowID", count, "0");
	put_column(writer, "line", count, put_frame_line);
	put_same(writer, "column", count, "null");
	put_same(writer, "originalLocation", count, "null");
	end_table(writer);
}

static void put_function_name(struct writer *writer, uint64_t i)
{
	const struct perfring_profile_function *function = &writer->tables->functions[i];

	put_number(writer, function->name ? function->name_id : writer->labels[i]);
}

static void put_function_resource(struct writer *writer, uint64_t i)
{
	put_group(writer, writer->objects.of[i], "-1");
}

static void put_function_source(struct writer *writer, uint64_t i)
{
	put_group(writer, writer->files.of[i], "null");
}

static void put_functions(struct writer *writer)
{
	uint64_t count = writer->tables->function_count;

	begin_table(writer, "funcTable", count);
	put_column(writer, "name", count, put_function_name);
	put_same(writer, "isJS", count, "false");
	put_same(writer, "relevantForJS", count, "false");
	put_column(writer, "resource", count, put_function_resource);
	put_column(writer, "source", count, put_function_source);
	put_same(writer, "lineNumber", count, "null");
	put_same(writer, "columnNumber", count, "null");
	put_same(writer, "originalLocation", count, "null");
	end_table(writer);
}

static void put_index(struct writer *writer, uint64_t i)
{
	put_number(writer, i);
}

static void put_object_text(struct writer *writer, uint64_t i)
{
	put_number(writer, writer->tables->functions[writer->objects.first[i]].object_id);
}

static void put_file_text(struct writer *writer, uint64_t i)
{
	put_number(writer, writer->tables->functions[writer->files.first[i]].file_id);
}

static void put_objects(struct writer *writer)
{
	uint64_t count = writer->objects.count, files = writer->files.count;

	begin_table(writer, "resourceTable", count);
	put_column(writer, "lib", count, put_index);
	put_column(writer, "name", count, put_object_text);
	put_same(writer, "host", count, "null");
	put_same(writer, "type", count, "1"); /* a library */
	end_table(writer);
	begin_table(writer, "nativeSymbols", 0);
	fputs(",\"libIndex\":[],\"address\":[],\"name\":[],\"functionSize\":[]", writer->out);
	end_table(writer);
	begin_table(writer, "sources", files);
	put_same(writer, "id", files, "null");
	put_column(writer, "filename", files, put_file_text);
	put_same(writer, "startLine", files, "1");
	put_same(writer, "startColumn", files, "1");
	put_same(writer, "sourceMapURL", files, "null");
	put_same(writer, "content", files, "null");
	end_table(writer);
	begin_table(writer, "sourceLocationTable", 0);
	fputs(",\"source\":[],\"line\":[],\"column\":[]", writer->out);
	end_table(writer);
}

static void put_stack_frame(struct writer *writer, uint64_t i)
{
	put_number(writer, writer->tables->stacks[i].frame);
}

static void put_stack_offset(struct writer *writer, uint64_t i)
{
	uint32_t caller = writer->tables->stacks[i].caller;

	put_number(writer, caller == PERFRING_PROFILE_NONE ? 0 : i - caller);
}

static void put_shared(struct writer *writer)
{
	uint64_t count = writer->tables->stack_count;

	fputs(",\n\"shared\":{", writer->out);
	put_texts(writer);
	put_functions(writer);
	put_frames(writer);
	begin_table(writer, "stackTable", count);
	put_column(writer, "frame", count, put_stack_frame);
	put_column(writer, "prefixOffset", count, put_stack_offset);
	end_table(writer);
	put_objects(writer);
	putc_unlocked('}', writer->out);
}

/* ---- the recording: meta and libs ---- */

/* A breakpad id: the first 16 bytes of the build id as the digits of a GUID, whose first three numbers are little-endian; then the
 * age, 0.  Nothing for a shorter build id. */
static void put_guid(FILE *out, const char *build_id)
{
	static const unsigned char order[] = {3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15};
	const size_t count = sizeof(order);

	if (strlen(build_id) < 2 * count || strspn(build_id, "0123456789abcdef") < 2 * count)
		return;
	for (size_t i = 0; i < 2 * count; i++) {
		char digit = build_id[2 * order[i / 2] + i % 2];

		putc_unlocked(digit < 'a' ? digit : digit - 'a' + 'A', out);
	}
	putc_unlocked('0', out);
}

static void put_library(FILE *out, const struct perfring_profile_function *function)
{
	const char *name = perfring__view_short_name(function->object);

	fputs("{\"name\":", out);
	perfring__json_text(out, name);
	fputs(",\"path\":", out);
	perfring__json_text(out, function->object);
	fputs(",\"debugName\":", out);
	perfring__json_text(out, name);
	fputs(",\"debugPath\":", out);
	perfring__json_text(out, function->object);
	fputs(",\"breakpadId\":\"", out);
	put_guid(out, function->build_id ? function->build_id : "");
	fputs("\",\"codeId\":", out);
	perfring__json_text(out, function->build_id);
	fputs(",\"arch\":\"\"}", out);
}

static void put_libraries(struct writer *writer)
{
	fputs(",\n\"libs\":[", writer->out);
	for (uint32_t i = 0; i < writer->objects.count; i++) {
		fputs(i ? ",\n" : "", writer->out);
		put_library(writer->out, &writer->tables->functions[writer->objects.first[i]]);
	}
	putc_unlocked(']', writer->out);
}

/* The mean time between samples of the first clock, in ns; 1 ms without one. */
static uint64_t find_interval(const struct perfring_profile_tables *tables)
{
	for (uint32_t i = 0; i < tables->event_count; i++) {
		const struct perfring_profile_event *event = &tables->events[i];

		if (event->unit && !event->lasts && event->samples && event->weight >= event->samples)
			return event->weight / event->samples;
	}
	return MILLISECOND;
}

static void put_entry(FILE *out, const char *before, const char *label, uint64_t value)
{
	fprintf(out, "%s{\"label\":\"%s\",\"format\":\"integer\",\"value\":%" PRIu64 "}", before, label, value);
}

static void put_extra(struct writer *writer)
{
	const struct perfring_profile_tables *tables = writer->tables;
	FILE *out = writer->out;

	fputs(",\n\"extra\":[{\"label\":\"Recording\",\"entries\":[", out);
	put_entry(out, "", "samples without a name", tables->nameless);
	put_entry(out, ",", "truncated stacks", tables->truncated);
	put_entry(out, ",", "samples that are not listed", tables->unlisted);
	for (uint32_t kind = 0; kind < PERFRING_PROFILE_LOSS_COUNT; kind++)
		put_entry(out, ",", perfring__view_loss_name(kind), tables->lost[kind]);
	if (tables->host) {
		fputs(",{\"label\":\"host\",\"format\":\"string\",\"value\":", out);
		perfring__json_text(out, tables->host);
		putc_unlocked('}', out);
	}
	fputs("]}]", out);
}

static void put_meta(struct writer *writer)
{
	const struct perfring_profile_tables *tables = writer->tables;
	FILE *out = writer->out;

	fputs("{\"meta\":{\"version\":24,\"preprocessedProfileVersion\":66,\"product\":", out);
	perfring__json_text(out, tables->command ? tables->command : "perfring");
	fputs(",\"importedFrom\":\"perfring\",\"startTime\":", out);
	perfring__view_put_time(out, tables->epoch ? tables->epoch + writer->origin : 0, MILLISECOND);
	fputs(",\"interval\":", out);
	perfring__view_put_time(out, find_interval(tables), MILLISECOND);
	fputs(",\n\"processType\":0,\"stackwalk\":1,\"debug\":false,\"toolkit\":\"\",\"oscpu\":\"Linux\",\"symbolicated\":true,"
	      "\"usesOnlyOneStackType\":true,\"sourceCodeIsNotOnSearchfox\":true,"
	      "\"extensions\":{\"length\":0,\"baseURL\":[],\"id\":[],\"name\":[]},"
	      "\"sampleUnits\":{\"time\":\"ms\",\"eventDelay\":\"ms\",\"threadCPUDelta\":\"ns\"},\n\"categories\":[",
	      out);
	for (size_t i = 0; i < sizeof(categories) / sizeof(categories[0]); i++)
		fprintf(out, "%s{\"name\":\"%s\",\"color\":\"%s\",\"subcategories\":[\"Other\"]}", i ? "," : "",
			categories[i].name, categories[i].colour);
	fputs("],\n\"markerSchema\":["
	      "{\"name\":\"interval\",\"display\":[\"marker-chart\",\"marker-table\",\"timeline-overview\"],"
	      "\"chartLabel\":\"{marker.name}\",\"tableLabel\":\"{marker.name}\","
	      "\"fields\":[{\"key\":\"cpu\",\"label\":\"CPU\",\"format\":\"integer\"}]},"
	      "{\"name\":\"loss\",\"display\":[\"marker-chart\",\"marker-table\",\"timeline-overview\"],"
	      "\"chartLabel\":\"{marker.data.count}\",\"tableLabel\":\"{marker.name}: {marker.data.count}\","
	      "\"fields\":[{\"key\":\"count\",\"label\":\"count\",\"format\":\"integer\"},"
	      "{\"key\":\"cpu\",\"label\":\"CPU\",\"format\":\"integer\"},"
	      "{\"key\":\"event\",\"label\":\"event\",\"format\":\"string\"}]}]",
	      out);
	put_extra(writer);
	putc_unlocked('}', out);
}

/* ---- threads ---- */

static const struct perfring_profile_sample *sample_at(const struct writer *writer, uint64_t i)
{
	return &writer->tables->samples[writer->order[i]];
}

static void put_sample_stack(struct writer *writer, uint64_t i)
{
	uint32_t stack = sample_at(writer, i)->stack;

	if (stack == PERFRING_PROFILE_NONE)
		fputs("null", writer->out);
	else
		put_number(writer, stack);
}

static void put_sample_time(struct writer *writer, uint64_t i)
{
	put_ms(writer, sample_at(writer, i)->time);
}

static void put_sample_weight(struct writer *writer, uint64_t i)
{
	put_number(writer, sample_at(writer, i)->weight);
}

static void put_sample_ms(struct writer *writer, uint64_t i)
{
	perfring__view_put_time(writer->out, sample_at(writer, i)->weight, MILLISECOND);
}

static void put_marker_name(struct writer *writer, uint64_t i)
{
	put_number(writer, event_text(writer, sample_at(writer, i)->event));
}

/* The end of an interval, which begins at the origin if its time is not known. */
static uint64_t end_of(const struct writer *writer, uint64_t i)
{
	const struct perfring_profile_sample *sample = sample_at(writer, i);

	return perfring__view_plus(sample->time > writer->origin ? sample->time : writer->origin, sample->weight);
}

static void put_marker_end(struct writer *writer, uint64_t i)
{
	put_ms(writer, end_of(writer, i));
}

static void put_marker_data(struct writer *writer, uint64_t i)
{
	const struct perfring_profile_sample *sample = sample_at(writer, i);

	fputs("{\"type\":\"interval\"", writer->out);
	if (sample->cpu != PERFRING_PROFILE_NONE)
		fprintf(writer->out, ",\"cpu\":%" PRIu32, sample->cpu);
	if (sample->stack != PERFRING_PROFILE_NONE) {
		fputs(",\"cause\":{\"time\":", writer->out);
		put_ms(writer, sample->time);
		fprintf(writer->out, ",\"stack\":%" PRIu32 "}", sample->stack);
	}
	putc_unlocked('}', writer->out);
}

static void put_loss_name(struct writer *writer, uint64_t i)
{
	put_number(writer, loss_text(writer, writer->tables->losses[i].kind));
}

static void put_loss_time(struct writer *writer, uint64_t i)
{
	put_ms(writer, writer->tables->losses[i].time);
}

static void put_loss_data(struct writer *writer, uint64_t i)
{
	const struct perfring_profile_loss *loss = &writer->tables->losses[i];

	fprintf(writer->out, "{\"type\":\"loss\",\"count\":%" PRIu64, loss->count);
	perfring__view_put_loss(writer->out, writer->tables, loss);
	putc_unlocked('}', writer->out);
}

/* Samples without weight, because the profiler does not show a thread without samples. */
static void put_empty_samples(struct writer *writer, const uint64_t *times, uint64_t count)
{
	begin_table(writer, "samples", count);
	put_same(writer, "stack", count, "null");
	put_same(writer, "weight", count, "0");
	fputs(",\"weightType\":\"samples\",\"time\":[", writer->out);
	for (uint64_t i = 0; i < count; i++) {
		fputs(i ? "," : "", writer->out);
		put_ms(writer, times[i]);
	}
	putc_unlocked(']', writer->out);
	end_table(writer);
}

static void put_samples(struct writer *writer, struct range range)
{
	const struct perfring_profile_event *event = &writer->tables->events[sample_at(writer, range.from)->event];
	bool is_time = event->unit && !writer->view->by_samples;

	begin_table(writer, "samples", range.to - range.from);
	put_range(writer, "stack", range, put_sample_stack);
	put_range(writer, "time", range, put_sample_time);
	if (writer->view->by_samples)
		fputs(",\"weight\":null", writer->out);
	else
		put_range(writer, "weight", range, is_time ? put_sample_ms : put_sample_weight);
	fprintf(writer->out, ",\"weightType\":\"%s\"", is_time ? "tracing-ms" : "samples");
	if (event->unit) /* its weights are ns, as a clock's: each is the CPU time of the thread since its last sample */
		put_range(writer, "threadCPUDelta", range, put_sample_weight);
	end_table(writer);
}

static void put_intervals(struct writer *writer, struct range range)
{
	uint64_t count = range.to - range.from;

	begin_table(writer, "markers", count);
	put_range(writer, "name", range, put_marker_name);
	put_range(writer, "startTime", range, put_sample_time);
	put_range(writer, "endTime", range, put_marker_end);
	put_same(writer, "phase", count, "1");
	put_same(writer, "category", count, "0");
	put_range(writer, "data", range, put_marker_data);
	end_table(writer);
}

static void put_losses(struct writer *writer)
{
	uint64_t count = writer->tables->loss_count;

	begin_table(writer, "markers", count);
	put_column(writer, "name", count, put_loss_name);
	put_column(writer, "startTime", count, put_loss_time);
	put_same(writer, "endTime", count, "null");
	put_same(writer, "phase", count, "0");
	put_same(writer, "category", count, "0");
	put_column(writer, "data", count, put_loss_data);
	end_table(writer);
}

static void begin_thread(struct writer *writer, const struct perfring_profile_thread *thread, const char *event)
{
	char name[512];
	FILE *out = writer->out;

	snprintf(name, sizeof(name), "%.100s%s%.200s", thread->comm ? thread->comm : "[unknown]", event ? ": " : "",
		 event ? event : "");
	fprintf(out, "%s\n{\"name\":", writer->comma);
	perfring__json_text(out, name);
	writer->comma = ",";
	fprintf(out, ",\"isMainThread\":%s,\"pid\":\"%" PRId32 "\",\"tid\":\"%" PRId32 "\",\"processName\":",
		thread->pid == thread->tid ? "true" : "false", (int32_t)thread->pid, (int32_t)thread->tid);
	perfring__json_text(out,
			    thread->process_comm ? thread->process_comm : (thread->comm ? thread->comm : "[unknown]"));
	fputs(",\"processType\":\"default\",\"processStartupTime\":0,\"processShutdownTime\":null,\"registerTime\":",
	      out);
	put_ms(writer, thread->first);
	fputs(",\"unregisterTime\":null,\"pausedRanges\":[],\"showMarkersInTimeline\":true", out);
}

/* The samples in a row from `from` on that belong to one thread object of the file: of one thread, and of one event or all intervals. */
static struct range find_range(const struct writer *writer, uint64_t from)
{
	const struct perfring_profile_sample *first = sample_at(writer, from);
	uint64_t lasts = writer->tables->events[first->event].lasts, to = from + 1;

	for (; to < writer->ordered; to++) {
		const struct perfring_profile_sample *sample = sample_at(writer, to);

		if (sample->thread != first->thread || writer->tables->events[sample->event].lasts != lasts ||
		    (!lasts && sample->event != first->event))
			break;
	}
	return (struct range){from, to};
}

static bool is_of(const struct writer *writer, uint64_t i, uint32_t thread)
{
	return i < writer->ordered && sample_at(writer, i)->thread == thread;
}

static bool is_interval(const struct writer *writer, uint64_t i)
{
	return writer->tables->events[sample_at(writer, i)->event].lasts;
}

/* Writes the thread objects of the thread whose first sample is at `from`.  Returns the place of the next thread's first sample. */
static uint64_t put_thread(struct writer *writer, uint64_t from)
{
	uint32_t index = sample_at(writer, from)->thread;
	const struct perfring_profile_thread *thread = &writer->tables->threads[index];
	struct range intervals;
	bool is_first = true;
	uint64_t i = from;

	while (is_of(writer, i, index) && !is_interval(writer, i))
		i = find_range(writer, i).to;
	intervals = (struct range){i, i};
	if (is_of(writer, i, index))
		intervals = find_range(writer, i);
	i = from;
	do {
		struct range range = i < intervals.from ? find_range(writer, i) : (struct range){i, i};

		begin_thread(writer, thread,
			     is_first ? NULL : writer->tables->events[sample_at(writer, i)->event].name);
		if (range.from < range.to)
			put_samples(writer, range);
		else
			put_empty_samples(writer, &thread->first, 1);
		put_intervals(writer, is_first ? intervals : (struct range){0, 0});
		putc_unlocked('}', writer->out);
		i = range.to;
		is_first = false;
	} while (i < intervals.from);
	return intervals.to;
}

/* The time of the last sample, loss, or end of an interval. */
static uint64_t find_end(const struct writer *writer)
{
	const struct perfring_profile_tables *tables = writer->tables;
	uint64_t end = tables->last > writer->origin ? tables->last : writer->origin;

	for (uint64_t i = 0; i < writer->ordered; i++)
		if (is_interval(writer, i) && end_of(writer, i) > end)
			end = end_of(writer, i);
	for (uint32_t i = 0; i < tables->loss_count; i++)
		end = tables->losses[i].time > end ? tables->losses[i].time : end;
	return end;
}

/* The profiler shows the time from the first sample of all threads to the last one: this thread has a sample at both ends. */
static void put_recording(struct writer *writer)
{
	const struct perfring_profile_thread recording = {.comm = "[recording]", .first = writer->origin};
	const uint64_t times[] = {writer->origin, find_end(writer)};

	begin_thread(writer, &recording, NULL);
	put_empty_samples(writer, times, 2);
	put_losses(writer);
	putc_unlocked('}', writer->out);
}

static void put_threads(struct writer *writer)
{
	fputs(",\n\"threads\":[", writer->out);
	for (uint64_t i = 0; i < writer->ordered && !ferror(writer->out);)
		i = put_thread(writer, i);
	put_recording(writer);
	putc_unlocked(']', writer->out);
}

int perfring__write_firefox(const struct perfring_profile_tables *tables, const struct perfring_profile_view *view,
			    FILE *out)
{
	struct writer writer = {
		.tables = tables, .view = view, .out = out, .origin = perfring__view_origin(tables), .comma = ""};
	bool has_all = !perfring__view_group(&writer.objects, tables, perfring__view_object_key) &&
		       !perfring__view_group(&writer.files, tables, perfring__view_file_key) && find_labels(&writer) &&
		       find_depths(&writer) && order_samples(&writer);

	if (has_all) {
		put_meta(&writer);
		put_libraries(&writer);
		fputs(",\n\"pages\":[]", out);
		put_shared(&writer);
		put_threads(&writer);
		fputs("}\n", out);
	}
	perfring__view_ungroup(&writer.objects);
	perfring__view_ungroup(&writer.files);
	free(writer.labels);
	free(writer.depths);
	free(writer.order);
	return has_all ? 0 : -ENOMEM;
}
