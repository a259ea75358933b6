/* machine.h - the one file that there is for a reader, and how it reads from it. */
#ifndef FUZZ_MACHINE_H
#define FUZZ_MACHINE_H

#include <stdbool.h>
#include <stddef.h>

enum machine_mood {
	MACHINE_WHOLE,  /* a read gives what was asked for */
	MACHINE_SHORT,  /* or only a few bytes */
	MACHINE_SIGNAL, /* every other one is interrupted */
	MACHINE_FAULT,  /* the disk fails, at a later one */
	MACHINE_CUT,    /* the file was longer when it was opened */
	MACHINE_MOODS,
};

/* What open finds at this path from now on; `with` says how short, and when. */
#define MACHINE_PATH "/fuzz"
void machine_set(const void *bytes, size_t size, bool is_pipe, enum machine_mood mood, unsigned with);

/* Whether nothing is left open and all blocks were freed, which the sanitizer does not see. */
bool machine_is_idle(void);

#endif
