"""Where the tokens of a signed-in client are kept."""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, AsyncContextManager, AsyncIterator, Protocol, runtime_checkable

from ._errors import KeywayError

POLL_SECONDS = 0.05


@dataclass(frozen=True)
class StoredTokens:
    """The tokens of one session."""

    access: str
    refresh: str
    session_id: str
    refresh_key: str | None = None
    """The Idempotency-Key of a refresh whose answer has not arrived yet."""


class TokenStore(Protocol):
    """The three methods of a token store; a store of your own may use the system's keychain, for example."""

    def get(self) -> StoredTokens | None:
        """The tokens; None when nobody is signed in."""

    def set(self, tokens: StoredTokens) -> None:
        """Replaces the tokens."""

    def delete(self) -> None:
        """Removes the tokens."""


@runtime_checkable
class SharedTokenStore(TokenStore, Protocol):
    """A store that several clients or processes may share, since it lets only one of them refresh at a time."""

    def exclusive(self) -> AsyncContextManager[None]:
        """Waits until no other client of this storage is in this context. Clients read, refresh and write in it, since
        refresh tokens rotate: if two clients refreshed with the same one, the session would end."""


class MemoryTokenStore:
    """The default: in memory, lost with the process. Clients of one event loop may share it."""

    def __init__(self, tokens: StoredTokens | None = None) -> None:
        self._tokens = tokens
        self._lock = asyncio.Lock()

    def get(self) -> StoredTokens | None:
        return self._tokens

    def set(self, tokens: StoredTokens) -> None:
        self._tokens = tokens

    def delete(self) -> None:
        self._tokens = None

    def exclusive(self) -> AsyncContextManager[None]:
        """Lets one client of this store at a time refresh."""
        return self._lock


class FileTokenStore:
    """A file that only this user can read (mode 0600; a new folder has 0700), which all processes of a machine may
    share: one at a time refreshes, and the lock of a process that dies is released at once. Windows has no such lock,
    so only one process may use the file there."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)

    def get(self) -> StoredTokens | None:
        """:raises KeywayError: `invalid_configuration` if the file is damaged or unreadable"""
        try:
            content = json.loads(self._path.read_text("utf-8"))
            if any(not isinstance(value, str) for name, value in content.items() if value or name != "refresh_key"):
                raise ValueError("not all members are strings")
            return StoredTokens(**content)
        except FileNotFoundError:
            return None
        except (OSError, AttributeError, TypeError, ValueError) as cause:
            advice = f"{self._path} does not hold the tokens of a session. Remove it, and sign in again."
            raise KeywayError("invalid_configuration", advice) from cause

    def set(self, tokens: StoredTokens) -> None:
        """Writes to a temporary file and renames it, so that no reader sees a partial file and a crash loses nothing.

        :raises KeywayError: `invalid_configuration` if it cannot be written"""
        try:
            self._write(json.dumps(asdict(tokens)))
        except OSError as cause:
            raise KeywayError("invalid_configuration", f"{self._path} cannot be written: {cause}") from cause

    def _write(self, text: str) -> None:
        folder = self._path.parent
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, temporary_path = tempfile.mkstemp(dir=folder, prefix=f".{self._path.name}-")  # mode 0600
        try:
            with open(handle, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())  # otherwise the file could be empty after a power failure
            os.replace(temporary_path, self._path)
        except BaseException:
            os.unlink(temporary_path)
            raise

    def delete(self) -> None:
        """:raises KeywayError: `invalid_configuration` if it cannot be removed"""
        try:
            self._path.unlink(missing_ok=True)
        except OSError as cause:
            raise KeywayError("invalid_configuration", f"{self._path} cannot be removed: {cause}") from cause

    @asynccontextmanager
    async def exclusive(self) -> AsyncIterator[None]:
        """:raises KeywayError: `invalid_configuration` if the lock's file cannot be written"""
        with _lock_file(self._path.with_name(f".{self._path.name}.lock")) as file:
            # Polled instead of awaited in a thread: waiting calls could occupy all threads of the event loop, of which
            # the lock's holder needs one to look up the service's address.
            while not _try_lock(file):
                await asyncio.sleep(POLL_SECONDS)
            yield


def _lock_file(path: Path) -> IO[str]:
    """Opens the file to lock. The lock ends when the file is closed, or with the process."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Neither follows a link nor truncates: in a folder where other users can write, the path could be their link to
        # a file of this user.
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
        file = open(os.open(path, flags, 0o600), "w", encoding="utf-8")
    except OSError as cause:
        advice = f"{path}, which orders refreshes, cannot be used: {cause}"
        raise KeywayError("invalid_configuration", advice) from cause
    return file


def _try_lock(file: IO[str]) -> bool:
    try:
        import fcntl
    except ImportError:  # Windows
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
