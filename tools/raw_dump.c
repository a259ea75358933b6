/* raw_dump.c - the -D of script and report: each record in perf's dump, its bytes and then what it says.
 *
 * Called for each record before the command takes it.  Words of records are in record_words.c; the format is that of perf 6.1.
 */
#include <ctype.h>
#include <inttypes.h>
#include "out.h"
#include "raw_dump.h"
#include "record_words.h"

enum {
	LINE = 16, /* bytes */
};

static void put_bytes(const struct perf_event_header *record)
{
	const unsigned char *bytes = (const unsigned char *)record;
	unsigned size = record->size;

	tool_out_form(".\n. ... raw event: size %u bytes\n", size);
	for (unsigned at = 0; at < size; at += LINE) {
		tool_out_form(".  %04x: ", at);
		for (unsigned i = at; i < at + LINE; i++)
			if (i < size)
				tool_out_form(" %02x", bytes[i]);
			else
				tool_out_text("   ");
		tool_out_text("  ");
		for (unsigned i = at; i < at + LINE; i++)
			tool_out_char(i >= size ? ' ' : bytes[i] >= 0x20 && bytes[i] < 0x7f ? (char)bytes[i] : '.');
		tool_out_char('\n');
	}
	tool_out_char('\n');
}

/* The CPU and the time, where events have them; perf's own records have neither. */
static void put_stamp(struct tool_raw_dump *dump, const struct perfring_item *item,
		      const struct perfring_sample *sample, const struct perfring_record *record)
{
	uint64_t present = sample ? sample->present : record ? record->trailer.present : 0;
	uint32_t cpu = sample ? sample->cpu : record ? record->trailer.cpu : 0;
	uint64_t time = sample ? sample->time : record ? record->trailer.time : 0;
	bool is_kernels = item->record->type < PERFRING_RECORD_HEADER_ATTR;
	const struct perf_event_attr *attr;

	for (; (attr = perfring_file_attr(dump->input->data, dump->events)); dump->events++) {
		dump->sample_types |= attr->sample_type;
		dump->lacks_trailers = dump->lacks_trailers || !attr->sample_id_all;
	}
	if (!sample && dump->lacks_trailers) {
		tool_out_text("-1 -1 ");
		return;
	}
	if (dump->sample_types & PERFRING_SAMPLE_CPU)
		tool_out_form("%" PRIu32 " ", present & PERFRING_SAMPLE_CPU ? cpu : is_kernels ? UINT32_MAX : 0);
	if (dump->sample_types & PERFRING_SAMPLE_TIME)
		tool_out_form("%" PRIu64 " ", present & PERFRING_SAMPLE_TIME ? time : is_kernels ? UINT64_MAX : 0);
}

static void put_registers(const char *whose, const struct perfring_regs *regs)
{
	static const char *const abis[] = {"none", "32-bit", "64-bit"};
	uint64_t mask = regs->mask;

	tool_out_form("... %s regs: mask 0x%" PRIx64 " ABI %s\n", whose, (uint64_t)regs->mask,
		      regs->abi < 3 ? abis[regs->abi] : "unknown");
	for (uint32_t i = 0; i < regs->nr; i++, mask &= mask - 1) {
		const char *name = perfring_register_name(regs->arch, (uint32_t)__builtin_ctzll(mask));

		tool_out_form(".... %-5s 0x%016" PRIx64 "\n", name ? name : "unknown", (uint64_t)regs->values[i]);
	}
}

static void put_page_size(const char *what, uint64_t size)
{
	static const char units[] = " KMGTPE";
	int unit = 0;

	for (; size >= 1024 && units[unit + 1]; size /= 1024)
		unit++;
	if (size)
		tool_out_form(" .. %s page size: %" PRIu64 "%.*s\n", what, size, unit != 0, units + unit);
	else
		tool_out_form(" .. %s page size: N/A\n", what);
}

static void put_read(const struct perfring_read *read)
{
	tool_out_text("... sample_read:\n");
	if (read->read_format & PERFRING_FORMAT_TOTAL_TIME_ENABLED)
		tool_out_form("...... time enabled %016" PRIx64 "\n", read->enabled);
	if (read->read_format & PERFRING_FORMAT_TOTAL_TIME_RUNNING)
		tool_out_form("...... time running %016" PRIx64 "\n", read->running);
	if (read->read_format & PERFRING_FORMAT_GROUP)
		tool_out_form(".... group nr %" PRIu64 "\n", read->nr);
	for (uint64_t i = 0; i < read->nr; i++) {
		tool_out_form("..... id %016" PRIx64 ", value %016" PRIx64, perfring_read_id(read, i),
			      perfring_read_value(read, i));
		if (read->read_format & PERFRING_FORMAT_LOST)
			tool_out_form(", lost %" PRIu64, perfring_read_lost(read, i));
		tool_out_char('\n');
	}
}

/* Prints the sample's fields that are not in its first line. */
static void put_rest(const struct perfring_sample *sample)
{
	uint64_t present = sample->present;

	if (present & PERFRING_SAMPLE_WEIGHT)
		tool_out_form("... weight: %" PRIu64 "\n", sample->weight);
	if (present & PERFRING_SAMPLE_WEIGHT_STRUCT)
		tool_out_form("... weight: %" PRIu32 ",0x%x,0x%x\n", sample->weight_struct.var1,
			      sample->weight_struct.var2, sample->weight_struct.var3);
	if (present & PERFRING_SAMPLE_DATA_SRC)
		tool_out_form(" . data_src: 0x%" PRIx64 "\n", sample->data_src);
	if (present & PERFRING_SAMPLE_PHYS_ADDR)
		tool_out_form(" .. phys_addr: 0x%" PRIx64 "\n", sample->phys_addr);
	if (present & PERFRING_SAMPLE_DATA_PAGE_SIZE)
		put_page_size("data", sample->data_page_size);
	if (present & PERFRING_SAMPLE_CODE_PAGE_SIZE)
		put_page_size("code", sample->code_page_size);
	if (present & PERFRING_SAMPLE_TRANSACTION)
		tool_out_form("... transaction: %" PRIx64 "\n", sample->transaction);
	if (present & PERFRING_SAMPLE_READ)
		put_read(&sample->read);
}

static void put_sample(const struct tool_raw_dump *dump, const struct perfring_item *item,
		       const struct perfring_sample *sample)
{
	bool has_task = sample->present & PERFRING_SAMPLE_TID;
	struct perfring_name symbol = {.nameless = PERFRING_NAMELESS_MODE};

	tool_out_form("SAMPLE(IP, 0x%x): %d/%d: ", sample->misc, has_task ? (int)sample->pid : -1,
		      has_task ? (int)sample->tid : -1);
	tool_out_form("%#" PRIx64 " period: %" PRIu64 " addr: %#" PRIx64 "\n",
		      sample->present & PERFRING_SAMPLE_IP ? sample->ip : 0,
		      tool_input_period(dump->input, item->format, sample),
		      sample->present & PERFRING_SAMPLE_ADDR ? sample->addr : 0);
	if (sample->present & PERFRING_SAMPLE_CALLCHAIN) {
		tool_out_form("... FP chain: nr:%" PRIu64 "\n", (uint64_t)sample->callchain.nr);
		for (uint64_t i = 0; i < sample->callchain.nr; i++)
			tool_out_form("..... %2d: %016" PRIx64 "\n", (int)i, (uint64_t)sample->callchain.words[i]);
	}
	if (sample->present & PERFRING_SAMPLE_REGS_USER)
		put_registers("user", &sample->regs_user);
	if (sample->present & PERFRING_SAMPLE_REGS_INTR)
		put_registers("intr", &sample->regs_intr);
	if (sample->present & PERFRING_SAMPLE_STACK_USER)
		tool_out_form("... ustack: size %" PRIu64 ", offset 0x%" PRIx64 "\n",
			      (uint64_t)sample->stack_user.dyn_size,
			      (uint64_t)((const char *)sample->stack_user.data - (const char *)item->record) - 8);
	put_rest(sample);
	if (sample->present & PERFRING_SAMPLE_IP)
		tool_symbols_find(dump->symbols, sample->misc & PERFRING_RECORD_MISC_CPUMODE_MASK,
				  has_task ? sample->pid : 0, sample->ip, &symbol);
	tool_out_text(" ... thread: ");
	tool_out_print(has_task ? tool_machine_comm(dump->machine, sample->tid) : "[unknown]", false);
	tool_out_form(":%d\n ...... dso: ", has_task ? (int)sample->tid : -1);
	tool_out_print(symbol.object ? symbol.object : "<not found>", false);
	tool_out_char('\n');
}

static void put_counts(const struct tool_raw_dump *dump, const struct perfring_item *item,
		       const struct perfring_record_read *record)
{
	const struct perfring_read *read = &record->read;
	const char *name = item->format ? perfring_file_event_name(dump->input->data, item->format->index) : NULL;

	tool_out_form("READ: %d %d ", (int)record->pid, (int)record->tid);
	tool_out_print(name ? name : "?", false);
	tool_out_form(" %" PRIu64, read->nr ? perfring_read_value(read, 0) : 0);
	if (read->read_format & PERFRING_FORMAT_TOTAL_TIME_ENABLED)
		tool_out_form("\n... time enabled : %" PRIu64, read->enabled);
	if (read->read_format & PERFRING_FORMAT_TOTAL_TIME_RUNNING)
		tool_out_form("\n... time running : %" PRIu64, read->running);
	if (read->nr && read->read_format & PERFRING_FORMAT_ID)
		tool_out_form("\n... id           : %" PRIu64, perfring_read_id(read, 0));
	if (read->nr && read->read_format & PERFRING_FORMAT_LOST)
		tool_out_form("\n... lost         : %" PRIu64, perfring_read_lost(read, 0));
}

void tool_raw_dump(struct tool_raw_dump *dump, const struct perfring_item *item, const struct perfring_sample *sample,
		   const struct perfring_record *record)
{
	uint64_t at = (uint64_t)perfring_file_position(dump->input->data);

	tool_out_form("\n%#" PRIx64 "@", at);
	tool_out_print(dump->input->path, false);
	tool_out_print(tool_input_place(dump->input), false);
	tool_out_form(" [%#x]: event: %" PRIu32 "\n", item->record->size, item->record->type);
	put_bytes(item->record);
	put_stamp(dump, item, sample, record);
	tool_out_form("%#" PRIx64 " [%#x]: PERF_RECORD_", at, item->record->size);
	if (sample) {
		put_sample(dump, item, sample);
		return;
	}
	if (record && record->type == PERFRING_RECORD_READ)
		put_counts(dump, item, &record->is.read);
	else if (record)
		tool_record_words(item, record, TOOL_WORDS_DUMP);
	else
		tool_out_text(item->record->type == PERFRING_RECORD_SAMPLE
				      ? "SAMPLE: not of an event of this file, or damaged"
				      : "?: damaged");
	tool_out_char('\n');
}
