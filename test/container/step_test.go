package container_test

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"sigs.k8s.io/yaml"

	"flux-verify-gate/gate/report/runnertest"
)

// The user of a hosted runner, who owns everything that is mounted.
const (
	runnerUID = 1001
	runnerGID = 1001
)

// token is what github.token gives; it must never be printed.
const token = "ghs_neverToBePrinted0123456789"

// actionFile is what the runner reads of action.yml.
type actionFile struct {
	Inputs  map[string]struct{ Default string }
	Outputs map[string]any
	Runs    struct{ Using, Image, Entrypoint string }
}

func theAction(t *testing.T) actionFile {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(repository, "action.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var action actionFile
	if err := yaml.Unmarshal(data, &action); err != nil {
		t.Fatal(err)
	}
	if action.Runs.Using != "docker" || action.Runs.Entrypoint == "" || len(action.Inputs) == 0 {
		t.Fatalf("action.yml is no container action with an entrypoint: %+v", action.Runs)
	}
	return action
}

// Where things are on a hosted runner. Steps before the gate's use these paths;
// they stand for folders of the test.
const (
	hostTemp      = "/home/runner/work/_temp"
	hostWorkspace = "/home/runner/work/platform/platform"
)

// mount is one folder of the runner that it mounts into the container.
type mount struct{ host, container string }

// mounts are those of actions/runner v2.336 (ContainerActionHandler.cs), in the
// order in which it translates paths.
var mounts = []mount{
	{hostWorkspace, "/github/workspace"},
	{hostTemp + "/_runner_file_commands", "/github/file_commands"},
	{hostTemp + "/_github_workflow", "/github/workflow"},
	{hostTemp + "/_github_home", "/github/home"},
	{hostTemp, "/github/runner_temp"},
}

// step is one step of a workflow that uses the action.
type step struct {
	// with are the inputs that the workflow gives, and env its variables. Their
	// values are paths of the host where they are paths.
	with, env map[string]string
	// files are what earlier steps left, by their path on the host, owned by the
	// runner's user with the mode 0600.
	files map[string]string
	// oldRunner is one before v2.331, which does not mount its temp folder.
	oldRunner bool
	// processOne gives the gate a process namespace of its own, so that it is
	// process 1, as in Docker: the kernel gives that one no signal that it has
	// no handler for.
	processOne bool
	// arguments are a command line beside the inputs.
	arguments []string
	// readOnly mounts the folder of the file commands read-only.
	readOnly bool
}

// running is a step that has been started.
type running struct {
	step
	t     *testing.T
	image *image
	host  string
	cmd   *exec.Cmd
	done  chan error
	// log is the file with what the step prints, and engine what buildah does.
	log    string
	engine bytes.Buffer
}

// result is what the runner sees of a step.
type result struct {
	t         *testing.T
	status    int
	log       string
	outputs   map[string]string
	summary   string
	workspace string
}

// path gives the place in the test's folder that a path of the host stands for.
func (r *running) path(host string) string {
	return filepath.Join(r.host, strings.TrimPrefix(host, "/home/runner/"))
}

// translate rewrites a value as the runner does: only where the whole value is,
// or begins with, a folder that it mounts.
func (s step) translate(value string) string {
	for _, m := range mounts {
		if s.oldRunner && m.host == hostTemp {
			continue
		}
		if value == m.host {
			return m.container
		}
		if rest, ok := strings.CutPrefix(value, m.host+"/"); ok {
			return m.container + "/" + rest
		}
	}
	return value
}

// environment is what the runner hands over: every declared input with its
// default, the workflow's variables, and the runner's own.
func (s step) environment(t *testing.T) map[string]string {
	env := map[string]string{
		"HOME": hostTemp + "/_github_home", "CI": "true", "GITHUB_ACTIONS": "true",
		"GITHUB_ACTION": "__self", "GITHUB_ACTOR": "octocat", "GITHUB_API_URL": "https://api.github.com",
		"GITHUB_BASE_REF": "", "GITHUB_HEAD_REF": "", "GITHUB_EVENT_NAME": "push",
		"GITHUB_EVENT_PATH": hostTemp + "/_github_workflow/event.json", "GITHUB_JOB": "gate",
		"GITHUB_REF": "refs/heads/main", "GITHUB_REPOSITORY": "acme/platform", "GITHUB_RUN_ID": "1",
		"GITHUB_SERVER_URL": "https://github.com", "GITHUB_WORKFLOW": "CD", "GITHUB_WORKSPACE": hostWorkspace,
		"GITHUB_OUTPUT":       hostTemp + "/_runner_file_commands/set_output_1",
		"GITHUB_ENV":          hostTemp + "/_runner_file_commands/set_env_1",
		"GITHUB_PATH":         hostTemp + "/_runner_file_commands/add_path_1",
		"GITHUB_STATE":        hostTemp + "/_runner_file_commands/save_state_1",
		"GITHUB_STEP_SUMMARY": hostTemp + "/_runner_file_commands/step_summary_1",
		"RUNNER_OS":           "Linux", "RUNNER_ARCH": "X64", "RUNNER_NAME": "smoke", "RUNNER_TEMP": hostTemp,
		"RUNNER_TOOL_CACHE": "/opt/hostedtoolcache", "RUNNER_WORKSPACE": "/home/runner/work/platform",
		"ACTIONS_RUNTIME_TOKEN": token, "ACTIONS_RUNTIME_URL": "https://127.0.0.1:1/",
	}
	for name, input := range theAction(t).Inputs {
		env[inputVariable(name)] = strings.ReplaceAll(input.Default, "${{ github.token }}", token)
	}
	for name, value := range s.with {
		env[inputVariable(name)] = value
	}
	maps.Copy(env, s.env)
	for name, value := range env {
		env[name] = s.translate(value)
	}
	return env
}

// inputVariable names the variable of an input: upper case, spaces to
// underscores, dashes kept.
func inputVariable(name string) string {
	return "INPUT_" + strings.ToUpper(strings.ReplaceAll(name, " ", "_"))
}

// fileCommands are the files that the runner makes for a step.
var fileCommands = []string{"set_output_1", "set_env_1", "add_path_1", "save_state_1", "step_summary_1"}

// layOut makes the folders and files of the runner, owned by its user.
func (r *running) layOut() {
	r.t.Helper()
	for _, m := range mounts {
		r.must(os.MkdirAll(r.path(m.host), 0o755))
	}
	r.write(hostTemp+"/_github_workflow/event.json", "{}", 0o644)
	for _, name := range fileCommands {
		r.write(hostTemp+"/_runner_file_commands/"+name, "", 0o644)
	}
	for path, content := range r.files {
		r.write(path, content, 0o600)
	}
	r.must(filepath.WalkDir(r.host, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, runnerUID, runnerGID)
	}))
}

func (r *running) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *running) write(host, content string, mode os.FileMode) {
	r.t.Helper()
	path := r.path(host)
	r.must(os.MkdirAll(filepath.Dir(path), 0o755))
	r.must(os.WriteFile(path, []byte(content), mode))
}

// start runs the step's container.
func (s step) start(ctx context.Context, t *testing.T) *running {
	t.Helper()
	i := theImage(t)
	r := &running{step: s, t: t, image: i, host: t.TempDir(), done: make(chan error, 1)}
	r.layOut()
	options := []string{"--workingdir", "/github/workspace", "--volume", r.dockerSocket() + ":/var/run/docker.sock"}
	for _, m := range mounts {
		if s.oldRunner && m.host == hostTemp {
			continue
		}
		option := r.path(m.host) + ":" + m.container
		if s.readOnly && m.container == "/github/file_commands" {
			option += ":ro"
		}
		options = append(options, "--volume", option)
	}
	env := s.environment(t)
	for _, name := range slices.Sorted(maps.Keys(env)) {
		options = append(options, "--env", name+"="+env[name])
	}
	command := []string{theAction(t).Runs.Entrypoint}
	if s.processOne {
		options = append(options, "--cap-add", "CAP_SYS_ADMIN")
		command = append([]string{"/bin/busybox", "unshare", "--pid", "--fork"}, command...)
	}
	// Where action.yml has no runs.args, the input args is the command line.
	command = append(command, strings.Fields(s.with["args"])...)
	command = append(command, s.arguments...)
	r.cmd, r.log = i.prepare(ctx, t, options, command...)
	r.cmd.Stdout, r.cmd.Stderr = &r.engine, &r.engine
	r.must(r.cmd.Start())
	go func() { r.done <- r.cmd.Wait() }()
	return r
}

// dockerSocket is a socket in the place of Docker's, which the runner mounts
// into every action's container.
func (r *running) dockerSocket() string {
	r.t.Helper()
	path := filepath.Join(r.host, "docker.sock")
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	r.must(err)
	r.must(errors.Join(syscall.Bind(fd, &syscall.SockaddrUnix{Name: path}), syscall.Close(fd)))
	return path
}

// wait waits for the end of the step and reads what the runner reads.
func (r *running) wait() result {
	r.t.Helper()
	return r.ended(<-r.done)
}

// ended reads what the runner reads after the step has ended.
func (r *running) ended(waited error) result {
	t := r.t
	t.Helper()
	status, err := exitStatus(waited)
	if err != nil {
		t.Fatalf("%v\n%s", err, r.printed())
	}
	log, err := os.ReadFile(r.log)
	r.must(err)
	res := result{t: t, status: status, log: string(log), workspace: r.path(hostWorkspace)}
	read := func(name string) string {
		data, err := os.ReadFile(r.path(hostTemp + "/_runner_file_commands/" + name))
		r.must(err)
		return string(data)
	}
	res.summary = read("step_summary_1")
	if res.outputs, err = runnertest.Outputs(read("set_output_1")); err != nil {
		t.Errorf("the runner would refuse the outputs: %v", err)
	}
	for _, name := range []string{"set_env_1", "add_path_1", "save_state_1"} {
		if text := read(name); text != "" {
			t.Errorf("the step changes later ones by %s: %q", name, text)
		}
	}
	r.holdHouse(res)
	return res
}

// holdHouse checks what every step owes: no command to the runner but
// annotations, no token anywhere, nothing of root's left in the runner's
// folders, nothing left in the container.
func (r *running) holdHouse(res result) {
	t := r.t
	t.Helper()
	for _, c := range runnertest.Commands(res.log) {
		switch c.Name {
		case "error", "warning", "notice", "debug", "group", "endgroup":
		default:
			t.Errorf("the runner would obey %q", c.Line)
		}
	}
	given := map[string]bool{}
	for path := range r.files {
		given[r.path(path)] = true
	}
	r.must(filepath.WalkDir(r.host, func(path string, d os.DirEntry, err error) error {
		if err != nil || path == filepath.Join(r.host, "docker.sock") {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if stat := info.Sys().(*syscall.Stat_t); stat.Uid != runnerUID || stat.Gid != runnerGID {
			t.Errorf("%s is left with the owner %d:%d, so a later step cannot change it", path, stat.Uid, stat.Gid)
		}
		if d.Type().IsRegular() && !given[path] {
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			if bytes.Contains(content, []byte(token)) {
				t.Errorf("the token stands in %s", path)
			}
		}
		return nil
	}))
	if strings.Contains(res.log, token) {
		t.Errorf("the token stands in the log")
	}
	left, err := os.ReadDir(filepath.Join(r.image.root, "tmp"))
	r.must(err)
	for _, entry := range left {
		t.Errorf("/tmp/%s is left in the container", entry.Name())
	}
}

// printed is all that the step and buildah have printed, for the message of a
// test that fails. The step has ended.
func (r *running) printed() string {
	log, err := os.ReadFile(r.log)
	if err != nil {
		return err.Error()
	}
	return string(log) + r.engine.String()
}

func (s step) run(t *testing.T) result {
	t.Helper()
	return s.start(t.Context(), t).wait()
}

// want checks the verdict, its reason, the exit status, and that every output
// is written.
func (r result) want(verdict, reason string, status int) {
	t := r.t
	t.Helper()
	for name := range theAction(t).Outputs {
		if _, ok := r.outputs[name]; !ok {
			t.Errorf("the output %s was not written", name)
		}
	}
	if got := r.outputs["verdict"]; got != verdict {
		t.Errorf("the verdict is %q, want %q", got, verdict)
	}
	if got := r.outputs["reason"]; got != reason {
		t.Errorf("the reason is %q, want %q", got, reason)
	}
	if r.outputs["verified"] != "false" || r.outputs["digest"] != "" || r.outputs["reference"] != "" {
		t.Errorf("nothing live was verified, and yet verified=%q digest=%q reference=%q", r.outputs["verified"], r.outputs["digest"], r.outputs["reference"])
	}
	if r.status != status {
		t.Errorf("the exit status is %d, want %d", r.status, status)
	}
	if !strings.Contains(strings.ToLower(r.summary), verdict) {
		t.Errorf("the summary does not say %s: %q", verdict, r.summary)
	}
	r.showIfFailed()
}

// says checks that the log has each of the texts.
func (r result) says(texts ...string) {
	r.t.Helper()
	for _, text := range texts {
		if !strings.Contains(r.log, text) {
			r.t.Errorf("the log does not say %q", text)
		}
	}
	r.showIfFailed()
}

func (r result) showIfFailed() {
	if r.t.Failed() {
		r.t.Logf("the log:\n%s", r.log)
	}
}
