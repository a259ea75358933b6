/* chains.h - callchains of samples as stacks of a profile (profile.h): for the commands that show stacks.
 *
 * Most samples have a callchain that was seen a moment ago, and most frames were:
 *
 *     callchain --recent chains--> stack
 *         |
 *       each address --recent places--> frames of the functions there --> stack
 *
 * What is recent holds as long as no record has changed mappings or names that it depends on.
 *
 *     chains = tool_chains_open(machine, symbols, &options);
 *     tool_chains_take(chains, &record);                 each record, after the machine and the symbols have taken it
 *     stack = tool_chains_find(chains, profile, &sample);
 *     tool_chains_close(chains);
 *
 * Without memory the program ends with one line. */
#ifndef PERFRING_TOOLS_CHAINS_H
#define PERFRING_TOOLS_CHAINS_H

#include <perfring/profile.h>
#include "symbols.h"

enum tool_chains_addresses {
	TOOL_CHAINS_NO_ADDRESSES, /* frames have address 0: a function is one frame */
	TOOL_CHAINS_ADDRESSES,    /* each address is a frame */
	TOOL_CHAINS_FUNCTIONS, /* a frame's address is its function's start; without a symbol its offset in the object's file */
};

struct tool_chains_options {
	enum tool_chains_addresses addresses;
	uint64_t max_stack; /* the innermost frames; 0: all */
	bool kernel_only, user_only;
	bool no_inline;
	bool has_lines; /* frames have the lines of their sources */
	bool has_builds; /* frames have the build ids of their objects */
};

struct tool_chains;

/* options: must stay until tool_chains_close. */
struct tool_chains *tool_chains_open(struct tool_machine *machine, struct tool_symbols *symbols,
				     const struct tool_chains_options *options);
void tool_chains_close(struct tool_chains *chains);

/* Takes a record that is no sample. */
void tool_chains_take(struct tool_chains *chains, const struct perfring_record *record);

/* Names of known addresses may have changed. */
void tool_chains_change(struct tool_chains *chains);

/* Forgets all indices, because the next stacks are added to another profile. */
void tool_chains_renew(struct tool_chains *chains);

/* Adds the sample's stack to the profile: its callchain, or without one its address.  Returns its index; PERFRING_PROFILE_NONE:
 * no frame of it is wanted. */
uint32_t tool_chains_find(struct tool_chains *chains, struct perfring_profile *profile,
			  const struct perfring_sample *sample);

/* The offset of an address in its object's file; the address itself if its mapping is not known. */
uint64_t tool_chains_place(const struct tool_machine *machine, unsigned cpumode, uint32_t pid, uint64_t ip);

#endif
