/* image.h - the unwind sections of an ELF image.
 *
 * For functions.c.  The sections point into the image.
 */
#ifndef PERFRING_UNWIND_IMAGE_H
#define PERFRING_UNWIND_IMAGE_H

#include <perfring/unwind.h>

/* By the headers of sections; without them by the segment of .eh_frame_hdr.  At most 65 535 headers of each are looked at.
 * Returns 0; -EINVAL (no ELF image of 64 bits, little endian, of a known machine).  Sections that are not there, or not inside
 * the image, are left empty. */
int perfring__unwind_image(const uint8_t *image, size_t size, struct perfring_unwind_sections *sections);

#endif
