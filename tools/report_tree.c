/* report_tree.c - the call tree of a report's row, as text.
 *
 *     |-- 60.00% main                  60 % of all samples (fractal: of the row's) passed through main,
 *     |   run                          all of them through run,
 *     |   |-- 40.00% sum               40 % through sum
 *     |   `-- 19.50% copy
 *     `-- 1.00% start
 *
 * Branches below the threshold are not drawn; how many there are is said.
 *
 * report_print.c and report_json.c call it for each row that is shown.  call_tree.h has the nodes, report_callers.c builds them.
 */
#include <inttypes.h>
#include <stdlib.h>
#include "json.h"
#include "report.h"

enum {
	INDENT = 12, /* columns */
	STEP = 4,
	PREFIX = INDENT + STEP * (TOOL_TREE_DEPTH_MAX + 1),
	NUMBER = 32,
};

struct drawing {
	struct tool_report *report;
	const struct tool_tree *tree;
	double total;   /* of all samples of the event */
	uint64_t lines; /* printed */
	uint64_t small; /* branches below the threshold */
	uint64_t over;  /* beyond the bound of branches, or of lines */
	char prefix[PREFIX + 1];
};

/* A node's share, in percent, of all, or of what it is a branch of. */
static double share_of(const struct drawing *drawing, const struct tool_tree_node *node, uint64_t weight)
{
	double of = drawing->total;

	if (drawing->report->graph.print == TOOL_REPORT_FRACTAL)
		of = (double)drawing->tree->nodes[node->parent].weight;
	return of > 0 ? 100.0 * (double)weight / of : 0;
}

static bool is_drawn(const struct drawing *drawing, const struct tool_tree_node *node)
{
	return share_of(drawing, node, node->weight) >= drawing->report->graph.threshold;
}

static void put_value(const struct drawing *drawing, const struct tool_tree_node *node, uint64_t weight,
		      uint64_t samples)
{
	double share;

	switch (drawing->report->graph.value) {
	case TOOL_REPORT_PERIODS:
		printf("%" PRIu64 " ", weight);
		break;
	case TOOL_REPORT_COUNTS:
		printf("%" PRIu64 " ", samples);
		break;
	default:
		share = share_of(drawing, node, weight);
		printf("%s%.2f%%%s ", tool_report_colour(drawing->report, share), share,
		       tool_report_no_colour(drawing->report, share));
		break;
	}
}

static void put_name(const struct drawing *drawing, const struct tool_tree_node *node)
{
	struct tool_report_frame frame;

	tool_report_callers_frame(drawing->report, node->frame, &frame);
	if (frame.name) {
		tool_print(stdout, frame.name, 0, false);
		if (frame.is_inlined)
			fputs(" (inlined)", stdout);
		return;
	}
	printf("%#" PRIx64 " [", frame.address);
	tool_print(stdout, frame.object ? tool_filter_short_name(frame.object) : "unknown", 0, false);
	putchar(']');
}

/* Whether all of a node goes into one branch, which is drawn below it without a share. */
static const struct tool_tree_node *only_branch(const struct drawing *drawing, const struct tool_tree_node *node)
{
	const struct tool_tree_node *first = &drawing->tree->nodes[node->first];

	return node->first && first->weight == node->weight ? first : NULL;
}

static void put_json_text(const char *text)
{
	if (text)
		tool_json_text(stdout, text);
	else
		fputs("null", stdout);
}

static bool has_space(struct drawing *drawing)
{
	if (drawing->lines < TOOL_REPORT_LINES_MAX) {
		drawing->lines++;
		return true;
	}
	drawing->over++;
	return false;
}

static void draw(struct drawing *drawing, const struct tool_tree_node *node, unsigned width);

/* A branch, and what it goes into as a whole, below one another. */
static void draw_branch(struct drawing *drawing, const struct tool_tree_node *node, unsigned width, bool is_last)
{
	if (!has_space(drawing))
		return;
	fwrite(drawing->prefix, 1, width, stdout);
	fputs(is_last ? "`-- " : "|-- ", stdout);
	put_value(drawing, node, node->weight, node->samples);
	put_name(drawing, node);
	putchar('\n');
	memcpy(drawing->prefix + width, is_last ? "    " : "|   ", STEP);
	width += STEP;
	for (const struct tool_tree_node *one = node; (one = only_branch(drawing, one)); node = one) {
		if (!has_space(drawing))
			return;
		fwrite(drawing->prefix, 1, width, stdout);
		put_name(drawing, one);
		putchar('\n');
	}
	draw(drawing, node, width);
}

/* The branches of a node.  Recursion: at most TOOL_TREE_DEPTH_MAX calls. */
static void draw(struct drawing *drawing, const struct tool_tree_node *node, unsigned width)
{
	const struct tool_tree_node *nodes = drawing->tree->nodes;
	uint64_t limit = drawing->report->graph.limit, shown = 0;

	for (uint32_t at = node->first; at; at = nodes[at].next) {
		uint32_t next = nodes[at].next;

		if (!is_drawn(drawing, &nodes[at])) {
			drawing->small++;
			continue;
		}
		if (limit && shown == limit) {
			drawing->over++;
			continue;
		}
		shown++;
		draw_branch(drawing, &nodes[at], width,
			    !next || !is_drawn(drawing, &nodes[next]) || (limit && shown == limit));
	}
}

static int compare_order(const void *a, const void *b, void *of)
{
	const struct tool_tree_node *nodes = of;
	uint32_t one = nodes[*(const uint32_t *)a].order, other = nodes[*(const uint32_t *)b].order;

	return one < other ? -1 : one > other;
}

/* Each path whose own share is large enough: "12.00% main;run;sum". */
static void fold(struct drawing *drawing)
{
	const struct tool_tree *tree = drawing->tree;
	uint32_t path[TOOL_TREE_DEPTH_MAX], count, *order = tool_allocate(NULL, tree->count, sizeof(*order));

	for (uint32_t i = 0; i < tree->count; i++)
		order[i] = i;
	qsort_r(order, tree->count, sizeof(*order), compare_order, tree->nodes);
	for (uint32_t i = 1; i < tree->count; i++) {
		const struct tool_tree_node *node = &tree->nodes[order[i]];

		if (!node->self)
			continue;
		if (share_of(drawing, node, node->self) < drawing->report->graph.threshold) {
			drawing->small++;
			continue;
		}
		if (!has_space(drawing))
			continue;
		count = 0;
		for (uint32_t at = order[i]; at != TOOL_TREE_ROOT; at = tree->nodes[at].parent)
			path[count++] = at;
		put_value(drawing, node, node->self, node->self_samples);
		while (count--) {
			put_name(drawing, &tree->nodes[path[count]]);
			if (count)
				putchar(';');
		}
		putchar('\n');
	}
	free(order);
}

static void put_rest(const struct drawing *drawing)
{
	if (drawing->small)
		printf("%*s(%" PRIu64 " %s below %g%% %s not drawn)\n", INDENT, "", drawing->small,
		       drawing->small == 1 ? "branch" : "branches", drawing->report->graph.threshold,
		       drawing->small == 1 ? "is" : "are");
	if (drawing->over)
		printf("%*s(%" PRIu64 " more not drawn)\n", INDENT, "", drawing->over);
	if (drawing->tree->cut)
		printf("%*s(%" PRIu64 " %s cut: %d frames are drawn)\n", INDENT, "", drawing->tree->cut,
		       drawing->tree->cut == 1 ? "stack" : "stacks", TOOL_TREE_DEPTH_MAX);
	if (drawing->tree->crowded)
		printf("%*s(%" PRIu64 " %s cut: a tree has %d branches)\n", INDENT, "", drawing->tree->crowded,
		       drawing->tree->crowded == 1 ? "stack" : "stacks", TOOL_TREE_NODES_MAX);
}

/* Makes the tree of a row that is not below the threshold.  Returns false: none is drawn. */
static bool begin(struct drawing *drawing, struct tool_report *report, const struct tool_report_row *row)
{
	uint64_t weight = report->cumulates ? row->cells[0].children : row->cells[0].weight;
	double least;

	*drawing = (struct drawing){.report = report, .total = (double)report->events[row->event].weight};
	memset(drawing->prefix, ' ', INDENT);
	if ((!row->paths && !row->parts) || 100.0 * (double)weight < report->graph.threshold * drawing->total)
		return false;
	/* a little below the threshold, for is_drawn may round otherwise; where all branches are looked at, 0 */
	least = report->graph.print == TOOL_REPORT_GRAPH ? drawing->total * report->graph.threshold / 101 : 0;
	drawing->tree = tool_report_callers_tree(report, row, (uint64_t)least);
	return drawing->tree;
}

/* Recursion: at most TOOL_TREE_DEPTH_MAX calls. */
static void list(struct drawing *drawing, const struct tool_tree_node *node)
{
	const struct tool_tree_node *nodes = drawing->tree->nodes;
	uint64_t limit = drawing->report->graph.limit, shown = 0;
	struct tool_report_frame frame;

	for (uint32_t at = node->first; at; at = nodes[at].next) {
		if (!is_drawn(drawing, &nodes[at]) || (limit && shown == limit) ||
		    drawing->lines == TOOL_REPORT_LINES_MAX)
			break;
		shown++;
		tool_report_callers_frame(drawing->report, nodes[at].frame, &frame);
		printf("%s{\"depth\":%" PRIu32 ",\"share\":%.6f,\"samples\":%" PRIu64 ",\"weight\":\"%" PRIu64
		       "\",\"self\":\"%" PRIu64 "\",\"address\":\"%#" PRIx64 "\",\"inlined\":%s,\"function\":",
		       drawing->lines++ ? "," : "", nodes[at].depth - 1,
		       share_of(drawing, &nodes[at], nodes[at].weight), nodes[at].samples, nodes[at].weight,
		       nodes[at].self, frame.address, frame.is_inlined ? "true" : "false");
		put_json_text(frame.name);
		printf(",\"object\":");
		put_json_text(frame.object);
		putchar('}');
		list(drawing, &nodes[at]);
	}
}

void tool_report_tree_json(struct tool_report *report, const struct tool_report_row *row)
{
	struct drawing drawing;

	if (begin(&drawing, report, row))
		list(&drawing, &drawing.tree->nodes[TOOL_TREE_ROOT]);
}

void tool_report_tree_print(struct tool_report *report, const struct tool_report_row *row)
{
	bool is_folded = report->graph.print == TOOL_REPORT_FOLDED;
	struct drawing drawing;

	if (!begin(&drawing, report, row))
		return;
	if (is_folded)
		fold(&drawing);
	else
		draw(&drawing, &drawing.tree->nodes[TOOL_TREE_ROOT], INDENT);
	if (!report->is_quiet)
		put_rest(&drawing);
	if (!is_folded)
		putchar('\n');
}
