/* conformance.cc - what conformance.c says, by perfring.hpp: see there. */
#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fcntl.h>
#include <perfring/perfring.hpp>
#include <string_view>
#include <type_traits>
#include <unistd.h>

static_assert(std::ranges::input_range<perfring::file_items> && std::ranges::input_range<perfring::reader_records>);
static_assert(std::ranges::forward_range<perfring::words> && std::ranges::input_range<perfring::frames>);
static_assert(std::is_nothrow_move_constructible_v<perfring::file> && !std::is_copy_constructible_v<perfring::file>);
static_assert(std::is_nothrow_move_assignable_v<perfring::ring> && !std::is_copy_assignable_v<perfring::ring>);
static_assert(std::is_nothrow_move_assignable_v<perfring::reader> && !std::is_copy_constructible_v<perfring::reader>);
static_assert(!std::is_copy_constructible_v<perfring::claim> && !std::is_move_constructible_v<perfring::claim>);
static_assert(sizeof(perfring::sample) == sizeof(perfring_sample) && sizeof(perfring::item) == sizeof(perfring_item));
static_assert(sizeof(perfring::file) == sizeof(perfring_file *));

static constexpr perfring_format own = {.sample_type = PERFRING_SAMPLE_IP | PERFRING_SAMPLE_TID | PERFRING_SAMPLE_TIME |
						       PERFRING_SAMPLE_PERIOD | PERFRING_SAMPLE_CALLCHAIN |
						       PERFRING_SAMPLE_RAW,
					.read_format = 0,
					.branch_sample_type = 0,
					.sample_regs_user = 0,
					.sample_regs_intr = 0,
					.flags = 0,
					.index = 0,
					.least = 0,
					.trailer = 0,
					.sample_id_at = 0,
					.sample_time_at = 0,
					.trailer_id_back = 0,
					.trailer_time_back = 0,
					.sample_regs_user_nr = 0,
					.sample_regs_intr_nr = 0,
					.arch = 0,
					.sample_stack_user = 0,
					.reserved = {}};

static void number(bool has, const char *name, std::uint32_t number)
{
	if (has)
		std::printf(" %s=%" PRId32, name, static_cast<std::int32_t>(number));
}

static void word(bool has, const char *name, std::uint64_t word)
{
	if (has)
		std::printf(" %s=%" PRIu64, name, word);
}

static void bytes(bool has, const char *name, std::span<const std::byte> bytes)
{
	std::uint64_t sum = 0;

	for (std::byte byte : bytes)
		sum = sum * 31 + std::to_integer<std::uint64_t>(byte);
	if (has)
		std::printf(" %s=%zu/%" PRIu64, name, bytes.size(), sum);
}

static void text(const char *name, const perfring_string &string)
{
	std::string_view text = perfring::text_of(string);

	std::printf(" %s=%.*s", name, static_cast<int>(text.size()), text.data());
}

static void print_frames(const perfring::sample &sample)
{
	auto frames = sample.frames();
	std::uint64_t nr = 0, sum = 0;

	for (const perfring_frame &frame : frames) {
		sum = (sum * 31 + frame.context) * 31 + frame.ip;
		nr++;
	}
	std::printf(" frames=%" PRIu64 "/%" PRIu64, nr, sum);
	if (auto status = frames.status(); !status)
		std::printf(" at %" PRId64 " %s", status.why().at, status.why().text());
}

static void print_sample(const perfring::sample &sample)
{
	std::uint64_t sum = 0;

	number(sample.has(PERFRING_SAMPLE_TID), "pid", sample.pid);
	number(sample.has(PERFRING_SAMPLE_TID), "tid", sample.tid);
	number(sample.has(PERFRING_SAMPLE_CPU), "cpu", sample.cpu);
	word(sample.has(PERFRING_SAMPLE_TIME), "time", sample.time);
	word(sample.has(PERFRING_SAMPLE_IP), "ip", sample.ip);
	word(sample.has(PERFRING_SAMPLE_ADDR), "addr", sample.addr);
	word(sample.has(PERFRING_SAMPLE_PERIOD), "period", sample.period);
	for (std::uint64_t word : sample.words_of_callchain())
		sum = sum * 31 + word;
	if (sample.has(PERFRING_SAMPLE_CALLCHAIN))
		std::printf(" callchain=%zu/%" PRIu64, sample.words_of_callchain().size(), sum);
	word(sample.has(PERFRING_SAMPLE_IDENTIFIER), "identifier", sample.identifier);
	word(sample.has(PERFRING_SAMPLE_ID), "id", sample.id);
	word(sample.has(PERFRING_SAMPLE_STREAM_ID), "stream_id", sample.stream_id);
	word(sample.has(PERFRING_SAMPLE_WEIGHT), "weight", sample.weight);
	word(sample.has(PERFRING_SAMPLE_DATA_SRC), "data_src", sample.data_src);
	word(sample.has(PERFRING_SAMPLE_TRANSACTION), "transaction", sample.transaction);
	word(sample.has(PERFRING_SAMPLE_PHYS_ADDR), "phys_addr", sample.phys_addr);
	word(sample.has(PERFRING_SAMPLE_CGROUP), "cgroup", sample.cgroup);
	word(sample.has(PERFRING_SAMPLE_DATA_PAGE_SIZE), "data_page_size", sample.data_page_size);
	word(sample.has(PERFRING_SAMPLE_CODE_PAGE_SIZE), "code_page_size", sample.code_page_size);
	word(true, "present", sample.present);
	word(true, "misc", sample.misc);
	bytes(sample.has(PERFRING_SAMPLE_RAW), "raw", sample.bytes_of_raw());
	bytes(sample.has(PERFRING_SAMPLE_STACK_USER), "stack", sample.bytes_of_stack());
	if (sample.has(PERFRING_SAMPLE_WEIGHT_STRUCT))
		std::printf(" weight_struct=%" PRIu32 "/%u/%u", sample.weight_struct.var1,
			    unsigned{sample.weight_struct.var2}, unsigned{sample.weight_struct.var3});
	if (sample.has(PERFRING_SAMPLE_CALLCHAIN))
		print_frames(sample);
}

static void print_members(const perfring::record &record)
{
	switch (record.type) {
	case PERFRING_RECORD_COMM:
		text("comm", record.is.comm.comm);
		break;
	case PERFRING_RECORD_FORK:
	case PERFRING_RECORD_EXIT:
		std::printf(" ppid=%" PRIu32 " ptid=%" PRIu32 " time=%" PRIu64, record.is.fork.ppid,
			    record.is.fork.ptid, record.is.fork.time);
		break;
	case PERFRING_RECORD_MMAP:
		word(true, "addr", record.is.mmap.addr);
		word(true, "len", record.is.mmap.len);
		word(true, "pgoff", record.is.mmap.pgoff);
		text("filename", record.is.mmap.filename);
		break;
	case PERFRING_RECORD_MMAP2:
		word(true, "addr", record.is.mmap2.addr);
		word(true, "len", record.is.mmap2.len);
		word(true, "pgoff", record.is.mmap2.pgoff);
		bytes(record.is.mmap2.file.has_build_id, "build_id",
		      perfring::bytes_of(record.is.mmap2.file.build_id, record.is.mmap2.file.build_id_size));
		text("filename", record.is.mmap2.filename);
		break;
	case PERFRING_RECORD_LOST:
		word(true, "lost", record.is.lost.lost);
		break;
	}
}

static void print_thread(const perfring::record &record)
{
	const auto &is = record.is;

	switch (record.type) {
#define OF(NAME, noun) \
	case PERFRING_RECORD_##NAME: \
		number(true, "pid", is.noun.pid); \
		number(true, "tid", is.noun.tid); \
		break;
		OF(COMM, comm)
		OF(FORK, fork)
		OF(EXIT, exit)
		OF(MMAP, mmap)
		OF(MMAP2, mmap2)
	default:
		number(record.has(PERFRING_SAMPLE_TID), "pid", record.trailer.pid);
		number(record.has(PERFRING_SAMPLE_TID), "tid", record.trailer.tid);
	}
	number(record.has(PERFRING_SAMPLE_CPU), "cpu", record.trailer.cpu);
}

/* event: its name; nullptr: not known. */
static void print(const perfring::item &item, const char *event = nullptr)
{
	perfring::sample sample;
	perfring::record record;
	perfring::result<void> decoded;
	bool is_decoded = !item.is_sample() || item.format;

	if (is_decoded)
		decoded = item.is_sample() ? item.decode(sample) : item.decode(record);
	if (!decoded) {
		std::printf("damaged %" PRIu32 " %d %" PRId64 " %s\n", item.type(), decoded.why().code,
			    decoded.why().at, decoded.why().what);
		return;
	}
	if (item.name())
		std::printf("%s", item.name());
	else
		std::printf("%" PRIu32, item.type());
	std::printf(" at=%" PRIu64 " size=%zu", item.time, item.bytes().size());
	if (is_decoded && !item.is_sample())
		print_thread(record);
	if (event)
		std::printf(" event=%s", event);
	else if (item.format)
		std::printf(" event=%" PRIu32, item.format->index);
	if (is_decoded && item.is_sample())
		print_sample(sample);
	else if (is_decoded)
		print_members(record);
	std::printf("\n");
}

static void ended(const char *how, const perfring::error &why)
{
	if (why.what)
		std::printf("%s %d %" PRId64 " %s\n", how, why.code, why.at, why.what);
	else
		std::printf("%s %d\n", how, why.code);
}

static void of_file(const char *path)
{
	auto opened = perfring::file::open(path);

	if (!opened) {
		ended("open", opened.why());
		return;
	}
	perfring::file file = *std::move(opened);
	auto items = file.items();

	for (;;) {
		for (const perfring::item &item : items)
			print(item, item.format ? file.event_name(item.format->index) : nullptr);
		if (items.status() || !items.last().record)
			break;
		std::printf("skipped %" PRIu32 " %zu, ", items.last().type(), items.last().bytes().size());
		ended("why", items.status().why());
	}
	for (std::uint32_t i = 0; i < file.event_count(); i++)
		std::printf("event %" PRIu32 " %s\n", i, file.event_name(i));
	ended("end", items.status().why());
}

static bool put(perfring::writer &writer, std::uint64_t i)
{
	std::array<std::uint64_t, 8> words{};
	std::array<unsigned char, 13> bytes{};
	perfring::sample sample;

	for (std::uint64_t k = 0; k < words.size(); k++)
		words[k] = k ? i * 31 + k : static_cast<std::uint64_t>(std::int64_t{PERFRING_CONTEXT_USER});
	for (std::uint64_t k = 0; k < bytes.size(); k++)
		bytes[k] = static_cast<unsigned char>(i + k);
	sample.misc = PERFRING_RECORD_MISC_USER;
	sample.trailing_size = 0;
	sample.ip = i * 4099;
	sample.pid = 1;
	sample.tid = static_cast<std::uint32_t>(i % 7);
	sample.time = i * 10 + 1;
	sample.period = i ^ 0x55;
	sample.callchain = {words.data(), std::min<std::uint64_t>(i % 9, 8)};
	sample.raw = perfring_raw_of(bytes.data(), static_cast<std::uint32_t>(i % 14));
	return static_cast<bool>(writer.put(own, sample));
}

static void drain(perfring::reader &reader)
{
	auto records = reader.records();

	for (const perfring::record_view &view : records) {
		perfring::item item;

		item.record = view.get();
		item.format = &own;
		item.time = perfring_format_time_of(&own, view.get());
		print(item);
	}
	if (auto status = records.status(); !status)
		ended("corrupt", status.why());
	reader.return_space();
}

static int of_ring()
{
	auto created = perfring::ring::create({.pages = 16,
					       .flags = 0,
					       .file = nullptr,
					       .wakeup = 0,
					       .watermark = false,
					       .owners = 0,
					       .chunk = 0,
					       .aux_pages = 0,
					       .id = 0,
					       .attr = nullptr,
					       .reserved = {}});

	if (!created)
		return 1;
	perfring::ring ring = *std::move(created); /* moved: a writer and a reader do not refer to the object */
	auto writer = perfring::writer::open(ring);
	auto reader = perfring::reader::open(ring);
	int accepted = 0;

	if (!writer || !reader)
		return 1;
	{
		/* A claim that is not committed leaves nothing. */
		perfring::claim claim = writer->reserve(64);

		if (!claim || claim.bytes().size() != 64)
			return 1;
	}
	for (std::uint64_t i = 0; i < 20000; i++) {
		accepted += put(*writer, i);
		if (i % 700 == 699)
			drain(*reader);
	}
	drain(*reader);
	std::printf("accepted %d\n", accepted);
	return 0;
}

static int attach(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	auto ring = perfring::ring::attach(fd);

	close(fd);
	if (!ring) {
		ended("attach", ring.why());
		return 0;
	}
	auto reader = perfring::reader::open(*ring);

	if (!reader)
		return 1;
	drain(*reader);
	return 0;
}

static int of_session(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	auto ring = perfring::ring::attach(fd);
	auto session = perfring::session::open();

	close(fd);
	if (!ring || !session)
		return 1;
	auto event = session->describe_ring(*ring);
	auto number = session->add_ring(*ring, -1, PERFRING_READER_COPY);

	if (!event || !number)
		return 1;
	std::printf("event %" PRIu32 ", ring %" PRIu32 "\n", *event, *number);
	event = session->describe_ring(*ring);
	std::printf("once more %d %s\n", event.why().code, event.why().text());
	session->flush();
	auto items = session->items();

	for (const perfring::item &item : items)
		print(item);
	session->return_space();
	perfring_totals totals = session->totals();

	std::printf("end %d, %" PRIu64 " records, %" PRIu64 " samples\n", items.status().why().code, totals.records,
		    totals.samples);
	return 0;
}

static std::uint64_t now()
{
	timespec time{};

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return static_cast<std::uint64_t>(time.tv_sec) * 1000000000 + static_cast<std::uint64_t>(time.tv_nsec);
}

static int sum_up(const char *path, int passes)
{
	std::uint64_t least = UINT64_MAX, sum = 0;

	for (int i = 0; i < passes; i++) {
		std::uint64_t begin = now();

		sum = 0;
		{
			auto file = perfring::file::open(path);

			if (!file)
				return 1;
			for (const perfring::item &item : file->items())
				if (perfring::sample sample; item.is_sample() && item.decode(sample))
					sum += sample.period;
		}
		least = std::min(least, now() - begin);
	}
	std::printf("%" PRIu64 " %" PRIu64 "\n", sum, least);
	return 0;
}

static int profile(const char *path)
{
	auto file = perfring::file::open(path);
	auto maps = perfring::maps::open();
	auto profile = perfring::profile::open();

	if (!file || !maps || !profile)
		return 1;
	perfring_profile_event all{};

	all.name = "all";
	all.unit = "ns";
	auto event = profile->add(all);

	if (!event)
		return 1;
	for (const perfring::item &item : file->items()) {
		perfring::sample sample;

		if (!item.is_sample()) {
			if (!maps->take(item))
				return 1;
			continue;
		}
		if (!item.decode(sample) || !sample.has(PERFRING_SAMPLE_IP | PERFRING_SAMPLE_TID |
							PERFRING_SAMPLE_TIME | PERFRING_SAMPLE_PERIOD))
			continue;
		std::array<char, 32> name{};
		perfring_profile_thread who{};
		perfring_profile_frame where{};

		std::snprintf(name.data(), name.size(), "0x%" PRIx64, sample.ip);
		who.pid = sample.pid;
		who.tid = sample.tid;
		who.comm = maps->comm(sample.tid);
		where.name = name.data();
		where.address = sample.ip;
		auto thread = profile->add(who);
		auto frame = profile->add(where);

		if (!thread || !frame)
			return 1;
		auto stack = profile->add_stack(PERFRING_PROFILE_NONE, *frame);

		if (!stack || !profile->add(perfring_profile_sample{sample.time, sample.period, *stack, *thread, *event,
								    PERFRING_PROFILE_NONE}))
			return 1;
	}
	return !profile->write(PERFRING_PROFILE_COLLAPSED, stdout);
}

int main(int argc, char **argv)
{
	std::string_view what = argc > 1 ? argv[1] : "";

	if (argc >= 3 && what == "file") {
		for (int i = 2; i < argc; i++)
			of_file(argv[i]);
		return 0;
	}
	if (argc == 2 && what == "ring")
		return of_ring();
	if (argc == 3 && what == "attach")
		return attach(argv[2]);
	if (argc == 3 && what == "session")
		return of_session(argv[2]);
	if (argc == 4 && what == "sum")
		return sum_up(argv[2], std::atoi(argv[3]));
	if (argc == 3 && what == "profile")
		return profile(argv[2]);
	std::fprintf(
		stderr,
		"usage: conformance file FILE... | ring | attach FILE | session FILE | sum FILE PASSES | profile FILE\n");
	return 2;
}
