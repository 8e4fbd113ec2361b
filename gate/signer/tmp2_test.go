package signer
import ("testing";"context")
func TestTmp2(t *testing.T){
 t.Log(SelfTest(context.Background()))
 p:=func(s string) []Signer { x,err:=Parse([]byte(s)); if err!=nil {t.Fatal(err)}; return x }
 for _,s:=range []string{
 "- github: {repository: acme/platform, workflow: cd.yaml, ref: refs/heads/main}\n- github: {repository: acme/platform, workflow: ci.yaml, merge-queue-of: main}\n",
 "- github: {repository: acme/platform, workflow: cd.yaml, ref: any-tag}\n- {issuer: https://accounts.google.com, subject: a@acme.com}\n",
 "- github: {repository: acme/platform, workflow: cd.yaml, ref: any-sha}\n- {issuer: https://gitlab.com, subject-pattern: '^https://gitlab\\.com/a/b//\\.gitlab-ci\\.yml@(x|y)$'}\n- {issuer: https://gitlab.com, subject-pattern: '^https://gitlab\\.com/a/b//\\.gitlab-ci\\.yml@x|^https://gitlab\\.com/a/c//\\.gitlab-ci\\.yml@y$'}",
 }{
  e,err:=Suggest(context.Background(),p(s),nil); t.Logf("%s\n%s\n%v",e.Issuer,e.Subject,err)
 }
}
