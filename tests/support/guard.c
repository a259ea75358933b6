/* guard.c - linked into every Criterion test: leaving a test by _exit(0) is no pass, though Criterion takes it for one.
 * A test ends with the program that runs it.
 *
 * Criterion runs each test in a program of its own (an exec, so the constructor runs there too).  A child that the test
 * forks has another pid and leaves as it likes.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

static pid_t tested;

__attribute__((constructor)) static void remember(void)
{
	tested = getpid();
	/* What kills Criterion leaves no test behind that spins for ever. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
}

__attribute__((noreturn)) void __real__exit(int status);
__attribute__((noreturn)) void __real_exit(int status);
__attribute__((noreturn)) void __wrap__exit(int status);
__attribute__((noreturn)) void __wrap_exit(int status);

static void check(void)
{
	if (getpid() != tested)
		return;
	fprintf(stderr, "false green: a test left by exit\n");
	abort();
}

void __wrap__exit(int status)
{
	check();
	__real__exit(status);
}

void __wrap_exit(int status)
{
	check();
	__real_exit(status);
}

/* A thread that ends by the raw system call leaves behind what the C library keeps of its destructors (soft/thread.c). */
const char *__lsan_default_suppressions(void);
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void)
{
	return "leak:__cxa_thread_atexit_impl\n";
}

/* Criterion starts libgit2 in each test's program, which reads every certificate that the machine trusts: a tenth of what an
 * empty test costs.  What it wants of it, the difference of two values, is of assertions that no test here uses (test.h). */
int git_libgit2_init(void);
__attribute__((visibility("default"))) int git_libgit2_init(void)
{
	return 1;
}

int git_libgit2_shutdown(void);
__attribute__((visibility("default"))) int git_libgit2_shutdown(void)
{
	return 0;
}
