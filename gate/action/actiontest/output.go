package actiontest

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"time"
)

// output collects what a process prints.
type output struct {
	mu      sync.Mutex
	text    bytes.Buffer
	closed  bool
	changed chan struct{}
}

func newOutput() *output { return &output{changed: make(chan struct{})} }

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.signal()
	return o.text.Write(p)
}

func (o *output) signal() {
	close(o.changed)
	o.changed = make(chan struct{})
}

func (o *output) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.signal()
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// wait returns when a text is there.
func (o *output) wait(text string, atMost time.Duration) error {
	deadline := time.After(atMost)
	for {
		o.mu.Lock()
		found, closed, changed := strings.Contains(o.text.String(), text), o.closed, o.changed
		o.mu.Unlock()
		switch {
		case found:
			return nil
		case closed:
			return fmt.Errorf("the gate ended without printing %q", text)
		}
		select {
		case <-changed:
		case <-deadline:
			return fmt.Errorf("the gate did not print %q within %s", text, atMost)
		}
	}
}
