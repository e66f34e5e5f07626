"""The house in figures: lines and constants of the core, and the way of one fit through the files.

python benchmarks/house.py
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from pathlib import Path

import emvc
from emvc import EMVC
from emvc.datasets import make_digits_views

ROOT = Path(emvc.__file__).parent
NOT_CORE = ("files", "report", "experiments", "datasets", "cli", "plot", "intake", "explanation")


def core_files():
    return [path for path in sorted(ROOT.rglob("*.py")) if path.relative_to(ROOT).parts[0] not in NOT_CORE]


def constants(path):
    """Return module-level names in capitals whose value is a number or a tuple of numbers."""
    found = []
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        names = [
            n.id for t in targets for n in (t.elts if isinstance(t, ast.Tuple) else [t]) if isinstance(n, ast.Name)
        ]
        if names and all(name.upper() == name and any(c.isalpha() for c in name) for name in names):
            try:
                value = ast.literal_eval(node.value)
            except (ValueError, TypeError):
                continue
            values = value if isinstance(value, tuple) else (value,)
            if all(isinstance(v, int | float) and not isinstance(v, bool) for v in values):
                found += names
    return found


def way_of_a_fit():
    """Return calls from one file to another, files, functions and depth of one default fit."""
    data = make_digits_views(n_samples=300)
    EMVC(10, random_state=0).fit(data.views)
    stack, crossings, functions, deepest = [], 0, Counter(), 0

    def trace(frame, event, _):
        nonlocal crossings, deepest
        name = frame.f_code.co_filename
        if not name.startswith(str(ROOT)):
            return
        if event == "call":
            if stack and stack[-1] != name:
                crossings += 1
            stack.append(name)
            deepest = max(deepest, len(stack))
            functions[name, frame.f_code.co_qualname] += 1
        elif event == "return" and stack:
            stack.pop()

    sys.setprofile(trace)
    try:
        EMVC(10, random_state=0, n_jobs=1).fit(data.views)
    finally:
        sys.setprofile(None)
    return crossings, len({name for name, _ in functions}), len(functions), deepest


def main():
    files = core_files()
    by_file = {path.relative_to(ROOT).as_posix(): constants(path) for path in files}
    solvers = sum(len(found) for name, found in by_file.items() if name.startswith("solvers/"))
    total = sum(len(found) for found in by_file.values())
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files)
    print(f"core: {len(files)} files, {lines} lines")
    print(f"named numeric constants: {total}, of which {solvers} in the solvers of the paper's model")
    for name, found in by_file.items():
        if found:
            print(f"  {name}: {', '.join(found)}")
    crossings, n_files, n_functions, deepest = way_of_a_fit()
    print(f"one fit: {n_functions} functions in {n_files} files, {crossings} calls across files, depth {deepest}")


if __name__ == "__main__":
    main()
