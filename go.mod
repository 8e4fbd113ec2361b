module flux-verify-gate

go 1.26.0

require (
	github.com/fluxcd/source-controller/api v1.9.6 // indirect
	github.com/google/go-containerregistry v0.22.1 // indirect
	github.com/sethvargo/go-githubactions v1.4.0 // indirect
	github.com/sigstore/sigstore-go v1.3.0 // indirect
	go.yaml.in/yaml/v2 v2.4.4 // indirect
	go.yaml.in/yaml/v3 v3.0.6 // indirect
	k8s.io/apimachinery v0.37.2 // indirect
	k8s.io/client-go v0.37.2 // indirect
	sigs.k8s.io/yaml v1.6.0 // indirect
)
