/* out.c - text by the million lines on its way to stdout. */
#include <stdlib.h>
#include "out.h"

struct perfring_out perfring_out;

void perfring_out_flush(size_t size)
{
	if (perfring_out.at)
		fwrite(perfring_out.text, 1, perfring_out.at, stdout);
	perfring_out.at = 0;
	if (perfring_out.room >= size)
		return;
	perfring_out.room = size < PERFRING_OUT_PIECE ? PERFRING_OUT_PIECE : size;
	perfring_out.text = perfring_tool_room(perfring_out.text, perfring_out.room, 1);
}

void perfring_out_close(void)
{
	free(perfring_out.text);
	perfring_out.text = NULL;
	perfring_out.at = perfring_out.room = 0;
}

void perfring_out_print(const char *text, bool solid)
{
	for (; *text; text++) {
		unsigned char byte = (unsigned char)*text;

		if (PERFRING_LIKELY(byte >= (solid ? 0x21 : 0x20) && byte < 0x7f)) {
			perfring_out_char(*text);
			continue;
		}
		perfring_out_text("\\x");
		perfring_out_char("0123456789abcdef"[byte >> 4]);
		perfring_out_char("0123456789abcdef"[byte & 15]);
	}
}
