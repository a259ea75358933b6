/* kernel_modules.c - the mappings of the kernel's modules as records, and their build ids.
 *
 * As perf, a module's mapping has the path of its file below /lib/modules/RELEASE, and without one its name in brackets.
 *
 * synthesis.c calls it when a recording begins; perfring_build_id_of_module serves record's build ids.  Reads /proc/modules,
 * /sys/module and folders below /lib/modules, in bounds (docs/limits.md).
 */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>
#include "build_id_private.h"
#include "os/array.h"
#include "os/lines.h"
#include "os/small_file.h"
#include "synthesis.h"

enum {
	MAX_ENTRIES = 1 << 17, /* of folders below /lib/modules/RELEASE; a distribution has some 10 000 */
	MAX_DEPTH = 16,
	MAX_NAME = 128, /* the kernel's has 55 bytes at most */
};

/* ---- files ---- */

struct module_file {
	char *path;
	char name[MAX_NAME];
};

struct module_files {
	struct module_file *list;
	uint32_t count, capacity;
	uint32_t entries;
	int error;
};

/* "it-87.ko.xz" is the file of module it_87.  Returns false if it is none. */
static bool name_module(const char *file, char name[MAX_NAME])
{
	static const char *const ENDS[] = {".ko", ".ko.gz", ".ko.xz", ".ko.zst"};
	size_t length = strlen(file), end;

	for (size_t i = 0; i < sizeof(ENDS) / sizeof(ENDS[0]); i++) {
		end = strlen(ENDS[i]);
		if (length <= end || length - end >= MAX_NAME || strcmp(file + length - end, ENDS[i]))
			continue;
		for (size_t j = 0; j < length - end; j++)
			name[j] = file[j] == '-' ? '_' : file[j];
		name[length - end] = 0;
		return true;
	}
	return false;
}

static void add_file(struct module_files *files, const char *path, const char name[MAX_NAME])
{
	struct module_file *file;

	if (perfring__os_array_grow(&files->list, files->count, &files->capacity, sizeof(*files->list))) {
		files->error = -ENOMEM;
		return;
	}
	file = &files->list[files->count];
	memcpy(file->name, name, MAX_NAME);
	file->path = strdup(path);
	files->error = file->path ? 0 : -ENOMEM;
	files->count += file->path != NULL;
}

/* Finds the files of modules in a folder and those below it.  path: the folder, with space for more names.  Folders that cannot
 * be read, links to sources, and any link to a folder are skipped. */
static void find_files(struct module_files *files, char path[PATH_MAX], size_t used, unsigned depth)
{
	struct dirent *entry;
	char name[MAX_NAME];
	struct stat about;
	DIR *folder = opendir(path);

	while (folder && !files->error && files->entries < MAX_ENTRIES && (entry = readdir(folder))) {
		size_t length = strlen(entry->d_name);

		if (entry->d_name[0] == '.' || used + length + 2 > PATH_MAX ||
		    (!depth && (!strcmp(entry->d_name, "build") || !strcmp(entry->d_name, "source"))))
			continue;
		files->entries++;
		path[used] = '/';
		memcpy(path + used + 1, entry->d_name, length + 1);
		if (name_module(entry->d_name, name) && !fstatat(dirfd(folder), entry->d_name, &about, 0) &&
		    S_ISREG(about.st_mode))
			add_file(files, path, name);
		else if (depth < MAX_DEPTH && !fstatat(dirfd(folder), entry->d_name, &about, AT_SYMLINK_NOFOLLOW) &&
			 S_ISDIR(about.st_mode))
			find_files(files, path, used + 1 + length, depth + 1);
		path[used] = 0;
	}
	if (folder)
		closedir(folder);
}

static int compare_files(const void *a, const void *b)
{
	return strcmp(((const struct module_file *)a)->name, ((const struct module_file *)b)->name);
}

static int open_files(struct module_files *files)
{
	struct utsname system;
	char path[PATH_MAX];

	*files = (struct module_files){0};
	if (uname(&system))
		return 0;
	snprintf(path, sizeof(path), "/lib/modules/%s", system.release);
	find_files(files, path, strlen(path), 0);
	if (files->count)
		qsort(files->list, files->count, sizeof(*files->list), compare_files);
	return files->error;
}

static void close_files(struct module_files *files)
{
	while (files->count)
		free(files->list[--files->count].path);
	free(files->list);
}

/* The path of a module's file; NULL: none was found. */
static const char *path_of(const struct module_files *files, const char *name)
{
	struct module_file key, *file = NULL;

	if (strlen(name) >= MAX_NAME)
		return NULL;
	strcpy(key.name, name);
	if (files->count)
		file = bsearch(&key, files->list, files->count, sizeof(*files->list), compare_files);
	return file ? file->path : NULL;
}

/* ---- build ids ---- */

static bool notes_of(const char *name, char *path, size_t size)
{
	return *name && !strchr(name, '/') && strcmp(name, ".") && strcmp(name, "..") &&
	       snprintf(path, size, "/sys/module/%s/notes/.note.gnu.build-id", name) < (int)size;
}

int64_t perfring_build_id_of_module(const char *mapping, uint8_t id[PERFRING_BUILD_ID_SIZE])
{
	char notes[MAX_NAME + 64], name[MAX_NAME];
	const char *slash = strrchr(mapping, '/');
	size_t length = strlen(mapping);

	if (*mapping == '[' && length > 2 && length - 2 < sizeof(name) && mapping[length - 1] == ']')
		snprintf(name, sizeof(name), "%.*s", (int)(length - 2), mapping + 1);
	else if (!slash || !name_module(slash + 1, name))
		return -EINVAL;
	return notes_of(name, notes, sizeof(notes)) ? perfring__build_id_of_notes(notes, id) : -EINVAL;
}

/* ---- records ---- */

/* A line "name size uses users state address". */
static int put_module(struct perfring_file_writer *writer, const struct module_files *files, char *line)
{
	char name[MAX_NAME + 2], notes[MAX_NAME + 64], *end = strchr(line, ' '), *at = strstr(line, " 0x");
	const char *path;
	uint64_t size, addr;

	if (!end || !at || end == line || (size_t)(end - line) > MAX_NAME - 3)
		return 0;
	*end = 0;
	size = strtoull(end + 1, NULL, 10);
	addr = strtoull(at + 1, NULL, 16);
	/* address 0: hidden from this user */
	if (!addr || !size || size - 1 > UINT64_MAX - addr)
		return 0;
	snprintf(name, sizeof(name), "[%s]", line);
	path = path_of(files, line);
	return perfring__synthesize_kernel_map(writer, addr, size, 0, path ? path : name,
					       notes_of(line, notes, sizeof(notes)) ? notes : "");
}

/* The list is loaded whole because a line with many users is long. */
int perfring__file_put_modules(struct perfring_file_writer *writer)
{
	struct module_files files = {0};
	char *text, *rest, *line;
	size_t whole;
	/* a kernel without modules has no such file */
	int error = perfring__os_pass_over(perfring__os_file_load("/proc/modules", &text, &whole));

	rest = text;
	if (!error && text && whole)
		error = open_files(&files);
	while (!error && (line = strsep(&rest, "\n")))
		error = put_module(writer, &files, line);
	close_files(&files);
	free(text);
	return error;
}
