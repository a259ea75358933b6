/* stacks.h - callchains of samples that have a copy of their thread's stack (record --call-graph dwarf): the frames of user space
 * are found by unwind tables (unwind.h).  In libperfring-profile.
 *
 *     perfring_stacks_open(&stacks, maps, symbols);                    after maps.h has taken what came before the sample
 *     if (perfring_stacks_chain(stacks, &sample, 127, &chain, &end) == 1)
 *             walk(chain);                                             as a sample's callchain (callchain.h)
 *     perfring_stacks_close(stacks);
 *
 * The objects whose tables are read are those that symbol.h would take names of: the recorded build, or none.  The rules of the
 * walk are in docs/unwind.md.
 *
 * A recorder replaces the copies by callchains: perfring_stacks_attr makes the attr of such samples, perfring_stacks_encode the
 * samples.
 *
 * Context: one thread at a time for maps, symbols and stacks; not signal handlers. */
#ifndef PERFRING_STACKS_H
#define PERFRING_STACKS_H

#include <perfring/maps.h>
#include <perfring/symbol.h>
#include <perfring/unwind.h>

PERFRING_BEGIN

/* SPACES_MAX: sets of mappings (of a process, and of forks that share them) whose objects are kept; beyond it they are looked up
 * again.  OBJECTS_MAX: objects of one set; later ones have no tables. */
enum {
	PERFRING_STACKS_SPACES_MAX = 256,
	PERFRING_STACKS_OBJECTS_MAX = 4096
};

struct perfring_stacks;

/* maps, symbols: they must stay until perfring_stacks_close.  Returns 0 or -ENOMEM. */
PERFRING_API int perfring_stacks_open(struct perfring_stacks **stacks, const struct perfring_maps *maps,
				      struct perfring_symbols *symbols);
PERFRING_API void perfring_stacks_close(struct perfring_stacks *stacks);

/* The sample's callchain, with at most `most` frames of user space:
 *
 *     what the sample's callchain has before its user marker | PERFRING_CONTEXT_USER | frames by unwind tables
 *
 * The address of a frame that has called another is the return address less 1, which is in the call; perf shows the same.  If
 * the tables lead to no more frames before the stack ends, and the sample's callchain has frames of user space too (by frame
 * pointers), then those above the last frame by tables follow.
 *
 * end: why there are no more frames: PERFRING_UNWIND_WHOLE, _TRUNCATED (the copy is too short), _NO_RULE, _BAD or _FULL.
 *
 * Returns 1; 0: the sample has no copy of a stack, or its registers are not those of a 64-bit process on x86-64 or aarch64: *chain
 * is the sample's own; -ENOMEM.  Valid until: the next call, and while the sample is. */
PERFRING_API int perfring_stacks_chain(struct perfring_stacks *stacks, const struct perfring_sample *sample,
				       uint32_t most, struct perfring_list *chain, enum perfring_unwind_end *end);

/* How many frames of user space a callchain of `frames` has space for beside the sample's frames of the kernel; at most perf's 127 in
 * all.  For `most`. */
PERFRING_API uint32_t perfring_stacks_user_frames(const struct perfring_sample *sample, uint64_t frames);

/* Whether a word of a callchain is an address, and in which kind of code: *cpumode, as in a record's misc, is the sample's before the
 * first word, and stays the caller's between two.  Returns false for a marker, and for the cookie of a deferred chain. */
PERFRING_API bool perfring_stacks_frame(uint64_t word, unsigned *cpumode);

/* Moves the sample to its innermost frame in one of these kinds of code: its ip, and the cpumode of its misc.  modes: bits 1 <<
 * cpumode.  A sample whose ip is in such code stays as it is; else the frame is of its callchain, or where its registers of user space
 * are.  Returns false if it has no such frame: the sample is unchanged. */
PERFRING_API bool perfring_stacks_innermost(struct perfring_sample *sample, uint32_t modes);

/* Makes of an attr whose samples have copies the attr of the same samples after unwinding: with CALLCHAIN, which has frames of user
 * space, and without REGS_USER and STACK_USER.  Returns false if the samples have no copies: the attr is unchanged. */
PERFRING_API bool perfring_stacks_attr(struct perf_event_attr *attr);

/* Encodes the sample, with the chain of perfring_stacks_chain, into a buffer of `size` bytes.  format: of the attr that
 * perfring_stacks_attr has made.  If the chain makes the record longer than 65 528 bytes, the sample's own is encoded instead.
 * Returns the record's size; -ENOSPC (the buffer is too small), -EINVAL as perfring_sample_encode, -ENOMEM. */
PERFRING_API int64_t perfring_stacks_encode(struct perfring_stacks *stacks, const struct perfring_sample *sample,
					    uint32_t most, const struct perfring_format *format, void *buffer,
					    size_t size, enum perfring_unwind_end *end);

/* Chains so far, by their end: ends[PERFRING_UNWIND_WHOLE] ...; joined: of those that are not whole, which frame pointers
 * continue.  ends[PERFRING_UNWIND_STEPPED], which is no end: copies of stacks of 32-bit processes, which are not unwound. */
struct perfring_stacks_counts {
	uint64_t ends[8];
	uint64_t joined;
};

/* Copies the counts so far into *counts. */
PERFRING_API void perfring_stacks_count(const struct perfring_stacks *stacks, struct perfring_stacks_counts *counts);

PERFRING_END

#endif
