/* auxtrace.c - what AUX areas of a session hold, as records of a perf.data file (docs/abi.md 8, 10).
 *
 * Called by record_aux.c for each round of a recording.  Makes AUXTRACE_INFO from sysfs and the processor, TIME_CONV from a
 * control page, and an AUXTRACE record for each area's unread bytes.  The bytes stay in the area until the session returns them.
 */
#include "auxtrace.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <perfring/page.h>
#include <perfring/writer.h>
#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

enum {
	SPE_PERIOD = 4096, /* where the PMU does not say its least */
};

/* ---- PMUs that perf decodes ---- */

static const struct {
	const char *name; /* a number may follow */
	uint32_t type;
} KNOWN[] = {
	{"intel_pt", PERFRING_AUXTRACE_INTEL_PT}, {"intel_bts", PERFRING_AUXTRACE_INTEL_BTS},
	{"arm_spe_", PERFRING_AUXTRACE_ARM_SPE},  {"hisi_ptt", PERFRING_AUXTRACE_HISI_PTT},
	{"cs_etm", PERFRING_AUXTRACE_CS_ETM},
};

/* Reads the first line of a PMU's file in sysfs; "" if there is none. */
static void read_line(const char *pmus, const char *pmu, const char *file, char *line, size_t size)
{
	char path[512];
	FILE *opened;

	line[0] = 0;
	if ((size_t)snprintf(path, sizeof(path), "%s/%s/%s", pmus, pmu, file) >= sizeof(path))
		return;
	opened = fopen(path, "re");
	if (!opened)
		return;
	if (!fgets(line, (int)size, opened))
		line[0] = 0;
	fclose(opened);
	line[strcspn(line, "\n")] = 0;
}

static uint64_t read_number(const char *pmus, const char *pmu, const char *file)
{
	char line[64];

	read_line(pmus, pmu, file, line, sizeof(line));
	return strtoull(line, NULL, 10);
}

bool tool_auxtrace_find(struct tool_auxtrace *auxtrace, const char *pmus, uint32_t pmu)
{
	DIR *folder = opendir(pmus);
	struct dirent *entry;
	bool found = false;

	memset(auxtrace, 0, sizeof(*auxtrace));
	while (folder && !found && (entry = readdir(folder)))
		for (size_t i = 0; !found && i < sizeof(KNOWN) / sizeof(*KNOWN); i++) {
			const char *after = entry->d_name + strlen(KNOWN[i].name);
			char line[64];

			if (strncmp(entry->d_name, KNOWN[i].name, strlen(KNOWN[i].name)) ||
			    after[strspn(after, "0123456789_")] || strlen(entry->d_name) >= sizeof(auxtrace->name))
				continue;
			read_line(pmus, entry->d_name, "type", line, sizeof(line));
			found = *line && strtoull(line, NULL, 10) == pmu;
			if (!found)
				continue;
			auxtrace->type = KNOWN[i].type;
			auxtrace->pmu = pmu;
			memcpy(auxtrace->name, entry->d_name, strlen(entry->d_name) + 1);
		}
	if (folder)
		closedir(folder);
	return found;
}

/* ---- what perf adds to an event ---- */

/* The bits of attr.config that a term of the PMU's format takes, such as "config:14-17". */
static uint64_t bits_of(const char *pmus, const char *pmu, const char *term)
{
	unsigned first, last;
	char file[64], line[64];

	snprintf(file, sizeof(file), "format/%s", term);
	read_line(pmus, pmu, file, line, sizeof(line));
	switch (sscanf(line, "config:%u-%u", &first, &last)) {
	case 1:
		last = first;
		break;
	case 2:
		break;
	default:
		return 0;
	}
	return first <= last && last < 64 ? UINT64_MAX >> (63 - last) & UINT64_MAX << first : 0;
}

/* Sets a term's bits, unless they are set already, or the event's text names the term. */
static void set_term(const struct tool_auxtrace *auxtrace, const char *pmus, const char *text, const char *term,
		     uint64_t value, struct perf_event_attr *attr)
{
	uint64_t bits = bits_of(pmus, auxtrace->name, term);
	size_t length = strlen(term);

	for (const char *at = text; (at = strstr(at, term)); at += length)
		if (at > text && (at[-1] == '/' || at[-1] == ',') && strchr("=,/", at[length]))
			return;
	if (bits && !(attr->config & bits))
		attr->config |= bits & value * (bits & -bits);
}

/* Whether a PMU has an ability that it may report as absent (caps/). */
static bool has(const struct tool_auxtrace *auxtrace, const char *pmus, const char *file)
{
	char line[64];

	read_line(pmus, auxtrace->name, file, line, sizeof(line));
	return !*line || strtoull(line, NULL, 10);
}

/* Chooses one of the PMU's periods (a bitmap): the largest up to 3, else the smallest.  Returns whether it has any. */
static bool pick_period(const struct tool_auxtrace *auxtrace, const char *pmus, const char *file, uint64_t *period)
{
	unsigned long long bits;
	char line[64];

	read_line(pmus, auxtrace->name, file, line, sizeof(line));
	bits = strtoull(line, NULL, 16);
	if (bits)
		*period = bits & 15 ? 63u - (unsigned)__builtin_clzll(bits & 15) : (unsigned)__builtin_ctzll(bits);
	return bits;
}

void tool_auxtrace_shape(const struct tool_auxtrace *auxtrace, const char *pmus, const char *text,
			 struct perf_event_attr *attr)
{
	uint64_t period;

	if (auxtrace->type == PERFRING_AUXTRACE_INTEL_PT) {
		set_term(auxtrace, pmus, text, "tsc", 1, attr);
		set_term(auxtrace, pmus, text, "pt", 1, attr);
		set_term(auxtrace, pmus, text, "branch", 1, attr);
		if (has(auxtrace, pmus, "caps/mtc") && pick_period(auxtrace, pmus, "caps/mtc_periods", &period)) {
			set_term(auxtrace, pmus, text, "mtc", 1, attr);
			set_term(auxtrace, pmus, text, "mtc_period", period, attr);
		}
		if (has(auxtrace, pmus, "caps/psb_cyc") && pick_period(auxtrace, pmus, "caps/psb_periods", &period))
			set_term(auxtrace, pmus, text, "psb_period", period, attr);
	} else if (auxtrace->type == PERFRING_AUXTRACE_ARM_SPE) {
		period = read_number(pmus, auxtrace->name, "caps/min_interval");
		if (auxtrace->is_per_cpu)
			set_term(auxtrace, pmus, text, "ts_enable", 1, attr);
		if (!attr->sample_period)
			attr->sample_period = period ? period : SPE_PERIOD;
	}
	if (!attr->sample_period)
		attr->sample_period = 1;
}

/* ---- AUXTRACE_INFO ---- */

/* How the time stamp counter relates to the crystal's, as the processor says. */
static void read_ratio(uint64_t *counter, uint64_t *crystal)
{
	*counter = *crystal = 0;
#if defined(__x86_64__) || defined(__i386__)
	unsigned words[4];

	if (__get_cpuid_max(0, NULL) < 0x15 || !__get_cpuid_count(0x15, 0, &words[0], &words[1], &words[2], &words[3]))
		return;
	*counter = words[1];
	*crystal = words[0];
#endif
}

/* The parameters of the kernel's clock: shift, mult, zero, whether they are valid. */
static void put_clock(const struct tool_auxtrace *auxtrace, perfring_word words[4])
{
	const struct perf_event_mmap_page *page = auxtrace->page;

	if (!page || !page->cap_user_time_zero)
		return;
	words[0] = page->time_shift;
	words[1] = page->time_mult;
	words[2] = page->time_zero;
	words[3] = 1;
}

enum {
	FILTER_MAX = 4096, /* bytes, of a filter of addresses */
	PT_WORDS = 18 + FILTER_MAX / 8,
};

/* Fills the words of AUXTRACE_INFO.  Returns how many there are. */
static uint64_t describe_pt(const struct tool_auxtrace *auxtrace, const char *pmus, perfring_word *words)
{
	const char *pmu = auxtrace->name;
	size_t length = auxtrace->filter ? strlen(auxtrace->filter) : 0, size = length ? (length + 8) / 8 * 8 : 0;
	uint64_t counter, crystal;

	read_ratio(&counter, &crystal);
	put_clock(auxtrace, words + 1);
	words[5] = bits_of(pmus, pmu, "tsc");
	words[6] = bits_of(pmus, pmu, "noretcomp");
	words[7] = auxtrace->switches;
	words[8] = auxtrace->is_snapshot;
	words[9] = auxtrace->is_per_cpu;
	words[10] = bits_of(pmus, pmu, "mtc");
	words[11] = bits_of(pmus, pmu, "mtc_period");
	words[12] = counter;
	words[13] = crystal;
	words[14] = bits_of(pmus, pmu, "cyc");
	words[15] = read_number(pmus, pmu, "max_nonturbo_ratio");
	if (size > FILTER_MAX)
		size = 0;
	words[16] = size;
	if (size)
		memcpy(words + 17, auxtrace->filter, length);
	words[17 + size / 8] = read_number(pmus, pmu, "caps/event_trace");
	return 18 + size / 8;
}

/* Writes TIME_CONV, for decoders whose data have times of the processor's counter only, such as perf's of SPE: they divide by it. */
static int put_time_conversion(const struct perf_event_mmap_page *page, struct perfring_file_writer *writer)
{
	struct perfring_record record = {.type = PERFRING_RECORD_TIME_CONV};

	record.is.time_conv.time_shift = page->time_shift;
	record.is.time_conv.time_mult = page->time_mult;
	record.is.time_conv.time_zero = page->time_zero;
	record.is.time_conv.more = (struct perfring_conv){.is_there = true,
							  .cap_zero = 1,
							  .cap_short = page->cap_user_time_short,
							  .cycles = page->time_cycles,
							  .mask = page->time_mask};
	return perfring_file_writer_put(writer, 0, &record);
}

int tool_auxtrace_put_info(const struct tool_auxtrace *auxtrace, const char *pmus, struct perfring_file_writer *writer)
{
	struct perfring_record record = {.type = PERFRING_RECORD_AUXTRACE_INFO};
	perfring_word words[PT_WORDS] = {auxtrace->pmu};
	uint64_t count = 1; /* HISI_PTT */
	int ret = 0;

	if (auxtrace->type == PERFRING_AUXTRACE_INTEL_PT) {
		count = describe_pt(auxtrace, pmus, words);
	} else if (auxtrace->type == PERFRING_AUXTRACE_INTEL_BTS) {
		put_clock(auxtrace, words + 1);
		words[5] = auxtrace->is_snapshot;
		count = 6;
	} else if (auxtrace->type == PERFRING_AUXTRACE_ARM_SPE) {
		words[1] = auxtrace->is_per_cpu;
		count = 2;
	}
	record.is.auxtrace_info.type = auxtrace->type;
	record.is.auxtrace_info.priv.words = words;
	record.is.auxtrace_info.priv.nr = count;
	if (auxtrace->page && auxtrace->page->cap_user_time_zero)
		ret = put_time_conversion(auxtrace->page, writer);
	return ret ? ret : perfring_file_writer_put(writer, 0, &record);
}

/* ---- AUXTRACE ---- */

/* The unread bytes of one area: one piece, or two if they wrap. */
struct gathered {
	struct iovec pieces[2];
	int count;
	uint64_t position; /* of the first byte */
	uint64_t size;
	uint32_t ring;
};

/* Shortens the pieces to the newest `most` bytes. */
static void keep_newest(struct gathered *gathered, uint64_t most)
{
	uint64_t rest = gathered->size > most ? gathered->size - most : 0;

	gathered->position += rest;
	gathered->size -= rest;
	for (int i = 0; i < gathered->count; i++) {
		uint64_t here = rest < gathered->pieces[i].iov_len ? rest : gathered->pieces[i].iov_len;

		gathered->pieces[i].iov_base = (unsigned char *)gathered->pieces[i].iov_base + here;
		gathered->pieces[i].iov_len -= (size_t)here;
		rest -= here;
	}
}

/* The event that an area belongs to: the first one that was opened into its ring; -1: none. */
static void find_owner(const struct perfring_session *session, struct perfring_record_auxtrace *record)
{
	struct perfring_session_event opened;

	record->cpu = record->tid = UINT32_MAX;
	for (uint32_t i = 0; perfring_session_event_at(session, i, &opened); i++)
		if (opened.ring == record->idx) {
			record->cpu = (uint32_t)opened.cpu;
			record->tid = (uint32_t)opened.tid;
			return;
		}
}

static int write_one(const struct perfring_session *session, struct perfring_file_writer *writer,
		     const struct gathered *gathered)
{
	static const unsigned char zeros[8];
	uint64_t padding = -gathered->size & 7;
	struct iovec pieces[3] = {gathered->pieces[0],
				  gathered->pieces[1],
				  {.iov_base = (void *)(uintptr_t)zeros, .iov_len = (size_t)padding}};
	struct perfring_record record = {.type = PERFRING_RECORD_AUXTRACE};
	union {
		struct perf_event_header header;
		unsigned char bytes[128];
	} encoded;
	int64_t size;

	record.is.auxtrace.size = gathered->size + padding;
	record.is.auxtrace.offset = gathered->position;
	record.is.auxtrace.reference = perfring_writer_counter(); /* readers sort by it */
	record.is.auxtrace.idx = gathered->ring;
	find_owner(session, &record.is.auxtrace);
	size = perfring_record_encode(NULL, &record, encoded.bytes, sizeof(encoded));
	return size < 0 ? (int)size : perfring_file_writer_put_auxtrace(writer, &encoded.header, pieces, 3);
}

int tool_auxtrace_write(struct perfring_session *session, struct perfring_file_writer *writer, uint64_t most,
			uint64_t *bytes)
{
	struct gathered gathered = {.count = 0};
	struct perfring_aux_piece piece;
	int ret, error;

	do {
		ret = perfring_session_next_aux(session, &piece);
		if (ret == -EBADMSG)
			continue;
		if (ret < 0)
			return ret;
		/* The pieces of one area follow one another. */
		if (gathered.count && (!ret || piece.ring != gathered.ring || gathered.count == 2)) {
			keep_newest(&gathered, most);
			error = gathered.size ? write_one(session, writer, &gathered) : 0;
			if (error)
				return error;
			*bytes += gathered.size;
			gathered = (struct gathered){.count = 0};
		}
		if (!ret)
			return 0;
		if (!gathered.count) {
			gathered.ring = piece.ring;
			gathered.position = piece.position;
		}
		gathered.pieces[gathered.count].iov_base = (void *)(uintptr_t)piece.bytes;
		gathered.pieces[gathered.count++].iov_len = (size_t)piece.size;
		gathered.size += piece.size;
	} while (true);
}
