/* inlines.c - one linkable copy of each public inline, for callers that are not C.
 *
 * Everywhere else the same functions are static: the two never meet.
 */
#define PERFRING_INLINE PERFRING_API extern inline
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#include <perfring/access.h>
#include <perfring/aux.h>
#include <perfring/build_id.h>
#include <perfring/callchain.h>
#include <perfring/check.h>
#include <perfring/command.h>
#include <perfring/count.h>
#include <perfring/cpus.h>
#include <perfring/cursor.h>
#include <perfring/event.h>
#include <perfring/feature.h>
#include <perfring/file.h>
#include <perfring/file_writer.h>
#include <perfring/format.h>
#include <perfring/generate.h>
#include <perfring/layout.h>
#include <perfring/merge.h>
#include <perfring/page.h>
#include <perfring/reader.h>
#include <perfring/record.h>
#include <perfring/ring.h>
#include <perfring/rows.h>
#include <perfring/sample.h>
#include <perfring/session.h>
#include <perfring/set.h>
#include <perfring/shared.h>
#include <perfring/snapshot.h>
#include <perfring/split.h>
#include <perfring/swap.h>
#include <perfring/target.h>
#include <perfring/text.h>
#include <perfring/unwind.h>
#include <perfring/wakeup.h>
#include <perfring/writer.h>

#ifdef PERFRING_HAS_SOFT
#include <perfring/soft.h>
#endif
