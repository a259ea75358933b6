/* file_writer.h - perf.data files, written (docs/abi.md 10, 11).
 *
 * Writing keeps records as they are:
 *
 *     header | ids | attr entries | records, FINISHED_ROUND after each round | feature index | features
 *
 * Each round stores the size of the records in the header, and features come last: perf reads the file of a killed writer up
 * to its last round, perfring_file_open up to its last whole record.  A stream consists of records only; attrs, ids and
 * features are records in it.
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

/* Creates a writer of a file.  fd: seekable; it is written from its beginning, and stays the caller's; begin truncates it.
 * Returns 0, -ESPIPE, -EBADF, -EINVAL (O_APPEND: the header cannot be written again), -ENOMEM. */
PERFRING_API int perfring_file_writer_open(struct perfring_file_writer **writer, int fd);

/* Creates a writer of a stream (perf's pipe mode).  fd may be a pipe: nothing is written twice, and features are records.
 * Features that are put before begin come first, BUILD_ID comes last, empty ones are left out.  Returns 0, -EBADF, -ENOMEM. */
PERFRING_API int perfring_file_writer_open_stream(struct perfring_file_writer **writer, int fd);

/* Frees the writer.  Without perfring_file_writer_finish the file stays as a killed writer would leave it. */
PERFRING_API void perfring_file_writer_close(struct perfring_file_writer *writer);

/* ---- before begin ---- */

/* Compresses records by zstd.  level: 1 to 22.  Each write is flushed, so that the file of a killed writer can be read up to its
 * last write.  After a write that failed a new frame begins; a stream takes no more writes then.  In a directory each data.N is
 * compressed by itself, and `data` is not; with more files their zstd windows are smaller, so that perfring_file_open can read
 * them.  Returns 0, -EOPNOTSUPP (built without libzstd), -EINVAL, -ENOMEM. */
PERFRING_API int perfring_file_writer_compress(struct perfring_file_writer *writer, int level);

/* Writes the foreign byte order, for tests and tools.  Input stays in native order, and is not changed.  Returns 0, -EINVAL. */
PERFRING_API int perfring_file_writer_make_foreign(struct perfring_file_writer *writer);

/* Makes the file a directory's `data`, as perf record --threads writes it, and adds its next data.N, which has records only
 * (perfring_file_writer_write_to).  fd: as above.  Returns N + 1, the file's number; -EINVAL (a stream), or as
 * perfring_file_writer_open. */
PERFRING_API int perfring_file_writer_add_part(struct perfring_file_writer *writer, int fd);

/* Adds an event with its name; NULL: the name that perf gives such an attr.  All attrs are written with one size, the smallest
 * that holds each.  Returns the event's index, from 0; -EINVAL, -ENOMEM. */
PERFRING_API int perfring_file_writer_add_event(struct perfring_file_writer *writer, const struct perf_event_attr *attr,
						const char *name);

/* Adds an id that records of event `index` carry.  Returns 0, also if it was added before; -EINVAL (no such event, id 0, after
 * begin), -EEXIST (of another event), -ENOMEM. */
PERFRING_API int perfring_file_writer_add_id(struct perfring_file_writer *writer, uint32_t index, uint64_t id);

/* Adds every event of a set of formats (perfring_session_formats, perfring_file_formats), with its ids and perf's name for it.
 * Returns 0, -EINVAL, -ENOMEM, -EEXIST (an id of another event of the file). */
PERFRING_API int perfring_file_writer_add_formats(struct perfring_file_writer *writer,
						  const struct perfring_format_set *formats);

/* Makes events leader ... leader + members - 1 a group, for GROUP_DESC.  name: "" for a group without a name.
 * In a stream only before begin.  Returns 0; -EINVAL (fewer than 2 members, events that are not there, finished), -ENOMEM. */
PERFRING_API int perfring_file_writer_add_group(struct perfring_file_writer *writer, const char *name, uint32_t leader,
						uint32_t members);

/* Writes header, ids and attrs: records may follow.  Returns 0; -EINVAL (no event, or begun before), -ENOMEM, -errno of writing. */
PERFRING_API int perfring_file_writer_begin(struct perfring_file_writer *writer);

/* ---- records ---- */

/* Writes whole records unchanged, with one system call for all pieces.  Returns 0, or -errno of the write (-ENOSPC, -EFBIG
 * ...): the file is then truncated to the last whole write, stays readable, and can be finished. */
PERFRING_API int perfring_file_writer_write(struct perfring_file_writer *writer, const struct iovec *pieces, int count);

/* The same into one file of a directory: 0 is `data`, N + 1 is data.N.  An error concerns that file only.  All other functions
 * write into `data`. */
PERFRING_API int perfring_file_writer_write_to(struct perfring_file_writer *writer, uint32_t file, const struct iovec *pieces,
					       int count);

/* Encodes one record with the format of event `index`, its trailer included, and writes it.  Returns 0; as perfring_record_encode, or
 * as write. */
PERFRING_API int perfring_file_writer_put(struct perfring_file_writer *writer, uint32_t index,
					  const struct perfring_record *record);

/* Puts an item's record, unchanged.  Records gather in memory, 256 KiB at most; the next other call that writes, writes them
 * first.  Returns 0, -EINVAL (a size below 8), -ENOMEM, or as write. */
PERFRING_API int perfring_file_writer_put_item(struct perfring_file_writer *writer, const struct perfring_item *item);

/* Writes an AUXTRACE record and the trace after it, in at most 4 pieces, all uncompressed; the feature AUXTRACE lists them.  The
 * pieces have as many bytes as the record's member `size` says.  Returns 0; -EINVAL (no AUXTRACE, another size, more pieces), or as
 * write. */
PERFRING_API int perfring_file_writer_put_auxtrace(struct perfring_file_writer *writer, const struct perf_event_header *record,
						   const struct iovec *pieces, int count);

/* Ends a round: no later record is older than the records of the round before this one.  Writes FINISHED_ROUND and stores the
 * size of the records in the header.  In a directory, where perf has no such record, only the size of `data` is stored: perf
 * reads that much of a killed writer's directory; perfring_file_open reads all files up to their last whole records.  Returns 0,
 * -EINVAL (not begun, or finished), or as write. */
PERFRING_API int perfring_file_writer_end_round(struct perfring_file_writer *writer);

/* ---- features ---- */

/* Stores a copy of a feature's payload; finish writes it.  A second call for the same feature replaces the first.  EVENT_DESC is
 * always the writer's own.  In a stream begin writes the features, this call does when it comes later, and finish writes
 * BUILD_ID alone.  Returns 0; -EINVAL (no such feature, finished), -ENOMEM; of a stream, as write. */
PERFRING_API int perfring_file_writer_put_feature(struct perfring_file_writer *writer, uint32_t feature, const void *payload,
						  uint64_t size);

/* The same for a feature that is one string. */
PERFRING_API int perfring_file_writer_put_string(struct perfring_file_writer *writer, uint32_t feature, const char *text);

/* Puts the features of this machine: HOSTNAME, OSRELEASE, VERSION, ARCH, NRCPUS, TOTAL_MEM, CPUDESC, CPUID, CPU_TOPOLOGY, CACHE,
 * NUMA_TOPOLOGY, MEM_TOPOLOGY, PMU_MAPPINGS, CPU_PMU_CAPS, HYBRID_TOPOLOGY, PMU_CAPS; for events with a clockid CLOCKID and
 * CLOCK_DATA; CMDLINE from argv (NULL-terminated); for tracepoints TRACING_DATA from tracefs.  Call it after the last add_event.
 * What the machine lacks or hides is left out.  Returns 0, -ENOMEM, or -errno of what could not be read, of tracefs first: then
 * all else is put. */
PERFRING_API int perfring_file_writer_describe(struct perfring_file_writer *writer, char *const argv[]);

/* Puts the feature SAMPLE_TIME: the times of the first and the last sample, in ns.  Returns as put_feature. */
PERFRING_API int perfring_file_writer_put_times(struct perfring_file_writer *writer, uint64_t first, uint64_t last);

/* Adds an object to the feature BUILD_ID.  misc: PERFRING_RECORD_MISC_KERNEL or _USER; pid: -1, or a guest's; file: the name
 * in MMAP records, "[kernel.kallsyms]" for the kernel.  Returns 0, -EINVAL, -ENOMEM. */
PERFRING_API int perfring_file_writer_put_build_id(struct perfring_file_writer *writer, uint16_t misc, int32_t pid,
						   const char *file, const uint8_t *id, uint32_t size);

/* ---- the machine's state, as records of event 0 with time 0 ----
 *
 * The attr of the first event with `mmap` (else of event 0) says what is written:
 *
 *   ksymbol, bpf_event   loaded BPF programs, if the user may list them
 *   namespaces           NAMESPACES of each process
 *   mmap_data            MMAP2 of all readable mappings, not only of executable ones
 *   build_id             MMAP2 with build ids, of the file as the process sees it
 */

/* Makes the functions below call is_ending(of) before each record, so that a recorder can stop: the machine's state may be large, on
 * purpose too.  Once it returns true they return -EINTR; what was written by then is valid.  is_ending: NULL for none; `of` must stay
 * until the writer is closed. */
PERFRING_API void perfring_file_writer_end_when(struct perfring_file_writer *writer, bool (*is_ending)(void *of), void *of);

/* Ends the list of a process's mappings after `ms`, 0: not: a process may have any number of them.  The last record of such a list
 * has PERFRING_RECORD_MISC_PROC_MAP_PARSE_TIMEOUT, as perf's, and ++*cut counts it.  cut: valid until the writer is closed. */
PERFRING_API void perfring_file_writer_limit_maps(struct perfring_file_writer *writer, uint32_t ms, uint32_t *cut);

/* Puts the mappings of the kernel and its modules, and BPF programs.  Returns 0 or -errno. */
PERFRING_API int perfring_file_writer_put_kernel(struct perfring_file_writer *writer);

/* Puts FORK, COMM and MMAP2 of a process with all its threads, from /proc; pid -1: of all processes.  Processes that exit meanwhile
 * are skipped.  Returns 0 or -errno. */
PERFRING_API int perfring_file_writer_put_process(struct perfring_file_writer *writer, int32_t pid);

/* The same without mappings. */
PERFRING_API int perfring_file_writer_put_tasks(struct perfring_file_writer *writer, int32_t pid);

/* Puts CGROUP records of all cgroups below the cgroup2 mount, for samples with CGROUP.  Returns 0 or -errno. */
PERFRING_API int perfring_file_writer_put_cgroups(struct perfring_file_writer *writer);

/* ---- the end ---- */

/* Bytes written so far, in all files of a directory. */
PERFRING_API uint64_t perfring_file_writer_size(const struct perfring_file_writer *writer);

/* Writes the features, EVENT_DESC among them, and the sizes in the header.  Returns 0 or -errno.  If the disk is full, the
 * features are left out and the error is returned; all records are there.  The file is finished in any case: nothing more can be
 * put.  -EINVAL: not begun, or finished before. */
PERFRING_API int perfring_file_writer_finish(struct perfring_file_writer *writer);

PERFRING_END

#endif
