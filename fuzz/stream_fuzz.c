/* stream_fuzz.c - any bytes as they come through a pipe; what comes is what the same bytes give in a file. */
#include "read_data.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	size_t from_pipe, from_file;
	char path[64], name[64];
	int ends[2];

	if (size > 60000)
		return 0;
	must(!pipe(ends));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", ends[0]);
	/* no more than it holds, as nobody reads yet */
	must(write(ends[1], bytes, size) == (ssize_t)size);
	close(ends[1]);
	from_pipe = read_path(path, (unsigned)size);
	close(ends[0]);
	if (size < 16 || bytes[8] != 16)
		return 0;
	put(own_file(name), bytes, size, 0);
	from_file = read_path(name, (unsigned)size);
	must(from_pipe == from_file || size < 24);
	return 0;
}
