/* outfile.c - the file that a command writes: beside what was there, until it takes its name.
 *
 * Commands that write a file open it here.  A signal or an error before settle leaves the old file as it was.  Paths are the
 * user's; directories are replaced only if they hold nothing but a recording.
 */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "outfile.h"
#include "path.h"

enum {
	SPARE = 64 << 10, /* bytes for features */
	TRIES = 100,      /* names for a file beside another */
	READER_MS = 20,   /* how often to look for a pipe's reader */
};

/* The name of a file that is not settled, for exits without a close: when memory has run out. */
static struct {
	const char *name; /* NULL: none */
	bool is_folder;
	pid_t maker; /* children exit, too */
} unsettled;

static int remove_folder(const char *path);

static void remove_left(void)
{
	if (!unsettled.name || unsettled.maker != getpid())
		return;
	if (unsettled.is_folder)
		remove_folder(unsettled.name);
	else
		unlink(unsettled.name);
}

static void leave(const struct tool_outfile *file)
{
	static bool is_registered;

	unsettled.name = file->beside;
	unsettled.is_folder = file->flags & TOOL_OUTFILE_DIRECTORY;
	unsettled.maker = getpid();
	if (!is_registered)
		is_registered = !atexit(remove_left);
}

static void forget(struct tool_outfile *file)
{
	if (unsettled.name == file->beside)
		unsettled.name = NULL;
	free(file->beside);
	file->beside = NULL;
}

static bool complain(const struct tool_outfile *file, const char *name, int error)
{
	tool_complain("%s: %s: %s", file->command, name, strerror(error));
	return false;
}

static char *joined(const char *path, const char *suffix)
{
	char *name = tool_allocate(NULL, strlen(path) + strlen(suffix) + 1, 1);

	strcpy(stpcpy(name, path), suffix);
	return name;
}

/* ---- what is there ---- */

static bool is_of_recording(const char *name)
{
	if (!strcmp(name, "data"))
		return true;
	return !strncmp(name, "data.", 5) && name[5] && !name[5 + strspn(name + 5, "0123456789")];
}

/* Whether a directory holds only a recording: files `data` and data.N.  Returns 0, -ENOTEMPTY when there is anything else,
 * or -errno; with `empties` they are removed. */
static int look_into(const char *path, bool empties)
{
	DIR *folder = opendir(path);
	const struct dirent *entry;
	struct stat status;
	int ret = folder ? 0 : -errno;

	while (!ret && (errno = 0, entry = readdir(folder))) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		if (fstatat(dirfd(folder), entry->d_name, &status, AT_SYMLINK_NOFOLLOW))
			ret = -errno;
		else if (!is_of_recording(entry->d_name) || !S_ISREG(status.st_mode))
			ret = -ENOTEMPTY;
		else if (empties && unlinkat(dirfd(folder), entry->d_name, 0))
			ret = -errno;
	}
	/* what was not seen may be anything */
	if (!ret)
		ret = -errno;
	if (folder)
		closedir(folder);
	return ret;
}

/* A directory that is not a recording is neither renamed nor removed. */
static bool may_move(const struct tool_outfile *file, const char *path)
{
	int ret = look_into(path, false);

	if (ret == -ENOTEMPTY)
		tool_complain("%s: %s: is a directory that holds more than data and data.N: it is not replaced",
			      file->command, path);
	else if (ret)
		complain(file, path, -ret);
	return !ret;
}

static int remove_folder(const char *path)
{
	int ret = look_into(path, true);

	return ret ? ret : rmdir(path) ? -errno : 0;
}

/* Renames the existing file or directory to NAME.old, and removes the old one of that name. */
static bool make_way(const struct tool_outfile *file)
{
	struct stat status, before;
	char *old;
	bool good = true;

	if (!(file->flags & TOOL_OUTFILE_OLD))
		return true;
	if (stat(file->path, &status)) /* it may exist all the same */
		return errno == ENOENT || complain(file, file->path, errno);
	if (S_ISREG(status.st_mode) && !status.st_size && !(file->flags & TOOL_OUTFILE_DIRECTORY))
		return true;
	old = joined(file->path, ".old");
	if (S_ISDIR(status.st_mode))
		good = may_move(file, file->path);
	if (good && !lstat(old, &before)) {
		int ret = 0;

		if (S_ISDIR(before.st_mode))
			good = may_move(file, old) && !(ret = remove_folder(old));
		else if (S_ISDIR(status.st_mode))
			good = !(ret = unlink(old) ? -errno : 0);
		if (ret)
			complain(file, old, -ret);
	}
	if (good && rename(file->path, old))
		good = complain(file, old, errno);
	free(old);
	return good;
}

/* ---- opened ---- */

/* For writing only: with both ends open, a write does not fail when the reader has left. */
static int open_pipe(const char *path)
{
	int fd;

	while ((fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC)) < 0 && errno == ENXIO) {
		if (tool_is_ending()) {
			errno = EINTR;
			return -1;
		}
		usleep(READER_MS * 1000);
	}
	if (fd >= 0)
		fcntl(fd, F_SETFL, O_WRONLY);
	return fd;
}

static bool open_as_it_is(struct tool_outfile *file, mode_t kind)
{
	if (S_ISFIFO(kind))
		file->fd = open_pipe(file->path);
	else if (S_ISREG(kind))
		file->fd = open(file->path, O_RDWR | O_TRUNC | O_CLOEXEC);
	else
		file->fd = open(file->path, O_WRONLY | O_NOCTTY | O_CLOEXEC);
	if (file->fd < 0 && errno == EINTR)
		tool_complain("%s: %s: ended before a reader opened this pipe", file->command, file->path);
	else if (file->fd < 0)
		complain(file, file->path, errno);
	return file->fd >= 0;
}

static char *name_beside(const struct tool_outfile *file, int turn)
{
	const char *last = strrchr(file->path, '/');
	size_t folder = last ? (size_t)(last + 1 - file->path) : 0, capacity = strlen(file->path) + 64;
	char *name = tool_allocate(NULL, capacity, 1);

	snprintf(name, capacity, "%.*s.%.200s.%d.%d", (int)folder, file->path, file->path + folder, (int)getpid(), turn);
	return name;
}

/* Opens a file without a name (O_TMPFILE), which a kill leaves nothing of; some file systems have none. */
static int open_nameless(const struct tool_outfile *file, mode_t mode)
{
	const char *last = strrchr(file->path, '/');
	char *folder = joined(file->path, "/."), link[64];
	int fd;

	if (last)
		folder[last + 1 - file->path] = 0;
	fd = open(last ? folder : ".", O_RDWR | O_TMPFILE | O_CLOEXEC, mode);
	free(folder);
	/* by which it gets its name */
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (fd >= 0 && access(link, F_OK)) {
		close(fd);
		return -1;
	}
	return fd;
}

static bool open_beside(struct tool_outfile *file)
{
	mode_t mode = file->flags & TOOL_OUTFILE_PRIVATE ? 0600 : 0666;
	bool is_folder = file->flags & TOOL_OUTFILE_DIRECTORY;
	int error = EEXIST;

	file->fd = is_folder ? -1 : open_nameless(file, mode);
	for (int i = 0; file->fd < 0 && error == EEXIST && i < TRIES; i++) {
		free(file->beside);
		file->beside = name_beside(file, i);
		error = 0;
		if (is_folder && mkdir(file->beside, 0700))
			error = errno;
		else if (is_folder)
			file->fd = open(file->beside, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		else
			file->fd = open(file->beside, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
		if (!error && file->fd < 0)
			error = errno;
	}
	file->is_apart = file->fd >= 0;
	if (file->is_apart) {
		if (file->beside)
			leave(file);
		return true;
	}
	forget(file);
	/* A file that may be written, in a directory in which none may be made. */
	if (!(file->flags & (TOOL_OUTFILE_OLD | TOOL_OUTFILE_DIRECTORY)) &&
	    (error == EACCES || error == EPERM || error == EROFS))
		file->fd = open(file->path, O_RDWR | O_TRUNC | O_CLOEXEC);
	return file->fd >= 0 ? true : complain(file, file->path, error);
}

static bool open_kind(struct tool_outfile *file)
{
	struct stat status;

	if (!strcmp(file->path, "-")) {
		file->fd = STDOUT_FILENO;
		return true;
	}
	if (stat(file->path, &status))
		return errno == ENOENT ? open_beside(file) : complain(file, file->path, errno);
	if (S_ISDIR(status.st_mode)) {
		if (!(file->flags & TOOL_OUTFILE_OLD))
			return complain(file, file->path, EISDIR);
		return may_move(file, file->path) && open_beside(file);
	}
	if (S_ISREG(status.st_mode) && !tool_path_is_descriptor(file->path))
		return open_beside(file);
	if (file->flags & TOOL_OUTFILE_DIRECTORY)
		return complain(file, file->path, ENOTDIR);
	return open_as_it_is(file, status.st_mode);
}

bool tool_outfile_open(struct tool_outfile *file, const char *command, const char *path, unsigned flags)
{
	struct stat status;

	*file = (struct tool_outfile){.command = command, .path = path, .flags = flags, .fd = -1};
	if (!*path)
		return complain(file, "-o ''", ENOENT);
	if (!open_kind(file))
		return false;
	if (!(flags & TOOL_OUTFILE_TEXT) && isatty(file->fd)) {
		tool_complain("%s: -o %s: is a terminal: redirect it into a file or a pipe", command, path);
		return false;
	}
	file->is_stream = !strcmp(path, "-") ||
			  (!fstat(file->fd, &status) && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode));
	return true;
}

bool tool_outfile_settle(struct tool_outfile *file)
{
	char link[64];
	int error = 0;

	if (!file->is_apart)
		return true;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", file->fd);
	for (int i = 0; !file->beside && i < TRIES; i++) {
		file->beside = name_beside(file, i);
		error = linkat(AT_FDCWD, link, AT_FDCWD, file->beside, AT_SYMLINK_FOLLOW) ? errno : 0;
		if (!error) {
			leave(file);
			break;
		}
		forget(file);
		if (error != EEXIST)
			break;
	}
	if (error)
		return complain(file, file->path, error);
	if (!make_way(file))
		return false;
	if (rename(file->beside, file->path))
		return complain(file, file->path, errno);
	forget(file);
	file->is_apart = false;
	return true;
}

int tool_outfile_close(struct tool_outfile *file)
{
	int ret = 0;

	tool_outfile_end(file);
	if (file->beside && file->flags & TOOL_OUTFILE_DIRECTORY)
		remove_folder(file->beside);
	else if (file->beside)
		unlink(file->beside);
	forget(file);
	if (file->fd > STDERR_FILENO && close(file->fd))
		ret = -errno;
	file->fd = -1;
	file->is_apart = false;
	return ret;
}

/* ---- full disks ---- */

/* A position in the pieces. */
struct place {
	const struct iovec *pieces;
	int count;
	int piece;
	size_t at;
};

/* Advances by `size` bytes; copies them unless `to` is NULL.  False: there are fewer. */
static bool pass(struct place *place, void *to, size_t size)
{
	while (size) {
		size_t left;

		if (place->piece == place->count)
			return false;
		left = place->pieces[place->piece].iov_len - place->at;
		left = left < size ? left : size;
		if (to)
			memcpy(to, (const char *)place->pieces[place->piece].iov_base + place->at, left);
		to = to ? (char *)to + left : NULL;
		size -= left;
		place->at += left;
		if (place->at == place->pieces[place->piece].iov_len) {
			place->piece++;
			place->at = 0;
		}
	}
	return true;
}

static bool pass_record(struct place *place, bool *is_sample)
{
	struct perf_event_header header;

	if (!pass(place, &header, sizeof(header)) || header.size < sizeof(header))
		return false;
	*is_sample = header.type == PERFRING_RECORD_SAMPLE;
	return pass(place, NULL, header.size - sizeof(header));
}

/* The bytes between two positions, at most two pieces, as in a ring's span. */
static int write_between(struct perfring_file_writer *writer, uint32_t into, const struct place *from,
			 const struct place *to)
{
	struct iovec pieces[2];
	int count = 0;

	for (int i = from->piece; i <= to->piece && i < from->count && count < 2; i++) {
		size_t begin = i == from->piece ? from->at : 0;
		size_t end = i == to->piece ? to->at : from->pieces[i].iov_len;

		if (end > begin)
			pieces[count++] = (struct iovec){(char *)from->pieces[i].iov_base + begin, end - begin};
	}
	return perfring_file_writer_write_to(writer, into, pieces, count);
}

static void set_aside(struct tool_outfile *file)
{
	int fd = file->spare || file->is_stream ? -1 : open_nameless(file, 0600);

	if (fd < 0)
		return;
	for (off_t size = SPARE; size >= SPARE / 16 && posix_fallocate(fd, 0, size); size /= 2)
		;
	file->spare = fd;
}

void tool_outfile_end(struct tool_outfile *file)
{
	if (file->spare > STDERR_FILENO)
		close(file->spare);
	file->spare = 0;
}

uint64_t tool_outfile_write_some(struct tool_outfile *file, struct perfring_file_writer *writer, uint32_t into,
				 const struct iovec *pieces, int count, uint64_t *samples)
{
	struct place from = {.pieces = pieces, .count = count};
	uint64_t most = UINT64_MAX, written = 0;

	set_aside(file);
	/* Half of what did not fit, until a single record does not. */
	while (most) {
		struct place to = from;
		uint64_t records = 0, sampled = 0;
		bool is_sample = false;

		for (; records < most && pass_record(&to, &is_sample); records++)
			sampled += is_sample;
		if (!records)
			break;
		if (write_between(writer, into, &from, &to)) {
			most = records / 2;
			continue;
		}
		written += records;
		if (samples)
			*samples += sampled;
		from = to;
	}
	return written;
}
