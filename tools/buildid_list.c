/* buildid_list.c - `perfring buildid-list`: the build ids of the objects of a perf.data file.
 *
 * Ids come from the feature BUILD_ID; of a file without it from the mappings that samples have hit.  Also the id of one ELF file,
 * or of the running kernel.  Objects are kept in the order of the file, one for each name and id.
 */
#include <fcntl.h>
#include <search.h>
#include <stdlib.h>
#include <unistd.h>
#include <perfring/build_id.h>
#include "machine.h"
#include "options.h"
#include "progress.h"

/* An object, in the order in which the file names them. */
struct object {
	const char *name; /* the machine's one pointer of it */
	uint8_t id[PERFRING_BUILD_ID_SIZE];
	uint8_t id_size; /* 0: not known */
	bool is_hit;
};

struct buildids {
	struct tool_input input;
	struct tool_machine *machine;
	bool hits;
	void *tree; /* of objects by name */
	struct object **objects;
	size_t nr;
	size_t capacity;
};

static void put_id(const uint8_t *id, size_t size)
{
	for (size_t i = 0; i < size; i++)
		printf("%02x", id[i]);
	for (size_t i = size; i < PERFRING_BUILD_ID_SIZE; i++)
		printf("  ");
}

static int compare_objects(const void *a, const void *b)
{
	const struct object *one = a, *other = b;

	return one->name < other->name ? -1 : one->name > other->name;
}

/* The kernel's mapping is named after a symbol: "[kernel.kallsyms]_text". */
static struct object *object_of(struct buildids *ids, const char *name, size_t size)
{
	static const char kernel[] = "[kernel.kallsyms]";
	struct object *object = tool_allocate(NULL, 1, sizeof(*object)), *known;

	if (size > sizeof(kernel) - 1 && !memcmp(name, kernel, sizeof(kernel) - 1))
		size = sizeof(kernel) - 1;
	*object = (struct object){.name = tool_machine_name(ids->machine, name, size)};
	known = *(struct object **)tool_insert(object, &ids->tree, compare_objects);
	if (known != object) {
		free(object);
		return known;
	}
	if (ids->nr == ids->capacity) {
		ids->capacity = 2 * ids->capacity + 64;
		ids->objects = tool_allocate(ids->objects, ids->capacity, sizeof(struct object *));
	}
	return ids->objects[ids->nr++] = object;
}

static void learn(struct buildids *ids, const char *name, size_t name_size, const void *id, size_t id_size)
{
	struct object *object = object_of(ids, name, name_size);

	if (object->id_size || !id_size || id_size > sizeof(object->id))
		return;
	memcpy(object->id, id, id_size);
	object->id_size = (uint8_t)id_size;
}

/* Lists the ids of the file's header.  Returns whether it has any. */
static bool read_header(struct buildids *ids)
{
	struct perfring_layout_walk walk;
	struct perfring_feature_build_id one;
	uint64_t size = 0;
	const void *payload = perfring_file_feature(ids->input.data, PERFRING_FEATURE_BUILD_ID, &size);

	if (payload)
		perfring_feature_open(&walk, PERFRING_FEATURE_BUILD_ID, payload, size, 0);
	while (payload && perfring_feature_next_build_id(&walk, &one) == 1)
		learn(ids, one.name, one.name_size, one.id, one.id_size);
	return payload;
}

static void take_record(struct buildids *ids, const struct perfring_record *record)
{
	const struct perfring_record_mmap2 *map = &record->is.mmap2;
	const struct perfring_build_id *id = &record->is.header_build_id.build_id;

	tool_machine_take(ids->machine, record);
	switch (record->type) {
	case PERFRING_RECORD_HEADER_BUILD_ID:
		learn(ids, record->is.header_build_id.filename.data, record->is.header_build_id.filename.size,
		      id->bytes, id->size);
		break;
	case PERFRING_RECORD_MMAP:
		object_of(ids, record->is.mmap.filename.data, record->is.mmap.filename.size);
		break;
	case PERFRING_RECORD_MMAP2:
		learn(ids, map->filename.data, map->filename.size, map->file.build_id,
		      map->file.has_build_id ? map->file.build_id_size : 0);
		break;
	}
}

static void take_sample(struct buildids *ids, const struct perfring_sample *sample)
{
	unsigned cpumode = sample->misc & PERFRING_RECORD_MISC_CPUMODE_MASK;
	const struct perfring_mapping *map = NULL;

	if (!(sample->present & PERFRING_SAMPLE_IP))
		return;
	if (cpumode == PERFRING_RECORD_MISC_USER && (sample->present & PERFRING_SAMPLE_TID))
		map = tool_machine_user(ids->machine, sample->pid, sample->ip);
	else if (cpumode == PERFRING_RECORD_MISC_KERNEL)
		map = tool_machine_kernel(ids->machine, sample->ip);
	if (map)
		object_of(ids, map->object->name, strlen(map->object->name))->is_hit = true;
}

static void read_records(struct buildids *ids)
{
	struct perfring_fault fault = {0, NULL};
	struct perfring_item item;
	struct perfring_record record;
	struct perfring_sample sample;

	tool_progress_begin(&ids->input, "buildid-list", 0);
	while (tool_input_next(&ids->input, &item)) {
		if (item.record->type != PERFRING_RECORD_SAMPLE) {
			if (!perfring_record_decode(item.format, item.record, &record, &fault))
				take_record(ids, &record);
		} else if (item.format && !perfring_sample_decode(item.format, item.record, &sample, &fault)) {
			take_sample(ids, &sample);
		}
		if (fault.what)
			tool_input_fault(&ids->input, &fault);
		fault.what = NULL;
	}
}

static int show(struct buildids *ids)
{
	ids->machine = tool_machine_open();
	/* without ids in the header, only the objects that were hit can be shown */
	ids->hits = !read_header(ids) || ids->hits;
	if (ids->hits)
		read_records(ids);
	for (size_t i = 0; i < ids->nr; i++) {
		if (ids->hits && !ids->objects[i]->is_hit)
			continue;
		put_id(ids->objects[i]->id, ids->objects[i]->id_size);
		putchar(' ');
		tool_print(stdout, ids->objects[i]->name, 0, false);
		putchar('\n');
	}
	tdestroy(ids->tree, free);
	free(ids->objects);
	tool_machine_close(ids->machine);
	return tool_flush() ? tool_input_end(&ids->input) : TOOL_FAILED;
}

static int show_one(const char *what, int64_t size, const uint8_t *id)
{
	if (size < 0) {
		tool_complain("buildid-list: %s: %s", what, strerror((int)-size));
		return TOOL_FAILED;
	}
	put_id(id, (size_t)size);
	putchar('\n');
	return tool_flush() ? TOOL_DONE : TOOL_FAILED;
}

/* The build id of a file, if it is an ELF object.  Returns as perfring_build_id_in: -EINVAL for a perf.data file. */
static int64_t read_object(const char *path, uint8_t id[PERFRING_BUILD_ID_SIZE])
{
	int fd = strcmp(path, "-") ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
	int64_t size = fd < 0 ? -EINVAL : perfring_build_id_in(fd, id);

	if (fd >= 0)
		close(fd);
	return size;
}

static int buildid_list_command(int argc, char **argv)
{
	struct tool_options options = {.command = &tool_buildid_list};
	struct buildids ids = {.hits = false};
	uint8_t id[PERFRING_BUILD_ID_SIZE];
	const char *file;
	bool kernel = false;
	int64_t size;
	int found, status;

	while ((found = tool_options_next(&options, argc, argv)) > 0) {
		switch (found) {
		case 'H':
			ids.hits = true;
			break;
		case 'k':
			kernel = true;
			break;
		case 'f':
			break;
		default:
			return tool_options_forgotten(&options, found);
		}
	}
	if (!found)
		return options.status;
	if (kernel)
		return show_one("the kernel", perfring_build_id_of_kernel(id), id);
	file = options.input ? options.input : optind < argc ? argv[optind] : NULL;
	size = file ? read_object(file, id) : -EINVAL;
	if (size > 0 && argc - optind > !options.input) {
		tool_complain("buildid-list: one file at a time ('%s')", argv[argc - 1]);
		return TOOL_MISUSED;
	}
	if (size > 0)
		return show_one(file, size, id);
	if (size == -ENODATA) {
		tool_complain("%s: an object without a build id: link it with -Wl,--build-id", file);
		return TOOL_FAILED;
	}
	status = tool_input_open(&ids.input, &options, argc, argv);
	if (status)
		return status;
	status = show(&ids);
	tool_input_close(&ids.input);
	return status;
}

static const struct tool_option ROWS[] = {
	{'i', "input", .value = "FILE", .takes = "a perf.data file's name, or -", .is_input = true,
	 .help = "default perf.data; - is standard input; of an object its own build id"},
	{'H', "with-hits", .help = "only objects that samples are in"},
	{'k', "kernel", .help = "the build id of the kernel that runs"},
	{'f', "force", .help = "taken: any file that can be read is read"},
	{'m', "kernel-maps",
	 .refused = "a recording has the build ids of the kernel's modules: perfring buildid-list -H"},
	{'v', "verbose", .refused = "perfring says by itself what it cannot read"},
	TOOL_OPTIONS_END,
};

static const struct tool_example EXAMPLES[] = {
	{"Whether this program is the one that was recorded:",
	 "perfring buildid-list | grep \"$(perfring buildid-list -i ./program)\""},
	{0},
};

const struct tool_command tool_buildid_list = {
	.name = "buildid-list",
	.summary = "the build ids of the objects of a perf.data file",
	.usage = "[[-i] FILE] [-H]\n"
		 "-k",
	.description =
		"Shows the build ids and names of the objects of a perf.data file, one a line, as perf buildid-list does.",
	.options = ROWS,
	.exit_status = "0 done; 1 the file has faults or cannot be read; 2 usage error.",
	.examples = EXAMPLES,
	.see_also = "perfring-record perfring-report perfring",
	.run = buildid_list_command,
};
