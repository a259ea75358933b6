/* mirror.h - bit-fields: on big-endian machines, compilers lay them out from the other end of the word (docs/abi.md
 * 1.4).
 *
 * swap.c converts flag words of attrs and entries of branches by it.  Inline and without state.
 */
#ifndef PERFRING_SAMPLE_MIRROR_H
#define PERFRING_SAMPLE_MIRROR_H

#include <perfring/base.h>

/* Inline, so that a constant mode folds. */
#ifdef __OPTIMIZE__
#define FOLDED static inline __attribute__((always_inline))
#else /* nothing would be folded: 1.8 MB of code, and six times as long to compile */
#define FOLDED static inline
#endif

FOLDED uint64_t low_bits(unsigned width)
{
	return ~UINT64_C(0) >> (64 - width);
}

/* The bit-field with this little-endian bit number, moved to its place on the other machines, or back (to_little). */
FOLDED uint64_t mirror_field(uint64_t word, bool to_little, unsigned bit, unsigned width)
{
	unsigned mirrored = 64 - bit - width;

	return to_little ? (word >> mirrored & low_bits(width)) << bit : (word >> bit & low_bits(width)) << mirrored;
}

/* A word of one-bit fields. */
FOLDED uint64_t mirror_bits(uint64_t word)
{
	word = __builtin_bswap64(word);
	word = (word >> 4 & UINT64_C(0x0f0f0f0f0f0f0f0f)) | (word & UINT64_C(0x0f0f0f0f0f0f0f0f)) << 4;
	word = (word >> 2 & UINT64_C(0x3333333333333333)) | (word & UINT64_C(0x3333333333333333)) << 2;
	return (word >> 1 & UINT64_C(0x5555555555555555)) | (word & UINT64_C(0x5555555555555555)) << 1;
}

/* A bit without a row in values.def counts as a flag of one bit. */
FOLDED uint64_t mirror_attr_flags(uint64_t word, bool to_little)
{
	uint64_t mirrored = mirror_bits(word);

#define PERFRING_ATTR_FLAG(flag, bit, width) \
	if ((width) > 1) \
		mirrored = (mirrored & ~mirror_field(~UINT64_C(0), to_little, bit, width)) | \
			   mirror_field(word, to_little, bit, width);
#include <perfring/values.def>
	return mirrored;
}

FOLDED uint64_t mirror_branch_flags(uint64_t word, bool to_little)
{
	return 0
#define PERFRING_BRANCH_FLAG(flag, bit, width, show) | mirror_field(word, to_little, bit, width)
#include <perfring/values.def>
		;
}

/* Converts a word of bit-fields, by their values, from the other byte order or to it. */
#define SWAP_BITS(to_foreign, mirror, word) \
	((to_foreign) ? __builtin_bswap64(mirror(word, __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__)) \
		      : mirror(__builtin_bswap64(word), __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__))

#endif
