/* ring_lttng.c - a tracepoint of LTTng-UST (liblttng-ust-dev, lttng-tools), recorded by a session that overwrites.
 *
 * Runs against the session daemon that is there; else starts one, and ends it when the program ends.  1 MiB a CPU, the
 * clock that LTTng takes by itself: clock_gettime(CLOCK_MONOTONIC).
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"
#include "ring_peers.h"

#ifdef HAVE_LTTNG
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

static struct {
	char directory[64];
	bool daemon; /* is ours */
} session;

/* Runs it in a shell that knows $directory and $name; what it says goes to a log.  Returns whether it succeeded. */
static bool run(const char *command)
{
	char line[640];

	snprintf(line, sizeof(line), "directory=%s name=ring-bench-%d; { %s; } >>%s.log 2>&1 </dev/null",
		 session.directory, getpid(), command, session.directory);
	return system(line) == 0;
}

static void end_session(void)
{
	run("lttng destroy --no-wait $name");
	if (session.daemon)
		run("pid=$(cat $directory/pid) && kill $pid && for i in 1 2 3 4 5; do kill -0 $pid && sleep .1; done");
	run("rm -rf $directory $directory.log");
}

/* Returns why there is none, or NULL. */
static const char *start_session(void)
{
	int tenths;

	strcpy(session.directory, "/tmp/ring_bench.XXXXXX");
	if (!mkdtemp(session.directory))
		return "SKIP-ENV: mkdtemp in /tmp failed: LTTng's session needs a directory";
	atexit(end_session);
	if (!run("command -v lttng && command -v lttng-sessiond"))
		return "SKIP-ENV: no lttng or lttng-sessiond: install lttng-tools";
	if (!run("lttng --no-sessiond list")) {
		session.daemon = run("lttng-sessiond --daemonize --no-kernel --pidfile=$directory/pid");
		if (!session.daemon)
			return "SKIP-ENV: lttng-sessiond did not start: run it by hand to see why";
	}
	if (!run("lttng create $name --snapshot --output=$directory && "
		 "lttng enable-channel -u -s $name --overwrite --subbuf-size=256K --num-subbuf=4 records && "
		 "lttng enable-event -u -s $name -c records 'perfring_bench:*' && lttng start $name"))
		return "SKIP-ENV: lttng refused the session: run lttng create and enable-channel -u by hand to see why";
	for (tenths = 0; tenths < 100 && !lttng_ust_tracepoint_enabled(perfring_bench, array); tenths++)
		nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
	if (!lttng_ust_tracepoint_enabled(perfring_bench, array))
		return "SKIP-ENV: the session daemon did not enable the tracepoint in 10 s: a stale daemon or "
		       "/dev/shm?";
	return NULL;
}

static const char *open_lttng(void **peer)
{
	static bool started;
	static const char *reason;

	*peer = NULL;
	if (!started)
		reason = start_session();
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
