/* registers.c - the names of registers, and their architectures.
 *
 * values.def has the rows: text.c, the commands and programs show registers by them.  Texts are constants.
 */
#include <perfring/sample.h>

static uint32_t arch_native(void)
{
#if defined(__x86_64__) || defined(__i386__)
	return PERFRING_ARCH_X86;
#elif defined(__aarch64__)
	return PERFRING_ARCH_ARM64;
#elif defined(__riscv)
	return PERFRING_ARCH_RISCV;
#elif defined(__s390x__)
	return PERFRING_ARCH_S390;
#elif defined(__powerpc__)
	return PERFRING_ARCH_POWERPC;
#else
	return PERFRING_ARCH_OTHER;
#endif
}

const char *perfring_register_name(uint32_t arch, uint32_t bit)
{
	if (bit >= 64)
		return NULL;
	switch ((uint64_t)(arch == PERFRING_ARCH_NATIVE ? arch_native() : arch) << 6 | bit) {
#define PERFRING_REGISTER(arch, bit, NAME) \
	case PERFRING_ARCH_##arch << 6 | (bit): \
		return #NAME;
#include <perfring/values.def>
	default:
		return NULL;
	}
}

uint32_t perfring_arch_of(const char *machine)
{
	static const struct {
		const char *machine;
		uint32_t arch;
	} machines[] = {
		{"x86_64", PERFRING_ARCH_X86},       {"i386", PERFRING_ARCH_X86},
		{"i486", PERFRING_ARCH_X86},         {"i586", PERFRING_ARCH_X86},
		{"i686", PERFRING_ARCH_X86},         {"aarch64", PERFRING_ARCH_ARM64},
		{"aarch64_be", PERFRING_ARCH_ARM64}, {"riscv64", PERFRING_ARCH_RISCV},
		{"riscv32", PERFRING_ARCH_RISCV},    {"s390x", PERFRING_ARCH_S390},
		{"ppc64", PERFRING_ARCH_POWERPC},    {"ppc64le", PERFRING_ARCH_POWERPC},
		{"ppc", PERFRING_ARCH_POWERPC},
	};
	size_t i;

	for (i = 0; i < sizeof(machines) / sizeof(machines[0]); i++)
		if (!strcmp(machine, machines[i].machine))
			return machines[i].arch;
	return PERFRING_ARCH_OTHER;
}
