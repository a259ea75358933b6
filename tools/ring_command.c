/* ring_command.c - `perfring ring`: the contents of a ring, of a living process or a dead one.
 *
 * Attaches the ring read-only, takes a snapshot (snapshot.h), and prints its state, writers, records and reservations.  Nothing
 * is written into the ring, whose values are foreign.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <perfring/event.h>
#include <perfring/shared.h>
#include <perfring/snapshot.h>
#include <perfring/text.h>
#include "file_kind.h"
#include "options.h"
#include "tools.h"

struct show {
	const char *path;
	struct perfring_ring ring;
	struct perfring_snapshot snapshot;
	struct perf_event_attr attr; /* what the ring says of its event, */
	uint64_t id;
	bool has_format; /* if it says so */
	struct perfring_format format;
	uint64_t last; /* records wanted, counted from the end */
	bool header_only;
	bool raw;
	char *text;
	size_t capacity;
};

/* Where a free-running address lies in the file. */
static uint64_t place_of(const struct show *show, uint64_t address)
{
	return (uint64_t)sysconf(_SC_PAGESIZE) + (address & (show->ring.size - 1));
}

/* ---- what it is ---- */

static void line(const char *name)
{
	printf("%-10s ", name);
}

static void print_count(const char *name, uint64_t count)
{
	line(name);
	printf("%" PRIu64 "\n", count);
}

/* Whether it has ended and its parent has not waited for it. */
static bool is_zombie(uint32_t pid, uint32_t tid)
{
	char text[512] = "", *after;
	FILE *file;

	snprintf(text, sizeof(text), "/proc/%" PRIu32 "/task/%" PRIu32 "/stat", pid, tid);
	file = fopen(text, "re");
	if (!file)
		return false;
	text[fread(text, 1, sizeof(text) - 1, file)] = 0;
	fclose(file);
	/* The state follows a name in parentheses, which may hold any character. */
	after = strrchr(text, ')');
	return after && (!strncmp(after, ") Z", 3) || !strncmp(after, ") X", 3));
}

static const char *life_of(uint32_t pid, uint32_t tid)
{
	bool found = syscall(SYS_tgkill, pid, tid, 0) == 0 || errno == EPERM;

	return found && !is_zombie(pid, tid) ? "lives" : "dead";
}

static void print_mode(uint64_t flags)
{
	line("mode");
	printf("%s, %s%s\n", flags & PERFRING_RING_BACKWARD ? "backward" : "forward",
	       flags & PERFRING_RING_OVERWRITE ? "overwrites" : "stops when full",
	       flags & PERFRING_RING_LOST_FILLERS ? ", shared (strict, LOST records as fillers)"
	       : flags & PERFRING_RING_STRICT     ? ", shared (strict)"
	       : flags & PERFRING_RING_LEASED     ? ", shared (leased)"
						  : "");
}

static void print_created(uint64_t created, int32_t pid)
{
	time_t seconds = (time_t)(created / 1000000000);
	struct tm broken;
	char text[64];

	line("created");
	if (gmtime_r(&seconds, &broken) && strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &broken))
		printf("%s.%06" PRIu64 "Z by pid %" PRId32 "\n", text, created % 1000000000 / 1000, pid);
	else
		printf("%" PRIu64 " by pid %" PRId32 "\n", created, pid);
}

static void print_writer(const struct perfring_ring_state *state)
{
	uint32_t pid = PERFRING_LOAD(&state->writer_pid), tid = PERFRING_LOAD(&state->writer_tid);

	line("writer");
	if (pid)
		printf("pid %" PRIu32 " tid %" PRIu32 ", %s\n", pid, tid, life_of(pid, tid));
	else
		printf("none\n");
}

static void print_owners(const struct perfring_ring *ring)
{
	struct perfring_owner owner;
	uint32_t i;
	int one;

	for (i = 0; (one = perfring_shared_owner_at(ring, i, &owner)) >= 0; i++)
		if (one == 1) {
			line("writer");
			printf("%" PRIu32 ": pid %" PRIu32 " tid %" PRIu32 ", %s\n", i, owner.pid, owner.tid,
			       owner.is_alive ? "lives" : "dead");
		}
}

static void print_header(const struct show *show)
{
	const struct perfring_ring *ring = &show->ring;
	const struct perfring_ring_state *state = perfring_ring_state_of(ring->page);
	const struct perfring_snapshot *snapshot = &show->snapshot;
	char name[256];

	print_mode(ring->flags);
	print_count("size", ring->size);
	print_created(PERFRING_LOAD(&state->created), PERFRING_LOAD(&state->creator_pid));
	if (ring->flags & (PERFRING_RING_STRICT | PERFRING_RING_LEASED))
		print_owners(ring);
	else
		print_writer(state);
	if (PERFRING_LOAD(&state->paused))
		printf("paused\n");
	if (show->has_format) {
		line("event");
		perfring_event_name(&show->attr, name, sizeof(name));
		printf("%s, id %" PRIu64 "\n", name, show->id);
	}
	print_count("watermark", PERFRING_LOAD(&state->watermark));
	print_count("lost", PERFRING_LOAD(&state->lost_total));
	print_count("abandoned", PERFRING_LOAD(&state->abandoned));
	print_count("oldest", snapshot->oldest);
	print_count("published", snapshot->published);
	print_count("claimed", snapshot->claimed);
	print_count("records", snapshot->count);
}

/* ---- what is in it ---- */

static void print_text(struct show *show, const struct perf_event_header *record)
{
	const struct perfring_format *format = show->has_format ? &show->format : NULL;
	int64_t length = perfring_record_text(format, record, show->text, show->capacity);

	if (length >= 0 && (size_t)length >= show->capacity) {
		show->capacity = (size_t)length + 1;
		show->text = tool_allocate(show->text, show->capacity, 1);
		length = perfring_record_text(format, record, show->text, show->capacity);
	}
	puts(length < 0 ? strerror((int)-length) : show->text);
	if (show->raw || (record->type == PERFRING_RECORD_SAMPLE && !format) || !perfring_record_name(record->type))
		tool_print_bytes(record);
}

static void print_records(struct show *show)
{
	struct perfring_snapshot *snapshot = &show->snapshot;
	uint64_t skip = snapshot->count > show->last ? snapshot->count - show->last : 0;
	const struct perf_event_header *record;
	uint64_t at;

	while (!ferror(stdout) && perfring_snapshot_next(snapshot, &record)) {
		if (skip) {
			skip--;
			continue;
		}
		at = (uint64_t)((const unsigned char *)record - snapshot->data);
		printf("0x%" PRIx64 " [0x%x] ", place_of(show, snapshot->from + at), record->size);
		print_text(show, record);
	}
}

/* Slots with an implausible header may be of any length: only their first bytes are shown, without a name. */
static void print_unfinished(struct show *show)
{
	const struct perfring_snapshot *snapshot = &show->snapshot;
	uint64_t position = snapshot->claimed, size, address;
	const struct perf_event_header *record;

	for (;;) {
		address = show->ring.flags & PERFRING_RING_BACKWARD ? -position : snapshot->published;
		if (!perfring_snapshot_unfinished(snapshot, &position, &record, &size))
			return;
		printf("being written: 0x%" PRIx64 " [0x%" PRIx64 "] ", place_of(show, address), size);
		if (!record)
			puts("no header");
		else if (perfring_ring_is_filler(record))
			puts("no header yet");
		else
			print_text(show, record);
	}
}

/* ---- the file ---- */

static int complain(const struct show *show, int error, const struct perfring_fault *fault)
{
	if (error == -EBADMSG && fault->what)
		tool_complain("%s: at 0x%" PRIx64 ": %s", show->path, (uint64_t)fault->at, fault->what);
	else
		tool_complain("%s: %s", show->path, tool_ring_reason(error));
	return TOOL_FAILED;
}

/* Of a file that is no ring: what it is. */
static int complain_other(const struct show *show, const struct perfring_fault *fault)
{
	char kind[TOOL_FILE_KIND_SIZE];

	tool_file_kind(show->path, TOOL_WANTS_RING, kind);
	tool_complain("%s: at 0x%" PRIx64 ": %s%s", show->path, (uint64_t)fault->at, fault->what, kind);
	return TOOL_FAILED;
}

static int run(struct show *show)
{
	struct perfring_snapshot *snapshot = &show->snapshot;
	struct perfring_fault fault;
	int error = perfring_snapshot_take(snapshot, &show->ring, 0);

	/* Positions stand in the control page. */
	fault = snapshot->fault;
	fault.at = offsetof(struct perf_event_mmap_page, data_head);
	if (error)
		return complain(show, error, &fault);
	print_header(show);
	if (!show->header_only) {
		print_records(show);
		print_unfinished(show);
	}
	if (!tool_flush())
		return TOOL_FAILED;
	if (!fault.what)
		return TOOL_DONE;
	fault.at = (int64_t)place_of(show, (uint64_t)snapshot->fault.at);
	return complain(show, -EBADMSG, &fault);
}

static int open_and_run(struct show *show)
{
	struct perfring_fault fault = {0, NULL};
	int fd = tool_ring_fd(show->path), error, status;

	if (fd < 0)
		return complain(show, -errno, &fault);
	error = perfring_ring_attach(&show->ring, fd, PERFRING_RING_READ_ONLY, &fault);
	close(fd);
	if (error == -EBADMSG && fault.what &&
	    (!strncmp(fault.what, "not a ring", 10) || !strncmp(fault.what, "neither", 7)))
		return complain_other(show, &fault);
	if (error)
		return complain(show, error, &fault);
	show->has_format = perfring_ring_attr(&show->ring, &show->attr, &show->id) &&
			   !perfring_format_from_attr(&show->format, &show->attr);
	show->capacity = 1 << 16;
	show->text = tool_allocate(NULL, show->capacity, 1);
	status = run(show);
	free(show->text);
	perfring_snapshot_close(&show->snapshot);
	perfring_ring_close(&show->ring);
	return status;
}

enum {
	HEADER = TOOL_OPTION_LONG,
	RAW,
};

static int ring_command(int argc, char **argv)
{
	struct tool_options options = {.command = &tool_ring};
	struct show show = {.last = UINT64_MAX};
	int found;

	while ((found = tool_options_next(&options, argc, argv)) > 0) {
		switch (found) {
		case 'n':
			show.last = options.number;
			break;
		case HEADER:
			show.header_only = true;
			break;
		case RAW:
			show.raw = true;
			break;
		default:
			return tool_options_forgotten(&options, found);
		}
	}
	if (!found)
		return options.status;
	if (argc - optind != 1 || !*argv[optind]) {
		tool_complain("ring: %s (perfring ring --help)",
			      argc == optind ? "no file to show: name the file of a ring"
					     : "one file at a time, and its name is not empty");
		return TOOL_MISUSED;
	}
	show.path = argv[optind];
	return open_and_run(&show);
}

static const struct tool_option ROWS[] = {
	{'n', "last", .value = "N", .takes = "a number of records", .max = UINT64_MAX,
	 .help = "only the last N records"},
	{HEADER, "header", .help = "no records"},
	{RAW, "raw", .help = "the bytes of each record too"},
	TOOL_OPTIONS_END,
};

static const struct tool_example EXAMPLES[] = {
	{"What a flight recorder holds after a crash:", "perfring ring flight.ring"},
	{"The last twenty records of a running process, with their bytes:",
	 "perfring ring -n 20 --raw /proc/1234/fd/5"},
	{0},
};

const struct tool_command tool_ring = {
	.name = "ring",
	.summary = "the contents of a ring, of a running process or a dead one",
	.usage = "FILE [-n N] [--header] [--raw]",
	.description =
		"Shows what is in a ring: the file of a flight recorder after its process died, the file of any ring, "
		"or the memory of a running process, as /proc/PID/fd/N; - is standard input, where that is such a file.  Nothing is written into it, and its readers "
		"are not disturbed.  First the ring and its writers; then its records from the oldest to the newest, "
		"one a line: offset in the file, [size], then each member by its name.  A ring that overwrites shows "
		"all that it holds, any other what is unread.  Samples are shown as bytes unless the ring has the "
		"attr of their event; if it has, the commands that read perf.data files read the ring too.  Last, records "
		"that were being written.",
	.options = ROWS,
	.exit_status = "0 done; 1 not a ring, or one with a fault; 2 usage error.",
	.examples = EXAMPLES,
	.see_also = "perfring-dump perfring-record perfring",
	.run = ring_command,
};
