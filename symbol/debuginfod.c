/* debuginfod.c - objects and debug files from servers, by libdebuginfod, which is loaded when it is asked for.
 *
 * It keeps what it finds in its cache, where the next reader finds it without a server.
 *
 * places.c asks it for files, symbols.c opens and closes it.  The library is not linked: dlopen at the first use.  A request
 * takes as long as the servers do; `progress` may end it.  One thread.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "places.h"

/* The part of its interface that is used; libdebuginfod.so.1. */
struct debuginfod_client;
typedef int progress_function(struct debuginfod_client *of, long done, long all);
typedef void set_progress_function(struct debuginfod_client *of, progress_function *function);

struct perfring_debuginfod {
	void *library;
	struct debuginfod_client *client;
	void (*end)(struct debuginfod_client *of);
	int (*find_object)(struct debuginfod_client *of, const unsigned char *id, int size, char **path);
	int (*find_debug_file)(struct debuginfod_client *of, const unsigned char *id, int size, char **path);
	bool (*progress)(void *to, const char *path, int64_t done, int64_t all);
	void *to;
	const char *name; /* of what is asked for now */
	bool is_stopped;
};

/* The library gives its callback nothing but the client: who asks is what this thread asks for. */
static _Thread_local struct perfring_debuginfod *asking;

static int show_progress(struct debuginfod_client *of, long done, long all)
{
	(void)of;
	if (!asking->is_stopped && asking->progress)
		asking->is_stopped = !asking->progress(asking->to, asking->name, done, all);
	return asking->is_stopped;
}

/* Puts the address of a function into a pointer to one. */
static bool find(void *library, const char *name, void *function)
{
	void *address = dlsym(library, name);

	memcpy(function, &address, sizeof(address));
	return address != NULL;
}

int perfring__debuginfod_open(struct perfring_debuginfod **result,
			      bool (*progress)(void *to, const char *path, int64_t done, int64_t all), void *to)
{
	struct perfring_debuginfod *servers = calloc(1, sizeof(*servers));
	set_progress_function *set_progress = NULL;
	struct debuginfod_client *(*begin)(void) = NULL;

	*result = NULL;
	if (!servers)
		return -ENOMEM;
	servers->library = dlopen("libdebuginfod.so.1", RTLD_NOW | RTLD_LOCAL);
	if (servers->library && find(servers->library, "debuginfod_begin", &begin) &&
	    find(servers->library, "debuginfod_end", &servers->end) &&
	    find(servers->library, "debuginfod_set_progressfn", &set_progress) &&
	    find(servers->library, "debuginfod_find_executable", &servers->find_object) &&
	    find(servers->library, "debuginfod_find_debuginfo", &servers->find_debug_file))
		servers->client = begin();
	if (!servers->client) {
		perfring__debuginfod_close(servers);
		return -EOPNOTSUPP;
	}
	set_progress(servers->client, show_progress);
	servers->progress = progress;
	servers->to = to;
	*result = servers;
	return 0;
}

void perfring__debuginfod_close(struct perfring_debuginfod *servers)
{
	if (!servers)
		return;
	if (servers->client)
		servers->end(servers->client);
	free(servers); /* the library stays loaded: its own libraries have threads' variables */
}

int perfring__debuginfod_find(struct perfring_debuginfod *servers, enum perfring_place_of wanted, const uint8_t *id,
			      uint32_t size, const char *name, char path[PATH_MAX])
{
	char *found = NULL;
	int fd;

	if (servers->is_stopped)
		return -EINTR;
	servers->name = name;
	asking = servers;
	if (wanted == PERFRING_PLACE_OBJECT)
		fd = servers->find_object(servers->client, id, (int)size, &found);
	else
		fd = servers->find_debug_file(servers->client, id, (int)size, &found);
	asking = NULL;
	snprintf(path, PATH_MAX, "%s", fd >= 0 && found ? found : "debuginfod");
	free(found);
	return fd;
}
