/* inject.h - what inject.c and inject_preload.c say to one another. */
#ifndef INJECT_H
#define INJECT_H

#include <stdint.h>

enum {
	INJECT_LISTENER,           /* with the filter's descriptor */
	INJECT_ALLOCATION,         /* one has failed; text: its caller */
	INJECT_MET,                /* one that does not fail, where all are counted; text: its caller */
	INJECT_COUNT,              /* how many there were, at the end */
	INJECT_PRCTL = 0x494e4a45, /* a prctl that no kernel knows: from here on calls are counted, or not */
	INJECT_BROKEN = 99,        /* exit status: the machine cannot */
};

struct inject_message {
	uint32_t kind;
	uint32_t unused;
	uint64_t count;
	char text[112];
};

#endif
