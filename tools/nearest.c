/* nearest.c - which of many names a mistyped word may have meant.
 *
 * Counts the changes of one letter between two words; words above TOOL_NEAREST_MAX letters are not compared.
 */
#include <stdio.h>
#include <string.h>
#include "nearest.h"

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* The least number of changes that make one word the other: a letter more, less, another one, or two exchanged.  rows: the last three
 * rows of the table of distances between beginnings; rows[2] is that of i. */
static unsigned distance(const char *a, size_t length, const char *b, size_t other)
{
	unsigned rows[3][TOOL_NEAREST_MAX + 1];

	for (size_t j = 0; j <= other; j++)
		rows[2][j] = (unsigned)j;
	for (size_t i = 1; i <= length; i++) {
		memcpy(rows[0], rows[1], sizeof(rows[0]));
		memcpy(rows[1], rows[2], sizeof(rows[1]));
		rows[2][0] = (unsigned)i;
		for (size_t j = 1; j <= other; j++) {
			unsigned best = rows[1][j - 1] + (a[i - 1] != b[j - 1]);

			best = least(best, least(rows[1][j], rows[2][j - 1]) + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				best = least(best, rows[0][j - 2] + 1);
			rows[2][j] = best;
		}
	}
	return rows[2][other];
}

void tool_nearest_offer(struct tool_nearest *nearest, const char *word, const char *name)
{
	size_t length = strlen(word), other = strlen(name);
	unsigned allowed = length < 6 ? 1 : (unsigned)length / 3, between;

	if (length < 2 || other < 2 || length > TOOL_NEAREST_MAX || other > TOOL_NEAREST_MAX)
		return;
	if (nearest->distance)
		allowed = least(allowed, nearest->distance - 1);
	if ((length > other ? length - other : other - length) > allowed)
		return;
	between = distance(word, length, name, other);
	if (!between || between > allowed)
		return;
	nearest->distance = between;
	memcpy(nearest->name, name, other + 1);
}

const char *tool_nearest_hint(struct tool_nearest *nearest)
{
	nearest->hint[0] = 0;
	if (nearest->distance)
		snprintf(nearest->hint, sizeof(nearest->hint), ": did you mean '%s%s'?",
			 nearest->before ? nearest->before : "", nearest->name);
	return nearest->hint;
}
