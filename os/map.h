/* map.h - a line of /proc/PID/maps.
 *
 * sample/proc_map.h makes a record of it; soft/process_state.c reads it in signal handlers.
 */
#ifndef PERFRING_OS_MAP_H
#define PERFRING_OS_MAP_H

#include <stdbool.h>
#include <stdint.h>

struct perfring_os_map {
	uint64_t low, high;
	uint64_t offset; /* in the file; 0 without a file, where the kernel's records have the address (vm_pgoff) */
	uint64_t inode;
	uint32_t major, minor;
	uint32_t prot;    /* PROT_READ ... */
	uint32_t flags;   /* MAP_SHARED or MAP_PRIVATE */
	const char *name; /* in the line, "" without one */
};

/* "low-high rwxp offset major:minor inode   name": numbers are hexadecimal, the inode decimal.  Returns whether the
 * line is one. Context: also signal handlers. */
bool perfring__os_map_parse(struct perfring_os_map *map, const char *line);

#endif
