// Package cosigncli runs the real cosign the way a person or a workflow does:
// by its command line, in an environment that has nothing of the person who
// runs the tests (no configuration, no registry credentials, no ambient
// identity).
package cosigncli
