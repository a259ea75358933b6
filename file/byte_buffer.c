/* byte_buffer.c - bytes appended to memory that grows.
 *
 * An error (-ENOMEM) is kept in the buffer: callers put all they have, then look once.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "os/small_file.h"
#include "byte_buffer.h"

static int reserve(struct perfring_byte_buffer *buffer, size_t size)
{
	size_t capacity = buffer->capacity ? buffer->capacity : 1024;
	unsigned char *bytes;

	if (buffer->error || size <= buffer->capacity - buffer->used)
		return buffer->error;
	while (capacity - buffer->used < size && capacity <= SIZE_MAX / 2)
		capacity *= 2;
	bytes = capacity - buffer->used < size ? NULL : realloc(buffer->bytes, capacity);
	if (!bytes)
		return buffer->error = -ENOMEM;
	buffer->bytes = bytes;
	buffer->capacity = capacity;
	return 0;
}

void perfring__byte_buffer_put(struct perfring_byte_buffer *buffer, const void *bytes, size_t size)
{
	if (!size || reserve(buffer, size))
		return;
	memcpy(buffer->bytes + buffer->used, bytes, size);
	buffer->used += size;
}

void perfring__byte_buffer_set(struct perfring_byte_buffer *buffer, size_t at, const void *bytes, size_t size)
{
	if (!buffer->error)
		memcpy(buffer->bytes + at, bytes, size);
}

void perfring__byte_buffer_put_u32(struct perfring_byte_buffer *buffer, uint32_t value)
{
	perfring__byte_buffer_put(buffer, &value, sizeof(value));
}

void perfring__byte_buffer_put_u64(struct perfring_byte_buffer *buffer, uint64_t value)
{
	perfring__byte_buffer_put(buffer, &value, sizeof(value));
}

void perfring__byte_buffer_put_string(struct perfring_byte_buffer *buffer, const char *text)
{
	static const char zeros[64];
	size_t length = strlen(text), padded = (length / 64 + 1) * 64;

	if (padded > UINT32_MAX) {
		buffer->error = -ENOMEM;
		return;
	}
	perfring__byte_buffer_put_u32(buffer, (uint32_t)padded);
	perfring__byte_buffer_put(buffer, text, length);
	perfring__byte_buffer_put(buffer, zeros, padded - length);
}

int perfring__byte_buffer_put_file(struct perfring_byte_buffer *buffer, const char *path)
{
	char *text;
	size_t size;
	int error = perfring__os_file_load(path, &text, &size);

	if (error)
		return error;
	perfring__byte_buffer_put(buffer, text, size);
	free(text);
	return buffer->error;
}

void perfring__byte_buffer_close(struct perfring_byte_buffer *buffer)
{
	free(buffer->bytes);
	memset(buffer, 0, sizeof(*buffer));
}
