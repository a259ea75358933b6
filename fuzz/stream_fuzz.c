/* stream_fuzz.c - any bytes as they come through a pipe, in pieces; what comes is what the same bytes give in a file. */
#include "read_data.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* Else it is a file's header, which no pipe can have. */
static bool is_stream(const uint8_t *bytes, size_t size)
{
	return size >= 16 &&
	       (!memcmp(bytes, "PERFILE2\x10\0\0\0\0\0\0", 16) || !memcmp(bytes, "2ELIFREP\0\0\0\0\0\0\0\x10", 16));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	unsigned seed = (unsigned)size, mood = seed % 16;
	uint64_t from_pipe;

	from_pipe = read_bytes(bytes, size, true, mood < MACHINE_CUT ? mood : MACHINE_WHOLE, seed);
	if (mood != MACHINE_FAULT && seed / 16 % 4 == 0 && is_stream(bytes, size))
		must(read_bytes(bytes, size, false, MACHINE_WHOLE, seed) == from_pipe);
	return 0;
}
