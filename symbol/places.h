/* places.h - where objects and debug files are looked for: folders, caches by build id, servers.
 *
 * A perfring_symbols keeps one, and copies it with the `pid` of an object; its thread calls all of this.  Functions open files, and
 * may ask servers: not for signal handlers.
 */
#ifndef PERFRING_SYMBOL_PLACES_H
#define PERFRING_SYMBOL_PLACES_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

struct perfring_debuginfod;

/* The caches' paths are allocated by open and freed by close; symfs stays the caller's. */
struct perfring_places {
	const char *symfs;                   /* a folder that stands for the root; NULL: none */
	int32_t pid;                         /* whose root it is; 0: this process's */
	char *perf_cache;                    /* "~/.debug"; NULL: none */
	char *debuginfod_cache;              /* NULL: none */
	struct perfring_debuginfod *servers; /* NULL: none */
};

/* What is looked for. */
enum perfring_place_of {
	PERFRING_PLACE_OBJECT,
	PERFRING_PLACE_DEBUG_FILE,
	PERFRING_PLACE_VDSO,
	PERFRING_PLACE_KALLSYMS,
};

/* Sets the caches of this user, by HOME and the variables of perf and debuginfod; other members stay.  Returns 0 or -ENOMEM; then
 * close frees what is there. */
int perfring__places_open(struct perfring_places *places);
void perfring__places_close(struct perfring_places *places);

/* Opens the regular file of a path, in symfs or in the process's root.  Returns a descriptor, which the caller closes; or -errno. */
int perfring__places_open_path(const struct perfring_places *places, const char *path);

/* Where files of a build id are, in the order in which they are tried. */
enum {
	PERFRING_PLACES_TREE, /* /usr/lib/debug/.build-id: debug files */
	PERFRING_PLACES_PERF,
	PERFRING_PLACES_DEBUGINFOD,
	PERFRING_PLACES_SERVERS,
	PERFRING_PLACES_COUNT
};

/* Opens the file of this build id (`size` bytes) in a place, PERFRING_PLACES_.  name: the object's, for the progress of a download.  Returns a
 * descriptor, which the caller closes, and its path; or -errno: -ENODATA (not a build id, or not a place), -ENOENT.  The file
 * may be of another build: the caller compares its id. */
int perfring__places_open_build(const struct perfring_places *places, enum perfring_place_of wanted, const uint8_t *id,
				uint32_t size, unsigned place, const char *name, char path[PATH_MAX]);

/* ---- debuginfod.c ---- */

/* Loads libdebuginfod.  progress: NULL, or called with `to` and the name while a file is loaded, bytes done of all; returns false
 * to stop.  Returns 0; -EOPNOTSUPP (it cannot be loaded), -ENOMEM. */
int perfring__debuginfod_open(struct perfring_debuginfod **servers,
			      bool (*progress)(void *to, const char *path, int64_t done, int64_t all), void *to);
void perfring__debuginfod_close(struct perfring_debuginfod *servers);

/* Asks the servers, which may take long.  As perfring__places_open_build. */
int perfring__debuginfod_find(struct perfring_debuginfod *servers, enum perfring_place_of wanted, const uint8_t *id,
			      uint32_t size, const char *name, char path[PATH_MAX]);

#endif
