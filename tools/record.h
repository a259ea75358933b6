/* record.h - what the files of `perfring record` share: what was asked for, what is observed, where it goes. */
#ifndef RECORD_H
#define RECORD_H

#include <time.h>
#include <perfring/data.h>
#include <perfring/session.h>
#include "soft.h"
#include "tools.h"

struct recorded_event {
	struct perf_event_attr attr;
	char name[256];
	uint32_t leader; /* of its group; UINT32_MAX: in none */
	bool reads;      /* its group is read by the leader's samples */
};

struct recording {
	/* as asked for */
	const char *output;
	uint64_t frequency; /* 0: not asked for */
	uint64_t period;    /* 0: not asked for */
	bool callchain;
	uint32_t stack; /* bytes of the user's stack in each sample; 0: none */
	bool all;
	bool inherit;
	bool soft; /* the command's processes raise the events themselves */
	bool strict;
	bool quiet;
	bool addresses; /* -d */
	uint64_t extra; /* more PERFRING_SAMPLE_ bits */
	bool raw;       /* -R */
	bool sample_cpu;
	bool user_registers, interrupt_registers;
	bool switches;
	bool namespaces;
	bool cgroups;
	bool build_id_mmap;
	bool no_build_ids;
	bool user_only, kernel_only;
	bool per_thread;
	bool snapshots; /* rings overwrite; SIGUSR2 and the end write what is in them */
	bool switched;  /* --switch-output */
	bool directory; /* with a file for each ring */
	uint64_t switch_bytes, switch_ms;
	uint64_t most_bytes;
	int64_t delay_ms; /* until events are enabled; -1: never by us */
	int level;        /* of zstd; 0: none */
	int32_t clockid;
	bool has_clockid;
	char *pids, *tids, *cpus;
	const char *cgroup;
	const char *filter;
	uint32_t pages;
	char **command;
	char **arguments; /* our own */

	/* what is observed; of a snapshot's, the last event tells of tasks and mappings alone */
	struct perfring_events *names;
	struct recorded_event *events;
	uint32_t event_count;
	struct perfring_target *target;
	struct perfring_session *session;
	struct perfring_session *side; /* of a snapshot's last event */
	struct perfring_peers *peers;  /* when soft */
	struct perfring_command child;
	bool child_ended;
	int child_status;
	int signals;

	/* where it goes */
	struct perfring_data_writer *writer;
	int file;
	int folder; /* of a directory, where `file` is its `data` */
	int *ring_files;
	uint32_t ring_count; /* of them; 0: no directory */
	uint32_t ring;       /* whose records were written last */
	bool is_stream;
	char path[4096];                   /* of the file that is open */
	struct perfring_data_writer *keep; /* a snapshot's: state and side records, in memory */
	int keep_file;
	uint64_t keep_from; /* where its records begin */
	uint64_t *told;     /* of each fd: what the files so far say it lost */
	uint32_t told_count;
	uint64_t lost;         /* the sum of that */
	bool is_pressed;       /* the rings fill so fast that nobody need wake us */
	bool is_broken;        /* a write failed, and that was told */
	uint64_t settled;      /* ns: when the file's last round was */
	uint64_t opened;       /* ns: when the file was */
	uint64_t kept_records; /* that are in the file */
	uint64_t kept_samples;
	uint64_t kept_bytes; /* in files that are done */
	uint32_t files;
};

/* record_events.c: text to events, attrs, fds.  False after a complaint. */
bool perfring_record_add_events(struct recording *recording, const char *list);
bool perfring_record_is_soft(const struct recording *recording);
bool perfring_record_observes_command(const struct recording *recording);
bool perfring_record_choose_target(struct recording *recording);
bool perfring_record_open_events(struct recording *recording);
void perfring_record_choose_soft(struct recording *recording);
bool perfring_record_open_soft(struct recording *recording);
uint64_t perfring_record_max_rate(void);
bool perfring_record_can_unwind(void);

/* record_file.c: sessions' spans into files.  False after a complaint. */
bool perfring_record_open_file(struct recording *recording);
bool perfring_record_write_round(struct recording *recording);
bool perfring_record_switch_file(struct recording *recording);
bool perfring_record_snapshot(struct recording *recording, bool is_last);
bool perfring_record_finish_file(struct recording *recording);
void perfring_record_close_file(struct recording *recording);

#endif
