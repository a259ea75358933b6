/* record_file.c - where `perfring record` writes: a file, a directory, a stream, one file after the other, or a
 * snapshot's. */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include "machine.h"
#include "record.h"

enum {
	MOST_INDEXED = 2000, /* ids in one ID_INDEX record */
	MANY = 16,           /* a ring filled by this part since it was read last: more is coming */
};

static bool complain(const struct recording *recording, int ret)
{
	if (ret)
		perfring_tool_complain("record: %s: %s", recording->path, strerror(-ret));
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

static int add_events(const struct recording *recording, struct perfring_data_writer *writer)
{
	struct perfring_session_event opened;
	int ret = 0;

	for (uint32_t i = 0; ret >= 0 && i < recording->event_count; i++)
		ret = perfring_data_add_event(writer, &recording->events[i].attr, recording->events[i].name);
	for (uint32_t i = 0; ret >= 0 && event_at(recording, i, &opened); i++)
		ret = perfring_data_add_id(writer, opened.event, opened.id);
	for (uint32_t i = 0, members; ret >= 0 && i < recording->event_count; i += members) {
		members = 1;
		while (recording->events[i].leader == i && i + members < recording->event_count &&
		       recording->events[i + members].leader == i)
			members++;
		if (members > 1)
			ret = perfring_data_add_group(writer, "", i, members);
	}
	return ret < 0 ? ret : 0;
}

/* Which id is whose, where: for who sorts by CPU or thread. */
static int write_index(const struct recording *recording)
{
	struct perfring_session_event opened;
	struct perfring_record record;
	perfring_word *words = perfring_tool_room(NULL, 4 * MOST_INDEXED, sizeof(*words));
	uint32_t i = 0;
	bool more = true;
	int ret = 0;

	while (more && !ret) {
		uint64_t count = 0;

		while (count < MOST_INDEXED && (more = event_at(recording, i, &opened))) {
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
		ret = perfring_data_put(recording->writer, 0, &record);
	}
	free(words);
	return ret;
}

/* The threads and CPUs that were asked for. */
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

	if (recording->child.pid && !recording->all)
		one.pid = (uint64_t)recording->child.pid;
	memset(&record, 0, sizeof(record));
	record.type = PERFRING_RECORD_THREAD_MAP;
	record.is.thread_map.threads.data = &one;
	record.is.thread_map.threads.nr = 1;
	ret = perfring_data_put(recording->writer, 0, &record);
	for (uint32_t i = 0; event_at(recording, i, &opened) && count < sizeof(cpus) / sizeof(cpus[0]); i++) {
		uint16_t j = 0;

		while (j < count && cpus[j] != (uint16_t)opened.cpu)
			j++;
		if (j == count)
			cpus[count++] = (uint16_t)opened.cpu;
	}
	memset(&record, 0, sizeof(record));
	record.type = PERFRING_RECORD_CPU_MAP;
	record.is.cpu_map.cpus.type = PERFRING_CPU_MAP_CPUS;
	record.is.cpu_map.cpus.nr = count;
	record.is.cpu_map.cpus.data = cpus;
	record.is.cpu_map.cpus.size = count * (uint32_t)sizeof(cpus[0]);
	return ret ? ret : perfring_data_put(recording->writer, 0, &record);
}

/* The process of a thread: mappings belong to that one.  0: it has gone. */
static int32_t process_of(const char *tid)
{
	char path[64], line[256];
	int32_t pid = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%.10s/status", tid);
	file = fopen(path, "re");
	while (file && !pid && fgets(line, sizeof(line), file))
		if (!strncmp(line, "Tgid:", 5))
			pid = (int32_t)strtol(line + 5, NULL, 10);
	if (file)
		fclose(file);
	return pid;
}

/* The state of what is observed, as it is before the first record. */
static int write_state(const struct recording *recording, struct perfring_data_writer *writer)
{
	char *rest, *word;
	int ret = perfring_data_put_kernel(writer);

	if (!ret && recording->cgroups)
		ret = perfring_data_put_cgroups(writer);
	if (!ret && (recording->all || recording->cgroup))
		ret = perfring_data_put_process(writer, -1);
	if (!ret && perfring_record_observes_command(recording) && !recording->child_ended)
		ret = perfring_data_put_process(writer, recording->child.pid);
	for (rest = recording->pids ? strdupa(recording->pids) : NULL; !ret && (word = strsep(&rest, ","));)
		ret = perfring_data_put_process(writer, (int32_t)strtol(word, NULL, 10));
	for (rest = recording->tids ? strdupa(recording->tids) : NULL; !ret && (word = strsep(&rest, ","));) {
		int32_t pid = process_of(word);

		ret = pid ? perfring_data_put_process(writer, pid) : 0;
	}
	return ret;
}

/* FILE, or FILE.TIME as perf calls what it switches to. */
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

static bool is_of_directory(const char *name)
{
	if (!strcmp(name, "data"))
		return true;
	return !strncmp(name, "data.", 5) && name[5] && !name[5 + strspn(name + 5, "0123456789")];
}

/* What a recording left in a directory: files `data` and data.N.  Returns 0, -ENOTEMPTY when there is anything else in it,
 * or -errno; with `empties` they are removed. */
static int look_into(const char *path, bool empties)
{
	DIR *folder = opendir(path);
	const struct dirent *entry;
	struct stat status;
	int ret = folder ? 0 : -errno;

	while (!ret && (entry = readdir(folder))) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		if (fstatat(dirfd(folder), entry->d_name, &status, AT_SYMLINK_NOFOLLOW))
			ret = -errno;
		else if (!is_of_directory(entry->d_name) || !S_ISREG(status.st_mode))
			ret = -ENOTEMPTY;
		else if (empties && unlinkat(dirfd(folder), entry->d_name, 0))
			ret = -errno;
	}
	if (folder)
		closedir(folder);
	return ret;
}

/* A directory that is not of a recording is nobody's to rename or remove. */
static bool complain_folder(const char *path, int ret)
{
	if (ret == -ENOTEMPTY)
		perfring_tool_complain("record: %s: a directory with more in it than data and data.N: it is left alone",
				       path);
	else if (ret)
		perfring_tool_complain("record: %s: %s", path, strerror(-ret));
	return !ret;
}

/* What is there becomes FILE.old, file or directory, and what that was goes. */
static bool make_way(const struct recording *recording)
{
	char *old = perfring_tool_room(NULL, strlen(recording->path) + sizeof(".old"), 1);
	struct stat status, before;
	bool good = true, is_folder;

	sprintf(old, "%s.old", recording->path);
	if (stat(recording->path, &status))
		goto out;
	is_folder = S_ISDIR(status.st_mode);
	if (!is_folder && (!S_ISREG(status.st_mode) || (!status.st_size && !recording->directory)))
		goto out;
	if (is_folder)
		good = complain_folder(recording->path, look_into(recording->path, false));
	if (good && !lstat(old, &before)) {
		if (S_ISDIR(before.st_mode)) {
			good = complain_folder(old, look_into(old, false)) &&
			       complain_folder(old, look_into(old, true)) &&
			       complain_folder(old, rmdir(old) ? -errno : 0);
		} else if (is_folder) {
			good = complain_folder(old, unlink(old) ? -errno : 0);
		}
	}
	if (good)
		good = complain_folder(old, rename(recording->path, old) ? -errno : 0);
out:
	free(old);
	return good;
}

/* `data`, and data.N for ring N. */
static int create_directory(struct recording *recording)
{
	const int flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC;
	uint32_t count = perfring_session_ring_count(recording->session);
	struct rlimit limit;
	char name[32];
	int ret = 0;

	/* As the session does for its own: the command has been forked, and keeps the limit that it had. */
	if (!getrlimit(RLIMIT_NOFILE, &limit)) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	if (mkdir(recording->path, 0700))
		return -errno;
	recording->folder = open(recording->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (recording->folder < 0)
		return -errno;
	recording->file = openat(recording->folder, "data", flags, 0600);
	if (recording->file < 0)
		return -errno;
	ret = perfring_data_create(&recording->writer, recording->file);
	recording->ring_files = perfring_tool_room(NULL, count + (size_t)1, sizeof(*recording->ring_files));
	while (ret >= 0 && recording->ring_count < count) {
		int fd;

		snprintf(name, sizeof(name), "data.%u", recording->ring_count);
		fd = openat(recording->folder, name, flags, 0600);
		if (fd < 0)
			return -errno;
		recording->ring_files[recording->ring_count++] = fd;
		ret = perfring_data_add_file(recording->writer, fd);
	}
	return ret < 0 ? ret : 0;
}

static int create(struct recording *recording)
{
	if (recording->is_stream) {
		recording->file = STDOUT_FILENO;
		return perfring_data_create_stream(&recording->writer, recording->file);
	}
	if (recording->directory)
		return create_directory(recording);
	recording->file = open(recording->path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (recording->file < 0)
		return -errno;
	if (lseek(recording->file, 0, SEEK_CUR) < 0 && errno == ESPIPE)
		return perfring_data_create_stream(&recording->writer, recording->file);
	return perfring_data_create(&recording->writer, recording->file);
}

static bool begin(struct recording *recording, bool is_timed)
{
	int ret;

	name_file(recording, is_timed);
	if (!recording->is_stream && !make_way(recording))
		return false;
	ret = create(recording);
	if (!ret && recording->level) {
		ret = perfring_data_compress(recording->writer, recording->level);
		if (ret == -EOPNOTSUPP) {
			perfring_tool_complain("record: -z: built without libzstd");
			return false;
		}
	}
	if (!ret)
		ret = add_events(recording, recording->writer);
	if (!ret)
		ret = perfring_data_describe(recording->writer, recording->arguments);
	if (!ret)
		ret = perfring_data_begin(recording->writer);
	if (!ret && !recording->soft)
		ret = write_index(recording);
	if (!ret && !recording->soft)
		ret = write_maps(recording);
	recording->opened = perfring_tool_now();
	recording->files++;
	return complain(recording, ret);
}

/* Settled at once: from here on perf opens the file, whenever we are killed. */
static bool settle_state(const struct recording *recording)
{
	int ret = write_state(recording, recording->writer);

	return complain(recording, ret ? ret : perfring_data_round(recording->writer));
}

/* What a snapshot's files begin with is kept in memory: state now, and what becomes of tasks and mappings. */
static bool open_keep(struct recording *recording)
{
	int ret = 0;

	snprintf(recording->path, sizeof(recording->path), "snapshot");
	recording->keep_file = memfd_create("perfring record", MFD_CLOEXEC);
	if (recording->keep_file < 0)
		ret = -errno;
	if (!ret)
		ret = perfring_data_create(&recording->keep, recording->keep_file);
	if (!ret)
		ret = add_events(recording, recording->keep);
	if (!ret)
		ret = perfring_data_begin(recording->keep);
	recording->keep_from = ret ? 0 : perfring_data_size(recording->keep);
	if (!ret)
		ret = write_state(recording, recording->keep);
	return complain(recording, ret);
}

bool perfring_record_open_file(struct recording *recording)
{
	recording->is_stream = !strcmp(recording->output, "-");
	if (recording->is_stream && isatty(STDOUT_FILENO)) {
		perfring_tool_complain(
			"record: -o -: standard output is a terminal: redirect it into a file or a pipe");
		return false;
	}
	if (recording->snapshots)
		return open_keep(recording);
	return begin(recording, recording->switched) && (recording->soft || settle_state(recording));
}

/* ---- rounds ---- */

/* The rings of processes that observe themselves are read more often: those that are new have then been read by the time
 * when a round is settled. */
static bool is_settling(struct recording *recording)
{
	uint64_t time;

	if (!recording->soft)
		return true;
	time = perfring_tool_now();
	if (time - recording->settled < SOFT_MARK_MS * NS_PER_MS)
		return false;
	recording->settled = time;
	return true;
}

/* What a session's rings hold. */
static int write_spans(struct recording *recording, struct perfring_session *session,
		       struct perfring_data_writer *writer, bool *any)
{
	uint64_t many = (uint64_t)perfring_session_pages(session) * (uint64_t)sysconf(_SC_PAGESIZE) / MANY;
	struct perfring_span span;
	int ret = 0, one;

	recording->is_pressed = false;
	while (!ret && (one = perfring_session_next_span(session, &span))) {
		if (one < 0) {
			uint32_t ring;
			struct perfring_fault fault = perfring_session_fault(session, &ring);

			perfring_tool_complain("record: ring %u is corrupt at %" PRId64 ": %s", ring, fault.at,
					       fault.what);
			continue;
		}
		*any = true;
		recording->is_pressed = recording->is_pressed || span.size >= many;
		recording->ring = span.ring;
		ret = perfring_data_write_to(writer, recording->ring_count ? span.ring + 1 : 0, span.pieces,
					     (int)span.count);
		if (ret)
			break;
		recording->kept_records += span.records;
		recording->kept_samples += span.samples;
	}
	return ret;
}

bool perfring_record_write_round(struct recording *recording)
{
	struct perfring_data_writer *writer = recording->snapshots ? recording->keep : recording->writer;
	struct perfring_session *session = recording->snapshots ? recording->side : recording->session;
	bool any = false;
	char place[32];
	int ret = write_spans(recording, session, writer, &any);

	if (!ret && any && !recording->snapshots && is_settling(recording))
		ret = perfring_data_round(writer);
	perfring_session_return(session);
	recording->is_broken = recording->is_broken || ret;
	if (!ret)
		return true;
	if (recording->ring_count)
		snprintf(place, sizeof(place), "/data.%u", recording->ring);
	else
		snprintf(place, sizeof(place), ": at 0x%" PRIx64, perfring_data_size(writer));
	perfring_tool_complain("record: %s%s: %s: the recording ends here, what was written before is kept",
			       recording->path, place, strerror(-ret));
	return false;
}

/* ---- its end ---- */

/* Of all their rings, in one. */
static int put_soft_lost(struct recording *recording, uint64_t last_time)
{
	struct perfring_record record = {.type = PERFRING_RECORD_LOST_SAMPLES};
	uint64_t lost = perfring_peers_lost(recording->peers);

	recording->lost += lost;
	if (!lost)
		return 0;
	record.is.lost_samples.lost = lost;
	record.trailer.time = last_time;
	return perfring_data_put(recording->writer, 0, &record);
}

/* What each fd lost, LOST records that never found room included: as LOST_SAMPLES, which perf adds up too.  A file that
 * was switched tells of what was lost since the one before. */
static int write_lost(struct recording *recording, uint64_t last_time)
{
	/* of a group with all events: nr and two times; value, id and lost of each */
	size_t words = 3 + 3 * (size_t)recording->event_count;
	uint64_t *room = perfring_tool_room(NULL, words, sizeof(*room));
	struct perfring_session_event opened;
	int ret = recording->soft ? put_soft_lost(recording, last_time) : 0;

	for (uint32_t i = 0; !ret && !recording->soft && event_at(recording, i, &opened); i++) {
		struct perfring_format format;
		struct perfring_record record;
		struct perfring_read values;
		uint64_t lost = 0;

		if (i >= recording->told_count) {
			recording->told = perfring_tool_room(recording->told, i + (size_t)1, sizeof(*recording->told));
			recording->told[i] = 0;
			recording->told_count = i + 1;
		}
		if (opened.fd < 0 || perfring_format_from_attr(&format, &recording->events[opened.event].attr) ||
		    !(format.read_format & PERFRING_FORMAT_LOST) ||
		    perfring_event_read(opened.fd, &format, &values, room, words * sizeof(*room)))
			continue;
		/* of a group: its own */
		for (uint64_t j = 0; j < values.nr; j++)
			if (!(format.read_format & PERFRING_FORMAT_GROUP) || perfring_read_id(&values, j) == opened.id)
				lost = perfring_read_lost(&values, j);
		if (lost <= recording->told[i])
			continue;
		memset(&record, 0, sizeof(record));
		record.type = PERFRING_RECORD_LOST_SAMPLES;
		record.is.lost_samples.lost = lost - recording->told[i];
		recording->lost += lost - recording->told[i];
		recording->told[i] = lost;
		record.trailer.pid = record.trailer.tid = (uint32_t)opened.tid;
		record.trailer.time = last_time;
		record.trailer.cpu = (uint32_t)opened.cpu;
		record.trailer.id = record.trailer.stream_id = record.trailer.identifier = opened.id;
		ret = perfring_data_put(recording->writer, opened.event, &record);
	}
	free(room);
	return ret;
}

/* ---- build ids of what was hit ---- */

struct hits {
	struct perfring_machine *machine;
	const char **names; /* each once */
	size_t count;
	bool kernel;
};

static void hit(struct hits *hits, const char *name)
{
	if (*name != '/')
		return;
	for (size_t i = hits->count; i > 0; i--)
		if (hits->names[i - 1] == name)
			return;
	hits->names = perfring_tool_room(hits->names, hits->count + 1, sizeof(*hits->names));
	hits->names[hits->count++] = name;
}

static void hit_sample(struct hits *hits, const struct perfring_item *item)
{
	const struct perfring_mapping *mapping;
	struct perfring_sample sample;

	if (perfring_sample_decode(item->format, item->record, &sample, NULL))
		return;
	if (perfring_record_cpumode(item->record) == PERFRING_RECORD_MISC_KERNEL) {
		hits->kernel = true;
		return;
	}
	mapping = perfring_machine_user(hits->machine, sample.pid, sample.ip);
	if (mapping)
		hit(hits, mapping->name);
}

/* Reads the file back, as perf does. */
static void find_hits(const struct recording *recording, struct hits *hits)
{
	struct perfring_data *data;
	struct perfring_item item;
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", recording->ring_count ? recording->folder : recording->file);
	if (!perfring_data_open(&data, path))
		while (perfring_data_next(data, &item) == 1) {
			struct perfring_record record;

			if (item.record->type == PERFRING_RECORD_SAMPLE && item.format)
				hit_sample(hits, &item);
			else if (item.format && !perfring_record_decode(item.format, item.record, &record, NULL))
				perfring_machine_take(hits->machine, &record);
		}
	perfring_data_close(data);
}

static int write_build_ids(const struct recording *recording)
{
	struct hits hits = {.machine = perfring_machine_open()};
	uint8_t id[PERFRING_BUILD_ID_ROOM];
	int64_t size;
	int ret = 0;

	find_hits(recording, &hits);
	size = hits.kernel ? perfring_build_id_of_kernel(id) : 0;
	if (size > 0)
		ret = perfring_data_put_build_id(recording->writer, PERFRING_RECORD_MISC_KERNEL, -1,
						 "[kernel.kallsyms]", id, (uint32_t)size);
	for (size_t i = 0; !ret && i < hits.count; i++) {
		size = perfring_build_id_of(hits.names[i], id);
		if (size > 0)
			ret = perfring_data_put_build_id(recording->writer, PERFRING_RECORD_MISC_USER, -1,
							 hits.names[i], id, (uint32_t)size);
	}
	free(hits.names);
	perfring_machine_close(hits.machine);
	return ret;
}

bool perfring_record_finish_file(struct recording *recording)
{
	struct perfring_totals totals;
	int ret;

	perfring_session_totals(recording->session, &totals);
	ret = write_lost(recording, totals.last_time);
	/* Why the recording ended was told. */
	if (recording->is_broken)
		ret = 0;
	if (totals.first_time)
		perfring_data_put_times(recording->writer, totals.first_time, totals.last_time);
	if (!ret && !recording->no_build_ids && !recording->is_stream)
		ret = write_build_ids(recording);
	if (!complain(recording, ret) || recording->is_broken)
		perfring_data_finish(recording->writer);
	else
		ret = complain(recording, perfring_data_finish(recording->writer)) ? 0 : -EIO;
	recording->kept_bytes += perfring_data_size(recording->writer);
	return !ret;
}

void perfring_record_close_file(struct recording *recording)
{
	perfring_data_writer_close(recording->writer);
	recording->writer = NULL;
	if (recording->file > STDERR_FILENO)
		close(recording->file);
	recording->file = -1;
	while (recording->ring_count)
		close(recording->ring_files[--recording->ring_count]);
	free(recording->ring_files);
	recording->ring_files = NULL;
	if (recording->folder >= 0)
		close(recording->folder);
	recording->folder = -1;
}

bool perfring_record_switch_file(struct recording *recording)
{
	bool good = perfring_record_finish_file(recording);

	if (good && !recording->quiet)
		fprintf(stderr, "[ perfring record: %s ]\n", recording->path);
	perfring_record_close_file(recording);
	return good && begin(recording, true) && settle_state(recording);
}

/* ---- snapshots ---- */

/* What was kept, from its first record on. */
static int write_kept(const struct recording *recording)
{
	uint64_t size = perfring_data_size(recording->keep), from = recording->keep_from;
	struct iovec piece;
	void *bytes;
	int ret;

	if (size == from)
		return 0;
	bytes = mmap(NULL, (size_t)size, PROT_READ, MAP_SHARED, recording->keep_file, 0);
	if (bytes == MAP_FAILED)
		return -errno;
	piece.iov_base = (char *)bytes + from;
	piece.iov_len = (size_t)(size - from);
	ret = perfring_data_write(recording->writer, &piece, 1);
	munmap(bytes, (size_t)size);
	return ret;
}

bool perfring_record_snapshot(struct recording *recording, bool is_last)
{
	bool any = false, good;
	int ret;

	/* What the side tells up to now belongs to it. */
	if (is_last)
		perfring_session_flush(recording->side);
	else
		perfring_session_wait(recording->side, 0);
	if (!perfring_record_write_round(recording) || !begin(recording, !is_last))
		return false;
	ret = write_kept(recording);
	if (!ret)
		ret = perfring_session_snapshot(recording->session);
	if (!ret)
		ret = write_spans(recording, recording->session, recording->writer, &any);
	perfring_session_return(recording->session);
	if (!ret)
		ret = perfring_data_round(recording->writer);
	good = complain(recording, ret);
	good = perfring_record_finish_file(recording) && good;
	if (!is_last) {
		if (good && !recording->quiet)
			fprintf(stderr, "[ perfring record: %s ]\n", recording->path);
		perfring_record_close_file(recording);
	}
	return good;
}
