/* lttng.h - a session of LTTng-UST (liblttng-ust-dev, lttng-tools) for the tracepoints of this program, in snapshot mode:
 * it overwrites, and no reader reads meanwhile.
 *
 * Runs against the session daemon that is there; else starts one, and ends it when the program ends.  1 MiB a CPU, the
 * clock that LTTng takes by itself: clock_gettime(CLOCK_MONOTONIC).
 */
#ifndef LTTNG_H
#define LTTNG_H

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#define LTTNG_CHANNEL "lttng enable-channel -u -s $name --overwrite --subbuf-size=256K --num-subbuf=4 "

static struct {
	char directory[64];
	bool daemon; /* is ours */
} lttng_session;

/* Runs it in a shell that knows $directory and $name; what it says goes to a log.  Returns whether it succeeded. */
static bool lttng_run(const char *command)
{
	char line[1024];

	snprintf(line, sizeof(line), "directory=%s name=perfring-bench-%d; { %s; } >>%s.log 2>&1 </dev/null",
		 lttng_session.directory, getpid(), command, lttng_session.directory);
	return system(line) == 0;
}

static void lttng_end(void)
{
	lttng_run("lttng destroy --no-wait $name");
	if (lttng_session.daemon)
		lttng_run("pid=$(cat $directory/pid) && kill $pid && for i in 1 2 3 4 5; do kill -0 $pid && sleep .1; "
			  "done");
	lttng_run("rm -rf $directory $directory.log");
}

/* channels: commands that make them and enable their events.  Returns why there is none, or NULL. */
static const char *lttng_start(const char *channels, bool (*is_enabled)(void))
{
	int tenths;

	strcpy(lttng_session.directory, "/tmp/perfring_bench.XXXXXX");
	if (!mkdtemp(lttng_session.directory))
		return "SKIP-ENV: mkdtemp in /tmp failed: LTTng's session needs a directory";
	atexit(lttng_end);
	if (!lttng_run("command -v lttng && command -v lttng-sessiond"))
		return "SKIP-ENV: no lttng or lttng-sessiond: install lttng-tools";
	if (!lttng_run("lttng --no-sessiond list")) {
		lttng_session.daemon = lttng_run("lttng-sessiond --daemonize --no-kernel --pidfile=$directory/pid");
		if (!lttng_session.daemon)
			return "SKIP-ENV: lttng-sessiond did not start: run it by hand to see why";
	}
	if (!lttng_run("lttng create $name --snapshot --output=$directory") || !lttng_run(channels) ||
	    !lttng_run("lttng start $name"))
		return "SKIP-ENV: lttng refused the session: run lttng create and enable-channel -u by hand to see why";
	for (tenths = 0; tenths < 100 && !is_enabled(); tenths++)
		nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
	if (!is_enabled())
		return "SKIP-ENV: the session daemon did not enable the tracepoint in 10 s: a stale daemon or "
		       "/dev/shm?";
	return NULL;
}

#endif
