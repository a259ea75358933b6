/* bench.cc - the one C++ file: runs bench_rows on Google Benchmark, and closes with the ratios of each task.
 *
 * With --claims a line for each row that has a bound follows, and one that falls short makes the exit status 1.
 */
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstring>
#include <map>
#include <set>
#include <string>

#include "bench.h"

struct bench {
	benchmark::State *state;
	int64_t items;
	double lap; /* the least; 0: none */
	int place;
};

bool bench_keep(struct bench *bench, int64_t batch)
{
	return bench->state->KeepRunningBatch(batch);
}

void bench_items(struct bench *bench, int64_t items)
{
	bench->items = items;
}

void bench_lap(struct bench *bench, double ns)
{
	if (bench->lap == 0 || ns < bench->lap)
		bench->lap = ns;
}

void bench_place(struct bench *bench, int place)
{
	bench->place = place;
}

void bench_skip(struct bench *bench, const char *reason)
{
	bench->state->SkipWithError(reason);
}

/* The least time of one item, in ns, by row: of a lap, or of this thread in one repetition. */
class fastest : public benchmark::BenchmarkReporter
{
      public:
	std::map<int, std::map<std::string, double>> places;
	std::set<std::string> reported; /* errors: one line for all repetitions */
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
				if (reported.insert(name).second)
					std::printf("%s: %s\n", name.c_str(), run.error_message.c_str());
				failed = failed || run.error_message.rfind("SKIP-ENV: ", 0) != 0;
			} else if (run.run_type == Run::RT_Iteration) {
				double lap = run.counters.at("lap").value;
				double time =
					(lap > 0 ? lap : run.GetAdjustedCPUTime()) / run.counters.at("items").value;
				int place = static_cast<int>(run.counters.at("place").value);
				auto known = places[place].emplace(name, time).first;

				if (time < known->second)
					known->second = time;
			}
		}
	}
};

static std::string name_of(const struct bench_row *row)
{
	return std::string(row->task) + "/" + row->contender;
}

struct best {
	double time;
	int place;
};

/* What each row took, all rows of a task in one place. */
static std::map<std::string, best> choose(std::map<int, std::map<std::string, double>> &places)
{
	std::map<std::string, std::map<int, int>> rows;
	std::map<std::string, best> least;

	places.erase(BENCH_MIXED);
	auto task_of = [](const std::string &name) { return name.substr(0, name.find('/')); };
	for (auto &place : places)
		for (auto &row : place.second)
			rows[task_of(row.first)][place.first]++;
	for (auto &task : rows) {
		auto most = task.second.begin();

		for (auto place = most; place != task.second.end(); ++place)
			if (place->second >= most->second)
				most = place;
		for (auto &row : places[most->first])
			if (task_of(row.first) == task.first)
				least[row.first] = {row.second, most->first};
	}
	return least;
}

/* Tells every claim.  Returns how many fell short; one whose row or base was skipped is neither. */
static int hold_claims(const std::map<std::string, best> &least)
{
	const struct bench_row *base = bench_rows;
	int fell_short = 0;

	for (const struct bench_row *row = bench_rows; row->task; row++) {
		if (row->bound == 0 || std::strcmp(row->task, base->task) != 0)
			base = row;
		if (row->bound == 0)
			continue;
		auto mine = least.find(name_of(row)), its = least.find(name_of(base));
		if (mine == least.end() || its == least.end()) {
			std::printf("skipped            %s: %s / %s\n", row->task, row->contender, base->contender);
			continue;
		}
		double ratio = mine->second.time / its->second.time;
		bool is_near = mine->second.place == BENCH_NEAR;
		double bound = is_near && row->near_bound > 0 ? row->near_bound : row->bound;
		bool holds = ratio <= bound;

		std::printf("%s %.2f <= %.2f  %s: %s / %s%s\n", holds ? "holds" : "SHORT", ratio, bound, row->task,
			    row->contender, base->contender, is_near ? ", on one core" : "");
		fell_short += !holds;
	}
	return fell_short;
}

/* Takes --claims out of the arguments, which then are Google Benchmark's. */
static bool wants_claims(int *argc, char **argv)
{
	for (int i = 1; i < *argc; i++) {
		if (std::strcmp(argv[i], "--claims") != 0)
			continue;
		for (; i < *argc; i++)
			argv[i] = argv[i + 1];
		--*argc;
		return true;
	}
	return false;
}

int main(int argc, char **argv)
{
	bool claims = wants_claims(&argc, argv);
	fastest reporter;
	std::set<std::string> named;
	std::string base;
	int rows = 0;

	for (const struct bench_row *row = bench_rows; row->task; row++) {
		if (!named.insert(name_of(row)).second)
			continue;
		benchmark::RegisterBenchmark(name_of(row).c_str(), [row](benchmark::State &state) {
			struct bench bench = {&state, 1, 0, 0};

			row->run(&bench);
			state.counters["items"] = static_cast<double>(bench.items);
			state.counters["lap"] = bench.lap;
			state.counters["place"] = bench.place;
		});
	}
	benchmark::Initialize(&argc, argv);
	if (benchmark::ReportUnrecognizedArguments(argc, argv))
		return 2;
	benchmark::RunSpecifiedBenchmarks(&reporter);
	std::map<std::string, best> least = choose(reporter.places);
	std::printf("%-40s %12s %8s\n", "fastest repetition", "ns an item", "ratio");
	for (const struct bench_row *row = bench_rows; row->task; row++) {
		auto found = least.find(name_of(row));

		if (row == bench_rows || std::strcmp(row->task, row[-1].task) != 0)
			base = found == least.end() ? "" : found->first;
		if (found == least.end() || named.erase(found->first) == 0)
			continue;
		std::printf("%-40s %12.2f", found->first.c_str(), found->second.time);
		if (!base.empty())
			std::printf(" %8.2f", found->second.time / least[base].time);
		std::printf("\n");
		rows++;
	}
	std::printf("%d rows\n", rows);
	if (claims && hold_claims(least) > 0)
		return 1;
	return rows == 0 || reporter.failed;
}
