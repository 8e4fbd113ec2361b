package signature

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
)

// A registry redirects to an address of its storage whose query lets anybody in.
func TestFailureShowsNoQuery(t *testing.T) {
	t.Parallel()
	err := fmt.Errorf("again: %w", &url.Error{Op: "Get", URL: "https://storage.example/blob?sig=hidden&se=2026", Err: errors.New("connection reset")})
	f := failures{registry: "registry.example", place: "registry.example"}.of("a bundle", err)
	if strings.Contains(fmt.Sprintf("%+v", f), "hidden") {
		t.Errorf("expected no query, found %+v", f)
	}
	if !strings.Contains(f.Found, "storage.example/blob?…") || !strings.Contains(f.Found, "connection reset") {
		t.Errorf("expected the address and the cause, found %q", f.Found)
	}
}
