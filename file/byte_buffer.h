/* byte_buffer.h - bytes put one behind the other, in memory that grows. */
#ifndef PERFRING_FEATURE_PILE_H
#define PERFRING_FEATURE_PILE_H

#include <stddef.h>
#include <stdint.h>

struct perfring_byte_buffer {
	unsigned char *bytes;
	size_t used, room;
	int error;  /* the first -ENOMEM: nothing more is put from then on */
	int unread; /* of what was to be put, the first error of a file that could not be read, where the rest is put all the same */
};

void perfring_byte_buffer_put(struct perfring_byte_buffer *pile, const void *bytes, size_t size);
void perfring_byte_buffer_put_half(struct perfring_byte_buffer *pile, uint32_t value);
void perfring_byte_buffer_put_word(struct perfring_byte_buffer *pile, uint64_t value);
/* As features have it: u32 length, a multiple of 64, with NUL and padding. */
void perfring_byte_buffer_put_string(struct perfring_byte_buffer *pile, const char *text);
/* All that can be read from a path.  Returns 0 or -errno. */
int perfring_byte_buffer_put_file(struct perfring_byte_buffer *pile, const char *path);
void perfring_byte_buffer_close(struct perfring_byte_buffer *pile);

#endif
