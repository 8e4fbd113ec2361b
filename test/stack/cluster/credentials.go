package cluster

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Credentials is what a client shows: a certificate with its key, a bearer
// token, or, when empty, nothing.
type Credentials struct {
	// Certificate and Key are in PEM.
	Certificate, Key []byte
	// Token is a service account's.
	Token string
}

// Admin returns the credentials of a member of system:masters, who may do
// everything.
func (c *Cluster) Admin() Credentials { return c.admin }

// User returns a client certificate for a user and groups. A user needs no
// object in the cluster; without a RoleBinding it may do next to nothing.
func (c *Cluster) User(name string, groups ...string) (Credentials, error) {
	return credentials(c.ca.client(name, groups, time.Now().Add(lifetime)))
}

// ExpiredUser returns a client certificate that ended a minute ago.
func (c *Cluster) ExpiredUser(name string, groups ...string) (Credentials, error) {
	return credentials(c.ca.client(name, groups, time.Now().Add(-time.Minute)))
}

// StrangerUser returns a client certificate of an authority that the API server
// does not trust.
func (c *Cluster) StrangerUser(name string, groups ...string) (Credentials, error) {
	return credentials(c.stranger.client(name, groups, time.Now().Add(lifetime)))
}

func credentials(p pair, err error) (Credentials, error) {
	return Credentials{Certificate: p.cert, Key: p.key}, err
}

var serviceAccounts = schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}

// ServiceAccount returns a token, by TokenRequest, for a service account, which
// it makes if need be. The API server gives no token less than ten minutes. Its
// user name is system:serviceaccount:<namespace>:<name>.
func (c *Cluster) ServiceAccount(ctx context.Context, namespace, name string, lifetime time.Duration) (Credentials, error) {
	accounts := c.dynamic.Resource(serviceAccounts).Namespace(namespace)
	account := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ServiceAccount"}}
	account.SetName(name)
	if _, err := accounts.Create(ctx, account, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return Credentials{}, fmt.Errorf("cannot make the service account %s/%s: %w", namespace, name, err)
	}
	request := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
		"spec": map[string]any{"expirationSeconds": int64(lifetime / time.Second)},
	}}
	request.SetName(name)
	answer, err := accounts.Create(ctx, request, metav1.CreateOptions{}, "token")
	if err != nil {
		return Credentials{}, fmt.Errorf("cannot get a token for %s/%s: %w", namespace, name, err)
	}
	token, _, err := unstructured.NestedString(answer.Object, "status", "token")
	if err != nil || token == "" {
		return Credentials{}, fmt.Errorf("the answer to a TokenRequest for %s/%s has no token", namespace, name)
	}
	return Credentials{Token: token}, nil
}
