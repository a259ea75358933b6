/* top.c - `perfring top`: which functions run now.
 *
 *     perfring record -o -  --pipe-->  reader (a thread)  --profile-->  screen (this thread, each interval)
 *
 * Each screen is of the samples since the last one.
 *
 * A lock protects the profile between the two threads.  The recorder is a child; record's options are passed on.  Keys are read
 * from the terminal.  kept.h keeps the last records, to be saved.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>
#include <perfring/event.h>
#include "json.h"
#include "kept.h"
#include "options.h"
#include "profile_input.h"

enum {
	DELAY = 'd',
	COUNT = 'n',
	JSON = TOOL_OPTION_LONG,
	LIMIT,
	CHILDREN,
	CALL_GRAPH,
	SOFT,
	SAVE,
	KEEP,
	PERF_ONLY, /* rows that are refused */
	WORDS_MAX = 48, /* of the recorder's command line, before the COMMAND */
	FIRST = 700,    /* ms: until the first screen */
	LATEST = 800,   /* ms after the command began: it waits no longer for samples */
	CPUS_MAX = 1024,
	CPUS_NAMED = 8, /* that lost something */
};

/* A function of a screen. */
struct row {
	uint32_t function, kind;
	char *name, *object; /* copies: the profile goes on; NULL: unknown */
	uint64_t self, total;
};

struct screen {
	struct row *rows;
	size_t row_count;
	uint64_t weight, samples;
	uint64_t lost; /* records and samples */
	uint64_t by_cpu[CPUS_MAX];
	uint64_t lost_by_cpu[CPUS_MAX]; /* of losses whose CPU is known */
	uint32_t cpu_count;
	double seconds;
	char events[512]; /* their names, escaped */
};

struct top {
	struct tool_profile_input input;
	pthread_mutex_t lock; /* of the profile and `kept`: the reader adds to them, the screen takes them */
	struct tool_kept *kept; /* NULL: nothing is */
	uint64_t keep;          /* s */
	const char *save;       /* where it is saved */
	char saved[128];        /* how that went; "": not yet */
	char **arguments;       /* our own */
	bool has_ended;       /* likewise: there are no more records */
	int endings[2];       /* a pipe: closed when the reader ends */
	pid_t recorder;
	char *words[WORDS_MAX];
	int word_count;
	char **command;
	uint64_t delay; /* ms */
	uint64_t count; /* screens; 0: until it is ended */
	uint64_t limit;
	bool json, is_terminal, has_target;
	bool by_total; /* sorts by what callees have too */
	uint64_t began; /* ns: when the command did */
	bool is_frozen; /* `screen` stays */
	struct screen screen; /* the last one; rows NULL: there was none */
	char part[64]; /* of names that are shown; "": all */
	bool is_typing;
	int keys; /* -1: there are none */
	struct termios before;
};

static volatile sig_atomic_t ended, asked_to_save;

static void on_end(int number)
{
	(void)number;
	ended = 1;
}

static void on_save(int number)
{
	(void)number;
	asked_to_save = 1;
}

/* ---- the recorder ---- */

static void add_word(struct top *top, const char *word)
{
	if (top->word_count + 1 < WORDS_MAX)
		top->words[top->word_count++] = (char *)(uintptr_t)word;
}

static bool start_recorder(struct top *top)
{
	size_t count = 0;
	char **line;
	int pipes[2];

	while (top->command && top->command[count])
		count++;
	line = tool_allocate(NULL, (size_t)top->word_count + count + 2, sizeof(*line));
	memcpy(line, top->words, (size_t)top->word_count * sizeof(*line));
	if (count) {
		line[top->word_count] = (char *)(uintptr_t) "--";
		memcpy(line + top->word_count + 1, top->command, count * sizeof(*line));
		line[(size_t)top->word_count + 1 + count] = NULL;
	} else {
		line[top->word_count] = NULL;
	}
	if (pipe2(pipes, O_CLOEXEC)) {
		tool_complain("top: pipe: %s", strerror(errno));
		free(line);
		return false;
	}
	top->recorder = fork();
	if (!top->recorder) {
		prctl(PR_SET_PDEATHSIG, SIGINT);
		/* ^C of the terminal ends this program, which ends the recorder */
		setpgid(0, 0);
		dup2(pipes[1], STDOUT_FILENO);
		execv("/proc/self/exe", line);
		_exit(127);
	}
	free(line);
	close(pipes[1]);
	if (top->recorder < 0 || dup2(pipes[0], STDIN_FILENO) < 0) {
		tool_complain("top: the recorder: %s", strerror(errno));
		return false;
	}
	close(pipes[0]);
	return true;
}

/* Ends the recorder, if it runs, and waits for it.  Returns its exit status; 0: this program has ended it. */
static int stop_recorder(struct top *top, bool was_running)
{
	int status = 0;

	if (was_running)
		kill(top->recorder, SIGINT);
	while (waitpid(top->recorder, &status, 0) < 0 && errno == EINTR)
		;
	return was_running ? 0 : WIFEXITED(status) ? WEXITSTATUS(status) : TOOL_FAILED;
}

/* Waits until the recorder writes.  Returns whether it does. */
static bool has_begun(void)
{
	struct pollfd pipe = {.fd = STDIN_FILENO, .events = POLLIN};

	while (poll(&pipe, 1, -1) < 0 && errno == EINTR && !ended)
		;
	return pipe.revents & POLLIN;
}

static void *read_all(void *of)
{
	struct top *top = of;
	struct perfring_item item;

	/* The screen's thread holds the lock between two records alone. */
	while (tool_input_next(&top->input.input, &item)) {
		pthread_mutex_lock(&top->lock);
		tool_profile_take_item(&top->input, &item);
		if (top->kept)
			tool_kept_take(top->kept, &item);
		pthread_mutex_unlock(&top->lock);
	}
	pthread_mutex_lock(&top->lock);
	top->has_ended = true;
	pthread_mutex_unlock(&top->lock);
	close(top->endings[1]);
	return NULL;
}

/* ---- a screen ---- */

static int compare_self(const void *a, const void *b)
{
	const struct row *one = a, *other = b;

	return one->self != other->self ? (one->self < other->self ? 1 : -1)
					: (one->function > other->function) - (one->function < other->function);
}

static int compare_total(const void *a, const void *b)
{
	const struct row *one = a, *other = b;

	return one->total != other->total ? (one->total < other->total ? 1 : -1) : compare_self(a, b);
}

/* Adds a stack's weight to each of its functions once. */
static void add_stack(struct row *rows, uint32_t *seen, uint32_t number, const struct perfring_profile_tables *tables,
		      const struct perfring_profile_weight *weight)
{
	bool is_innermost = true;

	for (uint32_t stack = weight->stack; stack != PERFRING_PROFILE_NONE; stack = tables->stacks[stack].caller) {
		uint32_t function = tables->frames[tables->stacks[stack].frame].function;

		if (is_innermost)
			rows[function].self += weight->weight;
		if (seen[function] != number)
			rows[function].total += weight->weight;
		seen[function] = number;
		is_innermost = false;
	}
}

/* Adds a foreign name to a line, escaped. */
static void add_text(char *line, size_t size, const char *text)
{
	size_t used = strlen(line);
	char buffer[4];

	for (; *text; text++) {
		unsigned length = tool_escape(buffer, (unsigned char)*text, false);

		if (used + length >= size)
			break;
		memcpy(line + used, buffer, length);
		used += length;
	}
	line[used] = 0;
}

static char *copy(const char *text)
{
	size_t size = text ? strlen(text) + 1 : 0;

	return text ? memcpy(tool_allocate(NULL, size, 1), text, size) : NULL;
}

static void free_screen(struct screen *screen)
{
	for (size_t i = 0; i < screen->row_count; i++) {
		free(screen->rows[i].name);
		free(screen->rows[i].object);
	}
	free(screen->rows);
	*screen = (struct screen){.rows = NULL};
}

/* screen: `seconds` is set, the rest is 0. */
static void make_screen(struct screen *screen, const struct perfring_profile_tables *tables)
{
	uint32_t *seen = tool_allocate(NULL, (size_t)tables->function_count + 1, sizeof(*seen));

	screen->rows = tool_allocate(NULL, (size_t)tables->function_count + 1, sizeof(*screen->rows));
	memset(seen, 0, ((size_t)tables->function_count + 1) * sizeof(*seen));
	for (uint32_t i = 0; i < tables->function_count; i++)
		screen->rows[i] = (struct row){.function = i, .kind = tables->functions[i].kind};
	for (uint32_t i = 0; i < tables->weight_count; i++) {
		add_stack(screen->rows, seen, i + 1, tables, &tables->weights[i]);
		screen->weight += tables->weights[i].weight;
		screen->samples += tables->weights[i].samples;
	}
	free(seen);
	for (uint32_t i = 0; i < tables->function_count; i++) {
		struct row row = screen->rows[i];

		if (!row.total)
			continue;
		row.name = copy(tables->functions[i].name);
		row.object = copy(tables->functions[i].object);
		screen->rows[screen->row_count++] = row;
	}
	for (uint32_t i = 0; i < tables->event_count; i++) {
		add_text(screen->events, sizeof(screen->events), i ? ", " : ", event ");
		add_text(screen->events, sizeof(screen->events), tables->events[i].name);
	}
	for (uint64_t i = 0; i < tables->sample_count; i++) {
		uint32_t cpu = tables->samples[i].cpu;

		if (cpu >= CPUS_MAX)
			continue;
		screen->by_cpu[cpu]++;
		screen->cpu_count = cpu >= screen->cpu_count ? cpu + 1 : screen->cpu_count;
	}
	for (uint32_t i = 0; i < tables->loss_count; i++) {
		const struct perfring_profile_loss *loss = &tables->losses[i];

		if (loss->cpu < CPUS_MAX &&
		    (loss->kind == PERFRING_PROFILE_LOST_RECORDS || loss->kind == PERFRING_PROFILE_LOST_SAMPLES))
			screen->lost_by_cpu[loss->cpu] += loss->count;
	}
	screen->lost = tables->lost[PERFRING_PROFILE_LOST_RECORDS] + tables->lost[PERFRING_PROFILE_LOST_SAMPLES];
}

static const char *name_of(const struct row *row)
{
	return row->name ? row->name : "[unknown]";
}

static bool is_shown(const struct top *top, const struct row *row)
{
	return !top->part[0] || strstr(name_of(row), top->part) || (row->object && strstr(row->object, top->part));
}

static char mark_of(uint32_t kind)
{
	return kind == PERFRING_PROFILE_KERNEL ? 'k' : kind == PERFRING_PROFILE_UNKNOWN ? '!' : '.';
}

static double share(uint64_t part, uint64_t all)
{
	return all ? 100.0 * (double)part / (double)all : 0;
}

/* Prints a line of the screen, cut at `width` columns; 0: not cut. */
static void put_line(const char *text, int width)
{
	int length = (int)strlen(text);

	fwrite(text, 1, (size_t)(width && length > width ? width : length), stdout);
	putchar('\n');
}

/* " on CPU 1, 3": where something was lost; the first CPUS_NAMED of them. */
static void add_losses(char *line, size_t size, const struct screen *screen)
{
	uint32_t named = 0;

	for (uint32_t i = 0; i < CPUS_MAX; i++) {
		char cpu[32];

		if (!screen->lost_by_cpu[i])
			continue;
		if (named == CPUS_NAMED) {
			add_text(line, size, ", ...");
			return;
		}
		snprintf(cpu, sizeof(cpu), "%s%" PRIu32, named++ ? ", " : " on CPU ", i);
		add_text(line, size, cpu);
	}
}

static void print_cpus(const struct screen *screen, int width)
{
	char line[256] = "CPUs: ";
	uint64_t most = 1;
	uint32_t i;

	for (i = 0; i < screen->cpu_count; i++)
		most = screen->by_cpu[i] > most ? screen->by_cpu[i] : most;
	/* "and 1024 more" must fit as well */
	for (i = 0; i < screen->cpu_count && strlen(line) + 32 < sizeof(line) &&
		    (!width || i + 1 == screen->cpu_count || (int)strlen(line) + 26 <= width);
	     i++) {
		char bar[32];

		snprintf(bar, sizeof(bar), "%u[%-5.*s] ", i, (int)(5 * screen->by_cpu[i] / most), "|||||");
		add_text(line, sizeof(line), bar);
	}
	if (i < screen->cpu_count) {
		char more[32];

		snprintf(more, sizeof(more), "and %u more", screen->cpu_count - i);
		add_text(line, sizeof(line), more);
	}
	put_line(line, width);
}

static void print_text(const struct top *top, const struct screen *screen)
{
	struct winsize window = {.ws_row = 0};
	char line[1024];
	uint64_t left = top->limit;
	int width = 0;

	if (top->is_terminal && !ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) && window.ws_row > 6) {
		width = window.ws_col;
		left = (uint64_t)window.ws_row - 5;
	}
	if (top->is_terminal)
		fputs("\033[H\033[J", stdout);
	snprintf(line, sizeof(line), "perfring top: %s%.0f samples/s, lost %.0f/s", top->is_frozen ? "frozen, " : "",
		 (double)screen->samples / screen->seconds, (double)screen->lost / screen->seconds);
	add_losses(line, sizeof(line), screen);
	strncat(line, screen->events, sizeof(line) - strlen(line) - 1);
	if (top->part[0]) {
		add_text(line, sizeof(line), ", names with ");
		add_text(line, sizeof(line), top->part);
	}
	put_line(line, width);
	print_cpus(screen, width);
	put_line("    Self    Total  Symbol", width);
	for (size_t i = 0; i < screen->row_count && left; i++) {
		const struct row *row = &screen->rows[i];

		if (!(top->by_total ? row->total : row->self) || !is_shown(top, row))
			continue;
		left--;
		snprintf(line, sizeof(line), "%7.2f%% %7.2f%%  [%c] ", share(row->self, screen->weight),
			 share(row->total, screen->weight), mark_of(row->kind));
		add_text(line, sizeof(line), name_of(row));
		if (row->object) {
			add_text(line, sizeof(line), "  ");
			add_text(line, sizeof(line), tool_filter_short_name(row->object));
		}
		put_line(line, width);
	}
	if (top->is_terminal) {
		snprintf(line, sizeof(line), "%s%s%s",
			 top->is_typing ? "name: type, then Enter" : "q quit  f/p freeze  s self/total  / names  w save",
			 top->saved[0] ? "   " : "", top->saved);
		put_line(line, width);
	} else {
		putchar('\n');
	}
}

static void print_json(const struct top *top, const struct screen *screen)
{
	uint64_t left = top->limit;
	const char *before = "";

	printf("{\"seconds\":%.3f,\"samples\":%" PRIu64 ",\"lost\":%" PRIu64 ",\"lost_by_cpu\":{", screen->seconds,
	       screen->samples, screen->lost);
	for (uint32_t i = 0; i < CPUS_MAX; i++)
		if (screen->lost_by_cpu[i]) {
			printf("%s\"%" PRIu32 "\":%" PRIu64, before, i, screen->lost_by_cpu[i]);
			before = ",";
		}
	before = "";
	fputs("},\"functions\":[", stdout);
	for (size_t i = 0; i < screen->row_count && left; i++) {
		const struct row *row = &screen->rows[i];

		if (!(top->by_total ? row->total : row->self) || !is_shown(top, row))
			continue;
		left--;
		printf("%s{\"function\":", before);
		tool_json_text(stdout, name_of(row));
		if (row->object) {
			fputs(",\"object\":", stdout);
			tool_json_text(stdout, row->object);
		}
		printf(",\"self\":%.2f,\"total\":%.2f}", share(row->self, screen->weight),
		       share(row->total, screen->weight));
		before = ",";
	}
	fputs("]}\n", stdout);
}

static void print(struct top *top)
{
	struct screen *screen = &top->screen;

	qsort(screen->rows, screen->row_count, sizeof(*screen->rows), top->by_total ? compare_total : compare_self);
	if (top->json)
		print_json(top, screen);
	else
		print_text(top, screen);
	fflush(stdout);
}

/* Takes the profile of the interval, and begins the next one. */
static void show(struct top *top, double seconds)
{
	struct perfring_profile_tables tables;

	pthread_mutex_lock(&top->lock);
	if (!top->is_frozen || !top->screen.rows) {
		perfring_profile_read(top->input.profile, &tables);
		free_screen(&top->screen);
		top->screen.seconds = seconds > 0.001 ? seconds : 0.001;
		make_screen(&top->screen, &tables);
	}
	tool_profile_renew(&top->input);
	pthread_mutex_unlock(&top->lock);
	print(top);
}

/* ---- what is kept ---- */

/* Saves the last records.  The reader waits meanwhile, and the recorder when the pipe is full: its rings hold what comes. */
static void save(struct top *top)
{
	uint64_t samples;
	bool good;

	asked_to_save = 0;
	if (!top->kept)
		return;
	pthread_mutex_lock(&top->lock);
	good = tool_kept_save(top->kept, top->input.input.data, "top", top->save, top->arguments, &samples);
	pthread_mutex_unlock(&top->lock);
	snprintf(top->saved, sizeof(top->saved), good ? "saved: %" PRIu64 " samples" : "not saved", samples);
	if (good && !top->is_terminal)
		fprintf(stderr, "[ perfring top: %" PRIu64 " samples of the last %" PRIu64 " s in %s ]\n", samples, top->keep,
			top->save);
}

/* ---- keys ---- */

static void open_keys(struct top *top)
{
	struct termios raw;

	top->keys = top->is_terminal && !top->json ? open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC) : -1;
	if (top->keys < 0 || tcgetattr(top->keys, &top->before)) {
		top->keys = -1;
		return;
	}
	raw = top->before;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	tcsetattr(top->keys, TCSANOW, &raw);
	fputs("\033[?1049h", stdout); /* a screen of its own */
}

static void close_keys(struct top *top)
{
	if (top->keys < 0)
		return;
	tcsetattr(top->keys, TCSANOW, &top->before);
	fputs("\033[?1049l", stdout);
	fflush(stdout);
	close(top->keys);
}

static void type(struct top *top, char key)
{
	size_t length = strlen(top->part);

	if (key == '\n')
		top->is_typing = false;
	else if ((key == 0x7f || key == 8) && length)
		top->part[length - 1] = 0;
	else if (key >= ' ' && key < 0x7f && length + 1 < sizeof(top->part)) {
		top->part[length] = key;
		top->part[length + 1] = 0;
	}
}

static void take_key(struct top *top)
{
	char key;

	if (read(top->keys, &key, 1) != 1) {
		ended = 1; /* the terminal has gone */
		return;
	}
	if (top->is_typing) {
		type(top, key);
		return;
	}
	switch (key) {
	case 'q':
	case 3:
		ended = 1;
		break;
	case 'f':
	case 'p':
		top->is_frozen = !top->is_frozen;
		break;
	case 's':
		top->by_total = !top->by_total;
		break;
	case 'w':
		asked_to_save = 1;
		break;
	case '/':
		top->is_typing = true;
		top->part[0] = 0;
		break;
	}
}

/* ---- all of it ---- */

static bool has_samples(struct top *top)
{
	bool has;

	pthread_mutex_lock(&top->lock);
	has = top->input.shown > 0;
	pthread_mutex_unlock(&top->lock);
	return has;
}

static void run(struct top *top)
{
	uint64_t shown = tool_now(), due = shown + FIRST * NS_PER_MS, latest = top->began + LATEST * NS_PER_MS, screens = 0;
	bool has_ended = false, is_typed;

	while (!ended && !has_ended && (!top->count || screens < top->count)) {
		uint64_t now = tool_now();
		struct pollfd fds[2] = {{.fd = top->endings[0], .events = POLLIN}, {.fd = top->keys, .events = POLLIN}};
		int left = now < due ? (int)((due - now) / NS_PER_MS) + 1 : 0;

		is_typed = false;
		if (poll(fds, 2, left) > 0) {
			has_ended = fds[0].revents;
			is_typed = fds[1].revents;
			if (is_typed)
				take_key(top);
		}
		if (asked_to_save)
			save(top);
		if (is_typed && !ended && top->screen.rows)
			print(top);
		now = tool_now();
		if (now < due && !has_ended)
			continue;
		if (!screens && !has_ended && now < latest && !has_samples(top)) {
			due = latest; /* the recorder has only begun */
			continue;
		}
		show(top, (double)(now - shown) / 1e9);
		shown = now;
		due = now + top->delay * NS_PER_MS;
		screens++;
		if (ferror(stdout))
			break;
	}
}

/* Whether record would accept the events: its own refusal would come after the screen is there. */
static bool is_event(const char *list)
{
	struct perf_event_attr base = {.size = sizeof(base)};
	struct perfring_fault fault = {0, "unknown event"};
	struct perfring_events *names = NULL;
	int error = perfring_events_open(&names);

	if (!error)
		error = perfring_events_add(names, list, &base, &fault);
	if (error)
		tool_options_refuse_event("top", list, error, &fault);
	perfring_events_close(names);
	return !error;
}

static bool is_good(const struct tool_options *options, int found)
{
	struct perf_event_attr attr = {.size = sizeof(attr)};
	const char *value = options->value;
	uint64_t number;
	double seconds;
	char *end;

	switch (found) {
	case DELAY:
		seconds = strtod(value, &end);
		return end != value && !*end && seconds >= 0.1 && seconds <= 3600;
	case 'F':
		return !strcmp(value, "max") || tool_options_number(value, 1, UINT64_MAX, &number);
	case 'C':
		return tool_options_cpus(value);
	case 'p':
	case 't':
		return tool_options_ids(value);
	case CALL_GRAPH:
		return !perfring_event_callchain(value, strlen(value), &attr);
	default:
		return true;
	}
}

/* Passes on options that record has, too. */
static bool pass_on(struct top *top, int found, char *value)
{
	static const struct {
		int found;
		const char *word;
		bool is_target;
	} rows[] = {{'e', "-e", false}, {'F', "-F", false},    {'g', "-g", false}, {CALL_GRAPH, "--call-graph", false},
		    {'a', "-a", true},  {'C', "-C", true},     {'p', "-p", true},  {'t', "-t", true},
		    {'u', "-u", true},  {SOFT, "--soft", true}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (rows[i].found != found)
			continue;
		add_word(top, rows[i].word);
		if (value)
			add_word(top, value);
		top->has_target = top->has_target || rows[i].is_target;
		return true;
	}
	return false;
}

/* Returns -1 to go on, else the exit status. */
static int read_options(struct top *top, struct tool_options *options, int argc, char **argv)
{
	static const char *const begin[] = {"perfring", "record", "-q", "-B", "-o", "-"};
	int found, taken;

	for (size_t i = 0; i < sizeof(begin) / sizeof(begin[0]); i++)
		add_word(top, begin[i]);
	while ((found = tool_options_next(options, argc, argv)) > 0) {
		if (!is_good(options, found))
			return tool_options_refuse(options, found, options->value);
		if (found == 'e' && !is_event(options->value))
			return TOOL_MISUSED;
		if (pass_on(top, found, options->value))
			continue;
		switch (found) {
		case DELAY:
			top->delay = (uint64_t)(strtod(options->value, NULL) * 1000);
			break;
		case COUNT:
			top->count = options->number;
			break;
		case JSON:
			top->json = true;
			break;
		case LIMIT:
			top->limit = options->number;
			break;
		case CHILDREN:
			top->by_total = true;
			break;
		case SAVE:
			top->save = options->value;
			break;
		case KEEP:
			top->keep = options->number;
			break;
		default:
			taken = tool_symbols_take(&top->input.options.symbols, options, found);
			if (taken < 0)
				return TOOL_MISUSED;
			if (!taken)
				return tool_options_forgotten(options, found);
		}
	}
	if (!found)
		return options->status;
	if (optind < argc)
		top->command = argv + optind;
	else if (!top->has_target)
		add_word(top, "-a");
	if (!top->command)
		add_word(top, "--sample-cpu");
	return -1;
}

static int top_command(int argc, char **argv)
{
	struct tool_options options = {.command = &tool_top};
	struct top top = {.lock = PTHREAD_MUTEX_INITIALIZER, .delay = 2000, .limit = 20, .keys = -1,
			  .keep = 30, .save = "perf.data", .arguments = argv, .began = tool_now()};
	struct sigaction end = {.sa_handler = on_end}, saves = {.sa_handler = on_save};
	char *none[] = {argv[0], (char *)(uintptr_t) "-", NULL};
	pthread_t reader;
	int status = read_options(&top, &options, argc, argv), error;
	bool was_running;

	if (status >= 0)
		return status;
	top.is_terminal = isatty(STDOUT_FILENO);
	top.input.options.lists = true;
	sigaction(SIGINT, &end, NULL);
	sigaction(SIGTERM, &end, NULL);
	sigaction(SIGUSR2, &saves, NULL);
	signal(SIGPIPE, SIG_IGN);
	if (pipe2(top.endings, O_CLOEXEC) || !start_recorder(&top))
		return TOOL_FAILED;
	if (!has_begun()) /* it has said why */
		return stop_recorder(&top, false);
	optind = 1;
	options.input = NULL;
	status = tool_profile_open(&top.input, "top", &options, 2, none);
	if (status) {
		int recorded = stop_recorder(&top, false);

		return recorded ? recorded : status;
	}
	top.kept = top.keep ? tool_kept_open(top.keep * 1000 * NS_PER_MS) : NULL;
	error = pthread_create(&reader, NULL, read_all, &top);
	if (error) {
		tool_complain("top: a thread: %s", strerror(error));
		stop_recorder(&top, true);
		return TOOL_FAILED;
	}
	open_keys(&top);
	run(&top);
	close_keys(&top);
	pthread_mutex_lock(&top.lock);
	was_running = !top.has_ended;
	pthread_mutex_unlock(&top.lock);
	if (was_running)
		kill(top.recorder, SIGINT);
	pthread_join(reader, NULL); /* the recorder ends its stream */
	status = stop_recorder(&top, was_running);
	close(top.endings[0]);
	tool_kept_close(top.kept);
	free_screen(&top.screen);
	error = tool_profile_close(&top.input);
	return !tool_flush() ? TOOL_FAILED : status ? status : error;
}

#define LATER "a screen has functions alone; w saves the last seconds, of which perfring report has it"
#define RECORDED "perfring record has it: record a file, or record -o - for perfring report -"
#define LINES "there is no disassembly; w saves the last seconds, and perf annotate opens them"

static const struct tool_option ROWS[] = {
	{.heading = "what runs"},
	{'e', "event", .value = "LIST", .takes = "a list of events",
	 .help = "events, as record's (default: cycles, or cpu-clock)"},
	{'F', "freq", .value = "HZ", .takes = "a number of samples a second, or max",
	 .help = "samples a second (default: 4000)"},
	{'a', "all-cpus", .help = "all CPUs (default without another target)"},
	{'C', "cpu", .value = "LIST", .takes = "a list of CPUs, such as 0-3,6", .help = "these CPUs"},
	{'p', "pid", .value = "PID[,PID]", .takes = "ids of processes, such as 12,345", .help = "these processes"},
	{'t', "tid", .value = "TID[,TID]", .takes = "ids of threads, such as 12,345", .help = "these threads"},
	{'u', "uid", .value = "USER", .takes = "a user", .help = "the processes of this user"},
	{SOFT, "soft", .help = "COMMAND samples itself, where perf_event_open is refused"},
	{'g', NULL, .help = "call chains by frame pointers, from which totals are"},
	{CALL_GRAPH, "call-graph", .value = "HOW", .takes = "fp, lbr, or dwarf with or without ,SIZE",
	 .help = "call chains, as record's"},
	{.heading = "screens"},
	{DELAY, "delay", .value = "SECONDS", .takes = "seconds, from 0.1 to 3600",
	 .help = "between screens (default: 2)"},
	{COUNT, "count", .value = "N", .takes = "a number of screens", .min = 1, .max = UINT32_MAX,
	 .help = "ends after N screens"},
	{CHILDREN, "children", .help = "sorts by totals: what the callees of a function have, too"},
	{LIMIT, "limit", .value = "N", .takes = "a number of rows", .min = 1, .max = UINT32_MAX,
	 .help = "rows of a screen that is no terminal's (default: 20)"},
	{JSON, "json", .help = "one JSON object a line for each screen"},
	{.heading = "saving"},
	{KEEP, "keep", .value = "SECONDS", .takes = "a number of seconds", .max = 86400,
	 .help = "how long samples are kept, in at most 256 MiB, to be saved by w or SIGUSR2 (default: 30; 0: not at all)"},
	{SAVE, "save", .value = "FILE", .takes = "a file's name",
	 .help = "where they are saved (default: perf.data); an existing FILE is renamed to FILE.old"},
	{.heading = "names"},
	TOOL_SYMBOLS_ROWS,
	{'s', "sort", .value = "LIST", .takes = "a list of columns", .refused = LATER},
	{PERF_ONLY, "fields", .value = "LIST", .takes = "a list of columns", .refused = LATER},
	{'w', "column-widths", .value = "LIST", .takes = "numbers", .refused = LATER},
	{PERF_ONLY, "percent-limit", .value = "PERCENT", .takes = "a percentage", .refused = LATER},
	{PERF_ONLY, "percentage", .value = "HOW", .takes = "relative or absolute", .refused = LATER},
	{PERF_ONLY, "hierarchy", .refused = LATER},
	{PERF_ONLY, "show-total-period", .refused = LATER},
	{PERF_ONLY, "show-nr-samples", .refused = LATER},
	{PERF_ONLY, "comms", .value = "NAMES", .takes = "names of threads", .refused = LATER},
	{PERF_ONLY, "dsos", .value = "NAMES", .takes = "names of objects", .refused = LATER},
	{PERF_ONLY, "symbols", .value = "NAMES", .takes = "names of functions", .refused = LATER},
	{PERF_ONLY, "ignore-callees", .value = "REGEX", .takes = "an expression", .refused = LATER},
	{PERF_ONLY, "max-stack", .value = "N", .takes = "a number of frames", .refused = LATER},
	{PERF_ONLY, "group", .refused = LATER},
	{PERF_ONLY, "group-sort-idx", .value = "N", .takes = "a number", .refused = LATER},
	{PERF_ONLY, "raw-trace", .refused = LATER},
	{'c', NULL, .value = "N", .takes = "a period", .refused = RECORDED},
	{'G', "cgroup", .value = "NAME", .takes = "a cgroup", .refused = RECORDED},
	{PERF_ONLY, "all-cgroups", .refused = RECORDED},
	{'i', "no-inherit", .refused = RECORDED},
	{'m', "mmap-pages", .value = "PAGES", .takes = "a number of pages", .refused = RECORDED},
	{'r', "realtime", .value = "PRIORITY", .takes = "a priority", .refused = RECORDED},
	{PERF_ONLY, "overwrite", .refused = RECORDED},
	{PERF_ONLY, "namespaces", .refused = RECORDED},
	{PERF_ONLY, "no-bpf-event", .refused = RECORDED},
	{PERF_ONLY, "num-thread-synthesize", .value = "N", .takes = "a number", .refused = RECORDED},
	{PERF_ONLY, "proc-map-timeout", .value = "MS", .takes = "a number of ms", .refused = RECORDED},
	{PERF_ONLY, "switch-on", .value = "EVENT", .takes = "an event", .refused = RECORDED},
	{PERF_ONLY, "switch-off", .value = "EVENT", .takes = "an event", .refused = RECORDED},
	{PERF_ONLY, "show-on-off-events", .refused = RECORDED},
	{'b', "branch-any", .refused = RECORDED},
	{'j', "branch-filter", .value = "MASK", .takes = "a list of filters", .refused = RECORDED},
	{PERF_ONLY, "stitch-lbr", .refused = RECORDED},
	{'M', "disassembler-style", .value = "STYLE", .takes = "a style", .refused = LINES},
	{PERF_ONLY, "objdump", .value = "FILE", .takes = "a file's name", .refused = LINES},
	{PERF_ONLY, "prefix", .value = "DIR", .takes = "a folder's name", .refused = LINES},
	{PERF_ONLY, "prefix-strip", .value = "N", .takes = "a number", .refused = LINES},
	{PERF_ONLY, "asm-raw", .refused = LINES},
	{PERF_ONLY, "source", .refused = LINES},
	{PERF_ONLY, "sym-annotate", .value = "NAME", .takes = "a function", .refused = LINES},
	{'E', "entries", .value = "N", .takes = "a number of rows", .refused = "use --limit"},
	{'f', "count-filter", .value = "N", .takes = "a number", .refused = "use --limit"},
	{'K', "hide_kernel_symbols", .refused = "use -e with the modifier u, such as cpu-clock:u"},
	{'U', "hide_user_symbols", .refused = "use -e with the modifier k, such as cpu-clock:k"},
	{'z', "zero", .refused = "each screen begins at zero"},
	{'D', "dump-symtab", .refused = "-v says where the symbols of each object are from"},
	{PERF_ONLY, "stdio", .refused = "where standard output is no terminal, screens are text: perfring top | cat"},
	{PERF_ONLY, "tui", .refused = "on a terminal the screen has keys by itself"},
	{PERF_ONLY, "force", .refused = "maps of other users are not read"},
	{PERF_ONLY, "ignore-vmlinux", .refused = "a vmlinux is read with -k alone"},
	{PERF_ONLY, "demangle-kernel", .refused = "names of the kernel's symbols are shown as they are"},
	TOOL_OPTIONS_END,
};

static const struct tool_example EXAMPLES[] = {
	{"What the whole machine does:", "perfring top"},
	{"One process, with call chains, by totals:", "perfring top -g --children -p 1234"},
	{"Ten seconds of it in a file:", "perfring top -d 1 -n 10 >top.txt"},
	{0},
};

const struct tool_command tool_top = {
	.name = "top",
	.summary = "which functions run now",
	.usage = "[OPTIONS] [-- COMMAND]",
	.description =
		"Samples all CPUs, or what the options say, and shows each few seconds the functions with most of them since "
		"the last screen, samples and losses a second, and the CPUs.  Keys: q quit, f or p freeze, s sort by self or total, / "
		"only names with a text, w save the last seconds as perf.data.  Where standard output is no terminal, screens follow one another.",
	.options = ROWS,
	.has_command = true,
	.exit_status = "0 done; 1 it could not be recorded; 2 usage error.",
	.examples = EXAMPLES,
	.see_also = "perfring-record perfring-report perfring",
	.run = top_command,
};
