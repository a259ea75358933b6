# forgotten.awk - fails the build where a row of a command's options has no case.
#
#     awk -f forgotten.awk *.[ch]
#
# A row without a case would do nothing; tool_options_forgotten says so, but only when that option is given.  The case of a
# row is in its own file.  The case of a header's row is in the source of the same name, in a function that each command which has
# these rows must call.

BEGIN {
	ROW = "\\{ ?('.'|[A-Z][A-Z0-9_]*), ?(\"[a-z0-9-]+\"|NULL)"
}

# Where the cases of a file's rows are.
function cases(file) {
	sub(/\.h$/, ".c", file)
	sub(/record_rows\.c$/, "record_options.c", file)
	return file
}

# top has a table of the options that it hands on.
function handles(file, token) {
	return index(text[file], "case " token ":") || index(text[file], "found == " token ")") ||
		index(text[file], "{" token ", \"-")
}

function wrong(what) {
	print "forgotten.awk: " what
	failed = 1
}

{
	goes_on = sub(/\\$/, "")
	gsub(/[ \t]+/, " ")
	text[FILENAME] = text[FILENAME] " " $0
	if ($0 ~ /struct tool_option [A-Z_]*ROWS\[\] = /)
		is_table = 1
	if ($0 ~ /define [A-Z_]+_ROWS?[ (]/)
		is_macro = 1
	if (is_table || is_macro)
		table[FILENAME] = table[FILENAME] " " $0
	is_table = is_table && $0 !~ /^};/
	is_macro = is_macro && goes_on
}

END {
	for (file in table) {
		left = table[file]
		gsub(/  +/, " ", left)
		while (match(left, ROW)) {
			token = substr(left, RSTART, RLENGTH)
			left = substr(left, RSTART + RLENGTH)
			gsub(/^\{ ?|, ?("|N).*/, "", token)
			rest = left
			if (match(left, ROW))
				rest = substr(left, 1, RSTART - 1)
			rows++
			# neither what is refused nor the name of the input comes to a case
			if (rest !~ /\.refused = |\.is_input = /&& !handles(cases(file), token))
				wrong(file ": the option " token " has no case in " cases(file))
		}
		left = table[file]
		while (file !~ /\.h$/ && match(left, /TOOL_[A-Z]+_ROWS/)) {
			name = tolower(substr(left, RSTART, RLENGTH))
			left = substr(left, RSTART + RLENGTH)
			sub(/_rows$/, "_take(", name)
			if (!index(text[cases(file)], name))
				wrong(file ": its options need a call of " name ") in " cases(file))
		}
	}
	if (rows < 250)
		wrong("found " rows + 0 " rows of options: it cannot read the tables")
	exit failed
}
