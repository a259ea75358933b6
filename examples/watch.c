/* watch.c - page faults, mappings and threads of a command, in time order: watch COMMAND [ARGUMENT...] */
#include <stdio.h>
#include <sys/wait.h>
#include <perfring/command.h>
#include <perfring/session.h>
#include <perfring/text.h>

static int refuse(const char *what, int error, const char *why)
{
	fprintf(stderr, "watch: %s: %s%s%s\n", what, strerror(-error), *why ? ": " : "", why);
	return 1;
}

int main(int argc, char **argv)
{
	struct perf_event_attr attr = {.size = sizeof(attr), .sample_period = 1};
	struct perfring_target *target = NULL;
	struct perfring_session *session = NULL;
	struct perfring_command command;
	struct perfring_item item;
	char text[4096];
	int ret, one, over = 0;

	if (argc < 2)
		return refuse("no command", -EINVAL, "watch COMMAND [ARGUMENT...]");
	perfring_event_parse("page-faults:u", &attr, NULL);
	attr.sample_type = PERFRING_SAMPLE_IP | PERFRING_SAMPLE_TID | PERFRING_SAMPLE_TIME | PERFRING_SAMPLE_ADDR;
	attr.disabled = attr.enable_on_exec = attr.inherit = attr.sample_id_all = 1;
	attr.comm = attr.task = attr.mmap = attr.mmap2 = 1;

	if ((ret = perfring_command_open(&command, argv + 1)) < 0)
		return refuse("fork", ret, "");
	if ((ret = perfring_target_open(&target)) || (ret = perfring_target_add_cpus(target, NULL)) ||
	    (ret = perfring_target_add_thread(target, command.pid)) || (ret = perfring_session_open(&session, 0)))
		return refuse("session", ret, "");
	if ((ret = perfring_session_add(session, &attr, target)) < 0)
		return refuse("page-faults", ret, perfring_session_refusal(session));
	if ((ret = perfring_command_release(&command)) < 0)
		return refuse(argv[1], ret, "");
	while (!over) {
		if ((over = perfring_session_is_over(session)))
			perfring_session_flush(session);
		else
			perfring_session_wait(session, 100);
		while ((one = perfring_session_next(session, &item)) != 0) {
			if (one == 1)
				perfring_record_text(item.format, item.record, text, sizeof(text));
			else
				snprintf(text, sizeof(text), "corrupt: %s", perfring_session_fault(session, NULL).what);
			puts(text);
		}
		perfring_session_return(session);
	}
	perfring_command_close(&command);
	waitpid(command.pid, NULL, 0);
	perfring_session_close(session);
	perfring_target_close(target);
	return 0;
}
