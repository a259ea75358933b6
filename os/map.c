/* map.c - a line of /proc/PID/maps.
 *
 * file/synthesis.c and soft/process_state.c read mappings by it.
 */
#include "map.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

bool perfring__os_map_parse(struct perfring_os_map *map, const char *line)
{
	const char *prot;
	char *end;

	map->low = strtoull(line, &end, 16);
	if (*end != '-')
		return false;
	map->high = strtoull(end + 1, &end, 16);
	if (*end != ' ' || strnlen(end, 6) < 6 || map->high < map->low)
		return false;
	prot = end + 1;
	map->prot = (uint32_t)((prot[0] == 'r' ? PROT_READ : 0) | (prot[1] == 'w' ? PROT_WRITE : 0) |
			       (prot[2] == 'x' ? PROT_EXEC : 0));
	map->flags = prot[3] == 's' ? MAP_SHARED : MAP_PRIVATE;
	map->offset = strtoull(prot + 4, &end, 16);
	map->major = (uint32_t)strtoul(end, &end, 16);
	if (*end != ':')
		return false;
	map->minor = (uint32_t)strtoul(end + 1, &end, 16);
	map->inode = strtoull(end, &end, 10);
	map->name = end + strspn(end, " ");
	return true;
}
