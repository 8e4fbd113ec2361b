package githubtoken

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"strings"
)

const requestPath = "/idtoken"

// Job returns what a job of GitHub Actions finds in the environment variables
// ACTIONS_ID_TOKEN_REQUEST_URL and ACTIONS_ID_TOKEN_REQUEST_TOKEN: a program
// that gets url + "&audience=…" with the header "Authorization: bearer " +
// token is answered with an identity token of the claims, in the field value.
// Without an audience the claims' own is used.
func (e *Endpoint) Job(claims Claims) (url, token string, err error) {
	if _, err := claims.complete(); err != nil {
		return "", "", err
	}
	token = rand.Text()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.jobs[token] = claims
	return e.ProxyURL() + requestPath + "?api-version=2.0", token, nil
}

// serveRequest answers the request that Job describes.
func (e *Endpoint) serveRequest(w http.ResponseWriter, r *http.Request) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	e.mu.Lock()
	claims, ok := e.jobs[token]
	e.mu.Unlock()
	if !ok || !strings.EqualFold(scheme, "bearer") {
		http.Error(w, "expected the bearer token of a job", http.StatusUnauthorized)
		return
	}
	if audience := r.URL.Query().Get("audience"); audience != "" {
		claims.Audience = audience
	}
	value, err := e.Token(claims)
	if err != nil {
		http.Error(w, fmt.Sprintf("cannot make the token: %v", err), http.StatusInternalServerError)
		return
	}
	answer(w, map[string]any{"count": len(value), "value": value})
}
