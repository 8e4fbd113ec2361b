// Package build makes the programs of the test stack (kube-apiserver, etcd and
// the others) from their Go modules, once, and keeps them in the user's cache
// directory.
//
// A family is a directory of the stack with nothing but a go.mod and a go.sum,
// and perhaps small main packages of our own. Merging families would change
// versions under each other, so each has its own. A program is kept under the
// hash of everything that decides its bytes: the family's files, the Go version
// and platform, and the linker flags. A second builder of the same program, in
// another process, waits for the first.
package build
