/* builds.c - build ids by path, in a balanced tree: paths may be many, and chosen to collide.
 *
 * symbols.c keeps what perfring_symbols_expect is given in it.
 */
#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include "builds.h"

static int compare(const void *a, const void *b)
{
	const struct perfring_build *one = a, *other = b;

	return strcmp(one->path, other->path);
}

static void free_build(void *of)
{
	struct perfring_build *build = of;

	free(build->path);
	free(build);
}

int perfring__builds_add(struct perfring_builds *builds, const char *path, const uint8_t *id, uint32_t id_size)
{
	struct perfring_build *build = calloc(1, sizeof(*build)), **known;

	if (!build)
		return -ENOMEM;
	build->path = strdup(path);
	if (!build->path) {
		free(build);
		return -ENOMEM;
	}
	memcpy(build->id, id, id_size);
	build->id_size = id_size;
	known = (struct perfring_build **)tsearch(build, &builds->tree, compare);
	if (!known || *known != build)
		free_build(build);
	return known ? 0 : -ENOMEM;
}

const struct perfring_build *perfring__builds_find(const struct perfring_builds *builds, const char *path)
{
	struct perfring_build key = {.path = (char *)(uintptr_t)path};
	void *at = tfind(&key, &builds->tree, compare);

	return at ? *(struct perfring_build **)at : NULL;
}

void perfring__builds_close(struct perfring_builds *builds)
{
	tdestroy(builds->tree, free_build);
	builds->tree = NULL;
}
