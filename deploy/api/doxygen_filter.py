#!/usr/bin/env python3
"""doxygen_filter.py FILE: the file as Doxygen reads it. Its comments, which are plain ones, become
Doxygen's, and a .proto file becomes C++ declarations with the same comments."""
import re
import sys

SPECIAL = re.compile(r"([\\@<>#%&$])")  # what Doxygen would obey
CODE = re.compile(r"`[^`]*`")


def escaped(text):
    return SPECIAL.sub(r"\\\1", text)


def c_text(text):
    """A header of C: /* … */, behind a declaration or before it."""
    first = True

    def comment(match):
        nonlocal first
        start = "/**< " if match[1].strip() else "/** "
        if first:
            start, first = "/** \\file\n * ", False
        return match[1] + start + escaped(match[2].strip()) + " */"
    return re.sub(r"^([^\n/]*?)/\*(.*?)\*/", comment, text, flags=re.M | re.S)


def cpp_lines(lines):
    """Comments of // before a declaration, or behind one and perhaps continued below."""
    trailing = None  # column of the comment that may continue
    is_first = True
    for line in lines:
        alone = re.match(r"( *)//( .*|)$", line)
        behind = None if alone else re.match(r"(.*?\S)( +)// (.*)$", line)
        if alone:
            goes_on = trailing is not None and len(alone[1]) >= trailing
            if is_first:
                yield "/// \\file"
                is_first = False
            yield alone[1] + ("///<" if goes_on else "///") + escaped(alone[2])
            trailing = trailing if goes_on else None
        elif behind and not re.match(r" *(#|}|namespace )", line) and '"' not in behind[1] and "NOLINT" not in line:
            yield behind[1] + behind[2] + "///< " + escaped(behind[3])
            trailing = len(behind[1]) + len(behind[2])
        else:
            yield re.sub(r" +//.*$", "", line) if '"' not in line else line
            trailing = None


def proto_type(words):
    words = words.replace(".", "::")
    words = re.sub(r"^repeated (.*)$", r"std::vector<\1>", words)
    return re.sub(r"^map<(.*)>$", r"std::map<\1>", re.sub(r"^optional ", "", words))


def proto_lines(lines):
    """Messages as structs, services as classes, oneofs as the fields that they have."""
    oneofs, depth = [], 0
    for line in lines:
        code = line.split("//")[0].rstrip()
        depth += code.count("{") - code.count("}")
        if re.match(r"(syntax|import|option) ?", code):
            continue
        if re.match(r" *oneof ", code):
            oneofs.append(depth - 1)
            continue
        if oneofs and code.strip() == "}" and depth == oneofs[-1]:
            oneofs.pop()
            continue
        line = re.sub(r"^package ([\w.]+);", lambda m: "namespace " + m[1].replace(".", "::") + " {", line)
        line = re.sub(r"^( *)message (\w+) \{\}", r"\1struct \2 {};", line)
        line = re.sub(r"^( *)message (\w+) \{", r"\1struct \2 {", line)
        line = re.sub(r"^service (\w+) \{", r"struct \1 {", line)
        line = re.sub(r"^( *)rpc (\w+)\((?:stream )?([\w.]+)\) returns \((?:stream )?([\w.]+)\)(;| \{\})",
                      lambda m: f"{m[1]}{m[4].replace('.', '::')} {m[2]}({m[3].replace('.', '::')});", line)
        line = re.sub(r"^( *)([A-Z][A-Z0-9_]+) = (\d+);", r"\1\2 = \3,", line)
        line = re.sub(r"^( *)((?:repeated |optional )?[\w.]+|map<[^>]*>) (\w+) = \d+(?: \[[^\]]*\])?;",
                      lambda m: f"{m[1]}{proto_type(m[2])} {m[3]};", line)
        line = re.sub(r"^( *)reserved [^;]*;", r"\1", line)
        yield re.sub(r"^( *)\}$", r"\1};", line)
    yield "}"


def main():
    path = sys.argv[1]
    with open(path) as file:
        text = file.read()
    if path.endswith(".proto"):
        text = "\n".join(cpp_lines(proto_lines(text.split("\n"))))
    elif "\n//" in text or text.startswith("//"):
        text = "\n".join(cpp_lines(text.split("\n")))
    else:
        text = c_text(text)
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
