/* inflate.c - zstd, the format of perf's compressed records (docs/abi.md 11.5), or its absence.
 *
 * The only file that includes <zstd.h>; without libzstd all is -EOPNOTSUPP.  record_stream.c inflates, file_compress.c deflates.
 * Input is foreign: windows are bounded for all files of a directory together (PERFRING_MAX_WINDOWS).
 */
#include "inflate.h"

#include <errno.h>
#ifdef PERFRING_HAS_ZSTD
#include <stdlib.h>
#include <zstd.h>
#include <zstd_errors.h>

enum {
	WINDOW_LOG = 27,  /* 128 MiB: the largest window of any level */
	FREE_LOG = 20,    /* 1 MiB of each window is not counted, so that any number of streams may have as much */
	BLOCKS = 1 << 19, /* more than zstd allocates beside a window */
	BLOCK_HEADER = 3, /* bytes */
};

struct perfring_inflater {
	ZSTD_DCtx *zstd;
	uint64_t *windows; /* counted bytes of all inflaters of a file */
	uint64_t counted;  /* bytes of this one: in a frame's header the largest possible window, then the window */
	size_t base_size;  /* bytes of a ZSTD_DCtx without a window */
	int log;           /* of the largest window that this frame may have */
	size_t wanted; /* bytes that zstd reads next: a block and the header of the next one; 0: a frame has ended */
	bool is_full;  /* the output buffer was full: zstd may have more output */
	bool is_in_header; /* of a frame */
};

static uint64_t excess(uint64_t bytes, uint64_t allowance)
{
	return bytes > allowance ? bytes - allowance : 0;
}

static void count(struct perfring_inflater *inflater, uint64_t bytes)
{
	*inflater->windows += bytes - inflater->counted;
	inflater->counted = bytes;
}

/* Counts what zstd has allocated. */
static void count_actual(struct perfring_inflater *inflater)
{
	uint64_t allowance = inflater->base_size + BLOCKS + (UINT64_C(1) << FREE_LOG);

	count(inflater, excess(ZSTD_sizeof_DCtx(inflater->zstd), allowance));
	inflater->is_in_header = false;
}

/* Counts the largest window that is still allowed, until the frame's header says which it needs: other streams may
 * begin frames meanwhile.  zstd frees its old window before it allocates another. */
static int begin_frame(struct perfring_inflater *inflater)
{
	uint64_t left = excess(PERFRING_MAX_WINDOWS, *inflater->windows - inflater->counted);
	uint64_t allowance = UINT64_C(1) << FREE_LOG, largest;

	inflater->log = WINDOW_LOG;
	while (inflater->log > FREE_LOG && excess(UINT64_C(1) << inflater->log, allowance) > left)
		inflater->log--;
	if (ZSTD_isError(ZSTD_DCtx_setParameter(inflater->zstd, ZSTD_d_windowLogMax, inflater->log)))
		return -EBADMSG;
	largest = excess(UINT64_C(1) << inflater->log, allowance);
	if (inflater->counted < largest)
		count(inflater, largest);
	inflater->is_in_header = true;
	return 0;
}

int perfring__inflater_open(struct perfring_inflater **inflater, uint64_t *windows)
{
	struct perfring_inflater *opened = calloc(1, sizeof(*opened));

	*inflater = opened;
	if (!opened)
		return -ENOMEM;
	opened->zstd = ZSTD_createDCtx();
	if (!opened->zstd) {
		free(opened);
		*inflater = NULL;
		return -ENOMEM;
	}
	opened->windows = windows;
	opened->base_size = ZSTD_sizeof_DCtx(opened->zstd);
	return 0;
}

void perfring__inflater_close(struct perfring_inflater *inflater)
{
	if (!inflater)
		return;
	count(inflater, 0);
	ZSTD_freeDCtx(inflater->zstd);
	free(inflater);
}

void perfring__inflater_reset(struct perfring_inflater *inflater)
{
	ZSTD_DCtx_reset(inflater->zstd, ZSTD_reset_session_only);
	count_actual(inflater);
	inflater->wanted = 0;
	inflater->is_full = false;
}

enum perfring_inflater_state perfring__inflater_state(const struct perfring_inflater *inflater)
{
	return !inflater->wanted                  ? PERFRING_BETWEEN_FRAMES
	       : inflater->wanted == BLOCK_HEADER ? PERFRING_BETWEEN_BLOCKS
						  : PERFRING_INSIDE_A_BLOCK;
}

/* Bytes of one call: after an error zstd does not report how much the call has put out before it. */
static size_t step_of(const struct perfring_inflater *inflater)
{
	if (inflater->wanted > BLOCK_HEADER)
		return inflater->wanted - BLOCK_HEADER;
	return inflater->wanted ? inflater->wanted : 1;
}

static int error_of(const struct perfring_inflater *inflater, size_t ret)
{
	ZSTD_ErrorCode code = ZSTD_getErrorCode(ret);

	if (code == ZSTD_error_frameParameter_windowTooLarge)
		return inflater->log < WINDOW_LOG ? -ENOBUFS : -EFBIG;
	return code == ZSTD_error_memory_allocation ? -ENOMEM : -EBADMSG;
}

int perfring__inflate(struct perfring_inflater *inflater, const unsigned char **from, size_t *left,
		      unsigned char *buffer, size_t size, size_t *used)
{
	ZSTD_outBuffer out = {buffer, size, 0};
	int error;

	*used = 0;
	while (out.pos < size && (*left || inflater->is_full)) {
		size_t step = step_of(inflater), ret;
		ZSTD_inBuffer in = {*from, step < *left ? step : *left, 0};

		if (!inflater->wanted) {
			error = begin_frame(inflater);
			if (error)
				return error;
		}
		ret = ZSTD_decompressStream(inflater->zstd, &out, &in);
		/* until zstd has the whole header, it wants more than a block's header */
		if (inflater->is_in_header && (ZSTD_isError(ret) || ret <= BLOCK_HEADER))
			count_actual(inflater);
		if (ZSTD_isError(ret))
			return error_of(inflater, ret);
		if (!in.pos && out.pos == *used && *left && !inflater->is_full)
			return -EBADMSG;
		*from += in.pos;
		*left -= in.pos;
		*used = out.pos;
		inflater->wanted = ret;
		inflater->is_full = ret && out.pos == size; /* ret 0: the whole frame is out */
	}
	return inflater->is_full || *left;
}

/* log2 of the window that zstd uses on this level for an input of unknown size. */
static int window_of(int level)
{
	static const struct {
		int level, log;
	} steps[] = {{22, 27}, {21, 26}, {20, 25}, {17, 23}, {9, 22}, {3, 21}};

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
		if (level >= steps[i].level)
			return steps[i].log;
	return FREE_LOG;
}

int perfring__deflater_open(struct perfring_deflater **deflater, int level, uint32_t streams)
{
	int window = WINDOW_LOG;
	ZSTD_CCtx *zstd;

	*deflater = NULL;
	if (level < 1 || level > ZSTD_maxCLevel())
		return -EINVAL;
	zstd = ZSTD_createCCtx();
	if (!zstd)
		return -ENOMEM;
	ZSTD_CCtx_setParameter(zstd, ZSTD_c_compressionLevel, level);
	while (window > FREE_LOG &&
	       excess(UINT64_C(1) << window, UINT64_C(1) << FREE_LOG) * streams > PERFRING_MAX_WINDOWS)
		window--;
	if (window < window_of(level))
		ZSTD_CCtx_setParameter(zstd, ZSTD_c_windowLog, window);
	*deflater = (struct perfring_deflater *)zstd;
	return 0;
}

void perfring__deflater_close(struct perfring_deflater *deflater)
{
	ZSTD_freeCCtx((ZSTD_CCtx *)deflater);
}

void perfring__deflater_reset(struct perfring_deflater *deflater)
{
	ZSTD_CCtx_reset((ZSTD_CCtx *)deflater, ZSTD_reset_session_only);
}

int perfring__deflate(struct perfring_deflater *deflater, const unsigned char **from, size_t *left, bool flush,
		      unsigned char *buffer, size_t size, size_t *used)
{
	ZSTD_inBuffer in = {*from, *left, 0};
	ZSTD_outBuffer out = {buffer, size, 0};
	size_t ret = ZSTD_compressStream2((ZSTD_CCtx *)deflater, &out, &in, flush ? ZSTD_e_flush : ZSTD_e_continue);

	*from += in.pos;
	*left -= in.pos;
	*used = out.pos;
	if (ZSTD_isError(ret))
		return ZSTD_getErrorCode(ret) == ZSTD_error_memory_allocation ? -ENOMEM : -EIO;
	return flush ? ret != 0 : in.pos < in.size;
}

#else /* nothing can be opened: no other function is called, except close with NULL */

#pragma GCC diagnostic ignored "-Wunused-parameter"

int perfring__inflater_open(struct perfring_inflater **inflater, uint64_t *windows)
{
	*inflater = NULL;
	return -EOPNOTSUPP;
}

void perfring__inflater_close(struct perfring_inflater *inflater)
{
}

void perfring__inflater_reset(struct perfring_inflater *inflater)
{
}

enum perfring_inflater_state perfring__inflater_state(const struct perfring_inflater *inflater)
{
	return PERFRING_BETWEEN_FRAMES;
}

int perfring__inflate(struct perfring_inflater *inflater, const unsigned char **from, size_t *left,
		      unsigned char *buffer, size_t size, size_t *used)
{
	return -EOPNOTSUPP;
}

int perfring__deflater_open(struct perfring_deflater **deflater, int level, uint32_t streams)
{
	*deflater = NULL;
	return -EOPNOTSUPP;
}

void perfring__deflater_close(struct perfring_deflater *deflater)
{
}

void perfring__deflater_reset(struct perfring_deflater *deflater)
{
}

int perfring__deflate(struct perfring_deflater *deflater, const unsigned char **from, size_t *left, bool flush,
		      unsigned char *buffer, size_t size, size_t *used)
{
	return -EOPNOTSUPP;
}

#endif
