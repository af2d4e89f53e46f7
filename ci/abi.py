#!/usr/bin/env python3
"""Compares structs and enumerators with those of the ABI, in ci/abi.txt:  python3 ci/abi.py [--write]

Within an ABI (docs/abi.md) what is there stays where it is.  New members come at the end of structs
whose sizes programs tell, behind all bytes that the struct had, its padding, too; and a struct that
has grown ends without padding, as what lies in it is not always 0.  --write: records what is new, or
begins a new ABI, of this version; members of a version that has not been released may still be moved."""
import pathlib
import subprocess
import sys
import tempfile

from headers import ROOT, Headers

RECORD = pathlib.Path(__file__).with_suffix(".txt")
POINTED_TO = {"clb_tensor_product_desc", "clb_model_exchange", "clb_optimizer_tensor", "clb_optimizer_group"}  # by those that are told
WITHIN = {"clb_convolution_desc": "clb_tensor_product_desc"}  # its first member, told apart: places count from its end
CALLED_BACK = {"clb_device_info", "clb_profile_entry"}  # the library's own, in callbacks


def growing(headers):
    """The structs whose sizes a program tells, and those that it only reads."""
    told = {struct for function in headers.functions.values() for struct in function.sizes}
    return told | POINTED_TO | CALLED_BACK


def layout(headers):
    """Lines "struct size" and "struct.member offset size", in order, and "ENUMERATOR value"."""
    lines = ["#include <clebsch/model.h>", "#include <stdio.h>", "#include <stddef.h>", "int main(void) {"]
    for name, parts in headers.structs.items():
        start = f"sizeof({WITHIN[name]})" if name in WITHIN else "0"
        members = [m.name for m in sum(parts, [])][name in WITHIN:]
        lines.append(f'printf("{name} %zu\\n", sizeof({name}) - {start});')
        lines += [f'printf("{name}.{m} %zu %zu\\n", offsetof({name}, {m}) - {start}, sizeof((({name} *)0)->{m}));'
                  for m in members]
    lines += [f'printf("{name} %d\\n", (int){name});' for name in headers.constants]
    with tempfile.TemporaryDirectory() as folder:
        source, program = pathlib.Path(folder, "abi.c"), pathlib.Path(folder, "abi")
        source.write_text("\n".join(lines + ["return 0; }"]))
        subprocess.run(["cc", "-std=c11", "-w", f"-I{ROOT / 'include'}", source, "-o", program], check=True)
        return subprocess.run([program], check=True, capture_output=True, text=True).stdout.splitlines()


def table(lines):
    return {name: tuple(map(int, numbers)) for name, *numbers in map(str.split, lines)}


def differences(then, now, may_grow):
    for name, numbers in then.items():
        grown = "." not in name and name in may_grow and name in now and now[name] > numbers
        if now.get(name) != numbers and not grown:
            yield f"{name}: {' '.join(map(str, numbers))} in {RECORD.name}, {' '.join(map(str, now.get(name, ['nothing'])))} now"
    for name, numbers in now.items():
        struct = name.partition(".")[0]
        if name in then or struct == name or struct not in then:
            continue
        if struct not in may_grow:
            yield f"{name} is new, but programs do not tell the size of {struct}"
        elif numbers[0] < then[struct][0]:
            yield f"{name} is new, but lies within the {then[struct][0]} bytes that {struct} had; it must be behind them"
        elif max(sum(n) for m, n in now.items() if m.startswith(f"{struct}.")) < now[struct][0]:
            yield f"{struct} ends with padding; it has new members, so that it must end with one"


def main():
    headers = Headers()
    version, now = headers.version.rpartition(".")[0], layout(headers)
    if sys.argv[1:] == ["--write"]:
        RECORD.write_text("\n".join([f"version {version.replace('.', ' ')}", *now, ""]))
        return
    first, *then = RECORD.read_text().splitlines()
    if first.split()[1:] != version.split("."):
        sys.exit(f"{RECORD.name} is of another ABI than {version}: python3 ci/abi.py --write")
    wrong = list(differences(table(then), table(now), growing(headers)))
    if not wrong and now != then:
        missing = [line for line in now if line not in then]
        wrong.append(f"not in {RECORD.name}: {'; '.join(missing[:5])} ...: python3 ci/abi.py --write")
    if len(then) < 200 or len(growing(headers)) < 15:
        wrong.append(f"found only {len(then)} lines and {len(growing(headers))} structs that grow")
    print("\n".join(wrong), end="\n" if wrong else "")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
