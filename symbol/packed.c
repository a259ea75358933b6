/* packed.c - inflates sections, by zlib and zstd; without them such sections are not read.
 *
 * The size that a header names is compared with what such bytes can inflate to, and counts against the object's budget.
 */
#include "packed.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#ifdef PERFRING_HAS_ZLIB
#include <limits.h>
#include <zlib.h>
#endif
#ifdef PERFRING_HAS_ZSTD
#include <zstd.h>
#include <zstd_errors.h>
#endif

#include "elf_image.h"

/* ch_type of ELF. */
enum {
	ZLIB = 1,
	ZSTD = 2,
};

enum {
	GNU_HEADER = 12,       /* of .zdebug: "ZLIB", and the size, the first byte the highest */
	ZLIB_RATIO = 1032,     /* 258 bytes of two bits */
	ZSTD_RATIO = 32 << 10, /* a block of 128 KiB of four bytes */
};

/* Whether bytes can inflate to that size, which a header names.  Returns 0 or -EINVAL. */
static int check(uint64_t by, uint64_t packed_size, uint64_t size)
{
	uint64_t ratio = by == ZLIB ? ZLIB_RATIO : ZSTD_RATIO;

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

/* Inflates all of the bytes, to exactly `size`.  Returns 0; -EINVAL (they are damaged, or of another size), -EOPNOTSUPP (by
 * another packer, or one that this library is built without), -ENOMEM. */
static int inflate_by(uint64_t by, const unsigned char *packed, uint64_t packed_size, unsigned char *bytes, uint64_t size)
{
	if (by == ZLIB)
		return inflate_zlib(packed, packed_size, bytes, size);
	return by == ZSTD ? inflate_zstd(packed, packed_size, bytes, size) : -EOPNOTSUPP;
}

/* Replaces packed bytes, which follow a header, by what they inflate to. */
static int unpack(struct perfring_elf_budget *budget, unsigned char **bytes, uint64_t *bytes_size, uint64_t by, unsigned header,
		  uint64_t size)
{
	unsigned char *inflated;
	int error = check(by, *bytes_size - header, size);

	if (!error)
		error = perfring__elf_charge(budget, size);
	if (error)
		return error;
	inflated = malloc((size_t)size + 1);
	if (!inflated)
		return -ENOMEM;
	error = inflate_by(by, *bytes + header, *bytes_size - header, inflated, size);
	inflated[error ? 0 : size] = 0;
	free(*bytes);
	*bytes = inflated;
	*bytes_size = error ? 0 : size;
	return error;
}

int perfring__packed_read(const struct perfring_elf_image *image, const struct perfring_elf_section *section,
			  bool is_gnu, unsigned char **bytes, uint64_t *bytes_size)
{
	const unsigned header = image->is_long ? 24 : 12;
	uint64_t size = 0;
	int error;

	*bytes_size = 0;
	*bytes = perfring__elf_section_read(image, section, &error);
	if (!*bytes)
		return error == -EINVAL ? 0 : error;
	*bytes_size = section->size;
	if (section->flags & SHF_COMPRESSED)
		return *bytes_size < header
			       ? -EINVAL
			       : unpack(image->budget, bytes, bytes_size, perfring__elf_number(image, *bytes, 4),
					header, perfring__elf_member(image, *bytes, 8, 4, 0));
	if (!is_gnu || *bytes_size < GNU_HEADER || memcmp(*bytes, "ZLIB", 4))
		return 0;
	for (int i = 4; i < GNU_HEADER; i++)
		size = size << 8 | (*bytes)[i];
	return unpack(image->budget, bytes, bytes_size, ZLIB, GNU_HEADER, size);
}
