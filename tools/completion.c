/* completion.c - completion for shells: scripts of bash and zsh, which ask the command that is completed, and what it answers.
 *
 * Called by perfring.c for `perfring help --complete`.  Commands and options are the rows of the description (options_text.c prints
 * them); here are the scripts, and the values of an option, which are found in the text that describes it.
 */
#include <ctype.h>
#include <stdlib.h>
#include <perfring/event.h>
#include "options_text.h"

/* Both scripts ask `perfring help --complete [COMMAND [OPTION]]` of the command as it was typed, so that they need not match its
 * version.  Between their two parts stand the commands that run a command line of the user's. */
static const char BASH[] =
	"# perfring - completion for bash; made by `perfring help --complete bash`.\n"
	"_perfring()\n"
	"{\n"
	"\tlocal line=${COMP_LINE:0:COMP_POINT} tool=$1 command= option= begun= file= list= prefix= rows part spelt kind value word cur prev i=2\n"
	"\tlocal -a words names=()\n"
	"\tlocal -A kinds=() values=()\n"
	"\tCOMPREPLY=()\n"
	"\tread -ra words <<<\"$line\"\n"
	"\t[[ $line != *[[:blank:]] ]] || words+=(\"\")\n"
	"\t((${#words[@]} > 1)) || return 0\n"
	"\tcur=${words[-1]} prev=${words[-2]}\n"
	"\t((${#words[@]} == 2)) || command=${words[1]}\n"
	"\tcase $command in\n"
	"\thelp) command= ;;\n"
	"\t-* | version) return 0 ;;\n"
	"\tesac\n"
	"\trows=$(\"$tool\" help --complete $command 2>/dev/null) || return 0\n"
	"\tif [[ $command && ${#words[@]} -gt 3 && ${words[2]} != -* ]] && # stat report\n"
	"\t\tpart=$(\"$tool\" help --complete \"$command\" \"${words[2]}\" 2>/dev/null); then\n"
	"\t\trows=$part command+=\" ${words[2]}\" i=3\n"
	"\tfi\n"
	"\twhile IFS=$'\\t' read -r spelt kind value _; do\n"
	"\t\tfor word in ${spelt//,/ }; do\n"
	"\t\t\tkinds[$word]=$kind values[$word]=$value\n"
	"\t\t\tnames+=(\"$word\")\n"
	"\t\tdone\n"
	"\tdone <<<\"$rows\"\n"
	"\tif [[ ! $command ]]; then\n"
	"\t\t((${#words[@]} > 2)) || names+=(help version)\n"
	"\t\tfor word in \"${names[@]}\"; do\n"
	"\t\t\t[[ $word != \"$cur\"* || ($word == -* && $cur != -*) ]] || COMPREPLY+=(\"$word\")\n"
	"\t\tdone\n"
	"\t\treturn 0\n"
	"\tfi\n"
	"\tfor ((; i < ${#words[@]} - 1; i++)); do # where the user's own command begins\n"
	"\t\tword=${words[i]}\n"
	"\t\tif [[ $word == -- || $word != -* ]]; then\n"
	"\t\t\t[[ $perfring_runs != *\" $command \"* ]] || begun=yes\n"
	"\t\t\tbreak\n"
	"\t\tfi\n"
	"\t\t[[ ${kinds[$word]:-} != value ]] || ((++i))\n"
	"\tdone\n"
	"\tif [[ ! $begun ]]; then\n"
	"\t\tif [[ $cur == --*=* ]]; then\n"
	"\t\t\toption=${cur%%=*} cur=${cur#*=}\n"
	"\t\telif [[ $prev == -* && ${kinds[$prev]:-} == value ]]; then\n"
	"\t\t\toption=$prev\n"
	"\t\telif [[ $cur == -* ]]; then\n"
	"\t\t\tfor word in \"${names[@]}\"; do\n"
	"\t\t\t\t[[ $word != \"$cur\"* ]] || COMPREPLY+=(\"$word\")\n"
	"\t\t\tdone\n"
	"\t\t\treturn 0\n"
	"\t\tfi\n"
	"\tfi\n"
	"\tif [[ $option ]]; then\n"
	"\t\tlist=$(\"$tool\" help --complete $command \"$option\" 2>/dev/null)\n"
	"\t\tprefix=${cur%\"${cur##*,}\"}\n"
	"\t\twhile [[ $list ]] && read -r word; do\n"
	"\t\t\tword=$prefix$word\n"
	"\t\t\t[[ $word != \"$cur\"* ]] || COMPREPLY+=(\"$word\")\n"
	"\t\tdone <<<\"$list\"\n"
	"\t\tif [[ $cur == *:* && $COMP_WORDBREAKS == *:* ]]; then # what stands before it is not replaced\n"
	"\t\t\tprefix=${cur%\"${cur##*:}\"}\n"
	"\t\t\tCOMPREPLY=(\"${COMPREPLY[@]#\"$prefix\"}\")\n"
	"\t\tfi\n"
	"\t\t[[ ! $list && ${values[$option]:-} =~ FILE|FOLDER|DIR|OLD ]] || return 0\n"
	"\tfi\n"
	"\tcompopt -o filenames 2>/dev/null\n"
	"\t[[ $option || $begun || $perfring_runs != *\" $command \"* ]] || mapfile -t COMPREPLY < <(compgen -c -- \"$cur\")\n"
	"\twhile IFS= read -r file; do\n"
	"\t\tCOMPREPLY+=(\"$file\")\n"
	"\tdone < <(compgen -f -- \"$cur\")\n"
	"\treturn 0\n"
	"}\n"
	"perfring_runs=\"";
static const char BASH_END[] = " \"\n"
			       "complete -F _perfring perfring\n";

static const char ZSH[] =
	"#compdef perfring\n"
	"# _perfring - completion for zsh; made by `perfring help --complete zsh`.\n"
	"_perfring()\n"
	"{\n"
	"\temulate -L zsh\n"
	"\tlocal tool=${(Q)words[1]} command= option= begun= row rows part word runs=$perfring_runs\n"
	"\tlocal -a parts names found\n"
	"\tlocal -A kinds takes\n"
	"\tlocal -i i=3\n"
	"\t(( CURRENT < 3 )) || command=$words[2]\n"
	"\tcase $command in\n"
	"\thelp) command= ;;\n"
	"\t-*|version) return 1 ;;\n"
	"\tesac\n"
	"\trows=$($tool help --complete $command 2>/dev/null)\n"
	"\tif [[ -n $command && $CURRENT -gt 3 && $words[3] != -* ]] && # stat report\n"
	"\t\tpart=$($tool help --complete $command $words[3] 2>/dev/null); then\n"
	"\t\trows=$part command+=\" $words[3]\" i=4\n"
	"\tfi\n"
	"\tfor row in ${(f)rows}; do\n"
	"\t\tparts=(\"${(@ps:\\t:)row}\")\n"
	"\t\tfor word in ${(s:,:)parts[1]}; do\n"
	"\t\t\tkinds[$word]=$parts[2]\n"
	"\t\t\ttakes[$word]=\"${parts[3]}: ${parts[4]}\"\n"
	"\t\t\tnames+=($word)\n"
	"\t\tdone\n"
	"\tdone\n"
	"\tif [[ -z $command ]]; then\n"
	"\t\t(( CURRENT > 2 )) || names+=(help version)\n"
	"\t\t[[ $PREFIX == -* ]] || names=(${names:#-*})\n"
	"\t\tcompadd -- $names\n"
	"\t\treturn\n"
	"\tfi\n"
	"\tfor (( ; i < CURRENT; i++ )); do # where the user's own command begins\n"
	"\t\tword=$words[i]\n"
	"\t\tif [[ $word == -- || $word != -* ]]; then\n"
	"\t\t\t[[ $runs != *\" $command \"* ]] || begun=yes\n"
	"\t\t\t[[ $word != -- ]] || (( i++ ))\n"
	"\t\t\tbreak\n"
	"\t\tfi\n"
	"\t\t[[ $kinds[$word] != value ]] || (( i++ ))\n"
	"\tdone\n"
	"\tif [[ -n $begun ]] && (( i < CURRENT )); then\n"
	"\t\tshift $(( i - 1 )) words\n"
	"\t\t(( CURRENT -= i - 1 ))\n"
	"\t\t_normal\n"
	"\t\treturn\n"
	"\tfi\n"
	"\tif [[ -z $begun && $PREFIX == --*=* ]]; then\n"
	"\t\toption=${PREFIX%%=*}\n"
	"\t\tcompset -P '*='\n"
	"\telif [[ -z $begun && $words[CURRENT-1] == -* && $kinds[$words[CURRENT-1]] == value ]]; then\n"
	"\t\toption=$words[CURRENT-1]\n"
	"\telif [[ -z $begun && $PREFIX == -* ]]; then\n"
	"\t\tcompadd -- $names\n"
	"\t\treturn\n"
	"\tfi\n"
	"\tif [[ -n $option ]]; then\n"
	"\t\tfound=(${(f)\"$($tool help --complete ${=command} $option 2>/dev/null)\"})\n"
	"\t\tif (( $#found )); then\n"
	"\t\t\tcompset -P '*,'\n"
	"\t\t\tcompadd -- $found\n"
	"\t\telif [[ $takes[$option] == *(FILE|FOLDER|DIR|OLD)*:* ]]; then\n"
	"\t\t\t_files\n"
	"\t\telse\n"
	"\t\t\t_message \"$takes[$option]\"\n"
	"\t\tfi\n"
	"\t\treturn\n"
	"\tfi\n"
	"\tif [[ $runs == *\" $command \"* ]]; then\n"
	"\t\t_command_names -e\n"
	"\tfi\n"
	"\t_files\n"
	"}\n"
	"typeset -g perfring_runs=\"";
static const char ZSH_END[] = " \"\n"
			      "_perfring \"$@\"\n";

bool tool_completion_script_print(const char *shell, const struct tool_command *const *commands)
{
	bool is_bash = !strcmp(shell, "bash");

	if (!is_bash && strcmp(shell, "zsh"))
		return false;
	fputs(is_bash ? BASH : ZSH, stdout);
	for (size_t i = 0; commands[i]; i++)
		if (commands[i]->has_command)
			printf(" %s", commands[i]->name);
	printf(" stat record"); /* beside stat report, which runs none */
	fputs(is_bash ? BASH_END : ZSH_END, stdout);
	return true;
}

/* ---- values ---- */

/* Prints what --help lists below the options: one a line. */
static void print_names(const struct tool_command *command)
{
	const char *name;

	for (size_t i = 0; (name = command->names(i)); i++)
		printf("%s\n", name);
}

/* Prints all events that -e can name here. */
static void print_events(void)
{
	struct perfring_event_names *names;
	struct perfring_event_listed name;

	if (perfring_event_names_open(&names, NULL, false))
		return;
	while (perfring_event_names_next(names, &name) == 1) {
		if (name.name)
			printf("%s\n", name.name);
		if (name.alias && *name.alias)
			printf("%s\n", name.alias);
	}
	perfring_event_names_close(names);
}

/* Prints the values of "no|all|task": the words in small letters.  Returns whether there was one. */
static bool print_alternatives(const char *value)
{
	bool found = false;

	while (*value) {
		size_t length = strcspn(value, "|"), word = 0;

		while (word < length && (islower((unsigned char)value[word]) || value[word] == '-'))
			word++;
		if (word && (word == length || strchr("[:,", value[word]))) {
			printf("%.*s%s\n", (int)word, value, value[word] == ':' ? ":" : "");
			found = true;
		}
		value += length + (value[length] == '|');
	}
	return found;
}

/* Prints the words of "a form: data, ring or records", or of "period or samples"; nothing of another text. */
static void print_words(const char *takes)
{
	const char *colon = strstr(takes, ": "), *begin = colon ? colon + 2 : takes, *last = strstr(begin, " or ");
	size_t word;

	if (!last || strpbrk(last + 4, ", "))
		return;
	for (bool prints = false;; prints = true) { /* the first pass checks that each is one word */
		for (const char *at = begin; at <= last; at += word + 2) {
			word = strcspn(at, ", ");
			if (at + word > last || (at + word < last && strncmp(at + word, ", ", 2)))
				return;
			if (prints)
				printf("%.*s\n", (int)word, at);
		}
		if (prints)
			break;
	}
	printf("%s\n", last + 4);
}

static const struct tool_option *row_of(const struct tool_command *command, const char *spelling)
{
	const struct tool_option *row = command->options;

	for (; !tool_option_is_last(row); row++) {
		if (row->heading || row->refused)
			continue;
		if (!strncmp(spelling, "--", 2) ? row->name && !strcmp(spelling + 2, row->name)
						: spelling[0] == '-' && spelling[1] == row->found && !spelling[2])
			return row;
	}
	return NULL;
}

bool tool_completion_values_print(const struct tool_command *command, const char *spelling)
{
	const struct tool_option *row = row_of(command, spelling);

	if (!row)
		return false;
	if (!row->value || row->max)
		return true;
	if (!strncmp(row->value, "EVENT", 5))
		print_events();
	else if (command->names && strstr(row->value, "LIST") && strstr(row->takes, command->names_heading))
		print_names(command);
	else if (!print_alternatives(row->value))
		print_words(row->takes);
	return true;
}
