/* record_command.c - `perfring record`: observes a command, threads or the system into a perf.data file.
 *
 * tool_record_run: reads the options, opens events, releases the command, then loops: wait for rings, signals, --control,
 * triggers and --soft's processes; write a round; until the command has ended or a signal comes.  One thread.  record_file.c
 * writes, record_control.c and record_trigger.c say when.
 */
#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>
#include "program.h"
#include "record_command.h"

enum {
	/* How long records stay in a quiet ring before they are written: a kill loses no older ones. */
	ROUND_MS = 500,
};

/* SIGCHLD of the command ends the recording, as does ^C. */
static enum asked take_signals(struct recording *recording)
{
	struct signalfd_siginfo signal;
	enum asked asked = GO_ON;

	while (read(recording->signals, &signal, sizeof(signal)) == (ssize_t)sizeof(signal)) {
		if (signal.ssi_signo == SIGUSR2) {
			asked = asked == END ? END : SWITCH;
		} else if (signal.ssi_signo != SIGCHLD) {
			asked = END;
			recording->ended_by = (int)signal.ssi_signo;
		} else if (recording->command && !recording->child_ended &&
			   waitpid(recording->child.pid, &recording->child_status, WNOHANG) == recording->child.pid) {
			recording->child_ended = true;
			asked = END;
		}
	}
	return asked;
}

/* Whether the file is full, by size or by time. */
static bool is_full(const struct recording *recording)
{
	return (recording->switch_bytes && perfring_file_writer_size(recording->writer) >= recording->switch_bytes) ||
	       (recording->switch_ms && tool_now() - recording->opened >= recording->switch_ms * NS_PER_MS);
}

static bool enable(struct recording *recording)
{
	int ret = perfring_session_enable(recording->session);

	if (!ret && recording->side)
		ret = perfring_session_enable(recording->side);
	if (ret)
		tool_complain("record: enabling the events: %s", strerror(-ret));
	return !ret;
}

/* Running threads are observed before their state is written: changes meanwhile are recorded after it. */
static bool enable_first(struct recording *recording)
{
	recording->is_enabled = !recording->is_delayed && (recording->pids || recording->tids);
	return !recording->is_enabled || enable(recording);
}

/* Events that the exec enables need no call here, nor do those that ranges or commands enable. */
static bool start(struct recording *recording)
{
	const struct sched_param priority = {.sched_priority = recording->real_time};
	int ret = 0;

	/* The command has been forked, and keeps its own. */
	if (recording->real_time && sched_setscheduler(0, SCHED_FIFO, &priority)) {
		tool_complain("record: -r %d: %s", recording->real_time, strerror(errno));
		return false;
	}
	if (!tool_record_observes_command(recording) && !recording->is_delayed && !recording->is_enabled &&
	    !enable(recording))
		return false;
	if (recording->command)
		ret = perfring_command_release(&recording->child);
	if (ret)
		tool_program_complain("record", recording->command[0], ret);
	tool_record_start_ranges(recording);
	return !ret;
}

/* How long to sleep.  Under a flood the rings are kept as empty as possible: their space is for when this process is
 * delayed. */
static int round_ms(const struct recording *recording)
{
	uint64_t most = recording->is_pressed     ? 0
			: recording->soft         ? SOFT_ROUND_MS
			: recording->is_unsettled ? MARK_MS
						  : ROUND_MS,
		 left = tool_record_next_edge_ms(recording), reading = tool_record_next_reading_ms(recording);

	left = reading < left ? reading : left;
	return (int)(left < most ? left : most);
}

static bool serve(struct recording *recording, enum asked asked)
{
	bool good;

	if (recording->soft)
		tool_peers_serve(recording->peers);
	recording->looked = tool_now();
	perfring_session_wait(recording->snapshots ? recording->side : recording->session, 0);
	good = tool_record_write_round(recording);
	if (recording->soft)
		tool_peers_sweep(recording->peers);
	if (good && asked == SWITCH && recording->aux_snapshots)
		good = tool_record_aux_snapshot(recording, false);
	if (good && asked == SWITCH && recording->snapshots)
		good = tool_record_snapshot(recording, false);
	else if (good && recording->switched && (asked == SWITCH || is_full(recording)))
		good = tool_record_switch_file(recording);
	return good;
}

static bool run(struct recording *recording)
{
	struct perfring_session *session = recording->snapshots ? recording->side : recording->session;
	struct pollfd ready[4 + TRIGGERS_MAX] = {
		{.fd = perfring_session_fd(session), .events = POLLIN},
		{.fd = recording->signals, .events = POLLIN},
		{.fd = recording->soft ? tool_peers_fd(recording->peers) : -1, .events = POLLIN},
		{.fd = recording->control.fd, .events = POLLIN},
	};
	nfds_t count = 4 + tool_record_poll_triggers(recording, ready + 4);
	enum asked asked;
	bool good = true;

	while (good && !perfring_session_is_over(recording->session)) {
		ready[3].fd = recording->control.fd;
		poll(ready, count, round_ms(recording));
		/* At once: a ring that overwrites does not keep the wanted records for long. */
		asked = take_signals(recording);
		asked = asked == GO_ON ? tool_record_take_commands(recording) : asked;
		if (asked == END)
			break;
		if (tool_record_is_triggered(recording, ready + 4))
			asked = SWITCH;
		good = tool_record_keep_ranges(recording) && serve(recording, asked);
		tool_record_answer(recording);
		if (recording->most_bytes && recording->writer &&
		    perfring_file_writer_size(recording->writer) >= recording->most_bytes) {
			tool_complain("record: %s: the recording ends here, for --max-size is reached",
				      recording->path);
			break;
		}
	}
	perfring_session_disable(recording->session);
	if (recording->side)
		perfring_session_disable(recording->side);
	tool_record_answer(recording);
	/* Until the queue is empty: threads run on as soon as they have sent their rings. */
	for (int i = 0; good && recording->soft && i < SOFT_LAST_ROUNDS && tool_peers_serve(recording->peers); i++)
		;
	if (good && recording->snapshots)
		return tool_record_snapshot(recording, true);
	if (good && recording->aux_at_end && recording->aux_snapshots)
		return tool_record_aux_snapshot(recording, true);
	if (good) {
		perfring_session_flush(recording->session);
		good = tool_record_write_round(recording);
	}
	return good;
}

static void tell(const struct recording *recording)
{
	struct perfring_totals totals;
	uint64_t lost;

	if (recording->maps_cut)
		tool_complain("record: %s: warning: --proc-map-timeout: processes with more mappings than are in it: "
			      "%u",
			      recording->path, recording->maps_cut);
	if (recording->quiet)
		return;
	/* Lost in rings, by the PMU, and for want of disk space. */
	perfring_session_totals(recording->session, &totals);
	/* As processes say, that are not trusted: recording->lost has bounds, and no program writes AUX records. */
	if (recording->soft)
		totals.lost = totals.lost_samples = totals.aux_truncated = totals.aux_partial = totals.aux_collisions = 0;
	lost = (totals.lost > recording->lost ? totals.lost : recording->lost) + totals.lost_samples;
	if (!recording->snapshots)
		lost += totals.records - recording->kept_records;
	fprintf(stderr, "[ perfring record: %" PRIu64 " samples, %" PRIu64 " bytes in ", recording->kept_samples,
		recording->kept_bytes);
	tool_print(stderr, strcmp(recording->path, "-") ? recording->path : "a stream", 0, false);
	fprintf(stderr, "; lost %" PRIu64 ", throttled %" PRIu64 " times", lost, totals.throttles);
	if (recording->has_aux)
		fprintf(stderr, "; bytes of AUX areas: %" PRIu64, recording->aux_bytes);
	if (recording->files > 1)
		fprintf(stderr, "; files: %u", recording->files);
	if (recording->soft)
		fprintf(stderr, "; processes: %" PRIu64, tool_peers_count(recording->peers));
	fputs(" ]\n", stderr);
	tool_unwinding_tell(recording);
	tool_tell_aux(recording->path, totals.aux, totals.aux_truncated, totals.aux_partial, totals.aux_collisions);
	if (totals.corrupt)
		tool_complain("record: rings were corrupt %" PRIu64 " times: %" PRIu64 " bytes skipped", totals.corrupt,
			      totals.skipped);
}

static bool open_signals(struct recording *recording, sigset_t *before)
{
	bool asked = recording->snapshots || recording->aux_snapshots || recording->switched;

	/* A full disk, a file limit or a stream without a reader is reported by the write. */
	signal(SIGXFSZ, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	/* As perf: a recording that has no use for it is not ended by it. */
	if (!asked)
		signal(SIGUSR2, SIG_IGN);
	return tool_open_signals(&recording->signals, asked ? SIGUSR2 : 0, before);
}

static void end_command(struct recording *recording)
{
	/* Never released: close kills it. */
	if (recording->child.fd >= 0) {
		perfring_command_close(&recording->child);
	} else if (!recording->child_ended) {
		kill(recording->child.pid, SIGTERM);
		while (waitpid(recording->child.pid, &recording->child_status, 0) < 0 && errno == EINTR)
			;
	}
}

int tool_record_run(int argc, char **argv)
{
	struct recording recording = {
		.out = {.fd = -1}, .file = -1, .signals = -1, .child = {.fd = -1}, .control = {.fd = -1, .ack = -1}};
	int status = tool_record_read_options(&recording, argc, argv);
	sigset_t before;
	bool good, masked = false;

	if (status >= 0)
		goto out;
	status = TOOL_FAILED;
	if (recording.dry) {
		status = TOOL_DONE;
		goto out;
	}
	if (recording.command && !tool_program_find("record", recording.command[0]))
		goto out;
	if (recording.rounded && !recording.quiet)
		tool_complain("record: -m %s: rounded up to %u pages, %" PRIu64 "K: a ring has 2^N pages",
			      recording.rounded, recording.pages,
			      (uint64_t)recording.pages * (uint64_t)sysconf(_SC_PAGESIZE) / 1024);
	if (recording.is_aux_rounded && !recording.quiet)
		tool_complain("record: -m: AUX areas are rounded up to %u pages: they have 2^N pages",
			      recording.aux_pages);
	if (recording.control_text && !tool_record_open_control(&recording))
		goto out;
	if (!tool_record_watch_spans(&recording))
		goto out;
	tool_record_choose_soft(&recording);
	good = recording.soft ? tool_record_open_soft(&recording) : tool_record_choose_target(&recording);
	if (good)
		good = masked = open_signals(&recording, &before);
	good = good && (recording.soft || tool_record_open_events(&recording)) && tool_unwinding_open(&recording) &&
	       enable_first(&recording) &&
	       tool_record_open_file(&recording) && tool_record_open_triggers(&recording);
	good = good && start(&recording) && tool_record_settle_file(&recording);
	if (good) {
		good = run(&recording);
		if (!recording.snapshots && recording.writer)
			good = tool_record_finish_file(&recording) && good;
		if (good && recording.soft)
			good = tool_peers_tell(recording.peers);
		if (recording.writer)
			tell(&recording);
		tool_record_tell_triggers(&recording);
	}
	if (masked) {
		/* The file is closed: a second ^C ends the wait for a command that ignored the first. */
		take_signals(&recording);
		sigprocmask(SIG_SETMASK, &before, NULL);
	}
	/* Further processes of the command are refused; their mappings stay valid for them. */
	perfring_session_close(recording.session);
	perfring_session_close(recording.side);
	tool_peers_close(recording.peers);
	recording.session = recording.side = NULL;
	recording.peers = NULL;
	if (recording.child.pid)
		end_command(&recording);
	if (good)
		status = TOOL_DONE;
out:
	tool_record_close_triggers(&recording);
	tool_record_close_file(&recording);
	tool_unwinding_close(&recording);
	tool_record_close_side(&recording);
	perfring_session_close(recording.session);
	perfring_session_close(recording.side);
	tool_peers_close(recording.peers);
	tool_record_close_target(&recording);
	perfring_events_close(recording.names);
	tool_record_close_control(&recording);
	if (recording.signals >= 0)
		close(recording.signals);
	tool_filters_close(&recording.filters);
	free(recording.events);
	free(recording.reported);
	while (recording.switched_count)
		free(recording.switched_paths[--recording.switched_count]);
	free(recording.switched_paths);
	return status ? status : tool_status(recording.child_status, recording.ended_by);
}
