//go:build race

package signer

// slower is how many times fewer random questions are asked under the race
// detector, which makes each several times slower and has little to find here:
// the package starts no goroutine. make test runs the whole of them without it.
const slower = 8
