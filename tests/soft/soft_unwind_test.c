/* soft_unwind_test.c - callchains by unwind tables: as frame pointers have them in a build that has those, of raises and ticks, on
 * every stack, beside dlopen and dlclose, and in forks. */
#include "sanitizers.h"

/* Every named place of soft/tables.c, which is compiled here for that. */
static void strike(const char *name);
#define PERFRING_POINT(name) strike(#name)

#include "soft/tables.c"

#include <dlfcn.h>
#include <errno.h>
#include <semaphore.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "test.h"
#include "far_stack.h"

TestSuite(soft_unwind, .timeout = 120);

#define BARE SOFT_SUBJECTS "/libsoft_subject_bare.so"
#define FRAMED SOFT_SUBJECTS "/libsoft_subject_framed.so"

#define UNTOUCHED __attribute__((noinline, no_sanitize("address"), no_sanitize("thread"), no_sanitize("undefined")))
/* At both ends of a function: its frame is there, and stays, and what it calls last is no jump. */
#define FRAME() __asm__ volatile("" : : "r"(__builtin_frame_address(0)) : "memory")

enum {
	NAMES = 32, /* of one chain, that are compared */
	WALKS = 2000,
	PAGES = 256,
	STACK = 256 * 1024,
};

static __thread void (*struck)(const char *name); /* what comes in between there */

static void strike(const char *name)
{
	if (struck)
		struck(name);
}

/* ---- the subject ---- */

struct subject {
	void *module;
	void (*walk)(uint32_t seed, void (*reached)(void));
	void (*sort)(void (*reached)(void));
	void (*call)(void (*reached)(void));
	void (*burn)(uint64_t ns);
};

static struct subject bare, framed;

static void take(void *to, void *module, const char *name)
{
	void *found = dlsym(module, name);

	cr_assert_not_null(found, "%s", name);
	memcpy(to, &found, sizeof(found));
}

static void find_subject(struct subject *subject)
{
	cr_assert_not_null(subject->module, "%s", dlerror());
	take(&subject->walk, subject->module, "subject_walk");
	take(&subject->sort, subject->module, "subject_sort");
	take(&subject->call, subject->module, "subject_call");
	take(&subject->burn, subject->module, "subject_burn");
}

static void open_subject(struct subject *subject, const char *path)
{
	subject->module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	find_subject(subject);
}

static void needs_tables(void)
{
	if (!SOFT_HAS_TABLES)
		cr_skip_test("SKIP-ENV: unwind tables: x86-64 or aarch64 would allow it");
}

static void needs_raises(void)
{
	needs_tables();
#if !defined(__x86_64__)
	cr_skip_test("SKIP-ENV: a raise without a context: x86-64 would allow it");
#endif
}

/* ---- events and their chains ---- */

static struct perfring_soft_point *point;
static bool is_child;

/* Also in a fork's child, which must not assert. */
static void check(bool holds)
{
	if (is_child && !holds)
		_exit(9);
	if (!is_child)
		cr_assert(holds);
}

static struct perfring_soft_event *open_event(uint32_t type, uint64_t config, uint64_t period, bool by_tables)
{
	struct perf_event_attr attr = {.size = sizeof(attr), .type = type, .config = config, .sample_period = period};
	struct perfring_soft_event *event;

	attr.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_CALLCHAIN;
	check(!perfring_soft_open(&event, &attr, PERFRING_SOFT_PROCESS, NULL));
	check(!by_tables || !perfring_soft_set_unwind(event, true));
	check(!perfring_soft_map(event, PAGES, -1));
	return event;
}

static struct perfring_soft_event *listen(bool by_tables)
{
	point = perfring_soft_define("unwind");
	return open_event(point->type, point->config, 1, by_tables);
}

struct chain {
	uint32_t tid;
	uint32_t nr;
	uint64_t ips[SOFT_CHAIN_MAX + 1];
};

/* Calls `each` with the chains that are in the rings.  Returns their number. */
static uint32_t drain(struct perfring_soft_event *event, void (*each)(const struct chain *chain))
{
	const struct perf_event_header *record;
	struct perfring_set_ring *member = NULL;
	struct perfring_sample sample;
	struct perfring_fault fault;
	struct chain chain;
	uint32_t samples = 0;

	while ((member = perfring_set_next(perfring_soft_rings(event), member))) {
		check(perfring_reader_observe(&member->reader) >= 0);
		while (perfring_reader_next(&member->reader, &record) == 1) {
			if (record->type != PERF_RECORD_SAMPLE)
				continue;
			check(!perfring_sample_decode(&event->format, record, &sample, &fault));
			samples++;
			chain.tid = sample.tid;
			chain.nr = (uint32_t)sample.callchain.nr;
			check(chain.nr >= 2 && chain.nr <= SOFT_CHAIN_MAX + 1);
			check(sample.callchain.words[0] == (uint64_t)(int64_t)PERFRING_CONTEXT_USER);
			for (uint32_t i = 0; i < chain.nr; i++)
				chain.ips[i] = sample.callchain.words[i];
			if (each)
				each(&chain);
		}
		perfring_reader_return(&member->reader);
	}
	return samples;
}

/* The names of the subject's functions in a chain, from the innermost on, joined: "leaf<large<walk". */
static void name_chain(const struct chain *chain, char *text, size_t size)
{
	const char *prefix = "subject_";
	size_t used = 0;
	Dl_info info;

	text[0] = 0;
	for (uint32_t i = 1; i < chain->nr; i++)
		if (dladdr((void *)(uintptr_t)(chain->ips[i] - (i > 1)), &info) && info.dli_sname &&
		    !strncmp(info.dli_sname, prefix, strlen(prefix)) && used < size)
			used += (size_t)snprintf(text + used, size - used, "%s%s", used ? "<" : "",
						 info.dli_sname + strlen(prefix));
}

/* ---- raises ---- */

static UNTOUCHED void raise_here(void)
{
	FRAME();
	perfring_soft_raise(point, 1, 0, NULL, 0);
	FRAME();
}

static char last[1024];
static uint32_t last_nr;
static uint64_t last_end; /* the last address of the chain */

static void keep_last(const struct chain *chain)
{
	name_chain(chain, last, sizeof(last));
	last_nr = chain->nr;
	last_end = chain->ips[chain->nr - 1];
}

static char expected[WALKS][1024];
static uint32_t place, equal;

static void keep(const struct chain *chain)
{
	name_chain(chain, expected[place++ % WALKS], sizeof(expected[0]));
}

static void compare(const struct chain *chain)
{
	char text[1024];

	name_chain(chain, text, sizeof(text));
	equal += !strcmp(text, expected[place % WALKS]);
	if (strcmp(text, expected[place % WALKS]) && equal + 5 > place)
		printf("%u: %s, expected %s\n", place, text, expected[place % WALKS]);
	place++;
}

/* Of 2000 chains as frame pointers have them in the one build; by_tables and subject: the other way. */
static uint32_t equal_chains(struct subject *subject, bool by_tables)
{
	struct perfring_soft_event *event = listen(false);

	place = 0;
	for (uint32_t i = 0; i < WALKS; i++) {
		framed.walk(i, raise_here);
		cr_assert_eq(drain(event, keep), 1);
	}
	perfring_soft_close(event);
	event = listen(by_tables);
	place = equal = 0;
	for (uint32_t i = 0; i < WALKS; i++) {
		subject->walk(i, raise_here);
		cr_assert_eq(drain(event, compare), 1);
	}
	perfring_soft_close(event);
	return equal;
}

Test(soft_unwind, chains_of_a_build_with_frame_pointers)
{
	uint32_t with, without, control;

	needs_raises();
	open_subject(&bare, BARE);
	open_subject(&framed, FRAMED);
	with = equal_chains(&framed, true);
	without = equal_chains(&bare, true);
	control = equal_chains(&bare, false);
	printf("of %d chains equal to those by frame pointers: %u with them, %u without; by frame pointers %u without\n",
	       WALKS, with, without, control);
	cr_assert_str_eq(expected[0] + strlen(expected[0]) - 5, "<walk");
	cr_assert_eq(with, (uint32_t)WALKS);
	cr_assert_geq(without, WALKS * 99 / 100);
	cr_assert_lt(control, WALKS / 2); /* so this can fail */
}

/* Back out of the C library, which has no frame pointers on most machines. */
Test(soft_unwind, through_the_c_library)
{
	struct perfring_soft_event *event;

	needs_raises();
	open_subject(&bare, BARE);
	event = listen(true);
	bare.sort(raise_here);
	cr_assert_eq(drain(event, keep_last), 1);
	cr_assert_str_eq(last, "compare<sort");
	perfring_soft_close(event);
}

/* What is opened later is without tables until the next load; a thread that joins later has them. */
static void *raise_in_thread(void *nothing)
{
	cr_assert_eq(perfring_soft_join(), 0);
	bare.walk(3, raise_here);
	return nothing;
}

Test(soft_unwind, threads_and_loads)
{
	struct perfring_soft_event *event;
	pthread_t thread;

	needs_raises();
	event = listen(true);
	open_subject(&bare, BARE);
	cr_assert_eq(perfring_soft_unwind_load(), 0);
	bare.walk(3, raise_here);
	cr_assert_eq(drain(event, keep_last), 1);
	memcpy(expected[0], last, sizeof(last));
	cr_assert_str_eq(last + strlen(last) - 5, "<walk");
	cr_assert_eq(pthread_create(&thread, NULL, raise_in_thread, NULL), 0);
	pthread_join(thread, NULL);
	cr_assert_eq(drain(event, keep_last), 1);
	cr_assert_str_eq(last, expected[0]);
	cr_assert_eq(perfring_soft_set_unwind(event, false), 0); /* and back */
	cr_assert_eq(perfring_soft_set_unwind(event, true), 0);
	bare.walk(3, raise_here);
	cr_assert_eq(drain(event, keep_last), 1);
	cr_assert_str_eq(last, expected[0]);
	perfring_soft_close(event);
}

Test(soft_unwind, refusals)
{
	struct perf_event_attr attr = {.size = sizeof(attr), .sample_period = 1, .sample_type = PERF_SAMPLE_IP};
	struct perfring_soft_event *event;

	point = perfring_soft_define("unwind");
	attr.type = point->type;
	attr.config = point->config;
	cr_assert_eq(perfring_soft_open(&event, &attr, PERFRING_SOFT_PROCESS, NULL), 0);
	cr_assert_eq(perfring_soft_set_unwind(event, true), -EINVAL);
	cr_assert_eq(perfring_soft_set_unwind(event, false), 0);
	perfring_soft_close(event);
	cr_assert_eq(perfring_soft_unwind_load(), SOFT_HAS_TABLES ? 0 : -EOPNOTSUPP);
	cr_assert_eq(perfring_soft_unwind_load(), SOFT_HAS_TABLES ? 0 : -EOPNOTSUPP); /* all is kept */
	cr_assert(!SOFT_HAS_TABLES || loaded.count > 1);
}

/* ---- other stacks ---- */

static bool with_context;

static UNTOUCHED void on_signal(int number, siginfo_t *what, void *context)
{
	struct perfring_soft_site site = {.context = with_context ? context : NULL};

	(void)number;
	(void)what;
	FRAME();
	perfring_soft_raise_at(point, 1, &site);
	FRAME();
}

static void raise_signal(void)
{
	syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), SIGUSR1);
}

static void install(int number, int flags)
{
	struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | flags};

	cr_assert_eq(sigaction(number, &action, NULL), 0);
}

static unsigned char *stack_make(void)
{
	unsigned char *low = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert_neq(low, MAP_FAILED);
	return low;
}

/* A handler's chain goes on in what it interrupted: on its own stack, and on an alternate one. */
Test(soft_unwind, signal_handlers)
{
	struct perfring_soft_event *event;
	stack_t alternate = {.ss_size = STACK}, none = {.ss_flags = SS_DISABLE};

	needs_raises();
	needs_far();
	if (IS_THREAD_SANITIZED)
		cr_skip_test("SKIP-ENV: sigaction: the thread sanitizer's own handler is between");
	open_subject(&bare, BARE);
	event = listen(true);
	alternate.ss_sp = stack_make();
	for (unsigned way = 0; way < 4; way++) {
		with_context = way & 1;
		cr_assert_eq(sigaltstack(way & 2 ? &alternate : &none, NULL), 0);
		install(SIGUSR1, way & 2 ? SA_ONSTACK : 0);
		bare.call(raise_signal);
		cr_assert_eq(drain(event, keep_last), 1);
		cr_assert_str_eq(last, "call", "way %u: %u frames", way, last_nr);
		bare.walk(3, raise_signal);
		cr_assert_eq(drain(event, keep_last), 1);
		cr_assert_str_eq(last + strlen(last) - 5, "<walk");
	}
	cr_assert_eq(sigaltstack(&none, NULL), 0);
	munmap(alternate.ss_sp, STACK);
	perfring_soft_close(event);
}

static ucontext_t to_main, to_coroutine;
static void (*in_coroutine)(void);

static UNTOUCHED void coroutine(void)
{
	FRAME();
	in_coroutine();
	FRAME();
}

static void walk_and_raise(void)
{
	bare.walk(3, raise_here);
}

static void call_and_raise(void)
{
	bare.call(raise_here);
}

/* On a stack of which only sp is known, between two pages that nobody may read: the chain ends there by itself. */
Test(soft_unwind, small_coroutine_stacks)
{
	enum {
		SMALL = 16384,
		PAGE = 4096,
	};
	struct perfring_soft_event *event;
	unsigned char *area = stack_make();

	needs_raises();
	needs_far();
	if (IS_SANITIZED)
		cr_skip_test("SKIP-ENV: swapcontext: sanitizers follow no stack but their own");
	open_subject(&bare, BARE);
	event = listen(true);
	cr_assert_eq(mprotect(area, PAGE, PROT_NONE), 0);
	cr_assert_eq(mprotect(area + PAGE + SMALL, PAGE, PROT_NONE), 0);
	for (unsigned way = 0; way < 2; way++) {
		in_coroutine = way ? walk_and_raise : call_and_raise;
		cr_assert_eq(getcontext(&to_coroutine), 0);
		to_coroutine.uc_stack.ss_sp = area + PAGE;
		to_coroutine.uc_stack.ss_size = SMALL;
		to_coroutine.uc_link = &to_main;
		makecontext(&to_coroutine, coroutine, 0);
		cr_assert_eq(swapcontext(&to_main, &to_coroutine), 0);
		cr_assert_eq(drain(event, keep_last), 1);
		cr_assert_str_eq(last + strlen(last) - 4, way ? "walk" : "call");
		cr_assert_lt(last_nr, 64);
	}
	munmap(area, STACK);
	perfring_soft_close(event);
}

/* Registers that are nothing: no fault, whatever they say. */
Test(soft_unwind, wild_registers)
{
	static const uint64_t places[] = {
		0, 1, 8, 4096, 0x7fffffffeff8, UINT64_C(0x7fffffffffffffff), UINT64_MAX - 7, UINT64_MAX};
	struct perfring_soft_event *event;
	struct perfring_soft_site site;
	ucontext_t context;
	uint32_t samples = 0;

	needs_raises();
	open_subject(&bare, BARE);
	event = listen(true);
	for (unsigned i = 0; i < 8 * 8 * 4; i++) {
		uint64_t ip, top = perfring__soft_self->stack_high;

		memcpy(&ip, &bare.walk, sizeof(ip));
		memset(&context, 0, sizeof(context));
#if defined(__x86_64__)
		context.uc_mcontext.gregs[REG_RIP] = (greg_t)(i & 1 ? ip + i % 61 : places[i / 4 % 8]);
		context.uc_mcontext.gregs[REG_RSP] = (greg_t)(i & 2 ? top - i % 40 : places[i / 4 % 8]);
		context.uc_mcontext.gregs[REG_RBP] = (greg_t)(i & 2 ? places[i / 32] : top - i % 40);
#endif
		memset(&site, 0, sizeof(site));
		site.context = &context;
		perfring_soft_raise_at(point, 1, &site);
		samples += drain(event, NULL);
	}
	cr_assert_eq(samples, 8u * 8 * 4);
	perfring_soft_close(event);
}

#if defined(__x86_64__)
/* In the innermost frame a CFA may be in any register. */
Test(soft_unwind, a_cfa_in_another_register)
{
	struct perfring_soft_event *event;
	void (*cipher)(void);

	needs_raises();
	if (IS_THREAD_SANITIZED)
		cr_skip_test("SKIP-ENV: sigaction: the thread sanitizer's own handler is between");
	open_subject(&bare, BARE);
	take(&cipher, bare.module, "subject_cipher");
	event = listen(true);
	install(SIGTRAP, 0);
	with_context = true;
	bare.call(cipher);
	cr_assert_eq(drain(event, keep_last), 1);
	cr_assert_str_eq(last, "cipher<call");
	cr_assert_gt(last_nr, 5);
	perfring_soft_close(event);
}

/* Code that is in no object has a frame pointer, as a JIT's. */
Test(soft_unwind, through_code_without_tables)
{
	static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x90, 0x5d, 0xc3};
	unsigned char *jit = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct perfring_soft_event *event;
	static void (*made)(void (*)(void));

	needs_raises();
	cr_assert_neq(jit, MAP_FAILED);
	memcpy(jit, code, sizeof(code));
	memcpy(&made, &jit, sizeof(jit));
	open_subject(&bare, BARE);
	event = listen(true);
	in_coroutine = raise_here;
	bare.call(call_and_raise); /* without it */
	cr_assert_eq(drain(event, keep_last), 1);
	cr_assert_str_eq(last, "call<call");
	made(call_and_raise);
	cr_assert_eq(drain(event, keep_last), 1);
	cr_assert_str_eq(last, "call");
	cr_assert_gt(last_nr, 6);
	perfring_soft_close(event);
	munmap(jit, 4096);
}
#endif

/* ---- handlers in the middle of a walk ---- */

static void on_nested(int number)
{
	(void)number;
	bare.walk(5, raise_here);
}

static void strike_nested(const char *name)
{
	if (strcmp(name, "chain_begun"))
		return;
	struck = NULL;
	syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), SIGUSR2);
}

/* A handler that raises the same event while its thread's frames are in use: both chains are right. */
Test(soft_unwind, a_raise_in_a_walk)
{
	struct perfring_soft_event *event;
	char inner[1024];

	needs_raises();
	open_subject(&bare, BARE);
	cr_assert_neq(signal(SIGUSR2, on_nested), SIG_ERR);
	event = listen(true);
	place = 0;
	bare.walk(5, raise_here);
	bare.walk(3, raise_here);
	cr_assert_eq(drain(event, keep), 2);
	memcpy(inner, expected[0], sizeof(inner));
	struck = strike_nested;
	place = 0;
	bare.walk(3, raise_here);
	cr_assert_null(struck);
	cr_assert_eq(drain(event, keep_last), 2);
	/* The handler's record is the first; its chain goes on in what it interrupted. */
	cr_assert_str_eq(last, expected[1]);
	place = equal = 0;
	struck = strike_nested;
	bare.walk(3, raise_here);
	cr_assert_eq(drain(event, keep), 2);
	cr_assert_eq(strncmp(expected[0], inner, strlen(inner)), 0, "%s, not %s", expected[0], inner);
	perfring_soft_close(event);
}

/* ---- dlopen and dlclose beside walks ---- */

static sem_t walk_waits, walk_goes;
static uint32_t load_ended, load_published;

static void strike_wait(const char *name)
{
	if (strcmp(name, "chain_begun"))
		return;
	struck = NULL;
	sem_post(&walk_waits);
	while (sem_wait(&walk_goes))
		;
}

static void *walk_slowly(void *nothing)
{
	cr_assert_eq(perfring_soft_join(), 0);
	struck = strike_wait;
	framed.walk(3, raise_here);
	return nothing;
}

static void strike_published(const char *name)
{
	if (!strcmp(name, "tables_published"))
		PERFRING_STORE_RELEASE(&load_published, 1);
}

static void *load_now(void *nothing)
{
	struck = strike_published;
	cr_assert_eq(perfring_soft_unwind_load(), 0);
	PERFRING_STORE_RELEASE(&load_ended, 1);
	return nothing;
}

/* The race is forced: a walk has taken the tables, of which an object is unloaded then, and a load has published others.  It waits
 * until the walk has ended, which uses the rows of what is gone. */
Test(soft_unwind, a_load_waits_for_a_walk)
{
	struct perfring_soft_event *event;
	struct soft_tables *before;
	pthread_t walker, loader;

	needs_raises();
	open_subject(&bare, BARE);
	open_subject(&framed, FRAMED);
	event = listen(true);
	sem_init(&walk_waits, 0, 0);
	sem_init(&walk_goes, 0, 0);
	before = published;
	cr_assert_eq(pthread_create(&walker, NULL, walk_slowly, NULL), 0);
	while (sem_wait(&walk_waits))
		;
	cr_assert_eq(dlclose(bare.module), 0);
	cr_assert_eq(pthread_create(&loader, NULL, load_now, NULL), 0);
	while (!PERFRING_LOAD_ACQUIRE(&load_published))
		sched_yield();
	cr_assert_neq(PERFRING_LOAD_ACQUIRE(&published), before);
	for (int i = 0; i < 1000; i++) { /* it must not end, however long it is given */
		cr_assert_eq(PERFRING_LOAD_ACQUIRE(&load_ended), 0);
		sched_yield();
	}
	sem_post(&walk_goes);
	pthread_join(walker, NULL);
	pthread_join(loader, NULL);
	cr_assert_eq(load_ended, 1);
	cr_assert_eq(drain(event, keep_last), 1);
	cr_assert_str_eq(last + strlen(last) - 5, "<walk");
	perfring_soft_close(event);
}

static uint32_t storm_over;

static void *walk_in_storm(void *nothing)
{
	cr_assert_eq(perfring_soft_join(), 0);
	for (uint32_t i = 0; !PERFRING_LOAD(&storm_over); i++)
		framed.walk(i, raise_here);
	return nothing;
}

/* Objects come and go while threads raise and tick; what is raised in code that has no tables yet ends early, no more. */
Test(soft_unwind, objects_that_come_and_go)
{
	const uint64_t clock = PERF_COUNT_SW_TASK_CLOCK;
	struct perfring_soft_event *event, *ticks;
	uint32_t samples = 0, loads = IS_SANITIZED ? 40 : 200;
	pthread_t threads[2];

	needs_raises();
	open_subject(&framed, FRAMED);
	event = listen(true);
	ticks = open_event(PERF_TYPE_SOFTWARE, clock, 100000, true);
	for (int i = 0; i < 2; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, walk_in_storm, NULL), 0);
	for (uint32_t i = 0; i < loads; i++) {
		open_subject(&bare, BARE);
		bare.walk(i, raise_here);
		cr_assert_eq(perfring_soft_unwind_load(), 0);
		bare.walk(i, raise_here);
		dlclose(bare.module);
		if (i % 2)
			cr_assert_eq(perfring_soft_unwind_load(), 0);
		samples += drain(event, NULL) + drain(ticks, NULL);
	}
	PERFRING_STORE(&storm_over, 1);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	cr_assert_gt(samples, 2 * loads);
	perfring_soft_close(event);
	perfring_soft_close(ticks);
}

/* The loader names no objects of other namespaces: chains go through their code by frame pointers. */
Test(soft_unwind, another_namespace)
{
	struct perfring_soft_event *event;
	struct subject other;
	char here[sizeof(last)];

	needs_raises();
	if (IS_SANITIZED)
		cr_skip_test("SKIP-ENV: dlmopen: a sanitizer's runtime is in one namespace: the plain build runs this");
	open_subject(&framed, FRAMED);
	other.module = dlmopen(LM_ID_NEWLM, FRAMED, RTLD_NOW | RTLD_LOCAL);
	find_subject(&other);
	cr_assert_neq(other.walk, framed.walk);
	event = listen(true);
	cr_assert_eq(perfring_soft_unwind_load(), 0);
	for (uint32_t i = 0; i < loaded.count; i++)
		cr_assert((uintptr_t)other.walk - loaded.array[i].start >= loaded.array[i].end - loaded.array[i].start);
	for (uint32_t i = 0; i < 100; i++) {
		framed.walk(i, raise_here);
		cr_assert_eq(drain(event, keep_last), 1);
		strcpy(here, last);
		other.walk(i, raise_here);
		cr_assert_eq(drain(event, keep_last), 1);
		cr_assert_str_eq(last, here);
	}
	perfring_soft_close(event);
}

/* ---- forks ---- */

Test(soft_unwind, forks)
{
	struct perfring_soft_event *event;
	int status;
	pid_t child;

	needs_raises();
	open_subject(&bare, BARE);
	event = listen(true);
	fflush(NULL);
	child = fork();
	if (!child) {
		int good = !perfring_soft_unwind_load();

		is_child = true;
		perfring_soft_close(event);
		point = perfring_soft_define("unwind");
		event = listen(true);
		bare.walk(3, raise_here);
		good = good && drain(event, keep_last) == 1 && !strcmp(last + strlen(last) - 5, "<walk");
		perfring_soft_close(event);
		_exit(good ? 0 : 1);
	}
	cr_assert_gt(child, 0);
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFEXITED(status) && !WEXITSTATUS(status), "%x", (unsigned)status);
	bare.walk(3, raise_here);
	cr_assert_eq(drain(event, keep_last), 1);
	perfring_soft_close(event);
}

/* ---- system calls ---- */

/* On the thread's own stack none is made, and nothing is allocated: strict seccomp would kill. */
Test(soft_unwind, makes_no_system_call)
{
	struct perfring_soft_event *event;
	int status;
	pid_t child;

	needs_raises();
	if (IS_SANITIZED)
		cr_skip_test("SKIP-ENV: prctl(PR_SET_SECCOMP): a sanitizer makes system calls of its own");
	open_subject(&bare, BARE);
	fflush(NULL);
	child = fork();
	if (!child) {
		struct perf_event_attr attr = {.size = sizeof(attr), .sample_period = 1};

		point = perfring_soft_define("unwind");
		attr.type = point->type;
		attr.config = point->config;
		attr.sample_type = PERF_SAMPLE_CALLCHAIN; /* a clock may be slow */
		if (perfring_soft_open(&event, &attr, PERFRING_SOFT_PROCESS, NULL) ||
		    perfring_soft_set_unwind(event, true) || perfring_soft_map(event, PAGES, -1))
			syscall(SYS_exit, 2);
		if (prctl(PR_SET_SECCOMP, 1) < 0) /* strict: read, write, exit, sigreturn */
			syscall(SYS_exit, 3);
		for (uint32_t i = 0; i < 64; i++)
			bare.walk(i, raise_here);
		syscall(SYS_exit, PERFRING_LOAD(&perfring__soft_self->inside) / SOFT_SECTION >= 64 ? 0 : 4);
	}
	cr_assert_gt(child, 0);
	cr_assert_eq(waitpid(child, &status, 0), child);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 3)
		cr_skip_test("SKIP-ENV: prctl(PR_SET_SECCOMP): a kernel with seccomp");
	cr_assert(WIFEXITED(status) && !WEXITSTATUS(status), "%x", (unsigned)status);
}

/* ---- ticks ---- */

static uint32_t ticks, right;

static void judge_tick(const struct chain *chain)
{
	char text[1024];

	name_chain(chain, text, sizeof(text));
	if (!strstr(text, "burn"))
		ticks += !*text ? 0 : 1; /* outside: before and after */
	else
		ticks++;
	right += !strcmp(text, "spin<inner<middle<burn");
	if (*text && strcmp(text, "spin<inner<middle<burn") && ticks - right < 6)
		printf("a tick: %s\n", text);
}

static void *burn_in_thread(void *of)
{
	cr_assert_eq(perfring_soft_join(), 0);
	((struct subject *)of)->burn(UINT64_C(1000000000));
	return NULL;
}

/* Three threads and the one that opened: by the timers, on alternate stacks that are perfring's. */
static void burn_all(struct subject *subject)
{
	const uint64_t clock = PERF_COUNT_SW_TASK_CLOCK;
	struct perfring_soft_event *event = open_event(PERF_TYPE_SOFTWARE, clock, 100000, true);
	pthread_t threads[3];

	ticks = right = 0;
	for (int i = 0; i < 3; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, burn_in_thread, subject), 0);
	subject->burn(UINT64_C(1000000000));
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	drain(event, judge_tick);
	perfring_soft_close(event);
	printf("%u of %u ticks have the chain\n", right, ticks);
	cr_assert_gt(ticks, 100);
	cr_assert_geq(right * 100, ticks * 99);
}

Test(soft_unwind, ticks_without_frame_pointers)
{
	needs_tables();
	open_subject(&bare, BARE);
	burn_all(&bare);
}

Test(soft_unwind, ticks_with_frame_pointers)
{
	needs_tables();
	open_subject(&framed, FRAMED);
	burn_all(&framed);
}
