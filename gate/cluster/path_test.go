package cluster

import (
	"slices"
	"testing"
)

func TestResolvePath(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		path   string
		exists []string
		want   string
		tried  []string
	}{
		"as it stands":             {"/a/kc", []string{"/a/kc"}, "/a/kc", []string{"/a/kc"}},
		"as it stands comes first": {"/__w/_temp/kc", []string{"/__w/_temp/kc", "/github/runner_temp/kc"}, "/__w/_temp/kc", []string{"/__w/_temp/kc"}},
		"relative":                 {"kc", []string{"kc"}, "kc", []string{"kc"}},
		"temp of a job container": {"/__w/_temp/kc", []string{"/github/runner_temp/kc"}, "/github/runner_temp/kc",
			[]string{"/__w/_temp/kc", "/github/runner_temp/kc"}},
		"temp of a hosted runner": {"/home/runner/work/_temp/d/kc", []string{"/github/runner_temp/d/kc"}, "/github/runner_temp/d/kc",
			[]string{"/home/runner/work/_temp/d/kc", "/github/runner_temp/d/kc"}},
		"temp of a self-hosted runner": {"/opt/actions-runner/_work/_temp/kc", []string{"/github/runner_temp/kc"}, "/github/runner_temp/kc",
			[]string{"/opt/actions-runner/_work/_temp/kc", "/github/runner_temp/kc"}},
		"temp, in a pod": {"/github/runner_temp/kc", []string{"/__w/_temp/kc"}, "/__w/_temp/kc",
			[]string{"/github/runner_temp/kc", "/__w/_temp/kc"}},
		"workspace of a job container": {"/__w/repo/repo/d/kc", []string{"/github/workspace/d/kc"}, "/github/workspace/d/kc",
			[]string{"/__w/repo/repo/d/kc", "/github/workspace/d/kc"}},
		"workspace of a hosted runner": {"/home/runner/work/repo/repo/kc", []string{"/github/workspace/kc"}, "/github/workspace/kc",
			[]string{"/home/runner/work/repo/repo/kc", "/github/workspace/kc"}},
		"workspace of a self-hosted runner": {"/srv/_work/repo/repo/kc", []string{"/github/workspace/kc"}, "/github/workspace/kc",
			[]string{"/srv/_work/repo/repo/kc", "/github/workspace/kc"}},
		"another folder of the runner": {"/__w/_tool/x/kc", nil, "", []string{"/__w/_tool/x/kc"}},
		"the workspace itself":         {"/__w/repo/repo", nil, "", []string{"/__w/repo/repo"}},
		"nothing anywhere":             {"/__w/_temp/kc", nil, "", []string{"/__w/_temp/kc", "/github/runner_temp/kc"}},
		"a way out of temp":            {"/__w/_temp/../../etc/kc", nil, "", []string{"/__w/_temp/../../etc/kc"}},
		"only looks like it":           {"/x/__w/_temp/kc", nil, "", []string{"/x/__w/_temp/kc"}},
		"home":                         {"/home/runner/.kube/config", nil, "", []string{"/home/runner/.kube/config"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, tried := ResolvePath(test.path, func(path string) bool { return slices.Contains(test.exists, path) })
			if got != test.want || !slices.Equal(tried, test.tried) {
				t.Errorf("got %q after %q, want %q after %q", got, tried, test.want, test.tried)
			}
		})
	}
}

func TestUnderHome(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]bool{
		"/home/runner/.kube/config": true, "/root/.kube/config": true, "~/.kube/config": true, "$HOME/.kube/config": true,
		"${HOME}/.kube/config": true, "/github/home/.kube/config": true,
		"/home/runner/work/repo/repo/kc": false, "/home/ci/_work/_temp/kc": false, "/tmp/kc": false, "kc": false, "/rootless/kc": false,
	} {
		if got := underHome(path); got != want {
			t.Errorf("%s: got %t, want %t", path, got, want)
		}
	}
}
