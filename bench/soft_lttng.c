/* soft_lttng.c - tracepoints of LTTng-UST with what a sample of ours holds: id, process and thread, time, CPU, 32 bytes.
 *
 * Time is in each event's header.  The CPU is its stream's: there is a stream for each, so none would record it again
 * (and lttng offers user space no such context).  Process and thread either come as arguments, which costs LTTng least,
 * or as the contexts vpid and vtid, which is how one gets them without a change to the program.
 */
#include "bench.h"
#include "soft_peers.h"

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
#include "soft_lttng_event.h"
#pragma GCC diagnostic pop

static bool is_enabled(void)
{
	return lttng_ust_tracepoint_enabled(perfring_soft_bench, whole) &&
	       lttng_ust_tracepoint_enabled(perfring_soft_bench, payload);
}

const char *soft_lttng_open(void)
{
	static bool started;
	static const char *reason;

	if (!started)
		reason = lttng_start(LTTNG_CHANNEL
				     "plain && " LTTNG_CHANNEL
				     "contexts && lttng add-context -u -s $name -c contexts -t vpid -t vtid && "
				     "lttng enable-event -u -s $name -c plain perfring_soft_bench:whole && "
				     "lttng enable-event -u -s $name -c contexts perfring_soft_bench:payload",
				     is_enabled);
	started = true;
	return reason;
}

void soft_lttng_whole(int64_t records)
{
	uint32_t pid = (uint32_t)getpid(), tid = (uint32_t)gettid();

	while (records-- > 0)
		lttng_ust_tracepoint(perfring_soft_bench, whole, 4711, pid, tid, soft_payload);
}

void soft_lttng_context(int64_t records)
{
	while (records-- > 0)
		lttng_ust_tracepoint(perfring_soft_bench, payload, soft_payload);
}

void soft_lttng_off(int64_t records)
{
	while (records-- > 0)
		lttng_ust_tracepoint(perfring_soft_bench, off, soft_payload);
}
#else
const char *soft_lttng_open(void)
{
	return "SKIP-ENV: built without liblttng-ust-dev";
}

void soft_lttng_whole(int64_t records)
{
	(void)records;
}

void soft_lttng_context(int64_t records)
{
	(void)records;
}

void soft_lttng_off(int64_t records)
{
	(void)records;
}
#endif
