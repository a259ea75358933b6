/* record_file.c - the output of `perfring record`: a file, a directory, a stream, one file after the other, snapshots.
 *
 * record_command.c calls it for each round, switch and end.  file_writer.h writes; outfile.h names.  A file begins with the
 * machine's state, and each round ends as perf's do, so that a killed recorder leaves a file that perf reads.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>
#include <perfring/stacks.h>
#include "observed.h"
#include "record_command.h"

enum {
	MAX_INDEXED = 2000, /* ids in one ID_INDEX record */
	MANY = 16,          /* a ring filled by this part since it was read last: more is coming */
};

static bool complain(const struct recording *recording, int ret)
{
	if (ret)
		tool_complain("record: %s: %s", recording->path, strerror(-ret));
	return !ret;
}

/* The i-th fd of all sessions, with its event's number in the file. */
static bool event_at(const struct recording *recording, uint32_t i, struct perfring_session_event *opened)
{
	uint32_t own = 0;

	if (perfring_session_event_at(recording->session, i, opened))
		return true;
	if (!recording->side)
		return false;
	while (perfring_session_event_at(recording->session, own, opened))
		own++;
	if (!perfring_session_event_at(recording->side, i - own, opened))
		return false;
	opened->event += recording->event_count - 1;
	return true;
}

/* ---- its beginning ---- */

int tool_record_describe(const struct recording *recording, struct perfring_file_writer *writer)
{
	struct perfring_session_event opened;
	int ret = 0;

	for (uint32_t i = 0; ret >= 0 && i < recording->event_count; i++) {
		struct perf_event_attr attr = recording->events[i].attr;

		if (recording->unwinds)
			perfring_stacks_attr(&attr);
		ret = perfring_file_writer_add_event(writer, &attr, recording->events[i].name);
	}
	for (uint32_t i = 0; ret >= 0 && event_at(recording, i, &opened); i++)
		ret = perfring_file_writer_add_id(writer, opened.event, opened.id);
	for (uint32_t i = 0; ret >= 0 && recording->soft && recording->event_count > 1 && i < recording->event_count;
	     i++)
		ret = perfring_file_writer_add_id(writer, i, SOFT_CLOCK_ID + (uint64_t)i);
	for (uint32_t i = 0, members; ret >= 0 && i < recording->event_count; i += members) {
		members = 1;
		while (recording->events[i].leader == i && i + members < recording->event_count &&
		       recording->events[i + members].leader == i)
			members++;
		if (members > 1)
			ret = perfring_file_writer_add_group(writer, "", i, members);
	}
	return ret < 0 ? ret : 0;
}

/* Writes the CPU and thread of each id (ID_INDEX), for readers that sort by them. */
static int write_index(const struct recording *recording)
{
	struct perfring_session_event opened;
	struct perfring_record record;
	perfring_word *words = tool_allocate(NULL, 4 * MAX_INDEXED, sizeof(*words));
	uint32_t i = 0;
	bool more = true;
	int ret = 0;

	while (more && !ret) {
		uint64_t count = 0;

		while (count < MAX_INDEXED && (more = event_at(recording, i, &opened))) {
			words[4 * count] = opened.id;
			words[4 * count + 1] = opened.ring;
			words[4 * count + 2] = (perfring_word)(int64_t)opened.cpu;
			words[4 * count + 3] = (perfring_word)(int64_t)opened.tid;
			count++;
			i++;
		}
		if (!count)
			break;
		memset(&record, 0, sizeof(record));
		record.type = PERFRING_RECORD_ID_INDEX;
		record.is.id_index.index.entries = words;
		record.is.id_index.index.nr = count;
		ret = perfring_file_writer_put(recording->writer, 0, &record);
	}
	free(words);
	return ret;
}

/* Writes the threads and CPUs that were asked for (THREAD_MAP, CPU_MAP). */
static int write_maps(const struct recording *recording)
{
	struct {
		uint64_t pid;
		char comm[16];
	} one = {.pid = UINT64_MAX};
	struct perfring_session_event opened;
	struct perfring_record record;
	uint16_t cpus[1024], count = 0;
	int ret;

	if (tool_record_observes_command(recording))
		one.pid = (uint64_t)recording->child.pid;
	memset(&record, 0, sizeof(record));
	record.type = PERFRING_RECORD_THREAD_MAP;
	record.is.thread_map.threads.data = &one;
	record.is.thread_map.threads.nr = 1;
	ret = perfring_file_writer_put(recording->writer, 0, &record);
	for (uint32_t i = 0; event_at(recording, i, &opened) && count < sizeof(cpus) / sizeof(cpus[0]); i++) {
		uint16_t j = 0;

		while (j < count && cpus[j] != (uint16_t)opened.cpu)
			j++;
		if (j == count)
			cpus[count++] = (uint16_t)opened.cpu;
	}
	return ret ? ret : tool_target_put_cpus(recording->writer, cpus, count);
}

/* The pid of a thread's process, which owns the mappings; 0: it has ended; -errno. */
static int32_t process_of(const char *tid)
{
	char path[64], line[256];
	int32_t pid = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%.10s/status", tid);
	file = fopen(path, "re");
	if (!file)
		return errno == ENOENT || errno == ESRCH ? 0 : -errno;
	errno = 0;
	while (!pid && fgets(line, sizeof(line), file))
		if (!strncmp(line, "Tgid:", 5))
			pid = (int32_t)strtol(line + 5, NULL, 10);
	if (!pid && ferror(file) && errno != ESRCH)
		pid = -errno;
	fclose(file);
	return pid;
}

void tool_record_add_pid(struct recorded_pids *pids, uint32_t pid)
{
	if (!pid || pid > INT32_MAX || (pids->count && pids->list[pids->count - 1] == pid))
		return;
	if (pids->count == pids->capacity) {
		pids->capacity = pids->capacity ? 2 * pids->capacity : 256;
		pids->list = tool_allocate(pids->list, pids->capacity, sizeof(*pids->list));
	}
	pids->list[pids->count++] = pid;
}

/* Adds the processes that were asked for to `pids`.  Returns 0 or -errno. */
static int add_asked(const struct recording *recording, struct recorded_pids *pids)
{
	char *rest, *word;

	if (tool_record_observes_command(recording) && !recording->child_ended)
		tool_record_add_pid(pids, (uint32_t)recording->child.pid);
	for (rest = recording->pids ? strdupa(recording->pids) : NULL; (word = strsep(&rest, ","));)
		tool_record_add_pid(pids, (uint32_t)strtoul(word, NULL, 10));
	for (rest = recording->tids ? strdupa(recording->tids) : NULL; (word = strsep(&rest, ","));) {
		int32_t pid = process_of(word);

		if (pid < 0)
			return pid;
		tool_record_add_pid(pids, (uint32_t)pid);
	}
	return 0;
}

static int compare_pids(const void *a, const void *b)
{
	uint32_t one = *(const uint32_t *)a, other = *(const uint32_t *)b;

	return one < other ? -1 : one > other;
}

static bool is_cut(void *since)
{
	return tool_is_cut(*(uint64_t *)since);
}

static int put_process(const struct recording *recording, struct perfring_file_writer *writer, int32_t pid)
{
	if (recording->synthesis & SYNTHESIZE_MAPS)
		return perfring_file_writer_put_process(writer, pid);
	return recording->synthesis & SYNTHESIZE_TASKS ? perfring_file_writer_put_tasks(writer, pid) : 0;
}

static int put_state(const struct recording *recording, struct perfring_file_writer *writer, struct recorded_pids *pids)
{
	int ret = perfring_file_writer_put_kernel(writer);

	if (!ret && recording->cgroups && recording->synthesis & SYNTHESIZE_CGROUPS)
		ret = perfring_file_writer_put_cgroups(writer);
	if (!ret && (recording->all || recording->cgroup))
		return put_process(recording, writer, -1);
	if (!ret)
		ret = add_asked(recording, pids);
	if (pids->count)
		qsort(pids->list, pids->count, sizeof(*pids->list), compare_pids);
	for (size_t i = 0; !ret && i < pids->count; i++)
		if (!i || pids->list[i] != pids->list[i - 1])
			ret = put_process(recording, writer, (int32_t)pids->list[i]);
	return ret;
}

/* Foreign processes may have any number of mappings, and signals are blocked meanwhile: a pending one that would end the
 * recording ends the state, and the recording next. */
int tool_record_put_state(const struct recording *recording, struct perfring_file_writer *writer,
			  struct recorded_pids *pids)
{
	uint64_t since = tool_now();
	int ret;

	perfring_file_writer_end_when(writer, is_cut, &since);
	ret = put_state(recording, writer, pids);
	perfring_file_writer_end_when(writer, NULL, NULL);
	if (ret != -EINTR || !tool_is_ending())
		return ret;
	tool_complain("record: %s: warning: interrupted: not all that runs already is in it", recording->path);
	return 0;
}

/* The file's name: FILE, or FILE.TIME, perf's name for a file that is switched to. */
static void name_file(struct recording *recording, bool is_timed)
{
	int length = (int)strlen(recording->output);
	struct timespec now;
	struct tm local;
	char stamp[32];

	while (recording->directory && length > 1 && recording->output[length - 1] == '/')
		length--;
	if (!is_timed) {
		snprintf(recording->path, sizeof(recording->path), "%.*s", length, recording->output);
		return;
	}
	clock_gettime(CLOCK_REALTIME, &now);
	localtime_r(&now.tv_sec, &local);
	strftime(stamp, sizeof(stamp), "%Y%m%d%H%M%S", &local);
	snprintf(recording->path, sizeof(recording->path), "%.*s.%s%02d", length, recording->output, stamp,
		 (int)(now.tv_nsec / 10000000));
}

/* Opens the files of a directory: `data`, and data.N for ring N. */
static int create_directory(struct recording *recording)
{
	const int flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC;
	uint32_t count = perfring_session_ring_count(recording->session);
	struct rlimit limit;
	char name[32];
	int ret = 0;

	/* As the session does for its descriptors.  The command has been forked, and keeps its limit. */
	if (!getrlimit(RLIMIT_NOFILE, &limit)) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	recording->file = openat(recording->out.fd, "data", flags, 0600);
	if (recording->file < 0)
		return -errno;
	ret = perfring_file_writer_open(&recording->writer, recording->file);
	recording->ring_files = tool_allocate(NULL, count + (size_t)1, sizeof(*recording->ring_files));
	while (ret >= 0 && recording->ring_count < count) {
		int fd;

		snprintf(name, sizeof(name), "data.%u", recording->ring_count);
		fd = openat(recording->out.fd, name, flags, 0600);
		if (fd < 0)
			return -errno;
		recording->ring_files[recording->ring_count++] = fd;
		ret = perfring_file_writer_add_part(recording->writer, fd);
	}
	return ret < 0 ? ret : 0;
}

static int create(struct recording *recording)
{
	if (recording->directory)
		return create_directory(recording);
	recording->file = recording->out.fd;
	if (recording->out.is_stream)
		return perfring_file_writer_open_stream(&recording->writer, recording->file);
	return perfring_file_writer_open(&recording->writer, recording->file);
}

/* Puts the features of the machine.  Those that cannot be read are left out, but not the formats of tracepoints. */
static int describe_machine(const struct recording *recording)
{
	int ret = perfring_file_writer_describe(recording->writer, recording->arguments);

	for (uint32_t i = 0; i < recording->event_count; i++)
		if (recording->events[i].attr.type == PERFRING_TYPE_TRACEPOINT)
			return ret;
	if (!ret || ret == -ENOMEM)
		return ret;
	tool_complain("record: %s: warning: %s: its header does not describe all of this machine", recording->path,
		      strerror(-ret));
	return 0;
}

static bool begin(struct recording *recording, bool is_timed)
{
	unsigned flags = TOOL_OUTFILE_PRIVATE | TOOL_OUTFILE_OLD;

	int ret;

	flags |= recording->directory ? (unsigned)TOOL_OUTFILE_DIRECTORY : 0;
	name_file(recording, is_timed);
	if (!tool_outfile_open(&recording->out, "record", recording->path, flags))
		return false;
	ret = create(recording);
	if (!ret && recording->level)
		ret = perfring_file_writer_compress(recording->writer, recording->level);
	if (!ret)
		ret = tool_record_describe(recording, recording->writer);
	if (!ret)
		ret = describe_machine(recording);
	if (!ret)
		ret = perfring_file_writer_begin(recording->writer);
	if (!ret)
		perfring_file_writer_limit_maps(recording->writer, recording->maps_ms, &recording->maps_cut);
	if (!ret && !recording->soft)
		ret = write_index(recording);
	if (!ret)
		ret = tool_record_put_aux_info(recording);
	if (!ret && !recording->soft)
		ret = write_maps(recording);
	recording->opened = tool_now();
	recording->is_unsettled = false;
	recording->files++;
	return complain(recording, ret);
}

/* Puts the state, unless that comes last, and settles the file: from here on perf can open it, even after a kill. */
static bool settle_state(struct recording *recording, struct recorded_pids *pids)
{
	int ret = 0;

	if (recording->unwinding)
		ret = tool_unwinding_put_state(recording, pids);
	else if (!recording->tail)
		ret = tool_record_put_state(recording, recording->writer, pids);
	return complain(recording, ret ? ret : perfring_file_writer_end_round(recording->writer));
}

bool tool_record_open_file(struct recording *recording)
{
	struct recorded_pids pids = {0};
	bool good;

	if (recording->snapshots) {
		snprintf(recording->path, sizeof(recording->path), "snapshot");
		return complain(recording, tool_record_open_side(recording));
	}
	good = begin(recording, recording->switched || recording->stamped) &&
	       (recording->soft || settle_state(recording, &pids));
	free(pids.list);
	return good;
}

bool tool_record_settle_file(struct recording *recording)
{
	return tool_outfile_settle(&recording->out);
}

/* ---- rounds ---- */

/* Whether it is time to end the round in the file.  A record gets its timestamp before its place in the ring, and an
 * interrupt or a hypervisor may delay it in between: with short rounds, as under a flood, it would come after the round that
 * it belongs to.  What counts is the time between two looks at the rings: what is written between them may take long.  Rings of
 * processes that observe themselves are read once more before their round ends. */
static bool is_settling(struct recording *recording)
{
	if (recording->looked < recording->settled + (recording->soft ? SOFT_MARK_MS : MARK_MS) * NS_PER_MS)
		return false;
	recording->settled = tool_now();
	return true;
}

int tool_record_write_pieces(struct recording *recording, struct perfring_file_writer *writer, uint32_t into,
			     const struct iovec *pieces, int count, uint64_t records, uint64_t samples)
{
	int ret = perfring_file_writer_write_to(writer, into, pieces, count);

	if (ret) {
		recording->kept_records += tool_outfile_write_some(&recording->out, writer, into, pieces, count,
								   &recording->kept_samples);
		return ret;
	}
	recording->kept_records += records;
	recording->kept_samples += samples;
	return 0;
}

/* Writes what a session's rings hold, or gathers it to be unwound. */
static int write_spans(struct recording *recording, struct perfring_session *session,
		       struct perfring_file_writer *writer, bool *any)
{
	uint64_t many = (uint64_t)perfring_session_pages(session) * (uint64_t)sysconf(_SC_PAGESIZE) / MANY;
	struct perfring_span span;
	uint32_t into;
	int ret = 0, one;

	while (!ret && (one = perfring_session_next_span(session, &span))) {
		if (one < 0) {
			uint32_t ring;
			struct perfring_fault fault = perfring_session_fault(session, &ring);

			if (recording->soft)
				tool_peers_corrupt(recording->peers, ring, &fault);
			else
				tool_complain("record: ring %u is corrupt at %" PRId64 ": %s", ring, fault.at,
					      fault.what);
			continue;
		}
		if (recording->soft)
			tool_peers_vet(recording->peers, &span);
		*any = true;
		recording->is_pressed = recording->is_pressed || span.size >= many;
		recording->ring = span.ring;
		into = recording->ring_count ? span.ring + 1 : 0;
		if (recording->unwinding)
			tool_unwinding_take(recording, &span, into);
		else
			ret = tool_record_write_pieces(recording, writer, into, span.pieces, (int)span.count,
						       span.records, span.samples);
	}
	return ret;
}

static int write_unwound(struct recording *recording, struct perfring_session *session, bool *any)
{
	int ret;

	tool_unwinding_look_again(recording);
	perfring_session_wait(session, 0);
	ret = write_spans(recording, session, recording->writer, any);
	return ret ? ret : tool_unwinding_write(recording, false);
}

bool tool_record_write_round(struct recording *recording)
{
	struct perfring_file_writer *writer = recording->snapshots ? tool_record_side(recording) : recording->writer;
	struct perfring_session *session = recording->snapshots ? recording->side : recording->session;
	bool any = false;
	char place[32];
	int ret;

	recording->is_pressed = false;
	ret = write_spans(recording, session, writer, &any);
	if (!ret && recording->unwinding)
		ret = write_unwound(recording, session, &any);
	if (!ret)
		ret = tool_record_write_aux(recording, &any);
	recording->is_unsettled = !recording->snapshots && (recording->is_unsettled || any);
	if (!ret && recording->is_unsettled && is_settling(recording)) {
		ret = perfring_file_writer_end_round(writer);
		recording->is_unsettled = false;
	}
	perfring_session_return(session);
	if (!ret && any && recording->snapshots)
		ret = tool_record_bound_side(recording);
	recording->is_broken = recording->is_broken || ret;
	if (!ret)
		return true;
	if (recording->ring_count)
		snprintf(place, sizeof(place), "/data.%u", recording->ring);
	else
		snprintf(place, sizeof(place), ": at 0x%" PRIx64, perfring_file_writer_size(writer));
	tool_complain("record: %s%s: %s: the recording ends here, what was written before is kept", recording->path,
		      place, strerror(-ret));
	return false;
}

/* ---- its end ---- */

/* Writes what --soft's rings have lost, all of them in one record. */
static int put_soft_lost(struct recording *recording, uint64_t last_time)
{
	struct perfring_record record = {.type = PERFRING_RECORD_LOST_SAMPLES};
	uint64_t lost = tool_peers_lost(recording->peers);

	recording->lost += lost;
	if (!lost)
		return 0;
	record.is.lost_samples.lost = lost;
	record.trailer.time = last_time;
	record.trailer.id = record.trailer.identifier = SOFT_CLOCK_ID;
	return perfring_file_writer_put(recording->writer, 0, &record);
}

/* Writes the samples that each fd lost, also those without a LOST record, as LOST_SAMPLES, which perf adds up too.  A file
 * that was switched to has what was lost since the file before. */
static int write_lost(struct recording *recording, uint64_t last_time)
{
	/* of a group with all events: nr and two times; value, id and lost of each */
	size_t words = 3 + 3 * (size_t)recording->event_count;
	uint64_t *buffer = tool_allocate(NULL, words, sizeof(*buffer));
	struct perfring_session_event opened;
	int ret = recording->soft ? put_soft_lost(recording, last_time) : 0, unread = 0;

	for (uint32_t i = 0; !ret && !recording->soft && event_at(recording, i, &opened); i++) {
		struct perfring_format format;
		struct perfring_record record;
		struct perfring_read values;
		uint64_t lost = 0;
		int one;

		if (i >= recording->reported_count) {
			recording->reported =
				tool_allocate(recording->reported, i + (size_t)1, sizeof(*recording->reported));
			recording->reported[i] = 0;
			recording->reported_count = i + 1;
		}
		if (opened.fd < 0 || perfring_format_from_attr(&format, &recording->events[opened.event].attr) ||
		    !(format.read_format & PERFRING_FORMAT_LOST))
			continue;
		one = perfring_event_read(opened.fd, &format, &values, buffer, words * sizeof(*buffer));
		if (one) {
			/* one that the PMU gave up has nothing to read */
			unread = one == -ENODATA ? unread : one;
			continue;
		}
		/* of a group: its own */
		for (uint64_t j = 0; j < values.nr; j++)
			if (!(format.read_format & PERFRING_FORMAT_GROUP) || perfring_read_id(&values, j) == opened.id)
				lost = perfring_read_lost(&values, j);
		if (lost <= recording->reported[i])
			continue;
		memset(&record, 0, sizeof(record));
		record.type = PERFRING_RECORD_LOST_SAMPLES;
		record.is.lost_samples.lost = lost - recording->reported[i];
		recording->lost += lost - recording->reported[i];
		recording->reported[i] = lost;
		record.trailer.pid = record.trailer.tid = (uint32_t)opened.tid;
		record.trailer.time = last_time;
		record.trailer.cpu = (uint32_t)opened.cpu;
		record.trailer.id = record.trailer.stream_id = record.trailer.identifier = opened.id;
		ret = perfring_file_writer_put(recording->writer, opened.event, &record);
	}
	if (unread)
		tool_complain("record: %s: warning: %s: how many samples its events lost is not known", recording->path,
			      strerror(-unread));
	free(buffer);
	return ret;
}

/* living: gets the processes that still run when another file follows; else NULL. */
static bool finish(struct recording *recording, struct recorded_pids *living)
{
	struct perfring_totals totals;
	int ret;

	tool_outfile_end(&recording->out);
	perfring_session_totals(recording->session, &totals);
	ret = write_lost(recording, totals.last_time);
	/* The reason why the recording ended was reported. */
	if (recording->is_broken)
		ret = 0;
	if (!ret && totals.first_time)
		ret = perfring_file_writer_put_times(recording->writer, totals.first_time, totals.last_time);
	if (!ret && recording->tail && !recording->snapshots) {
		struct recorded_pids pids = {0};

		ret = tool_record_put_state(recording, recording->writer, &pids);
		free(pids.list);
	}
	if (!ret && (!recording->no_build_ids || living) && !recording->out.is_stream)
		ret = tool_record_read_back(recording, living);
	if (!complain(recording, ret) || recording->is_broken)
		perfring_file_writer_finish(recording->writer);
	else
		ret = complain(recording, perfring_file_writer_finish(recording->writer)) ? 0 : -EIO;
	recording->kept_bytes += perfring_file_writer_size(recording->writer);
	return !ret;
}

/* Closes one file of several. */
static void show_file(const struct recording *recording)
{
	fputs("[ perfring record: ", stderr);
	tool_print(stderr, recording->path, 0, false);
	fputs(" ]\n", stderr);
}

bool tool_record_finish_file(struct recording *recording)
{
	int ret = recording->unwinding && !recording->is_broken ? tool_unwinding_write(recording, true) : 0;

	recording->is_broken = recording->is_broken || ret;
	/* in any case */
	return finish(recording, NULL) && complain(recording, ret);
}

void tool_record_close_file(struct recording *recording)
{
	perfring_file_writer_close(recording->writer);
	recording->writer = NULL;
	if (recording->directory && recording->file >= 0)
		close(recording->file);
	recording->file = -1;
	while (recording->ring_count)
		close(recording->ring_files[--recording->ring_count]);
	free(recording->ring_files);
	recording->ring_files = NULL;
	tool_outfile_close(&recording->out);
}

/* --switch-max-files: removes the oldest file, so that there are no more than that with the next one. */
static bool keep_few(struct recording *recording)
{
	uint32_t count = recording->switched_count;

	if (!recording->most_files)
		return true;
	recording->switched_paths =
		tool_allocate(recording->switched_paths, count + (size_t)1, sizeof(*recording->switched_paths));
	recording->switched_paths[count] = strdup(recording->path);
	recording->switched_count = ++count;
	while (count >= recording->most_files) {
		char *oldest = recording->switched_paths[0];
		bool good = oldest && !unlink(oldest);

		if (!good)
			tool_complain("record: %s: %s", oldest ? oldest : "", strerror(errno));
		free(oldest);
		recording->switched_count = --count;
		memmove(recording->switched_paths, recording->switched_paths + 1,
			count * sizeof(*recording->switched_paths));
		if (!good)
			return false;
	}
	return true;
}

bool tool_record_switch_file(struct recording *recording)
{
	struct recorded_pids pids = {0};
	/* What waits for the next round is of this file, and of its mappings. */
	bool good = complain(recording, recording->unwinding ? tool_unwinding_write(recording, true) : 0);

	/* Of the whole system all processes are written. */
	good = good && finish(recording, recording->all || recording->cgroup ? NULL : &pids);

	if (good && !recording->quiet)
		show_file(recording);
	tool_record_close_file(recording);
	good = good && keep_few(recording) && begin(recording, true) && settle_state(recording, &pids) &&
	       tool_record_settle_file(recording);
	free(pids.list);
	return good;
}

/* ---- snapshots ---- */

bool tool_record_snapshot(struct recording *recording, bool is_last)
{
	bool any = false, good;
	int ret;

	/* First, before the rings overwrite the wanted records. */
	ret = perfring_session_snapshot(recording->session);
	/* The side records until now belong to it. */
	if (is_last)
		perfring_session_flush(recording->side);
	else
		perfring_session_wait(recording->side, 0);
	if (!tool_record_write_round(recording) || !begin(recording, !is_last || recording->stamped))
		return false;
	if (!ret)
		ret = tool_record_put_side(recording);
	if (!ret)
		ret = write_spans(recording, recording->session, recording->writer, &any);
	perfring_session_return(recording->session);
	if (!ret)
		ret = perfring_file_writer_end_round(recording->writer);
	good = complain(recording, ret);
	good = tool_record_finish_file(recording) && good;
	/* A snapshot that was cut short by a full disk is one too. */
	good = tool_record_settle_file(recording) && good;
	if (!is_last) {
		if (good && !recording->quiet)
			show_file(recording);
		tool_record_close_file(recording);
	}
	return good;
}
