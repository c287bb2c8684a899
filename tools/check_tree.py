#!/usr/bin/python3
"""Checks what no compiler checks: include directions, sizes of files and functions, comments on the public API.

usage: check_tree.py [--self-test] [FOLDER]

Prints `path:line: message` for each finding; exit status 1 if there is one. The directions are those of
docs/architecture.md: samples, tools, tests -> models -> graph -> runtime, and each of them -> include/rondo.
--self-test feeds the checks small trees that break one rule each and one that breaks none.
"""
import argparse
import ast
import dataclasses
import os
import re
import subprocess
import sys
import tempfile

MAX_FILE_LINES = 900
MAX_FUNCTION_LINES = 100
MAX_FILE_BYTES = 1 << 20
MAX_TEST_DATA_BYTES = 3 << 20

CPP = (".cpp", ".cc", ".c", ".h", ".hpp", ".inc")
SHADER = (".comp", ".glsl")
CODE = CPP + SHADER + (".py", ".sh", ".cmake")

PUBLIC = "include/rondo"
# What each layer may include, beside itself and the public headers. Parameter blocks (shaders/*.params.h) are plain
# structs that the host shares with the kernels.
MAY_INCLUDE = {
    PUBLIC: set(),
    "shaders": set(),
    "runtime": {"shaders"},
    "graph": {"runtime", "shaders"},
    "models": {"graph", "runtime", "shaders"},
    "tools": {"models", "graph", "runtime", "shaders"},
    "tests": {"models", "graph", "runtime", "shaders", "tools"},
    "samples": set(),
}
# Runtime's input language, which graph/ lowers into.
PLAIN_HEADERS = ("runtime/program.h", "runtime/device_caps.h")
C_HEADERS = {"stdbool.h", "stddef.h", "stdint.h"}
TERMINAL_HEADERS = {"poll.h", "termios.h", "unistd.h"}
# Documents whose C++ and CMake are all taken from files that a test builds; elsewhere only where a document says so.
QUOTING_DOCUMENTS = ("docs/embedding.md",)

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
STRING_OR_COMMENT = re.compile(
    r'//[^\n]*|/\*.*?\*/'
    r'|R"([^\s()\\]{0,16})\(.*?\)\1"|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])+'", re.S)
SNIPPET = re.compile(r"^(?:<!-- from (\S+) -->\n)?```(?:cpp|cmake)\n(.*?)^```$", re.M | re.S)
DIRECTIVE = re.compile(r"[ \t]*#\s*(if|ifdef|ifndef|else|elif|endif)\b")
# Written in pieces, so that this file does not find itself.
MACHINE_PATH = re.compile(r"(?<![\w.-])/(?:wo" + r"rk|ro" + r"ot|home/\w+)/")
REGISTRY = re.compile(r"https?://(?:[\w-]+\.)*(?:deb|registry|snapshot|pypi|files|conda|npmjs|crates|mirrors?)\.")


def is_vulkan(name):
    return name.startswith("vulkan/") or name.startswith("vk_video/") or name in ("volk.h", "vk_mem_alloc.h")


def is_standard(name):
    return re.fullmatch(r"[a-z_0-9]+", name) is not None or name in C_HEADERS


def layer_of(path):
    if path.startswith(PUBLIC + "/"):
        return PUBLIC
    first = path.split("/", 1)[0]
    return first if "/" in path and first in MAY_INCLUDE else None


def blank(match):
    """The match with everything but its line ends turned into spaces."""
    return re.sub(r"[^\n]", " ", match.group(0))


def code_only(text):
    """C++ or GLSL without comments, strings, preprocessor lines and #else branches; line numbers stay."""
    text = STRING_OR_COMMENT.sub(blank, text)
    text = re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*",
                  lambda m: m.group(0) if DIRECTIVE.match(m.group(0)) else blank(m), text, flags=re.M)
    lines, depth, off_since = [], 0, None
    for line in text.split("\n"):
        directive = DIRECTIVE.match(line)
        word = directive.group(1) if directive else ""
        if word.startswith("if"):
            depth += 1
        elif word in ("else", "elif") and off_since is None:
            off_since = depth  # one branch is enough: both would open the same brace twice
        elif word == "endif":
            off_since = None if off_since == depth else off_since
            depth -= 1
        lines.append("" if directive or off_since is not None else line)
    return "\n".join(lines)


def strip_angles(header):
    """`header` without a leading template<...>, attributes and RONDO_API."""
    header = re.sub(r"\[\[.*?\]\]|\bRONDO_API\b", " ", header, flags=re.S).strip()
    while re.match(r"template\s*<", header):
        depth, at = 0, header.index("<")
        for at in range(at, len(header)):
            depth += {"<": 1, ">": -1}.get(header[at], 0)
            if depth == 0:
                break
        header = header[at + 1:].strip()
    return header


def without_parentheses(text):
    previous = None
    while previous != text:
        previous, text = text, re.sub(r"\([^()]*\)", " @ ", text)
    return text


def kind_of_block(header, in_parentheses):
    """What the `{` after `header` opens, at namespace or class level: container, function or data."""
    if in_parentheses:
        return "data"
    header = strip_angles(header)
    if re.match(r"(?:inline\s+)?namespace\b|extern\s+@?\s*$|(?:typedef\s+)?(?:class|struct|union|enum)\b", header):
        return "container"
    flat = without_parentheses(re.sub(r"\boperator\s*[^\w\s(]+", "operator_", header))
    if "=" in flat or (flat and "@" not in flat):
        return "data"
    return "function"


@dataclasses.dataclass
class Statement:
    """One declaration or definition at namespace or class level."""
    kind: str  # "function" (with a body), "container" (its first line only) or "declaration"
    header: str
    first_line: int
    last_line: int
    access: str


def statements(text):
    """The Statements of C++ source, in order."""
    found, access = [], ["public"]
    line, start, header, parentheses, skipping = 1, 0, "", 0, 0
    body, body_start = "", 0
    for c in code_only(text):
        if c == "\n":
            line += 1
        if skipping:
            skipping += {"{": 1, "}": -1}.get(c, 0)
            if skipping == 0 and body == "function":
                found.append(Statement("function", header.strip(), body_start, line, access[-1]))
                header = ""
            continue
        if not header.strip() and not c.isspace():
            header, start = "", line
        if c == "{":
            body, body_start = kind_of_block(header, parentheses > 0), start
            if body == "container":
                found.append(Statement("container", header.strip(), start, line, access[-1]))
                inner = "private" if re.match(r"class\b", strip_angles(header)) else "public"
                access.append(inner if access[-1] == "public" else "private")
                header = ""
            else:
                skipping = 1
        elif c == "}" and len(access) > 1:
            access.pop()
            header = ""
        elif c == ";" and parentheses == 0:
            found.append(Statement("declaration", header.strip(), start, line, access[-1]))
            header = ""
        elif c == ":" and re.fullmatch(r"\s*(public|private|protected)\s*", header):
            if access[-2:-1] != ["private"]:
                access[-1] = "public" if header.strip() == "public" else "private"
            header = ""
        else:
            parentheses = max(0, parentheses + {"(": 1, ")": -1}.get(c, 0))
            header += c
    return found


def function_name(statement):
    """The name of the function that `statement` declares, or None."""
    header = strip_angles(statement.header)
    if statement.kind == "container" or re.match(r"(using|typedef|friend|static_assert|extern)\b|RONDO_", header):
        return None
    if re.search(r"=\s*(default|delete)\s*$", header) or re.search(r"\boperator\b", header):
        return None
    if re.match(r"((explicit|constexpr|inline|virtual)\s+)*~?\w+\s*\(", header):
        return None  # constructors, destructors, macros
    flat = re.sub(r"<[^<>]*(<[^<>]*>[^<>]*)*>", " ", without_parentheses(header))
    name = re.match(r"[^=]*?(\w+)\s*@", flat)
    return name.group(1) if name else None


def class_name(statement):
    match = re.match(r"(?:class|struct|union)\s+(\w+)", strip_angles(statement.header))
    return match.group(1) if statement.kind == "container" and match else None


def speaks_for_itself(statement):
    """`T name() const`, or a function without parameters that is defined on one line."""
    one_line = statement.kind == "function" and statement.first_line == statement.last_line
    return re.search(r"\w\s*\(\s*\)\s*" + ("" if one_line else r"const\b"), statement.header) is not None


def check_comments(path, text):
    """Public functions and classes without a comment on their lines, above, or above their paragraph."""
    lines = text.split("\n")
    opening = "\n".join(lines[:next((i for i, l in enumerate(lines) if not l.startswith("//")), 0)])
    documented_until = -1
    for statement in statements(text):
        own = lines[statement.first_line - 1:statement.last_line]
        above = lines[statement.first_line - 2].strip() if statement.first_line > 1 else ""
        documented = (any("//" in l or "/*" in l for l in own) or above.startswith("//") or above.endswith("*/")
                      or documented_until == statement.first_line - 1)
        if documented and statement.kind != "container":
            documented_until = statement.last_line
        if documented or statement.access != "public":
            continue
        name = class_name(statement)
        if name and re.search(rf"\b{name}\b", opening):
            continue
        if not name and speaks_for_itself(statement):
            continue
        name = name or function_name(statement)
        if name:
            yield path, statement.first_line, f"public {name} has no comment above it or on its line"


def check_function_sizes(path, text):
    if path.endswith(".py"):
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                length = node.end_lineno - node.lineno + 1
                if length > MAX_FUNCTION_LINES:
                    yield path, node.lineno, f"function of {length} lines; the limit is {MAX_FUNCTION_LINES}"
    elif path.endswith(CPP + SHADER):
        for statement in statements(text):
            length = statement.last_line - statement.first_line + 1
            if statement.kind == "function" and length > MAX_FUNCTION_LINES:
                yield path, statement.first_line, f"function of {length} lines; the limit is {MAX_FUNCTION_LINES}"


def resolve(path, quote, name, tree):
    """The file in the tree that `#include "name"` in `path` means, or None."""
    beside = os.path.normpath(os.path.join(os.path.dirname(path), name))
    if quote == '"' and beside in tree:
        return beside
    for root in ("", "include/", "shaders/"):
        if root + name in tree:
            return root + name
    return None


def includes(path, text, tree):
    """(line, name, quote, target) of each #include; `target` is None outside the tree."""
    for number, line in enumerate(text.split("\n"), 1):
        match = INCLUDE.match(line)
        if match:
            yield number, match.group(2), match.group(1), resolve(path, match.group(1), match.group(2), tree)


def refused_include(path, name, quote, target):
    """Why `path` must not include `name`, or None."""
    layer = layer_of(path)
    if target is None and quote == '"' and layer_of(name):
        target = name  # generated, or not written yet: its folder is what counts
    if is_vulkan(name):
        if layer == PUBLIC and not (path == PUBLIC + "/vulkan.h" and name == "vulkan/vulkan_core.h"):
            return "public headers know no Vulkan; only vulkan.h includes <vulkan/vulkan_core.h>"
        if layer in ("graph", "models", "samples", "shaders"):
            return f"{layer}/ must not include Vulkan"
        return None
    if target is None:
        if layer == PUBLIC and not is_standard(name) and not name.startswith("rondo/"):
            return "public headers include the standard library and <rondo/...> only"
        if layer == "samples" and not is_standard(name) and name not in TERMINAL_HEADERS and not name.startswith("rondo/"):
            return "samples include the standard library, POSIX terminals and <rondo/...> only"
        in_library = layer in ("runtime", "graph", "models")
        if in_library and name.startswith("nlohmann/") and not path.startswith("models/json."):
            return "the library reads JSON through models/json.h only"
        return None
    theirs = layer_of(target)
    if theirs in (None, layer, PUBLIC) or theirs in MAY_INCLUDE[layer]:
        return None
    return f"{layer}/ must not include {theirs}/"


def check_includes(path, texts):
    for line, name, quote, target in includes(path, texts[path], texts):
        reason = refused_include(path, name, quote, target)
        if reason:
            yield path, line, f"#include of {name}: {reason}"
    if layer_of(path) in ("graph", "models"):
        call = re.search(r"\bvk[A-Z]\w*", code_only(texts[path]))
        if call:
            line = texts[path].count("\n", 0, call.start()) + 1
            yield path, line, f"{call.group(0)}: graph/ and models/ must not call Vulkan"
    if layer_of(path) == "graph" or path in PLAIN_HEADERS:
        yield from check_reaches_no_vulkan(path, texts)


def check_reaches_no_vulkan(path, texts):
    """Vulkan headers behind the includes of `path`, however far."""
    for line, name, _, target in includes(path, texts[path], texts):
        seen, todo = set(), [target]
        if is_vulkan(name) and layer_of(path) == "runtime":
            yield path, line, f"#include of {name}: {path} is plain data and must not include Vulkan"
        while todo:
            current = todo.pop()
            if current is None or current in seen:
                continue
            seen.add(current)
            for _, inner, _, inner_target in includes(current, texts[current], texts):
                if is_vulkan(inner):
                    yield path, line, f"#include of {name} brings in {inner} through {current}"
                    todo = []
                    break
                todo.append(inner_target)


def check_snippets(path, texts):
    """Snippets that are not in the file they name: each run of lines between `...` lines, in order, indented anyhow."""
    for match in SNIPPET.finditer(texts[path]):
        source, line = match.group(1), texts[path].count("\n", 0, match.start()) + 1
        if source is None and path in QUOTING_DOCUMENTS:
            yield path, line, "a snippet without `<!-- from FILE -->` above it: no test builds it"
        if source is None:
            continue
        rest = "\n" + "\n".join(l.strip() for l in texts.get(source, "").split("\n")) + "\n"
        for run in re.split(r"^\s*(?://|#) \.\.\.$", match.group(2), flags=re.M):
            wanted = "\n" + "\n".join(l.strip() for l in run.strip().split("\n")) + "\n"
            if wanted not in rest:
                yield path, line, f"this is not in {source}: {wanted.split(chr(10))[1]}"
                break
            rest = rest[rest.index(wanted) + len(wanted) - 1:]


def check_words(path, text):
    for number, line in enumerate(text.split("\n"), 1):
        if MACHINE_PATH.search(line):
            yield path, number, "a path of one machine"
        if REGISTRY.search(line):
            yield path, number, "the address of a package registry; the system's own configuration knows it"


def files_of(root):
    """The paths git has or would add, or every file where there is no git."""
    listed = subprocess.run(["git", "-C", root, "ls-files", "-coz", "--exclude-standard", "."], capture_output=True)
    if listed.returncode == 0:
        paths = listed.stdout.decode().split("\0")
    else:
        paths = [os.path.relpath(os.path.join(d, f), root) for d, _, files in os.walk(root) for f in files]
    return sorted({p for p in paths if p and os.path.isfile(os.path.join(root, p))})


def check_tree(root):
    """All findings as (path, line, message)."""
    texts, test_data_bytes = {}, 0
    for path in files_of(root):
        full = os.path.join(root, path)
        size_bytes = os.path.getsize(full)
        test_data_bytes += size_bytes if path.startswith("tests/data/") else 0
        if size_bytes > MAX_FILE_BYTES:
            if not path.startswith("samples/models/"):
                yield path, 1, f"{size_bytes} bytes; only samples/models/ may hold files over {MAX_FILE_BYTES}"
            continue
        with open(full, "rb") as file:
            content = file.read()
        if b"\0" not in content:
            texts[path] = content.decode("utf-8", "replace")
    if test_data_bytes > MAX_TEST_DATA_BYTES:
        yield "tests/data", 1, f"{test_data_bytes} bytes in all; the limit is {MAX_TEST_DATA_BYTES}"

    for path, text in texts.items():
        yield from check_words(path, text)
        if path.endswith(".md"):
            yield from check_snippets(path, texts)
        if not path.endswith(CODE) and os.path.basename(path) != "CMakeLists.txt":
            continue
        n_lines = text.count("\n")
        if n_lines > MAX_FILE_LINES:
            yield path, n_lines, f"{n_lines} lines; the limit is {MAX_FILE_LINES}"
        yield from check_function_sizes(path, text)
        if path.endswith(CPP) and layer_of(path):
            yield from check_includes(path, texts)
        if path.startswith(PUBLIC + "/") and path.endswith(".h"):
            yield from check_comments(path, text)


LONG_BODY = "  x += 1;\n" * MAX_FUNCTION_LINES

# Trees that break one rule each: (part of the message, {path: content}).
BROKEN = [
    ("runtime/ must not include graph/", {"runtime/a.cpp": '#include "graph/b.h"\n', "graph/b.h": "\n"}),
    ("runtime/ must not include models/", {"runtime/a.cpp": '#include "../models/b.h"\n', "models/b.h": "\n"}),
    ("graph/ must not include models/", {"graph/a.cpp": '#include "models/not_there_yet.h"\n'}),
    ("models/ must not include tools/", {"models/arch/a.cpp": '#include "tools/b.h"\n', "tools/b.h": "\n"}),
    ("tools/ must not include tests/", {"tools/a.cpp": '#include "tests/support/b.h"\n', "tests/support/b.h": "\n"}),
    ("rondo/ must not include runtime/", {"include/rondo/a.h": '#include "runtime/b.h"\n', "runtime/b.h": "\n"}),
    ("standard library and <rondo/...> only", {"include/rondo/a.h": "#include <fmt/format.h>\n"}),
    ("know no Vulkan", {"include/rondo/a.h": "#include <vulkan/vulkan_core.h>\n"}),
    ("know no Vulkan", {"include/rondo/vulkan.h": "#include <vulkan/vulkan.h>\n"}),
    ("POSIX terminals and <rondo/...> only", {"samples/a.cpp": "#include <nlohmann/json.hpp>\n"}),
    ("samples/ must not include models/", {"samples/a.cpp": '#include "models/b.h"\n', "models/b.h": "\n"}),
    ("samples/ must not include Vulkan", {"samples/a.cpp": "#include <vulkan/vulkan.h>\n"}),
    ("graph/ must not include Vulkan", {"graph/a.cpp": "#include <volk.h>\n"}),
    ("must not call Vulkan", {"models/a.cpp": "// vkFine\nvoid f() { table.vkQueueSubmit(q); }\n"}),
    ("is plain data", {"runtime/program.h": "#include <vulkan/vulkan_core.h>\n"}),
    ("brings in volk.h through runtime/b.h",
     {"runtime/device_caps.h": '#include "runtime/b.h"\n', "runtime/b.h": "#include <volk.h>\n"}),
    ("brings in volk.h through runtime/c.h",
     {"graph/a.h": '#include "runtime/b.h"', "runtime/b.h": '#include "c.h"', "runtime/c.h": "#include <volk.h>"}),
    ("through models/json.h only", {"models/config.cpp": "#include <nlohmann/json.hpp>\n"}),
    ("lines; the limit is 900", {"runtime/a.cpp": "int x;\n" * (MAX_FILE_LINES + 1)}),
    ("lines; the limit is 900", {"tools/a.sh": "true\n" * (MAX_FILE_LINES + 1)}),
    ("function of 102 lines", {"runtime/a.cpp": "namespace a {\nclass B {\nvoid f() {\n" + LONG_BODY + "}\n};\n}\n"}),
    ("function of 102 lines", {"runtime/a.cpp": "A::A(int b) : b_{b}, c_(2) {\n" + LONG_BODY + "}\n"}),
    ("function of 102 lines", {"tests/a.cpp": "TEST_P(Suite, Name) {\n" + LONG_BODY + "}\n"}),
    ("function of 102 lines", {"shaders/a.comp": "#version 450\nvoid main() {\n" + LONG_BODY + "}\n"}),
    ("function of 102 lines", {"tools/a.py": "def f(x):\n" + LONG_BODY.replace(";", "") + "  return x\n"}),
    ("public f has no comment", {"include/rondo/a.h": "namespace a {\nint f(int x);\n}\n"}),
    ("public g has no comment",
     {"include/rondo/a.h": "/// Does it.\nint f(int x);\n\nmap<int, pair<int, int>> g(int x = 1) { return {}; }\n"}),
    ("public B has no comment", {"include/rondo/a.h": "template <typename T>\nclass [[nodiscard]] B {\n};\n"}),
    ("public f has no comment", {"include/rondo/a.h": "/// A class.\nclass B {\n public:\n  Status f();\n};\n"}),
    ("public f has no comment", {"include/rondo/a.h": "RONDO_API int f(int x);\n"}),
    ("public B has no comment", {"include/rondo/a.h": "class [[nodiscard]] RONDO_API B {\n};\n"}),
    ("no test builds it", {"docs/embedding.md": "```cpp\nint x;\n```\n"}),
    ("not in samples/a.cpp: int y;", {"docs/a.md": "<!-- from samples/a.cpp -->\n```cpp\nint y;\n```\n", "samples/a.cpp": "int x;\n"}),
    ("not in b: f();", {"docs/a.md": "<!-- from b -->\n```cmake\ng();\n# ...\nf();\n```\n", "b": "f();\ng();\n"}),
    ("bytes; only samples/models/", {"docs/a.bin": "\0" * (MAX_FILE_BYTES + 1)}),
    ("bytes in all", {f"tests/data/{i}": "\0" * (MAX_FILE_BYTES - 1) for i in range(4)}),
    ("a path of one machine", {"docs/a.md": "see /wo" + "rk/main/x\n"}),
    ("a path of one machine", {"tools/a.sh": "cd /home" + "/jo/rondo\n"}),
    ("package registry", {"tools/a.sh": "wget http:/" + "/deb.debian.org/x\n"}),
]

# Breaks no rule, and holds what a careless check would stumble over.
SOUND = {
    "include/rondo/vulkan.h": "// Import.\n#include <vulkan/vulkan_core.h>\n#include <rondo/a.h>\n",
    "include/rondo/a.h": """// A Thing and what belongs to it.
#include <cstdint>
#include <stdint.h>
#include <rondo/b.h>
namespace rondo {
namespace models { class Hidden; }
enum class Level : std::uint8_t { kLow, kHigh };
class Thing {
 public:
  Thing() = default;
  Thing& operator=(const Thing&) = delete;
  int size() const { return 1; }

  explicit Thing(int x);

  int& value() & { return *value_; }

  Thing* operator->() { return this; }

  /// Documents the paragraph.
  int f(int x);
  int g(int x);
  std::function<void(int)> on_text;  ///< a member
 private:
  void secret(int x);
  struct Inner { void also_secret(int x); };
};
}  // namespace rondo
""",
    "include/rondo/b.h": "// B.\n#pragma once\n",
    "runtime/program.h": '#include <vector>\n#include "shaders/add.params.h"\n',
    "runtime/device.cpp": '#include <volk.h>\n#include "runtime/program.h"\n#include <rondo/a.h>\n',
    "shaders/add.params.h": "struct P { int n; };\n",
    "graph/a.cpp": '#include "runtime/program.h"\n// vkCmdDispatch is runtime\'s\nconst char* s = "vkQueueSubmit {";\n',
    "models/json.cpp": "#include <nlohmann/json.hpp>\n",
    "tests/unit/a.cpp": '#include <gtest/gtest.h>\n#include "models/json.h"\n#include "tests/support/b.h"\n',
    "samples/a.cpp": "#include <cstdio>\n#include <termios.h>\n#include <rondo/a.h>\n",
    "docs/a.md": "```cpp\nint any;\n```\n<!-- from samples/b.c -->\n```cpp\nint x;\n// ...\nif (x) {\n  f();\n```\n",
    "samples/b.c": "  int x;\n  int y;\n  if (x) {\n    f();\n  }\n",
    "samples/models/big.gguf": "\0" * (MAX_FILE_BYTES + 1),
    "runtime/long_but_fine.cpp":
        "namespace a {\nclass B {\n" + "  int f() { return 1'000; }\n" * 120 + "};\n"
        + "constexpr int kTable[] = {\n" + "  1,\n" * 120 + "};\n"
        + "#if X\nvoid f() {\n#else\nvoid f(int) {\n#endif\n}\n"
        + "int g(int x = 1) { return '{'; }\n" * 120 + "}\n",
}


def findings_in(files):
    with tempfile.TemporaryDirectory() as root:
        for path, content in files.items():
            full = os.path.join(root, path)
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "w", encoding="utf-8") as file:
                file.write(content)
        return [f"{path}:{line}: {message}" for path, line, message in check_tree(root)]


def self_test():
    wrong = 0
    for expected, files in BROKEN:
        found = findings_in(files)
        if len(found) != 1 or expected not in found[0]:
            print(f"self-test: expected one finding with '{expected}' in {sorted(files)}, got {found}")
            wrong += 1
    found = findings_in(SOUND)
    if found:
        print("self-test: findings in a sound tree:", *found, sep="\n  ")
    print(f"self-test: {len(BROKEN) - wrong} of {len(BROKEN)} broken trees caught, {len(found)} false findings")
    return 1 if wrong or found else 0


def main():
    parser = argparse.ArgumentParser(description="Checks include directions, sizes and comments.")
    parser.add_argument("folder", nargs="?", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    parser.add_argument("--self-test", action="store_true", help="check the checks instead")
    arguments = parser.parse_args()
    if arguments.self_test:
        return self_test()
    found = [f"{path}:{line}: {message}" for path, line, message in check_tree(arguments.folder)]
    print("\n".join(found + [f"check_tree: {len(found)} findings"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
