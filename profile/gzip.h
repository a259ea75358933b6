/* gzip.h - bytes that are written packed.
 *
 * pprof.c calls it, once for each file.
 */
#ifndef PERFRING_PROFILE_GZIP_H
#define PERFRING_PROFILE_GZIP_H

#include <stddef.h>
#include <stdio.h>

/* Writes the bytes as one member of gzip (RFC 1952), equal ones for equal bytes; without zlib as they are.  Returns 0 or -ENOMEM; the
 * stream has errors of writing. */
int perfring__gzip_write(FILE *out, const void *bytes, size_t size);

#endif
