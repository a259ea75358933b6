/* json_out.h - texts of JSON.
 *
 * For the writers of profile/ whose format is JSON.  No memory; errors of writing are in the stream.
 */
#ifndef PERFRING_PROFILE_JSON_OUT_H
#define PERFRING_PROFILE_JSON_OUT_H

#include <stdio.h>

/* The text in quotes; NULL: null.  Bytes that are no UTF-8 become U+FFFD. */
void perfring__json_text(FILE *out, const char *text);

/* The same in a script of an HTML page, which no text ends: '<' is written as an escape. */
void perfring__json_page_text(FILE *out, const char *text);

#endif
