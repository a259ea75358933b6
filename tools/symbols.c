/* symbols.c - from an address to a name.
 *
 * Each object's symbols are read once and sorted.  Of several at one address the one is taken that a person would name:
 * sized, strong, global, without leading underscores, long.
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
#ifdef HAVE_LIBDW
#include <elfutils/libdwfl.h>
#include <gelf.h>
#endif
#include "symbols.h"
#include "tools.h"

#define VDSO "[vdso]"

/* Objects whose symbols are read: a file may name one object in any number of ways. */
#define OBJECTS_MOST 10000

struct symbol {
	uint64_t start;
	uint64_t end;
	const char *name;
	const char *tail; /* of kernel symbols: the module in brackets; of others what is put behind the name */
	uint32_t rank;
};

struct table {
	struct symbol *symbols;
	size_t nr;
	size_t room;
};

struct segment {
	uint64_t offset;
	uint64_t size;
	uint64_t vaddr;
};

/* A file that was mapped, by the machine's one pointer of its name. */
struct object {
	const char *name;
	enum perfring_nameless nameless; /* when no symbol of it can be known */
	struct table table;
	char *names;
	struct segment *segments;
	size_t segment_count;
};

/* What the file says about the build of an object. */
struct build {
	const char *name;
	uint8_t id[20];
	uint8_t size;
};

struct perfring_symbols {
	struct perfring_machine *machine;
	void *objects;
	void *builds;
	struct object *last;
	unsigned objects_read;
	struct table kernel;
	char *kallsyms;
	const char *kernel_why;
	bool kernel_read;
	bool foreign; /* recorded under another kernel release */
};

/* ---- tables ---- */

static void table_add(struct table *table, struct symbol symbol)
{
	if (table->nr == table->room) {
		table->room = table->room ? 2 * table->room : 256;
		table->symbols = perfring_tool_room(table->symbols, table->room, sizeof(symbol));
	}
	table->symbols[table->nr++] = symbol;
}

static uint32_t rank(bool sized, bool strong, bool global, const char *name)
{
	size_t underscores = strspn(name, "_"), length = strlen(name);

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

/* ---- what the file knows of builds: the BUILD_ID feature (ABI.md 11.3) ---- */

static int compare_builds(const void *a, const void *b)
{
	const struct build *one = a, *other = b;

	return one->name < other->name ? -1 : one->name > other->name;
}

#define BUILD_HEAD 36 /* header, pid, id, size and padding */

static void read_builds(struct perfring_symbols *symbols, const struct perfring_data *data)
{
	struct perf_event_header header;
	const unsigned char *at;
	struct build *build, **known;
	uint64_t left;

	at = perfring_data_feature(data, PERFRING_DATA_BUILD_ID, &left);
	for (; at && left > BUILD_HEAD; at += header.size, left -= header.size) {
		memcpy(&header, at, sizeof(header));
		if (header.size <= BUILD_HEAD || header.size > left)
			break;
		build = perfring_tool_room(NULL, 1, sizeof(*build));
		build->name = perfring_machine_name(symbols->machine, (const char *)at + BUILD_HEAD,
						    header.size - BUILD_HEAD);
		memcpy(build->id, at + 12, sizeof(build->id));
		build->size = header.misc & PERFRING_RECORD_MISC_EXT_RESERVED ? at[32] : 20;
		known = tsearch(build, &symbols->builds, compare_builds);
		if (!known || *known != build)
			free(build);
	}
}

#ifdef HAVE_LIBDW
static bool is_other_build(const struct perfring_symbols *symbols, const char *name, const void *id, int size)
{
	struct build key = {.name = name};
	void *at = tfind(&key, &symbols->builds, compare_builds);
	const struct build *build = at ? *(struct build **)at : NULL;

	if (!build || !build->size || size <= 0)
		return false;
	return build->size > sizeof(build->id) ||
	       memcmp(build->id, id, (size_t)(size < build->size ? size : build->size));
}

/* ---- user objects ---- */

static const Dwfl_Callbacks callbacks = {
	.find_elf = dwfl_build_id_find_elf,
	.find_debuginfo = dwfl_standard_find_debuginfo,
	.section_address = dwfl_offline_section_address,
};

/* The vdso has no file: this process's own serves, where it is the same kernel's. */
static int open_vdso(void)
{
	const unsigned char *image = (const unsigned char *)(uintptr_t)getauxval(AT_SYSINFO_EHDR);
	const ElfW(Ehdr) *header = (const ElfW(Ehdr) *)(const void *)image;
	int fd;
	size_t size;

	if (!image)
		return -1;
	size = header->e_shoff + (size_t)header->e_shentsize * header->e_shnum;
	fd = memfd_create("vdso", MFD_CLOEXEC);
	if (fd >= 0 && write(fd, image, size) != (ssize_t)size) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* Names in the file are anybody's: only a regular file is opened. */
static int open_object(const struct perfring_symbols *symbols, const char *name)
{
	struct stat status;
	int fd;

	if (!strcmp(name, VDSO))
		return symbols->foreign ? -1 : open_vdso();
	if (stat(name, &status) || !S_ISREG(status.st_mode))
		return -1;
	fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd >= 0 && (fstat(fd, &status) || !S_ISREG(status.st_mode))) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static void read_segments(struct object *object, Elf *elf)
{
	size_t nr = 0, i;
	GElf_Phdr header;

	if (elf_getphdrnum(elf, &nr) || !nr)
		return;
	object->segments = perfring_tool_room(NULL, nr, sizeof(*object->segments));
	for (i = 0; i < nr; i++)
		if (gelf_getphdr(elf, (int)i, &header) && header.p_type == PT_LOAD)
			object->segments[object->segment_count++] =
				(struct segment){header.p_offset, header.p_filesz, header.p_vaddr};
}

static bool is_code(const GElf_Sym *symbol)
{
	unsigned type = GELF_ST_TYPE(symbol->st_info), seen = GELF_ST_VISIBILITY(symbol->st_other);

	if (symbol->st_shndx == SHN_UNDEF || symbol->st_shndx == SHN_ABS)
		return false;
	return type == STT_FUNC || type == STT_GNU_IFUNC ||
	       (type == STT_NOTYPE && seen != STV_HIDDEN && seen != STV_INTERNAL);
}

/* A symbol without a size (_init) ends with its section at the latest: what follows is the PLT. */
static uint64_t room_behind(Elf *elf, GElf_Word section, const GElf_Sym *symbol)
{
	GElf_Shdr header;

	if (!elf || !gelf_getshdr(elf_getscn(elf, section), &header) || symbol->st_value < header.sh_addr ||
	    symbol->st_value - header.sh_addr >= header.sh_size)
		return 0;
	return header.sh_size - (symbol->st_value - header.sh_addr);
}

static void read_symbols(struct object *object, Dwfl_Module *module, GElf_Addr bias)
{
	int nr = dwfl_module_getsymtab(module), i;
	const char *name;
	GElf_Word section;
	GElf_Sym symbol;
	GElf_Addr start;
	unsigned bind;
	uint64_t size;
	Elf *elf;

	for (i = 1; i < nr; i++) {
		name = dwfl_module_getsym_info(module, i, &symbol, &start, &section, &elf, NULL);
		if (!name || !*name || !is_code(&symbol))
			continue;
		start -= bias;
		bind = GELF_ST_BIND(symbol.st_info);
		size = symbol.st_size ? symbol.st_size : room_behind(elf, section, &symbol);
		table_add(&object->table,
			  (struct symbol){start, size > UINT64_MAX - start ? UINT64_MAX : start + size, name, "",
					  rank(symbol.st_size, bind != STB_WEAK, bind == STB_GLOBAL, name)});
	}
}

/* The PLT has no symbols: entry i jumps to what relocation i of .rela.plt is about.  x86-64 and arm64 have 16 bytes an
 * entry; a PLT of the plain kind begins with a header. */
#define STUB 16
#ifdef __aarch64__
#define STUB_HEAD 32
#else
#define STUB_HEAD 16
#endif

static Elf_Scn *find_section(Elf *elf, const char *wanted, GElf_Shdr *header)
{
	Elf_Scn *section = NULL;
	const char *name;
	size_t names;

	if (elf_getshdrstrndx(elf, &names))
		return NULL;
	while ((section = elf_nextscn(elf, section))) {
		if (!gelf_getshdr(section, header))
			continue;
		name = elf_strptr(elf, names, header->sh_name);
		if (name && !strcmp(name, wanted))
			return section;
	}
	return NULL;
}

static const char *relocated_name(Elf *elf, Elf_Data *symbols, size_t strings, const GElf_Rela *relocation)
{
	const char *name = NULL;
	GElf_Sym symbol;

	if (gelf_getsym(symbols, (int)GELF_R_SYM(relocation->r_info), &symbol))
		name = elf_strptr(elf, strings, symbol.st_name);
	return name ? name : "";
}

static void read_stubs(struct object *object, Elf *elf)
{
	GElf_Shdr rela, plt, dynsym;
	Elf_Scn *section = find_section(elf, ".rela.plt", &rela);
	Elf_Data *relocations = section ? elf_getdata(section, NULL) : NULL, *symbols;
	GElf_Rela relocation;
	uint64_t at, left;
	const char *name;
	int i;

	section = relocations ? elf_getscn(elf, rela.sh_link) : NULL;
	symbols = section && gelf_getshdr(section, &dynsym) ? elf_getdata(section, NULL) : NULL;
	if (!symbols)
		return;
	at = 0;
	if (!find_section(elf, ".plt.sec", &plt)) {
		if (!find_section(elf, ".plt", &plt) || plt.sh_size < STUB_HEAD)
			return;
		at = STUB_HEAD;
	}
	left = plt.sh_size - at;
	for (i = 0; left >= STUB && gelf_getrela(relocations, i, &relocation); i++, left -= STUB) {
		name = relocated_name(elf, symbols, dynsym.sh_link, &relocation);
		at = plt.sh_addr + plt.sh_size - left;
		table_add(&object->table, (struct symbol){at, at + STUB, name, "@plt", rank(true, true, false, name)});
	}
}

/* Makes the names the object's own, so that its file can be closed. */
static void keep_names(struct object *object)
{
	struct symbol *symbol, *end = object->table.symbols + object->table.nr;
	size_t size = 1;
	char *at;

	for (symbol = object->table.symbols; symbol < end; symbol++)
		size += strlen(symbol->name) + strlen(symbol->tail) + 1;
	at = object->names = perfring_tool_room(NULL, size, 1);
	for (symbol = object->table.symbols; symbol < end; symbol++) {
		char *name = at;

		at = stpcpy(stpcpy(at, symbol->name), symbol->tail) + 1;
		symbol->name = name;
	}
}

static enum perfring_nameless read_module(struct perfring_symbols *symbols, struct object *object, Dwfl *dwfl, int fd)
{
	Dwfl_Module *module = dwfl_report_offline(dwfl, object->name, object->name, fd);
	const unsigned char *id;
	GElf_Addr bias, at;
	Elf *elf;
	int size;

	if (!module)
		close(fd);
	if (!module || dwfl_report_end(dwfl, NULL, NULL))
		return PERFRING_NAMELESS_OBJECT;
	elf = dwfl_module_getelf(module, &bias);
	if (!elf)
		return PERFRING_NAMELESS_OBJECT;
	size = dwfl_module_build_id(module, &id, &at);
	if (is_other_build(symbols, object->name, id, size))
		return PERFRING_NAMELESS_CHANGED;
	read_segments(object, elf);
	read_symbols(object, module, bias);
	read_stubs(object, elf);
	table_sort(&object->table);
	keep_names(object);
	return PERFRING_NAMELESS_NONE;
}

static enum perfring_nameless read_object(struct perfring_symbols *symbols, struct object *object)
{
	enum perfring_nameless nameless = PERFRING_NAMELESS_OBJECT;
	Dwfl *dwfl;
	int fd;

	if (symbols->objects_read >= OBJECTS_MOST)
		return nameless;
	fd = open_object(symbols, object->name);
	if (fd < 0)
		return nameless;
	symbols->objects_read++;
	dwfl = dwfl_begin(&callbacks);
	if (dwfl)
		nameless = read_module(symbols, object, dwfl, fd);
	else
		close(fd);
	dwfl_end(dwfl);
	return nameless;
}
#else
static enum perfring_nameless read_object(struct perfring_symbols *symbols, struct object *object)
{
	(void)symbols;
	(void)object;
	return PERFRING_NAMELESS_LIBDW;
}
#endif

static int compare_objects(const void *a, const void *b)
{
	const struct object *one = a, *other = b;

	return one->name < other->name ? -1 : one->name > other->name;
}

static struct object *get_object(struct perfring_symbols *symbols, const char *name)
{
	struct object key = {.name = name}, *object;
	void *at;

	if (symbols->last && symbols->last->name == name)
		return symbols->last;
	at = tfind(&key, &symbols->objects, compare_objects);
	if (at)
		return symbols->last = *(struct object **)at;
	object = perfring_tool_room(NULL, 1, sizeof(*object));
	*object = key;
	if (!tsearch(object, &symbols->objects, compare_objects)) {
		perfring_tool_complain("out of memory");
		exit(PERFRING_TOOL_FAILED);
	}
	/* "//anon", "[heap]", "anon_inode:..." are no files (ABI.md 5). */
	if (strcmp(name, VDSO) && (name[0] != '/' || name[1] == '/'))
		object->nameless = PERFRING_NAMELESS_ANONYMOUS;
	else
		object->nameless = read_object(symbols, object);
	return symbols->last = object;
}

/* The kernel maps files, symbols tell of addresses: the program headers join the two. */
static uint64_t to_address(const struct object *object, uint64_t offset)
{
	size_t i;

	for (i = 0; i < object->segment_count; i++)
		if (offset >= object->segments[i].offset &&
		    offset - object->segments[i].offset < object->segments[i].size)
			return offset - object->segments[i].offset + object->segments[i].vaddr;
	return offset;
}

static void find_user(struct perfring_symbols *symbols, uint32_t pid, uint64_t ip, struct perfring_symbol *found)
{
	const struct perfring_mapping *map = perfring_machine_user(symbols->machine, pid, ip);
	const struct symbol *symbol;
	struct object *object;

	found->nameless = PERFRING_NAMELESS_UNMAPPED;
	if (!map)
		return;
	object = get_object(symbols, map->name);
	found->object = map->name;
	found->nameless = object->nameless;
	if (object->nameless)
		return;
	found->address = to_address(object, ip - map->addr + map->pgoff);
	symbol = table_find(&object->table, found->address);
	found->nameless = symbol ? PERFRING_NAMELESS_NONE : PERFRING_NAMELESS_SYMBOL;
	if (symbol) {
		found->name = symbol->name;
		found->offset = found->address - symbol->start;
	}
}

/* ---- the kernel ---- */

static char *read_all(const char *path)
{
	size_t size = 0, room = 1 << 22;
	char *text = perfring_tool_room(NULL, room, 1);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = -1;

	while (fd >= 0 && (got = read(fd, text + size, room - size - 1)) > 0) {
		size += (size_t)got;
		if (room - size < 4096) {
			room *= 2;
			text = perfring_tool_room(text, room, 1);
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
static bool take_line(struct perfring_symbols *symbols, char *line)
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
	table_add(&symbols->kernel, (struct symbol){start, start, name, module ? module : "[kernel.kallsyms]",
						    rank(true, type == 't' || type == 'T', type == 'T', name)});
	return true;
}

static void read_kernel(struct perfring_symbols *symbols)
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
static bool is_same_place(const struct perfring_symbols *symbols, const struct perfring_mapping *map)
{
	const char *name = map ? strchr(map->name, ']') : NULL;
	const struct symbol *symbol;

	if (!name || !name[1] || strncmp(map->name, "[kernel.kallsyms]", 17))
		return true;
	symbol = table_find(&symbols->kernel, map->pgoff);
	return symbol && symbol->start == map->pgoff;
}

static void find_kernel(struct perfring_symbols *symbols, uint64_t ip, struct perfring_symbol *found)
{
	const struct perfring_mapping *map = perfring_machine_kernel(symbols->machine, ip);
	const struct symbol *symbol;

	if (!symbols->kernel_read)
		read_kernel(symbols);
	if (map)
		found->object = !strncmp(map->name, "[kernel.kallsyms]", 17) ? "[kernel.kallsyms]" : map->name;
	found->nameless = PERFRING_NAMELESS_KERNEL;
	if (!symbols->kernel.nr)
		return;
	if (!is_same_place(symbols, map)) {
		symbols->kernel_why = "the machine was booted since: kernel symbols are not resolved";
		symbols->kernel.nr = 0;
		return;
	}
	symbol = table_find(&symbols->kernel, ip);
	found->nameless = symbol ? PERFRING_NAMELESS_NONE : PERFRING_NAMELESS_SYMBOL;
	if (symbol) {
		found->name = symbol->name;
		found->object = symbol->tail;
		found->offset = ip - symbol->start;
	}
}

/* ---- both ---- */

void perfring_symbols_find(struct perfring_symbols *symbols, unsigned cpumode, uint32_t pid, uint64_t ip,
			   struct perfring_symbol *found)
{
	*found = (struct perfring_symbol){.address = ip, .nameless = PERFRING_NAMELESS_MODE};
	if (cpumode == PERFRING_RECORD_MISC_USER)
		find_user(symbols, pid, ip, found);
	else if (cpumode == PERFRING_RECORD_MISC_KERNEL)
		find_kernel(symbols, ip, found);
}

bool perfring_symbols_frame(uint64_t word, unsigned *cpumode)
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

const char *perfring_symbols_why(const struct perfring_symbols *symbols, enum perfring_nameless nameless)
{
	switch (nameless) {
	case PERFRING_NAMELESS_UNMAPPED:
		return "nothing known to be mapped there";
	case PERFRING_NAMELESS_MODE:
		return "neither user nor kernel, or without an address";
	case PERFRING_NAMELESS_ANONYMOUS:
		return "in memory without a file";
	case PERFRING_NAMELESS_OBJECT:
		return "the object cannot be read";
	case PERFRING_NAMELESS_CHANGED:
		return "the object is another build now";
	case PERFRING_NAMELESS_SYMBOL:
		return "the object has no symbol there";
	case PERFRING_NAMELESS_KERNEL:
		return symbols->kernel_why ? symbols->kernel_why
					   : "recorded under another kernel: its symbols are not known";
	case PERFRING_NAMELESS_LIBDW:
		return "built without libdw: user symbols are not resolved";
	case PERFRING_NAMELESS_NONE:
	case PERFRING_NAMELESS_COUNT:
		break;
	}
	return "";
}

struct perfring_symbols *perfring_symbols_open(const struct perfring_data *data, struct perfring_machine *machine)
{
	struct perfring_symbols *symbols = perfring_tool_room(NULL, 1, sizeof(*symbols));
	const char *release = perfring_data_string(data, PERFRING_DATA_OSRELEASE);
	struct utsname here;

	memset(symbols, 0, sizeof(*symbols));
	symbols->machine = machine;
	symbols->foreign = release && !uname(&here) && strcmp(release, here.release);
	read_builds(symbols, data);
	return symbols;
}

static void free_object(void *at)
{
	struct object *object = at;

	free(object->table.symbols);
	free(object->names);
	free(object->segments);
	free(object);
}

void perfring_symbols_close(struct perfring_symbols *symbols)
{
	if (!symbols)
		return;
	tdestroy(symbols->objects, free_object);
	tdestroy(symbols->builds, free);
	free(symbols->kernel.symbols);
	free(symbols->kallsyms);
	free(symbols);
}
