package action

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"flux-verify-gate/gate"
)

// values are the inputs of one run, each given exactly once: by the environment
// (INPUT_<NAME>, as the runner hands them over) or by flags.
type values map[string]string

// envPrefix and envName are how the runner names an input: upper case, spaces
// to underscores, dashes kept (actions/runner, Runner.Worker/Handlers, v2.336).
const envPrefix = "INPUT_"

func envName(input string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(input, " ", "_"))
}

// maxFile bounds a file that an input names with @.
const maxFile = 1 << 20

// readValues takes the inputs from the environment if any declared one is there,
// else from the arguments. Its error joins one gate.InputError for each fault.
func readValues(table []Input, environ, args []string) (values, error) {
	given, fromEnvironment, err := environmentValues(table, environ)
	if err != nil {
		return nil, err
	}
	if fromEnvironment && len(args) > 0 {
		// Arguments are never quoted: one of them may be a password.
		return nil, &gate.InputError{Input: "arguments", Expected: "none where the inputs come as " + envPrefix + "* variables",
			Found: fmt.Sprintf("%d on the command line", len(args)), Remedy: "give every input under with: and none on the command line"}
	}
	if !fromEnvironment {
		if given, err = flagValues(table, args); err != nil {
			return nil, err
		}
		if err := blankObjects(table, given); err != nil {
			return nil, err
		}
	}
	return resolve(table, given)
}

// environmentValues collects INPUT_* variables; one that is not declared is a
// fault, because the runner only warns of a misspelt input and runs on.
func environmentValues(table []Input, environ []string) (values, bool, error) {
	byVariable := map[string]string{}
	var names []string
	for _, in := range table {
		byVariable[envName(in.Name)] = in.Name
		names = append(names, in.Name)
	}
	given := values{}
	var unknown []string
	for _, variable := range environ {
		name, value, _ := strings.Cut(variable, "=")
		if !strings.HasPrefix(name, envPrefix) {
			continue
		}
		if input, ok := byVariable[name]; ok {
			given[input] = value
		} else {
			unknown = append(unknown, strings.ToLower(strings.TrimPrefix(name, envPrefix)))
		}
	}
	if len(given) == 0 {
		// A variable called INPUT_SOMETHING on a laptop is none of ours.
		return given, false, nil
	}
	slices.Sort(unknown)
	var faults []error
	for _, name := range unknown {
		fault := &gate.InputError{Input: name, Expected: "one of " + strings.Join(names, ", "), Found: "an input of this name",
			Remedy: "correct the spelling; an input that is not known would be ignored"}
		if name == "entrypoint" || name == "args" {
			fault.Expected = "no " + name
			fault.Remedy = "remove it: it would replace what this action runs"
		}
		faults = append(faults, fault)
	}
	return given, true, errors.Join(faults...)
}

// inputsFromEnvironment says that a declared input is in the environment, so
// that nothing is read from the command line.
func inputsFromEnvironment(environ []string) bool {
	for _, in := range Inputs() {
		for _, variable := range environ {
			if strings.HasPrefix(variable, envName(in.Name)+"=") {
				return true
			}
		}
	}
	return false
}

// flagValues reads the same inputs from flags of the same name.
func flagValues(table []Input, args []string) (values, error) {
	given := values{}
	twice := ""
	set := flag.NewFlagSet("flux-verify-gate", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	for _, in := range table {
		set.Func(in.Name, in.Help, func(value string) error {
			if _, again := given[in.Name]; again {
				twice = in.Name
				return errors.New("given twice")
			}
			given[in.Name] = value
			return nil
		})
	}
	// Neither the package's error for a value nor a stray argument is shown: each
	// quotes what may be a password.
	fault := &gate.InputError{Input: "arguments", Expected: "flags named like the inputs, each once and with a value", Remedy: "see --help; true and false are written out too, as in --reconcile true"}
	switch err := set.Parse(args); {
	case twice != "":
		fault.Found = "--" + twice + " given twice"
	case err != nil:
		fault.Found, _, _ = strings.Cut(err.Error(), "=")
	case set.NArg() > 0:
		fault.Expected = "flags only"
		fault.Found = fmt.Sprintf("something else in the place %d of %d", len(args)-set.NArg()+1, len(args))
	default:
		return given, nil
	}
	return nil, fault
}

// blankObjects refuses what only the runner may leave blank: there an input that
// is left out and one that came out empty look the same, here they do not.
func blankObjects(table []Input, given values) error {
	var faults []error
	for _, in := range table {
		if value, supplied := given[in.Name]; supplied && in.Kind == KindObject && value == "" {
			faults = append(faults, in.blank())
		}
	}
	return errors.Join(faults...)
}

// blank is the fault of an input that was given and says nothing.
func (in Input) blank() *gate.InputError {
	return &gate.InputError{Input: in.Name, Expected: "namespace/name", Found: "nothing",
		Remedy: "write it out, or leave the input out"}
}

// resolve trims, reads what @path names, applies defaults and checks each value
// by its kind.
func resolve(table []Input, given values) (values, error) {
	result := values{}
	var faults []error
	for _, in := range table {
		value, supplied := given[in.Name]
		if in.Kind == KindObject && value != "" && strings.TrimSpace(value) == "" {
			faults = append(faults, in.blank())
			continue
		}
		value = strings.TrimSpace(value)
		if path, ok := strings.CutPrefix(value, "@"); ok {
			content, err := readFile(path)
			if err != nil {
				fault := &gate.InputError{Input: in.Name, Expected: "a file that can be read behind @", Err: err,
					Remedy: "correct the path; in a step it is relative to the workspace"}
				if in.Secret {
					// What was taken for a path may be the secret itself.
					fault.Found, fault.Err = "a value that begins with @ and names no such file", nil
					fault.Remedy = "write a secret that begins with @ into a file, and give @ and the path of that"
				}
				faults = append(faults, fault)
				continue
			}
			if value = strings.TrimSpace(content); value == "" {
				fault := &gate.InputError{Input: in.Name, Expected: "a value in " + path, Found: "an empty file",
					Remedy: "see what should have written it"}
				if in.Secret {
					fault.Expected = "a value in the file behind @"
				}
				faults = append(faults, fault)
				continue
			}
		}
		if !supplied && !in.fromGitHub() {
			value = in.Default
		}
		if fault := in.check(value); fault != nil {
			faults = append(faults, fault)
			continue
		}
		result[in.Name] = value
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	return result, nil
}

func readFile(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err != nil {
		return "", err
	}
	if len(content) > maxFile {
		return "", fmt.Errorf("%s: expected at most %d bytes, found more", path, maxFile)
	}
	return string(content), nil
}

// check says what is wrong with a value of this input.
func (in Input) check(value string) *gate.InputError {
	found := "nothing"
	if value != "" {
		found = strconv.Quote(value)
		if in.Secret {
			found = "a value of another form"
		}
	}
	fault := &gate.InputError{Input: in.Name, Found: found, Remedy: "leave the input out to have its default, " + in.Default}
	switch in.Kind {
	case KindName:
		if value == "" || strings.ContainsAny(value, "\r\n\x00") {
			fault.Expected = "one line of text"
			return fault
		}
	case KindWord:
		if !slices.Contains(in.Words, value) {
			fault.Expected = strings.Join(in.Words, " or ")
			return fault
		}
	case KindBool:
		if !slices.Contains(trueWords, value) && !slices.Contains(falseWords, value) {
			fault.Expected = "true or false"
			return fault
		}
	case KindDuration:
		if d, err := time.ParseDuration(value); err != nil || d < 0 {
			fault.Expected = "a duration such as 5m or 90s, or 0"
			return fault
		}
	case KindObject:
		if value == "" {
			return nil
		}
		if _, err := gate.ParseObjectName(value); err != nil {
			// The cause says what was expected and what was found.
			return &gate.InputError{Input: in.Name, Err: err, Remedy: "write it as namespace/name, or leave the input out"}
		}
	case KindPath:
		if strings.ContainsAny(value, "\r\n\x00") {
			// It may be the content instead, and for a kubeconfig that is a secret.
			fault.Expected, fault.Found = "the path of one file", "text of several lines"
			fault.Remedy = "write the path alone, on one line"
			if in.Name == inKubeconfig {
				fault.Remedy = "give the content of a kubeconfig as " + inKubeconfigData
			}
			return fault
		}
	}
	return nil
}

// The spellings of a boolean that YAML 1.2's core schema has, as @actions/core
// takes them.
var (
	trueWords  = []string{"true", "True", "TRUE"}
	falseWords = []string{"false", "False", "FALSE"}
)

func (v values) bool(name string) bool { return slices.Contains(trueWords, v[name]) }

// duration gives a value that check has found to be one.
func (v values) duration(name string) time.Duration {
	d, err := time.ParseDuration(v[name])
	if err != nil {
		return 0
	}
	return d
}
