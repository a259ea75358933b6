/* top.c - the addresses where the whole machine spends its time, and who is there: top [SECONDS] */
#include <perfring/callchain.h>
#include <perfring/sample.h>
#include <perfring/session.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum {
	PLACES = 1 << 16,
	SHOWN = 10,
};

static struct place {
	uint64_t ip;
	uint64_t samples;
	uint32_t pid; /* of the first sample */
} places[PLACES]; /* open addressing; a full table counts no new place */

static void count(const struct perfring_sample *sample)
{
	for (uint64_t i = 0; i < PLACES; i++) {
		struct place *place = &places[(sample->ip * UINT64_C(0x9e3779b97f4a7c15) + i) % PLACES];

		if (!place->samples)
			place->ip = sample->ip, place->pid = sample->pid;
		if (place->ip == sample->ip) {
			place->samples++;
			return;
		}
	}
}

static int by_samples(const void *a, const void *b)
{
	uint64_t one = ((const struct place *)a)->samples, other = ((const struct place *)b)->samples;

	return one < other ? 1 : -(one > other);
}

int main(int argc, char **argv)
{
	struct perf_event_attr attr = {.size = sizeof(attr), .freq = 1, .sample_freq = 999, .sample_id_all = 1, .disabled = 1};
	uint64_t start = 0, now = 0, seconds = argc > 1 ? strtoull(argv[1], NULL, 10) : 5, frames = 0;
	struct perfring_session *session;
	struct perfring_target *target;
	struct perfring_totals totals;
	struct perfring_sample sample;
	struct perfring_frame frame;
	struct perfring_item item;

	perfring_event_parse("cycles", &attr, NULL);
	attr.sample_type = PERFRING_SAMPLE_IP | PERFRING_SAMPLE_TID | PERFRING_SAMPLE_TIME | PERFRING_SAMPLE_CALLCHAIN;
	attr.use_clockid = 1;
	attr.clockid = CLOCK_MONOTONIC;
	if (perfring_target_open(&target) || perfring_target_add_cpus(target, NULL) || perfring_session_open(&session, 0) ||
	    perfring_session_configure(session, PERFRING_SESSION_SHRINK, PERFRING_FALLBACK_ALL))
		return perror("top"), 1;
	if (perfring_session_add(session, &attr, target) < 0 || perfring_session_enable(session))
		return fprintf(stderr, "top: %s\n", perfring_session_refusal(session)), 1;
	perfring_session_now(session, &start);
	while (now < start + seconds * 1000000000 && perfring_session_wait(session, 100) >= 0) {
		while (perfring_session_next(session, &item) == 1)
			if (item.record->type == PERFRING_RECORD_SAMPLE &&
			    !perfring_sample_decode(item.format, item.record, &sample, NULL)) {
				struct perfring_callchain chain = perfring_callchain_init(&sample.callchain);

				count(&sample);
				while (perfring_callchain_next(&chain, &frame) == 1)
					frames++;
			}
		perfring_session_return(session);
		perfring_session_now(session, &now);
	}
	perfring_session_totals(session, &totals);
	qsort(places, PLACES, sizeof(*places), by_samples);
	printf("%llu samples, %llu frames, %llu lost\n", (unsigned long long)totals.samples, (unsigned long long)frames,
	       (unsigned long long)(totals.lost + totals.lost_samples));
	for (int i = 0; i < SHOWN && places[i].samples; i++)
		printf("%8llu %#18llx pid %u\n", (unsigned long long)places[i].samples, (unsigned long long)places[i].ip,
		       places[i].pid);
	perfring_session_close(session);
	perfring_target_close(target);
	return 0;
}
