/* demangle.c - demangling by libiberty, whose demanglers of C++ and of both Rust manglings may be linked into any program.
 *
 * It is what perf has built in, so that the texts are equal.
 *
 * The only file that calls libiberty.  symbols.c, symbol_table.c and frames.c demangle names when they are shown first.  Names
 * are foreign, and their text bounded.
 */
#include "demangle.h"

#ifdef PERFRING_HAS_IBERTY
#include <demangle.h>
#include <setjmp.h>
#include <string.h>

enum {
	NAME_MAX_SIZE = 4096, /* libiberty refuses names of more than 1 KiB */
};

struct text {
	char *at;
	size_t used, space;
	jmp_buf full;
};

/* A name of 1 KiB can stand for a text that never ends: what does not fit ends the demangler.  It holds nothing that
 * would have to be freed, but for the letters of one identifier of Rust that are not ASCII. */
static void put(const char *piece, size_t length, void *to)
{
	struct text *text = to;

	if (length >= text->space - text->used)
		longjmp(text->full, 1);
	memcpy(text->at + text->used, piece, length);
	text->used += length;
}

static bool is_mangled(const char *name)
{
	return name[0] == '_' && (name[1] == 'Z' || name[1] == 'R' || !strncmp(name, "_GLOBAL_", 8));
}

static bool demangle(const char *name, struct text *text)
{
	if (setjmp(text->full))
		return false;
	/* the older mangling ends with "17h" and a hash: what has none is not looked through */
	if ((name[1] == 'R' || strstr(name, "17h")) && rust_demangle_callback(name, DMGL_NO_OPTS, put, text))
		return true;
	text->used = 0;
	return cplus_demangle_v3_callback(name, DMGL_NO_OPTS, put, text) != 0;
}

size_t perfring__demangle(const char *name, char *buffer, size_t space)
{
	struct text text = {.at = buffer, .space = space};
	const char *version = is_mangled(name) ? strchrnul(name, '@') : name;
	char plain[NAME_MAX_SIZE];
	size_t length = (size_t)(version - name), rest = strlen(version);

	if (!length || length >= sizeof(plain))
		return 0;
	memcpy(plain, name, length);
	plain[length] = 0;
	if (!demangle(plain, &text) || !text.used || rest >= space - text.used)
		return 0;
	memcpy(buffer + text.used, version, rest + 1);
	return text.used + rest;
}

bool perfring__demangles(void)
{
	return true;
}
#else
size_t perfring__demangle(const char *name, char *text, size_t space)
{
	(void)name;
	(void)text;
	(void)space;
	return 0;
}

bool perfring__demangles(void)
{
	return false;
}
#endif
