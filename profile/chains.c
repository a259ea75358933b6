/* chains.c - callchains of samples as stacks of a profile.
 *
 * fill.c asks for the stack of each sample.  Caches hold what was found for recent chains and addresses, until a record changes what
 * they depend on.
 */
#include "chains.h"
#include <stdio.h>
#include <stdlib.h>
#include "os/array.h"

#define FACTOR UINT64_C(0x9e3779b97f4a7c15)

enum {
	CHAIN_BITS = 14,   /* of the number of sets */
	CHAIN_WAYS = 4,    /* chains of a set, which begin with the same bits of their hashes */
	CHAIN_WORDS = 128, /* longer chains are not kept */
	PLACE_BITS = 16,
	PLACE_FRAMES = 8, /* at an address that is kept */
	MOST_FRAMES = 64, /* at an address */
};

/* What a stack depends on beside its callchain. */
struct context {
	uint64_t version; /* of the process's mappings */
	uint64_t change;  /* of the kernel's, and of code that processes make */
	uint32_t pid;
	uint32_t cpumode;
};

struct chain {
	uint64_t hash;
	struct context context;
	uint32_t stack;
	uint8_t nr;     /* words; 0: none is kept */
	uint8_t space;  /* for words */
	bool is_called; /* all addresses are of calls */
	uint64_t *words;
};

/* A chain that came once, or one that is kept since it came again: a recording of chains that all differ keeps none. */
struct slot {
	uint32_t tag;   /* some bits of the hash; 0: free, if there is no chain */
	uint32_t chain; /* its number in `chains` + 1; 0: none yet */
};

struct place {
	struct context context;
	uint64_t ip;
	uint32_t count; /* frames, the outermost first; 0: none is kept */
	bool is_return; /* it was looked up before it */
	uint32_t frames[PLACE_FRAMES];
};

/* One address of a chain that is walked. */
struct step {
	uint64_t ip;
	uint32_t stack; /* that ends with it */
	uint8_t cpumode;
	bool is_return;
};

/* The addresses of a chain, the innermost first. */
struct walk {
	struct step *steps;
	size_t count, capacity;
	struct context context;
};

struct perfring_chains {
	const struct perfring_profile_fill_options *options;
	uint32_t modes; /* of the frames that are kept: bits 1 << cpumode */
	struct perfring_names *names;
	struct perfring_profile *profile; /* of the sample */
	struct slot *slots;               /* sets, one after the other */
	struct chain *chains;             /* each of one slot */
	uint32_t chain_count, chain_capacity;
	uint32_t next;         /* of a full set, the end of the number of the slot that is replaced */
	uint32_t *place_slots; /* numbers in `places` + 1; 0: free */
	struct place *places;  /* each of one slot */
	uint32_t place_count, place_capacity;
	struct walk walks[2]; /* the last one, and the one before: chains of a thread mostly have their outermost frames in common */
	unsigned last;        /* which is the last one */
};

/* ---- frames ---- */

static uint32_t kind_of(unsigned cpumode, const struct perfring_name *symbol)
{
	switch (cpumode) {
	case PERFRING_RECORD_MISC_KERNEL:
		return PERFRING_PROFILE_KERNEL;
	case PERFRING_RECORD_MISC_USER:
		return symbol->nameless == PERFRING_NAMELESS_MADE ||
				       (symbol->object && strstr(symbol->object, "/perf-") && symbol->name)
			       ? PERFRING_PROFILE_MADE
			       : PERFRING_PROFILE_USER;
	case PERFRING_RECORD_MISC_GUEST_KERNEL:
	case PERFRING_RECORD_MISC_GUEST_USER:
		return PERFRING_PROFILE_GUEST;
	default:
		return PERFRING_PROFILE_UNKNOWN;
	}
}

enum {
	BUILD_TEXT = 2 * PERFRING_BUILD_ID_SIZE + 1,
};

/* The build id of the object at an address, in hexadecimal digits; NULL: not known. */
static const char *build_of(const struct perfring_chains *chains, const struct context *context, uint64_t ip,
			    const char *object, char text[BUILD_TEXT])
{
	uint8_t id[PERFRING_BUILD_ID_SIZE];
	uint32_t size = perfring_names_build_id(chains->names, context->cpumode, context->pid, ip, object, id);

	for (uint32_t i = 0; i < size; i++)
		snprintf(text + 2 * i, 3, "%02x", id[i]);
	return size ? text : NULL;
}

/* Adds the frames at an address, the outermost first.  Returns how many; -ENOMEM. */
static int add_frames(struct perfring_chains *chains, const struct context *context, uint64_t ip, bool is_return,
		      uint32_t *frames)
{
	struct perfring_symbol_frame functions[MOST_FRAMES];
	const struct perfring_profile_fill_options *options = chains->options;
	bool has_lines = options->flags & PERFRING_FILL_LINES, no_inline = options->flags & PERFRING_FILL_NO_INLINE;
	struct perfring_profile_frame frame = {.kind = PERFRING_PROFILE_UNKNOWN};
	struct perfring_name symbol;
	char build[BUILD_TEXT];
	int count = 0, found;
	int64_t index;

	found = perfring_names_find(chains->names, context->cpumode, context->pid, ip - is_return, &symbol);
	if (!found && is_return) /* where no call is, it is none */
		found = perfring_names_find(chains->names, context->cpumode, context->pid, ip, &symbol);
	if (found > 0 && (!no_inline || has_lines))
		count = perfring_names_frames(chains->names, context->cpumode, context->pid, ip - is_return, functions,
					      MOST_FRAMES);
	if (found < 0 || count < 0)
		return -ENOMEM;
	frame.name = symbol.name;
	frame.object = symbol.object;
	frame.kind = kind_of(context->cpumode, &symbol);
	if (options->addresses == PERFRING_FILL_ADDRESSES)
		frame.address = symbol.address;
	if (options->addresses == PERFRING_FILL_FUNCTIONS)
		frame.address = symbol.name ? symbol.address - symbol.offset : perfring_names_place(chains->names, context->cpumode, context->pid, ip);
	if (options->flags & PERFRING_FILL_BUILD_IDS)
		frame.build_id = build_of(chains, context, ip - is_return, symbol.object, build);
	if (no_inline && count > 1) {
		functions[0] = functions[count - 1];
		count = 1;
	}
	if (count && has_lines) {
		frame.file = functions[count - 1].file;
		frame.line = functions[count - 1].line;
	}
	index = perfring_profile_add_frame(chains->profile, &frame);
	for (int i = 1; index >= 0 && i <= count; i++) {
		const struct perfring_symbol_frame *function;

		frames[i - 1] = (uint32_t)index;
		if (i == count)
			return count;
		function = &functions[count - 1 - i];
		frame.name = function->name;
		frame.kind = PERFRING_PROFILE_INLINED;
		frame.file = has_lines ? function->file : NULL;
		frame.line = has_lines ? function->line : 0;
		index = perfring_profile_add_frame(chains->profile, &frame);
	}
	frames[0] = (uint32_t)index;
	return index < 0 ? (int)index : 1;
}

static bool is_same(const struct context *one, const struct context *other)
{
	return one->version == other->version && one->change == other->change && one->pid == other->pid &&
	       one->cpumode == other->cpumode;
}

static uint64_t mix(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word) * FACTOR;
	return hash ^ hash >> 29;
}

/* The place for an address; NULL without memory. */
static struct place *place_of(struct perfring_chains *chains, const struct context *context, uint64_t ip)
{
	uint64_t hash = mix(mix(context->pid, context->cpumode), ip);
	uint32_t *slot = &chains->place_slots[hash >> (64 - PLACE_BITS)];

	if (!*slot) {
		if (perfring__os_array_grow(&chains->places, chains->place_count, &chains->place_capacity,
					    sizeof(*chains->places)))
			return NULL;
		chains->places[chains->place_count++].count = 0;
		*slot = chains->place_count;
	}
	return &chains->places[*slot - 1];
}

/* Adds the frames at an address to a caller's stack.  Returns 0 or -ENOMEM. */
static int push(struct perfring_chains *chains, uint32_t *stack, const struct context *context, uint64_t ip,
		bool is_return)
{
	uint32_t found[MOST_FRAMES];
	struct place *place = place_of(chains, context, ip);
	const uint32_t *frames;
	uint32_t count;

	if (!place)
		return -ENOMEM;
	frames = place->frames;
	count = place->count;
	if (!count || place->ip != ip || place->is_return != is_return || !is_same(&place->context, context)) {
		int added = add_frames(chains, context, ip, is_return, found);

		if (added < 0)
			return added;
		count = (uint32_t)added;
		frames = found;
		if (count <= PLACE_FRAMES) {
			*place = (struct place){.context = *context, .ip = ip, .count = count, .is_return = is_return};
			memcpy(place->frames, found, count * sizeof(*found));
		}
	}
	for (uint32_t i = 0; i < count; i++) {
		int64_t index = perfring_profile_add_stack(chains->profile, *stack, frames[i]);

		if (index < 0)
			return (int)index;
		*stack = (uint32_t)index;
	}
	return 0;
}

/* ---- stacks ---- */

/* Makes a walk of the frames of a chain that are kept.  Returns 0 or -ENOMEM. */
static int begin_walk(struct perfring_chains *chains, struct walk *walk, const struct context *context,
		      const struct perfring_list *chain, bool is_called)
{
	uint64_t most = chains->options->max_stack ? chains->options->max_stack : UINT64_MAX;
	unsigned cpumode = context->cpumode;
	bool is_first = true; /* of the kernel, or of user space: what was interrupted */

	walk->count = 0;
	walk->context = *context;
	if (chain->nr > walk->capacity) {
		if (perfring__os_array_resize(&walk->steps, (size_t)chain->nr, sizeof(*walk->steps)))
			return -ENOMEM;
		walk->capacity = (size_t)chain->nr;
	}
	for (uint64_t i = 0; i < chain->nr && walk->count < most; i++) {
		if (!perfring_stacks_frame(chain->words[i], &cpumode)) {
			is_first = true;
			continue;
		}
		if (chains->modes >> cpumode & 1)
			walk->steps[walk->count++] = (struct step){
				.ip = chain->words[i],
				.cpumode = (uint8_t)cpumode,
				.is_return = !is_first && !(is_called && cpumode == PERFRING_RECORD_MISC_USER)};
		is_first = false;
	}
	return 0;
}

/* How many of the outermost steps both walks have.  Sets their `stack` in the first. */
static size_t common_steps(const struct walk *walk, const struct walk *before)
{
	size_t count = 0, most = walk->count < before->count ? walk->count : before->count;

	if (walk->context.pid != before->context.pid || walk->context.version != before->context.version ||
	    walk->context.change != before->context.change)
		return 0;
	for (; count < most; count++) {
		struct step *step = &walk->steps[walk->count - 1 - count];
		const struct step *its = &before->steps[before->count - 1 - count];

		if (step->ip != its->ip || step->cpumode != its->cpumode || step->is_return != its->is_return)
			break;
		step->stack = its->stack;
	}
	return count;
}

/* Adds the stack of a chain, whose words are the innermost first, from its outermost frame on.  Returns 0 or -ENOMEM. */
static int add_stack(struct perfring_chains *chains, struct context *context, const struct perfring_list *chain,
		     bool is_called, uint32_t *stack)
{
	struct walk *before = &chains->walks[chains->last], *walk = &chains->walks[!chains->last];
	int error = begin_walk(chains, walk, context, chain, is_called);
	size_t left = error ? 0 : walk->count - common_steps(walk, before);

	*stack = left < walk->count ? walk->steps[left].stack : PERFRING_PROFILE_NONE;
	while (!error && left--) {
		struct step *step = &walk->steps[left];

		context->cpumode = step->cpumode;
		error = push(chains, stack, context, step->ip, step->is_return);
		step->stack = *stack;
	}
	if (error)
		walk->count = 0;
	chains->last = !chains->last;
	return error;
}

/* The hash of a chain and of what it begins with.  *frames: how many of its words are no markers.  Words are taken in two halves,
 * whose multiplications do not wait for one another; only high bits of the hash are used. */
static uint64_t hash_of(const struct perfring_list *list, uint64_t seed, uint64_t *frames)
{
	const perfring_word *words = list->words;
	uint64_t halves[2] = {seed, list->nr}, count = 0, i = 0;

	for (; i + 1 < list->nr; i += 2) {
		halves[0] = (halves[0] ^ words[i]) * FACTOR;
		halves[1] = (halves[1] ^ words[i + 1]) * FACTOR;
		count += (uint64_t)!perfring_list_is_marker(words[i]) + !perfring_list_is_marker(words[i + 1]);
	}
	if (i < list->nr) {
		halves[0] = (halves[0] ^ words[i]) * FACTOR;
		count += !perfring_list_is_marker(words[i]);
	}
	*frames = count;
	return mix(halves[0], halves[1] >> 32 | halves[1] << 32);
}

static bool has_words(const struct chain *chain, const struct perfring_list *list)
{
	uint64_t difference = 0;

	for (uint64_t i = 0; i < list->nr; i++)
		difference |= chain->words[i] ^ list->words[i];
	return !difference;
}

static bool is_kept(const struct perfring_chains *chains, const struct slot *slot)
{
	return slot->chain && chains->chains[slot->chain - 1].nr;
}

/* Notes a chain that came once in a slot of its set: instead of another one that did, or of any. */
static void note(struct perfring_chains *chains, struct slot *set, uint32_t tag)
{
	struct slot *slot = &set[chains->next++ % CHAIN_WAYS];

	for (uint32_t i = 0; is_kept(chains, slot) && i < CHAIN_WAYS; i++)
		if (!is_kept(chains, &set[i]))
			slot = &set[i];
	slot->tag = tag;
	if (slot->chain)
		chains->chains[slot->chain - 1].nr = 0;
}

/* Keeps a chain that came again.  Returns 0 or -ENOMEM. */
static int keep(struct perfring_chains *chains, struct slot *slot, const struct chain *kept, const perfring_word *words)
{
	uint8_t space = (uint8_t)((kept->nr + 15) / 16 * 16);
	struct chain *chain;

	if (!slot->chain) {
		if (perfring__os_array_grow(&chains->chains, chains->chain_count, &chains->chain_capacity,
					    sizeof(*chains->chains)))
			return -ENOMEM;
		chains->chains[chains->chain_count++] = (struct chain){.nr = 0};
		slot->chain = chains->chain_count;
	}
	chain = &chains->chains[slot->chain - 1];
	if (chain->space < kept->nr) {
		free(chain->words);
		*chain = (struct chain){.words = malloc(space * sizeof(*chain->words))};
		if (!chain->words)
			return -ENOMEM;
		chain->space = space;
	}
	space = chain->space;
	memcpy(chain->words, words, kept->nr * sizeof(*chain->words));
	*chain = (struct chain){kept->hash, kept->context, kept->stack, kept->nr, space, kept->is_called, chain->words};
	return 0;
}

/* The stack of a chain that is kept, or is noted, or becomes so. */
static int find_stack(struct perfring_chains *chains, struct context *context, const struct perfring_list *list,
		      bool is_called, uint64_t hash, uint32_t *stack)
{
	struct slot *set = &chains->slots[(hash >> (64 - CHAIN_BITS)) * CHAIN_WAYS], *found = NULL;
	struct chain key = {.hash = hash, .context = *context, .nr = (uint8_t)list->nr, .is_called = is_called};
	uint32_t tag = (uint32_t)(hash >> (32 - CHAIN_BITS)) | 1;
	int error;

	for (struct slot *slot = set; slot < set + CHAIN_WAYS; slot++) {
		const struct chain *chain = slot->chain ? &chains->chains[slot->chain - 1] : NULL;

		if (slot->tag != tag)
			continue;
		found = slot;
		if (chain && chain->hash == hash && chain->nr == list->nr && chain->is_called == is_called &&
		    is_same(&chain->context, context) && has_words(chain, list)) {
			*stack = chain->stack;
			return 0;
		}
	}
	error = add_stack(chains, context, list, is_called, stack);
	key.stack = *stack;
	if (error)
		return error;
	if (found)
		return keep(chains, found, &key, list->words);
	note(chains, set, tag);
	return 0;
}

int perfring__chains_find(struct perfring_chains *chains, struct perfring_profile *profile,
			  const struct perfring_sample *sample, uint32_t *stack, bool *is_truncated)
{
	unsigned cpumode = sample->misc & PERFRING_RECORD_MISC_CPUMODE_MASK;
	uint32_t pid = sample->present & PERFRING_SAMPLE_TID ? sample->pid : 0;
	struct context context = {perfring_maps_version(perfring_names_maps(chains->names), pid),
				  perfring_names_version(chains->names), pid, cpumode};
	enum perfring_unwind_end end = PERFRING_UNWIND_WHOLE;
	struct perfring_list list;
	int is_called = perfring_stacks_chain(perfring_names_stacks(chains->names), sample,
					      perfring_stacks_user_frames(sample, UINT64_MAX), &list, &end);
	uint64_t hash, frames;
	int error = 0;

	*stack = PERFRING_PROFILE_NONE;
	if (is_called < 0)
		return is_called;
	*is_truncated = is_called && end != PERFRING_UNWIND_WHOLE;
	chains->profile = profile;
	hash = hash_of(&list, (uint64_t)pid << 32 ^ cpumode, &frames);
	if (frames)
		error = list.nr > CHAIN_WORDS ? add_stack(chains, &context, &list, is_called, stack)
					      : find_stack(chains, &context, &list, is_called, hash, stack);
	if (error || *stack != PERFRING_PROFILE_NONE || !(sample->present & PERFRING_SAMPLE_IP) ||
	    !(chains->modes >> cpumode & 1))
		return error;
	/* a chain without a frame that is kept, such as one of user space alone: the address of the sample is one */
	context.cpumode = cpumode;
	return push(chains, stack, &context, sample->ip, false);
}

/* ---- all of it ---- */

void perfring__chains_renew(struct perfring_chains *chains)
{
	/* indexes of the old tables */
	for (uint32_t i = 0; i < chains->chain_count; i++)
		chains->chains[i].nr = 0;
	for (uint32_t i = 0; i < chains->place_count; i++)
		chains->places[i].count = 0;
	chains->walks[chains->last].count = 0;
}

int perfring__chains_open(struct perfring_chains **result, struct perfring_names *names,
			  const struct perfring_profile_fill_options *options, uint32_t modes)
{
	struct perfring_chains *chains = calloc(1, sizeof(*chains));

	*result = chains;
	if (!chains)
		return -ENOMEM;
	chains->options = options;
	chains->modes = modes;
	chains->names = names;
	chains->slots = calloc((size_t)CHAIN_WAYS << CHAIN_BITS, sizeof(*chains->slots));
	chains->place_slots = calloc((size_t)1 << PLACE_BITS, sizeof(*chains->place_slots));
	return chains->slots && chains->place_slots ? 0 : -ENOMEM;
}

void perfring__chains_close(struct perfring_chains *chains)
{
	if (!chains)
		return;
	for (uint32_t i = 0; i < chains->chain_count; i++)
		free(chains->chains[i].words);
	free(chains->slots);
	free(chains->chains);
	free(chains->place_slots);
	free(chains->places);
	free(chains->walks[0].steps);
	free(chains->walks[1].steps);
	free(chains);
}
