/* symbol_names.h - from an address to a name: of user objects and of the kernel, by names.h.
 *
 * What exceeds a bound has no name; the first such object is reported on stderr.
 *
 * One thread; names are valid until tool_symbols_close.
 */
#ifndef PERFRING_TOOLS_SYMBOL_NAMES_H
#define PERFRING_TOOLS_SYMBOL_NAMES_H

#include <perfring/names.h>
#include "machine.h"
#include "options.h"
#include "tools.h"

struct tool_symbols;

enum {
	TOOL_SYMBOLS_FRAMES = 64, /* at one address */
	TOOL_SYMBOLS_LINE = 4096 + 16,
};

/* What all commands that show symbols have options for. */
struct tool_symbols_options {
	bool is_mangled;
	bool is_forced; /* files of code that belong to other users are read */
	bool is_verbose;
	bool asks_servers;
	const char *servers; /* NULL: those of DEBUGINFOD_URLS */
	const char *symfs;
	const char *kallsyms, *vmlinux;
};

enum {
	/* `found` of the rows, above those of any command and of filter.h. */
	TOOL_SYMBOLS_DEMANGLE = TOOL_OPTION_LONG + 0x200,
	TOOL_SYMBOLS_NO_DEMANGLE,
	TOOL_SYMBOLS_SYMFS,
	TOOL_SYMBOLS_DEBUGINFOD,
	TOOL_SYMBOLS_KALLSYMS,
};

#define TOOL_SYMBOLS_ROWS \
	{TOOL_SYMBOLS_DEMANGLE, "demangle", \
	 .help = "names of C++ and Rust as programmers write them, without parameters (default)"}, \
		{TOOL_SYMBOLS_NO_DEMANGLE, "no-demangle", .help = "names as they are in the objects"}, \
		{TOOL_SYMBOLS_SYMFS, "symfs", .value = "DIR", .takes = "a folder's name", \
		 .help = "objects and their debug files are looked for below DIR"}, \
		{TOOL_SYMBOLS_DEBUGINFOD, \
		 "debuginfod", \
		 .value = "URLS", \
		 .is_optional = true, \
		 .takes = "names of servers, such as https://debuginfod.debian.net", \
		 .help = "asks servers for objects and debug files that are not here (default: those of DEBUGINFOD_URLS); " \
			 "without this none is asked"}, \
		{TOOL_SYMBOLS_KALLSYMS, "kallsyms", .value = "FILE", .takes = "a file's name", \
		 .help = "the kernel's symbols are those of FILE, which is like /proc/kallsyms"}, \
		{'k', "vmlinux", .value = "FILE", .takes = "a file's name", \
		 .help = "they are those of FILE, an ELF image"}, \
	{ \
		'v', "verbose", \
			.help = "on stderr, where the symbols of each object are from, and which package may have those that are missing" \
	}

/* Takes an option of these rows.  Returns 1; 0: it is none of them; -1: its value is wrong, which was reported. */
int tool_symbols_take(struct tool_symbols_options *symbols, const struct tool_options *options, int found);

/* Opens the names for a file, which has the kernel's release and the builds of objects: others are not used.  input and machine must
 * stay; its path's time is when the processes were last seen.  Ends the program after a complaint if servers are to be asked and
 * cannot be. */
struct tool_symbols *tool_symbols_open(const struct tool_input *input, struct tool_machine *machine,
				       const struct tool_symbols_options *options);
void tool_symbols_close(struct tool_symbols *symbols);

/* The names themselves, for profile_fill.h; then end_progress, which removes the line of downloads from the terminal. */
struct perfring_names *tool_symbols_names(const struct tool_symbols *symbols);
void tool_symbols_end_progress(struct tool_symbols *symbols);

/* Takes a record that is no sample, into the machine too. */
void tool_symbols_learn(struct tool_symbols *symbols, const struct perfring_record *record);

/* Advances to the time of the next sample, for code of JITs.  Returns whether names of known addresses may have changed. */
bool tool_symbols_advance(struct tool_symbols *symbols, uint64_t time);

/* Finds the symbol of an address, by the mappings as they are now.  cpumode: as in a record's misc. */
void tool_symbols_find(struct tool_symbols *symbols, unsigned cpumode, uint32_t pid, uint64_t ip,
		       struct perfring_name *found);

/* The functions at the address, as perfring_symbol_frames has them: none of the kernel's.  Returns how many.  Valid until the
 * next call. */
unsigned tool_symbols_frames(struct tool_symbols *symbols, unsigned cpumode, uint32_t pid, uint64_t ip,
			     struct perfring_symbol_frame *frames, uint32_t most);

/* "file.c:12" of a frame, whose file is without its folders unless `whole`; "" where it is not known. */
const char *tool_symbols_line(const struct perfring_symbol_frame *frame, bool whole, char text[TOOL_SYMBOLS_LINE]);

/* The sample's callchain: of a sample with a copy of its stack, the frames of user space by unwind tables, at most `frames`
 * (stacks.h).  Returns whether it is that: then each address is in its call.  Valid until: the next call. */
bool tool_symbols_chain(struct tool_symbols *symbols, const struct perfring_sample *sample, uint64_t frames,
			struct perfring_list *chain);

/* Whether the last of tool_symbols_chain is of a copy, and does not reach its thread's start. */
bool tool_symbols_is_truncated(const struct tool_symbols *symbols);

/* Reports how many stacks do not reach their thread's start. */
struct perfring_stacks;
void tool_symbols_complain_of_stacks(const struct perfring_stacks *stacks);

/* The reason in words, "not mapped" ... */
const char *tool_symbols_why(const struct tool_symbols *symbols, enum perfring_nameless nameless);

#endif
