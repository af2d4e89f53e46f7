"""Reads clebsch.h and model.h: their enumerators, structs and functions.

The C preprocessor takes out comments and macros.  A declaration that has none of the forms below
ends the script, so that nothing is left out in silence."""
import collections
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
NUMBERS = ("char", "unsigned char", "int", "unsigned", "int32_t", "int64_t", "uint64_t", "size_t",
           "double")

# type: of NUMBERS, "void", or a name that the headers define.  stars: how many.  const: what the
# pointer points to is only read.  extents: of an array.
Variable = collections.namedtuple("Variable", "name type stars const extents")
# sizes: the structs whose sizes NAME_sized takes, after the arguments.
Function = collections.namedtuple("Function", "result arguments sizes")


def refuse(text):
    sys.exit(f"ci/headers.py does not understand: {text}")


class Headers:
    def __init__(self):
        self.text = "".join((ROOT / "include" / "clebsch" / name).read_text()
                            for name in ("clebsch.h", "model.h"))
        self.version = re.search(r'#define CLB_VERSION "(.*)"', self.text)[1]
        self.enums = {}  # name, or the first enumerator's of those without, to {enumerator: value}
        self.structs = {}  # name to lists of Variables, one for each declaration
        self.functions, self.handles, self.callbacks = {}, [], []
        plain = subprocess.run(["cc", "-E", "-P", "-undef", "-xc", "-"], check=True, text=True,
                               input=re.sub(r"#include.*", "", self.text), stdout=subprocess.PIPE)
        form = r"\s*(static inline[^;{]*\{[^{}]*\}|(?:[^{};]|\{[^{}]*\})+;)\s*"
        if re.sub(form, "", plain.stdout):
            refuse(re.sub(form, "", plain.stdout))
        for declaration in re.findall(form, plain.stdout):
            self.declaration(" ".join(declaration.split()).replace("( ", "("))
        for name, function in self.functions.items():
            if function.sizes is None or name.endswith("_sized"):
                refuse(f"{name}: it and its _sized must both be there")
        self.constants = {n: value for enum in self.enums.values() for n, value in enum.items()}

    def declaration(self, text):
        forms = ((r"typedef struct (\w+) \1;", self.handles.append),
                 (r"typedef enum \{(.*)\} (\w+);", self.enum),
                 (r"enum \{(.*)\}();", self.enum),
                 (r"typedef struct \{(.*); \} (\w+);", self.struct),
                 (r"typedef clb_status \(\*(\w+)\)\(.*\);", self.callbacks.append),
                 (r"static inline clb_status (\w+)\([^{}]*\) \{ return (\w+)\((.*)\); \}",
                  self.sizes),
                 (r"(static inline clb_status|clb_status|int|void|const char \*) ?(\w+)\((.*)\);",
                  self.function))
        for form, read in forms:
            found = re.fullmatch(form, text)
            if found:
                return read(*found.groups())
        refuse(text)

    def enum(self, body, name):
        value, values = -1, {}
        for word in filter(None, map(str.strip, body.split(","))):
            word, _, given = map(str.strip, word.partition("="))
            if not re.fullmatch(r"(-?\d+)?", given):
                refuse(f"{word} = {given}")
            value = values[word] = int(given) if given else value + 1
        self.enums[name or next(iter(values))] = values

    def struct(self, body, name):
        self.structs[name] = [self.variables(part.strip()) for part in body.split(";")]

    def variables(self, text):
        """Of `const int *a, *b` or `int a, b[3]`."""
        first, *others = text.split(",")
        found = re.fullmatch(r"(const )?((?:unsigned )?\w+) (.*)", first)
        if not found:
            refuse(text)
        const, kind, first = found.groups()
        known = (*NUMBERS, "void", *self.handles, *self.callbacks, *self.structs, *self.enums)
        whole = []
        for word in [first, *others]:
            parts = re.fullmatch(r"(\**)(?:const \*)?(\w+)((?:\[\w+\])*)", word.strip())
            if not parts or kind not in known:
                refuse(text)
            extents = tuple(int(e) if e.isdigit() else self.value(e)
                            for e in re.findall(r"\w+", parts[3]))
            whole.append(Variable(parts[2], kind, word.count("*"), bool(const), extents))
        return whole

    def value(self, name):
        return next(enum[name] for enum in self.enums.values() if name in enum)

    def arguments(self, text):
        text = re.sub(r"void \(\*(\w+)\)\([^()]*\)", r"callback \1", text)
        return [] if text == "void" else [
            Variable(part[9:], "callback", 0, False, ()) if part.startswith("callback ")
            else self.variables(part)[0] for part in text.split(", ")]

    def function(self, result, name, arguments):
        sizes = None if result.startswith("static") else ()
        self.functions[name] = Function(result.split()[-1], self.arguments(arguments), sizes)

    def sizes(self, name, called, given):
        """From a call of NAME_sized: its last arguments are sizes of structs."""
        function, whole = self.functions[name], self.functions.pop(called).arguments
        given, own = given.split(", "), function.arguments
        if (called != name + "_sized" or given[:len(own)] != [a.name for a in own]
                or whole[:len(own)] != own or any(a.type != "size_t" for a in whole[len(own):])
                or len(whole) != len(given) or len(given) == len(own)):
            refuse(f"{name}: its call of {called}")
        kinds = {a.name: a.type for a in own}
        sizes = [self.size(word, kinds) for word in given[len(own):]]
        self.functions[name] = function._replace(sizes=sizes)

    def size(self, text, kinds):
        """The struct of `sizeof *desc`, `sizeof desc->product`, `sizeof(clb_optimizer_group)`."""
        found = re.fullmatch(r"sizeof(?:\((\w+)\)| \*(\w+)| \*?(\w+)->(\w+))", text)
        if not found:
            refuse(text)
        struct, argument, owner, member = found.groups()
        if not member:
            return struct or kinds[argument]
        return next(m.type for m in sum(self.structs[kinds[owner]], []) if m.name == member)
