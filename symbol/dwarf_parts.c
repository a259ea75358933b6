/* dwarf_parts.c - large sections of DWARF, which stay in the file: their parts are read when they are first needed.
 *
 * dwarf_sections.c says which sections; dwarf_entries.c and dwarf_rows.c load units, texts and tables of lines.  Bytes of units are let
 * go, the oldest first, and read again: what is made of them stays, and memory that is used again needs no clearing by the kernel.
 * Texts are loaded in chunks, into space that the section has from the beginning, so that they do not move; names of functions
 * (perfring__dwarf_read_texts) through windows that do not stay, and tables of lines whole, into memory that is used again.
 *
 * A file that has changed since it was opened is not read any more, from the next perfring__dwarf_parts_renew on.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "dwarf.h"
#include "limits.h"
#include "os/huge_pages.h"

enum {
	CHUNK = 256 << 10,     /* bytes of texts that are read at once */
	SOME = 512,            /* ... for one: most are shorter */
	NEAR = 8 << 10,        /* ... between two */
	UNITS_KEPT = 64 << 20, /* bytes of units that are kept, at first */
	ROUND = 64 << 10,      /* sizes of memory for parts are multiples */
};

unsigned char *perfring__dwarf_space_open(struct perfring_dwarf_space *space, uint64_t size)
{
	uintptr_t start;

	space->size = (size_t)size + 2 * PERFRING_OS_HUGE_PAGE;
	space->map =
		mmap(NULL, space->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (space->map == MAP_FAILED) {
		space->map = NULL;
		return NULL;
	}
	start = ((uintptr_t)space->map + PERFRING_OS_HUGE_PAGE - 1) & ~(uintptr_t)(PERFRING_OS_HUGE_PAGE - 1);
	perfring__os_use_huge_pages((void *)start,
				    ((size_t)size + PERFRING_OS_HUGE_PAGE - 1) & ~(size_t)(PERFRING_OS_HUGE_PAGE - 1));
	return (unsigned char *)start;
}

void perfring__dwarf_space_close(struct perfring_dwarf_space *space)
{
	if (space->map)
		munmap(space->map, space->size);
	space->map = NULL;
}

bool perfring__dwarf_parts_open(struct perfring_dwarf_parts *parts, int fd)
{
	struct perfring_os_identity identity;
	int own = perfring__os_identity_of(fd, &identity) ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 3);

	if (own < 0)
		return false;
	*parts = (struct perfring_dwarf_parts){.is_open = true, .fd = own, .identity = identity, .kept = UNITS_KEPT};
	return true;
}

void perfring__dwarf_parts_renew(struct perfring_dwarf_parts *parts)
{
	parts->is_checked = false;
}

/* Whether the file is what it was; it is looked at once after each perfring__dwarf_parts_renew. */
static bool is_unchanged(struct perfring_dwarf_parts *parts)
{
	if (!parts->is_checked && !parts->has_changed)
		parts->has_changed = !perfring__os_identity_is(&parts->identity, parts->fd);
	parts->is_checked = true;
	return !parts->has_changed;
}

bool perfring__dwarf_section_leave(struct perfring_dwarf_section *section, uint64_t from, uint64_t size)
{
	*section = (struct perfring_dwarf_section){.size = size, .from = from, .is_left = true};
	section->loaded = calloc((size_t)(size / CHUNK / 8) + 1, 1);
	section->bytes = section->loaded ? perfring__dwarf_space_open(&section->space, size) : NULL;
	if (!section->bytes)
		perfring__dwarf_section_close(section);
	return section->bytes;
}

void perfring__dwarf_section_close(struct perfring_dwarf_section *section)
{
	if (!section->is_left)
		free(section->bytes);
	free(section->loaded);
	perfring__dwarf_space_close(&section->space);
	*section = (struct perfring_dwarf_section){.size = 0};
}

uint64_t perfring__dwarf_read_part(struct perfring_dwarf_file *file, enum perfring_dwarf_section_name name, uint64_t at,
				   void *buffer, uint64_t size)
{
	const struct perfring_dwarf_section *section = &file->sections[name];
	uint64_t done = 0;

	if (at >= section->size || !is_unchanged(&file->parts))
		return 0;
	size = section->size - at < size ? section->size - at : size;
	while (done < size) {
		ssize_t got = pread(file->parts.fd, (char *)buffer + done, (size_t)(size - done),
				    (off_t)(section->from + at + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		done += (uint64_t)got;
	}
	return done;
}

/* The chunks that are missing are read, those that follow one another at once. */
bool perfring__dwarf_load_slow(struct perfring_dwarf_file *file, enum perfring_dwarf_section_name name, uint64_t at,
			       uint64_t size)
{
	struct perfring_dwarf_section *section = &file->sections[name];
	uint64_t first = at / CHUNK, end, i, next;

	if (at > section->size || size > section->size - at)
		return false;
	end = (at + size + CHUNK - 1) / CHUNK;
	for (i = first; i < end; i = next) {
		uint64_t from = i * CHUNK, to;

		next = i + 1;
		if (section->loaded[i / 8] >> i % 8 & 1)
			continue;
		while (next < end && !(section->loaded[next / 8] >> next % 8 & 1))
			next++;
		to = next * CHUNK < section->size ? next * CHUNK : section->size;
		if (perfring__dwarf_read_part(file, name, from, section->bytes + from, to - from) < to - from)
			return false;
		for (uint64_t j = i; j < next; j++)
			section->loaded[j / 8] |= (uint8_t)(1 << j % 8);
	}
	return true;
}

/* ---- memory for parts ---- */

unsigned char *perfring__dwarf_space_take(struct perfring_dwarf_parts *parts, uint64_t size, uint64_t *space)
{
	unsigned char *bytes;

	for (int i = 0; i < 2; i++)
		if (parts->spares[i].bytes && parts->spares[i].space >= size) {
			bytes = parts->spares[i].bytes;
			*space = parts->spares[i].space;
			parts->spares[i].bytes = NULL;
			return bytes;
		}
	*space = (size / ROUND + 1) * ROUND;
	/* not malloc's: to free large memory changes how it treats what grows */
	bytes = mmap(NULL, (size_t)*space, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (bytes == MAP_FAILED)
		return NULL;
	perfring__os_use_huge_pages(bytes, (size_t)*space);
	return bytes;
}

void perfring__dwarf_space_return(struct perfring_dwarf_parts *parts, unsigned char *bytes, uint64_t space)
{
	for (int i = 0; i < 2 && bytes; i++)
		if (!parts->spares[i].bytes) {
			parts->spares[i].bytes = bytes;
			parts->spares[i].space = space;
			return;
		}
	if (bytes)
		munmap(bytes, (size_t)space);
}

/* ---- units ---- */

void perfring__dwarf_unit_rest(struct perfring_dwarf_unit *unit)
{
	struct perfring_dwarf_parts *parts = &unit->file->parts;
	struct perfring_dwarf_unit *older = NULL;

	if (!unit->bytes || !unit->file->sections[PERFRING_DWARF_INFO].is_left)
		return;
	for (struct perfring_dwarf_unit *other = parts->oldest; other != unit; other = other->newer)
		older = other;
	*(older ? &older->newer : &parts->oldest) = unit->newer;
	if (parts->newest == unit)
		parts->newest = older;
	parts->held -= unit->end - unit->at;
	perfring__dwarf_space_return(parts, unit->bytes, unit->space);
	unit->bytes = NULL;
	unit->newer = NULL;
}

bool perfring__dwarf_unit_load_slow(struct perfring_dwarf_unit *unit)
{
	struct perfring_dwarf_file *file = unit->file;
	struct perfring_dwarf_parts *parts = &file->parts;
	uint64_t size = unit->end - unit->at;

	if (!file->sections[PERFRING_DWARF_INFO].is_left || parts->has_changed)
		return false;
	/* whenever as many bytes as the section has were read again, twice as many are kept: so what is read has a bound */
	parts->read += size;
	if (parts->read > file->sections[PERFRING_DWARF_INFO].size) {
		parts->read = size;
		parts->kept *= 2;
	}
	while (parts->oldest && parts->held + size > parts->kept)
		perfring__dwarf_unit_rest(parts->oldest);
	unit->bytes = perfring__dwarf_space_take(parts, size, &unit->space);
	if (!unit->bytes) {
		file->memory->is_short = true;
		return false;
	}
	if (perfring__dwarf_read_part(file, PERFRING_DWARF_INFO, unit->at, unit->bytes, size) < size) {
		perfring__dwarf_space_return(parts, unit->bytes, unit->space);
		unit->bytes = NULL;
		return false;
	}
	parts->held += size;
	*(parts->newest ? &parts->newest->newer : &parts->oldest) = unit;
	parts->newest = unit;
	return true;
}

/* ---- texts ---- */

const char *perfring__dwarf_keep(struct perfring_dwarf_file *file, enum perfring_dwarf_section_name name,
				 const char *text)
{
	size_t size;
	char *kept;

	if (!text || !file->sections[name].is_left)
		return text;
	size = strnlen(text, PERFRING_LIMIT_NAME + 1) + 1;
	kept = size <= PERFRING_LIMIT_NAME + 1 ? perfring__dwarf_text_space(file->memory, size) : NULL;
	return kept ? memcpy(kept, text, size) : NULL;
}

/* A section that is left in the file, and bytes of it. */
struct window {
	struct perfring_dwarf_file *file;
	enum perfring_dwarf_section_name name;
	char *bytes;
	uint64_t from, end; /* in the section */
};

static uint64_t offset_of(const struct window *window, const char *place)
{
	return (uint64_t)(place - (const char *)window->file->sections[window->name].bytes);
}

/* Where the bytes of a window have to end, that begins with the first text: further texts that are near are read with it. */
static uint64_t end_of(const struct window *window, const char *const *places, uint32_t count)
{
	uint64_t first = offset_of(window, places[0]), end = first + SOME;

	for (uint32_t i = 1; i < count; i++) {
		uint64_t at = offset_of(window, places[i]);

		if (at > end + NEAR || at + SOME > first + CHUNK)
			break;
		end = at + SOME > end ? at + SOME : end;
	}
	return end;
}

/* Reads bytes into a window, and a NUL after the section's last.  Returns the first NUL in them, or NULL. */
static const char *read_window(struct window *window, uint64_t from, uint64_t end)
{
	uint64_t got = perfring__dwarf_read_part(window->file, window->name, from, window->bytes, end - from);

	if (from + got == window->file->sections[window->name].size)
		window->bytes[got++] = 0;
	window->from = from;
	window->end = from + got;
	return memchr(window->bytes, 0, (size_t)got);
}

/* Texts of one section. */
static void read_texts(struct window *window, const char *const *places, uint32_t count,
		       void (*take)(void *to, const char *place, const char *text), void *to)
{
	for (uint32_t i = 0; i < count; i++) {
		uint64_t at = offset_of(window, places[i]), most = at + PERFRING_LIMIT_NAME + 1;
		bool is_there = at >= window->from && at < window->end;
		const char *last =
			is_there ? memchr(window->bytes + (at - window->from), 0, (size_t)(window->end - at)) : NULL;
		const char *text;

		if (!last)
			last = read_window(window, at, end_of(window, places + i, count - i));
		if (!last && window->end < most)
			last = read_window(window, at, most);
		text = window->bytes + (at - window->from);
		take(to, places[i], last && last - text <= (ptrdiff_t)PERFRING_LIMIT_NAME ? text : NULL);
	}
}

void perfring__dwarf_read_texts(struct perfring_dwarf_file *file, const char *const *places, uint32_t count,
				void (*take)(void *to, const char *place, const char *text), void *to)
{
	uint64_t space;
	char *bytes = (char *)perfring__dwarf_space_take(&file->parts, CHUNK + 1, &space);

	file->memory->is_short = file->memory->is_short || !bytes;
	for (uint32_t i = 0, next; i < count && bytes; i = next) {
		struct window window = {.file = file, .bytes = bytes, .name = PERFRING_DWARF_STR};

		if (!perfring__dwarf_is_in(file, PERFRING_DWARF_STR, places[i]))
			window.name = PERFRING_DWARF_INFO;
		for (next = i + 1; next < count && perfring__dwarf_is_in(file, window.name, places[next]); next++)
			;
		read_texts(&window, places + i, next - i, take, to);
	}
	perfring__dwarf_space_return(&file->parts, (unsigned char *)bytes, space);
}

/* ---- all of it ---- */

void perfring__dwarf_parts_close(struct perfring_dwarf_parts *parts)
{
	if (!parts->is_open)
		return;
	while (parts->oldest)
		perfring__dwarf_unit_rest(parts->oldest);
	for (int i = 0; i < 2; i++)
		if (parts->spares[i].bytes)
			munmap(parts->spares[i].bytes, (size_t)parts->spares[i].space);
	close(parts->fd);
	*parts = (struct perfring_dwarf_parts){.is_open = false};
}
