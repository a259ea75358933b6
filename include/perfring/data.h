/* data.h - perf.data files, read and written (ABI.md 10, 11).
 *
 * Reading hands out the same items as a session does, in time order:
 *
 *     perfring_data_open(&data, "perf.data");
 *     while ((one = perfring_data_next(data, &item)) == 1)
 *             use(&item);                                      valid until the next perfring_data_next
 *     if (one < 0)
 *             fault = perfring_data_fault(data);               where in the file, and what
 *     perfring_data_close(data);
 *
 * Writing keeps records as they are:
 *
 *     header | ids | attr entries | records, FINISHED_ROUND after each round | feature index | features
 *
 * Each round settles in the header how many bytes of records there are, and the features come last: a file whose
 * writer was killed is read by perf up to its last round, and by us up to its last whole record.  A stream has records
 * alone, attrs, ids and features among them, and nothing in it is written twice.
 *
 * Context: any thread; one reader or writer belongs to one thread at a time.  Not signal handlers.
 */
#ifndef PERFRING_DATA_H
#define PERFRING_DATA_H

#include <sys/uio.h>
#include <perfring/format.h>
#include <perfring/record.h>

PERFRING_BEGIN

/* Features by their bit in the file header (ABI.md 11.3); feature.def has them with their layouts. */
enum perfring_data_feature {
#define PERFRING_FEATURE(NAME, bit, layout) PERFRING_DATA_##NAME = (bit),
#include <perfring/feature.def>
	PERFRING_DATA_FEATURES = 256, /* bits in the bitmap */
};

/* ---- features' payloads ---- */

enum perfring_feature_kind {
	PERFRING_FEATURE_NUMBER,
	PERFRING_FEATURE_STRING,
	PERFRING_FEATURE_BYTES,
};

/* One member of a payload. */
struct perfring_feature_member {
	char name[24]; /* as in feature.def; "rest" for what no layout tells */
	enum perfring_feature_kind kind;
	uint32_t depth;    /* of how many lists it is an element */
	uint64_t number;   /* NUMBER */
	const void *bytes; /* in the payload; a STRING ends with NUL */
	uint64_t size;     /* of bytes; of a STRING without its NUL; 1, 2, 4 or 8 for a NUMBER */
};

/* A walk through one payload, member by member.  The caller's, on its stack. */
struct perfring_feature_walk {
	const unsigned char *payload;
	uint64_t size;
	uint64_t at;
	const char *part; /* of the layout */
	uint64_t registers[26];
	struct {
		const char *begin;
		uint64_t left;
	} lists[4];
	uint32_t depth;
	uint32_t cpus;
	uint32_t order; /* private */
	uint32_t padding;
	struct perfring_fault fault; /* of a -EBADMSG: place in the payload */
	uint64_t reserved[2];
};

/* Its name ("HOSTNAME"), or NULL. */
PERFRING_API const char *perfring_feature_name(uint32_t feature);

/* Begins.  cpus: NRCPUS' `available`, which some layouts count by; 0: unknown, the rest is then handed out as bytes.  A
 * feature without a layout is one member of BYTES.  The payload is in this machine's order and stays the caller's. */
PERFRING_API void perfring_feature_open(struct perfring_feature_walk *walk, uint32_t feature, const void *payload,
					uint64_t size, uint32_t cpus);

/* Returns 1, 0 at the end (bytes that the layout does not tell come first, as "rest"), -EBADMSG with walk->fault.  Valid
 * until: the payload goes. */
PERFRING_API int perfring_feature_next(struct perfring_feature_walk *walk, struct perfring_feature_member *member);

/* Turns a payload of the other byte order into ours, in its place, or, with `to_foreign`, ours into that.  What is wrong
 * in it, and what has no layout, stays as it is.  Returns 0, or -EBADMSG. */
PERFRING_API int perfring_feature_swap(uint32_t feature, void *payload, uint64_t size, uint32_t cpus, bool to_foreign);

/* ---- reading ---- */

struct perfring_data;

/* Opens a file, version 1 or 2, of either byte order; a stream, through a pipe or kept in a file; or a directory with
 * `data` and data.N.  "-" is standard input.  Reads the header, the attrs, the ids and where the features are; of a
 * stream, its records up to the first that belongs to an event, and so waits for that.  What is handed out is in this
 * machine's byte order.  Returns 0, -errno of open or read, -EBADMSG when it is no perf.data file or a damaged one,
 * -EOPNOTSUPP (a file through a pipe, one file of a directory, a directory whose data or data.N is no regular file: it is not
 * opened).  On failure *data tells of the fault until it is closed, and perfring_data_next returns the same error; what the file
 * holds is unspecified.  It is NULL after -ENOMEM.  Memory: at most 64 MiB,
 * and 4 MiB for each data.N; beyond that for the attrs, ids, names and features that are in the file at most eight times
 * their bytes, whatever the file says of them; and zstd's windows for a file that is compressed, 128 MiB of one stream, and
 * for what exceeds 1 MiB of each 512 MiB of all streams of a directory. */
PERFRING_API int perfring_data_open(struct perfring_data **data, const char *path);
PERFRING_API void perfring_data_close(struct perfring_data *data);

/* The next record in time order: by FINISHED_ROUND where the file has it, else by a bounded window.  Records without a
 * time come as soon as they are met.  Every record is handed out, FINISHED_ROUND and unknown ones too; what is
 * compressed comes as what it holds.  Returns 1; 0 at the end; -EBADMSG when the bytes are wrong: everything before the
 * fault has been handed out by then, except that an id in no attr is reported as soon as it is met.
 *
 * With item->record set (item->format NULL) the next call goes on behind it: for an id in no attr, and for compressed bytes
 * that are damaged, or that need more windows than there are.  The item is then the COMPRESSED record in which that was
 * noticed; what follows in its frame is lost, reported this once, up to a COMPRESSED record that begins with another frame.
 * Else item->record is as it was, and -EBADMSG, -EOPNOTSUPP at a compressed record when built without libzstd, and -errno
 * of read come again on each call; of several files' the one that was met first.  Valid until: the next call. */
PERFRING_API int perfring_data_next(struct perfring_data *data, struct perfring_item *item);

/* Where the last item's record begins in the file. */
PERFRING_API int64_t perfring_data_position(const struct perfring_data *data);

/* Which file the last item or the last fault is in, whichever was reported last: 0, or N + 1 for a directory's data.N. */
PERFRING_API uint32_t perfring_data_stream(const struct perfring_data *data);

/* Up to `size` bytes of what stands behind the last item's record and is not in its size: the trace of an AUXTRACE.  (That
 * of a HEADER_TRACING_DATA is the feature TRACING_DATA by then.)  Returns how many, 0 when all were read; -EBADMSG (the
 * file ends before), -errno. */
PERFRING_API int64_t perfring_data_read_behind(struct perfring_data *data, void *room, size_t size);

/* Of the last -EBADMSG or -EOPNOTSUPP: `at` is an offset in the file that perfring_data_stream tells, of what was compressed
 * that of the compressed record. */
PERFRING_API struct perfring_fault perfring_data_fault(const struct perfring_data *data);

/* Whether the writer finished the file.  One that was killed, or found no room at the end, leaves false: there are no
 * features, and records may be missing. */
PERFRING_API bool perfring_data_is_finished(const struct perfring_data *data);

/* Features that the header names and the file does not hold as a whole: its end was cut off, or is damaged.  They are as
 * if they had never been there.  0 where records are cut off too: next tells of that. */
PERFRING_API uint32_t perfring_data_lost_features(const struct perfring_data *data);

/* Why perfring_data_feature could not read the last feature that the file holds, of those that it could not: -ENOMEM, an error
 * of read, or -EBADMSG when the file has become shorter.  0 when it read all that it was asked for. */
PERFRING_API int perfring_data_feature_error(const struct perfring_data *data);

/* What was compressed of all that was read so far. */
struct perfring_data_compressed {
	uint64_t compressed; /* COMPRESSED records, which are no items themselves */
	uint64_t compressed2;
	uint64_t lost; /* of both, those that could not be read, or not to their end */
	uint64_t packed_bytes;
	uint64_t plain_bytes; /* that came out */
	uint64_t reserved[3];
};

PERFRING_API void perfring_data_compression(const struct perfring_data *data,
					    struct perfring_data_compressed *compression);

/* Whether it is a stream, and whether it is of the other byte order. */
PERFRING_API bool perfring_data_is_pipe(const struct perfring_data *data);
PERFRING_API bool perfring_data_is_foreign(const struct perfring_data *data);

/* Items handed out after a younger one, and whether the last was one of them. */
PERFRING_API uint64_t perfring_data_late(const struct perfring_data *data);
PERFRING_API bool perfring_data_was_late(const struct perfring_data *data);

/* Events by number (format->index).  The attr is attr->size bytes long, whatever the installed header's struct is; the name
 * is EVENT_DESC's or EVENT_UPDATE's, else a tracepoint's by its format in TRACING_DATA, else what perf makes up: "cycles:u",
 * "L1-dcache-loads", "mem:0x1000:rw"; and "type=T,config=0xC" where perf only says that it knows none.  NULL after the last.
 * Valid until close. */
PERFRING_API const struct perfring_format_set *perfring_data_formats(const struct perfring_data *data);
PERFRING_API const struct perf_event_attr *perfring_data_attr(const struct perfring_data *data, uint32_t index);
PERFRING_API const char *perfring_data_event_name(const struct perfring_data *data, uint32_t index);

/* The i-th id of event `index`, from 0.  Returns 1, or 0 behind the last. */
PERFRING_API int perfring_data_event_id(const struct perfring_data *data, uint32_t index, uint32_t i, uint64_t *id);

/* A feature's payload, in this machine's byte order as far as feature.def lays it out; of a stream, what its records have
 * told so far.  NULL when it is not there, or could not be read
 * (perfring_data_feature_error).  Valid until close; a stream's BUILD_ID, which grows, until the next
 * perfring_data_next. */
PERFRING_API const void *perfring_data_feature(const struct perfring_data *data, uint32_t feature, uint64_t *size);

/* A feature that is one string (HOSTNAME, OSRELEASE, VERSION, ARCH, CPUDESC, CPUID).  NULL when it is not there or not
 * well-formed.  Valid until close. */
PERFRING_API const char *perfring_data_string(const struct perfring_data *data, uint32_t feature);

/* ---- writing ---- */

struct perfring_data_writer;

/* Writes to fd, which must be seekable, from its beginning, and stays the caller's; begin cuts off what the file held.
 * Returns 0, -ESPIPE, -EBADF, -EINVAL (O_APPEND: the header could not be written again), -ENOMEM. */
PERFRING_API int perfring_data_create(struct perfring_data_writer **writer, int fd);

/* A stream instead (perf's pipe mode): nothing is written twice, so fd may be a pipe, and features are records; those that
 * are put before begin come first, BUILD_ID last, those of no bytes not at all.  Returns 0, -EBADF, -ENOMEM. */
PERFRING_API int perfring_data_create_stream(struct perfring_data_writer **writer, int fd);

/* Before begin.  Records are compressed by zstd (level 1 to 22), each write as far as it goes, so that a killed writer's
 * file can be read up to its last write.  What is written after a write that failed begins another frame; into a stream
 * nothing is written any more then.  In a directory each data.N is compressed by itself, and `data` is not; the more there
 * are, the smaller are their windows: perfring_data_open can read them.  Returns 0, -EOPNOTSUPP (built without libzstd),
 * -EINVAL, -ENOMEM. */
PERFRING_API int perfring_data_compress(struct perfring_data_writer *writer, int level);

/* Before begin.  The other byte order, for tests and tools: what is written is turned, what is handed in stays as it
 * is.  Returns 0 or -EINVAL. */
PERFRING_API int perfring_data_make_foreign(struct perfring_data_writer *writer);

/* Before begin.  A directory, as perf record --threads leaves it: what was created is its `data`, and each call adds its
 * next data.N, which has records alone (perfring_data_write_to).  fd is as above, and stays the caller's.  Returns N + 1,
 * the file's number; -EINVAL (a stream), or as create. */
PERFRING_API int perfring_data_add_file(struct perfring_data_writer *writer, int fd);

/* Frees the writer.  Without finish the file stays as a killed writer would leave it. */
PERFRING_API void perfring_data_writer_close(struct perfring_data_writer *writer);

/* An event and its name, before begin.  All attrs are written with the smallest size that serves every one of them.
 * Returns its number, from 0, or -EINVAL, -ENOMEM. */
PERFRING_API int perfring_data_add_event(struct perfring_data_writer *writer, const struct perf_event_attr *attr,
					 const char *name);
PERFRING_API int perfring_data_add_id(struct perfring_data_writer *writer, uint32_t index, uint64_t id);

/* Events leader .. leader + members - 1 are a group: for GROUP_DESC.  name "": as perf names those that have none. */
PERFRING_API int perfring_data_add_group(struct perfring_data_writer *writer, const char *name, uint32_t leader,
					 uint32_t members);

/* Writes header, ids and attrs; records may follow. */
PERFRING_API int perfring_data_begin(struct perfring_data_writer *writer);

/* Whole records as they are: one system call for all pieces.  Returns 0, or -errno of the write (-ENOSPC, -EFBIG ...):
 * the file is then cut back to the last whole write, stays readable, and can be finished. */
PERFRING_API int perfring_data_write(struct perfring_data_writer *writer, const struct iovec *pieces, int count);

/* The same into one file of a directory: 0 is `data`, N + 1 data.N, as perfring_data_stream tells them.  A write that fails
 * concerns that file alone.  All else is written into `data`. */
PERFRING_API int perfring_data_write_to(struct perfring_data_writer *writer, uint32_t file, const struct iovec *pieces,
					int count);

/* One record, encoded with event `index`'s format (its trailer included). */
PERFRING_API int perfring_data_put(struct perfring_data_writer *writer, uint32_t index,
				   const struct perfring_record *record);

/* An AUXTRACE record, whose size member says how many bytes of trace stand behind it, and that trace.  Neither is
 * compressed.  The feature AUXTRACE is made of them.  Returns 0; -EINVAL (no AUXTRACE, another size), or as write. */
PERFRING_API int perfring_data_put_auxtrace(struct perfring_data_writer *writer, const struct perf_event_header *record,
					    const void *trace, uint64_t size);

/* Marks the end of a round and settles it in the header: nothing that is written from now on is older than what the
 * round before this one held.  In a directory, where perf has no such marks, it settles what `data` holds: of a killed
 * writer's, perf reads that, and we all files up to their last whole records. */
PERFRING_API int perfring_data_round(struct perfring_data_writer *writer);

/* A feature's payload, copied; written by finish.  The same feature again replaces the first. */
PERFRING_API int perfring_data_put_feature(struct perfring_data_writer *writer, uint32_t feature, const void *payload,
					   uint64_t size);
PERFRING_API int perfring_data_put_string(struct perfring_data_writer *writer, uint32_t feature, const char *text);

/* HOSTNAME, OSRELEASE, VERSION, ARCH, NRCPUS, TOTAL_MEM, CPUDESC, CPUID, CPU_TOPOLOGY, CACHE, NUMA_TOPOLOGY,
 * MEM_TOPOLOGY and PMU_MAPPINGS of this machine, CLOCKID and CLOCK_DATA for events with a clockid, CMDLINE from argv
 * (NULL-terminated), and for tracepoint events TRACING_DATA from tracefs.  Call it after the events were added.  Returns 0, -ENOMEM, or -errno of
 * tracefs; all but TRACING_DATA is there then. */
PERFRING_API int perfring_data_describe(struct perfring_data_writer *writer, char *const argv[]);

/* The first and last time of the samples, for SAMPLE_TIME. */
PERFRING_API int perfring_data_put_times(struct perfring_data_writer *writer, uint64_t first, uint64_t last);

/* Opens the file that a mapping names, for reading: as process `pid` sees it, which may be in another mount namespace or
 * under another root; here when pid is 0, has gone or may not be looked into, or has no such file.  Only a regular file is ever
 * opened: a device or a pipe by that name is not, not for a moment.  It needs /proc.  Returns a descriptor; -EINVAL (no
 * regular file), -errno. */
PERFRING_API int perfring_object_open(int32_t pid, const char *path);

/* Build ids, from the GNU note of an ELF file, or of the running kernel.  Return the bytes of it; -ENODATA (it has none),
 * -EINVAL (no ELF file), -errno.  At most 4096 program headers and 64 KiB of notes are read of a file, so that none costs
 * more than some milliseconds. */
enum {
	PERFRING_BUILD_ID_ROOM = 20
};
PERFRING_API int64_t perfring_build_id_of(const char *path, uint8_t id[PERFRING_BUILD_ID_ROOM]);
PERFRING_API int64_t perfring_build_id_in(int fd, uint8_t id[PERFRING_BUILD_ID_ROOM]);
PERFRING_API int64_t perfring_build_id_of_kernel(uint8_t id[PERFRING_BUILD_ID_ROOM]);

/* One object of the feature BUILD_ID.  misc: PERFRING_RECORD_MISC_KERNEL or _USER; pid: -1, or a guest's; file: as MMAP
 * records name it, "[kernel.kallsyms]" for the kernel.  Returns 0, -EINVAL, -ENOMEM. */
PERFRING_API int perfring_data_put_build_id(struct perfring_data_writer *writer, uint16_t misc, int32_t pid,
					    const char *file, const uint8_t *id, uint32_t size);

/* State of the machine, written as records of event 0 with time 0: the kernel's and its modules' mappings, with
 * `ksymbol` and `bpf_event` also the programs of BPF that are loaded, where this user may list them; then FORK,
 * COMM and MMAP2 of what is executable, of one process with all its threads, or of every one (-1).  Flags are those of the
 * first event with `mmap`, or of event 0: with `namespaces` there is NAMESPACES too; with mmap_data, MMAP2 of all readable
 * mappings, of files or not; with `build_id` all mappings are MMAP2 by that, of the file as the process sees it.  Processes
 * that vanish meanwhile are passed over.  Returns 0 or -errno. */
PERFRING_API int perfring_data_put_kernel(struct perfring_data_writer *writer);
PERFRING_API int perfring_data_put_process(struct perfring_data_writer *writer, int32_t pid);

/* CGROUP records of every cgroup below the cgroup2 mount, for samples with CGROUP.  Returns 0 or -errno. */
PERFRING_API int perfring_data_put_cgroups(struct perfring_data_writer *writer);

/* Bytes written so far; of a directory, into all its files. */
PERFRING_API uint64_t perfring_data_size(const struct perfring_data_writer *writer);

/* Writes the features (EVENT_DESC is made here) and the header's sizes.  Returns 0 or -errno; when the disk is full for
 * the features, they are left out: every record is there, and the error is returned. */
PERFRING_API int perfring_data_finish(struct perfring_data_writer *writer);

PERFRING_END

#endif
