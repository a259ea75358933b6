/* gen.c - `perfring gen`: random records of any attr, valid or damaged: a stream, a ring image, a perf.data file.
 *
 * generate.h draws the records; here are the outputs: records one after the other, a ring's image, a perf.data file by
 * file_writer.h, and the conformance suite (corpus.h).  The same seed writes the same bytes.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <strings.h>
#include <unistd.h>
#include <perfring/event.h>
#include <perfring/file_writer.h>
#include <perfring/generate.h>
#include "corpus.h"
#include "options.h"
#include "outfile.h"
#include "tools.h"

enum {
	ATTR_SIZE = 136, /* what perf of this time reads; the newest member is left out */
	RECORD_SIZE = 1 << 16,
	FIRST_TIME = 1000000000,
};

enum form {
	FORM_RECORDS,
	FORM_RING,
	FORM_DATA,
};

static const char *const forms[] = {"records", "ring", "data"};

static const struct {
	const char *name;
	uint32_t type;
} kinds[] = {
#define PERFRING_RECORD(NAME, type, noun) {#NAME, type},
#define PERFRING_MEMBER(kind, member, show)
#define PERFRING_RECORD_END(NAME, type, noun)
#include <perfring/records.def>
};

static const struct {
	const char *name;
	uint64_t bit;
} fields[] = {
#define PERFRING_FIELD(NAME, bit, ...) {#NAME, PERFRING_SAMPLE_##NAME},
#include <perfring/fields.def>
};

#define KINDS (sizeof(kinds) / sizeof(kinds[0]))
#define FIELDS (sizeof(fields) / sizeof(fields[0]))

struct gen {
	struct perfring_generator generator;
	struct perfring_format format;
	union {
		struct perf_event_attr attr;
		unsigned char bytes[ATTR_SIZE];
	} any;
	const char *event;
	bool is_random;
	uint64_t fields; /* 0: those of the attr */
	uint64_t seed;
	uint64_t records;
	uint64_t most;
	uint32_t types[256];
	bool is_named[256]; /* one by one, not by perf or all */
	uint32_t types_nr;
	uint32_t damage;
	uint64_t percent;
	enum form form;
	const char *output;
	const char *corpus;
	bool has_others; /* options beside --corpus */
	uint64_t id;
	uint64_t time;
	unsigned char *drawn;
	unsigned char *record;
	/* bytes that are not written yet */
	unsigned char *bytes;
	size_t used;
	size_t capacity;
	struct perfring_file_writer *writer;
};

/* ---- options ---- */

enum {
	AS = TOOL_OPTION_LONG,
	SEED,
	ATTR,
	SAMPLE_TYPE,
	TYPE,
	DAMAGE,
	SIZE,
	CORPUS,
};

static bool add_type(struct gen *gen, uint32_t type, bool is_named)
{
	if (gen->types_nr == sizeof(gen->types) / sizeof(gen->types[0])) {
		tool_complain("gen: --type names too many kinds");
		return false;
	}
	gen->is_named[gen->types_nr] = is_named;
	gen->types[gen->types_nr++] = type;
	return true;
}

static bool is_compressed(uint32_t type)
{
	return type == PERFRING_RECORD_COMPRESSED || type == PERFRING_RECORD_COMPRESSED2;
}

/* Drops types whose random bytes would be damage in a file (COMPRESSED), unless they are named. */
static void drop_compressed(struct gen *gen)
{
	uint32_t left = 0;

	for (uint32_t i = 0; i < gen->types_nr; i++)
		if (!is_compressed(gen->types[i]) || gen->is_named[i])
			gen->types[left++] = gen->types[i];
	gen->types_nr = left;
}

/* kernel: types below 64; perf: the others. */
static bool add_kinds(struct gen *gen, const char *word)
{
	bool kernel = !strcasecmp(word, "kernel") || !strcasecmp(word, "all");
	bool perf = !strcasecmp(word, "perf") || !strcasecmp(word, "all");
	bool known = kernel || perf;
	uint64_t number;
	size_t i;

	for (i = 0; i < KINDS; i++) {
		if (!(kinds[i].type < PERFRING_RECORD_OF_PERF ? kernel : perf) && strcasecmp(word, kinds[i].name))
			continue;
		known = true;
		if (!add_type(gen, kinds[i].type, !kernel && !perf))
			return false;
	}
	if (known)
		return true;
	if (tool_options_number(word, 1, UINT32_MAX, &number))
		return add_type(gen, (uint32_t)number, true);
	tool_complain("gen: --type: unknown kind of record '%s': --type list shows them; a number from 1 on is one too",
		      word);
	return false;
}

static bool take_types(struct gen *gen, char *list)
{
	char *word, *rest;

	gen->types_nr = 0;
	for (word = strtok_r(list, ",", &rest); word; word = strtok_r(NULL, ",", &rest))
		if (!add_kinds(gen, word))
			return false;
	if (!gen->types_nr)
		tool_complain("gen: --type names no kind");
	return gen->types_nr;
}

static bool take_fields(struct gen *gen, char *list)
{
	char *word, *rest;
	size_t i;

	gen->fields = 0;
	for (word = strtok_r(list, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
		for (i = 0; i < FIELDS && strcasecmp(word, fields[i].name); i++)
			;
		if (i < FIELDS) {
			gen->fields |= fields[i].bit;
		} else if (!strcasecmp(word, "all")) {
			gen->fields |= PERFRING_SAMPLE_KNOWN & ~(uint64_t)PERFRING_SAMPLE_WEIGHT;
		} else {
			tool_complain("gen: --sample-type: unknown field '%s': --sample-type list shows them", word);
			return false;
		}
	}
	if ((gen->fields & PERFRING_SAMPLE_WEIGHT) && (gen->fields & PERFRING_SAMPLE_WEIGHT_STRUCT)) {
		tool_complain("gen: --sample-type: WEIGHT and WEIGHT_STRUCT exclude one another");
		return false;
	}
	if (!gen->fields)
		tool_complain("gen: --sample-type names no field");
	return gen->fields;
}

static bool take_damage(struct gen *gen, char *text)
{
	char *colon = strchr(text, ':');
	uint32_t damage;

	gen->percent = 100;
	if (colon) {
		*colon = '\0';
		if (!tool_options_number(colon + 1, 0, 100, &gen->percent)) {
			tool_complain("gen: --damage %s: is of a number of records in 100, not '%s'", text, colon + 1);
			return false;
		}
	}
	if (!strcasecmp(text, "none"))
		gen->percent = 0;
	if (!strcasecmp(text, "none") || !strcasecmp(text, "any")) {
		gen->damage = PERFRING_DAMAGES;
		return true;
	}
	for (damage = 0; damage < PERFRING_DAMAGES && strcasecmp(text, perfring_damage_name(damage)); damage++)
		;
	gen->damage = damage;
	if (damage == PERFRING_DAMAGES)
		tool_complain("gen: --damage: unknown damage '%s': --damage list shows them", text);
	return damage < PERFRING_DAMAGES;
}

static bool take_form(struct gen *gen, const char *text)
{
	size_t i;

	for (i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		if (strcmp(text, forms[i]))
			continue;
		gen->form = (enum form)i;
		return true;
	}
	return false;
}

static int list_damages(void)
{
	uint32_t damage;

	for (damage = 0; damage < PERFRING_DAMAGES; damage++)
		printf("%-12s %s\n", perfring_damage_name(damage), perfring_damage_what(damage));
	return tool_flush() ? TOOL_DONE : TOOL_FAILED;
}

static int list_kinds(void)
{
	size_t i;

	for (i = 0; i < KINDS; i++)
		printf("%3" PRIu32 " %s\n", kinds[i].type, kinds[i].name);
	return tool_flush() ? TOOL_DONE : TOOL_FAILED;
}

static int list_fields(void)
{
	size_t i;

	for (i = 0; i < FIELDS; i++)
		printf("%s\n", fields[i].name);
	return tool_flush() ? TOOL_DONE : TOOL_FAILED;
}

/* ---- the attr ---- */

/* Sets the members of the attr that its fields need. */
static bool make_attr(struct gen *gen)
{
	struct perf_event_attr *attr = &gen->any.attr;
	struct perfring_fault fault = {0, NULL};
	int ret = 0;

	perfring_generate_attr(&gen->generator, attr, ATTR_SIZE);
	if (!gen->is_random) {
		memset(gen->any.bytes, 0, ATTR_SIZE);
		attr->size = ATTR_SIZE;
		attr->sample_period = 1;
		attr->sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
				    PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD;
		attr->read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_ID | PERF_FORMAT_GROUP;
		attr->sample_id_all = 1;
		attr->branch_sample_type = PERF_SAMPLE_BRANCH_ANY;
		attr->sample_regs_user = 0x1ff;
		attr->sample_regs_intr = 0x1ff;
		attr->sample_stack_user = 8192;
		ret = perfring_event_parse(gen->event ? gen->event : "cpu-clock", attr, &fault);
	}
	if (ret)
		tool_options_refuse_event("gen", gen->event, ret, &fault);
	if (ret)
		return false;
	if (gen->fields)
		attr->sample_type = gen->fields;
	perfring_format_from_attr(&gen->format, attr);
	gen->id = 1 + perfring_generator_draw(&gen->generator, 1 << 20);
	gen->time = FIRST_TIME;
	return true;
}

/* ---- records ---- */

enum {
	NAME_SIZE = 16,
};

/* "READ", or "type 90" in the buffer. */
static const char *name_of(uint32_t type, char *buffer)
{
	const char *name = perfring_record_name(type);

	if (!name)
		snprintf(buffer, NAME_SIZE, "type %" PRIu32, type);
	return name ? name : buffer;
}

/* For a file: records of this event, in time order, none of which announces bytes after it. */
static int64_t make_sample(struct gen *gen)
{
	struct perfring_sample sample;
	int64_t used = perfring_generate_sample(&gen->generator, &gen->format, &sample, gen->drawn, RECORD_SIZE,
						(uint32_t)gen->most);

	if (used < 0)
		return used;
	sample.identifier = sample.id = gen->id;
	sample.time = gen->time;
	return perfring_sample_encode(&gen->format, &sample, gen->record, RECORD_SIZE);
}

static int64_t make_other(struct gen *gen, uint32_t type)
{
	struct perfring_record record;
	int64_t used = perfring_generate_members(&gen->generator, &gen->format, type, &record, gen->drawn, RECORD_SIZE,
						 (uint32_t)gen->most);

	if (used < 0)
		return used;
	record.trailer.identifier = record.trailer.id = gen->id;
	record.trailer.time = gen->time;
	if (type == PERFRING_RECORD_AUXTRACE)
		record.is.auxtrace.size = 0;
	if (type == PERFRING_RECORD_HEADER_TRACING_DATA)
		record.is.header_tracing_data.size = 0;
	return perfring_record_encode(&gen->format, &record, gen->record, RECORD_SIZE);
}

static int64_t make_record(struct gen *gen)
{
	uint32_t type = gen->types[perfring_generator_draw(&gen->generator, gen->types_nr)];
	int64_t size, damaged = 0;
	char name[NAME_SIZE];

	gen->time += 1 + perfring_generator_draw(&gen->generator, 1000000);
	size = type == PERFRING_RECORD_SAMPLE ? make_sample(gen) : make_other(gen, type);
	if (size == -ENOSPC)
		tool_complain("gen: --size %" PRIu64 ": too small for %s records", gen->most, name_of(type, name));
	else if (size < 0)
		tool_complain("gen: %s records: %s", name_of(type, name), strerror((int)-size));
	if (size > 0 && perfring_generator_draw(&gen->generator, 100) < gen->percent)
		damaged =
			perfring_generate_damage(&gen->generator, &gen->format, gen->damage, gen->record, RECORD_SIZE);
	return damaged ? damaged : size;
}

/* ---- output ---- */

static void keep(struct gen *gen, size_t size)
{
	if (gen->used + size > gen->capacity) {
		gen->capacity = (gen->used + size) * 2;
		gen->bytes = tool_allocate(gen->bytes, gen->capacity, 1);
	}
	memcpy(gen->bytes + gen->used, gen->record, size);
	gen->used += size;
}

/* Reports an error of writing, but not that the reader of a pipe has left. */
static bool complain_output(const struct gen *gen, int error)
{
	if (error != EPIPE)
		tool_complain("gen: %s: %s", gen->output, strerror(error));
	return false;
}

static bool write_all(const struct gen *gen, int fd, const void *bytes, size_t size)
{
	ssize_t written;

	for (; size; size -= (size_t)written, bytes = (const char *)bytes + written) {
		written = write(fd, bytes, size);
		if (written < 0)
			return complain_output(gen, errno);
	}
	return true;
}

/* Writes the control page, as perfring_ring_wrap accepts it, with nothing read yet. */
static bool write_ring(const struct gen *gen, int fd)
{
	size_t page_size = (size_t)sysconf(_SC_PAGESIZE), size = page_size;
	struct perf_event_mmap_page *page;
	unsigned char *image;
	bool written;

	/* A ring is never full. */
	while (size <= gen->used)
		size *= 2;
	image = tool_allocate(NULL, page_size + size, 1);
	memset(image, 0, page_size + size);
	page = (struct perf_event_mmap_page *)(void *)image;
	page->data_head = gen->used;
	page->data_offset = page_size;
	page->data_size = size;
	memcpy(image + page_size, gen->bytes, gen->used);
	written = write_all(gen, fd, image, page_size + size);
	free(image);
	return written;
}

static bool begin_data(struct gen *gen, int fd)
{
	char name[256];
	int ret = perfring_file_writer_open(&gen->writer, fd);

	perfring_event_name(&gen->any.attr, name, sizeof(name));
	if (!ret)
		ret = perfring_file_writer_add_event(gen->writer, &gen->any.attr, name);
	if (ret >= 0)
		ret = perfring_file_writer_add_id(gen->writer, 0, gen->id);
	if (!ret)
		ret = perfring_file_writer_begin(gen->writer);
	return ret < 0 ? complain_output(gen, -ret) : true;
}

static bool write_data(struct gen *gen)
{
	struct iovec piece = {gen->bytes, gen->used};
	int ret = gen->used ? perfring_file_writer_write(gen->writer, &piece, 1) : 0;

	gen->used = 0;
	return ret ? complain_output(gen, -ret) : true;
}

static bool finish_data(struct gen *gen)
{
	int ret;

	if (!write_data(gen))
		return false;
	ret = perfring_file_writer_finish(gen->writer);
	return ret ? complain_output(gen, -ret) : true;
}

static bool write_records(struct gen *gen, int fd)
{
	bool written = write_all(gen, fd, gen->bytes, gen->used);

	gen->used = 0;
	return written;
}

enum {
	ENOUGH = 1 << 20, /* bytes at a time */
};

static bool run(struct gen *gen, int fd)
{
	int64_t size;
	uint64_t i;

	if (gen->form == FORM_DATA && !begin_data(gen, fd))
		return false;
	for (i = 0; i < gen->records; i++) {
		size = make_record(gen);
		if (size < 0)
			return false;
		keep(gen, (size_t)size);
		if (gen->used < ENOUGH || gen->form == FORM_RING)
			continue;
		if (gen->form == FORM_DATA ? !write_data(gen) : !write_records(gen, fd))
			return false;
	}
	if (gen->form == FORM_RING)
		return write_ring(gen, fd);
	return gen->form == FORM_DATA ? finish_data(gen) : write_records(gen, fd);
}

static bool may_run(const struct gen *gen)
{
	char name[NAME_SIZE];
	uint32_t i;

	if (!gen->output || !*gen->output) {
		tool_complain("gen: no output: -o FILE, or -o - for standard output (perfring gen --help)");
		return false;
	}
	if (gen->event && gen->is_random) {
		tool_complain("gen: -e and --attr random exclude one another");
		return false;
	}
	if (gen->form == FORM_DATA && !strcmp(gen->output, "-")) {
		tool_complain("gen: -o -: only --as records and ring go to standard output: name a file");
		return false;
	}
	for (i = 0; gen->form == FORM_RING && i < gen->types_nr; i++) {
		if (gen->types[i] < PERFRING_RECORD_OF_PERF)
			continue;
		tool_complain("gen: --as ring: rings do not hold %s, which the kernel does not write",
			      name_of(gen->types[i], name));
		return false;
	}
	return true;
}

static int generate(struct gen *gen)
{
	unsigned flags = gen->form == FORM_DATA ? 0 : TOOL_OUTFILE_TEXT;
	struct tool_outfile out;
	bool done;
	int error;

	perfring_generator_seed(&gen->generator, gen->seed);
	if (!make_attr(gen))
		return TOOL_MISUSED;
	if (!tool_outfile_open(&out, "gen", gen->output, flags)) {
		tool_outfile_close(&out);
		return TOOL_FAILED;
	}
	gen->drawn = tool_allocate(NULL, RECORD_SIZE, 1);
	gen->record = tool_allocate(NULL, RECORD_SIZE, 1);
	gen->capacity = ENOUGH + RECORD_SIZE;
	gen->bytes = tool_allocate(NULL, gen->capacity, 1);
	done = run(gen, out.fd);
	if (gen->writer)
		perfring_file_writer_close(gen->writer);
	/* An incomplete file does not replace an existing one. */
	done = done && tool_outfile_settle(&out);
	error = tool_outfile_close(&out);
	if (error && done)
		done = complain_output(gen, -error);
	free(gen->bytes);
	free(gen->record);
	free(gen->drawn);
	return done ? TOOL_DONE : TOOL_FAILED;
}

/* ---- the corpus ---- */

static int write_corpus(const struct gen *gen)
{
	uint32_t count;
	char *path = NULL;
	int ret;

	if (gen->has_others) {
		tool_complain("gen: --corpus goes with no other option");
		return TOOL_MISUSED;
	}
	ret = tool_corpus_write(gen->corpus, &path, &count);
	if (ret)
		tool_complain("gen: %s: %s", path ? path : gen->corpus, strerror(-ret));
	else
		printf("%" PRIu32 " vectors in %s, version %d\n", count, gen->corpus, TOOL_CORPUS_VERSION);
	free(path);
	return ret || !tool_flush() ? TOOL_FAILED : TOOL_DONE;
}

/* Returns -1 to go on, else the exit status. */
static int take_option(struct gen *gen, const struct tool_options *options, int found)
{
	char *value = options->value;
	bool is_list = !strcmp(value, "list"), is_good = true;

	gen->has_others = gen->has_others || found != CORPUS;
	switch (found) {
	case 'o':
		gen->output = value;
		break;
	case AS:
		if (!take_form(gen, value))
			return tool_options_refuse(options, found, value);
		break;
	case 'n':
		gen->records = options->number;
		break;
	case SEED:
		gen->seed = options->number;
		break;
	case 'e':
		gen->event = value;
		break;
	case ATTR:
		gen->is_random = !strcmp(value, "random");
		if (!gen->is_random)
			return tool_options_refuse(options, found, value);
		break;
	case SAMPLE_TYPE:
		if (is_list)
			return list_fields();
		is_good = take_fields(gen, value);
		break;
	case TYPE:
		if (is_list)
			return list_kinds();
		is_good = take_types(gen, value);
		break;
	case DAMAGE:
		if (is_list)
			return list_damages();
		is_good = take_damage(gen, value);
		break;
	case SIZE:
		gen->most = options->number;
		break;
	case CORPUS:
		gen->corpus = value;
		break;
	default:
		return tool_options_forgotten(options, found);
	}
	return is_good ? -1 : TOOL_MISUSED;
}

static int gen_command(int argc, char **argv)
{
	struct tool_options options = {.command = &tool_gen};
	struct gen gen = {.records = 100, .most = 1024, .form = FORM_DATA};
	int found, status;

	add_kinds(&gen, "kernel");
	while ((found = tool_options_next(&options, argc, argv)) > 0) {
		status = take_option(&gen, &options, found);
		if (status >= 0)
			return status;
	}
	if (!found)
		return options.status;
	if (optind < argc) {
		tool_complain("gen: unexpected argument '%s' (perfring gen --help)", argv[optind]);
		return TOOL_MISUSED;
	}
	if (gen.corpus)
		return write_corpus(&gen);
	if (gen.form == FORM_DATA)
		drop_compressed(&gen);
	return may_run(&gen) ? generate(&gen) : TOOL_MISUSED;
}

static const struct tool_option ROWS[] = {
	{CORPUS, "corpus", .value = "FOLDER", .takes = "a new folder's name",
	 .help = "write the conformance suite into a new folder: perf.data files, what a right decoder says of each as "
		 "JSON, and a MANIFEST (conformance.md); no other option goes with it"},
	{'o', "output", .value = "FILE", .takes = "a file's name, or -", .help = "- is standard output (not for data)"},
	{AS, "as", .value = "FORM", .takes = "a form: data, ring or records",
	 .help = "data: a perf.data file (default); ring: the image of a ring, control page and data pages; records: "
		 "one record after another"},
	{'n', "records", .value = "N", .takes = "a number of records", .max = UINT32_MAX,
	 .help = "the number of records (100)"},
	{SEED, "seed", .value = "N", .takes = "a number", .max = UINT64_MAX,
	 .help = "the seed of the random numbers (0)"},
	{'e', "event", .value = "EVENT", .takes = "an event, as perfring list shows them",
	 .help = "the attr's event (cpu-clock), as for perfring record"},
	{ATTR, "attr", .value = "random", .takes = "the word random (-e names an event)",
	 .help = "a random attr instead"},
	{SAMPLE_TYPE, "sample-type", .value = "LIST", .takes = "fields, such as IP,TID, or all or list",
	 .help = "fields of its samples: IP,TID,CALLCHAIN ..., all or list"},
	{TYPE, "type", .value = "LIST", .takes = "kinds of records, such as MMAP,SAMPLE, or kernel, perf, all or list",
	 .help = "kinds of records: MMAP,SAMPLE ..., kernel (default), perf, all or list; COMPRESSED and COMPRESSED2, "
		 "which random bytes damage, only by name"},
	{DAMAGE, "damage", .value = "NAME[:P]", .takes = "a damage, such as SIZE:10, or any, none or list",
	 .help = "none (default), any, one of them, or list: damage P of 100 records (100)"},
	{SIZE, "size", .value = "BYTES", .takes = "a number of bytes", .min = sizeof(struct perf_event_header),
	 .max = PERFRING_RECORD_MAX, .help = "the largest record (1024; 8 to 65528)"},
	TOOL_OPTIONS_END,
};

static const struct tool_example EXAMPLES[] = {
	{"A thousand valid records of all kinds that the kernel writes:", "perfring gen -n 1000 -o random.data"},
	{"Other ones, of which one in ten is damaged:",
	 "perfring gen -n 1000 --seed 7 --damage any:10 -o damaged.data"},
	{"The conformance suite, for a decoder of one's own:", "perfring gen --corpus vectors"},
	{"The names of the damages:", "perfring gen --damage list"},
	{0},
};

const struct tool_command tool_gen = {
	.name = "gen",
	.summary = "random records, valid or damaged, for tests and fuzzers",
	.usage = "[OPTIONS] -o FILE\n--corpus FOLDER",
	.description =
		"Writes random records, drawn by shape: counts of 0, 1, a few, as many as fit; every variant of a "
		"member.  The same options give the same bytes.  --corpus writes the vectors of the conformance suite, "
		"which are the same on every machine.",
	.options = ROWS,
	.exit_status = "0 done; 1 failed (FILE is unchanged; FOLDER is incomplete); 2 usage error.",
	.examples = EXAMPLES,
	.see_also = "perfring-check perfring-dump perfring",
	.run = gen_command,
};
