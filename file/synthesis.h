/* synthesis.h - what those share who write the machine's state as records. */
#ifndef PERFRING_FEATURE_SYNTHESIZE_H
#define PERFRING_FEATURE_SYNTHESIZE_H

#include "os/lines.h"
#include "file_writer_private.h"

/* A record of event 0, into the batch; nothing happened at any time or on any cpu.  Returns 0 or -errno. */
int perfring_synthesize(struct perfring_file_writer *writer, struct perfring_record *record, uint32_t pid,
			uint32_t tid);

/* Of the first event with `mmap`, or of event 0. */
bool perfring_synthesize_flag(const struct perfring_file_writer *writer, uint32_t flag);

/* bpf_programs.c: KSYMBOL and BPF_EVENT of the programs of BPF that are loaded, as the event has `ksymbol` and
 * `bpf_event`.  Without permission to list them there are none. */
int perfring_file_put_programs(struct perfring_file_writer *writer, struct perfring_os_lines *lines);

#endif
