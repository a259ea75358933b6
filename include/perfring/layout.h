/* layout.h - walks bytes part by part, as a layout says: payloads of features (feature.def), members of records (kinds.def).
 *
 * perfring_feature_open and perfring_record_walk begin a walk by their own layouts; text, JSON, swapping, checks and random
 * records are such walks.  A layout is a text, which is read from left to right, in parts between blanks.  The bytes may be
 * hostile; the layout may not: it is part of the program, and is not checked.  Lists are nested at most 4 deep, and an entry of a
 * {+ list has bytes; else next returns -EBADMSG.  A part may have a :name, else its name is "".  Parts:
 *
 *   y h w d :name    a number of 1, 2, 4, 8 bytes; W D: a signed one
 *   o :name          a byte: 1 if the numbers of these bytes are big-endian; swapping changes it
 *   s :name          u32 length and that number of bytes, with a NUL
 *   z :name          bytes up to a NUL
 *   cN :name         a string in N bytes, without a NUL if it fills them; c*: in all bytes that are left; CN: in N bytes, or in
 *                    fewer at the end
 *   bX :name         as many bytes as register X holds, or as the digits say
 *   aX :name         the same, an attr (struct perf_event_attr); a*: one as long as its own size
 *   r :name          all bytes that are left
 *   0N               N bytes of padding
 *   p                padding up to a multiple of 8 from bytes[0], or up to the end
 *   {X ... }         a list: the parts between, as often as register X says; {*: until the end; {+: as often as all of them
 *                    fit; {C: once for each CPU
 *   ?                if no bytes are left, the layout ends here
 *   ~{X ... }        a list that is there if all of it fits
 *   (XN ... )        the parts between if register X holds N; (X>N: if more; (N: if N or more bytes are left
 *
 * A list and a condition may have a :name as well, after the register or the number.
 *
 * After the letter of a number, in this order:
 *
 *   x                it is shown in hexadecimal
 *   =X               register X keeps it.  =X-36: less 36; =X/64: divided by 64, rounded up.  Names of registers: a to z
 *   |4|8             it is 4 or 8, or the bytes are wrong
 *   <20              it is at most 20 where it is generated
 *   ^X               it is at most what register X holds, or the bytes are wrong
 *
 * Context: any thread, also signal handlers; a walk is of one thread at a time.  Nothing is allocated.
 */
#ifndef PERFRING_LAYOUT_H
#define PERFRING_LAYOUT_H

#include <perfring/base.h>

PERFRING_BEGIN

enum perfring_layout_kind {
	PERFRING_LAYOUT_NUMBER,
	PERFRING_LAYOUT_STRING,
	PERFRING_LAYOUT_BYTES,
	PERFRING_LAYOUT_ATTR,
	PERFRING_LAYOUT_PADDING,
	PERFRING_LAYOUT_PARTS, /* internal: a list or a condition as one part */
};

/* What a number decides about the parts after it. */
enum perfring_layout_use {
	PERFRING_LAYOUT_VALUE,
	PERFRING_LAYOUT_COUNT,  /* of the entries of a list */
	PERFRING_LAYOUT_LENGTH, /* of bytes */
	PERFRING_LAYOUT_CHOICE, /* which parts follow */
};

/* One part. */
struct perfring_layout_member {
	char name[24]; /* as in the layout; "rest" for bytes beyond its last part */
	enum perfring_layout_kind kind;
	uint32_t depth;    /* number of lists around it */
	uint64_t number;   /* NUMBER */
	const void *bytes; /* where it begins; a feature's STRING ends with NUL */
	uint64_t size;     /* bytes; of a STRING without its NUL; of a NUMBER 1, 2, 4 or 8 */
	uint64_t space;    /* bytes that it takes up, with NUL and padding */
	enum perfring_layout_use use;
	uint32_t entry;  /* bytes of an entry of what a COUNT counts; 0: they differ */
	uint64_t most;   /* the highest valid NUMBER */
	bool is_signed; /* NUMBER */
	bool is_open;   /* it has all bytes that are left */
	bool is_fixed;  /* BYTES: as many as the layout says */
	bool is_hex;    /* NUMBER: one that is shown so */
	bool begins;    /* the first of an entry of its list */
};

/* A walk.  Allocated by the caller; nothing to free. */
struct perfring_layout_walk {
	const unsigned char *bytes;
	uint64_t size;
	uint64_t at;
	const char *part; /* position in the layout */
	uint64_t registers[26];
	struct {
		const char *begin;
		uint64_t left;
	} lists[4];
	uint32_t depth;
	uint32_t cpus;     /* for {C; 0: unknown, and the rest is returned as bytes.  May be set before the first next */
	uint32_t order;    /* internal */
	uint32_t has_rest; /* internal */
	void (*fill)(struct perfring_layout_walk *walk, struct perfring_layout_member *member); /* internal */
	void *filler;                                                                           /* internal */
	struct perfring_fault fault; /* of a -EBADMSG: place in the bytes */
	uint32_t is_whole;           /* internal: a list is one part, and so is a named condition that holds */
	uint32_t begins;             /* internal */
	uint64_t reserved[1];
};

/* Begins a walk over bytes[at] to bytes[size - 1], in native byte order, by a layout that lives as long as the walk. */
PERFRING_API void perfring_layout_open(struct perfring_layout_walk *walk, const char *layout, const void *bytes,
				       uint64_t at, uint64_t size);

/* The next part.  Returns 1; 0 at the end; -EBADMSG with walk->fault; -EINVAL for a walk that is all zeros.  The member
 * is valid as long as the bytes. */
PERFRING_API int perfring_layout_next(struct perfring_layout_walk *walk, struct perfring_layout_member *member);

PERFRING_END

#endif
