/* demangle.h - the names of C++ and Rust as programmers write them.
 *
 * Any thread; allocates nothing of its own.
 */
#ifndef PERFRING_SYMBOL_DEMANGLE_H
#define PERFRING_SYMBOL_DEMANGLE_H

#include <stdbool.h>
#include <stddef.h>

/* Without the parameters of functions and the hashes of Rust, as perf shows them; what follows an '@' stays.  Any bytes are
 * safe, and a text that grows beyond the space costs no more than that.  Returns the length of the text; 0: the name is not
 * mangled, or has no text that fits, or this build has no libiberty. */
size_t perfring__demangle(const char *name, char *text, size_t space);

/* Whether this build has libiberty. */
bool perfring__demangles(void);

#endif
