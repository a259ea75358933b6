/* file_private.h - a perf.data file that is read: what file_header.c, metadata.c and file_reader.c share.
 *
 * struct perfring_file is here.  One thread at a time.  Texts, attrs and payloads live until perfring_file_close.
 */
#ifndef PERFRING_FILE_FILE_PRIVATE_H
#define PERFRING_FILE_FILE_PRIVATE_H

#include <perfring/feature.h>
#include <perfring/file.h>
#include "file_layout.h"
#include "os/array.h"
#include "os/small_file.h"
#include "os/heap.h"
#include "record_stream.h"

/* Bounds on hostile files: above what any machine has. */
enum {
	PERFRING_MAX_EVENTS = 1 << 16,
	PERFRING_MAX_ATTR_BYTES = 1 << 24,
	PERFRING_MAX_ID_BYTES = 1 << 25,
	PERFRING_MAX_FEATURE_BYTES = 1 << 28,
};

struct perfring_file_event {
	const struct perf_event_attr *attr;
	void *own_attr;   /* of an attr that came in a record */
	const char *name; /* in EVENT_DESC, or own_name; NULL: default_name */
	char *own_name;
	uint64_t *ids;
	uint32_t id_count, id_capacity;
	char default_name[48];
};

struct perfring_file_features {
	struct {
		struct perfring_section section;
		void *payload; /* native, `size` bytes and a NUL; NULL until it is asked for */
		bool is_there;
	} feature[PERFRING_FEATURE_BITS];
	int error; /* of the last one that could not be read */
};

struct perfring_file {
	bool is_pipe;
	bool is_foreign;
	bool is_finished;
	bool was_late;      /* the last item */
	uint64_t file_size; /* at open: bounds allocations, not reads; of a pipe UINT64_MAX */
	struct perfring_fault fault;
	struct perfring_fault end_fault; /* of the first stream that stopped with an error, */
	int end_error;                   /* its error */
	uint32_t end_stream;             /* and its number */
	int open_error;

	struct perfring_format_set *formats;
	struct perfring_file_event *events;
	unsigned char *attrs; /* of the header */
	uint32_t event_count, event_capacity;
	uint64_t id_bytes, attr_bytes, feature_bytes; /* read so far, against the bounds */
	struct perfring_file_features *features;
	uint32_t lost_features; /* named in the header, but not in the file */

	struct perfring_block_pool pool;
	struct perfring_stream *streams; /* the file or pipe, then data.0, data.1 ... of a directory */
	uint32_t stream_count, stream_capacity;
	struct perfring_heap_entry *heap; /* of several streams: those with a record due, by its time */
	uint32_t heap_count;
	uint32_t primed;     /* streams that were asked for their first record */
	bool head_delivered; /* the record due at heap[0] was delivered */

	/* A pipe's records about itself, which open reads so that the events are known; then the first other record. */
	struct perfring_pending *leading;
	uint32_t leading_first, leading_count, leading_capacity;
	struct perfring_pending peeked;

	const struct perf_event_header *current; /* the last item's, held */
	uint32_t current_stream;                 /* of the last item or fault */
	int64_t position;
	uint64_t newest; /* time of the items so far */
	uint64_t late;
};

/* file_reader.c: reads the leading records of a pipe. */
int perfring__file_read_leading(struct perfring_file *file);

/* event_name.c: perf's name for an attr without one; then names of tracepoints, from the formats in TRACING_DATA. */
void perfring__file_default_name(const struct perf_event_attr *attr, char *buffer, size_t size);
void perfring__file_name_tracepoints(struct perfring_file *file);

/* metadata.c: adds events, ids and names.  attr: native, in at least `space` bytes. */
int perfring__file_add_attr(struct perfring_file *file, const struct perf_event_attr *attr, uint32_t space,
			    uint64_t at);
int perfring__file_put_ids(struct perfring_file *file, const void *ids, uint64_t count, uint32_t index, uint64_t at);
void perfring__file_features_known(struct perfring_file *file);
/* The same from a record of perf's own (from 64 up), in native byte order.  Returns 0 or -errno. */
int perfring__file_parse_metadata(struct perfring_file *file, struct perfring_stream *stream,
				  const struct perf_event_header *record, int64_t at);

#endif
