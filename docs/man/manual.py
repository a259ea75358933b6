#!/usr/bin/env python3
# manual.py - the manual pages of perfring, and its completions for shells: views of the headers, the tables and the command.
#
#   man3   a page of each public header, from its comments, and an alias for each function (.so); of perfring.hpp its classes
#   man5   perfring-data, man7 perfring and perfring-ring: docs/man/*.mdoc, with tables from include/perfring/*.def
#   man1   what `perfring help --man COMMAND` prints;  completions: what `perfring help --complete bash|zsh` prints
#
# What it refuses, with the file and the line: a public function without a comment, a name of two pages.  A comment belongs to the
# declarations below it up to the next empty line.
import argparse
import os
import re
import shutil
import subprocess
import sys
import textwrap
import time

WIDTH = 78
PUBLIC = ("PERFRING_API", "PERFRING_EXPERIMENTAL", "PERFRING_INLINE", "PERFRING_FOLDED")
LIBRARY = {
    "perfring": "libperfring, pkg-config perfring",
    "perfring-profile": "libperfring-profile, pkg-config perfring-profile",
}


class Refused(Exception):
    pass


# ---- a header in pieces ----


class Piece:
    """A comment, a directive or a declaration: its text, where it is, and whether an empty line stands above it."""

    def __init__(self, kind, text, line, span, apart):
        self.kind, self.text, self.line, self.span, self.apart = kind, text, line, span, apart
        self.expanded = None  # lines, of what reads a table


def end_of_directive(text, at):
    while True:
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        line = text[at:end]
        opened = line.rfind("/*")
        if opened >= 0 and line.find("*/", opened) < 0:
            end = text.index("*/", at + opened) + 2
            at = end
            continue
        if not line.endswith("\\"):
            return end
        at = end + 1


def end_of_declaration(text, at):
    """After the semicolon, or after the body of a function."""
    depth = 0
    is_type = re.match(r"(typedef\s+)?(struct|enum|union)\b[^;(]*\{", text[at:]) is not None
    begins_line = False
    while at < len(text):
        c = text[at]
        if text.startswith("/*", at):
            at = text.index("*/", at) + 2
            continue
        if c == "#" and begins_line:
            at = end_of_directive(text, at)
            continue
        if c in "\"'":
            quote = re.compile(r"(?:[^\\%s]|\\.)*" % c).match(text, at + 1)
            at = quote.end() + 1
            begins_line = False
            continue
        if c == "\n":
            begins_line = True
        elif not c.isspace():
            begins_line = False
        if c in "({[":
            depth += 1
        elif c in ")}]":
            depth -= 1
            if c == "}" and depth == 0 and not is_type:
                return at + 1
        elif c == ";" and depth == 0:
            return at + 1
        at += 1
    return at


def pieces_of(text):
    pieces = []
    at = 0
    while True:
        blank = re.compile(r"\s*").match(text, at)
        lines = blank.group().count("\n")
        at = blank.end()
        if at == len(text):
            return pieces
        line = text.count("\n", 0, at) + 1
        if text.startswith("/*", at):
            end = text.index("*/", at) + 2
            kind = "comment"
        elif text[at] == "#":
            end = end_of_directive(text, at)
            kind = "directive"
        elif re.compile(r"PERFRING_(BEGIN|END)\b").match(text, at):
            at = re.compile(r"\w+").match(text, at).end()
            continue
        else:
            end = end_of_declaration(text, at)
            kind = "declaration"
        if kind == "comment" and lines == 0 and pieces:
            pieces[-1].text += "  " + text[at:end]
        else:
            pieces.append(Piece(kind, text[at:end], line, (at, end), lines > 1))
        at = end


def without_comments(text):
    return re.sub(r"/\*.*?\*/", " ", text, flags=re.S)


def comment_lines(comment):
    lines = comment[2:-2].rstrip().split("\n")
    lines = [lines[0]] + [re.sub(r"^\s*\*", "", line) for line in lines[1:]]
    return [re.sub(r"^ ", "", line.expandtabs(8)).rstrip() for line in lines]


# ---- declarations ----


def is_function(text):
    return text.startswith(PUBLIC) or text.startswith("PERFRING_INNER")


def plain(text):
    """A declaration in one line, without attributes and what marks it."""
    text = without_comments(text)
    text = re.sub(r"__attribute__ *\(\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)\)", "", text)
    text = re.sub(r"^(PERFRING_\w+\s+)+", "", text)
    return re.sub(r"\s+", " ", text).strip()


class Function:
    """What it returns, its name, its parameters."""

    def __init__(self, text):
        self.mark = re.match(r"\w+", text).group()
        text = plain(text)
        name = re.search(r"\b(perfring_\w+)\(", text)
        self.name = name.group(1)
        self.result = text[: name.start()].strip()
        depth = 0
        begin = at = name.end()
        self.parameters = []
        while True:
            if text[at] in "()":
                depth += 1 if text[at] == "(" else -1
            if (text[at] == "," and depth == 0) or depth < 0:
                self.parameters.append(text[begin:at].strip())
                begin = at + 1
            if depth < 0:
                return
            at += 1


def type_name(text):
    """"struct perfring_ring"; of constants without a name the first."""
    text = plain(text)
    named = re.match(r"(struct|enum|union) (\w+)", text)
    if named:
        return " ".join(named.groups())
    if text.startswith("typedef"):
        return re.search(r"(\w+) ?;$", text).group(1)
    constants = re.findall(r"\b(PERFRING_[A-Z0-9_a-z]+) *(?:[=,}]|$)", text)
    return "constants" if not constants else constants[0] if len(constants) == 1 else constants[0] + " and others"


def macro_name(text):
    return re.match(r"#\s*define\s+(\w+)", text).group(1)


class Group:
    """A comment and what it is about."""

    def __init__(self, comment):
        self.comment = comment
        self.functions, self.types, self.macros, self.tables = [], [], [], []

    def is_empty(self):
        return not (self.functions or self.types or self.macros or self.tables)

    def title(self):
        if self.functions:
            return ", ".join(function.name + "()" for function in self.functions)
        if self.types:
            return ", ".join(type_name("\n".join(piece.expanded) if piece.expanded else piece.text) for piece in self.types)
        if self.tables:  # what the first row has become
            return type_name(self.tables[0].expanded[0] + ("}" if self.tables[0].expanded[0].endswith("{") else "")) + " and others"
        return ", ".join(dict.fromkeys(macro_name(piece.text) for piece in self.macros))


class Section:
    def __init__(self, title, text):
        self.title, self.text, self.groups = title, text, []


class Header:
    def __init__(self, path):
        self.path = path
        self.stem = os.path.basename(path)[:-2]
        self.page = "perfring_" + self.stem
        with open(path, encoding="utf-8") as file:
            self.text = file.read()
        self.pieces = pieces_of(self.text)
        if not self.pieces or self.pieces[0].kind != "comment":
            raise Refused(f"{path}:1: no comment that says what it is")
        self.includes = re.findall(r"#include <perfring/(\w+)\.h>", self.text)
        self.refused = []
        self.read_heading()
        self.read_groups()

    def read_heading(self):
        lines = comment_lines(self.pieces[0].text)
        end = lines.index("") if "" in lines else len(lines)
        first = " ".join(lines[:end])
        name = self.stem + ".h - "
        if not first.startswith(name):
            raise Refused(f"{self.path}:1: does not begin with \"{name}\"")
        # Of several sentences the first says what it is.
        sentences = first[len(name) :].split(".  ", 1)
        self.what = sentences[0].rstrip(".")
        self.description = (textwrap.wrap(sentences[1], 100) if len(sentences) > 1 else []) + lines[end:]

    def functions(self):
        return [function for section in self.sections for group in section.groups for function in group.functions]

    def tells(self, piece):
        """Whether a comment that opens a section: "---- title ----"."""
        text = "\n".join(comment_lines(piece.text))
        parts = re.match(r"-{4} (.*?) -{4}\s*(.*)$", text, re.S)
        if not parts:
            return None
        title, rest = re.sub(r"\s+", " ", parts.group(1)), parts.group(2)
        sentences = title.split(".  ", 1)
        if len(sentences) > 1:
            rest = sentences[1] + "\n\n" + rest
        return Section(sentences[0], rest.rstrip().split("\n") if rest.strip() else [])

    def read_groups(self):
        self.sections = [Section(None, [])]
        self.expansions = []
        comment = group = None
        begun = None  # the first directive of a table that is read here
        for piece in self.pieces[1:]:
            if piece.kind == "comment":
                section = self.tells(piece)
                group = None
                begun = None
                comment = None if section else piece
                if section:
                    self.sections.append(section)
                continue
            text = piece.text
            if piece.kind == "directive":
                if re.match(r"#\s*include <perfring/\w+\.def>", text) and begun:
                    group = self.group_of(group, comment, piece, begun.apart)
                    group.tables.append(piece)
                    self.expansions.append(piece)
                    begun = comment = None
                elif re.match(r"#\s*define\s+PERFRING_", text):
                    table = re.match(r"PERFRING_(KIND|RECORD|MEMBER|FIELD|VALUE|ATTR_FLAG|FEATURE)\w*\(", text.split(None, 1)[1])
                    if table:
                        begun = begun or piece
                    elif not self.is_guard(text):
                        group = self.group_of(group, comment, piece, piece.apart)
                        group.macros.append(piece)
                        comment = None
                elif piece.apart:
                    group = None
                continue
            if text.startswith("static_assert"):
                group = None
                continue
            if text.startswith("PERFRING_INNER"):
                comment = group = None
                continue
            is_public = text.startswith(PUBLIC)
            if is_public and not comment and (not group or not group.comment or piece.apart):
                self.refused.append(f"{self.path}:{piece.line}: no comment says what {Function(text).name} does")
            group = self.group_of(group, comment, piece, piece.apart)
            comment = None
            if is_public:
                group.functions.append(Function(text))
            else:
                group.types.append(piece)
                if "#" in text:
                    self.expansions.append(piece)

    def group_of(self, group, comment, piece, apart):
        if group and not comment and not apart:
            return group
        group = Group(comment)
        self.sections[-1].groups.append(group)
        return group

    def is_guard(self, text):
        return macro_name(text) in ("PERFRING_%s_H" % self.stem.upper(), "PERFRING_TOO_OLD")

    def expand(self, compiler, include):
        """What the tables make of the declarations that read them, by the preprocessor."""
        if not self.expansions:
            return
        marked, at = "", 0
        for i, piece in enumerate(self.expansions):
            begin, end = piece.span
            marked += f"{self.text[at:begin]}\nPERFRING_MARK_{i}_BEGIN\n{self.text[begin:end]}\nPERFRING_MARK_{i}_END\n"
            at = end
        marked += self.text[at:]
        done = subprocess.run(
            compiler + ["-E", "-P", "-std=c11", "-D_GNU_SOURCE", "-I", include, "-x", "c", "-"],
            input=marked, capture_output=True, text=True, check=False,
        )
        if done.returncode:
            raise Refused(f"{self.path}: {' '.join(compiler)} -E: {done.stderr.strip()}")
        for i, piece in enumerate(self.expansions):
            text = re.search(rf"PERFRING_MARK_{i}_BEGIN(.*?)PERFRING_MARK_{i}_END", done.stdout, re.S).group(1)
            piece.expanded = indented(text)


def indented(text):
    """Preprocessed declarations, a member a line."""
    text = re.sub(r"\s+", " ", text).strip()
    out, line, parens, blocks = [], "", 0, []

    def flush(depth):
        nonlocal line
        if line.strip():
            out.append("    " * depth + line.strip())
        line = ""

    for c in text:
        if c == "{" and not parens:
            blocks.append("enum" in line)
            line += "{"
            flush(len(blocks) - 1)
        elif c == "}" and not parens:
            flush(len(blocks))
            blocks.pop()
            line = "}"
        elif c == ";" and not parens:
            line = line.rstrip() + ";"
            flush(len(blocks))
        elif c == "," and not parens and blocks and blocks[-1]:
            line = line.rstrip() + ","
            flush(len(blocks))
        else:
            parens += (c == "(") - (c == ")")
            line += c
    flush(len(blocks))
    return [re.sub(r" +([;,)])", r"\1", re.sub(r"\( +", "(", line)) for line in out]


def code_lines(text):
    """A declaration as it stands, in 78 columns where that is possible: a comment that is too long stands above its line."""
    text = re.sub(r" =\n\s+", " = ", text)
    rows = [["", None]]
    for part in re.split(r"(/\*.*?\*/)", text, flags=re.S):
        if part.startswith("/*"):
            words = " ".join(" ".join(comment_lines(part)).split())
            rows[-1][1] = words if rows[-1][1] is None else rows[-1][1] + "  " + words
            continue
        first, *rest = part.split("\n")
        if first.strip() and rows[-1][1] is not None:  # code after a comment begins a line
            rows.append([re.match(r"\t*", rows[-1][0]).group() + first.strip(), None])
        else:
            rows[-1][0] += first
        rows += [[line, None] for line in rest]
    lines = []
    for code, words in rows:
        tabs = re.match(r"\t*", code).end()
        indent = "    " * tabs
        code = (indent + code[tabs:]).rstrip()
        if words is None or (code and len(code) + 7 + len(words) <= WIDTH):
            lines.append(code + (f" /* {words} */" if words else ""))
            continue
        wrapped = textwrap.wrap(words, WIDTH - len(indent) - 6)
        wrapped = [("/* " if i == 0 else " * ") + line for i, line in enumerate(wrapped)]
        wrapped[-1] += " */"
        lines += [indent + line for line in wrapped] + ([code] if code else [])
    return lines


# ---- the header for C++ ----


def outline(lines):
    """A class or function of C++ as it is called: what is public, without bodies."""
    head = lines[: lines.index("{")] if "{" in lines else lines
    is_class = "{" in lines and re.match(r"(template <.*> )?(class|struct)\b", head[0])
    if not is_class:
        return without_initializers(" ".join(line.strip() for line in head)).rstrip(";") + ";"
    out = head + ["{"]
    is_public = re.search(r"\bstruct\b", head[0]) is not None
    at = len(out)
    while at < len(lines):
        line = lines[at]
        if re.match(r"(public|private|protected):$", line):
            is_public = line == "public:"
        elif line == "};":
            break
        elif line == "\t{":
            end = at + 1
            while lines[end] not in ("\t}", "\t};"):
                end += 1
            at = end
            if is_public:
                out[-1] = without_initializers(out[-1]).rstrip() + ";"
        elif is_public and not line.strip().startswith(": "):
            out.append(line)
        at += 1
    return "\n".join(out).rstrip() + "\n};"


def without_initializers(text):
    return re.sub(r"(?<=[\w)]) : \w+[({].*$", "", text)


def class_page(path, headers, given):
    """The page of perfring.hpp: its comments, and what is public of its classes."""
    with open(path, encoding="utf-8") as file:
        lines = file.read().split("\n")
    heading = lines[: next(i for i, line in enumerate(lines) if line.endswith("*/")) + 1]
    text = comment_lines("\n".join(heading))
    name = os.path.basename(path)
    if not text[0].startswith(name + " - "):
        raise Refused(f"{path}:1: does not begin with \"{name} - \"")
    page = Page(name, "3", given.date, given.version)
    page.heading("Sh", "NAME")
    page.macro(".Nm", name)
    page.macro(".Nd", escape(text[0][len(name) + 3 :].rstrip(".")))
    page.heading("Sh", "SYNOPSIS")
    page.macro(".In", "perfring/" + name)
    page.heading("Sh", "DESCRIPTION")
    page.prose(text[1:], headers)
    at = lines.index("namespace perfring") + 2
    last = max(i for i, line in enumerate(lines) if line.startswith("}") and not line.startswith("};"))
    lines = re.sub(r"^(\S.*) \{$", r"\1\n{", "\n".join(lines[at:last]), flags=re.M).split("\n")
    at = 0
    comment = None
    while at < len(lines):
        end = at
        if lines[at].startswith("/*"):
            while not lines[end].endswith("*/"):
                end += 1
            comment = comment_lines("\n".join(lines[at : end + 1]))
            title = re.match(r"-{4} (.*?) -{4}$", comment[0])
            if title:
                page.heading("Sh", argument(title.group(1).upper()))
                comment = None
        elif lines[at] and not lines[at].startswith("#"):
            while lines[end] not in ("}", "};") and not (lines[end].endswith(";") and lines[end][0] != "\t" and "{" not in lines[at : end + 1]):
                end += 1
            text = outline(lines[at : end + 1])
            plain_text = re.sub(r"^template <.*?>", "", text)
            called = re.search(r"(?:class|struct|using) (?:\[\[nodiscard\]\] )?(\w+)", plain_text) or re.search(r"(\w+)\(", plain_text)
            page.heading("Ss", called.group(1))
            page.prose(comment or [], headers)
            page.literal(code_lines(text))
            comment = None
        at = end + 1
    page.heading("Sh", "SEE ALSO")
    see = sorted({name for name, _ in page.mentions} | {"perfring_base"})
    for name in see:
        page.macro(".Xr", name, "3", ",")
    page.macro(".Xr perfring 7")
    page.write(given.out)


# ---- mdoc ----


def escape(text):
    """Text as roff prints it unchanged; a hyphen inside a word stays one."""
    text = text.replace("\\", "\\e").replace("^", "\\(ha").replace("~", "\\(ti").replace("`", "\\(ga")
    return re.sub(r"(?<![A-Za-z0-9])-|-(?![A-Za-z0-9])", r"\\-", text)


def escape_literal(text):
    text = text.replace("\\", "\\e").replace("^", "\\(ha").replace("~", "\\(ti").replace("`", "\\(ga")
    text = text.replace("'", "\\(aq").replace("-", "\\-")
    return "\\&" + text if text.startswith(".") else text


def argument(text):
    """One argument of a macro."""
    return '"' + escape(text).replace('"', "\\(dq") + '"'


class Page:
    def __init__(self, name, volume, date, version):
        self.name, self.volume = name, volume
        self.lines = [f".\\\" {name}.{volume} - made by docs/man/manual.py", f".Dd {date}", f".Dt {name.upper()} {volume}", f'.Os "perfring {version}"']
        self.mentions = set()
        self.begins = True  # after a heading: no paragraph macro

    def macro(self, *words):
        self.lines.append(" ".join(words))

    def heading(self, macro, title):
        self.macro(f".{macro}", title)
        self.begins = True

    def literal(self, lines):
        self.macro(".Bd", "-literal")
        self.lines += [escape_literal(line) for line in lines]
        self.macro(".Ed")
        self.begins = False

    def fill(self, text, headers):
        """A paragraph: a sentence begins a line; what names another header refers to its page; name() is a function."""
        text = re.sub(r"`([^`]*)`", "\x01\\1\x02", text)
        for sentence in re.split(r" {2,}", text.strip()):
            line = ""
            for word in sentence.split():
                called = re.match(r"^([a-z]\w*)\(\)([.,:;)\]?!]*)$", word)
                if called:
                    if line:
                        self.lines.append(line)
                        line = ""
                    self.lines.append(" ".join([".Fn", called.group(1), *called.group(2)]))
                    continue
                named = re.match(r"^([(\[]?)(?:perfring/)?(\w+)\.h([.,:;)\]?!]*)$", word)
                if named and named.group(2) in headers and "perfring_" + named.group(2) != self.name:
                    if line:
                        self.lines.append(line)
                        line = ""
                    target = "perfring_" + named.group(2)
                    self.mentions.add((target, "3"))
                    before = f".No \\&{named.group(1)} Ns Xr" if named.group(1) else ".Xr"
                    self.lines.append(" ".join([before, target, "3", *named.group(3)]))
                    continue
                word = escape(word)
                word = re.sub(r"\b(perfring_[a-z0-9_]+)\b(?!\.\w|[*/])", r"\\fB\1\\fR", word)
                word = word.replace("\x01", "\\fI").replace("\x02", "\\fR")
                if line and len(line) + 1 + len(word) > WIDTH:
                    self.lines.append(line)
                    line = ""
                if not line and word[0] in ".'":
                    word = "\\&" + word
                line += (" " if line else "") + word
            if line:
                self.lines.append(line)

    def prose(self, lines, headers):
        """A comment: paragraphs, lists whose entries begin with "- ", and, indented, what stays as it is."""
        at = 0
        while at < len(lines):
            if not lines[at].strip():
                at += 1
                continue
            indent = len(lines[at]) - len(lines[at].lstrip())
            if indent == 0:
                end = at
                while end < len(lines) and lines[end].strip() and not lines[end].startswith("  "):
                    end += 1
                self.paragraph(" ".join(line.strip() + ("  " if line.endswith((".", ":")) else "") for line in lines[at:end]), headers)
                at = end
            elif lines[at].lstrip().startswith("- "):
                at = self.items(lines, at, indent, headers)
            else:
                end = at
                while end < len(lines) and (not lines[end].strip() or lines[end].startswith(" ")):
                    if lines[end].lstrip().startswith("- ") and lines[end - 1].strip() == "":
                        break
                    end += 1
                self.literal(dedented(lines[at:end]))
                at = end

    def paragraph(self, text, headers):
        if not self.begins:
            self.macro(".Pp")
        self.begins = False
        self.fill(text, headers)

    def items(self, lines, at, indent, headers):
        self.macro(".Bl", "-dash")
        while at < len(lines):
            line = lines[at]
            inner = len(line) - len(line.lstrip())
            if not line.strip():
                at += 1
                continue
            if inner == indent and line.lstrip().startswith("- "):
                self.macro(".It")
                self.begins = True
                lines = lines[:at] + [" " * (indent + 2) + line.lstrip()[2:]] + lines[at + 1 :]
            elif inner < indent + 2:
                break
            end = at
            is_literal = len(lines[at]) - len(lines[at].lstrip()) > indent + 2
            while end < len(lines):
                line = lines[end]
                inner = len(line) - len(line.lstrip())
                if is_literal and line.strip() and inner <= indent + 2:
                    break
                if not is_literal and (not line.strip() or inner != indent + 2 or (end > at and line.lstrip().startswith("- "))):
                    break
                end += 1
            if is_literal:
                self.literal(dedented(lines[at:end]))
            else:
                self.paragraph(" ".join(line.strip() for line in lines[at:end]), headers)
            at = end
        self.macro(".El")
        self.begins = False
        return at

    def write(self, out):
        folder = os.path.join(out, "man" + self.volume)
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, f"{self.name}.{self.volume}"), "w", encoding="utf-8") as file:
            file.write("\n".join(self.lines) + "\n")


def dedented(lines):
    while lines and not lines[-1].strip():
        lines = lines[:-1]
    return textwrap.dedent("\n".join(lines)).split("\n")


def macro_lines(piece):
    """What a macro is: its value where that is short, else what it is called with."""
    text = piece.text.rstrip()
    if "\n" not in text and not re.match(r"#\s*define\s+\w+\(", text):
        return code_lines(text)
    return [re.match(r"#\s*define\s+\w+(\([^)]*\))?", text).group()]


def header_page(header, headers, libraries, given):
    page = Page(header.page, "3", given.date, given.version)
    functions = header.functions()
    page.heading("Sh", "NAME")
    names = [header.page] + [function.name for function in functions]
    for name in names[:-1]:
        page.macro(".Nm", name, ",")
    page.macro(".Nm", names[-1])
    page.macro(".Nd", escape(header.what))
    page.heading("Sh", "LIBRARY")
    found = {libraries[function.name] for function in functions if function.name in libraries}
    page.fill(", ".join(LIBRARY[name] for name in sorted(found) or ["perfring"]), {})
    page.heading("Sh", "SYNOPSIS")
    page.macro(".In", f"perfring/{header.stem}.h")
    for function in functions:
        page.macro(".Ft", argument(function.result))
        page.macro(".Fo", function.name)
        for parameter in function.parameters:
            page.macro(".Fa", argument(parameter))
        page.macro(".Fc")
    page.heading("Sh", "DESCRIPTION")
    page.prose(header.description, headers)
    for section in header.sections:
        groups = [group for group in section.groups if not group.is_empty()]
        if section.title and (groups or section.text):
            page.heading("Sh", argument(section.title.upper()))
            page.prose(section.text, headers)
        for group in groups:
            write_group(page, group, headers)
    page.heading("Sh", "SEE ALSO")
    page.mentions |= {("perfring_" + name, "3") for name in header.includes if name in headers} | {("perfring_base", "3"), ("perfring", "7")}
    page.mentions.discard((header.page, "3"))
    see = sorted(page.mentions, key=lambda of: (of[1], of[0]))
    for i, (name, volume) in enumerate(see):
        page.macro(".Xr", name, volume, *([","] if i + 1 < len(see) else []))
    page.macro(".Pp")
    page.fill("Errors are described in", {})
    page.macro(".Xr perfring_base 3 ;" if header.stem != "base" else "this page;")
    page.fill("the documents of docs/ that are named here are in", {})
    page.macro(".Pa", given.docdir + "/docs", ".")
    page.write(given.out)
    return page


def write_group(page, group, headers):
    page.heading("Ss", argument(group.title()))
    if group.comment:
        page.prose(comment_lines(group.comment.text), headers)
    for piece in group.types:
        page.literal(piece.expanded or code_lines(piece.text))
    for piece in group.tables:
        page.literal(piece.expanded)
    if group.macros:
        page.literal(list(dict.fromkeys(line for piece in group.macros for line in macro_lines(piece))))
    experimental = [function.name for function in group.functions if function.mark == "PERFRING_EXPERIMENTAL"]
    if experimental:
        which = "Experimental:" if len(experimental) == len(group.functions) else f"Experimental ({', '.join(experimental)}):"
        page.paragraph(f"{which} works and is tested, but the form may still change.", headers)


# ---- tables of the headers ----


def rows_of(include, table, macro):
    with open(os.path.join(include, "perfring", table), encoding="utf-8") as file:
        text = without_comments(file.read())
    return [row for row in re.findall(rf"^\s*{macro}\((.*?)\)\s*$", text, re.M | re.S)]


def columns(rows):
    """Rows of a bit, a name and words, in 78 columns."""
    width = max(len(name) for _, name, _ in rows)
    lines = []
    for number, name, words in rows:
        first = f"{number:>4}  {name:<{width}}  "
        lines += textwrap.wrap(words or "-", WIDTH, initial_indent=first, subsequent_indent=" " * len(first))
    return lines


def table_features(include):
    rows = []
    for row in rows_of(include, "feature.def", "PERFRING_FEATURE"):
        name, bit, layout = [part.strip() for part in row.split(",", 2)]
        rows.append((bit, name, " ".join(re.findall(r":(\w+)", "".join(re.findall(r'"(.*?)"', layout))))))
    return columns(rows)


def table_records(include):
    with open(os.path.join(include, "perfring", "records.def"), encoding="utf-8") as file:
        text = without_comments(file.read())
    rows = []
    for line in re.findall(r"^\s*PERFRING_(RECORD|MEMBER|MEMBER_WHEN)\((.*)\)\s*$", text, re.M):
        parts = [part.strip() for part in line[1].split(",")]
        if line[0] == "RECORD":
            rows.append((parts[1], parts[0], []))
        elif rows and len(parts) >= 3 and parts[-2].isidentifier() and parts[-3] != "kind":
            rows[-1][2].append(parts[-2])
    return columns([(number, name, " ".join(members)) for number, name, members in rows])


def table_fields(include):
    rows = []
    for row in rows_of(include, "fields.def", "PERFRING_FIELD(?:_ADDED)?"):
        parts = [part.strip() for part in row.split(",")]
        if len(parts) < 5:
            continue
        members = parts[3] if parts[2] != "pair" else f"{parts[3]} {parts[4]}"
        rows.append((parts[1], parts[0], members))
    return columns(rows)


TABLES = {"features": table_features, "records": table_records, "fields": table_fields}


def source_page(path, headers, given):
    """A page from a file of docs/man/.  `.\\" @TABLE` is a table of the headers, `.\\" @headers` all their pages."""
    name, volume = os.path.basename(path)[: -len(".mdoc")].rsplit(".", 1)
    page = Page(name, volume, given.date, given.version)
    is_filled = True
    with open(path, encoding="utf-8") as file:
        for line in file.read().rstrip("\n").split("\n"):
            asked = re.match(r'\.\\" @(\w+)$', line)
            if not asked:
                is_filled = line.startswith(".Ed") or (is_filled and not line.startswith(".Bd -literal"))
                line = line.replace("@docdir@", given.docdir).replace("@version@", given.version)
                if is_filled and not line.startswith("."):
                    lines = textwrap.wrap(line, WIDTH, break_long_words=False, break_on_hyphens=False)
                    page.lines += ["\\&" + part if part[0] in ".'" else part for part in lines]
                elif not line.startswith('.\\"'):
                    page.lines.append(line)
            elif asked.group(1) == "headers":
                page.macro(".Bl", "-tag", "-width", "Ds")
                for header in headers.values():
                    page.macro(".It Xr", header.page, "3")
                    page.fill(header.what + ".", {})
                page.macro(".El")
            elif asked.group(1) in TABLES:
                page.literal(TABLES[asked.group(1)](given.include))
            else:
                raise Refused(f"{path}: no table of the headers is called {asked.group(1)}")
    page.write(given.out)


# ---- the command ----


def of_tool(given, *words):
    done = subprocess.run([given.tool, "help", *words], capture_output=True, text=True, check=False, env=given.environment)
    if done.returncode or not done.stdout:
        raise Refused(f"{given.tool} help {' '.join(words)}: status {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def command_pages(given):
    rows = [row.split("\t") for row in of_tool(given, "--complete").splitlines()]
    commands = [row[0] for row in rows if not row[0].startswith("-")]
    os.makedirs(os.path.join(given.out, "man1"), exist_ok=True)
    waiting = [[]] + [[command] for command in commands]
    written = {"perfring"} | {"perfring-" + command for command in commands}
    while waiting:
        words = waiting.pop()
        text = of_tool(given, "--man", *words)
        with open(os.path.join(given.out, "man1", "-".join(["perfring", *words]) + ".1"), "w", encoding="utf-8") as file:
            file.write(text)
        # A command of a command, "stat report", is in no list: the page of the other refers to it.
        for name in re.findall(r"^\.BR (perfring\\-\S+) \(1\)", text, re.M):
            name = name.replace("\\-", "-")
            if name not in written:
                written.add(name)
                waiting.append(name.split("-")[1:])
    os.makedirs(given.completions, exist_ok=True)
    for shell, name in (("bash", "perfring"), ("zsh", "_perfring")):
        with open(os.path.join(given.completions, name), "w", encoding="utf-8") as file:
            file.write(of_tool(given, "--complete", shell))


# ---- all of them ----


def write_aliases(headers, given):
    aliases = {}
    for header in headers.values():
        aliases[header.page] = header.page
    for header in headers.values():
        for function in header.functions():
            if aliases.get(function.name, header.page) != header.page or function.name == header.page:
                raise Refused(f"{header.path}: {function.name} has the name of another page")
            aliases[function.name] = header.page
            with open(os.path.join(given.out, "man3", function.name + ".3"), "w", encoding="utf-8") as file:
                file.write(f".so man3/{header.page}.3\n")


def libraries_of(package):
    libraries = {}
    for name in LIBRARY:
        with open(os.path.join(package, name + ".map"), encoding="utf-8") as file:
            libraries.update((symbol, name) for symbol in re.findall(r"^\s*(perfring_\w+);", file.read(), re.M))
    return libraries


def main():
    parser = argparse.ArgumentParser(description="Makes the manual pages of perfring.")
    parser.add_argument("--source", required=True, help="the source directory")
    parser.add_argument("--out", required=True, help="a folder, which is made anew: manN/NAME.N")
    parser.add_argument("--completions", help="a folder for perfring (bash) and _perfring (zsh)")
    parser.add_argument("--tool", help="the perfring command; without it no man1 and no completions")
    parser.add_argument("--compiler", nargs="+", default=["cc"], help="the C compiler, of which the preprocessor is used")
    parser.add_argument("--docdir", default="/usr/share/doc/perfring")
    parser.add_argument("--version", default="")
    given = parser.parse_args()
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH") or time.time())
    given.date = time.strftime("%B %d, %Y", time.gmtime(epoch)).replace(" 0", " ")
    given.environment = dict(os.environ, SOURCE_DATE_EPOCH=str(epoch), LC_ALL="C")
    given.include = os.path.join(given.source, "include")
    folder = os.path.join(given.include, "perfring")
    shutil.rmtree(given.out, ignore_errors=True)
    try:
        headers = {}
        refused = []
        for name in sorted(name for name in os.listdir(folder) if name.endswith(".h")):
            try:
                headers[name[:-2]] = Header(os.path.join(folder, name))
                refused += headers[name[:-2]].refused
            except Refused as why:
                refused.append(str(why))
        if refused:
            raise Refused("\n".join(refused))
        libraries = libraries_of(os.path.join(given.source, "package"))
        for header in headers.values():
            header.expand(given.compiler, given.include)
            header_page(header, headers, libraries, given)
        for name in sorted(name for name in os.listdir(folder) if name.endswith(".hpp")):
            class_page(os.path.join(folder, name), headers, given)
        write_aliases(headers, given)
        sources = os.path.join(given.source, "docs", "man")
        for name in sorted(os.listdir(sources)):
            if name.endswith(".mdoc"):
                source_page(os.path.join(sources, name), headers, given)
        if given.tool:
            command_pages(given)
    except Refused as why:
        sys.exit(str(why))


main()
