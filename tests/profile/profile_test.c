/* profile_test.c - the tables of a profile, what happens above its bound, and the texts that it writes. */
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <perfring/profile.h>

static const struct perfring_profile_options listed = {.flags = PERFRING_PROFILE_SAMPLES};

static struct perfring_profile *open_profile(const struct perfring_profile_options *options)
{
	struct perfring_profile *profile = NULL;

	cr_assert_eq(perfring_profile_open(&profile, options), 0);
	return profile;
}

static uint32_t add_frame(struct perfring_profile *profile, const char *name, const char *object, uint64_t address)
{
	struct perfring_profile_frame frame = {
		.name = name, .object = object, .kind = PERFRING_PROFILE_USER, .address = address};
	int64_t index = perfring_profile_add_frame(profile, &frame);

	cr_assert_geq(index, 0);
	return (uint32_t)index;
}

static uint32_t add_stack(struct perfring_profile *profile, uint32_t caller, const char *name, const char *object)
{
	int64_t index = perfring_profile_add_stack(profile, caller, add_frame(profile, name, object, 0));

	cr_assert_geq(index, 0);
	return (uint32_t)index;
}

static void add_sample(struct perfring_profile *profile, uint32_t stack, const char *comm, uint64_t weight,
		       uint64_t time)
{
	int64_t event = perfring_profile_add_event(profile,
						   &(struct perfring_profile_event){.name = "cpu-clock", .unit = "ns"});
	int64_t thread = perfring_profile_add_thread(
		profile, &(struct perfring_profile_thread){.pid = 7, .tid = 8, .comm = comm});
	struct perfring_profile_sample sample = {.time = time,
						 .weight = weight,
						 .stack = stack,
						 .thread = (uint32_t)thread,
						 .event = (uint32_t)event,
						 .cpu = 1};

	cr_assert(event >= 0 && thread >= 0);
	cr_assert_eq(perfring_profile_add_sample(profile, &sample), 0);
}

static char *written(const struct perfring_profile *profile, enum perfring_profile_format format,
		     const struct perfring_profile_view *view)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	cr_assert_eq(perfring_profile_write(profile, format, view, out), 0);
	fclose(out);
	return text;
}

Test(profile, equal_things_are_one)
{
	struct perfring_profile *profile = open_profile(NULL);
	struct perfring_profile_tables tables;
	uint32_t one = add_frame(profile, "f", "/o", 0),
		 main_stack = add_stack(profile, PERFRING_PROFILE_NONE, "main", "/o");

	cr_assert_eq(add_frame(profile, "f", "/o", 0), one);
	cr_assert_neq(add_frame(profile, "f", "/o", 1), one);
	cr_assert_neq(add_frame(profile, "f", "/p", 0), one);
	cr_assert_neq(add_frame(profile, NULL, "/o", 0), one);
	for (unsigned i = 0; i < 1000; i++)
		add_sample(profile, add_stack(profile, main_stack, "f", "/o"), "x", 5, 100 + i);
	add_sample(profile, PERFRING_PROFILE_NONE, "x", 1, 0);
	perfring_profile_read(profile, &tables);
	cr_assert_eq(tables.stack_count, 2);
	cr_assert_eq(tables.stacks[1].caller, main_stack);
	cr_assert_eq(tables.weight_count, 2);
	cr_assert(tables.weights[0].samples == 1000 && tables.weights[0].weight == 5000);
	cr_assert(tables.events[0].samples == 1001 && tables.events[0].weight == 5001);
	cr_assert(tables.threads[0].first == 100 && tables.threads[0].last == 1099);
	cr_assert(tables.first == 100 && tables.last == 1099);
	cr_assert_eq(tables.nameless, 1);
	cr_assert_eq(tables.sample_count, 0); /* not asked for */
	perfring_profile_close(profile);
}

Test(profile, refuses_what_is_no_index)
{
	struct perfring_profile *profile = open_profile(NULL);
	struct perfring_profile_sample sample = {.stack = PERFRING_PROFILE_NONE};
	struct perfring_profile_loss loss = {.kind = PERFRING_PROFILE_LOSS_COUNT};
	const struct perfring_profile_options unknown = {.flags = 1u << 31};
	struct perfring_profile *other;

	cr_assert_eq(perfring_profile_open(&other, &unknown), -EINVAL);
	cr_assert_eq(perfring_profile_add_stack(profile, PERFRING_PROFILE_NONE, 0), -EINVAL);
	cr_assert_eq(perfring_profile_add_sample(profile, &sample), -EINVAL);
	cr_assert_eq(perfring_profile_add_loss(profile, &loss), -EINVAL);
	cr_assert_eq(perfring_profile_add_frame(profile, &(struct perfring_profile_frame){.kind = 99}), -EINVAL);
	cr_assert_eq(perfring_profile_write(profile, PERFRING_PROFILE_FORMAT_COUNT, NULL, stdout), -EINVAL);
	cr_assert_eq(perfring_profile_add_event(profile, &(struct perfring_profile_event){.name = "e", .lasts = 2}),
		     -EINVAL);
	perfring_profile_close(profile);
	perfring_profile_close(NULL);
}

/* Hostile files have a new stack, thread and name in each sample: all samples are in the weights. */
Test(profile, above_its_bound_nothing_is_left_out)
{
	const struct perfring_profile_options small = {.flags = PERFRING_PROFILE_SAMPLES, .bytes_max = 1 << 20};
	struct perfring_profile *profile = open_profile(&small);
	struct perfring_profile_tables tables;
	uint64_t samples = 0, weight = 0;
	char *text;

	for (unsigned i = 0; i < 100000; i++) {
		char name[32];

		snprintf(name, sizeof(name), "f%u", i);
		add_sample(profile, add_stack(profile, PERFRING_PROFILE_NONE, name, "/o"), name, 3, 1 + i);
	}
	perfring_profile_read(profile, &tables);
	for (uint32_t i = 0; i < tables.weight_count; i++) {
		samples += tables.weights[i].samples;
		weight += tables.weights[i].weight;
	}
	cr_assert(samples == 100000 && weight == 300000);
	cr_assert_gt(tables.crowded, 90000u);
	cr_assert_eq(tables.sample_count + tables.unlisted, 100000);
	cr_assert_gt(tables.unlisted, 0u);
	cr_assert_lt(tables.stack_count, 20000u);
	text = written(profile, PERFRING_PROFILE_COLLAPSED, NULL);
	cr_assert(strstr(text, "[too many threads] ") || strstr(text, "[too_many_threads]"), "%.3000s", text);
	free(text);
	perfring_profile_close(profile);
}

Test(profile, collapsed)
{
	const struct perfring_profile_view counted = {.event = PERFRING_PROFILE_NONE, .by_samples = true};
	struct perfring_profile *profile = open_profile(NULL);
	struct perfring_profile_loss loss = {.kind = PERFRING_PROFILE_LOST_SAMPLES,
					     .count = 2,
					     .thread = PERFRING_PROFILE_NONE,
					     .event = PERFRING_PROFILE_NONE,
					     .cpu = PERFRING_PROFILE_NONE};
	uint32_t start = add_stack(profile, PERFRING_PROFILE_NONE, "start", "/o");
	uint32_t deep = add_stack(profile, add_stack(profile, start, "a;b <c d>", "/o"), NULL, "/usr/lib/libx.so");
	char *text;

	add_sample(profile, deep, "my prog\n", 40, 1);
	add_sample(profile, deep, "my prog\n", 60, 2);
	add_sample(profile, start, "my prog\n", 20, 3);
	add_sample(profile, add_stack(profile, PERFRING_PROFILE_NONE, NULL, NULL), "b", 80, 4);
	cr_assert_eq(perfring_profile_add_loss(profile, &loss), 0);
	text = written(profile, PERFRING_PROFILE_COLLAPSED, NULL);
	cr_assert_str_eq(
		text,
		"b;[unknown] 80\nmy_prog_;start 20\nmy_prog_;start;a:b <c d>;[libx.so] 100\n[lost 2 samples] 100\n");
	free(text);
	text = written(profile, PERFRING_PROFILE_COLLAPSED, &counted);
	cr_assert_str_eq(text,
			 "b;[unknown] 1\nmy_prog_;start 1\nmy_prog_;start;a:b <c d>;[libx.so] 2\n[lost 2 samples] 2\n");
	free(text);
	perfring_profile_close(profile);
}

static char *written_page(const struct perfring_profile *profile, const struct perfring_profile_flame *flame)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	cr_assert_eq(perfring_profile_write_flame(profile, flame, out), 0);
	fclose(out);
	cr_assert_eq(strlen(text), size);
	return text;
}

Test(profile, flame)
{
	struct perfring_profile *profile = open_profile(NULL), *empty = open_profile(NULL);
	struct perfring_profile_flame flame = {.title = "</script>\"", .share = 0.25, .width = 900, .by_samples = true};
	struct perfring_profile_loss loss = {.kind = PERFRING_PROFILE_LOST_SAMPLES,
					     .count = 2,
					     .thread = PERFRING_PROFILE_NONE,
					     .cpu = PERFRING_PROFILE_NONE};
	uint32_t start = add_stack(profile, PERFRING_PROFILE_NONE, "<b>\xff", "/o");
	char *text;

	add_sample(profile, add_stack(profile, start, NULL, NULL), "x", 40, 1);
	add_sample(profile, PERFRING_PROFILE_NONE, "x", 2, 2);
	cr_assert_eq(perfring_profile_add_loss(profile, &loss), 0);
	flame.colours = PERFRING_PROFILE_BY_KIND;
	flame.old = empty;
	text = written_page(profile, &flame);
	cr_assert(strstr(
		text,
		"<script type=\"application/json\" id=\"data\">{\"title\":\"\\u003c/script>\\\"\",\"settings\":{\"event\":0,\"weigh\":"
		"\"samples\",\"colours\":\"kind\",\"width\":900,\"share\":250000000e-9},\n\"profile\":{\"title\":null,\"command\":null,"
		"\"host\":null,\"lost\":[0,2,0,0],\"nameless\":2,\"truncated\":0,\"crowded\":0,\n\"events\":[{\"name\":\"cpu-clock\","
		"\"unit\":\"ns\",\"lasts\":0,\"samples\":2,\"weight\":42,\"lost\":2}],\n\"threads\":[[7,8,\"x\"]],\n\"texts\":["));
	cr_assert(strstr(text, "\"\\u003cb>\\ufffd\""));
	cr_assert(strstr(text,
			 "\"stacks\":[0,0,0,1,0,1],\n\"weights\":[1,0,0,1,40,-1,0,0,1,2]},\n\"old\":{\"title\":null,"));
	cr_assert(strstr(text, "\"stacks\":[],\n\"weights\":[]},\n\"time\":null}</script>"));
	free(text);
	text = written_page(empty, NULL);
	cr_assert(strstr(text, "{\"title\":\"profile\","));
	cr_assert(strstr(text, ",\n\"old\":null,\n\"time\":null}</script>"));
	free(text);
	flame.share = 1.5;
	cr_assert_eq(perfring_profile_write_flame(profile, &flame, stdout), -EINVAL);
	flame.share = 0;
	flame.event = 1;
	cr_assert_eq(perfring_profile_write_flame(profile, &flame, stdout), -EINVAL);
	flame.event = 0;
	flame.colours = PERFRING_PROFILE_BY_COUNT;
	cr_assert_eq(perfring_profile_write_flame(profile, &flame, stdout), -EINVAL);
	perfring_profile_close(empty);
	perfring_profile_close(profile);
}

/* 0, and 250 us after it: 2 units of 0.1 ms; the bytes 0 0 2 1. */
Test(profile, flame_over_time)
{
	struct perfring_profile *profile = open_profile(&listed), *unlisted = open_profile(NULL);
	struct perfring_profile_flame flame = {.over_time = true};
	struct perfring_profile_loss loss = {.time = 151000,
					     .kind = PERFRING_PROFILE_LOST_RECORDS,
					     .count = 9,
					     .thread = PERFRING_PROFILE_NONE,
					     .event = PERFRING_PROFILE_NONE,
					     .cpu = 3};
	uint32_t start = add_stack(profile, PERFRING_PROFILE_NONE, "main", "/o");
	char *text;

	add_sample(profile, start, "x", 40, 1000);
	add_sample(profile, PERFRING_PROFILE_NONE, "x", 2, 251000);
	cr_assert_eq(perfring_profile_add_loss(profile, &loss), 0);
	text = written_page(profile, &flame);
	cr_assert(strstr(text, "\"time\":{\"from\":\"1000\",\"unit\":100000,\"last\":2,\"untimed\":0,\n\"ranks\":[0,1],\n\"streams\":[{\"cpu\":"));
	cr_assert(strstr(text, ",\"event\":0,\"count\":2,\"data\":\"AAACAQ==\"}],\n\"losses\":[1,0,3,-1,9]}}</script>"));
	free(text);
	add_sample(unlisted, PERFRING_PROFILE_NONE, "x", 1, 1);
	cr_assert_eq(perfring_profile_write_flame(unlisted, &flame, stdout), -EINVAL);
	perfring_profile_close(unlisted);
	perfring_profile_close(profile);
}

Test(profile, json_lines)
{
	struct perfring_profile *profile = open_profile(&listed);
	struct perfring_profile_frame frame = {.name = "q\"\\\x01\xc3\xa9\xff",
					       .object = "/o",
					       .file = "x.c",
					       .line = 3,
					       .kind = PERFRING_PROFILE_KERNEL,
					       .address = 0xffffffff81000000};
	struct perfring_profile_loss loss = {.kind = PERFRING_PROFILE_LOST_RECORDS,
					     .count = 9,
					     .time = 5,
					     .thread = PERFRING_PROFILE_NONE,
					     .event = PERFRING_PROFILE_NONE,
					     .cpu = 3};
	int64_t stack = perfring_profile_add_stack(profile, PERFRING_PROFILE_NONE,
						   (uint32_t)perfring_profile_add_frame(profile, &frame));
	char *text;

	add_sample(profile, (uint32_t)stack, "x", 40, 1);
	cr_assert_eq(perfring_profile_add_loss(profile, &loss), 0);
	text = written(profile, PERFRING_PROFILE_JSON_LINES, NULL);
	cr_assert_str_eq(
		text,
		"{\"event\":\"cpu-clock\",\"time\":\"1\",\"pid\":7,\"tid\":8,\"comm\":\"x\",\"cpu\":1,\"weight\":\"40\",\"stack\":["
		"{\"function\":\"q\\\"\\\\\\u0001\xc3\xa9\\ufffd\",\"object\":\"/o\",\"kind\":\"kernel\",\"address\":"
		"\"0xffffffff81000000\",\"file\":\"x.c\",\"line\":3}]}\n"
		"{\"lost records\":\"9\",\"time\":\"5\",\"cpu\":3}\n");
	free(text);
	perfring_profile_close(profile);
}

/* A thread with samples of a clock, an inlined function among them, and an interval; another with an interval alone; a loss. */
static struct perfring_profile *open_timed(void)
{
	const struct perfring_profile_options options = {
		.flags = PERFRING_PROFILE_SAMPLES, .command = "x -a", .host = "h", .epoch = 1000000000000000000};
	struct perfring_profile *profile = open_profile(&options);
	const struct perfring_profile_frame inlined = {.name = "g",
						       .object = "/b/o",
						       .file = "g.c",
						       .line = 3,
						       .kind = PERFRING_PROFILE_INLINED,
						       .address = 0x1139,
						       .build_id = "0123456789abcdef0123456789abcdef01234567"};
	struct perfring_profile_frame f = inlined;
	struct perfring_profile_sample sleep = {.time = 1500, .weight = 2000000, .cpu = PERFRING_PROFILE_NONE};
	const struct perfring_profile_loss loss = {.kind = PERFRING_PROFILE_LOST_SAMPLES,
						   .count = 9,
						   .time = 500,
						   .thread = PERFRING_PROFILE_NONE,
						   .event = 0,
						   .cpu = 3};
	uint32_t outer, inner;

	f.name = "f";
	f.kind = PERFRING_PROFILE_USER;
	f.file = NULL;
	f.line = 0;
	outer = (uint32_t)perfring_profile_add_stack(profile, PERFRING_PROFILE_NONE,
						     (uint32_t)perfring_profile_add_frame(profile, &f));
	inner = (uint32_t)perfring_profile_add_stack(profile, outer,
						     (uint32_t)perfring_profile_add_frame(profile, &inlined));

	add_sample(profile, inner, "x", 250000, 251000);
	add_sample(profile, add_stack(profile, PERFRING_PROFILE_NONE, NULL, "/b/p"), "x", 250000, 1000);
	sleep.event = (uint32_t)perfring_profile_add_event(
		profile, &(struct perfring_profile_event){.name = "offcpu-time", .unit = "ns", .lasts = 1});
	sleep.stack = outer;
	cr_assert_eq(perfring_profile_add_sample(profile, &sleep), 0);
	sleep.stack = PERFRING_PROFILE_NONE;
	sleep.thread = (uint32_t)perfring_profile_add_thread(
		profile, &(struct perfring_profile_thread){.pid = 7, .tid = 7, .comm = "y", .process_comm = "y"});
	cr_assert_eq(perfring_profile_add_sample(profile, &sleep), 0);
	cr_assert_eq(perfring_profile_add_loss(profile, &loss), 0);
	return profile;
}

Test(profile, firefox)
{
	static const char head[] = "{\"meta\":{\"version\":24,\"preprocessedProfileVersion\":66,\"product\":\"x -a\","
				   "\"importedFrom\":\"perfring\",\"startTime\":1000000000000.0005,\"interval\":0.25,";
	static const char expected[] =
		"\n"
		"\"libs\":[{\"name\":\"o\",\"path\":\"/b/o\",\"debugName\":\"o\",\"debugPath\":\"/b/o\","
		"\"breakpadId\":\"67452301AB89EFCD0123456789ABCDEF0\","
		"\"codeId\":\"0123456789abcdef0123456789abcdef01234567\",\"arch\":\"\"},\n"
		"{\"name\":\"p\",\"path\":\"/b/p\",\"debugName\":\"p\",\"debugPath\":\"/b/p\",\"breakpadId\":\"\","
		"\"codeId\":null,\"arch\":\"\"}],\n"
		"\"pages\":[],\n"
		"\"shared\":{\"stringArray\":[\"x -a\",\"h\",\"f\",\"/b/o\","
		"\"0123456789abcdef0123456789abcdef01234567\",\"g\",\"g.c\",\"cpu-clock\",\"ns\",\"x\",\"/b/p\","
		"\"offcpu-time\",\"y\",\"[p]\",\"cpu-clock\",\"offcpu-time\",\"lost records\",\"lost samples\","
		"\"throttled\",\"unread records\"],\n"
		"\"funcTable\":{\"length\":3,\"name\":[2,5,13],\"isJS\":[false,false,false],\"relevantForJS\":[false,"
		"false,false],\"resource\":[0,0,1],\"source\":[null,0,null],\"lineNumber\":[null,null,null],"
		"\"columnNumber\":[null,null,null],\"originalLocation\":[null,null,null]},\n"
		"\"frameTable\":{\"length\":3,\"address\":[4409,4409,-1],\"inlineDepth\":[0,1,0],\"category\":[1,2,"
		"1],\"subcategory\":[0,0,0],\"func\":[0,1,2],\"nativeSymbol\":[null,null,null],\"innerWindowID\":[0,"
		"0,0],\"line\":[null,3,null],\"column\":[null,null,null],\"originalLocation\":[null,null,null]},\n"
		"\"stackTable\":{\"length\":3,\"frame\":[0,1,2],\"prefixOffset\":[0,1,0]},\n"
		"\"resourceTable\":{\"length\":2,\"lib\":[0,1],\"name\":[3,10],\"host\":[null,null],\"type\":[1,1]},"
		"\n"
		"\"nativeSymbols\":{\"length\":0,\"libIndex\":[],\"address\":[],\"name\":[],\"functionSize\":[]},\n"
		"\"sources\":{\"length\":1,\"id\":[null],\"filename\":[6],\"startLine\":[1],\"startColumn\":[1],"
		"\"sourceMapURL\":[null],\"content\":[null]},\n"
		"\"sourceLocationTable\":{\"length\":0,\"source\":[],\"line\":[],\"column\":[]}},\n"
		"\"threads\":[\n"
		"{\"name\":\"x\",\"isMainThread\":false,\"pid\":\"7\",\"tid\":\"8\",\"processName\":\"x\","
		"\"processType\":\"default\",\"processStartupTime\":0,\"processShutdownTime\":null,"
		"\"registerTime\":0.0005,\"unregisterTime\":null,\"pausedRanges\":[],\"showMarkersInTimeline\":true,"
		"\n"
		"\"samples\":{\"length\":2,\"stack\":[2,1],\"time\":[0.0005,0.2505],\"weight\":[0.25,0.25],"
		"\"weightType\":\"tracing-ms\",\"threadCPUDelta\":[250000,250000]},\n"
		"\"markers\":{\"length\":1,\"name\":[15],\"startTime\":[0.001],\"endTime\":[2.001],\"phase\":[1],"
		"\"category\":[0],\"data\":[{\"type\":\"interval\",\"cause\":{\"time\":0.001,\"stack\":0}}]}},\n"
		"{\"name\":\"y\",\"isMainThread\":true,\"pid\":\"7\",\"tid\":\"7\",\"processName\":\"y\","
		"\"processType\":\"default\",\"processStartupTime\":0,\"processShutdownTime\":null,"
		"\"registerTime\":0.001,\"unregisterTime\":null,\"pausedRanges\":[],\"showMarkersInTimeline\":true,\n"
		"\"samples\":{\"length\":1,\"stack\":[null],\"weight\":[0],\"weightType\":\"samples\",\"time\":[0.001]},\n"
		"\"markers\":{\"length\":1,\"name\":[15],\"startTime\":[0.001],\"endTime\":[2.001],\"phase\":[1],"
		"\"category\":[0],\"data\":[{\"type\":\"interval\"}]}},\n"
		"{\"name\":\"[recording]\",\"isMainThread\":true,\"pid\":\"0\",\"tid\":\"0\","
		"\"processName\":\"[recording]\",\"processType\":\"default\",\"processStartupTime\":0,"
		"\"processShutdownTime\":null,\"registerTime\":0,\"unregisterTime\":null,\"pausedRanges\":[],"
		"\"showMarkersInTimeline\":true,\n"
		"\"samples\":{\"length\":2,\"stack\":[null,null],\"weight\":[0,0],\"weightType\":\"samples\","
		"\"time\":[0,2.001]},\n"
		"\"markers\":{\"length\":1,\"name\":[17],\"startTime\":[0],\"endTime\":[null],\"phase\":[0],"
		"\"category\":[0],\"data\":[{\"type\":\"loss\",\"count\":9,\"cpu\":3,\"event\":\"cpu-clock\"}]}}]}\n";
	struct perfring_profile *profile = open_timed();
	char *text = written(profile, PERFRING_PROFILE_FIREFOX, NULL), *rest = strstr(text, "\n\"libs\"");

	cr_assert_eq(strncmp(text, head, strlen(head)), 0, "%s", text);
	cr_assert(rest);
	cr_assert_str_eq(rest, expected);
	cr_assert(strstr(text, "\"label\":\"lost samples\",\"format\":\"integer\",\"value\":9}"));
	free(text);
	perfring_profile_close(profile);
}

Test(profile, chrome)
{
	static const char expected[] =
		"{\"displayTimeUnit\":\"ns\",\"otherData\":{\"producer\":\"perfring\",\"title\":\"x -a,"
		" lost samples: 9\",\"host\":\"h\",\"start\":\"500\",\"since 1970\":\"1000000000000000500\"},\n"
		"\"stackFrames\":{\n"
		"\"0\":{\"name\":\"f\",\"category\":\"o\"},\n"
		"\"1\":{\"name\":\"g\",\"category\":\"o\",\"parent\":0},\n"
		"\"2\":{\"name\":\"[p]\",\"category\":\"p\"}},\n"
		"\"traceEvents\":[\n"
		"{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":0,\"tid\":0,\"args\":{\"name\":\"recording\"}},\n"
		"{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":7,\"tid\":8,\"args\":{\"name\":\"x\"}},\n"
		"{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":7,\"tid\":7,\"args\":{\"name\":\"y\"}},\n"
		"{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":7,\"tid\":7,\"args\":{\"name\":\"y\"}},\n"
		"{\"ph\":\"P\",\"name\":\"cpu-clock\",\"cat\":\"sample\",\"pid\":7,\"tid\":8,\"ts\":250.5,\"sf\":1,"
		"\"args\":{\"weight\":250000,\"cpu\":1}},\n"
		"{\"ph\":\"P\",\"name\":\"cpu-clock\",\"cat\":\"sample\",\"pid\":7,\"tid\":8,\"ts\":0.5,\"sf\":2,"
		"\"args\":{\"weight\":250000,\"cpu\":1}},\n"
		"{\"ph\":\"X\",\"name\":\"offcpu-time\",\"cat\":\"interval\",\"pid\":7,\"tid\":8,\"ts\":1,"
		"\"dur\":2000,\"sf\":0,\"args\":{}},\n"
		"{\"ph\":\"X\",\"name\":\"offcpu-time\",\"cat\":\"interval\",\"pid\":7,\"tid\":7,\"ts\":1,"
		"\"dur\":2000,\"args\":{}},\n"
		"{\"ph\":\"i\",\"s\":\"g\",\"name\":\"lost samples\",\"cat\":\"loss\",\"pid\":0,\"tid\":0,\"ts\":0,"
		"\"args\":{\"count\":9,\"cpu\":3,\"event\":\"cpu-clock\"}}\n"
		"]}\n";
	struct perfring_profile *profile = open_timed();
	char *text = written(profile, PERFRING_PROFILE_CHROME, NULL);

	cr_assert_str_eq(text, expected);
	free(text);
	perfring_profile_close(profile);
}

/* Foreign weights may be any: sums and ends of intervals stop at the largest number. */
Test(profile, weights_without_an_end)
{
	struct perfring_profile *profile = open_profile(&listed);
	uint32_t outer = add_stack(profile, PERFRING_PROFILE_NONE, "outer", "/b/o"),
		 inner = add_stack(profile, outer, "inner", "/b/o"),
		 other = add_stack(profile, PERFRING_PROFILE_NONE, "other", "/b/o"),
		 again = add_stack(profile, other, "inner", "/b/o");
	struct perfring_profile_sample sleep = {
		.time = 1500, .weight = UINT64_MAX - 999, .stack = inner, .cpu = PERFRING_PROFILE_NONE};
	struct perfring_profile_view view = {.event = 0};
	char *text;

	add_sample(profile, inner, "x", UINT64_MAX - 1, 500);
	add_sample(profile, again, "x", 2, 501);
	text = written(profile, PERFRING_PROFILE_SPEEDSCOPE, &view);
	cr_assert(strstr(text, "\"endValue\":18446744073709551615,"), "%s", text);
	free(text);
	text = written(profile, PERFRING_PROFILE_CALLGRIND, &view);
	cr_assert(strstr(text, "\nfn=(2)\n0 18446744073709551615\n"), "%s", text);
	free(text);
	sleep.thread = (uint32_t)perfring_profile_add_thread(
		profile, &(struct perfring_profile_thread){.pid = 7, .tid = 9, .comm = "x"});
	sleep.weight = 2;
	cr_assert_eq(perfring_profile_add_sample(profile, &sleep), 0);
	text = written(profile, PERFRING_PROFILE_COLLAPSED, &view);
	cr_assert(strstr(text, "x;outer;inner 18446744073709551615\n"), "%s", text);
	free(text);
	sleep.weight = UINT64_MAX - 999;
	sleep.event = (uint32_t)perfring_profile_add_event(
		profile, &(struct perfring_profile_event){.name = "offcpu-time", .unit = "ns", .lasts = 1});
	cr_assert_eq(perfring_profile_add_sample(profile, &sleep), 0);
	text = written(profile, PERFRING_PROFILE_FIREFOX, NULL);
	cr_assert(strstr(text, "\"startTime\":[0.001],\"endTime\":[18446744073709.551115],"), "%s", text);
	cr_assert(strstr(text, "\"time\":[0,18446744073709.551115]}"), "%s", text);
	free(text);
	perfring_profile_close(profile);
}

/* What a browser could not open ends with an error, and not with less of it than there is. */
Test(profile, a_text_that_is_too_long)
{
	static const enum perfring_profile_format formats[] = {PERFRING_PROFILE_SPEEDSCOPE, PERFRING_PROFILE_FIREFOX,
							       PERFRING_PROFILE_CHROME};
	struct perfring_profile *profile = open_timed();

	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		struct perfring_profile_view view = {.event = PERFRING_PROFILE_NONE};
		char *text = written(profile, formats[i], NULL), *again;
		FILE *out = fopen("/dev/null", "w");

		view.bytes_max = strlen(text);
		again = written(profile, formats[i], &view);
		cr_assert_str_eq(again, text);
		view.bytes_max--;
		cr_assert_eq(perfring_profile_write(profile, formats[i], &view, out), -EFBIG);
		fclose(out);
		free(again);
		free(text);
	}
	perfring_profile_close(profile);
}

/* Of one event, and by samples. */
Test(profile, firefox_of_one_event)
{
	const struct perfring_profile_view counted = {.event = 0, .by_samples = true}, intervals = {.event = 1};
	struct perfring_profile *profile = open_timed();
	char *text = written(profile, PERFRING_PROFILE_FIREFOX, &counted);

	cr_assert(strstr(text, "\"weight\":null,\"weightType\":\"samples\",\"threadCPUDelta\":[250000,250000]}"));
	cr_assert(!strstr(text, "\"type\":\"interval\""));
	free(text);
	text = written(profile, PERFRING_PROFILE_FIREFOX, &intervals);
	cr_assert(!strstr(text, "threadCPUDelta\":["));
	cr_assert(strstr(text, "\"type\":\"interval\""));
	free(text);
	perfring_profile_close(profile);
}

/* Stacks of inlined functions alone, as no address has them: pprof's locations are bounded, and so is the time. */
Test(profile, inlined_without_an_end)
{
	struct perfring_profile *profile = open_profile(&listed);
	struct perfring_profile_frame frame = {.name = "i", .kind = PERFRING_PROFILE_INLINED};
	uint32_t stack = PERFRING_PROFILE_NONE;

	for (unsigned i = 0; i < 3000; i++) {
		frame.line = 1 + i % 7;
		stack = (uint32_t)perfring_profile_add_stack(profile, stack,
							     (uint32_t)perfring_profile_add_frame(profile, &frame));
	}
	add_sample(profile, stack, "x", 1, 1);
	free(written(profile, PERFRING_PROFILE_PPROF, NULL));
	free(written(profile, PERFRING_PROFILE_FIREFOX, NULL));
	perfring_profile_close(profile);
}

/* Names that end lines, close quotes, are no UTF-8, or are long: a text stays a text. */
Test(profile, hostile_names_in_each_format)
{
	static char longest[20000];
	static const char *const names[] = {"\n\r\t\x1b[31m", "\"},{\"",      "</script>",
					    "\xff\xfe\x80",   "a b;c d 1\n2", longest};

	memset(longest, 'x', sizeof(longest) - 1);
	for (int format = 0; format < PERFRING_PROFILE_FORMAT_COUNT; format++) {
		struct perfring_profile *profile = open_profile(&listed);
		uint32_t stack = PERFRING_PROFILE_NONE;
		char *text;

		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
			stack = add_stack(profile, stack, names[i], names[i]);
			add_sample(profile, stack, names[i], 1, 1 + i);
		}
		add_sample(profile, PERFRING_PROFILE_NONE, "none", 1, 9);
		text = written(profile, (enum perfring_profile_format)format, NULL);
		cr_assert_neq(*text, 0);
		for (const char *at = text; format != PERFRING_PROFILE_PPROF && *at; at++)
			cr_assert((unsigned char)*at >= ' ' || *at == '\n', "%d: 0x%x", format, *at);
		free(text);
		perfring_profile_close(profile);
	}
}

/* Nothing in it: each format is a file that can be read. */
Test(profile, an_empty_profile)
{
	for (int format = 0; format < PERFRING_PROFILE_FORMAT_COUNT; format++) {
		struct perfring_profile *profile = open_profile(&listed);

		free(written(profile, (enum perfring_profile_format)format, NULL));
		perfring_profile_close(profile);
	}
}

Test(profile, losses_are_bounded)
{
	struct perfring_profile *profile = open_profile(NULL);
	struct perfring_profile_loss loss = {.count = 2, .kind = PERFRING_PROFILE_LOST_RECORDS};
	struct perfring_profile_tables tables;

	loss.thread = loss.event = loss.cpu = PERFRING_PROFILE_NONE;
	for (unsigned i = 0; i <= PERFRING_PROFILE_LOSSES_MAX; i++)
		cr_assert_eq(perfring_profile_add_loss(profile, &loss), 0);
	perfring_profile_read(profile, &tables);
	cr_assert_eq(tables.loss_count, PERFRING_PROFILE_LOSSES_MAX);
	cr_assert_eq(tables.lost[PERFRING_PROFILE_LOST_RECORDS], 2 * (PERFRING_PROFILE_LOSSES_MAX + UINT64_C(1)));
	perfring_profile_close(profile);
}
