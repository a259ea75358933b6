/* storm.h - a BPF program that pours numbered records out: what a consumer has, and has lost, can be told to the number.
 *
 * Each run writes STORM_RUN records to the running CPU's event in the map: number n is 1 + n % 32 words, each of them n.
 */
#ifndef STORM_H
#define STORM_H

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <linux/bpf.h>
#include <perfring/session.h>

enum {
	STORM_RUN = 16,
	STORM_WORDS = 32,
	/* header, IDENTIFIER, TIME, the size of RAW and its padding */
	STORM_OVERHEAD = 32,
};

struct storm {
	int map;
	int program;
	char reason[200];
	uint64_t number;  /* the next */
	uint64_t refused; /* by the kernel: there was no space, or output was paused */
	/* a thread that goes on and on */
	pthread_t thread;
	int cpu;
	bool stop;
	uint64_t written; /* below it all is known to have been tried, and what was tried last was written */
};

static inline long storm_bpf(int command, union bpf_attr *attr)
{
	return syscall(SYS_bpf, command, attr, sizeof(*attr));
}

static inline struct perf_event_attr storm_attr(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_BPF_OUTPUT,
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TIME | PERF_SAMPLE_RAW,
		.read_format = PERF_FORMAT_ID | 1 << 4 /* LOST */,
		.sample_id_all = 1,
	};

	return attr;
}

/* Whether it went well; else `reason`. */
static inline bool storm_open(struct storm *storm)
{
	static const char license[] = "Dual MIT/GPL";
	struct bpf_insn insns[2048];
	unsigned count = 0;
	union bpf_attr attr;

	memset(storm, 0, sizeof(*storm));
	storm->program = -1;
	memset(&attr, 0, sizeof(attr));
	attr.map_type = BPF_MAP_TYPE_PERF_EVENT_ARRAY;
	attr.key_size = 4;
	attr.value_size = 4;
	attr.max_entries = (uint32_t)sysconf(_SC_NPROCESSORS_CONF);
	storm->map = (int)storm_bpf(BPF_MAP_CREATE, &attr);
	if (storm->map < 0) {
		snprintf(storm->reason, sizeof(storm->reason), "SKIP-ENV: bpf(BPF_MAP_CREATE): %s: needs CAP_BPF",
			 strerror(errno));
		return false;
	}
#define STORM_INSN(code_, dst, src, off_, imm_) \
	(insns[count++] = \
		 (struct bpf_insn){.code = (code_), .dst_reg = (dst), .src_reg = (src), .off = (off_), .imm = (imm_)})
	STORM_INSN(BPF_ALU64 | BPF_MOV | BPF_X, 6, 1, 0, 0);
	STORM_INSN(BPF_LDX | BPF_MEM | BPF_DW, 7, 6, 0, 0); /* the first number */
	STORM_INSN(BPF_ALU64 | BPF_MOV | BPF_K, 9, 0, 0, 0);
	for (int i = 0; i < STORM_RUN; i++) {
		for (int word = 0; word < STORM_WORDS; word++)
			STORM_INSN(BPF_STX | BPF_MEM | BPF_DW, 10, 7, (int16_t)(8 * (word - STORM_WORDS)), 0);
		STORM_INSN(BPF_ALU64 | BPF_MOV | BPF_X, 5, 7, 0, 0);
		STORM_INSN(BPF_ALU64 | BPF_AND | BPF_K, 5, 0, 0, STORM_WORDS - 1);
		STORM_INSN(BPF_ALU64 | BPF_LSH | BPF_K, 5, 0, 0, 3);
		STORM_INSN(BPF_ALU64 | BPF_ADD | BPF_K, 5, 0, 0, 8);
		STORM_INSN(BPF_ALU64 | BPF_MOV | BPF_X, 1, 6, 0, 0);
		STORM_INSN(BPF_LD | BPF_DW | BPF_IMM, 2, BPF_PSEUDO_MAP_FD, 0, storm->map);
		STORM_INSN(0, 0, 0, 0, 0);
		STORM_INSN(BPF_ALU | BPF_MOV | BPF_K, 3, 0, 0, -1); /* BPF_F_CURRENT_CPU */
		STORM_INSN(BPF_ALU64 | BPF_MOV | BPF_X, 4, 10, 0, 0);
		STORM_INSN(BPF_ALU64 | BPF_ADD | BPF_K, 4, 0, 0, -8 * STORM_WORDS);
		STORM_INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_perf_event_output);
		STORM_INSN(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1, 0);
		STORM_INSN(BPF_ALU64 | BPF_ADD | BPF_K, 9, 0, 0, 1);
		STORM_INSN(BPF_ALU64 | BPF_ADD | BPF_K, 7, 0, 0, 1);
	}
	STORM_INSN(BPF_ALU64 | BPF_MOV | BPF_X, 0, 9, 0, 0);
	STORM_INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
#undef STORM_INSN
	memset(&attr, 0, sizeof(attr));
	attr.prog_type = BPF_PROG_TYPE_RAW_TRACEPOINT;
	attr.insns = (uintptr_t)insns;
	attr.insn_cnt = count;
	attr.license = (uintptr_t)license;
	storm->program = (int)storm_bpf(BPF_PROG_LOAD, &attr);
	if (storm->program >= 0)
		return true;
	snprintf(storm->reason, sizeof(storm->reason),
		 "SKIP-ENV: bpf(BPF_PROG_LOAD): %s: needs CAP_BPF and CAP_PERFMON", strerror(errno));
	close(storm->map);
	return false;
}

static inline void storm_close(struct storm *storm)
{
	close(storm->program);
	close(storm->map);
}

/* One run, on this CPU.  Returns how many of it the kernel refused, or -1. */
static inline int storm_run(struct storm *storm)
{
	uint64_t context[2] = {storm->number, 0};
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.test.prog_fd = (uint32_t)storm->program;
	attr.test.ctx_in = (uintptr_t)context;
	attr.test.ctx_size_in = sizeof(context);
	if (storm_bpf(BPF_PROG_TEST_RUN, &attr))
		return -1;
	__atomic_store_n(&storm->number, storm->number + STORM_RUN, __ATOMIC_RELEASE);
	__atomic_store_n(&storm->refused, storm->refused + attr.test.retval, __ATOMIC_RELEASE);
	if (!attr.test.retval)
		__atomic_store_n(&storm->written, storm->number, __ATOMIC_RELEASE);
	return (int)attr.test.retval;
}

static inline void storm_pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static inline void *storm_blow(void *of)
{
	struct storm *storm = of;

	storm_pin(storm->cpu);
	while (!__atomic_load_n(&storm->stop, __ATOMIC_ACQUIRE))
		if (storm_run(storm) < 0)
			return of;
	return NULL;
}

static inline bool storm_begin(struct storm *storm, int cpu)
{
	storm->cpu = cpu;
	storm->stop = false;
	return pthread_create(&storm->thread, NULL, storm_blow, storm) == 0;
}

static inline bool storm_end(struct storm *storm)
{
	void *failed;

	__atomic_store_n(&storm->stop, true, __ATOMIC_RELEASE);
	pthread_join(storm->thread, &failed);
	return !failed;
}

/* Whether a sample is one of ours, whole; *number: which. */
static inline bool storm_is_whole(const struct perf_event_header *record, uint64_t *number)
{
	uint64_t words[4 + STORM_WORDS];
	uint32_t raw, size;

	if (record->size > sizeof(words))
		return false;
	memcpy(words, record, record->size);
	memcpy(&raw, &words[3], 4);
	memcpy(number, (const unsigned char *)&words[3] + 4, 8);
	size = 8 * (1 + (uint32_t)(*number % STORM_WORDS));
	if (record->size != STORM_OVERHEAD + size || raw != size + 4)
		return false;
	for (uint32_t i = 0; i < size / 8; i++)
		if (memcmp((const unsigned char *)&words[3] + 4 + 8 * i, number, 8) != 0)
			return false;
	return true;
}

#endif
