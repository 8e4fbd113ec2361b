//go:build !race

package signer

const slower = 1
