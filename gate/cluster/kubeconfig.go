package cluster

import (
	"bytes"
	"crypto/x509"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// chosen is the one context of a kubeconfig that is used.
type chosen struct {
	context string
	cluster *api.Cluster
	user    *api.AuthInfo
	config  *api.Config
}

// restConfig makes the configuration of the client out of one kubeconfig. It
// gives the name of the context that was used.
func (o Options) restConfig(m material) (*rest.Config, string, error) {
	if len(bytes.TrimSpace(m.data)) == 0 {
		return nil, "", o.noCredential("the kubeconfig of "+m.origin+" is empty", "no content", nil)
	}
	config, err := clientcmd.Load(m.data)
	if err != nil {
		return nil, "", badInput("the kubeconfig of "+m.origin+" cannot be read",
			"a kubeconfig as YAML or JSON", unreadable(m.data), "check how it was made", nil)
	}
	use, err := o.choose(config, m.origin)
	if err != nil {
		return nil, "", err
	}
	if err := o.prepareCluster(use, m); err != nil {
		return nil, "", err
	}
	if err := o.prepareUser(use, m); err != nil {
		return nil, "", err
	}
	// NonInteractive loads nothing of its own and never falls back to the pod's
	// service account, as client-go's deferred loading does.
	result, err := clientcmd.NewNonInteractiveClientConfig(*use.config, use.context, &clientcmd.ConfigOverrides{}, nil).ClientConfig()
	if err != nil {
		return nil, "", badInput("the kubeconfig of "+m.origin+" cannot be used",
			"a usable context", err.Error(), "check it with `kubectl config view --raw --minify`", err)
	}
	denyPlugins(result)
	return result, use.context, nil
}

// denyPlugins makes client-go refuse to run a credential plugin, should one
// ever get past the explanation above it.
func denyPlugins(config *rest.Config) {
	if config.ExecProvider != nil {
		config.ExecProvider.PluginPolicy = api.PluginPolicy{PolicyType: api.PluginPolicyDenyAll}
	}
}

var lineNumber = regexp.MustCompile(`line \d+`)

// unreadable says why a kubeconfig cannot be read without quoting it. The error
// of clientcmd.Load must never be shown: for two users of one name it prints
// both with their tokens and keys.
func unreadable(data []byte) string {
	documents, err := parseDocuments(data)
	if err != nil {
		if line := lineNumber.FindString(err.Error()); line != "" {
			return "text that is neither, by " + line
		}
		return "text that is neither"
	}
	for _, document := range documents {
		config, ok := document.(map[string]any)
		if !ok {
			return "no object with the fields of a kubeconfig"
		}
		for _, field := range []string{"clusters", "contexts", "users"} {
			seen := map[string]bool{}
			entries, _ := config[field].([]any)
			for _, entry := range entries {
				named, _ := entry.(map[string]any)
				name, ok := named["name"].(string)
				if ok && seen[name] {
					return "two " + field + " named " + strconv.Quote(clip(name))
				}
				seen[name] = true
			}
		}
	}
	return "a field of another type than a kubeconfig's"
}

// choose picks the context, and reduces the kubeconfig to it.
func (o Options) choose(config *api.Config, origin string) (chosen, error) {
	name, wanted := o.Context, "the input `context`"
	if name == "" {
		name, wanted = config.CurrentContext, "its current-context"
	}
	known := sortedNames(config.Contexts)
	if len(known) == 0 && len(config.Clusters) == 0 {
		return chosen{}, o.noCredential("the kubeconfig of "+origin+" has no context", "no clusters and no contexts", nil)
	}
	if name == "" {
		return chosen{}, badInput("the kubeconfig of "+origin+" has no current-context",
			"a current-context, or the input `context`", "the contexts "+listed(known), "set `context` to one of them", nil)
	}
	context := config.Contexts[name]
	if context == nil {
		return chosen{}, badInput("the kubeconfig of "+origin+" does not have the context that "+wanted+" names",
			strconv.Quote(clip(name)), "the contexts "+listed(known), "set `context` to one of them", nil)
	}
	cluster, user := config.Clusters[context.Cluster], config.AuthInfos[context.AuthInfo]
	if cluster == nil {
		return chosen{}, badInput("the context "+strconv.Quote(clip(name))+" names a cluster that the kubeconfig does not have",
			strconv.Quote(clip(context.Cluster)), "the clusters "+listed(sortedNames(config.Clusters)), "write the kubeconfig anew", nil)
	}
	if user == nil {
		if context.AuthInfo == "" {
			user = api.NewAuthInfo()
		} else {
			return chosen{}, badInput("the context "+strconv.Quote(clip(name))+" names a user that the kubeconfig does not have",
				strconv.Quote(clip(context.AuthInfo)), "the users "+listed(sortedNames(config.AuthInfos)), "write the kubeconfig anew", nil)
		}
	}
	reduced := api.NewConfig()
	reduced.CurrentContext = name
	reduced.Contexts[name] = &api.Context{Cluster: "cluster", AuthInfo: "user"}
	reduced.Clusters["cluster"] = cluster
	reduced.AuthInfos["user"] = user
	return chosen{context: name, cluster: cluster, user: user, config: reduced}, nil
}

func sortedNames[V any](named map[string]V) []string {
	names := make([]string, 0, len(named))
	for name := range named {
		names = append(names, clip(name))
	}
	slices.Sort(names)
	return names
}

// prepareCluster applies the overrides and refuses a server that cannot be
// trusted to be the one that is meant.
func (o Options) prepareCluster(use chosen, m material) error {
	cluster := use.cluster
	if o.Server != "" {
		cluster.Server = strings.TrimSpace(o.Server)
	}
	if o.TLSServerName != "" {
		cluster.TLSServerName = strings.TrimSpace(o.TLSServerName)
	}
	if o.CertificateAuthorityData != "" {
		pem, err := decodeText(o.CertificateAuthorityData, " ")
		if err != nil || !x509.NewCertPool().AppendCertsFromPEM(pem) {
			return badInput("`certificate-authority-data` cannot be read", "certificates as PEM, or that in base64",
				"no certificate", "take it from the kubeconfig's certificate-authority-data", err)
		}
		cluster.CertificateAuthorityData, cluster.CertificateAuthority = pem, ""
		cluster.InsecureSkipTLSVerify = false
	}
	server, err := serverURL(cluster.Server)
	if err != nil {
		return err
	}
	cluster.Server = server
	if cluster.InsecureSkipTLSVerify {
		return badInput("the kubeconfig of "+m.origin+" turns the check of the server's certificate off",
			"a server that proves who it is", "insecure-skip-tls-verify: true",
			"whoever stands in between could answer \"verified\", so this is refused: set `certificate-authority-data` (and `tls-server-name` if the name differs)", nil)
	}
	if err := checkProxy(cluster.ProxyURL, m.origin); err != nil {
		return err
	}
	return o.resolveFile(&cluster.CertificateAuthority, "certificate-authority", m)
}

// checkProxy refuses a proxy that client-go would refuse, without quoting it:
// client-go's own error shows the password in it.
func checkProxy(proxy, origin string) error {
	if proxy == "" {
		return nil
	}
	parsed, err := url.Parse(proxy)
	if err == nil && parsed.Host != "" && slices.Contains([]string{"http", "https", "socks5"}, parsed.Scheme) {
		return nil
	}
	return badInput("the proxy-url in the kubeconfig of "+origin+" cannot be used", "http, https or socks5, and a host",
		"another text", "correct proxy-url, or leave it out and set HTTPS_PROXY", nil)
}

// serverURL checks the address of the API server. An address without a scheme
// means https, as for kubectl.
func serverURL(server string) (string, error) {
	if server == "" {
		return "", badInput("the kubeconfig names no server", "an address such as https://host:6443", "nothing",
			"set `server` or write the kubeconfig anew", nil)
	}
	if !strings.Contains(server, "://") {
		server = "https://" + server
	}
	parsed, err := url.Parse(server)
	// An address that cannot be parsed may hold one too, and is quoted below.
	if err == nil && parsed.User != nil || err != nil && strings.Contains(server, "@") {
		return "", badInput("the server's address holds a user name or password", "an address such as https://host:6443",
			"a credential in the address", "put the credential into the kubeconfig's user", nil)
	}
	if err != nil || parsed.Host == "" || parsed.RawQuery != "" || parsed.Fragment != "" {
		return "", badInput("the server's address cannot be used", "an address such as https://host:6443",
			strconv.Quote(clip(server)), "check `server` and the kubeconfig", nil)
	}
	if parsed.Scheme != "https" {
		return "", badInput("the server's address is not https", "https, because a server that does not prove who it is could say anything",
			strconv.Quote(clip(server)), "use the API server's https address; `kubectl proxy` is not supported", nil)
	}
	return server, nil
}

// prepareUser refuses a user whose credential is not in the kubeconfig.
func (o Options) prepareUser(use chosen, m material) error {
	user := use.user
	if user.Exec != nil {
		return execPlugin(user.Exec, m.origin)
	}
	if user.AuthProvider != nil {
		return badInput("the kubeconfig of "+m.origin+" uses an auth provider, which client-go no longer has",
			"a token or a client certificate", "the auth provider "+strconv.Quote(clip(user.AuthProvider.Name)),
			replacement(user.AuthProvider.Name), nil)
	}
	for _, file := range []struct {
		path *string
		name string
	}{
		{&user.TokenFile, "tokenFile"},
		{&user.ClientCertificate, "client-certificate"},
		{&user.ClientKey, "client-key"},
	} {
		if err := o.resolveFile(file.path, file.name, m); err != nil {
			return err
		}
	}
	token := user.Token != "" || user.TokenFile != ""
	certificate := len(user.ClientCertificateData) > 0 || user.ClientCertificate != ""
	if !token && !certificate && user.Username == "" {
		return o.noCredential("the kubeconfig of "+m.origin+" has no credential for its user",
			"a user without token and client certificate in the context "+strconv.Quote(clip(use.context)), nil)
	}
	if strings.TrimSpace(user.Token) != user.Token || strings.ContainsFunc(user.Token, notInHeader) {
		return badInput("the token in the kubeconfig of "+m.origin+" cannot be sent", "one line without spaces around it",
			"white space or control characters in it", "write the token with printf '%s' instead of echo", nil)
	}
	return nil
}

func notInHeader(r rune) bool { return r < 0x20 || r == 0x7f }

// resolveFile finds a file that a kubeconfig names. The runner never rewrites
// such a path, so the equivalent mounts are tried.
func (o Options) resolveFile(name *string, field string, m material) error {
	if *name == "" {
		return nil
	}
	remedy := "put the content into the kubeconfig instead: `kubectl config view --raw --minify --flatten`"
	path := *name
	if !filepath.IsAbs(path) {
		if m.path == "" {
			return badInput("the kubeconfig of "+m.origin+" names a file by a relative path",
				field+"-data, because content has no directory of its own", field+": "+strconv.Quote(clip(path)), remedy, nil)
		}
		path = filepath.Join(filepath.Dir(m.path), path)
	}
	found, tried := ResolvePath(path, fileExists)
	if found == "" {
		return badInput("the kubeconfig of "+m.origin+" names a file that is not there",
			"a file that the container sees; the runner does not translate a path inside a file",
			field+": "+strconv.Quote(clip(*name))+", tried "+strings.Join(tried, ", "), remedy, nil)
	}
	*name = found
	return nil
}

func execPlugin(plugin *api.ExecConfig, origin string) *Error {
	name := filepath.Base(plugin.Command)
	return badInput("the kubeconfig of "+origin+" runs a program to get its credential, which this container does not have",
		"a token or a client certificate", "the exec plugin "+strconv.Quote(clip(name)), replacement(name), nil)
}

// replacement says how to get a kubeconfig without a given plugin or auth
// provider. The recipes stand in docs/credentials.md.
func replacement(plugin string) string {
	recipe := "use the token of a service account: `kubectl create token flux-verify-gate --namespace flux-system --duration 1h`"
	switch strings.TrimSuffix(plugin, ".exe") {
	case "aws", "aws-iam-authenticator":
		recipe = "put the token of `aws eks get-token --cluster-name NAME` into a kubeconfig in an earlier step; it lasts about 15 minutes, so `timeout` must be shorter"
	case "gke-gcloud-auth-plugin", "gcp", "gcloud":
		recipe = "use google-github-actions/get-gke-credentials in its default mode (without use_auth_provider), which writes a short-lived token"
	case "kubelogin", "azure":
		recipe = "use the token of a service account, or `az aks get-credentials --admin`; `kubelogin convert-kubeconfig` only makes another exec plugin"
	case "kubectl-oidc_login", "kubectl", "oidc":
		recipe = "put a fresh ID token, or the token of a service account, into the kubeconfig in an earlier step"
	case "doctl":
		recipe = "use `doctl kubernetes cluster kubeconfig show NAME --expiry-seconds 600`, which writes a token"
	}
	return recipe + "; see docs/credentials.md"
}
