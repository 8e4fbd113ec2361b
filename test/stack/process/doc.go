// Package process runs the programs of the stack so that none of them outlives
// the program that started them, however that one ends.
//
// On Linux the kernel does it: a child gets a signal when the thread that
// started it dies (PR_SET_PDEATHSIG), and the package keeps that thread alive
// as long as the child. On other systems only an orderly Stop ends a child.
package process
