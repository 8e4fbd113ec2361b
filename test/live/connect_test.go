package live

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"flux-verify-gate/gate"
	"flux-verify-gate/gate/action/actiontest"
	"flux-verify-gate/test/stack/cluster"
)

// Each way to say where the cluster is reaches it.
func TestConnect(t *testing.T) {
	t.Parallel()
	p := steadyPlace(t)
	p.create()
	p.settle(revision("a"))
	config := p.cluster.Kubeconfig(p.credentials)
	content, err := clientcmd.Write(*config)
	if err != nil {
		t.Fatal(err)
	}
	// Two contexts, of which the current one is of no use.
	two := config.DeepCopy()
	two.Contexts["prod"] = two.Contexts[cluster.ContextName]
	two.Clusters["gone"] = &clientcmdapi.Cluster{Server: "https://127.0.0.1:1"}
	two.Contexts["staging"] = &clientcmdapi.Context{Cluster: "gone", AuthInfo: cluster.ContextName}
	two.CurrentContext = "staging"
	contexts := filepath.Join(t.TempDir(), "two")
	if err := cluster.WriteKubeconfig(contexts, two); err != nil {
		t.Fatal(err)
	}
	user, err := p.cluster.User(p.user)
	if err != nil {
		t.Fatal(err)
	}
	certificate := filepath.Join(t.TempDir(), "certificate")
	if err := cluster.WriteKubeconfig(certificate, p.cluster.Kubeconfig(user)); err != nil {
		t.Fatal(err)
	}
	port := p.cluster.Server()[strings.LastIndex(p.cluster.Server(), ":"):]
	for name, test := range map[string]struct {
		inputs  map[string]string
		env     []string
		context string
	}{
		"path":                 {inputs: map[string]string{"kubeconfig": p.kubeconfig}},
		"data":                 {inputs: map[string]string{"kubeconfig": "", "kubeconfig-data": string(content)}},
		"data in base64":       {inputs: map[string]string{"kubeconfig": "", "kubeconfig-data": base64.StdEncoding.EncodeToString(content)}},
		"KUBECONFIG":           {inputs: map[string]string{"kubeconfig": ""}, env: []string{"KUBECONFIG=" + p.kubeconfig}},
		"context":              {inputs: map[string]string{"kubeconfig": contexts, "context": "prod"}, context: "prod"},
		"server and name":      {inputs: map[string]string{"server": "https://localhost" + port, "tls-server-name": cluster.ServerName}},
		"authority":            {inputs: map[string]string{"certificate-authority-data": string(p.cluster.CA())}},
		"a client certificate": {inputs: map[string]string{"kubeconfig": certificate}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := startGate(t, p.inputs(test.inputs), test.env...).Is(actiontest.Want{Verdict: gate.Verified, Reason: gate.ReasonVerified})
			if test.context == "" {
				test.context = cluster.ContextName
			}
			if r.Report.Cluster.Context != test.context || !strings.Contains(r.Stdout, r.Report.Cluster.Server+" (context "+test.context+")") {
				t.Errorf("got %+v in the report, and the log\n%s", r.Report.Cluster, r.Stdout)
			}
		})
	}
}

// Each way in which that can be wrong is final at once, undecided, and says
// what is wrong.
func TestConnectFails(t *testing.T) {
	t.Parallel()
	p := steadyPlace(t)
	p.create()
	p.settle(revision("a"))
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	login := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://login.example.com/", http.StatusFound)
	}))
	t.Cleanup(login.Close)
	loginCA := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: login.Certificate().Raw}))
	file := func(edit func(*clientcmdapi.Config)) map[string]string {
		config := p.cluster.Kubeconfig(p.credentials)
		edit(config)
		path := filepath.Join(t.TempDir(), "kubeconfig")
		if err := cluster.WriteKubeconfig(path, config); err != nil {
			t.Fatal(err)
		}
		return map[string]string{"kubeconfig": path}
	}
	user := func(c cluster.Credentials, err error) map[string]string {
		if err != nil {
			t.Fatal(err)
		}
		return file(func(config *clientcmdapi.Config) { *config = *p.cluster.Kubeconfig(c) })
	}
	for name, test := range map[string]struct {
		inputs map[string]string
		reason gate.Code
		// says is in the finding.
		says string
	}{
		"no kubeconfig":     {map[string]string{"kubeconfig": ""}, gate.BadInput, "a fork"},
		"no such file":      {map[string]string{"kubeconfig": "/home/runner/.kube/config"}, gate.BadInput, "not mounted"},
		"blank data":        {map[string]string{"kubeconfig": "", "kubeconfig-data": "  "}, gate.BadInput, "environment:"},
		"both":              {map[string]string{"kubeconfig-data": "apiVersion: v1"}, gate.BadInput, "never merged"},
		"no such context":   {map[string]string{"context": "production"}, gate.BadInput, "production"},
		"another authority": {map[string]string{"certificate-authority-data": string(p.cluster.StrangerCA())}, gate.Unreachable, "authority that is not trusted"},
		"another name":      {map[string]string{"tls-server-name": "kubernetes.example.com"}, gate.Unreachable, "another name"},
		"nothing there":     {map[string]string{"server": "https://127.0.0.1:1"}, gate.Unreachable, "docker network connect"},
		"no TLS":            {map[string]string{"server": strings.Replace(plain.URL, "http:", "https:", 1)}, gate.Unreachable, "does not speak TLS"},
		"a login page":      {map[string]string{"server": login.URL, "certificate-authority-data": loginCA}, gate.Unreachable, "login.example.com"},
		"a strange token":   {file(func(c *clientcmdapi.Config) { c.AuthInfos[cluster.ContextName].Token = "abc" }), gate.AccessDenied, "401 Unauthorized"},
		"an expired token":  {file(func(c *clientcmdapi.Config) { c.AuthInfos[cluster.ContextName].Token = expired(t, p) }), gate.AccessDenied, "the token expired at"},
		"expired":           {user(p.cluster.ExpiredUser(p.user)), gate.AccessDenied, "the client certificate expired at"},
		"a stranger's":      {user(p.cluster.StrangerUser(p.user)), gate.AccessDenied, "was not accepted"},
		"no credential":     {file(func(c *clientcmdapi.Config) { c.AuthInfos[cluster.ContextName].Token = "" }), gate.BadInput, "credential"},
		"a credential helper": {file(func(c *clientcmdapi.Config) {
			c.AuthInfos[cluster.ContextName] = &clientcmdapi.AuthInfo{Exec: &clientcmdapi.ExecConfig{
				Command: "aws", APIVersion: "client.authentication.k8s.io/v1", InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
			}}
		}), gate.BadInput, "aws"},
		"not in a pod": {map[string]string{"kubeconfig": "", "in-cluster": "true"}, gate.BadInput, "KUBERNETES_SERVICE_HOST"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := startGate(t, p.inputs(test.inputs, map[string]string{"timeout": "4m"}))
			f := p.Is(actiontest.Want{Verdict: gate.Undecided, Reason: test.reason}).Finding(t, test.reason)
			if text := strings.Join([]string{f.Title, f.Expected, f.Found, f.Remedy}, "\n"); !strings.Contains(text, test.says) {
				t.Errorf("the finding does not say %q:\n%s", test.says, text)
			}
		})
	}
}

// expired is a token that the API server issued an hour ago for a minute: a
// TokenRequest gives no such token, so it is signed here with the server's key.
func expired(t *testing.T, p *place) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(p.cluster.Dir(), "pki", "tokens.key"))
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(content)
	if block == nil {
		t.Fatal("the key of the tokens is not PEM")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	key, ok := parsed.(*ecdsa.PrivateKey)
	if err != nil || !ok {
		t.Fatalf("the key of the tokens: %v", err)
	}
	// The header of a valid token names the key.
	header, _, _ := strings.Cut(p.credentials.Token, ".")
	now := time.Now().Unix()
	claims, err := json.Marshal(map[string]any{
		"iss": p.cluster.Server(), "aud": []string{p.cluster.Server()}, "sub": p.user,
		"iat": now - 3600, "nbf": now - 3600, "exp": now - 3540,
		"kubernetes.io": map[string]any{"namespace": p.namespace, "serviceaccount": map[string]any{"name": account, "uid": "x"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	signed := header + "." + base64.RawURLEncoding.EncodeToString(claims)
	digest := sha256.Sum256([]byte(signed))
	r, s, err := ecdsa.Sign(rand.Reader, key, digest[:])
	if err != nil {
		t.Fatal(err)
	}
	signature := make([]byte, 64)
	r.FillBytes(signature[:32])
	s.FillBytes(signature[32:])
	return signed + "." + base64.RawURLEncoding.EncodeToString(signature)
}
