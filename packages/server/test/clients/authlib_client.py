"""A client of Authlib: authlib_client.py ISSUER GRANT, with JSON settings as the first line of standard input.

`client_credentials` prints the token. `authorization_code` prints the URL to open, reads the URL of the redirect,
and prints the claims of the id token, the userinfo, and the tokens of a refresh.
"""

import json
import sys

import requests
from authlib.common.security import generate_token
from authlib.integrations.requests_client import OAuth2Session
from authlib.jose import JsonWebKey, jwt
from authlib.oidc.core import CodeIDToken


def print_json(value):
    print(json.dumps(value), flush=True)


def client_credentials(metadata, settings):
    session = OAuth2Session(settings["client_id"], settings["client_secret"], scope=settings.get("scope"))
    extra = {name: settings[name] for name in ("resource",) if name in settings}
    print_json(session.fetch_token(metadata["token_endpoint"], grant_type="client_credentials", **extra))


def authorization_code(metadata, settings):
    session = OAuth2Session(
        settings["client_id"],
        settings["client_secret"],
        scope=settings["scope"],
        redirect_uri=settings["redirect_uri"],
        token_endpoint=metadata["token_endpoint"],
        code_challenge_method="S256",
    )
    verifier, nonce = generate_token(48), generate_token(20)
    address, state = session.create_authorization_url(
        metadata["authorization_endpoint"], code_verifier=verifier, nonce=nonce, prompt="consent"
    )
    print_json(address)
    answer = sys.stdin.readline().strip()
    token = session.fetch_token(
        metadata["token_endpoint"], authorization_response=answer, state=state, code_verifier=verifier
    )
    keys = JsonWebKey.import_key_set(requests.get(metadata["jwks_uri"]).json())
    claims = jwt.decode(
        token["id_token"],
        keys,
        claims_cls=CodeIDToken,
        claims_options={"iss": {"values": [metadata["issuer"]]}, "aud": {"values": [settings["client_id"]]}},
        claims_params={"nonce": nonce, "client_id": settings["client_id"]},
    )
    claims.validate()
    refreshed = session.refresh_token(metadata["token_endpoint"], refresh_token=token["refresh_token"])
    userinfo = session.get(metadata["userinfo_endpoint"])
    print_json({"claims": claims, "userinfo": userinfo.json(), "token": token, "refreshed": refreshed})


issuer, grant = sys.argv[1:]
metadata = requests.get(issuer + "/.well-known/openid-configuration").json()
settings = json.loads(sys.stdin.readline())
{"client_credentials": client_credentials, "authorization_code": authorization_code}[grant](metadata, settings)
