/* layout.h - the first bytes of a perf.data file (docs/abi.md 11.1). */
#ifndef PERFRING_FEATURE_LAYOUT_H
#define PERFRING_FEATURE_LAYOUT_H

#include <stdint.h>

struct perfring_section {
	uint64_t offset;
	uint64_t size;
};

struct perfring_file_header {
	char magic[8];
	uint64_t size;
	uint64_t attr_size; /* of one attr entry: attr, then the section of its ids */
	struct perfring_section attrs;
	struct perfring_section data;
	struct perfring_section event_types;
	uint64_t features[4];
};

#define PERFRING_FILE_MAGIC "PERFILE2"
#define PERFRING_FILE_MAGIC_FOREIGN "2ELIFREP"
#define PERFRING_FILE_MAGIC_1 "PERFFILE"
#define PERFRING_FILE_HEADER_OLD 72 /* without the bits of the features */

#endif
