/* debug_file.c - the debug file of an object: the one that its .gnu_debuglink names, or that of its build id.
 *
 * elf_symbols.c calls it when an object has no .symtab.  A file is used only if its build id is the object's, or, without one,
 * its checksum.  Each file that is read counts in the object's budget (limits.h).
 */
#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <perfring/build_id.h>
#include "elf_symbols.h"
#include "limits.h"
#include "places.h"

/* Where separate debug files are. */
#define DEBUG_FOLDER "/usr/lib/debug"

enum {
	CHUNK = 1 << 16, /* of a file, read at once */
	MAX_LINK = 512,  /* bytes of .gnu_debuglink: a file's name and its checksum */
};

/* The checksum that .gnu_debuglink has of its file: CRC-32, as zlib's. */
static int sum_up(const struct perfring_elf_image *image, uint32_t *sum)
{
	uint32_t table[256];
	unsigned char *buffer;
	int error = perfring__elf_charge(image->budget, image->size);

	if (error)
		return error;
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t word = i;

		for (int bit = 0; bit < 8; bit++)
			word = word >> 1 ^ (word & 1 ? UINT32_C(0xedb88320) : 0);
		table[i] = word;
	}
	buffer = perfring__elf_allocate(image->budget, CHUNK, 1);
	if (!buffer)
		return -ENOMEM;
	*sum = UINT32_MAX;
	for (uint64_t at = 0; at < image->size && !error; at += CHUNK) {
		size_t some = image->size - at < CHUNK ? (size_t)(image->size - at) : CHUNK;

		error = perfring__elf_read(image, buffer, some, at);
		for (size_t i = 0; i < some && !error; i++)
			*sum = table[(*sum ^ buffer[i]) & 0xff] ^ *sum >> 8;
	}
	*sum = ~*sum;
	free(buffer);
	return error;
}

/* The debug file that the object names. */
struct debug_link {
	uint8_t id[PERFRING_BUILD_ID_SIZE];
	uint32_t id_size;
	char name[MAX_LINK]; /* "": none */
	uint32_t sum;
};

/* Whether it is the name of a file, without a directory. */
static void read_link(const struct perfring_elf_image *image, struct debug_link *link)
{
	const struct perfring_elf_section *section = perfring__elf_section_find(image, ".gnu_debuglink");
	unsigned char bytes[MAX_LINK];
	size_t length;

	link->name[0] = 0;
	if (!section || section->type == SHT_NOBITS || section->size > sizeof(bytes) || section->size < 8 ||
	    perfring__elf_read(image, bytes, (size_t)section->size, section->offset))
		return;
	length = strnlen((const char *)bytes, (size_t)section->size);
	if (length > NAME_MAX || (length + 4) / 4 * 4 + 4 > section->size || memchr(bytes, '/', length) ||
	    !strcmp((const char *)bytes, ".") || !strcmp((const char *)bytes, ".."))
		return;
	memcpy(link->name, bytes, length + 1);
	link->sum = (uint32_t)perfring__elf_number(image, bytes + (length + 4) / 4 * 4, 4);
}

static bool is_its(const struct perfring_elf_image *image, const struct debug_link *link)
{
	uint8_t id[PERFRING_BUILD_ID_SIZE];
	uint32_t sum;

	if (link->id_size)
		return perfring__elf_build_id_of(image, id) == link->id_size && !memcmp(id, link->id, link->id_size);
	return !sum_up(image, &sum) && sum == link->sum;
}

/* Reads the symbols of a file, if it is the object's, and closes it.  Returns whether it has some. */
static bool read_debug_file(struct perfring_elf_reading *reading, const struct debug_link *link, int fd,
			    const char *path)
{
	struct perfring_elf_image image = {.budget = &reading->budget, .fd = fd};
	const struct perfring_elf_section *table;
	struct perfring_os_identity identity;
	bool is_read = false;

	reading->budget.path = path;
	perfring__elf_fail(&reading->budget, fd == -ENOSYS || fd == -EINTR ? 0 : fd); /* no server is named; ^C */
	if (fd >= 0) {
		if (!perfring__elf_image_open(&image) && (table = perfring__elf_section_of_type(&image, SHT_SYMTAB)))
			is_read = is_its(&image, link) && !perfring__elf_table_read(reading, &image, table);
		perfring__elf_image_close(&image);
		is_read = !perfring__os_identity_of(fd, &identity) && is_read;
		close(fd);
	}
	reading->budget.path = NULL;
	if (is_read) {
		reading->symbols->debug_file = identity;
		reading->symbols->debug_path = strdup(path);
		reading->budget.no_memory = reading->budget.no_memory || !reading->symbols->debug_path;
	}
	return is_read;
}

static bool read_build(struct perfring_elf_reading *reading, const struct debug_link *link, unsigned place)
{
	char path[PATH_MAX] = "";
	int fd = perfring__places_open_build(reading->places, PERFRING_PLACE_DEBUG_FILE, link->id, link->id_size, place,
					     reading->path, path);

	return read_debug_file(reading, link, fd, path);
}

bool perfring__elf_debug_file_read(struct perfring_elf_reading *reading, const struct perfring_elf_image *image)
{
	static const char *const folders[][2] = {{"", ""}, {"", "/.debug"}, {DEBUG_FOLDER, ""}};
	const char *slash = strrchr(reading->path, '/');
	struct debug_link link;
	char path[PATH_MAX];
	int size;

	link.id_size = perfring__elf_build_id_of(image, link.id);
	if (read_build(reading, &link, PERFRING_PLACES_TREE))
		return true;
	read_link(image, &link);
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]) && *reading->path == '/' && link.name[0]; i++) {
		size = snprintf(path, sizeof(path), "%s%.*s%s/%s", folders[i][0], (int)(slash - reading->path),
				reading->path, folders[i][1], link.name);
		if (size < (int)sizeof(path) &&
		    read_debug_file(reading, &link, perfring__places_open_path(reading->places, path), path))
			return true;
	}
	return false;
}

bool perfring__elf_cached_debug_file_read(struct perfring_elf_reading *reading, const struct perfring_elf_image *image)
{
	struct debug_link link;

	link.id_size = perfring__elf_build_id_of(image, link.id);
	for (unsigned place = PERFRING_PLACES_TREE + 1; place < PERFRING_PLACES_COUNT; place++)
		if (read_build(reading, &link, place))
			return true;
	return false;
}
