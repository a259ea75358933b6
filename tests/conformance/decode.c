/* decode.c - what perfring reads from vectors of the conformance suite, in its JSON (docs/conformance.md): a line for each file.
 *
 * A view of the tables, by the library alone.  Flag words are shown as they are in memory, which is right on little endian.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <perfring/file.h>
#include <perfring/sample.h>

static bool is_first = true;

static void key(const char *name)
{
	if (!is_first)
		putchar(',');
	if (name)
		printf("\"%s\":", name);
	is_first = false;
}

static void begin(const char *name, char bracket)
{
	key(name);
	putchar(bracket);
	is_first = true;
}

static void end(char bracket)
{
	putchar(bracket);
	is_first = false;
}

static void put_number(const char *name, uint64_t number)
{
	key(name);
	printf("%" PRIu64, number);
}

static void put_word(const char *name, uint64_t number)
{
	key(name);
	printf("\"0x%" PRIx64 "\"", number);
}

static void put_bytes(const char *name, const void *bytes, uint64_t size)
{
	key(name);
	putchar('"');
	for (uint64_t i = 0; i < size; i++)
		printf("%02x", ((const unsigned char *)bytes)[i]);
	putchar('"');
}

static void put_text(const char *name, const void *text, uint64_t size)
{
	key(name);
	putchar('"');
	for (uint64_t i = 0; i < size; i++) {
		unsigned char byte = ((const unsigned char *)text)[i];

		if (byte < 0x20 || byte >= 0x7f || byte == '"' || byte == '\\')
			printf("\\u%04x", byte);
		else
			putchar(byte);
	}
	putchar('"');
}

/* ---- attrs ---- */

static void put_attr(const char *name, const void *bytes, uint64_t size)
{
	unsigned char whole[144] = {0};
	uint32_t half;
	uint64_t word;

	memcpy(whole, bytes, size < sizeof(whole) ? size : sizeof(whole));
	begin(name, '{');
#define PERFRING_ATTR(member, offset, bytes_nr, show) \
	if ((bytes_nr) == 8) { \
		memcpy(&word, whole + (offset), 8); \
		if (word) \
			put_word(#member, word); \
	} else { \
		half = 0; \
		memcpy(&half, whole + (offset), bytes_nr); \
		if (half || (offset) < 8) \
			put_number(#member, half); \
	}
#include <perfring/values.def>
	end('}');
}

/* ---- fields ---- */

static void show_u16(const char *name, const uint16_t *number)
{
	put_number(name, *number);
}

static void show_u32(const char *name, const uint32_t *number)
{
	put_number(name, *number);
}

static void show_u64(const char *name, const uint64_t *number)
{
	put_word(name, *number);
}

static void show_weight(const char *name, const struct perfring_weight *weight)
{
	begin(name, '{');
	put_number("var1", weight->var1);
	put_number("var2", weight->var2);
	put_number("var3", weight->var3);
	end('}');
}

static void show_read(const char *name, const struct perfring_read *read)
{
	bool is_group = read->read_format & PERFRING_FORMAT_GROUP;

	begin(name, '{');
	if (read->read_format & PERFRING_FORMAT_TOTAL_TIME_ENABLED)
		put_word("enabled", read->enabled);
	if (read->read_format & PERFRING_FORMAT_TOTAL_TIME_RUNNING)
		put_word("running", read->running);
	if (is_group)
		begin("values", '[');
	for (uint64_t i = 0; i < read->nr; i++) {
		if (is_group)
			begin(NULL, '{');
		put_word("value", perfring_read_value(read, i));
		if (read->read_format & PERFRING_FORMAT_ID)
			put_word("id", perfring_read_id(read, i));
		if (read->read_format & PERFRING_FORMAT_LOST)
			put_word("lost", perfring_read_lost(read, i));
		if (is_group)
			end('}');
	}
	if (is_group)
		end(']');
	end('}');
}

static void show_words(const char *name, const struct perfring_list *list)
{
	begin(name, '[');
	for (uint64_t i = 0; i < list->nr; i++)
		put_word(NULL, list->words[i]);
	end(']');
}

#define show_list show_words

static void show_raw(const char *name, const struct perfring_raw *raw)
{
	put_bytes(name, raw->data, raw->size);
}

static void show_aux(const char *name, const struct perfring_aux *aux)
{
	put_bytes(name, aux->data, aux->size);
}

static void show_stack(const char *name, const struct perfring_stack *stack)
{
	begin(name, '{');
	put_bytes("bytes", stack->data, stack->size);
	if (stack->size)
		put_word("dyn_size", stack->dyn_size);
	end('}');
}

static void show_branch(const char *name, const struct perfring_branch_stack *stack)
{
	begin(name, '{');
	if (stack->has_hw_idx)
		put_word("hw_idx", stack->hw_idx);
	begin("entries", '[');
	for (uint64_t i = 0; i < stack->nr; i++) {
		begin(NULL, '{');
		put_word("from", stack->entries[i * 3]);
		put_word("to", stack->entries[i * 3 + 1]);
		put_word("flags", stack->entries[i * 3 + 2]);
		end('}');
	}
	end(']');
	if (stack->counters) {
		begin("counters", '[');
		for (uint64_t i = 0; i < stack->nr; i++)
			put_word(NULL, stack->counters[i]);
		end(']');
	}
	end('}');
}

static void show_regs(const char *name, const struct perfring_regs *regs)
{
	begin(name, '{');
	put_word("abi", regs->abi);
	begin("values", '[');
	for (uint32_t i = 0; i < regs->nr; i++)
		put_word(NULL, regs->values[i]);
	end(']');
	end('}');
}

/* A field goes by its member's name; of a pair the second half of cpu is not shown. */
#define SHOW_numbers(show, a, b) \
	put_number(#a, of->a); \
	if (strcmp(#b, "cpu_reserved")) \
		put_number(#b, of->b);
#define SHOW_number(show, a, b) show(#a, &of->a);
#define SHOW_own SHOW_number

static void put_sample(const struct perfring_sample *of)
{
#define PERFRING_FIELD(NAME, bit, kind, a, b, ...) \
	if (of->present & PERFRING_SAMPLE_##NAME) { \
		PERFRING_FIELD_BY(SHOW_, PERFRING_FIELD_KIND_##kind)(show_##kind, a, b) \
	}
#include <perfring/fields.def>
	if (of->trailing_size)
		put_bytes("trailing", of->trailing, of->trailing_size);
}

static void put_trailer(const struct perfring_trailer *of)
{
	begin("trailer", '{');
#define TRAILER_no(NAME, kind, a, b)
#define TRAILER_yes(NAME, kind, a, b) \
	if (of->present & PERFRING_SAMPLE_##NAME) { \
		PERFRING_FIELD_BY(SHOW_, PERFRING_FIELD_KIND_##kind)(show_##kind, a, b) \
	}
#define TRAILER_last TRAILER_yes
#define PERFRING_FIELD(NAME, bit, kind, a, b, trailer, ...) TRAILER_##trailer(NAME, kind, a, b)
#include <perfring/fields.def>
	end('}');
}

/* ---- members ---- */

static void show_string(const char *name, const struct perfring_string *string)
{
	put_text(name, string->data, string->size);
}

#define show_text64 show_string
#define show_text512 show_string

static void show_rest(const char *name, const struct perfring_bytes *bytes)
{
	put_bytes(name, bytes->data, bytes->size);
}

#define show_blob show_rest

static void show_id128(const char *name, const struct perfring_file_id *id)
{
	begin(name, '{');
	if (id->has_build_id) {
		put_bytes("build_id", id->build_id, id->build_id_size);
	} else {
		put_number("maj", id->maj);
		put_number("min", id->min);
		put_word("ino", id->ino);
		put_word("ino_generation", id->ino_generation);
	}
	end('}');
}

static void show_tag(const char *name, const struct perfring_tag *tag)
{
	put_bytes(name, tag->bytes, sizeof(tag->bytes));
}

static void show_links(const char *name, const struct perfring_links *links)
{
	begin(name, '[');
	for (uint64_t i = 0; i < links->nr; i++) {
		begin(NULL, '[');
		put_word(NULL, links->words[i * 2]);
		put_word(NULL, links->words[i * 2 + 1]);
		end(']');
	}
	end(']');
}

static void show_poke(const char *name, const struct perfring_poke *poke)
{
	begin(name, '{');
	put_bytes("old", poke->old_bytes, poke->old_len);
	put_bytes("new", poke->new_bytes, poke->new_len);
	end('}');
}

static void show_attr(const char *name, const struct perfring_bytes *attr)
{
	put_attr(name, attr->data, attr->size);
}

static void show_build_id(const char *name, const struct perfring_build_id *id)
{
	put_bytes(name, id->bytes, id->has_size ? id->size : sizeof(id->bytes));
}

static void show_index(const char *name, const struct perfring_index *index)
{
	static const char *const names[] = {"id", "idx", "cpu", "tid"};

	begin(name, '[');
	for (uint64_t i = 0; i < index->nr; i++) {
		begin(NULL, '{');
		for (uint64_t k = 0; k < 4; k++)
			put_word(names[k], index->entries[i * 4 + k]);
		if (index->machines) {
			put_word("machine_pid", index->machines[i * 2]);
			put_word("vcpu", index->machines[i * 2 + 1]);
		}
		end('}');
	}
	end(']');
}

static void show_threads(const char *name, const struct perfring_threads *threads)
{
	const char *entry = threads->data;
	uint64_t pid;

	begin(name, '[');
	for (uint64_t i = 0; i < threads->nr; i++, entry += 24) {
		memcpy(&pid, entry, 8);
		begin(NULL, '{');
		put_word("pid", pid);
		put_text("comm", entry + 8, strnlen(entry + 8, 16));
		end('}');
	}
	end(']');
}

static void show_metadata(const char *name, const struct perfring_metadata *metadata)
{
	const char *entry = metadata->data;

	begin(name, '[');
	for (uint64_t i = 0; i < metadata->nr; i++, entry += 320) {
		begin(NULL, '{');
		put_text("key", entry, strnlen(entry, 64));
		put_text("value", entry + 64, strnlen(entry + 64, 256));
		end('}');
	}
	end(']');
}

static void show_cpu_map(const char *name, const struct perfring_cpu_map *map)
{
	const unsigned char *bytes = map->data;
	uint64_t number;

	begin(name, '{');
	put_number("type", map->type);
	switch (map->type) {
	case PERFRING_CPU_MAP_CPUS:
	case PERFRING_CPU_MAP_MASK: {
		bool is_mask = map->type == PERFRING_CPU_MAP_MASK;
		size_t size = is_mask ? map->long_size : 2;

		begin(is_mask ? "mask" : "cpus", '[');
		for (uint32_t i = 0; i < map->nr; i++) {
			number = 0;
			memcpy(&number, bytes + i * size, size);
			if (is_mask)
				put_word(NULL, number);
			else
				put_number(NULL, number);
		}
		end(']');
		break;
	}
	case PERFRING_CPU_MAP_RANGE_CPUS:
		put_number("any_cpu", map->any_cpu);
		put_number("first", map->first);
		put_number("last", map->last);
		break;
	default:
		put_bytes("bytes", bytes, map->size);
		break;
	}
	end('}');
}

/* Absent where it is not there. */
static void show_conv(const char *name, const struct perfring_conv *conv)
{
	if (!conv->is_there)
		return;
	begin(name, '{');
	put_word("cycles", conv->cycles);
	put_word("mask", conv->mask);
	put_number("cap_zero", conv->cap_zero);
	put_number("cap_short", conv->cap_short);
	end('}');
}

static void put_members(const struct perfring_record *record)
{
	switch (record->type) {
#define PERFRING_RECORD(NAME, type, noun) \
	case (type): { \
		const struct perfring_record_##noun *is = &record->is.noun; \
		(void)is;
#define PERFRING_MEMBER(kind, member, show) show_##kind(#member, &is->member);
#define PERFRING_MEMBER_WHEN(when, kind, member, show) \
	if (when) \
		show_##kind(#member, &is->member);
#define PERFRING_RECORD_END(NAME, type, noun) \
	break; \
	}
#include <perfring/records.def>
	default:
		break;
	}
	if (record->trailing_size)
		put_bytes("trailing", record->trailing, record->trailing_size);
}

/* The payload of a HEADER_FEATURE record is with the features. */
static void put_record(const struct perfring_item *item)
{
	const struct perf_event_header *header = item->record;
	bool is_sample = header->type == PERFRING_RECORD_SAMPLE;
	struct perfring_record record;
	struct perfring_sample sample;
	int error;

	begin(NULL, '{');
	put_number("type", header->type);
	put_number("misc", header->misc);
	begin("members", '{');
	if (is_sample)
		error = item->format ? perfring_sample_decode(item->format, header, &sample, NULL) : -EINVAL;
	else
		error = perfring_record_decode(item->format, header, &record, NULL);
	if (!error && is_sample)
		put_sample(&sample);
	else if (!error && header->type == PERFRING_RECORD_HEADER_FEATURE)
		put_word("feature", record.is.header_feature.feature);
	else if (!error)
		put_members(&record);
	end('}');
	if (!error && !is_sample && record.trailer.present)
		put_trailer(&record.trailer);
	if (!error && is_sample)
		put_number("event", item->format->index);
	if (error) {
		key("damaged");
		fputs("true", stdout);
	}
	put_number("size", header->size);
	end('}');
}

/* ---- features, events ---- */

static uint32_t cpus_of(const struct perfring_file *file)
{
	uint64_t size;
	const void *payload = perfring_file_feature(file, PERFRING_FEATURE_NRCPUS, &size);
	uint32_t cpus = 0;

	if (payload && size >= 4)
		memcpy(&cpus, payload, 4);
	return cpus;
}

static void put_part(const struct perfring_layout_member *part)
{
	begin(NULL, '{');
	switch (part->kind) {
	case PERFRING_LAYOUT_NUMBER:
		if (part->size == 8)
			put_word(part->name, part->number);
		else
			put_number(part->name, part->number);
		break;
	case PERFRING_LAYOUT_STRING:
		put_text(part->name, part->bytes, part->size);
		break;
	case PERFRING_LAYOUT_ATTR:
		put_attr(part->name, part->bytes, part->size);
		break;
	default:
		if (!strcmp(part->name, "file"))
			put_text(part->name, part->bytes, strnlen(part->bytes, part->size));
		else
			put_bytes(part->name, part->bytes, part->size);
		break;
	}
	end('}');
}

/* Values alone, in their order: neither counts nor lengths nor padding, nor the mark of the byte order. */
static void put_features(const struct perfring_file *file)
{
	struct perfring_layout_walk walk;
	struct perfring_layout_member part;
	const void *payload;
	const char *name;
	char number[16];
	uint64_t size;

	begin("features", '{');
	for (uint32_t i = 0; i < PERFRING_FEATURE_BITS; i++) {
		payload = perfring_file_feature(file, i, &size);
		/* The HEADER_BUILD_ID records of a stream are among its records. */
		if (!payload || (i == PERFRING_FEATURE_BUILD_ID && perfring_file_is_pipe(file)))
			continue;
		name = perfring_feature_name(i);
		snprintf(number, sizeof(number), "%" PRIu32, i);
		begin(name ? name : number, '[');
		perfring_feature_open(&walk, i, payload, size, cpus_of(file));
		while (perfring_layout_next(&walk, &part) == 1)
			if (part.kind != PERFRING_LAYOUT_PADDING && part.use != PERFRING_LAYOUT_COUNT &&
			    part.use != PERFRING_LAYOUT_LENGTH && strcmp(part.name, "big_endian") &&
			    (i != PERFRING_FEATURE_BUILD_ID ||
			     (strcmp(part.name, "length") && strcmp(part.name, "reserved"))))
				put_part(&part);
		end(']');
	}
	end('}');
}

static void put_events(const struct perfring_file *file)
{
	uint32_t count = perfring_format_set_count(perfring_file_formats(file));
	uint64_t id;

	begin("events", '[');
	for (uint32_t i = 0; i < count; i++) {
		const struct perf_event_attr *attr = perfring_file_attr(file, i);

		begin(NULL, '{');
		put_attr("attr", attr, attr->size);
		begin("ids", '[');
		for (uint32_t k = 0; perfring_file_event_id(file, i, k, &id) == 1; k++)
			put_word(NULL, id);
		end(']');
		end('}');
	}
	end(']');
}

static void decode(const char *path)
{
	struct perfring_file *file = NULL;
	struct perfring_item item;
	int ret = perfring_file_open(&file, path);

	is_first = true;
	begin(NULL, '{');
	put_text("file", path, strlen(path));
	begin("records", '[');
	while (!ret) {
		item = (struct perfring_item){0};
		ret = perfring_file_next(file, &item);
		/* An error with a record is that record's. */
		if (ret == 1 || item.record) {
			put_record(&item);
			ret = 0;
		} else if (!ret) {
			break;
		}
	}
	end(']');
	/* A stream's features and events are those that its records had. */
	if (file) {
		put_events(file);
		put_features(file);
	}
	put_text("end", ret ? "damaged" : "whole", ret ? 7 : 5);
	end('}');
	putchar('\n');
	perfring_file_close(file);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		decode(argv[i]);
	return fflush(stdout) ? 1 : 0;
}
