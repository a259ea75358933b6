/* range.h - sysfs's lists of CPUs and nodes: "0-3,6".
 *
 * event/, file/topology.c and rb/cpus.c read lists by it.
 */
#ifndef PERFRING_OS_RANGE_H
#define PERFRING_OS_RANGE_H

#include <stdint.h>

/* Takes the next range, and moves *list after it and its comma.  list: without the newline that sysfs has at its end, which
 * perfring__os_file_read drops.  Returns 1, 0 at the end, or -EINVAL for another text or a number above 2^32 - 1.  May change
 * errno. */
int perfring__os_range_next(const char **list, uint32_t *first, uint32_t *last);

#endif
