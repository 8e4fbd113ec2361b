module flux-verify-gate/test/stack

go 1.26.0

require (
	golang.org/x/mod v0.37.0
	golang.org/x/sys v0.49.0
)
