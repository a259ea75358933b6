/* build_id.h - the GNU build id in a file of notes, as sysfs shows them. */
#ifndef PERFRING_FEATURE_BUILD_ID_H
#define PERFRING_FEATURE_BUILD_ID_H

#include <stdint.h>

#define PERFRING_KERNEL_NOTES "/sys/kernel/notes"

/* Returns its length, -ENODATA (there is none), -errno.  id: room for PERFRING_BUILD_ID_SIZE bytes. */
int64_t perfring_build_id_of_notes(const char *path, uint8_t *id);

#endif
