/* record_values.c - the values of the options of `perfring record`: sizes, times, clocks, ways of call chains. */
#include <stdlib.h>
#include <unistd.h>
#include "options.h"
#include "record_command.h"

enum {
	MOST_PAGES = 1 << 20,

	STACK = 8192,       /* bytes of each copy by default */
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

/* Up to the next power of two, as perf. */
bool tool_record_read_pages(struct recording *recording, const char *text)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), bytes;

	if (!tool_record_read_size(text, page, &bytes))
		return false;
	recording->pages = 1;
	while (recording->pages * page < bytes && recording->pages < MOST_PAGES)
		recording->pages *= 2;
	recording->rounded = recording->pages * page == bytes ? NULL : text;
	return recording->pages * page >= bytes;
}

bool tool_record_read_call_graph(struct recording *recording, const char *how)
{
	uint64_t size = STACK;

	recording->callchain = true;
	recording->stack = 0;
	if (!strcmp(how, "fp"))
		return true;
	if (!tool_record_can_unwind() || strncmp(how, "dwarf", 5) ||
	    (how[5] && (how[5] != ',' || !tool_options_number(how + 6, 1, STACK_MOST, &size))))
		return false;
	recording->stack = (uint32_t)(size + 7) & ~7u;
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
