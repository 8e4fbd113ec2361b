package cluster

import (
	"net"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/client-go/rest"
)

// serviceAccountDir is where a pod finds its service account.
const serviceAccountDir = "/var/run/secrets/kubernetes.io/serviceaccount"

// inClusterConfig is rest.InClusterConfig (client-go rest/config.go) with the
// environment and the directory passed in, and an error that says what is
// missing.
func inClusterConfig(getenv func(string) string, dir string) (*rest.Config, error) {
	host, port := getenv("KUBERNETES_SERVICE_HOST"), getenv("KUBERNETES_SERVICE_PORT")
	token, ca := filepath.Join(dir, "token"), filepath.Join(dir, "ca.crt")
	var missing []string
	if host == "" || port == "" {
		missing = append(missing, "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set")
	}
	for _, name := range []string{token, ca} {
		if content, err := os.ReadFile(name); err != nil {
			missing = append(missing, err.Error())
		} else if len(content) == 0 {
			missing = append(missing, name+" is empty")
		}
	}
	if len(missing) > 0 {
		return nil, badInput("`in-cluster` was asked for, and this is no pod with a service account",
			"the variables and files that Kubernetes gives a pod", strings.Join(missing, "; "),
			"give a kubeconfig instead; an action's container does not get the runner pod's service account", nil)
	}
	return &rest.Config{
		Host:            "https://" + net.JoinHostPort(host, port),
		BearerTokenFile: token,
		TLSClientConfig: rest.TLSClientConfig{CAFile: ca},
	}, nil
}
