/* convert.c - `perfring convert`: a perf.data file as another: file, stream, compressed or not, either byte order, JSON.
 *
 * Reads by input.c, writes by file_writer.h into an outfile (outfile.h), so that the input and an existing output stay until the
 * new file is complete.  Events, ids, features and records are carried; features that the writer makes itself are left out.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "json.h"
#include "options.h"
#include "outfile.h"
#include "progress.h"
#include "tools.h"
#include "tracepoint_format.h"

enum {
	FOREIGN = TOOL_OPTION_LONG, /* options without a letter */
	STREAM,
	TO,
	JSON,
	BATCH_SIZE = 1 << 18,
	ROUND_RECORDS = 65536, /* in time order, so that readers need not hold more */
};

struct conversion {
	struct tool_input input;
	struct perfring_file_writer *writer;
	const char *output;
	struct tool_outfile out;
	int level;       /* 0: not compressed */
	bool is_foreign; /* than this machine's */
	bool is_stream;
	FILE *json;
	struct tool_tracepoints *tracepoints;
	uint64_t records;
	uint64_t unturned; /* samples of tracepoints whose format is not known */
	bool has_begun;    /* something of IN is in OUT */
	size_t batched;      /* bytes of records that wait to be written together, and how many they are */
	uint64_t waiting;
	unsigned char batch[BATCH_SIZE];
};

static bool fail(const struct conversion *conversion, int error)
{
	tool_complain("convert: %s: %s", conversion->output, strerror(-error));
	return false;
}

/* Whether the writer makes this feature itself. */
static bool is_made(uint32_t feature)
{
	return feature == PERFRING_FEATURE_EVENT_DESC || feature == PERFRING_FEATURE_COMPRESSED ||
	       feature == PERFRING_FEATURE_AUXTRACE || feature == PERFRING_FEATURE_DIR_FORMAT;
}

static int copy_features(struct conversion *conversion)
{
	int error = 0;

	for (uint32_t feature = 1; feature < PERFRING_FEATURE_BITS && !error; feature++) {
		uint64_t size = 0;
		const void *payload = perfring_file_feature(conversion->input.data, feature, &size);

		if (payload && !is_made(feature))
			error = perfring_file_writer_put_feature(conversion->writer, feature, payload, size);
	}
	return error;
}

/* All ids of each event: EVENT_DESC or a stream's attrs have them. */
static int copy_ids(struct conversion *conversion)
{
	const struct perfring_file *data = conversion->input.data;
	int error = 0;
	uint64_t id;

	for (uint32_t event = 0; perfring_file_attr(data, event); event++)
		for (uint32_t i = 0; !error && perfring_file_event_id(data, event, i, &id) == 1; i++)
			error = id ? perfring_file_writer_add_id(conversion->writer, event, id) : 0;
	return error;
}

static bool begin(struct conversion *conversion)
{
	const struct perfring_file *data = conversion->input.data;
	int error = conversion->is_stream ? perfring_file_writer_open_stream(&conversion->writer, conversion->out.fd)
					  : perfring_file_writer_open(&conversion->writer, conversion->out.fd);

	if (error)
		return fail(conversion, error);
	for (uint32_t event = 0; perfring_file_attr(data, event) && error >= 0; event++)
		error = perfring_file_writer_add_event(conversion->writer, perfring_file_attr(data, event),
						       perfring_file_event_name(data, event));
	if (error >= 0)
		error = copy_ids(conversion);
	if (!error)
		error = copy_features(conversion);
	if (!error && conversion->is_foreign)
		error = perfring_file_writer_make_foreign(conversion->writer);
	if (!error && conversion->level) {
		error = perfring_file_writer_compress(conversion->writer, conversion->level);
		if (error == -EOPNOTSUPP) {
			tool_complain("convert: -z: this perfring was built without libzstd");
			return false;
		}
	}
	if (!error)
		error = perfring_file_writer_begin(conversion->writer);
	return error ? fail(conversion, error) : true;
}

static int copy_trace(struct conversion *conversion, const struct perf_event_header *record)
{
	unsigned char *trace = NULL;
	size_t used = 0, capacity = 0;
	struct iovec piece;
	int64_t got;
	int error;

	do {
		if (capacity - used < 65536)
			trace = tool_allocate(trace, capacity = capacity ? capacity * 2 : 262144, 1);
		got = perfring_file_read_trace(conversion->input.data, trace + used, capacity - used);
		used += got > 0 ? (size_t)got : 0;
	} while (got > 0);
	piece = (struct iovec){.iov_base = trace, .iov_len = used};
	error = got < 0 ? (int)got : perfring_file_writer_put_auxtrace(conversion->writer, record, &piece, 1);
	free(trace);
	return error;
}

/* A tracepoint's payload has numbers in the byte order of its writer. */
static void turn_payload(struct conversion *conversion, const struct perfring_item *item, unsigned char *copy)
{
	const struct tool_tracepoint *tracepoint;
	struct perfring_sample sample;
	size_t at;

	if (item->record->type != PERFRING_RECORD_SAMPLE || !item->format ||
	    !(item->format->sample_type & PERFRING_SAMPLE_RAW))
		return;
	if (perfring_sample_decode(item->format, item->record, &sample, NULL) || !sample.raw.size ||
	    perfring_file_attr(conversion->input.data, item->format->index)->type != PERFRING_TYPE_TRACEPOINT)
		return;
	tracepoint = tool_tracepoints_of(conversion->tracepoints, item->format->index);
	if (!tracepoint) {
		conversion->unturned++;
		return;
	}
	at = (size_t)((const unsigned char *)sample.raw.data - (const unsigned char *)item->record);
	tool_tracepoint_turn(conversion->tracepoints, tracepoint, copy + at, sample.raw.size);
}

static int write_batch(struct conversion *conversion)
{
	struct iovec piece = {.iov_base = conversion->batch, .iov_len = conversion->batched};
	int error = conversion->batched ? perfring_file_writer_write(conversion->writer, &piece, 1) : 0;

	if (error)
		return error;
	conversion->batched = 0;
	conversion->waiting = 0;
	return 0;
}

static int batch_up(struct conversion *conversion, const struct perfring_item *item)
{
	unsigned char *copy;
	int error = BATCH_SIZE - conversion->batched < item->record->size ? write_batch(conversion) : 0;

	if (error)
		return error;
	copy = conversion->batch + conversion->batched;
	memcpy(copy, item->record, item->record->size);
	if (conversion->is_foreign != perfring_file_is_foreign(conversion->input.data))
		turn_payload(conversion, item, copy);
	conversion->batched += item->record->size;
	conversion->waiting++;
	/* the reader of a pipe does not wait for records that are already here */
	return tool_input_is_idle(&conversion->input) ? write_batch(conversion) : 0;
}

static int end_round(struct conversion *conversion)
{
	int error = write_batch(conversion);

	return error ? error : perfring_file_writer_end_round(conversion->writer);
}

static bool copy_item(struct conversion *conversion, const struct perfring_item *item)
{
	int error;

	switch (item->record->type) {
	case PERFRING_RECORD_HEADER_ATTR:
	case PERFRING_RECORD_EVENT_UPDATE:
	case PERFRING_RECORD_HEADER_FEATURE:
	case PERFRING_RECORD_HEADER_TRACING_DATA:
	case PERFRING_RECORD_HEADER_BUILD_ID:
	case PERFRING_RECORD_FINISHED_ROUND: /* ours are elsewhere */
	case PERFRING_RECORD_COMPRESSED:     /* could not be read, which was reported */
	case PERFRING_RECORD_COMPRESSED2:
		return true;
	case PERFRING_RECORD_AUXTRACE:
		error = write_batch(conversion);
		if (!error)
			error = copy_trace(conversion, item->record);
		break;
	default:
		error = batch_up(conversion, item);
		break;
	}
	if (!error && ++conversion->records % ROUND_RECORDS == 0)
		error = end_round(conversion);
	if (!error)
		return true;
	return fail(conversion, error);
}

/* Writes as many of the batched records as the disk has space for. */
static void write_some(struct conversion *conversion)
{
	struct iovec piece = {.iov_base = conversion->batch, .iov_len = conversion->batched};

	conversion->waiting -= tool_outfile_write_some(&conversion->out, conversion->writer, 0, &piece, 1, NULL);
}

/* Keeps what was written readable: a full disk has no space for the end of the file either. */
static bool end_early(struct conversion *conversion)
{
	if (!conversion->is_stream) {
		write_some(conversion);
		tool_outfile_end(&conversion->out);
		perfring_file_writer_end_round(conversion->writer);
		perfring_file_writer_finish(conversion->writer);
	}
	tool_complain("convert: %s: is incomplete: of %s it has about %" PRIu64 " records", conversion->output,
		      conversion->input.path, conversion->records - conversion->waiting);
	return false;
}

static bool write_json(struct conversion *conversion)
{
	struct perfring_fault fault;
	struct perfring_item item;

	while (!ferror(conversion->json) && tool_input_next(&conversion->input, &item)) {
		if (!tool_json_record(conversion->json, &conversion->input, conversion->tracepoints, &item, &fault) &&
		    fault.what)
			tool_input_fault(&conversion->input, &fault);
		conversion->records++;
		if (tool_input_is_idle(&conversion->input))
			fflush(conversion->json);
	}
	if (!fflush(conversion->json) && !ferror(conversion->json))
		return true;
	return errno == EPIPE ? false : fail(conversion, -errno);
}

static bool convert(struct conversion *conversion)
{
	struct perfring_item item;
	int error;

	while (tool_input_next(&conversion->input, &item))
		if (!copy_item(conversion, &item))
			return end_early(conversion);
	if (conversion->unturned)
		tool_complain("convert: %s: warning: the raw bytes of %" PRIu64
			      " tracepoint samples are not swapped: their format is not known",
			      conversion->output, conversion->unturned);
	error = conversion->records % ROUND_RECORDS ? end_round(conversion) : 0;
	if (error) {
		fail(conversion, error);
		return end_early(conversion);
	}
	/* all events of a stream are known by now */
	if (!error)
		error = copy_features(conversion);
	if (!error)
		error = perfring_file_writer_finish(conversion->writer);
	return error ? fail(conversion, error) : true;
}

/* IN must not be overwritten, nor be removed as OUT.old: a file, a file of a directory, or standard input. */
static bool is_input(const struct conversion *conversion, const char *name)
{
	const char *path = conversion->input.path;
	struct stat in, out;
	char part[4096];

	if (stat(name, &out) || S_ISCHR(out.st_mode))
		return false;
	if (!strcmp(path, "-"))
		return !fstat(STDIN_FILENO, &in) && in.st_dev == out.st_dev && in.st_ino == out.st_ino;
	if (!stat(path, &in) && in.st_dev == out.st_dev && in.st_ino == out.st_ino)
		return true;
	snprintf(part, sizeof(part), "%s/data", path);
	for (unsigned i = 0; !stat(part, &in); i++) {
		if (in.st_dev == out.st_dev && in.st_ino == out.st_ino)
			return true;
		snprintf(part, sizeof(part), "%s/data.%u", path, i);
	}
	return false;
}

static bool open_output(struct conversion *conversion)
{
	unsigned flags = TOOL_OUTFILE_PRIVATE | TOOL_OUTFILE_OLD;
	char old[4096];

	snprintf(old, sizeof(old), "%s.old", conversion->output);
	if (strcmp(conversion->output, "-") && is_input(conversion, conversion->output)) {
		tool_complain("convert: %s: IN and OUT are the same file", conversion->output);
		return false;
	}
	if (strcmp(conversion->output, "-") && !access(conversion->output, F_OK) && is_input(conversion, old)) {
		tool_complain("convert: %s: would be renamed to %s, which is IN", conversion->output, old);
		return false;
	}
	if (conversion->json)
		flags |= TOOL_OUTFILE_TEXT;
	if (!tool_outfile_open(&conversion->out, "convert", conversion->output, flags))
		return false;
	conversion->is_stream = conversion->is_stream || conversion->out.is_stream;
	if (!conversion->json || conversion->out.fd == STDOUT_FILENO)
		return true;
	conversion->json = fdopen(conversion->out.fd, "w");
	return conversion->json ? true : fail(conversion, -errno);
}

/* Gives the output its name, complete or cut short. */
static bool close_output(struct conversion *conversion, bool done)
{
	bool is_ours = conversion->json && conversion->json != stdout;
	int error;

	if (is_ours && fflush(conversion->json) && done)
		done = fail(conversion, -errno);
	if (conversion->has_begun)
		done = tool_outfile_settle(&conversion->out) && done;
	if (is_ours) {
		error = fclose(conversion->json) ? -errno : 0;
		conversion->out.fd = -1;
	} else {
		error = 0;
	}
	error = error ? error : tool_outfile_close(&conversion->out);
	return error && done ? fail(conversion, error) : done;
}

static int convert_command(int argc, char **argv)
{
	static struct conversion conversion = {.out = {.fd = -1}};
	bool is_little = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, has_order = false, is_other = false;
	struct tool_options options = {.command = &tool_convert};
	int found, status;
	bool done;

	while ((found = tool_options_next(&options, argc, argv)) > 0) {
		switch (found) {
		case 'z':
			conversion.level = options.value ? (int)options.number : 1;
			break;
		case STREAM:
			conversion.is_stream = true;
			break;
		case FOREIGN:
			is_other = true;
			break;
		case TO:
			has_order = true;
			if (!strcmp(options.value, "little"))
				conversion.is_foreign = !is_little;
			else if (!strcmp(options.value, "big"))
				conversion.is_foreign = is_little;
			else if (!strcmp(options.value, "native"))
				conversion.is_foreign = false;
			else
				return tool_options_refuse(&options, found, options.value);
			break;
		case JSON:
			conversion.json = stdout;
			break;
		default:
			return tool_options_forgotten(&options, found);
		}
	}
	if (!found)
		return options.status;
	if ((has_order && is_other) ||
	    (conversion.json && (has_order || is_other || conversion.level || conversion.is_stream))) {
		tool_complain(conversion.json ? "convert: --json goes with no other option"
					      : "convert: --to and --foreign exclude one another");
		return TOOL_MISUSED;
	}
	if (argc - optind != 2 || !*argv[optind] || !*argv[optind + 1]) {
		tool_complain("convert: name IN and OUT (perfring convert --help)");
		return TOOL_MISUSED;
	}
	conversion.output = argv[optind + 1];
	status = tool_input_open_path(&conversion.input, argv[optind]);
	if (status)
		return status;
	if (!has_order)
		conversion.is_foreign = perfring_file_is_foreign(conversion.input.data) != is_other;
	tool_progress_begin(&conversion.input, "convert", strcmp(conversion.output, "-") ? 0 : TOOL_PROGRESS_LINES);
	conversion.tracepoints = tool_tracepoints_open(conversion.input.data, NULL);
	done = open_output(&conversion);
	if (done && !conversion.json)
		done = begin(&conversion);
	conversion.has_begun = done;
	if (done)
		done = conversion.json ? write_json(&conversion) : convert(&conversion);
	status = tool_input_end(&conversion.input);
	perfring_file_writer_close(conversion.writer);
	tool_tracepoints_close(conversion.tracepoints);
	done = close_output(&conversion, done);
	tool_input_close(&conversion.input);
	return done ? status : TOOL_FAILED;
}

static const struct tool_option ROWS[] = {
	{'z', "compress", .value = "LEVEL", .is_optional = true, .takes = "a level", .min = 1, .max = 22,
	 .help = "compress by zstd, 1 to 22 (default: 1)"},
	{STREAM, "stream", .help = "a stream, as through a pipe (always so when OUT is not a regular file)"},
	{TO, "to", .value = "ORDER", .takes = "a byte order: little, big or native",
	 .help = "in this byte order: little, big, or native, which is this machine's"},
	{FOREIGN, "foreign", .help = "in the byte order that IN does not have"},
	{JSON, "json",
	 .help = "one JSON object a line for each record, every member and field by its name; a sample of a group is "
		 "one line for each event that counted.  Times are in nanoseconds, addresses \"0x...\", sets of bits "
		 "\"USER|EXACT_IP\", bytes hexadecimal digits.  In strings, a backslash and each byte that is not "
		 "UTF-8 are written as \\xHH"},
	TOOL_OPTIONS_END,
};

static const struct tool_example EXAMPLES[] = {
	{"The records as JSON, for another program:", "perfring convert --json perf.data - | python3 mine.py"},
	{"A smaller file:", "perfring convert -z perf.data small.data"},
	{"One file, in this machine's byte order, of a directory that another machine wrote:",
	 "perfring convert --to=native perf.data.dir one.data"},
	{0},
};

const struct tool_command tool_convert = {
	.name = "convert",
	.summary = "write a perf.data file as a stream, compressed, in the other byte order, as JSON",
	.usage = "[OPTIONS] IN OUT",
	.description =
		"Writes the contents of a perf.data file, in time order, as another perf.data file or as JSON.  - is "
		"standard input or standard output.  IN may be a file, a stream or a directory, of either byte order, "
		"compressed or not, or the file of a ring that has the attr of its event (perfring ring).  OUT has the byte order of IN unless an option says otherwise.",
	.options = ROWS,
	.exit_status = "0 done; 1 failed, or IN is damaged (what could be read is in OUT); 2 usage error.",
	.examples = EXAMPLES,
	.see_also = "perfring-dump perfring-record perfring",
	.run = convert_command,
};
