/* json_out.c - texts of JSON.
 *
 * All writers of JSON in profile/ put texts by it.  Names of programs are any bytes.
 */
#include "json_out.h"

#include <stdbool.h>
#include <stdint.h>

/* Bytes of the UTF-8 sequence that begins here; 0: it is none (RFC 3629). */
static unsigned sequence_at(const unsigned char *at)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	unsigned size = *at < 0xc2 ? 0 : *at < 0xe0 ? 2 : *at < 0xf0 ? 3 : *at < 0xf5 ? 4 : 0;
	uint32_t point = size ? *at & (0xffu >> (size + 1)) : 0;

	for (unsigned i = 1; i < size; i++) {
		if ((at[i] & 0xc0) != 0x80)
			return 0;
		point = point << 6 | (at[i] & 0x3f);
	}
	return size && point >= least[size] && point <= 0x10ffff && (point < 0xd800 || point > 0xdfff) ? size : 0;
}

static void put_text(FILE *out, const char *text, bool is_in_page)
{
	const unsigned char *at = (const unsigned char *)text;

	if (!text) {
		fputs("null", out);
		return;
	}
	putc_unlocked('"', out);
	while (*at) {
		unsigned size = *at < 0x80 ? 1 : sequence_at(at);

		if (!size) {
			fputs("\\ufffd", out);
			size = 1;
		} else if (*at == '"' || *at == '\\') {
			putc_unlocked('\\', out);
			putc_unlocked(*at, out);
		} else if (*at < 0x20 || *at == 0x7f || (is_in_page && *at == '<')) {
			fprintf(out, "\\u%04x", *at);
		} else {
			fwrite(at, 1, size, out);
		}
		at += size;
	}
	putc_unlocked('"', out);
}

void perfring__json_text(FILE *out, const char *text)
{
	put_text(out, text, false);
}

void perfring__json_page_text(FILE *out, const char *text)
{
	put_text(out, text, true);
}
