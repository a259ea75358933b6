/* build_ids.c - the build ids in a file's feature BUILD_ID.
 *
 * The feature's bytes are a file's, and walked by its layout (feature.h).
 */
#include <string.h>
#include "build_ids.h"

bool tool_build_ids_next(struct perfring_layout_walk *walk, struct tool_build_id *one)
{
	struct perfring_layout_member member;

	*one = (struct tool_build_id){.id = NULL};
	while (perfring_layout_next(walk, &member) == 1) {
		if (!strcmp(member.name, "build_id")) {
			one->id = member.bytes;
			one->id_size = member.size;
		} else if (!strcmp(member.name, "length") && member.number && member.number < one->id_size) {
			one->id_size = member.number;
		} else if (!strcmp(member.name, "file") && one->id) {
			one->name = member.bytes;
			one->name_size = strnlen(member.bytes, member.size);
			return true;
		}
	}
	return false;
}
