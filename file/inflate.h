/* inflate.h - zstd, when it is built in: what perf's compressed records hold (docs/abi.md 11.5). */
#ifndef PERFRING_FEATURE_INFLATE_H
#define PERFRING_FEATURE_INFLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct perfring_inflater;
struct perfring_deflater;

/* Bytes of the windows of all inflaters that share `windows`, less 1 MiB each: four of the largest, and smaller ones beside
 * them as long as any are left. */
#define PERFRING_MOST_WINDOWS (UINT64_C(512) << 20)

/* *windows is 0 at first; it outlives the inflaters.  Returns 0, -ENOMEM, -EOPNOTSUPP (built without libzstd). */
int perfring_inflater_open(struct perfring_inflater **inflater, uint64_t *windows);
void perfring_inflater_close(struct perfring_inflater *inflater);

/* Inflates until `from` is used up or the room is full; both are moved.  Returns 1 (there may be more to come for this
 * input), 0 (all of it is out), -EBADMSG (behind what is in the room), -ENOMEM; before anything of a frame came out -EFBIG (a
 * window of more than 128 MiB, which zstd makes on no level), -ENOBUFS (of more than PERFRING_MOST_WINDOWS leaves). */
int perfring_inflate(struct perfring_inflater *inflater, const unsigned char **from, size_t *left, unsigned char *room,
		     size_t size, size_t *used);

/* What comes next begins a frame, whatever came before it. */
void perfring_inflater_reset(struct perfring_inflater *inflater);

/* Where its input stands. */
enum perfring_inflater_place {
	PERFRING_BETWEEN_FRAMES,
	PERFRING_BETWEEN_BLOCKS, /* as behind a flush: all that was written came out */
	PERFRING_INSIDE_A_BLOCK, /* or a frame's header */
};
enum perfring_inflater_place perfring_inflater_place(const struct perfring_inflater *inflater);

/* Whether these could be the first bytes of a frame.  Between two blocks nothing else begins so. */
static inline bool perfring_inflater_begins(const unsigned char *bytes, size_t size)
{
	return size >= 4 && !memcmp(bytes, "\x28\xb5\x2f\xfd", 4);
}

/* level: 1 to 22; streams: of the same file or directory, so that the windows of all of them can be had at once to inflate.
 * Returns 0, -ENOMEM, -EOPNOTSUPP, -EINVAL. */
int perfring_deflater_open(struct perfring_deflater **deflater, int level, uint32_t streams);
void perfring_deflater_close(struct perfring_deflater *deflater);

/* What comes next begins a frame; what was not flushed is dropped. */
void perfring_deflater_reset(struct perfring_deflater *deflater);

/* Deflates until `from` is used up, and with `flush` until all of it is out, or the room is full; both are moved.
 * Returns 1 (call again with more room), 0, -EIO. */
int perfring_deflate(struct perfring_deflater *deflater, const unsigned char **from, size_t *left, bool flush,
		     unsigned char *room, size_t size, size_t *used);

#endif
