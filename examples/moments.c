/* moments.c - the last moments of a command: where it was before it ended, from rings that overwrite.
 *
 *     moments COMMAND [ARGUMENT...]          the last 20 samples of `cycles`, or of what this machine has instead
 *
 * However long the command runs, nothing is read until its end, and no more is kept than the rings hold.
 */
#include <stdio.h>
#include <sys/wait.h>
#include <perfring/command.h>
#include <perfring/session.h>
#include <perfring/text.h>

enum {
	LAST = 20
};

static int refuse(const char *what, int error, const char *why)
{
	fprintf(stderr, "moments: %s: %s\n", what, *why ? why : strerror(-error));
	return 1;
}

int main(int argc, char **argv)
{
	struct perf_event_attr attr = {.size = sizeof(attr), .freq = 1, .sample_freq = 1000};
	struct perfring_session *session = NULL;
	struct perfring_target *target = NULL;
	struct perfring_command command;
	static char last[LAST][4096];
	struct perfring_item item;
	uint64_t taken, count = 0;
	char text[1024];
	int ret;

	if (argc < 2)
		return refuse("usage", -EINVAL, "moments COMMAND [ARGUMENT...]");
	perfring_event_parse("cycles", &attr, NULL);
	attr.sample_type = PERFRING_SAMPLE_IP | PERFRING_SAMPLE_TID | PERFRING_SAMPLE_TIME | PERFRING_SAMPLE_CPU;
	attr.disabled = attr.enable_on_exec = attr.inherit = attr.sample_id_all = 1;

	if ((ret = perfring_command_open(&command, argv + 1)))
		return refuse("fork", ret, "");
	if ((ret = perfring_target_open(&target)) || (ret = perfring_target_add_cpus(target, NULL)) ||
	    (ret = perfring_target_add_thread(target, command.pid)) || (ret = perfring_session_open(&session, 8)) ||
	    (ret = perfring_session_configure(session, PERFRING_SESSION_BACKWARD | PERFRING_SESSION_SHRINK,
					      PERFRING_FALLBACK_ALL)))
		return refuse("session", ret, "");
	if ((ret = perfring_session_add(session, &attr, target)) < 0)
		return refuse("add", ret, perfring_session_refusal(session));
	if ((taken = perfring_session_given_up(session, 0))) {
		perfring_fallback_explain(taken, &attr, perfring_session_attr(session, 0), text, sizeof(text));
		fprintf(stderr, "moments: %s\n", text);
	}
	if ((ret = perfring_command_release(&command)))
		return refuse(argv[1], ret, "");
	perfring_command_close(&command);
	waitpid(command.pid, NULL, 0);

	if ((ret = perfring_session_snapshot(session))) /* pauses, copies, goes on; also in the middle of it all */
		return refuse("snapshot", ret, ret == -EBADMSG ? perfring_session_fault(session, NULL).what : "");
	while (perfring_session_next(session, &item) == 1) /* in time order */
		if (item.record->type == PERFRING_RECORD_SAMPLE)
			perfring_record_text(item.format, item.record, last[count++ % LAST], sizeof(last[0]));
	for (uint64_t i = count > LAST ? count - LAST : 0; i < count; i++)
		puts(last[i % LAST]);
	perfring_session_return(session);
	perfring_session_close(session);
	perfring_target_close(target);
	return 0;
}
