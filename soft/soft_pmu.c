/* soft_pmu.c - PMUs by the type of their events: perfring's own, and those of the program.
 *
 * perfring_soft_pmu_register of soft.h; soft_attr.c and soft_refusal.c look events up.  Any thread, not handlers: registering takes
 * perfring__soft_lock, looking up takes none.  PMUs stay the program's memory and are never removed; there are 64 at most.
 */
#include "soft_private.h"

enum {
	PMUS = 64,
};

/* Asked in this order.  Only appended to, under perfring__soft_lock: `count` is stored last. */
static const struct perfring_soft_pmu *pmus[PMUS] = {
	&perfring__soft_points,
	&perfring__soft_clocks,
	&perfring__soft_accounts,
	&perfring__soft_dummy,
};
static uint32_t count = 4;

int perfring_soft_pmu_register(struct perfring_soft_pmu *pmu)
{
	uint32_t n;
	int ret = perfring__soft_prepare();

	if (ret)
		return ret;
	if (!pmu->init || (pmu->type > PERFRING_SOFT_TYPE && pmu->type <= PERFRING_SOFT_TYPE + PMUS))
		return -EINVAL;
	perfring__soft_lock_take();
	n = count;
	if (n == PMUS)
		ret = -EUSERS;
	if (!ret && pmu->type == PERFRING_SOFT_TYPE)
		pmu->type += n;
	if (!ret) {
		pmus[n] = pmu;
		PERFRING_STORE_RELEASE(&count, n + 1); /* partner: perfring__soft_pmu_find */
	}
	perfring__soft_lock_give();
	return ret;
}

int perfring__soft_pmu_find(const struct perf_event_attr *attr, const struct perfring_soft_pmu **pmu,
			    struct perfring_soft_point **point)
{
	uint32_t n = PERFRING_LOAD_ACQUIRE(&count);
	int ret = -ENOENT;

	for (uint32_t i = 0; i < n && ret == -ENOENT; i++) {
		*pmu = pmus[i];
		*point = NULL;
		if (pmus[i]->type == attr->type)
			ret = pmus[i]->init(attr, point);
	}
	return ret;
}
