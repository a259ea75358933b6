/* chains.h - callchains of samples as stacks of a profile (profile.h).
 *
 * Most samples have a callchain that was seen a moment ago, and most frames were:
 *
 *     callchain --recent chains--> stack
 *         |
 *       each address --recent places--> frames of the functions there --> stack
 *
 * What is recent holds as long as no record has changed mappings or names that it depends on.
 *
 * Private to fill.c.  One thread.
 */
#ifndef PERFRING_PROFILE_CHAINS_H
#define PERFRING_PROFILE_CHAINS_H

#include <perfring/profile_fill.h>

struct perfring_chains;

/* options: of the fill; they must stay.  names: likewise.  modes: of the frames that are kept, as perfring_filter_modes.  Returns 0 or -ENOMEM. */
int perfring__chains_open(struct perfring_chains **chains, struct perfring_names *names,
			  const struct perfring_profile_fill_options *options, uint32_t modes);
void perfring__chains_close(struct perfring_chains *chains);

/* Forgets all indices, because the next stacks are added to another profile. */
void perfring__chains_renew(struct perfring_chains *chains);

/* Adds the sample's stack to the profile: its callchain, or without one its address.  Sets *stack to its index;
 * PERFRING_PROFILE_NONE: no frame of it is wanted.  *is_truncated: the frames of user space are of a copy, and do not reach the thread's
 * start.  Returns 0 or -ENOMEM. */
int perfring__chains_find(struct perfring_chains *chains, struct perfring_profile *profile,
			  const struct perfring_sample *sample, uint32_t *stack, bool *is_truncated);

#endif
