/* writer_private.h - what set.c and tests need of writers.
 *
 * A set opens a writer for a thread that is not the calling one.
 */
#ifndef PERFRING_RB_WRITER_PRIVATE_H
#define PERFRING_RB_WRITER_PRIVATE_H

#include <pthread.h>
#include <stdbool.h>

#include <perfring/writer.h>

/* Whether the invariant holds (docs/ring.md 3), as it does between the calls of the writer's thread and its handlers while the reader
 * keeps to the protocol.  For tests. */
bool perfring__writer_is_valid(const struct perfring_writer *writer);

/* Makes a writer that was just opened, and not used, another thread's of this process. */
void perfring__writer_hand_over(struct perfring_writer *writer, pthread_t thread, uint32_t tid);

#endif
