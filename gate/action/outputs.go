package action

// OutputHelp describes one output, for action.yml and the documentation.
type OutputHelp struct {
	Name string
	Help string
}

// OutputTable is the table of outputs, in the order in which they are written.
func OutputTable() []OutputHelp {
	return []OutputHelp{
		{"verdict", "verified, rejected or undecided. Written on every exit path."},
		{"verified", "true only if the verdict is verified and the source was read from a live cluster; else false."},
		{"reason", "The code that explains the verdict (docs/checks.md), or verified."},
		{"digest", "The verified digest, sha256:...; empty unless verified."},
		{"reference", "The verified artifact, registry/repository@sha256:...; empty unless verified, so a promotion that consumes it cannot run without the gate."},
		{"revision", "What the source serves now, whatever the verdict; empty if it serves nothing or was not read."},
		{"findings", "Every finding that is not a pass, as JSON on one line."},
		{"report", "Path of the JSON report, relative to the workspace; empty if it could not be written."},
	}
}
