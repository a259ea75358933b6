/* perfmap_fuzz.c - any bytes as a map of code, /tmp/perf-PID.map. */
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

/* Each address has a name of the file's bytes, whose code begins at or below it. */
static void look(const struct perfring_jit *jit, uint64_t ip)
{
	struct perfring_jit_symbol symbol;

	if (!perfring_jit_find(jit, ip, &symbol))
		return;
	must(symbol.start <= ip && *symbol.name && !symbol.debug);
	must(strlen(symbol.name) <= PERFRING_JIT_NAME_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	static int fd = -1;
	struct perfring_jit_counts counts;
	struct perfring_jit *jit;

	if (fd < 0)
		fd = memfd_create("fuzz", MFD_CLOEXEC);
	must(!ftruncate(fd, 0) && pwrite(fd, bytes, size, 0) == (ssize_t)size);
	must(!perfring_jit_open_map(&jit, fd));
	perfring_jit_count(jit, &counts);
	/* a line of one piece of code cuts at most one in two */
	must(counts.codes + counts.malformed <= 2 * (uint64_t)size && !counts.exceeded);
	for (uint64_t ip = 0; ip < 16; ip++) {
		look(jit, ip);
		look(jit, ip << 9);
		look(jit, UINT64_MAX - ip);
	}
	perfring_jit_close(jit);
	return 0;
}
