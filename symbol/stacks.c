/* stacks.c - from the registers and the stack copy of a sample to its callchain.
 *
 * The functions of stacks.h: unwind/ makes the steps, symbols.c has the objects' tables.
 *
 *     version of the process's mappings --> space: those mappings that a stack has led to, with their objects' tables
 *
 * A space begins empty.  A walk that ends at an address of which the space knows nothing looks its mapping up, and goes on.
 */
#include <stdlib.h>
#include <perfring/stacks.h>
#include "os/array.h"
#include "symbols.h"

enum {
	CACHE_ENTRIES = 1 << 16, /* rules that were used last: 2 MiB */
	MAX_FRAMES = 127,        /* of a stack, as perf's: the kernel's count too */
};

struct space {
	uint64_t version; /* 0: empty */
	uint32_t id;
	uint32_t nr;
	uint32_t capacity;
	struct perfring_unwind_map *maps; /* by start */
};

struct perfring_stacks {
	const struct perfring_maps *maps;
	struct perfring_symbols *symbols;
	struct perfring_unwind_cache *cache;
	struct space spaces[PERFRING_STACKS_SPACES_MAX]; /* by version */
	uint32_t last_id;
	uint32_t capacity;
	uint64_t *words; /* of the chain that was returned last */
	struct perfring_stacks_counts counts;
};

/* ---- the registers of a sample ---- */

/* The registers that are followed, by machine. */
struct machine {
	uint32_t arch;
	uint32_t ip, sp, fp, lr; /* bits of the mask; lr: NONE where there is none */
	uint64_t pac_mask;
	uint32_t tables; /* unwind.h's name of it */
};

#define NONE 64

static const struct machine machines[] = {
	{PERFRING_ARCH_X86, 8, 7, 6, NONE, 0, PERFRING_UNWIND_X86_64},
	/* Addresses of user space have at most 52 bits; bit 55 chooses between user space and the kernel. */
	{PERFRING_ARCH_ARM64, 32, 31, 29, 30, ~((UINT64_C(1) << 52) - 1), PERFRING_UNWIND_AARCH64},
};

/* PERF_SAMPLE_REGS_ABI_32 and _64. */
enum {
	ABI_32 = 1,
	ABI_64 = 2
};

/* The architecture of the registers; 0 is this build's own. */
static uint32_t arch_of(const struct perfring_regs *regs)
{
	if (regs->arch)
		return regs->arch;
#if defined(__x86_64__)
	return PERFRING_ARCH_X86;
#elif defined(__aarch64__)
	return PERFRING_ARCH_ARM64;
#else
	return 0;
#endif
}

static bool get_register(const struct perfring_regs *regs, uint32_t bit, uint64_t *value)
{
	uint32_t at;

	if (bit >= NONE || !(regs->mask >> bit & 1))
		return false;
	at = (uint32_t)__builtin_popcountll(regs->mask & ((UINT64_C(1) << bit) - 1));
	if (at >= regs->nr)
		return false;
	*value = regs->values[at];
	return true;
}

static const struct machine *machine_of(const struct perfring_regs *regs)
{
	for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++)
		if (machines[i].arch == arch_of(regs))
			return &machines[i];
	return NULL;
}

static bool get_other(const void *of, uint32_t number, uint64_t *value)
{
	const struct perfring_regs *regs = of;

	return get_register(regs, perfring_unwind_register_bit(machine_of(regs)->tables, number), value);
}

static const uint64_t COPIES = PERFRING_SAMPLE_TID | PERFRING_SAMPLE_REGS_USER | PERFRING_SAMPLE_STACK_USER;

/* Whether the sample has a copy of the stack of a process of this ABI. */
static bool has_copy(const struct perfring_sample *sample, uint64_t abi)
{
	return (sample->present & COPIES) == COPIES && sample->regs_user.abi == abi && sample->stack_user.dyn_size;
}

/* Reads the registers that a walk begins with.  Returns false: the sample lacks one, or the copy of its stack. */
static bool get_registers(const struct perfring_sample *sample, struct perfring_unwind_registers *registers)
{
	const struct perfring_regs *regs = &sample->regs_user;
	const struct machine *machine;

	if (!has_copy(sample, ABI_64))
		return false;
	machine = machine_of(regs);
	*registers = (struct perfring_unwind_registers){0};
	if (!machine || !get_register(regs, machine->ip, &registers->ip) ||
	    !get_register(regs, machine->sp, &registers->sp))
		return false;
	registers->has_no_fp = !get_register(regs, machine->fp, &registers->fp);
	get_register(regs, machine->lr, &registers->lr);
	registers->pac_mask = machine->pac_mask;
	registers->other = get_other;
	registers->of = regs;
	return true;
}

/* ---- spaces ---- */

/* Numbers the space anew after its maps have changed: the cache does not find rules of the old number any more.  0 is no number. */
static void renumber(struct perfring_stacks *stacks, struct space *space)
{
	if (!++stacks->last_id)
		++stacks->last_id;
	space->id = stacks->last_id;
}

static struct space *get_space(struct perfring_stacks *stacks, uint64_t version)
{
	struct space *space = &stacks->spaces[version % PERFRING_STACKS_SPACES_MAX];

	if (space->version != version) {
		space->version = version;
		space->nr = 0;
		renumber(stacks, space);
	}
	return space;
}

/* The first map that ends after the address. */
static uint32_t find_map(const struct space *space, uint64_t at)
{
	uint32_t low = 0, high = space->nr;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (space->maps[middle].end <= at)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Finds the unwind tables of a mapping's object.  A map without tables is kept too, so that it is not looked up again. */
static int get_tables(struct perfring_stacks *stacks, const struct perfring_mapping *mapping, uint32_t pid,
		      struct perfring_unwind_map *map)
{
	const struct perfring_maps_object *object = mapping->object;
	struct perfring_symbol_file file = {
		.path = object->name,
		.build_id = object->file.build_id,
		.build_id_size = object->file.has_build_id ? object->file.build_id_size : 0,
		.pid = (int32_t)pid,
		.ino = object->file.ino,
		.ino_generation = object->file.ino_generation,
	};
	struct perfring_symbol_object *found;
	int ret;

	if (object->kind != PERFRING_MAPS_FILE && object->kind != PERFRING_MAPS_VDSO)
		return 0;
	ret = perfring__symbols_look_up(stacks->symbols, &file, &found);
	if (ret < 0)
		return ret == -ENOMEM ? ret : 0;
	map->bias = perfring__symbols_bias(found, mapping->addr, mapping->end, mapping->pgoff);
	return perfring__symbols_unwind(stacks->symbols, found, &map->unwind);
}

/* Adds the map at an address to the space.  Returns 1; 0: nothing is mapped there, it is known already, or there are too many;
 * -ENOMEM. */
static int add_map(struct perfring_stacks *stacks, struct space *space, uint32_t pid, uint64_t at)
{
	const struct perfring_mapping *mapping;
	struct perfring_unwind_map map;
	uint32_t place = find_map(space, at);
	int error;

	if ((place < space->nr && space->maps[place].start <= at) || space->nr >= PERFRING_STACKS_OBJECTS_MAX)
		return 0;
	mapping = perfring_maps_find(stacks->maps, PERFRING_RECORD_MISC_USER, pid, at);
	if (!mapping)
		return 0;
	map = (struct perfring_unwind_map){.start = mapping->addr, .end = mapping->end};
	error = get_tables(stacks, mapping, pid, &map);
	if (error || perfring__os_array_grow(&space->maps, space->nr, &space->capacity, sizeof(*space->maps)))
		return -ENOMEM;
	memmove(space->maps + place + 1, space->maps + place, (space->nr - place) * sizeof(*space->maps));
	space->maps[place] = map;
	space->nr++;
	renumber(stacks, space);
	return 1;
}

/* ---- chains ---- */

/* Walks the stack, and adds the maps that it leads to.  The addresses of callers are inside their calls (`calls`).  Returns the
 * number of frames, or -ENOMEM. */
static int walk(struct perfring_stacks *stacks, uint32_t pid, struct perfring_unwind_registers *registers,
		const struct perfring_unwind_stack *stack, uint64_t *ips, uint32_t most, enum perfring_unwind_end *end)
{
	struct space *space = get_space(stacks, perfring_maps_version(stacks->maps, pid));
	uint32_t nr = 0;
	int ret = 1;

	*end = PERFRING_UNWIND_FULL;
	while (ret == 1 && nr < most) { /* each turn but the last adds a map */
		struct perfring_unwind_space known = {
			.maps = space->maps, .nr = space->nr, .id = space->id, .makes = true, .calls = true};

		nr += perfring_unwind_walk(&known, stacks->cache, registers, stack, ips + nr, most - nr, end);
		if (*end != PERFRING_UNWIND_NO_RULE)
			break;
		ret = add_map(stacks, space, pid, registers->ip - registers->is_return);
		nr -= ret == 1; /* the last frame is written again */
	}
	return ret < 0 ? ret : (int)nr;
}

/* Makes space for a chain of `count` words.  Returns 0 or -ENOMEM. */
static int reserve(struct perfring_stacks *stacks, uint64_t count)
{
	uint64_t *words;

	if (count <= stacks->capacity)
		return 0;
	if (count > UINT32_MAX / sizeof(*words))
		return -ENOMEM;
	words = realloc(stacks->words, (size_t)count * sizeof(*words));
	if (!words)
		return -ENOMEM;
	stacks->words = words;
	stacks->capacity = (uint32_t)count;
	return 0;
}

static uint64_t count_before_user(const struct perfring_list *list)
{
	uint64_t nr = 0;

	while (nr < list->nr && list->words[nr] != (uint64_t)(int64_t)PERFRING_CONTEXT_USER)
		nr++;
	return nr;
}

/* Appends the frames of the sample's own callchain (by frame pointers) that are above the last one by tables.  Returns the number of
 * frames. */
static uint32_t join(struct perfring_stacks *stacks, const struct perfring_list *list, uint64_t from, uint64_t *ips,
		     uint32_t nr, uint32_t most)
{
	uint64_t at = from, same = 0;

	/* a recursion has the same address in each of its frames */
	for (uint32_t i = 0; i < nr; i++)
		same += ips[i] == ips[nr - 1];
	/* the innermost frame is where the processor is, the others where they return to */
	if (nr == 1 && at < list->nr && list->words[at] != ips[0])
		at = list->nr;
	for (; nr > 1 && at < list->nr; at++)
		if (list->words[at] - 1 == ips[nr - 1] && !--same)
			break;
	if (at == list->nr)
		return nr;
	stacks->counts.joined++;
	for (at++; at < list->nr && nr < most && !perfring_list_is_marker(list->words[at]); at++)
		ips[nr++] = list->words[at] - 1;
	return nr;
}

static struct perfring_list own_chain(const struct perfring_sample *sample)
{
	return sample->present & PERFRING_SAMPLE_CALLCHAIN ? sample->callchain : (struct perfring_list){.nr = 0};
}

int perfring_stacks_chain(struct perfring_stacks *stacks, const struct perfring_sample *sample, uint32_t most,
			  struct perfring_list *chain, enum perfring_unwind_end *end)
{
	const struct perfring_list own = own_chain(sample);
	struct perfring_unwind_registers registers;
	struct perfring_unwind_stack stack;
	uint64_t before;
	int nr;

	*chain = own;
	*end = PERFRING_UNWIND_NO_RULE;
	if (!get_registers(sample, &registers)) {
		stacks->counts.ends[PERFRING_UNWIND_STEPPED] += has_copy(sample, ABI_32);
		return 0;
	}
	before = count_before_user(&own);
	if (reserve(stacks, before + 1 + most))
		return -ENOMEM;
	for (uint64_t i = 0; i < before; i++)
		stacks->words[i] = own.words[i];
	stacks->words[before] = (uint64_t)(int64_t)PERFRING_CONTEXT_USER;

	stack = perfring_unwind_stack_init(sample->stack_user.data, registers.sp, sample->stack_user.dyn_size);
	nr = walk(stacks, sample->pid, &registers, &stack, stacks->words + before + 1, most, end);
	if (nr < 0)
		return nr;
	stacks->counts.ends[*end]++;
	if (*end != PERFRING_UNWIND_WHOLE && *end != PERFRING_UNWIND_FULL && nr && before < own.nr)
		nr = (int)join(stacks, &own, before + 1, stacks->words + before + 1, (uint32_t)nr, most);
	chain->words = (const perfring_word *)stacks->words;
	chain->nr = before + 1 + (uint64_t)nr;
	return 1;
}

bool perfring_stacks_innermost(struct perfring_sample *sample, uint32_t modes)
{
	const struct perfring_list own = own_chain(sample);
	struct perfring_unwind_registers registers = {.ip = 0};
	unsigned cpumode = sample->misc & PERFRING_RECORD_MISC_CPUMODE_MASK;
	bool has_registers, found = false;
	uint64_t nr, ip;

	if (sample->present & PERFRING_SAMPLE_IP && modes >> cpumode & 1)
		return true;
	has_registers = get_registers(sample, &registers);
	nr = has_registers ? count_before_user(&own) : own.nr;
	ip = registers.ip;
	for (uint64_t i = 0; !found && i < nr; i++) {
		found = perfring_stacks_frame(own.words[i], &cpumode) && modes >> cpumode & 1;
		if (found)
			ip = own.words[i];
	}
	if (!found) {
		cpumode = PERFRING_RECORD_MISC_USER;
		found = has_registers && modes >> cpumode & 1;
	}
	if (!found)
		return false;
	sample->present |= PERFRING_SAMPLE_IP;
	sample->ip = ip;
	sample->misc = (uint16_t)((sample->misc & ~(unsigned)PERFRING_RECORD_MISC_CPUMODE_MASK) | cpumode);
	return true;
}

/* ---- samples without copies ---- */

bool perfring_stacks_attr(struct perf_event_attr *attr)
{
	if (!(attr->sample_type & PERFRING_SAMPLE_STACK_USER))
		return false;
	attr->sample_type &= ~(uint64_t)(PERFRING_SAMPLE_STACK_USER | PERFRING_SAMPLE_REGS_USER);
	attr->sample_type |= PERFRING_SAMPLE_CALLCHAIN;
	attr->sample_regs_user = 0;
	attr->sample_stack_user = 0;
	attr->exclude_callchain_user = 0;
	return true;
}

int64_t perfring_stacks_encode(struct perfring_stacks *stacks, const struct perfring_sample *sample, uint32_t most,
			       const struct perfring_format *format, void *buffer, size_t size,
			       enum perfring_unwind_end *end)
{
	struct perfring_sample unwound = *sample;
	int ret = perfring_stacks_chain(stacks, sample, most, &unwound.callchain, end);

	if (ret < 0)
		return ret;
	if (perfring_sample_size_any(format, &unwound) < 0)
		unwound.callchain = own_chain(sample);
	return perfring_sample_encode_any(format, &unwound, buffer, size);
}

/* ---- all of it ---- */

void perfring_stacks_count(const struct perfring_stacks *stacks, struct perfring_stacks_counts *counts)
{
	*counts = stacks->counts;
}

int perfring_stacks_open(struct perfring_stacks **result, const struct perfring_maps *maps,
			 struct perfring_symbols *symbols)
{
	struct perfring_stacks *stacks = calloc(1, sizeof(*stacks));

	*result = NULL;
	if (!stacks)
		return -ENOMEM;
	stacks->maps = maps;
	stacks->symbols = symbols;
	if (perfring_unwind_cache_open(&stacks->cache, CACHE_ENTRIES)) {
		free(stacks);
		return -ENOMEM;
	}
	*result = stacks;
	return 0;
}

uint32_t perfring_stacks_user_frames(const struct perfring_sample *sample, uint64_t frames)
{
	uint32_t left = frames < MAX_FRAMES ? (uint32_t)frames : MAX_FRAMES;
	uint64_t nr = sample->present & PERFRING_SAMPLE_CALLCHAIN ? sample->callchain.nr : 0;

	for (uint64_t i = 0; i < nr && left && sample->callchain.words[i] != (uint64_t)(int64_t)PERFRING_CONTEXT_USER;
	     i++)
		left -= !perfring_list_is_marker(sample->callchain.words[i]);
	return left;
}

bool perfring_stacks_frame(uint64_t word, unsigned *cpumode)
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

void perfring_stacks_close(struct perfring_stacks *stacks)
{
	if (!stacks)
		return;
	for (size_t i = 0; i < PERFRING_STACKS_SPACES_MAX; i++)
		free(stacks->spaces[i].maps);
	perfring_unwind_cache_close(stacks->cache);
	free(stacks->words);
	free(stacks);
}
