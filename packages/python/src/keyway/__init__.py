"""Client for Keyway: agents that stay connected as long as their key is active, the HTTP API with typed errors, and
token verification for your own services."""

from ._errors import FieldError, KeywayError, NetworkCause
from ._events import Delivery, Disconnected, Gap, Message, Ready, Renewed, Request, Stopped
from ._protocol import CLOSE_CODES, HUB_PROTOCOL, Json
from ._version import VERSION as __version__
from ._watching import Joined, Left, Presence, PresenceEvent
from .agent import Agent
from .client import Keyway
from .token_store import FileTokenStore, MemoryTokenStore, SharedTokenStore, StoredTokens, TokenStore
from .verify import AccessTokenClaims, AgentTokenClaims, verify_access_token, verify_agent_token

__all__ = [
    "CLOSE_CODES",
    "HUB_PROTOCOL",
    "AccessTokenClaims",
    "Agent",
    "AgentTokenClaims",
    "Delivery",
    "Disconnected",
    "FieldError",
    "FileTokenStore",
    "Gap",
    "Joined",
    "Json",
    "Keyway",
    "KeywayError",
    "Left",
    "MemoryTokenStore",
    "Message",
    "NetworkCause",
    "Presence",
    "PresenceEvent",
    "Ready",
    "Renewed",
    "Request",
    "SharedTokenStore",
    "Stopped",
    "StoredTokens",
    "TokenStore",
    "__version__",
    "verify_access_token",
    "verify_agent_token",
]
