package runnertest

import (
	"strings"
	"unicode"
)

// The two grammars in which a line can be a command to the runner.
const (
	Modern = "modern" // ::name key=value,key=value::data
	Legacy = "legacy" // ##[name key=value;key=value]data
)

// MaxIssue is the length in UTF-16 code units at which the runner truncates the
// message of an annotation.
const MaxIssue = 4096

// Command is one command that the runner reads from a line of stdout or stderr.
type Command struct {
	Grammar    string
	Name       string // lower case
	Properties map[string]string
	Data       string
	// Line is the line that it stood in, as it was printed.
	Line string
}

var registered = map[string]bool{
	"add-mask": true, "add-matcher": true, "add-path": true, "debug": true,
	"echo": true, "endgroup": true, "error": true, "group": true,
	"internal-set-repo-path": true, "notice": true, "remove-matcher": true,
	"save-state": true, "set-env": true, "set-output": true,
	"stop-commands": true, "warning": true,
}

// Lines cuts text as .NET's StreamReader.ReadLine does: at CR, LF and CRLF.
func Lines(text string) []string {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	text = strings.ReplaceAll(text, "\r", "\n")
	lines := strings.Split(text, "\n")
	if last := len(lines) - 1; lines[last] == "" {
		lines = lines[:last]
	}
	return lines
}

// Commands returns the registered commands in what a step printed, in order.
// Between stop-commands and its token none is recognized, as in the runner.
func Commands(printed string) []Command {
	var found []Command
	stopped := ""
	for _, line := range Lines(printed) {
		for _, c := range parse(line, func(name string) bool {
			return registered[name] || stopped != "" && name == strings.ToLower(stopped)
		}) {
			switch {
			case stopped != "" && strings.EqualFold(c.Name, stopped):
				stopped = ""
			case stopped != "":
			default:
				if c.Name == "stop-commands" {
					stopped = c.Data
				}
				found = append(found, c)
			}
		}
	}
	return found
}

// Formed returns everything in printed that has the form of a command, whether
// its name is registered or not, and whether or not commands are stopped. It
// also looks at each line with the characters taken out that a culture-sensitive
// comparison ignores (.NET's string search is one unless told otherwise).
func Formed(printed string) []Command {
	var found []Command
	anyName := func(string) bool { return true }
	for _, line := range Lines(printed) {
		commands := parse(line, anyName)
		if len(commands) == 0 {
			commands = parse(strings.Map(dropIgnorable, line), anyName)
		}
		found = append(found, commands...)
	}
	return found
}

func dropIgnorable(r rune) rune {
	if r >= 0x20 && r < 0x7f {
		return r
	}
	if unicode.In(r, unicode.Cf, unicode.Mn, unicode.Me, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) ||
		unicode.IsControl(r) && !unicode.IsSpace(r) {
		return -1
	}
	return r
}

// parse reads the modern form first; only a line that is none is searched for
// the legacy form.
func parse(line string, known func(name string) bool) []Command {
	if c, ok := modern(line, known); ok {
		return []Command{c}
	}
	return legacy(line, known)
}

func modern(line string, known func(string) bool) (Command, bool) {
	body, ok := strings.CutPrefix(strings.TrimLeftFunc(line, unicode.IsSpace), "::")
	if !ok {
		return Command{}, false
	}
	head, data, ok := strings.Cut(body, "::")
	if !ok {
		return Command{}, false
	}
	name, props, _ := strings.Cut(head, " ")
	name = strings.ToLower(name)
	if name == "" || !known(name) {
		return Command{}, false
	}
	return Command{
		Grammar: Modern, Name: name, Line: line,
		Properties: properties(props, ",", "%0D", "\r", "%0A", "\n", "%3A", ":", "%2C", ",", "%25", "%"),
		Data:       strings.NewReplacer("%0D", "\r", "%0A", "\n", "%25", "%").Replace(data),
	}, true
}

// legacy looks at every ##[ in the line, of which the runner takes the first.
func legacy(line string, known func(string) bool) []Command {
	var found []Command
	for rest := line; ; {
		_, after, ok := strings.Cut(rest, "##[")
		if !ok {
			return found
		}
		rest = after
		head, data, ok := strings.Cut(after, "]")
		if !ok {
			return found
		}
		name, props, _ := strings.Cut(head, " ")
		name = strings.ToLower(name)
		if name == "" || !known(name) {
			continue
		}
		found = append(found, Command{
			Grammar: Legacy, Name: name, Line: line,
			Properties: properties(props, ";", "%3B", ";", "%0D", "\r", "%0A", "\n", "%5D", "]"),
			Data:       strings.NewReplacer("%3B", ";", "%0D", "\r", "%0A", "\n", "%5D", "]").Replace(data),
		})
	}
}

func properties(text, separator string, unescape ...string) map[string]string {
	props := map[string]string{}
	for pair := range strings.SplitSeq(text, separator) {
		if key, value, ok := strings.Cut(pair, "="); ok {
			props[strings.TrimSpace(key)] = strings.NewReplacer(unescape...).Replace(value)
		}
	}
	return props
}
