/* pmu.c - the PMUs as sysfs describes them: their terms' bits, their named events, what a count is worth. */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "os/file.h"
#include "pmu.h"

static const char *const SUFFIXES[] = {".scale", ".unit", ".snapshot", ".per-pkg"};

/* ---- directories ---- */

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

void perfring_event_folder_free(char **names, size_t count)
{
	while (count)
		free(names[--count]);
	free(names);
}

int perfring_event_folder(int at, const char *path, char ***names, size_t *count)
{
	int fd = openat(at, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), error = 0;
	struct dirent *entry;
	size_t room = 0;
	DIR *folder;

	*names = NULL;
	*count = 0;
	if (fd < 0)
		return -errno;
	folder = fdopendir(fd);
	if (!folder) {
		error = -errno;
		close(fd);
		return error;
	}
	while (!error && (errno = 0, entry = readdir(folder))) {
		if (entry->d_name[0] == '.')
			continue;
		if (*count == room) {
			char **more = reallocarray(*names, room = 2 * room + 32, sizeof(*more));

			if (!more) {
				error = -ENOMEM;
				break;
			}
			*names = more;
		}
		(*names)[*count] = strdup(entry->d_name);
		if ((*names)[*count])
			++*count;
		else
			error = -ENOMEM;
	}
	if (!error)
		error = -errno;
	closedir(folder);
	if (error) {
		perfring_event_folder_free(*names, *count);
		*names = NULL;
		*count = 0;
	} else if (*count) {
		qsort(*names, *count, sizeof(**names), by_name);
	}
	return error;
}

/* ---- a PMU's files ---- */

/* A file's name that cannot lead elsewhere. */
static bool is_plain(const char *name, size_t length)
{
	return length && length < NAME_MAX && name[0] != '.' && !memchr(name, '/', length);
}

int perfring_pmu_open(struct perfring_pmu *pmu, const char *root, const char *name, size_t length)
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
	got = perfring_os_file_read_at(pmu->fd, "type", number, sizeof(number));
	type = got > 0 ? strtoul(number, &end, 10) : 0;
	if (got <= 0 || *end || type > UINT32_MAX) {
		perfring_pmu_close(pmu);
		return got < 0 ? (int)got : -EBADMSG;
	}
	pmu->type = (uint32_t)type;
	return 0;
}

void perfring_pmu_close(struct perfring_pmu *pmu)
{
	if (pmu->fd >= 0)
		close(pmu->fd);
	pmu->fd = -1;
}

/* "config1:0-7,32-35" */
static int parse_format(const char *text, struct perfring_pmu_bits *bits)
{
	unsigned long from, to;
	char *end;

	if (strncmp(text, "config", 6))
		return -EBADMSG;
	text += 6;
	bits->config = 0;
	bits->mask = 0;
	if (*text >= '1' && *text < '0' + PERFRING_CONFIGS)
		bits->config = (unsigned)(*text++ - '0');
	if (*text != ':')
		return -EBADMSG;
	do {
		from = to = strtoul(++text, &end, 10);
		if (end == text)
			return -EBADMSG;
		text = end;
		if (*text == '-') {
			to = strtoul(++text, &end, 10);
			if (end == text)
				return -EBADMSG;
			text = end;
		}
		if (from > to || to > 63)
			return -EBADMSG;
		bits->mask |= (to - from == 63 ? UINT64_MAX : (UINT64_C(1) << (to - from + 1)) - 1) << from;
	} while (*text == ',');
	return *text ? -EBADMSG : 0;
}

void perfring_pmu_cpus(const struct perfring_pmu *pmu, char *room, size_t size)
{
	if (perfring_os_file_read_at(pmu->fd, "cpumask", room, size) < 0)
		room[0] = 0;
}

int perfring_pmu_format(const struct perfring_pmu *pmu, const char *name, size_t length, struct perfring_pmu_bits *bits)
{
	char path[NAME_MAX + 16], text[256];
	int64_t got;

	if (!is_plain(name, length))
		return -ENOENT;
	snprintf(path, sizeof(path), "format/%.*s", (int)length, name);
	got = perfring_os_file_read_at(pmu->fd, path, text, sizeof(text));
	return got < 0 ? (int)got : parse_format(text, bits);
}

bool perfring_pmu_is_event(const char *name, size_t length)
{
	for (size_t i = 0; i < sizeof(SUFFIXES) / sizeof(*SUFFIXES); i++) {
		size_t suffix = strlen(SUFFIXES[i]);

		if (length >= suffix && !memcmp(name + length - suffix, SUFFIXES[i], suffix))
			return false;
	}
	return is_plain(name, length);
}

int64_t perfring_pmu_event(const struct perfring_pmu *pmu, const char *name, size_t length, const char *suffix,
			   char *room, size_t size)
{
	char path[NAME_MAX + 32];

	if (!perfring_pmu_is_event(name, length))
		return -ENOENT;
	snprintf(path, sizeof(path), "events/%.*s%s", (int)length, name, suffix);
	return perfring_os_file_read_at(pmu->fd, path, room, size);
}

static int pmu_where(const char *root, bool (*fits)(const struct perfring_pmu *pmu, const void *with), const void *with,
		     char name[PERFRING_PMU_NAME])
{
	size_t count;
	char **names;
	int error = perfring_event_folder(AT_FDCWD, root, &names, &count), found = -ENOENT;

	if (error)
		return error;
	for (size_t i = 0; i < count && found; i++) {
		struct perfring_pmu pmu;

		if (strlen(names[i]) >= PERFRING_PMU_NAME || perfring_pmu_open(&pmu, root, names[i], strlen(names[i])))
			continue;
		if (fits(&pmu, with)) {
			strcpy(name, names[i]);
			found = 0;
		}
		perfring_pmu_close(&pmu);
	}
	perfring_event_folder_free(names, count);
	return found;
}

static bool has_type(const struct perfring_pmu *pmu, const void *type)
{
	return pmu->type == *(const uint32_t *)type;
}

int perfring_pmu_of_type(const char *root, uint32_t type, char name[PERFRING_PMU_NAME])
{
	return pmu_where(root, has_type, &type, name);
}

struct piece {
	const char *text;
	size_t length;
};

static bool has_event(const struct perfring_pmu *pmu, const void *with)
{
	const struct piece *event = with;
	char text[PERFRING_PMU_TEXT];

	return perfring_pmu_event(pmu, event->text, event->length, "", text, sizeof(text)) > 0;
}

int perfring_pmu_of_event(const char *root, const char *event, size_t length, char name[PERFRING_PMU_NAME])
{
	return pmu_where(root, has_event, &(struct piece){event, length}, name);
}

/* ---- terms ---- */

bool perfring_pmu_spread(const struct perfring_pmu_bits *bits, uint64_t value, uint64_t *configs)
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

/* One TERM[=VALUE] of a list. */
struct term {
	struct piece name;
	struct piece value; /* text NULL: none */
};

/* Cuts the term at *at; false behind the last. */
static bool next_term(const char *text, size_t *at, size_t to, struct term *term)
{
	size_t end;

	if (*at > to)
		return false;
	while (*at < to && (text[*at] == ' ' || text[*at] == '\t'))
		++*at;
	for (end = *at; end < to && text[end] != ','; end++)
		;
	term->name = (struct piece){text + *at, end - *at};
	term->value = (struct piece){NULL, 0};
	for (size_t i = *at; i < end; i++)
		if (text[i] == '=') {
			term->name.length = i - *at;
			term->value = (struct piece){text + i + 1, end - i - 1};
			break;
		}
	*at = end + 1;
	return true;
}

static bool named(const struct term *term, const char *name)
{
	return term->name.length == strlen(name) && !memcmp(term->name.text, name, term->name.length);
}

/* Decimal, or hexadecimal behind 0x: a leading 0 is not octal, as perf has it. */
static bool number(const struct piece *piece, uint64_t *value)
{
	unsigned base = 10;
	size_t i = 0;

	*value = 0;
	if (piece->length > 2 && piece->text[0] == '0' && (piece->text[1] == 'x' || piece->text[1] == 'X')) {
		base = 16;
		i = 2;
	}
	if (i == piece->length)
		return false;
	for (; i < piece->length; i++) {
		char c = piece->text[i];
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

/* config.., rHEX, name, period, freq: 1 when it was one of those. */
static int own_term(const char *text, const struct term *term, bool has_config, uint64_t *configs,
		    struct perf_event_attr *attr, struct perfring_naming *naming, struct perfring_fault *fault)
{
	static const char *const CONFIG[PERFRING_CONFIGS] = {"config", "config1", "config2", "config3", "config4"};
	size_t at = place(text, term->value.text ? term->value.text : term->name.text);
	uint64_t value = 1;

	if (named(term, "name")) {
		if (!term->value.length || term->value.length >= sizeof(naming->name))
			return perfring_event_fault(fault, at, "a name of 1 to 127 bytes is expected", -EINVAL);
		memcpy(naming->name, term->value.text, term->value.length);
		naming->name[term->value.length] = 0;
		return 1;
	}
	if (named(term, "period") || named(term, "freq")) {
		if (!term->value.text || !number(&term->value, &value))
			return perfring_event_fault(fault, at, "a number is expected", -EINVAL);
		attr->sample_period = value;
		attr->freq = named(term, "freq");
		return 1;
	}
	if (!has_config)
		return 0;
	for (unsigned i = 0; i < PERFRING_CONFIGS; i++) {
		if (!named(term, CONFIG[i]))
			continue;
		if (term->value.text && !number(&term->value, &value))
			return perfring_event_fault(fault, at, "a number is expected", -EINVAL);
		configs[i] = value;
		return 1;
	}
	return 0;
}

/* perf's `cpu/r1a8/` */
static bool raw_term(const struct term *term, uint64_t *config)
{
	char digits[20];
	struct piece piece = {digits, term->name.length + 1};

	if (term->value.text || term->name.length < 2 || term->name.length > 17 || term->name.text[0] != 'r')
		return false;
	digits[0] = '0';
	digits[1] = 'x';
	memcpy(digits + 2, term->name.text + 1, term->name.length - 1);
	return number(&piece, config);
}

static int bits_fault(struct perfring_fault *fault, size_t at, int error)
{
	if (error == -ENOENT)
		return perfring_event_fault(
			fault, at,
			"no such term: the PMU has those of its format/ and events/, and config, config1 .. "
			"config4, period, freq, name",
			-EINVAL);
	if (error == -EBADMSG)
		return perfring_event_fault(
			fault, at, "sysfs describes this term's bits in a way that is not known here", -EINVAL);
	return perfring_event_fault(fault, at, "the PMU's files in sysfs cannot be read", error);
}

/* The terms that events/NAME stands for; the user gives those that it leaves open as `?`. */
static int expand(const struct perfring_pmu *pmu, const char *alias, const char *text, size_t from, size_t to,
		  size_t at, uint64_t *configs, struct perfring_fault *fault)
{
	struct term term, given;
	size_t i = 0, length = strlen(alias);

	while (next_term(alias, &i, length, &term)) {
		struct perf_event_attr none = {0};
		struct perfring_naming nothing;
		struct perfring_pmu_bits bits;
		uint64_t value = 1;
		int error;

		if (term.value.length == 1 && term.value.text[0] == '?') {
			bool found = false;

			for (size_t j = from; !found && next_term(text, &j, to, &given);)
				found = given.value.text && given.name.length == term.name.length &&
					!memcmp(given.name.text, term.name.text, term.name.length);
			if (!found)
				return perfring_event_fault(fault, at,
							    "this event needs a value for one more term: "
							    "the one that is ? in its sysfs file",
							    -EINVAL);
			continue;
		}
		error = own_term(alias, &term, true, configs, &none, &nothing, NULL);
		if (error > 0)
			continue;
		if (!error)
			error = perfring_pmu_format(pmu, term.name.text, term.name.length, &bits);
		if (error || (term.value.text && !number(&term.value, &value)) ||
		    !perfring_pmu_spread(&bits, value, configs))
			return perfring_event_fault(
				fault, at, "sysfs describes this event in a way that is not known here", -EINVAL);
	}
	return 0;
}

/* A count's worth: sysfs writes a number of the C locale. */
static void read_worth(const struct perfring_pmu *pmu, const struct term *term, struct perfring_naming *naming)
{
	char text[64], *end;
	locale_t c, before;
	double scale;

	if (perfring_pmu_event(pmu, term->name.text, term->name.length, ".unit", text, sizeof(text)) > 0)
		snprintf(naming->unit, sizeof(naming->unit), "%.31s", text);
	if (perfring_pmu_event(pmu, term->name.text, term->name.length, ".scale", text, sizeof(text)) <= 0)
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

int perfring_pmu_terms(const struct perfring_pmu *pmu, const char *text, size_t from, size_t to, uint64_t *configs,
		       struct perf_event_attr *attr, struct perfring_naming *naming, struct perfring_fault *fault)
{
	char alias[PERFRING_PMU_TEXT];
	uint64_t nothing[PERFRING_CONFIGS];
	struct perfring_pmu_bits bits;
	struct term term;
	uint64_t value;
	int error;

	/* config= first: terms are OR'ed to it, wherever it stands. */
	for (int round = 0; round < 2; round++) {
		for (size_t at = from; from < to && next_term(text, &at, to, &term);) {
			size_t start = place(text, term.name.text);

			if (!term.name.length)
				return perfring_event_fault(fault, start, "no term", -EINVAL);
			error = own_term(text, &term, pmu != NULL, round ? nothing : configs, attr, naming, fault);
			if (error < 0)
				return error;
			if (error || !round)
				continue;
			if (!pmu)
				return perfring_event_fault(
					fault, start, "no such term: this event has period, freq and name", -EINVAL);
			value = 1;
			if (!term.value.text &&
			    perfring_pmu_event(pmu, term.name.text, term.name.length, "", alias, sizeof(alias)) > 0) {
				error = expand(pmu, alias, text, from, to, start, configs, fault);
				if (error)
					return error;
				read_worth(pmu, &term, naming);
				continue;
			}
			error = perfring_pmu_format(pmu, term.name.text, term.name.length, &bits);
			if (error == -ENOENT && raw_term(&term, &value)) {
				configs[0] |= value;
				continue;
			}
			if (error)
				return bits_fault(fault, start, error);
			if (term.value.text && !number(&term.value, &value))
				return perfring_event_fault(fault, place(text, term.value.text), "a number is expected",
							    -EINVAL);
			if (!perfring_pmu_spread(&bits, value, configs))
				return perfring_event_fault(
					fault, place(text, term.value.text ? term.value.text : term.name.text),
					"a number of more bits than this term has", -EINVAL);
		}
	}
	return 0;
}
