// Verifies a token with golang-jwt: verify JWKS_URL ALG ISSUER AUDIENCE < TOKEN. Prints its claims as JSON.
package main

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"os"

	"github.com/golang-jwt/jwt"
)

type jwk struct {
	Kty, Kid, Crv, X, Y, N, E string
}

func main() {
	token, err := io.ReadAll(os.Stdin)
	if err == nil {
		err = run(os.Args[1], os.Args[2], os.Args[3], os.Args[4], string(token))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(url, alg, issuer, audience, token string) error {
	keys, err := fetch(url)
	if err != nil {
		return err
	}
	parser := jwt.Parser{ValidMethods: []string{alg}}
	claims := jwt.MapClaims{}
	_, err = parser.ParseWithClaims(token, claims, func(t *jwt.Token) (interface{}, error) {
		for _, key := range keys {
			if key.Kid == t.Header["kid"] {
				return key.public()
			}
		}
		return nil, errors.New("no such key")
	})
	if err != nil {
		return err
	}
	if !claims.VerifyIssuer(issuer, true) || !claims.VerifyAudience(audience, true) {
		return errors.New("wrong issuer or audience")
	}
	return json.NewEncoder(os.Stdout).Encode(claims)
}

func fetch(url string) ([]jwk, error) {
	answer, err := http.Get(url)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	var set struct{ Keys []jwk }
	err = json.NewDecoder(answer.Body).Decode(&set)
	return set.Keys, err
}

func (key jwk) public() (interface{}, error) {
	switch key.Kty {
	case "OKP":
		return ed25519.PublicKey(bytes(key.X)), nil
	case "EC":
		return &ecdsa.PublicKey{Curve: elliptic.P256(), X: number(key.X), Y: number(key.Y)}, nil
	case "RSA":
		return &rsa.PublicKey{N: number(key.N), E: int(number(key.E).Int64())}, nil
	}
	return nil, errors.New("unknown key type " + key.Kty)
}

func bytes(text string) []byte {
	decoded, _ := base64.RawURLEncoding.DecodeString(text)
	return decoded
}

func number(text string) *big.Int {
	return new(big.Int).SetBytes(bytes(text))
}
