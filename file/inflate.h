/* inflate.h - zstd, the format of perf's compressed records (docs/abi.md 11.5), or its absence.
 *
 * record_stream.c inflates, file_compress.c deflates.  One thread for each inflater and deflater.
 */
#ifndef PERFRING_FILE_INFLATE_H
#define PERFRING_FILE_INFLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct perfring_inflater;
struct perfring_deflater;

/* Bytes of the windows of all inflaters that share `windows`, not counting 1 MiB of each: four of the largest, and
 * smaller ones. */
#define PERFRING_MAX_WINDOWS (UINT64_C(512) << 20)

/* *windows: 0 at first; it outlives the inflaters.  Returns 0, -ENOMEM, -EOPNOTSUPP (built without libzstd). */
int perfring__inflater_open(struct perfring_inflater **inflater, uint64_t *windows);
void perfring__inflater_close(struct perfring_inflater *inflater);

/* Inflates until all input is read or the buffer is full; moves `from` and `left`.  Returns 1 (there may be more output
 * for this input), 0 (there is none), -ENOMEM, -EBADMSG (damaged; the output before the damage is in the buffer); at
 * the beginning of a frame -EFBIG (a window of more than 128 MiB, which no level of zstd makes), -ENOBUFS (a window of
 * more than is left of PERFRING_MAX_WINDOWS). */
int perfring__inflate(struct perfring_inflater *inflater, const unsigned char **from, size_t *left,
		      unsigned char *buffer, size_t size, size_t *used);

/* The next input begins a frame. */
void perfring__inflater_reset(struct perfring_inflater *inflater);

enum perfring_inflater_state {
	PERFRING_BETWEEN_FRAMES,
	PERFRING_BETWEEN_BLOCKS, /* as after a flush: all output is out */
	PERFRING_INSIDE_A_BLOCK, /* or inside a frame's header */
};
enum perfring_inflater_state perfring__inflater_state(const struct perfring_inflater *inflater);

/* Whether these can be the first bytes of a frame.  No block begins with them. */
static inline bool perfring__inflater_begins(const unsigned char *bytes, size_t size)
{
	return size >= 4 && !memcmp(bytes, "\x28\xb5\x2f\xfd", 4);
}

/* level: 1 to 22; streams: of one file or directory, which bounds the window of each, so that all can be inflated at
 * once.  Returns 0, -ENOMEM, -EOPNOTSUPP, -EINVAL. */
int perfring__deflater_open(struct perfring_deflater **deflater, int level, uint32_t streams);
void perfring__deflater_close(struct perfring_deflater *deflater);

/* Drops what was not flushed.  The next output begins a frame. */
void perfring__deflater_reset(struct perfring_deflater *deflater);

/* Deflates until all input is read (with `flush`: and all output is out) or the buffer is full; moves `from` and
 * `left`.  Returns 1 (call again with more space), 0, -EIO. */
int perfring__deflate(struct perfring_deflater *deflater, const unsigned char **from, size_t *left, bool flush,
		      unsigned char *buffer, size_t size, size_t *used);

#endif
