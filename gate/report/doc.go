// Package report says what a gate.Report holds: as log lines, annotations, step
// outputs, a job summary and JSON. It never decides.
//
// It is the one place that makes text from outside harmless (Escape). The
// values of a Report are as they came; every renderer here escapes them, so a
// caller passes a Report and never a prepared text.
package report
