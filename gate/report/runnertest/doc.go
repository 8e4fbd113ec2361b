// Package runnertest reads what a step printed and wrote as the runner of
// GitHub Actions does, so that tests can ask what the runner would have done.
//
// It is written from the behaviour of actions/runner v2.336 (ActionCommand.cs,
// OutputManager.cs, ProcessInvoker.cs, FileCommandManager.cs). Where the runner
// has a choice or a limit, this port takes the side that finds more commands.
// It is for tests only; nothing in the product imports it.
package runnertest
