/* data_fuzz.c - any bytes as a perf.data file: opened, read to its end, every record and feature decoded, its samples as rows, on a
 * system in one of its moods. */
#include "read_data.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* The samples as rows, in all the space that they may have, and no more. */
static void fill_all(struct perfring_file *data, unsigned seed)
{
	static uint64_t times[16], chain_at[17], chain[PERFRING_ROWS_CHAIN_MIN + 64], raw_at[17];
	static unsigned char raw[PERFRING_ROWS_RAW_MIN + 512];
	struct perfring_rows rows = {
		.columns = {.time = times},
		.chain_at = chain_at,
		.chain = chain,
		.raw_at = raw_at,
		.raw = raw,
		.capacity = 1 + seed % 16,
		.chain_capacity = sizeof(chain) / sizeof(*chain),
		.raw_capacity = sizeof(raw),
		.stops = seed,
	};
	struct perfring_item item;
	int one;

	do {
		rows.count = 0;
		one = perfring_file_fill(data, &rows, &item);
		must(rows.count <= rows.capacity && (one != 1 || item.record || perfring_rows_is_full(&rows)));
		must(one != -EBADMSG || perfring_file_fault(data).what);
		if (rows.count)
			must(!chain_at[0] && chain_at[rows.count] <= rows.chain_capacity && !raw_at[0] &&
			     raw_at[rows.count] <= rows.raw_capacity);
	} while (one == 1 || (one < 0 && item.record));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	unsigned seed = (unsigned)size, mood = seed % 16;
	struct perfring_file *data = NULL;

	read_bytes(bytes, size, false, mood < MACHINE_MOODS ? mood : MACHINE_WHOLE, seed);
	machine_set(bytes, size, false, MACHINE_WHOLE, seed);
	if (!perfring_file_open(&data, MACHINE_PATH))
		fill_all(data, seed);
	perfring_file_close(data);
	must(machine_is_idle());
	return 0;
}
