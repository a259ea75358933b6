/* writer_private.h - what set.c needs of writers.
 *
 * A set opens a writer for a thread that is not the calling one.
 */
#ifndef PERFRING_RB_WRITER_PRIVATE_H
#define PERFRING_RB_WRITER_PRIVATE_H

#include <pthread.h>

#include <perfring/writer.h>

/* Makes a writer that was just opened, and not used, another thread's of this process. */
void perfring__writer_hand_over(struct perfring_writer *writer, pthread_t thread, uint32_t tid);

#endif
