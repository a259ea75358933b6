/* writer_private.h - what set.c needs of writers. */
#ifndef RB_WRITER_OWN_H
#define RB_WRITER_OWN_H

#include <pthread.h>

#include <perfring/writer.h>

/* Makes a writer that was just opened, and not used, another thread's of this process. */
void perfring_writer_give(struct perfring_writer *writer, pthread_t thread, uint32_t tid);

#endif
