/* record_values.c - the values of the options of `perfring record`: sizes, times, clocks, ways of call chains.
 *
 * Called by record_options.c and record_events.c.  A value that is none is false, and the caller complains.
 */
#include <stdlib.h>
#include <unistd.h>
#include <perfring/event.h>
#include "options.h"
#include "record_command.h"

enum {
	MOST_PAGES = 1 << 20,

	STACK_MOST = 65528, /* a multiple of 8 below USHRT_MAX */
};

/* A number and the character after it. */
static bool read_unit(const char *text, uint64_t *number, char *unit)
{
	char *end;

	errno = 0;
	*number = strtoull(text, &end, 10);
	*unit = *end;
	return *text >= '0' && *text <= '9' && !errno && *number && (!*end || !end[1]);
}

bool tool_record_read_size(const char *text, uint64_t without, uint64_t *bytes)
{
	static const char units[] = "BKMG";
	const char *place;
	char unit;

	if (!read_unit(text, bytes, &unit))
		return false;
	place = unit ? strchr(units, unit) : NULL;
	if (unit && !place)
		return false;
	without = place ? UINT64_C(1) << 10 * (place - units) : without;
	if (*bytes > (UINT64_C(1) << 40) / without)
		return false;
	*bytes *= without;
	return true;
}

/* Rounds up to a power of two, as perf. */
static bool read_pages(const char *text, uint32_t *pages, bool *is_rounded)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), bytes;

	if (!tool_record_read_size(text, page, &bytes))
		return false;
	*pages = 1;
	while (*pages * page < bytes && *pages < MOST_PAGES)
		*pages *= 2;
	*is_rounded = *pages * page != bytes;
	return *pages * page >= bytes;
}

/* -m: pages of rings, and of AUX areas; as in perf the first may be missing. */
bool tool_record_read_pages(struct recording *recording, const char *text)
{
	const char *comma = strchr(text, ',');
	char *rings = strndupa(text, comma ? (size_t)(comma - text) : strlen(text));
	bool is_rounded = false;

	recording->rounded = NULL;
	if (comma)
		recording->aux_pages = 1; /* as perf, where nothing follows the comma */
	if (comma && comma[1] && !read_pages(comma + 1, &recording->aux_pages, &recording->is_aux_rounded))
		return false;
	if (comma && !*rings)
		return true;
	if (!read_pages(rings, &recording->pages, &is_rounded))
		return false;
	recording->rounded = is_rounded ? text : NULL;
	return true;
}

bool tool_record_read_call_graph(struct recording *recording, const char *how)
{
	uint64_t size = 0;

	recording->callchain = how;
	recording->stack = 0;
	recording->defers = !strcmp(how, "fp,defer");
	if (recording->defers)
		recording->callchain = "fp";
	if (recording->defers || !strcmp(how, "fp") || !strcmp(how, "lbr"))
		return true;
	if (!tool_record_can_unwind() || strncmp(how, "dwarf", 5) ||
	    (how[5] && (how[5] != ',' || !tool_options_number(how + 6, 1, STACK_MOST, &size))))
		return false;
	recording->callchain = "dwarf";
	recording->stack = (uint32_t)(size + 7) & ~7u;
	return true;
}

/* The bits of the XMM registers of x86, two words each. */
static uint64_t xmm_registers(void)
{
	const char *first = perfring_register_name(0, 32);

	return first && !strcmp(first, "XMM0") ? UINT64_MAX << 32 : 0;
}

/* Whether samples can have XMM registers: asks for a precise event, because PMUs that have them do so in such samples. */
static bool samples_xmm(void)
{
	struct perf_event_attr attr = {.type = PERFRING_TYPE_HARDWARE,
				       .config = PERFRING_COUNT_HW_CPU_CYCLES,
				       .sample_period = 1 << 20,
				       .sample_type = PERFRING_SAMPLE_REGS_INTR,
				       .sample_regs_intr = xmm_registers(),
				       .precise_ip = 1};
	int fd;

	attr.size = sizeof(attr);
	attr.disabled = attr.exclude_kernel = 1;
	fd = attr.sample_regs_intr ? perfring_event_open(&attr, 0, -1, -1, 0) : -1;
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* The bits of a register's name among `all`; of an XMM register both, as perf. */
static uint64_t find_register(uint64_t all, const char *name, size_t length)
{
	uint64_t found = 0;

	for (; all; all &= all - 1) {
		const char *one = perfring_register_name(0, (uint32_t)__builtin_ctzll(all));

		if (one && !strncasecmp(one, name, length) && (!one[length] || !strcmp(one + length, "_HIGH")))
			found |= all & -all;
	}
	return found;
}

uint64_t tool_record_register(const char *name, size_t length)
{
	return find_register(perfring_event_unwind_registers(), name, length);
}

void tool_record_list_registers(bool at_interrupt)
{
	uint64_t rest = perfring_event_unwind_registers();

	if (at_interrupt && samples_xmm())
		rest |= xmm_registers();
	printf("available registers:");
	for (; rest; rest &= rest - 1) {
		const char *one = perfring_register_name(0, (uint32_t)__builtin_ctzll(rest));

		if (one && !strstr(one, "_HIGH"))
			printf(" %s", one);
	}
	putchar('\n');
}

bool tool_record_read_registers(const char *list, uint64_t *registers)
{
	uint64_t all = perfring_event_unwind_registers();

	*registers = list ? 0 : all;
	for (size_t length; list; list = list[length] ? list + length + 1 : NULL) {
		uint64_t mask;

		length = strcspn(list, ",");
		mask = length ? find_register(all | xmm_registers(), list, length) : 0;
		if (!mask)
			return false;
		*registers |= mask;
	}
	return *registers;
}

bool tool_record_can_sample(uint64_t registers, bool at_interrupt)
{
	if (!(registers & xmm_registers()))
		return true;
	if (at_interrupt && samples_xmm())
		return true;
	tool_complain(at_interrupt ? "record: -I: the PMU of this machine has no XMM registers in its samples: leave "
				     "them out (perfring record -I? lists those that there are)"
				   : "record: --user-regs: samples have XMM registers at the interrupt alone: use -I");
	return false;
}

/* Reads --synth.  As in perf, no and all end the list, whatever follows. */
bool tool_record_read_synthesis(const char *list, uint32_t *what)
{
	static const struct {
		const char *name;
		uint32_t what;
	} words[] = {
		{"task", SYNTHESIZE_TASKS},
		{"mmap", SYNTHESIZE_TASKS | SYNTHESIZE_MAPS},
		{"cgroup", SYNTHESIZE_CGROUPS},
	};
	char *word, *rest = strdupa(list);
	size_t i;

	*what = 0;
	while ((word = strsep(&rest, ","))) {
		if (!strcasecmp(word, "no") || !strcasecmp(word, "none") || !strcasecmp(word, "all")) {
			*what = strcasecmp(word, "all") ? 0 : SYNTHESIZE_ALL;
			return true;
		}
		for (i = 0; i < sizeof(words) / sizeof(words[0]) && strcasecmp(word, words[i].name); i++)
			;
		if (i == sizeof(words) / sizeof(words[0]))
			return false;
		*what |= words[i].what;
	}
	return true;
}

bool tool_record_read_clock(struct recording *recording, const char *name)
{
	static const struct {
		char name[20];
		int32_t clock;
	} known[] = {
		{"monotonic", CLOCK_MONOTONIC}, {"mono", CLOCK_MONOTONIC},    {"monotonic_raw", CLOCK_MONOTONIC_RAW},
		{"raw", CLOCK_MONOTONIC_RAW},   {"realtime", CLOCK_REALTIME}, {"real", CLOCK_REALTIME},
		{"boottime", CLOCK_BOOTTIME},   {"boot", CLOCK_BOOTTIME},     {"tai", CLOCK_TAI},
	};
	uint64_t number;

	if (!strncasecmp(name, "CLOCK_", 6))
		name += 6;
	recording->has_clockid = true;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (!strcasecmp(name, known[i].name)) {
			recording->clockid = known[i].clock;
			return true;
		}
	if (!tool_options_number(name, 0, INT32_MAX, &number))
		return false;
	recording->clockid = (int32_t)number;
	return true;
}

bool tool_record_read_branches(struct recording *recording, const char *kinds)
{
	return !perfring_event_branches(kinds, strlen(kinds), &recording->branches);
}

bool tool_record_read_switch(struct recording *recording, const char *when)
{
	char unit;

	recording->switched = true;
	if (!when || !strcmp(when, "signal"))
		return true;
	if (!read_unit(when, &recording->switch_ms, &unit))
		return false;
	if (unit == 's' || unit == 'm' || unit == 'h') {
		recording->switch_ms *= unit == 's' ? 1000 : unit == 'm' ? 60000 : 3600000;
		return true;
	}
	recording->switch_ms = 0;
	return unit && tool_record_read_size(when, 1, &recording->switch_bytes);
}

bool tool_record_is_threads(const char *spec)
{
	static const char *const NAMES[] = {"cpu", "core", "package", "numa"};

	for (size_t i = 0; i < sizeof(NAMES) / sizeof(*NAMES); i++)
		if (!strcmp(spec, NAMES[i]))
			return true;
	return strchr(spec, '/') && !spec[strspn(spec, "0123456789,-/:")];
}
