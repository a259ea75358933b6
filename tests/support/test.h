/* test.h - what every test file includes: Criterion, or our own small runner where Criterion cannot go.
 *
 * One style: Test(suite, name, .timeout = 30), the classic cr_assert*, cr_skip_test.  No asserts in .fini; a forked
 * child leaves by _exit(code) and the parent asserts on its status.
 *
 * With TEST_RUNNER (sanitizers, other architectures) the same words mean tests/support/runner.c: it forks each test, and
 * a test passes only by coming to its end, or by the .signal or .exit_code that it names.
 */
#ifndef TEST_H
#define TEST_H

#ifndef TEST_RUNNER

#include <criterion/criterion.h>

#else

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct test_options {
	int line;
	double timeout; /* seconds; 0: the suite's, else 120 */
	int signal;
	int exit_code;
	int disabled;
	const char *description;
	void (*init)(void);
	void (*fini)(void);
};

struct test_case {
	const char *suite;
	const char *name;
	void (*run)(void); /* NULL: what follows holds for the suite */
	struct test_options options;
	struct test_case *next;
};

void test_add(struct test_case *test);

/* Both end the test, from any of its threads. */
__attribute__((noreturn, format(printf, 4, 5))) void test_fail(const char *file, int line, const char *what,
							       const char *format, ...);
__attribute__((noreturn, format(printf, 1, 2))) void test_skip(const char *format, ...);

#define TEST_ADD_(id, suite_, name_, run_, ...) \
	static struct test_case id##_case = {suite_, name_, run_, {__VA_ARGS__}, NULL}; \
	__attribute__((constructor)) static void id##_add(void) \
	{ \
		test_add(&id##_case); \
	}

#define TestSuite(suite, ...) TEST_ADD_(suite##_suite, #suite, "", NULL, .line = __LINE__, __VA_ARGS__)

#define Test(suite, name, ...) \
	static void suite##_##name##_test(void); \
	TEST_ADD_(suite##_##name, #suite, #name, suite##_##name##_test, .line = __LINE__, __VA_ARGS__) \
	static void suite##_##name##_test(void)

#define TEST_CHECK_(condition, what, ...) ((condition) ? (void)0 : test_fail(__FILE__, __LINE__, what, " " __VA_ARGS__))
#define TEST_COMPARE_(a, op, b, ...) TEST_CHECK_((a)op(b), #a " " #op " " #b, __VA_ARGS__)

#define cr_assert(condition, ...) TEST_CHECK_(condition, #condition, __VA_ARGS__)
#define cr_assert_not(condition, ...) TEST_CHECK_(!(condition), "not " #condition, __VA_ARGS__)
#define cr_assert_eq(a, b, ...) TEST_COMPARE_(a, ==, b, __VA_ARGS__)
#define cr_assert_neq(a, b, ...) TEST_COMPARE_(a, !=, b, __VA_ARGS__)
#define cr_assert_lt(a, b, ...) TEST_COMPARE_(a, <, b, __VA_ARGS__)
#define cr_assert_leq(a, b, ...) TEST_COMPARE_(a, <=, b, __VA_ARGS__)
#define cr_assert_gt(a, b, ...) TEST_COMPARE_(a, >, b, __VA_ARGS__)
#define cr_assert_geq(a, b, ...) TEST_COMPARE_(a, >=, b, __VA_ARGS__)
#define cr_assert_null(a, ...) TEST_CHECK_((a) == NULL, #a " is NULL", __VA_ARGS__)
#define cr_assert_not_null(a, ...) TEST_CHECK_((a) != NULL, #a " is not NULL", __VA_ARGS__)
#define cr_assert_str_eq(a, b, ...) TEST_CHECK_(strcmp(a, b) == 0, #a " is the text " #b, __VA_ARGS__)
#define cr_assert_str_neq(a, b, ...) TEST_CHECK_(strcmp(a, b) != 0, #a " is not the text " #b, __VA_ARGS__)
#define cr_assert_fail(...) test_fail(__FILE__, __LINE__, "failed", " " __VA_ARGS__)
#define cr_skip_test(...) test_skip(" " __VA_ARGS__)

#endif

#endif
