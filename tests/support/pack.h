/* pack.h - records packed by hand: the bytes that tests hold the codec against, written without it. */
#ifndef PACK_H
#define PACK_H

#include <stdint.h>
#include <string.h>
#include <linux/perf_event.h>

/* Bytes under construction; the size in their header is written when the record is finished. */
struct pack {
	unsigned char bytes[65536];
	size_t size;
};

static inline void bytes(struct pack *pack, const void *from, size_t size)
{
	memcpy(pack->bytes + pack->size, from, size);
	pack->size += size;
}

static inline void word(struct pack *pack, uint64_t value)
{
	bytes(pack, &value, 8);
}

static inline void half(struct pack *pack, uint32_t value)
{
	bytes(pack, &value, 4);
}

static inline void quarter(struct pack *pack, uint16_t value)
{
	bytes(pack, &value, 2);
}

/* A member rewritten where it stands. */
static inline void word_at(struct pack *pack, size_t at, uint64_t value)
{
	memcpy(pack->bytes + at, &value, 8);
}

static inline void half_at(struct pack *pack, size_t at, uint32_t value)
{
	memcpy(pack->bytes + at, &value, 4);
}

static inline void quarter_at(struct pack *pack, size_t at, uint16_t value)
{
	memcpy(pack->bytes + at, &value, 2);
}

static inline void start(struct pack *pack, uint32_t type, uint16_t misc)
{
	struct perf_event_header header = {type, misc, 0};

	pack->size = 0;
	bytes(pack, &header, sizeof(header));
}

#endif
