/* absent_test.c - what could not be opened: each close takes it, and the next one of nothing is -EINVAL. */
#include "test.h"

#include <unistd.h>
#include <perfring/aux.h>
#include <perfring/callchain.h>
#include <perfring/command.h>
#include <perfring/count.h>
#include <perfring/cpus.h>
#include <perfring/event.h>
#include <perfring/feature.h>
#include <perfring/file.h>
#include <perfring/file_writer.h>
#include <perfring/jit.h>
#include <perfring/maps.h>
#include <perfring/stacks.h>
#include <perfring/merge.h>
#include <perfring/reader.h>
#include <perfring/session.h>
#include <perfring/set.h>
#include <perfring/shared.h>
#include <perfring/snapshot.h>
#include <perfring/split.h>
#include <perfring/writer.h>

Test(absent, close_takes_null)
{
	perfring_aux_close(NULL);
	perfring_command_close(NULL);
	perfring_counts_close(NULL);
	perfring_cpus_close(NULL);
	perfring_file_close(NULL);
	perfring_file_writer_close(NULL);
	perfring_deferral_close(NULL);
	perfring_event_names_close(NULL);
	perfring_events_close(NULL);
	perfring_format_set_close(NULL);
	perfring_jit_close(NULL);
	perfring_stacks_close(NULL);
	perfring_maps_close(NULL);
	perfring_merge_close(NULL);
	perfring_reader_close(NULL);
	perfring_ring_close(NULL);
	perfring_session_close(NULL);
	perfring_set_close(NULL);
	perfring_shared_close(NULL);
	perfring_snapshot_close(NULL);
	perfring_split_close(NULL);
	perfring_target_close(NULL);
	perfring_writer_close(NULL);
}

Test(absent, next_of_nothing)
{
	const struct perf_event_header *record = NULL;
	struct perfring_layout_member member;
	struct perfring_layout_walk walk = {.part = NULL};
	const struct perfring_format *format;
	struct perfring_event_listed listed;
	struct perfring_aux_piece piece;
	struct perfring_span span;
	struct perfring_item item;
	uint64_t position = 0, size;
	uint32_t session;
	char byte;

	cr_assert_eq(perfring_file_next(NULL, &item), -EINVAL);
	cr_assert_eq(perfring_file_read_trace(NULL, &byte, 1), -EINVAL);
	cr_assert_eq(perfring_layout_next(NULL, &member), -EINVAL);
	cr_assert_eq(perfring_layout_next(&walk, &member), -EINVAL);
	cr_assert_eq(perfring_session_next(NULL, &item), -EINVAL);
	cr_assert_eq(perfring_session_next_span(NULL, &span), -EINVAL);
	cr_assert_eq(perfring_session_next_aux(NULL, &piece), -EINVAL);
	cr_assert_eq(perfring_merge_next(NULL, &item, &session), -EINVAL);
	cr_assert_eq(perfring_deferral_next(NULL, &item), -EINVAL);
	cr_assert_eq(perfring_split_next(NULL, &format), -EINVAL);
	cr_assert_null(format);
	cr_assert_eq(perfring_event_names_next(NULL, &listed), -EINVAL);
	cr_assert_eq(perfring_snapshot_next(NULL, &record), -EINVAL);
	cr_assert_eq(perfring_snapshot_previous(NULL, &record), -EINVAL);
	cr_assert_eq(perfring_snapshot_unfinished(NULL, &position, &record, &size), -EINVAL);
	cr_assert_null(record);
	cr_assert_null(perfring_set_next(NULL, NULL));
}

/* As perfring_file_open leaves it after -ENOMEM, and its caller then tells of the fault. */
Test(absent, fault_of_no_file)
{
	struct perfring_fault fault = perfring_file_fault(NULL);

	cr_assert_eq(fault.at, 0);
	cr_assert_null(fault.what);
	cr_assert_eq(perfring_file_part(NULL), 0);
}

/* A file that could not be opened has nothing, whatever it is asked for. */
Test(absent, file_that_was_not_opened)
{
	struct perfring_file_compressed compression;
	struct perfring_file *data;
	struct perfring_item item;
	uint64_t id, size;
	char byte;

	cr_assert_eq(perfring_file_open(&data, "/nowhere/perf.data"), -ENOENT);
	cr_assert_eq(perfring_file_next(data, &item), -ENOENT);
	cr_assert_eq(perfring_file_read_trace(data, &byte, 1), 0);
	cr_assert_eq(perfring_file_position(data), 0);
	cr_assert_eq(perfring_file_part(data), 0);
	cr_assert_null(perfring_file_fault(data).what);
	cr_assert_not(perfring_file_is_finished(data));
	cr_assert_eq(perfring_file_lost_features(data), 0);
	cr_assert_eq(perfring_file_feature_error(data), 0);
	perfring_file_compression(data, &compression);
	cr_assert_eq(compression.compressed, 0);
	cr_assert_not(perfring_file_is_pipe(data));
	cr_assert_not(perfring_file_is_foreign(data));
	cr_assert_eq(perfring_file_late(data), 0);
	cr_assert_eq(perfring_format_set_count(perfring_file_formats(data)), 0);
	cr_assert_null(perfring_file_attr(data, 0));
	cr_assert_null(perfring_file_event_name(data, 0));
	cr_assert_eq(perfring_file_event_id(data, 0, 0, &id), 0);
	cr_assert_null(perfring_file_feature(data, PERFRING_FEATURE_HOSTNAME, &size));
	cr_assert_null(perfring_file_string(data, PERFRING_FEATURE_HOSTNAME));
	perfring_file_close(data);
}

/* Nothing is left in what the caller brought, of whatever was there before, that its close would take for its own. */
Test(absent, closed_after_an_open_that_failed)
{
	struct perfring_ring closed = {.fd = -1}, ring;
	struct perfring_snapshot snapshot;
	struct perfring_command command;
	struct perfring_reader reader;
	struct perfring_aux_area aux;
	unsigned char small[64] = {0};
	const struct perf_event_header *record;
	char *const none[] = {NULL};

	memset(&ring, 0xff, sizeof(ring));
	cr_assert_eq(perfring_ring_share(&ring, &closed), -EINVAL);
	perfring_ring_close(&ring);
	memset(&ring, 0xff, sizeof(ring));
	cr_assert_eq(perfring_ring_wrap(&ring, small, sizeof(small)), -EINVAL);
	perfring_ring_close(&ring);
	memset(&ring, 0xff, sizeof(ring));
	cr_assert_lt(perfring_ring_attach(&ring, -1, 0, NULL), 0);
	perfring_ring_close(&ring);
	memset(&ring, 0xff, sizeof(ring));
	cr_assert_lt(perfring_ring_map(&ring, -1, 1, 0), 0);
	perfring_ring_close(&ring);
	memset(&ring, 0xff, sizeof(ring));
	cr_assert_eq(perfring_ring_create(&ring, &(struct perfring_ring_options){.pages = 3}), -EINVAL);
	perfring_ring_close(&ring);

	memset(&reader, 0xff, sizeof(reader));
	cr_assert_eq(perfring_reader_open(&reader, &closed, 0), -EINVAL);
	perfring_reader_close(&reader);
	memset(&snapshot, 0xff, sizeof(snapshot));
	cr_assert_eq(perfring_snapshot_take(&snapshot, &closed, 1), -EINVAL);
	cr_assert_eq(perfring_snapshot_next(&snapshot, &record), 0);
	perfring_snapshot_close(&snapshot);
	memset(&aux, 0xff, sizeof(aux));
	cr_assert_eq(perfring_aux_open(&aux, &closed, 0), -EINVAL);
	perfring_aux_close(&aux);
	memset(&command, 0xff, sizeof(command));
	cr_assert_eq(perfring_command_open(&command, none), -EINVAL);
	perfring_command_close(&command);
}
