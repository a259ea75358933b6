/* range.c - sysfs's lists of CPUs and nodes: "0-3,6".
 *
 * No state; what is no list is -EINVAL.
 */
#include "range.h"

#include <errno.h>
#include <stdlib.h>

int perfring__os_range_next(const char **list, uint32_t *first, uint32_t *last)
{
	unsigned long long low, high;
	char *end;

	if (!**list)
		return 0;
	if (**list < '0' || **list > '9')
		return -EINVAL;
	low = high = strtoull(*list, &end, 10);
	if (*end == '-') {
		if (end[1] < '0' || end[1] > '9')
			return -EINVAL;
		high = strtoull(end + 1, &end, 10);
	}
	if (low > high || high > UINT32_MAX || (*end && *end != ','))
		return -EINVAL;
	*first = (uint32_t)low;
	*last = (uint32_t)high;
	*list = *end ? end + 1 : end;
	return 1;
}
