/* path.h - what the name of a file leads to. */
#ifndef PATH_H
#define PATH_H

#include <stdbool.h>

/* Whether it is a descriptor's, as /dev/stdout: a name that leads through /proc.  No other file can take it. */
bool perfring_path_is_descriptor(const char *path);

#endif
