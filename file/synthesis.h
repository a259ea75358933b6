/* synthesis.h - the machine's state as records: what synthesis.c and bpf_programs.c share.
 *
 * For bpf_programs.c and kernel_modules.c: each puts its records by perfring__synthesize, and stops on an error.
 */
#ifndef PERFRING_FILE_SYNTHESIS_H
#define PERFRING_FILE_SYNTHESIS_H

#include "file_writer_private.h"

/* Puts a record of event 0 into the batch, without time and CPU.  Returns 0, -EINTR (perfring_file_writer_end_when says so) or -errno. */
int perfring__synthesize(struct perfring_file_writer *writer, struct perfring_record *record, uint32_t pid,
			 uint32_t tid);

/* A flag of the attr of the first event with `mmap`, or of event 0. */
bool perfring__synthesize_flag(const struct perfring_file_writer *writer, uint32_t flag);

/* A mapping of the kernel or of a module.  notes: the file that has its build id. */
int perfring__synthesize_kernel_map(struct perfring_file_writer *writer, uint64_t addr, uint64_t len, uint64_t pgoff,
				    const char *name, const char *notes);

/* kernel_modules.c: the mappings of the kernel's modules. */
int perfring__file_put_modules(struct perfring_file_writer *writer);

/* bpf_programs.c: KSYMBOL and BPF_EVENT records of the loaded BPF programs, each kind if the event has its flag, `ksymbol` or `bpf_event`;
 * nothing without permission to list them. */
int perfring__file_put_programs(struct perfring_file_writer *writer);

#endif
