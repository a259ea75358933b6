/* bpf_programs.c - BPF programs that are loaded already, as KSYMBOL and BPF_EVENT records (docs/abi.md 10, its end).
 *
 * synthesis.c calls it when a recording begins.  The programs and the addresses of their functions come from bpf(2), which only a
 * privileged user may ask, the functions' names from /proc/kallsyms: one without a name is left out.  Allocates; one thread.
 */
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "os/lines.h"
#include "synthesis.h"

enum {
	MAX_PROGRAMS = 4096,
	MAX_FUNCTIONS = 1024,
};

/* A function of a program, as the kernel compiled it. */
struct function {
	uint64_t addr;
	uint32_t len;
	uint32_t program; /* its index */
	char name[64];    /* in kallsyms */
};

struct program {
	uint32_t id;
	uint8_t tag[8];
};

static int bpf(int command, union bpf_attr *attr)
{
	int result = (int)syscall(SYS_bpf, command, attr, sizeof(*attr));

	return result < 0 ? -errno : result;
}

/* Appends a program and its functions, unless it was unloaded, its addresses are hidden, or it has more than MAX_FUNCTIONS.  Returns 0 or -errno. */
static int read_program(uint32_t id, struct perfring_byte_buffer *programs, struct perfring_byte_buffer *functions)
{
	uint64_t addresses[MAX_FUNCTIONS];
	uint32_t lengths[MAX_FUNCTIONS];
	struct bpf_prog_info info = {0};
	struct program program = {.id = id};
	struct function function = {0};
	union bpf_attr attr = {.prog_id = id};
	int fd = bpf(BPF_PROG_GET_FD_BY_ID, &attr), error;

	if (fd < 0)
		return perfring__os_pass_over(fd);
	info.nr_jited_ksyms = info.nr_jited_func_lens = MAX_FUNCTIONS;
	info.jited_ksyms = (uint64_t)(uintptr_t)addresses;
	info.jited_func_lens = (uint64_t)(uintptr_t)lengths;
	memset(&attr, 0, sizeof(attr));
	attr.info.bpf_fd = (uint32_t)fd;
	attr.info.info_len = sizeof(info);
	attr.info.info = (uint64_t)(uintptr_t)&info;
	error = bpf(BPF_OBJ_GET_INFO_BY_FD, &attr);
	if (!error && info.nr_jited_ksyms == info.nr_jited_func_lens && info.nr_jited_ksyms <= MAX_FUNCTIONS &&
	    info.jited_ksyms && info.jited_func_lens) {
		memcpy(program.tag, info.tag, sizeof(program.tag));
		function.program = (uint32_t)(programs->used / sizeof(program));
		perfring__byte_buffer_put(programs, &program, sizeof(program));
		for (uint32_t i = 0; i < info.nr_jited_ksyms; i++) {
			function.addr = addresses[i];
			function.len = lengths[i];
			if (function.addr)
				perfring__byte_buffer_put(functions, &function, sizeof(function));
		}
	}
	close(fd);
	return error < 0 ? perfring__os_pass_over(error) : 0;
}

static int compare_addresses(const void *a, const void *b)
{
	const struct function *one = a, *other = b;

	return one->addr < other->addr ? -1 : one->addr > other->addr;
}

static int compare_programs(const void *a, const void *b)
{
	const struct function *one = a, *other = b;

	if (one->program != other->program)
		return one->program < other->program ? -1 : 1;
	return compare_addresses(a, b);
}

/* "ADDRESS t bpf_prog_TAG_NAME	[bpf]" */
static int name_functions(struct function *functions, size_t count)
{
	struct perfring_os_lines lines;
	int error = perfring__os_lines_open(&lines, "/proc/kallsyms");
	const char *line;

	if (error)
		return perfring__os_pass_over(error);
	while ((line = perfring__os_lines_next(&lines))) {
		struct function key = {0}, *found;
		const char *name = strstr(line, " bpf_prog_");
		size_t length;

		if (!name || !strstr(name, "[bpf]"))
			continue;
		key.addr = strtoull(line, NULL, 16);
		found = bsearch(&key, functions, count, sizeof(key), compare_addresses);
		length = strcspn(++name, "\t ");
		if (found && length < sizeof(found->name))
			memcpy(found->name, name, length);
	}
	perfring__os_lines_close(&lines);
	return perfring__os_pass_over(lines.error);
}

static int put_function(struct perfring_file_writer *writer, const struct function *function)
{
	struct perfring_record record = {.type = PERFRING_RECORD_KSYMBOL};

	if (!*function->name)
		return 0;
	record.is.ksymbol = (struct perfring_record_ksymbol){
		.addr = function->addr,
		.len = function->len,
		.ksym_type = PERFRING_RECORD_KSYMBOL_TYPE_BPF,
		.name = {.data = function->name, .size = (uint32_t)strlen(function->name)},
	};
	return perfring__synthesize(writer, &record, 0, 0);
}

static int put_program(struct perfring_file_writer *writer, const struct program *program)
{
	struct perfring_record record = {.type = PERFRING_RECORD_BPF_EVENT};

	record.is.bpf_event =
		(struct perfring_record_bpf_event){.type = PERFRING_BPF_EVENT_PROG_LOAD, .id = program->id};
	memcpy(record.is.bpf_event.tag.bytes, program->tag, sizeof(program->tag));
	return perfring__synthesize(writer, &record, 0, 0);
}

int perfring__file_put_programs(struct perfring_file_writer *writer)
{
	bool has_symbols = perfring__synthesize_flag(writer, PERFRING_ATTR_FLAG_ksymbol);
	bool has_events = perfring__synthesize_flag(writer, PERFRING_ATTR_FLAG_bpf_event);
	struct perfring_byte_buffer programs = {0}, functions = {0};
	union bpf_attr attr = {.start_id = 0};
	struct function *all;
	size_t count, at = 0;
	int error = 0;

	if (!has_symbols && !has_events)
		return 0;
	/* without programs, or the permission to list them, the first call fails */
	for (uint32_t i = 0; !error && i < MAX_PROGRAMS && !bpf(BPF_PROG_GET_NEXT_ID, &attr); i++) {
		uint32_t id = attr.next_id;

		error = read_program(id, &programs, &functions);
		memset(&attr, 0, sizeof(attr));
		attr.start_id = id;
	}
	all = (struct function *)(void *)functions.bytes;
	count = functions.used / sizeof(*all);
	if (!error)
		error = programs.error ? programs.error : functions.error;
	if (!error && count) {
		qsort(all, count, sizeof(*all), compare_addresses);
		error = name_functions(all, count);
		qsort(all, count, sizeof(*all), compare_programs);
	}
	for (uint32_t i = 0; !error && i < programs.used / sizeof(struct program); i++) {
		for (; !error && at < count && all[at].program == i; at++)
			error = has_symbols ? put_function(writer, &all[at]) : 0;
		if (!error && has_events)
			error = put_program(writer, (const struct program *)(const void *)programs.bytes + i);
	}
	perfring__byte_buffer_close(&programs);
	perfring__byte_buffer_close(&functions);
	return error;
}
