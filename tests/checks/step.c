/* step.c - the compiled writer, interrupted at every instruction boundary by other writes (nest.h).
 *
 * step_test compiles this twice: with STEP_SUBJECT the operations, which it puts with the objects of rb/writer.c and
 * rb/wakeup.c into a section of their own, `stepped`; without, what steps them.  The boundaries of an operation are found
 * with the processor's trap flag: one SIGTRAP for each instruction.  To stop at one of them, a breakpoint is written
 * over it; the handler takes it out and performs the interrupting operation, which is stopped in the same way.  With the
 * trap flag all the way, a reader looks at each boundary.  What lies outside the section (libc, the kernel) is one step.
 */
#include "nest.h"

#ifdef STEP_SUBJECT

static __attribute__((noinline)) uint64_t step_write(struct perfring_writer *writer, uint64_t id)
{
	return nest_write(writer, id, 24);
}

static __attribute__((noinline)) uint64_t step_long(struct perfring_writer *writer, uint64_t id)
{
	return nest_write(writer, id, 40);
}

static __attribute__((noinline)) uint64_t step_discard(struct perfring_writer *writer, uint64_t id)
{
	return nest_discard(writer, id);
}

static __attribute__((noinline)) uint64_t step_three(struct perfring_writer *writer, uint64_t id)
{
	return nest_transaction(writer, id, 3);
}

static __attribute__((noinline)) uint64_t step_two(struct perfring_writer *writer, uint64_t id)
{
	return nest_transaction(writer, id, 2);
}

static __attribute__((noinline)) uint64_t step_none(struct perfring_writer *writer, uint64_t id)
{
	return nest_transaction(writer, id, 0);
}

nest_subject *const nest_subjects[NEST_SUBJECTS + 1] = {step_write, step_long, step_discard,
							step_three, step_two,  step_none};

#else

#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>

enum {
	STEP_TRAP_FLAG = 0x100,
	STEP_BREAKPOINT = 0xcc,
	STEP_PLACES = 4096,
	STEP_TEXT = 1 << 16,
};

/* The linker's: where `stepped` begins and ends. */
extern unsigned char __start_stepped[], __stop_stepped[];

struct step_place {
	unsigned char *at;
	unsigned before; /* times that it is passed before, counted from the stop before */
};

static struct step_place step_places[NEST_STOPS + 1][STEP_PLACES];
static unsigned short step_passed[STEP_TEXT];
static volatile bool step_tracing;
static volatile bool step_inside;            /* an operation is under way: the trap flag stays */
static unsigned char *volatile step_planted; /* a breakpoint is there */
static unsigned char *volatile step_over;    /* it is to be there again after one step */
static volatile unsigned char step_byte;     /* what was there */
static volatile unsigned step_before;
static uint64_t step_traps;

static void step_plant(unsigned char *at)
{
	step_byte = *at;
	*(volatile unsigned char *)at = STEP_BREAKPOINT;
	step_planted = at;
}

static void step_unplant(void)
{
	if (step_planted)
		*(volatile unsigned char *)step_planted = step_byte;
	step_planted = NULL;
}

static void nest_arm(unsigned stop)
{
	if (nest_looks) {
		if (stop < nest_plan.stops)
			nest_left = nest_plan.at[stop] - (stop && nest_plan.rest[stop - 1]);
	} else if (stop == nest_plan.stops) {
		step_tracing = true;
		memset(step_passed, 0, (size_t)(__stop_stepped - __start_stepped) * sizeof(step_passed[0]));
	} else {
		step_before = step_places[stop][nest_plan.at[stop]].before;
		step_plant(step_places[stop][nest_plan.at[stop]].at);
	}
}

static void nest_disarm(void)
{
	step_tracing = false;
	step_over = NULL;
	step_unplant();
}

static uint64_t nest_around(nest_subject *subject, uint64_t id)
{
	bool was = step_inside;
	uint64_t taken;

	step_inside = true;
	if (step_tracing || nest_looks)
		__builtin_ia32_writeeflags_u64(__builtin_ia32_readeflags_u64() | STEP_TRAP_FLAG);
	taken = subject(nest_writer, id);
	step_inside = false;
	__builtin_ia32_writeeflags_u64(__builtin_ia32_readeflags_u64() & ~(unsigned long long)STEP_TRAP_FLAG);
	step_inside = was;
	return taken;
}

static void step_trapped(int signal, siginfo_t *why, void *context)
{
	greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
	unsigned char *at = (unsigned char *)registers[REG_RIP];
	unsigned trace;

	(void)signal;
	(void)why;
	step_traps++;
	if (step_planted && at == step_planted + 1) {
		at--;
		registers[REG_RIP]--;
		step_unplant();
		if (step_before) {
			step_before--;
			step_over = at;
		} else {
			nest_strike();
			if (step_planted == at) {
				step_unplant();
				step_over = at;
			}
		}
	} else if (step_over) {
		step_plant(step_over);
		step_over = NULL;
	} else if (at >= __start_stepped && at < __stop_stepped) {
		if (nest_looks) {
			nest_boundary();
		} else if (step_tracing) {
			trace = nest_traced;
			if (trace == STEP_PLACES)
				nest_fail("boundaries", trace, STEP_PLACES);
			else {
				step_places[nest_plan.stops][trace].at = at;
				step_places[nest_plan.stops][trace].before = step_passed[at - __start_stepped]++;
				nest_traced = trace + 1;
			}
		}
	}
	if (step_over || ((step_tracing || nest_looks) && step_inside))
		registers[REG_EFL] |= STEP_TRAP_FLAG;
	else
		registers[REG_EFL] &= ~STEP_TRAP_FLAG;
}

static double step_seconds(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* step [MODE]: all modes, or the one of that number.  STEP_FULL: every pair, and half an hour; STEP_QUICK: a sample. */
int main(int argc, char **argv)
{
	struct sigaction action = {.sa_sigaction = step_trapped, .sa_flags = SA_SIGINFO | SA_NODEFER};
	uintptr_t from = (uintptr_t)__start_stepped & ~(uintptr_t)4095;
	uint64_t runs = 0, boundaries = 0, looked = 0, thin;
	bool full = getenv("STEP_FULL");
	unsigned mode, first = 0, last = NEST_MODES, of, rests, hurried = 0;
	double start = step_seconds();
	int failed = 0;

	if (argc > 1) {
		first = (unsigned)strtoul(argv[1], NULL, 0);
		last = first + 1;
	}
	if (mprotect((void *)from, (uintptr_t)__stop_stepped - from, PROT_READ | PROT_WRITE | PROT_EXEC)) {
		printf("SKIP-ENV: mprotect of text, writable: %s\n", strerror(errno));
		return 77;
	}
	if (__stop_stepped - __start_stepped > STEP_TEXT || sigaction(SIGTRAP, &action, NULL))
		return 2;
	for (mode = first; mode < last; mode++) {
		double began = step_seconds();
		double spent = began - start;
		/* A slow or busy machine: then samples of the pairs as well. */
		unsigned hurry = spent > 60 || getenv("STEP_QUICK") ? 48 : spent > 30 ? 8 : 1;

		nest_failures = 0;
		nest_runs = nest_looked = nest_boundaries = 0;
		nest_roots = 1;
		nest_looks = false;
		nest_open(&nest_modes[mode]);
		nest_every(0, 1, 0, 1, 1);
		/* Every pair in a chain where there are 40 boundaries, one in some where there are hundreds. */
		thin = full ? 1 : hurry * (nest_boundaries / 100 + 1);
		/* To begin a chain takes a trap for each boundary: a sample is rather many pairs of few chains. */
		of = hurry > 8 && !full ? 16 : 1;
		nest_every(0, 2, 0, of, thin / of);
		nest_every(0, 2, 1, full ? 1 : 4 * of, thin / of);
		nest_roots = full ? 1 : hurry * nest_boundaries / (hurry > 8 ? 10 : 20) + 1;
		for (rests = 0; rests < 4; rests++)
			nest_every(0, 3, rests, (rests ? 80 : 20), full ? 2 : nest_boundaries / 8 + 1);
		hurried += hurry > 1;
		nest_looks = true;
		/* Each is a trap for every boundary too. */
		nest_every(0, 1, 0, 1, hurry > 8 ? 64 : hurry > 1 ? 4 : 1);
		nest_every(0, 2, 0, 1 + hurry * nest_boundaries / 4, 20);
		if (nest_failures) {
			failed = 1;
			printf("WRONG %s (%u times)\n", nest_first, nest_failures);
			printf("      at stepped+%#tx, +%#tx, +%#tx\n",
			       step_places[0][nest_plan.at[0]].at - __start_stepped,
			       step_places[1][nest_plan.at[1]].at - __start_stepped,
			       step_places[2][nest_plan.at[2]].at - __start_stepped);
		}
		nest_looks = false;
		nest_close();
		if (argc > 1 || getenv("STEP_VERBOSE"))
			printf("%-40s %4lu boundaries %8lu runs %9lu looks %6.2f s\n", nest_modes[mode].name,
			       (unsigned long)nest_boundaries, (unsigned long)nest_runs, (unsigned long)nest_looked,
			       step_seconds() - began);
		fflush(stdout);
		runs += nest_runs;
		boundaries += nest_boundaries;
		looked += nest_looked;
	}
	printf("%u modes, %lu boundaries, %lu runs, %lu looks, %lu traps, %.0f s", last - first,
	       (unsigned long)boundaries, (unsigned long)runs, (unsigned long)looked, (unsigned long)step_traps,
	       step_seconds() - start);
	if (hurried)
		printf("; %u modes in a hurry", hurried);
	printf("\n");
	/* An empty run is no pass. */
	if (boundaries < 30 * (last - first) || runs < 500 * (last - first)) {
		printf("WRONG too few\n");
		failed = 1;
	}
	return failed;
}

#endif
