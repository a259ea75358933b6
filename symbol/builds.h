/* builds.h - which build a path stood for when it was recorded.
 *
 * symbols.c asks for the build of a path whose caller knows none.  Texts are copied; close frees all.  One thread.
 */
#ifndef PERFRING_SYMBOL_BUILDS_H
#define PERFRING_SYMBOL_BUILDS_H

#include <perfring/build_id.h>

struct perfring_build {
	char *path;
	uint32_t id_size;
	uint8_t id[PERFRING_BUILD_ID_SIZE];
};

struct perfring_builds {
	void *tree;
};

/* Keeps the first of a path.  Returns 0 or -ENOMEM. */
int perfring__builds_add(struct perfring_builds *builds, const char *path, const uint8_t *id, uint32_t id_size);

/* Returns NULL where none was added. */
const struct perfring_build *perfring__builds_find(const struct perfring_builds *builds, const char *path);
void perfring__builds_close(struct perfring_builds *builds);

#endif
