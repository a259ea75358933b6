/* runner.c - runs tests where Criterion cannot: each in a forked child, and nothing passes by accident.
 *
 * A child says how it ended in memory it shares with the runner, so an _exit(0) in mid test is no pass.  The child is
 * left by exit: leak and race reports that come then are failures too.
 */
#include <errno.h>
#include <fnmatch.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "test.h"

enum ending {
	RUNNING,
	ENDED,
	FAILED,
	SKIPPED,
};

struct outcome {
	enum ending ending;
	char text[1024];
};

static struct outcome *outcome;
static struct test_case *tests;

void test_add(struct test_case *test)
{
	struct test_case **last = &tests;

	while (*last)
		last = &(*last)->next;
	*last = test;
}

void test_fail(const char *file, int line, const char *what, const char *format, ...)
{
	va_list arguments;
	int length = snprintf(outcome->text, sizeof(outcome->text), "%s:%d: Assertion Failed: %s:", file, line, what);

	va_start(arguments, format);
	if (length > 0 && (size_t)length < sizeof(outcome->text))
		vsnprintf(outcome->text + length, sizeof(outcome->text) - (size_t)length, format, arguments);
	va_end(arguments);
	outcome->ending = FAILED;
	fflush(NULL);
	_exit(1);
}

void test_skip(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(outcome->text, sizeof(outcome->text), format, arguments);
	va_end(arguments);
	outcome->ending = SKIPPED;
	fflush(NULL);
	_exit(0);
}

static const struct test_case *suite_of(const struct test_case *test)
{
	const struct test_case *suite;

	for (suite = tests; suite; suite = suite->next)
		if (!suite->run && strcmp(suite->suite, test->suite) == 0)
			return suite;
	return NULL;
}

__attribute__((noreturn)) static void run_child(const struct test_case *test, const struct test_case *suite)
{
	if (suite && suite->options.init)
		suite->options.init();
	if (test->options.init)
		test->options.init();
	test->run();
	if (test->options.fini)
		test->options.fini();
	if (suite && suite->options.fini)
		suite->options.fini();
	outcome->ending = ENDED;
	exit(0);
}

/* Waits for the child at most `seconds`; what it left running goes with it.  Returns false when the time was up. */
static bool wait_child(pid_t child, double seconds, int *status)
{
	struct timespec limit = {(time_t)seconds, 0};
	sigset_t set;
	bool in_time = true;
	pid_t ended;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	limit.tv_nsec = (long)((seconds - (double)limit.tv_sec) * 1e9);
	while ((ended = waitpid(child, status, WNOHANG)) == 0) {
		if (sigtimedwait(&set, NULL, &limit) < 0 && errno == EAGAIN) {
			in_time = false;
			kill(-child, SIGKILL);
			ended = waitpid(child, status, 0);
			break;
		}
	}
	kill(-child, SIGKILL);
	return in_time && ended == child;
}

/* Whether the child ended as the test says it should. */
static bool is_expected(const struct test_case *test, int status)
{
	if (test->options.signal)
		return WIFSIGNALED(status) && WTERMSIG(status) == test->options.signal;
	if (test->options.exit_code)
		return WIFEXITED(status) && WEXITSTATUS(status) == test->options.exit_code &&
		       outcome->ending == RUNNING;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 && outcome->ending == ENDED;
}

int main(int argc, char **argv)
{
	unsigned tested = 0, passing = 0, failing = 0, crashing = 0, skipped = 0;
	const char *filter = "*";
	const struct test_case *test;
	pid_t runner = getpid();
	sigset_t set, before;

	if (argc == 3 && strcmp(argv[1], "--filter") == 0) {
		filter = argv[2];
	} else if (argc != 1) {
		fprintf(stderr, "usage: %s [--filter SUITE or SUITE::NAME, shell patterns]\n", argv[0]);
		return 2;
	}
	outcome = mmap(NULL, sizeof(*outcome), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (outcome == MAP_FAILED) {
		perror("runner: mmap");
		return 2;
	}
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, &before);
	for (test = tests; test; test = test->next) {
		const struct test_case *suite = suite_of(test);
		double timeout = test->options.timeout;
		char name[256];
		int status = 0;
		bool in_time;
		pid_t child;

		snprintf(name, sizeof(name), "%s::%s", test->suite, test->name);
		if (!test->run || (fnmatch(filter, test->suite, 0) != 0 && fnmatch(filter, name, 0) != 0))
			continue;
		if (test->options.disabled || (suite && suite->options.disabled)) {
			fprintf(stderr, "[SKIP] %s: disabled\n", name);
			skipped++;
			continue;
		}
		if (timeout <= 0 && suite)
			timeout = suite->options.timeout;
		if (timeout <= 0)
			timeout = 120; /* as Criterion is told to */
		outcome->ending = RUNNING;
		outcome->text[0] = '\0';
		fflush(NULL);
		child = fork();
		if (child == 0) {
			/* What kills the runner leaves no test behind that spins for ever. */
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			if (getppid() != runner)
				_exit(1);
			setpgid(0, 0);
			sigprocmask(SIG_SETMASK, &before, NULL);
			run_child(test, suite);
		}
		if (child < 0) {
			perror("runner: fork");
			return 2;
		}
		setpgid(child, child);
		in_time = wait_child(child, timeout, &status);
		outcome->text[sizeof(outcome->text) - 1] = '\0';
		if (in_time && outcome->ending == SKIPPED && WIFEXITED(status) && WEXITSTATUS(status) == 0) {
			fprintf(stderr, "[SKIP] %s:%s\n", name, outcome->text);
			skipped++;
			continue;
		}
		tested++;
		if (in_time && is_expected(test, status)) {
			fprintf(stderr, "[PASS] %s\n", name);
			passing++;
			continue;
		}
		failing++;
		fprintf(stderr, "[FAIL] %s: %s\n", name, outcome->text);
		if (!in_time)
			fprintf(stderr, "       it ran longer than %g s\n", timeout);
		else if (WIFSIGNALED(status))
			fprintf(stderr, "       it ended by signal %d (%s)\n", WTERMSIG(status),
				strsignal(WTERMSIG(status)));
		else if (outcome->ending != FAILED)
			fprintf(stderr, "       it ended with exit status %d\n", WEXITSTATUS(status));
		crashing += in_time && WIFSIGNALED(status);
	}
	fprintf(stderr, "Tested: %u | Passing: %u | Failing: %u | Crashing: %u | Skipped: %u\n", tested, passing,
		failing, crashing, skipped);
	if (failing || tested + skipped == 0)
		return 1;
	return tested ? 0 : 77;
}

/* A thread that ends by the raw system call leaves behind what the C library keeps of its destructors (soft/thread.c). */
const char *__lsan_default_suppressions(void);
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void)
{
	return "leak:__cxa_thread_atexit_impl\n";
}
