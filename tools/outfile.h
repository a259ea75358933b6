/* outfile.h - the file that a command writes: an existing file stays until there is something to replace it.
 *
 *     open      makes a file without a name, or with a temporary one in the same directory
 *     settle    gives it the name; the file that had it becomes NAME.old, or is removed
 *     close     removes a file that was not settled: nothing has changed
 *
 * Standard output ("-"), pipes, devices, and names that lead to a descriptor (/dev/stdout) are written as they are.
 */
#ifndef PERFRING_TOOLS_OUTFILE_H
#define PERFRING_TOOLS_OUTFILE_H

#include <perfring/file.h>
#include <perfring/file_writer.h>
#include "tools.h"

enum tool_outfile_flag {
	TOOL_OUTFILE_PRIVATE = 1,   /* for its owner alone; else as the umask says */
	TOOL_OUTFILE_OLD = 2,       /* the existing file becomes NAME.old, as in perf */
	TOOL_OUTFILE_DIRECTORY = 4, /* a directory, of files that the caller makes in it */
	TOOL_OUTFILE_TEXT = 8,      /* it may be a terminal */
};

struct tool_outfile {
	const char *command; /* for complaints */
	const char *path;    /* the caller's */
	char *beside;        /* its own name until it is settled; NULL: it has none */
	unsigned flags;
	int fd;         /* of a directory: for openat; -1: it is not open */
	int spare;      /* a file without a name that holds space for the end of a file; 0: none */
	bool is_apart;  /* not settled */
	bool is_stream; /* not seekable, or a device: nothing can be overwritten */
};

/* Opens it.  Waits for the reader of a pipe, until a signal that ends the command (a blocked one too).  Returns false after
 * a complaint; close is allowed then. */
bool tool_outfile_open(struct tool_outfile *file, const char *command, const char *path, unsigned flags);

/* Gives it its name, once.  False after a complaint: the name is as it was. */
bool tool_outfile_settle(struct tool_outfile *file);

/* Closes it, and drops it if it was not settled.  Standard output stays open.  Returns 0 or -errno of close. */
int tool_outfile_close(struct tool_outfile *file);

/* After a write of whole records found too little disk space: writes as many of them as fit beside what
 * perfring_file_writer_finish needs.  into: the file of a directory, else 0.  samples: how many of the written records are
 * samples, or NULL.  Returns the number of records written. */
uint64_t tool_outfile_write_some(struct tool_outfile *file, struct perfring_file_writer *writer, uint32_t into,
				 const struct iovec *pieces, int count, uint64_t *samples);

/* Before perfring_file_writer_finish: releases the space that was kept for it. */
void tool_outfile_end(struct tool_outfile *file);

#endif
