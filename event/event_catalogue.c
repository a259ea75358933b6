/* event_catalogue.c - the catalogue of events that have a name on this machine.
 *
 * perfring_event_names_ of event.h, for `perfring list`.  Collects all names at open: the table, sysfs's PMUs, tracefs, libpfm4,
 * the forms; sorts them once; next walks.  Reads some thousand files: threads only.
 */
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "os/array.h"
#include "pmu.h"

struct listed {
	enum perfring_event_kind kind;
	int error; /* of perf_event_open; 0: it opens, or was not tried */
	bool opens;
	char *name; /* three texts, each with its NUL: name, alias, text */
};

struct perfring_event_names {
	struct listed *list;
	uint32_t count;
	uint32_t capacity;
	uint32_t next;
	const char *glob;
	bool try_open;
};

static bool matches(const struct perfring_event_names *names, const char *name, const char *alias)
{
	return !names->glob || !fnmatch(names->glob, name, 0) || (*alias && !fnmatch(names->glob, alias, 0));
}

static int add(struct perfring_event_names *names, enum perfring_event_kind kind, const char *name, const char *alias,
	       const char *text, const struct perf_event_attr *attr)
{
	size_t length = strlen(name) + 1, other = strlen(alias) + 1;
	struct listed *one;

	if (!matches(names, name, alias))
		return 0;
	if (perfring__os_array_grow(&names->list, names->count, &names->capacity, sizeof(*names->list)))
		return -ENOMEM;
	one = &names->list[names->count];
	*one = (struct listed){.kind = kind, .name = malloc(length + other + strlen(text) + 1)};
	if (!one->name)
		return -ENOMEM;
	strcpy(one->name, name);
	strcpy(one->name + length, alias);
	strcpy(one->name + length + other, text);
	names->count++;
	if (names->try_open && attr) {
		struct perf_event_attr mine = *attr;
		uint64_t dropped;
		int fd = perfring_event_open_fallback(&mine, 0, -1, -1, 0, PERFRING_FALLBACK_EXCLUDE_KERNEL, &dropped);

		one->opens = fd >= 0;
		one->error = fd < 0 ? fd : 0;
		if (fd >= 0)
			close(fd);
	}
	return 0;
}

static int add_table(struct perfring_event_names *names)
{
	static const struct {
		const char *name, *alias;
		uint32_t type;
		uint64_t config;
	} TABLE[] = {
#define PERFRING_EVENT(name, alias, type, config) {name, alias, type, config},
#include <perfring/values.def>
	};
	struct perf_event_attr attr = {.size = PERFRING_ATTR_SIZE_0, .disabled = 1};
	char name[64];
	int error = 0;

	for (size_t i = 0; i < sizeof(TABLE) / sizeof(*TABLE) && !error; i++) {
		attr.type = TABLE[i].type;
		attr.config = TABLE[i].config;
		error = add(names, TABLE[i].type ? PERFRING_EVENT_SOFTWARE : PERFRING_EVENT_HARDWARE, TABLE[i].name,
			    TABLE[i].alias, "", &attr);
	}
	for (unsigned i = 0; !error && perfring__cache_name(i, name, sizeof(name)); i++) {
		error = perfring_event_parse(name, &attr, NULL);
		if (!error)
			error = add(names, PERFRING_EVENT_CACHE, name, "", "", &attr);
	}
	return error;
}

/* "PMU/config=0..0xffff,umask=0..0xff/": the terms of its format files. */
static int add_form(struct perfring_event_names *names, const struct perfring_pmu *pmu, const char *pmu_name)
{
	const char *separator = "";
	struct dirent **terms;
	char form[1024];
	int count = perfring__event_folder(pmu->fd, "format", &terms);
	size_t used;

	if (count < 0)
		return count == -ENOMEM ? count : 0;
	used = (size_t)snprintf(form, sizeof(form), "%s/", pmu_name);
	for (int i = 0; i < count && used < sizeof(form); i++) {
		const char *term = terms[i]->d_name;
		struct perfring_pmu_bits bits;
		int width;

		if (perfring__pmu_format(pmu, term, strlen(term), &bits))
			continue;
		width = __builtin_popcountll(bits.mask);
		used += (size_t)snprintf(form + used, sizeof(form) - used, "%s%s=0..0x%llx", separator, term,
					 (unsigned long long)(width == 64 ? UINT64_MAX : (UINT64_C(1) << width) - 1));
		separator = ",";
	}
	perfring__event_folder_free(terms, count);
	if (used + 1 >= sizeof(form))
		return 0;
	strcpy(form + used, "/");
	return *separator ? add(names, PERFRING_EVENT_FORM, form, "", "terms of this PMU", NULL) : 0;
}

/* Whether the event's name alone means this PMU's event, not that of an earlier PMU. */
static bool is_known_as(const char *event, const struct perfring_pmu *pmu)
{
	struct perf_event_attr attr = {.size = sizeof(attr)};

	return !perfring_event_parse(event, &attr, NULL) && attr.type == pmu->type;
}

static int add_pmu(struct perfring_event_names *names, const char *pmu_name)
{
	char name[512], text[PERFRING_PMU_TEXT];
	struct perfring_pmu pmu;
	struct dirent **events;
	int error = 0, count;

	if (perfring__pmu_open(&pmu, PERFRING_PMU_ROOT, pmu_name, strlen(pmu_name)))
		return 0;
	count = perfring__event_folder(pmu.fd, "events", &events);
	for (int i = 0; i < count && !error; i++) {
		const char *event = events[i]->d_name;

		if (perfring__pmu_event(&pmu, event, strlen(event), "", text, sizeof(text)) > 0 &&
		    snprintf(name, sizeof(name), "%s/%s/", pmu_name, event) < (int)sizeof(name))
			error = add(names, PERFRING_EVENT_PMU, name, is_known_as(event, &pmu) ? event : "", text, NULL);
	}
	if (count >= 0)
		perfring__event_folder_free(events, count);
	else if (count == -ENOMEM)
		error = count;
	if (!error)
		error = add_form(names, &pmu, pmu_name);
	perfring__pmu_close(&pmu);
	return error;
}

static int add_pmus(struct perfring_event_names *names)
{
	struct dirent **pmus;
	int count = perfring__event_folder(AT_FDCWD, PERFRING_PMU_ROOT, &pmus), error = 0;

	if (count < 0)
		return count == -ENOMEM ? count : 0;
	for (int i = 0; i < count && !error; i++)
		error = add_pmu(names, pmus[i]->d_name);
	perfring__event_folder_free(pmus, count);
	return error;
}

static int add_tracepoint(void *names, const char *name, int folder, const char *id)
{
	if (!matches(names, name, "") || faccessat(folder, id, F_OK, 0))
		return 0;
	return add(names, PERFRING_EVENT_TRACEPOINT, name, "", "", NULL);
}

static int add_pfm(void *names, const char *name, const char *text)
{
	return add(names, PERFRING_EVENT_PFM, name, "", text, NULL);
}

static int add_forms(struct perfring_event_names *names)
{
	static const char *const FORMS[][2] = {
		{"rNNN", "a raw event of the CPU's PMU, hexadecimal"},
		{"PMU/TERM[=VALUE],.../[MODIFIERS]",
		 "terms of its format/ and events/, or config, config1 .., and those of every event"},
		{"mem:ADDR[/LEN][:rwx]", "a breakpoint"},
		{"uprobe:PATH:SYMBOL[+OFFSET]", "user code that is run; PATH:0xOFFSET by its place in the file"},
		{"uretprobe:PATH:SYMBOL", "a function of user code that returns"},
	};
	int error = 0;

	for (size_t i = 0; i < sizeof(FORMS) / sizeof(*FORMS) && !error; i++)
		error = add(names, PERFRING_EVENT_FORM, FORMS[i][0], "", FORMS[i][1], NULL);
	return error;
}

static int by_kind_and_name(const void *a, const void *b)
{
	const struct listed *left = a, *right = b;

	return left->kind != right->kind ? (left->kind < right->kind ? -1 : 1) : strcmp(left->name, right->name);
}

int perfring_event_names_open(struct perfring_event_names **names, const char *glob, bool try_open)
{
	struct perfring_event_names *mine = calloc(1, sizeof(*mine));
	int error;

	*names = NULL;
	if (!mine)
		return -ENOMEM;
	mine->glob = glob;
	mine->try_open = try_open;
	error = add_table(mine);
	if (!error)
		error = add_pmus(mine);
	if (!error && perfring__tracepoints_each("*", "*", add_tracepoint, mine) == -ENOMEM)
		error = -ENOMEM;
	if (!error)
		error = perfring__pfm_each(add_pfm, mine);
	if (!error)
		error = add_forms(mine);
	mine->glob = NULL; /* belongs to the caller */
	if (error) {
		perfring_event_names_close(mine);
		return error;
	}
	if (mine->count)
		qsort(mine->list, mine->count, sizeof(*mine->list), by_kind_and_name);
	*names = mine;
	return 0;
}

int perfring_event_names_next(struct perfring_event_names *names, struct perfring_event_listed *name)
{
	const struct listed *one;

	if (!names)
		return -EINVAL;
	if (names->next == names->count)
		return 0;
	one = &names->list[names->next++];
	name->kind = one->kind;
	name->opens = one->opens;
	name->error = one->error;
	name->name = one->name;
	name->alias = name->name + strlen(name->name) + 1;
	name->text = name->alias + strlen(name->alias) + 1;
	return 1;
}

void perfring_event_names_close(struct perfring_event_names *names)
{
	if (!names)
		return;
	while (names->count)
		free(names->list[--names->count].name);
	free(names->list);
	free(names);
}
