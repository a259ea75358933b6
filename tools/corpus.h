/* corpus.h - vectors of the conformance suite (docs/conformance.md): bytes, and beside them what a right decoder says of them.
 *
 * A draft grows two texts at once from the same numbers: the bytes, in the vector's byte order, and their JSON.  Nothing here
 * uses the library's codec, which is one of the decoders under test, and nothing depends on the machine: bytes are written one by
 * one, random numbers come from the vector's name.
 *
 * `perfring gen --corpus` writes them; tests/conformance compares decoders with them.
 */
#ifndef PERFRING_TOOLS_CORPUS_H
#define PERFRING_TOOLS_CORPUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	TOOL_CORPUS_VERSION = 1, /* changes with any byte of the corpus */
	TOOL_VECTOR_EVENTS = 4,
	TOOL_VECTOR_IDS = 4,
	TOOL_VECTOR_FEATURES = 40, /* feature bits that a vector may have */
	TOOL_VECTOR_PARTS = 4,     /* files beside `data` of a directory */
};

struct tool_blob {
	unsigned char *bytes;
	size_t size;
	size_t capacity;
};

struct tool_draft {
	struct tool_blob bytes;
	struct tool_blob json;
	bool is_big;  /* numbers are written with the highest byte first */
	bool is_mute; /* the JSON stays as it is: bytes of which a decoder says nothing */
	/* of the record that is being put */
	uint32_t event; /* 1 + its event; 0: not said */
	bool is_damaged;
};

/* Numbers of 1, 2 and 4 bytes are numbers in the JSON, those of 8 bytes strings "0x...".  key: "" in a list; NULL: not shown. */
void tool_put_u8(struct tool_draft *draft, const char *key, uint8_t number);
void tool_put_u16(struct tool_draft *draft, const char *key, uint16_t number);
void tool_put_u32(struct tool_draft *draft, const char *key, uint32_t number);
void tool_put_u64(struct tool_draft *draft, const char *key, uint64_t number);

/* A string of hexadecimal digits. */
void tool_put_bytes(struct tool_draft *draft, const char *key, const void *bytes, size_t size);

/* A string in `space` bytes, filled up with zeros; space 0: with a NUL, up to a multiple of 8 from where it begins. */
void tool_put_text(struct tool_draft *draft, const char *key, const char *text, size_t space);

/* A string of features: u32 length, and that number of bytes. */
void tool_put_string(struct tool_draft *draft, const char *key, const char *text);

void tool_put_zeros(struct tool_draft *draft, size_t size);

/* Bytes after which the draft has a multiple of 8, counted from `begin`. */
void tool_put_padding(struct tool_draft *draft, size_t begin);

/* A word of bit-fields: `widths` are those of its fields from bit 0 on, and end with 0; the rest of the word is one more.
 * bits: 32 or 64.  A big-endian writer has the fields in the other order, from the highest bit. */
void tool_put_fields(struct tool_draft *draft, const char *key, uint64_t word, unsigned bits, const uint8_t *widths);

/* An object or a list: bracket { or [, and the end of it. */
void tool_put_open(struct tool_draft *draft, const char *key, char bracket);
void tool_put_close(struct tool_draft *draft, char bracket);

/* JSON alone, of which there are no bytes. */
void tool_say_u64(struct tool_draft *draft, const char *key, uint64_t number);
void tool_say_number(struct tool_draft *draft, const char *key, uint64_t number);
void tool_say_text(struct tool_draft *draft, const char *key, const char *text);
void tool_say_true(struct tool_draft *draft, const char *key);

/* struct perf_event_attr as it lies in files; flags: bit n is bit n of little endian (docs/abi.md 1.4). */
struct tool_attr {
	uint32_t type, size;
	uint64_t config, sample_period, sample_type, read_format, flags;
	uint32_t wakeup_events, bp_type;
	uint64_t config1, config2, branch_sample_type, sample_regs_user;
	uint32_t sample_stack_user, clockid;
	uint64_t sample_regs_intr;
	uint32_t aux_watermark;
	uint16_t sample_max_stack, reserved_2;
	uint32_t aux_sample_size, aux_action;
	uint64_t sig_data, config3, config4;
};

/* The attr's bytes, as many as attr->size, and its members that are not 0. */
void tool_put_attr(struct tool_draft *draft, const char *key, const struct tool_attr *attr);

enum tool_vector_form {
	TOOL_VECTOR_FILE,
	TOOL_VECTOR_STREAM,
	TOOL_VECTOR_DIRECTORY,
};

enum tool_feature {
	TOOL_FEATURE_ABSENT,
	TOOL_FEATURE_PUT,
	TOOL_FEATURE_SAID, /* by a record of its own: it is in the golden JSON alone */
};

struct tool_vector {
	char name[96];
	char what[200];
	bool is_big;
	uint64_t random;
	enum tool_vector_form form;
	struct tool_attr attrs[TOOL_VECTOR_EVENTS];
	uint64_t ids[TOOL_VECTOR_EVENTS][TOOL_VECTOR_IDS];
	uint32_t ids_nr[TOOL_VECTOR_EVENTS];
	uint32_t events_nr;
	struct tool_draft data;
	struct tool_draft parts[TOOL_VECTOR_PARTS]; /* data.0 and so on */
	uint32_t parts_nr;
	struct tool_draft features[TOOL_VECTOR_FEATURES];
	enum tool_feature has_feature[TOOL_VECTOR_FEATURES];
	uint64_t time; /* of the last record */
	/* what is unusual about the file */
	uint32_t header_size; /* 0: 104 */
	uint32_t attr_entry;  /* bytes of an attr's entry; 0: the attr and its ids' place */
	bool is_version1;     /* PERFFILE */
	bool is_unfinished;   /* the writer died: data.size 0, no features */
	bool has_long_words;  /* feature bits in words of 32 bits */
	bool is_damaged;      /* a decoder reports it, after the records that are listed */
	bool has_order;       /* samples come out in this order */
	uint32_t cut;         /* bytes that are missing at the end of the file */
};

/* The next of the vector's random numbers, below `below`. */
uint64_t tool_vector_draw(struct tool_vector *vector, uint64_t below);

struct tool_draft *tool_vector_feature(struct tool_vector *vector, uint32_t feature);

/* A record: its header, then what the caller puts, then its end, which fills in its size.  Returns where it begins.
 * tool_record_begin opens "members". */
size_t tool_record_begin(struct tool_draft *draft, uint32_t type, uint16_t misc);
void tool_record_end(struct tool_draft *draft, size_t begin);

/* Another number of `size` bytes in the place of one that was put. */
void tool_draft_set(struct tool_draft *draft, size_t at, uint64_t number, unsigned size);

/* The records of the draft so far become COMPRESSED ones: a zstd frame of blocks that are stored as they are, `most` bytes
 * of records in each.  type: 81 or 83. */
void tool_draft_compress(struct tool_draft *draft, size_t most, uint32_t type, bool is_ended);

/* The same of one COMPRESSED record with blocks of the other kinds.  MATCH: the draft, a record of 56 bytes, comes out twice: as
 * literals, and as one match of them.  RUN: the equal bytes at the draft's end are a block of one byte and its count. */
enum tool_block {
	TOOL_BLOCK_MATCH,
	TOOL_BLOCK_RUN,
};

void tool_draft_compress_block(struct tool_draft *draft, enum tool_block block);

/* ---- families of vectors ---- */

/* make: the i-th of the family into a zeroed vector; false: there is none.  count: how many; 0: as many as make takes. */
struct tool_vector_family {
	bool (*make)(struct tool_vector *vector, uint32_t i);
	uint32_t count;
};

/* Those of corpus_files.c; the last has no make. */
extern const struct tool_vector_family tool_file_families[];

/* IDENTIFIER, IP, TID, TIME, CPU, PERIOD. */
#define TOOL_VECTOR_USUAL UINT64_C(0x10187)

/* Names a vector.  Its random numbers come from this name, to which the byte order is added: they are the same in both. */
void tool_vector_name(struct tool_vector *vector, const char *what, const char *form, ...)
	__attribute__((format(printf, 3, 4)));

/* One more event, of cpu-clock and so on, with one id. */
struct tool_attr *tool_vector_add_event(struct tool_vector *vector, uint64_t sample_type);

/* A sample of random numbers, later than the one before. */
void tool_vector_add_sample(struct tool_vector *vector, struct tool_draft *draft, uint32_t event);

bool tool_vector_has_family(uint32_t family);

/* The i-th vector of a family, in either order: false after the last. */
bool tool_vector_make(struct tool_vector *vector, uint32_t family, uint32_t i, bool is_big);
void tool_draft_free(struct tool_draft *draft);
void tool_vector_free(struct tool_vector *vector);

/* Writes the corpus into a folder, which is made and must not have been there.  Returns 0 or -errno, *path the name of what
 * could not be written, which the caller frees; *count the number of vectors. */
int tool_corpus_write(const char *folder, char **path, uint32_t *count);

#endif
