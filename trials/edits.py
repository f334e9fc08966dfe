"""Edits of files by a script of bytes, behind their lengths and checksums if the script says so.

A script is what a fuzzer changes: one byte of flags, then edits of at least seven bytes each. No
script is the files as they are.
"""

from __future__ import annotations

import gzip
import io
import json
import math
import os
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from nodeflow.storage._open import _SAFETENSORS

Files = dict[str, bytes]
"""Contents by path; the parts of a file are called FILE!PART."""

INSIDE = 1
SIGNED = 2
FITTED = 4
"""Flags: edits are of headers, members and numbers, and lengths follow; checksums are made again;
shapes follow.
"""

_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
_WORD = re.compile(rb'"(?:[^"\\\n]|\\.){0,60}"|[A-Za-z_][\w.]*')
_NUMBERS = (
    b"-1", b"0", b"1", b"2", b"3", b"7", b"39", b"40", b"41", b"300", b"2147483648", b"1099511627776",
    b"9223372036854775807", b"18446744073709551616", b"1e400", b"0.5", b"nan", b"NaN", b"null", b"true", b"[]", b"{}",
    b'"x"', b"[" * 3000, b"1" * 5000,
)  # fmt: skip
_WORDS = (
    b'""', b"null", b"true", b"0", b'"../x"', b'"/etc/passwd"', b'"\\u0000"', b'"int64"', b'"float64"', b'"bfloat16"',
    b'"antigravity:make"', b"|O", b"<i8", b">f4", b"inf", b"nan", b"-inf", "é\u202e".encode(), b"\xff",
)  # fmt: skip
_INTEGERS = (-1, 0, 1, 2, 39, 40, 41, 300, 2**31, 2**40, 2**62, -(2**63))


def edited(files: Mapping[str, bytes], script: bytes) -> tuple[Files, dict[str, str]]:
    """Return the files after the edits of a script, and by path what lies in place of some: pipe,
    folder or link.
    """
    flags = script[0] if script else 0
    inside = bool(flags & INSIDE)
    parts = _apart(files) if inside else dict(files)
    odd: dict[str, str] = {}
    for kind, at, *rest in _edits(script[1:]):
        name = sorted(parts)[at % len(parts)]
        _OPERATIONS[kind % len(_OPERATIONS)](parts, name, odd, *rest)
        if not parts:
            break
    if flags & FITTED and inside:
        _fit_headers(parts)
    changed = _together(parts) if inside else parts
    if flags & SIGNED:
        sign(changed, fitted=bool(flags & FITTED))
    return changed, {name.split("!")[0]: what for name, what in odd.items()}


def edit(kind: str, file: int, place: int = 0, a: int = 0, b: int = 0, text: bytes = b"") -> bytes:
    """Return an edit as it stands in a script."""
    number = [operation.__name__ for operation in _OPERATIONS].index(f"_{kind}")
    return bytes([number, file, *place.to_bytes(2), a, b, len(text)]) + text


def seeds(files: Mapping[str, bytes]) -> Iterator[bytes]:
    """Yield scripts to begin with: none, and edits of all kinds on each file, plain and inside with
    all made to fit.
    """
    yield b""
    for flags, names in ((0, files), (INSIDE | SIGNED | FITTED, _apart(files))):
        for file in range(min(len(names), 256)):
            for kind in range(file % 3, len(_OPERATIONS), 3):
                at = (37 * kind + 11 * file) % 97
                yield bytes([flags, kind, file, 0, at, kind + file & 255, at, 3]) + b"1,9"


def _edits(script: bytes) -> Iterator[tuple[int, int, int, int, int, bytes]]:
    at = 0
    while at + 7 <= len(script):
        kind, file, high, low, a, b, length = script[at : at + 7]
        yield kind, file, high << 8 | low, a, b, script[at + 7 : at + 7 + length]
        at += 7 + length


# the operations: on the parts, the name of one, what lies in place of files, a place in it, two
# numbers and some bytes


def _bit(parts: Files, name: str, _: Any, place: int, a: int, b: int, text: bytes) -> None:
    data = bytearray(parts[name])
    if data:
        data[place % len(data)] ^= 1 << a % 8
    parts[name] = bytes(data)


def _put(parts: Files, name: str, _: Any, place: int, a: int, b: int, text: bytes) -> None:
    data = parts[name]
    at = place % (len(data) + 1)
    parts[name] = data[:at] + text + data[at + (a if b & 1 else len(text)) :]


def _insert(parts: Files, name: str, _: Any, place: int, a: int, b: int, text: bytes) -> None:
    data = parts[name]
    at = place % (len(data) + 1)
    parts[name] = data[:at] + (text if b & 1 else data[at : at + a]) + data[at:]


def _delete(parts: Files, name: str, _: Any, place: int, a: int, b: int, text: bytes) -> None:
    data = parts[name]
    at = place % (len(data) + 1)
    parts[name] = data[:at] if b % 4 == 0 else data[:at] + data[at + a :]


def _integer(parts: Files, name: str, _: Any, place: int, a: int, b: int, text: bytes) -> None:
    data = bytearray(parts[name])
    size = 8 if b & 1 else 4
    at = place % max(len(data) // size, 1) * size
    number = _INTEGERS[a % len(_INTEGERS)] + (b >> 1) % 4
    data[at : at + size] = (number % 256**size).to_bytes(size, "little")
    parts[name] = bytes(data)


def _number(parts: Files, name: str, _: Any, place: int, a: int, b: int, text: bytes) -> None:
    new = text if b & 1 else _NUMBERS[a % len(_NUMBERS)]
    parts[name] = _replaced(parts[name], _NUMBER, place, new)


def _word(parts: Files, name: str, _: Any, place: int, a: int, b: int, text: bytes) -> None:
    others = _WORD.findall(parts[name][:65536])
    new = (
        text
        if b % 3 == 0
        else others[a % len(others)]
        if b % 3 == 1 and others
        else _WORDS[a % len(_WORDS)]
    )
    parts[name] = _replaced(parts[name], _WORD, place, new)


def _replaced(data: bytes, pattern: re.Pattern[bytes], place: int, new: bytes) -> bytes:
    matches = list(pattern.finditer(data[:65536]))
    if not matches:
        return data
    begin, end = matches[place % len(matches)].span()
    return data[:begin] + new + data[end:]


def _splice(parts: Files, name: str, _: Any, place: int, a: int, b: int, text: bytes) -> None:
    other = parts[sorted(parts)[a % len(parts)]]
    at = place % (len(parts[name]) + 1)
    parts[name] = parts[name][:at] + other[b * len(other) // 256 :] if b else other


def _whole(parts: Files, name: str, _: Any, place: int, a: int, b: int, text: bytes) -> None:
    parts[name] = text * (1 + b * (a == 255))


def _gone(
    parts: Files, name: str, odd: dict[str, str], place: int, a: int, b: int, text: bytes
) -> None:
    del parts[name]
    if kind := ("", "pipe", "folder", "link")[a % 4]:
        odd[name] = kind


_OPERATIONS = (_bit, _put, _insert, _delete, _integer, _number, _word, _splice, _whole, _gone)


def place_files(place: Path, files: Mapping[str, bytes], odd: Mapping[str, str]) -> None:
    """Write files, and what lies in place of some, into a folder; the file called "" is ``place``
    itself.
    """
    for name, data in files.items():
        path = place / name if name else place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    for name, kind in odd.items():
        path = place / name if name else place
        if not path.parent.is_dir() or path.exists():
            continue
        if kind == "pipe":
            os.mkfifo(path)
        elif kind == "folder":
            path.mkdir()
        else:
            path.symlink_to(path.parent / "nowhere")


# files taken apart, so that edits reach what lies behind lengths and sums, and put together again


def _apart(files: Mapping[str, bytes]) -> Files:
    parts: Files = {}
    for name, data in files.items():
        try:
            members = _members(name, data)
        except (ValueError, OSError, zipfile.BadZipFile, zlib.error):
            members = {}
        parts |= (
            _apart({f"{name}!{member}": inner for member, inner in members.items()})
            if members
            else {name: data}
        )
    return parts


def _members(name: str, data: bytes) -> Files:
    if name.endswith(".npz"):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return {member: archive.read(member) for member in archive.namelist()}
    if name.endswith(".gz"):
        return {"text": gzip.decompress(data)}
    if data[:6] == b"\x93NUMPY" and not name.endswith("!head"):
        start = 10 if data[6] == 1 else 12
        end = start + int.from_bytes(data[8:start], "little")
        return {"head": data[:8], "table": data[start:end], "numbers": data[end:]}
    if name.endswith(".safetensors"):
        end = 8 + int.from_bytes(data[:8], "little")
        return {"table": data[8:end], "numbers": data[end:]}
    return {}


def _together(parts: Files) -> Files:
    while packed := {name.rpartition("!")[0] for name in parts if "!" in name}:
        depth = max(name.count("!") for name in packed)
        for name in [each for each in packed if each.count("!") == depth]:
            members = {
                key.rpartition("!")[2]: parts.pop(key)
                for key in [*parts]
                if key.rpartition("!")[0] == name
            }
            parts[name] = _packed(name, members)
    return parts


def _packed(name: str, members: Files) -> bytes:
    if name.endswith(".npz"):
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as archive:
            for member, data in members.items():
                archive.writestr(zipfile.ZipInfo(member), data)
        return file.getvalue()
    if name.endswith(".gz"):
        return gzip.compress(members.get("text", b""), 1, mtime=0)
    head, table, numbers = (members.get(part, b"") for part in ("head", "table", "numbers"))
    size = 8 if name.endswith(".safetensors") else 2 if head[6:7] == b"\x01" else 4
    return head + (len(table) % 256**size).to_bytes(size, "little") + table + numbers


def _fit_headers(parts: Files) -> None:
    """Let the first size of each array follow from the number of its bytes."""
    for name in [name for name in parts if name.endswith("!table")]:
        numbers = len(parts.get(name.removesuffix("table") + "numbers", b""))
        match = re.search(
            rb"'descr': '([^']*)'.*'shape': \((\d+),((?: ?\d+(?:,|(?=\))))*)\)", parts[name]
        )
        if match:
            try:
                row = np.dtype(match[1].decode()).itemsize * math.prod(
                    map(int, re.findall(rb"\d+", match[3]))
                )
            except (TypeError, ValueError, SyntaxError):
                continue
            rows = str(numbers // max(row, 1)).encode()
            parts[name] = parts[name][: match.start(2)] + rows + parts[name][match.end(2) :]


def sign(files: Files, *, fitted: bool = False) -> None:
    """Make the checksums of all files again: in manifests, journals and checkpoints; ``fitted``:
    also types, shapes.
    """
    for name in sorted(files):
        try:
            if name.endswith(".safetensors"):
                files[name] = _signed_tensors(files[name])
            elif Path(name).name == "journal":
                files[name] = _signed_journal(files[name])
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            continue
    for name in [name for name in files if Path(name).name == "manifest.json"]:
        try:
            words = json.loads(files[name])
            words.pop("checksum", None)
            for array in words["arrays"].values():
                for plain in (array, *(array.get("csr") or ())):
                    _sign_array(plain, files.get(str(Path(name).parent / plain["file"])), fitted)
            value = zlib.crc32(json.dumps(words, sort_keys=True).encode())
            files[name] = json.dumps({**words, "checksum": value}).encode()
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            continue


def _sign_array(facts: dict[str, Any], data: bytes | None, fitted: bool) -> None:
    if data is None:
        return
    if facts["checksum"]:
        facts["checksum"] = zlib.crc32(data)
    if (
        fitted
        and facts.get("csr") is None
        and (match := re.search(rb"'shape': \(([^)]*)\)", data[:4096]))
    ):
        facts["shape"] = [int(size) for size in re.findall(rb"\d+", match[1])]


def _signed_journal(data: bytes) -> bytes:
    words = np.frombuffer(data, np.int64, 4).copy()
    with np.errstate(over="ignore"):
        words[1] = np.add.reduce(np.frombuffer(data[64 : int(words[0])], np.int64)) + words[2]
    return words.tobytes() + data[32:]


def _signed_tensors(data: bytes) -> bytes:
    end = 8 + int.from_bytes(data[:8], "little")
    table = json.loads(data[8:end])
    entry = re.fullmatch(
        r'\{"checksum": "[^"]*", "facts": (.*)\}', table["__metadata__"]["nodeflow"], re.DOTALL
    )
    if entry is None:
        return data
    value = zlib.crc32(entry[1].encode())
    for name, facts in sorted(
        (name, facts) for name, facts in table.items() if name != "__metadata__"
    ):
        begin, stop = facts["data_offsets"]
        value = zlib.crc32(
            f"{name} {_SAFETENSORS[facts['dtype']]} {facts['shape']}".encode(), value
        )
        value = zlib.crc32(data[end + begin : end + stop], value)
    table["__metadata__"]["nodeflow"] = f'{{"checksum": "{value:08x}", "facts": {entry[1]}}}'
    text = json.dumps(table).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + data[end:]
