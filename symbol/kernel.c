/* kernel.c - the symbols of the kernel that was recorded: of kallsyms or an image, at the addresses of its boot.
 *
 * perfring_symbols_get_kernel of symbol.h.  The lists are foreign text; their size and the names are bounded (limits.h).  The
 * table is an object of the cache, and lives as long.
 *
 * The kernel formats each line of /proc/kallsyms when it is read, which takes ten times what is done here with the line.  In its text,
 * from _text to _etext, a build has the same symbols in each boot: those of perf's cache, a file, serve until another address is
 * looked up.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>
#include "limits.h"
#include "os/object.h"
#include "symbols.h"

/* What is read, and how it is moved. */
struct source {
	const struct perfring_symbol_kernel *kernel;
	struct perfring_elf_symbols *symbols;
	bool is_image;
	bool is_seen;       /* an address is not hidden */
	bool has_reference; /* it has that symbol */
	uint64_t reference;
	uint64_t text_start, text_end; /* _text and _etext; 0: it has no such symbol */
};

/* All of a file and a NUL, kept where names point into.  Returns 0, -E2BIG, -ENOMEM or -errno. */
static int read_text(struct source *source, int fd, char **text)
{
	size_t size = 0, capacity = 1 << 20;
	char *buffer = malloc(capacity), *larger;
	ssize_t got = buffer ? 1 : 0;

	while (buffer && got > 0) {
		if (capacity - size < 4096) {
			larger = capacity < PERFRING_LIMIT_KALLSYMS ? realloc(buffer, 2 * capacity) : NULL;
			if (!larger) {
				free(buffer);
				return capacity < PERFRING_LIMIT_KALLSYMS ? -ENOMEM : -E2BIG;
			}
			buffer = larger;
			capacity *= 2;
		}
		do
			got = read(fd, buffer + size, capacity - size - 1);
		while (got < 0 && errno == EINTR);
		size += got > 0 ? (size_t)got : 0;
	}
	if (!buffer || got < 0) {
		int error = buffer ? -errno : -ENOMEM;

		free(buffer);
		return error;
	}
	buffer[size] = 0;
	*text = source->symbols->texts[source->symbols->text_count++] = buffer;
	return 0;
}

static void take_bound(struct source *source, const char *name, uint64_t address)
{
	if (!strcmp(name, "_text"))
		source->text_start = address;
	else if (!strcmp(name, "_etext"))
		source->text_end = address;
}

/* "ffffffff81000000 T name [module]": the line is cut into its words where it lies.  Returns 0 or -ENOMEM. */
static int take_line(struct source *source, char *line)
{
	const struct perfring_symbol_kernel *kernel = source->kernel;
	struct perfring_symbol_table *table = &source->symbols->table;
	char *at, *name, type;
	bool has_module;
	uint64_t start = 0;
	int error;

	for (at = line; isxdigit((unsigned char)*at); at++)
		start = start << 4 | (uint64_t)(*at <= '9' ? *at - '0' : (*at | 0x20) - 'a' + 10);
	if (at == line || *at != ' ' || !at[1] || at[2] != ' ' || !start)
		return 0;
	source->is_seen = true;
	type = at[1];
	name = at + 3;
	at = name + strcspn(name, "\t ");
	has_module = *at && strchr(at + 1, '[');
	*at = 0;
	if (*name == '_' && !has_module)
		take_bound(source, name, start);
	if (kernel->reference && !source->has_reference && !has_module && !strcmp(name, kernel->reference)) {
		source->has_reference = true;
		source->reference = start;
	}
	/* code and data, as perf; of several names of one address the last one is shown */
	if (!strchr("tTwWdDbB", type) || table->count >= PERFRING_LIMIT_SYMBOLS)
		return 0;
	error = perfring__symbol_table_add(table, start, start, name, 0);
	if (!error) {
		table->entries[table->count - 1].is_shown = true; /* the kernel's names are not mangled */
		table->entries[table->count - 1].has_module = has_module;
	}
	return error;
}

static int read_kallsyms(struct source *source, int fd)
{
	char *line = NULL, *end;
	int error = fd < 0 ? fd : read_text(source, fd, &line);

	for (; !error && *line; line = end) {
		end = strchrnul(line, '\n');
		if (*end)
			*end++ = 0;
		error = take_line(source, line);
	}
	return error;
}

static int read_image(struct perfring_symbols *symbols, struct source *source, int fd, const char *path)
{
	struct perfring_elf_symbols *elf = source->symbols;
	int error;

	elf->reference = source->kernel->reference;
	error = fd < 0 ? fd : perfring__elf_symbols_read(elf, fd, path, &symbols->places, false, &symbols->bytes_left);
	/* recorded are addresses, not offsets in this file: symbols are looked up without the segments */
	elf->segment_count = 0;
	source->is_image = source->is_seen = true;
	source->has_reference = elf->has_reference;
	source->reference = elf->reference_address;
	return error;
}

/* Moves the kernel's own symbols to the addresses that they had, and drops those of modules, which moved by other differences. */
static void move(struct perfring_symbol_table *table, uint64_t difference)
{
	uint32_t count = 0;

	for (uint32_t i = 0; difference && i < table->count; i++)
		if (!table->entries[i].has_module) {
			table->entries[count] = table->entries[i];
			table->entries[count].start += difference;
			table->entries[count++].end += difference;
		}
	if (difference)
		table->count = count;
}

/* The last symbol of the kernel itself, and of each module, ends with its page: what follows is another's. */
static void end_modules(struct perfring_symbol_table *table)
{
	for (uint32_t i = 0; i + 1 < table->count; i++) {
		struct perfring_symbol_entry *entry = &table->entries[i];
		uint64_t end = (entry->start + 4096 + 4095) / 4096 * 4096;

		if (entry->has_module != entry[1].has_module && entry->end == entry[1].start && end < entry->end)
			entry->end = end;
	}
}

/* Returns whether the running kernel is the recorded one; *is_sure: its build is. */
static bool is_running(const struct perfring_symbol_kernel *kernel, bool *is_sure)
{
	uint8_t id[PERFRING_BUILD_ID_SIZE];
	struct utsname here;

	*is_sure = false;
	if (kernel->build_id_size) {
		int64_t size = perfring_build_id_of_kernel(id);

		if (size > 0) {
			*is_sure =
				size >= kernel->build_id_size && !memcmp(id, kernel->build_id, kernel->build_id_size);
			return *is_sure;
		}
	}
	return !kernel->release || uname(&here) || !strcmp(kernel->release, here.release);
}

/* One source.  is_sure: it is of the recorded build.  Returns 0 and `why`, or -ENOMEM. */
static int take_source(struct perfring_symbol_object *object, struct source *source, int error, bool is_sure)
{
	const struct perfring_symbol_kernel *kernel = source->kernel;
	struct perfring_symbol_table *table = &source->symbols->table;
	uint64_t difference = source->has_reference ? kernel->address - source->reference : 0;

	object->error = 0;
	if (error == -ENOMEM)
		return error;
	if (error) {
		object->why = error == -E2BIG ? PERFRING_SYMBOL_LIMIT : PERFRING_SYMBOL_UNREADABLE;
		object->error = error;
	} else if (!source->is_seen) {
		object->why = PERFRING_SYMBOL_HIDDEN;
	} else if (kernel->reference && !is_sure && (!source->has_reference || difference)) {
		object->why = PERFRING_SYMBOL_OTHER_BOOT;
	} else {
		move(table, difference);
		error = source->is_image ? perfring__symbol_table_sort(table, false)
					 : perfring__symbol_table_sort_last(table);
		if (error)
			return error;
		end_modules(table);
		object->why = PERFRING_SYMBOL_KNOWN;
	}
	return 0;
}

static int read_running(struct source *source)
{
	int fd = open("/proc/kallsyms", O_RDONLY | O_CLOEXEC), error = read_kallsyms(source, fd < 0 ? -errno : fd);

	if (fd >= 0)
		close(fd);
	return error;
}

static int open_cached(const struct perfring_symbols *symbols, const struct perfring_symbol_kernel *kernel)
{
	char path[PATH_MAX];

	return perfring__places_open_build(&symbols->places, PERFRING_PLACE_KALLSYMS, kernel->build_id,
					   kernel->build_id_size, PERFRING_PLACES_PERF, "[kernel.kallsyms]", path);
}

/* Whether /proc/kallsyms can be read, and shows addresses: the first one that is not 0 is in its first lines. */
static bool shows_running(void)
{
	char text[4096], *end;
	int fd = open("/proc/kallsyms", O_RDONLY | O_CLOEXEC);
	ssize_t size = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	bool is_seen = false;

	if (fd >= 0)
		close(fd);
	text[size > 0 ? size : 0] = 0;
	for (char *line = text; !is_seen && (end = strchr(line, '\n')); line = end + 1)
		is_seen = strtoull(line, NULL, 16);
	return is_seen;
}

/* Finds the text of the running kernel, whose build is the recorded one, in perf's cache.  Returns 1, and object->text_start ...; 0: the
 * cache does not have it, or the running kernel hides its addresses; -ENOMEM. */
static int find_text(struct perfring_symbols *symbols, struct perfring_symbol_object *object,
		     const struct perfring_symbol_kernel *kernel)
{
	struct source source = {.kernel = kernel, .symbols = &object->file->symbols};
	int fd, error;

	if (!kernel->reference || strcmp(kernel->reference, "_text") || !shows_running())
		return 0;
	fd = open_cached(symbols, kernel);
	if (fd < 0)
		return 0;
	error = read_kallsyms(&source, fd);
	close(fd);
	if (error || !source.text_start || source.text_end <= source.text_start) {
		perfring__symbol_table_close(&source.symbols->table);
		return error == -ENOMEM ? error : 0;
	}
	object->text_start = kernel->address;
	object->text_end = kernel->address + (source.text_end - source.text_start);
	error = take_source(object, &source, 0, true);
	return error ? error : 1;
}

void perfring__symbols_read_beyond(struct perfring_symbol_object *object)
{
	const struct perfring_symbol_kernel kernel = {.reference = "_text", .address = object->text_start};
	struct source source = {.kernel = &kernel, .symbols = &object->file->symbols};
	int error;

	object->text_end = 0;
	perfring__symbol_table_close(&source.symbols->table);
	error = take_source(object, &source, read_running(&source), true);
	if (error) {
		object->why = PERFRING_SYMBOL_UNREADABLE;
		object->error = error;
	}
}

static int find_kernel(struct perfring_symbols *symbols, struct perfring_symbol_object *object,
		       const struct perfring_symbol_kernel *kernel)
{
	struct perfring_symbols_file *file = object->file;
	struct source source = {.kernel = kernel, .symbols = &file->symbols};
	bool is_sure;
	int fd, ret;

	object->why = PERFRING_SYMBOL_OTHER_BUILD;
	if (kernel->kallsyms || kernel->vmlinux) {
		uint8_t id[PERFRING_BUILD_ID_SIZE];

		fd = perfring__os_object_open(0, kernel->kallsyms ? kernel->kallsyms : kernel->vmlinux);
		if (!kernel->kallsyms && fd >= 0 && kernel->build_id_size &&
		    perfring__elf_build_id(fd, &symbols->bytes_left, id) >= (int)kernel->build_id_size &&
		    memcmp(id, kernel->build_id, kernel->build_id_size)) {
			close(fd);
			return 0;
		}
		ret = kernel->kallsyms ? read_kallsyms(&source, fd) : read_image(symbols, &source, fd, kernel->vmlinux);
		ret = take_source(object, &source, ret, true);
	} else if (is_running(kernel, &is_sure)) {
		ret = is_sure ? find_text(symbols, object, kernel) : 0;
		if (ret)
			return ret < 0 ? ret : 0;
		return take_source(object, &source, read_running(&source), is_sure);
	} else {
		fd = open_cached(symbols, kernel);
		if (fd < 0)
			return 0;
		ret = take_source(object, &source, read_kallsyms(&source, fd), true);
	}
	if (fd >= 0)
		close(fd);
	return ret;
}

int perfring_symbols_get_kernel(struct perfring_symbols *symbols, const struct perfring_symbol_kernel *kernel,
				struct perfring_symbol_object **result)
{
	struct perfring_symbol_object *object;
	int error;

	if (kernel->build_id_size > PERFRING_BUILD_ID_SIZE)
		return -EINVAL;
	object = calloc(1, sizeof(*object) + 1);
	if (!object)
		return -ENOMEM;
	object->symbols = symbols;
	object->file = calloc(1, sizeof(*object->file));
	error = object->file ? find_kernel(symbols, object, kernel) : -ENOMEM;
	if (error) {
		perfring__symbols_close_kernel(object);
		return error;
	}
	object->file->has_no_lines = true;
	object->next = symbols->kernels;
	symbols->kernels = *result = object;
	return 0;
}

void perfring__symbols_close_kernel(struct perfring_symbol_object *object)
{
	if (object->file)
		perfring__elf_symbols_close(&object->file->symbols);
	free(object->file);
	free(object);
}
