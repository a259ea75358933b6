/* kernel_record_test.c - records of this kernel: every kind that it writes but SAMPLE (docs/abi.md 13), held against what else
 * can tell, and written again byte for byte. */
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>
#include <linux/bpf.h>
#include <linux/fs.h>
#include <perfring/reader.h>
#include <perfring/record.h>
#include <perfring/sample.h>
#include "kernel_rig.h"
#include "switches.h"
#include "test.h"

TestSuite(kernel_record, .timeout = 100);

/* ---- records ---- */

static uint32_t size_with(const struct run *run, uint32_t size)
{
	return size + (run->attr.sample_id_all ? 48 : 0);
}

struct build_id {
	unsigned char bytes[20];
	uint32_t size;
	char path[512];
};

/* The build id of the first library that has one, out of its notes in memory. */
static int find_build_id(struct dl_phdr_info *object, size_t size, void *to)
{
	struct build_id *id = to;
	int i;

	(void)size;
	if (object->dlpi_name[0] != '/')
		return 0;
	for (i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &object->dlpi_phdr[i];
		const unsigned char *note = (const unsigned char *)(object->dlpi_addr + part->p_vaddr);
		const unsigned char *last = note + part->p_memsz;

		while (part->p_type == PT_NOTE && part->p_align <= 4 && note + 12 <= last) {
			uint32_t name = (half_at(note, 0) + 3) & ~3u, desc = half_at(note, 4);

			if (half_at(note, 8) == NT_GNU_BUILD_ID && name == 4 && desc <= sizeof(id->bytes)) {
				memcpy(id->bytes, note + 16, desc);
				id->size = desc;
				snprintf(id->path, sizeof(id->path), "%s", object->dlpi_name);
				return 1;
			}
			note += 12 + name + ((desc + 3) & ~3u);
		}
	}
	return 0;
}

struct place {
	size_t size;
	int prot;
	int flags;
	off_t offset;
	uint16_t misc;
	unsigned char *at;
};

struct places {
	struct place place[4];
	int fd;
};

static void map_all(void *with)
{
	struct places *places = with;
	unsigned i;

	for (i = 0; i < 4; i++) {
		struct place *place = &places->place[i];

		place->at = mmap(NULL, place->size, place->prot, place->flags,
				 place->flags & MAP_ANONYMOUS ? -1 : places->fd, place->offset);
	}
}

static void mapping_is(const struct run *run, const struct perfring_record *is, const struct place *place,
		       const struct build_id *id, int fd, uint32_t tid)
{
	const struct perfring_record_mmap2 *map = &is->is.mmap2;
	const struct mapping *mapping = mapping_of((uintptr_t)place->at);
	bool is_file = !(place->flags & MAP_ANONYMOUS);
	int generation = 0;

	cr_assert_not_null(mapping);
	trailer_is(run, is, (uint32_t)getpid(), tid, true);
	if (is->type == PERF_RECORD_MMAP) {
		cr_assert_eq(is->misc, place->misc);
		cr_assert_eq(is->is.mmap.pid, (uint32_t)getpid());
		cr_assert_eq(is->is.mmap.tid, tid);
		cr_assert_eq(is->is.mmap.len, place->size);
		cr_assert_eq(is->is.mmap.pgoff, is_file ? (uint64_t)place->offset : (uintptr_t)place->at);
		string_is(&is->is.mmap.filename, is_file ? mapping->path : "//anon");
		return;
	}
	cr_assert_eq(map->pid, (uint32_t)getpid());
	cr_assert_eq(map->tid, tid);
	cr_assert_eq(map->len, place->size);
	cr_assert_eq(map->pgoff, is_file ? (uint64_t)place->offset : (uintptr_t)place->at);
	cr_assert_eq(map->prot, (uint32_t)place->prot);
	cr_assert_eq(map->flags, (uint32_t)place->flags & (MAP_SHARED | MAP_PRIVATE));
	string_is(&map->filename, is_file ? mapping->path : "//anon");
	cr_assert_eq(map->file.has_build_id, is_file && run->attr.build_id);
	cr_assert_eq(is->misc, place->misc | (is_file && run->attr.build_id ? 0x4000 : 0));
	if (map->file.has_build_id) {
		cr_assert_eq(map->file.build_id_size, id->size);
		cr_assert_eq(memcmp(map->file.build_id, id->bytes, id->size), 0);
		return;
	}
	cr_assert_eq(map->file.maj, is_file ? mapping->maj : 0);
	cr_assert_eq(map->file.min, is_file ? mapping->min : 0);
	cr_assert_eq(map->file.ino, is_file ? mapping->inode : 0);
	if (is_file && ioctl(fd, FS_IOC_GETVERSION, &generation) == 0)
		cr_assert_eq(map->file.ino_generation, (uint32_t)generation);
}

/* Needs no permission: what the others stand on. */
Test(kernel_record, a_mapping_is_found)
{
	static struct build_id id;
	const struct mapping *mapping;

	cr_assert_eq(dl_iterate_phdr(find_build_id, &id), 1);
	cr_assert(id.size > 0 && id.path[0] == '/');
	read_mappings();
	mapping = mapping_of((uintptr_t)find_build_id);
	cr_assert_not_null(mapping);
	cr_assert_eq(mapping->mode[2], 'x', "%s", mapping->mode);
	cr_assert_null(mapping_of(0));
}

/* MMAP and both variants of MMAP2. */
Test(kernel_record, mappings)
{
	struct places places = {{
					{2 * PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, 0, 2, NULL},
					{3 * PAGE, PROT_READ, MAP_PRIVATE, PAGE, 0x2002, NULL},
					{PAGE, PROT_READ, MAP_SHARED, 0, 0x2002, NULL},
					{5 * PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, 0, 2, NULL},
				},
				-1};
	static struct build_id id;
	static struct run run;
	struct perfring_record is;
	struct actor actor;
	unsigned turn, found, i;

	cr_assert_eq(dl_iterate_phdr(find_build_id, &id), 1);
	places.fd = open(id.path, O_RDONLY | O_CLOEXEC);
	cr_assert_geq(places.fd, 0, "%s: %s", id.path, strerror(errno));
	for (turn = 0; turn < 6; turn++) {
		set_dummy(&run, turn & 1);
		run.attr.mmap = 1;
		run.attr.mmap_data = 1;
		run.attr.mmap2 = turn / 2 > 0;
		run.attr.build_id = turn / 2 > 1;
		actor_open(&actor, &run, map_all, &places);
		actor_acts(&actor, &run);
		for (i = 0; i < 4; i++)
			cr_assert(places.place[i].at != MAP_FAILED);
		read_mappings();
		found = 0;
		while (next_record(&run, &is)) {
			cr_assert_eq(is.type, run.attr.mmap2 ? PERF_RECORD_MMAP2 : PERF_RECORD_MMAP);
			for (i = 0; i < 4; i++) {
				uint64_t addr = is.type == PERF_RECORD_MMAP ? is.is.mmap.addr : is.is.mmap2.addr;

				if (addr == (uintptr_t)places.place[i].at) {
					mapping_is(&run, &is, &places.place[i], &id, places.fd, actor.tid);
					found++;
				}
			}
		}
		cr_assert_eq(found, 4);
		for (i = 0; i < 4; i++)
			munmap(places.place[i].at, places.place[i].size);
		run_close(&run);
	}
	close(places.fd);
	say_compared("MMAP, MMAP2", 24);
}

static const char *const names_given[4] = {"a", "abcdefg", "abcdefgh", "fifteen letters"};

static void take_names(void *with)
{
	unsigned i;

	(void)with;
	for (i = 0; i < 4; i++)
		prctl(PR_SET_NAME, names_given[i]);
}

Test(kernel_record, names)
{
	static const uint16_t sizes[] = {24, 24, 32, 32};
	static struct run run;
	struct perfring_record is;
	struct actor actor;
	unsigned turn, i;

	for (turn = 0; turn < 2; turn++) {
		set_dummy(&run, turn);
		run.attr.comm = 1;
		actor_open(&actor, &run, take_names, NULL);
		actor_acts(&actor, &run);
		for (i = 0; next_record(&run, &is); i++) {
			cr_assert_lt(i, 4);
			cr_assert_eq(is.type, PERF_RECORD_COMM);
			cr_assert_eq(is.misc, 0);
			cr_assert_eq(is.size, size_with(&run, sizes[i]));
			cr_assert_eq(is.is.comm.pid, (uint32_t)getpid());
			cr_assert_eq(is.is.comm.tid, actor.tid);
			string_is(&is.is.comm.comm, names_given[i]);
			trailer_is(&run, &is, (uint32_t)getpid(), actor.tid, true);
		}
		cr_assert_eq(i, 4);
		run_close(&run);
	}
	say_compared("COMM", 8);
}

static pid_t wait_for(pid_t child)
{
	int status = -1;

	cr_assert_gt(child, 0);
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %#x", (unsigned)status);
	return child;
}

static void *tell_tid(void *to)
{
	*(uint32_t *)to = thread_id();
	return NULL;
}

/* FORK, EXIT, COMM of an exec: one child that becomes a shell, and one thread.  The thread sanitizer starts others. */
Test(kernel_record, tasks)
{
	static struct run run;
	struct perfring_record is;
	unsigned turn;

	for (turn = 0; turn < 2; turn++) {
		uint32_t me = (uint32_t)getpid(), tid = thread_id(), child, thread_tid = 0;
		unsigned forks = 0, exits = 0, execs = 0;
		pthread_t thread;
		pid_t pid;

		set_dummy(&run, turn);
		run.attr.task = 1;
		run.attr.comm = 1;
		run.attr.comm_exec = 1;
		open_inherited(&run);
		begin(&run);
		pid = fork();
		if (pid == 0) {
			execl("/bin/sh", "sh", "-c", ":", (char *)NULL);
			_exit(1);
		}
		child = (uint32_t)wait_for(pid);
		cr_assert_eq(pthread_create(&thread, NULL, tell_tid, &thread_tid), 0);
		cr_assert_eq(pthread_join(thread, NULL), 0);
		wait_for_thread(thread_tid);
		end(&run);
		while (next_record(&run, &is)) {
			const struct perfring_record_fork *fork_ = &is.is.fork;
			const struct perfring_record_exit *exit_ = &is.is.exit;

			if (is.type == PERF_RECORD_FORK) {
				bool is_child = fork_->pid == child;

				if (fork_->tid != child && fork_->tid != thread_tid)
					continue;
				cr_assert_eq(is.misc, 0);
				cr_assert_eq(is.size, size_with(&run, 32));
				cr_assert_eq(fork_->pid, is_child ? child : me);
				cr_assert_eq(fork_->tid, is_child ? child : thread_tid);
				cr_assert_eq(fork_->ppid, me);
				cr_assert_eq(fork_->ptid, tid);
				is_in_time(&run, fork_->time);
				trailer_is(&run, &is, me, tid, true);
				forks++;
			} else if (is.type == PERF_RECORD_EXIT) {
				bool is_child = exit_->pid == child;
				uint32_t parent = is_child ? me : (uint32_t)getppid();

				if (exit_->tid != child && exit_->tid != thread_tid)
					continue;
				cr_assert_eq(is.misc, 0);
				cr_assert_eq(exit_->pid, is_child ? child : me);
				cr_assert_eq(exit_->tid, is_child ? child : thread_tid);
				cr_assert_eq(exit_->ppid, parent);
				cr_assert_eq(exit_->ptid, parent, "docs/abi.md 14.30");
				is_in_time(&run, exit_->time);
				trailer_is(&run, &is, exit_->pid, exit_->tid, false);
				exits++;
			} else if (is.type == PERF_RECORD_COMM && is.misc == PERF_RECORD_MISC_COMM_EXEC) {
				cr_assert_eq(is.is.comm.pid, child);
				cr_assert_eq(is.is.comm.tid, child);
				string_is(&is.is.comm.comm, "sh");
				trailer_is(&run, &is, child, child, false);
				execs++;
			}
		}
		cr_assert_eq(forks, 2);
		cr_assert_eq(exits, 2);
		cr_assert_eq(execs, 1);
		run_close(&run);
	}
	say_compared("FORK, EXIT, COMM", 10);
}

Test(kernel_record, switches)
{
	static struct run run;
	struct perfring_record is;
	unsigned turn, i, sleeps;

	for (turn = 0; turn < 2; turn++) {
		set_dummy(&run, turn);
		run.attr.context_switch = 1;
		must_open(&run, 0, -1);
		begin(&run);
		switch_away(TIMES);
		end(&run);
		sleeps = 0;
		for (i = 0; next_record(&run, &is); i++) {
			cr_assert_eq(is.type, PERF_RECORD_SWITCH);
			cr_assert_eq(is.size, size_with(&run, 8));
			/* Out and in, in turn; preempted now and then. */
			cr_assert(i & 1 ? is.misc == 0 : is.misc == 0x2000 || is.misc == 0x6000, "%u: %#x", i, is.misc);
			sleeps += is.misc == 0x2000;
			trailer_is(&run, &is, (uint32_t)getpid(), thread_id(), true);
		}
		cr_assert_geq(sleeps, TIMES);
		run_close(&run);
	}
	say_compared("SWITCH", 4 * TIMES);
}

struct pipes {
	int there[2], back[2];
	uint32_t tid;
};

static void *answer(void *with)
{
	struct pipes *pipes = with;
	char byte;

	pipes->tid = thread_id();
	while (read(pipes->there[0], &byte, 1) == 1 && write(pipes->back[1], &byte, 1) == 1)
		;
	return NULL;
}

/*
 * The two threads of this test keep their numbers. Tasks of other processes do not: one that has ended has none any more (UINT32_MAX),
 * and a thread that calls execve takes its leader's while it runs.
 */
static void is_task(uint32_t is, uint32_t wanted, uint32_t other)
{
	if (is == thread_id() || is == other || wanted == thread_id() || wanted == other)
		cr_assert_eq(is, wanted, "%u, not %u", is, wanted);
}

/* Two threads on one CPU hand a byte to and fro. */
Test(kernel_record, switches_of_a_cpu)
{
	static struct run run;
	struct perfring_record is;
	unsigned turn, i;
	struct pipes pipes;
	pthread_t thread;

	for (turn = 0; turn < 2; turn++) {
		/*
		 * The task that runs, and the one that comes next. Who runs first is this thread. A task that is ending is
		 * switched in and out, too.
		 */
		uint32_t next = thread_id(), current = UINT32_MAX, other_tid;
		unsigned to_other = 0, to_me = 0;
		char byte = 0;

		cr_assert_eq(pipe(pipes.there), 0);
		cr_assert_eq(pipe(pipes.back), 0);
		set_dummy(&run, turn);
		run.attr.context_switch = 1;
		must_open(&run, -1, (int)pin());
		cr_assert_eq(pthread_create(&thread, NULL, answer, &pipes), 0);
		begin(&run);
		for (i = 0; i < TIMES; i++) {
			cr_assert_eq(write(pipes.there[1], &byte, 1), 1);
			cr_assert_eq(read(pipes.back[0], &byte, 1), 1);
		}
		end(&run);
		close(pipes.there[1]);
		cr_assert_eq(pthread_join(thread, NULL), 0);
		other_tid = pipes.tid;
		for (i = 0; next_record(&run, &is); i++) {
			const struct perfring_record_switch_cpu_wide *other = &is.is.switch_cpu_wide;

			cr_assert_eq(is.type, PERF_RECORD_SWITCH_CPU_WIDE);
			cr_assert_eq(is.size, size_with(&run, 16));
			if (other->next_prev_tid == other_tid || other->next_prev_tid == thread_id())
				cr_assert_eq(other->next_prev_pid, (uint32_t)getpid());
			if (is.misc & PERF_RECORD_MISC_SWITCH_OUT) {
				cr_assert(is.misc == 0x2000 || is.misc == 0x6000);
				cr_assert_eq(i & 1, 0);
				if (turn && current != UINT32_MAX)
					is_task(is.trailer.tid, current, other_tid);
				current = next;
				if (turn)
					is_task(is.trailer.tid, current, other_tid);
				next = other->next_prev_tid;
				to_other += next == other_tid;
				to_me += next == thread_id();
			} else {
				cr_assert_eq(is.misc, 0);
				cr_assert_eq(i & 1, 1);
				is_task(other->next_prev_tid, current, other_tid);
				if (turn)
					is_task(is.trailer.tid, next, other_tid);
				current = next;
			}
			if (turn)
				trailer_is(&run, &is, is.trailer.pid, is.trailer.tid, true);
		}
		cr_assert_geq(to_other, TIMES);
		cr_assert_geq(to_me, TIMES);
		run_close(&run);
		close(pipes.there[0]);
		close(pipes.back[0]);
		close(pipes.back[1]);
	}
	say_compared("SWITCH_CPU_WIDE", 8 * TIMES);
}

static const char *const namespaces[7] = {"net", "uts", "ipc", "pid", "user", "mnt", "cgroup"};

struct unshared {
	uint64_t told[14];
	uint32_t tid;
	int error;
};

/* A thread that leaves two namespaces, and tells which it is in then. */
static void *leave(void *with)
{
	struct unshared *unshared = with;
	struct stat stat_of;
	char path[64];
	unsigned i;

	unshared->tid = thread_id();
	if (unshare(CLONE_NEWUTS | CLONE_NEWIPC))
		unshared->error = errno;
	for (i = 0; i < 7; i++) {
		uint32_t at;

		snprintf(path, sizeof(path), "/proc/thread-self/ns/%s", namespaces[i]);
		if (stat(path, &stat_of))
			memset(&stat_of, 0, sizeof(stat_of));
		at = minor(stat_of.st_dev);
		unshared->told[2 * i] = (at & 0xff) | major(stat_of.st_dev) << 8 | (at & ~0xffu) << 12;
		unshared->told[2 * i + 1] = stat_of.st_ino;
	}
	return NULL;
}

Test(kernel_record, namespaces)
{
	static struct run run;
	struct unshared unshared;
	const uint64_t *told = unshared.told;
	pthread_t thread;
	struct perfring_record is;
	unsigned turn, i;

	for (turn = 0; turn < 2; turn++) {
		unsigned started = 0, left = 0;

		set_dummy(&run, turn);
		run.attr.namespaces = 1;
		open_inherited(&run);
		begin(&run);
		memset(&unshared, 0, sizeof(unshared));
		cr_assert_eq(pthread_create(&thread, NULL, leave, &unshared), 0);
		cr_assert_eq(pthread_join(thread, NULL), 0);
		if (unshared.error)
			cr_skip_test("SKIP-ENV: unshare: %s: needs CAP_SYS_ADMIN", strerror(unshared.error));
		end(&run);
		while (next_record(&run, &is)) {
			const struct perfring_record_namespaces *ns = &is.is.namespaces;
			bool is_new;

			cr_assert_eq(is.type, PERF_RECORD_NAMESPACES);
			if (ns->tid != unshared.tid)
				continue;
			is_new = ns->links.words[3] == told[3];
			cr_assert_eq(is.misc, 0);
			cr_assert_eq(is.size, size_with(&run, 24 + 112), "docs/abi.md 15");
			cr_assert_eq(ns->pid, (uint32_t)getpid());
			cr_assert_eq(ns->links.nr, 7);
			for (i = 0; i < 7; i++) {
				cr_assert_eq(ns->links.words[2 * i], told[2 * i], "%s", namespaces[i]);
				/* uts and ipc are the thread's own only after the unshare. */
				if (i == 1 || i == 2)
					cr_assert_eq(ns->links.words[2 * i + 1] == told[2 * i + 1], is_new);
				else
					cr_assert_eq(ns->links.words[2 * i + 1], told[2 * i + 1], "%s", namespaces[i]);
			}
			if (is_new)
				trailer_is(&run, &is, (uint32_t)getpid(), unshared.tid, false);
			else
				trailer_is(&run, &is, (uint32_t)getpid(), thread_id(), true);
			started += !is_new;
			left += is_new;
		}
		cr_assert_eq(started, 1);
		cr_assert_eq(left, 1);
		run_close(&run);
	}
	say_compared("NAMESPACES", 4);
}

/* The next KSYMBOL or BPF_EVENT.  Where another observes the programs of the whole system, Linux (6.18, as seen) makes ours
 * longer: it adds each observer's sample_id to the size in the one header that it writes to all of them.  The words are
 * behind what is ours, and nobody has written them: without them the record is what it is where nobody observes. */
static bool next_of_program(struct run *run, const char *name, struct perfring_record *is)
{
	static uint64_t buffer[512];
	const struct perf_event_header *record = next_of(run);
	struct perf_event_header header;
	uint32_t ours;

	if (!record)
		return false;
	header = *record;
	ours = size_with(run, 24 + (header.type == PERF_RECORD_KSYMBOL ? ((uint32_t)strlen(name) + 8) / 8 * 8 : 0));
	if (header.size > ours) {
		cr_assert_eq((header.size - ours) % 8, 0, "%u bytes, not %u", header.size, ours);
		header.size = (uint16_t)ours;
		memcpy(buffer, record, ours);
		memcpy(buffer, &header, sizeof(header));
		record = (const struct perf_event_header *)(const void *)buffer;
	}
	decode_record(run, record, is);
	return true;
}

/* KSYMBOL and BPF_EVENT: a program comes and goes. */
Test(kernel_record, bpf_programs)
{
	const struct bpf_insn insns[] = {
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 0),
		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
	};
	static struct run run;
	struct perfring_record is;
	unsigned turn, i;

	for (turn = 0; turn < 2; turn++) {
		unsigned symbols[2] = {0, 0}, events[2] = {0, 0};
		struct bpf_prog_info told;
		uint64_t symbol = 0;
		uint32_t length = 0;
		union bpf_attr attr;
		char name[64];
		int prog, at;

		set_dummy(&run, turn);
		run.attr.ksymbol = 1;
		run.attr.bpf_event = 1;
		must_open(&run, 0, -1);
		begin(&run);
		prog = bpf_load(insns, 2, "perfring_none");
		if (prog < 0)
			cr_skip_test("SKIP-ENV: bpf(BPF_PROG_LOAD): %s: needs CAP_BPF and CAP_PERFMON",
				     strerror(errno));
		memset(&told, 0, sizeof(told));
		told.jited_ksyms = (uintptr_t)&symbol;
		told.nr_jited_ksyms = 1;
		told.jited_func_lens = (uintptr_t)&length;
		told.nr_jited_func_lens = 1;
		memset(&attr, 0, sizeof(attr));
		attr.info.bpf_fd = (uint32_t)prog;
		attr.info.info_len = sizeof(told);
		attr.info.info = (uintptr_t)&told;
		cr_assert_eq(syscall(SYS_bpf, BPF_OBJ_GET_INFO_BY_FD, &attr, sizeof(attr)), 0, "%s", strerror(errno));
		close(prog);
		end(&run);
		at = snprintf(name, sizeof(name), "bpf_prog_");
		for (i = 0; i < 8; i++)
			at += snprintf(name + at, sizeof(name) - (size_t)at, "%02x", told.tag[i]);
		snprintf(name + at, sizeof(name) - (size_t)at, "_perfring_none");
		while (next_of_program(&run, name, &is)) {
			const struct perfring_record_ksymbol *ksymbol = &is.is.ksymbol;
			const struct perfring_record_bpf_event *event = &is.is.bpf_event;

			cr_assert_eq(is.misc, 0);
			trailer_is(&run, &is, (uint32_t)getpid(), thread_id(), true);
			if (is.type == PERF_RECORD_KSYMBOL) {
				cr_assert_leq(ksymbol->flags, 1);
				cr_assert_eq(ksymbol->ksym_type, PERF_RECORD_KSYMBOL_TYPE_BPF);
				string_is(&ksymbol->name, name);
				cr_assert(is_kernel(ksymbol->addr));
				if (symbol)
					cr_assert_eq(ksymbol->addr, symbol);
				cr_assert_eq(ksymbol->len, length ? length : told.jited_prog_len);
				symbols[ksymbol->flags]++;
			} else {
				cr_assert_eq(is.type, PERF_RECORD_BPF_EVENT);
				cr_assert_eq(is.size, size_with(&run, 24));
				cr_assert(event->type == 1 || event->type == 2);
				cr_assert_eq(event->flags, 0);
				cr_assert_eq(event->id, told.id);
				cr_assert_eq(memcmp(event->tag.bytes, told.tag, 8), 0);
				cr_assert_eq(symbols[event->type - 1], 1, "KSYMBOL comes first");
				events[event->type - 1]++;
			}
		}
		cr_assert_eq(symbols[0], 1);
		cr_assert_eq(events[0], 1);
		cr_assert_eq(symbols[1], 1);
		cr_assert_eq(events[1], 1);
		run_close(&run);
	}
	say_compared("KSYMBOL, BPF_EVENT", 8);
}

/* An occurrence that weighs many periods is throttled (docs/abi.md 9.6): the run time that the scheduler accounts when a
 * task goes to sleep.  One of each an event: Linux 6.18 leaves a tracepoint's event stopped for good when the task
 * sleeps while it is throttled. */
Test(kernel_record, throttling)
{
	static struct run run;
	const struct perf_event_header *record;
	struct perfring_sample sample;
	struct perfring_record is;
	uint64_t id = tracepoint_id("sched/sched_stat_runtime"), last, slept;
	unsigned turn;

	for (turn = 0; turn < 8; turn++) {
		unsigned throttles = 0, unthrottles = 0;

		set_dummy(&run, turn & 1);
		run.attr.type = PERF_TYPE_TRACEPOINT;
		run.attr.config = id;
		run.attr.sample_period = 100; /* ns */
		must_open(&run, 0, -1);
		begin(&run);
		last = run.begun;
		while (unthrottles < 1 && now() < run.begun + UINT64_C(5000000000)) {
			for (slept = now(); now() < slept + 1000000;)
				;
			usleep(50);
			while ((record = next_of(&run))) {
				if (record->type == PERF_RECORD_SAMPLE) {
					decode_sample(&run, record, &sample);
					cr_assert_eq(sample.tid, thread_id());
					continue;
				}
				run.ended = now(); /* records may come while they are read */
				decode_record(&run, record, &is);
				trailer_is(&run, &is, (uint32_t)getpid(), thread_id(), true);
				if (is.type == PERF_RECORD_LOST)
					continue;
				cr_assert_eq(is.type,
					     throttles == unthrottles ? PERF_RECORD_THROTTLE : PERF_RECORD_UNTHROTTLE);
				cr_assert_eq(is.misc, 0);
				cr_assert_eq(is.size, size_with(&run, 32), "docs/abi.md 15");
				if (is.type == PERF_RECORD_THROTTLE)
					throttles++;
				else
					unthrottles++;
				/* Two kinds of the same members. */
				cr_assert_geq(is.is.throttle.time, last);
				last = is.is.throttle.time;
				cr_assert_leq(last, run.ended);
				cr_assert_eq(is.is.throttle.id, run.id[0]);
				cr_assert_eq(is.is.throttle.stream_id, run.id[0]);
			}
			perfring_reader_return(&run.reader);
		}
		end(&run);
		cr_assert_geq(throttles, 1);
		cr_assert_geq(unthrottles, 1);
		run_close(&run);
	}
	say_compared("THROTTLE, UNTHROTTLE", 16);
}

/* One page of records: docs/abi.md 15. */
Test(kernel_record, lost)
{
	static const struct {
		uint32_t size, fit, lost;
	} expected[2] = {{24, 170, 31}, {72, 56, 145}};
	static struct run run;
	struct perfring_record is;
	unsigned turn, i;
	char before[17] = "";

	cr_assert_eq(prctl(PR_GET_NAME, before), 0);
	for (turn = 0; turn < 2; turn++) {
		uint32_t size = expected[turn].size, fit = expected[turn].fit;

		set_dummy(&run, turn);
		run.attr.comm = 1;
		must_be_open(&run.attr, run_open_pages(&run, 0, -1, 1));
		begin(&run);
		for (i = 0; i < 200; i++)
			cr_assert_eq(prctl(PR_SET_NAME, "a"), 0);
		cr_assert_eq(run.ring.page->data_head, size * fit);
		for (i = 0; i < 3; i++)
			cr_assert_not_null(next_of(&run));
		/* There is space by now, but not for a LOST too. */
		run.reader.position = size;
		perfring_reader_return(&run.reader);
		cr_assert_eq(prctl(PR_SET_NAME, "a"), 0);
		cr_assert_eq(run.ring.page->data_head, size * fit);
		run.reader.position = 3 * size;
		perfring_reader_return(&run.reader);
		cr_assert_eq(prctl(PR_SET_NAME, "b"), 0);
		cr_assert_eq(run.ring.page->data_head, size * fit + size_with(&run, 24) + size);
		end(&run);
		for (i = 3; next_record(&run, &is); i++) {
			trailer_is(&run, &is, (uint32_t)getpid(), thread_id(), true);
			cr_assert_eq(is.misc, 0);
			if (i == fit) {
				cr_assert_eq(is.type, PERF_RECORD_LOST);
				cr_assert_eq(is.size, size_with(&run, 24));
				cr_assert_eq(is.is.lost.id, run.id[0]);
				cr_assert_eq(is.is.lost.lost, expected[turn].lost);
			} else {
				cr_assert_eq(is.type, PERF_RECORD_COMM);
				string_is(&is.is.comm.comm, i < fit ? "a" : "b");
			}
		}
		cr_assert_eq(i, fit + 2);
		run_close(&run);
	}
	cr_assert_eq(prctl(PR_SET_NAME, before), 0);
	say_compared("LOST", 2);
}
