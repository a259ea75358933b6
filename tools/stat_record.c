/* stat_record.c - `perfring stat record`: the counts as a perf.data file, which perf stat report prints.
 *
 *     THREAD_MAP CPU_MAP STAT_CONFIG  what is counted
 *     STAT ... STAT_ROUND             each fd's count since the start, after each interval and at the end
 *
 * stat.c calls it at the begin, after each interval and at the end.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <time.h>
#include <perfring/feature.h>
#include <perfring/file_writer.h>
#include "observed.h"
#include "stat.h"

enum {
	MAX_CPUS = 4096, /* in the CPU_MAP */
	/* A record has at most 65 528 bytes: a header, a number and the threads. */
	MAX_THREADS = (65528 - 2 * 8) / sizeof(struct thread_entry),
};

static bool complain(const struct counting *counting, int ret)
{
	if (ret < 0)
		tool_complain("stat record: %s: %s", counting->data, strerror(-ret));
	return ret >= 0;
}

/* The number of each thread in THREAD_MAP: that of its first fd among the distinct ones.  Bound: fds times threads. */
struct threads {
	struct thread_entry *list;
	uint32_t count;
};

static uint32_t number_of(struct threads *threads, int32_t tid)
{
	for (uint32_t i = threads->count; i > 0; i--)
		if (threads->list[i - 1].tid == (uint64_t)(int64_t)tid)
			return i - 1;
	threads->list = tool_allocate(threads->list, threads->count + (size_t)1, sizeof(*threads->list));
	threads->list[threads->count] = (struct thread_entry){.tid = (uint64_t)(int64_t)tid};
	return threads->count++;
}

/* Returns 0, -errno, or 1 after a complaint. */
static int put_maps(const struct counting *counting)
{
	struct perfring_record record = {.type = PERFRING_RECORD_THREAD_MAP};
	struct threads threads = {NULL, 0};
	struct perfring_counts_fd fd;
	uint16_t *cpus = tool_allocate(NULL, MAX_CPUS, sizeof(*cpus)), count = 0;
	int ret;

	for (uint32_t i = 0; perfring_counts_at(counting->counts, i, &fd); i++) {
		uint16_t j = 0;

		number_of(&threads, fd.tid);
		while (j < count && cpus[j] != (uint16_t)fd.cpu)
			j++;
		if (j == count && count < MAX_CPUS)
			cpus[count++] = (uint16_t)fd.cpu;
	}
	if (threads.count > MAX_THREADS) {
		tool_complain("stat record: %s: %" PRIu32 " threads: a file has at most %d", counting->data,
			      threads.count, (int)MAX_THREADS);
		free(cpus);
		free(threads.list);
		return 1;
	}
	for (uint32_t i = 0; i < threads.count; i++)
		if ((int32_t)threads.list[i].tid > 0)
			tool_stat_read_comm((int32_t)threads.list[i].tid, threads.list[i].comm,
					    sizeof(threads.list[i].comm));
	record.is.thread_map.threads.data = threads.list;
	record.is.thread_map.threads.nr = threads.count;
	ret = perfring_file_writer_put(counting->writer, 0, &record);
	if (!ret)
		ret = tool_target_put_cpus(counting->writer, cpus, count);
	free(cpus);
	free(threads.list);
	return ret;
}

static int put_config(const struct counting *counting)
{
	static const uint8_t MODES[] = {
		[APART_NOT] = TOOL_STAT_AGGR_GLOBAL,    [APART_CPU] = TOOL_STAT_AGGR_NONE,
		[APART_THREAD] = TOOL_STAT_AGGR_THREAD, [APART_CORE] = TOOL_STAT_AGGR_CORE,
		[APART_DIE] = TOOL_STAT_AGGR_DIE,       [APART_SOCKET] = TOOL_STAT_AGGR_SOCKET,
		[APART_NODE] = TOOL_STAT_AGGR_NODE,
	};
	const perfring_word words[] = {
		PERFRING_STAT_CONFIG_AGGR_MODE, MODES[counting->apart],
		PERFRING_STAT_CONFIG_INTERVAL,  counting->interval,
		PERFRING_STAT_CONFIG_SCALE,     !counting->unscaled,
	};
	struct perfring_record record = {.type = PERFRING_RECORD_STAT_CONFIG};

	record.is.stat_config.config.words = words;
	record.is.stat_config.config.nr = sizeof(words) / sizeof(words[0]) / 2;
	return perfring_file_writer_put(counting->writer, 0, &record);
}

/* Units and scales, of which an attr says nothing. */
static int put_update(const struct counting *counting, uint32_t event, uint64_t id)
{
	const char *unit = tool_stat_unit(counting, event);
	double scale = tool_stat_scale(counting, event);
	struct perfring_record record = {.type = PERFRING_RECORD_EVENT_UPDATE};
	int ret = 0;

	record.is.event_update.id = id;
	if (*unit) {
		record.is.event_update.type = PERFRING_EVENT_UPDATE_UNIT;
		record.is.event_update.text = (struct perfring_string){unit, (uint32_t)strlen(unit), 0};
		ret = perfring_file_writer_put(counting->writer, 0, &record);
	}
	if (!ret && (scale < 1 || scale > 1)) {
		record.is.event_update.type = PERFRING_EVENT_UPDATE_SCALE;
		record.is.event_update.text = (struct perfring_string){NULL, 0, 0};
		memcpy(&record.is.event_update.scale, &scale, sizeof(scale));
		ret = perfring_file_writer_put(counting->writer, 0, &record);
	}
	return ret;
}

static int describe(const struct counting *counting)
{
	struct perfring_file_writer *writer = counting->writer;
	uint32_t events = perfring_events_count(counting->events);
	struct perfring_counts_fd fd;
	int ret = 0;

	for (uint32_t i = 0; ret >= 0 && i < events; i++) {
		struct perf_event_attr attr = tool_stat_shape(counting, i);

		attr.sample_type = PERFRING_SAMPLE_IDENTIFIER;
		attr.read_format = PERFRING_FORMAT_TOTAL_TIME_ENABLED | PERFRING_FORMAT_TOTAL_TIME_RUNNING;
		ret = perfring_file_writer_add_event(writer, &attr, tool_stat_event(counting, i)->name);
	}
	for (uint32_t i = 0; ret >= 0 && perfring_counts_at(counting->counts, i, &fd); i++)
		ret = perfring_file_writer_add_id(writer, fd.event, fd.id);
	for (uint32_t i = 0, members; ret >= 0 && i < events; i += members) {
		for (members = 1; i + members < events && tool_stat_is_sibling(counting, i + members); members++)
			;
		if (members > 1)
			ret = perfring_file_writer_add_group(writer, "", i, members);
	}
	return ret < 0 ? ret : 0;
}

bool tool_stat_open_data(struct counting *counting)
{
	uint32_t described = UINT32_MAX;
	struct perfring_counts_fd fd;
	int ret;

	if (!tool_outfile_open(&counting->data_file, "stat record", counting->data,
			       TOOL_OUTFILE_PRIVATE | TOOL_OUTFILE_OLD))
		return false;
	ret = counting->data_file.is_stream
		      ? perfring_file_writer_open_stream(&counting->writer, counting->data_file.fd)
		      : perfring_file_writer_open(&counting->writer, counting->data_file.fd);
	if (!ret)
		ret = describe(counting);
	if (!ret) {
		ret = perfring_file_writer_describe(counting->writer, counting->arguments);
		ret = ret == -ENOMEM ? ret : 0; /* counts can do without what the machine hides */
	}
	if (!ret)
		ret = perfring_file_writer_put_feature(counting->writer, PERFRING_FEATURE_STAT, "", 0);
	if (!ret)
		ret = perfring_file_writer_begin(counting->writer);
	for (uint32_t i = 0; !ret && perfring_counts_at(counting->counts, i, &fd); i++) {
		if (fd.event != described)
			ret = put_update(counting, fd.event, fd.id);
		described = fd.event;
	}
	if (!ret)
		ret = put_maps(counting);
	if (!ret)
		ret = put_config(counting);
	return complain(counting, ret) && !ret && tool_outfile_settle(&counting->data_file);
}

bool tool_stat_put_round(struct counting *counting, uint64_t ns, bool is_final)
{
	struct perfring_record record = {.type = PERFRING_RECORD_STAT};
	struct threads threads = {NULL, 0};
	struct perfring_counts_fd fd;
	int ret = 0;

	for (uint32_t i = 0; !ret && perfring_counts_at(counting->counts, i, &fd); i++) {
		uint32_t thread = number_of(&threads, fd.tid);

		record.is.stat = (struct perfring_record_stat){
			.id = fd.id,
			.cpu = (uint32_t)fd.cpu,
			.thread = thread,
			.val = fd.count.value,
			.ena = fd.count.enabled,
			.run = fd.count.running,
		};
		ret = perfring_file_writer_put(counting->writer, 0, &record);
	}
	free(threads.list);
	memset(&record, 0, sizeof(record));
	record.type = PERFRING_RECORD_STAT_ROUND;
	record.is.stat_round.type = is_final ? PERFRING_STAT_ROUND_FINAL : PERFRING_STAT_ROUND_INTERVAL;
	record.is.stat_round.time = ns;
	if (!ret)
		ret = perfring_file_writer_put(counting->writer, 0, &record);
	return complain(counting, ret);
}

bool tool_stat_close_data(struct counting *counting)
{
	bool good = !counting->writer || complain(counting, perfring_file_writer_finish(counting->writer));

	perfring_file_writer_close(counting->writer);
	counting->writer = NULL;
	tool_outfile_close(&counting->data_file);
	return good;
}
