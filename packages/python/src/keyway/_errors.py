"""The one error class of this package, and how it is made from an HTTP response or a failed connection."""

from __future__ import annotations

import json
import socket
import ssl
from typing import Any, Literal, Mapping, TypedDict

import httpx

NetworkCause = Literal["dns", "refused", "tls", "timeout", "network"]
"""Why a connection failed: the name did not resolve, the port is closed, the certificate was not accepted, no answer
came in time, or another reason."""

_ADVICE: dict[NetworkCause, str] = {
    "dns": "its name does not resolve. Check the url and the name server",
    "refused": "it refuses connections. Check the url and whether the service runs",
    "tls": "its certificate was not accepted. Check the url, the clock and the certificate authorities",
    "timeout": "it did not answer in time. Check the network",
    "network": "the connection failed. Check the url and the network",
}


class FieldError(TypedDict):
    """One field of a body or query that was refused."""

    field: str
    message: str


class KeywayError(Exception):
    """Every error that this package raises. `code` is stable; the message says what to do."""

    def __init__(
        self,
        code: str,
        message: str,
        *,
        status: int = 0,
        retryable: bool = False,
        request_id: str | None = None,
        retry_after: float | None = None,
        errors: list[FieldError] | None = None,
        reason: str | None = None,
        network_cause: NetworkCause | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        """One of the service's error codes, or one of this package: `network_error`, `timeout`, `bad_response`,
        `invalid_configuration`, `too_large`, `queue_full`, `refused`, `revoked`, `closed`,
        `no_responders`, `request_failed`."""
        self.status = status
        """The HTTP status; 0 if there was no response."""
        self.retryable = retryable
        """Whether the same call may succeed later."""
        self.request_id = request_id
        """The response's `X-Request-Id`, for support."""
        self.retry_after = retry_after
        """Seconds to wait before trying again."""
        self.errors: list[FieldError] = errors or []
        """The fields that were refused."""
        self.reason = reason
        """For `request_failed`: `failed` if the responder's handler raised, `busy` if it handles too many requests, or
        a code that the handler chose."""
        self.network_cause = network_cause
        """Why the service could not be reached; set only if `code` is `network_error` or `timeout`."""

    @property
    def message(self) -> str:
        """What happened and what to do."""
        return str(self.args[0])


def error_from_response(response: httpx.Response) -> KeywayError:
    """Converts a response with a status of 3xx to 5xx. The code is `bad_response` if it has no problem document (RFC
    9457)."""
    status = response.status_code
    message = f"The server answered {status} without a problem document. Check that the url is Keyway's."
    fallback = {
        "code": "bad_response",
        "detail": message,
        "request_id": response.headers.get("x-request-id"),
        "retry_after": _parse_retry_after(response.headers.get("retry-after")),
    }
    return error_from_problem({**fallback, **_problem(response), "status": status})


def error_from_problem(problem: Mapping[str, Any]) -> KeywayError:
    status = problem["status"]
    return KeywayError(
        problem["code"],
        problem["detail"],
        status=status,
        retryable=status == 429 or status >= 500,
        request_id=problem.get("request_id"),
        retry_after=problem.get("retry_after"),
        errors=problem.get("errors"),
    )


def error_from_network(cause: BaseException, origin: str) -> KeywayError:
    """Converts the exception of a request that got no response. The caller raises the result `from cause`."""
    kind = network_cause_of(cause)
    message = f"Could not reach {origin}: {_ADVICE[kind]}."
    code = "timeout" if kind == "timeout" else "network_error"
    return KeywayError(code, message, retryable=True, network_cause=kind)


def network_cause_of(error: BaseException) -> NetworkCause:
    """Finds the cause of a failure. Searches the chain of exceptions, since libraries wrap the socket's error."""
    for cause in _cause_chain(error):
        if isinstance(cause, socket.gaierror):
            return "dns"
        if isinstance(cause, ssl.SSLError):
            return "tls"
        if isinstance(cause, ConnectionRefusedError):
            return "refused"
        if isinstance(cause, (TimeoutError, httpx.TimeoutException)):
            return "timeout"
    return "network"


def _cause_chain(error: BaseException) -> list[BaseException]:
    chain: list[BaseException] = []
    to_visit: list[BaseException | None] = [error]
    while to_visit:
        cause = to_visit.pop(0)
        if cause is None or cause in chain:
            continue
        chain.append(cause)
        to_visit += [cause.__cause__, cause.__context__, *getattr(cause, "exceptions", ())]
    return chain


def _problem(response: httpx.Response) -> dict[str, Any]:
    try:
        body = response.json()
    except (json.JSONDecodeError, UnicodeDecodeError):
        return {}
    if not isinstance(body, dict) or not isinstance(body.get("code"), str) or not isinstance(body.get("detail"), str):
        return {}
    return body


def _parse_retry_after(header: str | None) -> int | None:
    """`Retry-After` in seconds; the date form is ignored, since the local clock may be wrong."""
    return int(header) if header and header.isascii() and header.isdigit() and len(header) < 10 else None
