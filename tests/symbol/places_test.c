/* places_test.c - where symbol.h looks for objects and debug files: caches, another root, servers. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <perfring/symbol.h>
#include <sys/socket.h>
#include "hostile.h"

TestSuite(places, .timeout = 60);

static char folder[64];

static const char *in_folder(const char *name)
{
	static char paths[4][512];
	static int next;
	char *path = paths[next++ % 4];

	snprintf(path, sizeof(paths[0]), "%s/%s", folder, name);
	return path;
}

/* A folder, of which nothing but what the tests put there is found. */
static void make_folder(void)
{
	snprintf(folder, sizeof(folder), "/tmp/places_test.XXXXXX");
	cr_assert_not_null(mkdtemp(folder));
	setenv("HOME", folder, 1);
	unsetenv("PERF_BUILDID_DIR");
	unsetenv("DEBUGINFOD_CACHE_PATH");
	unsetenv("XDG_CACHE_HOME");
	unsetenv("DEBUGINFOD_URLS");
}

static void remove_folder(void)
{
	char command[96];

	snprintf(command, sizeof(command), "rm -rf %s", folder);
	cr_assert_eq(system(command), 0);
}

static void make_parents(const char *path)
{
	char command[600];

	snprintf(command, sizeof(command), "mkdir -p \"$(dirname %s)\"", path);
	cr_assert_eq(system(command), 0);
}

/* An object with a build id, all of that byte, whose function at 0x2000 has that name; NULL: stripped. */
static void write_object(const char *path, const char *name, unsigned char id)
{
	static const struct hostile_symbol here = {1, 0x2000, 0x100};
	const uint32_t head[3] = {4, 20, NT_GNU_BUILD_ID};
	struct hostile_bytes table = hostile_table(&here, 1);
	unsigned char note[36];
	char strings[64] = "";

	memcpy(note, head, sizeof(head));
	memcpy(note + 12, "GNU", 4);
	memset(note + 16, id, 20);
	snprintf(strings + 1, sizeof(strings) - 1, "%s", name ? name : "");
	make_parents(path);
	hostile_write_object(path,
			     (struct hostile_section[]){
				     {".note.gnu.build-id", SHT_NOTE, note, sizeof(note), 0, 0, 0, 0x200},
				     {".symtab", SHT_SYMTAB, table.bytes, table.size, 4, 0, 0, 0},
				     {".strtab", SHT_STRTAB, strings, sizeof(strings), 0, 0, 0, 0},
			     },
			     name ? 3 : 1);
	free(table.bytes);
}

#define ID "6161616161616161616161616161616161616161" /* all 'a' */
#define SPLIT "61/61616161616161616161616161616161616161"

static struct perfring_symbol_state state;

/* The name at 0x2010 of the object of that path and build 'a', or "" with `state`. */
static const char *name_of(const char *path, const struct perfring_symbols_options *options)
{
	static char name[64], path_read[512], debug_path[512];
	struct perfring_symbol_object *object;
	struct perfring_symbols *symbols;
	struct perfring_symbol symbol;
	uint8_t id[20];

	memset(id, 'a', sizeof(id));
	cr_assert_eq(perfring_symbols_open(&symbols, options), 0);
	cr_assert_eq(perfring_symbols_get(
			     symbols,
			     &(struct perfring_symbol_file){.path = path, .build_id = id, .build_id_size = sizeof(id)},
			     &object),
		     1);
	snprintf(name, sizeof(name), "%s", perfring_symbol_find(object, 0x2010, &symbol) ? symbol.name : "");
	perfring_symbol_state_of(object, &state);
	snprintf(path_read, sizeof(path_read), "%s", state.path ? state.path : "");
	snprintf(debug_path, sizeof(debug_path), "%s", state.debug_path ? state.debug_path : "");
	state.path = path_read;
	state.debug_path = debug_path;
	perfring_symbols_close(symbols);
	return name;
}

/* An object that is not where it was, or is another build there, in a cache by its build id. */
Test(places, objects_in_caches)
{
	static const struct {
		const char *variable, *value, *file;
	} cases[] = {
		{NULL, NULL, ".debug/.build-id/" SPLIT "/elf"},
		{"PERF_BUILDID_DIR", "perf", "perf/.build-id/" SPLIT "/elf"},
		{NULL, NULL, ".cache/debuginfod_client/" ID "/executable"},
		{"XDG_CACHE_HOME", "xdg", "xdg/debuginfod_client/" ID "/executable"},
		{"DEBUGINFOD_CACHE_PATH", "own", "own/" ID "/executable"},
	};
	static const struct perfring_symbols_options without = {.flags = PERFRING_SYMBOLS_NO_CACHES};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (int is_replaced = 0; is_replaced < 2; is_replaced++) {
			const enum perfring_symbol_why none =
				is_replaced ? PERFRING_SYMBOL_OTHER_BUILD : PERFRING_SYMBOL_UNREADABLE;

			make_folder();
			if (cases[i].variable)
				setenv(cases[i].variable, in_folder(cases[i].value), 1);
			if (is_replaced)
				write_object(in_folder("object"), "wrong", 'b');
			cr_assert_str_eq(name_of(in_folder("object"), NULL), "");
			cr_assert_eq(state.why, none);
			write_object(in_folder(cases[i].file), "wrong", 'b');
			cr_assert_str_eq(name_of(in_folder("object"), NULL), "", "%s: of another build", cases[i].file);
			cr_assert_eq(state.why, none);
			write_object(in_folder(cases[i].file), "sound", 'a');
			cr_assert_str_eq(name_of(in_folder("object"), NULL), "sound", "%s", cases[i].file);
			cr_assert_str_eq(state.path, in_folder(cases[i].file));
			cr_assert_str_eq(name_of(in_folder("object"), &without), "");
			remove_folder();
		}
}

/* A debug file in a cache, when none is where the system keeps them. */
Test(places, debug_files_in_caches)
{
	static const char *const files[] = {".debug/.build-id/" SPLIT "/debug",
					    ".cache/debuginfod_client/" ID "/debuginfo"};
	static const struct perfring_symbols_options without = {.flags = PERFRING_SYMBOLS_NO_CACHES};

	for (size_t i = 0; i < 2; i++) {
		make_folder();
		write_object(in_folder("object"), NULL, 'a');
		write_object(in_folder(files[i]), "wrong", 'b');
		cr_assert_str_eq(name_of(in_folder("object"), NULL), "");
		cr_assert_eq(state.why, PERFRING_SYMBOL_KNOWN);
		write_object(in_folder(files[i]), "sound", 'a');
		cr_assert_str_eq(name_of(in_folder("object"), NULL), "sound");
		cr_assert_str_eq(state.path, in_folder("object"));
		cr_assert_str_eq(state.debug_path, in_folder(files[i]));
		cr_assert_str_eq(name_of(in_folder("object"), &without), "");
		remove_folder();
	}
}

/* Another root: its links lead nowhere else, and its debug files are used. */
Test(places, symfs)
{
	struct perfring_symbols_options options = {0};
	char root[128];

	make_folder();
	snprintf(root, sizeof(root), "%s", in_folder("root"));
	options.symfs = root;
	write_object(in_folder("root/real/object"), "sound", 'a');
	cr_assert_eq(symlink("/real", in_folder("root/link")), 0);
	cr_assert_str_eq(name_of("/real/object", &options), "sound");
	cr_assert_str_eq(name_of("/link/object", &options), "sound");
	write_object(in_folder("outside"), "wrong", 'a');
	cr_assert_str_eq(name_of(in_folder("outside"), &options), "", "of this root");
	cr_assert_str_eq(name_of("/../outside", &options), "", "above that root");
	write_object(in_folder("root/real/object"), NULL, 'a');
	cr_assert_str_eq(name_of("/real/object", &options), "");
	write_object(in_folder("root/usr/lib/debug/.build-id/" SPLIT ".debug"), "sound", 'a');
	cr_assert_str_eq(name_of("/real/object", &options), "sound");
	remove_folder();
}

/* ---- servers ---- */

static uint32_t *requests; /* shared with the server */

/* Serves that file as the debug file and the object of build 'a', and nothing else. */
static pid_t start_server(const char *what, const char *path, uint16_t *port)
{
	struct sockaddr_in place = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), peer;
	socklen_t size = sizeof(place);
	char wanted[128], got[4096];
	pid_t child;

	requests = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(requests, MAP_FAILED);
	cr_assert_eq(bind(server, (struct sockaddr *)&place, size), 0);
	cr_assert_eq(listen(server, 16), 0);
	cr_assert_eq(getsockname(server, (struct sockaddr *)&place, &size), 0);
	*port = ntohs(place.sin_port);
	snprintf(wanted, sizeof(wanted), "GET /buildid/" ID "/%s ", what);
	child = fork();
	if (child) {
		close(server);
		return child;
	}
	while ((peer = accept(server, NULL, NULL)) >= 0) {
		size_t length = 0;
		ssize_t one;

		do {
			one = read(peer, got + length, sizeof(got) - 1 - length);
			length += one > 0 ? (size_t)one : 0;
			got[length] = 0;
		} while (one > 0 && !strstr(got, "\r\n\r\n"));
		__atomic_add_fetch(requests, 1, __ATOMIC_RELAXED);
		if (strstr(got, wanted)) {
			unsigned char *bytes = hostile_read(open(path, O_RDONLY), &length);

			dprintf(peer, "HTTP/1.0 200 OK\r\nContent-Length: %zu\r\n\r\n", length);
			if (write(peer, bytes, length) != (ssize_t)length)
				_exit(1);
			free(bytes);
		} else {
			dprintf(peer, "HTTP/1.0 404 Not Found\r\nContent-Length: 0\r\n\r\n");
		}
		close(peer);
	}
	_exit(0);
}

static void stop_server(pid_t child)
{
	kill(child, SIGKILL);
	cr_assert_eq(waitpid(child, NULL, 0), child);
	munmap(requests, 4096);
}

static unsigned told;

static bool count_progress(void *to, const char *path, int64_t done, int64_t all)
{
	const bool *goes_on = to;

	(void)done;
	(void)all;
	told++;
	cr_assert_str_eq(path, in_folder("object"));
	return *goes_on;
}

/* A server is asked only when that was asked for; what it has is used, if it is the object's. */
Test(places, servers)
{
	static const char *const kinds[] = {"debuginfo", "executable"};
	bool goes_on = true;
	struct perfring_symbols_options options = {
		.flags = PERFRING_SYMBOLS_SERVERS, .progress = count_progress, .to = &goes_on};
	struct perfring_symbols *symbols;
	char url[64];
	uint16_t port;
	pid_t server;

	if (perfring_symbols_open(&symbols, &options) == -EOPNOTSUPP)
		cr_skip_test("SKIP-ENV: libdebuginfod.so.1: not installed: apt-get install libdebuginfod1");
	perfring_symbols_close(symbols);
	for (int i = 0; i < 2; i++) {
		make_folder();
		setenv("DEBUGINFOD_CACHE_PATH", in_folder("cache"), 1);
		setenv("DEBUGINFOD_TIMEOUT", "20", 1);
		server = start_server(kinds[i], in_folder("served"), &port);
		snprintf(url, sizeof(url), "http://127.0.0.1:%u", port);
		setenv("DEBUGINFOD_URLS", url, 1);
		if (!i)
			write_object(in_folder("object"), NULL, 'a');
		write_object(in_folder("served"), "wrong", 'b');
		cr_assert_str_eq(name_of(in_folder("object"), NULL), "");
		cr_assert_eq(*requests, 0, "a server was asked");
		cr_assert_str_eq(name_of(in_folder("object"), &options), "", "what is served is of another build");
		cr_assert_gt(*requests, 0);
		cr_assert_eq(system("rm -rf \"$DEBUGINFOD_CACHE_PATH\""), 0);
		/* stopped before anything is known */
		write_object(in_folder("served"), "sound", 'a');
		goes_on = false;
		told = 0;
		cr_assert_str_eq(name_of(in_folder("object"), &options), "");
		cr_assert_gt(told, 0);
		cr_assert_eq(system("rm -rf \"$DEBUGINFOD_CACHE_PATH\""), 0);
		goes_on = true;
		cr_assert_str_eq(name_of(in_folder("object"), &options), "sound");
		cr_assert_str_eq(i ? state.path : state.debug_path,
				 in_folder(i ? "cache/" ID "/executable" : "cache/" ID "/debuginfo"));
		stop_server(server);
		/* from now on it is in the cache */
		cr_assert_str_eq(name_of(in_folder("object"), NULL), "sound");
		remove_folder();
	}
}

/* What a server that is not there costs is one complaint. */
Test(places, no_server)
{
	const struct perfring_symbols_options options = {.flags = PERFRING_SYMBOLS_SERVERS};
	struct perfring_symbols *symbols;

	if (perfring_symbols_open(&symbols, &options) == -EOPNOTSUPP)
		cr_skip_test("SKIP-ENV: libdebuginfod.so.1: not installed: apt-get install libdebuginfod1");
	perfring_symbols_close(symbols);
	make_folder();
	setenv("DEBUGINFOD_CACHE_PATH", in_folder("cache"), 1);
	write_object(in_folder("object"), NULL, 'a');
	cr_assert_str_eq(name_of(in_folder("object"), &options), "", "no server is named");
	cr_assert_eq(state.error, 0);
	setenv("DEBUGINFOD_URLS", "http://127.0.0.1:1", 1);
	cr_assert_str_eq(name_of(in_folder("object"), &options), "");
	cr_assert_lt(state.error, 0);
	remove_folder();
}
