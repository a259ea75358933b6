// benchmark.cc - Google Benchmark with columns of events beside its times, per iteration:
//
//     c++ benchmark.cc $(pkg-config --cflags --libs perfring benchmark) && ./a.out
//
// An event that this machine does not count has no column.
#include <benchmark/benchmark.h>
#include <perfring/count.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>

// Counts from its construction to its end, around the loop over the state.
class Counters {
public:
	Counters(benchmark::State &state, const char *events) : state_(state)
	{
		if (perfring_counts_open_self(&counts_, events) || perfring_counts_enable(counts_))
			std::fprintf(stderr, "benchmark: %s\n", perfring_counts_refusal(counts_));
	}
	~Counters()
	{
		perfring_count sum;

		perfring_counts_disable(counts_);
		perfring_counts_read(counts_);
		for (uint32_t i = 0; i < perfring_counts_count(counts_); i++)
			if (!perfring_counts_sum(counts_, i, PERFRING_COUNTS_ALL, 0, &sum))
				state_.counters[perfring_counts_name(counts_, i)] =
					benchmark::Counter(double(sum.value), benchmark::Counter::kAvgIterations);
		perfring_counts_close(counts_);
	}
	Counters(const Counters &) = delete;
	Counters &operator=(const Counters &) = delete;

private:
	benchmark::State &state_;
	perfring_counts *counts_ = nullptr;
};

// Large blocks are fresh memory each time: their page faults explain what the time alone does not.
static void fill_new(benchmark::State &state)
{
	Counters counters(state, "instructions:u,page-faults:u,context-switches:u");

	for (auto _ : state) {
		char *memory = static_cast<char *>(std::malloc(std::size_t(state.range(0))));

		std::memset(memory, 1, std::size_t(state.range(0)));
		benchmark::DoNotOptimize(memory);
		std::free(memory);
	}
}
BENCHMARK(fill_new)->Arg(4096)->Arg(64 << 20);
BENCHMARK_MAIN();
