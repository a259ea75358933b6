/* switches.h - a thread that is switched away, for events that count that. */
#ifndef SWITCHES_H
#define SWITCHES_H

#include <sys/resource.h>
#include <unistd.h>

/* A sleep whose time is over before the thread is off its CPU is no switch: the kernel counts what it switched. */
static inline void switch_away(int times)
{
	struct rusage before, now;

	getrusage(RUSAGE_THREAD, &before);
	do {
		usleep(500);
		getrusage(RUSAGE_THREAD, &now);
	} while (now.ru_nvcsw - before.ru_nvcsw < times);
}

#endif
