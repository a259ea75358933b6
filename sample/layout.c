/* layout.c - a walk over bytes, part by part, by a layout.
 *
 * The interpreter of the small language that layout.h describes: for features, for the members of perf's own records, for
 * swapping, checks and random records.  One walk is one thread's.  Bytes are foreign, layouts are not; a walk has as many steps
 * as the bytes allow, and nests at most 4 lists.
 */
#include "layout_private.h"

#include <perfring/swap.h>

#include "attr.h"

static const char *const layouts[] = {
#define PERFRING_KIND(kind, type, layout) [PERFRING_KIND_##kind] = layout,
#include <perfring/kinds.def>
};

void perfring_layout_open(struct perfring_layout_walk *walk, const char *layout, const void *bytes, uint64_t at,
			  uint64_t size)
{
	memset(walk, 0, sizeof(*walk));
	walk->bytes = bytes;
	walk->at = at;
	walk->size = size;
	walk->part = layout;
	walk->has_rest = true;
}

static uint64_t *register_of(struct perfring_layout_walk *walk, char letter)
{
	return &walk->registers[(letter - 'a') % 26];
}

void perfring__layout_open_member(struct perfring_layout_walk *walk, enum perfring_kind kind, uint16_t misc,
				  const void *record, uint64_t at, uint64_t end)
{
	perfring_layout_open(walk, layouts[kind], record, at, end);
	walk->has_rest = false;
	*register_of(walk, 'm') = !!(misc & PERFRING_RECORD_MISC_MMAP_BUILD_ID);
	*register_of(walk, 's') = !!(misc & PERFRING_RECORD_MISC_BUILD_ID_SIZE);
}

void perfring__layout_open_field(struct perfring_layout_walk *walk, enum perfring_kind kind, uint64_t how,
				 const void *record, uint64_t at, uint64_t end)
{
	perfring_layout_open(walk, layouts[kind], record, at, end);
	walk->has_rest = false;
	if (kind == PERFRING_KIND_regs) {
		*register_of(walk, 'k') = how;
	} else if (kind == PERFRING_KIND_read) {
		*register_of(walk, 'g') = !!(how & PERFRING_FORMAT_GROUP);
		*register_of(walk, 'e') = !!(how & PERFRING_FORMAT_TOTAL_TIME_ENABLED);
		*register_of(walk, 'r') = !!(how & PERFRING_FORMAT_TOTAL_TIME_RUNNING);
		*register_of(walk, 'i') = !!(how & PERFRING_FORMAT_ID);
		*register_of(walk, 'l') = !!(how & PERFRING_FORMAT_LOST);
	} else if (kind == PERFRING_KIND_branch) {
		*register_of(walk, 'h') = !!(how & PERFRING_SAMPLE_BRANCH_HW_INDEX);
		*register_of(walk, 'c') = !!(how & PERFRING_SAMPLE_BRANCH_COUNTERS);
		*register_of(walk, 'z') = how >> 63;
	}
}

static int wrong(struct perfring_layout_walk *walk, const char *what)
{
	walk->fault.at = (int64_t)walk->at;
	walk->fault.what = what;
	walk->part = "";
	walk->at = walk->size;
	return -EBADMSG;
}

static uint64_t left_of(const struct perfring_layout_walk *walk)
{
	return walk->size - walk->at;
}

/* A generator or encoder writes a part before the walk reads it. */
static void fill(struct perfring_layout_walk *walk, struct perfring_layout_member *member)
{
	if (walk->fill)
		walk->fill(walk, member);
}

/* ---- reading a layout ---- */

static bool is_digit(char letter)
{
	return letter >= '0' && letter <= '9';
}

static uint64_t digits(const char *part, const char **end)
{
	uint64_t number = 0;

	while (is_digit(*part))
		number = number * 10 + (uint64_t)(*part++ - '0');
	if (end)
		*end = part;
	return number;
}

static const char *next_part(const char *part)
{
	part += strcspn(part, " ");
	return part + strspn(part, " ");
}

uint32_t perfring__layout_text_size(enum perfring_kind kind)
{
	return (uint32_t)digits(layouts[kind] + 1, NULL);
}

/* The part after the end of the list or condition that begins before `part`. */
static const char *after_close(const char *part)
{
	for (int open = 1; *part && open; part = next_part(part))
		open += (strcspn(part, "{(") < strcspn(part, " ")) - (*part == '}' || *part == ')');
	return part;
}

static uint32_t width_of(char letter)
{
	return letter == 'y' || letter == 'o'   ? 1
	       : letter == 'h'                  ? 2
	       : letter == 'w' || letter == 'W' ? 4
	       : letter == 'd' || letter == 'D' ? 8
						: 0;
}

/* Whether the condition "(X2" or "(X>2" holds. */
static bool holds(const struct perfring_layout_walk *walk, const char *part)
{
	uint64_t number = walk->registers[(part[1] - 'a') % 26];

	return part[2] == '>' ? number > digits(part + 3, NULL) : number == digits(part + 2, NULL);
}

/* The size of a part; 0: it depends on other bytes. */
static uint32_t space_of(const char *part)
{
	return strchr("0bcC", *part) ? (uint32_t)digits(part + 1, NULL) : width_of(*part);
}

uint32_t perfring__layout_least(enum perfring_kind kind)
{
	const char *part = layouts[kind];
	uint32_t least = 0;
	char chosen = 0; /* of the conditions on one register, the first counts */

	while (*part) {
		if (*part == '{' || *part == '~' || (*part == '(' && (is_digit(part[1]) || part[1] == chosen))) {
			part = after_close(next_part(part));
			continue;
		}
		if (*part == '(')
			chosen = part[1];
		least += *part == 'a' ? PERFRING_ATTR_MIN : space_of(part);
		if (*part == 'p' || !strncmp(part, "c*", 2))
			least = (least + (*part == 'c') + 7) & ~7u;
		part = next_part(part);
	}
	return least;
}

/* The size of each entry of the list whose parts begin here; 0: they differ. */
static uint32_t entry_of(const struct perfring_layout_walk *walk, const char *part)
{
	uint64_t size = 0, one;

	while (*part && *part != '}') {
		if (*part == '(' && !holds(walk, part)) {
			part = after_close(next_part(part));
			continue;
		}
		if (*part != '(' && *part != ')') {
			one = space_of(part);
			if (!one)
				return 0;
			size += one;
		}
		part = next_part(part);
	}
	return (uint32_t)size;
}

/* The use of the register that was set before `part`. */
static enum perfring_layout_use use_of(const struct perfring_layout_walk *walk, const char *part, char letter,
				       uint32_t *entry)
{
	for (; *part; part = next_part(part)) {
		const char *list = *part == '~' ? part + 1 : part;

		if (list[0] == '{' && list[1] == letter) {
			*entry = entry_of(walk, next_part(part));
			return PERFRING_LAYOUT_COUNT;
		}
		if ((*part == 'b' || *part == 'a') && part[1] == letter)
			return PERFRING_LAYOUT_LENGTH;
		if (*part == '(' && part[1] == letter)
			return PERFRING_LAYOUT_CHOICE;
	}
	return PERFRING_LAYOUT_VALUE;
}

/* The address of the current part.  A walk without bytes does not use it. */
static const void *bytes_at(const struct perfring_layout_walk *walk)
{
	return (const void *)((uintptr_t)walk->bytes + (uintptr_t)walk->at);
}

/* Reads the name after the letters of a part, and moves walk->part to the next one. */
static void take_name(struct perfring_layout_walk *walk, struct perfring_layout_member *member)
{
	const char *name = walk->part + strcspn(walk->part, ": ");
	size_t length;

	name += *name == ':';
	length = strcspn(name, " ");
	memcpy(member->name, name, length < sizeof(member->name) ? length : sizeof(member->name) - 1);
	walk->part = next_part(name);
}

/* ---- lists and conditions.  Each returns 1 with a part, 0 without one, or the error ---- */

/* Swaps a list of words at once.  Returns false for another list. */
static bool swap_list(struct perfring_layout_walk *walk, const char *begin, uint64_t count, uint32_t entry)
{
	unsigned char *bytes = (unsigned char *)(uintptr_t)bytes_at(walk);
	uint64_t words = count * (entry / 8), word, at;

	for (const char *part = begin; *part != '}'; part = next_part(part))
		if (!strchr("dD()", *part))
			return false;
	for (at = 0; at < words; at++) {
		memcpy(&word, bytes + 8 * at, sizeof(word));
		word = __builtin_bswap64(word);
		memcpy(bytes + 8 * at, &word, sizeof(word));
	}
	walk->at += 8 * at;
	return true;
}

static int begin_list(struct perfring_layout_walk *walk, struct perfring_layout_member *member)
{
	bool may_lack = *walk->part == '~';
	char times = walk->part[1 + may_lack];
	const char *begin = next_part(walk->part);
	uint32_t entry = entry_of(walk, begin);
	uint64_t count = times == 'C' ? walk->cpus : times >= 'a' ? *register_of(walk, times) : 0;

	*member = (struct perfring_layout_member){.kind = PERFRING_LAYOUT_PARTS, .entry = entry};
	if (walk->depth == sizeof(walk->lists) / sizeof(walk->lists[0]))
		return wrong(walk, "lists are nested too deep");
	if (times == '+') {
		if (!entry)
			return wrong(walk, "entries of no size");
		member->use = PERFRING_LAYOUT_COUNT;
		member->is_open = true;
		fill(walk, member);
		count = left_of(walk) / entry;
	} else if (times == '*') {
		count = left_of(walk) ? UINT64_MAX : 0;
	} else {
		if (may_lack && walk->fill && count) {
			member->use = PERFRING_LAYOUT_CHOICE;
			member->size = count * entry;
			fill(walk, member);
			count = member->number ? count : 0;
		}
		if (entry && count > left_of(walk) / entry) {
			if (!may_lack)
				return wrong(walk, "more entries than there are bytes for");
			count = 0;
		}
		/* Each entry has bytes, so a count that is too high ends with them. */
		if (count > UINT64_MAX / 2)
			count = UINT64_MAX / 2;
	}
	if (count && walk->order != LAYOUT_NATIVE && entry && count <= left_of(walk) / entry &&
	    swap_list(walk, begin, count, entry))
		count = 0;
	if (count && walk->is_whole) {
		*member = (struct perfring_layout_member){.kind = PERFRING_LAYOUT_PARTS, .number = count};
		member->bytes = bytes_at(walk);
		member->size = member->space = count * entry;
		fill(walk, member);
		take_name(walk, member);
		walk->at += member->size;
		walk->part = after_close(begin);
		return 1;
	}
	walk->part = count ? begin : after_close(begin);
	if (count) {
		walk->lists[walk->depth].begin = begin;
		walk->lists[walk->depth].left = count;
		walk->depth++;
		walk->begins = true;
	}
	return 0;
}

static void end_entry(struct perfring_layout_walk *walk)
{
	bool until_end = walk->lists[walk->depth - 1].left > UINT64_MAX / 2;

	if (--walk->lists[walk->depth - 1].left && !(until_end && walk->at == walk->size)) {
		walk->part = walk->lists[walk->depth - 1].begin;
		walk->begins = true;
		return;
	}
	walk->depth--;
	walk->part = next_part(walk->part);
}

static int begin_condition(struct perfring_layout_walk *walk, struct perfring_layout_member *member)
{
	bool is_named = walk->part[strcspn(walk->part, ": ")] == ':', is_there;

	*member = (struct perfring_layout_member){.kind = PERFRING_LAYOUT_PARTS, .use = PERFRING_LAYOUT_CHOICE};
	if (is_digit(walk->part[1])) {
		member->size = digits(walk->part + 1, NULL);
		fill(walk, member);
		is_there = walk->fill ? member->number : left_of(walk) >= member->size;
	} else {
		if (walk->is_whole && is_named && walk->fill) {
			fill(walk, member);
			*register_of(walk, walk->part[1]) = member->number;
		}
		is_there = holds(walk, walk->part);
	}
	if (is_there && walk->is_whole && is_named) {
		*member = (struct perfring_layout_member){.number = 1, .most = 1};
		take_name(walk, member);
		return 1;
	}
	walk->part = next_part(walk->part);
	if (!is_there)
		walk->part = after_close(walk->part);
	return 0;
}

/* ---- parts.  Each returns 1 or the error, and leaves walk->part before the name ---- */

static void swap_bytes(unsigned char *bytes, uint32_t size)
{
	for (uint32_t i = 0; i < size / 2; i++) {
		unsigned char one = bytes[i];

		bytes[i] = bytes[size - 1 - i];
		bytes[size - 1 - i] = one;
	}
}

/* The text after the letter of a number. */
struct suffix {
	char letter; /* of a register, or 0 */
	char sign;
	uint64_t other;
	const char *choices; /* "|4|8", or NULL */
	bool is_bound;       /* more than member->most is wrong */
};

static void take_suffix(struct perfring_layout_walk *walk, struct suffix *suffix, struct perfring_layout_member *member)
{
	const char *part = walk->part;

	*suffix = (struct suffix){.letter = 0};
	member->is_hex = *part == 'x';
	part += member->is_hex;
	if (*part == '=') {
		suffix->letter = part[1];
		part += 2;
		if (*part == '-' || *part == '/') {
			suffix->sign = *part;
			suffix->other = digits(part + 1, &part);
		}
		member->use = use_of(walk, next_part(part), suffix->letter, &member->entry);
	}
	if (*part == '|')
		suffix->choices = part;
	while (*part == '|')
		digits(part + 1, &part);
	if (*part == '<')
		member->most = digits(part + 1, &part);
	if (*part == '^') {
		member->most = *register_of(walk, part[1]);
		suffix->is_bound = true;
		part += 2;
	}
	walk->part = part;
}

static bool is_chosen(const char *choices, uint64_t number)
{
	while (*choices == '|')
		if (digits(choices + 1, &choices) == number)
			return true;
	return false;
}

static int take_number(struct perfring_layout_walk *walk, uint32_t size, struct perfring_layout_member *member)
{
	/* Swapping and filling are asked for only with bytes that are writable. */
	unsigned char *bytes = (unsigned char *)(uintptr_t)bytes_at(walk);
	bool is_order = *walk->part == 'o';
	struct suffix suffix;
	uint64_t kept;

	if (left_of(walk) < size)
		return wrong(walk, "ends inside a number");
	member->kind = PERFRING_LAYOUT_NUMBER;
	member->is_signed = *walk->part == 'W' || *walk->part == 'D';
	member->bytes = bytes;
	member->size = member->space = size;
	member->most = UINT64_MAX >> (64 - 8 * size);
	walk->part++;
	take_suffix(walk, &suffix, member);
	if (suffix.choices)
		member->number = digits(suffix.choices + 1, NULL);
	fill(walk, member);
	if (walk->fill && walk->bytes)
		perfring__number_put(bytes, size, member->number);
	if (walk->order == LAYOUT_FROM_FOREIGN)
		swap_bytes(bytes, size);
	kept = member->number = walk->bytes ? perfring__number_get(bytes, size) : member->number;
	if (walk->order == LAYOUT_TO_FOREIGN)
		swap_bytes(bytes, size);
	if (is_order && walk->order != LAYOUT_NATIVE)
		*bytes ^= 1;
	if (suffix.choices && !is_chosen(suffix.choices, kept))
		return wrong(walk, "number that is none of those valid");
	if (suffix.is_bound && kept > member->most)
		return wrong(walk, "number that is too high");
	walk->at += size;
	if (suffix.sign == '-' && kept < suffix.other)
		return wrong(walk, "size too small");
	if (suffix.sign)
		kept = suffix.sign == '-' ? kept - suffix.other : kept / suffix.other + (kept % suffix.other != 0);
	if (suffix.letter)
		*register_of(walk, suffix.letter) = kept;
	return 1;
}

/* An attr in place: by its own size (is_own), or within member->size bytes. */
static int take_attr(struct perfring_layout_walk *walk, struct perfring_layout_member *member, bool is_own)
{
	unsigned char *bytes = (unsigned char *)(uintptr_t)member->bytes;
	uint64_t space = is_own ? left_of(walk) : member->size;
	uint32_t own;

	member->kind = PERFRING_LAYOUT_ATTR;
	if (space < PERFRING_ATTR_MIN)
		return is_own ? wrong(walk, "ends inside an attr") : 1;
	fill(walk, member);
	if (walk->order == LAYOUT_NATIVE && !is_own)
		return 1;
	memcpy(&own, bytes + PERFRING_ATTR_AT_size, sizeof(own));
	if (walk->order == LAYOUT_FROM_FOREIGN)
		own = __builtin_bswap32(own);
	if (!own)
		own = PERFRING_ATTR_MIN;
	if (own < PERFRING_ATTR_MIN || own > space || own > PERFRING_ATTR_MAX) {
		/* Swapped all the same, so that the way back finds the same fault. */
		if (walk->order != LAYOUT_NATIVE)
			swap_bytes(bytes + PERFRING_ATTR_AT_size, 4);
		return wrong(walk, own < PERFRING_ATTR_MIN ? "attr shorter than any" : "attr longer than its bytes");
	}
	if (walk->order == LAYOUT_FROM_FOREIGN)
		perfring_attr_to_native((const void *)bytes, bytes, own);
	else if (walk->order == LAYOUT_TO_FOREIGN)
		perfring_attr_to_foreign((const void *)bytes, bytes, own);
	if (is_own)
		member->size = own;
	return 1;
}

static int take_bytes(struct perfring_layout_walk *walk, struct perfring_layout_member *member)
{
	bool is_attr = *walk->part == 'a', is_own = is_attr && walk->part[1] == '*';
	int one = 1;

	walk->part++;
	if (is_own)
		walk->part++;
	member->is_fixed = is_digit(*walk->part);
	if (member->is_fixed)
		member->size = digits(walk->part, &walk->part);
	else if (!is_own)
		member->size = *register_of(walk, *walk->part++);
	if (member->size > left_of(walk))
		return wrong(walk, "more bytes than there are");
	member->kind = PERFRING_LAYOUT_BYTES;
	if (is_attr)
		one = take_attr(walk, member, is_own);
	else
		fill(walk, member);
	member->space = member->size;
	return one;
}

static int take_string(struct perfring_layout_walk *walk, struct perfring_layout_member *member)
{
	bool is_counted = *walk->part == 's';
	const unsigned char *bytes, *nul;
	uint64_t size;
	int one;

	if (is_counted) {
		one = take_number(walk, 4, member);
		if (one < 0)
			return one;
		size = member->number;
		if (size > left_of(walk))
			return wrong(walk, "string longer than the bytes that are left");
	} else {
		size = left_of(walk);
		walk->part++;
	}
	bytes = bytes_at(walk);
	nul = size ? memchr(bytes, 0, (size_t)size) : NULL;
	if (!nul && (size || !is_counted))
		return wrong(walk, "string without an end");
	member->kind = PERFRING_LAYOUT_STRING;
	member->bytes = nul ? (const void *)bytes : "";
	member->size = nul ? (uint64_t)(nul - bytes) : 0;
	member->space = is_counted ? size : member->size + 1;
	return 1;
}

/* A string in a fixed number of bytes. */
static int take_chars(struct perfring_layout_walk *walk, struct perfring_layout_member *member)
{
	bool may_be_cut = *walk->part == 'C';
	uint64_t most = digits(walk->part + 1, NULL), left = left_of(walk);

	member->is_open = walk->part[1] == '*';
	walk->part += strcspn(walk->part, ": ");
	member->kind = PERFRING_LAYOUT_STRING;
	member->space = member->is_open || (may_be_cut && most > left) ? left : most;
	if (member->space > left || (may_be_cut && !left))
		return wrong(walk, "ends inside a string");
	fill(walk, member);
	if (member->is_open)
		member->space = left_of(walk);
	member->size = member->space ? strnlen(member->bytes, (size_t)member->space) : 0;
	return 1;
}

static int take_padding(struct perfring_layout_walk *walk, struct perfring_layout_member *member)
{
	uint64_t left = left_of(walk), size = -walk->at & 7;

	if (*walk->part == '0')
		size = digits(walk->part + 1, NULL);
	else if (size > left)
		size = left;
	walk->part += strcspn(walk->part, ": ");
	if (size > left)
		return wrong(walk, "ends inside padding");
	member->kind = PERFRING_LAYOUT_PADDING;
	member->size = member->space = size;
	fill(walk, member);
	return 1;
}

static int take_rest(struct perfring_layout_walk *walk, struct perfring_layout_member *member)
{
	walk->part++;
	member->kind = PERFRING_LAYOUT_BYTES;
	member->is_open = true;
	member->size = left_of(walk);
	fill(walk, member);
	member->size = member->space = left_of(walk);
	return 1;
}

static int take_part(struct perfring_layout_walk *walk, struct perfring_layout_member *member)
{
	switch (*walk->part) {
	case 's':
	case 'z':
		return take_string(walk, member);
	case 'a':
	case 'b':
		return take_bytes(walk, member);
	case 'c':
	case 'C':
		return take_chars(walk, member);
	case '0':
	case 'p':
		return take_padding(walk, member);
	case 'r':
		return take_rest(walk, member);
	default:
		return take_number(walk, width_of(*walk->part), member);
	}
}

int perfring_layout_next(struct perfring_layout_walk *walk, struct perfring_layout_member *member)
{
	int one;

	if (!walk || !walk->part)
		return -EINVAL;
	for (;;) {
		switch (*walk->part) {
		case 0:
			if (!walk->has_rest || walk->at == walk->size)
				return 0;
			walk->part = "r:rest";
			break;
		case '?':
			walk->part = walk->at == walk->size ? "" : next_part(walk->part);
			continue;
		case '{':
		case '~':
		case '(':
			if (!strncmp(walk->part, "{C", 2) && !walk->cpus) {
				walk->part = "";
				continue;
			}
			one = *walk->part == '(' ? begin_condition(walk, member) : begin_list(walk, member);
			if (one)
				return one;
			continue;
		case '}':
			end_entry(walk);
			continue;
		case ')':
			walk->part = next_part(walk->part);
			continue;
		default:
			break;
		}
		*member = (struct perfring_layout_member){
			.depth = walk->depth, .bytes = bytes_at(walk), .begins = walk->begins};
		walk->begins = false;
		one = take_part(walk, member);
		if (one < 0)
			return one;
		take_name(walk, member);
		if (member->kind != PERFRING_LAYOUT_NUMBER)
			walk->at += member->space;
		return 1;
	}
}
