/* byte_buffer.c - bytes put one behind the other, in memory that grows. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "os/file.h"
#include "byte_buffer.h"

static int make_room(struct perfring_byte_buffer *pile, size_t size)
{
	size_t room = pile->room ? pile->room : 1024;
	unsigned char *bytes;

	if (pile->error || size <= pile->room - pile->used)
		return pile->error;
	while (room - pile->used < size && room <= SIZE_MAX / 2)
		room *= 2;
	bytes = room - pile->used < size ? NULL : realloc(pile->bytes, room);
	if (!bytes)
		return pile->error = -ENOMEM;
	pile->bytes = bytes;
	pile->room = room;
	return 0;
}

void perfring_byte_buffer_put(struct perfring_byte_buffer *pile, const void *bytes, size_t size)
{
	if (!size || make_room(pile, size))
		return;
	memcpy(pile->bytes + pile->used, bytes, size);
	pile->used += size;
}

void perfring_byte_buffer_put_half(struct perfring_byte_buffer *pile, uint32_t value)
{
	perfring_byte_buffer_put(pile, &value, sizeof(value));
}

void perfring_byte_buffer_put_word(struct perfring_byte_buffer *pile, uint64_t value)
{
	perfring_byte_buffer_put(pile, &value, sizeof(value));
}

void perfring_byte_buffer_put_string(struct perfring_byte_buffer *pile, const char *text)
{
	static const char zeros[64];
	size_t length = strlen(text), padded = (length / 64 + 1) * 64;

	if (padded > UINT32_MAX) {
		pile->error = -ENOMEM;
		return;
	}
	perfring_byte_buffer_put_half(pile, (uint32_t)padded);
	perfring_byte_buffer_put(pile, text, length);
	perfring_byte_buffer_put(pile, zeros, padded - length);
}

int perfring_byte_buffer_put_file(struct perfring_byte_buffer *pile, const char *path)
{
	char *text;
	size_t size;
	int error = perfring_os_file_load(path, &text, &size);

	if (error)
		return error;
	perfring_byte_buffer_put(pile, text, size);
	free(text);
	return pile->error;
}

void perfring_byte_buffer_close(struct perfring_byte_buffer *pile)
{
	free(pile->bytes);
	memset(pile, 0, sizeof(*pile));
}
