package action

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"flux-verify-gate/gate"
	"flux-verify-gate/gate/report"
)

var update = flag.Bool("update", false, "rewrite what is generated from the tables of inputs and outputs")

// root is the folder of the repository.
const root = "../../"

func TestActionFileIsTheTable(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString(`# The inputs and outputs are generated from gate/action/inputs.go and outputs.go by
# make update; a test holds them together.
name: Flux Verify Gate
description: Fails the promotion unless the deployed Flux source is proved to accept, and to have verified, only what the right workflow signed
author: The Flux Verify Gate authors
branding:
  icon: shield
  color: blue
inputs:
`)
	for _, in := range Inputs() {
		fmt.Fprintf(&b, "  %s:\n    description: %s\n    required: false\n    default: %s\n", in.Name, quoteYAML(in.Help), quoteYAML(in.Default))
	}
	b.WriteString("outputs:\n")
	for _, out := range OutputTable() {
		fmt.Fprintf(&b, "  %s:\n    description: %s\n", out.Name, quoteYAML(out.Help))
	}
	b.WriteString(`runs:
  using: docker
  image: Dockerfile
  # An entrypoint here cannot be replaced by whoever uses the action.
  entrypoint: /flux-verify-gate
`)
	same(t, "action.yml", b.String())
}

func quoteYAML(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

func TestReadmeHasTheTables(t *testing.T) {
	t.Parallel()
	var inputs, outputs strings.Builder
	inputs.WriteString("| input | default | meaning |\n|---|---|---|\n")
	for _, in := range Inputs() {
		value := ""
		if in.Default != "" {
			value = "`" + in.Default + "`"
		}
		fmt.Fprintf(&inputs, "| `%s` | %s | %s |\n", in.Name, value, cell(in.Help))
	}
	outputs.WriteString("| output | meaning |\n|---|---|\n")
	for _, out := range OutputTable() {
		fmt.Fprintf(&outputs, "| `%s` | %s |\n", out.Name, cell(out.Help))
	}
	section(t, "README.md", "inputs", inputs.String())
	section(t, "README.md", "outputs", outputs.String())
}

// TestReadmeShowsWhatTheCommandsPrint runs the commands of the README.
func TestReadmeShowsWhatTheCommandsPrint(t *testing.T) {
	data, err := os.ReadFile(root + "README.md")
	if err != nil {
		t.Fatal(err)
	}
	var commands [][]string
	for line := range strings.Lines(string(data)) {
		if command, ok := strings.CutPrefix(line, "$ go run . --object "); ok {
			commands = append(commands, append([]string{"--object"}, strings.Fields(command)...))
		}
	}
	if len(commands) != 2 {
		t.Fatalf("README.md shows %d runs of the gate, want 2", len(commands))
	}
	for i, want := range []struct {
		section string
		status  int
	}{{"verified", 0}, {"rejected", 1}} {
		args := append(commands[i], "--report", filepath.Join(t.TempDir(), "report.json"))
		printed := func() string {
			t.Chdir(root)
			r := step{args: args, outside: true}.run(context.Background(), t)
			if r.status != want.status {
				t.Errorf("exit status %d, want %d\n%s%s", r.status, want.status, r.stdout, r.stderr)
			}
			t.Chdir("gate/action")
			return r.stdout
		}()
		section(t, "README.md", want.section, "```\n"+printed+"```\n")
	}
}

// cell makes a help text fit into a cell of a Markdown table.
func cell(s string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;").Replace(s)
}

// section holds what stands between two markers in a document.
func section(t *testing.T, path, name, want string) {
	t.Helper()
	data, err := os.ReadFile(root + path)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := "<!-- begin "+name+" -->\n", "<!-- end "+name+" -->"
	before, rest, found := strings.Cut(string(data), begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has no section between %q and %q", path, begin, end)
	}
	same(t, path, before+begin+want+end+after)
}

func same(t *testing.T, path, want string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(root+path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(root + path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, []byte(want)) {
		t.Errorf("%s is not what the tables in gate/action say: run make update, and look at the difference", path)
	}
}

func TestOutputTableIsWhatIsWritten(t *testing.T) {
	t.Parallel()
	var declared, written []string
	for _, out := range OutputTable() {
		declared = append(declared, out.Name)
	}
	for _, out := range report.Outputs(gate.Report{}, "") {
		written = append(written, out.Name)
	}
	if got, want := strings.Join(written, " "), strings.Join(declared, " "); got != want {
		t.Errorf("written %s, declared %s", got, want)
	}
	if got, want := strings.Join(declaredOutputs, " "), strings.Join(declared, " "); got != want {
		t.Errorf("the tests of the exit paths ask for %s, declared %s", got, want)
	}
}

func TestDependenciesAreJustified(t *testing.T) {
	t.Parallel()
	module, err := os.ReadFile(root + "go.mod")
	if err != nil {
		t.Fatal(err)
	}
	document, err := os.ReadFile(root + "docs/dependencies.md")
	if err != nil {
		t.Fatal(err)
	}
	direct := map[string]bool{}
	for line := range strings.Lines(string(module)) {
		fields := strings.Fields(line)
		if strings.HasPrefix(line, "\t") && len(fields) == 2 {
			direct[fields[0]] = true
			if !strings.Contains(string(document), "| `"+fields[0]+"` |") {
				t.Errorf("docs/dependencies.md does not say why %s is here", fields[0])
			}
		}
	}
	if len(direct) == 0 {
		t.Fatal("no direct dependency found in go.mod")
	}
	for line := range strings.Lines(string(document)) {
		name, ok := strings.CutPrefix(line, "| `")
		if name, _, _ = strings.Cut(name, "`"); ok && !direct[name] {
			t.Errorf("docs/dependencies.md justifies %s, which go.mod does not require", name)
		}
	}
}

var markdownLink = regexp.MustCompile(`\]\(([^)#\s]+)(#[^)\s]*)?\)`)

func TestDocumentsLinkToWhatIsThere(t *testing.T) {
	t.Parallel()
	documents, err := filepath.Glob(root + "docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	documents = append(documents, root+"README.md", root+"CONTRIBUTING.md", root+"SECURITY.md")
	links := 0
	for _, path := range documents {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range markdownLink.FindAllStringSubmatch(string(data), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			links++
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), m[1])); err != nil {
				t.Errorf("%s links to %s, which is not there", path, m[1])
			}
		}
	}
	if links == 0 {
		t.Fatal("no link was looked at")
	}
}
