package report

import "flux-verify-gate/gate"

// HasSection says that the table of sections has the code.
func HasSection(code gate.Code) bool {
	_, ok := sections[code]
	return ok
}

// Sections is how many codes the table of sections has.
func Sections() int { return len(sections) }

// YAMLString is yamlString.
func YAMLString(s string) string { return yamlString(s) }
