package cluster

import (
	"encoding/base64"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd/api"

	"flux-verify-gate/gate"
)

var update = flag.Bool("update", false, "write the golden files anew")

func env(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i+1 < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func write(t testing.TB, dir, name, content string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestConnectSources(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	certificate, key := selfSigned(t, time.Now().Add(time.Hour))
	ca := base64.StdEncoding.EncodeToString(certificate)
	content := kubeconfig("https://prod.example.com:6443", ca, `{"token":"t"}`)
	path := write(t, dir, "kc", content)
	write(t, dir, "ca.crt", string(certificate))
	write(t, dir, "client.crt", string(certificate))
	write(t, dir, "client.key", string(key))
	write(t, dir, "token", "t\n")
	files := write(t, dir, "files", strings.Replace(
		kubeconfig("https://prod.example.com:6443", "", `{"client-certificate":"client.crt","client-key":"client.key"}`),
		`"certificate-authority-data":""`, `"certificate-authority":"ca.crt"`, 1))
	tokenFile := write(t, dir, "tokenfile", kubeconfig("https://prod.example.com:6443", ca, `{"tokenFile":"token"}`))
	insecure := strings.Replace(content, `"certificate-authority-data":"`+ca+`"`, `"insecure-skip-tls-verify":true`, 1)

	for name, test := range map[string]struct {
		options         Options
		server, context string
	}{
		"path":                         {Options{Kubeconfig: path}, "https://prod.example.com:6443", "prod"},
		"variable":                     {Options{Getenv: env("KUBECONFIG", path)}, "https://prod.example.com:6443", "prod"},
		"variable, one entry":          {Options{Getenv: env("KUBECONFIG", ":"+path+":")}, "https://prod.example.com:6443", "prod"},
		"data":                         {Options{KubeconfigData: content}, "https://prod.example.com:6443", "prod"},
		"data in base64":               {Options{KubeconfigData: base64.StdEncoding.EncodeToString([]byte(content))}, "https://prod.example.com:6443", "prod"},
		"data in folded base64":        {Options{KubeconfigData: fold(base64.StdEncoding.EncodeToString([]byte(content)))}, "https://prod.example.com:6443", "prod"},
		"data in URL base64":           {Options{KubeconfigData: base64.RawURLEncoding.EncodeToString([]byte(content))}, "https://prod.example.com:6443", "prod"},
		"data as YAML":                 {Options{KubeconfigData: toYAML(t, content)}, "https://prod.example.com:6443", "prod"},
		"the input beats the variable": {Options{Kubeconfig: path, Getenv: env("KUBECONFIG", "/nowhere")}, "https://prod.example.com:6443", "prod"},
		"the data beats the variable":  {Options{KubeconfigData: content, Getenv: env("KUBECONFIG", "/nowhere")}, "https://prod.example.com:6443", "prod"},
		"another context":              {Options{Kubeconfig: path, Context: "staging"}, "https://prod.example.com:6443", "staging"},
		"another server":               {Options{Kubeconfig: path, Server: "https://10.0.0.1:6443/k8s/clusters/c-1", TLSServerName: "kubernetes"}, "https://10.0.0.1:6443/k8s/clusters/c-1", "prod"},
		"no scheme":                    {Options{Kubeconfig: path, Server: "10.0.0.1:6443"}, "https://10.0.0.1:6443", "prod"},
		"another authority":            {Options{Kubeconfig: path, CertificateAuthorityData: string(certificate)}, "https://prod.example.com:6443", "prod"},
		"another authority in base64":  {Options{Kubeconfig: path, CertificateAuthorityData: ca}, "https://prod.example.com:6443", "prod"},
		"insecure mended":              {Options{KubeconfigData: insecure, CertificateAuthorityData: ca}, "https://prod.example.com:6443", "prod"},
		"files beside it":              {Options{Kubeconfig: files}, "https://prod.example.com:6443", "prod"},
		"token file beside it":         {Options{Kubeconfig: tokenFile}, "https://prod.example.com:6443", "prod"},
		"no authority: the system's":   {Options{KubeconfigData: kubeconfig("https://prod.example.com", "", `{"token":"t"}`)}, "https://prod.example.com", "prod"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, err := Connect(test.options)
			if err != nil {
				t.Fatal(err)
			}
			if client.Server != test.server || client.Context != test.context {
				t.Errorf("got %q, %q, want %q, %q", client.Server, client.Context, test.server, test.context)
			}
		})
	}
}

func fold(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i += 76 {
		b.WriteString(text[i:min(i+76, len(text))] + "\n")
	}
	return b.String()
}

// Each way in which a credential can be wrong, with the whole explanation in a
// golden file, because it is what a person acts on.
func TestConnectExplains(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	certificate, _ := selfSigned(t, time.Now().Add(time.Hour))
	_, otherKey := selfSigned(t, time.Now().Add(time.Hour))
	ca := base64.StdEncoding.EncodeToString(certificate)
	good := kubeconfig("https://prod.example.com:6443", ca, `{"token":"t"}`)
	with := func(user string) Options {
		return Options{KubeconfigData: kubeconfig("https://prod.example.com:6443", ca, user)}
	}
	replaced := func(old, replacement string) Options {
		if !strings.Contains(good, old) {
			t.Fatalf("no %q in the kubeconfig", old)
		}
		return Options{KubeconfigData: strings.Replace(good, old, replacement, 1)}
	}
	exec := func(command string) Options {
		return with(fmt.Sprintf(`{"exec":{"apiVersion":"client.authentication.k8s.io/v1","command":%q,"interactiveMode":"Never"}}`, command))
	}
	good64 := base64.StdEncoding.EncodeToString
	path := write(t, dir, "kc", good)
	empty := write(t, dir, "empty", "\n")
	big := write(t, dir, "big", strings.Repeat(" ", maxKubeconfig+1))
	missingCA := write(t, dir, "missing-ca", strings.Replace(good, `"certificate-authority-data":"`+ca+`"`, `"certificate-authority":"/home/runner/work/_temp/ca.crt"`, 1))

	cases := []struct {
		name    string
		options Options
	}{
		{"nothing", Options{}},
		{"nothing, dependabot", Options{Getenv: env("GITHUB_ACTOR", "dependabot[bot]", "GITHUB_EVENT_NAME", "pull_request")}},
		{"nothing, pull request", Options{Getenv: env("GITHUB_EVENT_NAME", "pull_request")}},
		{"data blank", Options{KubeconfigData: " \n"}},
		{"path blank", Options{Kubeconfig: " "}},
		{"server blank", Options{Kubeconfig: path, Server: " "}},
		{"path and data", Options{Kubeconfig: path, KubeconfigData: good}},
		{"in-cluster and path", Options{Kubeconfig: path, InCluster: true}},
		{"in-cluster and server", Options{Server: "https://x", InCluster: true}},
		{"server alone", Options{Server: "https://x"}},
		{"no file", Options{Kubeconfig: "/nowhere/kc"}},
		{"no file, variable", Options{Getenv: env("KUBECONFIG", "/__w/_temp/kc")}},
		{"no file, home", Options{Getenv: env("KUBECONFIG", "/home/runner/.kube/config")}},
		{"no file, tilde", Options{Kubeconfig: "~/.kube/config"}},
		{"several files", Options{Getenv: env("KUBECONFIG", path+":/b")}},
		{"content, variable", Options{Getenv: env("KUBECONFIG", "users:\n- name: u\n  user:\n    token: hidden\n")}},
		{"content on one line", Options{Kubeconfig: `{users: [{name: u, user: {token: hidden}}]}`}},
		{"content in base64", Options{Kubeconfig: "hidden" + strings.Repeat("A", 300)}},
		{"a directory", Options{Kubeconfig: dir}},
		{"a huge file", Options{Kubeconfig: big}},
		{"an empty file", Options{Kubeconfig: empty}},
		{"not a kubeconfig", Options{KubeconfigData: "hello: [world"}},
		{"not base64", Options{KubeconfigData: "not-a-kubeconfig!"}},
		{"base64 of something else", Options{KubeconfigData: good64([]byte("hello"))}},
		{"an empty kubeconfig", Options{KubeconfigData: `{"apiVersion":"v1","kind":"Config"}`}},
		{"no current-context", replaced(`"current-context":"prod",`, "")},
		{"unknown context", Options{KubeconfigData: good, Context: "production"}},
		{"unknown current-context", replaced(`"current-context":"prod"`, `"current-context":"gone"`)},
		{"unknown cluster", replaced(`"cluster":"c","user":"u"`, `"cluster":"gone","user":"u"`)},
		{"unknown user", replaced(`"cluster":"c","user":"u"`, `"cluster":"c","user":"gone"`)},
		{"context without user", replaced(`"cluster":"c","user":"u"`, `"cluster":"c"`)},
		{"no server", replaced(`"https://prod.example.com:6443"`, `""`)},
		{"plain http", replaced("https://prod", "http://prod")},
		{"server with a password", replaced("https://prod", "https://a:b@prod")},
		{"server with a password, broken", replaced("https://prod", "https://a:hid%den@prod")},
		{"server no address", Options{KubeconfigData: good, Server: "https://"}},
		{"insecure", replaced(`"certificate-authority-data":"`+ca+`"`, `"insecure-skip-tls-verify":true`)},
		{"proxy of another scheme", replaced(`"server":`, `"proxy-url":"ftp://a:hidden@p","server":`)},
		{"proxy no address", replaced(`"server":`, `"proxy-url":"http://a:hidden@p:x","server":`)},
		{"authority no PEM", Options{KubeconfigData: good, CertificateAuthorityData: "aGVsbG8="}},
		{"authority in the kubeconfig no PEM", replaced(ca, "aGVsbG8=")},
		{"authority file missing", Options{Kubeconfig: missingCA}},
		{"authority file relative", replaced(`"certificate-authority-data":"`+ca+`"`, `"certificate-authority":"ca.crt"`)},
		{"certificate file missing", with(`{"client-certificate":"/nowhere/c.crt","client-key":"/nowhere/c.key"}`)},
		{"token file missing", with(`{"tokenFile":"/var/run/secrets/token"}`)},
		{"key of another certificate", with(fmt.Sprintf(`{"client-certificate-data":%q,"client-key-data":%q}`, ca, good64(otherKey)))},
		{"certificate without key", with(fmt.Sprintf(`{"client-certificate-data":%q}`, ca))},
		{"no credential", with(`{}`)},
		{"empty token", with(`{"token":""}`)},
		{"token with a line break", with(`{"token":"t\n"}`)},
		{"token and password", with(`{"token":"t","username":"a","password":"b"}`)},
		{"exec aws", exec("/usr/local/bin/aws")},
		{"exec aws-iam-authenticator", exec("aws-iam-authenticator")},
		{"exec gke-gcloud-auth-plugin", exec("gke-gcloud-auth-plugin")},
		{"exec kubelogin", exec("kubelogin")},
		{"exec kubectl", exec("kubectl")},
		{"exec doctl", exec("doctl")},
		{"exec other", exec("my-plugin")},
		{"auth provider gcp", with(`{"auth-provider":{"name":"gcp"}}`)},
		{"auth provider oidc", with(`{"auth-provider":{"name":"oidc"}}`)},
		{"two clusters of one name", replaced(`"clusters":[`, `"clusters":[{"name":"c","cluster":{"server":"https://other"}},`)},
		{"two users of one name", replaced(`"users":[`, `"users":[{"name":"u","user":{"token":"hidden"}},`)},
		{"a field of another type", replaced(`"token":"t"`, `"token":{"hidden":"hidden"}`)},
		{"a broken line", Options{KubeconfigData: "apiVersion: v1\nusers: [{name: u, user: {token: hidden}}\n"}},
	}
	var golden strings.Builder
	for _, test := range cases {
		_, err := Connect(test.options)
		failure, ok := asError(err)
		if !ok || failure.Failure.Code != gate.BadInput || failure.Failure.Transient {
			t.Errorf("%s: got %v, want a final bad-input", test.name, err)
			continue
		}
		f := failure.Failure
		if text := fmt.Sprintf("%+v %+v", *failure, failure.Err); strings.Contains(text, "hidden") || strings.Contains(text, "hid%den") {
			t.Errorf("%s: the credential is shown: %v", test.name, err)
		}
		if f.Title == "" || f.Expected == "" || f.Found == "" || f.Remedy == "" {
			t.Errorf("%s: got an incomplete failure %+v", test.name, f)
		}
		fmt.Fprintf(&golden, "%s\n  title:    %s\n  expected: %s\n  found:    %s\n  remedy:   %s\n\n", test.name, f.Title, f.Expected, f.Found, f.Remedy)
	}
	compareGolden(t, "explanations.golden", strings.ReplaceAll(golden.String(), dir, "$DIR"))
}

func compareGolden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; got:\n%s", path, got)
	}
}

// The chain that client-go would follow must not be followed.
func TestConnectNeverFallsBackToThePod(t *testing.T) {
	t.Parallel()
	inPod := []string{"KUBERNETES_SERVICE_HOST", "10.0.0.1", "KUBERNETES_SERVICE_PORT", "443", "HOME", t.TempDir()}
	for _, options := range []Options{
		{Getenv: env(inPod...)},
		{Getenv: env(append(inPod, "KUBECONFIG", "/nowhere/kc")...)},
		{Kubeconfig: "/nowhere/kc", Getenv: env(inPod...)},
		{KubeconfigData: `{"apiVersion":"v1","kind":"Config"}`, Getenv: env(inPod...)},
	} {
		client, err := Connect(options)
		if err == nil {
			t.Errorf("%+v: connected to %s", options, client.Server)
		}
	}
}

func TestInClusterConfig(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	certificate, _ := selfSigned(t, time.Now().Add(time.Hour))
	pod := env("KUBERNETES_SERVICE_HOST", "fd00::1", "KUBERNETES_SERVICE_PORT", "443")
	if _, err := inClusterConfig(pod, dir); err == nil || !strings.Contains(err.Error(), "token") || !strings.Contains(err.Error(), "ca.crt") {
		t.Errorf("no files: got %v", err)
	}
	write(t, dir, "token", "t")
	write(t, dir, "ca.crt", string(certificate))
	config, err := inClusterConfig(pod, dir)
	if err != nil {
		t.Fatal(err)
	}
	if config.Host != "https://[fd00::1]:443" || config.BearerTokenFile != filepath.Join(dir, "token") || config.Insecure {
		t.Errorf("got %+v", config)
	}
	client, err := Options{}.client(config, "in-cluster", "pod")
	if err != nil || client.Context != "in-cluster" {
		t.Errorf("got %+v, %v", client, err)
	}
	if _, err := inClusterConfig(env(), dir); err == nil || !strings.Contains(err.Error(), "KUBERNETES_SERVICE_HOST") {
		t.Errorf("no variables: got %v", err)
	}
	write(t, dir, "token", "")
	if _, err := inClusterConfig(pod, dir); err == nil || !strings.Contains(err.Error(), "is empty") {
		t.Errorf("empty token: got %v", err)
	}
}

// The explanation of an exec plugin comes first; below it client-go must refuse
// to run one too.
func TestExecPluginsAreDeniedBelow(t *testing.T) {
	t.Parallel()
	marker := filepath.Join(t.TempDir(), "ran")
	user := api.NewAuthInfo()
	user.Exec = &api.ExecConfig{Command: "touch", Args: []string{marker}, APIVersion: "client.authentication.k8s.io/v1", InteractiveMode: api.NeverExecInteractiveMode}
	config := &rest.Config{Host: "https://127.0.0.1:1", ExecProvider: user.Exec}
	denyPlugins(config)
	client, err := Options{}.client(config, "x", "x")
	if err == nil {
		_, err = client.Read(t.Context(), "flux-system", "app")
	}
	if err == nil || !strings.Contains(err.Error(), "not allowed") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("the plugin was run")
	}
}

func TestConnectDoesNotTouchTheEnvironment(t *testing.T) {
	t.Setenv("KUBECONFIG", write(t, t.TempDir(), "kc", kubeconfig("https://x", "", `{"token":"t"}`)))
	t.Setenv("KUBERNETES_MASTER", "https://other.example.com")
	if client, err := Connect(Options{}); err == nil {
		t.Errorf("connected to %s by the process's own environment", client.Server)
	}
}

func TestCredentialSaysWhenItExpired(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	token := func(payload string) string {
		return "h." + base64.RawURLEncoding.EncodeToString([]byte(payload)) + ".s"
	}
	certificate, _ := selfSigned(t, now.Add(-time.Minute))
	for name, test := range map[string]struct {
		config rest.Config
		want   string
	}{
		"token, expired":   {rest.Config{BearerToken: token(`{"exp":1767225000}`)}, "the token expired at 2025-12-31T23:50:00Z"},
		"token, valid":     {rest.Config{BearerToken: token(`{"exp":1767229200}`)}, "the token of x was not accepted"},
		"token, no JWT":    {rest.Config{BearerToken: "k8s-aws-v1.abc"}, "the token of x was not accepted"},
		"token, odd":       {rest.Config{BearerToken: token(`{"exp":"never"}`)}, "the token of x was not accepted"},
		"certificate":      {rest.Config{TLSClientConfig: rest.TLSClientConfig{CertData: certificate}}, "the client certificate expired at 2025-12-31T23:59:00Z"},
		"certificate, odd": {rest.Config{TLSClientConfig: rest.TLSClientConfig{CertData: []byte("x")}}, "the client certificate of x was not accepted"},
		"password":         {rest.Config{Username: "a"}, "the user name and password of x was not accepted"},
	} {
		if got := credentialOf(&test.config, "x").refused(now); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

func FuzzConnect(f *testing.F) {
	f.Add(kubeconfig("https://prod.example.com:6443", "", `{"token":"t"}`), "")
	f.Add(kubeconfig("https://prod.example.com:6443", "", `{"exec":{"command":"aws"}}`), "staging")
	f.Add("apiVersion: v1\nkind: Config\nclusters: [{name: c}]\n", "prod")
	f.Fuzz(func(t *testing.T, data, context string) {
		client, err := Connect(Options{KubeconfigData: data, Context: context})
		if err != nil {
			if failure, ok := asError(err); !ok || failure.Failure.Code != gate.BadInput {
				t.Fatalf("got %v, want a bad-input", err)
			}
			return
		}
		if !strings.HasPrefix(client.Server, "https://") {
			t.Fatalf("connected to %q", client.Server)
		}
	})
}
