/* timeline.h - a part of a page's data: the samples of a profile over time.
 *
 * flame.c calls it, once for each page.  timeline.c says the form.
 */
#ifndef PERFRING_PROFILE_TIMELINE_H
#define PERFRING_PROFILE_TIMELINE_H

#include <stdio.h>
#include <perfring/profile.h>

/* tables: of a profile with PERFRING_PROFILE_SAMPLES.  Returns 0; -ENOMEM, -E2BIG (2^32 samples); errors of writing are in `out`. */
int perfring__timeline_write(const struct perfring_profile_tables *tables, FILE *out);

#endif
