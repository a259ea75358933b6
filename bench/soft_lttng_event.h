/* soft_lttng_event.h - the tracepoints that soft_lttng.c fires.  LTTng-UST reads this file several times.
 *
 * whole: id and thread come as arguments, as if the program had both at hand.  payload: nothing but the 32 bytes; id is the
 * event's own in its header, the thread is a context of its channel. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER perfring_soft_bench
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "soft_lttng_event.h"

#if !defined(SOFT_LTTNG_EVENT_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define SOFT_LTTNG_EVENT_H

#include <lttng/tracepoint.h>

#include <stdint.h>

LTTNG_UST_TRACEPOINT_EVENT(perfring_soft_bench, whole,
			   LTTNG_UST_TP_ARGS(uint64_t, id, uint32_t, pid, uint32_t, tid, const unsigned char *, payload),
			   LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(uint64_t, id, id)
				lttng_ust_field_integer(uint32_t, pid, pid)
				lttng_ust_field_integer(uint32_t, tid, tid)
				lttng_ust_field_array(unsigned char, payload, payload, 32)))

LTTNG_UST_TRACEPOINT_EVENT(perfring_soft_bench, payload, LTTNG_UST_TP_ARGS(const unsigned char *, payload),
			   LTTNG_UST_TP_FIELDS(lttng_ust_field_array(unsigned char, payload, payload, 32)))

LTTNG_UST_TRACEPOINT_EVENT(perfring_soft_bench, off, LTTNG_UST_TP_ARGS(const unsigned char *, payload),
			   LTTNG_UST_TP_FIELDS(lttng_ust_field_array(unsigned char, payload, payload, 32)))

#endif

#include <lttng/tracepoint-event.h>
