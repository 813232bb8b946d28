"""The objects of the HTTP API: dictionaries with these keys. Instants are RFC 3339 in UTC, amounts are decimals as
text. A later version of the service may add keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, Generic, List, Literal, TypedDict, TypeVar

from ._protocol import Json

Item = TypeVar("Item")

if TYPE_CHECKING:

    class Page(TypedDict, Generic[Item]):
        """A page of a list, newest first; of the revocations, oldest first."""

        data: List[Item]
        has_more: bool
        next_cursor: str | None

else:  # Python 3.10 has no generic TypedDict

    class Page(TypedDict):
        """A page of a list, newest first; of the revocations, oldest first."""


class RequestLimit(TypedDict):
    """A limit of exchanges, API calls, and calls that apps consume by introspection, in a sliding window."""

    limit: int
    per: Literal["second", "minute", "hour", "day"]


class SpendLimit(TypedDict):
    """A limit of what apps may charge to the key, in each calendar day or month (UTC) or in total."""

    amount: str
    per: Literal["day", "month", "total"]


class Refill(TypedDict):
    """Sets `remaining` to `amount` at the start of each calendar hour, day or month (UTC)."""

    amount: int
    every: Literal["hour", "day", "month"]


class KeyQuota(TypedDict, total=False):
    """Calls that apps may consume by introspection. Answers always contain `remaining`."""

    remaining: int
    refill: Refill


class KeyLimits(TypedDict, total=False):
    """The limits of a key; empty if it has none. Each list has at most one limit for each `per`."""

    requests: List[RequestLimit]
    spend: List[SpendLimit]
    quota: KeyQuota


WantedKeyLimits = KeyLimits
"""The limits in a request to create or change a key. A quota without `remaining` keeps the calls that remain; if the
key had no quota, it starts with the amount of a refill. The type is that of answers, since it requires no field."""


class LastUsedFrom(TypedDict):
    """The network (an IPv4 address or an IPv6 /64) and the User-Agent of the last use."""

    network: str
    client: str | None


class ApiKeyObject(TypedDict):
    """An API key, without the secret itself."""

    id: str
    user_id: str
    key_prefix: str
    name: str | None
    app_id: str
    scopes: List[str]
    unrestricted: bool
    allowed_networks: List[str]
    status: Literal["active", "expired", "revoked"]
    created_at: str
    last_used_at: str | None
    last_used_from: LastUsedFrom | None
    expires_at: str | None
    revoked_at: str | None
    replaced_by: str | None
    external_id: str | None
    metadata: Dict[str, Json] | None
    limits: KeyLimits
    operator_limits: KeyLimits


class CreatedApiKey(ApiKeyObject):
    """The only answer that contains the key itself."""

    key: str


class AgentTokenAnswer(TypedDict):
    """An agent token, the id of the key's owner (`agent_id`), and the token's lifetime in seconds."""

    token: str
    agent_id: str
    expires_in: int


class UserObject(TypedDict):
    """A person's account."""

    id: str
    email: str
    name: str | None
    role: Literal["user", "support", "admin"]
    status: Literal["active", "suspended", "deleted"]
    created_at: str
    locale: str | None


class SendMagicLinkAnswer(TypedDict):
    """The answer to a request for a sign-in mail. `expires_in` is in seconds."""

    status: Literal["sent"]
    expires_in: int
    login_id: str


class SessionAnswer(TypedDict):
    """The tokens of a session, and their lifetimes in seconds."""

    user: UserObject
    access_token: str
    token_type: Literal["Bearer"]
    expires_in: int
    refresh_token: str
    refresh_expires_in: int
    session_id: str


class SignInAnswer(SessionAnswer):
    """The answer of a sign-in."""

    is_new_user: bool


class SessionObject(TypedDict):
    """One sign-in. `app_id` is the app that it was opened for, or whose id was given at the sign-in."""

    id: str
    created_at: str
    last_used_at: str
    expires_at: str
    app_id: str
    client: str | None
    network: str
    current: bool


class Money(TypedDict):
    """`amount` is a decimal with 2 to 6 places."""

    amount: str
    currency: Literal["USD"]


class Subscription(TypedDict):
    """The plan of an account."""

    plan: str
    status: str
    started_at: str


class ChargeAuthorizationObject(TypedDict):
    """An app's permission to charge the balance; withdrawn if `revoked_at` is set."""

    app_id: str
    name: str
    granted_at: str
    revoked_at: str | None


class ConsentObject(TypedDict):
    """An app's access to the account."""

    app_id: str
    name: str
    scopes: List[str]
    granted_at: str


class EmailChangeRequested(TypedDict):
    """The answer to a requested change: both mails are queued; their links are valid for `expires_in` seconds."""

    status: str
    expires_in: int


class EmailChangeObject(TypedDict):
    """A change of the address. The addresses in `awaits` (`old`, `new`) have not confirmed it yet."""

    email: str
    awaits: List[str]
    created_at: str
    expires_at: str


class AccountObject(TypedDict):
    """The caller's account."""

    user: UserObject
    balance: Money
    subscription: Subscription
    charge_authorizations: List[ChargeAuthorizationObject]
    email_change: EmailChangeObject | None
    deletes_at: str | None


class LedgerEntryObject(TypedDict):
    """A credit or charge; `amount` has a sign. `key_id` is the API key that the charge named."""

    id: str
    kind: str
    amount: str
    balance_after: str
    app_id: str | None
    key_id: str | None
    description: str
    created_at: str


class _SecurityEventSubject(TypedDict, total=False):
    key_id: str
    session_id: str


class SecurityEventObject(_SecurityEventSubject):
    """An event that concerns the security of an account, for its owner."""

    id: str
    type: str
    at: str
    network: str | None
    client: str | None


class UsageBucketObject(TypedDict):
    """The counts of one hour or one day (UTC). `refused` has a count for each error code."""

    start: str
    exchanges: int
    api_calls: int
    introspections: int
    refused: Dict[str, int]
    connections: int
    connected_seconds: int
    messages_sent: int
    messages_received: int
    charged: str


class UsageAnswer(TypedDict):
    """Every bucket of the range, oldest first."""

    data: List[UsageBucketObject]


class AgentConnectionObject(TypedDict):
    """A live connection of an agent."""

    connection_id: str
    key_id: str
    key_name: str | None
    connected_at: str
    address: str
    client: str | None


class RevocationObject(TypedDict):
    """A key, session or account that ended early. `user_id` is its owner."""

    id: str
    kind: Literal["api_key", "session", "user"]
    subject_id: str
    user_id: str
    at: str


class RequestsLeft(TypedDict):
    """The remaining requests of a limit."""

    limit: int
    remaining: int
    reset_seconds: int


class QuotaLeft(TypedDict):
    """The remaining calls of a quota."""

    remaining: int


class _SpendReset(TypedDict, total=False):
    reset_seconds: int


class SpendLeft(_SpendReset):
    """The remaining amount of a spend limit; `reset_seconds` is absent for `total`."""

    per: Literal["day", "month", "total"]
    amount: str
    remaining: str


class LeftOfLimits(TypedDict, total=False):
    """The remaining requests, calls and amounts of a key's limits."""

    requests: List[RequestsLeft]
    quota: QuotaLeft
    spend: List[SpendLeft]


class _Active(TypedDict):
    active: bool


class KeyVerification(_Active, total=False):
    """What introspection answers about an API key. If `active` is false, all other fields are absent; `scope` is absent
    where `unrestricted`; `external_id`, `metadata` and `limits` are for the app that the key is for and first-party
    apps. `iat` and `exp` are seconds since 1970."""

    type: Literal["api_key"]
    iss: str
    sub: str
    client_id: str
    key_id: str
    scope: str
    unrestricted: bool
    iat: int
    exp: int
    external_id: str | None
    metadata: Dict[str, Json] | None
    limits: LeftOfLimits


IntrospectionAnswer = Dict[str, Any]
"""RFC 7662 section 2.2: `active`, and more if it is true."""
