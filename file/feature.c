/* feature.c - payloads of features, member by member, as feature.def lays them out. */
#include <perfring/swap.h>

#include <perfring/feature.h>
#include <perfring/file.h>

#include "sample/attr.h"

enum {
	NATIVE,     /* read as it is */
	FROM_OTHER, /* read swapped, left native in its place */
	TO_OTHER,   /* read as it is, left swapped in its place */
};

static const struct {
	const char *name;
	const char *layout;
} known[] = {
#define PERFRING_FEATURE(NAME, bit, layout) [bit] = {#NAME, layout},
#include <perfring/feature.def>
};

const char *perfring_feature_name(uint32_t feature)
{
	return feature < sizeof(known) / sizeof(known[0]) ? known[feature].name : NULL;
}

void perfring_feature_open(struct perfring_feature_walk *walk, uint32_t feature, const void *payload, uint64_t size,
			   uint32_t cpus)
{
	memset(walk, 0, sizeof(*walk));
	walk->payload = payload;
	walk->size = size;
	walk->cpus = cpus;
	walk->part = perfring_feature_name(feature) ? known[feature].layout : "r:bytes";
}

static int wrong(struct perfring_feature_walk *walk, const char *what)
{
	walk->fault.at = (int64_t)walk->at;
	walk->fault.what = what;
	walk->part = "";
	walk->at = walk->size;
	return -EBADMSG;
}

static uint64_t *register_of(struct perfring_feature_walk *walk, char letter)
{
	return &walk->registers[(letter - 'a') % 26];
}

/* Behind the brace that closes the list which begins at `part`. */
static const char *behind_list(const char *part)
{
	for (int open = 1; *part && open; part++)
		open += (*part == '{') - (*part == '}');
	return part;
}

static void begin_list(struct perfring_feature_walk *walk)
{
	char times = walk->part[1];
	uint64_t count = times == '*'   ? walk->at < walk->size ? UINT64_MAX : 0
			 : times == 'C' ? walk->cpus
					: *register_of(walk, times);

	walk->part += 2;
	/* Every element has a number at least: a count that lies ends with the payload. */
	if (times != '*' && count > UINT64_MAX / 2)
		count = UINT64_MAX / 2;
	if (!count) {
		walk->part = behind_list(walk->part);
		return;
	}
	walk->lists[walk->depth].begin = walk->part;
	walk->lists[walk->depth].left = count;
	walk->depth++;
}

static void end_element(struct perfring_feature_walk *walk)
{
	bool until_end = walk->lists[walk->depth - 1].left > UINT64_MAX / 2;

	if (--walk->lists[walk->depth - 1].left && !(until_end && walk->at == walk->size)) {
		walk->part = walk->lists[walk->depth - 1].begin;
		return;
	}
	walk->depth--;
	walk->part++;
}

static void swap_bytes(unsigned char *bytes, uint32_t size)
{
	for (uint32_t i = 0; i < size / 2; i++) {
		unsigned char one = bytes[i];

		bytes[i] = bytes[size - 1 - i];
		bytes[size - 1 - i] = one;
	}
}

static uint64_t number_of(const unsigned char *bytes, uint32_t size)
{
	uint64_t number = 0;

	memcpy((unsigned char *)&number + (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? 8 - size : 0), bytes, size);
	return number;
}

/* A number at the walk's place, and what its part says to keep of it. */
static int take_number(struct perfring_feature_walk *walk, uint32_t size, struct perfring_feature_member *member)
{
	/* writable when it is to be swapped: the caller of perfring_feature_swap gave it so */
	unsigned char *bytes = (unsigned char *)(uintptr_t)(walk->payload + walk->at);

	if (walk->size - walk->at < size)
		return wrong(walk, "feature ends inside a number");
	if (walk->order == FROM_OTHER)
		swap_bytes(bytes, size);
	member->kind = PERFRING_FEATURE_NUMBER;
	member->number = number_of(bytes, size);
	member->bytes = bytes;
	member->size = size;
	if (walk->order == TO_OTHER)
		swap_bytes(bytes, size);
	walk->at += size;
	walk->part++;
	if (*walk->part == '=') {
		uint64_t kept = member->number;
		char letter = walk->part[1];

		walk->part += 2;
		if (*walk->part == '-' || *walk->part == '/') {
			char sign = *walk->part++;
			uint64_t other = 0;

			while (*walk->part >= '0' && *walk->part <= '9')
				other = other * 10 + (uint64_t)(*walk->part++ - '0');
			if (sign == '-' && kept < other)
				return wrong(walk, "size too small");
			kept = sign == '-' ? kept - other : kept / other + (kept % other != 0);
		}
		*register_of(walk, letter) = kept;
	}
	return 1;
}

static int take_bytes(struct perfring_feature_walk *walk, struct perfring_feature_member *member)
{
	bool is_attr = *walk->part++ == 'a';
	uint64_t size = 0;

	if (*walk->part >= 'a')
		size = *register_of(walk, *walk->part++);
	else
		while (*walk->part >= '0' && *walk->part <= '9')
			size = size * 10 + (uint64_t)(*walk->part++ - '0');
	if (size > walk->size - walk->at)
		return wrong(walk, "feature ends inside its bytes");
	member->kind = PERFRING_FEATURE_BYTES;
	member->bytes = walk->payload + walk->at;
	member->size = size;
	if (is_attr && walk->order != NATIVE && size >= PERFRING_ATTR_MIN) {
		union {
			struct perf_event_attr attr;
			unsigned char bytes[4096];
		} from, to;
		uint64_t room = size < sizeof(from) ? size : sizeof(from);
		int64_t length;

		memset(&from, 0, sizeof(from));
		memcpy(&from, member->bytes, (size_t)room);
		length = walk->order == FROM_OTHER ? perfring_attr_to_native(&from.attr, &to, (size_t)room)
						   : perfring_attr_to_foreign(&from.attr, &to, (size_t)room);
		if (length < 0) {
			/* turned as well, so that it is as wrong on the way back */
			swap_bytes((unsigned char *)(uintptr_t)member->bytes + PERFRING_ATTR_AT_size, 4);
			return wrong(walk, "attr.size");
		}
		memcpy((unsigned char *)(uintptr_t)member->bytes, &to, (size_t)length);
	}
	walk->at += size;
	return 1;
}

static int take_string(struct perfring_feature_walk *walk, struct perfring_feature_member *member)
{
	const unsigned char *bytes, *nul;
	bool is_counted = *walk->part == 's';
	uint64_t size;
	int error;

	if (is_counted) {
		error = take_number(walk, 4, member);
		if (error < 0)
			return error;
		size = member->number;
		if (size > walk->size - walk->at)
			return wrong(walk, "string longer than the feature");
	} else {
		size = walk->size - walk->at;
		walk->part++;
	}
	bytes = walk->payload + walk->at;
	nul = size ? memchr(bytes, 0, (size_t)size) : NULL;
	if (!nul && (size || !is_counted))
		return wrong(walk, "string without an end");
	member->kind = PERFRING_FEATURE_STRING;
	member->bytes = nul ? (const void *)bytes : "";
	member->size = nul ? (uint64_t)(nul - bytes) : 0;
	walk->at += is_counted ? size : member->size + 1;
	return 1;
}

static int take_rest(struct perfring_feature_walk *walk, struct perfring_feature_member *member)
{
	member->kind = PERFRING_FEATURE_BYTES;
	member->bytes = walk->payload + walk->at;
	member->size = walk->size - walk->at;
	walk->at = walk->size;
	walk->part++;
	return 1;
}

static void take_name(struct perfring_feature_walk *walk, struct perfring_feature_member *member)
{
	size_t length;

	if (*walk->part == ':')
		walk->part++;
	length = strcspn(walk->part, " ");
	if (length >= sizeof(member->name))
		length = sizeof(member->name) - 1;
	memset(member->name, 0, sizeof(member->name));
	memcpy(member->name, walk->part, length);
	walk->part += strcspn(walk->part, " ");
}

int perfring_feature_next(struct perfring_feature_walk *walk, struct perfring_feature_member *member)
{
	if (!walk || !walk->part)
		return -EINVAL;
	for (;;) {
		int one;

		walk->part += strspn(walk->part, " ");
		member->depth = walk->depth;
		switch (*walk->part) {
		case 0:
			if (walk->at == walk->size)
				return 0;
			take_rest(walk, member);
			walk->part = "";
			memcpy(member->name, "rest", sizeof("rest"));
			return 1;
		case '?':
			if (walk->at == walk->size)
				walk->part = "";
			else
				walk->part++;
			continue;
		case '{':
			if (walk->part[1] == 'C' && !walk->cpus)
				walk->part = "";
			else
				begin_list(walk);
			continue;
		case '}':
			end_element(walk);
			continue;
		case 'o':
			one = take_number(walk, 1, member);
			if (one == 1 && walk->order != NATIVE)
				*(unsigned char *)(uintptr_t)member->bytes ^= 1;
			break;
		case 'y':
			one = take_number(walk, 1, member);
			break;
		case 'h':
			one = take_number(walk, 2, member);
			break;
		case 'w':
			one = take_number(walk, 4, member);
			break;
		case 'd':
			one = take_number(walk, 8, member);
			break;
		case 's':
		case 'z':
			one = take_string(walk, member);
			break;
		case 'a':
		case 'b':
			one = take_bytes(walk, member);
			break;
		default:
			one = take_rest(walk, member);
			break;
		}
		if (one == 1)
			take_name(walk, member);
		return one;
	}
}

int perfring_feature_swap(uint32_t feature, void *payload, uint64_t size, uint32_t cpus, bool to_foreign)
{
	struct perfring_feature_member member;
	struct perfring_feature_walk walk;
	int one;

	perfring_feature_open(&walk, feature, payload, size, cpus);
	walk.order = to_foreign ? TO_OTHER : FROM_OTHER;
	while ((one = perfring_feature_next(&walk, &member)) == 1)
		;
	return one;
}
