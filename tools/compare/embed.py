"""Writes files as arrays of C:  python3 embed.py OUT.c NAME=FILE ...   const char NAME[], ends with 0."""
import pathlib
import sys

with open(sys.argv[1], "w", encoding="ascii") as out:
    for name, path in (argument.split("=", 1) for argument in sys.argv[2:]):
        bytes_of = pathlib.Path(path).read_bytes() + b"\0"
        rows = [", ".join(map(str, bytes_of[i:i + 24])) for i in range(0, len(bytes_of), 24)]
        out.write(f"extern const char {name}[];\nconst char {name}[] = {{\n  " + ",\n  ".join(rows) + "};\n")
