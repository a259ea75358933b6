/* views.c - the formats of a profile.
 *
 * perfring_profile_write of profile.h calls the writer of a format by a stream that stops at the bound of bytes; and the
 * functions of views.h that writers share.
 */
#include "views.h"

#include <inttypes.h>
#include <string.h>
#include <sys/types.h>

#include "json_out.h"
#include "os/hash.h"
#include "table.h"

const char *perfring__view_loss_name(uint32_t kind)
{
	static const char *const names[] = {
		[PERFRING_PROFILE_LOST_RECORDS] = "lost records",
		[PERFRING_PROFILE_LOST_SAMPLES] = "lost samples",
		[PERFRING_PROFILE_THROTTLED] = "throttled",
		[PERFRING_PROFILE_UNREAD] = "unread records",
	};

	return names[kind];
}

uint64_t perfring__view_lost(const struct perfring_profile_tables *tables, const struct perfring_profile_view *view,
			     unsigned kind)
{
	double weight = 0, samples = 0, lost = (double)tables->lost[kind];

	for (uint32_t i = 0; i < tables->event_count && !view->by_samples; i++) {
		if (view->event != PERFRING_PROFILE_NONE && view->event != i)
			continue;
		weight += (double)tables->events[i].weight;
		samples += (double)tables->events[i].samples;
	}
	lost *= samples > 0 ? weight / samples : 1;
	return lost < 1 ? 1 : lost < 0x1p63 ? (uint64_t)lost : UINT64_C(1) << 63;
}

const char *perfring__view_short_name(const char *path)
{
	const char *slash = path && *path != '[' ? strrchr(path, '/') : NULL;

	return slash && slash[1] ? slash + 1 : path;
}

const char *perfring__view_label(const struct perfring_profile_function *function, char *buffer, size_t size)
{
	const char *object;

	if (function->name)
		return function->name;
	object = perfring__view_short_name(function->object);
	if (!object)
		return "[unknown]";
	if (*object == '[')
		return object;
	snprintf(buffer, size, "[%s]", object);
	return buffer;
}

/* ---- what formats share ---- */

uint32_t *perfring__view_path(const struct perfring_profile_tables *tables)
{
	uint32_t most = 0, *depths = calloc((size_t)tables->stack_count + 1, sizeof(*depths)), *path;

	if (!depths)
		return NULL;
	for (uint32_t i = 0; i < tables->stack_count; i++) {
		uint32_t caller = tables->stacks[i].caller;

		depths[i] = caller == PERFRING_PROFILE_NONE ? 1 : depths[caller] + 1;
		most = depths[i] > most ? depths[i] : most;
	}
	free(depths);
	path = calloc((size_t)most + 1, sizeof(*path));
	return path;
}

static int compare_weights(const void *a, const void *b, void *of)
{
	const struct perfring_profile_weight *weights = of;
	uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
	const struct perfring_profile_weight *one = &weights[i], *other = &weights[j];

	if (one->thread != other->thread)
		return one->thread < other->thread ? -1 : 1;
	if (one->event != other->event)
		return one->event < other->event ? -1 : 1;
	return i < j ? -1 : i > j;
}

uint32_t *perfring__view_order(const struct perfring_profile_tables *tables)
{
	uint32_t *order = calloc((size_t)tables->weight_count + 1, sizeof(*order));

	for (uint32_t i = 0; order && i < tables->weight_count; i++)
		order[i] = i;
	if (order)
		qsort_r(order, tables->weight_count, sizeof(*order), compare_weights,
			(void *)(uintptr_t)tables->weights);
	return order;
}

void perfring__view_put_title(FILE *out, const struct perfring_profile_tables *tables)
{
	char text[512];
	size_t used = (size_t)snprintf(text, sizeof(text), "%.200s", tables->command ? tables->command : "perfring");

	for (unsigned kind = 0; kind < PERFRING_PROFILE_LOSS_COUNT; kind++)
		if (tables->lost[kind])
			used += (size_t)snprintf(text + used, sizeof(text) - used, ", %s: %" PRIu64,
						 perfring__view_loss_name(kind), tables->lost[kind]);
	perfring__json_text(out, text);
}

void perfring__view_put_thread(FILE *out, const struct perfring_profile_tables *tables, uint32_t thread,
			       const char *what)
{
	const struct perfring_profile_thread *one = &tables->threads[thread];
	char text[512];

	snprintf(text, sizeof(text), "%.100s %" PRId32 "/%" PRId32 "%s%.200s", one->comm ? one->comm : "[unknown]",
		 (int32_t)one->pid, (int32_t)one->tid, what ? ": " : "", what ? what : "");
	perfring__json_text(out, text);
}

void perfring__view_put_loss(FILE *out, const struct perfring_profile_tables *tables,
			     const struct perfring_profile_loss *loss)
{
	if (loss->cpu != PERFRING_PROFILE_NONE)
		fprintf(out, ",\"cpu\":%" PRIu32, loss->cpu);
	if (loss->event == PERFRING_PROFILE_NONE)
		return;
	fputs(",\"event\":", out);
	perfring__json_text(out, tables->events[loss->event].name);
}

static void put_without(FILE *out, const char *text, unsigned char last)
{
	for (; *text; text++)
		putc_unlocked((unsigned char)*text <= last || *text == 0x7f ? '_' : *text, out);
}

void perfring__view_put_line(FILE *out, const char *text)
{
	put_without(out, text, ' ' - 1);
}

void perfring__view_put_word(FILE *out, const char *text)
{
	put_without(out, text, ' ');
}

/* ---- functions by what they share ---- */

uint64_t perfring__view_object_key(const struct perfring_profile_function *function)
{
	return function->object_id == PERFRING_PROFILE_NONE
		       ? UINT64_MAX
		       : (uint64_t)function->object_id << 32 | function->build_id_id;
}

uint64_t perfring__view_file_key(const struct perfring_profile_function *function)
{
	return function->file_id == PERFRING_PROFILE_NONE ? UINT64_MAX : function->file_id;
}

int perfring__view_group(struct perfring_view_groups *groups, const struct perfring_profile_tables *tables,
			 perfring__view_key *key_of)
{
	struct perfring_table_budget budget = {.max = UINT64_MAX, .factor = perfring__os_hash_factor(groups)};
	struct perfring_table keys = {.size = sizeof(uint64_t), .key_size = sizeof(uint64_t)};
	int64_t group = 0;

	groups->of = calloc((size_t)tables->function_count + 1, sizeof(*groups->of));
	groups->first = calloc((size_t)tables->function_count + 1, sizeof(*groups->first));
	if (!groups->of || !groups->first)
		return -ENOMEM;
	for (uint32_t i = 0; i < tables->function_count && group >= 0; i++) {
		uint64_t key = key_of(&tables->functions[i]);

		groups->of[i] = PERFRING_PROFILE_NONE;
		if (key == UINT64_MAX)
			continue;
		group = perfring__table_add(&keys, &budget, &key, true);
		if (group == groups->count)
			groups->first[groups->count++] = i;
		if (group >= 0)
			groups->of[i] = (uint32_t)group;
	}
	perfring__table_close(&keys);
	return group < 0 ? -ENOMEM : 0;
}

void perfring__view_ungroup(struct perfring_view_groups *groups)
{
	free(groups->of);
	free(groups->first);
}

/* ---- times ---- */

uint64_t perfring__view_origin(const struct perfring_profile_tables *tables)
{
	uint64_t origin = tables->first;

	for (uint32_t i = 0; i < tables->loss_count; i++) {
		uint64_t time = tables->losses[i].time;

		if (time && (!origin || time < origin))
			origin = time;
	}
	return origin;
}

void perfring__view_put_time(FILE *out, uint64_t ns, uint64_t unit)
{
	uint64_t rest = ns % unit;

	fprintf(out, "%" PRIu64, ns / unit);
	if (rest)
		putc_unlocked('.', out);
	while (rest) {
		unit /= 10;
		putc_unlocked((int)('0' + rest / unit), out);
		rest %= unit;
	}
}

/* ---- output with a bound ---- */

/* A stream that passes bytes on. */
struct bounded {
	FILE *out;
	uint64_t left; /* bytes */
	int error;
};

static ssize_t pass_on(void *to, const char *bytes, size_t size)
{
	struct bounded *bounded = to;

	if (size > bounded->left || bounded->error) {
		bounded->error = bounded->error ? bounded->error : -EFBIG;
		return 0;
	}
	if (fwrite(bytes, 1, size, bounded->out) != size) {
		bounded->error = errno ? -errno : -EIO;
		return 0;
	}
	bounded->left -= size;
	return (ssize_t)size;
}

typedef int write_format(const struct perfring_profile_tables *, const struct perfring_profile_view *, FILE *);

static int write_bounded(write_format *format, const struct perfring_profile_tables *tables,
			 const struct perfring_profile_view *view, FILE *out)
{
	struct bounded bounded = {out, view->bytes_max ? view->bytes_max : PERFRING_PROFILE_JSON_MAX, 0};
	FILE *stream = fopencookie(&bounded, "w", (cookie_io_functions_t){.write = pass_on});
	int error;

	if (!stream)
		return -ENOMEM;
	error = format(tables, view, stream);
	if (fclose(stream) && !bounded.error)
		bounded.error = -EIO;
	return error ? error : bounded.error;
}

int perfring_profile_write(const struct perfring_profile *profile, enum perfring_profile_format format,
			   const struct perfring_profile_view *given, FILE *out)
{
	static const struct perfring_profile_view all = {.event = PERFRING_PROFILE_NONE};
	static const struct {
		write_format *write;
		bool is_bounded; /* a browser reads it as one text */
	} formats[] = {
		[PERFRING_PROFILE_COLLAPSED] = {perfring__write_collapsed, false},
		[PERFRING_PROFILE_JSON_LINES] = {perfring__write_json_lines, false},
		[PERFRING_PROFILE_SPEEDSCOPE] = {perfring__write_speedscope, true},
		[PERFRING_PROFILE_CALLGRIND] = {perfring__write_callgrind, false},
		[PERFRING_PROFILE_PPROF] = {perfring__write_pprof, false},
		[PERFRING_PROFILE_FIREFOX] = {perfring__write_firefox, true},
		[PERFRING_PROFILE_CHROME] = {perfring__write_chrome, true},
	};
	const struct perfring_profile_view *view = given ? given : &all;
	struct perfring_profile_tables tables;
	int error;

	perfring_profile_read(profile, &tables);
	if ((unsigned)format >= PERFRING_PROFILE_FORMAT_COUNT ||
	    (view->event != PERFRING_PROFILE_NONE && view->event >= tables.event_count))
		return -EINVAL;
	if (formats[format].is_bounded)
		error = write_bounded(formats[format].write, &tables, view, out);
	else
		error = formats[format].write(&tables, view, out);
	if (!error && (fflush(out) || ferror(out)))
		error = errno ? -errno : -EIO;
	return error;
}
