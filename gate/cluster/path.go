package cluster

import (
	"path"
	"strings"
)

// Where the runner mounts things in an action's container (actions/runner
// src/Runner.Worker/Handlers/ContainerActionHandler.cs; runner_temp since
// v2.331).
const (
	mountedWorkspace = "/github/workspace"
	mountedTemp      = "/github/runner_temp"
	mountedHome      = "/github/home"
	jobContainer     = "/__w"
	hostedWork       = "/home/runner/work"
)

// ResolvePath finds the file that a workflow means by name inside an action's
// container. The runner rewrites paths of the host, but not those that a step
// in a job container exports, and not those inside another value; so the name
// is tried as it stands, and then under the equivalent mounts. It gives the
// first that exists, or "" when none does, and all that were tried, in order.
func ResolvePath(name string, exists func(string) bool) (found string, tried []string) {
	for _, candidate := range append([]string{name}, equivalents(name)...) {
		tried = append(tried, candidate)
		if exists(candidate) {
			return candidate, tried
		}
	}
	return "", tried
}

// equivalents gives other names that the same file has under other mounts.
func equivalents(name string) []string {
	name = path.Clean(name)
	if rest, ok := strings.CutPrefix(name, mountedTemp+"/"); ok {
		return []string{jobContainer + "/_temp/" + rest}
	}
	for _, work := range []string{jobContainer, hostedWork, "/_work"} {
		before, rest, ok := strings.Cut(name, work+"/")
		if !ok || (work != "/_work" && before != "") {
			continue
		}
		if temp, ok := strings.CutPrefix(rest, "_temp/"); ok {
			return []string{mountedTemp + "/" + temp}
		}
		// <work>/<repository>/<repository> is the workspace; folders that begin
		// with an underscore are the runner's own.
		parts := strings.SplitN(rest, "/", 3)
		if len(parts) == 3 && !strings.HasPrefix(parts[0], "_") {
			return []string{mountedWorkspace + "/" + parts[2]}
		}
	}
	return nil
}

// underHome says that a path stands in somebody's home directory, which is not
// mounted into an action's container.
func underHome(name string) bool {
	if strings.HasPrefix(name, "~") || strings.HasPrefix(name, "$HOME") || strings.HasPrefix(name, "${HOME}") {
		return true
	}
	name = path.Clean(name)
	return strings.HasPrefix(name, "/root/") || strings.HasPrefix(name, mountedHome+"/") ||
		strings.HasPrefix(name, "/home/") && !strings.HasPrefix(name, hostedWork+"/") && !strings.Contains(name, "/_work/")
}
