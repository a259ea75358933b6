/* faults.cc - what perfring.hpp does where it is used in odd ways.
 *
 *     faults FILE      FILE: a perf.data file that has a sample with an id of no event
 */
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <new>
#include <perfring/perfring.hpp>
#include <sys/time.h>
#include <unistd.h>

#define CHECK(what) \
	do { \
		if (!(what)) { \
			std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #what); \
			std::exit(1); \
		} \
	} while (0)

static perfring::ring small_ring()
{
	perfring_ring_options options{};

	options.pages = 4;
	auto ring = perfring::ring::create(options);

	CHECK(ring);
	return *std::move(ring);
}

/* What was moved from closes nothing, and what is moved to itself stays. */
static void moves(const char *path)
{
	perfring::ring ring = small_ring(), other = small_ring();
	perfring::ring *same = &ring;
	int fd = ring.fd();

	ring = std::move(*same);
	CHECK(ring.fd() == fd);
	other = std::move(ring);
	CHECK(other.fd() == fd);
	ring = std::move(other);
	auto reader = perfring::reader::open(ring, PERFRING_READER_COPY);

	CHECK(reader);
	perfring::reader moved = *std::move(reader), *same_reader = &moved;

	moved = std::move(*same_reader);
	CHECK(perfring_reader_observe(moved.get()) == 0);
	auto opened = perfring::file::open(path);

	CHECK(opened);
	perfring::file file = *std::move(opened), *same_file = &file;

	CHECK(!opened->get());
	file = std::move(*same_file);
	CHECK(file.get() && file.event_count());
	CHECK(fcntl(STDIN_FILENO, F_GETFD) >= 0 && fcntl(fd, F_GETFD) >= 0);
}

/* Nothing is decoded, so nothing is there. */
static void empty()
{
	alignas(perfring::record) std::array<unsigned char, sizeof(perfring::record)> record;
	alignas(perfring::sample) std::array<unsigned char, sizeof(perfring::sample)> sample;

	record.fill(0xff);
	sample.fill(0xff);
	CHECK(!(new (record.data()) perfring::record)->has(PERFRING_SAMPLE_TID));
	CHECK(!(new (sample.data()) perfring::sample)->has(PERFRING_SAMPLE_TID));
	CHECK((new (sample.data()) perfring::sample)->words_of_callchain().empty());
	CHECK((new (sample.data()) perfring::sample)->bytes_of_raw().empty());
	for (const perfring_frame &frame : (new (sample.data()) perfring::sample)->frames())
		CHECK(!frame.ip);
	CHECK(perfring::words().begin() == perfring::words().end() && perfring::words().bytes().empty());
}

/* A record of two words, at an aligned address and after it. */
static void chains()
{
	const std::uint64_t deferred = static_cast<std::uint64_t>(std::int64_t{PERFRING_CONTEXT_USER_DEFERRED});
	static constexpr perfring_format format = [] {
		perfring_format own{};

		own.sample_type = PERFRING_SAMPLE_CALLCHAIN;
		return own;
	}();
	alignas(8) std::array<std::byte, 48> bytes{};
	perfring::sample sample;

	for (std::size_t at : {std::size_t{0}, std::size_t{4}}) {
		std::array<std::uint64_t, 2> words{1, deferred};

		sample.callchain = {words.data(), words.size()};
		sample.misc = 0;
		sample.trailing_size = 0;
		CHECK(perfring_sample_encode(&format, &sample, bytes.data() + at, 32) == 32);
		perfring::record_view view(reinterpret_cast<const perf_event_header *>(bytes.data() + at));

		CHECK(view.is_sample() && view.bytes().size() == 32 && view.decode(format, sample));
		CHECK(sample.words_of_callchain().span().has_value() == (at == 0));
		CHECK(sample.words_of_callchain().size() == 2 && sample.words_of_callchain()[1] == deferred);
		auto frames = sample.frames();
		int count = 0;

		for (const perfring_frame &frame : frames)
			count += frame.ip == 1;
		CHECK(count == 1 && !frames.status() && frames.status().why().code == -EBADMSG);
		CHECK(frames.status().why().at == 1);
	}
}

/* The record with an error is there, and begin() goes on after it. */
static void damage(const char *path)
{
	auto file = perfring::file::open(path);
	int errors = 0, count = 0;

	CHECK(file);
	auto items = file->items();

	for (;; errors++) {
		for (const perfring::item &item : items)
			count += item.record != nullptr;
		if (items.status())
			break;
		CHECK(items.status().why().code == -EBADMSG && items.last().record && items.last().is_sample());
	}
	CHECK(errors && count && !items.last().record);
}

static void claims()
{
	perfring::ring ring = small_ring();
	auto writer = perfring::writer::open(ring);

	CHECK(writer && !perfring::writer::open(ring));
	{
		perfring::claim claim = writer->reserve(64);

		CHECK(claim && claim.bytes().size() == 64);
		std::memset(claim.bytes().data(), 0, 64);
		perf_event_header header{PERFRING_RECORD_LOST, 0, 64};

		std::memcpy(claim.bytes().data(), &header, sizeof(header));
		claim.commit();
		CHECK(claim.bytes().empty() && !claim);
		claim.commit();
	}
	CHECK(!writer->reserve(12) && !writer->reserve(1 << 20));
	auto reader = perfring::reader::open(ring);
	int count = 0;

	CHECK(reader);
	for (const perfring::record_view &record : reader->records())
		count += record.type() == PERFRING_RECORD_LOST && record.bytes().size() == 64;
	CHECK(count == 1);
}

/* A limit that an int does not hold is neither another one nor none, until a signal. */
static void limits()
{
	perfring::ring ring = small_ring();
	auto session = perfring::session::open();
	itimerval soon{};
	struct sigaction action = {};

	action.sa_handler = [](int) {};
	CHECK(session && session->add_ring(ring) && !sigaction(SIGALRM, &action, nullptr));
	for (std::int64_t limit : {INT64_C(1) << 32, (INT64_C(1) << 32) + 1, -(INT64_C(1) << 32), INT64_C(3) << 30}) {
		soon.it_value.tv_usec = 30000;
		soon.it_interval.tv_usec = 7000; /* until it comes while the session sleeps */
		CHECK(!setitimer(ITIMER_REAL, &soon, nullptr));
		auto woken = session->wait(std::chrono::milliseconds(limit));

		CHECK(!woken && woken.why().code == -EINTR);
	}
	soon = {};
	CHECK(!setitimer(ITIMER_REAL, &soon, nullptr) && session->wait(std::chrono::milliseconds(1)));
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	moves(argv[1]);
	empty();
	chains();
	damage(argv[1]);
	claims();
	limits();
	return 0;
}
