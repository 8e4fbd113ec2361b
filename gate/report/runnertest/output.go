package runnertest

import (
	"fmt"
	"strings"
)

// Outputs reads the file that GITHUB_OUTPUT names: lines name=value, or
// name<<delimiter, the lines of the value, and the delimiter on a line of its
// own. The last of several values of a name wins. On a malformed line it
// returns an error, as the runner fails the step, and the outputs before it.
//
// A CR ends a line here too, which is stricter than the runner on Linux.
func Outputs(file string) (map[string]string, error) {
	outputs := map[string]string{}
	lines := Lines(file)
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		if line == "" {
			continue
		}
		equals, heredoc := strings.Index(line, "="), strings.Index(line, "<<")
		switch {
		case equals >= 0 && (heredoc < 0 || equals < heredoc):
			if equals == 0 {
				return outputs, fmt.Errorf("line %d has no name: %q", i+1, line)
			}
			outputs[line[:equals]] = line[equals+1:]
		case heredoc >= 0:
			name, delimiter := line[:heredoc], line[heredoc+2:]
			if name == "" || delimiter == "" {
				return outputs, fmt.Errorf("line %d has no name or no delimiter: %q", i+1, line)
			}
			var value []string
			for i++; i < len(lines) && lines[i] != delimiter; i++ {
				value = append(value, lines[i])
			}
			if i == len(lines) {
				return outputs, fmt.Errorf("the value of %q does not end: no line %q", name, delimiter)
			}
			outputs[name] = strings.Join(value, "\n")
		default:
			return outputs, fmt.Errorf("line %d is neither name=value nor name<<delimiter: %q", i+1, line)
		}
	}
	return outputs, nil
}
