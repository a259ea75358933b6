/* folded.cc - the stacks of a perf.data file with names, folded for flame graphs: "COMM;main;function 1" for each sample.
 *
 *     folded FILE
 */
#include <cstdio>
#include <perfring/perfring.hpp>
#include <string>

static const char *name_of(const perfring::maps &maps, perfring::symbols &symbols, unsigned cpumode, std::uint32_t pid,
			   std::uint64_t ip)
{
	if (const perfring_mapping *mapping = maps.find(cpumode, pid, ip))
		if (auto symbol = symbols.find(*mapping, pid, ip); symbol && symbol->name)
			return symbol->name;
	return "[unknown]";
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return std::fprintf(stderr, "usage: folded FILE\n"), 2;
	auto file = perfring::file::open(argv[1]);

	if (!file)
		return std::fprintf(stderr, "folded: %s: %s\n", argv[1], file.why().text()), 1;
	auto maps = perfring::maps::open();
	auto symbols = perfring::symbols::open(*file);

	if (!maps || !symbols)
		return std::fprintf(stderr, "folded: out of memory\n"), 1;
	auto stacks = perfring::stacks::open(*maps, *symbols);
	auto items = file->items();
	perfring::sample sample;
	std::string line;

	for (const perfring::item &item : items) {
		if (!item.is_sample()) {
			(void)!maps->take(item); /* what it says stays unknown */
			continue;
		}
		if (auto decoded = item.decode(sample); !decoded) {
			std::fprintf(stderr, "folded: %s: a sample: %s\n", argv[1], decoded.why().text());
			continue;
		}
		if (!sample.has(PERFRING_SAMPLE_TID | PERFRING_SAMPLE_CALLCHAIN))
			continue;
		auto frames = stacks ? stacks->chain(sample) : perfring::result<perfring::frames>(stacks.why());
		const char *comm = maps->comm(sample.tid);

		if (!frames)
			return std::fprintf(stderr, "folded: %s\n", frames.why().text()), 1;
		line.clear();
		for (const perfring_frame &frame : *frames)
			line = std::string(";") +
			       name_of(*maps, *symbols, sample.cpumode(frame), sample.pid, frame.ip) + line;
		std::printf("%s%s 1\n", comm ? comm : "[unknown]", line.c_str());
	}
	if (auto status = items.status(); !status) {
		std::fprintf(stderr, "folded: %s: at %lld: %s\n", argv[1], static_cast<long long>(status.why().at),
			     status.why().text());
		return 1;
	}
	return 0;
}
