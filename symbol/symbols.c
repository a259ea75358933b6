/* symbols.c - the cache of objects: paths and build ids lead to files, and each file is read once.
 *
 * The functions of symbol.h but for frames.c and kernel.c.  An object is one that a caller asked for, a file what was read:
 * several objects may be one file.  Both live until perfring_symbols_close.  One thread.
 *
 *     object (path, build id; without one, recorded inode) --> file (its identity) --> table of symbols
 *
 * The file that the path leads to here is tried first; then, if they are the recorded build, the one that the process sees, and
 * those of the build id in places.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <perfring/file.h>
#include "demangle.h"
#include "limits.h"
#include "os/array.h"
#include "os/hash.h"
#include "os/inode.h"
#include "os/object.h"
#include "symbols.h"

enum {
	OBJECT_PLACES = 1024, /* at first */
};

/* ---- files ---- */

bool perfring__symbols_is_other(const struct perfring_symbols_file *file, const uint8_t *id, uint32_t size)
{
	uint32_t both = size < file->id_size ? size : file->id_size;

	if (!size)
		return false;
	if (!file->id_size || memcmp(id, file->id, both))
		return true;
	/* perf before 5.12 filled the rest of 20 bytes with zeros */
	for (uint32_t i = both; i < size; i++)
		if (id[i])
			return true;
	/* a recorder may have kept the beginning alone */
	return size < 8 && size < file->id_size;
}

/* Finds or adds the file of a descriptor, with its build id.  Returns 0; -errno: its build is not known. */
static int get_file(struct perfring_symbols *symbols, int fd, struct perfring_symbols_file **result)
{
	struct perfring_symbols_file **place, *file;
	struct perfring_os_identity identity;
	int size, error = perfring__os_identity_of(fd, &identity);

	if (error)
		return error;
	place = &symbols->files[(identity.inode ^ identity.device << 32) * symbols->factor >> 52];
	for (file = *place; file; file = file->next)
		if (!perfring__os_identity_compare(&file->identity, &identity)) {
			*result = file;
			return 0;
		}
	file = calloc(1, sizeof(*file));
	if (!file)
		return -ENOMEM;
	size = perfring__elf_build_id(fd, &symbols->bytes_left, file->id);
	if (size < 0) {
		free(file);
		return size;
	}
	file->id_size = (uint32_t)size;
	file->identity = identity;
	file->next = *place;
	*place = *result = file;
	symbols->file_count++;
	return 0;
}

int perfring__symbols_is_its(struct perfring_symbols *symbols, const struct perfring_symbols_file *file, int fd)
{
	uint8_t id[PERFRING_BUILD_ID_SIZE];
	int size;

	if (!file->id_size)
		return perfring__os_identity_is(&file->identity, fd);
	size = perfring__elf_build_id(fd, &symbols->bytes_left, id);
	return size < 0 ? size : size == (int)file->id_size && !memcmp(id, file->id, file->id_size);
}

int perfring__symbols_open_again(struct perfring_symbols *symbols, const struct perfring_symbols_file *file)
{
	int error = -ENOENT;

	if (!strcmp(file->path, "[vdso]"))
		return perfring_vdso_open();
	for (int i = 0; i < 2; i++) {
		/* where it was read, then here: the process may have ended, and a file of a build id is not below --symfs */
		int fd = i               ? perfring__os_object_open(0, file->path)
			 : file->pid > 0 ? perfring__os_object_open_as(file->pid, file->path)
					 : perfring__places_open_path(&symbols->places, file->path);
		int ret = fd < 0 ? fd : perfring__symbols_is_its(symbols, file, fd);

		if (ret > 0)
			return fd;
		if (fd >= 0)
			close(fd);
		if (!i)
			error = ret < 0 ? ret : -ESTALE;
	}
	return error;
}

/* places: of the process whose file it is.  Returns 0 or -ENOMEM: then it is read again the next time. */
static int read_file(struct perfring_symbols *symbols, struct perfring_symbols_file *file, int fd, const char *path,
		     const struct perfring_places *places)
{
	int error;

	if (file->is_read)
		return 0;
	if (!file->path)
		file->path = strdup(path);
	file->pid = places->pid;
	error = !file->path ? -ENOMEM
		: symbols->flags & PERFRING_SYMBOLS_NAMELESS
			? perfring__elf_symbols_read_segments(&file->symbols, fd, &symbols->bytes_left)
			: perfring__elf_symbols_read(&file->symbols, fd, path, places,
						     !(symbols->flags & PERFRING_SYMBOLS_MANGLED),
						     &symbols->bytes_left);
	if (error == -ENOMEM) {
		perfring__elf_symbols_close(&file->symbols);
		return error;
	}
	file->is_read = true;
	file->error = file->symbols.error;
	if (error) {
		file->why = error == -E2BIG ? PERFRING_SYMBOL_LIMIT : PERFRING_SYMBOL_UNREADABLE;
		file->error = error == -E2BIG ? 0 : error;
	}
	return 0;
}

/* No more files are opened: even to look at a build id costs time. */
static bool is_full(const struct perfring_symbols *symbols, struct perfring_symbol_object *object)
{
	if (symbols->file_count < PERFRING_LIMIT_FILES)
		return false;
	object->exceeded = "10000 objects";
	return true;
}

/* ---- objects ---- */

/* Whether the file of a descriptor is of another build than was recorded, or another file. */
static bool is_other(const struct perfring_symbol_object *object, const struct perfring_symbols_file *file, int fd)
{
	return perfring__symbols_is_other(file, object->id, object->id_size) ||
	       (object->ino && !perfring__os_inode_is(fd, object->ino, object->ino_generation));
}

/* Takes the file of a descriptor, which is closed, if it is the recorded build.  Returns 1 when it is; 0, with the object's `why`
 * and `error`; or -ENOMEM. */
static int take_file(struct perfring_symbols *symbols, struct perfring_symbol_object *object, int fd, const char *path,
		     int32_t pid)
{
	struct perfring_places places = symbols->places;
	struct perfring_symbols_file *file = NULL;
	int error = fd < 0 ? fd : get_file(symbols, fd, &file);

	places.pid = pid;
	object->why = PERFRING_SYMBOL_UNREADABLE;
	object->error = error;
	if (!error && is_other(object, file, fd)) {
		object->why = PERFRING_SYMBOL_OTHER_BUILD;
		file = NULL;
	}
	if (file)
		error = read_file(symbols, file, fd, path, &places);
	if (fd >= 0)
		close(fd);
	if (error == -ENOMEM && fd >= 0)
		return error;
	if (!file)
		return 0;
	object->file = file;
	object->why = file->why;
	object->error = file->error;
	return 1;
}

/* The same for one more file; why and error stay as they were if it is not taken. */
static int take_other_file(struct perfring_symbols *symbols, struct perfring_symbol_object *object, int fd,
			   const char *path, int32_t pid)
{
	enum perfring_symbol_why why = object->why;
	int error = object->error, ret = take_file(symbols, object, fd, path, pid);

	if (ret < 1) {
		object->why = why;
		object->error = error;
	}
	return ret;
}

static bool is_vdso(const struct perfring_symbol_object *object)
{
	return !strcmp(object->path, "[vdso]");
}

/* Tries the file that the path leads to in this process.  Returns 0 or -ENOMEM. */
static int find_here(struct perfring_symbols *symbols, struct perfring_symbol_object *object)
{
	int fd, ret;

	/* "//anon", "[heap]", "anon_inode:..." are no files (docs/abi.md 5). */
	if (!is_vdso(object) && (object->path[0] != '/' || object->path[1] == '/')) {
		object->why = PERFRING_SYMBOL_ANONYMOUS;
		return 0;
	}
	object->why = PERFRING_SYMBOL_LIMIT;
	if (is_full(symbols, object))
		return 0;
	if (is_vdso(object) && !object->id_size && symbols->flags & PERFRING_SYMBOLS_FOREIGN) {
		object->why = PERFRING_SYMBOL_UNREADABLE;
		return 0;
	}
	fd = is_vdso(object) ? perfring_vdso_open() : perfring__places_open_path(&symbols->places, object->path);
	ret = take_file(symbols, object, fd, object->path, 0);
	return ret < 0 ? ret : 0;
}

static bool was_tried(const struct perfring_symbol_object *object, int32_t pid)
{
	for (uint32_t i = object->pid_count; i--;)
		if (object->pids[i] == pid)
			return true;
	return false;
}

/* Tries the file that the path leads to in the process, which may have ended, so that another one has its pid: the file is taken
 * only if it is the recorded build.  Each pid is tried once.  Returns 1 if it was tried now, 0, or -ENOMEM. */
static int find_in_process(struct perfring_symbols *symbols, struct perfring_symbol_object *object, int32_t pid)
{
	int ret;

	if (object->path[0] != '/' || pid <= 0 || symbols->symfs || object->exceeded ||
	    object->pid_count >= PERFRING_LIMIT_PROCESSES || was_tried(object, pid))
		return 0;
	if (perfring__os_array_grow(&object->pids, object->pid_count, &object->pid_capacity, sizeof(*object->pids)))
		return -ENOMEM;
	if (is_full(symbols, object))
		return 1;
	ret = take_other_file(symbols, object, perfring_object_open(pid, object->path), object->path, pid);
	if (ret < 0)
		return ret;
	object->pids[object->pid_count++] = pid;
	return 1;
}

/* Tries the files of its build id (places.h), once.  Returns 1 if they were tried now, 0, or -ENOMEM. */
static int find_by_id(struct perfring_symbols *symbols, struct perfring_symbol_object *object)
{
	enum perfring_place_of wanted = is_vdso(object) ? PERFRING_PLACE_VDSO : PERFRING_PLACE_OBJECT;
	char path[PATH_MAX];
	int fd, ret = 0;

	if (object->was_sought || object->exceeded)
		return 0;
	for (unsigned place = 0; place < PERFRING_PLACES_COUNT && !ret; place++) {
		fd = perfring__places_open_build(&symbols->places, wanted, object->id, object->id_size, place,
						 object->path, path);
		if (fd >= 0)
			ret = take_other_file(symbols, object, fd, path, 0);
	}
	object->was_sought = ret >= 0;
	return ret < 0 ? ret : 1;
}

/* Tries other files, if the path leads to none or to another build here.  Returns 1 if any was tried now, 0, or -ENOMEM. */
static int find_elsewhere(struct perfring_symbols *symbols, struct perfring_symbol_object *object, int32_t pid)
{
	int ret, more = 0;

	if ((!object->id_size && !object->ino) || object->file ||
	    (object->why != PERFRING_SYMBOL_UNREADABLE && object->why != PERFRING_SYMBOL_OTHER_BUILD))
		return 0;
	ret = find_in_process(symbols, object, pid);
	if (ret < 0)
		return ret;
	if (!object->file && object->id_size)
		more = find_by_id(symbols, object);
	return more < 0 ? more : ret || more;
}

static uint64_t hash_of(const struct perfring_symbols *symbols, const struct perfring_symbol_file *file, size_t length)
{
	uint64_t hash = length ^ (uint64_t)file->build_id_size << 32 ^ file->ino * symbols->factor, word;

	for (size_t i = 0; i < length; i += sizeof(word)) {
		word = 0;
		memcpy(&word, file->path + i, length - i < sizeof(word) ? length - i : sizeof(word));
		hash = (hash ^ word) * symbols->factor;
		hash ^= hash >> 32;
	}
	for (uint32_t i = 0; i < file->build_id_size; i++)
		hash = (hash ^ file->build_id[i]) * symbols->factor;
	/* the low bits of a product do not depend on the high bits of the last word */
	hash *= symbols->factor;
	return hash ^ hash >> 32;
}

static struct perfring_symbol_object *make_object(struct perfring_symbols *symbols,
						  const struct perfring_symbol_file *file, size_t length, uint64_t hash)
{
	struct perfring_symbol_object *object = calloc(1, sizeof(*object) + length + 1);

	if (!object)
		return NULL;
	memcpy(object->path, file->path, length);
	if (file->build_id_size)
		memcpy(object->id, file->build_id, file->build_id_size);
	object->id_size = file->build_id_size;
	object->ino = file->ino;
	object->ino_generation = file->ino_generation;
	object->hash = hash;
	object->symbols = symbols;
	return object;
}

static void free_object(struct perfring_symbol_object *object)
{
	free(object->pids);
	free(object);
}

static void put_object(struct perfring_symbol_object **places, size_t count, struct perfring_symbol_object *object)
{
	struct perfring_symbol_object **place = &places[object->hash & (count - 1)];

	object->next = *place;
	*place = object;
}

/* Doubles the table if it has as many objects as places.  Without memory it stays as it is. */
static void grow(struct perfring_symbols *symbols)
{
	size_t count = 2 * symbols->object_places;
	struct perfring_symbol_object **places =
		symbols->object_count >= symbols->object_places ? calloc(count, sizeof(*places)) : NULL;

	if (!places)
		return;
	for (size_t i = 0; i < symbols->object_places; i++)
		for (struct perfring_symbol_object *object = symbols->objects[i], *next; object; object = next) {
			next = object->next;
			put_object(places, count, object);
		}
	free(symbols->objects);
	symbols->objects = places;
	symbols->object_places = count;
}

/* The one object that stands for all beyond the bound.  Returns as get_object. */
static int get_beyond(struct perfring_symbols *symbols, struct perfring_symbol_object **result)
{
	static const struct perfring_symbol_file none = {.path = ""};
	bool is_new = !symbols->beyond;

	if (is_new)
		symbols->beyond = make_object(symbols, &none, 0, 0);
	if (!symbols->beyond)
		return -ENOMEM;
	symbols->beyond->why = PERFRING_SYMBOL_LIMIT;
	symbols->beyond->exceeded = "65536 paths of different builds";
	*result = symbols->beyond;
	return is_new;
}

/* Returns 1 when it is new, 0, or -ENOMEM. */
static int get_object(struct perfring_symbols *symbols, const struct perfring_symbol_file *file,
		      struct perfring_symbol_object **result)
{
	size_t length = strlen(file->path);
	uint64_t hash = hash_of(symbols, file, length);
	struct perfring_symbol_object *object;
	int error;

	for (object = symbols->objects[hash & (symbols->object_places - 1)]; object; object = object->next)
		if (object->hash == hash && object->id_size == file->build_id_size && object->ino == file->ino &&
		    object->ino_generation == file->ino_generation && !strcmp(object->path, file->path) &&
		    (!object->id_size || !memcmp(object->id, file->build_id, object->id_size))) {
			*result = object;
			return 0;
		}
	if (symbols->object_count >= PERFRING_LIMIT_OBJECTS)
		return get_beyond(symbols, result);
	object = make_object(symbols, file, length, hash);
	error = object ? find_here(symbols, object) : -ENOMEM;
	if (error) {
		if (object)
			free_object(object);
		return error;
	}
	grow(symbols);
	put_object(symbols->objects, symbols->object_places, object);
	symbols->object_count++;
	*result = object;
	return 1;
}

int perfring__symbols_look_up(struct perfring_symbols *symbols, const struct perfring_symbol_file *file,
			      struct perfring_symbol_object **result)
{
	struct perfring_symbol_file wanted = *file;
	struct perfring_symbol_object *object = NULL;
	const struct perfring_build *build;
	int is_new, was_sought;

	if (file->build_id_size > PERFRING_BUILD_ID_SIZE)
		return -EINVAL;
	build = file->build_id_size ? NULL : perfring__builds_find(&symbols->builds, file->path);
	if (build) {
		wanted.build_id = build->id;
		wanted.build_id_size = build->id_size;
	}
	if (wanted.build_id_size || wanted.path[0] != '/' || symbols->symfs || symbols->flags & PERFRING_SYMBOLS_ELSEWHERE)
		wanted.ino = 0;
	if (!wanted.ino || wanted.ino_generation == 1) /* perf inject writes 1 */
		wanted.ino_generation = 0;
	is_new = get_object(symbols, &wanted, &object);
	if (is_new < 0)
		return is_new;
	was_sought = find_elsewhere(symbols, object, file->pid);
	if (was_sought < 0)
		return was_sought;
	*result = object;
	object->is_news = object->is_news || is_new || was_sought;
	return 0;
}

int perfring_symbols_get(struct perfring_symbols *symbols, const struct perfring_symbol_file *file,
			 struct perfring_symbol_object **result)
{
	int error = perfring__symbols_look_up(symbols, file, result), is_news;

	if (error)
		return error;
	is_news = (*result)->is_news;
	(*result)->is_news = false;
	return is_news;
}

int perfring_symbols_expect(struct perfring_symbols *symbols, const char *path, const uint8_t *build_id,
			    uint32_t build_id_size)
{
	if (!build_id_size || build_id_size > PERFRING_BUILD_ID_SIZE)
		return -EINVAL;
	return perfring__builds_add(&symbols->builds, path, build_id, build_id_size);
}

void perfring_symbol_state_of(const struct perfring_symbol_object *object, struct perfring_symbol_state *state)
{
	const struct perfring_symbols_file *file = object->file;

	memset(state, 0, sizeof(*state));
	state->why = object->why;
	state->error = object->error;
	state->exceeded = object->exceeded;
	if (!file)
		return;
	state->error_path = file->symbols.error ? file->symbols.error_path : NULL;
	state->path = file->path;
	state->debug_path = file->symbols.debug_path;
	state->has_exports_only = file->symbols.has_exports_only;
	if (!state->exceeded)
		state->exceeded = file->symbols.exceeded;
}

/* Demangles the name, once.  Without memory it stays as it is. */
static void show(struct perfring_symbols *symbols, struct perfring_symbol_entry *entry)
{
	char text[PERFRING_LIMIT_SHOWN_NAME];
	size_t length =
		symbols->flags & PERFRING_SYMBOLS_MANGLED ? 0 : perfring__demangle(entry->name, text, sizeof(text));
	struct perfring_shown_name *shown = NULL;

	entry->is_shown = true;
	if (length && length < symbols->shown_left)
		shown = malloc(sizeof(*shown) + length + 1);
	if (!shown)
		return;
	memcpy(shown->text, text, length + 1);
	shown->next = symbols->shown;
	symbols->shown = shown;
	symbols->shown_left -= length;
	entry->name = shown->text;
}

bool perfring_symbol_find(struct perfring_symbol_object *object, uint64_t offset, struct perfring_symbol *symbol)
{
	struct perfring_symbol_entry *entry;

	memset(symbol, 0, sizeof(*symbol));
	symbol->address = offset;
	if (object->text_end && (offset < object->text_start || offset >= object->text_end))
		perfring__symbols_read_beyond(object);
	symbol->why = object->why;
	if (object->why != PERFRING_SYMBOL_KNOWN)
		return false;
	symbol->address = perfring__elf_symbols_address(&object->file->symbols, offset);
	entry = perfring__symbol_table_find(&object->file->symbols.table, symbol->address);
	symbol->why = entry ? PERFRING_SYMBOL_KNOWN : PERFRING_SYMBOL_NONE;
	if (entry) {
		if (!entry->is_shown)
			show(object->symbols, entry);
		symbol->name = entry->name;
		if (entry->has_module)
			symbol->module = strchr(entry->name + strlen(entry->name) + 1, '[');
		symbol->start = entry->start;
		symbol->end = entry->end;
	}
	return entry != NULL;
}

/* ---- all of it ---- */

static int fill(struct perfring_symbols *symbols, const struct perfring_symbols_options *options)
{
	int error = 0;

	symbols->objects = calloc(OBJECT_PLACES, sizeof(*symbols->objects));
	if (!symbols->objects)
		return -ENOMEM;
	symbols->object_places = OBJECT_PLACES;
	symbols->factor = perfring__os_hash_factor(symbols);
	symbols->bytes_left = PERFRING_LIMIT_ALL_BYTES;
	symbols->shown_left = PERFRING_LIMIT_SHOWN_NAMES;
	symbols->flags = options->flags;
	if (options->symfs) {
		symbols->symfs = strdup(options->symfs);
		if (!symbols->symfs)
			return -ENOMEM;
		symbols->places.symfs = symbols->symfs;
	}
	if (!(options->flags & PERFRING_SYMBOLS_NO_CACHES))
		error = perfring__places_open(&symbols->places);
	if (!error && (options->flags & PERFRING_SYMBOLS_SERVERS))
		error = perfring__debuginfod_open(&symbols->places.servers, options->progress, options->to);
	return error;
}

uint32_t perfring_symbols_flags_for(const struct perfring_file *file)
{
	const char *release = file ? perfring_file_string(file, PERFRING_FEATURE_OSRELEASE) : NULL;
	const char *host = file ? perfring_file_string(file, PERFRING_FEATURE_HOSTNAME) : NULL;
	struct utsname here;
	uint32_t flags = 0;

	if (!file)
		return 0;
	if (uname(&here))
		return PERFRING_SYMBOLS_FOREIGN | PERFRING_SYMBOLS_ELSEWHERE;
	if (release && strcmp(release, here.release))
		flags |= PERFRING_SYMBOLS_FOREIGN;
	if (!host || strcmp(host, here.nodename))
		flags |= PERFRING_SYMBOLS_ELSEWHERE;
	return flags;
}

int perfring_symbols_open(struct perfring_symbols **result, const struct perfring_symbols_options *options)
{
	static const uint32_t known = PERFRING_SYMBOLS_MANGLED | PERFRING_SYMBOLS_NO_CACHES | PERFRING_SYMBOLS_SERVERS |
				      PERFRING_SYMBOLS_FOREIGN | PERFRING_SYMBOLS_NAMELESS |
				      PERFRING_SYMBOLS_ELSEWHERE;
	static const struct perfring_symbols_options none = {.flags = 0};
	struct perfring_symbols *symbols;
	int error;

	*result = NULL;
	options = options ? options : &none;
	if (options->flags & ~known)
		return -EINVAL;
	symbols = calloc(1, sizeof(*symbols));
	if (!symbols)
		return -ENOMEM;
	error = fill(symbols, options);
	if (error) {
		perfring_symbols_close(symbols);
		return error;
	}
	*result = symbols;
	return 0;
}

void perfring_symbols_close(struct perfring_symbols *symbols)
{
	if (!symbols)
		return;
	for (size_t i = 0; i < symbols->object_places; i++)
		for (struct perfring_symbol_object *object = symbols->objects[i], *next; object; object = next) {
			next = object->next;
			free_object(object);
		}
	for (size_t i = 0; i < PERFRING_FILE_PLACES; i++)
		for (struct perfring_symbols_file *file = symbols->files[i], *next; file; file = next) {
			next = file->next;
			perfring__symbols_close_lines(symbols, file);
			perfring__elf_symbols_close(&file->symbols);
			perfring__elf_unwind_close(&file->unwind);
			free(file->path);
			free(file);
		}
	for (struct perfring_symbol_object *kernel = symbols->kernels, *next; kernel; kernel = next) {
		next = kernel->next;
		perfring__symbols_close_kernel(kernel);
	}
	if (symbols->beyond)
		free_object(symbols->beyond);
	perfring__shown_names_close(&symbols->shown);
	perfring__places_close(&symbols->places);
	perfring__builds_close(&symbols->builds);
	free(symbols->symfs);
	free(symbols->frames);
	free(symbols->objects);
	free(symbols);
}
