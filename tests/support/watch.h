/* watch.h - an event that counts what the test does, to the one: a breakpoint on `watched` or `watched_too`.
 *
 * In some virtual machines breakpoints open, and count nothing: there it is a uprobe in hit(), for who may open one.  What is
 * of breakpoints alone begins with need_breakpoints().
 */
#ifndef TESTS_WATCH_H
#define TESTS_WATCH_H

#include <link.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "test.h"

static volatile uint64_t watched, watched_too;

extern const char watch_first_probe[] __attribute__((visibility("hidden")));
extern const char watch_second_probe[] __attribute__((visibility("hidden")));

/* The labels stand once each: neither function is inlined or cloned. */
#ifdef __clang__
#define WATCH_ONCE __attribute__((noinline, used))
#else
#define WATCH_ONCE __attribute__((noinline, noclone, used))
#endif

WATCH_ONCE static void watch_first(void)
{
	__asm__ volatile(".globl watch_first_probe\n\t.hidden watch_first_probe\nwatch_first_probe:\n\tnop" ::: "memory");
	watched++;
}

WATCH_ONCE static void watch_second(void)
{
	__asm__ volatile(".globl watch_second_probe\n\t.hidden watch_second_probe\nwatch_second_probe:\n\tnop" ::: "memory");
	watched_too++;
}

__attribute__((unused)) static void hit(volatile uint64_t *what, int times)
{
	while (times-- > 0) {
		if (what == &watched_too)
			watch_second();
		else
			watch_first();
	}
	/* A handler may have written anywhere. */
	__asm__ volatile("" ::: "memory");
}

static struct perf_event_attr watch_breakpoint(volatile uint64_t *what)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_BREAKPOINT, .size = sizeof(attr)};

	attr.bp_type = HW_BREAKPOINT_W;
	attr.bp_addr = (uintptr_t)what;
	attr.bp_len = 8;
	attr.exclude_kernel = 1;
	attr.exclude_hv = 1;
	return attr;
}

/* Whether a breakpoint counts its store; true where none can be opened: who needs one says why. */
static bool breakpoints_count(void)
{
	static volatile uint64_t tried;
	static int counts = -1;
	struct perf_event_attr attr = watch_breakpoint(&tried);
	uint64_t value = 1;
	int fd;

	if (counts >= 0)
		return counts;
	fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 8 /* CLOEXEC */);
	if (fd >= 0) {
		tried++;
		if (read(fd, &value, sizeof(value)) != sizeof(value))
			value = 1;
		close(fd);
	}
	counts = value != 0;
	return counts;
}

__attribute__((unused)) static void need_breakpoints(void)
{
	if (!breakpoints_count())
		cr_skip_test("SKIP-ENV: perf_event_open(breakpoint): counts nothing: needs a processor whose debug registers work");
}

/* Where a label of the program lies in its file. */
struct watch_place {
	uintptr_t address;
	uint64_t offset;
};

static int watch_find(struct dl_phdr_info *info, size_t size, void *argument)
{
	struct watch_place *place = argument;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + part->p_vaddr;

		if (part->p_type == PT_LOAD && place->address - start < part->p_filesz)
			place->offset = place->address - start + part->p_offset;
	}
	return 1; /* the program itself is the first */
}

/* Counts the calls of hit(what, ...); counts in user space, samples nothing. */
__attribute__((unused)) static struct perf_event_attr watch_hits(volatile uint64_t *what)
{
	static char path[512];
	struct perf_event_attr attr = watch_breakpoint(what);
	struct watch_place place = {(uintptr_t)(what == &watched_too ? watch_second_probe : watch_first_probe), 0};
	FILE *file;

	if (breakpoints_count())
		return attr;
	file = fopen("/sys/bus/event_source/devices/uprobe/type", "r");
	if (!file || readlink("/proc/self/exe", path, sizeof(path) - 1) <= 0) {
		if (file)
			fclose(file);
		need_breakpoints();
		return attr;
	}
	memset(&attr, 0, sizeof(attr));
	attr.size = sizeof(attr);
	cr_assert_eq(fscanf(file, "%u", &attr.type), 1);
	fclose(file);
	dl_iterate_phdr(watch_find, &place);
	attr.uprobe_path = (uintptr_t)path;
	attr.probe_offset = place.offset;
	attr.exclude_kernel = 1;
	attr.exclude_hv = 1;
	return attr;
}

#endif
