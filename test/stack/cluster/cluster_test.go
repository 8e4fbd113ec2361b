package cluster_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"flux-verify-gate/test/stack/cluster"
	"flux-verify-gate/test/stack/clustertest"
	"flux-verify-gate/test/stack/crd"
)

var shared clustertest.Shared

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

var ociRepositories = schema.GroupVersionResource{
	Group: "source.toolkit.fluxcd.io", Version: "v1", Resource: "ocirepositories",
}

const source = `
apiVersion: source.toolkit.fluxcd.io/v1
kind: OCIRepository
metadata:
  name: podinfo
spec:
  interval: 5m
  url: oci://registry.example/podinfo
`

// sharedCluster returns the shared cluster with the current definition of
// OCIRepository and a new namespace.
func sharedCluster(t *testing.T) (*cluster.Cluster, string) {
	t.Helper()
	c := shared.Get(t)
	install(t, c, crd.Flux29())
	namespace, err := c.Namespace(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	return c, namespace
}

func install(t *testing.T, c *cluster.Cluster, release crd.Release) {
	t.Helper()
	definition, err := release.OCIRepository(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	apply(t, c, "flux", "", string(definition))
}

// apply applies one manifest, in a namespace unless that is empty.
func apply(t *testing.T, c *cluster.Cluster, manager, namespace, manifest string) *unstructured.Unstructured {
	t.Helper()
	if namespace != "" {
		manifest = strings.Replace(manifest, "metadata:\n", "metadata:\n  namespace: "+namespace+"\n", 1)
	}
	objects, err := c.Apply(t.Context(), manager, strings.NewReader(manifest))
	if err != nil {
		t.Fatal(err)
	}
	if len(objects) != 1 {
		t.Fatalf("applied %d objects, want 1", len(objects))
	}
	return objects[0]
}

func client(t *testing.T, c *cluster.Cluster, config *clientcmdapi.Config) dynamic.Interface {
	t.Helper()
	rest, err := clientcmd.NewDefaultClientConfig(*config, nil).ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(rest)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func TestCredentials(t *testing.T) {
	t.Parallel()
	c, namespace := sharedCluster(t)
	apply(t, c, "test", namespace, source)
	apply(t, c, "test", namespace, `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: reader
rules:
- apiGroups: [source.toolkit.fluxcd.io]
  resources: [ocirepositories]
  resourceNames: [podinfo]
  verbs: [get, watch]
`)
	apply(t, c, "test", namespace, `
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: reader
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects:
- {kind: ServiceAccount, name: reader}
- {kind: User, apiGroup: rbac.authorization.k8s.io, name: alice}
- {kind: Group, apiGroup: rbac.authorization.k8s.io, name: readers}
`)
	user := func(f func(string, ...string) (cluster.Credentials, error), name string, groups ...string) cluster.Credentials {
		t.Helper()
		credentials, err := f(name, groups...)
		if err != nil {
			t.Fatal(err)
		}
		return credentials
	}
	account := func(name string) cluster.Credentials {
		t.Helper()
		credentials, err := c.ServiceAccount(t.Context(), namespace, name, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		return credentials
	}
	alice := c.Kubeconfig(user(c.User, "alice"))
	changed := func(change func(*clientcmdapi.Cluster)) *clientcmdapi.Config {
		config := alice.DeepCopy()
		change(config.Clusters[cluster.ContextName])
		return config
	}

	tests := map[string]struct {
		config *clientcmdapi.Config
		want   func(error) bool
	}{
		"administrator":         {c.Kubeconfig(c.Admin()), isNil},
		"bound user":            {alice, isNil},
		"user of a bound group": {c.Kubeconfig(user(c.User, "bob", "readers")), isNil},
		"bound service account": {c.Kubeconfig(account("reader")), isNil},
		"unbound user":          {c.Kubeconfig(user(c.User, "mallory")), apierrors.IsForbidden},
		"unbound account":       {c.Kubeconfig(account("other")), apierrors.IsForbidden},
		"nobody":                {c.Kubeconfig(cluster.Credentials{}), apierrors.IsForbidden},
		"no such token":         {c.Kubeconfig(cluster.Credentials{Token: "nonsense"}), apierrors.IsUnauthorized},
		"expired certificate":   {c.Kubeconfig(user(c.ExpiredUser, "alice")), apierrors.IsUnauthorized},
		"certificate of a strange authority": {
			c.Kubeconfig(user(c.StrangerUser, "admin", "system:masters")), apierrors.IsUnauthorized,
		},
		"strange certificate authority": {
			changed(func(c2 *clientcmdapi.Cluster) { c2.CertificateAuthorityData = c.StrangerCA() }), contains("x509: certificate signed by unknown authority"),
		},
		"name in the server's certificate": {
			changed(func(c2 *clientcmdapi.Cluster) { c2.TLSServerName = cluster.ServerName }), isNil,
		},
		"name not in the server's certificate": {
			changed(func(c2 *clientcmdapi.Cluster) { c2.TLSServerName = "elsewhere.stack.test" }), contains("x509: certificate is valid for"),
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := t.TempDir() + "/kubeconfig"
			if err := cluster.WriteKubeconfig(path, test.config); err != nil {
				t.Fatal(err)
			}
			config, err := clientcmd.LoadFromFile(path)
			if err != nil {
				t.Fatal(err)
			}
			_, err = client(t, c, config).Resource(ociRepositories).Namespace(namespace).Get(t.Context(), "podinfo", metav1.GetOptions{})
			if !test.want(err) {
				t.Errorf("get: unexpected answer %v", err)
			}
		})
	}
}

func isNil(err error) bool { return err == nil }

func contains(text string) func(error) bool {
	return func(err error) bool { return err != nil && strings.Contains(err.Error(), text) }
}

func TestManagedFields(t *testing.T) {
	t.Parallel()
	c, namespace := sharedCluster(t)
	apply(t, c, "flux-operator", namespace, source)
	object := apply(t, c, "kubectl", namespace, `
apiVersion: source.toolkit.fluxcd.io/v1
kind: OCIRepository
metadata:
  name: podinfo
spec:
  verify: {provider: cosign}
`)
	var managers []string
	for _, field := range object.GetManagedFields() {
		managers = append(managers, field.Manager)
	}
	if got := strings.Join(managers, " "); got != "flux-operator kubectl" && got != "kubectl flux-operator" {
		t.Errorf("managers %q, want flux-operator and kubectl", got)
	}
	// The definition's own default, so it is the real one.
	if g, _, _ := unstructured.NestedInt64(object.Object, "status", "observedGeneration"); g != -1 {
		t.Errorf("status.observedGeneration of a new object is %d, want -1", g)
	}
}

func TestOlderRelease(t *testing.T) {
	t.Parallel()
	c := clustertest.Start(t, cluster.Options{})
	definition, err := crd.Flux27().OCIRepository(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	served := func(version string) bool {
		t.Helper()
		resource := ociRepositories
		resource.Version = version
		_, err := c.Dynamic().Resource(resource).List(t.Context(), metav1.ListOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
		return err == nil
	}
	apply(t, c, "flux", "", string(definition))
	if !served("v1") || !served("v1beta2") {
		t.Error("source-controller 1.7's definition does not serve v1 and v1beta2")
	}
	older, err := crd.ServeOnly(definition, "v1beta2")
	if err != nil {
		t.Fatal(err)
	}
	apply(t, c, "flux", "", string(older))
	until(t, "v1 is gone", func() bool { return !served("v1") })
	if !served("v1beta2") {
		t.Error("v1beta2 is not served")
	}
}

// TestWatch follows one object over a restart, a compaction and a crash of the
// API server.
func TestWatch(t *testing.T) {
	t.Parallel()
	c := clustertest.Start(t, cluster.Options{})
	install(t, c, crd.Flux29())
	namespace, err := c.Namespace(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	alice, err := c.User("alice", "system:masters-of-nothing")
	if err != nil {
		t.Fatal(err)
	}
	apply(t, c, "test", "", `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: alice}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: User, apiGroup: rbac.authorization.k8s.io, name: alice}]
`)
	first := apply(t, c, "test", namespace, source)
	objects := client(t, c, c.Kubeconfig(alice)).Resource(ociRepositories).Namespace(namespace)
	begin := func(version string) watch.Interface {
		t.Helper()
		w, err := objects.Watch(t.Context(), metav1.ListOptions{
			FieldSelector: "metadata.name=podinfo", ResourceVersion: version,
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(w.Stop)
		return w
	}
	touch := func(value string) {
		t.Helper()
		apply(t, c, "touch", namespace, `
apiVersion: source.toolkit.fluxcd.io/v1
kind: OCIRepository
metadata:
  name: podinfo
  annotations: {touched: "`+value+`"}
`)
	}

	w := begin(first.GetResourceVersion())
	touch("1")
	if e := next(t, w); e.Type != watch.Modified {
		t.Fatalf("got %s, want %s", e.Type, watch.Modified)
	}
	server := c.Server()
	if err := c.RestartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	if c.Server() != server {
		t.Errorf("the API server moved from %s to %s", server, c.Server())
	}
	closed(t, w)

	touch("2")
	if _, err := c.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.RestartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	w = begin(first.GetResourceVersion())
	e := next(t, w)
	if err := apierrors.FromObject(e.Object); e.Type != watch.Error || !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
		t.Errorf("watch from a compacted version: got %s %v, want 410 Gone", e.Type, err)
	}

	now, err := objects.Get(t.Context(), "podinfo", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if now.GetUID() != first.GetUID() {
		t.Errorf("after the restarts the object has another UID")
	}
	w = begin("") // now's own version is older than the new watch cache
	if e := next(t, w); e.Type != watch.Added {
		t.Fatalf("got %s, want %s", e.Type, watch.Added)
	}
	if err := c.KillAPIServer(); err != nil {
		t.Fatal(err)
	}
	closed(t, w)
	if _, err := objects.Get(t.Context(), "podinfo", metav1.GetOptions{}); err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("get from a dead API server: got %v, want connection refused", err)
	}
	if err := c.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.StartAPIServer(t.Context()); err == nil {
		t.Error("a second API server started")
	}

	var got []string
	until(t, "every request is in the audit log", func() bool {
		requests, err := c.Requests("alice")
		if err != nil {
			t.Fatal(err)
		}
		got = nil
		for _, r := range requests {
			path, err := url.Parse(r.URI)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(path.Path, "/apis/source.toolkit.fluxcd.io/v1/namespaces/"+namespace+"/ocirepositories") {
				t.Errorf("unexpected request %+v", r)
			}
			// While it fills its watch cache a new server says 429; client-go
			// then tries again.
			if r.Code != http.StatusTooManyRequests {
				got = append(got, r.Verb)
			}
		}
		return len(got) >= 4
	})
	if want := "watch watch get watch"; strings.Join(got, " ") != want {
		t.Errorf("requests %v, want %s", got, want)
	}
}

// TestWatchWithoutCache shows how a test gets a 410 without a restart.
func TestWatchWithoutCache(t *testing.T) {
	t.Parallel()
	c := clustertest.Start(t, cluster.Options{APIServerArgs: []string{"--watch-cache=false"}})
	install(t, c, crd.Flux29())
	namespace, err := c.Namespace(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	object := apply(t, c, "test", namespace, source)
	for range 2 {
		if _, err := c.Namespace(t.Context(), "another-revision"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	w, err := c.Dynamic().Resource(ociRepositories).Namespace(namespace).Watch(t.Context(), metav1.ListOptions{
		ResourceVersion: object.GetResourceVersion(),
	})
	if err == nil {
		defer w.Stop()
		err = apierrors.FromObject(next(t, w).Object)
	}
	if !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
		t.Errorf("watch from a compacted version: got %v, want 410 Gone", err)
	}
}

// next returns the next event of a watch.
func next(t *testing.T, w watch.Interface) watch.Event {
	t.Helper()
	select {
	case e, ok := <-w.ResultChan():
		if !ok {
			t.Fatal("the watch was closed")
		}
		return e
	case <-t.Context().Done():
	case <-time.After(time.Minute):
	}
	t.Fatal("the watch brought nothing")
	return watch.Event{}
}

// closed waits for the end of a watch, whatever it brings before.
func closed(t *testing.T, w watch.Interface) {
	t.Helper()
	limit := time.After(time.Minute)
	for {
		select {
		case e, ok := <-w.ResultChan():
			if !ok {
				return
			}
			data, _ := json.Marshal(e.Object)
			t.Logf("before its end the watch brought %s %s", e.Type, data)
		case <-limit:
			t.Fatal("the watch was not closed")
		}
	}
}

// until waits for something that the API server does in the background.
func until(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for limit := time.Now().Add(time.Minute); !condition(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("did not happen: %s", what)
		}
	}
}
