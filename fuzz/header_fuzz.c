/* header_fuzz.c - any bytes as the payload of any feature, through the tool's own printer (dump --header -I): it comes to its
 * end, and what it prints is bounded by what the file holds.
 *
 * Bytes: the feature's number and how many CPUs NRCPUS says, one byte each, then the payload.  255 in place of the first: what
 * follows the second byte is a whole perf.data file. */
#include <stdio.h>
#include <stdlib.h>
#include <tools.h>
#include "machine.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

enum {
	LARGEST = 1 << 16,
	EVENTS = 4,
	ENTRY = PERF_ATTR_SIZE_VER0 + 16, /* an attr and the section of its ids */
	WHOLE = 255,
	/* What is printed whatever is in the file: the lines of the file itself and all that may be missing. */
	ALWAYS = 4096,
	/* Of each byte of the file: a word of attr's flags is 1.3 KiB of their names, a byte of text is \xHH. */
	PER_BYTE = 192,
};

static void must(bool held)
{
	if (!held)
		abort();
}

static void put(uint8_t *file, size_t at, uint64_t word)
{
	memcpy(file + at, &word, sizeof(word));
}

/* A file of some events, with NRCPUS and that feature. */
static size_t write_file(uint8_t *file, uint32_t feature, uint32_t cpus, const uint8_t *payload, size_t size)
{
	const size_t attrs = 104, record = attrs + EVENTS * ENTRY, index = record + 8;
	const bool is_cpus = feature == PERFRING_FEATURE_NRCPUS;
	size_t body = index + (is_cpus ? 16 : 32), at = index;

	memset(file, 0, body);
	memcpy(file, "PERFILE2", 8);
	put(file, 8, 104);
	put(file, 16, ENTRY);
	put(file, 24, attrs);
	put(file, 32, EVENTS * ENTRY);
	put(file, 40, record);
	put(file, 48, 8);
	put(file, 72 + PERFRING_FEATURE_NRCPUS / 64 * 8, UINT64_C(1) << PERFRING_FEATURE_NRCPUS % 64);
	put(file, 72 + feature / 64 * 8,
	    UINT64_C(1) << feature % 64 | (feature < 64 ? UINT64_C(1) << PERFRING_FEATURE_NRCPUS : 0));
	for (size_t i = 0; i < EVENTS; i++) {
		file[attrs + i * ENTRY] = 1; /* software */
		file[attrs + i * ENTRY + 4] = PERF_ATTR_SIZE_VER0;
		put(file, attrs + i * ENTRY + 8, i);
	}
	file[record] = PERFRING_RECORD_FINISHED_ROUND;
	file[record + 6] = 8;
	for (int i = 0; i < 2; i++) {
		bool is_payload = is_cpus || (i == 0) == (feature < PERFRING_FEATURE_NRCPUS);
		size_t length = is_payload ? size : 8;

		if (is_cpus && i)
			break;
		put(file, at, body);
		put(file, at + 8, length);
		at += 16;
		if (is_payload && size)
			memcpy(file + body, payload, size);
		else if (!is_payload)
			put(file, body, cpus | (uint64_t)cpus << 32);
		body += length;
	}
	return body;
}

/* stdout is a variable in glibc, for this. */
static size_t print(const struct perfring_file *data)
{
	FILE *console = stdout;
	char *text = NULL;
	size_t size = 0;

	stdout = open_memstream(&text, &size);
	must(stdout);
	tool_header_print(data, MACHINE_PATH, true);
	fclose(stdout);
	stdout = console;
	for (size_t i = 0; i < size; i++)
		must(text[i] == '\n' || (text[i] >= 0x20 && text[i] < 0x7f));
	free(text);
	return size;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	static uint8_t file[LARGEST];
	struct perfring_file *data = NULL;

	if (size < 2 || size > LARGEST / 2)
		return 0;
	if (bytes[0] == WHOLE) {
		machine_set(bytes + 2, size - 2, false, MACHINE_WHOLE, 0);
	} else {
		/* the first features are known, a few others are not; 0 is none */
		uint32_t feature = 1 + bytes[0] % 40;

		size = write_file(file, feature, bytes[1], bytes + 2, size - 2);
		machine_set(file, size, false, MACHINE_WHOLE, 0);
	}
	if (!perfring_file_open(&data, MACHINE_PATH))
		must(print(data) <= ALWAYS + PER_BYTE * size);
	perfring_file_close(data);
	must(machine_is_idle());
	return 0;
}
