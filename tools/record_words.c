/* record_words.c - records that are no samples, in perf's words.
 *
 * Texts are perf 6.1's, and compared with it by tests.  Foreign texts are escaped.
 */
#include <inttypes.h>
#include <string.h>
#include "out.h"
#include "record_words.h"

static void put_string(const struct perfring_string *string)
{
	for (uint32_t i = 0; i < string->size; i++)
		tool_out.at += tool_escape(tool_out_space(4), (unsigned char)string->data[i], false);
}

static void put_mmap(uint64_t addr, uint64_t len, uint64_t pgoff, const char *after, const char *rights,
		     const struct perfring_string *name)
{
	tool_out_form("[0x%" PRIx64 "(0x%" PRIx64 ") @ %#" PRIx64, addr, len, pgoff);
	tool_out_form("%s]: %s ", after, rights);
	put_string(name);
}

static void put_mmap2(const struct perfring_record_mmap2 *mmap)
{
	char after[TOOL_OUT_FORM - 16] = "", rights[] = {mmap->prot & 1 ? 'r' : '-', mmap->prot & 2 ? 'w' : '-',
							 mmap->prot & 4 ? 'x' : '-', mmap->flags & 1 ? 's' : 'p', 0};
	const struct perfring_file_id *file = &mmap->file;

	if (!file->has_build_id) {
		snprintf(after, sizeof(after), " %02x:%02x %" PRIu64 " %" PRIu64, file->maj, file->min, file->ino,
			 file->ino_generation);
	} else {
		size_t at = (size_t)snprintf(after, sizeof(after), " <");

		for (unsigned i = 0; i < file->build_id_size; i++)
			at += (size_t)snprintf(after + at, sizeof(after) - at, "%02x", file->build_id[i]);
		snprintf(after + at, sizeof(after) - at, ">");
	}
	put_mmap(mmap->addr, mmap->len, mmap->pgoff, after, rights, &mmap->filename);
}

static void put_task(const char *name, uint32_t pid, uint32_t tid, uint32_t ppid, uint32_t ptid)
{
	tool_out_form("%s(%d:%d):(%d:%d)", name, (int)pid, (int)tid, (int)ppid, (int)ptid);
}

static void put_switch(const struct perfring_record *record)
{
	const struct perfring_record_switch_cpu_wide *other = &record->is.switch_cpu_wide;
	bool out = record->misc & PERFRING_RECORD_MISC_SWITCH_OUT;

	tool_out_form("%s%s", out ? "OUT" : "IN ",
		      !out                                                     ? "        "
		      : record->misc & PERFRING_RECORD_MISC_SWITCH_OUT_PREEMPT ? " preempt"
									       : "        ");
	if (record->type == PERFRING_RECORD_SWITCH_CPU_WIDE)
		tool_out_form("  %s pid/tid: %5d/%-5d", out ? "next" : "prev", (int)other->next_prev_pid,
			      (int)other->next_prev_tid);
}

/* Four a line, as perf. */
static void put_namespaces(const struct perfring_record_namespaces *record)
{
	static const char *const NAMES[] = {"net", "uts", "ipc", "pid", "user", "mnt", "cgroup"};
	const struct perfring_links *links = &record->links;

	tool_out_form("NAMESPACES %d/%d - nr_namespaces: %" PRIu64 "\n\t\t[", (int)record->pid, (int)record->tid,
		      (uint64_t)links->nr);
	for (uint64_t i = 0; i < links->nr; i++)
		tool_out_form("%s%" PRIu64 "/%s: %" PRIu64 "/%#" PRIx64 "%s", i && i % 4 == 0 ? "\n\t\t " : "", i,
			      i < sizeof(NAMES) / sizeof(*NAMES) ? NAMES[i] : "invalid", (uint64_t)links->words[2 * i],
			      (uint64_t)links->words[2 * i + 1], i + 1 < links->nr ? ", " : "");
	tool_out_char(']');
}

/* Those that perf made up, in its dump.  Returns false for others. */
static bool put_perfs(const struct perfring_item *item, const struct perfring_record *record)
{
	const struct perfring_record_event_update *update = &record->is.event_update;
	const struct perfring_threads *threads = &record->is.thread_map.threads;
	const struct perfring_index *index = &record->is.id_index.index;
	char text[4096], *list;
	double scale;
	uint64_t tid;

	switch (record->type) {
	case PERFRING_RECORD_ID_INDEX:
		tool_out_form("ID_INDEX nr: %" PRIu64, (uint64_t)index->nr);
		for (uint64_t i = 0; i < index->nr; i++)
			tool_out_form("\n ... id: %" PRIu64 "  idx: %" PRIu64 "  cpu: %" PRId64 "  tid: %" PRId64,
				      (uint64_t)index->entries[4 * i], (uint64_t)index->entries[4 * i + 1],
				      (int64_t)index->entries[4 * i + 2], (int64_t)index->entries[4 * i + 3]);
		return true;
	case PERFRING_RECORD_THREAD_MAP:
		tool_out_form("THREAD_MAP nr: %" PRIu64 " thread%s: ", (uint64_t)threads->nr,
			      threads->nr > 1 ? "s" : "");
		for (uint64_t i = 0; i < threads->nr; i++) {
			memcpy(&tid, (const char *)threads->data + 24 * i, sizeof(tid));
			tool_out_form("%s%d", i ? ", " : "", (int)tid);
		}
		return true;
	case PERFRING_RECORD_CPU_MAP:
		if (perfring_record_decoded_text(record, item->record, text, sizeof(text)) >= (int64_t)sizeof(text) ||
		    !(list = strstr(text, "cpus=")))
			return false;
		tool_out_text("CPU_MAP: ");
		list[strcspn(list, " ")] = 0;
		tool_out_print(list + 5, false);
		return true;
	case PERFRING_RECORD_EVENT_UPDATE:
		if (update->type == PERFRING_EVENT_UPDATE_CPUS)
			return false;
		tool_out_form("EVENT_UPDATE\n... id:    %" PRIu64, update->id);
		memcpy(&scale, &update->scale, sizeof(scale));
		if (update->type == PERFRING_EVENT_UPDATE_SCALE) {
			tool_out_form("\n... scale: %.6f", scale);
		} else {
			tool_out_text(update->type == PERFRING_EVENT_UPDATE_UNIT ? "\n... unit:  " : "\n... name:  ");
			put_string(&update->text);
		}
		return true;
	default:
		return false;
	}
}

void tool_record_words(const struct perfring_item *item, const struct perfring_record *record, enum tool_words form)
{
	int64_t length;
	char *space;

	if (form == TOOL_WORDS_DUMP && put_perfs(item, record))
		return;
	switch (record->type) {
	case PERFRING_RECORD_MMAP:
		tool_out_form("MMAP %d/%d: ", (int)record->is.mmap.pid, (int)record->is.mmap.tid);
		put_mmap(record->is.mmap.addr, record->is.mmap.len, record->is.mmap.pgoff, "",
			 record->misc & PERFRING_RECORD_MISC_MMAP_DATA ? "r" : "x", &record->is.mmap.filename);
		break;
	case PERFRING_RECORD_MMAP2:
		tool_out_form("MMAP2 %d/%d: ", (int)record->is.mmap2.pid, (int)record->is.mmap2.tid);
		put_mmap2(&record->is.mmap2);
		break;
	case PERFRING_RECORD_COMM:
		tool_out_text(record->misc & PERFRING_RECORD_MISC_COMM_EXEC ? "COMM exec: " : "COMM: ");
		put_string(&record->is.comm.comm);
		tool_out_form(":%d/%d", (int)record->is.comm.pid, (int)record->is.comm.tid);
		break;
	case PERFRING_RECORD_FORK:
		put_task("FORK", record->is.fork.pid, record->is.fork.tid, record->is.fork.ppid, record->is.fork.ptid);
		break;
	case PERFRING_RECORD_EXIT:
		put_task("EXIT", record->is.exit.pid, record->is.exit.tid, record->is.exit.ppid, record->is.exit.ptid);
		break;
	case PERFRING_RECORD_SWITCH:
	case PERFRING_RECORD_SWITCH_CPU_WIDE:
		tool_out_text(record->type == PERFRING_RECORD_SWITCH ? "SWITCH " : "SWITCH_CPU_WIDE ");
		put_switch(record);
		break;
	case PERFRING_RECORD_LOST:
		if (form == TOOL_WORDS_DUMP)
			tool_out_form("LOST: id:%" PRIu64 ": lost:%" PRIu64, record->is.lost.id, record->is.lost.lost);
		else
			tool_out_form("LOST lost %" PRIu64, record->is.lost.lost);
		break;
	case PERFRING_RECORD_NAMESPACES:
		put_namespaces(&record->is.namespaces);
		break;
	case PERFRING_RECORD_CGROUP:
		tool_out_form("CGROUP cgroup: %" PRIu64 " ", record->is.cgroup.id);
		put_string(&record->is.cgroup.path);
		break;
	case PERFRING_RECORD_KSYMBOL:
		tool_out_form("KSYMBOL addr %" PRIx64 " len %" PRIu32, record->is.ksymbol.addr, record->is.ksymbol.len);
		tool_out_form(" type %u flags 0x%x name ", record->is.ksymbol.ksym_type, record->is.ksymbol.flags);
		put_string(&record->is.ksymbol.name);
		break;
	case PERFRING_RECORD_BPF_EVENT:
		tool_out_form("BPF_EVENT type %u, flags %u, id %" PRIu32, record->is.bpf_event.type,
			      record->is.bpf_event.flags, record->is.bpf_event.id);
		break;
	case PERFRING_RECORD_LOST_SAMPLES:
		if (form == TOOL_WORDS_DUMP) {
			tool_out_form("LOST_SAMPLES: lost samples :%" PRIu64, record->is.lost_samples.lost);
			break;
		}
		/* fallthrough */
	default:
		space = tool_out_space(UINT16_MAX * 4 + 1);
		length = perfring_record_decoded_text(record, item->record, space, tool_out.capacity - tool_out.at);
		if (length <= 0 || (size_t)length >= tool_out.capacity - tool_out.at)
			break;
		/* as perf calls them there */
		if (form == TOOL_WORDS_DUMP && !strncmp(space, "HEADER_", 7))
			memmove(space, space + 7, (size_t)(length -= 7));
		tool_out.at += (size_t)length;
		break;
	}
}
