/* pmu.c - the PMUs of sysfs: the bits of their terms, their named events, the scale and unit of counts.
 *
 * Reads /sys/bus/event_source/devices for event_syntax.c, event_list.c and event_catalogue.c.  The root is a parameter, so that
 * tests bring a folder of their own.  Texts of sysfs are at most a page.  Threads only.
 */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "os/small_file.h"
#include "os/range.h"
#include "pmu.h"

static const char *const SUFFIXES[] = {".scale", ".unit", ".snapshot", ".per-pkg"};

static int is_shown(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

int perfring__event_folder(int at, const char *path, struct dirent ***entries)
{
	int count = scandirat(at, path, entries, is_shown, by_name);

	return count < 0 ? -errno : count;
}

void perfring__event_folder_free(struct dirent **entries, int count)
{
	while (count)
		free(entries[--count]);
	free(entries);
}

/* ---- a PMU's files ---- */

/* A file name that stays in its directory. */
static bool is_plain(const char *name, size_t length)
{
	return length && length < NAME_MAX && name[0] != '.' && !memchr(name, '/', length);
}

int perfring__pmu_open(struct perfring_pmu *pmu, const char *root, const char *name, size_t length)
{
	char path[PATH_MAX], number[32], *end;
	unsigned long type;
	int64_t got;

	pmu->fd = -1;
	if (!is_plain(name, length) || snprintf(path, sizeof(path), "%s/%.*s", root, (int)length, name) >= PATH_MAX)
		return -EINVAL;
	pmu->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (pmu->fd < 0)
		return errno == ENOTDIR ? -ENOENT : -errno;
	got = perfring__os_file_read_at(pmu->fd, "type", number, sizeof(number));
	type = got > 0 ? strtoul(number, &end, 10) : 0;
	if (got <= 0 || *end || type > UINT32_MAX) {
		perfring__pmu_close(pmu);
		return got < 0 ? (int)got : -EBADMSG;
	}
	pmu->type = (uint32_t)type;
	return 0;
}

void perfring__pmu_close(struct perfring_pmu *pmu)
{
	if (pmu->fd >= 0)
		close(pmu->fd);
	pmu->fd = -1;
}

/* "config1:0-7,32-35" */
static int parse_format(const char *text, struct perfring_pmu_bits *bits)
{
	uint32_t from, to;
	int ret;

	*bits = (struct perfring_pmu_bits){0, 0};
	if (strncmp(text, "config", 6))
		return -EBADMSG;
	text += 6;
	if (*text >= '1' && *text < '0' + PERFRING_CONFIGS)
		bits->config = (unsigned)(*text++ - '0');
	if (*text++ != ':')
		return -EBADMSG;
	while ((ret = perfring__os_range_next(&text, &from, &to)) == 1) {
		if (to > 63)
			return -EBADMSG;
		bits->mask |= UINT64_MAX >> (63 - (to - from)) << from;
	}
	return ret || !bits->mask ? -EBADMSG : 0;
}

void perfring__pmu_cpus(const struct perfring_pmu *pmu, char *buffer, size_t size)
{
	if (perfring__os_file_read_at(pmu->fd, "cpumask", buffer, size) < 0)
		buffer[0] = 0;
}

int perfring__pmu_format(const struct perfring_pmu *pmu, const char *name, size_t length,
			 struct perfring_pmu_bits *bits)
{
	char path[NAME_MAX + 16], text[256];
	int64_t got;

	if (!is_plain(name, length))
		return -ENOENT;
	snprintf(path, sizeof(path), "format/%.*s", (int)length, name);
	got = perfring__os_file_read_at(pmu->fd, path, text, sizeof(text));
	return got < 0 ? (int)got : parse_format(text, bits);
}

bool perfring__pmu_is_event(const char *name, size_t length)
{
	for (size_t i = 0; i < sizeof(SUFFIXES) / sizeof(*SUFFIXES); i++) {
		size_t suffix = strlen(SUFFIXES[i]);

		if (length >= suffix && !memcmp(name + length - suffix, SUFFIXES[i], suffix))
			return false;
	}
	return is_plain(name, length);
}

int64_t perfring__pmu_event(const struct perfring_pmu *pmu, const char *name, size_t length, const char *suffix,
			    char *buffer, size_t size)
{
	char path[NAME_MAX + 32];

	if (!perfring__pmu_is_event(name, length))
		return -ENOENT;
	snprintf(path, sizeof(path), "events/%.*s%s", (int)length, name, suffix);
	return perfring__os_file_read_at(pmu->fd, path, buffer, size);
}

static int pmu_where(const char *root, bool (*fits)(const struct perfring_pmu *pmu, const void *with), const void *with,
		     char name[PERFRING_PMU_NAME])
{
	struct dirent **pmus;
	int count = perfring__event_folder(AT_FDCWD, root, &pmus), found = -ENOENT;

	if (count < 0)
		return count;
	for (int i = 0; i < count && found; i++) {
		const char *one = pmus[i]->d_name;
		struct perfring_pmu pmu;

		if (strlen(one) >= PERFRING_PMU_NAME || perfring__pmu_open(&pmu, root, one, strlen(one)))
			continue;
		if (fits(&pmu, with)) {
			strcpy(name, one);
			found = 0;
		}
		perfring__pmu_close(&pmu);
	}
	perfring__event_folder_free(pmus, count);
	return found;
}

static bool has_type(const struct perfring_pmu *pmu, const void *type)
{
	return pmu->type == *(const uint32_t *)type;
}

int perfring__pmu_of_type(const char *root, uint32_t type, char name[PERFRING_PMU_NAME])
{
	return pmu_where(root, has_type, &type, name);
}

static bool has_event(const struct perfring_pmu *pmu, const void *with)
{
	const struct perfring_piece *event = with;
	char text[PERFRING_PMU_TEXT];

	return perfring__pmu_event(pmu, event->text, event->length, "", text, sizeof(text)) > 0;
}

int perfring__pmu_of_event(const char *root, const char *event, size_t length, char name[PERFRING_PMU_NAME])
{
	return pmu_where(root, has_event, &(struct perfring_piece){event, length}, name);
}

/* ---- terms ---- */

bool perfring__pmu_spread(const struct perfring_pmu_bits *bits, uint64_t value, uint64_t *configs)
{
	uint64_t left = bits->mask, spread = 0;

	for (; left; left &= left - 1, value >>= 1)
		if (value & 1)
			spread |= left & -left;
	if (value)
		return false;
	configs[bits->config] |= spread;
	return true;
}

/* Reads the term at *at.  Returns false after the last. */
static bool next_term(const char *text, size_t *at, size_t to, struct perfring_term *term)
{
	const char *equals;
	size_t end;

	if (*at > to)
		return false;
	while (*at < to && (text[*at] == ' ' || text[*at] == '\t'))
		++*at;
	for (end = *at; end < to && text[end] != ','; end++)
		;
	term->name = (struct perfring_piece){text + *at, end - *at};
	term->value = (struct perfring_piece){NULL, 0};
	equals = memchr(text + *at, '=', end - *at);
	if (equals) {
		term->name.length = (size_t)(equals - term->name.text);
		term->value = (struct perfring_piece){equals + 1, (size_t)(text + end - equals) - 1};
	}
	*at = end + 1;
	return true;
}

bool perfring__event_number(const char *text, size_t length, uint64_t *value)
{
	unsigned base = 10;
	size_t i = 0;

	*value = 0;
	if (length > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
		base = 16;
		i = 2;
	}
	if (i == length)
		return false;
	for (; i < length; i++) {
		char c = text[i];
		unsigned digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
				 : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a' + 10)
				 : c >= 'A' && c <= 'F' ? (unsigned)(c - 'A' + 10)
							: 99;

		if (digit >= base || __builtin_mul_overflow(*value, base, value) ||
		    __builtin_add_overflow(*value, digit, value))
			return false;
	}
	return true;
}

static size_t place(const char *text, const char *at)
{
	return (size_t)(at - text);
}

/* "rHEX", as perf's cpu/r1a8/ has it. */
static bool raw_term(const struct perfring_term *term, uint64_t *config)
{
	char digits[20];

	if (term->value.text || term->name.length < 2 || term->name.length > 17 || term->name.text[0] != 'r')
		return false;
	snprintf(digits, sizeof(digits), "0x%.*s", (int)term->name.length - 1, term->name.text + 1);
	return perfring__event_number(digits, strlen(digits), config);
}

static int bits_fault(struct perfring_fault *fault, size_t at, int error)
{
	if (error == -ENOENT)
		return perfring__event_invalid(fault, at,
					       "no such term: the PMU has those of its format/ and events/, "
					       "and config, config1 .. config4, " PERFRING_TERMS);
	if (error == -EBADMSG)
		return perfring__event_invalid(fault, at,
					       "sysfs describes this term's bits in a way that is not known here");
	return perfring__event_fault(fault, at, "the PMU's files in sysfs cannot be read", error);
}

/* The terms of events/NAME; the user gives those with the value `?`. */
static int expand(const struct perfring_pmu *pmu, const char *alias, const char *text, size_t from, size_t to,
		  size_t at, uint64_t *configs, struct perfring_fault *fault)
{
	struct perfring_term term, given;
	size_t i = 0, length = strlen(alias);

	while (next_term(alias, &i, length, &term)) {
		struct perf_event_attr none = {0};
		struct perfring_naming nothing = {0};
		struct perfring_pmu_bits bits;
		uint64_t value = 1;
		int error;

		if (term.value.length == 1 && term.value.text[0] == '?') {
			bool found = false;

			for (size_t j = from; !found && next_term(text, &j, to, &given);)
				found = given.value.text && given.name.length == term.name.length &&
					!memcmp(given.name.text, term.name.text, term.name.length);
			if (!found)
				return perfring__event_invalid(
					fault, at,
					"this event needs a value for one more term: the one that is ? in its sysfs file");
			continue;
		}
		error = perfring__term_own(alias, &term, true, configs, &none, &nothing, NULL);
		if (error > 0)
			continue;
		if (!error)
			error = perfring__pmu_format(pmu, term.name.text, term.name.length, &bits);
		if (error || !perfring__term_number(&term, &value) || !perfring__pmu_spread(&bits, value, configs))
			return perfring__event_invalid(fault, at,
						       "sysfs describes this event in a way that is not known here");
	}
	return 0;
}

/* The unit and scale of a count.  sysfs writes numbers of the C locale. */
static void read_worth(const struct perfring_pmu *pmu, const struct perfring_term *term, struct perfring_naming *naming)
{
	char text[64], *end;
	locale_t c, before;
	double scale;

	if (perfring__pmu_event(pmu, term->name.text, term->name.length, ".unit", text, sizeof(text)) > 0)
		snprintf(naming->unit, sizeof(naming->unit), "%.31s", text);
	if (perfring__pmu_event(pmu, term->name.text, term->name.length, ".scale", text, sizeof(text)) <= 0)
		return;
	c = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
	if (!c)
		return;
	before = uselocale(c);
	scale = strtod(text, &end);
	uselocale(before);
	freelocale(c);
	if (end != text)
		naming->scale = scale;
}

int perfring__pmu_terms(const struct perfring_pmu *pmu, const char *text, size_t from, size_t to, uint64_t *configs,
			struct perf_event_attr *attr, struct perfring_naming *naming, struct perfring_fault *fault)
{
	char alias[PERFRING_PMU_TEXT];
	uint64_t nothing[PERFRING_CONFIGS];
	struct perfring_pmu_bits bits;
	struct perfring_term term;
	uint64_t value;
	int error;

	/* config= first, in any place: the other terms are OR'ed to it. */
	for (int round = 0; round < 2; round++) {
		for (size_t at = from; from < to && next_term(text, &at, to, &term);) {
			size_t start = place(text, term.name.text);

			if (!term.name.length)
				return perfring__event_invalid(fault, start, "no term");
			error = perfring__term_own(text, &term, pmu != NULL, round ? nothing : configs, attr, naming,
						   fault);
			if (error < 0)
				return error;
			if (error || !round)
				continue;
			if (!pmu)
				return perfring__event_invalid(fault, start,
							       "no such term: this event has " PERFRING_TERMS);
			value = 1;
			if (!term.value.text &&
			    perfring__pmu_event(pmu, term.name.text, term.name.length, "", alias, sizeof(alias)) > 0) {
				error = expand(pmu, alias, text, from, to, start, configs, fault);
				if (error)
					return error;
				read_worth(pmu, &term, naming);
				continue;
			}
			error = perfring__pmu_format(pmu, term.name.text, term.name.length, &bits);
			if (error == -ENOENT && raw_term(&term, &value)) {
				configs[0] |= value;
				continue;
			}
			if (error)
				return bits_fault(fault, start, error);
			start = place(text, term.value.text ? term.value.text : term.name.text);
			if (!perfring__term_number(&term, &value))
				return perfring__event_invalid(fault, start, "a number is expected");
			if (!perfring__pmu_spread(&bits, value, configs))
				return perfring__event_invalid(fault, start,
							       "a number of more bits than this term has");
		}
	}
	return 0;
}
