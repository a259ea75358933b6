/* file.h - perf.data files, read (ABI.md 10, 11).
 *
 * Reading hands out the same items as a session does, in time order:
 *
 *     perfring_file_open(&data, "perf.data");
 *     while ((one = perfring_file_next(data, &item)) == 1)
 *             use(&item);                                      valid until the next perfring_file_next
 *     if (one < 0)
 *             fault = perfring_file_fault(data);               where in the file, and what
 *     perfring_file_close(data);
 *
 * Context: any thread; one reader belongs to one thread at a time.  Not signal handlers.
 */
#ifndef PERFRING_FILE_H
#define PERFRING_FILE_H

#include <perfring/feature.h>
#include <perfring/format.h>
#include <perfring/record.h>

PERFRING_BEGIN

struct perfring_file;

/* Opens a file, version 1 or 2, of either byte order; a stream, through a pipe or kept in a file; or a directory with
 * `data` and data.N.  "-" is standard input.  Reads the header, the attrs, the ids and where the features are; of a
 * stream, its records up to the first that belongs to an event, and so waits for that.  What is handed out is in this
 * machine's byte order.  Returns 0, -errno of open or read, -EBADMSG when it is no perf.data file or a damaged one,
 * -EOPNOTSUPP (a file through a pipe, one file of a directory, a directory whose data or data.N is no regular file: it is not
 * opened).  On failure *data tells of the fault until it is closed, and perfring_file_next returns the same error; what the file
 * holds is unspecified.  It is NULL after -ENOMEM.  Memory: at most 64 MiB,
 * and 4 MiB for each data.N; beyond that for the attrs, ids, names and features that are in the file at most eight times
 * their bytes, whatever the file says of them; and zstd's windows for a file that is compressed, 128 MiB of one stream, and
 * for what exceeds 1 MiB of each 512 MiB of all streams of a directory. */
PERFRING_API int perfring_file_open(struct perfring_file **data, const char *path);
PERFRING_API void perfring_file_close(struct perfring_file *data);

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
PERFRING_API int perfring_file_next(struct perfring_file *data, struct perfring_item *item);

/* Where the last item's record begins in the file. */
PERFRING_API int64_t perfring_file_position(const struct perfring_file *data);

/* Which file the last item or the last fault is in, whichever was reported last: 0, or N + 1 for a directory's data.N. */
PERFRING_API uint32_t perfring_file_part(const struct perfring_file *data);

/* Up to `size` bytes of what stands behind the last item's record and is not in its size: the trace of an AUXTRACE.  (That
 * of a HEADER_TRACING_DATA is the feature TRACING_DATA by then.)  Returns how many, 0 when all were read; -EBADMSG (the
 * file ends before), -errno. */
PERFRING_API int64_t perfring_file_read_trace(struct perfring_file *data, void *room, size_t size);

/* Of the last -EBADMSG or -EOPNOTSUPP: `at` is an offset in the file that perfring_file_part tells, of what was compressed
 * that of the compressed record. */
PERFRING_API struct perfring_fault perfring_file_fault(const struct perfring_file *data);

/* Whether the writer finished the file.  One that was killed, or found no room at the end, leaves false: there are no
 * features, and records may be missing. */
PERFRING_API bool perfring_file_is_finished(const struct perfring_file *data);

/* Features that the header names and the file does not hold as a whole: its end was cut off, or is damaged.  They are as
 * if they had never been there.  0 where records are cut off too: next tells of that. */
PERFRING_API uint32_t perfring_file_lost_features(const struct perfring_file *data);

/* Why perfring_file_feature could not read the last feature that the file holds, of those that it could not: -ENOMEM, an error
 * of read, or -EBADMSG when the file has become shorter.  0 when it read all that it was asked for. */
PERFRING_API int perfring_file_feature_error(const struct perfring_file *data);

/* What was compressed of all that was read so far. */
struct perfring_file_compressed {
	uint64_t compressed; /* COMPRESSED records, which are no items themselves */
	uint64_t compressed2;
	uint64_t lost; /* of both, those that could not be read, or not to their end */
	uint64_t packed_bytes;
	uint64_t plain_bytes; /* that came out */
	uint64_t reserved[3];
};

PERFRING_API void perfring_file_compression(const struct perfring_file *data,
					    struct perfring_file_compressed *compression);

/* Whether it is a stream, and whether it is of the other byte order. */
PERFRING_API bool perfring_file_is_pipe(const struct perfring_file *data);
PERFRING_API bool perfring_file_is_foreign(const struct perfring_file *data);

/* Items handed out after a younger one, and whether the last was one of them. */
PERFRING_API uint64_t perfring_file_late(const struct perfring_file *data);
PERFRING_API bool perfring_file_was_late(const struct perfring_file *data);

/* Events by number (format->index).  The attr is attr->size bytes long, whatever the installed header's struct is; the name
 * is EVENT_DESC's or EVENT_UPDATE's, else a tracepoint's by its format in TRACING_DATA, else what perf makes up: "cycles:u",
 * "L1-dcache-loads", "mem:0x1000:rw"; and "type=T,config=0xC" where perf only says that it knows none.  NULL after the last.
 * Valid until close. */
PERFRING_API const struct perfring_format_set *perfring_file_formats(const struct perfring_file *data);
PERFRING_API const struct perf_event_attr *perfring_file_attr(const struct perfring_file *data, uint32_t index);
PERFRING_API const char *perfring_file_event_name(const struct perfring_file *data, uint32_t index);

/* The i-th id of event `index`, from 0.  Returns 1, or 0 behind the last. */
PERFRING_API int perfring_file_event_id(const struct perfring_file *data, uint32_t index, uint32_t i, uint64_t *id);

/* A feature's payload, in this machine's byte order as far as feature.def lays it out; of a stream, what its records have
 * told so far.  NULL when it is not there, or could not be read
 * (perfring_file_feature_error).  Valid until close; a stream's BUILD_ID, which grows, until the next
 * perfring_file_next. */
PERFRING_API const void *perfring_file_feature(const struct perfring_file *data, uint32_t feature, uint64_t *size);

/* A feature that is one string (HOSTNAME, OSRELEASE, VERSION, ARCH, CPUDESC, CPUID).  NULL when it is not there or not
 * well-formed.  Valid until close. */
PERFRING_API const char *perfring_file_string(const struct perfring_file *data, uint32_t feature);

PERFRING_END

#endif
