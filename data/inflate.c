/* inflate.c - zstd, when it is built in: what perf's compressed records hold (ABI.md 11.5). */
#include "inflate.h"

#include <errno.h>
#ifdef PERFRING_HAS_ZSTD
#include <zstd.h>

enum {
	WINDOW_LOG = 27, /* 128 MiB: the most that any level makes */
};

int perfring_inflater_open(struct perfring_inflater **inflater)
{
	ZSTD_DCtx *zstd = ZSTD_createDCtx();

	*inflater = (struct perfring_inflater *)zstd;
	if (!zstd)
		return -ENOMEM;
	ZSTD_DCtx_setParameter(zstd, ZSTD_d_windowLogMax, WINDOW_LOG);
	return 0;
}

void perfring_inflater_close(struct perfring_inflater *inflater)
{
	ZSTD_freeDCtx((ZSTD_DCtx *)inflater);
}

int perfring_inflate(struct perfring_inflater *inflater, const unsigned char **from, size_t *left, unsigned char *room,
		     size_t size, size_t *used)
{
	ZSTD_inBuffer in = {*from, *left, 0};
	ZSTD_outBuffer out = {room, size, 0};
	size_t ret;

	do {
		size_t before = in.pos + out.pos;

		ret = ZSTD_decompressStream((ZSTD_DCtx *)inflater, &out, &in);
		if (ZSTD_isError(ret))
			return -EBADMSG;
		if (in.pos + out.pos == before)
			break;
	} while (out.pos < out.size);
	*from += in.pos;
	*left -= in.pos;
	*used = out.pos;
	if (in.pos < in.size && out.pos < out.size)
		return -EBADMSG;
	return out.pos == out.size;
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
