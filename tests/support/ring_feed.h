/* ring_feed.h - the same writes into a ring of ours and into the kernel's: up to two outputs that share one ring.
 *
 * The kernel writes a record of any size from 16 bytes on when a BPF program run by this thread hands it to a
 * bpf-output event: a SAMPLE whose RAW field we choose.  What it writes is known to the byte, so ours write the same.
 */
#ifndef RING_FEED_H
#define RING_FEED_H

#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <linux/bpf.h>
#include <perfring/wakeup.h>
#include <perfring/writer.h>
#include "foreign.h"

enum {
	FEED_RAW_MAX = 65536,
	FEED_FORMAT_LOST = 1 << 4, /* the installed header may not know it */
	FEED_TRAILER = PERF_SAMPLE_TID | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER,
};

struct feed_options {
	bool live;
	uint32_t pages;
	bool backward, overwrite;
	bool watermark;
	uint32_t wakeup; /* the first event's word when `watermark` */
	uint32_t wakeup_events[2];
	uint64_t sample_type; /* some of FEED_TRAILER */
	unsigned outputs;     /* 1 or 2 */
	uint32_t policy;
	uint64_t wait_ns;
	int32_t wake_fd; /* 0: none */
};

struct feed {
	struct feed_options options;
	struct perfring_ring ring;
	struct perf_event_mmap_page *page;
	const unsigned char *data;
	uint64_t size;
	struct perfring_output outputs[2]; /* of ours */
	uint64_t ids[2];
	bool attached[2];
	struct perfring_writer *writer;
	int fds[2]; /* of the kernel's */
	char reason[160];
};

/* ---- the kernel's side ---- */

struct feed_kernel {
	int events, program;
	unsigned char *payload;
	char reason[160];
};

#define FEED_INSN(code_, dst, src, off_, imm_) \
	(struct bpf_insn) \
	{ \
		.code = (code_), .dst_reg = (dst), .src_reg = (src), .off = (off_), .imm = (imm_) \
	}

static inline long feed_bpf(int command, union bpf_attr *attr)
{
	return syscall(SYS_bpf, command, attr, sizeof(*attr));
}

/* The program: writes payload[0 .. ctx[0]) to the event in slot ctx[1], returns what the kernel said to that. */
static inline struct feed_kernel *feed_kernel(void)
{
	static struct feed_kernel kernel = {-1, -1, NULL, ""};
	static const char license[] = "Dual MIT/GPL";
	union bpf_attr attr;
	int payload;

	if (kernel.events >= 0 || kernel.reason[0])
		return &kernel;
	memset(&attr, 0, sizeof(attr));
	attr.map_type = BPF_MAP_TYPE_PERF_EVENT_ARRAY;
	attr.key_size = 4;
	attr.value_size = 4;
	attr.max_entries = 2;
	kernel.events = (int)feed_bpf(BPF_MAP_CREATE, &attr);
	memset(&attr, 0, sizeof(attr));
	attr.map_type = BPF_MAP_TYPE_ARRAY;
	attr.map_flags = 1 << 10; /* BPF_F_MMAPABLE */
	attr.key_size = 4;
	attr.value_size = FEED_RAW_MAX;
	attr.max_entries = 1;
	payload = (int)feed_bpf(BPF_MAP_CREATE, &attr);
	if (kernel.events < 0 || payload < 0) {
		snprintf(kernel.reason, sizeof(kernel.reason), "SKIP-ENV: bpf(BPF_MAP_CREATE): %s: needs CAP_BPF",
			 strerror(errno));
		return &kernel;
	}
	kernel.payload = mmap(NULL, FEED_RAW_MAX, PROT_READ | PROT_WRITE, MAP_SHARED, payload, 0);
	if (kernel.payload == MAP_FAILED) {
		snprintf(kernel.reason, sizeof(kernel.reason), "SKIP-ENV: mmap of a BPF array: %s: needs Linux 5.5",
			 strerror(errno));
		return &kernel;
	}
	{
		const struct bpf_insn insns[] = {
			FEED_INSN(BPF_ALU64 | BPF_MOV | BPF_X, 6, 1, 0, 0),
			FEED_INSN(BPF_LDX | BPF_MEM | BPF_DW, 7, 6, 0, 0), /* the size */
			FEED_INSN(BPF_LDX | BPF_MEM | BPF_DW, 8, 6, 8, 0), /* the slot */
			FEED_INSN(BPF_ST | BPF_MEM | BPF_W, 10, 0, -4, 0),
			FEED_INSN(BPF_LD | BPF_DW | BPF_IMM, 1, BPF_PSEUDO_MAP_FD, 0, payload),
			FEED_INSN(0, 0, 0, 0, 0),
			FEED_INSN(BPF_ALU64 | BPF_MOV | BPF_X, 2, 10, 0, 0),
			FEED_INSN(BPF_ALU64 | BPF_ADD | BPF_K, 2, 0, 0, -4),
			FEED_INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_map_lookup_elem),
			FEED_INSN(BPF_JMP | BPF_JNE | BPF_K, 0, 0, 1, 0),
			FEED_INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
			FEED_INSN(BPF_ALU64 | BPF_MOV | BPF_X, 4, 0, 0, 0),
			FEED_INSN(BPF_ALU64 | BPF_AND | BPF_K, 7, 0, 0, FEED_RAW_MAX - 1),
			FEED_INSN(BPF_ALU64 | BPF_MOV | BPF_X, 5, 7, 0, 0),
			FEED_INSN(BPF_ALU64 | BPF_MOV | BPF_X, 1, 6, 0, 0),
			FEED_INSN(BPF_LD | BPF_DW | BPF_IMM, 2, BPF_PSEUDO_MAP_FD, 0, kernel.events),
			FEED_INSN(0, 0, 0, 0, 0),
			FEED_INSN(BPF_ALU64 | BPF_MOV | BPF_X, 3, 8, 0, 0),
			FEED_INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_perf_event_output),
			FEED_INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
		};

		memset(&attr, 0, sizeof(attr));
		attr.prog_type = BPF_PROG_TYPE_RAW_TRACEPOINT;
		attr.insns = (uintptr_t)insns;
		attr.insn_cnt = sizeof(insns) / sizeof(insns[0]);
		attr.license = (uintptr_t)license;
		kernel.program = (int)feed_bpf(BPF_PROG_LOAD, &attr);
	}
	if (kernel.program < 0)
		snprintf(kernel.reason, sizeof(kernel.reason),
			 "SKIP-ENV: bpf(BPF_PROG_LOAD): %s: needs CAP_BPF and CAP_PERFMON", strerror(errno));
	close(payload); /* the mapping and the program keep it */
	return &kernel;
}

static inline bool feed_kernel_event(struct feed *feed, unsigned i)
{
	const struct feed_options *options = &feed->options;
	struct perf_event_attr attr = {.size = PERF_ATTR_SIZE_VER5};
	union bpf_attr update;
	uint32_t key = i;

	attr.type = PERF_TYPE_SOFTWARE;
	attr.config = PERF_COUNT_SW_BPF_OUTPUT;
	attr.sample_period = 1;
	attr.sample_type = PERF_SAMPLE_RAW | options->sample_type;
	attr.sample_id_all = 1;
	attr.read_format = FEED_FORMAT_LOST;
	attr.write_backward = options->backward;
	if (i == 0 && options->watermark) {
		attr.watermark = 1;
		attr.wakeup_watermark = options->wakeup;
	} else {
		attr.wakeup_events = options->wakeup_events[i];
	}
	feed->fds[i] = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 8 /* CLOEXEC */);
	if (feed->fds[i] < 0) {
		snprintf(feed->reason, sizeof(feed->reason),
			 "SKIP-ENV: perf_event_open(bpf-output): %s: needs CAP_PERFMON and Linux 6.0", strerror(errno));
		return false;
	}
	memset(&update, 0, sizeof(update));
	update.map_fd = (uint32_t)feed_kernel()->events;
	update.key = (uintptr_t)&key;
	update.value = (uintptr_t)&feed->fds[i];
	if (feed_bpf(BPF_MAP_UPDATE_ELEM, &update) || ioctl(feed->fds[i], PERF_EVENT_IOC_ID, &feed->ids[i])) {
		snprintf(feed->reason, sizeof(feed->reason), "SKIP-ENV: a bpf-output event: %s", strerror(errno));
		return false;
	}
	return true;
}

static inline bool feed_kernel_output(unsigned i, const void *raw, uint64_t size)
{
	struct feed_kernel *kernel = feed_kernel();
	uint64_t context[2] = {size, i};
	union bpf_attr attr;

	memcpy(kernel->payload, raw, (size_t)size);
	memset(&attr, 0, sizeof(attr));
	attr.test.prog_fd = (uint32_t)kernel->program;
	attr.test.ctx_in = (uintptr_t)context;
	attr.test.ctx_size_in = sizeof(context);
	return feed_bpf(BPF_PROG_TEST_RUN, &attr) == 0 && attr.test.retval == 0;
}

/* ---- either side ---- */

static inline unsigned feed_bits(uint64_t type)
{
	return (unsigned)__builtin_popcountll(type);
}

/* The sample_id trailer (docs/abi.md 4.2): TID, CPU, IDENTIFIER. */
static inline void feed_trailer(const struct perfring_output *output, void *buffer)
{
	const struct feed *feed = output->data;
	uint32_t ids[2] = {(uint32_t)getpid(), (uint32_t)syscall(SYS_gettid)};
	uint32_t cpu[2] = {(uint32_t)sched_getcpu(), 0};
	unsigned char *at = buffer;

	if (feed->options.sample_type & PERF_SAMPLE_TID)
		memcpy(at, ids, 8), at += 8;
	if (feed->options.sample_type & PERF_SAMPLE_CPU)
		memcpy(at, cpu, 8), at += 8;
	if (feed->options.sample_type & PERF_SAMPLE_IDENTIFIER)
		memcpy(at, &output->id, 8);
}

/* Bytes of a record before its RAW payload. */
static inline uint64_t feed_overhead(const struct feed *feed)
{
	return 12 + 8 * feed_bits(feed->options.sample_type);
}

/* The sample as the kernel would write it: `size` bytes, of which the RAW payload is taken from `raw`. */
static inline void feed_compose(const struct feed *feed, unsigned i, const void *raw, uint64_t size,
				unsigned char *record)
{
	struct perf_event_header header = {PERF_RECORD_SAMPLE, PERF_RECORD_MISC_KERNEL, (uint16_t)size};
	uint32_t payload = (uint32_t)(size - feed_overhead(feed));
	uint32_t ids[2] = {(uint32_t)getpid(), (uint32_t)syscall(SYS_gettid)};
	uint32_t cpu[2] = {(uint32_t)sched_getcpu(), 0};

	memcpy(record, &header, 8), record += 8;
	if (feed->options.sample_type & PERF_SAMPLE_IDENTIFIER)
		memcpy(record, &feed->ids[i], 8), record += 8;
	if (feed->options.sample_type & PERF_SAMPLE_TID)
		memcpy(record, ids, 8), record += 8;
	if (feed->options.sample_type & PERF_SAMPLE_CPU)
		memcpy(record, cpu, 8), record += 8;
	memcpy(record, &payload, 4);
	memcpy(record + 4, raw, payload);
}

/* Whether it went well; `reason` says why not. */
static inline bool feed_open(struct feed *feed, const struct feed_options *options)
{
	struct perfring_ring_options memory = {0};
	struct perfring_writer_options writing = {0};
	int error;

	memset(feed, 0, sizeof(*feed));
	feed->options = *options;
	feed->fds[0] = feed->fds[1] = -1;
	for (unsigned i = 0; i < options->outputs; i++) {
		feed->ids[i] = 100 + i;
		feed->attached[i] = true;
	}
	if (options->live) {
		if (feed_kernel()->reason[0]) {
			memcpy(feed->reason, feed_kernel()->reason, sizeof(feed->reason));
			return false;
		}
		for (unsigned i = 0; i < options->outputs; i++)
			if (!feed_kernel_event(feed, i))
				return false;
		error = perfring_ring_map(&feed->ring, feed->fds[0], options->pages,
					  options->overwrite ? PERFRING_RING_OVERWRITE : 0);
		if (error == 0 && options->outputs == 2 && ioctl(feed->fds[1], PERF_EVENT_IOC_SET_OUTPUT, feed->fds[0]))
			error = -errno;
	} else {
		memory.pages = options->pages;
		memory.flags = (options->backward ? PERFRING_RING_BACKWARD : 0u) |
			       (options->overwrite ? PERFRING_RING_OVERWRITE : 0u);
		memory.watermark = options->watermark;
		memory.wakeup = options->wakeup;
		error = perfring_ring_create(&feed->ring, &memory);
		writing.policy = options->policy;
		writing.wait_ns = options->wait_ns;
		writing.wake_fd = options->wake_fd ? options->wake_fd : -1;
		if (error == 0)
			error = perfring_writer_open(&feed->writer, &feed->ring, &writing);
		for (unsigned i = 0; i < options->outputs; i++) {
			feed->outputs[i].id = feed->ids[i];
			feed->outputs[i].wakeup_events = options->wakeup_events[i];
			feed->outputs[i].trailer_size = 8 * feed_bits(options->sample_type);
			feed->outputs[i].trailer = feed_trailer;
			feed->outputs[i].data = feed;
		}
	}
	if (error)
		snprintf(feed->reason, sizeof(feed->reason), "a ring of %u pages: %s", options->pages,
			 strerror(-error));
	feed->page = feed->ring.page;
	feed->data = feed->ring.data;
	feed->size = feed->ring.size;
	return error == 0;
}

static inline void feed_close(struct feed *feed)
{
	if (feed->writer)
		perfring_writer_close(feed->writer);
	perfring_ring_close(&feed->ring);
	for (unsigned i = 0; i < 2; i++)
		if (feed->fds[i] >= 0)
			close(feed->fds[i]);
}

/* Ours must know another feed's ids to write the same LOST records. */
static inline void feed_take_ids(struct feed *feed, const struct feed *from)
{
	for (unsigned i = 0; i < feed->options.outputs; i++)
		feed->outputs[i].id = feed->ids[i] = from->ids[i];
}

/* One sample of `size` bytes with this payload.  Whether it is in the ring. */
static inline bool feed_write(struct feed *feed, unsigned i, const void *raw, uint64_t size)
{
	struct perfring_claim claim;
	unsigned char *buffer;

	if (!feed->attached[i])
		return false;
	if (feed->options.live)
		return feed_kernel_output(i, raw, size - feed_overhead(feed));
	buffer = perfring_writer_reserve(feed->writer, &feed->outputs[i], size, &claim);
	if (!buffer)
		return false;
	feed_compose(feed, i, raw, size, buffer);
	perfring_writer_commit(feed->writer, &claim);
	return true;
}

static inline void feed_pause(struct feed *feed, bool paused)
{
	if (feed->options.live)
		ioctl(feed->fds[0], PERF_EVENT_IOC_PAUSE_OUTPUT, paused ? 1L : 0L);
	else
		perfring_writer_pause(feed->writer, paused);
}

/* Takes the second output off the ring, or puts it back. */
static inline void feed_attach(struct feed *feed, bool attached)
{
	if (feed->options.live)
		ioctl(feed->fds[1], PERF_EVENT_IOC_SET_OUTPUT, attached ? (long)feed->fds[0] : -1L);
	feed->attached[1] = attached;
}

static inline bool feed_poll(struct feed *feed)
{
	struct pollfd fd = {.fd = feed->fds[0], .events = POLLIN};

	if (!feed->options.live)
		return perfring_wakeup_poll(&feed->ring) & POLLIN;
	return poll(&fd, 1, 0) == 1 && (fd.revents & POLLIN);
}

/* PERF_FORMAT_LOST */
static inline uint64_t feed_lost(const struct feed *feed, unsigned i)
{
	uint64_t values[2] = {0, 0};

	if (!feed->options.live)
		return feed->outputs[i].lost;
	return read(feed->fds[i], values, sizeof(values)) == sizeof(values) ? values[1] : UINT64_MAX;
}

static inline int feed_fd(const struct feed *feed)
{
	return feed->options.live ? feed->fds[0] : feed->ring.fd;
}

#endif
