/* build_id.c - build ids of objects and of the kernel, from their ELF notes, and the feature that tells them (ABI.md 11.3). */
#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "build_id.h"
#include "writer.h"

enum {
	MOST_HEADERS = 4096,
	MOST_NOTES = 1 << 20,
};

/* The GNU build id among notes.  Returns its length, 0 when there is none. */
static uint32_t find_note(const unsigned char *notes, size_t size, bool is_foreign, uint64_t align,
			  uint8_t id[PERFRING_BUILD_ID_ROOM])
{
	size_t at = 0;

	align = align == 8 ? 8 : 4;
	while (size - at >= 12) {
		uint32_t words[3];
		uint64_t name, length, next;

		memcpy(words, notes + at, sizeof(words));
		for (int i = 0; i < 3; i++)
			words[i] = is_foreign ? __builtin_bswap32(words[i]) : words[i];
		name = words[0];
		length = words[1];
		/* 64-bit sums of 32-bit numbers */
		next = (12 + name + align - 1) / align * align;
		if (next + length > size - at)
			return 0;
		if (words[2] == NT_GNU_BUILD_ID && name == 4 && !memcmp(notes + at + 12, "GNU", 4) && length &&
		    length <= PERFRING_BUILD_ID_ROOM) {
			memcpy(id, notes + at + next, (size_t)length);
			return (uint32_t)length;
		}
		next = (next + length + align - 1) / align * align;
		if (next > size - at)
			return 0;
		at += (size_t)next;
	}
	return 0;
}

static uint64_t read_number(const unsigned char *bytes, unsigned size, bool is_foreign)
{
	uint64_t number = 0;
	uint32_t half;
	uint16_t quarter;

	if (size == 8) {
		memcpy(&number, bytes, 8);
		return is_foreign ? __builtin_bswap64(number) : number;
	}
	if (size == 4) {
		memcpy(&half, bytes, 4);
		return is_foreign ? __builtin_bswap32(half) : half;
	}
	memcpy(&quarter, bytes, 2);
	return is_foreign ? __builtin_bswap16(quarter) : quarter;
}

/* The PT_NOTE segments, one by one. */
static int64_t find_in_elf(int fd, uint8_t id[PERFRING_BUILD_ID_ROOM])
{
	unsigned char header[64], entry[56], *notes;
	bool is_foreign, is_long;
	uint64_t entries, entry_size, count;
	uint32_t found = 0;

	if (pread(fd, header, sizeof(header), 0) != sizeof(header) || memcmp(header, ELFMAG, SELFMAG))
		return -EINVAL;
	is_long = header[EI_CLASS] == ELFCLASS64;
	is_foreign = (header[EI_DATA] == ELFDATA2MSB) != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
	entries = read_number(header + (is_long ? 32 : 28), is_long ? 8 : 4, is_foreign);
	entry_size = read_number(header + (is_long ? 54 : 42), 2, is_foreign);
	count = read_number(header + (is_long ? 56 : 44), 2, is_foreign);
	if (entry_size < (is_long ? 56u : 32u) || count > MOST_HEADERS || entries > INT64_MAX / 2)
		return -EINVAL;
	for (uint64_t i = 0; i < count && !found; i++) {
		uint64_t offset, size, align;
		ssize_t got = pread(fd, entry, is_long ? 56 : 32, (off_t)(entries + i * entry_size));

		if (got != (is_long ? 56 : 32))
			return -EINVAL;
		if (read_number(entry, 4, is_foreign) != PT_NOTE)
			continue;
		offset = read_number(entry + (is_long ? 8 : 4), is_long ? 8 : 4, is_foreign);
		size = read_number(entry + (is_long ? 32 : 16), is_long ? 8 : 4, is_foreign);
		align = read_number(entry + (is_long ? 48 : 28), is_long ? 8 : 4, is_foreign);
		if (offset > INT64_MAX || !size || size > MOST_NOTES)
			continue;
		notes = malloc((size_t)size);
		if (!notes)
			return -ENOMEM;
		got = pread(fd, notes, (size_t)size, (off_t)offset);
		if (got > 0)
			found = find_note(notes, (size_t)got, is_foreign, align, id);
		free(notes);
	}
	return found ? (int64_t)found : -ENODATA;
}

int64_t perfring_build_id_of(const char *path, uint8_t id[PERFRING_BUILD_ID_ROOM])
{
	/* what a mapping names may be a pipe or a device by now */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat file;
	int64_t length;

	if (fd < 0)
		return -errno;
	length = fstat(fd, &file) ? -errno : S_ISREG(file.st_mode) ? find_in_elf(fd, id) : -EINVAL;
	close(fd);
	return length;
}

int64_t perfring_build_id_of_notes(const char *path, uint8_t *id)
{
	struct perfring_pile pile = {0};
	int64_t length = perfring_pile_put_file(&pile, path);

	if (!length) {
		length = find_note(pile.bytes, pile.used, false, 4, id);
		if (!length)
			length = -ENODATA;
	}
	perfring_pile_close(&pile);
	return length;
}

int64_t perfring_build_id_of_kernel(uint8_t id[PERFRING_BUILD_ID_ROOM])
{
	return perfring_build_id_of_notes(PERFRING_KERNEL_NOTES, id);
}

int perfring_data_put_build_id(struct perfring_data_writer *writer, uint16_t misc, int32_t pid, const char *file,
			       const uint8_t *id, uint32_t size)
{
	struct perfring_pile *pile = &writer->build_ids;
	struct perf_event_header header = {0};
	uint8_t padded[24] = {0}, zeros[64] = {0};
	size_t length = strlen(file), room = (length / 64 + 1) * 64;

	if (writer->is_finished || !size || size > PERFRING_BUILD_ID_ROOM || room > 4096)
		return -EINVAL;
	header.misc = (uint16_t)((misc & PERFRING_RECORD_MISC_CPUMODE_MASK) | 0x8000);
	header.size = (uint16_t)(sizeof(header) + 4 + sizeof(padded) + room);
	memcpy(padded, id, size);
	padded[20] = (uint8_t)size;
	perfring_pile_put(pile, &header, sizeof(header));
	perfring_pile_put(pile, &pid, sizeof(pid));
	perfring_pile_put(pile, padded, sizeof(padded));
	perfring_pile_put(pile, file, length);
	perfring_pile_put(pile, zeros, room - length);
	return pile->error ? pile->error
			   : perfring_data_put_feature(writer, PERFRING_DATA_BUILD_ID, pile->bytes, pile->used);
}
