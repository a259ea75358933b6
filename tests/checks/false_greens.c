/* false_greens.c - tests that fail while Criterion says they pass: each is run by CMake's own test
 * function, which must see the failure.  One suite for each way. */
#include "test.h"

#include <stdlib.h>
#include <unistd.h>

Test(left_early, test)
{
	_exit(0);
}

static void assert_at_the_end(void)
{
	cr_assert(false, "too late");
}

Test(late_assert, test, .fini = assert_at_the_end)
{
}

Test(leak, test)
{
	void *volatile memory = malloc(77);

	memory = NULL;
	(void)memory;
}

Test(plain, test)
{
	cr_assert(false, "as it should be");
}
