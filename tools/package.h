/* package.h - which package has the debug file of an object.
 *
 * Into a buffer of the caller.  Runs a child and waits for it: not where all children are waited for.
 */
#ifndef PERFRING_TOOLS_PACKAGE_H
#define PERFRING_TOOLS_PACKAGE_H

#include <stdbool.h>
#include <stddef.h>

/* By dpkg-query, where it is: the package to which Debian puts the debug files of the one that has this file, "dash-dbgsym".
 * Returns whether one is known. */
bool tool_package_of(const char *path, char *text, size_t space);

#endif
