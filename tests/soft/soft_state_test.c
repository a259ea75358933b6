/* soft_state_test.c - COMM, FORK, EXIT and MMAP2 of this process, against what /proc, the ELF file and the loader say. */
#include "test.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include <perfring/record.h>
#include <perfring/soft.h>

/* Of the C library's own package, and nobody's dependency. */
#define OBJECT "libBrokenLocale.so.1"

static struct perfring_soft_event *event;
static struct perfring_format format;

/* Every kind of state, into rings of `pages`. */
static struct perf_event_attr open_event(uint32_t pages, bool enabled)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE, .size = sizeof(attr)};

	attr.config = PERF_COUNT_SW_DUMMY;
	attr.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU;
	attr.sample_id_all = 1;
	attr.use_clockid = 1;
	attr.clockid = CLOCK_MONOTONIC;
	attr.mmap = attr.mmap2 = attr.comm = attr.task = attr.build_id = 1;
	attr.disabled = !enabled;
	cr_assert_eq(perfring_soft_open(&event, &attr, PERFRING_SOFT_PROCESS, NULL), 0);
	cr_assert_eq(perfring_soft_map(event, pages, -1), 0);
	cr_assert_eq(perfring_format_from_attr(&format, &attr), 0);
	return attr;
}

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* Drained: decoded copies, with their strings. */
struct seen {
	struct perfring_record record;
	char text[PATH_MAX];
};

static struct seen *seen;
static size_t seen_count;
static uint64_t lost;

static void drain(void)
{
	struct perfring_set_ring *member = NULL;
	const struct perf_event_header *header;

	seen_count = 0;
	while ((member = perfring_set_next(perfring_soft_rings(event), member))) {
		perfring_reader_observe(&member->reader);
		while (perfring_reader_next(&member->reader, &header) == 1) {
			struct perfring_string string = {0};
			struct seen *one;

			seen = realloc(seen, (seen_count + 1) * sizeof(*seen));
			cr_assert_not_null(seen);
			one = &seen[seen_count++];
			cr_assert_eq(perfring_record_decode(&format, header, &one->record, NULL), 0);
			lost += one->record.type == PERFRING_RECORD_LOST ? one->record.is.lost.lost : 0;
			if (one->record.type == PERFRING_RECORD_COMM)
				string = one->record.is.comm.comm;
			if (one->record.type == PERFRING_RECORD_MMAP2)
				string = one->record.is.mmap2.filename;
			memcpy(one->text, string.data ? string.data : "", string.size);
			one->text[string.size] = 0;
		}
		perfring_reader_return(&member->reader);
	}
}

static size_t count_of(uint32_t type)
{
	size_t count = 0;

	for (size_t i = 0; i < seen_count; i++)
		count += seen[i].record.type == type;
	return count;
}

static const struct seen *find(uint32_t type, const char *text)
{
	for (size_t i = 0; i < seen_count; i++)
		if (seen[i].record.type == type && strstr(seen[i].text, text))
			return &seen[i];
	return NULL;
}

/* The mapping that the address is in. */
static const struct seen *find_at(const void *address)
{
	uint64_t at = (uint64_t)(uintptr_t)address;

	for (size_t i = 0; i < seen_count; i++) {
		const struct perfring_record_mmap2 *map = &seen[i].record.is.mmap2;

		if (seen[i].record.type == PERFRING_RECORD_MMAP2 && at - map->addr < map->len)
			return &seen[i];
	}
	return NULL;
}

static size_t executable_mappings(void)
{
	FILE *file = fopen("/proc/self/maps", "re");
	char line[PATH_MAX + 128], prot[8];
	size_t count = 0;

	cr_assert_not_null(file);
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "%*s %7s", prot) == 1 && prot[2] == 'x')
			count++;
	fclose(file);
	return count;
}

/* A file's build-id by its sections: not the way by which it was found. */
static uint32_t build_id_of(const char *path, unsigned char id[20])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	const unsigned char *bytes;
	const ElfW(Ehdr) * elf;
	const ElfW(Shdr) * sections;
	const char *names;
	struct stat status;
	uint32_t size = 0;

	cr_assert(fd >= 0 && !fstat(fd, &status));
	bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	cr_assert(bytes != MAP_FAILED);
	elf = (const void *)bytes;
	sections = (const void *)(bytes + elf->e_shoff);
	names = (const char *)bytes + sections[elf->e_shstrndx].sh_offset;
	for (int i = 0; i < elf->e_shnum; i++)
		if (!strcmp(names + sections[i].sh_name, ".note.gnu.build-id")) {
			const unsigned char *note = bytes + sections[i].sh_offset;

			memcpy(&size, note + 4, 4);
			cr_assert_leq(size, 20u);
			memcpy(id, note + 16, size);
		}
	munmap((void *)(uintptr_t)bytes, (size_t)status.st_size);
	close(fd);
	return size;
}

Test(soft_state, put_state_tells_comm_and_every_executable_mapping, .timeout = 30)
{
	uint64_t before = now();
	char self[PATH_MAX] = "";
	unsigned char id[20];
	const struct seen *one;
	struct stat status;
	uint32_t size;
	size_t maps;

	prctl(PR_SET_NAME, "a name 15 long!");
	open_event(64, false);
	maps = executable_mappings();
	cr_assert_eq(perfring_soft_put_state(event), (int)maps + 1);
	drain();
	cr_assert_eq(seen_count, maps + 1);
	cr_assert_eq(count_of(PERFRING_RECORD_MMAP2), maps);
	one = find(PERFRING_RECORD_COMM, "a name 15 long!");
	cr_assert_not_null(one);
	cr_assert_eq(one->record.misc, 0);
	cr_assert_eq(one->record.is.comm.pid, (uint32_t)getpid());
	cr_assert_eq(one->record.is.comm.tid, (uint32_t)syscall(SYS_gettid));

	cr_assert_gt(readlink("/proc/self/exe", self, sizeof(self) - 1), 0);
	one = find_at((const void *)(uintptr_t)&build_id_of);
	cr_assert_not_null(one);
	cr_assert_str_eq(one->text, self);
	cr_assert_eq(one->record.is.mmap2.prot, (uint32_t)(PROT_READ | PROT_EXEC));
	cr_assert_eq(one->record.is.mmap2.flags, (uint32_t)MAP_PRIVATE);
	size = build_id_of(self, id);
	if (size) {
		cr_assert_eq(one->record.misc, 0x4002);
		cr_assert(one->record.is.mmap2.file.has_build_id);
		cr_assert_eq(one->record.is.mmap2.file.build_id_size, size);
		cr_assert_eq(memcmp(one->record.is.mmap2.file.build_id, id, size), 0);
	}
	for (size_t i = 0; i < seen_count; i++) {
		const struct perfring_record *record = &seen[i].record;

		cr_assert_eq(record->trailer.identifier, perfring_soft_id(event));
		cr_assert_eq(record->trailer.pid, (uint32_t)getpid());
		cr_assert(record->trailer.time >= before && record->trailer.time <= now());
	}

	/* A mapping whose file has no build-id. */
	size = 0;
	{
		int fd = memfd_create("mapped", 0);
		void *there;

		cr_assert_eq(ftruncate(fd, 8192), 0);
		there = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 4096);
		cr_assert(there != MAP_FAILED);
		cr_assert_eq(fstat(fd, &status), 0);
		cr_assert_eq(perfring_soft_put_state(event), 1);
		drain();
		one = find_at(there);
		cr_assert_not_null(one);
		cr_assert_str_eq(one->text, "/memfd:mapped (deleted)");
		cr_assert_eq(one->record.misc, 2);
		cr_assert_not(one->record.is.mmap2.file.has_build_id);
		cr_assert_eq(one->record.is.mmap2.addr, (uint64_t)(uintptr_t)there);
		cr_assert_eq(one->record.is.mmap2.len, 4096);
		cr_assert_eq(one->record.is.mmap2.pgoff, 4096);
		cr_assert_eq(one->record.is.mmap2.flags, (uint32_t)MAP_SHARED);
		cr_assert_eq(one->record.is.mmap2.file.ino, (uint64_t)status.st_ino);
		cr_assert_eq(one->record.is.mmap2.file.maj, major(status.st_dev));
		cr_assert_eq(one->record.is.mmap2.file.min, minor(status.st_dev));
	}
	perfring_soft_close(event);
}

Test(soft_state, again_only_what_is_new, .timeout = 30)
{
	void *object;
	int written;

	open_event(64, false);
	cr_assert_gt(perfring_soft_put_state(event), 2);
	drain();
	cr_assert_eq(perfring_soft_put_state(event), 0);
	drain();
	cr_assert_eq(seen_count, 0);

	object = dlopen(OBJECT, RTLD_NOW);
	if (!object)
		cr_skip_test("SKIP-ENV: dlopen: " OBJECT ": an object of the C library's that nobody has loaded");
	written = perfring_soft_put_state(event);
	drain();
	cr_assert_eq(written, 1);
	cr_assert_eq(seen_count, 1);
	cr_assert_not_null(find(PERFRING_RECORD_MMAP2, "/" OBJECT));

	/* Gone, and back: most often at its old place. */
	cr_assert_eq(dlclose(object), 0);
	cr_assert_eq(perfring_soft_put_state(event), 0);
	object = dlopen(OBJECT, RTLD_NOW);
	cr_assert_not_null(object);
	cr_assert_eq(perfring_soft_put_state(event), 1);
	drain();
	cr_assert_not_null(find(PERFRING_RECORD_MMAP2, "/" OBJECT));

	prctl(PR_SET_NAME, "another");
	cr_assert_eq(perfring_soft_put_state(event), 1);
	drain();
	cr_assert_not_null(find(PERFRING_RECORD_COMM, "another"));
	perfring_soft_close(event);
}

Test(soft_state, what_finds_the_ring_full_comes_again, .timeout = 30)
{
	struct perfring_record_mmap2 *map;
	void *places[64];
	int taken = 0, one, rounds = 0;
	size_t maps;

	/* Each of its own prot and neighbour, so that none are joined: more than one page of records. */
	for (int i = 0; i < 64; i++) {
		places[i] = mmap(NULL, 2 * 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		cr_assert(places[i] != MAP_FAILED);
		cr_assert_eq(mprotect((char *)places[i] + 4096, 4096, PROT_NONE), 0);
	}
	open_event(1, false);
	maps = executable_mappings();
	for (; (one = perfring_soft_put_state(event)) > 0; rounds++) {
		taken += one;
		drain();
		for (size_t i = 0; i < seen_count; i++) {
			map = &seen[i].record.is.mmap2;
			for (int k = 0; k < 64 && seen[i].record.type == PERFRING_RECORD_MMAP2; k++)
				if (places[k] && map->addr == (uint64_t)(uintptr_t)places[k]) {
					cr_assert_str_eq(seen[i].text, "//anon");
					cr_assert_eq(map->pgoff, map->addr);
					places[k] = NULL;
				}
		}
	}
	cr_assert_eq(one, 0);
	cr_assert_gt(rounds, 1);
	cr_assert_eq(taken, (int)maps + 1);
	cr_assert_gt(lost, 0);
	cr_assert_eq(lost, perfring_soft_lost(event));
	for (int i = 0; i < 64; i++)
		cr_assert_null(places[i], "mapping %d was never told", i);
	perfring_soft_close(event);
}

static uint32_t thread_tid;

static void *live(void *argument)
{
	thread_tid = (uint32_t)syscall(SYS_gettid);
	prctl(PR_SET_NAME, "short life");
	*(int *)argument = perfring_soft_join();
	return NULL;
}

Test(soft_state, a_thread_tells_its_beginning_and_its_end, .timeout = 30)
{
	uint32_t pid = (uint32_t)getpid();
	uint64_t before = now();
	pthread_t thread;
	int joined = -1;

	open_event(8, true);
	cr_assert_eq(pthread_create(&thread, NULL, live, &joined), 0);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	cr_assert_eq(joined, 0);
	drain();
	cr_assert_eq(seen_count, 3);
	cr_assert_eq(seen[0].record.type, PERFRING_RECORD_FORK);
	cr_assert_eq(seen[0].record.is.fork.pid, pid);
	cr_assert_eq(seen[0].record.is.fork.ppid, pid);
	cr_assert_eq(seen[0].record.is.fork.tid, thread_tid);
	cr_assert_eq(seen[0].record.is.fork.ptid, pid);
	cr_assert_eq(seen[0].record.is.fork.time, seen[0].record.trailer.time);
	cr_assert_eq(seen[1].record.type, PERFRING_RECORD_COMM);
	cr_assert_eq(seen[1].record.is.comm.tid, thread_tid);
	cr_assert_str_eq(seen[1].text, "short life");
	cr_assert_eq(seen[2].record.type, PERFRING_RECORD_EXIT);
	cr_assert_eq(seen[2].record.is.exit.pid, pid);
	cr_assert_eq(seen[2].record.is.exit.tid, thread_tid);
	cr_assert_eq(seen[2].record.is.exit.ppid, (uint32_t)getppid()); /* docs/abi.md 5: the real parent's pid, twice */
	cr_assert_eq(seen[2].record.is.exit.ptid, (uint32_t)getppid());
	for (int i = 0; i < 3; i++) {
		cr_assert_eq(seen[i].record.trailer.tid, thread_tid);
		cr_assert_eq(seen[i].record.trailer.identifier, perfring_soft_id(event));
		cr_assert(seen[i].record.trailer.time >= before && seen[i].record.trailer.time <= now());
		before = seen[i].record.trailer.time;
	}

	/* The first thread has a beginning that nobody here has seen. */
	perfring_soft_leave();
	cr_assert_eq(perfring_soft_join(), 0);
	drain();
	cr_assert_eq(seen_count, 2);
	cr_assert_eq(seen[0].record.type, PERFRING_RECORD_EXIT);
	cr_assert_eq(seen[0].record.is.exit.tid, pid);
	cr_assert_eq(seen[1].record.type, PERFRING_RECORD_COMM);
	cr_assert_eq(seen[1].record.is.comm.tid, pid);

	/* An event that is off is told nothing. */
	perfring_soft_disable(event, false);
	cr_assert_eq(pthread_create(&thread, NULL, live, &joined), 0);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	drain();
	cr_assert_eq(seen_count, 0);
	perfring_soft_close(event);
}

Test(soft_state, only_what_the_attr_wants, .timeout = 30)
{
	struct perf_event_attr attr = open_event(64, false);
	pthread_t thread;
	int joined = -1;
	size_t maps;

	perfring_soft_close(event);
	attr.comm = attr.task = attr.mmap2 = attr.build_id = 0; /* mmap alone: MMAP */
	cr_assert_eq(perfring_soft_open(&event, &attr, PERFRING_SOFT_PROCESS, NULL), 0);
	cr_assert_eq(perfring_soft_put_state(event), -EINVAL, "no ring");
	cr_assert_eq(perfring_soft_map(event, 64, -1), 0);
	maps = executable_mappings();
	cr_assert_eq(perfring_soft_put_state(event), (int)maps);
	drain();
	cr_assert_eq(count_of(PERFRING_RECORD_MMAP), maps);
	perfring_soft_enable(event, false);
	cr_assert_eq(pthread_create(&thread, NULL, live, &joined), 0);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	drain();
	cr_assert_eq(seen_count, 2); /* and no COMM */
	cr_assert_eq(seen[0].record.type, PERFRING_RECORD_FORK);
	cr_assert_eq(seen[1].record.type, PERFRING_RECORD_EXIT);
	perfring_soft_close(event);

	attr.mmap = 0;
	attr.mmap2 = attr.mmap_data = 1;
	cr_assert_eq(perfring_soft_open(&event, &attr, PERFRING_SOFT_PROCESS, NULL), 0);
	cr_assert_eq(perfring_soft_map(event, 64, -1), 0);
	cr_assert_gt(perfring_soft_put_state(event), (int)maps);
	drain();
	cr_assert_not_null(find(PERFRING_RECORD_MMAP2, "[stack]"));
	cr_assert_eq(find(PERFRING_RECORD_MMAP2, "[stack]")->record.misc, 0x2002);
	perfring_soft_leave();
	cr_assert_eq(perfring_soft_put_state(event), -EINVAL, "no part");
	perfring_soft_close(event);
}
