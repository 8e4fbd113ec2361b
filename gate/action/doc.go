// Package action is the edge to GitHub Actions: inputs in, the wiring of the
// rooms, the waiting, and the exit status. The same inputs come as flags
// elsewhere. It holds no rules.
package action
