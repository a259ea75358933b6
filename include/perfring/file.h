/* file.h - perf.data files, read (docs/abi.md 10, 11).
 *
 * Reading returns the same items as a session, in time order:
 *
 *     perfring_file_open(&file, "perf.data");
 *     while ((ret = perfring_file_next(file, &item)) == 1)
 *             use(&item);                                      valid until the next perfring_file_next
 *     if (ret < 0)
 *             fault = perfring_file_fault(file);               where in the file, and what is wrong
 *     perfring_file_close(file);
 *
 * The bytes are foreign: what is read is bounded (docs/limits.md), records are not checked further (check.h) but for their sizes.
 * Names of addresses: maps.h, symbol.h.  Context: any thread; one reader belongs to one thread at a time.  Not signal handlers.
 */
#ifndef PERFRING_FILE_H
#define PERFRING_FILE_H

#include <perfring/feature.h>
#include <perfring/format.h>
#include <perfring/record.h>
#include <perfring/rows.h>

PERFRING_BEGIN

struct perfring_file;

/* Opens perf.data of either byte order.  path: "-" for standard input, or one of
 *
 *   a file          version 1 or 2
 *   a stream        perf's pipe mode, in a pipe or in a file; open reads until the first record that belongs to an event
 *   a directory     with `data` and data.N, which must be regular files
 *
 * Reads the header, attrs, ids and the places of the features.  All results are in native byte order.
 *
 * Returns 0; -errno of open or read; -EBADMSG (no perf.data, or damaged; a data.N, which has no header); -EOPNOTSUPP (a file
 * through a pipe, the path is `data` of a directory, a directory with other than regular files, or with more than 65 536 data.N);
 * -ENOMEM, with *file NULL.  After any other error *file is for perfring_file_fault, which also takes NULL, and
 * perfring_file_close, and perfring_file_next returns the same error.
 *
 * Memory (docs/limits.md): 64 MiB, and 4 MiB for each data.N; eight times the bytes that attrs, ids, names and features have in
 * the file, whatever counts the file claims; for zstd windows 128 MiB, in a directory 512 MiB. */
PERFRING_API int perfring_file_open(struct perfring_file **file, const char *path);
PERFRING_API void perfring_file_close(struct perfring_file *file);

/* The next record in time order.  Order comes from FINISHED_ROUND records, or from a bounded window if the file has none.
 * Records without a time are returned when they are read.  Every record is returned, also FINISHED_ROUND and unknown types;
 * of COMPRESSED records the records inside.  Returns 1; 0 at the end; or an error:
 *
 *   -EBADMSG, item->record set      An id that is in no attr, or compressed bytes that are damaged or need larger zstd
 *                                   windows than allowed.  item->record is that record, or the COMPRESSED record;
 *                                   item->format is NULL.  The next call goes on after it: after compressed damage with
 *                                   the next COMPRESSED record that begins a frame.  What is between is lost.
 *   -EBADMSG, -EOPNOTSUPP, -errno   Damage, a COMPRESSED record in a build without libzstd, an error of read.  *item is
 *                                   unchanged.  The error is permanent: each further call returns it.  If several files
 *                                   of a directory are damaged, the first error is returned.
 *
 * All records before damage have been returned by then, except that an id in no attr is reported when it is read.
 * Valid until the next call. */
PERFRING_API int perfring_file_next(struct perfring_file *file, struct perfring_item *item);

/* Adds rows (rows.h) of the next items, in the same order, until there is no space for another, or an item of rows->stops.
 * rows->count: in, rows that are there; out, with the new ones, also at the end and before an error.
 *
 *   1         item->record NULL: rows are full.  Else it is the item at which it stopped, valid as that of perfring_file_next
 *   0         the end
 *   -ENOSPC   rows are full already
 *   -EBADMSG  a damaged sample, with item->record set: the next call goes on after it; or as perfring_file_next, item->record
 *             being NULL where it is not set there
 *   another   as perfring_file_next */
PERFRING_API int perfring_file_fill(struct perfring_file *file, struct perfring_rows *rows, struct perfring_item *item);

/* Offset in the file of the last item's record, or of the COMPRESSED record that it came out of.  0 before the first item. */
PERFRING_API int64_t perfring_file_position(const struct perfring_file *file);

/* The file of the last item or fault, whichever was reported last: 0, or N + 1 for data.N of a directory. */
PERFRING_API uint32_t perfring_file_part(const struct perfring_file *file);

/* Reads up to `size` bytes of the trace that follows the last item, an AUXTRACE record.  (The bytes after a HEADER_TRACING_DATA
 * are the feature TRACING_DATA.)  Returns the number of bytes, 0 after the last; -EBADMSG (the file ends before), -errno. */
PERFRING_API int64_t perfring_file_read_trace(struct perfring_file *file, void *buffer, size_t size);

/* The place and text of the last -EBADMSG or -EOPNOTSUPP.  `at`: an offset in the file of perfring_file_part; for compressed
 * bytes the offset of the COMPRESSED record. */
PERFRING_API struct perfring_fault perfring_file_fault(const struct perfring_file *file);

/* Whether the writer finished the file.  After a writer that was killed, or met a full disk at the end, it is false: there are
 * no features, and records may be missing. */
PERFRING_API bool perfring_file_is_finished(const struct perfring_file *file);

/* The number of features that the header names but that are cut off or damaged.  They count as absent.  If records are cut off
 * too, this is 0: perfring_file_next reports that. */
PERFRING_API uint32_t perfring_file_lost_features(const struct perfring_file *file);

/* The last error of perfring_file_feature for a feature that the file has: -ENOMEM, -errno of read, -EBADMSG (the file has
 * become shorter).  0: no error. */
PERFRING_API int perfring_file_feature_error(const struct perfring_file *file);

/* COMPRESSED records read so far. */
struct perfring_file_compressed {
	uint64_t compressed; /* records of type COMPRESSED, which are not returned as items */
	uint64_t compressed2;
	uint64_t lost; /* of both: not read, or not to the end */
	uint64_t packed_bytes;
	uint64_t plain_bytes; /* decompressed */
	uint64_t reserved[3];
};

/* Copies the counts so far into *compression. */
PERFRING_API void perfring_file_compression(const struct perfring_file *file,
					    struct perfring_file_compressed *compression);

/* Whether it is a stream (perf's pipe mode). */
PERFRING_API bool perfring_file_is_pipe(const struct perfring_file *file);

/* Whether it was written in the other byte order; all results are native nevertheless. */
PERFRING_API bool perfring_file_is_foreign(const struct perfring_file *file);

/* The number of items returned after an item with a later time. */
PERFRING_API uint64_t perfring_file_late(const struct perfring_file *file);

/* Whether the last item was returned after an item with a later time. */
PERFRING_API bool perfring_file_was_late(const struct perfring_file *file);

/* Events by index (format->index).  An attr has attr->size bytes, which may differ from sizeof(struct perf_event_attr).  The name
 * is, in this order, that of EVENT_DESC or EVENT_UPDATE; a tracepoint's from TRACING_DATA; perf's name for the attr ("cycles:u",
 * "L1-dcache-loads", "mem:0x1000:rw"); "type=T,config=0xC".  NULL for an index after the last.  Valid until close. */
PERFRING_API const struct perfring_format_set *perfring_file_formats(const struct perfring_file *file);
PERFRING_API const struct perf_event_attr *perfring_file_attr(const struct perfring_file *file, uint32_t index);
PERFRING_API const char *perfring_file_event_name(const struct perfring_file *file, uint32_t index);

/* The i-th id of event `index`, from 0.  Returns 1, or 0 after the last. */
PERFRING_API int perfring_file_event_id(const struct perfring_file *file, uint32_t index, uint32_t i, uint64_t *id);

/* A feature's payload, in native byte order; bytes without a layout in feature.def are not swapped.  In a stream: what the
 * records so far contained.  NULL if it is absent or could not be read (perfring_file_feature_error).  Valid until close;
 * BUILD_ID of a stream until the next perfring_file_next. */
PERFRING_API const void *perfring_file_feature(const struct perfring_file *file, uint32_t feature, uint64_t *size);

/* A feature that is one string (HOSTNAME, OSRELEASE, VERSION, ARCH, CPUDESC, CPUID).  NULL if it is absent or malformed.
 * Valid until close. */
PERFRING_API const char *perfring_file_string(const struct perfring_file *file, uint32_t feature);

PERFRING_END

#endif
