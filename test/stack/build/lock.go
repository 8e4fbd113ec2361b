//go:build unix

package build

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// lockPoll is how often a waiting builder asks for the lock again. A blocking
// flock could not be cancelled.
const lockPoll = 500 * time.Millisecond

// lock takes the exclusive lock on file, which it makes if need be, and calls
// waiting once if another process holds it. The returned function releases the
// lock. The file stays: removing it would let two processes hold two locks of
// one name.
func lock(ctx context.Context, file string, waiting func()) (release func() error, err error) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("cannot open the lock file: %w", err)
	}
	told := false
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return f.Close, nil
		case errors.Is(err, unix.EINTR):
			continue
		case !errors.Is(err, unix.EWOULDBLOCK):
			return nil, errors.Join(fmt.Errorf("cannot lock %s: %w", file, err), f.Close())
		}
		if !told {
			waiting()
			told = true
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("gave up waiting for another builder that holds %s: %w", file, ctx.Err()), f.Close())
		case <-time.After(lockPoll):
		}
	}
}
