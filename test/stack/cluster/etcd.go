package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"flux-verify-gate/test/stack/process"
)

func (c *Cluster) startEtcd() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	url := "http://" + c.etcdPort.Address()
	var err error
	c.etcd, err = process.Start(process.Config{
		Name: "etcd",
		Path: c.options.Etcd,
		Args: []string{
			"--data-dir=" + c.path("etcd"),
			"--listen-client-urls=" + url,
			"--advertise-client-urls=" + url,
			// One member talks to nobody; the port is etcd's own choice.
			"--listen-peer-urls=http://127.0.0.1:0",
			"--socket-reuse-port",
			"--unsafe-no-fsync",
		},
		Log: c.path("log", "etcd.log"),
	})
	return err
}

// Compact drops the history of etcd up to now and returns the revision that is
// now the oldest. What a client sees of it: the API server answers watches and
// lists of old resource versions from its own cache as long as it runs, so the
// 410 comes after RestartAPIServer, or at once with --watch-cache=false.
func (c *Cluster) Compact(ctx context.Context) (int64, error) {
	var latest struct {
		Header struct {
			Revision int64 `json:"revision,string"`
		} `json:"header"`
	}
	// Any key will do: every answer carries the store's revision.
	if err := c.callEtcd(ctx, "range", map[string]any{"key": []byte("any"), "count_only": true}, &latest); err != nil {
		return 0, err
	}
	revision := latest.Header.Revision
	if revision == 0 {
		return 0, fmt.Errorf("etcd named no revision")
	}
	request := map[string]any{"revision": revision, "physical": true}
	if err := c.callEtcd(ctx, "compaction", request, &struct{}{}); err != nil {
		return 0, err
	}
	return revision, nil
}

// callEtcd calls a method of etcd's key-value service through its HTTP gateway.
func (c *Cluster) callEtcd(ctx context.Context, method string, request, response any) error {
	body, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("cannot encode a request for etcd: %w", err)
	}
	url := "http://" + c.etcdPort.Address() + "/v3/kv/" + method
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("cannot make a request for etcd: %w", err)
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return fmt.Errorf("cannot call etcd's %s: %w", method, err)
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		return fmt.Errorf("cannot read etcd's answer to %s: %w", method, err)
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("etcd answered %s with %s: %s", method, answer.Status, data)
	}
	if err := json.Unmarshal(data, response); err != nil {
		return fmt.Errorf("cannot parse etcd's answer to %s: %w", method, err)
	}
	return nil
}
