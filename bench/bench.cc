/* bench.cc - the one C++ file: runs bench_rows on Google Benchmark, and closes with the ratios of each task. */
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstring>
#include <map>
#include <string>

#include "bench.h"

struct bench {
	benchmark::State *state;
	int64_t items;
};

bool bench_keep(struct bench *bench, int64_t batch)
{
	return bench->state->KeepRunningBatch(batch);
}

void bench_items(struct bench *bench, int64_t items)
{
	bench->items = items;
}

void bench_skip(struct bench *bench, const char *reason)
{
	bench->state->SkipWithError(reason);
}

/* The least time of one item, in ns of this thread, by row. */
class fastest : public benchmark::BenchmarkReporter {
public:
	std::map<std::string, double> least;
	bool failed = false;

	bool ReportContext(const Context &context) override
	{
		PrintBasicContext(&GetErrorStream(), context);
		return true;
	}

	void ReportRuns(const std::vector<Run> &runs) override
	{
		for (const Run &run : runs) {
			const std::string &name = run.run_name.function_name;

			if (run.error_occurred) {
				std::printf("%s: %s\n", name.c_str(), run.error_message.c_str());
				failed = true;
			} else if (run.run_type == Run::RT_Iteration) {
				double time = run.GetAdjustedCPUTime() / run.counters.at("items").value;
				auto known = least.emplace(name, time).first;

				if (time < known->second)
					known->second = time;
			}
		}
	}
};

int main(int argc, char **argv)
{
	fastest reporter;
	std::string base;
	int told = 0;

	for (const struct bench_row *row = bench_rows; row->task; row++) {
		std::string name = std::string(row->task) + "/" + row->contender;

		benchmark::RegisterBenchmark(name.c_str(), [row](benchmark::State &state) {
			struct bench bench = { &state, 1 };

			row->run(&bench);
			state.counters["items"] = static_cast<double>(bench.items);
		});
	}
	benchmark::Initialize(&argc, argv);
	if (benchmark::ReportUnrecognizedArguments(argc, argv))
		return 2;
	benchmark::RunSpecifiedBenchmarks(&reporter);
	std::printf("%-40s %12s %8s\n", "fastest repetition", "ns an item", "ratio");
	for (const struct bench_row *row = bench_rows; row->task; row++) {
		auto found = reporter.least.find(std::string(row->task) + "/" + row->contender);

		if (row == bench_rows || std::strcmp(row->task, row[-1].task) != 0)
			base = found == reporter.least.end() ? "" : found->first;
		if (found == reporter.least.end())
			continue;
		std::printf("%-40s %12.2f", found->first.c_str(), found->second);
		if (!base.empty())
			std::printf(" %8.2f", found->second / reporter.least[base]);
		std::printf("\n");
		told++;
	}
	std::printf("%d rows\n", told);
	return told == 0 || reporter.failed;
}
