/* inflate.c - zstd, when it is built in: what perf's compressed records hold (ABI.md 11.5). */
#include "inflate.h"

#include <errno.h>
#ifdef PERFRING_HAS_ZSTD
#include <stdlib.h>
#include <zstd.h>
#include <zstd_errors.h>

enum {
	WINDOW_LOG = 27, /* 128 MiB: the most that any level makes */
	BLOCK_HEADER = 3,
};

struct perfring_inflater {
	ZSTD_DCtx *zstd;
	size_t wanted; /* zstd's next bytes: of a block and the header behind it; 0: a frame has ended */
	bool is_full;  /* the room was, so that zstd may hold back some */
};

int perfring_inflater_open(struct perfring_inflater **inflater)
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
	ZSTD_DCtx_setParameter(opened->zstd, ZSTD_d_windowLogMax, WINDOW_LOG);
	return 0;
}

void perfring_inflater_close(struct perfring_inflater *inflater)
{
	if (!inflater)
		return;
	ZSTD_freeDCtx(inflater->zstd);
	free(inflater);
}

void perfring_inflater_reset(struct perfring_inflater *inflater)
{
	ZSTD_DCtx_reset(inflater->zstd, ZSTD_reset_session_only);
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

int perfring_inflate(struct perfring_inflater *inflater, const unsigned char **from, size_t *left, unsigned char *room,
		     size_t size, size_t *used)
{
	ZSTD_outBuffer out = {room, size, 0};

	*used = 0;
	while (out.pos < size && (*left || inflater->is_full)) {
		size_t step = step_of(inflater), ret;
		ZSTD_inBuffer in = {*from, step < *left ? step : *left, 0};

		ret = ZSTD_decompressStream(inflater->zstd, &out, &in);
		if (ZSTD_isError(ret))
			return ZSTD_getErrorCode(ret) == ZSTD_error_memory_allocation ? -ENOMEM : -EBADMSG;
		if (!in.pos && out.pos == *used && *left && !inflater->is_full)
			return -EBADMSG;
		*from += in.pos;
		*left -= in.pos;
		*used = out.pos;
		inflater->wanted = ret;
		inflater->is_full = out.pos == size;
	}
	return inflater->is_full;
}

int perfring_deflater_open(struct perfring_deflater **deflater, int level)
{
	ZSTD_CCtx *zstd;

	*deflater = NULL;
	if (level < 1 || level > ZSTD_maxCLevel())
		return -EINVAL;
	zstd = ZSTD_createCCtx();
	if (!zstd)
		return -ENOMEM;
	ZSTD_CCtx_setParameter(zstd, ZSTD_c_compressionLevel, level);
	*deflater = (struct perfring_deflater *)zstd;
	return 0;
}

void perfring_deflater_close(struct perfring_deflater *deflater)
{
	ZSTD_freeCCtx((ZSTD_CCtx *)deflater);
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
		return -EIO;
	return flush ? ret != 0 : in.pos < in.size;
}

#else

int perfring_inflater_open(struct perfring_inflater **inflater)
{
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

int perfring_deflater_open(struct perfring_deflater **deflater, int level)
{
	(void)level;
	*deflater = NULL;
	return -EOPNOTSUPP;
}

void perfring_deflater_close(struct perfring_deflater *deflater)
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
