/* profile_file.c - the stacks of a perf.data file with names, collapsed for flame graphs: "COMM;main;function WEIGHT". */
#include <stdio.h>
#include <perfring/file.h>
#include <perfring/profile_fill.h>

int main(int argc, char **argv)
{
	struct perfring_filter filter = {.frames = PERFRING_FILTER_USER};
	struct perfring_profile_fill *fill;
	struct perfring_profile *profile;
	struct perfring_fault fault;
	struct perfring_file *file;
	struct perfring_item item;
	int ret;

	if (argc < 2 || perfring_file_open(&file, argv[1]) || perfring_profile_open(&profile, NULL))
		return 1;
	filter.comms = argc > 2 ? argv[2] : NULL; /* "nginx,redis"; NULL: all */
	if (perfring_profile_fill_open(&fill, profile, &(struct perfring_profile_fill_options){.file = file, .filter = &filter}))
		return 1;
	while ((ret = perfring_file_next(file, &item)) == 1)
		if (perfring_profile_fill_item(fill, &item, &fault) && fault.what)
			fprintf(stderr, "%s: %s\n", argv[1], fault.what);
	if (!ret)
		ret = perfring_profile_fill_end(fill);
	if (!ret)
		ret = perfring_profile_write(profile, PERFRING_PROFILE_COLLAPSED, NULL, stdout);
	perfring_profile_fill_close(fill);
	perfring_profile_close(profile);
	perfring_file_close(file);
	return ret != 0;
}
