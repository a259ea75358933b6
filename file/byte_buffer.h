/* byte_buffer.h - bytes appended to memory that grows.
 *
 * For payloads of features and records that file/ writes.  All 0 is an empty buffer; close frees it.  The first error is kept in
 * `error`, and later puts do nothing.
 */
#ifndef PERFRING_FILE_BYTE_BUFFER_H
#define PERFRING_FILE_BYTE_BUFFER_H

#include <stddef.h>
#include <stdint.h>

struct perfring_byte_buffer {
	unsigned char *bytes;
	size_t used, capacity;
	int error;  /* -ENOMEM: every later put does nothing */
	int unread; /* the first error of a file that could not be read, and is missing here */
};

void perfring__byte_buffer_put(struct perfring_byte_buffer *buffer, const void *bytes, size_t size);
void perfring__byte_buffer_put_u32(struct perfring_byte_buffer *buffer, uint32_t value);
void perfring__byte_buffer_put_u64(struct perfring_byte_buffer *buffer, uint64_t value);
/* A string as features have it: u32 length, a multiple of 64, then the text with NUL and padding. */
void perfring__byte_buffer_put_string(struct perfring_byte_buffer *buffer, const char *text);
/* The contents of a file.  Returns 0 or -errno. */
int perfring__byte_buffer_put_file(struct perfring_byte_buffer *buffer, const char *path);
/* Overwrites bytes that were put at `at`. */
void perfring__byte_buffer_set(struct perfring_byte_buffer *buffer, size_t at, const void *bytes, size_t size);
void perfring__byte_buffer_close(struct perfring_byte_buffer *buffer);

#endif
