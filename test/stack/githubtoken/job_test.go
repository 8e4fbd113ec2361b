package githubtoken

import (
	"encoding/json"
	"net/http"
	"testing"
)

func TestJob(t *testing.T) {
	t.Parallel()
	e := start(t)
	c := client(t, e, e.CAFile())
	url, token, err := e.Job(Claims{Ref: "refs/tags/v1"})
	if err != nil {
		t.Fatal(err)
	}
	if _, second, err := e.Job(Claims{}); err != nil || second == token {
		t.Errorf("a second job: token %q like the first one's, %v", second, err)
	}
	for name, test := range map[string]struct {
		authorization, query string
		status               int
		audience             string
	}{
		"cosign's":    {authorization: "bearer " + token, query: "&audience=sigstore", status: http.StatusOK, audience: "sigstore"},
		"another's":   {authorization: "Bearer " + token, query: "&audience=https://vault.acme.test", status: http.StatusOK, audience: "https://vault.acme.test"},
		"none's":      {authorization: "Bearer " + token, status: http.StatusOK, audience: DefaultAudience},
		"no token":    {status: http.StatusUnauthorized},
		"wrong token": {authorization: "bearer x" + token, status: http.StatusUnauthorized},
		"not bearer":  {authorization: "Basic " + token, status: http.StatusUnauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+test.query, nil)
			if err != nil {
				t.Fatal(err)
			}
			if test.authorization != "" {
				request.Header.Set("Authorization", test.authorization)
			}
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			if response.StatusCode != test.status {
				t.Fatalf("got %s, want %d", response.Status, test.status)
			}
			if test.status != http.StatusOK {
				return
			}
			var answer struct{ Value string }
			if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
				t.Fatal(err)
			}
			claims, err := verify(c, Issuer, answer.Value)
			if err != nil {
				t.Fatal(err)
			}
			if claims["aud"] != test.audience || claims["ref"] != "refs/tags/v1" {
				t.Errorf("got the audience %v and the ref %v", claims["aud"], claims["ref"])
			}
		})
	}
	if _, _, err := e.Job(Claims{Ref: "main"}); err == nil {
		t.Error("a job with a ref that there is not")
	}
}
