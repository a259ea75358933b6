/* generate.c - `generate FOLDER`: the corpus by itself, without the command around it, for arch_test's machines. */
#include <stdio.h>
#include <stdlib.h>
#include "tools/corpus.h"
#include "tools/tools.h"

void *tool_allocate(void *old, size_t nr, size_t size)
{
	void *memory = realloc(old, nr * size);

	if (!memory)
		abort();
	return memory;
}

int main(int argc, char **argv)
{
	uint32_t count;
	char *path = NULL;
	int ret = argc == 2 ? tool_corpus_write(argv[1], &path, &count) : -1;

	if (ret)
		fprintf(stderr, "%s: error %d\n", path ? path : "generate", -ret);
	free(path);
	return ret != 0;
}
