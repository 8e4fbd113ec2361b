package container_test

import (
	"archive/tar"
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"flux-verify-gate/gate/report/runnertest"
)

// pod is the container of a step on a runner in Kubernetes mode (ARC), as
// actions/runner-container-hooks v0.8 and later run it (packages/k8s,
// run-container-step.ts): tail keeps it alive, the work folder is copied into
// it, and a script moves it into place and starts the entrypoint.
type pod struct {
	t     *testing.T
	image *image
	host  string
}

// kubernetesFolders are the volumes of that pod. All are empty at first.
var kubernetesFolders = []string{"/__w", "/__e", "/github"}

func newPod(t *testing.T) *pod {
	t.Helper()
	p := &pod{t: t, image: theImage(t), host: t.TempDir()}
	for _, folder := range kubernetesFolders {
		if err := os.Mkdir(filepath.Join(p.host, folder), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// options are those of every command in the pod's container.
func (p *pod) options() []string {
	options := []string{"--workingdir", "/__w"}
	for _, folder := range kubernetesFolders {
		options = append(options, "--volume", filepath.Join(p.host, folder)+":"+folder)
	}
	return options
}

// start starts a command that goes on running.
func (p *pod) start(command ...string) *running {
	p.t.Helper()
	r := &running{t: p.t, image: p.image, done: make(chan error, 1)}
	r.cmd, r.log = p.image.prepare(p.t.Context(), p.t, p.options(), command...)
	r.must(r.cmd.Start())
	go func() { r.done <- r.cmd.Wait() }()
	return r
}

// exec runs a command beside the one that keeps the container alive, and gives
// its exit status and what it printed.
func (p *pod) exec(stdin []byte, command ...string) (status int, printed string) {
	p.t.Helper()
	cmd, log := p.image.prepare(p.t.Context(), p.t, p.options(), command...)
	cmd.Stdin = bytes.NewReader(stdin)
	status, err := exitStatus(cmd.Run())
	if err != nil {
		p.t.Fatal(err)
	}
	text, err := os.ReadFile(log)
	if err != nil {
		p.t.Fatal(err)
	}
	return status, string(text)
}

// archive packs files, as the runner's user owns them.
func archive(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	folders := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		for i, r := range name {
			if r == '/' && !folders[name[:i]] {
				folders[name[:i]] = true
				writeEntry(t, w, &tar.Header{Typeflag: tar.TypeDir, Name: name[:i] + "/", Mode: 0o755, Uid: runnerUID, Gid: runnerGID}, "")
			}
		}
		writeEntry(t, w, &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(files[name])), Uid: runnerUID, Gid: runnerGID}, files[name])
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func writeEntry(t *testing.T, w *tar.Writer, header *tar.Header, content string) {
	t.Helper()
	if err := w.WriteHeader(header); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(content)); err != nil {
		t.Fatal(err)
	}
}

// script moves what was copied to where the step expects it and starts the
// entrypoint with the environment of the step.
func script(env map[string]string, entrypoint string) string {
	var b strings.Builder
	b.WriteString("#!/bin/sh -l\nrm \"$0\"\n")
	for from, to := range map[string]string{
		"_temp/_github_home": "home", "_temp/_github_workflow": "workflow",
		"_temp/_runner_file_commands": "file_commands", "platform/platform": "workspace",
	} {
		fmt.Fprintf(&b, "mv /__w/%s /github/%s\n", from, to)
	}
	b.WriteString("cd /github/workspace\nexec env")
	quote := strings.NewReplacer(`\`, `\\`, `"`, `\"`, `$`, `\$`, "`", "\\`")
	for _, name := range slices.Sorted(maps.Keys(env)) {
		fmt.Fprintf(&b, " \"%s=%s\"", name, quote.Replace(env[name]))
	}
	fmt.Fprintf(&b, " %s\n", entrypoint)
	return b.String()
}

// TestKubernetesMode runs a step in a pod: a recording, and a kubeconfig that
// a step of the job's container has left in the temp folder, which is not
// mounted as /github/runner_temp there.
func TestKubernetesMode(t *testing.T) {
	theImage(t)
	address := closedPort(t)
	tests := []struct {
		name    string
		step    step
		files   map[string]string
		verdict string
		reason  string
		status  int
		says    string
	}{
		{"a recording", recorded(t, "verified.json", nil), nil, "verified", "verified", 0, "verified"},
		{"a kubeconfig", live(nil, map[string]string{"KUBECONFIG": "/__w/_temp/kubeconfig"}, nil),
			map[string]string{"_temp/kubeconfig": kubeconfig("https://"+address, "")}, "undecided", "unreachable", 2, address},
		{"a kubeconfig that the runner has translated", live(nil, map[string]string{"KUBECONFIG": "/github/runner_temp/kubeconfig"}, nil),
			map[string]string{"_temp/kubeconfig": kubeconfig("https://"+address, "")}, "undecided", "unreachable", 2, address},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := newPod(t)
			files := map[string]string{
				"_temp/_github_home/.keep": "", "_temp/_github_workflow/event.json": "{}", "platform/platform/.keep": "",
				"_temp/step.sh": script(tt.step.environment(t), theAction(t).Runs.Entrypoint),
			}
			for _, name := range fileCommands {
				files["_temp/_runner_file_commands/"+name] = ""
			}
			for path, content := range tt.step.files {
				files["platform/platform/"+strings.TrimPrefix(path, hostWorkspace+"/")] = content
			}
			maps.Copy(files, tt.files)

			alive := p.start("tail", "-f", "/dev/null")
			tail := alive.descendant("busybox")
			defer func() {
				alive.must(tail.Signal(syscall.SIGTERM))
				if status, err := exitStatus(<-alive.done); err != nil || status == 0 {
					t.Errorf("tail ended with the status %d and %v, want the signal's", status, err)
				}
			}()

			p.copyIn(files)
			status, log := p.exec(nil, "sh", "-e", "/__w/_temp/step.sh")
			r := result{t: t, status: status, log: log}
			read := func(name string) string {
				data, err := os.ReadFile(filepath.Join(p.host, "github/file_commands", name))
				if err != nil {
					t.Fatalf("%v\n%s", err, r.log)
				}
				return string(data)
			}
			r.summary = read("step_summary_1")
			var err error
			if r.outputs, err = runnertest.Outputs(read("set_output_1")); err != nil {
				t.Error(err)
			}
			r.want(tt.verdict, tt.reason, tt.status)
			r.says(tt.says)
		})
	}
}

// copyIn copies files into the pod's work folder and compares what arrived, as
// the hooks do: v0.8.0 with tar alone, later ones with a shell.
func (p *pod) copyIn(files map[string]string) {
	t := p.t
	t.Helper()
	for _, command := range [][]string{
		{"tar", "xf", "-", "-C", "/__w"},
		{"sh", "-c", `tar xf - --no-same-owner -C /__w && find /__w -type f -exec chmod u+rw {} \; && find /__w -type d -exec chmod u+rwx {} \;`},
	} {
		if status, printed := p.exec(archive(t, files), command...); status != 0 {
			t.Fatalf("the work folder cannot be copied in by %q: exit status %d\n%s", command, status, printed)
		}
	}
	status, printed := p.exec(nil, "sh", "-c", `cd /__w && find . -type f -not -path '*/_runner_hook_responses*' -exec stat -c '%s %n' {} \;`)
	got := strings.Split(strings.TrimSpace(printed), "\n")
	slices.Sort(got)
	var want []string
	for name, content := range files {
		want = append(want, fmt.Sprintf("%d ./%s", len(content), name))
	}
	slices.Sort(want)
	if status != 0 || !slices.Equal(got, want) {
		t.Fatalf("exit status %d; found in the work folder\n%s\nwant\n%s", status, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
