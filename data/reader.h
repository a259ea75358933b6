/* reader.h - a perf.data file being read: what header.c fills in and reader.c goes through. */
#ifndef PERFRING_DATA_READER_H
#define PERFRING_DATA_READER_H

#include <perfring/data.h>
#include "layout.h"
#include "order.h"

struct perfring_block;

struct perfring_data_event {
	const struct perf_event_attr *attr;
	const char *name;
	char made_up[48];
};

struct perfring_data_features {
	struct {
		struct perfring_section section;
		void *payload; /* read when first asked for; section.size bytes and a NUL */
		bool is_there;
	} feature[PERFRING_DATA_FEATURES];
};

struct perfring_data {
	int fd;
	bool is_ours; /* the fd */
	bool is_finished;
	uint64_t file_size; /* when it was opened: bounds what is allocated, not what is read */
	struct perfring_fault fault;

	struct perfring_format_set *formats;
	struct perfring_data_event *events;
	unsigned char *attrs; /* all of them, in a row */
	uint32_t event_count;
	struct perfring_data_features *features;

	int64_t at;                     /* of the next record */
	int64_t settled;                /* end of the records that the header counts */
	int64_t end;                    /* of the records; INT64_MAX when the writer was killed */
	int stop;                       /* 1, or what every next returns once nothing waits any more */
	struct perfring_block *block;   /* the one that `at` lies in */
	struct perfring_block *loose;   /* copies of records that do not begin at a multiple of 8 */
	struct perfring_block *current; /* the last item's */
	struct perfring_block *spare;
	uint32_t blocks; /* in use */
	struct perfring_order order;
	int64_t position;
	uint64_t newest; /* of what was handed out */
	uint64_t late;
};

/* -EBADMSG with the fault noted. */
int perfring_data_wrong(struct perfring_data *data, uint64_t at, const char *what);

/* The whole of it, or less at the end of the file.  Returns the bytes read or -errno. */
int64_t perfring_data_read(const struct perfring_data *data, void *room, size_t size, uint64_t at);

void perfring_data_blocks_close(struct perfring_data *data);

/* A name for an event that was given none. */
void perfring_data_name(const struct perf_event_attr *attr, char *room, size_t size);

#endif
