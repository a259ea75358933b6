/* byte_buffer.h - bytes put one after the other, in memory that grows. */
#ifndef PERFRING_FILE_BYTE_BUFFER_H
#define PERFRING_FILE_BYTE_BUFFER_H

#include <stddef.h>
#include <stdint.h>

struct perfring_byte_buffer {
	unsigned char *bytes;
	size_t used, capacity;
	int error;  /* the first -ENOMEM: nothing more is put from then on */
	int unread; /* the first error of a file that could not be read and was left out */
};

void perfring_byte_buffer_put(struct perfring_byte_buffer *buffer, const void *bytes, size_t size);
void perfring_byte_buffer_put_half(struct perfring_byte_buffer *buffer, uint32_t value);
void perfring_byte_buffer_put_word(struct perfring_byte_buffer *buffer, uint64_t value);
/* As features have it: u32 length, a multiple of 64, with NUL and padding. */
void perfring_byte_buffer_put_string(struct perfring_byte_buffer *buffer, const char *text);
/* All that can be read from a path.  Returns 0 or -errno. */
int perfring_byte_buffer_put_file(struct perfring_byte_buffer *buffer, const char *path);
/* Overwrites bytes that were put at `at`. */
void perfring_byte_buffer_set(struct perfring_byte_buffer *buffer, size_t at, const void *bytes, size_t size);
void perfring_byte_buffer_close(struct perfring_byte_buffer *buffer);

#endif
