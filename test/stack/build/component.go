package build

import (
	"fmt"
	"slices"
	"strings"
)

// Component is one program of the stack. Its go.mod and go.sum lie in the
// directory Family of the stack; they are all that decides what is built.
type Component struct {
	// Name is the file name of the program and what Lookup takes.
	Name string
	// Family is the directory, below the stack's root, of the module that the
	// program is built in. Programs of one family share their versions.
	Family string
	// Package is the import path of the main package, or, for a program of our
	// own, its directory below the family's, beginning with "./". Such a package
	// imports no other package of the family.
	Package string
	// VersionVariable, when set, is the string variable (import path and name)
	// that the linker sets to the version of VersionModule in the family's
	// go.mod. The programs that need it refuse to start, or report v0.0.0,
	// without it.
	VersionVariable string
	// VersionModule is the module whose version goes into VersionVariable.
	VersionModule string
	// ColdCPU is about what a build took, in CPU seconds on two cores: alone and
	// with an empty Go build cache, or, for a program of our own, with the rest
	// of its family in the cache. It is printed, and decides nothing.
	ColdCPU int
}

// components is the table of everything that the stack can build.
var components = []Component{
	{Name: "etcd", Family: "etcd", Package: "go.etcd.io/etcd/server/v3", ColdCPU: 85},
	{
		Name: "kube-apiserver", Family: "kubernetes", Package: "k8s.io/kubernetes/cmd/kube-apiserver",
		VersionVariable: kubernetesVersion, VersionModule: "k8s.io/kubernetes", ColdCPU: 711,
	},
	{
		Name: "kubectl", Family: "kubernetes", Package: "k8s.io/kubernetes/cmd/kubectl",
		VersionVariable: kubernetesVersion, VersionModule: "k8s.io/kubernetes", ColdCPU: 78,
	},
	{Name: "source-controller", Family: "source-controller", Package: "github.com/fluxcd/source-controller", ColdCPU: 580},
	{Name: "source-controller-1.7", Family: "source-controller-1.7", Package: "github.com/fluxcd/source-controller", ColdCPU: 580},
	{Name: "fluxpush", Family: "source-controller", Package: "./fluxpush", ColdCPU: 2},
	{Name: "kustomize-controller", Family: "kustomize-controller", Package: "github.com/fluxcd/kustomize-controller", ColdCPU: 337},
	{Name: "cosign", Family: "cosign", Package: "github.com/sigstore/cosign/v3/cmd/cosign", ColdCPU: 312},
	{Name: "ociregistry", Family: "registry", Package: "./ociregistry", ColdCPU: 2},
	{Name: "distribution", Family: "registry", Package: "github.com/distribution/distribution/v3/cmd/registry", ColdCPU: 161},
	{Name: "crane", Family: "registry", Package: "github.com/google/go-containerregistry/cmd/crane", ColdCPU: 5},
	{Name: "fulcio", Family: "sigstore", Package: "github.com/sigstore/fulcio", ColdCPU: 83},
	{Name: "timestamp-server", Family: "sigstore", Package: "./timestamp-server", ColdCPU: 25},
	{Name: "tesseract", Family: "sigstore", Package: "github.com/transparency-dev/tesseract/cmd/tesseract/posix", ColdCPU: 16},
	{Name: "rekor-server", Family: "sigstore", Package: "github.com/sigstore/rekor-tiles/v2/cmd/rekor-server/posix", ColdCPU: 9},
}

// own says whether the component's main package is our own.
func (c Component) own() bool { return strings.HasPrefix(c.Package, "./") }

const kubernetesVersion = "k8s.io/component-base/version.gitVersion"

// Components returns every program that the stack can build, in the order of
// its table.
func Components() []Component { return slices.Clone(components) }

// Lookup returns the component called name, or an error that lists the names
// there are.
func Lookup(name string) (Component, error) {
	for _, c := range components {
		if c.Name == name {
			return c, nil
		}
	}
	names := make([]string, 0, len(components))
	for _, c := range components {
		names = append(names, c.Name)
	}
	return Component{}, fmt.Errorf("no component is called %q: choose one of %s", name, strings.Join(names, ", "))
}
