/* zstd_fuzz.c - any bytes as the records inside COMPRESSED ones: in one valid frame, which is cut into records anywhere and
 * then, every other time, damaged.  Whole, they give the same items as the bytes themselves in a plain file.
 *
 * Bytes: kind, cuts, damages; of each cut 1, of each damage 3; then the records. */
#include <sys/mman.h>
#include <unistd.h>
#include <perfring/file_writer.h>
#include "read_data.h"

#ifdef PERFRING_HAS_ZSTD
#include <zstd.h>

enum {
	IS_STREAM = 1,
	IS_FOREIGN = 2,
	IS_SECOND = 4, /* COMPRESSED2 */
	IS_DAMAGED = 8,
	IS_FLUSHED = 16, /* at each cut */
	IS_KILLED = 32,  /* no end */
	MOST = 1 << 14,
};

static struct {
	uint8_t bytes[1024];
	size_t size;
} fronts[4];

/* What stands before the records: one event without ids. */
static void make_front(unsigned kind)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE, .size = PERF_ATTR_SIZE_VER0};
	struct perfring_file_writer *writer;
	int fd = memfd_create("front", MFD_CLOEXEC);

	attr.sample_type = PERFRING_SAMPLE_IP | PERFRING_SAMPLE_TID | PERFRING_SAMPLE_TIME;
	attr.sample_id_all = 1;
	must(!(kind & IS_STREAM ? perfring_file_writer_open_stream : perfring_file_writer_open)(&writer, fd));
	must(!(kind & IS_FOREIGN) || !perfring_file_writer_make_foreign(writer));
	must(perfring_file_writer_add_event(writer, &attr, "") == 0 && !perfring_file_writer_begin(writer));
	fronts[kind].size = (size_t)perfring_file_writer_size(writer);
	must(pread(fd, fronts[kind].bytes, sizeof(fronts[kind].bytes), 0) == (ssize_t)fronts[kind].size);
	perfring_file_writer_close(writer);
	close(fd);
}

static void put_number(uint8_t *to, uint64_t number, unsigned size, unsigned kind)
{
	bool is_big = (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__) != !!(kind & IS_FOREIGN);

	for (unsigned i = 0; i < size; i++)
		to[is_big ? size - 1 - i : i] = (uint8_t)(number >> 8 * i);
}

/* The oldest header says how much there is and needs no features. */
static void end_file(uint8_t *bytes, unsigned kind, size_t end)
{
	if (kind & (IS_STREAM | IS_KILLED))
		return;
	put_number(bytes + 8, 72, 8, kind);
	put_number(bytes + 48, end - fronts[kind & 3].size, 8, kind);
}

/* One COMPRESSED record. */
static size_t pack(uint8_t *to, const uint8_t *bytes, size_t size, unsigned kind)
{
	size_t head = kind & IS_SECOND ? 16 : 8, whole = head + size;

	if (kind & IS_SECOND)
		whole = (whole + 7) / 8 * 8;
	memset(to, 0, whole);
	put_number(to, kind & IS_SECOND ? PERFRING_RECORD_COMPRESSED2 : PERFRING_RECORD_COMPRESSED, 4, kind);
	put_number(to + 6, whole, 2, kind);
	if (kind & IS_SECOND)
		put_number(to + 8, size, 8, kind);
	memcpy(to + head, bytes, size);
	return whole;
}

static uint64_t read_plain(const uint8_t *records, size_t size, unsigned kind)
{
	static uint8_t whole[1024 + MOST];
	size_t front = fronts[kind & 3].size;

	memcpy(whole, fronts[kind & 3].bytes, front);
	memcpy(whole + front, records, size);
	end_file(whole, kind, front + size);
	return read_bytes(whole, front + size, false, MACHINE_WHOLE, 2);
}

/* Whether nothing in there but samples and other kernel records of whole sizes: those that may stand in both places. */
static bool is_plain(const uint8_t *records, size_t size, unsigned kind)
{
	size_t at, length;

	for (at = 0; size - at >= 8; at += length) {
		bool is_big = (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__) != !!(kind & IS_FOREIGN);
		const uint8_t *record = records + at;

		length = is_big ? (size_t)record[6] << 8 | record[7] : (size_t)record[7] << 8 | record[6];
		if (length < 8 || length > size - at || record[is_big ? 3 : 0] >= 64 || record[1] || record[2] ||
		    record[is_big ? 0 : 3])
			return false;
	}
	return at == size;
}

static void try_records(unsigned kind, const uint8_t *cuts, size_t cut_count, const uint8_t *damages,
			size_t damage_count, const uint8_t *records, size_t size)
{
	static uint8_t packed[4 * MOST], whole[1024 + 8 * MOST];
	static ZSTD_CCtx *zstd;
	ZSTD_inBuffer in = {records, 0, 0};
	ZSTD_outBuffer out = {packed, sizeof(packed), 0};
	size_t front = fronts[kind & 3].size, used = front, at = 0;
	uint64_t came;

	if (!zstd) {
		zstd = ZSTD_createCCtx();
		must(zstd);
		ZSTD_CCtx_setParameter(zstd, ZSTD_c_windowLog, 12);
	}
	ZSTD_CCtx_reset(zstd, ZSTD_reset_session_only);
	for (size_t i = 0; i <= cut_count; i++) {
		in.size = i == cut_count ? size : in.size + (size - in.size) * cuts[i] / 256;
		if (kind & IS_FLUSHED || i == cut_count)
			must(!ZSTD_compressStream2(zstd, &out, &in, i % 7 == 6 ? ZSTD_e_end : ZSTD_e_flush));
	}
	for (size_t i = 0; kind & IS_DAMAGED && out.pos && i < damage_count; i++, damages += 3)
		packed[(damages[0] | (size_t)damages[1] << 8) % out.pos] ^= damages[2];
	memcpy(whole, fronts[kind & 3].bytes, front);
	for (size_t i = 0; i <= cut_count; i++) {
		size_t piece = i == cut_count ? out.pos - at : (out.pos - at) * cuts[i] / 256;

		used += pack(whole + used, packed + at, piece, kind);
		at += piece;
	}
	end_file(whole, kind, used);
	came = read_bytes(whole, used, false, MACHINE_WHOLE, kind);
	if (!(kind & IS_DAMAGED) && is_plain(records, size, kind))
		must(came == read_plain(records, size, kind));
}

#endif

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
#ifdef PERFRING_HAS_ZSTD
	size_t cuts, damages, front;

	if (!fronts[0].size)
		for (unsigned kind = 0; kind < 4; kind++)
			make_front(kind);
	if (size < 3 || size > MOST)
		return 0;
	/* zstd holds out no more than 16 calls without a byte */
	cuts = bytes[1] % 12;
	damages = bytes[2] % 4;
	front = 3 + cuts + damages * 3;
	if (size < front)
		return 0;
	try_records(bytes[0], bytes + 3, cuts, bytes + 3 + cuts, damages, bytes + front, size - front);
#else
	read_bytes(bytes, size, false, MACHINE_WHOLE, 0);
#endif
	return 0;
}
