/* build_ids.h - the build ids in a file's feature BUILD_ID.
 *
 * symbols.c, buildid_list.c and file_header_text.c walk it.  What is returned points into the feature, which the file keeps until
 * it is closed.
 */
#ifndef PERFRING_TOOLS_BUILD_IDS_H
#define PERFRING_TOOLS_BUILD_IDS_H

#include <perfring/feature.h>

/* In the file's bytes. */
struct tool_build_id {
	const char *name; /* without a NUL where its space is full */
	size_t name_size;
	const unsigned char *id;
	size_t id_size;
};

/* The next of a walk over the feature.  Returns false at the end, or at damage. */
bool tool_build_ids_next(struct perfring_layout_walk *walk, struct tool_build_id *one);

#endif
