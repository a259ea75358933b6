/* perfring.hpp - the library for C++20: objects that close themselves, ranges of items and records, spans of bytes.
 *
 *     auto file = perfring::file::open("perf.data");
 *     if (!file)
 *             return report(file.why().text());                a result is true, or says why not
 *     auto items = file->items();
 *     for (const perfring::item &item : items)                 valid until the next one
 *             if (perfring::sample sample; item.is_sample() && item.decode(sample))
 *                     sum += sample.period;                    members are those of struct perfring_sample
 *     if (!items.status())
 *             report(items.status().why().text());             the range ended before the file did
 *
 * A view of the C headers, which it includes: bounds, errors, threads, handlers and lifetimes are theirs.
 *
 *     object     a class is the C object's name, and its functions are the C functions; get() is the C object, for calls that
 *                are not here.  Objects can be moved and not copied.  One that was moved from may be destroyed or assigned to.
 *                What a range points into must have a name: file::open(path)->items() does not compile
 *     errors     result<T>.  No exception is thrown: all functions are noexcept, and -fno-exceptions -fno-rtti are allowed
 *     memory     nothing is allocated or copied but what C allocates: a view of bytes, words or frames points into the record
 *     handlers   what signal handlers may call in C, they may call here
 *
 * Link libperfring; with maps, symbols, stacks and profile libperfring-profile, too.  soft is there if the library has it (PERFRING_HAS_SOFT). */
#ifndef PERFRING_PERFRING_HPP
#define PERFRING_PERFRING_HPP

#if !defined(__cplusplus) || __cplusplus < 202002L
#error "perfring.hpp needs C++20 or newer: -std=c++20"
#endif

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include <perfring/callchain.h>
#include <perfring/event.h>
#include <perfring/file.h>
#include <perfring/maps.h>
#include <perfring/profile.h>
#include <perfring/reader.h>
#include <perfring/record.h>
#include <perfring/ring.h>
#include <perfring/sample.h>
#include <perfring/session.h>
#include <perfring/stacks.h>
#include <perfring/symbol.h>
#include <perfring/target.h>
#include <perfring/writer.h>
#if __has_include(<perfring/config.h>)
#include <perfring/config.h>
#endif
#if !defined(PERFRING_HAS_SOFT) || PERFRING_HAS_SOFT
#include <perfring/soft.h>
#endif

namespace perfring
{

/* ---- errors ---- */

/* Why a call failed. */
struct error {
	int code = 0;         /* -errno; base.h says what four of them mean */
	std::int64_t at = -1; /* with `what`: the place, counted as the C function says */
	/* What is wrong there, or why the call was refused; nullptr: only the code is known. */
	const char *what = nullptr;

	/* Context: as strerror. */
	const char *text() const noexcept
	{
		return what ? what : std::strerror(-code);
	}
};

/* A value, or why there is none.  The value may be taken only where the result is true. */
template <class T> class [[nodiscard]] result
{
public:
	result(T value) noexcept : value_(std::move(value))
	{
	}
	result(const error &why) noexcept : why_(why)
	{
	}
	explicit operator bool() const noexcept
	{
		return value_.has_value();
	}
	T &operator*() &noexcept
	{
		return *value_;
	}
	const T &operator*() const &noexcept
	{
		return *value_;
	}
	T &&operator*() &&noexcept
	{
		return std::move(*value_);
	}
	T *operator->() &noexcept
	{
		return &*value_;
	}
	const T *operator->() const &noexcept
	{
		return &*value_;
	}
	T *operator->() && = delete; /* what it returns could point into a value that is gone */
	const T *operator->() const && = delete;
	const error &why() const noexcept
	{
		return why_;
	}

private:
	std::optional<T> value_;
	error why_;
};

/* Of a call without a value. */
template <> class [[nodiscard]] result<void>
{
public:
	result() noexcept = default;
	result(const error &why) noexcept : why_(why)
	{
	}
	explicit operator bool() const noexcept
	{
		return why_.code >= 0;
	}
	const error &why() const noexcept
	{
		return why_;
	}

private:
	error why_;
};

/* What a C function returned that has 0, or -errno. */
inline result<void> status_of(int code) noexcept
{
	return code < 0 ? result<void>(error{code}) : result<void>();
}

/* ---- what all classes are made of ---- */

template <auto Close> struct closer {
	template <class T> void operator()(T *object) const noexcept
	{
		Close(object);
	}
};

/* An object of the library: nullptr if it was moved from. */
template <class T, auto Close> class owner
{
public:
	T *get() const noexcept
	{
		return object_.get();
	}

protected:
	owner() noexcept = default;
	explicit owner(T *object) noexcept : object_(object)
	{
	}

private:
	std::unique_ptr<T, closer<Close>> object_;
};

/* What a source returns one by one: an input range, for one loop at a time.  Source: its `element` is the type of what it returns,
 * first(element &) and next(element &) return 1, 0 at the end, or -errno, and why(int) makes an error of that.
 *
 * begin() asks for the first element; each ++ for the next, which replaces the last.  The loop ends at the end of the source or at
 * the first error: status() says which.  After an error that the C function calls not permanent, begin() goes on after it; last()
 * is then the element with the error, of a file one whose record is not nullptr. */
template <class Source> class range
{
public:
	class iterator
	{
	public:
		using iterator_concept = std::input_iterator_tag;
		using value_type = typename Source::element;
		using difference_type = std::ptrdiff_t;

		iterator() noexcept = default;
		explicit iterator(range &of) noexcept : of_(&of)
		{
		}
		const value_type &operator*() const noexcept
		{
			return of_->item_;
		}
		const value_type *operator->() const noexcept
		{
			return &of_->item_;
		}
		iterator &operator++() noexcept
		{
			of_->advance();
			return *this;
		}
		void operator++(int) noexcept
		{
			of_->advance();
		}
		bool operator==(std::default_sentinel_t) const noexcept
		{
			return of_->one_ != 1;
		}

	private:
		range *of_ = nullptr;
	};

	explicit range(const Source &source) noexcept : source_(source)
	{
	}
	iterator begin() noexcept
	{
		one_ = source_.first(item_);
		return iterator(*this);
	}
	std::default_sentinel_t end() const noexcept
	{
		return std::default_sentinel;
	}
	/* True while there was no error. */
	result<void> status() const noexcept
	{
		return one_ < 0 ? result<void>(source_.why(one_)) : result<void>();
	}
	/* What the source set last.  Valid as an element. */
	const typename Source::element &last() const noexcept
	{
		return item_;
	}

private:
	void advance() noexcept
	{
		one_ = source_.next(item_);
	}

	Source source_;
	typename Source::element item_{};
	int one_ = 0;
};

/* ---- bytes, words, frames ---- */

inline std::span<const std::byte> bytes_of(const void *data, std::uint64_t size) noexcept
{
	return {static_cast<const std::byte *>(data), static_cast<std::size_t>(size)};
}

inline std::string_view text_of(const perfring_string &text) noexcept
{
	return {text.data, text.size};
}

/* Words of a record: a callchain with its markers, registers, branches.  They need not be aligned. */
class words
{
public:
	class iterator
	{
	public:
		using iterator_concept = std::forward_iterator_tag;
		using iterator_category = std::input_iterator_tag;
		using value_type = std::uint64_t;
		using difference_type = std::ptrdiff_t;
		using reference = std::uint64_t;
		using pointer = void;

		iterator() noexcept = default;
		explicit iterator(const perfring_word *at) noexcept : at_(at)
		{
		}
		std::uint64_t operator*() const noexcept
		{
			return *at_;
		}
		iterator &operator++() noexcept
		{
			at_++;
			return *this;
		}
		iterator operator++(int) noexcept
		{
			return iterator(at_++);
		}
		bool operator==(const iterator &) const noexcept = default;

	private:
		const perfring_word *at_ = nullptr;
	};

	words() noexcept = default;
	words(const perfring_word *first, std::uint64_t count) noexcept : first_(first), count_(count)
	{
	}
	iterator begin() const noexcept
	{
		return iterator(first_);
	}
	iterator end() const noexcept
	{
		return iterator(first_ + count_);
	}
	std::size_t size() const noexcept
	{
		return static_cast<std::size_t>(count_);
	}
	bool empty() const noexcept
	{
		return !count_;
	}
	std::uint64_t operator[](std::size_t i) const noexcept
	{
		return first_[i];
	}
	std::span<const std::byte> bytes() const noexcept
	{
		return bytes_of(first_, count_ * 8);
	}
	/* Without a value where the words are not aligned to 8, as records of a file may be. */
	std::optional<std::span<const std::uint64_t>> span() const noexcept
	{
		const void *first = first_;

		if (reinterpret_cast<std::uintptr_t>(first) & 7)
			return {};
		return std::span(static_cast<const std::uint64_t *>(first), size());
	}

private:
	const perfring_word *first_ = nullptr;
	std::uint64_t count_ = 0;
};

/* The addresses of a callchain, innermost first, each with the marker before it (callchain.h). */
struct frame_source {
	using element = perfring_frame;

	perfring_callchain chain;

	int first(element &frame) noexcept
	{
		return next(frame);
	}
	int next(element &frame) noexcept
	{
		return perfring_callchain_next(&chain, &frame);
	}
	error why(int code) const noexcept
	{
		return {code, static_cast<std::int64_t>(chain.at) - 1, "deferred marker without a cookie"};
	}
};
using frames = range<frame_source>;

/* ---- records ---- */

/* A decoded sample: the members of struct perfring_sample, each of which means something only if its bit stands in `present`.  The
 * functions below give nothing of a field that is not there.  Valid until: the record's bytes go. */
class sample : public perfring_sample
{
public:
	sample() noexcept /* the rest is written by decode: clearing 408 bytes would cost as much */
	{
		present = 0;
	}
	/* bits: PERFRING_SAMPLE_, all of which must be there. */
	bool has(std::uint64_t bits) const noexcept
	{
		return (present & bits) == bits;
	}
	perfring::words words_of_callchain() const noexcept
	{
		return has(PERFRING_SAMPLE_CALLCHAIN) ? perfring::words(callchain.words, callchain.nr)
						      : perfring::words();
	}
	perfring::frames frames() const noexcept
	{
		static constexpr perfring_list none{};

		return perfring::frames({perfring_callchain_init(has(PERFRING_SAMPLE_CALLCHAIN) ? &callchain : &none)});
	}
	std::span<const std::byte> bytes_of_raw() const noexcept
	{
		return has(PERFRING_SAMPLE_RAW) ? bytes_of(raw.data, raw.size) : std::span<const std::byte>();
	}
	/* Where the address of a frame is, as in a record's misc: after a marker what that says, else where the sample is. */
	unsigned cpumode(const perfring_frame &frame) const noexcept
	{
		switch (static_cast<std::int64_t>(frame.context)) {
		case PERFRING_CONTEXT_HV:
			return PERFRING_RECORD_MISC_HYPERVISOR;
		case PERFRING_CONTEXT_KERNEL:
			return PERFRING_RECORD_MISC_KERNEL;
		case PERFRING_CONTEXT_USER:
		case PERFRING_CONTEXT_USER_DEFERRED:
			return PERFRING_RECORD_MISC_USER;
		case PERFRING_CONTEXT_GUEST_KERNEL:
			return PERFRING_RECORD_MISC_GUEST_KERNEL;
		case PERFRING_CONTEXT_GUEST_USER:
			return PERFRING_RECORD_MISC_GUEST_USER;
		case 0:
			return misc & PERFRING_RECORD_MISC_CPUMODE_MASK;
		default:
			return PERFRING_RECORD_MISC_CPUMODE_UNKNOWN;
		}
	}
	/* What of the copy of the stack means something. */
	std::span<const std::byte> bytes_of_stack() const noexcept
	{
		return has(PERFRING_SAMPLE_STACK_USER) ? bytes_of(stack_user.data, stack_user.dyn_size)
						       : std::span<const std::byte>();
	}
};

/* A decoded record of any other kind: the members of struct perfring_record; `is` has those of its type. */
class record : public perfring_record
{
public:
	record() noexcept
	{
		type = 0;
		trailer.present = 0;
	}
	/* bits: PERFRING_SAMPLE_, of the trailer. */
	bool has(std::uint64_t bits) const noexcept
	{
		return (trailer.present & bits) == bits;
	}
};

/* A record as its bytes are: in a ring, a file, or memory of the caller. */
class record_view
{
public:
	record_view() noexcept = default;
	explicit record_view(const perf_event_header *header) noexcept : header_(header)
	{
	}
	const perf_event_header *get() const noexcept
	{
		return header_;
	}
	std::uint32_t type() const noexcept
	{
		return unaligned()->type;
	}
	std::uint16_t misc() const noexcept
	{
		return unaligned()->misc;
	}
	bool is_sample() const noexcept
	{
		return type() == PERFRING_RECORD_SAMPLE;
	}
	/* With its header. */
	std::span<const std::byte> bytes() const noexcept
	{
		return bytes_of(header_, unaligned()->size);
	}
	/* "MMAP2"; nullptr: a type that records.def does not have. */
	const char *name() const noexcept
	{
		return perfring_record_name(type());
	}

	/* Decodes a record of type SAMPLE.  -EINVAL: it is of another one. */
	[[gnu::always_inline]] result<void> decode(const perfring_format &format,
						   perfring::sample &sample) const noexcept
	{
		perfring_fault fault{};

		if (!is_sample()) [[unlikely]]
			return error{-EINVAL};
		if (int ret = perfring_sample_decode(&format, header_, &sample, &fault); ret < 0) [[unlikely]]
			return error{ret, fault.at, fault.what};
		return {};
	}
	/* Decodes a record of any other type.  format: nullptr if it has no trailer. */
	result<void> decode(const perfring_format *format, perfring::record &record) const noexcept
	{
		perfring_fault fault{};

		if (int ret = perfring_record_decode(format, header_, &record, &fault); ret < 0)
			return error{ret, fault.at, fault.what};
		return {};
	}

private:
	const perfring_header *unaligned() const noexcept
	{
		return reinterpret_cast<const perfring_header *>(header_);
	}

	const perf_event_header *header_ = nullptr;
};

/* A record with its format and its time, as files and sessions return it: the members of struct perfring_item. */
class item : public perfring_item
{
public:
	item() noexcept : perfring_item{}
	{
	}
	record_view view() const noexcept
	{
		return record_view(record);
	}
	std::uint32_t type() const noexcept
	{
		return view().type();
	}
	bool is_sample() const noexcept
	{
		return view().is_sample();
	}
	std::span<const std::byte> bytes() const noexcept
	{
		return view().bytes();
	}
	const char *name() const noexcept
	{
		return view().name();
	}
	/* -EINVAL: no SAMPLE, or one without a format. */
	[[gnu::always_inline]] result<void> decode(perfring::sample &sample) const noexcept
	{
		if (!format) [[unlikely]]
			return error{-EINVAL};
		return view().decode(*format, sample);
	}
	result<void> decode(perfring::record &decoded) const noexcept
	{
		return view().decode(format, decoded);
	}
};

/* ---- events ---- */

/* The attr of an event in perf's syntax (event.h), whose other members are those of `base`. */
inline result<perf_event_attr> parse_event(const char *text, perf_event_attr base = {}) noexcept
{
	perfring_fault fault{};

	if (!base.size)
		base.size = sizeof(base);
	if (int ret = perfring_event_parse(text, &base, &fault); ret < 0)
		return error{ret, fault.at, fault.what};
	return base;
}

/* A format is one constant, or comes from an attr. */
inline result<perfring_format> format_of(const perf_event_attr &attr) noexcept
{
	perfring_format format{};

	if (int ret = perfring_format_from_attr(&format, &attr); ret < 0)
		return error{ret};
	return format;
}

/* ---- file.h ---- */

struct file_source {
	using element = perfring::item;

	perfring_file *file;

	static error why(const perfring_file *file, int code) noexcept
	{
		if (file && (code == -EBADMSG || code == -EOPNOTSUPP)) {
			perfring_fault fault = perfring_file_fault(file);

			return {code, fault.at, fault.what};
		}
		return {code};
	}
	int first(element &item) noexcept
	{
		return next(item);
	}
	int next(element &item) noexcept
	{
		item.record = nullptr; /* of a permanent error, which leaves it unchanged */
		return perfring_file_next(file, &item);
	}
	error why(int code) const noexcept
	{
		return why(file, code);
	}
};
using file_items = range<file_source>;

class file : public owner<perfring_file, perfring_file_close>
{
public:
	static result<file> open(const char *path) noexcept
	{
		perfring_file *opened = nullptr;
		int ret = perfring_file_open(&opened, path);
		file object(opened);

		if (ret < 0)
			return file_source::why(opened, ret);
		return object;
	}
	/* All that was not read yet, in time order.  An element is valid until the next one. */
	file_items items() &noexcept
	{
		return file_items({get()});
	}
	const perf_event_attr *attr(std::uint32_t index) const noexcept
	{
		return perfring_file_attr(get(), index);
	}
	/* nullptr: no such event.  Valid until: the file is closed. */
	const char *event_name(std::uint32_t index) const noexcept
	{
		return perfring_file_event_name(get(), index);
	}
	std::uint32_t event_count() const noexcept
	{
		return perfring_format_set_count(perfring_file_formats(get()));
	}
	const perfring_format_set *formats() const noexcept
	{
		return perfring_file_formats(get());
	}
	/* A feature of one string; nullptr: it is absent. */
	const char *string(std::uint32_t feature) const noexcept
	{
		return perfring_file_string(get(), feature);
	}
	/* Empty: absent, or without bytes. */
	std::span<const std::byte> feature(std::uint32_t number) const noexcept
	{
		std::uint64_t size = 0;
		const void *payload = perfring_file_feature(get(), number, &size);

		return bytes_of(payload, payload ? size : 0);
	}
	std::int64_t position() const noexcept
	{
		return perfring_file_position(get());
	}
	bool is_finished() const noexcept
	{
		return perfring_file_is_finished(get());
	}

private:
	explicit file(perfring_file *object) noexcept : owner(object)
	{
	}
};

/* ---- ring.h, reader.h, writer.h ---- */

class ring
{
public:
	ring(ring &&other) noexcept : ring_(std::exchange(other.ring_, {}))
	{
	}
	ring &operator=(ring &&other) noexcept
	{
		if (this != &other) {
			perfring_ring_close(&ring_);
			ring_ = std::exchange(other.ring_, {});
		}
		return *this;
	}
	~ring()
	{
		perfring_ring_close(&ring_);
	}
	static result<ring> create(const perfring_ring_options &options) noexcept
	{
		ring object;

		if (int ret = perfring_ring_create(&object.ring_, &options); ret < 0)
			return error{ret};
		return object;
	}
	static result<ring> attach(int fd, unsigned flags = 0) noexcept
	{
		perfring_fault fault{};
		ring object;

		if (int ret = perfring_ring_attach(&object.ring_, fd, flags, &fault); ret < 0)
			return error{ret, fault.at, fault.what};
		return object;
	}
	/* Of a perf_event_open fd. */
	static result<ring> map(int fd, std::uint32_t pages, unsigned flags = 0) noexcept
	{
		ring object;

		if (int ret = perfring_ring_map(&object.ring_, fd, pages, flags); ret < 0)
			return error{ret};
		return object;
	}
	perfring_ring *get() noexcept
	{
		return &ring_;
	}
	const perfring_ring *get() const noexcept
	{
		return &ring_;
	}
	int fd() const noexcept
	{
		return ring_.fd;
	}

private:
	ring() noexcept = default;

	perfring_ring ring_{};
};

struct reader_source {
	using element = record_view;

	perfring_reader *reader;

	int first(element &record) noexcept
	{
		std::int64_t observed = perfring_reader_observe(reader);

		return observed < 0 ? static_cast<int>(observed) : next(record);
	}
	int next(element &record) noexcept
	{
		const perf_event_header *header;
		int one = perfring_reader_next(reader, &header);

		record = record_view(header);
		return one;
	}
	error why(int code) const noexcept
	{
		return {code, reader->fault.at, reader->fault.what};
	}
};
using reader_records = range<reader_source>;

/* The ring must stay open while its reader is. */
class reader
{
public:
	reader(reader &&other) noexcept : reader_(std::exchange(other.reader_, {}))
	{
	}
	reader &operator=(reader &&other) noexcept
	{
		if (this != &other) {
			perfring_reader_close(&reader_);
			reader_ = std::exchange(other.reader_, {});
		}
		return *this;
	}
	~reader()
	{
		perfring_reader_close(&reader_);
	}
	static result<reader> open(const ring &&ring, unsigned flags = 0) = delete;
	static result<reader> open(const ring &ring, unsigned flags = 0) noexcept
	{
		reader object;

		if (int ret = perfring_reader_open(&object.reader_, ring.get(), flags); ret < 0)
			return error{ret};
		return object;
	}
	/* What has been published when begin() is called.  The records are valid until return_space.  The range refers to
	 * this object, which must not be moved meanwhile. */
	reader_records records() &noexcept
	{
		return reader_records({&reader_});
	}
	/* Returns the space of all those records to the writer. */
	void return_space() noexcept
	{
		perfring_reader_return(&reader_);
	}
	/* Goes on after an error.  Returns the number of bytes dropped. */
	std::uint64_t skip() noexcept
	{
		return perfring_reader_skip(&reader_);
	}
	perfring_reader *get() noexcept
	{
		return &reader_;
	}

private:
	reader() noexcept = default;

	perfring_reader reader_{};
};

/* Space for one record, reserved and not committed.  Without commit() the record is discarded.  False: it was refused, and
 * counted. */
class [[nodiscard]] claim
{
public:
	claim(perfring_writer *writer, std::uint64_t size) noexcept
	    : writer_(writer), space_(perfring_writer_reserve(writer, nullptr, size, &claim_)), size_(size)
	{
	}
	claim(const claim &) = delete;
	claim &operator=(const claim &) = delete;
	~claim()
	{
		if (space_)
			perfring_writer_discard(writer_, &claim_);
	}
	explicit operator bool() const noexcept
	{
		return space_;
	}
	std::span<std::byte> bytes() const noexcept
	{
		return {static_cast<std::byte *>(space_), space_ ? static_cast<std::size_t>(size_) : 0};
	}
	/* Publishes the record, which the caller has written with its header. */
	void commit() noexcept
	{
		if (std::exchange(space_, nullptr))
			perfring_writer_commit(writer_, &claim_);
	}

private:
	perfring_writer *writer_;
	perfring_claim claim_;
	void *space_;
	std::uint64_t size_;
};

/* The calling thread's writer, also for its signal handlers.  The ring must stay open while its writer is. */
class writer : public owner<perfring_writer, perfring_writer_close>
{
public:
	static result<writer> open(ring &ring, const perfring_writer_options *options = nullptr) noexcept
	{
		perfring_writer *opened = nullptr;

		if (int ret = perfring_writer_open(&opened, ring.get(), options); ret < 0)
			return error{ret};
		return writer(opened);
	}
	claim reserve(std::uint64_t size) noexcept
	{
		return claim(get(), size);
	}
	/* Copies a whole record.  False: it was refused, and counted. */
	[[gnu::always_inline]] bool write(std::span<const std::byte> record) noexcept
	{
		return perfring_writer_write(get(), nullptr, record.data(), record.size());
	}
	/* Encodes a sample in place.  -ENOSPC: it was refused, and counted; -EINVAL as perfring_sample_encode. */
	[[gnu::always_inline]] result<void> put(const perfring_format &format, const perfring_sample &sample) noexcept
	{
		std::int64_t size = perfring_sample_size(&format, &sample);
		perfring_claim claim;
		void *space;

		if (size < 0) [[unlikely]]
			return error{static_cast<int>(size)};
		space = perfring_writer_reserve(get(), nullptr, static_cast<std::uint64_t>(size), &claim);
		if (!space) [[unlikely]]
			return error{-ENOSPC};
		perfring_sample_encode(&format, &sample, space, static_cast<std::size_t>(size));
		perfring_writer_commit(get(), &claim);
		return {};
	}
	void flush() noexcept
	{
		perfring_writer_flush(get());
	}

private:
	explicit writer(perfring_writer *object) noexcept : owner(object)
	{
	}
};

/* ---- session.h, target.h ---- */

class target : public owner<perfring_target, perfring_target_close>
{
public:
	static result<target> open() noexcept
	{
		perfring_target *opened = nullptr;

		if (int ret = perfring_target_open(&opened); ret < 0)
			return error{ret};
		return target(opened);
	}
	/* list: "0-3,6"; nullptr: all that are online. */
	result<void> add_cpus(const char *list = nullptr) noexcept
	{
		return status_of(perfring_target_add_cpus(get(), list));
	}
	result<void> add_process(std::int32_t pid) noexcept
	{
		return status_of(perfring_target_add_process(get(), pid));
	}
	result<void> add_thread(std::int32_t tid) noexcept
	{
		return status_of(perfring_target_add_thread(get(), tid));
	}
	result<void> add_cgroup(const char *path) noexcept
	{
		return status_of(perfring_target_add_cgroup(get(), path));
	}

private:
	explicit target(perfring_target *object) noexcept : owner(object)
	{
	}
};

struct session_source {
	using element = perfring::item;

	perfring_session *session;

	int first(element &item) noexcept
	{
		return next(item);
	}
	int next(element &item) noexcept
	{
		item.record = nullptr; /* an error leaves it unchanged */
		return perfring_session_next(session, &item);
	}
	error why(int code) const noexcept
	{
		perfring_fault fault = perfring_session_fault(session, nullptr);

		return code == -EBADMSG ? error{code, fault.at, fault.what} : error{code};
	}
};
using session_items = range<session_source>;

class session : public owner<perfring_session, perfring_session_close>
{
public:
	/* pages: data pages of each ring, a power of two; 0: 128. */
	static result<session> open(std::uint32_t pages = 0) noexcept
	{
		perfring_session *opened = nullptr;

		if (int ret = perfring_session_open(&opened, pages); ret < 0)
			return error{ret};
		return session(opened);
	}
	/* options: PERFRING_SESSION_; allowed: PERFRING_FALLBACK_. */
	result<void> configure(std::uint32_t options, std::uint64_t allowed) noexcept
	{
		return status_of(perfring_session_configure(get(), options, allowed));
	}
	/* The event's number.  The error's text is the refusal, valid until the next add or describe. */
	result<std::uint32_t> add(const perf_event_attr &attr, const target &target) noexcept
	{
		return number(perfring_session_add(get(), &attr, target.get()));
	}
	result<std::uint32_t> describe(const perf_event_attr &attr, std::span<const std::uint64_t> ids) noexcept
	{
		return number(
			perfring_session_describe(get(), &attr, ids.data(), static_cast<std::uint32_t>(ids.size())));
	}
	result<std::uint32_t> describe_ring(const ring &ring) noexcept
	{
		return number(perfring_session_describe_ring(get(), ring.get()));
	}
	/* The ring's number. */
	result<std::uint32_t> add_ring(const ring &ring, int wake_fd = -1, std::uint32_t flags = 0) noexcept
	{
		int ret = perfring_session_add_ring(get(), ring.get(), wake_fd, flags);

		return ret < 0 ? result<std::uint32_t>(error{ret})
			       : result<std::uint32_t>(static_cast<std::uint32_t>(ret));
	}
	/* The set must stay open while the session is. */
	result<void> add_set(perfring_set *set, int wake_fd = -1, std::uint32_t flags = 0) noexcept
	{
		return status_of(perfring_session_add_set(get(), set, wake_fd, flags));
	}
	result<void> enable() noexcept
	{
		return status_of(perfring_session_enable(get()));
	}
	result<void> disable() noexcept
	{
		return status_of(perfring_session_disable(get()));
	}
	/* Begins a round, also where it returns an error.  Whether a ring woke it; a negative limit is none, and one of more than 24
	 * days is that long. */
	result<bool> wait(std::chrono::milliseconds limit) noexcept
	{
		constexpr int most = std::numeric_limits<int>::max();
		auto count = limit.count();
		int ret = perfring_session_wait(get(), count < 0 ? -1 : count > most ? most : static_cast<int>(count));

		return ret < 0 ? result<bool>(error{ret}) : result<bool>(ret == 1);
	}
	/* Begins the last round. */
	void flush() noexcept
	{
		perfring_session_flush(get());
	}
	bool is_over() const noexcept
	{
		return perfring_session_is_over(get());
	}
	/* The rest of the round, in time order.  The items are valid until return_space. */
	session_items items() &noexcept
	{
		return session_items({get()});
	}
	void return_space() noexcept
	{
		perfring_session_return(get());
	}
	perfring_totals totals() const noexcept
	{
		perfring_totals totals{};

		perfring_session_totals(get(), &totals);
		return totals;
	}
	const perfring_format_set *formats() const noexcept
	{
		return perfring_session_formats(get());
	}
	int fd() const noexcept
	{
		return perfring_session_fd(get());
	}

private:
	explicit session(perfring_session *object) noexcept : owner(object)
	{
	}

	result<std::uint32_t> number(int ret) const noexcept
	{
		const char *refusal;

		if (ret >= 0)
			return static_cast<std::uint32_t>(ret);
		refusal = perfring_session_refusal(get());
		return error{ret, -1, *refusal ? refusal : nullptr};
	}
};

/* ---- soft.h ---- */

#if !defined(PERFRING_HAS_SOFT) || PERFRING_HAS_SOFT
class soft_event : public owner<perfring_soft_event, perfring_soft_close>
{
public:
	static result<soft_event> open(const perf_event_attr &attr, unsigned scope = PERFRING_SOFT_PROCESS) noexcept
	{
		perfring_soft_event *opened = nullptr;

		if (int ret = perfring_soft_open(&opened, &attr, scope, nullptr); ret < 0)
			return error{ret};
		return soft_event(opened);
	}
	/* One ring for each thread. */
	result<void> map(std::uint32_t pages, int wake_fd = -1) noexcept
	{
		return status_of(perfring_soft_map(get(), pages, wake_fd));
	}
	/* For session::add_set; nullptr: not mapped. */
	perfring_set *rings() noexcept
	{
		return perfring_soft_rings(get());
	}
	void enable() noexcept
	{
		perfring_soft_enable(get(), false);
	}
	void disable() noexcept
	{
		perfring_soft_disable(get(), false);
	}

private:
	explicit soft_event(perfring_soft_event *object) noexcept : owner(object)
	{
	}
};
#endif

/* ---- maps.h, symbol.h, stacks.h, profile.h: libperfring-profile ---- */

class maps : public owner<perfring_maps, perfring_maps_close>
{
public:
	static result<maps> open() noexcept
	{
		perfring_maps *opened = nullptr;

		if (int ret = perfring_maps_open(&opened); ret < 0)
			return error{ret};
		return maps(opened);
	}
	/* Any record but SAMPLE. */
	result<void> take(const perfring_item &item) noexcept
	{
		return status_of(perfring_maps_take(get(), &item));
	}
	/* nullptr: not known. */
	const char *comm(std::uint32_t tid) const noexcept
	{
		return perfring_maps_comm(get(), tid);
	}
	const perfring_mapping *find(unsigned cpumode, std::uint32_t pid, std::uint64_t ip) const noexcept
	{
		return perfring_maps_find(get(), cpumode, pid, ip);
	}

private:
	explicit maps(perfring_maps *object) noexcept : owner(object)
	{
	}
};

/* Names of addresses: symbol.h for what maps.h finds.  Texts are valid until it is closed. */
class symbols : public owner<perfring_symbols, perfring_symbols_close>
{
public:
	/* Of what a file recorded, which must stay open: its kernel, its machine, and the builds of its feature BUILD_ID. */
	static result<symbols> open(const file &file) noexcept
	{
		perfring_symbols_options options{};

		options.flags = perfring_symbols_flags_for(file.get());
		auto opened = open(file.string(PERFRING_FEATURE_OSRELEASE), &options);
		if (opened)
			if (auto taken = opened->expect(file); !taken)
				return taken.why();
		return opened;
	}
	/* release: uname -r of the recorded kernel (file::string, PERFRING_FEATURE_OSRELEASE), which must stay; nullptr: the kernel
	 * has no names. */
	static result<symbols> open(const char *release = nullptr,
				    const perfring_symbols_options *options = nullptr) noexcept
	{
		perfring_symbols *opened = nullptr;

		if (int ret = perfring_symbols_open(&opened, options); ret < 0)
			return error{ret};
		return symbols(opened, release);
	}
	/* Takes the builds that the file's feature BUILD_ID names: of these paths no other build is used. */
	result<void> expect(const file &file) noexcept
	{
		auto payload = file.feature(PERFRING_FEATURE_BUILD_ID);
		perfring_feature_build_id build{};
		perfring_layout_walk walk{};
		char path[4096];

		perfring_feature_open(&walk, PERFRING_FEATURE_BUILD_ID, payload.data(), payload.size(), 0);
		while (!payload.empty() && perfring_feature_next_build_id(&walk, &build) == 1) {
			if (build.name_size >= sizeof(path))
				continue;
			std::memcpy(path, build.name, build.name_size); /* it may have no NUL */
			path[build.name_size] = 0;
			if (int ret = perfring_symbols_expect(get(), path, build.id,
							      static_cast<std::uint32_t>(build.id_size));
			    ret == -ENOMEM)
				return error{ret};
		}
		return {};
	}
	/* The symbol at an address of a mapping that maps::find returned for the process.  Its name is nullptr: there is none.  The
	 * kernel's symbols are read when a mapping says where the kernel was. */
	result<perfring_symbol> find(const perfring_mapping &mapping, std::uint32_t pid, std::uint64_t ip) noexcept
	{
		const perfring_maps_object &of = *mapping.object;
		perfring_symbol_object *object = nullptr;
		perfring_symbol symbol{};
		int ret = 0;

		symbol.why = PERFRING_SYMBOL_NONE;
		if (of.kind == PERFRING_MAPS_KSYMBOL)
			return perfring_symbol{of.name, nullptr, mapping.addr, mapping.end, ip, PERFRING_SYMBOL_KNOWN,
					       0};
		if (of.kind == PERFRING_MAPS_KERNEL || of.kind == PERFRING_MAPS_MODULE) {
			if (ret = place_kernel(mapping); ret >= 0 && kernel_)
				perfring_symbol_find(kernel_, ip, &symbol);
			if (symbol.name && !symbol.module != (of.kind == PERFRING_MAPS_KERNEL))
				symbol.name = nullptr; /* something else was there */
		} else {
			perfring_symbol_file file{};

			file.path = of.name;
			file.build_id = of.file.build_id;
			file.build_id_size = of.file.build_id_size;
			file.pid = static_cast<std::int32_t>(pid);
			file.ino = of.file.ino;
			file.ino_generation = of.file.ino_generation;
			if (ret = perfring_symbols_get(get(), &file, &object); ret >= 0)
				perfring_symbol_find(object, perfring_mapping_offset(&mapping, ip), &symbol);
		}
		return ret < 0 ? result<perfring_symbol>(error{ret}) : result<perfring_symbol>(symbol);
	}

private:
	symbols(perfring_symbols *object, const char *release) noexcept : owner(object), release_(release)
	{
	}

	int place_kernel(const perfring_mapping &mapping) noexcept
	{
		const char *reference = std::strchr(mapping.object->name, ']');
		perfring_symbol_kernel kernel{};

		if (kernel_ || !release_ || mapping.object->kind != PERFRING_MAPS_KERNEL || !reference || !reference[1])
			return 0;
		kernel.release = release_;
		kernel.reference = reference + 1;
		kernel.address = mapping.pgoff;
		return perfring_symbols_get_kernel(get(), &kernel, &kernel_);
	}

	const char *release_;
	perfring_symbol_object *kernel_ = nullptr;
};

/* Callchains of samples with a copy of their stack: stacks.h. */
class stacks : public owner<perfring_stacks, perfring_stacks_close>
{
public:
	/* Both must stay open while it is. */
	static result<stacks> open(maps &maps, symbols &symbols) noexcept
	{
		perfring_stacks *opened = nullptr;

		if (int ret = perfring_stacks_open(&opened, maps.get(), symbols.get()); ret < 0)
			return error{ret};
		return stacks(opened);
	}
	/* The sample's frames; of one with a copy of its stack, at most `most` of user space by unwind tables.  Valid until: the next
	 * call, and while the sample is. */
	result<frames> chain(const sample &sample, std::uint32_t most = 127) noexcept
	{
		perfring_unwind_end end;
		perfring_list chain{};
		int ret = perfring_stacks_chain(get(), &sample, most, &chain, &end);

		if (ret < 0)
			return error{ret};
		return ret ? frames({perfring_callchain_init(&chain)}) : sample.frames();
	}

private:
	explicit stacks(perfring_stacks *object) noexcept : owner(object)
	{
	}
};

class profile : public owner<perfring_profile, perfring_profile_close>
{
public:
	static result<profile> open(const perfring_profile_options *options = nullptr) noexcept
	{
		perfring_profile *opened = nullptr;

		if (int ret = perfring_profile_open(&opened, options); ret < 0)
			return error{ret};
		return profile(opened);
	}
	/* Each: the index of what is equal. */
	result<std::uint32_t> add(const perfring_profile_event &event) noexcept
	{
		return index(perfring_profile_add_event(get(), &event));
	}
	result<std::uint32_t> add(const perfring_profile_thread &thread) noexcept
	{
		return index(perfring_profile_add_thread(get(), &thread));
	}
	result<std::uint32_t> add(const perfring_profile_frame &frame) noexcept
	{
		return index(perfring_profile_add_frame(get(), &frame));
	}
	/* caller: PERFRING_PROFILE_NONE of the outermost. */
	result<std::uint32_t> add_stack(std::uint32_t caller, std::uint32_t frame) noexcept
	{
		return index(perfring_profile_add_stack(get(), caller, frame));
	}
	result<void> add(const perfring_profile_sample &sample) noexcept
	{
		return status_of(perfring_profile_add_sample(get(), &sample));
	}
	/* Valid until: the next call that adds something. */
	perfring_profile_tables tables() const noexcept
	{
		perfring_profile_tables tables{};

		perfring_profile_read(get(), &tables);
		return tables;
	}
	result<void> write(perfring_profile_format format, std::FILE *out,
			   const perfring_profile_view *view = nullptr) const noexcept
	{
		return status_of(perfring_profile_write(get(), format, view, out));
	}

private:
	explicit profile(perfring_profile *object) noexcept : owner(object)
	{
	}

	static result<std::uint32_t> index(std::int64_t ret) noexcept
	{
		if (ret < 0)
			return error{static_cast<int>(ret)};
		return static_cast<std::uint32_t>(ret);
	}
};

} // namespace perfring

#endif
