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
 * writer was killed is read by perf up to its last round, and by us up to its last whole record.
 *
 * Context: any thread; one reader or writer belongs to one thread at a time.  Not signal handlers.
 */
#ifndef PERFRING_DATA_H
#define PERFRING_DATA_H

#include <sys/uio.h>
#include <perfring/format.h>
#include <perfring/record.h>

PERFRING_BEGIN

/* Features by their bit in the file header (ABI.md 11.3). */
enum perfring_data_feature {
	PERFRING_DATA_TRACING_DATA = 1,
	PERFRING_DATA_BUILD_ID = 2,
	PERFRING_DATA_HOSTNAME = 3,
	PERFRING_DATA_OSRELEASE = 4,
	PERFRING_DATA_VERSION = 5,
	PERFRING_DATA_ARCH = 6,
	PERFRING_DATA_NRCPUS = 7,
	PERFRING_DATA_CPUDESC = 8,
	PERFRING_DATA_CPUID = 9,
	PERFRING_DATA_TOTAL_MEM = 10,
	PERFRING_DATA_CMDLINE = 11,
	PERFRING_DATA_EVENT_DESC = 12,
	PERFRING_DATA_SAMPLE_TIME = 21,
	PERFRING_DATA_DIR_FORMAT = 24,
	PERFRING_DATA_FEATURES = 256, /* bits in the bitmap */
};

/* ---- reading ---- */

struct perfring_data;

/* Opens a file ("-" is standard input, which must be a file).  Reads the header, the attrs, the ids and where the
 * features are.  Returns 0, -errno of open or read, -EBADMSG when it is no perf.data file or a damaged one, -EOPNOTSUPP
 * for what this version does not read (a pipe stream, a directory, version 1, the other byte order).  On failure *data
 * is a shell that only perfring_data_fault and perfring_data_close take, or NULL after -ENOMEM. */
PERFRING_API int perfring_data_open(struct perfring_data **data, const char *path);
PERFRING_API void perfring_data_close(struct perfring_data *data);

/* The next record in time order: by FINISHED_ROUND where the file has it, else by a bounded window.  Records without a
 * time come as soon as they are met.  Every record is handed out, FINISHED_ROUND and unknown ones too.  Returns 1; 0 at
 * the end; -EBADMSG when the bytes are wrong: everything before the fault has been handed out by then, except that an
 * id in no attr is reported as soon as it is met (with item->record set, item->format NULL), and the next call goes on
 * behind it.  Other -EBADMSG, -EOPNOTSUPP at a compressed record, and -errno of read come again on each call.  Valid
 * until: the next call. */
PERFRING_API int perfring_data_next(struct perfring_data *data, struct perfring_item *item);

/* Where the last item's record begins in the file. */
PERFRING_API int64_t perfring_data_position(const struct perfring_data *data);

/* Of the last -EBADMSG or -EOPNOTSUPP: `at` is an offset in the file. */
PERFRING_API struct perfring_fault perfring_data_fault(const struct perfring_data *data);

/* Whether the writer finished the file.  One that was killed, or found no room at the end, leaves false: there are no
 * features, and records may be missing. */
PERFRING_API bool perfring_data_is_finished(const struct perfring_data *data);

/* Items handed out after a younger one. */
PERFRING_API uint64_t perfring_data_late(const struct perfring_data *data);

/* Events by number (format->index).  The attr is attr->size bytes long, whatever the installed header's struct is;
 * the name is EVENT_DESC's, else a made-up one.  NULL behind the last.  Valid until close. */
PERFRING_API const struct perfring_format_set *perfring_data_formats(const struct perfring_data *data);
PERFRING_API const struct perf_event_attr *perfring_data_attr(const struct perfring_data *data, uint32_t index);
PERFRING_API const char *perfring_data_event_name(const struct perfring_data *data, uint32_t index);

/* A feature's payload as it is in the file.  NULL when it is not there.  Valid until close. */
PERFRING_API const void *perfring_data_feature(const struct perfring_data *data, uint32_t feature, uint64_t *size);

/* A feature that is one string (HOSTNAME, OSRELEASE, VERSION, ARCH, CPUDESC, CPUID).  NULL when it is not there or not
 * well-formed.  Valid until close. */
PERFRING_API const char *perfring_data_string(const struct perfring_data *data, uint32_t feature);

/* ---- writing ---- */

struct perfring_data_writer;

/* Writes to fd, which must be seekable, from its beginning, and stays the caller's; begin cuts off what the file held.
 * Returns 0, -ESPIPE, -EBADF, -EINVAL (O_APPEND: the header could not be written again), -ENOMEM. */
PERFRING_API int perfring_data_create(struct perfring_data_writer **writer, int fd);

/* Frees the writer.  Without finish the file stays as a killed writer would leave it. */
PERFRING_API void perfring_data_writer_close(struct perfring_data_writer *writer);

/* An event and its name, before begin.  All attrs are written with the smallest size that serves every one of them.
 * Returns its number, from 0, or -EINVAL, -ENOMEM. */
PERFRING_API int perfring_data_add_event(struct perfring_data_writer *writer, const struct perf_event_attr *attr,
					 const char *name);
PERFRING_API int perfring_data_add_id(struct perfring_data_writer *writer, uint32_t index, uint64_t id);

/* Writes header, ids and attrs; records may follow. */
PERFRING_API int perfring_data_begin(struct perfring_data_writer *writer);

/* Whole records as they are: one system call for all pieces.  Returns 0, or -errno of the write (-ENOSPC, -EFBIG ...):
 * the file is then cut back to the last whole write, stays readable, and can be finished. */
PERFRING_API int perfring_data_write(struct perfring_data_writer *writer, const struct iovec *pieces, int count);

/* One record, encoded with event `index`'s format (its trailer included). */
PERFRING_API int perfring_data_put(struct perfring_data_writer *writer, uint32_t index,
				   const struct perfring_record *record);

/* Marks the end of a round and settles it in the header: nothing that is written from now on is older than what the
 * round before this one held. */
PERFRING_API int perfring_data_round(struct perfring_data_writer *writer);

/* A feature's payload, copied; written by finish.  The same feature again replaces the first. */
PERFRING_API int perfring_data_put_feature(struct perfring_data_writer *writer, uint32_t feature, const void *payload,
					   uint64_t size);
PERFRING_API int perfring_data_put_string(struct perfring_data_writer *writer, uint32_t feature, const char *text);

/* HOSTNAME, OSRELEASE, ARCH, NRCPUS, TOTAL_MEM, CPUDESC of this machine, CMDLINE from argv (NULL-terminated), and for
 * tracepoint events TRACING_DATA from tracefs.  Call it after the events were added.  Returns 0, -ENOMEM, or -errno of
 * tracefs; all but TRACING_DATA is there then. */
PERFRING_API int perfring_data_describe(struct perfring_data_writer *writer, char *const argv[]);

/* The first and last time of the samples, for SAMPLE_TIME. */
PERFRING_API int perfring_data_put_times(struct perfring_data_writer *writer, uint64_t first, uint64_t last);

/* State of the machine, written as records of event 0 with time 0: the kernel's and its modules' mappings; then FORK,
 * COMM and MMAP2 (executable mappings) of one process with all its threads, or of every one (-1).  Processes that
 * vanish meanwhile are passed over.  Returns 0 or -errno. */
PERFRING_API int perfring_data_put_kernel(struct perfring_data_writer *writer);
PERFRING_API int perfring_data_put_process(struct perfring_data_writer *writer, int32_t pid);

/* Bytes written so far. */
PERFRING_API uint64_t perfring_data_size(const struct perfring_data_writer *writer);

/* Writes the features (EVENT_DESC is made here) and the header's sizes.  Returns 0 or -errno; when the disk is full for
 * the features, they are left out: every record is there, and the error is returned. */
PERFRING_API int perfring_data_finish(struct perfring_data_writer *writer);

PERFRING_END

#endif
