/* packed.c - inflates sections, by zlib and zstd; without them such sections are not read.
 *
 * dwarf_sections.c calls it, after it has compared the size that a header names with what such bytes can inflate to.
 */
#include "packed.h"

#include <errno.h>
#ifdef PERFRING_HAS_ZLIB
#include <limits.h>
#include <zlib.h>
#endif
#ifdef PERFRING_HAS_ZSTD
#include <zstd.h>
#include <zstd_errors.h>
#endif

enum {
	ZLIB_RATIO = 1032,     /* 258 bytes of two bits */
	ZSTD_RATIO = 32 << 10, /* a block of 128 KiB of four bytes */
};

int perfring_packed_check(uint64_t by, uint64_t packed_size, uint64_t size)
{
	uint64_t ratio = by == PERFRING_PACKED_ZLIB ? ZLIB_RATIO : ZSTD_RATIO;

	return size / ratio > packed_size ? -EINVAL : 0;
}

static int inflate_zlib(const unsigned char *packed, uint64_t packed_size, unsigned char *bytes, uint64_t size)
{
#ifdef PERFRING_HAS_ZLIB
	z_stream stream = {.next_in = (Bytef *)(uintptr_t)packed, .next_out = bytes};
	int error;

	if (packed_size > UINT_MAX || size > UINT_MAX)
		return -EINVAL;
	stream.avail_in = (uInt)packed_size;
	stream.avail_out = (uInt)size;
	error = inflateInit(&stream);
	if (error != Z_OK)
		return error == Z_MEM_ERROR ? -ENOMEM : -EINVAL;
	error = inflate(&stream, Z_FINISH);
	inflateEnd(&stream);
	if (error == Z_MEM_ERROR)
		return -ENOMEM;
	return error == Z_STREAM_END && !stream.avail_out ? 0 : -EINVAL;
#else
	(void)packed;
	(void)packed_size;
	(void)bytes;
	(void)size;
	return -EOPNOTSUPP;
#endif
}

static int inflate_zstd(const unsigned char *packed, uint64_t packed_size, unsigned char *bytes, uint64_t size)
{
#ifdef PERFRING_HAS_ZSTD
	size_t got = ZSTD_decompress(bytes, (size_t)size, packed, (size_t)packed_size);

	if (ZSTD_isError(got))
		return ZSTD_getErrorCode(got) == ZSTD_error_memory_allocation ? -ENOMEM : -EINVAL;
	return got == size ? 0 : -EINVAL;
#else
	(void)packed;
	(void)packed_size;
	(void)bytes;
	(void)size;
	return -EOPNOTSUPP;
#endif
}

int perfring_packed_inflate(uint64_t by, const unsigned char *packed, uint64_t packed_size, unsigned char *bytes,
			    uint64_t size)
{
	if (by == PERFRING_PACKED_ZLIB)
		return inflate_zlib(packed, packed_size, bytes, size);
	return by == PERFRING_PACKED_ZSTD ? inflate_zstd(packed, packed_size, bytes, size) : -EOPNOTSUPP;
}
