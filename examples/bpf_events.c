/* bpf_events.c - what a BPF program writes by bpf_perf_event_output: pid and tid of 100 context switches. */
#include <linux/bpf.h>
#include <perfring/sample.h>
#include <perfring/session.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CODE(code, to, from, off, imm) {(code), (to), (from), (off), (imm)}

static int bpf(int command, union bpf_attr *attr)
{
	return (int)syscall(SYS_bpf, command, attr, sizeof(*attr));
}

static int attach(int map)
{
	struct bpf_insn code[] = {
		CODE(BPF_ALU64 | BPF_MOV | BPF_X, 6, 1, 0, 0), /* the context */
		CODE(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_get_current_pid_tgid),
		CODE(BPF_STX | BPF_MEM | BPF_DW, 10, 0, -8, 0), CODE(BPF_ALU64 | BPF_MOV | BPF_X, 1, 6, 0, 0),
		CODE(BPF_LD | BPF_IMM | BPF_DW, 2, BPF_PSEUDO_MAP_FD, 0, map), CODE(0, 0, 0, 0, 0),
		CODE(BPF_ALU | BPF_MOV | BPF_K, 3, 0, 0, -1), /* BPF_F_CURRENT_CPU */
		CODE(BPF_ALU64 | BPF_MOV | BPF_X, 4, 10, 0, 0), CODE(BPF_ALU64 | BPF_ADD | BPF_K, 4, 0, 0, -8),
		CODE(BPF_ALU64 | BPF_MOV | BPF_K, 5, 0, 0, 8), CODE(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_perf_event_output),
		CODE(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 0), CODE(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
	};
	union bpf_attr load = {.prog_type = BPF_PROG_TYPE_RAW_TRACEPOINT, .insns = (uintptr_t)code,
			       .insn_cnt = sizeof(code) / sizeof(*code), .license = (uintptr_t)"GPL"};
	union bpf_attr open = {.raw_tracepoint = {.name = (uintptr_t)"sched_switch"}};

	open.raw_tracepoint.prog_fd = (uint32_t)bpf(BPF_PROG_LOAD, &load);
	return bpf(BPF_RAW_TRACEPOINT_OPEN, &open);
}

int main(void)
{
	struct perf_event_attr attr = {.size = sizeof(attr), .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_BPF_OUTPUT,
				       .sample_type = PERFRING_SAMPLE_TIME | PERFRING_SAMPLE_RAW, .sample_period = 1,
				       .sample_id_all = 1};
	union bpf_attr array = {.map_type = BPF_MAP_TYPE_PERF_EVENT_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 4096};
	int map = bpf(BPF_MAP_CREATE, &array), shown = 0;
	struct perfring_session *session;
	struct perfring_target *target;
	struct perfring_sample sample;
	struct perfring_item item;
	uint64_t pid_tgid;

	if (map < 0 || perfring_target_open(&target) || perfring_target_add_cpus(target, NULL) ||
	    perfring_session_open(&session, 0))
		return perror("bpf_events"), 1;
	if (perfring_session_add(session, &attr, target) < 0 || perfring_session_put_map(session, 0, map))
		return fprintf(stderr, "bpf_events: %s\n", perfring_session_refusal(session)), 1;
	if (attach(map) < 0)
		return perror("bpf_events: sched_switch"), 1;
	while (shown < 100 && perfring_session_wait(session, 100) >= 0) {
		while (shown < 100 && perfring_session_next(session, &item) == 1)
			if (!perfring_sample_decode(item.format, item.record, &sample, NULL) && sample.raw.size >= 8) {
				memcpy(&pid_tgid, sample.raw.data, sizeof(pid_tgid)); /* RAW is padded: 12 bytes for 8 */
				printf("%d: pid %u tid %u\n", ++shown, (unsigned)(pid_tgid >> 32), (unsigned)pid_tgid);
			}
		perfring_session_return(session);
	}
	perfring_session_close(session);
	perfring_target_close(target);
	return 0;
}
