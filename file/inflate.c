/* inflate.c - zstd, when it is built in: what perf's compressed records hold (docs/abi.md 11.5). */
#include "inflate.h"

#include <errno.h>
#ifdef PERFRING_HAS_ZSTD
#include <stdlib.h>
#include <zstd.h>
#include <zstd_errors.h>

enum {
	WINDOW_LOG = 27,  /* 128 MiB: the most that any level makes */
	FREE_LOG = 20,    /* 1 MiB of each window is not counted: any number of streams may have as much */
	BLOCKS = 1 << 19, /* more than zstd has beside a window, for blocks on their way */
	BLOCK_HEADER = 3,
};

struct perfring_inflater {
	ZSTD_DCtx *zstd;
	uint64_t *windows; /* bytes that count, of all inflaters of a file; */
	uint64_t counted;  /* of them its own: in a frame's header those that it may ask for, then those that it has */
	size_t bare;       /* bytes of a ZSTD_DCtx without a window */
	int log;           /* of the largest window that this frame may have */
	size_t wanted;     /* zstd's next bytes: of a block and the header behind it; 0: a frame has ended */
	bool is_full;      /* the room was, so that zstd may hold back some */
	bool is_in_header; /* of a frame */
};

/* What counts of so many bytes. */
static uint64_t beyond(uint64_t bytes, uint64_t spared)
{
	return bytes > spared ? bytes - spared : 0;
}

static void count(struct perfring_inflater *inflater, uint64_t bytes)
{
	*inflater->windows += bytes - inflater->counted;
	inflater->counted = bytes;
}

/* Counts what zstd has by now. */
static void settle(struct perfring_inflater *inflater)
{
	uint64_t spared = inflater->bare + BLOCKS + (UINT64_C(1) << FREE_LOG);

	count(inflater, beyond(ZSTD_sizeof_DCtx(inflater->zstd), spared));
	inflater->is_in_header = false;
}

/* Counts the largest window that may still be had, until the header tells what the frame needs: others may begin theirs
 * meanwhile.  zstd frees the window that it has before it takes another. */
static int begin_frame(struct perfring_inflater *inflater)
{
	uint64_t left = beyond(PERFRING_MOST_WINDOWS, *inflater->windows - inflater->counted);
	uint64_t spared = UINT64_C(1) << FREE_LOG, most;

	inflater->log = WINDOW_LOG;
	while (inflater->log > FREE_LOG && beyond(UINT64_C(1) << inflater->log, spared) > left)
		inflater->log--;
	if (ZSTD_isError(ZSTD_DCtx_setParameter(inflater->zstd, ZSTD_d_windowLogMax, inflater->log)))
		return -EBADMSG;
	most = beyond(UINT64_C(1) << inflater->log, spared);
	if (inflater->counted < most)
		count(inflater, most);
	inflater->is_in_header = true;
	return 0;
}

int perfring_inflater_open(struct perfring_inflater **inflater, uint64_t *windows)
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
	opened->bare = ZSTD_sizeof_DCtx(opened->zstd);
	return 0;
}

void perfring_inflater_close(struct perfring_inflater *inflater)
{
	if (!inflater)
		return;
	count(inflater, 0);
	ZSTD_freeDCtx(inflater->zstd);
	free(inflater);
}

void perfring_inflater_reset(struct perfring_inflater *inflater)
{
	ZSTD_DCtx_reset(inflater->zstd, ZSTD_reset_session_only);
	settle(inflater);
	inflater->wanted = 0;
	inflater->is_full = false;
}

enum perfring_inflater_place perfring_inflater_place(const struct perfring_inflater *inflater)
{
	return !inflater->wanted                  ? PERFRING_BETWEEN_FRAMES
	       : inflater->wanted == BLOCK_HEADER ? PERFRING_BETWEEN_BLOCKS
						  : PERFRING_INSIDE_A_BLOCK;
}

/* What zstd takes in one step: of an error it does not tell how much came out before it in the same call. */
static size_t step_of(const struct perfring_inflater *inflater)
{
	if (inflater->wanted > BLOCK_HEADER)
		return inflater->wanted - BLOCK_HEADER;
	return inflater->wanted ? inflater->wanted : 1;
}

static int refusal(const struct perfring_inflater *inflater, size_t ret)
{
	ZSTD_ErrorCode code = ZSTD_getErrorCode(ret);

	if (code == ZSTD_error_frameParameter_windowTooLarge)
		return inflater->log < WINDOW_LOG ? -ENOBUFS : -EFBIG;
	return code == ZSTD_error_memory_allocation ? -ENOMEM : -EBADMSG;
}

int perfring_inflate(struct perfring_inflater *inflater, const unsigned char **from, size_t *left, unsigned char *room,
		     size_t size, size_t *used)
{
	ZSTD_outBuffer out = {room, size, 0};
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
		/* of a header zstd wants more than a block's, until it has all of it */
		if (inflater->is_in_header && (ZSTD_isError(ret) || ret <= BLOCK_HEADER))
			settle(inflater);
		if (ZSTD_isError(ret))
			return refusal(inflater, ret);
		if (!in.pos && out.pos == *used && *left && !inflater->is_full)
			return -EBADMSG;
		*from += in.pos;
		*left -= in.pos;
		*used = out.pos;
		inflater->wanted = ret;
		inflater->is_full = ret && out.pos == size; /* 0: the frame has ended, and all of it is out */
	}
	return inflater->is_full || *left;
}

/* The window, as a power of two, that zstd takes on a level for an input whose size it does not know. */
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

int perfring_deflater_open(struct perfring_deflater **deflater, int level, uint32_t streams)
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
	       beyond(UINT64_C(1) << window, UINT64_C(1) << FREE_LOG) * streams > PERFRING_MOST_WINDOWS)
		window--;
	if (window < window_of(level))
		ZSTD_CCtx_setParameter(zstd, ZSTD_c_windowLog, window);
	*deflater = (struct perfring_deflater *)zstd;
	return 0;
}

void perfring_deflater_close(struct perfring_deflater *deflater)
{
	ZSTD_freeCCtx((ZSTD_CCtx *)deflater);
}

void perfring_deflater_reset(struct perfring_deflater *deflater)
{
	ZSTD_CCtx_reset((ZSTD_CCtx *)deflater, ZSTD_reset_session_only);
}

int perfring_deflate(struct perfring_deflater *deflater, const unsigned char **from, size_t *left, bool flush,
		     unsigned char *room, size_t size, size_t *used)
{
	ZSTD_inBuffer in = {*from, *left, 0};
	ZSTD_outBuffer out = {room, size, 0};
	size_t ret = ZSTD_compressStream2((ZSTD_CCtx *)deflater, &out, &in, flush ? ZSTD_e_flush : ZSTD_e_continue);

	*from += in.pos;
	*left -= in.pos;
	*used = out.pos;
	if (ZSTD_isError(ret))
		return ZSTD_getErrorCode(ret) == ZSTD_error_memory_allocation ? -ENOMEM : -EIO;
	return flush ? ret != 0 : in.pos < in.size;
}

#else

int perfring_inflater_open(struct perfring_inflater **inflater, uint64_t *windows)
{
	(void)windows;
	*inflater = NULL;
	return -EOPNOTSUPP;
}

void perfring_inflater_close(struct perfring_inflater *inflater)
{
	(void)inflater;
}

void perfring_inflater_reset(struct perfring_inflater *inflater)
{
	(void)inflater;
}

enum perfring_inflater_place perfring_inflater_place(const struct perfring_inflater *inflater)
{
	(void)inflater;
	return PERFRING_BETWEEN_FRAMES;
}

int perfring_inflate(struct perfring_inflater *inflater, const unsigned char **from, size_t *left, unsigned char *room,
		     size_t size, size_t *used)
{
	(void)inflater, (void)from, (void)left, (void)room, (void)size, (void)used;
	return -EOPNOTSUPP;
}

int perfring_deflater_open(struct perfring_deflater **deflater, int level, uint32_t streams)
{
	(void)level, (void)streams;
	*deflater = NULL;
	return -EOPNOTSUPP;
}

void perfring_deflater_close(struct perfring_deflater *deflater)
{
	(void)deflater;
}

void perfring_deflater_reset(struct perfring_deflater *deflater)
{
	(void)deflater;
}

int perfring_deflate(struct perfring_deflater *deflater, const unsigned char **from, size_t *left, bool flush,
		     unsigned char *room, size_t size, size_t *used)
{
	(void)deflater, (void)from, (void)left, (void)flush, (void)room, (void)size, (void)used;
	return -EOPNOTSUPP;
}

#endif
