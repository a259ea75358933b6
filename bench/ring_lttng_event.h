/* ring_lttng_event.h - the tracepoints that ring_lttng.c fires: what a record of 64 bytes holds besides header and time,
 * as six fields, and as one array.  LTTng-UST reads this file several times. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER perfring_bench
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "ring_lttng_event.h"

#if !defined(RING_LTTNG_EVENT_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define RING_LTTNG_EVENT_H

#include <lttng/tracepoint.h>

#include <stdint.h>

LTTNG_UST_TRACEPOINT_EVENT(perfring_bench, fields, LTTNG_UST_TP_ARGS(const uint64_t *, words),
			   LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(uint64_t, first, words[0])
				lttng_ust_field_integer(uint64_t, second, words[1])
				lttng_ust_field_integer(uint64_t, third, words[2])
				lttng_ust_field_integer(uint64_t, fourth, words[3])
				lttng_ust_field_integer(uint64_t, fifth, words[4])
				lttng_ust_field_integer(uint64_t, sixth, words[5])))

LTTNG_UST_TRACEPOINT_EVENT(perfring_bench, array, LTTNG_UST_TP_ARGS(const unsigned char *, payload),
			   LTTNG_UST_TP_FIELDS(lttng_ust_field_array(unsigned char, payload, payload, 48)))

#endif

#include <lttng/tracepoint-event.h>
