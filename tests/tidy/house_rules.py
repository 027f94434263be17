#!/usr/bin/env python3
"""The rules of the house that a script can see.

usage: house_rules.py <root>              reports every breach
       house_rules.py <root> --self-test  fails unless each rule notices a planted breach

Files have at most 500 lines of at most 100 columns, functions at most 70 lines. The environment is
read in one place, and exceptions are caught where docs/architecture.md says. The full name of a type in a
header belongs to one type: two would be one to the linker. No test is switched off, nothing is put off to
later in a comment, and some names are too vague to be used.
"""
import pathlib
import re
import sys

LIBRARY = ("src/", "transports/")
CODE = LIBRARY + ("include/", "bench/", "tools/", "examples/", "integrations/", "tests/")
SUFFIXES = (".h", ".cc", ".c", ".inc")
FILE_LINES, FUNCTION_LINES, COLUMNS = 500, 70, 100

# Comments, strings and characters, as far as they could be mistaken for code. A ' inside a number
# separates digits and is left alone.
NOT_CODE = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"([^(\s]*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9A-Za-z_])\'(?:\\.|[^\'\\\n])+\'',
    re.S)
OPENS_NO_FUNCTION = re.compile(r"^\s*(?:namespace|struct|class|enum|union|extern)\b|[=,(]\s*$")

VAGUE_NAMES = re.compile(r"\b(?:buf|ctx|len|mgr|util|utils|helper|helpers)\b")
PUT_OFF = re.compile(r"\b(?:TODO|FIXME|XXX|HACK)\b")
SWITCHED_OFF = re.compile(r"\bDISABLED_\w*|\bGTEST_SKIP\b")
READS_ENVIRONMENT = re.compile(r"\b(?:secure_)?getenv\s*\(|\benviron\b")
CATCHES = re.compile(r"\bcatch\s*\(")

NAMESPACE_OR_TYPE = re.compile(
    r"^(?:(namespace) ([\w:]+) \{|(\} ends namespace)|"
    r"(?:struct|class|union|enum(?: class)?) (?:alignas\([^)]*\) )?(\w+)(?: final)?(?:\s+:[^;{]*)? \{)", re.M)

DIRECTIVE = re.compile(r"^[ \t]*#(?:\\\n|[^\n])*", re.M)


def blanked(match):
    return re.sub(r"[^\n]", " ", match.group())


def without_comments_and_strings(text):
    """The code with the same line breaks; what is not code becomes blanks."""
    return NOT_CODE.sub(blanked, text)


def long_functions(code):
    """(line, lines) of each function that is too long, by its braces.

    A block is a function if a parameter list stands before its brace and no function is around it.
    """
    statement, depth, begin, inside = "", 0, 0, None
    line = 1
    for character in DIRECTIVE.sub(blanked, code):
        if character == "\n":
            line += 1
        if character == "{":
            depth += 1
            if inside is None and ")" in statement and not OPENS_NO_FUNCTION.search(statement):
                inside, begin = depth, line
            statement = ""
        elif character == "}":
            if inside == depth:
                if line - begin + 1 > FUNCTION_LINES:
                    yield begin, line - begin + 1
                inside = None
            depth -= 1
            statement = ""
        elif character == ";":
            statement = ""
        else:
            statement += character


def allowed_to_catch(architecture):
    errors = architecture.split("## Errors", 1)[1].split("\n## ", 1)[0]
    return set(re.findall(r"^\| `([^`]+)` \|", errors, re.M))


def places(pattern, text, path, why):
    for match in pattern.finditer(text):
        yield f"{path}:{text.count(chr(10), 0, match.start()) + 1}: {match.group().strip()}: {why}"


def breaches(path, text, catchers):
    """Every breach of the rules in one file of the code."""
    lines = text.splitlines()
    code = without_comments_and_strings(text)
    if len(lines) > FILE_LINES:
        yield f"{path}: {len(lines)} lines, more than {FILE_LINES}"
    for number, line in enumerate(lines, 1):
        if len(line) > COLUMNS:
            yield f"{path}:{number}: {len(line)} columns, more than {COLUMNS}"
    for number, length in long_functions(code):
        yield f"{path}:{number}: a function of {length} lines, more than {FUNCTION_LINES}"
    yield from places(PUT_OFF, text, path, "do it now or leave it out")
    yield from places(SWITCHED_OFF, text, path, "a test runs or it goes")
    if path.endswith(".h") and path.startswith(LIBRARY):
        if not text.startswith("//"):
            yield f"{path}: a header opens with what it is"
        if "#pragma once" not in text:
            yield f"{path}: no #pragma once"
    if path.startswith(LIBRARY):
        yield from places(VAGUE_NAMES, code, path, "too vague a name")
        if path != "src/base/config.cc":
            yield from places(READS_ENVIRONMENT, code, path, "only src/base/config.cc reads it")
        if path not in catchers:
            yield from places(CATCHES, code, path, "docs/architecture.md does not list this file")


def types_in(text):
    """The full names of the types that a header defines, outside of others."""
    namespace = ""
    told = re.sub(r"^\}  // namespace", "} ends namespace", text, flags=re.M)
    for match in NAMESPACE_OR_TYPE.finditer(without_comments_and_strings(told)):
        if match[1]:
            namespace = match[2]
        elif match[3]:
            namespace = ""
        else:
            yield f"{namespace}::{match[4]}"


def doubles(texts):
    """Types that bear the name of another one."""
    defined = {}
    for path, text in texts.items():
        for name in types_in(text) if path.endswith(".h") else ():
            if name in defined:
                yield f"{path}: {name} is also the name of a type in {defined[name]}"
            defined[name] = path


def sources(root):
    for top in CODE:
        for file in sorted((root / top).rglob("*")):
            if file.suffix in SUFFIXES:
                yield file.relative_to(root).as_posix(), file.read_text()


def problems(root):
    catchers = allowed_to_catch((root / "docs" / "architecture.md").read_text())
    texts = dict(sources(root))
    found = [problem for path, text in texts.items() for problem in breaches(path, text, catchers)]
    found += doubles({path: text for path, text in texts.items() if not path.startswith("examples/")})
    for catcher in sorted(catchers):
        if not CATCHES.search(without_comments_and_strings(texts.get(catcher, ""))):
            found.append(f"docs/architecture.md: {catcher} is listed but catches nothing")
    return found


HEADER = "// A planted header.\n#pragma once\n"
LONG = "int planted(int a) {\n  if (a) {\n" + "    ++a;\n" * 70 + "  }\n  return a;\n}\n"
PLANTED = [
    ("src/base/a.h", HEADER + "\n" * 500, "lines, more than 500"),
    ("src/base/a.h", HEADER + "int a" + "a" * 100 + ";\n", "columns, more than 100"),
    ("src/base/a.cc", LONG, "a function of"),
    ("src/base/a.h", HEADER + "class A {\n" + LONG + "};\n", "a function of"),
    ("tests/base/a_test.cc", LONG.replace("int planted(int a)", "TEST(A, b)"), "a function of"),
    ("src/base/a.cc", "int a;  // " + "TO" + "DO: later\n", "do it now"),
    ("tests/base/a_test.cc", "TEST(A, DISABLED" + "_b) {}\n", "a test runs"),
    ("tests/base/a_test.cc", "TEST(A, b) { GTEST" + "_SKIP(); }\n", "a test runs"),
    ("src/base/a.h", "#pragma once\n", "opens with what it is"),
    ("src/base/a.h", "// A planted header.\n", "no #pragma once"),
    ("src/base/a.cc", "int len = 1'000;\n", "too vague"),
    ("transports/shm/a.cc", 'auto a = std::getenv("HOME");\n', "only src/base/config.cc"),
    ("src/engine/a.cc", "void a() { try { b(); } catch (...) {} }\n", "does not list this file"),
]
HARMLESS = [
    ("src/base/a.cc", "// catch (what) you can: getenv(), len\n" + LONG.replace("    ++a;\n" * 60, "")),
    ("src/base/a.cc", 'const char* a = "catch (len) {{{";\nint b = 1\'000\'000;\n'),
    ("src/base/a.cc", "namespace a {\nstruct B {\n" + "int c(int d);\n" * 100 + "};\n}\n"),
    ("include/a.h", "#define A(x) \\\n  (x)\nextern \"C\" {\n" + "int c(int d);\n" * 100 + "}\n"),
    ("src/base/a.cc", "const int kTable[] = {\n" + "  f(1),\n" * 100 + "};\n"),
]


def self_test():
    for path, text, expected in PLANTED:
        if not any(expected in problem for problem in breaches(path, text, set())):
            yield f"went unnoticed: {expected!r} in {text[:60]!r}"
    shape = "namespace a {\nclass Shape final {\n};\n}  // namespace a\nstruct alignas(8) Line {\n};\n"
    if len(list(doubles({"src/a.h": shape, "tools/b.h": shape}))) != 2:
        yield "went unnoticed: two types of one name"
    if list(doubles({"src/a.h": shape, "tools/b.h": shape.replace("a {", "a::b {", 1).replace("Line", "Row")})):
        yield "taken for two types of one name: those of two namespaces"
    for path, text in HARMLESS:
        for problem in breaches(path, text, set()):
            yield f"taken for a breach: {problem}"


if __name__ == "__main__":
    result = list(self_test()) if "--self-test" in sys.argv else problems(pathlib.Path(sys.argv[1]))
    print("\n".join(result) or "every rule is kept")
    sys.exit(bool(result))
