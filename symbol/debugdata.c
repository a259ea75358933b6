/* debugdata.c - the symbols in .gnu_debugdata: an ELF image that is packed by xz.  By liblzma; without it there are none.
 *
 * elf_symbols.c calls it.  The only file that includes <lzma.h>.  What is inflated, and the decoder's memory, are bounded
 * (limits.h).
 */
#include "elf_symbols.h"

#ifdef PERFRING_HAS_LZMA
#include <elf.h>
#include <errno.h>
#include <lzma.h>
#include <stdlib.h>
#include "limits.h"

/* Unpacks the bytes into *buffer, which grows as it fills.  Returns 0; or -errno: then the stream may have written a part. */
static int unpack(struct perfring_elf_budget *budget, lzma_stream *stream, unsigned char **buffer)
{
	size_t space = 1 << 20;
	lzma_ret ret = LZMA_OK;

	for (; ret == LZMA_OK; space *= 2) {
		unsigned char *larger;

		if (space > PERFRING_LIMIT_DEBUGDATA)
			return perfring__elf_exceed(budget, "64 MiB in .gnu_debugdata");
		larger = realloc(*buffer, space);
		if (!larger) {
			budget->no_memory = true;
			return -ENOMEM;
		}
		*buffer = larger;
		stream->next_out = *buffer + stream->total_out;
		stream->avail_out = space - (size_t)stream->total_out;
		ret = lzma_code(stream, LZMA_FINISH);
	}
	if (ret == LZMA_STREAM_END)
		return 0;
	if (ret == LZMA_MEMLIMIT_ERROR)
		return perfring__elf_exceed(budget, "72 MiB to inflate .gnu_debugdata");
	return ret == LZMA_MEM_ERROR ? perfring__elf_fail(budget, -ENOMEM) : -EINVAL;
}

/* Returns how much came out, into *buffer, or -errno. */
static int64_t inflate(struct perfring_elf_budget *budget, const unsigned char *bytes, uint64_t size,
		       unsigned char **buffer)
{
	lzma_stream stream = LZMA_STREAM_INIT;
	lzma_ret ret = lzma_stream_decoder(&stream, PERFRING_LIMIT_DECODER, 0);
	int64_t got;

	*buffer = NULL;
	if (ret != LZMA_OK)
		return ret == LZMA_MEM_ERROR ? perfring__elf_fail(budget, -ENOMEM) : -EINVAL;
	stream.next_in = bytes;
	stream.avail_in = (size_t)size;
	got = unpack(budget, &stream, buffer);
	/* what did not come to its end was inflated as well */
	if (perfring__elf_charge(budget, stream.total_out) && !got)
		got = -E2BIG;
	if (!got)
		got = (int64_t)stream.total_out;
	lzma_end(&stream);
	if (got < 0) {
		free(*buffer);
		*buffer = NULL;
	}
	return got;
}

bool perfring__elf_debugdata_read(struct perfring_elf_reading *reading, const struct perfring_elf_image *image)
{
	const struct perfring_elf_section *section = perfring__elf_section_find(image, ".gnu_debugdata"), *table;
	struct perfring_elf_image inner = {.budget = &reading->budget, .fd = -1};
	unsigned char *packed, *buffer;
	bool is_read = false;
	int64_t size;
	int error;

	packed = section ? perfring__elf_section_read(image, section, &error) : NULL;
	if (!packed)
		return false;
	size = inflate(&reading->budget, packed, section->size, &buffer);
	free(packed);
	if (size < 0)
		return false;
	inner.bytes = buffer;
	inner.size = (uint64_t)size;
	if (!perfring__elf_image_open(&inner) && (table = perfring__elf_section_of_type(&inner, SHT_SYMTAB)))
		is_read = !perfring__elf_table_read(reading, &inner, table);
	perfring__elf_image_close(&inner);
	free(buffer);
	return is_read;
}
#else
bool perfring__elf_debugdata_read(struct perfring_elf_reading *reading, const struct perfring_elf_image *image)
{
	(void)reading;
	(void)image;
	return false;
}
#endif
