/* check.c - `perfring check`: whether every record of a file is well-formed, and if not where and why. */
#include <getopt.h>
#include <inttypes.h>
#include <perfring/check.h>
#include "tools.h"

/* Faults told one by one; a damaged file may hold millions. */
#define TOLD 10

struct check {
	struct perfring_input input;
	bool all;
	bool quiet;
	uint64_t records;
	uint64_t faults;
};

static void help(void)
{
	printf("usage: perfring check [[-i] FILE] [--all] [-q]\n"
	       "\n"
	       "Whether a kernel, or perf, could have written every record of a perf.data file.  Each fault is a line\n"
	       "\n"
	       "    FILE: at 0xOFFSET: KIND: what is wrong at this byte\n"
	       "\n"
	       "in the order of the records' times, and the last line says how many there are.  What a newer kernel\n"
	       "may do is no fault: unknown kinds, flags, trailing bytes.  Behind a record whose size is wrong "
	       "nothing\n"
	       "can be read: the last line says where that was.\n"
	       "\n"
	       "  -i, --input FILE    default perf.data; - is standard input: a file or a pipe\n"
	       "      --all           every fault, not only the first %d\n"
	       "  -q, --quiet         nothing on standard output, only the exit status\n"
	       "\n"
	       "Exit status: 0 well-formed, 1 not, or not to be read, or empty and not finished, 2 misused.\n",
	       TOLD);
}

static void tell(struct check *check, const struct perf_event_header *record, const struct perfring_fault *fault)
{
	const char *name = record ? perfring_record_name(record->type) : "file";

	check->faults++;
	if (check->quiet || (!check->all && check->faults > TOLD))
		return;
	printf("%s%s: at 0x%" PRIx64 ": ", check->input.path, perfring_input_place(&check->input), (uint64_t)fault->at);
	if (name)
		printf("%s: %s\n", name, fault->what);
	else
		printf("RECORD_%" PRIu32 ": %s\n", record->type, fault->what);
}

static void check_item(struct check *check, const struct perfring_item *item)
{
	struct perfring_fault fault;

	check->records++;
	if (!perfring_record_check(item->format, item->record, item->record->size, &fault))
		return;
	fault.at += perfring_data_position(check->input.data);
	tell(check, item->record, &fault);
}

/* A writer that was killed before its first record: nothing was checked. */
static bool is_nothing(const struct check *check)
{
	return !check->records && !check->faults && !perfring_data_is_finished(check->input.data);
}

/* What could not be read to the end is not said to be well-formed. */
static void sum_up(struct check *check, bool stopped, const struct perfring_fault *fault)
{
	printf("%s: %" PRIu64 " record%s", check->input.path, check->records, check->records == 1 ? "" : "s");
	if (check->faults || stopped)
		printf(", %" PRIu64 " fault%s%s", check->faults, check->faults == 1 ? "" : "s",
		       !check->all && check->faults > TOLD ? " (--all tells every one)" : "");
	else
		printf(": %s", is_nothing(check) ? "the writer did not finish" : "well-formed");
	if (stopped && fault->what)
		printf("; stopped%s%s at 0x%" PRIx64 ": what follows was not read",
		       perfring_data_stream(check->input.data) ? " in " : "",
		       perfring_input_place(&check->input) + !!perfring_data_stream(check->input.data),
		       (uint64_t)fault->at);
	else if (stopped)
		printf("; stopped: what follows was not read");
	putchar('\n');
}

static int run(struct check *check)
{
	struct perfring_data *data = check->input.data;
	struct perfring_fault fault;
	struct perfring_item item;
	bool goes_on;
	int one;

	do {
		memset(&item, 0, sizeof(item));
		one = perfring_data_next(data, &item);
		fault = one == -EBADMSG || one == -EOPNOTSUPP ? perfring_data_fault(data)
							      : (struct perfring_fault){0, NULL};
		if (one == -EBADMSG && fault.what)
			tell(check, item.record, &fault);
		else if (one < 0 && fault.what)
			perfring_tool_complain("%s%s: at 0x%" PRIx64 ": %s", check->input.path,
					       perfring_input_place(&check->input), (uint64_t)fault.at, fault.what);
		else if (one < 0)
			perfring_tool_complain("%s%s: %s", check->input.path, perfring_input_place(&check->input),
					       strerror(-one));
		if (item.record)
			check_item(check, &item);
		goes_on = one == 1 || (one == -EBADMSG && item.record);
	} while (!ferror(stdout) && goes_on);
	if (perfring_data_late(data))
		perfring_tool_complain("%s: warning: %" PRIu64 " records came too late for their place in time",
				       check->input.path, perfring_data_late(data));
	if (!check->quiet)
		sum_up(check, one < 0, &fault);
	if (!perfring_tool_flush())
		return PERFRING_TOOL_FAILED;
	return one || check->faults || is_nothing(check) ? PERFRING_TOOL_FAILED : PERFRING_TOOL_DONE;
}

int perfring_tool_check(int argc, char **argv)
{
	static const struct option options[] = {
		{"input", required_argument, NULL, 'i'},
		{"all", no_argument, NULL, 'a'},
		{"quiet", no_argument, NULL, 'q'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	struct check check = {.quiet = false};
	const char *path = NULL;
	int found, status;

	opterr = 0;
	while ((found = getopt_long(argc, argv, ":i:qh", options, NULL)) != -1) {
		switch (found) {
		case 'i':
			path = optarg;
			break;
		case 'a':
			check.all = true;
			break;
		case 'q':
			check.quiet = true;
			break;
		case 'h':
			help();
			return perfring_tool_flush() ? PERFRING_TOOL_DONE : PERFRING_TOOL_FAILED;
		default:
			return perfring_tool_misused(found, argv);
		}
	}
	status = perfring_input_open(&check.input, path, argc, argv, optind);
	if (status)
		return status;
	status = run(&check);
	perfring_input_close(&check.input);
	return status;
}
