"""The calls of the HTTP API, by resource."""

from .account import AccountCalls
from .agents import AgentCalls
from .api_keys import ApiKeyCalls
from .apps import AppCalls
from .sessions import SessionCalls

__all__ = ["AccountCalls", "AgentCalls", "ApiKeyCalls", "AppCalls", "SessionCalls"]
