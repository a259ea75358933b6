/* file_writer_private.h - a perf.data file that is written.
 *
 * struct perfring_file_writer is here, for file_writer.c and the files that put features and records of the machine.
 */
#ifndef PERFRING_FILE_FILE_WRITER_PRIVATE_H
#define PERFRING_FILE_FILE_WRITER_PRIVATE_H

#include <perfring/feature.h>
#include <perfring/file.h>
#include <perfring/file_writer.h>
#include "byte_buffer.h"
#include "file_swap.h"
#include "file_layout.h"

struct perfring_written_event {
	struct perf_event_attr *attr; /* own_size bytes */
	uint32_t own_size;
	char *name;
	uint64_t *ids;
	uint32_t id_count, id_capacity;
};

struct perfring_written_group {
	char *name;
	uint32_t leader;
	uint32_t members;
};

struct perfring_written_feature {
	void *payload;
	uint64_t size;
};

struct perfring_file_writer {
	struct perfring_file_compress *files; /* the file, stream or `data`; after it data.0, data.1 ... */
	uint32_t file_count, file_capacity;
	bool is_pipe, is_foreign, is_begun, is_finished;
	uint32_t attr_size; /* of every attr in the file, once begun */
	struct perfring_format_set *formats;
	struct perfring_written_event *events;
	uint32_t event_count, event_capacity;
	uint32_t side; /* the event whose records include tasks and mappings: the first with `mmap`, or 0 */
	struct perfring_written_feature feature[PERFRING_FEATURE_BITS];
	struct perfring_file_header header;
	struct perfring_byte_buffer batch;   /* records that the next write begins with */
	struct perfring_byte_buffer swapped; /* records in the other byte order */
	struct perfring_written_group *groups;
	uint32_t group_count, group_capacity;

	int level;                             /* of zstd; 0: no compression */
	struct perfring_byte_buffer build_ids; /* the feature BUILD_ID, until finish */
	void *objects;                         /* synthesis.c: a tree of files and their build ids */
	uint32_t object_count;
	bool (*is_ending)(void *of); /* whether to stop synthesis; NULL: no */
	uint32_t maps_ms;            /* for the mappings of one process; 0: no limit */
	uint32_t *maps_cut;
	void *ending_of;
	struct perfring_byte_buffer auxtrace; /* sections of the AUXTRACE records */
};

/* Encodes a record into the batch, and writes the batch if it is full. */
int perfring__file_batch(struct perfring_file_writer *writer, uint32_t index, const struct perfring_record *record);
int perfring__file_batch_write(struct perfring_file_writer *writer);

/* Puts the buffer's bytes as a feature, and closes the buffer.  Returns 0, the buffer's error, or as put_feature. */
int perfring__file_put_buffer(struct perfring_file_writer *writer, uint32_t feature,
			      struct perfring_byte_buffer *buffer);

/* topology.c: features of this machine's processors, memory and PMUs; of the events' clock.  *unread, if it is 0: the
 * first -errno of a file that could not be read, and is missing in them.  Return 0 or -ENOMEM. */
int perfring__file_topology(struct perfring_file_writer *writer, int *unread);
int perfring__file_clock(struct perfring_file_writer *writer);

/* synthesis.c */
void perfring__file_free_objects(struct perfring_file_writer *writer);

/* tracing_data.c: the payload of TRACING_DATA; nothing, if no event is a tracepoint.  Returns 0 or -errno. */
int perfring__file_tracing(const struct perfring_file_writer *writer, struct perfring_byte_buffer *buffer);

#endif
