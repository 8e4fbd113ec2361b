package signer

import "testing"

func TestTmp2(t *testing.T) {
	for _, s := range []string{"- issuer: a\n  subjet: b\n", "- github: {repository: acme/platform, workflow: cd.yaml, ref: main}\n", "- github: {repository: acme/platform, workflow: cd.yaml, merge-queue-of: main}\n  source-repository-id: 123\n", "[{\"issuer\":\"a\",\n\"issuer-pattern\":\"a^b\",\"subject\":1.5}]", "- &a {issuer: a}\n- *a", "- issuer: a\n---\n- b: 1", "a: 1", "- issuer: ^https\n  issuer: b\n  subject-pattern: 'a('", ""} {
		x, err := Parse([]byte(s))
		t.Logf("%+v\n%v", x, err)
	}
	t.Log(AcceptsEverything(""))
	t.Log(AcceptsEverything(".*"))
	t.Log(AcceptsEverything("^.*$"))
	t.Log(AcceptsEverything("(?s)^.*$|x"))
	t.Log(AcceptsEverything("a|[^a]"))
	t.Log(AcceptsEverything("a|[^a]|^$"))
}
