"""Do the tests notice? One line of the core is changed at a time, and the tests of its file must fail.

python benchmarks/mutations.py [--per-file 8] [--files method/agreement.py,...] [--seed 0]

Changes: comparisons turned round, plus and minus, times and divided, minimum and maximum, and and or exchanged, a
condition negated, True and False exchanged, a number ten times as large (zero becomes one). They are drawn at random
from all that a file offers, after what only words a message was left out. Works on a copy of the checkout.
"""

from __future__ import annotations

import argparse
import ast
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
LIMIT = 300.0  # seconds for the tests of one change

TESTS = {
    "method/isolation.py": ["tests/method"],
    "method/agreement.py": ["tests/method"],
    "method/places.py": ["tests/method"],
    "method/joint.py": ["tests/method"],
    "method/local.py": ["tests/method"],
    "method/reference.py": ["tests/method", "tests/test_estimators.py"],
    "method/prepare.py": ["tests/method", "tests/test_predict.py", "tests/test_estimators.py"],
    "method/landmarks.py": ["tests/method", "tests/test_distributed.py"],
    "method/blocks.py": ["tests/method", "tests/test_predict.py", "tests/test_distributed.py"],
    "problem.py": ["tests/test_problem.py", "tests/test_row_problem.py", "tests/solvers"],
    "prox.py": ["tests/test_prox.py", "tests/solvers"],
    "spectral.py": ["tests/test_spectral.py", "tests/method", "tests/test_estimators.py"],
    "graphs.py": ["tests/test_graphs.py", "tests/method"],
    "extension.py": ["tests/test_predict.py"],
    "cluster_count.py": ["tests/test_selection.py", "tests/test_estimators.py"],
    "persistence.py": ["tests/test_persistence.py"],
}

COMPARED = {ast.Lt: ">=", ast.LtE: ">", ast.Gt: "<=", ast.GtE: "<", ast.Eq: "!=", ast.NotEq: "=="}
EXCHANGED = {ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*"}
NAMES = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum", "argmin": "argmax", "argmax": "argmin",
         "any": "all", "all": "any", "zeros": "ones", "ones": "zeros", "zeros_like": "ones_like"}  # fmt: skip


def exchanged(node):  # noqa: PLR0911
    """Return the source of a changed expression, or None."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARED and len(node.ops) == 1:
        return f"{ast.unparse(node.left)} {COMPARED[type(node.ops[0])]} {ast.unparse(node.comparators[0])}"
    if isinstance(node, ast.BinOp) and type(node.op) in EXCHANGED and not _is_text(node):
        return f"({ast.unparse(node.left)}) {EXCHANGED[type(node.op)]} ({ast.unparse(node.right)})"
    if isinstance(node, ast.BoolOp):
        word = " or " if isinstance(node.op, ast.And) else " and "
        return word.join(f"({ast.unparse(value)})" for value in node.values)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.Invert | ast.USub):
        return ast.unparse(node.operand)
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        return str(not node.value)
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return repr(10 * node.value if node.value else 1)
    if isinstance(node, ast.Attribute) and node.attr in NAMES:
        return f"{ast.unparse(node.value)}.{NAMES[node.attr]}"
    if isinstance(node, ast.Name) and node.id in ("min", "max"):
        return NAMES[node.id]
    return None


def _is_text(node):
    return any(isinstance(part, ast.Constant | ast.JoinedStr) and not isinstance(getattr(part, "value", 0), int | float)
               for part in ast.walk(node))  # fmt: skip


def changes(source):
    """Return all changes of a file, as (line, first column, last column, text)."""
    tree = ast.parse(source)
    skipped = set()
    for node in ast.walk(tree):
        annotations = [getattr(node, "annotation", None), getattr(node, "returns", None)]
        raised = node if isinstance(node, ast.Raise | ast.Assert | ast.JoinedStr) else None
        for part in [*annotations, raised, *(getattr(node, "decorator_list", []))]:
            if part is not None:
                skipped |= set(ast.walk(part))
    found = []
    for node in ast.walk(tree):
        text = None if node in skipped else exchanged(node)
        if text is not None and node.lineno == node.end_lineno:
            found.append((node.lineno, node.col_offset, node.end_col_offset, f"({text})" if " " in text else text))
    return found


def mutated(source, change):
    line, first, last, text = change
    lines = source.splitlines(keepends=True)
    raw = lines[line - 1].encode()
    lines[line - 1] = (raw[:first] + text.encode() + raw[last:]).decode()
    return "".join(lines)


def fails(copy, tests):
    """Return whether the tests fail, or do not come to an end."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    environment = os.environ | {"PYTHONPATH": str(copy / "src")}
    try:
        done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, timeout=LIMIT, check=False)
    except subprocess.TimeoutExpired:
        return True
    return done.returncode != 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--per-file", type=int, default=8)
    parser.add_argument("--files", default=",".join(TESTS))
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    killed, survivors = 0, []
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "checkout"
        ignored = shutil.ignore_patterns(".git", ".venv*", "docs", "*.egg-info", "emvc-*")
        shutil.copytree(ROOT, copy, ignore=ignored)
        for name in options.files.split(","):
            path = copy / "src" / "emvc" / name
            source = path.read_text(encoding="utf-8")
            if fails(copy, TESTS[name]):
                raise SystemExit(f"The tests of {name} fail as they are.")
            possible = changes(source)
            for index in sorted(rng.permutation(len(possible))[: options.per_file]):
                change, start = possible[index], time.perf_counter()
                path.write_text(mutated(source, change), encoding="utf-8")
                caught = fails(copy, TESTS[name])
                killed += caught
                line = source.splitlines()[change[0] - 1].strip()
                told = f"{name}:{change[0]}: {line}  ->  {change[3]}"
                survivors += [] if caught else [told]
                seconds = time.perf_counter() - start
                print(f"{'killed  ' if caught else 'SURVIVED'} {seconds:5.1f} s  {told}", flush=True)
            path.write_text(source, encoding="utf-8")
    total = killed + len(survivors)
    print(f"\n{killed} of {total} changes were noticed ({killed / total:.0%}). Survivors:")
    print("\n".join(survivors))


if __name__ == "__main__":
    main()
