/* registers_test.c - the names of registers, and whose registers a set's or a file's samples hold. */
#include "test.h"

#include <perfring/feature.h>
#include <perfring/file.h>
#include <perfring/file_writer.h>
#include <perfring/sample.h>
#include <perfring/text.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct {
	uint32_t arch;
	uint32_t bit;
	const char *name;
} registers[] = {
#define PERFRING_REGISTER(arch, bit, NAME) {PERFRING_ARCH_##arch, (bit), #NAME},
#include <perfring/values.def>
};

Test(registers, rows_stand_once, .timeout = 30)
{
	size_t i, j;

	for (i = 0; i < COUNT(registers); i++) {
		cr_assert_lt(registers[i].bit, 64);
		cr_assert_str_eq(perfring_register_name(registers[i].arch, registers[i].bit), registers[i].name);
		for (j = 0; j < i; j++) {
			if (registers[i].arch != registers[j].arch)
				continue;
			cr_assert_neq(registers[i].bit, registers[j].bit, "%s and %s", registers[i].name,
				      registers[j].name);
			cr_assert(strcmp(registers[i].name, registers[j].name), "%s twice", registers[i].name);
		}
	}
}

/* Counts and ends of docs/abi.md 6 and of the uapi headers of each architecture. */
Test(registers, of_each_architecture, .timeout = 30)
{
	static const struct {
		uint32_t arch;
		size_t nr;
		uint32_t last;
		const char *name;
	} expected[] = {
		{PERFRING_ARCH_X86, 24 + 32, 63, "XMM15_HIGH"},
		{PERFRING_ARCH_ARM64, 34, 46, "VG"},
		{PERFRING_ARCH_RISCV, 32, 31, "T6"},
		{PERFRING_ARCH_S390, 34, 33, "PC"},
		{PERFRING_ARCH_POWERPC, 59, 58, "SIAR"},
	};
	size_t i, j;

	for (i = 0; i < COUNT(expected); i++) {
		size_t nr = 0;
		uint32_t last = 0;

		for (j = 0; j < COUNT(registers); j++) {
			if (registers[j].arch != expected[i].arch)
				continue;
			nr++;
			last = registers[j].bit > last ? registers[j].bit : last;
		}
		cr_assert_eq(nr, expected[i].nr);
		cr_assert_eq(last, expected[i].last);
		cr_assert_str_eq(perfring_register_name(expected[i].arch, last), expected[i].name);
	}
	cr_assert_str_eq(perfring_register_name(PERFRING_ARCH_ARM64, 30), "LR");
	cr_assert_str_eq(perfring_register_name(PERFRING_ARCH_RISCV, 0), "PC");
	cr_assert_str_eq(perfring_register_name(PERFRING_ARCH_POWERPC, 32), "NIP");
	cr_assert_str_eq(perfring_register_name(PERFRING_ARCH_S390, 32), "MASK");
	cr_assert_null(perfring_register_name(PERFRING_ARCH_X86, 24));
	cr_assert_null(perfring_register_name(PERFRING_ARCH_X86, 31));
	cr_assert_null(perfring_register_name(PERFRING_ARCH_X86, 64));
	cr_assert_null(perfring_register_name(PERFRING_ARCH_X86, UINT32_MAX));
	cr_assert_null(perfring_register_name(PERFRING_ARCH_ARM64, 33));
	cr_assert_null(perfring_register_name(PERFRING_ARCH_RISCV, 32));
	cr_assert_null(perfring_register_name(PERFRING_ARCH_OTHER, 0));
	cr_assert_null(perfring_register_name(UINT32_MAX, 0));
	cr_assert_null(perfring_register_name(1 << 26, 0), "an arch whose bits would fall off");
}

/* Of this build: what the machine's own header calls them. */
#if defined(__x86_64__)
#include <asm/perf_regs.h>

Test(registers, header, .timeout = 30)
{
	static const struct {
		uint32_t bit;
		const char *name;
	} theirs[] = {
#define IS(NAME) {PERF_REG_X86_##NAME, #NAME}
		IS(AX),   IS(BX),    IS(CX),    IS(DX),    IS(SI),    IS(DI),    IS(BP),    IS(SP),
		IS(IP),   IS(FLAGS), IS(CS),    IS(SS),    IS(DS),    IS(ES),    IS(FS),    IS(GS),
		IS(R8),   IS(R9),    IS(R10),   IS(R11),   IS(R12),   IS(R13),   IS(R14),   IS(R15),
		IS(XMM0), IS(XMM1),  IS(XMM2),  IS(XMM3),  IS(XMM4),  IS(XMM5),  IS(XMM6),  IS(XMM7),
		IS(XMM8), IS(XMM9),  IS(XMM10), IS(XMM11), IS(XMM12), IS(XMM13), IS(XMM14), IS(XMM15),
	};
	char high[16];
	size_t i;

	for (i = 0; i < COUNT(theirs); i++) {
		cr_assert_str_eq(perfring_register_name(PERFRING_ARCH_NATIVE, theirs[i].bit), theirs[i].name);
		if (theirs[i].bit < PERF_REG_X86_XMM0)
			continue;
		snprintf(high, sizeof(high), "%s_HIGH", theirs[i].name);
		cr_assert_str_eq(perfring_register_name(PERFRING_ARCH_X86, theirs[i].bit + 1), high);
	}
	cr_assert_eq(PERF_REG_X86_64_MAX, 24);
	cr_assert_eq(PERF_REG_X86_XMM_MAX, 64);
}
#elif defined(__s390x__)
#include <asm/perf_regs.h>

Test(registers, header, .timeout = 30)
{
	cr_assert_str_eq(perfring_register_name(PERFRING_ARCH_NATIVE, PERF_REG_S390_FP15), "FP15");
	cr_assert_str_eq(perfring_register_name(PERFRING_ARCH_NATIVE, PERF_REG_S390_MASK), "MASK");
	cr_assert_str_eq(perfring_register_name(PERFRING_ARCH_NATIVE, PERF_REG_S390_PC), "PC");
	cr_assert_eq(PERF_REG_S390_MAX, 34);
}
#endif

Test(registers, machines, .timeout = 30)
{
	static const char *const strange[] = {"",       "x86",    "X86_64",      "x86_64 ",
					      "armv7l", "mips64", "loongarch64", "i786"};
	size_t i;

	cr_assert_eq(perfring_arch_of("x86_64"), PERFRING_ARCH_X86);
	cr_assert_eq(perfring_arch_of("i686"), PERFRING_ARCH_X86);
	cr_assert_eq(perfring_arch_of("aarch64"), PERFRING_ARCH_ARM64);
	cr_assert_eq(perfring_arch_of("riscv64"), PERFRING_ARCH_RISCV);
	cr_assert_eq(perfring_arch_of("s390x"), PERFRING_ARCH_S390);
	cr_assert_eq(perfring_arch_of("ppc64"), PERFRING_ARCH_POWERPC);
	cr_assert_eq(perfring_arch_of("ppc64le"), PERFRING_ARCH_POWERPC);
	for (i = 0; i < COUNT(strange); i++)
		cr_assert_eq(perfring_arch_of(strange[i]), PERFRING_ARCH_OTHER, "\"%s\"", strange[i]);
}

static const struct perf_event_attr attr = {
	.type = 1,
	.size = 128,
	.sample_period = 1,
	.sample_type = 1 << 12,
	.sample_regs_user = 1 << 5,
};

/* Events added before and after are told. */
Test(registers, of_a_set, .timeout = 30)
{
	struct perfring_format_set *set;

	cr_assert_eq(perfring_format_set_open(&set), 0);
	cr_assert_eq(perfring_format_set_add(set, &attr), 0);
	cr_assert_eq(perfring_format_set_at(set, 0)->arch, PERFRING_ARCH_NATIVE);
	perfring_format_set_arch(set, PERFRING_ARCH_RISCV);
	cr_assert_eq(perfring_format_set_add(set, &attr), 1);
	cr_assert_eq(perfring_format_set_at(set, 0)->arch, PERFRING_ARCH_RISCV);
	cr_assert_eq(perfring_format_set_at(set, 1)->arch, PERFRING_ARCH_RISCV);
	perfring_format_set_close(set);
}

/* A file of one sample with one register; its ARCH, unless NULL, as given. */
static void assert_in_file(const char *machine, const char *expected)
{
	static const uint64_t words[] = {2, 0x55};
	struct {
		struct perf_event_header header;
		uint64_t words[2];
	} record = {{9, 2, sizeof(record)}, {words[0], words[1]}};
	struct iovec piece = {&record, sizeof(record)};
	int fd = memfd_create("registers", MFD_CLOEXEC);
	struct perfring_file_writer *writer;
	struct perfring_file *data;
	struct perfring_item item;
	char path[64], line[128];

	cr_assert_geq(fd, 0);
	cr_assert_eq(perfring_file_writer_open(&writer, fd), 0);
	cr_assert_eq(perfring_file_writer_add_event(writer, &attr, "faults"), 0);
	cr_assert_eq(perfring_file_writer_begin(writer), 0);
	cr_assert_eq(perfring_file_writer_write(writer, &piece, 1), 0);
	if (machine)
		cr_assert_eq(perfring_file_writer_put_string(writer, PERFRING_FEATURE_ARCH, machine), 0);
	cr_assert_eq(perfring_file_writer_finish(writer), 0);
	perfring_file_writer_close(writer);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	cr_assert_eq(perfring_file_open(&data, path), 0);
	do
		cr_assert_eq(perfring_file_next(data, &item), 1);
	while (item.record->type != 9);
	perfring_record_text(item.format, item.record, line, sizeof(line));
	cr_assert_str_eq(line, expected);
	perfring_file_close(data);
	close(fd);
}

Test(registers, of_a_file, .timeout = 30)
{
	assert_in_file("x86_64", "SAMPLE misc=USER uregs={abi=64 DI=0x55}");
	assert_in_file("aarch64", "SAMPLE misc=USER uregs={abi=64 X5=0x55}");
	assert_in_file("riscv64", "SAMPLE misc=USER uregs={abi=64 T0=0x55}");
	assert_in_file("ppc64le", "SAMPLE misc=USER uregs={abi=64 R5=0x55}");
	assert_in_file("armv7l", "SAMPLE misc=USER uregs={abi=64 5=0x55}");
#ifdef __x86_64__
	assert_in_file(NULL, "SAMPLE misc=USER uregs={abi=64 DI=0x55}");
#endif
}
