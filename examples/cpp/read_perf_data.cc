/* read_perf_data.cc - the samples of a perf.data file: event, thread's name, address.
 *
 *     read_perf_data FILE
 */
#include <cstdio>
#include <perfring/perfring.hpp>

int main(int argc, char **argv)
{
	if (argc != 2)
		return std::fprintf(stderr, "usage: read_perf_data FILE\n"), 2;
	auto file = perfring::file::open(argv[1]);
	auto maps = perfring::maps::open(); /* names of threads, from COMM records */

	if (!file || !maps) {
		std::fprintf(stderr, "read_perf_data: %s: %s\n", argv[1], (file ? maps.why() : file.why()).text());
		return 1;
	}
	auto items = file->items();
	perfring::sample sample;

	for (const perfring::item &item : items) {
		if (!item.is_sample()) {
			if (auto taken = maps->take(item); !taken)
				std::fprintf(stderr, "read_perf_data: %s: %s\n", item.name(), taken.why().text());
		} else if (auto decoded = item.decode(sample); !decoded) {
			std::fprintf(stderr, "read_perf_data: %s: a sample: %s\n", argv[1], decoded.why().text());
		} else {
			const char *comm = sample.has(PERFRING_SAMPLE_TID) ? maps->comm(sample.tid) : nullptr;

			std::printf("%s %s 0x%llx\n", file->event_name(item.format->index), comm ? comm : "[unknown]",
				    sample.has(PERFRING_SAMPLE_IP) ? static_cast<unsigned long long>(sample.ip) : 0);
		}
	}
	if (auto status = items.status(); !status) {
		std::fprintf(stderr, "read_perf_data: %s: at %lld: %s\n", argv[1],
			     static_cast<long long>(status.why().at), status.why().text());
		return 1;
	}
	return 0;
}
