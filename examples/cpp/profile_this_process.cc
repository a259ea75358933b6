/* profile_this_process.cc - a program that samples itself: by the kernel's cpu-clock, or, where perf_event_open is refused and with
 * --soft, by its own (soft.h). */
#include <cstdio>
#include <optional>
#include <perfring/perfring.hpp>
#include <string_view>
#include <unistd.h>

static volatile double sink;

[[gnu::noinline]] static void work()
{
	for (int i = 0; i < 200000000; i++)
		sink = sink + i;
}

/* The kernel's event of this thread. */
static perfring::result<void> observe(perfring::session &session, const perf_event_attr &attr)
{
	auto target = perfring::target::open();

	if (!target)
		return target.why();
	if (auto added = target->add_thread(gettid()); !added)
		return added;
	if (auto event = session.add(attr, *target); !event)
		return event.why();
	return session.enable();
}

/* The process's own event, of each thread that joins; this one has. */
static perfring::result<void> observe_softly(perfring::session &session, const perf_event_attr &attr,
					     std::optional<perfring::soft_event> &event)
{
	auto opened = perfring::soft_event::open(attr);

	if (!opened)
		return opened.why();
	event = *std::move(opened);
	if (auto mapped = event->map(64); !mapped)
		return mapped;
	if (auto added = session.add_set(event->rings()); !added)
		return added;
	event->enable();
	return {};
}

int main(int argc, char **argv)
{
	bool softly = argc > 1 && std::string_view(argv[1]) == "--soft";
	auto attr = perfring::parse_event("cpu-clock");
	std::optional<perfring::soft_event> event; /* before the session, so that it is closed after it */
	auto session = perfring::session::open();
	std::uint64_t samples = 0, all = 0, inside = 0;
	perfring::result<void> observed;

	if (!attr || !session)
		return 1;
	attr->freq = 1;
	attr->sample_freq = 250;
	attr->sample_type = PERFRING_SAMPLE_IDENTIFIER | PERFRING_SAMPLE_IP | PERFRING_SAMPLE_TID |
			    PERFRING_SAMPLE_TIME | PERFRING_SAMPLE_PERIOD;
	attr->disabled = attr->sample_id_all = 1;
	if (!session->configure(0, PERFRING_FALLBACK_EXCLUDE_KERNEL))
		return 1;
	if (!softly && !(observed = observe(*session, *attr))) {
		std::fprintf(stderr, "profile_this_process: %s\n", observed.why().text());
		softly = true;
	}
	if (softly && !(observed = observe_softly(*session, *attr, event))) {
		std::fprintf(stderr, "profile_this_process: %s\n", observed.why().text());
		return 1;
	}

	work();

	session->flush();
	for (const perfring::item &item : session->items())
		if (perfring::sample sample; item.is_sample() && item.decode(sample)) {
			samples++;
			all += sample.period; /* ns of CPU time */
			if (sample.ip - reinterpret_cast<std::uintptr_t>(&work) < 200)
				inside += sample.period;
		}
	session->return_space();
	std::printf("%s: %llu samples, %.2f s of CPU time, %.0f %% of it in work\n", softly ? "soft" : "kernel",
		    static_cast<unsigned long long>(samples), static_cast<double>(all) / 1e9,
		    100 * static_cast<double>(inside) / static_cast<double>(all ? all : 1));
	return inside * 2 < all;
}
