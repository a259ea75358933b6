/* ring_lttng.c - a tracepoint of LTTng-UST, recorded by a session that overwrites (lttng.h). */
#include <stddef.h>
#include "bench.h"
#include "ring_peers.h"

#ifdef HAVE_LTTNG
#include "lttng.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wundef"
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "ring_lttng_event.h"
#pragma GCC diagnostic pop

static bool is_enabled(void)
{
	return lttng_ust_tracepoint_enabled(perfring_bench, array);
}

static const char *open_lttng(void **peer)
{
	static bool started;
	static const char *reason;

	*peer = NULL;
	if (!started)
		reason = lttng_start(LTTNG_CHANNEL "records && lttng enable-event -u -s $name -c records "
						   "'perfring_bench:*'",
				     is_enabled);
	started = true;
	return reason;
}

static int64_t write_array(void *peer, int producer, int64_t records)
{
	int64_t done;

	(void)peer;
	(void)producer;
	for (done = 0; done < records; done++)
		lttng_ust_tracepoint(perfring_bench, array, ring_source + 16);
	return done;
}

static int64_t write_fields(void *peer, int producer, int64_t records)
{
	const uint64_t *words = (const uint64_t *)(const void *)(ring_source + 16);
	int64_t done;

	(void)peer;
	(void)producer;
	for (done = 0; done < records; done++)
		lttng_ust_tracepoint(perfring_bench, fields, words);
	return done;
}

const struct ring_peer ring_lttng_fields = {.open = open_lttng, .write = write_fields};
const struct ring_peer ring_lttng_array = {.open = open_lttng, .write = write_array};
#else
static const char *open_nothing(void **peer)
{
	*peer = NULL;
	return "SKIP-ENV: built without liblttng-ust-dev";
}

const struct ring_peer ring_lttng_fields = {.open = open_nothing};
const struct ring_peer ring_lttng_array = {.open = open_nothing};
#endif
