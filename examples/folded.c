/* folded.c - the stacks of a perf.data file with names, folded for flame graphs: "COMM;main;function 1" for each sample. */
#include <stdio.h>
#include <perfring/callchain.h>
#include <perfring/file.h>
#include <perfring/maps.h>
#include <perfring/symbol.h>

static struct perfring_maps *maps;
static struct perfring_symbols *symbols;

static const char *name_of(unsigned cpumode, uint32_t pid, uint64_t ip)
{
	const struct perfring_mapping *map = perfring_maps_find(maps, cpumode, pid, ip);
	struct perfring_symbol_object *object;
	struct perfring_symbol_file file;
	struct perfring_symbol symbol;

	if (!map)
		return "[unknown]";
	file = (struct perfring_symbol_file){.path = map->object->name,
					     .build_id = map->object->file.build_id,
					     .build_id_size = map->object->file.build_id_size,
					     .pid = (int32_t)pid,
					     .ino = map->object->file.ino,
					     .ino_generation = map->object->file.ino_generation};
	if (cpumode == PERFRING_RECORD_MISC_USER && perfring_symbols_get(symbols, &file, &object) >= 0 &&
	    perfring_symbol_find(object, perfring_mapping_offset(map, ip), &symbol))
		return symbol.name;
	return map->object->name; /* of the kernel, and where there are no symbols */
}

static void fold(const struct perfring_sample *sample)
{
	struct perfring_callchain chain = perfring_callchain_init(&sample->callchain);
	const char *names[512] = {name_of(sample->misc & 7, sample->pid, sample->ip)};
	const char *comm = perfring_maps_comm(maps, sample->tid);
	struct perfring_frame frame;
	uint64_t last = 0; /* a context's first address was interrupted there; the others are after calls */
	size_t depth = 0;

	chain.nr = sample->present & PERFRING_SAMPLE_CALLCHAIN ? chain.nr : 0;
	for (; depth < 512 && perfring_callchain_next(&chain, &frame) == 1; last = frame.context)
		names[depth++] = name_of(frame.context == (uint64_t)PERFRING_CONTEXT_KERNEL ? 1 : 2, sample->pid,
					 frame.ip - (frame.context == last));
	for (fputs(comm ? comm : "[unknown]", stdout), depth += !depth; depth; depth--)
		printf(";%s", names[depth - 1]);
	puts(" 1");
}

int main(int argc, char **argv)
{
	struct perfring_symbols_options options = {.flags = 0};
	struct perfring_file *data;
	struct perfring_item item;
	struct perfring_sample sample;

	if (argc != 2 || perfring_file_open(&data, argv[1]) || perfring_maps_open(&maps))
		return 1;
	options.flags = perfring_symbols_flags_for(data);
	if (perfring_symbols_open(&symbols, &options))
		return 1;
	while (perfring_file_next(data, &item) == 1)
		if (item.record->type != PERFRING_RECORD_SAMPLE)
			perfring_maps_take(maps, &item);
		else if (item.format && !perfring_sample_decode(item.format, item.record, &sample, NULL))
			fold(&sample);
	return 0;
}
