/* chains.c - callchains of samples as stacks of a profile.
 *
 * profile_input.c (flame, html, export, top) and report_callers.c ask for the stack of each sample.  Caches hold what was found
 * for recent chains and addresses, until a record changes what they depend on.
 */
#include "chains.h"
#include <stdlib.h>
#include <perfring/record.h>
#include "machine.h"
#include "tools.h"

enum {
	CHAIN_BITS = 14,
	CHAIN_WORDS = 128, /* longer chains are not kept */
	PLACE_BITS = 16,
	PLACE_FRAMES = 8, /* at an address that is kept */
};

/* What a stack depends on beside its callchain. */
struct context {
	uint64_t version; /* of the process's mappings */
	uint64_t change;  /* of the kernel's, and of code that processes make */
	uint32_t pid;
	uint32_t cpumode;
};

struct chain {
	struct context context;
	uint32_t nr; /* words; 0: the place is free */
	uint32_t stack;
	bool is_called; /* all addresses are of calls */
	uint64_t *words;
};

struct place {
	struct context context;
	uint64_t ip;
	uint32_t count; /* frames, the outermost first; 0: the place is free */
	uint32_t frames[PLACE_FRAMES];
};

struct tool_chains {
	const struct tool_chains_options *options;
	struct tool_machine *machine;
	struct tool_symbols *symbols;
	struct perfring_profile *profile; /* of the sample */
	struct chain *chains;
	struct place *places;
	uint64_t change;
};

static uint32_t must(int64_t index)
{
	if (index < 0)
		tool_out_of_memory();
	return (uint32_t)index;
}

/* ---- frames ---- */

static uint32_t kind_of(unsigned cpumode, const struct tool_symbol *symbol)
{
	switch (cpumode) {
	case PERFRING_RECORD_MISC_KERNEL:
		return PERFRING_PROFILE_KERNEL;
	case PERFRING_RECORD_MISC_USER:
		return symbol->nameless == TOOL_NAMELESS_MADE ||
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

uint64_t tool_chains_place(const struct tool_machine *machine, unsigned cpumode, uint32_t pid, uint64_t ip)
{
	const struct perfring_mapping *map =
		cpumode == PERFRING_RECORD_MISC_USER ? tool_machine_user(machine, pid, ip) : NULL;

	return map ? perfring_mapping_offset(map, ip) : ip;
}

enum {
	BUILD_TEXT = 2 * PERFRING_BUILD_ID_SIZE + 1,
};

/* The build id of the object at an address, in hexadecimal digits; NULL: not known. */
static const char *build_of(const struct tool_chains *chains, const struct context *context, uint64_t ip,
			    const char *object, char text[BUILD_TEXT])
{
	uint8_t id[PERFRING_BUILD_ID_SIZE];
	uint32_t size = tool_symbols_build_id(chains->symbols, context->cpumode, context->pid, ip, object, id);

	for (uint32_t i = 0; i < size; i++)
		snprintf(text + 2 * i, 3, "%02x", id[i]);
	return size ? text : NULL;
}

/* Adds the frames at an address, the outermost first.  Returns how many. */
static uint32_t add_frames(struct tool_chains *chains, const struct context *context, uint64_t ip, bool is_return,
			   uint32_t *frames)
{
	struct perfring_symbol_frame functions[TOOL_SYMBOLS_FRAMES];
	const struct tool_chains_options *options = chains->options;
	struct perfring_profile_frame frame = {.kind = PERFRING_PROFILE_UNKNOWN};
	struct tool_symbol symbol;
	char build[BUILD_TEXT];
	unsigned count = 0;

	tool_symbols_find(chains->symbols, context->cpumode, context->pid, ip - is_return, &symbol);
	if (!symbol.name && is_return) /* where no call is, it is none */
		tool_symbols_find(chains->symbols, context->cpumode, context->pid, ip, &symbol);
	if (symbol.name && (!options->no_inline || options->has_lines))
		count = tool_symbols_frames(chains->symbols, context->cpumode, context->pid, ip - is_return, functions,
					    TOOL_SYMBOLS_FRAMES);
	frame.name = symbol.name;
	frame.object = symbol.object;
	frame.kind = kind_of(context->cpumode, &symbol);
	if (options->addresses == TOOL_CHAINS_ADDRESSES)
		frame.address = symbol.address;
	if (options->addresses == TOOL_CHAINS_FUNCTIONS)
		frame.address = symbol.name ? symbol.address - symbol.offset
					    : tool_chains_place(chains->machine, context->cpumode, context->pid, ip);
	if (options->has_builds)
		frame.build_id = build_of(chains, context, ip - is_return, symbol.object, build);
	if (options->no_inline && count > 1) {
		functions[0] = functions[count - 1];
		count = 1;
	}
	if (count && options->has_lines) {
		frame.file = functions[count - 1].file;
		frame.line = functions[count - 1].line;
	}
	frames[0] = must(perfring_profile_add_frame(chains->profile, &frame));
	for (unsigned i = 1; i < count; i++) {
		const struct perfring_symbol_frame *function = &functions[count - 1 - i];

		frame.name = function->name;
		frame.kind = PERFRING_PROFILE_INLINED;
		frame.file = options->has_lines ? function->file : NULL;
		frame.line = options->has_lines ? function->line : 0;
		frames[i] = must(perfring_profile_add_frame(chains->profile, &frame));
	}
	return count ? count : 1;
}

static bool is_same(const struct context *one, const struct context *other)
{
	return one->version == other->version && one->change == other->change && one->pid == other->pid &&
	       one->cpumode == other->cpumode;
}

static uint64_t mix(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
	return hash ^ hash >> 29;
}

/* Adds the frames at an address to a caller's stack.  Returns the new stack. */
static uint32_t push(struct tool_chains *chains, uint32_t stack, const struct context *context, uint64_t ip,
		     bool is_return)
{
	uint32_t found[TOOL_SYMBOLS_FRAMES];
	uint64_t hash = mix(mix(context->pid, context->cpumode), ip - is_return);
	struct place *place = &chains->places[hash >> (64 - PLACE_BITS)];
	const uint32_t *frames = place->frames;
	uint32_t count = place->count;

	if (!count || place->ip != ip - is_return || !is_same(&place->context, context)) {
		count = add_frames(chains, context, ip, is_return, found);
		frames = found;
		if (count <= PLACE_FRAMES) {
			*place = (struct place){.context = *context, .ip = ip - is_return, .count = count};
			memcpy(place->frames, found, count * sizeof(*found));
		}
	}
	for (uint32_t i = 0; i < count; i++)
		stack = must(perfring_profile_add_stack(chains->profile, stack, frames[i]));
	return stack;
}

/* ---- stacks ---- */

static bool is_wanted(const struct tool_chains_options *options, unsigned cpumode)
{
	if (options->kernel_only)
		return cpumode == PERFRING_RECORD_MISC_KERNEL || cpumode == PERFRING_RECORD_MISC_GUEST_KERNEL;
	return !options->user_only || cpumode == PERFRING_RECORD_MISC_USER ||
	       cpumode == PERFRING_RECORD_MISC_GUEST_USER;
}

/* One address of a chain. */
struct step {
	uint64_t ip;
	unsigned cpumode;
	bool is_return;
};

/* Adds the stack of a chain, whose words are the innermost first, from its outermost frame on. */
static uint32_t stack_of(struct tool_chains *chains, struct context *context, const struct perfring_list *chain,
			 bool is_called)
{
	const struct tool_chains_options *options = chains->options;
	uint64_t most = options->max_stack ? options->max_stack : UINT64_MAX;
	uint32_t stack = PERFRING_PROFILE_NONE;
	unsigned cpumode = context->cpumode;
	bool is_first = true; /* of the kernel, or of user space: what was interrupted */
	struct step *steps = tool_allocate(NULL, (size_t)chain->nr + 1, sizeof(*steps));
	size_t nr = 0;

	for (uint64_t i = 0; i < chain->nr && nr < most; i++) {
		if (!tool_symbols_frame(chain->words[i], &cpumode)) {
			is_first = true;
			continue;
		}
		if (is_wanted(options, cpumode))
			steps[nr++] = (struct step){chain->words[i], cpumode,
						    !is_first && !(is_called && cpumode == PERFRING_RECORD_MISC_USER)};
		is_first = false;
	}
	while (nr--) {
		context->cpumode = steps[nr].cpumode;
		stack = push(chains, stack, context, steps[nr].ip, steps[nr].is_return);
	}
	free(steps);
	return stack;
}

uint32_t tool_chains_find(struct tool_chains *chains, struct perfring_profile *profile,
			  const struct perfring_sample *sample)
{
	unsigned cpumode = sample->misc & PERFRING_RECORD_MISC_CPUMODE_MASK;
	uint32_t pid = sample->present & PERFRING_SAMPLE_TID ? sample->pid : 0;
	struct context context = {perfring_maps_version(tool_machine_maps(chains->machine), pid), chains->change, pid,
				  cpumode};
	struct perfring_list list;
	bool is_called = tool_symbols_chain(chains->symbols, sample, UINT64_MAX, &list);
	uint64_t hash = mix(mix(pid, cpumode), list.nr);
	struct chain *chain;
	uint64_t frames = 0;

	chains->profile = profile;
	for (uint64_t i = 0; i < list.nr; i++) {
		hash = mix(hash, list.words[i]);
		frames += !perfring_list_is_marker(list.words[i]);
	}
	if (!frames)
		return sample->present & PERFRING_SAMPLE_IP && is_wanted(chains->options, cpumode)
			       ? push(chains, PERFRING_PROFILE_NONE, &context, sample->ip, false)
			       : PERFRING_PROFILE_NONE;
	if (list.nr > CHAIN_WORDS)
		return stack_of(chains, &context, &list, is_called);
	chain = &chains->chains[hash >> (64 - CHAIN_BITS)];
	if (chain->nr != list.nr || chain->is_called != is_called || !is_same(&chain->context, &context) ||
	    memcmp(chain->words, list.words, (size_t)list.nr * sizeof(*list.words)) != 0) {
		uint64_t *words = chain->words ? chain->words : tool_allocate(NULL, CHAIN_WORDS, sizeof(*chain->words));

		*chain = (struct chain){context, (uint32_t)list.nr, 0, is_called, words};
		memcpy(words, list.words, (size_t)list.nr * sizeof(*words));
		chain->stack = stack_of(chains, &context, &list, is_called);
	}
	return chain->stack;
}

/* ---- all of it ---- */

void tool_chains_take(struct tool_chains *chains, const struct perfring_record *record)
{
	bool is_map = record->type == PERFRING_RECORD_MMAP || record->type == PERFRING_RECORD_MMAP2;

	/* Only mappings of the kernel and of files jit-PID.dump count: processes' own mappings have versions. */
	if (record->type == PERFRING_RECORD_KSYMBOL ||
	    (is_map && (record->type == PERFRING_RECORD_MMAP ||
			(record->misc & PERFRING_RECORD_MISC_CPUMODE_MASK) != PERFRING_RECORD_MISC_USER)))
		chains->change++;
}

void tool_chains_change(struct tool_chains *chains)
{
	chains->change++;
}

void tool_chains_renew(struct tool_chains *chains)
{
	/* indexes of the old tables */
	for (size_t i = 0; i < (size_t)1 << CHAIN_BITS; i++)
		chains->chains[i].nr = 0;
	for (size_t i = 0; i < (size_t)1 << PLACE_BITS; i++)
		chains->places[i].count = 0;
}

struct tool_chains *tool_chains_open(struct tool_machine *machine, struct tool_symbols *symbols,
				     const struct tool_chains_options *options)
{
	struct tool_chains *chains = tool_allocate(NULL, 1, sizeof(*chains));

	*chains = (struct tool_chains){.options = options, .machine = machine, .symbols = symbols};
	chains->chains = tool_allocate(NULL, (size_t)1 << CHAIN_BITS, sizeof(*chains->chains));
	memset(chains->chains, 0, sizeof(*chains->chains) << CHAIN_BITS);
	chains->places = tool_allocate(NULL, (size_t)1 << PLACE_BITS, sizeof(*chains->places));
	memset(chains->places, 0, sizeof(*chains->places) << PLACE_BITS);
	return chains;
}

void tool_chains_close(struct tool_chains *chains)
{
	if (!chains)
		return;
	for (size_t i = 0; i < (size_t)1 << CHAIN_BITS; i++)
		free(chains->chains[i].words);
	free(chains->chains);
	free(chains->places);
	free(chains);
}
