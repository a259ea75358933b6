/* places.c - opens objects and debug files by path, and by build id in the caches of perf and debuginfod.
 *
 * symbols.c, debug_file.c, dwarf_sections.c, frames.c and kernel.c ask; places.h has the order of the places.  The caller tries them
 * one after another, and checks the build id of what was opened.  Allocates and reads files: for threads, not signal handlers.
 */
#include "places.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <perfring/build_id.h>
#include "os/object.h"

/* Where separate debug files are. */
#define DEBUG_FOLDER "/usr/lib/debug"

/* A new text in *path; NULL, and no error, if the folder is unknown or relative. */
static int join(char **path, const char *folder, const char *rest)
{
	*path = NULL;
	if (!folder || folder[0] != '/')
		return 0;
	if (asprintf(path, "%s%s", folder, rest) >= 0)
		return 0;
	*path = NULL; /* asprintf leaves it undefined */
	return -ENOMEM;
}

int perfring__places_open(struct perfring_places *places)
{
	const char *home = secure_getenv("HOME"), *perf = secure_getenv("PERF_BUILDID_DIR");
	const char *debuginfod = secure_getenv("DEBUGINFOD_CACHE_PATH"), *cache = secure_getenv("XDG_CACHE_HOME");
	int error = perf ? join(&places->perf_cache, perf, "") : join(&places->perf_cache, home, "/.debug");

	if (error)
		return error;
	if (debuginfod)
		return join(&places->debuginfod_cache, debuginfod, "");
	if (cache)
		return join(&places->debuginfod_cache, cache, "/debuginfod_client");
	return join(&places->debuginfod_cache, home, "/.cache/debuginfod_client");
}

void perfring__places_close(struct perfring_places *places)
{
	free(places->perf_cache);
	free(places->debuginfod_cache);
	perfring__debuginfod_close(places->servers);
	memset(places, 0, sizeof(*places));
}

int perfring__places_open_path(const struct perfring_places *places, const char *path)
{
	return places->symfs ? perfring__os_object_open_in(places->symfs, path)
			     : perfring__os_object_open(places->pid, path);
}

int perfring__places_open_build(const struct perfring_places *places, enum perfring_place_of wanted, const uint8_t *id,
				uint32_t size, unsigned place, const char *name, char path[PATH_MAX])
{
	/* the file's name in perf's cache, and in debuginfod's; NULL: never there */
	static const char *const names[][2] = {
		[PERFRING_PLACE_OBJECT] = {"elf", "executable"},
		[PERFRING_PLACE_DEBUG_FILE] = {"debug", "debuginfo"},
		[PERFRING_PLACE_VDSO] = {"vdso", NULL},
		[PERFRING_PLACE_KALLSYMS] = {"kallsyms", NULL},
	};
	char text[2 * PERFRING_BUILD_ID_SIZE + 1] = "";
	int fd;

	if (size < 2 || size > PERFRING_BUILD_ID_SIZE)
		return -ENODATA;
	for (uint32_t byte = 0; byte < size; byte++)
		snprintf(text + (size_t)2 * byte, 3, "%02x", id[byte]);
	switch (place) {
	case PERFRING_PLACES_TREE:
		if (wanted != PERFRING_PLACE_DEBUG_FILE)
			return -ENOENT;
		snprintf(path, PATH_MAX, DEBUG_FOLDER "/.build-id/%.2s/%s.debug", text, text + 2);
		fd = perfring__places_open_path(places, path);
		return fd < 0 && places->symfs ? perfring__os_object_open(0, path) : fd;
	case PERFRING_PLACES_PERF:
		if (!places->perf_cache)
			return -ENOENT;
		snprintf(path, PATH_MAX, "%.3900s/.build-id/%.2s/%s/%s", places->perf_cache, text, text + 2,
			 names[wanted][0]);
		return perfring__os_object_open(0, path);
	case PERFRING_PLACES_DEBUGINFOD:
		if (!places->debuginfod_cache || !names[wanted][1])
			return -ENOENT;
		snprintf(path, PATH_MAX, "%.3900s/%s/%s", places->debuginfod_cache, text, names[wanted][1]);
		return perfring__os_object_open(0, path);
	case PERFRING_PLACES_SERVERS:
		if (!places->servers || !names[wanted][1])
			return -ENOENT;
		return perfring__debuginfod_find(places->servers, wanted, id, size, name, path);
	}
	return -ENODATA;
}
