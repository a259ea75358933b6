/* array.h - arrays that grow.
 *
 * For lists that grow by one element: rooms of the library that allocate.  Not for signal handlers.
 */
#ifndef PERFRING_OS_ARRAY_H
#define PERFRING_OS_ARRAY_H

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Resizes an array.  array: the address of the pointer to elements of `size` bytes each.  Returns 0; or -ENOMEM, without a
 * change. */
static inline int perfring__os_array_resize(void *array, size_t capacity, size_t size)
{
	void *elements;

	memcpy(&elements, array, sizeof(elements));
	elements = reallocarray(elements, capacity, size);
	if (!elements)
		return -ENOMEM;
	memcpy(array, &elements, sizeof(elements));
	return 0;
}

/* Makes space for one element more than `count`.  Returns as perfring__os_array_resize. */
static inline int perfring__os_array_grow(void *array, uint32_t count, uint32_t *capacity, size_t size)
{
	uint32_t wanted = *capacity ? 2 * *capacity : 16;

	if (count < *capacity)
		return 0;
	if (*capacity > UINT32_MAX / 2 || perfring__os_array_resize(array, wanted, size))
		return -ENOMEM;
	*capacity = wanted;
	return 0;
}

#endif
