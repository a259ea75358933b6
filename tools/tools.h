/* tools.h - what the commands of `perfring` share: their entries, complaints, room, and the file being read. */
#ifndef TOOLS_H
#define TOOLS_H

#include <signal.h>
#include <stdio.h>
#include <perfring/data.h>
#include <perfring/sample.h>

/* Exit statuses. */
enum {
	PERFRING_TOOL_DONE = 0,
	PERFRING_TOOL_FAILED = 1,
	PERFRING_TOOL_MISUSED = 2,
};

/* argv[0] is the command's own name.  Each returns an exit status. */
int perfring_tool_record(int argc, char **argv);
int perfring_tool_stat(int argc, char **argv);
int perfring_tool_dump(int argc, char **argv);
int perfring_tool_report(int argc, char **argv);
int perfring_tool_convert(int argc, char **argv);
int perfring_tool_check(int argc, char **argv);
int perfring_tool_list(int argc, char **argv);
int perfring_tool_gen(int argc, char **argv);
int perfring_tool_ring(int argc, char **argv);
int perfring_tool_doctor(int argc, char **argv);

/* "perfring: ..." as one line on stderr, after what stdout holds. */
void perfring_tool_complain(const char *form, ...) __attribute__((format(printf, 1, 2)));

/* Of getopt_long's '?' or ':': which option it was about.  Returns PERFRING_TOOL_MISUSED. */
int perfring_tool_misused(int found, char **argv);

/* realloc to nr * size bytes; there is no failing: the tool ends with one line. */
void *perfring_tool_room(void *old, size_t nr, size_t size);

/* Writes text with bytes that are not printable as \xHH (blanks too when `solid`, so a column stays one column), and
 * blanks up to width.  out NULL: only counts.  Returns the columns used. */
int perfring_tool_print(FILE *out, const char *text, int width, bool solid);

/* The bytes of a record, sixteen a line, as hexadecimal and as text. */
void perfring_tool_print_bytes(const struct perf_event_header *record);

/* A number of 2, 4 or 8 bytes, wherever it lies. */
uint64_t perfring_tool_number(const void *bytes, size_t size);

#define NS_PER_MS UINT64_C(1000000)

/* CLOCK_MONOTONIC, ns. */
uint64_t perfring_tool_now(void);

/* SIGINT, SIGTERM, SIGCHLD, SIGHUP unless it is ignored, and `another` unless it is 0, are blocked from now on and taken
 * from *signals: -1, or the descriptor of the time before.  After the child was forked, which keeps what the shell gave us;
 * *before: that.  False after a complaint. */
bool perfring_tool_open_signals(int *signals, int another, sigset_t *before);

/* Whether stdout took everything; complains unless its reader has left. */
bool perfring_tool_flush(void);

/* The file that a command reads. */
struct perfring_input {
	const char *path;
	struct perfring_data *data;
	uint64_t faults;
	char place[24];
	int pipe; /* that standard input is, else -1 */
};

/* Opens the file to read: -i FILE and FILE, which is argv[next], say the same; neither: perf.data.  Returns an exit
 * status, after a complaint when it is not PERFRING_TOOL_DONE. */
int perfring_input_open(struct perfring_input *input, const char *option, int argc, char **argv, int next);
void perfring_input_close(struct perfring_input *input);

/* The next record, or false at the end.  Faults are told and counted here.  A record whose id is in no attr comes with
 * format NULL.  Valid until: the next call. */
bool perfring_input_next(struct perfring_input *input, struct perfring_item *item);

/* Whether it is a pipe in which nothing more waits: whoever watches wants to see what came. */
bool perfring_input_is_idle(const struct perfring_input *input);

/* What to put behind the path to say where the last record is: "", or "/data.N" in a directory. */
const char *perfring_input_place(struct perfring_input *input);

/* Tells of a fault inside the last record. */
void perfring_input_fault(struct perfring_input *input, const struct perfring_fault *fault);

/* What a sample stands for: one without PERIOD was taken after a fixed one, as perf counts it too. */
uint64_t perfring_input_period(const struct perfring_input *input, const struct perfring_item *item,
			       const struct perfring_sample *sample);

/* What the file says of itself, as perf's --header does; lists: the long ones too. */
void perfring_header_print(const struct perfring_data *data, const char *path, bool lists);

/* What there is to say at the end.  Returns the exit status. */
int perfring_input_end(struct perfring_input *input);

#endif
