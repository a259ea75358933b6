/* off_cpu.h - names of the events of record --off-cpu and --wakers, which its files and their views agree on.
 *
 * record_events.c and preload.c make events by these names, profile_input.c looks for them.
 */
#ifndef PERFRING_TOOLS_OFF_CPU_H
#define PERFRING_TOOLS_OFF_CPU_H

#define TOOL_OFF_CPU "offcpu-time"         /* intervals: of --soft, and made of the kernel's switches */
#define TOOL_WAKING "sched:sched_waking" /* of --wakers */

#endif
