/* mc_model.h - what model checkers of shared memory have in common: choices tried depth first, threads as fibers, the
 * trace of one execution.
 *
 * A program under check runs again and again from its beginning.  Wherever it could go on in several ways it calls
 * choose(); each execution repeats the choices of the one before up to the last that has an alternative, and takes that.
 */
#ifndef MC_MODEL_H
#define MC_MODEL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

enum {
	MAX_THREADS = 4,
	MAX_TRACE = 4096,
	MAX_CHOICES = 4096,
	STACK = 256 * 1024,
};

enum order {
	RELAXED = 0,
	ACQUIRE = 1,
	RELEASE = 2,
	ORDERED = 7, /* sequentially consistent, so both of the others too */
};

static struct {
	uint64_t executions, accesses, records, refused, wakeups, stale;
	unsigned deepest;
} total;

static int now_runs;
static unsigned level; /* of handlers */
static bool at_rest;   /* all threads have ended: no more choices */

/* ---- words of any size ---- */

static uint64_t get(const void *word, size_t size)
{
	if (size == 8)
		return *(const uint64_t *)word;
	if (size == 4)
		return *(const uint32_t *)word;
	if (size == 1)
		return *(const uint8_t *)word;
	abort();
}

static void put(void *word, size_t size, uint64_t value)
{
	if (size == 8)
		*(uint64_t *)word = value;
	else if (size == 4)
		*(uint32_t *)word = (uint32_t)value;
	else if (size == 1)
		*(uint8_t *)word = (uint8_t)value;
	else
		abort();
}

static bool is_in(const void *place, const void *from, size_t size)
{
	return (uintptr_t)place - (uintptr_t)from < size;
}

/* ---- choices ---- */

static unsigned choice_taken[MAX_CHOICES], choice_of[MAX_CHOICES];
static unsigned choices, choice_at;

static struct {
	const char *what, *name;
	uint64_t value;
	uint8_t thread, level;
} trace[MAX_TRACE];
static unsigned traced;

static const char *name_of_thread(int thread);

__attribute__((noreturn, format(printf, 1, 2))) static void wrong(const char *format, ...)
{
	va_list arguments;
	unsigned i;

	for (i = 0; i < traced && i < MAX_TRACE; i++)
		printf("  %*s%s: %s %s %lld\n", trace[i].thread * 40 + 2 * trace[i].level, "",
		       name_of_thread(trace[i].thread), trace[i].what, trace[i].name, (long long)trace[i].value);
	printf("WRONG after %llu executions: ", (unsigned long long)total.executions);
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	putchar('\n');
	fflush(stdout);
	exit(1);
}

/* Of the checker itself, so no finding. */
__attribute__((noreturn)) static void beyond(const char *what)
{
	fprintf(stderr, "mc: %s\n", what);
	exit(2);
}

static void tell(const char *what, const char *name, uint64_t value)
{
	if (traced < MAX_TRACE) {
		trace[traced].what = what;
		trace[traced].name = name;
		trace[traced].value = value;
		trace[traced].thread = (uint8_t)now_runs;
		trace[traced].level = (uint8_t)level;
	}
	traced++;
}

/* Not all, but so many executions, of random choices: for what lies deeper than can be tried. */
static uint64_t random_executions, random_state = 1;

static unsigned choose_at_random(unsigned of)
{
	random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return random_state >> 61 ? 0 : (unsigned)(random_state >> 33) % of;
}

static unsigned choose(unsigned of)
{
	if (of < 2 || at_rest)
		return 0;
	if (random_executions)
		return choose_at_random(of);
	if (choice_at == choices) {
		if (choices == MAX_CHOICES)
			beyond("too many choices in a row: MAX_CHOICES");
		choice_taken[choices] = 0;
		choice_of[choices++] = of;
		if (choices > total.deepest)
			total.deepest = choices;
	} else if (choice_of[choice_at] != of) {
		beyond("the program does not repeat itself");
	}
	return choice_taken[choice_at++];
}

static bool next_choices(void)
{
	if (random_executions)
		return total.executions < random_executions;
	while (choices && choice_taken[choices - 1] + 1 == choice_of[choices - 1])
		choices--;
	if (!choices)
		return false;
	choice_taken[choices - 1]++;
	return true;
}

static void print_total(void)
{
	printf("%llu executions, %llu accesses, %llu records read, %llu refused, %llu wakeups, %llu stale loads, at "
	       "most %u choices\n",
	       (unsigned long long)total.executions, (unsigned long long)total.accesses,
	       (unsigned long long)total.records, (unsigned long long)total.refused, (unsigned long long)total.wakeups,
	       (unsigned long long)total.stale, total.deepest);
}

/* ---- threads ---- */

static jmp_buf home, fibers[MAX_THREADS], restarts[MAX_THREADS];

/* By jumps: swapcontext makes a system call each time, for the mask of signals. */
static __attribute__((noinline)) void go_on(jmp_buf from, jmp_buf to)
{
	if (!_setjmp(from))
		_longjmp(to, 1);
}

static void run(int thread); /* what it does in one execution */

/* Each execution goes on here, and comes back here when the thread has ended. */
static void fiber(int thread)
{
	for (;;) {
		go_on(fibers[thread], home);
		_setjmp(restarts[thread]);
		run(thread);
	}
}

/* The thread goes no further in this execution, and begins the next one anew. */
__attribute__((noreturn, unused)) static void leave_fiber(void)
{
	int me = now_runs;

	go_on(fibers[me], home);
	_longjmp(restarts[me], 1);
}

static void open_fiber(int thread)
{
	static char stacks[MAX_THREADS][STACK];
	ucontext_t context;

	getcontext(&context);
	context.uc_stack.ss_sp = stacks[thread];
	context.uc_stack.ss_size = STACK;
	context.uc_link = NULL;
	makecontext(&context, (void (*)(void))fiber, 1, thread);
	if (!_setjmp(home))
		setcontext(&context);
}

#endif
