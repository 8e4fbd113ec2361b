package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

func (c *Cluster) makeClients() error {
	c.restConfig = c.RESTConfig(c.admin)
	var err error
	if c.dynamic, err = dynamic.NewForConfig(c.restConfig); err != nil {
		return fmt.Errorf("cannot make the administrator's client: %w", err)
	}
	return nil
}

// RESTConfig returns a client-go configuration without a rate limit.
func (c *Cluster) RESTConfig(credentials Credentials) *rest.Config {
	return &rest.Config{
		Host:        c.Server(),
		BearerToken: credentials.Token,
		TLSClientConfig: rest.TLSClientConfig{
			CAData: c.CA(), CertData: credentials.Certificate, KeyData: credentials.Key,
		},
		QPS: -1,
	}
}

// withCodec returns a copy of config that a REST client without types accepts.
func withCodec(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	return config
}

// Dynamic returns the administrator's client.
func (c *Cluster) Dynamic() dynamic.Interface { return c.dynamic }

var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// Namespace makes a new namespace whose name begins with prefix and returns the
// name. Namespaces are never removed: nothing here could finish that.
func (c *Cluster) Namespace(ctx context.Context, prefix string) (string, error) {
	n := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
	n.SetGenerateName(prefix + "-")
	n, err := c.dynamic.Resource(namespaces).Create(ctx, n, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("cannot make a namespace: %w", err)
	}
	return n.GetName(), nil
}

// Apply applies the objects of a YAML stream, one after the other, by
// server-side apply as the administrator under the field manager's name,
// taking over fields from others. Custom resource definitions are waited for:
// on return their objects can be made. It returns the objects as stored.
func (c *Cluster) Apply(ctx context.Context, manager string, manifests io.Reader) ([]*unstructured.Unstructured, error) {
	var applied []*unstructured.Unstructured
	for decoder := yaml.NewYAMLOrJSONDecoder(manifests, 4096); ; {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return applied, nil
		}
		if err != nil {
			return applied, fmt.Errorf("cannot parse an object to apply: %w", err)
		}
		if len(object.Object) == 0 { // nothing but a comment between two ---
			continue
		}
		stored, err := c.apply(ctx, manager, object)
		if err != nil {
			return applied, fmt.Errorf("cannot apply %s %s: %w", object.GetKind(), object.GetName(), err)
		}
		applied = append(applied, stored)
	}
}

func (c *Cluster) apply(ctx context.Context, manager string, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	client, err := c.clientFor(object)
	if err != nil {
		return nil, err
	}
	stored, err := client.Apply(ctx, object.GetName(), object, metav1.ApplyOptions{FieldManager: manager, Force: true})
	if err != nil {
		return nil, err
	}
	if object.GetKind() == "CustomResourceDefinition" {
		return stored, c.waitServed(ctx, stored)
	}
	return stored, nil
}

// clientFor asks the API server, every time anew, which resource an object is:
// definitions come and go, and tests are in no hurry.
func (c *Cluster) clientFor(object *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	client, err := discovery.NewDiscoveryClientForConfig(c.restConfig)
	if err != nil {
		return nil, fmt.Errorf("cannot make a discovery client: %w", err)
	}
	groups, err := restmapper.GetAPIGroupResources(client)
	if err != nil {
		return nil, fmt.Errorf("cannot ask which resources there are: %w", err)
	}
	kind := object.GroupVersionKind()
	mapping, err := restmapper.NewDiscoveryRESTMapper(groups).RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, fmt.Errorf("the API server does not serve it: %w", err)
	}
	resource := c.dynamic.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		return resource.Namespace(object.GetNamespace()), nil
	}
	return resource, nil
}

// waitServed returns when every served version of a definition can be listed.
// The condition Established alone comes a moment too early.
func (c *Cluster) waitServed(ctx context.Context, definition *unstructured.Unstructured) error {
	var crd struct {
		Spec struct {
			Group    string
			Names    struct{ Plural string }
			Versions []struct {
				Name   string
				Served bool
			}
		}
	}
	if err := convert(definition, &crd); err != nil {
		return err
	}
	for _, version := range crd.Spec.Versions {
		if !version.Served {
			continue
		}
		resource := schema.GroupVersionResource{Group: crd.Spec.Group, Version: version.Name, Resource: crd.Spec.Names.Plural}
		for {
			_, err := c.dynamic.Resource(resource).List(ctx, metav1.ListOptions{Limit: 1})
			if err == nil {
				break
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("%s is not served: %w (%w)", resource, ctx.Err(), err)
			case <-time.After(readyPoll):
			}
		}
	}
	return nil
}

// convert decodes an object into a struct through JSON.
func convert(object *unstructured.Unstructured, into any) error {
	data, err := object.MarshalJSON()
	if err != nil {
		return fmt.Errorf("cannot encode %s: %w", object.GetName(), err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("cannot decode %s: %w", object.GetName(), err)
	}
	return nil
}
