"""Verifies a token with PyJWT: verify.py JWKS_URL ALG ISSUER AUDIENCE < TOKEN. Prints its claims as JSON."""

import json
import sys

import jwt

url, alg, issuer, audience = sys.argv[1:]
token = sys.stdin.read()
key = jwt.PyJWKClient(url).get_signing_key_from_jwt(token)
claims = jwt.decode(token, key.key, algorithms=[alg], issuer=issuer, audience=audience)
print(json.dumps(claims))
