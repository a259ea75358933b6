/* check_command.c - `perfring check`: whether every record of a file is well-formed, and if not where and why.
 *
 * Reads each record by input.c, and examines it by perfring_record_examine (check.h).  Prints the first faults, counts the
 * others; the exit status says whether the file is well-formed.
 */
#include <inttypes.h>
#include <perfring/check.h>
#include "options.h"
#include "progress.h"
#include "tools.h"

/* Faults shown one by one, and remarks; a file may hold millions. */
#define SHOWN 10
#define TEXT(number) #number
#define TEXT_OF(name) TEXT(name)

struct check {
	struct tool_input input;
	bool all;
	bool quiet;
	uint64_t records;
	uint64_t faults;
	uint64_t remarks;
};

static void tell(struct check *check, const struct perf_event_header *record, const struct perfring_finding *finding)
{
	const char *name = record ? perfring_record_name(record->type) : NULL;
	bool is_remark = finding->severity == PERFRING_REMARK;
	uint64_t count = is_remark ? ++check->remarks : ++check->faults;

	if (check->quiet || (!check->all && count > SHOWN))
		return;
	tool_progress_clear();
	tool_print(stdout, check->input.path, 0, false);
	printf("%s: at 0x%" PRIx64 ": ", tool_input_place(&check->input), (uint64_t)finding->at);
	if (name)
		printf("%s: ", name);
	else if (record)
		printf("RECORD_%" PRIu32 ": ", record->type);
	printf("%s%s\n", is_remark ? "remark: " : "", finding->what);
}

/* Checks that the record's id is one that the file has: reading does not check it if there is one event.  0 is what perf writes for
 * events without occurrences. */
static bool is_of_no_event(const struct check *check, const struct perfring_item *item,
			   struct perfring_finding *finding)
{
	const struct perfring_format_set *set = perfring_file_formats(check->input.data);
	const struct perfring_format *format = item->format;
	bool is_sample = item->record->type == PERFRING_RECORD_SAMPLE;
	uint32_t index;
	uint64_t id = format ? perfring_format_id_of(format, item->record) : 0, known;

	if (!id || !perfring_format_set_id_at(set, 0, &known, &index) || perfring_format_set_find(set, id))
		return false;
	*finding = (struct perfring_finding){
		.at = is_sample ? format->sample_id_at : item->record->size - format->trailer_id_back,
		.what = "id of no event",
		.severity = PERFRING_DAMAGE,
	};
	return true;
}

static void check_item(struct check *check, const struct perfring_item *item)
{
	struct perfring_finding finding;
	int ret = perfring_record_examine(item->format, item->record, item->record->size, &finding);

	check->records++;
	/* the first fault; without one the first remark */
	if (ret >= 0 && is_of_no_event(check, item, &finding))
		ret = -EBADMSG;
	if (!ret)
		return;
	finding.at += perfring_file_position(check->input.data);
	tell(check, item->record, &finding);
}

/* A writer that was killed before its first record: nothing was checked. */
static bool is_nothing(const struct check *check)
{
	return !check->records && !check->faults && !perfring_file_is_finished(check->input.data);
}

static void count(const char *what, uint64_t number, bool all)
{
	printf(", %" PRIu64 " %s%s%s", number, what, number == 1 ? "" : "s",
	       !all && number > SHOWN ? " (--all shows all)" : "");
}

/* A file that could not be read to its end is not reported as well-formed. */
static void sum_up(struct check *check, bool stopped, const struct perfring_fault *fault)
{
	tool_print(stdout, check->input.path, 0, false);
	printf(": %" PRIu64 " record%s", check->records, check->records == 1 ? "" : "s");
	if (check->faults || stopped)
		count("fault", check->faults, check->all);
	else
		printf(": %s", is_nothing(check) ? "the writer did not finish" : "well-formed");
	if (check->remarks)
		count("remark", check->remarks, check->all);
	if (stopped && fault->what)
		printf("; stopped%s%s at 0x%" PRIx64 ": what follows was not read",
		       perfring_file_part(check->input.data) ? " in " : "",
		       tool_input_place(&check->input) + !!perfring_file_part(check->input.data), (uint64_t)fault->at);
	else if (stopped)
		printf("; stopped: what follows was not read");
	putchar('\n');
}

static int run(struct check *check)
{
	struct perfring_file *data = check->input.data;
	struct perfring_fault fault;
	struct perfring_item item;
	bool goes_on;
	int one;

	tool_progress_begin(&check->input, "check", check->quiet ? TOOL_PROGRESS_QUIET : 0);
	do {
		memset(&item, 0, sizeof(item));
		one = perfring_file_next(data, &item);
		fault = one == -EBADMSG || one == -EOPNOTSUPP ? perfring_file_fault(data)
							      : (struct perfring_fault){0, NULL};
		if (one == -EBADMSG && fault.what)
			tell(check, item.record, &(struct perfring_finding){fault.at, fault.what, PERFRING_DAMAGE, 0});
		else if (one < 0 && fault.what)
			tool_complain("%s%s: at 0x%" PRIx64 ": %s", check->input.path, tool_input_place(&check->input),
				      (uint64_t)fault.at, fault.what);
		else if (one < 0)
			tool_complain("%s%s: %s", check->input.path, tool_input_place(&check->input), strerror(-one));
		if (item.record) {
			check_item(check, &item);
			tool_progress_show(&check->input);
		}
		goes_on = one == 1 || (one == -EBADMSG && item.record);
	} while (!ferror(stdout) && goes_on);
	tool_progress_clear();
	if (perfring_file_late(data))
		tool_complain("%s: warning: %" PRIu64 " records came too late to be in time order", check->input.path,
			      perfring_file_late(data));
	if (!check->quiet)
		sum_up(check, one < 0, &fault);
	if (!tool_flush())
		return TOOL_FAILED;
	return one || check->faults || is_nothing(check) ? TOOL_FAILED : TOOL_DONE;
}

enum {
	ALL = TOOL_OPTION_LONG,
};

static int check_command(int argc, char **argv)
{
	struct tool_options options = {.command = &tool_check};
	struct check check = {.quiet = false};
	int found, status;

	while ((found = tool_options_next(&options, argc, argv)) > 0) {
		switch (found) {
		case ALL:
			check.all = true;
			break;
		case 'q':
			check.quiet = true;
			break;
		default:
			return tool_options_forgotten(&options, found);
		}
	}
	if (!found)
		return options.status;
	status = tool_input_open(&check.input, &options, argc, argv);
	if (status)
		return status;
	status = run(&check);
	tool_input_close(&check.input);
	return status;
}

static const struct tool_option ROWS[] = {
	{'i', "input", .value = "FILE", .takes = "a perf.data file's name, or -", .is_input = true,
	 .help = "default perf.data; - is standard input: a file or a pipe"},
	{ALL, "all", .help = "every fault and remark, not only the first " TEXT_OF(SHOWN) " of each"},
	{'q', "quiet", .help = "print nothing on standard output, only set the exit status"},
	TOOL_OPTIONS_END,
};

static const struct tool_example EXAMPLES[] = {
	{"Whether a recording is whole:", "perfring check perf.data"},
	{"In a script, with all that is wrong in a file of its own:",
	 "perfring check -q perf.data || perfring check --all perf.data >faults.txt"},
	{0},
};

const struct tool_command tool_check = {
	.name = "check",
	.summary = "check that a perf.data file is well-formed, or show where it is not",
	.usage = "[[-i] FILE] [--all] [-q]",
	.description =
		"Checks whether a kernel, or perf, could have written every record of a perf.data file.  Each fault "
		"is a line\n"
		"    FILE: at 0xOFFSET: KIND: what is wrong at this byte\n"
		"in the order of the records' times, and the last line says how many there are.  An id that is none "
		"of those that FILE gives its events is a fault.  Not faults: what a newer kernel may write (unknown "
		"kinds, flags, trailing bytes).  After a record whose size is wrong nothing can be read: the last "
		"line says where that was.  What only other writers leave, such as old bytes in the padding of "
		"strings (perf 3.x, simpleperf), is not a fault: its line has \"remark: \" after KIND.",
	.options = ROWS,
	.exit_status =
		"0 every record is well-formed, with remarks or without; 1 one is not, or FILE cannot be read to its "
		"end, or it is empty and its writer did not finish; 2 usage error.",
	.examples = EXAMPLES,
	.see_also = "perfring-dump perfring-record perfring-gen perfring",
	.run = check_command,
};
