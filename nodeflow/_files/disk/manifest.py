"""The manifest of a folder: what kind of folder it is, of which version, and every array in it."""

from __future__ import annotations

import hashlib
import json
import os
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from nodeflow._core.base.checks import as_flag, blaming
from nodeflow._files.disk.arrays import ArrayFile, check_array, naming, open_file, replacing
from nodeflow._files.disk.checked import check_contents

MANIFEST = "manifest.json"
_NARROW = " with narrow rows"
REPLACED = ".replaced-"
"""Prefix of the name of a folder that is being replaced."""


@dataclass(frozen=True)
class Manifest:
    """The manifest of a folder: what it holds, as "graph", the version of that layout, its arrays
    by name, and facts.

    ``facts`` are everything else, as JSON has it.
    """

    kind: str
    version: int
    arrays: Mapping[str, ArrayFile]
    facts: Mapping[str, Any] = field(default_factory=dict)

    def write(self, folder: Path) -> None:
        """Write the manifest, all of it or nothing, and flush it to the disk."""
        arrays = {name: array.facts() for name, array in self.arrays.items()}
        words = {"kind": self.kind, "version": self.version, "facts": self.facts, "arrays": arrays}
        # outside the facts of arrays, which older releases check: so they can say that the version
        # is newer
        if narrow := {
            name: facts.pop("narrow") for name, facts in arrays.items() if "narrow" in facts
        }:
            words |= {"version": f"{self.version}{_NARROW}", "narrow": narrow}
        # of what a reader gets, whose keys are texts
        words["checksum"] = _checksum(json.loads(json.dumps(words)))
        replace_file(folder / MANIFEST, json.dumps(words, indent=1).encode())

    def publish(self, folder: Path, new: Iterable[ArrayFile]) -> None:
        """Publish new arrays in the folder: flush their files to disk, then write the manifest that
        names them.

        Until then the folder is as before, also after a power cut.
        """
        sync_arrays(folder, new)
        self.write(folder)

    @classmethod
    def read(
        cls,
        folder: Path,
        kind: str,
        version: int,
        *,
        verify: bool | None = None,
        check: Callable[[Manifest], None] | None = None,
        key: str = "",
    ) -> Manifest:
        """Read the manifest of a folder and check that all files are there, whole, and as they were
        written.

        ``verify``: None compares the checksums of the files that have changed since this was done
        last, True those of all, False of none. ``check`` is called with the manifest, again when a
        file has changed, to see that indices lie within their bounds, which compiled loops rely on,
        and sparse rows are checked, with any ``verify``. ``key`` stands for all that ``check``
        depends on beside the folder.

        Raises FileNotFoundError for a folder without a manifest, ValueError for another kind or
        version and for files that are missing, damaged or foreign, and the errors of ``check``.
        """
        if verify is not None:
            verify = as_flag(verify, "verify")
        try:
            with open_file(folder / MANIFEST) as opened:
                text = opened.read()
        except (FileNotFoundError, NotADirectoryError):
            raise FileNotFoundError(f"{folder} has no {kind} in it: {_lack(folder)}") from None
        except (IsADirectoryError, ValueError) as error:
            raise ValueError(f"{folder / MANIFEST} is damaged or foreign: {error}") from None
        with blaming(
            f"{folder / MANIFEST} is damaged or foreign",
            ValueError,
            TypeError,
            KeyError,
            AttributeError,
            RecursionError,
        ):
            words = json.loads(text)
            # folders of before have none
            if "checksum" in words and words.pop("checksum") != _checksum(words):
                raise ValueError("its contents have another checksum than when it was written")
            narrow = words.get("narrow", {})
            for name, facts in narrow.items():
                words["arrays"][name]["narrow"] = facts
            arrays = {name: ArrayFile.of(facts) for name, facts in words["arrays"].items()}
            written = words["version"]
            # narrow rows have a version that older releases do not read
            if narrow and written == f"{version}{_NARROW}":
                written = version
            manifest = cls(words["kind"], written, arrays, dict(words["facts"]))
        if manifest.kind != kind:
            raise ValueError(f"{folder} holds {manifest.kind!r}, not {kind!r}")
        if manifest.version != version:
            raise ValueError(
                f"{folder} has version {manifest.version} of the layout of {kind!r}, this nodeflow "
                f"reads {version}"
            )
        # Sizes and types first, which are in the headers: contents are read only of files that
        # can be right.
        for array in manifest.arrays.values():
            check_array(folder, array)
        # What was checked holds for this manifest alone: another one may name other files.
        digest = hashlib.blake2b(text + key.encode(), digest_size=16).hexdigest()
        check_contents(
            folder,
            manifest.arrays,
            digest,
            verify,
            None if check is None else partial(check, manifest),
        )
        return manifest


def _lack(folder: Path) -> str:
    """Say why a folder has no manifest, and what to do where a killed process left it so."""
    if folder.exists():
        return f"it has no {MANIFEST}"
    before = folder.with_name(f"{REPLACED}{folder.name}")
    if not before.exists():
        return "it does not exist"
    return (
        f"it does not exist; {before} is the one before, which a killed process had begun to "
        "replace: rename it"
    )


def kind_of(folder: Path) -> str | None:
    """Return the kind that the manifest of a folder names; None where there is none, or a damaged
    one.
    """
    try:
        with open_file(folder / MANIFEST) as opened:
            kind = json.loads(opened.read())["kind"]
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None
    return kind if isinstance(kind, str) else None


def _checksum(words: object) -> int:
    """Return the CRC-32 of JSON, however it is spaced."""
    return zlib.crc32(json.dumps(words, sort_keys=True).encode())


def replace_file(path: Path, contents: bytes) -> None:
    """Write a file that appears under its name when it is complete and on the disk; until then an
    older one stays.

    Raises OSError where it cannot be written; then the older one stays too.
    """
    with replacing(path) as draft, draft.open("wb") as file:
        file.write(contents)
        file.flush()
        os.fsync(file.fileno())
    sync_folder(path.parent)


def sync_arrays(folder: Path, arrays: Iterable[ArrayFile]) -> None:
    """Flush the files of some arrays to the disk."""
    files = {folder / plain.file for array in arrays for plain in array.plain}
    for file in sorted(files):
        # some systems flush no file that is open for reading only
        with naming(file), file.open("rb+") as opened:
            os.fsync(opened.fileno())
    for place in sorted({file.parent for file in files} | {folder}):
        sync_folder(place)


def sync_folder(folder: Path) -> None:
    """Flush the entries of a folder to the disk, where the system can open folders."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        with naming(folder):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
