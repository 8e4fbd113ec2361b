package cluster

import (
	"encoding/base64"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Options say where the API server is and how to authenticate. Exactly one
// source is used, never several merged: InCluster, else KubeconfigData, else
// Kubeconfig, else the environment's KUBECONFIG.
type Options struct {
	// Kubeconfig is the path of one kubeconfig file.
	Kubeconfig string
	// KubeconfigData is its content instead, as it is or in base64.
	KubeconfigData string
	// Context is a context of the kubeconfig; its current-context if empty.
	Context string
	// Server replaces the address of the API server.
	Server string
	// TLSServerName replaces the name that its certificate must have.
	TLSServerName string
	// CertificateAuthorityData replaces the authority that its certificate must
	// come from: PEM, as it is or in base64.
	CertificateAuthorityData string
	// InCluster uses the pod's service account. Nothing falls back to it.
	InCluster bool
	// Getenv reads the environment; nil is an empty environment.
	Getenv func(string) string
	// UserAgent names the gate to the API server.
	UserAgent string
}

func (o Options) getenv(name string) string {
	if o.Getenv == nil {
		return ""
	}
	return o.Getenv(name)
}

// maxKubeconfig bounds a kubeconfig, in bytes.
const maxKubeconfig = 4 << 20

// check refuses options that contradict each other or say nothing.
func (o Options) check() error {
	for _, option := range []struct{ name, value string }{
		{"kubeconfig", o.Kubeconfig},
		{"kubeconfig-data", o.KubeconfigData},
		{"context", o.Context},
		{"server", o.Server},
		{"tls-server-name", o.TLSServerName},
		{"certificate-authority-data", o.CertificateAuthorityData},
	} {
		if option.value != "" && strings.TrimSpace(option.value) == "" {
			if option.name == "kubeconfig-data" {
				return o.noCredential("`kubeconfig-data` is blank", "only white space", nil)
			}
			return badInput("`"+option.name+"` is blank", "a value, or no such input", "only white space",
				"give it a value or remove it", nil)
		}
		if option.value == "" {
			continue
		}
		if o.InCluster {
			return badInput("`in-cluster` and `"+option.name+"` contradict each other",
				"one way to reach the API server", "both",
				"remove one of them: with `in-cluster` the pod's service account says everything", nil)
		}
	}
	if o.Kubeconfig != "" && o.KubeconfigData != "" {
		return badInput("`kubeconfig` and `kubeconfig-data` contradict each other",
			"one kubeconfig, because kubeconfigs are never merged", "both", "remove one of them", nil)
	}
	return nil
}

// noCredential explains why a credential that a workflow sets can arrive empty.
func (o Options) noCredential(title, found string, cause error) *Error {
	why := "a secret is empty in a pull request from a fork, in a job without the `environment:` that holds it, and in a run by dependabot (which has secrets of its own)"
	switch {
	case o.getenv("GITHUB_ACTOR") == "dependabot[bot]":
		why = "this run is dependabot's, which sees no Actions secrets: add the secret to dependabot's own, or do not deploy from its runs"
	case strings.HasPrefix(o.getenv("GITHUB_EVENT_NAME"), "pull_request"):
		why = "this run is for a pull request: from a fork it has no secrets, and a secret of an environment needs the job's `environment:`"
	}
	return badInput(title, "a kubeconfig with a credential", found,
		why+"; set `kubeconfig`, `kubeconfig-data` or the variable KUBECONFIG, or ask for `in-cluster: true`", cause)
}

// material is a kubeconfig's content and where it came from.
type material struct {
	data []byte
	// origin names it in errors.
	origin string
	// path is the file it was read from; empty for content.
	path string
}

// load finds the one kubeconfig.
func (o Options) load() (material, error) {
	if o.KubeconfigData != "" {
		data, err := decodeText(o.KubeconfigData, ":{")
		if err != nil {
			return material{}, badInput("`kubeconfig-data` cannot be read",
				"a kubeconfig as YAML or JSON, or that in base64", "neither", "check how the secret was made", err)
		}
		return material{data: data, origin: "`kubeconfig-data`"}, nil
	}
	name, origin := o.Kubeconfig, "the input `kubeconfig`"
	if name == "" {
		name, origin = o.getenv("KUBECONFIG"), "the variable KUBECONFIG"
	}
	if strings.TrimSpace(name) == "" {
		return material{}, o.noCredential("there is no kubeconfig",
			"`kubeconfig`, `kubeconfig-data` and the variable KUBECONFIG all empty", nil)
	}
	found, tried := ResolvePath(name, fileExists)
	if found == "" {
		if entries := pathEntries(name); len(entries) > 1 && !slices.ContainsFunc(entries, noPath) {
			return material{}, severalFiles(origin, entries)
		} else if len(entries) == 1 && entries[0] != name {
			found, tried = ResolvePath(entries[0], fileExists)
		}
	}
	if found == "" {
		return material{}, missingFile(origin, name, tried)
	}
	data, err := readBounded(found)
	if err != nil {
		return material{}, badInput("the kubeconfig of "+origin+" cannot be read",
			"a readable file", err.Error(), "check its type and mode; an action's container runs as root unless the image says otherwise", err)
	}
	return material{data: data, origin: origin + " (" + found + ")", path: found}, nil
}

// pathEntries splits a KUBECONFIG of several files, as kubectl would.
func pathEntries(value string) []string {
	var entries []string
	for entry := range strings.SplitSeq(value, string(os.PathListSeparator)) {
		if entry != "" {
			entries = append(entries, entry)
		}
	}
	return entries
}

func severalFiles(origin string, entries []string) *Error {
	return badInput(origin+" names several files", "one kubeconfig file",
		strconv.Itoa(len(entries))+" entries: "+listed(entries),
		"name one file: kubeconfigs are never merged here, and the runner translates only the first of such a list; `kubectl config view --raw --flatten` makes one of several", nil)
}

func missingFile(origin, name string, tried []string) *Error {
	remedy := `write the file where the container sees it, in an earlier step: printf '%s' "$KUBECONFIG_DATA" > "$RUNNER_TEMP/kubeconfig"; ` +
		`echo "KUBECONFIG=$RUNNER_TEMP/kubeconfig" >> "$GITHUB_ENV" (on a runner before 2.331 use "$GITHUB_WORKSPACE", after actions/checkout)`
	expected := "a file that is there"
	switch {
	case strings.HasPrefix(name, "~") || strings.HasPrefix(name, "$"):
		expected = "a path without ~ and $, which no shell expands here"
	case underHome(name):
		expected = "a file outside the home directory, which is not mounted into an action's container"
	}
	if noPath(name) {
		return badInput("the kubeconfig of "+origin+" is not there", "the path of a file", "text that is no path",
			"give the content of a kubeconfig as `kubeconfig-data`", nil)
	}
	found := "no file at " + strconv.Quote(clip(name))
	if len(tried) > 1 {
		found += "; tried also " + strings.Join(tried[1:], ", ")
	}
	return badInput("the kubeconfig of "+origin+" is not there", expected, found, remedy, nil)
}

// maxPath is the longest path that is shown. A kubeconfig in base64 is longer.
const maxPath = 255

// noPath says that a text is not to be shown as the path of a file. Who gives the
// content of a kubeconfig where its path is wanted must not find the token in the
// log.
func noPath(text string) bool {
	return len(text) > maxPath || strings.ContainsAny(text, "{}\r\n\t\"")
}

func fileExists(name string) bool {
	_, err := os.Stat(name)
	// A file that may not be looked at is reported by reading it.
	return err == nil || os.IsPermission(err)
}

func readBounded(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, fmt.Errorf("%s is a directory", name)
	}
	if info.Size() > maxKubeconfig {
		return nil, fmt.Errorf("%s has %d bytes, more than the %d that are read", name, info.Size(), maxKubeconfig)
	}
	return os.ReadFile(name)
}

// decodeText gives text back, or what it holds in base64. A text that has one
// of the marks cannot be base64.
func decodeText(text, marks string) ([]byte, error) {
	if strings.ContainsAny(text, marks) {
		return []byte(text), nil
	}
	packed := strings.TrimRight(strings.Join(strings.Fields(text), ""), "=")
	encoding := base64.RawStdEncoding
	if strings.ContainsAny(packed, "-_") {
		encoding = base64.RawURLEncoding
	}
	data, err := encoding.DecodeString(packed)
	if err != nil {
		return nil, fmt.Errorf("expected text or base64: %w", err)
	}
	return data, nil
}
