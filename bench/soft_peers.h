/* soft_peers.h - what soft_bench.c measures soft events against: LTTng-UST's tracepoints. */
#ifndef SOFT_PEERS_H
#define SOFT_PEERS_H

#include <stdint.h>

enum {
	SOFT_PAYLOAD = 32,
};

extern unsigned char soft_payload[SOFT_PAYLOAD]; /* warm */

/* Why there is no session, or NULL. */
const char *soft_lttng_open(void);

void soft_lttng_whole(int64_t records);   /* thread and id as arguments */
void soft_lttng_context(int64_t records); /* thread as contexts (vpid, vtid) */
void soft_lttng_off(int64_t records);     /* a tracepoint that is not enabled */

#endif
