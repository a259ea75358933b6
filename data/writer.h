/* writer.h - a perf.data file being written. */
#ifndef PERFRING_DATA_WRITER_H
#define PERFRING_DATA_WRITER_H

#include <perfring/data.h>
#include "layout.h"
#include "pile.h"

struct perfring_written_event {
	struct perf_event_attr *attr; /* own_size bytes */
	uint32_t own_size;
	char *name;
	uint64_t *ids;
	uint32_t id_count, id_room;
};

struct perfring_data_writer {
	int fd;
	bool is_begun, is_finished;
	uint32_t attr_size; /* of every attr in the file, once begun */
	struct perfring_format_set *formats;
	struct perfring_written_event *events;
	uint32_t event_count, event_room;
	struct {
		void *payload;
		uint64_t size;
	} feature[PERFRING_DATA_FEATURES];
	struct perfring_file_header header;
	uint64_t at;                /* end of the last whole write */
	struct perfring_pile batch; /* encoded records on their way to the file */
};

/* Encodes behind the records of the batch, and writes the batch when it is large. */
int perfring_data_batch(struct perfring_data_writer *writer, uint32_t index, const struct perfring_record *record);
int perfring_data_batch_write(struct perfring_data_writer *writer);

/* The payload of TRACING_DATA for these events' tracepoints.  Returns 0 (nothing is put when there are none) or
 * -errno. */
int perfring_data_tracing(const struct perfring_data_writer *writer, struct perfring_pile *pile);

#endif
