/* dwarf_rows.c - a unit's table of lines: its program is run once, into rows by their addresses.
 *
 * A row that covers nothing, or is of the same line as the one before it, is left out.  A sequence whose addresses do not ascend ends
 * there, and another begins.
 *
 * source_lines.c opens the table of a unit when a line of it is first asked for (sections 6.2 and 7.22 of the DWARF standard).
 * The program is foreign: bytes of all tables that are run have a bound (limits.h).
 */
#include <errno.h>
#include <stdlib.h>
#include "dwarf.h"
#include "limits.h"

enum {
	COLUMNS_MAX = 16, /* what is known of a file */
	LENGTH_MAX = 12,  /* bytes of a table's length */
};

struct registers {
	uint64_t address;
	uint64_t part; /* of an instruction of several */
	uint64_t line;
	uint32_t file;
};

/* The header's parameters of the program, and its state. */
struct program {
	struct perfring_dwarf_unit unit; /* with the sizes of the table's own header */
	struct perfring_dwarf_bytes bytes;
	const unsigned char *lengths; /* numbers that standard opcodes take */
	uint8_t least, most, range, opcodes;
	int8_t base;
	struct registers now;
	bool is_open;        /* a sequence */
	uint64_t size;       /* of the table */
	unsigned char *part; /* the bytes, if they are left in the file; else NULL */
	uint64_t space;
};

/* ---- the header ---- */

/* name: in the table, or in another section. */
static const char *keep(const struct program *program, const char *name)
{
	bool is_in_table = program->part && (uintptr_t)name - (uintptr_t)program->part < program->size;

	return is_in_table ? perfring__dwarf_keep(program->unit.file, PERFRING_DWARF_LINE, name) : name;
}

static bool add_folder(struct perfring_dwarf_rows *rows, const struct program *program, const char *name)
{
	if (!perfring__dwarf_grow(rows->memory, &rows->folders, rows->folder_count, &rows->folder_capacity,
				  sizeof(*rows->folders)))
		return false;
	rows->folders[rows->folder_count++] = keep(program, name);
	return true;
}

static bool add_file(struct perfring_dwarf_rows *rows, const struct program *program, const char *name, uint64_t folder)
{
	if (!perfring__dwarf_grow(rows->memory, &rows->files, rows->file_count, &rows->file_capacity,
				  sizeof(*rows->files)))
		return false;
	rows->files[rows->file_count++] = (struct perfring_dwarf_source){
		keep(program, name), NULL, folder > UINT32_MAX ? UINT32_MAX : (uint32_t)folder};
	return true;
}

/* A file of DWARF 2 to 4: its name, folder, time and size.  Returns false at the end. */
static bool take_file(struct perfring_dwarf_rows *rows, const struct program *program,
		      struct perfring_dwarf_bytes *bytes)
{
	const char *name = perfring__dwarf_text(bytes);
	uint64_t folder;

	if (!name || !*name)
		return false;
	folder = perfring__dwarf_leb(bytes);
	perfring__dwarf_leb(bytes);
	perfring__dwarf_leb(bytes);
	return !bytes->is_short && add_file(rows, program, name, folder);
}

/* Folders and files of DWARF 2 to 4, whose numbers begin at 1. */
static void take_lists(struct perfring_dwarf_rows *rows, const struct program *program,
		       struct perfring_dwarf_bytes *bytes)
{
	const char *name;

	if (!add_folder(rows, program, perfring__dwarf_string(&program->unit, &program->unit.folder)) ||
	    !add_file(rows, program, NULL, 0))
		return;
	while ((name = perfring__dwarf_text(bytes)) && *name)
		if (!add_folder(rows, program, name))
			return;
	while (take_file(rows, program, bytes))
		;
}

/* Folders, or files, of DWARF 5: a description of the members comes first. */
static void take_list(struct perfring_dwarf_rows *rows, const struct program *program,
		      struct perfring_dwarf_bytes *bytes, bool are_files)
{
	const struct perfring_dwarf_unit *unit = &program->unit;
	struct perfring_dwarf_bytes formats, all = *bytes;
	unsigned columns = (unsigned)perfring__dwarf_take(bytes, 1);
	uint64_t count;

	all = *bytes;
	for (unsigned i = 0; i < 2 * columns; i++)
		perfring__dwarf_leb(bytes);
	count = perfring__dwarf_leb(bytes);
	/* each takes a byte at least */
	if (columns > COLUMNS_MAX || count > perfring__dwarf_left(bytes))
		bytes->is_short = true;
	for (uint64_t i = 0; i < count && !bytes->is_short; i++) {
		struct perfring_dwarf_value name = {0, 0};
		const unsigned char *from = bytes->at;
		uint64_t folder = 0;

		formats = all;
		for (unsigned j = 0; j < columns; j++) {
			uint64_t what = perfring__dwarf_leb(&formats);
			uint8_t form = perfring__dwarf_form_of(perfring__dwarf_leb(&formats), unit->offset_size);
			uint64_t number = perfring__dwarf_take_value(unit, bytes, &form, UINT64_MAX);

			if (what == 1)
				name = (struct perfring_dwarf_value){number, form};
			if (what == 2)
				folder = number;
		}
		if (bytes->is_short || bytes->at == from ||
		    !(are_files ? add_file(rows, program, perfring__dwarf_string(unit, &name), folder)
				: add_folder(rows, program, perfring__dwarf_string(unit, &name))))
			return;
	}
}

/* Sets the program's bytes to those of the table, after its length.  Returns 0, -ENODATA or -E2BIG. */
static int take_table(struct program *program)
{
	struct perfring_dwarf_unit *unit = &program->unit;
	struct perfring_dwarf_file *file = unit->file;
	const struct perfring_dwarf_section *section = &file->sections[PERFRING_DWARF_LINE];
	struct perfring_dwarf_bytes bytes = {.is_big = file->is_big};
	unsigned char some[LENGTH_MAX];
	uint64_t length, left, at;

	if (unit->lines >= section->size)
		return -ENODATA;
	left = section->size - unit->lines;
	if (section->is_left) {
		bytes.at = some;
		bytes.end =
			some + perfring__dwarf_read_part(file, PERFRING_DWARF_LINE, unit->lines, some, sizeof(some));
	} else {
		bytes.at = section->bytes + unit->lines;
		bytes.end = bytes.at + left;
	}
	unit->offset_size = (uint8_t)perfring__dwarf_take_length(&bytes, &length);
	at = unit->offset_size == 8 ? 12 : 4;
	if (!unit->offset_size || length > left - at)
		return -ENODATA;
	if (length > PERFRING_LIMIT_TABLE)
		return -E2BIG;
	/* units may share a table, but not without end: each runs it */
	if (length > file->rows_left)
		return -ENODATA;
	file->rows_left -= length;
	program->size = length;
	if (section->is_left) {
		program->part = perfring__dwarf_space_take(&file->parts, length, &program->space);
		file->memory->is_short = file->memory->is_short || !program->part;
		if (!program->part || perfring__dwarf_read_part(file, PERFRING_DWARF_LINE, unit->lines + at,
								program->part, length) < length)
			return -ENODATA;
		bytes.at = program->part;
	}
	bytes.end = bytes.at + length;
	program->bytes = bytes;
	return 0;
}

/* Reads the header of a table.  Returns 0, -ENODATA or -E2BIG. */
static int take_header(struct perfring_dwarf_rows *rows, struct program *program)
{
	struct perfring_dwarf_unit *unit = &program->unit;
	struct perfring_dwarf_bytes *bytes = &program->bytes, header;
	int error = take_table(program);
	uint64_t length;

	if (error)
		return error;
	unit->version = (uint8_t)perfring__dwarf_take(bytes, 2);
	if (unit->version < 2 || unit->version > 5)
		return -ENODATA;
	if (unit->version == 5) {
		unit->address_size = (uint8_t)perfring__dwarf_take(bytes, 1);
		perfring__dwarf_skip(bytes, 1); /* of selectors of segments */
	}
	length = perfring__dwarf_take(bytes, unit->offset_size);
	if (bytes->is_short || length > perfring__dwarf_left(bytes))
		return -ENODATA;
	header = *bytes;
	header.end = bytes->at += length;
	program->least = (uint8_t)perfring__dwarf_take(&header, 1);
	program->most = unit->version < 4 ? 1 : (uint8_t)perfring__dwarf_take(&header, 1);
	perfring__dwarf_skip(&header, 1); /* whether rows are of statements */
	program->base = (int8_t)perfring__dwarf_take(&header, 1);
	program->range = (uint8_t)perfring__dwarf_take(&header, 1);
	program->opcodes = (uint8_t)perfring__dwarf_take(&header, 1);
	program->lengths = header.at;
	perfring__dwarf_skip(&header, program->opcodes ? program->opcodes - 1u : 0);
	if (header.is_short || !program->range || !program->most || !program->opcodes)
		return -ENODATA;
	if (rows->has_files)
		return 0;
	if (unit->version < 5) {
		take_lists(rows, program, &header);
	} else {
		take_list(rows, program, &header, false);
		take_list(rows, program, &header, true);
	}
	return 0;
}

/* ---- rows ---- */

/* Ends a sequence; drops it if it covers no address. */
static void end_sequence(struct perfring_dwarf_rows *rows, struct program *program, uint64_t end)
{
	struct perfring_dwarf_sequence *sequence;

	if (!program->is_open)
		return;
	program->is_open = false;
	sequence = &rows->sequences[rows->sequence_count];
	sequence->end = end;
	sequence->count = rows->row_count - sequence->first;
	if (sequence->end > sequence->start)
		rows->sequence_count++;
	else
		rows->row_count = sequence->first;
}

/* Begins a sequence at the program's address.  Returns false without memory. */
static bool begin_sequence(struct perfring_dwarf_rows *rows, struct program *program)
{
	if (!perfring__dwarf_grow(rows->memory, &rows->sequences, rows->sequence_count, &rows->sequence_capacity,
				  sizeof(*rows->sequences)))
		return false;
	rows->sequences[rows->sequence_count] =
		(struct perfring_dwarf_sequence){.start = program->now.address, .first = rows->row_count};
	program->is_open = true;
	return true;
}

static struct perfring_dwarf_row row_of(const struct registers *now)
{
	return (struct perfring_dwarf_row){now->address, now->file, (uint32_t)now->line};
}

/* Adds a row of the registers that is not of the same line as the last one.  Returns false without memory. */
static bool add_row(struct perfring_dwarf_rows *rows, struct program *program)
{
	struct perfring_dwarf_row row = row_of(&program->now);
	struct perfring_dwarf_row *last = program->is_open ? &rows->rows[rows->row_count - 1] : NULL;

	if (last && last->address > row.address) {
		end_sequence(rows, program, last->address);
		last = NULL;
	}
	if ((!last && !begin_sequence(rows, program)) ||
	    !perfring__dwarf_grow(rows->memory, &rows->rows, rows->row_count, &rows->row_capacity, sizeof(row)))
		return false;
	rows->rows[rows->row_count++] = row;
	return true;
}

/* ---- the program ---- */

static inline void advance(const struct program *program, struct registers *now, uint64_t by)
{
	uint64_t parts = now->part + by;

	if (program->most == 1) {
		now->address += program->least * by;
		return;
	}
	now->address += program->least * (parts / program->most);
	now->part = parts % program->most;
}

static const struct registers at_first = {.file = 1, .line = 1};

enum {
	COPY = 1,
	ADVANCE_PC,
	ADVANCE_LINE,
	SET_FILE,
	CONST_ADD_PC = 8,
	FIXED_ADVANCE_PC,
};

enum {
	END_SEQUENCE = 1,
	SET_ADDRESS,
	DEFINE_FILE,
};

static bool run_extended(struct perfring_dwarf_rows *rows, struct program *program)
{
	struct perfring_dwarf_bytes own = program->bytes;
	uint64_t length = perfring__dwarf_leb(&own);

	if (own.is_short || length > perfring__dwarf_left(&own))
		return false;
	own.end = program->bytes.at = own.at + length;
	switch (perfring__dwarf_take(&own, 1)) {
	case END_SEQUENCE:
		/* the last row may have a lower address than the register: addresses only ascend in a sequence */
		end_sequence(rows, program, program->now.address);
		program->now = at_first;
		return true;
	case SET_ADDRESS:
		program->now.address = perfring__dwarf_take(&own, length > 8 ? 8 : (unsigned)length - 1);
		program->now.part = 0;
		return true;
	case DEFINE_FILE:
		if (!rows->has_files)
			take_file(rows, program, &own);
		return true;
	default:
		return true;
	}
}

/* Runs one opcode that adds no row. */
static inline void run_standard(const struct program *program, unsigned opcode, struct perfring_dwarf_bytes *bytes,
				struct registers *now)
{
	uint64_t number;

	switch (opcode) {
	case ADVANCE_PC:
		advance(program, now, perfring__dwarf_leb(bytes));
		break;
	case ADVANCE_LINE:
		now->line += (uint64_t)perfring__dwarf_leb_signed(bytes);
		break;
	case SET_FILE:
		number = perfring__dwarf_leb(bytes);
		now->file = number < UINT32_MAX ? (uint32_t)number : UINT32_MAX;
		break;
	case CONST_ADD_PC:
		advance(program, now, (255u - program->opcodes) / program->range);
		break;
	case FIXED_ADVANCE_PC:
		now->address += perfring__dwarf_take(bytes, 2);
		now->part = 0;
		break;
	default:
		for (unsigned i = 0; i < program->lengths[opcode - 1]; i++)
			perfring__dwarf_leb(bytes);
		break;
	}
}

/* Most rows are of the same line as the last one, and differ in columns or views, which are not kept; or replace it, at the same address.
 * Returns whether this is one of them. */
static inline bool is_merged(struct perfring_dwarf_row *last, struct perfring_dwarf_row row)
{
	if (!last || last->address > row.address)
		return false;
	if (last->line == row.line && last->file == row.file)
		return true;
	if (last->address < row.address)
		return false;
	*last = row;
	return true;
}

/* Bytes and registers are local, so that they are kept in the processor's registers. */
static void run(struct perfring_dwarf_rows *rows, struct program *program)
{
	struct perfring_dwarf_bytes bytes = program->bytes;
	struct perfring_dwarf_row *last = NULL;
	struct registers now = at_first;

	while (!bytes.is_short && bytes.at < bytes.end) {
		unsigned opcode = *bytes.at++, step;
		bool is_row = opcode == COPY || opcode >= program->opcodes;

		if (opcode >= program->opcodes) {
			opcode -= program->opcodes;
			/* a division by gcc's and clang's value is faster as one by a constant */
			step = program->range == 14 ? opcode / 14 : opcode / program->range;
			advance(program, &now, step);
			now.line += (uint64_t)(program->base + (int)(opcode - step * program->range));
		} else if (opcode && !is_row) {
			run_standard(program, opcode, &bytes, &now);
			continue;
		}
		if (is_row && is_merged(last, row_of(&now)))
			continue;
		if (is_row && last && last->address < now.address && rows->row_count < rows->row_capacity) {
			last = &rows->rows[rows->row_count++];
			*last = row_of(&now);
			continue;
		}
		program->bytes = bytes;
		program->now = now;
		if (!(is_row ? add_row(rows, program) : run_extended(rows, program)))
			break;
		bytes = program->bytes;
		now = program->now;
		last = program->is_open ? &rows->rows[rows->row_count - 1] : NULL;
	}
	if (program->is_open && rows->row_count > rows->sequences[rows->sequence_count].first)
		end_sequence(rows, program, rows->rows[rows->row_count - 1].address);
}

static int compare_sequences(const void *a, const void *b)
{
	const struct perfring_dwarf_sequence *one = a, *other = b;

	if (one->start != other->start)
		return one->start < other->start ? -1 : 1;
	return one->first < other->first ? -1 : one->first > other->first;
}

int perfring__dwarf_rows_open(struct perfring_dwarf_rows *rows, const struct perfring_dwarf_unit *unit)
{
	struct program program = {.unit = *unit};
	int error;

	rows->memory = unit->file->memory;
	if (!unit->has_lines)
		return -ENODATA;
	error = take_header(rows, &program);
	if (!error)
		run(rows, &program);
	perfring__dwarf_space_return(&unit->file->parts, program.part, program.space);
	rows->has_files = true;
	rows->size = program.size;
	if (rows->sequence_count)
		qsort(rows->sequences, rows->sequence_count, sizeof(*rows->sequences), compare_sequences);
	return error;
}

void perfring__dwarf_rows_rest(struct perfring_dwarf_rows *rows, const struct perfring_dwarf_unit *unit)
{
	struct perfring_dwarf_memory *memory = unit->file->memory;

	perfring__dwarf_free(memory, rows->rows, rows->row_capacity, sizeof(*rows->rows));
	perfring__dwarf_free(memory, rows->sequences, rows->sequence_capacity, sizeof(*rows->sequences));
	rows->rows = NULL;
	rows->sequences = NULL;
	rows->row_count = rows->row_capacity = rows->sequence_count = rows->sequence_capacity = 0;
	unit->file->rows_left += rows->size;
	rows->size = 0;
}

void perfring__dwarf_rows_close(struct perfring_dwarf_rows *rows, const struct perfring_dwarf_unit *unit)
{
	struct perfring_dwarf_memory *memory = unit->file->memory;

	perfring__dwarf_rows_rest(rows, unit);
	perfring__dwarf_free(memory, rows->files, rows->file_capacity, sizeof(*rows->files));
	perfring__dwarf_free(memory, rows->folders, rows->folder_capacity, sizeof(*rows->folders));
}

/* ---- looking up ---- */

/* Rows are spread about evenly: starts at the row that the address would have then, and moves by steps of growing length.  Returns a
 * row at or below the address; *high: one above it. */
static uint32_t guess(const struct perfring_dwarf_row *rows, const struct perfring_dwarf_sequence *sequence,
		      uint64_t address, uint32_t *high)
{
	double share = (double)(address - sequence->start) / (double)(sequence->end - sequence->start);
	uint32_t at = (uint32_t)(share * sequence->count), step = 4;

	at = sequence->first + (at < sequence->count ? at : sequence->count - 1);
	*high = sequence->first + sequence->count;
	if (rows[at].address <= address) {
		for (; *high - at > step && rows[at + step].address <= address; step *= 2)
			at += step;
		*high = *high - at > step ? at + step : *high;
		return at;
	}
	for (*high = at; at - sequence->first > step && rows[at - step].address > address; step *= 2)
		*high = at -= step;
	return at - sequence->first > step ? at - step : sequence->first;
}

const struct perfring_dwarf_row *perfring__dwarf_rows_find(const struct perfring_dwarf_rows *rows, uint64_t address)
{
	const struct perfring_dwarf_sequence *sequence;
	uint32_t low = 0, high = rows->sequence_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (rows->sequences[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || address >= rows->sequences[low - 1].end)
		return NULL;
	sequence = &rows->sequences[low - 1];
	low = guess(rows->rows, sequence, address, &high);
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (rows->rows[middle].address <= address)
			low = middle;
		else
			high = middle;
	}
	return &rows->rows[low];
}

const char *perfring__dwarf_rows_file(struct perfring_dwarf_rows *rows, uint64_t number)
{
	struct perfring_dwarf_source *file = number < rows->file_count ? &rows->files[number] : NULL;
	const char *folder = file && file->folder < rows->folder_count ? rows->folders[file->folder] : NULL;
	size_t folder_size, size;

	if (!file || !file->name || !folder || *file->name == '/')
		return file ? file->name : NULL;
	if (file->path)
		return file->path;
	folder_size = strnlen(folder, PERFRING_LIMIT_NAME);
	size = strnlen(file->name, PERFRING_LIMIT_NAME);
	if (folder_size + size + 2 > PERFRING_LIMIT_NAME)
		return file->name;
	file->path = perfring__dwarf_text_space(rows->memory, folder_size + size + 2);
	if (!file->path)
		return NULL;
	memcpy(file->path, folder, folder_size);
	file->path[folder_size] = '/';
	memcpy(file->path + folder_size + 1, file->name, size + 1);
	return file->path;
}
