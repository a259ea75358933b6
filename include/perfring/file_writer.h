/* file_writer.h - perf.data files, written (ABI.md 10, 11).
 *
 * Writing keeps records as they are:
 *
 *     header | ids | attr entries | records, FINISHED_ROUND after each round | feature index | features
 *
 * Each round settles in the header how many bytes of records there are, and the features come last: a file whose
 * writer was killed is read by perf up to its last round, and by us up to its last whole record.  A stream has records
 * alone, attrs, ids and features among them, and nothing in it is written twice.
 *
 * Context: any thread; one writer belongs to one thread at a time.  Not signal handlers.
 */
#ifndef PERFRING_FILE_WRITER_H
#define PERFRING_FILE_WRITER_H

#include <sys/uio.h>
#include <perfring/build_id.h>
#include <perfring/feature.h>
#include <perfring/format.h>
#include <perfring/record.h>

PERFRING_BEGIN

struct perfring_file_writer;

/* Writes to fd, which must be seekable, from its beginning, and stays the caller's; begin cuts off what the file held.
 * Returns 0, -ESPIPE, -EBADF, -EINVAL (O_APPEND: the header could not be written again), -ENOMEM. */
PERFRING_API int perfring_file_writer_open(struct perfring_file_writer **writer, int fd);

/* A stream instead (perf's pipe mode): nothing is written twice, so fd may be a pipe, and features are records; those that
 * are put before begin come first, BUILD_ID last, those of no bytes not at all.  Returns 0, -EBADF, -ENOMEM. */
PERFRING_API int perfring_file_writer_open_stream(struct perfring_file_writer **writer, int fd);

/* Before begin.  Records are compressed by zstd (level 1 to 22), each write as far as it goes, so that a killed writer's
 * file can be read up to its last write.  What is written after a write that failed begins another frame; into a stream
 * nothing is written any more then.  In a directory each data.N is compressed by itself, and `data` is not; the more there
 * are, the smaller are their windows: perfring_file_open can read them.  Returns 0, -EOPNOTSUPP (built without libzstd),
 * -EINVAL, -ENOMEM. */
PERFRING_API int perfring_file_writer_compress(struct perfring_file_writer *writer, int level);

/* Before begin.  The other byte order, for tests and tools: what is written is turned, what is handed in stays as it
 * is.  Returns 0 or -EINVAL. */
PERFRING_API int perfring_file_writer_make_foreign(struct perfring_file_writer *writer);

/* Before begin.  A directory, as perf record --threads leaves it: what was created is its `data`, and each call adds its
 * next data.N, which has records alone (perfring_file_writer_write_to).  fd is as above, and stays the caller's.  Returns N + 1,
 * the file's number; -EINVAL (a stream), or as create. */
PERFRING_API int perfring_file_writer_add_part(struct perfring_file_writer *writer, int fd);

/* Frees the writer.  Without finish the file stays as a killed writer would leave it. */
PERFRING_API void perfring_file_writer_close(struct perfring_file_writer *writer);

/* An event and its name, before begin.  All attrs are written with the smallest size that serves every one of them.
 * Returns its number, from 0, or -EINVAL, -ENOMEM. */
PERFRING_API int perfring_file_writer_add_event(struct perfring_file_writer *writer, const struct perf_event_attr *attr,
					 const char *name);
PERFRING_API int perfring_file_writer_add_id(struct perfring_file_writer *writer, uint32_t index, uint64_t id);

/* Events leader .. leader + members - 1 are a group: for GROUP_DESC.  name "": as perf names those that have none. */
PERFRING_API int perfring_file_writer_add_group(struct perfring_file_writer *writer, const char *name, uint32_t leader,
					 uint32_t members);

/* Writes header, ids and attrs; records may follow. */
PERFRING_API int perfring_file_writer_begin(struct perfring_file_writer *writer);

/* Whole records as they are: one system call for all pieces.  Returns 0, or -errno of the write (-ENOSPC, -EFBIG ...):
 * the file is then cut back to the last whole write, stays readable, and can be finished. */
PERFRING_API int perfring_file_writer_write(struct perfring_file_writer *writer, const struct iovec *pieces, int count);

/* The same into one file of a directory: 0 is `data`, N + 1 data.N, as perfring_file_part tells them.  A write that fails
 * concerns that file alone.  All else is written into `data`. */
PERFRING_API int perfring_file_writer_write_to(struct perfring_file_writer *writer, uint32_t file, const struct iovec *pieces,
					int count);

/* One record, encoded with event `index`'s format (its trailer included). */
PERFRING_API int perfring_file_writer_put(struct perfring_file_writer *writer, uint32_t index,
				   const struct perfring_record *record);

/* An AUXTRACE record, whose size member says how many bytes of trace stand behind it, and that trace.  Neither is
 * compressed.  The feature AUXTRACE is made of them.  Returns 0; -EINVAL (no AUXTRACE, another size), or as write. */
PERFRING_API int perfring_file_writer_put_auxtrace(struct perfring_file_writer *writer, const struct perf_event_header *record,
					    const void *trace, uint64_t size);

/* Marks the end of a round and settles it in the header: nothing that is written from now on is older than what the
 * round before this one held.  In a directory, where perf has no such marks, it settles what `data` holds: of a killed
 * writer's, perf reads that, and we all files up to their last whole records. */
PERFRING_API int perfring_file_writer_end_round(struct perfring_file_writer *writer);

/* A feature's payload, copied; written by finish.  The same feature again replaces the first. */
PERFRING_API int perfring_file_writer_put_feature(struct perfring_file_writer *writer, uint32_t feature, const void *payload,
					   uint64_t size);
PERFRING_API int perfring_file_writer_put_string(struct perfring_file_writer *writer, uint32_t feature, const char *text);

/* HOSTNAME, OSRELEASE, VERSION, ARCH, NRCPUS, TOTAL_MEM, CPUDESC, CPUID, CPU_TOPOLOGY, CACHE, NUMA_TOPOLOGY,
 * MEM_TOPOLOGY and PMU_MAPPINGS of this machine, CLOCKID and CLOCK_DATA for events with a clockid, CMDLINE from argv
 * (NULL-terminated), and for tracepoint events TRACING_DATA from tracefs.  Call it after the events were added.  Returns 0, -ENOMEM, or -errno of
 * tracefs; all but TRACING_DATA is there then. */
PERFRING_API int perfring_file_writer_describe(struct perfring_file_writer *writer, char *const argv[]);

/* The first and last time of the samples, for SAMPLE_TIME. */
PERFRING_API int perfring_file_writer_put_times(struct perfring_file_writer *writer, uint64_t first, uint64_t last);

/* One object of the feature BUILD_ID.  misc: PERFRING_RECORD_MISC_KERNEL or _USER; pid: -1, or a guest's; file: as MMAP
 * records name it, "[kernel.kallsyms]" for the kernel.  Returns 0, -EINVAL, -ENOMEM. */
PERFRING_API int perfring_file_writer_put_build_id(struct perfring_file_writer *writer, uint16_t misc, int32_t pid,
					    const char *file, const uint8_t *id, uint32_t size);

/* State of the machine, written as records of event 0 with time 0: the kernel's and its modules' mappings, with
 * `ksymbol` and `bpf_event` also the programs of BPF that are loaded, where this user may list them; then FORK,
 * COMM and MMAP2 of what is executable, of one process with all its threads, or of every one (-1).  Flags are those of the
 * first event with `mmap`, or of event 0: with `namespaces` there is NAMESPACES too; with mmap_data, MMAP2 of all readable
 * mappings, of files or not; with `build_id` all mappings are MMAP2 by that, of the file as the process sees it.  Processes
 * that vanish meanwhile are passed over.  Returns 0 or -errno. */
PERFRING_API int perfring_file_writer_put_kernel(struct perfring_file_writer *writer);
PERFRING_API int perfring_file_writer_put_process(struct perfring_file_writer *writer, int32_t pid);

/* CGROUP records of every cgroup below the cgroup2 mount, for samples with CGROUP.  Returns 0 or -errno. */
PERFRING_API int perfring_file_writer_put_cgroups(struct perfring_file_writer *writer);

/* Bytes written so far; of a directory, into all its files. */
PERFRING_API uint64_t perfring_file_writer_size(const struct perfring_file_writer *writer);

/* Writes the features (EVENT_DESC is made here) and the header's sizes.  Returns 0 or -errno; when the disk is full for
 * the features, they are left out: every record is there, and the error is returned. */
PERFRING_API int perfring_file_writer_finish(struct perfring_file_writer *writer);

PERFRING_END

#endif
