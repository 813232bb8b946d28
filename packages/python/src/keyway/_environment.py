"""Settings from the environment, and the package's User-Agent."""

from __future__ import annotations

import os
from urllib.parse import urlsplit

from ._errors import KeywayError
from ._version import VERSION

USER_AGENT = f"keyway-python/{VERSION}"
"""Sent with each request, so that owners of keys see which client used them."""
_EXAMPLE = "for example https://keyway.example.com"


def environment(name: str) -> str | None:
    """The value of an environment variable; None if it is not set or empty."""
    return os.environ.get(name) or None


def service_origin(url: str | None) -> str:
    """The origin of the service's URL, by default that of KEYWAY_URL. Raises `invalid_configuration` with an example if
    the URL is missing or malformed."""
    service_url = url or environment("KEYWAY_URL")
    if service_url is None:
        raise KeywayError("invalid_configuration", f"Pass url (or set KEYWAY_URL), {_EXAMPLE}.")
    try:
        parts = urlsplit(service_url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise _not_a_url(service_url) from None
    if parts.scheme not in ("http", "https"):
        raise KeywayError("invalid_configuration", f'"{service_url}" must start with https://, {_EXAMPLE}.')
    if not host or any(character.isspace() for character in service_url):
        raise _not_a_url(service_url)
    url_host = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{url_host}" + (f":{port}" if port is not None else "")


def _not_a_url(service_url: str) -> KeywayError:
    return KeywayError("invalid_configuration", f'"{service_url}" is not a URL: pass an origin, {_EXAMPLE}.')
