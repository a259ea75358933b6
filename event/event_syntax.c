/* event_syntax.c - events by name, in perf's syntax: text to attr and back.
 *
 * perfring_event_parse and perfring_event_name of event.h.  A text is parsed into a copy of the attr, so that nothing changes on
 * failure.  sysfs (pmu.c), tracefs (tracepoint.c) and libpfm4 (pfm.c) are asked where the text names their events; the tables of
 * hardware and cache events are values.def and the one here.  Faults have the offset in the text.
 */
#include <perfring/event.h>

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

#include "os/small_file.h"
#include "pmu.h"

int perfring__event_fault(struct perfring_fault *fault, size_t at, const char *what, int error)
{
	if (fault) {
		fault->at = (int64_t)at;
		fault->what = what;
	}
	return error;
}

int perfring__event_invalid(struct perfring_fault *fault, size_t at, const char *what)
{
	return perfring__event_fault(fault, at, what, -EINVAL);
}

/* ---- config, config1 .. by the attr's size: the installed header may lack some ---- */

static const uint8_t CONFIG_AT[PERFRING_CONFIGS] = {8, 56, 64, 128, 136};

void perfring__configs_get(const struct perf_event_attr *attr, uint64_t configs[PERFRING_CONFIGS])
{
	uint32_t bytes = perfring__attr_own_size(attr);

	for (size_t i = 0; i < PERFRING_CONFIGS; i++) {
		configs[i] = 0;
		if (CONFIG_AT[i] + 8U <= bytes)
			memcpy(&configs[i], (const unsigned char *)attr + CONFIG_AT[i], 8);
	}
}

int perfring__configs_set(struct perf_event_attr *attr, const uint64_t configs[PERFRING_CONFIGS])
{
	uint32_t bytes = perfring__attr_own_size(attr);

	for (size_t i = 0; i < PERFRING_CONFIGS; i++) {
		if (CONFIG_AT[i] + 8U <= bytes)
			memcpy((unsigned char *)attr + CONFIG_AT[i], &configs[i], 8);
		else if (configs[i])
			return -EINVAL;
	}
	return 0;
}

/* ---- modifiers ---- */

int64_t perfring__modifiers_parse(const char *text, size_t at, struct perfring_modifiers *modifiers,
				  struct perfring_fault *fault)
{
	size_t from = at;

	*modifiers = (struct perfring_modifiers){0, 0};
	for (; text[at] && !strchr(",} \t", text[at]); at++) {
		const char *letter = strchr(PERFRING_MODIFIERS, text[at]);

		if (text[at] == 'p') {
			if (++modifiers->precise > 3)
				return perfring__event_invalid(fault, at, "more than three p");
			continue;
		}
		if (!letter)
			return perfring__event_invalid(fault, at, "unknown modifier: one of u k h p P G H I S D e");
		if (modifiers->letters & 1U << (letter - PERFRING_MODIFIERS))
			return perfring__event_invalid(fault, at, "modifier given twice");
		modifiers->letters |= 1U << (letter - PERFRING_MODIFIERS);
	}
	if (at == from)
		return perfring__event_invalid(fault, at, "no modifier after the colon");
	return (int64_t)(at - from);
}

bool perfring__modifiers_has(const struct perfring_modifiers *modifiers, char letter)
{
	return modifiers->letters >> (strchr(PERFRING_MODIFIERS, letter) - PERFRING_MODIFIERS) & 1;
}

int perfring__modifiers_join(struct perfring_modifiers *modifiers, const struct perfring_modifiers *more)
{
	modifiers->letters |= more->letters;
	modifiers->precise += more->precise;
	return modifiers->precise > 3 ? -EINVAL : 0;
}

void perfring__modifiers_apply(const struct perfring_modifiers *modifiers, struct perf_event_attr *attr)
{
	bool user = perfring__modifiers_has(modifiers, 'u'), kernel = perfring__modifiers_has(modifiers, 'k');
	bool hypervisor = perfring__modifiers_has(modifiers, 'h');
	bool guest = perfring__modifiers_has(modifiers, 'G'), host = perfring__modifiers_has(modifiers, 'H');

	if (user || kernel || hypervisor) {
		attr->exclude_user = !user;
		attr->exclude_kernel = !kernel;
		attr->exclude_hv = !hypervisor;
	}
	if (guest || host) {
		attr->exclude_guest = !guest;
		attr->exclude_host = !host;
	}
	if (perfring__modifiers_has(modifiers, 'I'))
		attr->exclude_idle = 1;
	if (perfring__modifiers_has(modifiers, 'D'))
		attr->pinned = 1;
	if (perfring__modifiers_has(modifiers, 'e'))
		attr->exclusive = 1;
	if (modifiers->precise)
		attr->precise_ip = modifiers->precise & 3;
	if (perfring__modifiers_has(modifiers, 'P'))
		attr->precise_ip = 3;
}

uint32_t perfring__modifiers_guests(const struct perfring_modifiers *own, const struct perfring_modifiers *group,
				    struct perf_event_attr *attr)
{
	struct perfring_modifiers all = *own;

	if (group)
		perfring__modifiers_join(&all, group);
	if (perfring__modifiers_has(&all, 'G') || perfring__modifiers_has(&all, 'H'))
		return PERFRING_TERM_GUESTS;
	if (own->letters && !all.precise && !perfring__modifiers_has(&all, 'u') && !perfring__modifiers_has(&all, 'P'))
		attr->exclude_guest = 0;
	return 0;
}

/* ---- one text ---- */

/* What is parsed so far.  The caller's attr is written when all of the text is valid. */
struct parse {
	const char *root;
	const char *text;
	struct perfring_fault *fault;
	struct perf_event_attr attr; /* for the flags and the period */
	uint32_t type;
	uint32_t bp_type;
	uint64_t configs[PERFRING_CONFIGS];
	struct perfring_naming naming;
	struct perfring_modifiers modifiers;
};

static int parse_modifiers(struct parse *parse, size_t at)
{
	int64_t length = perfring__modifiers_parse(parse->text, at, &parse->modifiers, parse->fault);

	if (length < 0)
		return (int)length;
	if (parse->text[at + (size_t)length])
		return perfring__event_invalid(parse->fault, at + (size_t)length,
					       "unknown modifier: one of u k h p P G H I S D e");
	return 0;
}

/* "/TERM,TERM/" at `at`, and MODIFIERS or :MODIFIERS after it. */
static int parse_terms(struct parse *parse, const struct perfring_pmu *pmu, size_t at)
{
	const char *last = strchr(parse->text + at + 1, '/');
	size_t end;
	int error;

	if (!last)
		return perfring__event_invalid(parse->fault, strlen(parse->text), "no slash after the terms");
	end = (size_t)(last - parse->text);
	error = perfring__pmu_terms(pmu, parse->text, at + 1, end, parse->configs, &parse->attr, &parse->naming,
				    parse->fault);
	if (error)
		return error;
	if (!parse->text[++end])
		return 0;
	return parse_modifiers(parse, end + (parse->text[end] == ':'));
}

/* After a complete name: nothing, terms, or modifiers. */
static int parse_rest(struct parse *parse, size_t at)
{
	if (parse->text[at] == '/')
		return parse_terms(parse, NULL, at);
	return parse->text[at] == ':' ? parse_modifiers(parse, at + 1) : 0;
}

/* ---- breakpoints: mem:ADDR[/LEN][:rwx] ---- */

/* A number in perf's syntax: hexadecimal after 0x, otherwise decimal.  Returns its end, or NULL. */
static const char *number_at(const char *text, uint64_t *value)
{
	bool hexadecimal = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
	char *end;

	if (hexadecimal)
		text += 2;
	if (strspn(text, hexadecimal ? "0123456789abcdefABCDEF" : "0123456789") == 0)
		return NULL;
	errno = 0;
	*value = strtoull(text, &end, hexadecimal ? 16 : 10);
	return errno ? NULL : end;
}

static int parse_breakpoint(struct parse *parse)
{
	const char *text = parse->text, *at = text + strlen("mem:"), *end;
	uint64_t address, length = 0;
	unsigned type = 0;

	end = number_at(at, &address);
	if (!end)
		return perfring__event_invalid(parse->fault, (size_t)(at - text), "no address");
	at = end;
	if (*at == '/') {
		end = number_at(++at, &length);
		if (!end || (length != 1 && length != 2 && length != 4 && length != 8))
			return perfring__event_invalid(parse->fault, (size_t)(at - text),
						       "a length of 1, 2, 4 or 8 is expected");
		at = end;
	}
	if (*at == ':' && (at[1] == 'r' || at[1] == 'w' || at[1] == 'x')) {
		for (at++; *at && *at != ':'; at++) {
			unsigned bit = *at == 'r' ? 1 : *at == 'w' ? 2 : *at == 'x' ? 4 : 0;

			if (!bit || (type & bit))
				return perfring__event_invalid(parse->fault, (size_t)(at - text),
							       "only r, w and x are expected, each once");
			type |= bit;
		}
		if ((type & 4) && type != 4)
			return perfring__event_invalid(parse->fault, (size_t)(at - text) - 1,
						       "x does not go with r or w");
	}
	parse->type = PERFRING_TYPE_BREAKPOINT;
	parse->bp_type = type ? type : 3;
	parse->configs[1] = address;
	parse->configs[2] = length ? length : type == 4 ? sizeof(long) : 4;
	if (*at == ':')
		return parse_modifiers(parse, (size_t)(at - text) + 1);
	return *at ? perfring__event_invalid(parse->fault, (size_t)(at - text),
					     "/LEN, :rwx or :MODIFIERS is expected here")
		   : 0;
}

/* ---- cache events: CACHE[-OPERATION][-RESULT] ---- */

/* The first name of a row is the one that is written.  A row may end with empty names. */
static const char *const CACHES[][4] = {
	{"L1-dcache", "l1-d", "l1d", "L1-data"},
	{"L1-icache", "l1-i", "l1i", "L1-instruction"},
	{"LLC", "L2", "", ""},
	{"dTLB", "d-tlb", "Data-TLB", ""},
	{"iTLB", "i-tlb", "Instruction-TLB", ""},
	{"branch", "bpu", "btb", "bpc"},
	{"node", "", "", ""},
};
static const char *const OPERATIONS[][5] = {
	{"load", "loads", "read", "", ""},
	{"store", "stores", "write", "", ""},
	{"prefetch", "prefetches", "speculative-read", "speculative-load", ""},
};
static const char *const RESULTS[][3] = {{"refs", "Reference", "ops"}, {"access", "", ""}, {"misses", "miss", ""}};
static const uint8_t RESULT[] = {0, 0, 1};
static const uint8_t CAN[] = {7, 5, 7, 7, 1, 1, 7}; /* bits of operations, by cache: of any PMU */

/* The row with the word at the start of `text`, up to a '-' or its end; -1: none. */
static int row_of(const char *const *rows, unsigned count, unsigned width, const char *text, size_t length,
		  size_t *used)
{
	for (unsigned i = 0; i < count * width; i++) {
		size_t word = strlen(rows[i]);

		if (word && word <= length && !memcmp(rows[i], text, word) && (word == length || text[word] == '-')) {
			*used = word;
			return (int)(i / width);
		}
	}
	return -1;
}

#define ROW_OF(table, text, length, used) \
	row_of(&(table)[0][0], sizeof(table) / sizeof(*(table)), sizeof(*(table)) / sizeof(**(table)), text, length, \
	       used)

static bool parse_cache(struct parse *parse, size_t length)
{
	int cache, operation = -1, result = -1, row;
	const char *text = parse->text;
	size_t at, used;

	cache = ROW_OF(CACHES, text, length, &at);
	if (cache < 0)
		return false;
	while (at < length) {
		at++;
		row = operation < 0 ? ROW_OF(OPERATIONS, text + at, length - at, &used) : -1;
		if (row >= 0) {
			operation = row;
		} else {
			row = result < 0 ? ROW_OF(RESULTS, text + at, length - at, &used) : -1;
			if (row < 0)
				return false;
			result = RESULT[row];
		}
		at += used;
	}
	parse->type = PERFRING_TYPE_HW_CACHE;
	parse->configs[0] = (uint64_t)cache | (uint64_t)(operation < 0 ? 0 : operation) << 8 |
			    (uint64_t)(result < 0 ? 0 : result) << 16;
	return true;
}

static void name_cache(uint64_t config, char *buffer, size_t size)
{
	uint64_t cache = config & 255, operation = config >> 8 & 255, result = config >> 16;

	if (cache >= sizeof(CACHES) / sizeof(*CACHES) || operation > 2 || result > 1)
		return;
	snprintf(buffer, size, "%s-%s%s", CACHES[cache][0], OPERATIONS[operation][!result], result ? "-misses" : "");
}

bool perfring__cache_name(unsigned i, char *buffer, size_t size)
{
	for (unsigned cache = 0; cache < sizeof(CAN); cache++)
		for (unsigned operation = 0; operation < 3; operation++)
			for (unsigned result = 0; result < 2; result++)
				if ((CAN[cache] >> operation & 1) && !i--) {
					name_cache(cache | operation << 8 | result << 16, buffer, size);
					return true;
				}
	return false;
}

/* ---- all of them ---- */

static bool is_word(const char *text, size_t length, const char *word)
{
	return *word && strlen(word) == length && !memcmp(text, word, length);
}

/* "PMU/..." */
static int parse_pmu(struct parse *parse, size_t length)
{
	struct perfring_pmu pmu;
	int error = perfring__pmu_open(&pmu, parse->root, parse->text, length);

	if (error == -EINVAL)
		return perfring__event_invalid(parse->fault, 0, "not a PMU's name");
	if (error == -EBADMSG)
		return perfring__event_invalid(parse->fault, 0, "the PMU's type in sysfs is not a number");
	if (error)
		return perfring__event_fault(
			parse->fault, 0,
			error == -ENOENT ? "no such PMU: /sys/bus/event_source/devices has those of this machine"
					 : "the PMU's files in sysfs cannot be read",
			error);
	parse->type = pmu.type;
	perfring__pmu_cpus(&pmu, parse->naming.cpus, sizeof(parse->naming.cpus));
	error = parse_terms(parse, &pmu, length);
	perfring__pmu_close(&pmu);
	return error;
}

/* An event of any PMU, without the PMU's name.  Returns -ENOENT when there is none. */
static int parse_bare(struct parse *parse, size_t length)
{
	char name[PERFRING_PMU_NAME];
	struct perfring_pmu pmu;
	int error;

	if (!perfring__pmu_is_event(parse->text, length) || memchr(parse->text, ',', length) ||
	    memchr(parse->text, '=', length) || perfring__pmu_of_event(parse->root, parse->text, length, name))
		return -ENOENT;
	error = perfring__pmu_open(&pmu, parse->root, name, strlen(name));
	if (error)
		return error;
	parse->type = pmu.type;
	perfring__pmu_cpus(&pmu, parse->naming.cpus, sizeof(parse->naming.cpus));
	error = perfring__pmu_terms(&pmu, parse->text, 0, length, parse->configs, &parse->attr, &parse->naming,
				    parse->fault);
	perfring__pmu_close(&pmu);
	return error ? error : parse_rest(parse, length);
}

/* The first `length` bytes of the text as a name of libpfm4's; letters: where modifiers begin, or 0. */
static int parse_pfm_cut(struct parse *parse, size_t length, size_t letters)
{
	char name[512];
	int error;

	if (length >= sizeof(name))
		return -ENOENT;
	memcpy(name, parse->text, length);
	name[length] = 0;
	error = perfring__pfm_parse(name, parse->configs, &parse->attr);
	if (error)
		return error;
	parse->type = parse->attr.type;
	return letters ? parse_modifiers(parse, letters) : 0;
}

/* libpfm4's names have colons and letters of their own: the modifiers u k h p come first, any other letter is libpfm4's
 * if it knows it there (an edge, a state of a cache line). */
static int parse_pfm(struct parse *parse)
{
	const char *last = strrchr(parse->text, ':');
	size_t whole = strlen(parse->text), cut = last ? (size_t)(last - parse->text) : 0;
	struct perfring_modifiers modifiers;
	int error = -ENOENT;

	if (cut && (last[-1] == ':' || perfring__modifiers_parse(parse->text, cut + 1, &modifiers, NULL) < 0))
		cut = 0;
	if (cut && !last[1 + strspn(last + 1, "ukhp")])
		error = parse_pfm_cut(parse, cut, cut + 1);
	if (error)
		error = parse_pfm_cut(parse, whole, 0);
	if (error && cut)
		error = parse_pfm_cut(parse, cut, cut + 1);
	return error;
}

static int parse_text(struct parse *parse)
{
	const char *text = parse->text, *colon, *second;
	size_t length = strcspn(text, ":/");
	int error;

	if (!length)
		return perfring__event_invalid(parse->fault, 0, "no event");
	if (!strncmp(text, "mem:", 4))
		return parse_breakpoint(parse);

#define PERFRING_EVENT(name, alias, event_type, event_config) \
	if (is_word(text, length, name) || is_word(text, length, alias)) { \
		parse->type = (event_type); \
		parse->configs[0] = (event_config); \
		return parse_rest(parse, length); \
	}
#include <perfring/values.def>

	if (text[0] == 'r' && length > 1 && strspn(text + 1, "0123456789abcdefABCDEF") == length - 1) {
		errno = 0;
		parse->type = PERFRING_TYPE_RAW;
		parse->configs[0] = strtoull(text + 1, NULL, 16);
		if (errno)
			return perfring__event_invalid(parse->fault, 1,
						       "a raw event has at most 16 hexadecimal digits");
		return parse_rest(parse, length);
	}
	if (parse_cache(parse, length))
		return parse_rest(parse, length);
	if (text[length] == '/')
		return parse_pmu(parse, length);
	error = parse_bare(parse, length);
	if (error != -ENOENT)
		return error;
	colon = text[length] ? text + length : NULL;
	if (!strncmp(text, "uprobe:", 7) || !strncmp(text, "uretprobe:", 10))
		return perfring__event_invalid(
			parse->fault, 0,
			"a probe of user code needs a list of events (perfring_events_add), which keeps its path");
	if (!colon || colon[1] == ':') {
		error = parse_pfm(parse);
		return error ? perfring__event_invalid(parse->fault, 0, "unknown event") : 0;
	}
	second = strpbrk(colon + 1, ":/");
	parse->type = PERFRING_TYPE_TRACEPOINT;
	error = perfring__tracepoint_id(text, second ? (size_t)(second - text) : strlen(text), &parse->configs[0],
					parse->fault);
	if (!error && second) {
		error = parse_rest(parse, (size_t)(second - text));
		if (error)
			return error;
	}
	/* As perf: its name has no terms. */
	if (!error && second && *second == '/' && !parse->naming.name[0] &&
	    (size_t)(second - text) < sizeof(parse->naming.name))
		memcpy(parse->naming.name, text, (size_t)(second - text));
	return error && !parse_pfm(parse) ? 0 : error;
}

/* Members that terms set, of attrs that are long enough. */
static const struct term_member {
	uint8_t at, size;
} TERM_MEMBERS[] = {
#define TERM_MEMBER(member) \
	{ \
		PERFRING_ATTR_AT_##member, PERFRING_ATTR_LAST_##member - PERFRING_ATTR_AT_##member + 1 \
	}
	TERM_MEMBER(branch_sample_type), TERM_MEMBER(sample_regs_user), TERM_MEMBER(sample_stack_user),
	TERM_MEMBER(sample_max_stack),   TERM_MEMBER(aux_sample_size),
#undef TERM_MEMBER
};

static bool is_set(const struct perf_event_attr *attr, const struct term_member *member)
{
	static const unsigned char ZEROS[8];

	return memcmp((const unsigned char *)attr + member->at, ZEROS, member->size);
}

int perfring__event_parse_under(const char *root, const char *text, const struct perfring_modifiers *group,
				struct perf_event_attr *attr, struct perfring_naming *naming,
				struct perfring_fault *fault)
{
	struct parse parse = {.root = root, .text = text, .fault = fault, .naming = {.scale = 1.0}};
	uint32_t bytes = perfring__attr_own_size(attr);
	int error;

	parse.attr = perfring__attr_whole(attr);
	error = parse_text(&parse);
	if (error)
		return error;
	for (size_t i = 0; i < PERFRING_CONFIGS; i++)
		if (parse.configs[i] && CONFIG_AT[i] + 8U > bytes)
			return perfring__event_invalid(
				fault, 0,
				"attr->size ends before config2 (bp_len), config3 or config4, which this needs");
	for (size_t i = 0; i < sizeof(TERM_MEMBERS) / sizeof(*TERM_MEMBERS); i++)
		if (TERM_MEMBERS[i].at + TERM_MEMBERS[i].size > bytes && is_set(&parse.attr, &TERM_MEMBERS[i]))
			return perfring__event_invalid(fault, 0, "attr->size ends before a member that a term needs");
	parse.naming.terms |= perfring__modifiers_guests(&parse.modifiers, group, &parse.attr);
	if (group && perfring__modifiers_join(&parse.modifiers, group))
		return perfring__event_invalid(fault, 0, "with the group's, more than three p");
	perfring__modifiers_apply(&parse.modifiers, &parse.attr);
	parse.naming.reads = perfring__modifiers_has(&parse.modifiers, 'S');
	if (naming)
		*naming = parse.naming;

	/* The first 64 bytes, which every attr has, and the configs. */
	attr->type = parse.type;
	attr->sample_period = parse.attr.sample_period;
	attr->sample_type = parse.attr.sample_type;
	attr->bp_type = parse.bp_type;
	memcpy((unsigned char *)attr + 40, (const unsigned char *)&parse.attr + 40, 8);
	for (size_t i = 0; i < sizeof(TERM_MEMBERS) / sizeof(*TERM_MEMBERS); i++)
		if (TERM_MEMBERS[i].at + TERM_MEMBERS[i].size <= bytes)
			memcpy((unsigned char *)attr + TERM_MEMBERS[i].at,
			       (const unsigned char *)&parse.attr + TERM_MEMBERS[i].at, TERM_MEMBERS[i].size);
	return perfring__configs_set(attr, parse.configs);
}

int perfring_event_parse(const char *text, struct perf_event_attr *attr, struct perfring_fault *fault)
{
	return perfring__event_parse_under(PERFRING_PMU_ROOT, text, NULL, attr, NULL, fault);
}

/* ---- back to text ---- */

/* A string in this process, whose address may be invalid: reading it by a system call raises no fault. */
static bool read_path(uint64_t at, char *buffer, size_t size)
{
	for (size_t got = 0; got < size;) {
		size_t more = 256 - (at + got) % 256;
		struct iovec here = {buffer + got, more < size - got ? more : size - got};
		struct iovec there = {(void *)(uintptr_t)(at + got), here.iov_len};

		if (process_vm_readv(getpid(), &here, 1, &there, 1, 0) != (ssize_t)here.iov_len)
			return false;
		for (size_t i = 0; i < here.iov_len; i++) {
			unsigned char byte = (unsigned char)buffer[got + i];

			if (!byte)
				return got + i > 0;
			if (byte < 0x20 || byte == 0x7f)
				return false;
		}
		got += here.iov_len;
	}
	return false;
}

/* Names a probe, as "uprobe:PATH:0xOFFSET".  Returns whether it is one. */
static bool name_probe(const struct perfring_pmu *pmu, const uint64_t configs[PERFRING_CONFIGS], char *buffer,
		       size_t size)
{
	struct perfring_pmu_bits bits;
	char path[PATH_MAX];

	return !configs[3] && !configs[4] && !perfring__pmu_format(pmu, "retprobe", strlen("retprobe"), &bits) &&
	       !bits.config && !(configs[0] & ~bits.mask) && configs[1] && read_path(configs[1], path, sizeof(path)) &&
	       snprintf(buffer, size, "%s:%s:0x%llx", configs[0] ? "uretprobe" : "uprobe", path,
			(unsigned long long)configs[2]) < (int)size;
}

/* Names an attr by the first of the PMU's events that has exactly these configs.  Returns whether there is one. */
static bool name_event(const struct perfring_pmu *pmu, const char *pmu_name, const uint64_t configs[PERFRING_CONFIGS],
		       char *buffer, size_t size)
{
	struct dirent **events;
	int count = perfring__event_folder(pmu->fd, "events", &events);
	bool found = false;

	if (count < 0)
		return false;
	for (int i = 0; i < count && !found; i++) {
		const char *event = events[i]->d_name;
		uint64_t its[PERFRING_CONFIGS] = {0};
		struct perf_event_attr attr = {0};
		struct perfring_naming naming;

		found = perfring__pmu_is_event(event, strlen(event)) &&
			!perfring__pmu_terms(pmu, event, 0, strlen(event), its, &attr, &naming, NULL) &&
			!memcmp(its, configs, sizeof(its)) &&
			snprintf(buffer, size, "%s/%s/", pmu_name, event) < (int)size;
	}
	perfring__event_folder_free(events, count);
	return found;
}

/* Names an attr by the PMU of its type: as a probe, by sysfs's name for its configs, or by the configs.  Without such a PMU the
 * buffer, which is large enough, stays as it is. */
static void name_by_pmu(const char *root, uint32_t type, const uint64_t configs[PERFRING_CONFIGS], char *buffer,
			size_t size)
{
	char pmu_name[PERFRING_PMU_NAME];
	struct perfring_pmu pmu;
	size_t used;

	if (perfring__pmu_of_type(root, type, pmu_name) || perfring__pmu_open(&pmu, root, pmu_name, strlen(pmu_name)))
		return;
	if ((strcmp(pmu_name, "uprobe") || !name_probe(&pmu, configs, buffer, size)) &&
	    !name_event(&pmu, pmu_name, configs, buffer, size)) {
		used = (size_t)snprintf(buffer, size, "%s/config=0x%llx", pmu_name, (unsigned long long)configs[0]);
		for (unsigned i = 1; i < PERFRING_CONFIGS; i++)
			if (configs[i])
				used += (size_t)snprintf(buffer + used, size - used, ",config%u=0x%llx", i,
							 (unsigned long long)configs[i]);
		snprintf(buffer + used, size - used, "/");
	}
	perfring__pmu_close(&pmu);
}

int64_t perfring__event_name_under(const char *root, const struct perf_event_attr *from, char *buffer, size_t size)
{
	static const char *const BP[] = {"", "r", "w", "rw", "x"};
	struct perf_event_attr whole = perfring__attr_whole(from), *attr = &whole;
	char name[PATH_MAX + 64] = "", modifiers[16];
	uint64_t configs[PERFRING_CONFIGS];
	bool more, levels;

	perfring__configs_get(from, configs);
	more = configs[1] || configs[2] || configs[3] || configs[4];
	levels = attr->exclude_user | attr->exclude_kernel | attr->exclude_hv;
	snprintf(modifiers, sizeof(modifiers), "%s%s%s%.*s%s%s%s%s", levels && !attr->exclude_user ? "u" : "",
		 levels && !attr->exclude_kernel ? "k" : "", levels && !attr->exclude_hv ? "h" : "",
		 (int)attr->precise_ip, "ppp",
		 attr->exclude_guest == attr->exclude_host ? ""
		 : attr->exclude_guest                     ? "H"
							   : "G",
		 attr->exclude_idle ? "I" : "", attr->pinned ? "D" : "", attr->exclusive ? "e" : "");
	if (attr->type == PERFRING_TYPE_BREAKPOINT && attr->bp_type >= 1 && attr->bp_type <= 4 && !configs[0] &&
	    !configs[3] && !configs[4] && (configs[2] == 1 || configs[2] == 2 || configs[2] == 4 || configs[2] == 8))
		snprintf(name, sizeof(name), "mem:0x%llx/%llu:%s", (unsigned long long)configs[1],
			 (unsigned long long)configs[2], BP[attr->bp_type]);
	else if (attr->type == PERFRING_TYPE_RAW && !more)
		snprintf(name, sizeof(name), "r%llx", (unsigned long long)configs[0]);
	else if (attr->type == PERFRING_TYPE_HW_CACHE && !more)
		name_cache(configs[0], name, sizeof(name));
	else if (attr->type == PERFRING_TYPE_TRACEPOINT && !more)
		perfring__tracepoint_name(configs[0], name, sizeof(name));
		/* A hardware event keeps the table's name for any config1 .. */
#define PERFRING_EVENT(event_name, alias, event_type, event_config) \
	if (!*name && (!more || (event_type) == PERFRING_TYPE_HARDWARE) && attr->type == (event_type) && \
	    configs[0] == (event_config)) \
		snprintf(name, sizeof(name), "%s", *alias && (event_type) == 0 ? alias : event_name);
#include <perfring/values.def>
	if (!*name && (attr->type != PERFRING_TYPE_BREAKPOINT || !attr->bp_type))
		name_by_pmu(root, attr->type, configs, name, sizeof(name));
	if (!*name)
		snprintf(name, sizeof(name), "type=%u,config=0x%llx", attr->type, (unsigned long long)configs[0]);
	return snprintf(buffer, size, "%s%s%s", name, *modifiers && name[strlen(name) - 1] != '/' ? ":" : "",
			modifiers);
}

int64_t perfring_event_name(const struct perf_event_attr *from, char *buffer, size_t size)
{
	return perfring__event_name_under(PERFRING_PMU_ROOT, from, buffer, size);
}

void perfring__event_plain_name(const struct perf_event_attr *from, char *buffer, size_t size)
{
	struct perf_event_attr plain = perfring__attr_whole(from);

	plain.size = sizeof(plain);
	plain.exclude_guest = plain.exclude_guest && plain.exclude_host;
	perfring_event_name(&plain, buffer, size);
}
