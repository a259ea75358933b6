/* tools.h - what the commands of `perfring` share: complaints, memory, and the file being read.
 *
 * Foreign text is escaped before it is printed (tool_escape).  When memory runs out, functions that allocate print one line and
 * exit with status 1.  Context: one thread; not signal handlers.
 */
#ifndef PERFRING_TOOLS_TOOLS_H
#define PERFRING_TOOLS_TOOLS_H

#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <perfring/file.h>
#include <perfring/sample.h>
#include <perfring/split.h>

/* Exit statuses. */
enum {
	TOOL_DONE = 0,
	TOOL_FAILED = 1,
	TOOL_MISUSED = 2,
};

/* A sum of weights, samples or losses, which a file says: at most UINT64_MAX. */
static inline uint64_t tool_plus(uint64_t a, uint64_t b)
{
	return b > UINT64_MAX - a ? UINT64_MAX : a + b;
}

/* Escapes one byte of foreign text (of files, objects, processes, peers, the environment) for stdout or stderr: printable
 * ASCII stays, any other byte becomes \xHH; with `solid` a blank does too, so that a column stays one.  The escaped bytes are those
 * that terminals act on: C0, DEL, and C1, which UTF-8 writes with bytes from 0x80 on.  All foreign text that the commands print
 * passes here, but for two that escape by themselves: records as text (include/perfring/text.h), and strings of JSON
 * (tool_json_text).  Returns the characters used of `buffer`: 1 or 4. */
static inline unsigned tool_escape(char buffer[4], unsigned char byte, bool solid)
{
	static const char digits[] = "0123456789abcdef";

	buffer[0] = (char)byte;
	if (PERFRING_LIKELY(byte >= (solid ? 0x21 : 0x20) && byte < 0x7f))
		return 1;
	buffer[0] = '\\';
	buffer[1] = 'x';
	buffer[2] = digits[byte >> 4];
	buffer[3] = digits[byte & 15];
	return 4;
}

/* Flushes stdout and prints "perfring: ..." as one line on stderr.  All of it is escaped, so it may have foreign text. */
void tool_complain(const char *form, ...) __attribute__((format(printf, 1, 2)));

/* Allocates, or resizes what it returned before (old; NULL: nothing), as reallocarray: nr * size bytes, neither 0.  If the product
 * overflows, that is a lack of memory. */
void *tool_allocate(void *old, size_t nr, size_t size);

/* Prints the line of a lack of memory and exits with status 1. */
void tool_out_of_memory(void) __attribute__((noreturn));

/* tsearch: inserts an item that tool_allocate made, which the tree owns from then on.  If the tree has an equal item, returns that
 * one, and the new item stays the caller's. */
void **tool_insert(void *item, void **tree, int (*compare)(const void *, const void *));

/* Writes text escaped (solid: as tool_escape), and blanks up to width; longer text is written whole.  out NULL: only counts.
 * Returns the columns used. */
int tool_print(FILE *out, const char *text, int width, bool solid);

/* The same, with the blanks before the text. */
void tool_print_right(FILE *out, const char *text, int width);

/* Prints the bytes of a record on stdout, sixteen a line, as hexadecimal and as text. */
void tool_print_bytes(const struct perf_event_header *record);

/* A number of 2, 4 or 8 bytes in native order, at any alignment. */
uint64_t tool_number(const void *bytes, size_t size);

#define NS_PER_MS UINT64_C(1000000)

/* CLOCK_MONOTONIC, ns. */
uint64_t tool_now(void);

/* The exit status, as perf's: 128 + the signal that killed the child, else 128 + ended_by, else the child's.
 * child_status: of wait, 0 without a child; ended_by: the signal that ended this program, 0: none.  When ended_by is SIGINT,
 * SIGTERM or SIGHUP the program kills itself by it, so that a loop of the shell ends too.  Call nothing after it. */
int tool_status(int child_status, int ended_by);

/* Blocks SIGINT, SIGTERM, SIGCHLD, SIGHUP (unless it is ignored) and `another` (unless it is 0), and opens *signals to read
 * them; *signals: -1, or the descriptor of an earlier call.  *before: the mask until now.
 * Context: after the fork of the child, which keeps the mask of the shell.  Returns false after a complaint. */
bool tool_open_signals(int *signals, int another, sigset_t *before);

/* Whether a signal that would end the command is pending.  Long work asks, because those signals are blocked. */
bool tool_is_ending(void);

/* The same, but false within a second after `since` (tool_now): short work is completed in spite of ^C. */
bool tool_is_cut(uint64_t since);

/* Whether stdout took everything.  Complains if not, but not of a reader that has left (EPIPE). */
bool tool_flush(void);

/* The file that a command reads. */
struct tool_input {
	const char *path;
	struct perfring_file *data;
	struct perfring_split *split;
	bool has_read; /* tool_input_event: the last sample has read its group */
	uint64_t faults;
	uint64_t unknown_counts; /* in samples of groups, which `split` does not count */
	uint64_t aux, aux_truncated, aux_partial, aux_collisions; /* AUX records, and with which flags */
	bool tells_aux; /* tool_input_end warns of AUX data that are missing; set by the caller after the open */
	char place[24]; /* tool_input_place */
	struct perfring_deferral *deferral; /* samples that wait for their deferred callchains; NULL: none did */
	bool joins;                         /* tool_input_join */
	bool has_ended;                     /* the file has no more records; samples of `deferral` may follow */
	int pipe;                           /* standard input when it is a pipe, else -1 */
	struct {
		const char *command; /* NULL: none is shown */
		uint64_t records;
		uint64_t size; /* of the file; 0: unknown */
		time_t shown;
	} progress; /* progress.c */
};

struct tool_options;

/* Opens the file of the input option, or the one argument after the options, or perf.data.  Returns an exit status, after a
 * complaint when it is not TOOL_DONE. */
int tool_input_open(struct tool_input *input, const struct tool_options *options, int argc, char **argv);

/* The same for a path. */
int tool_input_open_path(struct tool_input *input, const char *path);
void tool_input_close(struct tool_input *input);

/* Opens a ring's file for reading; "-": standard input once more.  Returns an fd to be closed; or -1, with errno. */
int tool_ring_fd(const char *path);

/* Opens a ring's file, if the attr of its event is known, as a perf.data file: a copy of what it holds now, and a LOST
 * record for what it refused.  Returns 1; 0 (no ring); or -errno after a complaint. */
int tool_ring_open(const char *path, struct perfring_file **file);

/* Why a ring could not be read, for an -errno of attaching or of a snapshot: a constant text. */
const char *tool_ring_reason(int error);

/* The next record, or false at the end.  Faults are reported and counted here.  A record whose id is in no attr has
 * format NULL.  Valid until: the next call. */
bool tool_input_next(struct tool_input *input, struct perfring_item *item);

/* From now on tool_input_next returns samples whose callchains are deferred (record --call-graph fp,defer) with the chains of their
 * CALLCHAIN_DEFERRED records, when these come, and not the records.  What found none is counted by tool_input_end. */
void tool_input_join(struct tool_input *input);

/* Whether the input is a pipe without more bytes for now: then gathered output should be written. */
bool tool_input_is_idle(const struct tool_input *input);

/* What to print after the path for the last record's file: "", or "/data.N" in a directory.  Valid until: the next
 * call. */
const char *tool_input_place(struct tool_input *input);

/* Whether samples of an event have callchains, or copies of stacks.  The events of a stream are not known before its first record:
 * then it may. */
bool tool_input_has_chains(const struct tool_input *input);

/* Reports a fault inside the last record. */
void tool_input_fault(struct tool_input *input, const struct perfring_fault *fault);

/* For tool_input_event: the next event of a sample that has read its group. */
bool tool_input_split(struct tool_input *input, const struct perfring_format **event);

/* The first event that a sample of the format counts for, and the next: false after the last.  A sample that has read its group counts
 * for each event of it that went on, with that event's period; any other for the format's event. */
static inline bool tool_input_event(struct tool_input *input, const struct perfring_format *format,
				    struct perfring_sample *sample, const struct perfring_format **event)
{
	*event = format;
	input->has_read = sample->present & PERFRING_SAMPLE_READ;
	if (!input->has_read)
		return true;
	perfring_split_begin(input->split, format, sample);
	return tool_input_split(input, event);
}

static inline bool tool_input_more(struct tool_input *input, const struct perfring_format **event)
{
	return input->has_read && tool_input_split(input, event);
}

/* The weight of a sample of this event: its PERIOD, or the event's fixed period, as in perf. */
uint64_t tool_input_period(const struct tool_input *input, const struct perfring_format *format,
			   const struct perfring_sample *sample);

/* Prints perf's warnings about missing AUX bytes on stderr; nothing if none are missing. */
void tool_tell_aux(const char *path, uint64_t records, uint64_t truncated, uint64_t partial, uint64_t collisions);

/* Prints the file's header on stdout as perf's --header does; lists: the long lists too.  Returns false after a complaint. */
bool tool_header_print(const struct perfring_file *data, const char *path, bool lists);

/* Prints the members of an attr that are not 0: `before` before the first, commas before the others, `equals` after the names.
 * Members of one union are named together, "{ bp_addr, config1 }". */
void tool_attr_print(const struct perf_event_attr *attr, const char *before, const char *equals);

/* Reports what remains at the end.  Returns the exit status. */
int tool_input_end(struct tool_input *input);

#endif
