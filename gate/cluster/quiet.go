package cluster

import (
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

// quiet keeps client-go from writing to standard error by itself: the runner
// obeys commands that it finds there, and what client-go writes can hold text
// from outside that nobody has escaped. Errors come back as values all the same.
var quiet = sync.OnceFunc(func() { klog.SetLogger(logr.Discard()) })
