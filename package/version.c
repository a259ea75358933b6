/* version.c - which perfring this is. */
#include <perfring/base.h>

const char *perfring_version(void)
{
	return PERFRING_VERSION;
}
