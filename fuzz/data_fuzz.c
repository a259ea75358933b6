/* data_fuzz.c - any bytes as a perf.data file: opened, read to its end, every record and feature decoded, on a system in one
 * of its moods. */
#include "read_data.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	unsigned seed = (unsigned)size, mood = seed % 16;

	read_bytes(bytes, size, false, mood < MACHINE_MOODS ? mood : MACHINE_WHOLE, seed);
	return 0;
}
