/* data_fuzz.c - any bytes as a perf.data file: opened, read to its end, every record and feature decoded. */
#include "read_data.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	char path[64];

	put(own_file(path), bytes, size, 0);
	read_path(path, (unsigned)size);
	return 0;
}
