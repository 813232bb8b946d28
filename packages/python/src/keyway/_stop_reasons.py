"""Which refusals end an agent, and what its user can do about each."""

from __future__ import annotations

from ._errors import KeywayError

_FINAL_STATUSES = frozenset({401, 403})
"""Statuses by which an exchange refuses the key permanently, whatever the code, which this version may not know."""

_FINAL_CODES = frozenset({"invalid_api_key", "invalid_request", "invalid_configuration"})
"""Codes that are permanent whatever the status. A malformed key has no status, since it is refused before any
request."""

_ADVICE = {
    "invalid_api_key": "The API key is unknown here. Check that it is complete and belongs to this service.",
    "api_key_revoked": "The API key was revoked. Make a new key and start the agent with it.",
    "api_key_expired": "The API key has expired. Make a new key, or use the successor that it was rotated to.",
    "insufficient_scope": "The API key may not connect. Use a key that has the scope agent:connect.",
    "account_suspended": "The key's owner is suspended. Ask the operator of the service.",
    "network_not_allowed": "The API key may not be used from this network. Add it to the key's allowed_networks.",
    "session_required": "This credential cannot be exchanged. Use an API key (svc_…).",
    "revoked": "The API key or session behind this agent was revoked. Make a new key and start the agent with it.",
    "resumed_elsewhere": "Another program resumed this agent's connection.",
    "bad_message": "The hub could not read a frame. Update keyway, or report this.",
    "too_big": "The hub refused a frame as too big. Update keyway, or report this.",
}

_FALLBACK_REASONS = {1009: "too_big", 4400: "bad_message", 4409: "resumed_elsewhere", 4410: "revoked"}
"""The reason to assume if a close code comes without a known reason, since proxies may drop the reason."""


def is_final(error: object) -> bool:
    """Whether an error of the token exchange stops the agent. `bad_response` does not, since it may come from a
    proxy."""
    if not isinstance(error, KeywayError):
        return False
    return error.code in _FINAL_CODES or (error.status in _FINAL_STATUSES and error.code != "bad_response")


def stop_error_from_exchange(error: KeywayError) -> KeywayError:
    """The error of an agent whose exchange was refused permanently."""
    stop_error = KeywayError(
        error.code,
        _ADVICE.get(error.code, error.message),
        status=error.status,
        request_id=error.request_id,
        errors=error.errors,
    )
    stop_error.__cause__ = error
    return stop_error


def stop_error_from_close(code: int, reason: str) -> KeywayError:
    """The error of an agent whose connection was closed permanently."""
    name = reason if reason in _ADVICE else _FALLBACK_REASONS.get(code, "")
    advice = _ADVICE.get(name, f"The hub closed the connection for good ({code} {reason}).")
    return KeywayError(_error_code(code, reason), advice)


def _error_code(code: int, reason: str) -> str:
    """The error code for a close. With close code 4403 it is the reason, which is the error code by which an exchange
    would refuse the key, even if this version does not know it."""
    if code == 4410:
        return "revoked"
    return reason if code == 4403 and reason else "refused"
