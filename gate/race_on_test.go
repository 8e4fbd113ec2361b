//go:build race

package gate_test

// slower is how much less the longest tests do under the race detector, which
// makes them several times slower and has little to find: the package starts no
// goroutine. make test runs the whole of them without it.
const slower = 8
