/* tables.c - the unwind tables of what is loaded, made outside handlers and looked up inside them.
 *
 *     load (a thread)                                             a raise or a tick, in a section (grace.c)
 *   1   copies .eh_frame of new objects (dl_iterate_phdr)       a   chain->tables := published    (acquire)
 *   2   makes all their rows
 *   3   published := a list of the objects that are loaded      b   walks its own stack by them
 *   4   a grace period                                          c   the section ends
 *   5   frees the old list, and objects that it alone had
 *
 *   3 and a   release and acquire: who finds a list finds its objects and their rows, which never change.
 *   4 and c   a walk by the old list ends before 5.
 *
 * Rows are memory of perfring's: nothing is read of an object after 1, in which the loader's lock keeps it loaded.  So a walk
 * through code that is unloaded meanwhile, or whose place another object takes before the next load, finds rows of the object
 * that was there, or none: a wrong frame at worst, on a stack that is still read inside its bounds.
 *
 * `loading` makes loads one at a time.  It is held over the grace period, with all signals blocked; no raise and no handler takes
 * it.  In a fork's child it is free, and what another thread's load had begun is lost.
 */
#include <link.h>
#include <stdlib.h>
#include <string.h>

#include <perfring/unwind.h>

#include "os/array.h"
#include "os/signals.h"
#include "soft_private.h"

enum {
	CACHE = 512, /* entries of 32 bytes, of each event in each thread */
	HEADER = 12, /* bytes of .eh_frame_hdr before its table */
};

/* One that is loaded, and has rows. */
struct object {
	uint64_t start, end, bias;
	uint64_t header,
		hash; /* where .eh_frame_hdr is, and a hash of it: whether an object is the one that was there */
	struct perfring_unwind *unwind;
	bool is_kept; /* by the load that goes on */
};

struct objects {
	struct object *array;
	uint32_t count, capacity;
};

static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;
static struct objects loaded;         /* of `published`; perfring__soft_lock */
static struct soft_tables *published; /* stored under perfring__soft_lock; release, RCU */
static uint32_t last_space;           /* loading */

/* ---- what is loaded ---- */

/* An object whose rows are to be made. */
struct raw {
	struct object object;
	struct perfring_unwind_sections sections;
	unsigned char *bytes; /* of both sections */
};

struct search {
	struct raw *array;
	uint32_t count, capacity;
	int error;
};

/* The bytes that the file gives from an address of the object on, up to the end of its segment; 0: it is not readable. */
static uint64_t bytes_from(const struct dl_phdr_info *object, uint64_t at)
{
	for (int i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &object->dlpi_phdr[i];

		if (part->p_type == PT_LOAD && part->p_flags & PF_R && at - part->p_vaddr < part->p_filesz)
			return part->p_filesz - (at - part->p_vaddr);
	}
	return 0;
}

/* The size of .eh_frame, which ends with an entry of length 0, or with the segment.  At most one turn for 4 bytes. */
static uint64_t size_of_frames(const unsigned char *bytes, uint64_t most)
{
	uint64_t at = 0, length;
	uint32_t word;

	while (most - at >= sizeof(word)) {
		memcpy(&word, bytes + at, sizeof(word));
		at += sizeof(word);
		length = word;
		if (word == UINT32_MAX && most - at >= sizeof(length)) {
			memcpy(&length, bytes + at, sizeof(length));
			at += sizeof(length);
		}
		if (!length)
			return at;
		if (length > most - at)
			break;
		at += length;
	}
	return at;
}

static uint64_t hash_of(const unsigned char *bytes, uint64_t size)
{
	uint64_t hash = size, word;

	for (; size >= sizeof(word); size -= sizeof(word), bytes += sizeof(word)) {
		memcpy(&word, bytes, sizeof(word));
		hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
		hash ^= hash >> 29;
	}
	for (; size; size--, bytes++)
		hash = (hash ^ *bytes) * UINT64_C(0x9e3779b97f4a7c15);
	return hash;
}

/* The code's addresses. */
static void find_code(const struct dl_phdr_info *object, struct object *to)
{
	for (int i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &object->dlpi_phdr[i];

		if (part->p_type != PT_LOAD || !(part->p_flags & PF_X))
			continue;
		if (to->end == to->start || object->dlpi_addr + part->p_vaddr < to->start)
			to->start = object->dlpi_addr + part->p_vaddr;
		if (object->dlpi_addr + part->p_vaddr + part->p_memsz > to->end)
			to->end = object->dlpi_addr + part->p_vaddr + part->p_memsz;
	}
}

/* Both sections, of which only .eh_frame_hdr is named: it says where .eh_frame is, as all linkers write it, relative to that
 * word in 32 bits.  Returns false: there are none. */
static bool find_sections(const struct dl_phdr_info *object, struct perfring_unwind_sections *sections)
{
	const ElfW(Phdr) *part = NULL;
	uint64_t at, frames;
	int32_t distance;
	const unsigned char *header;

	for (int i = 0; i < object->dlpi_phnum; i++)
		if (object->dlpi_phdr[i].p_type == PT_GNU_EH_FRAME)
			part = &object->dlpi_phdr[i];
	if (!part || part->p_memsz < HEADER || bytes_from(object, part->p_vaddr) < part->p_memsz)
		return false;
	at = part->p_vaddr;
	header = (const unsigned char *)(uintptr_t)(object->dlpi_addr + at);
	if (header[0] != 1 || header[1] != 0x1b)
		return false;
	memcpy(&distance, header + 4, sizeof(distance));
	frames = at + 4 + (uint64_t)(int64_t)distance;
	sections->eh_frame_hdr = (struct perfring_unwind_section){header, part->p_memsz, at};
	sections->eh_frame.bytes = (const unsigned char *)(uintptr_t)(object->dlpi_addr + frames);
	sections->eh_frame.address = frames;
	sections->eh_frame.size = size_of_frames(sections->eh_frame.bytes, bytes_from(object, frames));
	return sections->eh_frame.size;
}

static bool copy_sections(struct raw *raw)
{
	struct perfring_unwind_section *header = &raw->sections.eh_frame_hdr, *frames = &raw->sections.eh_frame;

	raw->bytes = malloc((size_t)(header->size + frames->size));
	if (!raw->bytes)
		return false;
	memcpy(raw->bytes, header->bytes, (size_t)header->size);
	memcpy(raw->bytes + header->size, frames->bytes, (size_t)frames->size);
	header->bytes = raw->bytes;
	frames->bytes = raw->bytes + header->size;
	return true;
}

/* Under the loader's lock: it only copies. */
static int add_object(struct dl_phdr_info *object, size_t size, void *to)
{
	struct search *search = to;
	struct raw raw = {.object = {.bias = object->dlpi_addr}};
	uint32_t i;

	(void)size;
#if defined(__x86_64__)
	raw.sections.machine = PERFRING_UNWIND_X86_64;
#else
	raw.sections.machine = PERFRING_UNWIND_AARCH64;
#endif
	find_code(object, &raw.object);
	if (raw.object.start == raw.object.end || !find_sections(object, &raw.sections))
		return 0;
	raw.object.header = (uintptr_t)raw.sections.eh_frame_hdr.bytes;
	raw.object.hash = hash_of(raw.sections.eh_frame_hdr.bytes, raw.sections.eh_frame_hdr.size);
	for (i = 0; i < loaded.count; i++) { /* only loads change it */
		struct object *old = &loaded.array[i];

		if (old->header == raw.object.header && old->bias == raw.object.bias && old->hash == raw.object.hash) {
			old->is_kept = true;
			return 0;
		}
	}
	search->error = perfring__os_array_grow(&search->array, search->count, &search->capacity, sizeof(raw));
	if (!search->error && !copy_sections(&raw))
		search->error = -ENOMEM;
	if (!search->error)
		search->array[search->count++] = raw;
	return search->error;
}

/* ---- a load ---- */

/* Rows of the new objects.  What has no function has none.  Returns 0 or -ENOMEM. */
static int make_rows(struct search *search)
{
	int ret = 0;

	for (uint32_t i = 0; !ret && i < search->count; i++) {
		struct raw *raw = &search->array[i];

		ret = perfring_unwind_open_sections(&raw->object.unwind, &raw->sections);
		if (!ret)
			ret = perfring_unwind_make_all(raw->object.unwind);
		ret = ret == -ENOMEM ? ret : 0;
		free(raw->bytes);
		raw->bytes = NULL;
	}
	return ret;
}

static int compare_objects(const void *one, const void *other)
{
	const struct object *a = one, *b = other;

	return (a->start > b->start) - (a->start < b->start);
}

/* Kept ones and new ones, sorted. */
static int list_objects(const struct search *search, struct objects *to)
{
	int ret = 0;

	for (uint32_t i = 0; !ret && i < loaded.count + search->count; i++) {
		const struct object *object =
			i < loaded.count ? &loaded.array[i] : &search->array[i - loaded.count].object;

		if (i < loaded.count && !object->is_kept)
			continue;
		ret = perfring__os_array_grow(&to->array, to->count, &to->capacity, sizeof(*to->array));
		if (!ret)
			to->array[to->count++] = *object;
	}
	if (!ret && to->count)
		qsort(to->array, to->count, sizeof(*to->array), compare_objects);
	return ret;
}

/* An object without rows has a place too: its code is not what frame pointers are tried on. */
static struct soft_tables *make_tables(const struct objects *objects)
{
	struct soft_tables *tables = calloc(1, sizeof(*tables) + objects->count * sizeof(tables->maps[0]));
	uint64_t end = 0;

	if (!tables)
		return NULL;
	for (uint32_t i = 0; i < objects->count; i++) {
		const struct object *object = &objects->array[i];

		if (object->start < end)
			continue; /* objects do not overlap, but where program headers lie */
		end = object->end;
		tables->maps[tables->space.nr++] =
			(struct perfring_unwind_map){object->start, object->end, object->bias, object->unwind};
	}
	last_space += last_space == UINT32_MAX ? 2 : 1;
	tables->space.maps = tables->maps;
	tables->space.id = last_space;
	return tables;
}

/* Frees what is not in use any more: a fork's child, whose thread had a raise in its parent, leaves it. */
static void free_old(struct soft_tables *tables, struct objects *objects)
{
	bool is_used;

	perfring__soft_lock_take();
	is_used = perfring__soft_raise_is_inherited();
	perfring__soft_lock_give();
	for (uint32_t i = 0; !is_used && i < objects->count; i++)
		if (!objects->array[i].is_kept)
			perfring_unwind_close(objects->array[i].unwind);
	if (!is_used)
		free(tables);
	free(objects->array);
}

/* Loading. */
static int load(void)
{
	struct objects objects = {0}, old_objects = {0};
	struct soft_tables *tables = NULL, *old = NULL;
	struct search search = {0};
	int ret;

	for (uint32_t i = 0; i < loaded.count; i++)
		loaded.array[i].is_kept = false;
	dl_iterate_phdr(add_object, &search);
	PERFRING_POINT(tables_found);
	ret = search.error ? search.error : make_rows(&search);
	if (!ret)
		ret = list_objects(&search, &objects);
	if (!ret) {
		tables = make_tables(&objects);
		ret = tables ? 0 : -ENOMEM;
	}
	if (!ret) {
		perfring__soft_lock_take(); /* a fork finds both, or neither */
		old_objects = loaded;
		loaded = objects;
		old = published;
		PERFRING_STORE_RELEASE(&published, tables); /* partner: perfring__soft_chain_begin */
		perfring__soft_lock_give();
		PERFRING_POINT(tables_published);
		perfring__soft_grace();
		free_old(old, &old_objects);
	} else {
		for (uint32_t i = 0; i < search.count; i++) {
			perfring_unwind_close(search.array[i].object.unwind);
			free(search.array[i].bytes);
		}
		free(objects.array);
	}
	free(search.array);
	return ret;
}

int perfring_soft_unwind_load(void)
{
	sigset_t signals;
	int ret, state;

	if (!SOFT_HAS_TABLES)
		return -EOPNOTSUPP;
	ret = perfring__soft_prepare();
	if (ret)
		return ret;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	perfring__os_signals_block(&signals);
	pthread_mutex_lock(&loading);
	ret = load();
	pthread_mutex_unlock(&loading);
	perfring__soft_signals_restore(&signals);
	pthread_setcancelstate(state, NULL);
	return ret;
}

void perfring__soft_tables_forget(void)
{
	pthread_mutex_init(&loading, NULL);
}

/* ---- events ---- */

int perfring__soft_frames_make(struct soft_instance *instance)
{
	struct soft_frames *frames;

	if (instance->frames)
		return 0;
	frames = calloc(1, sizeof(*frames));
	if (!frames)
		return -ENOMEM;
	if (perfring_unwind_cache_open(&frames->cache, CACHE)) {
		free(frames);
		return -ENOMEM;
	}
	PERFRING_STORE_RELEASE(&instance->frames, frames); /* partner: perfring__soft_chain_begin */
	return 0;
}

void perfring__soft_frames_free(struct soft_instance *instance)
{
	if (!instance->frames)
		return;
	perfring_unwind_cache_close(instance->frames->cache);
	free(instance->frames);
}

int perfring_soft_set_unwind(struct perfring_soft_event *event, bool by_tables)
{
	struct soft_instance *instance;
	int ret = 0;

	if (!by_tables) {
		PERFRING_STORE(&event->by_tables, false);
		return 0;
	}
	if (!(event->attr.sample_type & PERF_SAMPLE_CALLCHAIN))
		return -EINVAL;
	if (!PERFRING_LOAD_ACQUIRE(&published))
		ret = perfring_soft_unwind_load();
	if (ret)
		return ret;
	perfring__soft_lock_take();
	for (uint32_t i = 0; !ret && (instance = perfring__soft_instance_from(event, &i)); i++)
		ret = perfring__soft_frames_make(instance);
	if (!ret)
		PERFRING_STORE(&event->by_tables, true); /* no order: a raise looks at frames itself */
	perfring__soft_lock_give();
	return ret;
}

/* ---- a raise ---- */

void perfring__soft_chain_begin(struct soft_chain *chain, const struct soft_instance *instance, uint32_t max,
				const struct soft_registers *registers)
{
	struct soft_frames *frames = PERFRING_LOAD_ACQUIRE(&instance->frames); /* partner: frames_make */

	chain->tables = PERFRING_LOAD(&instance->event->by_tables) ? PERFRING_LOAD_ACQUIRE(&published) : NULL;
	chain->frames = NULL;
	if (!chain->tables || !frames || frames->is_used)
		return;
	/* A handler from here on finds it used, and walks without it. */
	PERFRING_STORE(&frames->is_used, true);
	PERFRING_FENCE_LOCAL();
	PERFRING_POINT(chain_begun);
	frames->nr = perfring__soft_unwind_by_tables(NULL, frames, max, registers, instance->thread, chain->tables);
	chain->frames = frames;
}

void perfring__soft_chain_end(struct soft_chain *chain)
{
	if (!chain->frames)
		return;
	PERFRING_FENCE_LOCAL();
	PERFRING_STORE(&chain->frames->is_used, false);
}
