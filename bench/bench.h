/* bench.h - benchmarks in C: a table of tasks, run and reported by bench.cc on Google Benchmark.
 *
 * Rows are named task/contender.  A task's first contender is its base: the others are told as a ratio to it, of the
 * fastest repetitions of one run (medians are too noisy on shared machines).  A row with a bound claims that its ratio
 * is not above it: with --claims each claim is told and held.
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
	double bound; /* of the ratio to the task's base; 0: no claim */
};

/* One table a program; a row without a task ends it. */
extern const struct bench_row bench_rows[];

/* True while there is more to do: `while (bench_keep(bench, 64))` does 64 of the thing in its body. */
bool bench_keep(struct bench *bench, int64_t batch);

/* How many things one iteration does: times are told for one of them. */
void bench_items(struct bench *bench, int64_t items);

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
