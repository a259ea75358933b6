/* file_writer_private.h - a perf.data file being written. */
#ifndef PERFRING_FEATURE_WRITER_H
#define PERFRING_FEATURE_WRITER_H

#include <perfring/feature.h>
#include <perfring/file.h>
#include <perfring/file_writer.h>
#include "byte_buffer.h"
#include "file_swap.h"
#include "layout.h"

struct perfring_written_event {
	struct perf_event_attr *attr; /* own_size bytes */
	uint32_t own_size;
	char *name;
	uint64_t *ids;
	uint32_t id_count, id_room;
};

struct perfring_written_group {
	char *name;
	uint32_t leader;
	uint32_t members;
};

struct perfring_file_writer {
	struct perfring_file_compress *files; /* the file, stream or `data`; after it data.0, data.1 ... */
	uint32_t file_count;
	bool is_pipe, is_foreign, is_begun, is_finished;
	uint32_t attr_size; /* of every attr in the file, once begun */
	struct perfring_format_set *formats;
	struct perfring_written_event *events;
	uint32_t event_count, event_room;
	uint32_t side; /* which of them has the records of tasks and mappings: the first with `mmap`, or 0 */
	struct {
		void *payload;
		uint64_t size;
	} feature[PERFRING_FEATURE_BITS];
	struct perfring_file_header header;
	struct perfring_byte_buffer batch;   /* records that the next write writes first */
	struct perfring_byte_buffer swapped; /* records in the other byte order */
	struct perfring_written_group *groups;
	uint32_t group_count;

	int level;                             /* of zstd; 0: none */
	struct perfring_byte_buffer build_ids; /* finish makes the feature of it */
	void *objects;                         /* synthesis.c: files whose build id was looked for, a tree */
	uint32_t object_count;
	bool (*is_ending)(void *of); /* whether the machine's state is to end; NULL: it does not */
	void *ending_of;
	struct perfring_byte_buffer auxtrace; /* where AUXTRACE records are: sections */
};

/* Encodes a record after those of the batch, and writes the batch when it is full. */
int perfring_file_batch(struct perfring_file_writer *writer, uint32_t index, const struct perfring_record *record);
int perfring_file_batch_write(struct perfring_file_writer *writer);

/* Puts a feature of the buffer's bytes, and closes the buffer.  Returns 0, the buffer's error, or as put_feature. */
int perfring_file_put_buffer(struct perfring_file_writer *writer, uint32_t feature,
			     struct perfring_byte_buffer *buffer);

/* topology.c: the features of this machine's processors, memory, PMUs and of the events' clock.  Return 0 or
 * -ENOMEM; *unread: the first -errno of what could not be read and is not in them, else as it was. */
int perfring_file_topology(struct perfring_file_writer *writer, int *unread);
int perfring_file_clock(struct perfring_file_writer *writer);

/* synthesis.c: the files whose build id was looked for. */
void perfring_file_forget_objects(struct perfring_file_writer *writer);

/* The payload of TRACING_DATA for these events' tracepoints.  Returns 0 (nothing is put when there are none) or
 * -errno. */
int perfring_file_tracing(const struct perfring_file_writer *writer, struct perfring_byte_buffer *buffer);

#endif
