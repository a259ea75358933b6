/* file_kind.h - what a file is that is not what a command reads, and what to do with it. */
#ifndef PERFRING_TOOLS_FILE_KIND_H
#define PERFRING_TOOLS_FILE_KIND_H

/* What the command reads. */
enum tool_file_wanted {
	TOOL_WANTS_DATA, /* a perf.data file */
	TOOL_WANTS_RING,
};

enum {
	TOOL_FILE_KIND_SIZE = 4352, /* bytes: a path and a sentence */
};

/* Writes the end of the sentence "PATH: not a ...": "; it is KIND: what to do", or ": what to do" of a file of no known kind.  "" for
 * standard input that is a pipe, of which nothing more can be read. */
void tool_file_kind(const char *path, enum tool_file_wanted wanted, char text[TOOL_FILE_KIND_SIZE]);

#endif
