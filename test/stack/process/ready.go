package process

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// readyPoll is the time between two questions.
const readyPoll = 50 * time.Millisecond

// Ready returns when url answers a GET with status 200 over plain HTTP. Errors:
// the process has ended, or the context has; both with the end of its log.
func (p *Process) Ready(ctx context.Context, url string) error {
	client := &http.Client{Timeout: 5 * time.Second}
	defer client.CloseIdleConnections()
	for {
		answer := ask(ctx, client, url)
		if answer == nil {
			return nil
		}
		select {
		case <-p.done:
			return p.failure("ended before it was ready")
		case <-ctx.Done():
			return fmt.Errorf("%w: %w: %w", p.failure("is not ready at "+url), ctx.Err(), answer)
		case <-time.After(readyPoll):
		}
	}
}

func ask(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("expected status 200, found %s", response.Status)
	}
	return nil
}
