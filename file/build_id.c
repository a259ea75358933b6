/* build_id.c - build ids of objects and of the kernel, from ELF notes; the feature BUILD_ID (docs/abi.md 11.3).
 *
 * The functions of build_id.h, and perfring_file_writer_put_build_id.  ELF files and notes are foreign: headers are compared with
 * the file's size, and what is read is bounded.  Threads only.
 */
#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
#include "build_id_private.h"
#include "os/small_file.h"
#include "os/note.h"
#include "os/object.h"
#include "file_writer_private.h"

/* Bounds on hostile objects. */
enum {
	MAX_HEADERS = 4096,     /* 225 KiB, in 64 calls */
	MAX_NOTES = 64 << 10,   /* bytes of all segments */
	MAX_NOTE_SEGMENTS = 64, /* linkers make at most three */
	HEADERS_AT_ONCE = 64,
};

int perfring_object_open(int32_t pid, const char *path)
{
	return perfring__os_object_open(pid, path);
}

static uint64_t read_number(const unsigned char *bytes, unsigned size, bool is_big)
{
	uint64_t number = 0;

	for (unsigned i = 0; i < size; i++)
		number = number << 8 | bytes[is_big ? i : size - 1 - i];
	return number;
}

/* Reads exactly `size` bytes.  Returns 0, -EINVAL (the file is shorter), -errno. */
static int read_whole(int fd, unsigned char *buffer, size_t size, uint64_t at)
{
	int64_t got = perfring__os_file_pread(fd, buffer, size, at);

	return got < 0 ? (int)got : (size_t)got == size ? 0 : -EINVAL;
}

/* Searches a PT_NOTE segment, at most *left bytes of it, which is reduced by that. */
static int64_t find_in_segment(int fd, const unsigned char *entry, bool is_long, bool is_big, uint64_t *left,
			       uint8_t id[PERFRING_BUILD_ID_SIZE])
{
	uint64_t offset = read_number(entry + (is_long ? 8 : 4), is_long ? 8 : 4, is_big);
	uint64_t size = read_number(entry + (is_long ? 32 : 16), is_long ? 8 : 4, is_big);
	uint64_t align = read_number(entry + (is_long ? 48 : 28), is_long ? 8 : 4, is_big);
	unsigned char *notes;
	int64_t found;

	if (size > *left)
		size = *left;
	if (offset > INT64_MAX - MAX_NOTES || !size)
		return 0;
	*left -= size;
	notes = malloc((size_t)size);
	if (!notes)
		return -ENOMEM;
	found = perfring__os_file_pread(fd, notes, (size_t)size, offset);
	if (found >= 0)
		found = perfring__os_note_build_id(notes, (size_t)found,
						   is_big != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__), align, id);
	free(notes);
	return found;
}

int64_t perfring_build_id_in(int fd, uint8_t id[PERFRING_BUILD_ID_SIZE])
{
	unsigned char header[64], entries[HEADERS_AT_ONCE * 56];
	uint64_t at, count, i, left = MAX_NOTES;
	unsigned segments = 0;
	bool is_big, is_long;
	int64_t found = 0;
	unsigned size;
	int error = read_whole(fd, header, sizeof(header), 0);

	if (error || memcmp(header, ELFMAG, SELFMAG))
		return error ? error : -EINVAL;
	is_long = header[EI_CLASS] == ELFCLASS64;
	size = is_long ? 56 : 32;
	is_big = header[EI_DATA] == ELFDATA2MSB;
	at = read_number(header + (is_long ? 32 : 28), is_long ? 8 : 4, is_big);
	count = read_number(header + (is_long ? 56 : 44), 2, is_big);
	/* the kernel maps no object with headers of another size */
	if (read_number(header + (is_long ? 54 : 42), 2, is_big) != size || count > MAX_HEADERS || at > INT64_MAX / 2)
		return -EINVAL;
	for (i = 0; i < count && !found && segments < MAX_NOTE_SEGMENTS; i++) {
		const unsigned char *entry = entries + i % HEADERS_AT_ONCE * size;

		if (i % HEADERS_AT_ONCE == 0) {
			size_t wanted = (size_t)((count - i < HEADERS_AT_ONCE ? count - i : HEADERS_AT_ONCE) * size);

			error = read_whole(fd, entries, wanted, at + i * size);
			if (error)
				return error;
		}
		if (read_number(entry, 4, is_big) != PT_NOTE)
			continue;
		found = find_in_segment(fd, entry, is_long, is_big, &left, id);
		segments++;
	}
	return found ? found : -ENODATA;
}

int64_t perfring_build_id_of(const char *path, uint8_t id[PERFRING_BUILD_ID_SIZE])
{
	int fd = perfring_object_open(0, path);
	int64_t length = fd;

	if (fd >= 0) {
		length = perfring_build_id_in(fd, id);
		close(fd);
	}
	return length;
}

int64_t perfring__build_id_of_notes(const char *path, uint8_t *id)
{
	char *notes;
	size_t size;
	int64_t length = perfring__os_file_load(path, &notes, &size);

	if (!length) {
		length = perfring__os_note_build_id(notes, size, false, 4, id);
		if (!length)
			length = -ENODATA;
	}
	free(notes);
	return length;
}

int64_t perfring_build_id_of_kernel(uint8_t id[PERFRING_BUILD_ID_SIZE])
{
	return perfring__build_id_of_notes(PERFRING_KERNEL_NOTES, id);
}

int perfring_file_writer_put_build_id(struct perfring_file_writer *writer, uint16_t misc, int32_t pid, const char *file,
				      const uint8_t *id, uint32_t size)
{
	struct perfring_byte_buffer *buffer = &writer->build_ids;
	struct perf_event_header header = {0};
	uint8_t padded[24] = {0}, zeros[64] = {0};
	size_t length = strlen(file), name_size = (length / 64 + 1) * 64, before = buffer->used;

	if (writer->is_finished || !size || size > PERFRING_BUILD_ID_SIZE || name_size > 4096)
		return -EINVAL;
	header.misc = (uint16_t)((misc & PERFRING_RECORD_MISC_CPUMODE_MASK) | 0x8000);
	header.size = (uint16_t)(sizeof(header) + 4 + sizeof(padded) + name_size);
	memcpy(padded, id, size);
	padded[20] = (uint8_t)size;
	perfring__byte_buffer_put(buffer, &header, sizeof(header));
	perfring__byte_buffer_put(buffer, &pid, sizeof(pid));
	perfring__byte_buffer_put(buffer, padded, sizeof(padded));
	perfring__byte_buffer_put(buffer, file, length);
	perfring__byte_buffer_put(buffer, zeros, name_size - length);
	if (buffer->error)
		buffer->used = before;
	return buffer->error;
}
