//go:build !race

package gate_test

const slower = 1
