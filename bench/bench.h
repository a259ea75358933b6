/* bench.h - benchmarks in C: a table of tasks, run and reported by bench.cc on Google Benchmark.
 *
 * Rows are named task/contender; what is printed is the fastest repetition of one run (medians are too noisy on shared machines),
 * and its ratio to the task's first contender.  A row with a bound claims that its ratio to its base is not above it: with
 * --claims each claim is printed and held.  The base is the nearest row above it in its task that claims nothing.  A row
 * named twice is run once, and held to each of its bases.
 */
#ifndef BENCH_H
#define BENCH_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct bench;

struct bench_row {
	const char *task;
	const char *contender;
	void (*run)(struct bench *bench);
	double bound;      /* of the ratio to its base; 0: no claim */
	double near_bound; /* where both threads ran on one core, BENCH_NEAR; 0: the same */
};

/* One table a program; a row without a task ends it. */
extern const struct bench_row bench_rows[];

/* True while there is more to do: `while (bench_keep(bench, 64))` does 64 of the thing in its body. */
bool bench_keep(struct bench *bench, int64_t batch);

/* How many things one iteration does: times are printed for one of them. */
void bench_items(struct bench *bench, int64_t items);

/* What this iteration took as the row itself has measured it, in ns: the least lap of all counts, instead of the thread's
 * time.  For what is not to be timed (draining a ring), and for what several threads do. */
void bench_lap(struct bench *bench, double ns);

/* Under which of several circumstances the row's own measure says that this repetition has run, from 1 up: rows are
 * compared under the same one, which of those that most rows of the task have seen is the highest.  MIXED: not to count. */
enum {
	BENCH_MIXED = -1,
	BENCH_NEAR = 1, /* two threads on two CPUs of one core */
	BENCH_FAR = 2,  /* on two cores */
};
void bench_place(struct bench *bench, int place);

/* The row cannot be run.  Return at once.  A reason that begins with "SKIP-ENV: " blames the machine, any other is a
 * failure. */
void bench_skip(struct bench *bench, const char *reason);

/* The compiler must think that the value is used. */
static inline void bench_use(uint64_t value)
{
	__asm__ volatile("" : : "r"(value) : "memory");
}

#ifdef __cplusplus
}
#endif

#endif
