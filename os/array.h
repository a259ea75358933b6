/* array.h - arrays that grow: space for one element more. */
#ifndef PERFRING_OS_ARRAY_H
#define PERFRING_OS_ARRAY_H

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* array: the address of the pointer to the elements, of `size` bytes each, of which there are `count`.  Returns 0 or
 * -ENOMEM: nothing has changed then. */
static inline int perfring_os_array_grow(void *array, uint32_t count, uint32_t *capacity, size_t size)
{
	uint32_t wanted = *capacity ? 2 * *capacity : 16;
	void *elements;

	if (count < *capacity)
		return 0;
	memcpy(&elements, array, sizeof(elements));
	elements = reallocarray(elements, wanted, size);
	if (!elements)
		return -ENOMEM;
	memcpy(array, &elements, sizeof(elements));
	*capacity = wanted;
	return 0;
}

#endif
