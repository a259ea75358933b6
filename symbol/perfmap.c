/* perfmap.c - reads /tmp/perf-PID.map, in which a JIT names its code: lines "START SIZE NAME".
 *
 * jit.c calls it, in the thread that uses the perfring_jit. */
#include <stdlib.h>

#include "jit_private.h"
#include "os/small_file.h"

/* Reads a hexadecimal number, with or without 0x, of at most 16 digits, and the blank after it.  Returns where the text goes on, or
 * NULL. */
static const char *read_number(const char *text, const char *end, uint64_t *number)
{
	const char *at;

	if (end - text > 2 && text[0] == '0' && (text[1] | 0x20) == 'x')
		text += 2;
	*number = 0;
	for (at = text; at < end && at - text < 17; at++) {
		unsigned char digit = (unsigned char)*at;

		if (digit >= '0' && digit <= '9')
			*number = *number << 4 | (uint64_t)(digit - '0');
		else if ((digit | 0x20) >= 'a' && (digit | 0x20) <= 'f')
			*number = *number << 4 | (uint64_t)((digit | 0x20) - 'a' + 10);
		else
			break;
	}
	return at > text && at - text < 17 && at < end && *at == ' ' ? at + 1 : NULL;
}

static int take_line(struct perfring_jit *jit, const char *line, const char *end)
{
	uint64_t start, size = 0;
	const char *at = read_number(line, end, &start);

	jit->counts.taken++;
	if (at)
		at = read_number(at, end, &size);
	if (end > line && end[-1] == '\r')
		end--;
	if (!at || !size || at >= end || end - at > PERFRING_JIT_NAME_MAX || memchr(at, 0, (size_t)(end - at))) {
		jit->counts.malformed++;
		return at ? perfring__jit_forget(jit, start, perfring__jit_end(start, size)) : 0;
	}
	return perfring__jit_put(jit, start, size, at, (size_t)(end - at), 0);
}

/* Takes the lines of the text that have a newline.  is_last: the text ends with the file, so its last line needs none.  Returns the
 * number of bytes taken, or -ENOMEM. */
static int64_t take_lines(struct perfring_jit *jit, const char *text, size_t size, bool is_last)
{
	const char *at = text, *end = text + size, *line_end;
	int error = 0;

	while (at < end && !error) {
		line_end = memchr(at, '\n', (size_t)(end - at));
		if (!line_end && !is_last)
			break;
		line_end = line_end ? line_end : end;
		if (line_end > at)
			error = take_line(jit, at, line_end);
		at = line_end < end ? line_end + 1 : end;
	}
	return error ? error : at - text;
}

enum {
	BLOCK = 1 << 16, /* more than a line with the longest name */
};

/* Drops bytes of a line that is longer than the block, up to its newline if the block has it.  Returns their number. */
static size_t skip_line(const char *block, size_t size, bool *is_skipping)
{
	const char *end = memchr(block, '\n', size);

	*is_skipping = !end;
	return end ? (size_t)(end - block) + 1 : size;
}

static int read_all(struct perfring_jit *jit, int fd, char *block)
{
	uint64_t at = 0;
	size_t there = 0, from;
	bool is_skipping = false;
	int64_t got, taken;

	do {
		got = perfring__os_file_pread(fd, block + there, BLOCK - there, at);
		if (got < 0)
			return (int)got;
		there += (size_t)got;
		at += (uint64_t)got;
		if (at > PERFRING_JIT_FILE_MAX) {
			jit->counts.exceeded++;
			return 0;
		}
		from = is_skipping ? skip_line(block, there, &is_skipping) : 0;
		taken = take_lines(jit, block + from, there - from, !got);
		if (taken < 0)
			return (int)taken;
		from += (size_t)taken;
		if (!from && there == BLOCK) {
			taken = take_line(jit, block, block + there);
			if (taken < 0)
				return (int)taken;
			is_skipping = true;
			from = there;
		}
		there -= from;
		memmove(block, block + from, there);
	} while (got);
	return 0;
}

int perfring_jit_open_map(struct perfring_jit **jit, int fd)
{
	char *block = malloc(BLOCK);
	int error = block ? perfring__jit_make(jit) : -ENOMEM;

	if (!block)
		*jit = NULL;
	if (!error)
		error = read_all(*jit, fd, block);
	free(block);
	if (error) {
		perfring_jit_close(*jit);
		*jit = NULL;
	}
	return error;
}
