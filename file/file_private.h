/* file_private.h - a perf.data file being read: what file_header.c and metadata.c find out and file_reader.c goes
 * through. */
#ifndef PERFRING_FEATURE_READER_H
#define PERFRING_FEATURE_READER_H

#include <perfring/feature.h>
#include <perfring/file.h>
#include "layout.h"
#include "os/heap.h"
#include "record_stream.h"

/* More than any machine has, little enough for a file that lies. */
enum {
	PERFRING_MOST_EVENTS = 1 << 16,
	PERFRING_MOST_ATTR_BYTES = 1 << 24,
	PERFRING_MOST_ID_BYTES = 1 << 25,
	PERFRING_MOST_FEATURE_BYTES = 1 << 28,
};

struct perfring_file_event {
	const struct perf_event_attr *attr;
	void *own_attr;   /* when it came in a record */
	const char *name; /* in EVENT_DESC, or own_name; NULL: made_up */
	char *own_name;
	uint64_t *ids;
	uint32_t id_count, id_room;
	char made_up[48];
};

struct perfring_file_features {
	struct {
		struct perfring_section section;
		void *payload; /* read when first asked for, or learned; `size` bytes and a NUL, in our byte order */
		bool is_there;
	} feature[PERFRING_FEATURE_BITS];
	int error; /* of the last that could not be read */
};

struct perfring_file {
	bool is_pipe;
	bool is_foreign;
	bool is_finished;
	bool was_late;      /* the last item */
	uint64_t file_size; /* when it was opened: bounds what is allocated, not what is read; of a pipe UINT64_MAX */
	struct perfring_fault fault;
	struct perfring_fault end_fault; /* why a stream stopped, the first that did, */
	int end_error;
	uint32_t end_stream; /* and which it is */
	int open_error;

	struct perfring_format_set *formats;
	struct perfring_file_event *events;
	unsigned char *attrs; /* those of the header, in a row */
	uint32_t event_count, event_room;
	uint64_t id_bytes, attr_bytes, learned_bytes; /* taken so far: they are bounded */
	struct perfring_file_features *features;
	uint32_t lost_features; /* that the header names and the file does not hold */

	struct perfring_stock stock;
	struct perfring_stream *streams; /* the file's or pipe's, then those of a directory's data.N */
	uint32_t stream_count;
	struct perfring_heap_entry *heap; /* streams with a record due, by its time; of several streams */
	uint32_t heap_count;
	uint32_t asked; /* of the streams, in turn, for their first record */
	bool has_left;  /* the record due at heap[0] was handed out */

	/* A pipe's records about itself, read by open so that the events are known; then the first other one. */
	struct perfring_pending *leading;
	size_t leading_first, leading_count, leading_room;
	struct perfring_pending peeked;

	const struct perf_event_header *current; /* the last item's, held */
	uint32_t current_stream;                 /* its, or the last fault's */
	int64_t position;
	uint64_t newest; /* of what was handed out */
	uint64_t late;
};

/* -EBADMSG with the fault noted. */
int perfring_file_wrong(struct perfring_file *file, uint64_t at, const char *what);

/* file_header.c: the file's own header, attrs, ids and where the features are. */
int perfring_file_open_file(struct perfring_file *file, int fd, bool is_ours, uint64_t file_size);

/* file_reader.c: the records of a pipe that come before its first event's. */
int perfring_file_lead(struct perfring_file *file);

/* event_name.c: what perf makes up for an attr; then for the tracepoints that have no name, by the formats in
 * TRACING_DATA. */
void perfring_file_make_up_name(const struct perf_event_attr *attr, char *room, size_t size);
void perfring_file_name_tracepoints(struct perfring_file *file);

/* metadata.c.  Events, names and features as they come to be known; attr is native and `room` bytes are there. */
int perfring_file_add_attr(struct perfring_file *file, const struct perf_event_attr *attr, uint32_t room, uint64_t at);
int perfring_file_put_ids(struct perfring_file *file, const void *ids, uint64_t count, uint32_t index, uint64_t at);
void perfring_file_features_known(struct perfring_file *file);
/* What a record of perf's own, from 64 up, says; it is native. */
int perfring_file_learn(struct perfring_file *file, struct perfring_stream *stream,
			const struct perf_event_header *record, int64_t at);

#endif
