/* cpus_private.h - what tests of the per-CPU rings need beside the public header.
 *
 * tests/rb/set_test.c opens each way by it, on machines that have both.
 */
#ifndef PERFRING_RB_CPUS_PRIVATE_H
#define PERFRING_RB_CPUS_PRIVATE_H

#include <perfring/cpus.h>
#include <perfring/set.h>

/* Whether the words of each ring are in their order, whatever other threads do: data_tail, data_head, claimed, and at most the ring's
 * size between the first and the last. */
bool perfring__cpus_is_valid(struct perfring_cpus *cpus);

/* perfring_cpus_open in this way; -EOPNOTSUPP if it is not available. */
int perfring__cpus_open_way(struct perfring_cpus **cpus, const struct perfring_ring_options *ring,
			    const struct perfring_writer_options *writer, int way);

#endif
