"""Where the tokens of a signed-in client are kept."""

from __future__ import annotations

import json
import os
import tempfile
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Iterator, Protocol

from ._errors import KeywayError


@dataclass(frozen=True)
class StoredTokens:
    """The tokens of one session."""

    access: str
    refresh: str
    session_id: str
    refresh_key: str | None = None
    """The Idempotency-Key of a refresh whose answer has not arrived yet."""


class TokenStore(Protocol):
    """A storage of your own has these three methods, for example over the system's keychain."""

    def get(self) -> StoredTokens | None:
        """The tokens; None when nobody is signed in."""

    def set(self, tokens: StoredTokens) -> None:
        """Replaces the tokens."""

    def delete(self) -> None:
        """Removes the tokens."""


class MemoryTokenStore:
    """The default: in memory, lost with the process."""

    def __init__(self, tokens: StoredTokens | None = None) -> None:
        self._tokens = tokens

    def get(self) -> StoredTokens | None:
        return self._tokens

    def set(self, tokens: StoredTokens) -> None:
        self._tokens = tokens

    def delete(self) -> None:
        self._tokens = None


class FileTokenStore:
    """A file that only this user reads (mode 0600, its folder 0700). One process at a time refreshes."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)

    def get(self) -> StoredTokens | None:
        """:raises KeywayError: `invalid_configuration` if the file is damaged or unreadable"""
        try:
            content = json.loads(self._path.read_text("utf-8"))
            return StoredTokens(**content)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError) as cause:
            advice = f"{self._path} does not hold the tokens of a session. Remove it, and sign in again."
            raise KeywayError("invalid_configuration", advice) from cause

    def set(self, tokens: StoredTokens) -> None:
        """Written beside and renamed, so that no reader sees half of it."""
        folder = self._path.parent
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, beside = tempfile.mkstemp(dir=folder, prefix=f".{self._path.name}-")  # mode 0600
        try:
            with open(handle, "w", encoding="utf-8") as file:
                json.dump(asdict(tokens), file)
            os.replace(beside, self._path)
        except BaseException:
            os.unlink(beside)
            raise

    def delete(self) -> None:
        self._path.unlink(missing_ok=True)

    def lock_path(self) -> Path:
        """The file whose lock a refresh holds."""
        return self._path.with_name(f".{self._path.name}.lock")


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Waits for the other processes that hold the lock. Where the system has no `flock` there is no lock."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        os.chmod(path, 0o600)
        _flock(file)
        yield


def _flock(file: IO[str]) -> None:
    try:
        import fcntl
    except ImportError:  # Windows
        return
    fcntl.flock(file, fcntl.LOCK_EX)
