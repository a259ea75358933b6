/* ring_model.h - the ring of docs/abi.md 7 as plainly as it can be said: one writer, no nesting, no sharing, byte by byte. */
#ifndef RING_MODEL_H
#define RING_MODEL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <linux/perf_event.h>

struct model_lost {
	struct perf_event_header header;
	uint64_t id, lost;
};

/* docs/abi.md 7.1 */
struct model {
	unsigned char *data;
	uint64_t size;
	uint64_t head, tail;
	uint64_t lost;
	uint64_t wakeup, watermark, events;
	bool backward, overwrite, paused;
	bool poll;
};

struct model_output {
	uint64_t id;
	uint64_t lost;
	uint32_t wakeup_events;
	uint32_t trailer_size;
	unsigned char trailer[48];
};

/* watermark, wakeup: the attr's (docs/abi.md 7.7) */
static inline void model_open(struct model *model, uint64_t size, bool watermark, uint32_t wakeup)
{
	memset(model, 0, sizeof(*model));
	model->data = calloc(1, (size_t)size);
	model->size = size;
	if (!watermark || wakeup == 0)
		model->watermark = size / 2;
	else
		model->watermark = wakeup < size ? wakeup : size;
}

static inline void model_close(struct model *model)
{
	free(model->data);
}

/* docs/abi.md 7.2 */
static inline uint64_t model_circ_space(const struct model *model, uint64_t head, uint64_t tail)
{
	return (tail - (head + 1)) % model->size;
}

static inline uint64_t model_space(const struct model *model)
{
	return model->backward ? model_circ_space(model, model->tail, model->head)
			       : model_circ_space(model, model->head, model->tail);
}

static inline void model_put(struct model *model, uint64_t at, const void *bytes, uint64_t size)
{
	for (uint64_t i = 0; i < size; i++)
		model->data[(at + i) % model->size] = ((const unsigned char *)bytes)[i];
}

static inline bool model_refuse(struct model *model, struct model_output *output)
{
	model->lost++;
	output->lost++;
	return false;
}

/* docs/abi.md 7.3 */
static inline bool model_write(struct model *model, struct model_output *output, const void *record, uint64_t size)
{
	uint64_t tell = model->lost ? sizeof(struct model_lost) + output->trailer_size : 0;
	struct model_lost lost = {{PERF_RECORD_LOST, 0, (uint16_t)tell}, output->id, model->lost};
	uint64_t stamp = model->wakeup;
	struct perf_event_header header;
	uint64_t at;

	if (model->paused || (!model->overwrite && model_space(model) < size + tell))
		return model_refuse(model, output);
	at = model->backward ? model->head - size - tell : model->head;
	model->head = model->backward ? at : at + size + tell;
	if ((model->backward ? -model->head : model->head) - model->wakeup > model->watermark)
		model->wakeup += model->watermark;
	if (tell) {
		model_put(model, at, &lost, sizeof(lost));
		model_put(model, at + sizeof(lost), output->trailer, output->trailer_size);
		model->lost = 0;
	}
	model_put(model, at + tell, record, size);
	memcpy(&header, record, sizeof(header));
	if (header.type == PERF_RECORD_SAMPLE && output->wakeup_events && ++model->events >= output->wakeup_events) {
		model->events -= output->wakeup_events;
		model->wakeup++;
	}
	if (model->wakeup != stamp)
		model->poll = true;
	return true;
}

/* docs/abi.md 2.3: once. */
static inline bool model_poll(struct model *model)
{
	bool poll = model->poll;

	model->poll = false;
	return poll;
}

#endif
