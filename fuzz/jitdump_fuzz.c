/* jitdump_fuzz.c - any bytes as a jitdump file. */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include <perfring/jit.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void must(bool held)
{
	if (!held)
		abort();
}

static void look(const struct perfring_jit *jit, uint64_t ip)
{
	struct perfring_jit_symbol symbol;
	char file[16];
	uint32_t line;
	int one;

	if (!perfring_jit_find(jit, ip, &symbol))
		return;
	must(symbol.start <= ip && strlen(symbol.name) <= PERFRING_JIT_NAME_MAX);
	one = perfring_jit_line(jit, &symbol, ip, file, sizeof(file), &line);
	must(one == 0 || (one == 1 && strlen(file) < sizeof(file)));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct perfring_jit_dump about;
	struct perfring_jit_counts counts;
	struct perfring_jit *jit;
	int fd = memfd_create("fuzz", MFD_CLOEXEC), ret;

	must(fd >= 0 && pwrite(fd, bytes, size, 0) == (ssize_t)size);
	ret = perfring_jit_open_dump(&jit, fd, &about);
	if (ret) {
		must(ret == -EBADMSG || ret == -EOPNOTSUPP);
		must(!close(fd));
		return 0;
	}
	for (uint64_t time = 1; time < 12; time += 2) {
		ret = perfring_jit_advance(jit, time == 11 ? UINT64_MAX : time);
		must(!ret || ret == -EBADMSG);
		for (uint64_t ip = 0x1008; ip < 0x3000; ip += 0x410)
			look(jit, ip);
	}
	perfring_jit_count(jit, &counts);
	must(counts.codes + counts.malformed <= size && !counts.exceeded);
	look(jit, 0);
	look(jit, UINT64_MAX - 1);
	perfring_jit_close(jit);
	return 0;
}
