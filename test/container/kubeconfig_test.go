package container_test

import (
	"fmt"
	"net"
	"testing"
)

// kubeconfig is one that needs no other file, and more besides.
func kubeconfig(server, more string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: prod
contexts: [{name: prod, context: {cluster: prod, user: gate}}]
clusters: [{name: prod, cluster: {server: %q%s}}]
users: [{name: gate, user: {token: %q}}]
`, server, more, token)
}

// closedPort gives an address of the loopback interface on which nothing
// listens. (With chroot isolation the container has the network of the test.)
func closedPort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// live is a step that asks a cluster.
func live(with, env, files map[string]string) step {
	s := step{with: map[string]string{
		"required-signers": "- issuer: https://token.actions.githubusercontent.com\n" +
			"  subject: https://github.com/acme/platform/.github/workflows/cd.yaml@refs/heads/main\n",
		"digest": "any", "signature": "skip", "timeout": "1m",
	}, env: env, files: files}
	for name, value := range with {
		s.with[name] = value
	}
	return s
}

// TestKubeconfigFound holds that the kubeconfig was found, by the request that
// was sent to its server. The files have the mode 0600 and the runner's owner.
func TestKubeconfigFound(t *testing.T) {
	theImage(t)
	tests := []struct {
		name      string
		with, env map[string]string
		// file is where it lies on the host.
		file      string
		oldRunner bool
	}{
		{name: "in the temp folder, by the variable", file: hostTemp + "/kubeconfig_1",
			env: map[string]string{"KUBECONFIG": hostTemp + "/kubeconfig_1"}},
		{name: "in the temp folder, by the input", file: hostTemp + "/kubeconfig_1",
			with: map[string]string{"kubeconfig": hostTemp + "/kubeconfig_1"}},
		{name: "in the workspace", file: hostWorkspace + "/gha-kubeconfig-1",
			env: map[string]string{"KUBECONFIG": hostWorkspace + "/gha-kubeconfig-1"}},
		{name: "in the workspace, of an old runner", file: hostWorkspace + "/gha-kubeconfig-1", oldRunner: true,
			env: map[string]string{"KUBECONFIG": hostWorkspace + "/gha-kubeconfig-1"}},
		{name: "relative to the workspace", file: hostWorkspace + "/kubeconfig",
			with: map[string]string{"kubeconfig": "kubeconfig"}},
		{name: "in the temp folder, as a step in a job container says", file: hostTemp + "/kubeconfig_1",
			env: map[string]string{"KUBECONFIG": "/__w/_temp/kubeconfig_1"}},
		{name: "in the workspace, as a step in a job container says", file: hostWorkspace + "/kubeconfig",
			env: map[string]string{"KUBECONFIG": "/__w/platform/platform/kubeconfig"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			address := closedPort(t)
			s := live(tt.with, tt.env, map[string]string{tt.file: kubeconfig("https://"+address, "")})
			s.oldRunner = tt.oldRunner
			r := s.run(t)
			r.want("undecided", "unreachable", 2)
			r.says("https://"+address, "context prod", "connection refused", "loopback address")
		})
	}
}

func TestKubeconfigOfASecret(t *testing.T) {
	address := closedPort(t)
	r := live(map[string]string{"kubeconfig-data": kubeconfig("https://"+address, "")}, nil, nil).run(t)
	r.want("undecided", "unreachable", 2)
	r.says("https://"+address, "connection refused")
}

func TestKubeconfigNotFound(t *testing.T) {
	theImage(t)
	const home = "/home/runner/.kube/config"
	usable := kubeconfig("https://127.0.0.1:1", "")
	tests := []struct {
		name      string
		with, env map[string]string
		files     map[string]string
		oldRunner bool
		says      []string
	}{
		{name: "none", says: []string{"there is no kubeconfig", "environment:"}},
		{name: "in a home folder", env: map[string]string{"KUBECONFIG": home}, files: map[string]string{home: usable},
			says: []string{home, "home directory, which is not mounted", "RUNNER_TEMP"}},
		{name: "in a home folder, with a tilde", with: map[string]string{"kubeconfig": "~/.kube/config"}, files: map[string]string{home: usable},
			says: []string{"~/.kube/config", "no shell expands"}},
		{name: "in the temp folder of an old runner", env: map[string]string{"KUBECONFIG": hostTemp + "/kubeconfig_1"}, oldRunner: true,
			files: map[string]string{hostTemp + "/kubeconfig_1": usable},
			says:  []string{hostTemp + "/kubeconfig_1", "tried also /github/runner_temp/kubeconfig_1", "before 2.331"}},
		{name: "removed by a checkout", env: map[string]string{"KUBECONFIG": hostWorkspace + "/gha-kubeconfig-1"},
			says: []string{"/github/workspace/gha-kubeconfig-1", "is not there"}},
		{name: "two of them", env: map[string]string{"KUBECONFIG": hostTemp + "/a:" + hostTemp + "/b"},
			files: map[string]string{hostTemp + "/a": usable, hostTemp + "/b": usable},
			says:  []string{"several files", "/github/runner_temp/a"}},
		{name: "an empty file", env: map[string]string{"KUBECONFIG": hostTemp + "/kubeconfig_1"}, files: map[string]string{hostTemp + "/kubeconfig_1": ""},
			says: []string{"is empty", "environment:"}},
		{name: "naming a file of the host that is not there", env: map[string]string{"KUBECONFIG": hostTemp + "/kubeconfig_1"},
			files: map[string]string{hostTemp + "/kubeconfig_1": kubeconfig("https://127.0.0.1:1", ", certificate-authority: /etc/kubernetes/ca.crt")},
			says:  []string{"certificate-authority", "/etc/kubernetes/ca.crt", "does not translate"}},
		{name: "the service account of a pod, not asked for", env: map[string]string{"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": "1"},
			says: []string{"there is no kubeconfig"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := live(tt.with, tt.env, tt.files)
			s.oldRunner = tt.oldRunner
			r := s.run(t)
			r.want("undecided", "bad-input", 2)
			r.says(tt.says...)
		})
	}
}

// TestFileNamedByKubeconfig holds that a path of the host inside a kubeconfig,
// which the runner does not rewrite, leads to the file where it is mounted.
func TestFileNamedByKubeconfig(t *testing.T) {
	r := live(nil, map[string]string{"KUBECONFIG": hostTemp + "/kubeconfig_1"}, map[string]string{
		hostTemp + "/kubeconfig_1": kubeconfig("https://"+closedPort(t), ", certificate-authority: "+hostTemp+"/ca.crt"),
		hostTemp + "/ca.crt":       "no certificate",
	}).run(t)
	r.want("undecided", "bad-input", 2)
	r.says("unable to parse bytes as PEM block")
}
