package action

import (
	"fmt"
	"strings"
)

// help lists the inputs as flags.
func (c Command) help() int {
	var b strings.Builder
	b.WriteString("Usage: flux-verify-gate --digest sha256:... --required-signers @signers.yaml [--input value ...]\n" +
		"       flux-verify-gate suggest --required-signers @signers.yaml [--allowed-signers ...] [--trusted-root FILE]\n" +
		"       flux-verify-gate version\n\n" +
		"Reads a deployed Flux OCIRepository back and says whether its signature policy\n" +
		"is live and exact and was applied to what is being served.\n" +
		"suggest prints the one policy that accepts these signers and nobody else.\n\n" +
		"Exit status: 0 verified, 1 rejected, 2 undecided. A value @path reads a file.\n\nInputs:\n")
	for _, in := range Inputs() {
		fmt.Fprintf(&b, "  --%s%s\n      %s\n", in.Name, defaultOf(in), in.Help)
	}
	fmt.Fprint(c.Stdout, b.String())
	return statusVerified
}

func defaultOf(in Input) string {
	if in.Default == "" || in.fromGitHub() {
		return ""
	}
	return " (default " + in.Default + ")"
}
