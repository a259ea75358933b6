/* inflate.h - zstd, when it is built in: what perf's compressed records hold (ABI.md 11.5). */
#ifndef PERFRING_DATA_INFLATE_H
#define PERFRING_DATA_INFLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct perfring_inflater;
struct perfring_deflater;

/* Returns 0, -ENOMEM, -EOPNOTSUPP (built without libzstd). */
int perfring_inflater_open(struct perfring_inflater **inflater);
void perfring_inflater_close(struct perfring_inflater *inflater);

/* Inflates until `from` is used up or the room is full; both are moved.  Returns 1 (there may be more to come for this
 * input), 0 (all of it is out), -EBADMSG, -ENOMEM.  A window of more than 128 MiB, which zstd makes on no level, is
 * -EBADMSG. */
int perfring_inflate(struct perfring_inflater *inflater, const unsigned char **from, size_t *left, unsigned char *room,
		     size_t size, size_t *used);

/* level: 1 to 22.  Returns 0, -ENOMEM, -EOPNOTSUPP, -EINVAL. */
int perfring_deflater_open(struct perfring_deflater **deflater, int level);
void perfring_deflater_close(struct perfring_deflater *deflater);

/* Deflates until `from` is used up, and with `flush` until all of it is out, or the room is full; both are moved.
 * Returns 1 (call again with more room), 0, -EIO. */
int perfring_deflate(struct perfring_deflater *deflater, const unsigned char **from, size_t *left, bool flush,
		     unsigned char *room, size_t size, size_t *used);

#endif
