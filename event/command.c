/* command.c - a command that waits for its observer before its first instruction.
 *
 * The functions of command.h, which `perfring record` and `stat` use.  The child waits on a socket between fork and exec, and may
 * call only what is allowed in the child of a process with threads.
 */
#include <perfring/command.h>

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* The child.  Calls only what the child of a threaded process may call. */
static void __attribute__((noreturn)) wait_and_exec(int fd, char *const argv[])
{
	char go;
	ssize_t got;
	int error;

	got = TEMP_FAILURE_RETRY(recv(fd, &go, 1, 0));
	/* End of file: the parent ended, or closed the command. */
	if (got != 1)
		_exit(127);
	execvp(argv[0], argv);
	error = errno;
	(void)!send(fd, &error, sizeof(error), MSG_NOSIGNAL);
	_exit(127);
}

int perfring_command_open(struct perfring_command *command, char *const argv[])
{
	int pair[2], error;
	pid_t pid;

	command->pid = 0;
	command->fd = -1;
	if (!argv || !argv[0])
		return -EINVAL;
	/* A socket: sending to a child that died is an error, where a pipe would raise SIGPIPE in the caller's
	 * process. */
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return -errno;
	pid = fork();
	if (pid == 0) {
		close(pair[0]);
		wait_and_exec(pair[1], argv);
	}
	error = errno;
	close(pair[1]);
	if (pid < 0) {
		close(pair[0]);
		return -error;
	}
	command->pid = pid;
	command->fd = pair[0];
	return 0;
}

int perfring_command_release(struct perfring_command *command)
{
	char go = 1;
	ssize_t got;
	int error = 0;

	if (command->fd < 0)
		return -EINVAL;
	got = TEMP_FAILURE_RETRY(send(command->fd, &go, 1, MSG_NOSIGNAL));
	if (got < 0) {
		error = errno == EPIPE ? ESRCH : errno;
	} else {
		/* exec closes the child's end: end of file means success. */
		got = TEMP_FAILURE_RETRY(recv(command->fd, &error, sizeof(error), MSG_WAITALL));
		if (got < 0)
			error = errno;
	}
	close(command->fd);
	command->fd = -1;
	return -error;
}

void perfring_command_close(struct perfring_command *command)
{
	if (!command || command->fd < 0)
		return;
	close(command->fd);
	command->fd = -1;
	kill(command->pid, SIGKILL);
	TEMP_FAILURE_RETRY(waitpid(command->pid, NULL, 0));
}
