/* machine.c - names of threads and mappings of processes, from records.
 *
 * The mappings of a process are a treap, ordered by address, without overlaps.  FORK shares the whole tree; a node that
 * is shared is copied before it is changed.  So a record costs O(log n) whatever the file says, however often a large
 * process forks.  Priorities are random: the file cannot choose the tree's shape.
 */
#include <inttypes.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>
#include "machine.h"
#include "tools.h"

struct node {
	struct tool_mapping map;
	struct node *low;
	struct node *high;
	uint32_t refs;
	uint32_t priority;
};

/* A thread by its tid, and a process by its pid: `maps` is the process's. */
struct task {
	uint32_t id;
	bool is_old; /* it was there when the recording began, and has not ended since */
	const char *comm;
	struct node *maps;
};

struct name {
	size_t size;
	const char *text;
};

struct tool_machine {
	void *tasks; /* tsearch trees: balanced */
	void *names;
	struct node *kernel;
	uint64_t random;
};

static uint32_t draw(struct tool_machine *machine)
{
	machine->random ^= machine->random << 13;
	machine->random ^= machine->random >> 7;
	machine->random ^= machine->random << 17;
	return (uint32_t)(machine->random >> 32);
}

/* ---- the treap: each function takes over the references that it is given ---- */

static void drop(struct node *node)
{
	struct node *next;

	for (; node && !--node->refs; node = next) {
		next = node->high;
		drop(node->low);
		free(node);
	}
}

static struct node *share(struct node *node)
{
	if (node)
		node->refs++;
	return node;
}

static struct node *own(struct node *node)
{
	struct node *copy;

	if (node->refs == 1)
		return node;
	copy = tool_allocate(NULL, 1, sizeof(*copy));
	*copy = *node;
	copy->refs = 1;
	share(copy->low);
	share(copy->high);
	node->refs--;
	return copy;
}

/* Splits into the nodes that begin below `at` and the rest. */
static void split(struct node *node, uint64_t at, struct node **low, struct node **high)
{
	struct node *inner;

	if (!node) {
		*low = NULL;
		*high = NULL;
		return;
	}
	node = own(node);
	if (node->map.addr < at) {
		split(node->high, at, &inner, high);
		node->high = inner;
		*low = node;
	} else {
		split(node->low, at, low, &inner);
		node->low = inner;
		*high = node;
	}
}

/* Everything in low lies below everything in high. */
static struct node *merge(struct node *low, struct node *high)
{
	if (!low || !high)
		return low ? low : high;
	if (low->priority > high->priority) {
		low = own(low);
		low->high = merge(low->high, high);
		return low;
	}
	high = own(high);
	high->low = merge(low, high->low);
	return high;
}

static struct node *plant(struct tool_machine *machine, struct tool_mapping map)
{
	struct node *node;

	if (map.addr >= map.end)
		return NULL;
	node = tool_allocate(NULL, 1, sizeof(*node));
	*node = (struct node){.map = map, .refs = 1, .priority = draw(machine)};
	return node;
}

static const struct tool_mapping *find(const struct node *node, uint64_t addr)
{
	while (node && (addr < node->map.addr || addr >= node->map.end))
		node = addr < node->map.addr ? node->low : node->high;
	return node ? &node->map : NULL;
}

/* The part of a mapping above a newer one that ends at `from`. */
static struct tool_mapping above(struct tool_mapping map, uint64_t from)
{
	map.pgoff += from - map.addr;
	map.addr = from;
	return map;
}

/* Replaces what it overlaps, as mmap does. */
static void insert(struct tool_machine *machine, struct node **tree, struct tool_mapping map)
{
	struct node *low, *mid, *high, *cut, *before = NULL, *after = NULL;
	const struct tool_mapping *old;
	struct tool_mapping part;

	if (map.addr >= map.end)
		return;
	old = find(*tree, map.end);
	if (old && old->addr < map.end)
		after = plant(machine, above(*old, map.end));
	split(*tree, map.addr, &low, &high);
	old = find(low, map.addr);
	if (old) {
		part = *old;
		split(low, part.addr, &low, &cut);
		drop(cut);
		part.end = map.addr;
		before = plant(machine, part);
	}
	split(high, map.end, &mid, &high);
	drop(mid);
	low = merge(merge(low, before), plant(machine, map));
	*tree = merge(merge(low, after), high);
}

/* ---- names and tasks ---- */

static int compare_names(const void *a, const void *b)
{
	const struct name *one = a, *other = b;

	if (one->size != other->size)
		return one->size < other->size ? -1 : 1;
	return memcmp(one->text, other->text, one->size);
}

static int compare_tasks(const void *a, const void *b)
{
	const struct task *one = a, *other = b;

	return one->id < other->id ? -1 : one->id > other->id;
}

const char *tool_machine_name(struct tool_machine *machine, const char *text, size_t size)
{
	struct name key = {strnlen(text, size), text};
	struct name *name;
	char *copy;
	void *at = tfind(&key, &machine->names, compare_names);

	if (at)
		return (*(struct name **)at)->text;
	name = tool_allocate(NULL, 1, sizeof(*name) + key.size + 1);
	copy = (char *)(name + 1);
	memcpy(copy, text, key.size);
	copy[key.size] = 0;
	*name = (struct name){key.size, copy};
	tool_insert(name, &machine->names, compare_names);
	return copy;
}

static struct task *find_task(const struct tool_machine *machine, uint32_t id)
{
	struct task key = {.id = id};
	void *at = tfind(&key, &machine->tasks, compare_tasks);

	return at ? *(struct task **)at : NULL;
}

static struct task *get_task(struct tool_machine *machine, uint32_t id)
{
	struct task *task = find_task(machine, id);

	if (task)
		return task;
	task = tool_allocate(NULL, 1, sizeof(*task));
	*task = (struct task){.id = id};
	tool_insert(task, &machine->tasks, compare_tasks);
	return task;
}

/* ---- records ---- */

static void take_mapping(struct tool_machine *machine, uint16_t misc, uint32_t pid, uint64_t addr, uint64_t len,
			 uint64_t pgoff, struct perfring_string filename, const struct perfring_file_id *file)
{
	struct tool_mapping map = {
		.addr = addr, .end = len > UINT64_MAX - addr ? UINT64_MAX : addr + len, .pgoff = pgoff};

	if (file)
		map.file = *file;
	map.name = tool_machine_name(machine, filename.data, filename.size);
	switch (misc & PERFRING_RECORD_MISC_CPUMODE_MASK) {
	case PERFRING_RECORD_MISC_KERNEL:
		insert(machine, &machine->kernel, map);
		break;
	case PERFRING_RECORD_MISC_USER:
		insert(machine, &get_task(machine, pid)->maps, map);
		break;
	}
}

/* A FORK of a task that was there when the recording began (misc bit 13, or time 0) copies nothing: COMM and MMAP of the
 * task are in the file too, before or after it.  A task that started while these were being written has two FORKs; its
 * COMM and MMAP, which may follow an exec, are newer than the second. */
static void take_fork(struct tool_machine *machine, uint16_t misc, const struct perfring_record_fork *fork)
{
	struct task *child, *parent = find_task(machine, fork->ptid);
	const char *comm = !fork->ptid ? tool_machine_comm(machine, 0) : parent ? parent->comm : NULL;

	child = get_task(machine, fork->tid);
	if ((misc & PERFRING_RECORD_MISC_FORK_EXEC) || !fork->time) {
		if (!child->comm)
			child->comm = comm;
		child->is_old = true;
		return;
	}
	if (child->is_old) {
		child->is_old = false;
		return;
	}
	child->comm = comm;
	if (fork->pid == fork->ppid)
		return;
	parent = find_task(machine, fork->ppid);
	child = get_task(machine, fork->pid);
	drop(child->maps);
	child->maps = parent ? share(parent->maps) : NULL;
}

static void take_ksymbol(struct tool_machine *machine, const struct perfring_record_ksymbol *symbol)
{
	struct tool_mapping map = {.addr = symbol->addr};

	if (symbol->flags & PERFRING_RECORD_KSYMBOL_FLAGS_UNREGISTER)
		return;
	map.end = symbol->len > UINT64_MAX - symbol->addr ? UINT64_MAX : symbol->addr + symbol->len;
	map.name = tool_machine_name(machine, symbol->name.data, symbol->name.size);
	insert(machine, &machine->kernel, map);
}

void tool_machine_take(struct tool_machine *machine, const struct perfring_record *record)
{
	const struct perfring_record_comm *comm = &record->is.comm;
	const struct perfring_record_mmap *mmap = &record->is.mmap;
	const struct perfring_record_mmap2 *mmap2 = &record->is.mmap2;
	struct task *task;

	switch (record->type) {
	case PERFRING_RECORD_COMM:
		get_task(machine, comm->tid)->comm = tool_machine_name(machine, comm->comm.data, comm->comm.size);
		if (record->misc & PERFRING_RECORD_MISC_COMM_EXEC) {
			task = get_task(machine, comm->pid);
			drop(task->maps);
			task->maps = NULL;
		}
		break;
	case PERFRING_RECORD_FORK:
		take_fork(machine, record->misc, &record->is.fork);
		break;
	case PERFRING_RECORD_EXIT: /* its number may be another's from now on */
		task = find_task(machine, record->is.exit.tid);
		if (task)
			task->is_old = false;
		break;
	case PERFRING_RECORD_MMAP:
		take_mapping(machine, record->misc, mmap->pid, mmap->addr, mmap->len, mmap->pgoff, mmap->filename,
			     NULL);
		break;
	case PERFRING_RECORD_MMAP2:
		take_mapping(machine, record->misc, mmap2->pid, mmap2->addr, mmap2->len, mmap2->pgoff, mmap2->filename,
			     &mmap2->file);
		break;
	case PERFRING_RECORD_KSYMBOL:
		take_ksymbol(machine, &record->is.ksymbol);
		break;
	}
}

const char *tool_machine_comm(struct tool_machine *machine, uint32_t tid)
{
	struct task *task = get_task(machine, tid);
	char text[16];

	if (!task->comm && !tid)
		task->comm = "swapper";
	if (task->comm)
		return task->comm;
	snprintf(text, sizeof(text), ":%" PRId32, (int32_t)tid);
	return tool_machine_name(machine, text, sizeof(text));
}

const struct tool_mapping *tool_machine_user(const struct tool_machine *machine, uint32_t pid, uint64_t addr)
{
	const struct task *task = find_task(machine, pid);

	return task ? find(task->maps, addr) : NULL;
}

const struct tool_mapping *tool_machine_kernel(const struct tool_machine *machine, uint64_t addr)
{
	return find(machine->kernel, addr);
}

struct tool_machine *tool_machine_open(void)
{
	struct tool_machine *machine = tool_allocate(NULL, 1, sizeof(*machine));

	memset(machine, 0, sizeof(*machine));
	if (getrandom(&machine->random, sizeof(machine->random), GRND_NONBLOCK) != sizeof(machine->random))
		machine->random = (uint64_t)time(NULL);
	machine->random |= 1;
	return machine;
}

static void free_task(void *task)
{
	drop(((struct task *)task)->maps);
	free(task);
}

void tool_machine_close(struct tool_machine *machine)
{
	if (!machine)
		return;
	tdestroy(machine->tasks, free_task);
	tdestroy(machine->names, free);
	drop(machine->kernel);
	free(machine);
}
