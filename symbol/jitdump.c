/* jitdump.c - jitdump files: records of code that was made, moved, and of the lines of its sources.
 *
 *     header     u32 magic "JiTD", version, size of the header, ELF machine, padding, pid; u64 time, flags
 *     record     u32 id, size of the record; u64 time
 *       LOAD       u32 pid, tid; u64 vma, address, size, index; the name, NUL; the code
 *       MOVE       u32 pid, tid; u64 vma, old address, new address, size, index
 *       DEBUG_INFO u64 address, count; count entries: u64 address; s32 line, discriminator; the source's name, NUL: of the
 *                  next LOAD.  A name of the one byte 0xff is the one before
 *       CLOSE
 *
 * Numbers are in the byte order of the machine that wrote the file.
 *
 * perfring_jit_open_dump, advance and line of jit.h.  The file is read through a window, and grows while its process runs; each
 * size is compared with what the file has.
 */
#include <stdlib.h>
#include <sys/stat.h>

#include "jit_private.h"
#include "os/small_file.h"

enum {
	HEADER_SIZE = 40,
	RECORD_SIZE = 16,
	LOAD_SIZE = 56,
	MOVE_SIZE = 64,
	DEBUG_SIZE = 32,
	ENTRY_SIZE = 16,
	VERSION = 1,
	IS_COUNTER = 1, /* flag: times are a processor's counter */
};

enum {
	LOAD,
	MOVE,
	DEBUG_INFO,
	CLOSE,
};

static uint32_t u32_at(const struct perfring_jit *jit, const unsigned char *bytes)
{
	uint32_t value;

	memcpy(&value, bytes, sizeof(value));
	return jit->is_foreign ? __builtin_bswap32(value) : value;
}

static uint64_t u64_at(const struct perfring_jit *jit, const unsigned char *bytes)
{
	uint64_t value;

	memcpy(&value, bytes, sizeof(value));
	return jit->is_foreign ? __builtin_bswap64(value) : value;
}

/* `size` bytes of the file, at most the window's.  Returns 1 with *bytes, which are valid until the next call; 0: the file ends
 * before; -errno. */
static int read_at(struct perfring_jit *jit, uint64_t at, size_t size, const unsigned char **bytes)
{
	int64_t got;

	*bytes = NULL;
	if (at < jit->window_at || at - jit->window_at > jit->window_size ||
	    jit->window_size - (at - jit->window_at) < size) {
		jit->window_size = 0;
		got = perfring__os_file_pread(jit->fd, jit->window, PERFRING_JIT_WINDOW, at);
		if (got < 0)
			return (int)got;
		jit->window_at = at;
		jit->window_size = (uint64_t)got;
		if ((uint64_t)got < size)
			return 0;
	}
	*bytes = jit->window + (at - jit->window_at);
	return 1;
}

/* ---- records: each is whole in the file, and its size is at least that of its kind ---- */

/* Takes a LOAD record of `size` bytes.  Its name is the bytes before the code, up to a NUL. */
static int take_load(struct perfring_jit *jit, const unsigned char *record, uint32_t size)
{
	uint64_t address = u64_at(jit, record + 32), code = u64_at(jit, record + 40), debug = 0;
	uint64_t name_size = code > size - LOAD_SIZE ? 0 : size - LOAD_SIZE - code;
	const unsigned char *name;
	int there;

	if (jit->debug_at && jit->debug_of == address)
		debug = jit->debug_at;
	jit->debug_at = 0;
	if (name_size > PERFRING_JIT_NAME_MAX)
		name_size = PERFRING_JIT_NAME_MAX;
	there = read_at(jit, jit->at + LOAD_SIZE, (size_t)name_size, &name);
	if (there < 0)
		return there;
	if (!there || !name_size || !memchr(name, 0, (size_t)name_size)) {
		jit->counts.malformed++;
		return perfring__jit_forget(jit, address, perfring__jit_end(address, code));
	}
	return perfring__jit_put(jit, address, code, (const char *)name, strlen((const char *)name), debug);
}

/* Takes a MOVE record: moves the piece that begins at the old address.  Other names are removed from both places, also if no
 * known piece begins there: what is there now is code that no record has named. */
static int take_move(struct perfring_jit *jit, const unsigned char *record)
{
	uint64_t from = u64_at(jit, record + 32), to = u64_at(jit, record + 40), size = u64_at(jit, record + 48);
	const struct perfring_mapping *code = perfring__intervals_find(jit->codes, from);
	struct perfring_mapping moved = {.addr = to};
	uint64_t gone = perfring__jit_end(from, size), known = 0;
	int error;

	if (code && code->addr - code->pgoff == from) {
		moved = *code;
		moved.addr = to;
		known = code->end - from < size ? code->end - from : size;
		gone = code->end > gone ? code->end : gone;
	}
	moved.end = perfring__jit_end(to, known);
	/* first, so that a move needs no more pieces than there may be */
	error = perfring__jit_forget(jit, from, gone);
	if (!error)
		error = perfring__jit_forget(jit, moved.end, perfring__jit_end(to, size));
	return error || !known ? error : perfring__jit_put_code(jit, &moved);
}

static int take_record(struct perfring_jit *jit, const unsigned char *record, uint32_t id, uint32_t size)
{
	static const uint32_t least[] = {[LOAD] = LOAD_SIZE, [MOVE] = MOVE_SIZE, [DEBUG_INFO] = DEBUG_SIZE};

	if (id < sizeof(least) / sizeof(least[0]) && size < least[id]) {
		jit->counts.malformed++;
		return 0;
	}
	switch (id) {
	case LOAD:
		return take_load(jit, record, size);
	case MOVE:
		return take_move(jit, record);
	case DEBUG_INFO:
		jit->debug_at = jit->at;
		jit->debug_of = u64_at(jit, record + RECORD_SIZE);
		return 0;
	case CLOSE:
		jit->is_over = true;
		return 0;
	default:
		return 0;
	}
}

/* Whether the file has that many bytes by now. */
static bool has_bytes(struct perfring_jit *jit, uint64_t size)
{
	struct stat file;

	if (size > jit->file_size && !fstat(jit->fd, &file))
		jit->file_size = (uint64_t)file.st_size;
	return size <= jit->file_size;
}

/* Takes the next record.  Returns 1; 0: there is no whole one, or its time is later than `time`; -errno. */
static int take_next(struct perfring_jit *jit, uint64_t time)
{
	const unsigned char *bytes;
	uint32_t id, size;
	int there = read_at(jit, jit->at, RECORD_SIZE, &bytes), error;

	if (there != 1)
		return there;
	id = u32_at(jit, bytes);
	size = u32_at(jit, bytes + 4);
	if (size < RECORD_SIZE) {
		jit->is_over = true;
		jit->counts.malformed++;
		return -EBADMSG;
	}
	if (u64_at(jit, bytes + 8) > time || !has_bytes(jit, jit->at + size))
		return 0;
	there = read_at(jit, jit->at, size < MOVE_SIZE ? size : MOVE_SIZE, &bytes);
	if (there != 1)
		return there;
	jit->counts.taken++;
	error = take_record(jit, bytes, id, size);
	if (!error)
		jit->at += size;
	return error ? error : 1;
}

int perfring_jit_advance(struct perfring_jit *jit, uint64_t time)
{
	int one = 1;

	while (one == 1 && jit->fd >= 0 && !jit->is_over)
		one = take_next(jit, time);
	return one < 0 ? one : 0;
}

/* ---- lines ---- */

/* The name at this place of the record, which has `left` bytes more; NULL: it does not end there. */
static const char *name_of(const char *at, uint64_t left)
{
	return memchr(at, 0, (size_t)left) ? at : NULL;
}

/* Looks an address up in a DEBUG_INFO record of `size` bytes, whose addresses are those before the code was moved. */
static int find_line(const struct perfring_jit *jit, const unsigned char *record, uint64_t size, uint64_t offset,
		     const char **file, uint32_t *line)
{
	uint64_t start = u64_at(jit, record + RECORD_SIZE), count = u64_at(jit, record + RECORD_SIZE + 8);
	uint64_t at = DEBUG_SIZE, best = 0;
	const char *name = NULL, *previous = NULL;

	*file = NULL;
	for (uint64_t i = 0; i < count && size - at > ENTRY_SIZE; i++) {
		uint64_t address = u64_at(jit, record + at);
		const char *text = name_of((const char *)record + at + ENTRY_SIZE, size - at - ENTRY_SIZE);

		if (!text)
			break;
		name = strcmp(text, "\xff") ? text : previous;
		previous = name;
		if (name && address >= start && address - start <= offset && (!*file || address >= best)) {
			best = address;
			*file = name;
			*line = u32_at(jit, record + at + 8);
		}
		at += ENTRY_SIZE + strlen(text) + 1;
	}
	return *file ? 1 : 0;
}

int perfring_jit_line(const struct perfring_jit *jit, const struct perfring_jit_symbol *symbol, uint64_t ip, char *file,
		      size_t size, uint32_t *line)
{
	unsigned char head[8], *record;
	const char *found;
	uint32_t whole;
	int64_t got;
	int ret = 0;

	if (!symbol->debug || jit->fd < 0 || !size)
		return 0;
	got = perfring__os_file_pread(jit->fd, head, sizeof(head), symbol->debug);
	whole = got == sizeof(head) ? u32_at(jit, head + 4) : 0;
	if (whole < DEBUG_SIZE || whole > PERFRING_JIT_DEBUG_MAX)
		return got < 0 ? (int)got : 0;
	record = malloc(whole);
	if (!record)
		return -ENOMEM;
	got = perfring__os_file_pread(jit->fd, record, whole, symbol->debug);
	if (got == whole)
		ret = find_line(jit, record, whole, ip - symbol->start, &found, line);
	if (ret == 1) {
		size_t length = strlen(found);

		length = length < size ? length : size - 1;
		memcpy(file, found, length);
		file[length] = 0;
	}
	free(record);
	return got < 0 ? (int)got : ret;
}

/* ---- the header ---- */

static int read_header(struct perfring_jit *jit, struct perfring_jit_dump *about)
{
	static const unsigned char native[] = {'D', 'T', 'i', 'J'}, foreign[] = {'J', 'i', 'T', 'D'};
	static const uint16_t one = 1;
	bool is_little = *(const unsigned char *)&one;
	const unsigned char *bytes;
	uint32_t size;
	int there = read_at(jit, 0, HEADER_SIZE, &bytes);

	if (there != 1)
		return there ? there : -EBADMSG;
	if (!memcmp(bytes, native, 4))
		jit->is_foreign = !is_little;
	else if (!memcmp(bytes, foreign, 4))
		jit->is_foreign = is_little;
	else
		return -EBADMSG;
	size = u32_at(jit, bytes + 8);
	if (size < HEADER_SIZE || size > PERFRING_JIT_WINDOW)
		return -EBADMSG;
	if (u32_at(jit, bytes + 4) != VERSION || (u64_at(jit, bytes + 32) & IS_COUNTER))
		return -EOPNOTSUPP;
	*about = (struct perfring_jit_dump){.pid = u32_at(jit, bytes + 20),
					    .machine = u32_at(jit, bytes + 12),
					    .time = u64_at(jit, bytes + 24),
					    .is_foreign = jit->is_foreign};
	jit->at = size;
	return 0;
}

int perfring_jit_open_dump(struct perfring_jit **result, int fd, struct perfring_jit_dump *about)
{
	struct perfring_jit *jit;
	int error = perfring__jit_make(&jit);

	*result = NULL;
	*about = (struct perfring_jit_dump){0};
	if (error)
		return error;
	jit->fd = fd;
	jit->window = malloc(PERFRING_JIT_WINDOW);
	error = jit->window ? read_header(jit, about) : -ENOMEM;
	if (error) {
		jit->fd = -1; /* the caller's again */
		perfring_jit_close(jit);
		return error;
	}
	*result = jit;
	return 0;
}
