/* build_id_private.h - the GNU build id in a file of notes of sysfs.
 *
 * For notes of the kernel and its modules, below /sys: synthesis.c and kernel_modules.c.
 */
#ifndef PERFRING_FILE_BUILD_ID_PRIVATE_H
#define PERFRING_FILE_BUILD_ID_PRIVATE_H

#include <stdint.h>

#define PERFRING_KERNEL_NOTES "/sys/kernel/notes"

/* id: PERFRING_BUILD_ID_SIZE bytes.  Returns its length, -ENODATA (no build id), -errno. */
int64_t perfring__build_id_of_notes(const char *path, uint8_t *id);

#endif
