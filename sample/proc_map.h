/* proc_map.h - a line of /proc/PID/maps as the record of that mapping.
 *
 * file/synthesis.c, symbol/names.c and soft/process_state.c: what was mapped before anything was recorded.  Inline; also in
 * signal handlers.
 */
#ifndef PERFRING_SAMPLE_PROC_MAP_H
#define PERFRING_SAMPLE_PROC_MAP_H

#include <perfring/record.h>

#include <limits.h>
#include <string.h>
#include "os/map.h"

/* As perf writes it: pgoff is the offset of the line, which is 0 without a file, where the kernel has the address.  tid is the first
 * thread.  Valid as long as the line: filename. */
static inline struct perfring_record_mmap2 perfring__proc_map_record(const struct perfring_os_map *map, uint32_t pid)
{
	const char *name = *map->name ? map->name : "//anon";

	return (struct perfring_record_mmap2){
		.pid = pid,
		.tid = pid,
		.addr = map->low,
		.len = map->high - map->low,
		.pgoff = map->offset,
		.file = {.maj = map->major, .min = map->minor, .ino = map->inode},
		.prot = map->prot,
		.flags = map->flags,
		.filename = {.data = name, .size = (uint32_t)strnlen(name, PATH_MAX - 1)},
	};
}

#endif
