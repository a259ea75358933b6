/* gzip.c - bytes that are written packed, by zlib, or as they are.
 *
 * The only file of profile/ that includes <zlib.h>.  pprof.c packs its message by it.
 */
#include "gzip.h"

#ifdef PERFRING_HAS_ZLIB
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <zlib.h>

enum {
	WINDOW_BITS = 15,
	GZIP = 16, /* added to them: with the header and trailer of gzip */
	MEMORY_LEVEL = 8,
};

/* Packs all that the stream has as input, and with Z_FINISH ends it. */
static void pack(z_stream *stream, int flush, FILE *out)
{
	unsigned char packed[1 << 14];

	do {
		stream->next_out = packed;
		stream->avail_out = sizeof(packed);
		deflate(stream, flush);
		fwrite(packed, 1, sizeof(packed) - stream->avail_out, out);
	} while (!stream->avail_out && !ferror(out));
}

int perfring__gzip_write(FILE *out, const void *bytes, size_t size)
{
	z_stream stream = {.next_in = (Bytef *)(uintptr_t)bytes};

	if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, WINDOW_BITS + GZIP, MEMORY_LEVEL,
			 Z_DEFAULT_STRATEGY) != Z_OK)
		return -ENOMEM;
	do {
		stream.avail_in = size < UINT_MAX ? (uInt)size : UINT_MAX;
		size -= stream.avail_in;
		pack(&stream, size ? Z_NO_FLUSH : Z_FINISH, out);
	} while (size && !ferror(out));
	deflateEnd(&stream);
	return 0;
}
#else
int perfring__gzip_write(FILE *out, const void *bytes, size_t size)
{
	fwrite(bytes, 1, size, out);
	return 0;
}
#endif
