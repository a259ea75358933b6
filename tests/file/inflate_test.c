/* inflate_test.c - zstd's frames come out whole, wherever the buffer, the input or the frame ends (file/inflate.h). */
#include "test.h"

#include <errno.h>
#include <stdlib.h>
#include "file/inflate.h"

TestSuite(inflate, .timeout = 60);

enum {
	PLAIN = 100000,
	PACKED = 2 * PLAIN,
};

static unsigned char plain[PLAIN], packed[PACKED], out[PLAIN + 1];
static uint64_t windows;

/* A frame of the first `size` bytes, or with `size` 0 of none, that ends there: flushed, as perf's are, it would go on. */
static size_t pack_frame(size_t size)
{
	static const unsigned char head[] = {0x28, 0xb5, 0x2f, 0xfd, 0xa0};
	size_t used = 0, at;

	/* A frame that is not compressed: magic, its size in 4 bytes, blocks of at most 64 KiB, each with 3 bytes before it. */
	memcpy(packed, head, sizeof(head));
	memcpy(packed + sizeof(head), &(uint32_t){(uint32_t)size}, 4);
	used = sizeof(head) + 4;
	at = 0;
	do {
		uint32_t length = size - at < 1 << 16 ? (uint32_t)(size - at) : 1 << 16, block;

		block = length << 3 | (at + length == size);
		memcpy(packed + used, &block, 3);
		memcpy(packed + used + 3, plain + at, length);
		used += 3 + length;
		at += length;
	} while (at < size);
	return used;
}

static void fill_plain(void)
{
	for (size_t i = 0; i < PLAIN; i++)
		plain[i] = (unsigned char)(i * 7 + i / 251);
}

static struct perfring_inflater *open_one(void)
{
	struct perfring_inflater *inflater;
	int error = perfring__inflater_open(&inflater, &windows);

	if (error == -EOPNOTSUPP)
		cr_skip_test("SKIP-ENV: built without libzstd");
	cr_assert_eq(error, 0);
	fill_plain();
	return inflater;
}

/* Buffers of `buffer` bytes, inputs of `step`: all comes out, and the frame has ended. */
static void comes_out(size_t size, size_t buffer, size_t step)
{
	struct perfring_inflater *inflater = open_one();
	const unsigned char *from = packed;
	size_t end = pack_frame(size), given = 0, done = 0, left = 0, used;
	uint32_t calls = 0;
	int more = 0;

	while (given < end || left || more) {
		if (!left && !more) {
			left = end - given < step ? end - given : step;
			given += left;
		}
		more = perfring__inflate(inflater, &from, &left, out + done,
					 done + buffer <= size ? buffer : size - done + 1, &used);
		cr_assert_geq(more, 0, "%zu in buffers of %zu by %zu: %d", size, buffer, step, more);
		done += used;
		cr_assert_leq(done, size);
		cr_assert_lt(++calls, 4 * (size + end) + 4);
	}
	cr_assert_eq(done, size);
	cr_assert(!memcmp(out, plain, size));
	cr_assert_eq(perfring__inflater_state(inflater), PERFRING_BETWEEN_FRAMES, "%zu in buffers of %zu by %zu", size,
		     buffer, step);
	perfring__inflater_close(inflater);
	cr_assert_eq(windows, 0);
}

Test(inflate, whatever_the_room)
{
	static const size_t sizes[] = {0, 1, 100, 65535, 65536, 65537, PLAIN};
	static const size_t buffers[] = {1, 7, 100, 4096, 65536, PLAIN};
	static const size_t steps[] = {1, 3, 1000, PACKED};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		for (size_t j = 0; j < sizeof(buffers) / sizeof(buffers[0]); j++)
			for (size_t k = 0; k < sizeof(steps) / sizeof(steps[0]); k++)
				if (sizes[i] <= 100 || (buffers[j] >= 100 && steps[k] >= 1000))
					comes_out(sizes[i], buffers[j], steps[k]);
}

/* The buffer is as large as the frame: nothing is held back, and what comes next begins another. */
Test(inflate, a_room_that_ends_with_the_frame)
{
	static const size_t sizes[] = {1, 100, 65536, PLAIN};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct perfring_inflater *inflater = open_one();
		const unsigned char *from = packed;
		size_t left = pack_frame(sizes[i]), used;

		cr_assert_eq(perfring__inflate(inflater, &from, &left, out, sizes[i], &used), 0);
		cr_assert_eq(used, sizes[i]);
		cr_assert_eq(left, 0);
		cr_assert_eq(perfring__inflater_state(inflater), PERFRING_BETWEEN_FRAMES);
		perfring__inflater_close(inflater);
	}
}

/* An input that ends inside a frame is primed for more, and is no fault; what is no frame is one. */
Test(inflate, what_is_cut_or_no_frame)
{
	struct perfring_inflater *inflater = open_one();
	size_t end = pack_frame(1000), left, used;
	const unsigned char *from;

	for (size_t cut = 1; cut < end; cut++) {
		from = packed, left = cut;
		cr_assert_eq(perfring__inflate(inflater, &from, &left, out, sizeof(out), &used), 0);
		cr_assert_eq(left, 0);
		cr_assert_neq(perfring__inflater_state(inflater), PERFRING_BETWEEN_FRAMES);
		perfring__inflater_reset(inflater);
		cr_assert_eq(perfring__inflater_state(inflater), PERFRING_BETWEEN_FRAMES);
	}
	from = plain, left = sizeof(plain);
	cr_assert_eq(perfring__inflate(inflater, &from, &left, out, sizeof(out), &used), -EBADMSG);
	perfring__inflater_close(inflater);
}
