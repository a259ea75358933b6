/* corpus.c - the files of the conformance suite: drafts of bytes and JSON, perf.data around them, the MANIFEST.
 *
 * gen.c calls tool_corpus_write.  The functions of corpus.h that put bytes and say JSON; the families of vectors are in
 * corpus_vectors.c and corpus_files.c.  SHA-256 of each file stands in the MANIFEST.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "corpus.h"
#include "tools.h"

/* ---- growing texts ---- */

static void grow(struct tool_blob *blob, const void *bytes, size_t size)
{
	if (blob->size + size > blob->capacity) {
		blob->capacity = (blob->size + size) * 2 + 256;
		blob->bytes = tool_allocate(blob->bytes, blob->capacity, 1);
	}
	if (size)
		memcpy(blob->bytes + blob->size, bytes, size);
	blob->size += size;
}

static void grow_text(struct tool_blob *blob, const char *text)
{
	grow(blob, text, strlen(text));
}

/* Writes a comma, unless it is the first, and the key. */
static bool say_key(struct tool_draft *draft, const char *key)
{
	unsigned char last = draft->json.size ? draft->json.bytes[draft->json.size - 1] : '[';

	if (!key || draft->is_mute)
		return false;
	if (last != '{' && last != '[')
		grow_text(&draft->json, ",");
	if (*key) {
		grow_text(&draft->json, "\"");
		grow_text(&draft->json, key);
		grow_text(&draft->json, "\":");
	}
	return true;
}

void tool_say_number(struct tool_draft *draft, const char *key, uint64_t number)
{
	char text[24];

	if (!say_key(draft, key))
		return;
	snprintf(text, sizeof(text), "%" PRIu64, number);
	grow_text(&draft->json, text);
}

void tool_say_u64(struct tool_draft *draft, const char *key, uint64_t number)
{
	char text[24];

	if (!say_key(draft, key))
		return;
	snprintf(text, sizeof(text), "\"0x%" PRIx64 "\"", number);
	grow_text(&draft->json, text);
}

/* Each byte is a character of its own, from U+0000 to U+00FF. */
static void say_string(struct tool_draft *draft, const char *key, const char *bytes, size_t size)
{
	char text[8];

	if (!say_key(draft, key))
		return;
	grow_text(&draft->json, "\"");
	for (; size; size--, bytes++) {
		unsigned char byte = (unsigned char)*bytes;

		if (byte < 0x20 || byte >= 0x7f || byte == '"' || byte == '\\')
			snprintf(text, sizeof(text), "\\u%04x", byte);
		else
			snprintf(text, sizeof(text), "%c", byte);
		grow_text(&draft->json, text);
	}
	grow_text(&draft->json, "\"");
}

void tool_say_text(struct tool_draft *draft, const char *key, const char *text)
{
	say_string(draft, key, text, strlen(text));
}

void tool_say_true(struct tool_draft *draft, const char *key)
{
	if (say_key(draft, key))
		grow_text(&draft->json, "true");
}

/* ---- numbers and bytes, and what they say ---- */

static void put_number(struct tool_blob *blob, uint64_t number, unsigned size, bool is_big)
{
	unsigned char bytes[8] = {0};

	for (unsigned i = 0; i < size; i++)
		bytes[is_big ? size - 1 - i : i] = (unsigned char)(number >> 8 * i);
	grow(blob, bytes, size);
}

#define PUT(bits, say) \
	void tool_put_u##bits(struct tool_draft *draft, const char *key, uint##bits##_t number) \
	{ \
		put_number(&draft->bytes, number, (bits) / 8, draft->is_big); \
		say(draft, key, number); \
	}
PUT(8, tool_say_number)
PUT(16, tool_say_number)
PUT(32, tool_say_number)
PUT(64, tool_say_u64)
#undef PUT

void tool_put_bytes(struct tool_draft *draft, const char *key, const void *bytes, size_t size)
{
	const unsigned char *byte = bytes;

	grow(&draft->bytes, bytes, size);
	if (!say_key(draft, key))
		return;
	grow_text(&draft->json, "\"");
	for (; size; size--, byte++) {
		char digits[2] = {"0123456789abcdef"[*byte >> 4], "0123456789abcdef"[*byte & 15]};

		grow(&draft->json, digits, 2);
	}
	grow_text(&draft->json, "\"");
}

void tool_put_zeros(struct tool_draft *draft, size_t size)
{
	for (; size; size--)
		grow(&draft->bytes, "", 1);
}

void tool_put_padding(struct tool_draft *draft, size_t begin)
{
	tool_put_zeros(draft, (8 - (draft->bytes.size - begin) % 8) % 8);
}

void tool_put_text(struct tool_draft *draft, const char *key, const char *text, size_t space)
{
	size_t size = strlen(text);

	if (!space)
		space = (size + 8) / 8 * 8;
	if (size > space)
		size = space;
	grow(&draft->bytes, text, size);
	tool_put_zeros(draft, space - size);
	say_string(draft, key, text, size);
}

void tool_put_string(struct tool_draft *draft, const char *key, const char *text)
{
	size_t space = (strlen(text) + 64) / 64 * 64;

	tool_put_u32(draft, NULL, (uint32_t)space);
	tool_put_text(draft, key, text, space);
}

void tool_put_fields(struct tool_draft *draft, const char *key, uint64_t word, unsigned bits, const uint8_t *widths)
{
	uint64_t turned = 0;
	unsigned at = 0, width;

	for (; at < bits; at += width) {
		width = *widths ? *widths++ : bits - at;
		turned |= (word >> at & (width == 64 ? UINT64_MAX : (UINT64_C(1) << width) - 1)) << (bits - at - width);
	}
	put_number(&draft->bytes, draft->is_big ? turned : word, bits / 8, draft->is_big);
	if (bits == 64)
		tool_say_u64(draft, key, word);
	else
		tool_say_number(draft, key, word);
}

void tool_put_open(struct tool_draft *draft, const char *key, char bracket)
{
	if (say_key(draft, key))
		grow(&draft->json, &bracket, 1);
}

void tool_put_close(struct tool_draft *draft, char bracket)
{
	if (!draft->is_mute)
		grow(&draft->json, &bracket, 1);
}

/* ---- attrs ---- */

static const uint8_t flag_widths[] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 1, 1, 1, 1,
				      1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0};
static const uint8_t action_widths[] = {1, 1, 1, 0};

static const char *shown(const char *key, uint64_t number)
{
	return number ? key : NULL;
}

void tool_put_attr(struct tool_draft *draft, const char *key, const struct tool_attr *attr)
{
	size_t begin = draft->bytes.size;

	/* One that is cut in the middle of a member has zeros in place of what is missing; its vector says what is left. */
	tool_put_open(draft, key, '{');
#define PUT(size, member) tool_put_u##size(draft, shown(#member, attr->member), attr->member)
	tool_put_u32(draft, "type", attr->type);
	tool_put_u32(draft, "size", attr->size);
	PUT(64, config);
	PUT(64, sample_period);
	PUT(64, sample_type);
	PUT(64, read_format);
	tool_put_fields(draft, shown("flags", attr->flags), attr->flags, 64, flag_widths);
	PUT(32, wakeup_events);
	PUT(32, bp_type);
	PUT(64, config1);
	PUT(64, config2);
	PUT(64, branch_sample_type);
	PUT(64, sample_regs_user);
	PUT(32, sample_stack_user);
	PUT(32, clockid);
	PUT(64, sample_regs_intr);
	PUT(32, aux_watermark);
	PUT(16, sample_max_stack);
	PUT(16, reserved_2);
	PUT(32, aux_sample_size);
	tool_put_fields(draft, shown("aux_action", attr->aux_action), attr->aux_action, 32, action_widths);
	PUT(64, sig_data);
	PUT(64, config3);
	PUT(64, config4);
#undef PUT
	tool_put_close(draft, '}');
	if (draft->bytes.size - begin > attr->size)
		draft->bytes.size = begin + attr->size;
	else
		tool_put_zeros(draft, attr->size - (draft->bytes.size - begin));
}

/* ---- records ---- */

void tool_draft_set(struct tool_draft *draft, size_t at, uint64_t number, unsigned size)
{
	for (unsigned i = 0; i < size; i++)
		draft->bytes.bytes[at + (draft->is_big ? size - 1 - i : i)] = (unsigned char)(number >> 8 * i);
}

size_t tool_record_begin(struct tool_draft *draft, uint32_t type, uint16_t misc)
{
	size_t begin = draft->bytes.size;

	tool_put_open(draft, "", '{');
	tool_put_u32(draft, "type", type);
	tool_put_u16(draft, "misc", misc);
	tool_put_u16(draft, NULL, 0);
	tool_put_open(draft, "members", '{');
	return begin;
}

void tool_record_end(struct tool_draft *draft, size_t begin)
{
	tool_draft_set(draft, begin + 6, draft->bytes.size - begin, 2);
	tool_put_close(draft, '}');
	if (draft->event)
		tool_say_number(draft, "event", draft->event - 1);
	if (draft->is_damaged)
		tool_say_true(draft, "damaged");
	draft->event = 0;
	draft->is_damaged = false;
	tool_say_number(draft, "size", draft->bytes.size - begin);
	tool_put_close(draft, '}');
}

enum {
	RECORD_COMPRESSED = 81,
	RECORD_COMPRESSED2 = 83,
	RECORD_HEADER_ATTR = 64,
	RECORD_HEADER_FEATURE = 80,
};

/* A frame's header: no checksum, no content size, a window of 2 MiB (RFC 8878). */
static const unsigned char zstd_frame[] = {0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x58};

enum {
	ZSTD_STORED = 0,
	ZSTD_RUN = 1,
	ZSTD_COMPRESSED = 2,
};

static void put_block(struct tool_draft *draft, bool is_last, unsigned kind, size_t size)
{
	put_number(&draft->bytes, is_last | kind << 1 | size << 3, 3, false);
}

void tool_draft_compress(struct tool_draft *draft, size_t most, uint32_t type, bool is_ended)
{
	struct tool_blob plain = draft->bytes;
	size_t at, size, begin;

	draft->bytes = (struct tool_blob){0};
	draft->is_mute = true;
	for (at = 0; at < plain.size; at += size) {
		size = plain.size - at < most ? plain.size - at : most;
		begin = tool_record_begin(draft, type, 0);
		if (type == RECORD_COMPRESSED2)
			tool_put_u64(draft, NULL, size + 3 + (at ? 0 : sizeof(zstd_frame)));
		if (!at)
			tool_put_bytes(draft, NULL, zstd_frame, sizeof(zstd_frame));
		put_block(draft, is_ended && at + size == plain.size, ZSTD_STORED, size);
		tool_put_bytes(draft, NULL, plain.bytes + at, size);
		if (type == RECORD_COMPRESSED2)
			tool_put_padding(draft, begin);
		tool_record_end(draft, begin);
	}
	draft->is_mute = false;
	free(plain.bytes);
}

/* Literals as they are, of a size of 12 bits; one sequence, whose three codes are the only ones of their tables: so its bits are
 * the codes' extra ones alone.  They are read from the last byte's highest bit that is set: of the offset (59 is 32 + 27 in 5
 * bits, and stands for 56), of the match's length (56 is 51 + 5 in 3), of the literals' (56 is 48 + 8 in 4). */
static void put_match(struct tool_draft *draft, const struct tool_blob *plain)
{
	static const unsigned char sequence[] = {1, 0x54, 24, 5, 38};

	put_block(draft, true, ZSTD_COMPRESSED, 2 + plain->size + sizeof(sequence) + 2);
	put_number(&draft->bytes, 1 << 2 | plain->size << 4, 2, false);
	tool_put_bytes(draft, NULL, plain->bytes, plain->size);
	tool_put_bytes(draft, NULL, sequence, sizeof(sequence));
	put_number(&draft->bytes, 1 << 12 | 27 << 7 | 5 << 4 | 8, 2, false);
}

void tool_draft_compress_block(struct tool_draft *draft, enum tool_block block)
{
	struct tool_blob plain = draft->bytes;
	size_t run = 1, begin, said = draft->json.size;

	if (block == TOOL_BLOCK_MATCH) { /* what a decoder says of it, twice */
		grow_text(&draft->json, ",");
		for (size_t i = 0; i < said; i++)
			grow(&draft->json, (const char[]){(char)draft->json.bytes[i]}, 1);
	}
	while (run < plain.size && plain.bytes[plain.size - 1 - run] == plain.bytes[plain.size - 1])
		run++;
	draft->bytes = (struct tool_blob){0};
	draft->is_mute = true;
	begin = tool_record_begin(draft, RECORD_COMPRESSED, 0);
	tool_put_bytes(draft, NULL, zstd_frame, sizeof(zstd_frame));
	if (block == TOOL_BLOCK_MATCH) {
		put_match(draft, &plain);
	} else {
		put_block(draft, false, ZSTD_STORED, plain.size - run);
		tool_put_bytes(draft, NULL, plain.bytes, plain.size - run);
		put_block(draft, true, ZSTD_RUN, run);
		tool_put_bytes(draft, NULL, plain.bytes + plain.size - 1, 1);
	}
	tool_record_end(draft, begin);
	draft->is_mute = false;
	free(plain.bytes);
}

/* ---- vectors ---- */

static uint64_t mix(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

uint64_t tool_vector_draw(struct tool_vector *vector, uint64_t below)
{
	return below ? mix(&vector->random) % below : mix(&vector->random);
}

struct tool_draft *tool_vector_feature(struct tool_vector *vector, uint32_t feature)
{
	struct tool_draft *draft = &vector->features[feature];

	draft->is_big = vector->is_big;
	vector->has_feature[feature] = TOOL_FEATURE_PUT;
	return draft;
}

void tool_draft_free(struct tool_draft *draft)
{
	free(draft->bytes.bytes);
	free(draft->json.bytes);
}

void tool_vector_free(struct tool_vector *vector)
{
	struct tool_draft *drafts[] = {&vector->data, vector->parts, vector->features};
	uint32_t counts[] = {1, TOOL_VECTOR_PARTS, TOOL_VECTOR_FEATURES};

	for (size_t k = 0; k < 3; k++)
		for (uint32_t i = 0; i < counts[k]; i++)
			tool_draft_free(&drafts[k][i]);
}

/* ---- perf.data around the records ---- */

static void join(struct tool_draft *to, const struct tool_draft *from)
{
	grow(&to->bytes, from->bytes.bytes, from->bytes.size);
}

static void put_magic(struct tool_draft *file, bool is_version1)
{
	if (is_version1)
		tool_put_bytes(file, NULL, "PERFFILE", 8);
	else
		tool_put_u64(file, NULL, UINT64_C(0x32454c4946524550));
}

static void put_attr_section(struct tool_draft *file, const struct tool_vector *vector, uint64_t ids_at)
{
	for (uint32_t i = 0; i < vector->events_nr; i++) {
		uint32_t size = vector->attrs[i].size;

		tool_put_attr(file, NULL, &vector->attrs[i]);
		tool_put_zeros(file, vector->attr_entry ? vector->attr_entry - 16 - size : 0);
		tool_put_u64(file, NULL, vector->ids_nr[i] ? ids_at : 0);
		tool_put_u64(file, NULL, vector->ids_nr[i] * 8);
		ids_at += vector->ids_nr[i] * 8;
	}
}

static void put_feature_bits(struct tool_draft *file, const struct tool_vector *vector)
{
	uint64_t bits = 0;

	for (uint32_t i = 0; i < TOOL_VECTOR_FEATURES && !vector->is_unfinished; i++)
		bits |= (uint64_t)(vector->has_feature[i] == TOOL_FEATURE_PUT) << i;
	if (vector->has_long_words) {
		tool_put_u32(file, NULL, (uint32_t)bits);
		tool_put_u32(file, NULL, (uint32_t)(bits >> 32));
	} else {
		tool_put_u64(file, NULL, bits);
	}
	tool_put_zeros(file, 24);
}

static void put_features(struct tool_draft *file, const struct tool_vector *vector)
{
	uint64_t at = file->bytes.size;

	for (uint32_t i = 0; i < TOOL_VECTOR_FEATURES; i++)
		at += vector->has_feature[i] == TOOL_FEATURE_PUT ? 16 : 0;
	for (uint32_t i = 0; i < TOOL_VECTOR_FEATURES; i++) {
		if (vector->has_feature[i] != TOOL_FEATURE_PUT)
			continue;
		tool_put_u64(file, NULL, at);
		tool_put_u64(file, NULL, vector->features[i].bytes.size);
		at += vector->features[i].bytes.size;
	}
	for (uint32_t i = 0; i < TOOL_VECTOR_FEATURES; i++)
		if (vector->has_feature[i] == TOOL_FEATURE_PUT)
			join(file, &vector->features[i]);
}

static void put_file(struct tool_draft *file, const struct tool_vector *vector)
{
	uint32_t header = vector->header_size ? vector->header_size : 104, ids = 0;
	uint64_t entry = vector->attr_entry ? vector->attr_entry : vector->attrs[0].size + 16, attrs_at;

	for (uint32_t i = 0; i < vector->events_nr; i++)
		ids += vector->ids_nr[i];
	attrs_at = header + ids * UINT64_C(8);
	put_magic(file, vector->is_version1);
	tool_put_u64(file, NULL, header);
	tool_put_u64(file, NULL, entry);
	tool_put_u64(file, NULL, attrs_at);
	tool_put_u64(file, NULL, entry * vector->events_nr);
	tool_put_u64(file, NULL, attrs_at + entry * vector->events_nr);
	tool_put_u64(file, NULL, vector->is_unfinished ? 0 : vector->data.bytes.size);
	tool_put_zeros(file, 16);
	if (header == 104)
		put_feature_bits(file, vector);
	for (uint32_t i = 0; i < vector->events_nr; i++)
		for (uint32_t k = 0; k < vector->ids_nr[i]; k++)
			tool_put_u64(file, NULL, vector->ids[i][k]);
	put_attr_section(file, vector, header);
	join(file, &vector->data);
	if (header == 104 && !vector->is_unfinished)
		put_features(file, vector);
}

/* The records that a stream begins with say what a file has in its header. */
static void put_stream(struct tool_draft *file, const struct tool_vector *vector)
{
	size_t begin;

	put_magic(file, false);
	tool_put_u64(file, NULL, 16);
	for (uint32_t i = 0; i < vector->events_nr; i++) {
		begin = tool_record_begin(file, RECORD_HEADER_ATTR, 0);
		tool_put_attr(file, "attr", &vector->attrs[i]);
		tool_put_open(file, "ids", '[');
		for (uint32_t k = 0; k < vector->ids_nr[i]; k++)
			tool_put_u64(file, "", vector->ids[i][k]);
		tool_put_close(file, ']');
		tool_record_end(file, begin);
	}
	for (uint32_t i = 0; i < TOOL_VECTOR_FEATURES; i++) {
		if (vector->has_feature[i] != TOOL_FEATURE_PUT)
			continue;
		begin = tool_record_begin(file, RECORD_HEADER_FEATURE, 0);
		tool_put_u64(file, "feature", i);
		join(file, &vector->features[i]);
		tool_record_end(file, begin);
	}
	join(file, &vector->data);
	if (file->json.size && vector->data.json.size)
		grow_text(&file->json, ",");
	grow(&file->json, vector->data.json.bytes, vector->data.json.size);
}

/* ---- the golden JSON ---- */

static const char *const form_names[] = {"file", "stream", "directory"};

static const char *const feature_names[TOOL_VECTOR_FEATURES] = {
	NULL,
	"TRACING_DATA",
	"BUILD_ID",
	"HOSTNAME",
	"OSRELEASE",
	"VERSION",
	"ARCH",
	"NRCPUS",
	"CPUDESC",
	"CPUID",
	"TOTAL_MEM",
	"CMDLINE",
	"EVENT_DESC",
	"CPU_TOPOLOGY",
	"NUMA_TOPOLOGY",
	"BRANCH_STACK",
	"PMU_MAPPINGS",
	"GROUP_DESC",
	"AUXTRACE",
	"STAT",
	"CACHE",
	"SAMPLE_TIME",
	"MEM_TOPOLOGY",
	"CLOCKID",
	"DIR_FORMAT",
	"BPF_PROG_INFO",
	"BPF_BTF",
	"COMPRESSED",
	"CPU_PMU_CAPS",
	"CLOCK_DATA",
	"HYBRID_TOPOLOGY",
	"PMU_CAPS",
	"CPU_DOMAIN_INFO",
	"E_MACHINE",
	"CLN_SIZE",
	"35",
	"36",
	"37",
	"38",
	"39",
};

static void put_golden(struct tool_draft *golden, struct tool_vector *vector, const struct tool_blob *records)
{
	tool_put_open(golden, "", '{');
	tool_say_number(golden, "version", TOOL_CORPUS_VERSION);
	tool_say_text(golden, "name", vector->name);
	tool_say_text(golden, "what", vector->what);
	tool_say_text(golden, "order", vector->is_big ? "big" : "little");
	tool_say_text(golden, "form", form_names[vector->form]);
	tool_put_open(golden, "events", '[');
	for (uint32_t i = 0; i < vector->events_nr; i++) {
		tool_put_open(golden, "", '{');
		tool_put_attr(golden, "attr", &vector->attrs[i]);
		tool_put_open(golden, "ids", '[');
		for (uint32_t k = 0; k < vector->ids_nr[i]; k++)
			tool_put_u64(golden, "", vector->ids[i][k]);
		tool_put_close(golden, ']');
		tool_put_close(golden, '}');
	}
	tool_put_close(golden, ']');
	tool_put_open(golden, "features", '{');
	for (uint32_t i = 0; i < TOOL_VECTOR_FEATURES && !vector->is_unfinished; i++) {
		if (!vector->has_feature[i])
			continue;
		tool_put_open(golden, feature_names[i], '[');
		grow(&golden->json, vector->features[i].json.bytes, vector->features[i].json.size);
		tool_put_close(golden, ']');
	}
	tool_put_close(golden, '}');
	if (vector->has_order)
		tool_say_true(golden, "in_order");
	tool_say_text(golden, "end", vector->is_damaged ? "damaged" : "whole");
	tool_put_open(golden, "records", '[');
	grow(&golden->json, records->bytes, records->size);
	tool_put_close(golden, ']');
	tool_put_close(golden, '}');
	grow_text(&golden->json, "\n");
}

/* ---- SHA-256 (FIPS 180-4) ---- */

static uint32_t turn(uint32_t word, unsigned by)
{
	return word >> by | word << (32 - by);
}

/* Fractions of the square roots of the first primes, and of their cube roots. */
static const uint32_t sha256_begin[8] = {
	0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
};

static const uint32_t sha256_words[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
	0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
	0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
	0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
	0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
	0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static void sha256_block(uint32_t state[8], const unsigned char *block)
{
	uint32_t w[64], v[8];

	for (unsigned i = 0; i < 16; i++)
		w[i] = (uint32_t)block[i * 4] << 24 | (uint32_t)block[i * 4 + 1] << 16 |
		       (uint32_t)block[i * 4 + 2] << 8 | block[i * 4 + 3];
	for (unsigned i = 16; i < 64; i++)
		w[i] = w[i - 16] + w[i - 7] + (turn(w[i - 15], 7) ^ turn(w[i - 15], 18) ^ w[i - 15] >> 3) +
		       (turn(w[i - 2], 17) ^ turn(w[i - 2], 19) ^ w[i - 2] >> 10);
	memcpy(v, state, sizeof(v));
	for (unsigned i = 0; i < 64; i++) {
		uint32_t t1 = v[7] + (turn(v[4], 6) ^ turn(v[4], 11) ^ turn(v[4], 25)) +
			      ((v[4] & v[5]) ^ (~v[4] & v[6])) + sha256_words[i] + w[i];
		uint32_t t2 = (turn(v[0], 2) ^ turn(v[0], 13) ^ turn(v[0], 22)) +
			      ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));

		memmove(v + 1, v, 7 * sizeof(*v));
		v[4] += t1;
		v[0] = t1 + t2;
	}
	for (unsigned i = 0; i < 8; i++)
		state[i] += v[i];
}

static void sha256(const struct tool_blob *blob, char hex[65])
{
	uint32_t state[8];
	unsigned char last[128] = {0};
	size_t whole = blob->size / 64 * 64, left = blob->size - whole, end = left < 56 ? 64 : 128;

	memcpy(state, sha256_begin, sizeof(state));
	for (size_t at = 0; at < whole; at += 64)
		sha256_block(state, blob->bytes + at);
	if (left)
		memcpy(last, blob->bytes + whole, left);
	last[left] = 0x80;
	for (unsigned i = 0; i < 8; i++)
		last[end - 1 - i] = (unsigned char)((uint64_t)blob->size * 8 >> 8 * i);
	for (size_t at = 0; at < end; at += 64)
		sha256_block(state, last + at);
	for (unsigned i = 0; i < 8; i++)
		snprintf(hex + i * 8, 9, "%08" PRIx32, state[i]);
}

/* ---- the folder ---- */

struct corpus {
	const char *folder;
	struct tool_draft manifest;
	uint32_t count;
	char *path; /* of what failed */
};

static int fail(struct corpus *corpus, const char *path)
{
	int error = errno;

	if (!corpus->path) {
		corpus->path = tool_allocate(NULL, strlen(path) + 1, 1);
		strcpy(corpus->path, path);
	}
	return -error;
}

static char *path_of(const struct corpus *corpus, const char *name)
{
	size_t size = strlen(corpus->folder) + strlen(name) + 2;
	char *path = tool_allocate(NULL, size, 1);

	snprintf(path, size, "%s/%s", corpus->folder, name);
	return path;
}

static int write_bytes(struct corpus *corpus, const char *name, const struct tool_blob *blob)
{
	char *path = path_of(corpus, name);
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666), ret = 0;
	ssize_t written = 0;

	if (fd < 0)
		ret = fail(corpus, path);
	for (size_t at = 0; !ret && at < blob->size; at += (size_t)written) {
		written = write(fd, blob->bytes + at, blob->size - at);
		if (written < 0)
			ret = fail(corpus, path);
	}
	if (fd >= 0 && close(fd) && !ret)
		ret = fail(corpus, path);
	free(path);
	return ret;
}

/* Writes the vector's file, and its line in the MANIFEST. */
static int write_file(struct corpus *corpus, const char *name, const struct tool_blob *blob)
{
	char hex[65], line[400];

	sha256(blob, hex);
	snprintf(line, sizeof(line), "%s %zu %s\n", hex, blob->size, name);
	grow_text(&corpus->manifest.json, line);
	return write_bytes(corpus, name, blob);
}

static int make_folder(struct corpus *corpus, const char *name)
{
	char *path = *name ? path_of(corpus, name) : NULL;
	int ret = mkdir(path ? path : corpus->folder, 0777) ? fail(corpus, path ? path : corpus->folder) : 0;

	free(path);
	return ret;
}

static int write_directory(struct corpus *corpus, const struct tool_vector *vector, const struct tool_draft *file)
{
	char name[160];
	int ret;

	snprintf(name, sizeof(name), "%s.data", vector->name);
	ret = make_folder(corpus, name);
	snprintf(name, sizeof(name), "%s.data/data", vector->name);
	if (!ret)
		ret = write_file(corpus, name, &file->bytes);
	for (uint32_t i = 0; i < vector->parts_nr && !ret; i++) {
		snprintf(name, sizeof(name), "%s.data/data.%" PRIu32, vector->name, i);
		ret = write_file(corpus, name, &vector->parts[i].bytes);
	}
	return ret;
}

static int write_vector(struct corpus *corpus, struct tool_vector *vector)
{
	struct tool_draft file = {.is_big = vector->is_big}, golden = {.is_big = vector->is_big}, records = {0};
	char name[128];
	int ret;

	if (vector->form == TOOL_VECTOR_STREAM) {
		put_stream(&file, vector);
		grow(&records.json, file.json.bytes, file.json.size);
	} else {
		put_file(&file, vector);
		grow(&records.json, vector->data.json.bytes, vector->data.json.size);
	}
	for (uint32_t i = 0; i < vector->parts_nr; i++) {
		if (records.json.size && vector->parts[i].json.size)
			grow_text(&records.json, ",");
		grow(&records.json, vector->parts[i].json.bytes, vector->parts[i].json.size);
	}
	file.bytes.size -= vector->cut;
	put_golden(&golden, vector, &records.json);
	if (vector->form == TOOL_VECTOR_DIRECTORY) {
		ret = write_directory(corpus, vector, &file);
	} else {
		snprintf(name, sizeof(name), "%s.data", vector->name);
		ret = write_file(corpus, name, &file.bytes);
	}
	snprintf(name, sizeof(name), "%s.json", vector->name);
	if (!ret)
		ret = write_file(corpus, name, &golden.json);
	tool_draft_free(&file);
	tool_draft_free(&golden);
	tool_draft_free(&records);
	return ret;
}

int tool_corpus_write(const char *folder, char **path, uint32_t *count)
{
	struct corpus corpus = {.folder = folder};
	static struct tool_vector vector;
	char line[80];
	int ret;

	snprintf(line, sizeof(line), "# perfring conformance corpus, version %d: sha256, bytes, file\n",
		 TOOL_CORPUS_VERSION);
	grow_text(&corpus.manifest.json, line);
	ret = make_folder(&corpus, "");
	for (uint32_t family = 0; !ret && tool_vector_has_family(family); family++) {
		/* Both byte orders of one, then the next. */
		for (uint32_t i = 0; !ret; i++) {
			bool is_there = tool_vector_make(&vector, family, i / 2, i % 2);

			if (is_there)
				ret = write_vector(&corpus, &vector);
			corpus.count += is_there;
			tool_vector_free(&vector);
			if (!is_there)
				break;
		}
	}
	if (!ret)
		ret = write_bytes(&corpus, "MANIFEST", &corpus.manifest.json);
	free(corpus.manifest.json.bytes);
	*path = corpus.path;
	*count = corpus.count;
	return ret;
}
