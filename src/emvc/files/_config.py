"""How to read which file, and the options of a command, as a file in TOML."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from emvc.files._base import ReadOptions
from emvc.files._check import Check
from emvc.files._read import split_name
from emvc.out_of_core import split_path

_KINDS: dict[str, tuple[type, str]] = {
    "id_column": (str, "a column, or false if there are no ids"),
    "header": (bool, "true or false"),
    "separator": (str, "text"),
    "decimal": (str, "'.' or ','"),
    "encoding": (str, "text"),
    "sheet": (str, "text"),
    "transpose": (bool, "true or false"),
    "drop": (list, "a list of columns"),
}
"""What may be said about a file, in the words of `ReadOptions`."""


@dataclass(frozen=True)
class Config:
    """Files, how to read them, and options of a command.

    Attributes
    ----------
    paths : list of str
        Files, as ``name=path`` where the view has a name of its own.
    each : dict of ReadOptions
        How to read them, by path.
    options : dict
        Options of the command, with ``_`` for ``-``.
    """

    paths: list[str] = field(default_factory=list)
    each: dict[str, ReadOptions] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)


def read_config(path: Path) -> Config:
    """Read a file in TOML; paths in it are relative to its folder.

    Raises
    ------
    ValueError
        If it is no TOML, or something in it has no meaning; the message names the place.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path.name} is not readable as TOML ({error}).") from None
    files = content.pop("files", {})
    if not isinstance(files, dict) or not all(isinstance(entry, dict) for entry in files.values()):
        raise ValueError(f'{path.name}: files are written as [files."gene.csv"], with lines of options below.')
    config = Config(options={name.replace("-", "_"): value for name, value in content.items()})
    for address, entry in files.items():
        name = entry.pop("name", None)
        if name is not None and not isinstance(name, str):
            raise ValueError(f"{path.name}: name of {address} must be text.")
        where = _beside(path, address)
        config.paths.append(f"{name}={where}" if name else where)
        config.each[where] = _options(entry, f"{path.name}: {address}")
    return config


def _beside(config: Path, address: str) -> str:
    """Return the path of a file that is named relative to the folder of the config."""
    file, part = split_path(address)
    found = str(config.parent / file) if config.parent != Path() else file
    return f"{found}::{part}" if part else found


def _options(entry: Mapping[str, Any], where: str) -> ReadOptions:
    chosen: dict[str, Any] = {}
    for key, value in entry.items():
        name = key.replace("-", "_")
        if name not in _KINDS:
            raise ValueError(f"{where}: there is no option {key!r}; known are name, {', '.join(_KINDS)}.")
        kind, expected = _KINDS[name]
        if name == "id_column" and value is False:
            chosen[name] = ""
        elif isinstance(value, list) and kind is list and all(isinstance(one, str) for one in value):
            chosen[name] = tuple(value)
        elif type(value) is kind and kind is not list:
            chosen[name] = value
        else:
            raise ValueError(f"{where}: {key} must be {expected}, got {value!r}.")
    if chosen.get("decimal", ".") not in (".", ","):
        raise ValueError(f"{where}: decimal must be '.' or ',', got {chosen['decimal']!r}.")
    return ReadOptions(**chosen)


def as_config(found: Check, paths: Sequence[str], folder: Path) -> str:
    """Return what `check` has found as TOML that reads the same files the same way, relative to a folder."""
    lines = ["# For emvc cluster --config, and emvc predict --config. Paths are relative to the folder of this file."]
    own = {name: value for name, value in found.options.items() if name != "transpose"}  # which is told for each file
    lines += [f"{name.replace('_', '-')} = {_toml(value)}" for name, value in own.items()]
    for path in paths:
        name, address = split_name(path)
        file, part = split_path(address)
        views = [view for view in found.views if view.source == Path(file).name]
        several = len(views) > 1 and all("sheet" in view.options for view in views)
        near = os.path.relpath(file, folder)
        for view in views if several else views[:1]:
            inside = view.options["sheet"] if several else part
            lines += ["", f"[files.{_toml(f'{near}::{inside}' if inside else near)}]"]
            lines += [f"# {' '.join(text.split())}" for text in (view.how, *view.columns) if text]
            lines += [f"name = {_toml(view.name)}"] if name or several else []
            lines += [f"{key} = {_toml(value)}" for key, value in view.options.items() if key != "sheet"]
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    """Return a value as TOML writes it, which for text and lists is as JSON does; no column of ids is false."""
    return "false" if value == "" else json.dumps(value, ensure_ascii=False)
