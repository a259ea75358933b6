/* symbols.c - from an address to a name.
 *
 * Each file's symbols are read once, under whatever names, and sorted.  The file that a name leads to here is tried first,
 * then the one that the process sees, if it is the recorded build.  Of several symbols at one address the order of
 * preference is: with a size, strong, global, without leading underscores, long.
 */
#include <ctype.h>
#include <fcntl.h>
#include <link.h>
#include <inttypes.h>
#include <search.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <perfring/build_id.h>
#include "elf_symbols.h"
#include "limits.h"
#include "symbols.h"
#include "tools.h"

#define VDSO TOOL_SYMBOLS_VDSO

struct symbol {
	uint64_t start;
	uint64_t end;
	const char *name;
	const char *tail; /* of kernel symbols: the module in brackets; of others what follows the name */
	uint32_t rank;
};

struct table {
	struct symbol *symbols;
	size_t nr;
	size_t capacity;
};

/* A file that was mapped, whatever its names are. */
struct file {
	dev_t device;
	ino_t inode;
	uint8_t id[PERFRING_BUILD_ID_SIZE];
	uint32_t id_size;
	bool is_read;
	enum tool_nameless nameless; /* when no symbol of it can be known */
	struct table table;
	struct tool_elf elf;
};

/* One of its names, by the machine's one pointer of it. */
struct object {
	const char *name;
	enum tool_nameless nameless; /* when no symbol of it is to be shown */
	struct file *file;
};

/* A name as a process sees it, where the file that was recorded has a build id. */
struct apart {
	const char *name;
	uint8_t id[PERFRING_BUILD_ID_SIZE];
	uint32_t id_size;
	uint32_t pid;      /* 0: any process, after one has led to it */
	struct file *file; /* NULL: it leads to none of that build */
};

/* What the file says about the build of an object. */
struct build {
	const char *name;
	uint8_t id[20];
	uint8_t size;
};

struct tool_symbols {
	struct tool_machine *machine;
	void *objects;
	void *files;
	void *builds;
	void *aparts;
	struct object *last;
	unsigned file_count;
	uint64_t bytes_left;
	bool has_told; /* of a bound that was exceeded */
	struct table kernel;
	char *kallsyms;
	const char *kernel_why;
	bool kernel_read;
	bool is_unread; /* an object that could not be read was complained of */
	bool is_partly; /* so was one of which something could not, or its debug file */
	bool foreign;   /* recorded under another kernel release */
};

/* ---- tables ---- */

static void table_add(struct table *table, struct symbol symbol)
{
	if (table->nr == table->capacity) {
		table->capacity = table->capacity ? 2 * table->capacity : 256;
		table->symbols = tool_allocate(table->symbols, table->capacity, sizeof(symbol));
	}
	table->symbols[table->nr++] = symbol;
}

static uint32_t rank(bool sized, bool strong, bool global, const char *name, size_t length)
{
	size_t underscores = strspn(name, "_");

	return (uint32_t)sized << 31 | (uint32_t)strong << 30 | (uint32_t)global << 29 |
	       (uint32_t)(15 - (underscores > 15 ? 15 : underscores)) << 20 |
	       (uint32_t)(length > 0xfffff ? 0xfffff : length);
}

static int compare_symbols(const void *a, const void *b)
{
	const struct symbol *one = a, *other = b;

	return one->start < other->start ? -1 : one->start > other->start;
}

/* Of two with one address. */
static bool is_better(const struct symbol *one, const struct symbol *other)
{
	return one->rank != other->rank ? one->rank > other->rank : strcmp(one->name, other->name) < 0;
}

/* One symbol an address; one without a size ends where the next begins. */
static void table_sort(struct table *table)
{
	struct symbol *symbols = table->symbols;
	size_t i, nr = 0;

	if (!table->nr)
		return;
	/* kallsyms is in order already */
	for (i = 1; i < table->nr && symbols[i - 1].start <= symbols[i].start; i++)
		;
	if (i < table->nr)
		qsort(symbols, table->nr, sizeof(*symbols), compare_symbols);
	for (i = 0; i < table->nr; i++) {
		if (!nr || symbols[nr - 1].start != symbols[i].start)
			symbols[nr++] = symbols[i];
		else if (is_better(&symbols[i], &symbols[nr - 1]))
			symbols[nr - 1] = symbols[i];
	}
	table->nr = nr;
	for (i = 0; i < nr; i++)
		if (symbols[i].end == symbols[i].start)
			symbols[i].end = i + 1 < nr ? symbols[i + 1].start : UINT64_MAX;
}

static const struct symbol *table_find(const struct table *table, uint64_t address)
{
	size_t low = 0, high = table->nr;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (table->symbols[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low && address < table->symbols[low - 1].end ? &table->symbols[low - 1] : NULL;
}

/* ---- what the file knows of builds: the BUILD_ID feature (docs/abi.md 11.3) ---- */

static int compare_builds(const void *a, const void *b)
{
	const struct build *one = a, *other = b;

	return one->name < other->name ? -1 : one->name > other->name;
}

#define BUILD_HEAD 36 /* header, pid, id, size and padding */

static void read_builds(struct tool_symbols *symbols, const struct perfring_file *data)
{
	struct perf_event_header header;
	const unsigned char *at;
	struct build *build, **known;
	uint64_t left;

	at = perfring_file_feature(data, PERFRING_FEATURE_BUILD_ID, &left);
	for (; at && left > BUILD_HEAD; at += header.size, left -= header.size) {
		memcpy(&header, at, sizeof(header));
		if (header.size <= BUILD_HEAD || header.size > left)
			break;
		build = tool_allocate(NULL, 1, sizeof(*build));
		build->name =
			tool_machine_name(symbols->machine, (const char *)at + BUILD_HEAD, header.size - BUILD_HEAD);
		memcpy(build->id, at + 12, sizeof(build->id));
		build->size = header.misc & PERFRING_RECORD_MISC_EXT_RESERVED ? at[32] : 20;
		known = (struct build **)tool_insert(build, &symbols->builds, compare_builds);
		if (*known != build)
			free(build);
	}
}

/* Whether the file is another one than was recorded with that build id, of `size` bytes, 0: none is known.  One that
 * had a build id and has none any more is. */
static bool is_other(const struct file *file, const uint8_t *id, uint32_t size)
{
	if (!size)
		return false;
	return !file->id_size || size > sizeof(file->id) ||
	       memcmp(id, file->id, size < file->id_size ? size : file->id_size);
}

static const struct build *find_build(const struct tool_symbols *symbols, const char *name)
{
	struct build key = {.name = name};
	void *at = tfind(&key, &symbols->builds, compare_builds);

	return at ? *(struct build **)at : NULL;
}

static bool is_other_build(const struct tool_symbols *symbols, const char *name, const struct file *file)
{
	const struct build *build = find_build(symbols, name);

	return build && is_other(file, build->id, build->size);
}

/* ---- user objects ---- */

bool tool_symbols_knows_vdso(const struct tool_mapping *map)
{
	return (map->addr > UINT32_MAX) == (sizeof(void *) == 8);
}

/* The vdso has no file: this process's own serves, where it is the same kernel's. */
int tool_symbols_open_vdso(void)
{
	const unsigned char *image = (const unsigned char *)(uintptr_t)getauxval(AT_SYSINFO_EHDR);
	const ElfW(Ehdr) *header = (const ElfW(Ehdr) *)(const void *)image;
	size_t size, done = 0;
	int fd;

	if (!image)
		return -ENOENT;
	size = header->e_shoff + (size_t)header->e_shentsize * header->e_shnum;
	fd = memfd_create("vdso", MFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	while (done < size) {
		ssize_t one = write(fd, image + done, size - done);

		if (one <= 0) {
			int error = one ? -errno : -EIO;

			close(fd);
			return error;
		}
		done += (size_t)one;
	}
	return fd;
}

static int open_object(const struct tool_symbols *symbols, const char *name)
{
	if (strcmp(name, VDSO))
		return perfring_object_open(0, name);
	return symbols->foreign ? -ENOENT : tool_symbols_open_vdso();
}

static void take_symbol(void *to, const struct tool_elf_symbol *symbol)
{
	table_add(to, (struct symbol){symbol->start, symbol->end, symbol->name, "",
				      rank(symbol->is_sized, symbol->is_strong, symbol->is_global, symbol->name,
					   symbol->length)});
}

/* Reported once: a lack of permission or memory repeats for each object.  A missing object is usual. */
static void complain_unread(struct tool_symbols *symbols, const char *name, int error)
{
	bool is_usual = error == ENOENT || error == ENOTDIR || error == EINVAL || error == EPERM || error == ELOOP;

	if (is_usual || symbols->is_unread)
		return;
	symbols->is_unread = true;
	tool_complain("%s: %s: its symbols are not known", name, strerror(error));
}

/* The symbols that were read are shown: of what is missing, one sentence. */
static void complain_partly(struct tool_symbols *symbols, const char *name, const struct tool_elf *elf)
{
	if (!elf->unread || symbols->is_partly)
		return;
	symbols->is_partly = true;
	tool_complain("%s: %s: not all symbols of %s are known", elf->unread_path ? elf->unread_path : name,
		      strerror(-elf->unread), name);
}

/* One sentence, of the first object. */
static void tell_exceeded(struct tool_symbols *symbols, const char *name, const char *what)
{
	if (!symbols->has_told)
		tool_complain(
			"warning: %s: more than %s: symbols that are not read are shown as numbers (docs/limits.md)",
			name, what);
	symbols->has_told = true;
}

static void read_file(struct tool_symbols *symbols, struct file *file, int fd, const char *name)
{
	int error;

	file->is_read = true;
	error = tool_elf_read(&file->elf, fd, name, &symbols->bytes_left, take_symbol, &file->table);
	if (file->elf.exceeded)
		tell_exceeded(symbols, name, file->elf.exceeded);
	if (error) {
		if (error != -E2BIG)
			complain_unread(symbols, name, -error);
		file->nameless = error == -E2BIG ? TOOL_NAMELESS_LIMIT : TOOL_NAMELESS_OBJECT;
		file->table.nr = 0;
		return;
	}
	complain_partly(symbols, name, &file->elf);
	file->nameless = TOOL_NAMELESS_NONE;
	table_sort(&file->table);
}

static int compare_files(const void *a, const void *b)
{
	const struct file *one = a, *other = b;

	if (one->device != other->device)
		return one->device < other->device ? -1 : 1;
	return one->inode < other->inode ? -1 : one->inode > other->inode;
}

/* Inserts into a tree of tsearch, or returns the item that is there already. */
static void *put(void *new, void **tree, int (*compare)(const void *, const void *))
{
	return *tool_insert(new, tree, compare);
}

/* Returns 0 or -errno: then it is not known which build it is. */
static int get_file(struct tool_symbols *symbols, int fd, struct file **result)
{
	struct file key = {.is_read = false}, *file;
	struct stat place;
	void *at;
	int size;

	if (fstat(fd, &place))
		return -errno;
	key.device = place.st_dev;
	key.inode = place.st_ino;
	at = tfind(&key, &symbols->files, compare_files);
	if (at) {
		*result = *(struct file **)at;
		return 0;
	}
	size = tool_elf_build_id(fd, &symbols->bytes_left, key.id);
	if (size < 0)
		return size;
	key.id_size = (uint32_t)size;
	file = tool_allocate(NULL, 1, sizeof(*file));
	*file = key;
	*result = put(file, &symbols->files, compare_files);
	symbols->file_count++;
	return 0;
}

/* No more files are opened: even to look at a build id costs time. */
static bool is_full(struct tool_symbols *symbols, const char *name)
{
	if (symbols->file_count < TOOL_LIMIT_FILES)
		return false;
	tell_exceeded(symbols, name, "10000 objects");
	return true;
}

/* Opens each name of a file, and reads the file once, unless all names lead to another build. */
static void open_file(struct tool_symbols *symbols, struct object *object)
{
	int fd, error;

	object->nameless = TOOL_NAMELESS_LIMIT;
	if (is_full(symbols, object->name))
		return;
	fd = open_object(symbols, object->name);
	error = fd < 0 ? fd : get_file(symbols, fd, &object->file);
	object->nameless = TOOL_NAMELESS_OBJECT;
	if (error)
		complain_unread(symbols, object->name, -error);
	if (fd < 0)
		return;
	if (object->file && is_other_build(symbols, object->name, object->file)) {
		object->nameless = TOOL_NAMELESS_CHANGED;
	} else if (object->file) {
		if (!object->file->is_read)
			read_file(symbols, object->file, fd, object->name);
		object->nameless = object->file->nameless;
	}
	close(fd);
}

static int compare_objects(const void *a, const void *b)
{
	const struct object *one = a, *other = b;

	return one->name < other->name ? -1 : one->name > other->name;
}

static struct object *get_object(struct tool_symbols *symbols, const char *name)
{
	struct object key = {.name = name}, *object;
	void *at;

	if (symbols->last && symbols->last->name == name)
		return symbols->last;
	at = tfind(&key, &symbols->objects, compare_objects);
	if (at)
		return symbols->last = *(struct object **)at;
	object = tool_allocate(NULL, 1, sizeof(*object));
	*object = key;
	put(object, &symbols->objects, compare_objects);
	/* "//anon", "[heap]", "anon_inode:..." are no files (docs/abi.md 5). */
	if (strcmp(name, VDSO) && (name[0] != '/' || name[1] == '/'))
		object->nameless = TOOL_NAMELESS_ANONYMOUS;
	else
		open_file(symbols, object);
	return symbols->last = object;
}

/* ---- objects that other processes see by their names ---- */

static int compare_aparts(const void *a, const void *b)
{
	const struct apart *one = a, *other = b;

	if (one->name != other->name)
		return one->name < other->name ? -1 : 1;
	if (one->pid != other->pid)
		return one->pid < other->pid ? -1 : 1;
	if (one->id_size != other->id_size)
		return one->id_size < other->id_size ? -1 : 1;
	return memcmp(one->id, other->id, sizeof(one->id));
}

/* The file that this process sees by the name, if it is the recorded build: the process may have ended, and its pid may be
 * another's. */
static struct file *open_apart(struct tool_symbols *symbols, const struct apart *key)
{
	int fd = is_full(symbols, key->name) ? -EMFILE : perfring_object_open((int32_t)key->pid, key->name);
	struct file *file = NULL;

	if (fd < 0)
		return NULL;
	if (get_file(symbols, fd, &file) || is_other(file, key->id, key->id_size))
		file = NULL;
	if (file && !file->is_read)
		read_file(symbols, file, fd, key->name);
	close(fd);
	return file;
}

static struct file *keep_apart(struct tool_symbols *symbols, const struct apart *key)
{
	struct apart *apart = tool_allocate(NULL, 1, sizeof(*apart)), *known;

	*apart = *key;
	known = put(apart, &symbols->aparts, compare_aparts);
	if (known != apart)
		free(apart);
	return known->file;
}

/* For a file of another mount namespace: tries each process once, until one leads to it.  Returns NULL when no living process
 * has that build by that name, or the recorded build is not known. */
static struct file *find_apart(struct tool_symbols *symbols, const struct tool_mapping *map, uint32_t pid)
{
	const struct build *build = map->file.build_id_size ? NULL : find_build(symbols, map->name);
	uint32_t size = build ? build->size : map->file.build_id_size;
	struct apart key = {.name = map->name, .id_size = size};
	void *at;

	if (*map->name != '/' || !size || size > sizeof(key.id) || !pid || pid > INT32_MAX)
		return NULL;
	memcpy(key.id, build ? build->id : map->file.build_id, size);
	at = tfind(&key, &symbols->aparts, compare_aparts);
	if (at)
		return (*(struct apart **)at)->file;
	key.pid = pid;
	at = tfind(&key, &symbols->aparts, compare_aparts);
	if (at)
		return (*(struct apart **)at)->file;
	key.file = open_apart(symbols, &key);
	keep_apart(symbols, &key);
	key.pid = 0;
	return key.file ? keep_apart(symbols, &key) : NULL;
}

/* Mappings have file offsets, symbols have addresses: the program headers relate the two. */
static uint64_t to_address(const struct tool_elf *elf, uint64_t offset)
{
	for (uint32_t i = 0; i < elf->segment_count; i++)
		if (offset >= elf->segments[i].offset && offset - elf->segments[i].offset < elf->segments[i].size)
			return offset - elf->segments[i].offset + elf->segments[i].vaddr;
	return offset;
}

static void find_user(struct tool_symbols *symbols, uint32_t pid, uint64_t ip, struct tool_symbol *found)
{
	const struct tool_mapping *map = tool_machine_user(symbols->machine, pid, ip);
	const struct symbol *symbol;
	struct object *object;
	struct file *file;

	found->nameless = TOOL_NAMELESS_UNMAPPED;
	if (!map)
		return;
	if (!strcmp(map->name, VDSO) && !tool_symbols_knows_vdso(map)) {
		found->object = map->name;
		found->nameless = TOOL_NAMELESS_OBJECT;
		return;
	}
	object = get_object(symbols, map->name);
	found->object = map->name;
	found->nameless = object->nameless;
	file = object->file;
	if (!object->nameless && is_other(file, map->file.build_id, map->file.build_id_size))
		found->nameless = TOOL_NAMELESS_CHANGED;
	if (found->nameless == TOOL_NAMELESS_OBJECT || found->nameless == TOOL_NAMELESS_CHANGED) {
		file = find_apart(symbols, map, pid);
		found->nameless = file ? file->nameless : found->nameless;
	}
	if (found->nameless)
		return;
	found->address = to_address(&file->elf, ip - map->addr + map->pgoff);
	symbol = table_find(&file->table, found->address);
	found->nameless = symbol ? TOOL_NAMELESS_NONE : TOOL_NAMELESS_SYMBOL;
	if (symbol) {
		found->name = symbol->name;
		found->offset = found->address - symbol->start;
	}
}

/* ---- the kernel ---- */

static char *read_all(const char *path)
{
	size_t size = 0, capacity = 1 << 22;
	char *text = tool_allocate(NULL, capacity, 1);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = -1;

	while (fd >= 0 && (got = read(fd, text + size, capacity - size - 1)) > 0) {
		size += (size_t)got;
		if (capacity - size < 4096) {
			capacity *= 2;
			text = tool_allocate(text, capacity, 1);
		}
	}
	if (fd >= 0)
		close(fd);
	if (got < 0) {
		free(text);
		return NULL;
	}
	text[size] = 0;
	return text;
}

/* "ffffffff81000000 T name [module]": the line is cut into its words where it lies. */
static bool take_line(struct tool_symbols *symbols, char *line)
{
	char *at, *name, *module = NULL;
	uint64_t start = 0;
	char type;

	for (at = line; isxdigit((unsigned char)*at); at++)
		start = start << 4 | (uint64_t)(*at <= '9' ? *at - '0' : (*at | 0x20) - 'a' + 10);
	if (at == line || *at != ' ' || !at[1] || at[2] != ' ')
		return false;
	type = at[1];
	name = at + 3;
	at = name + strcspn(name, "\t ");
	if (*at) {
		*at = 0;
		module = strchr(at + 1, '[');
	}
	if (!start || !strchr("tTwW", type))
		return start != 0;
	table_add(&symbols->kernel,
		  (struct symbol){start, start, name, module ? module : "[kernel.kallsyms]",
				  rank(true, type == 't' || type == 'T', type == 'T', name, strlen(name))});
	return true;
}

static void read_kernel(struct tool_symbols *symbols)
{
	char *line, *end;
	bool seen = false;

	symbols->kernel_read = true;
	if (symbols->foreign)
		return;
	symbols->kallsyms = read_all("/proc/kallsyms");
	if (!symbols->kallsyms) {
		symbols->kernel_why = "/proc/kallsyms cannot be read: kernel symbols are not resolved";
		return;
	}
	for (line = symbols->kallsyms; *line; line = end) {
		end = strchrnul(line, '\n');
		if (*end)
			*end++ = 0;
		seen = take_line(symbols, line) || seen;
	}
	table_sort(&symbols->kernel);
	if (!seen)
		symbols->kernel_why =
			"/proc/kallsyms hides its addresses (kernel.kptr_restrict): kernel symbols are not resolved";
}

/* The kernel's mapping is named after a symbol, "[kernel.kallsyms]_text", and has its address as pgoff.  Each boot
 * moves the kernel and its modules. */
static bool is_same_place(const struct tool_symbols *symbols, const struct tool_mapping *map)
{
	const char *name = map ? strchr(map->name, ']') : NULL;
	const struct symbol *symbol;

	if (!name || !name[1] || strncmp(map->name, "[kernel.kallsyms]", 17))
		return true;
	symbol = table_find(&symbols->kernel, map->pgoff);
	return symbol && symbol->start == map->pgoff;
}

static void find_kernel(struct tool_symbols *symbols, uint64_t ip, struct tool_symbol *found)
{
	const struct tool_mapping *map = tool_machine_kernel(symbols->machine, ip);
	const struct symbol *symbol;

	if (!symbols->kernel_read)
		read_kernel(symbols);
	if (map)
		found->object = !strncmp(map->name, "[kernel.kallsyms]", 17) ? "[kernel.kallsyms]" : map->name;
	found->nameless = TOOL_NAMELESS_KERNEL;
	if (!symbols->kernel.nr)
		return;
	if (!is_same_place(symbols, map)) {
		symbols->kernel_why = "the machine was rebooted since: kernel symbols are not resolved";
		symbols->kernel.nr = 0;
		return;
	}
	symbol = table_find(&symbols->kernel, ip);
	found->nameless = symbol ? TOOL_NAMELESS_NONE : TOOL_NAMELESS_SYMBOL;
	if (symbol) {
		found->name = symbol->name;
		found->object = symbol->tail;
		found->offset = ip - symbol->start;
	}
}

/* ---- both ---- */

void tool_symbols_find(struct tool_symbols *symbols, unsigned cpumode, uint32_t pid, uint64_t ip,
		       struct tool_symbol *found)
{
	*found = (struct tool_symbol){.address = ip, .nameless = TOOL_NAMELESS_MODE};
	if (cpumode == PERFRING_RECORD_MISC_USER)
		find_user(symbols, pid, ip, found);
	else if (cpumode == PERFRING_RECORD_MISC_KERNEL)
		find_kernel(symbols, ip, found);
}

bool tool_symbols_frame(uint64_t word, unsigned *cpumode)
{
	bool cookie = *cpumode == (unsigned)PERFRING_CONTEXT_USER_DEFERRED;

	if (!perfring_list_is_marker(word)) {
		if (cookie)
			*cpumode = PERFRING_RECORD_MISC_USER;
		return !cookie;
	}
	switch ((int64_t)word) {
	case PERFRING_CONTEXT_KERNEL:
		*cpumode = PERFRING_RECORD_MISC_KERNEL;
		break;
	case PERFRING_CONTEXT_USER:
		*cpumode = PERFRING_RECORD_MISC_USER;
		break;
	case PERFRING_CONTEXT_USER_DEFERRED:
		*cpumode = (unsigned)PERFRING_CONTEXT_USER_DEFERRED;
		break;
	default:
		*cpumode = PERFRING_RECORD_MISC_CPUMODE_UNKNOWN;
		break;
	}
	return false;
}

const char *tool_symbols_why(const struct tool_symbols *symbols, enum tool_nameless nameless)
{
	switch (nameless) {
	case TOOL_NAMELESS_UNMAPPED:
		return "nothing is known to be mapped there";
	case TOOL_NAMELESS_MODE:
		return "neither user nor kernel, or without an address";
	case TOOL_NAMELESS_ANONYMOUS:
		return "in memory without a file";
	case TOOL_NAMELESS_OBJECT:
		return "the object cannot be read";
	case TOOL_NAMELESS_CHANGED:
		return "the object is a different build now";
	case TOOL_NAMELESS_SYMBOL:
		return "the object has no symbol there";
	case TOOL_NAMELESS_KERNEL:
		return symbols->kernel_why ? symbols->kernel_why
					   : "recorded under another kernel: its symbols are not known";
	case TOOL_NAMELESS_LIMIT:
		return "the object exceeds the limits of what is read (docs/limits.md)";
	case TOOL_NAMELESS_NONE:
	case TOOL_NAMELESS_COUNT:
		break;
	}
	return "";
}

struct tool_symbols *tool_symbols_open(const struct perfring_file *data, struct tool_machine *machine)
{
	struct tool_symbols *symbols = tool_allocate(NULL, 1, sizeof(*symbols));
	const char *release = perfring_file_string(data, PERFRING_FEATURE_OSRELEASE);
	struct utsname here;

	memset(symbols, 0, sizeof(*symbols));
	symbols->machine = machine;
	symbols->bytes_left = TOOL_LIMIT_ALL_BYTES;
	symbols->foreign = release && !uname(&here) && strcmp(release, here.release);
	read_builds(symbols, data);
	return symbols;
}

static void free_file(void *at)
{
	struct file *file = at;

	free(file->table.symbols);
	tool_elf_close(&file->elf);
	free(file);
}

void tool_symbols_close(struct tool_symbols *symbols)
{
	if (!symbols)
		return;
	tdestroy(symbols->objects, free);
	tdestroy(symbols->files, free_file);
	tdestroy(symbols->builds, free);
	tdestroy(symbols->aparts, free);
	free(symbols->kernel.symbols);
	free(symbols->kallsyms);
	free(symbols);
}
