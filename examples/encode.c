/* encode.c - one sample made from nothing: encoded, checked, shown, and decoded again. */
#include <perfring/check.h>
#include <perfring/text.h>
#include <stdio.h>

int main(void)
{
	/* Known to the compiler: encode and decode become straight stores and loads. */
	static const struct perfring_format format = {
		.sample_type =
			PERFRING_SAMPLE_IP | PERFRING_SAMPLE_TID | PERFRING_SAMPLE_TIME | PERFRING_SAMPLE_CALLCHAIN,
	};
	static const perfring_word chain[] = {(uint64_t)PERFRING_CONTEXT_USER, 0x401136, 0x401180};
	uint64_t buffer[32];
	const struct perf_event_header *record = (const struct perf_event_header *)buffer;
	struct perfring_sample sample, again;
	struct perfring_fault fault;
	char text[256];

	sample.misc = PERFRING_RECORD_MISC_USER;
	sample.ip = 0x401136;
	sample.pid = 42;
	sample.tid = 43;
	sample.time = 1000;
	sample.callchain.words = chain;
	sample.callchain.nr = 3;
	sample.trailing_size = 0;
	if (perfring_sample_encode(&format, &sample, buffer, sizeof(buffer)) < 0)
		return 1;
	if (perfring_record_check(&format, record, sizeof(buffer), &fault)) {
		printf("at %lld: %s\n", (long long)fault.at, fault.what);
		return 1;
	}
	perfring_record_text(&format, record, text, sizeof(text));
	puts(text);
	return perfring_sample_decode(&format, record, &again, NULL) || again.tid != 43 ||
	       again.callchain.words[1] != 0x401136;
}
