package action

import (
	"strings"

	"flux-verify-gate/gate/signature"
)

// Input is one declared input. The table of inputs drives action.yml, the
// flags, the documentation and the validation; a test holds them together.
type Input struct {
	// Name is the name in action.yml, and of the flag.
	Name string
	// Default is the value where the input is not given; a ${{ }} expression is
	// GitHub's to fill in, and counts as no default elsewhere.
	Default string
	// Help is the description in action.yml, the flag's help and the document.
	Help string
	// Kind says how the value is read.
	Kind Kind
	// Words are the values of a KindWord.
	Words []string
	// Secret values are never quoted in an error.
	Secret bool
}

// fromGitHub says that the default is an expression, which only GitHub fills in.
func (in Input) fromGitHub() bool { return strings.Contains(in.Default, "${{") }

// Kind says how the value of an input is read and what a blank one means.
type Kind int

// KindText is any text, and KindPath the path of a file; blank is absent.
// KindName is text that must not be blank. KindWord is one of a few words,
// KindBool is true or false, KindDuration is a Go duration or 0; none of them
// may be blank, so that an expression that came out empty is not read as a
// choice. KindObject is namespace/name; only the runner's empty string, which it
// gives for an input that is left out, is absent.
const (
	KindText Kind = iota
	KindPath
	KindName
	KindWord
	KindBool
	KindDuration
	KindObject
)

// Inputs is the table of inputs, in the order of the documentation.
func Inputs() []Input {
	return []Input{
		{Name: inKubeconfig, Kind: KindPath,
			Help: "Path of one kubeconfig file; $KUBECONFIG if it is left out. It is loaded alone, never merged, and nothing falls back to the runner's own cluster."},
		{Name: inKubeconfigData, Kind: KindText, Secret: true,
			Help: "The content of a kubeconfig instead of its path, as it is or in base64, for a secret."},
		{Name: inContext, Kind: KindText,
			Help: "Context of the kubeconfig; its current-context if it is left out."},
		{Name: inServer, Kind: KindText,
			Help: "Address of the API server, instead of the kubeconfig's."},
		{Name: inTLSServerName, Kind: KindText,
			Help: "Name that the API server's certificate must have, instead of the address."},
		{Name: inCertificateAuthorityData, Kind: KindText,
			Help: "Certificate authority of the API server in PEM, as it is or in base64, instead of the kubeconfig's."},
		{Name: inInCluster, Default: "false", Kind: KindBool,
			Help: "Use the service account of the pod that the gate runs in."},
		{Name: inNamespace, Default: "flux-system", Kind: KindName,
			Help: "Namespace of the OCIRepository."},
		{Name: inName, Default: "flux-system", Kind: KindName,
			Help: "Name of the OCIRepository."},
		{Name: inObject, Kind: KindPath,
			Help: "A file (or - for standard input) that holds the object as JSON or YAML, judged instead of a live cluster. A recording cannot promote anything: verified stays false, digest and reference stay empty."},
		{Name: inLayout, Kind: KindPath,
			Help: "With object: a folder with an OCI image layout to look for signatures in, instead of the registry."},
		{Name: inRequiredSigners, Kind: KindText,
			Help: "YAML or JSON list of the signers that the live policy must accept and one of whom must have signed. Each entry has issuer or issuer-pattern, and subject or subject-pattern (RE2, matched against the whole value), or the shorthand github; and optional certificate claims."},
		{Name: inAllowedSigners, Kind: KindText,
			Help: "Signers, in the same form, that the live policy may accept besides, and need not."},
		{Name: inRequiredKeys, Kind: KindText,
			Help: "Instead of signers, for signatures made with a key: {secret: NAME, keys: [PEM, ...]}, the Secret that the policy must use and its public keys."},
		{Name: inRequireAll, Default: "false", Kind: KindBool,
			Help: "Every required signer must have signed, each by a different identity."},
		{Name: inAttestations, Kind: KindText,
			Help: "Predicate types of attestations that count as a signature too, one per line."},
		{Name: inDigest, Kind: KindText,
			Help: "Required: sha256:<64 lower-case hex digits> that must be serving, or the word any, which says nothing about what was just pushed."},
		{Name: inURL, Kind: KindText,
			Help: "The oci:// address that the source must point at."},
		{Name: inSignature, Default: "verify", Kind: KindWord, Words: []string{"verify", "skip"},
			Help: "verify: check the signature in the registry independently. skip: rely on the controller's word alone."},
		{Name: inTrustedRoot, Default: signature.TUF, Kind: KindName,
			Help: "tuf: the trusted root of the public-good Sigstore. Else the path of a trusted_root.json."},
		{Name: inPolicyLoose, Default: "note", Kind: KindWord, Words: []string{"note", "fail"},
			Help: "What it means that the policy accepts strings that cannot be issued: note or fail."},
		{Name: inRegistryUsername, Kind: KindText,
			Help: "User of the registry, with registry-password. Without: $DOCKER_CONFIG, else github-token for ghcr.io, else anonymous. The log says which."},
		{Name: inRegistryPassword, Kind: KindText, Secret: true,
			Help: "Password or token of registry-username."},
		{Name: inRegistryCA, Kind: KindText,
			Help: "Certificate authorities in PEM that may vouch for the registry, beside the well-known ones."},
		{Name: inGitHubToken, Default: "${{ github.token }}", Kind: KindText, Secret: true,
			Help: "Sent to ghcr.io only."},
		{Name: inCanary, Kind: KindObject,
			Help: "namespace/name of a second OCIRepository that carries the same policy, points at an artifact that nobody may deploy, and must be refused: the live proof that a wrong artifact would have been (docs/canary.md)."},
		{Name: inTimeout, Default: "5m", Kind: KindDuration,
			Help: "How long to wait for the source to settle; 0 judges the first read."},
		{Name: inReconcile, Default: "false", Kind: KindBool,
			Help: "Request a reconciliation first. Needs the verb patch."},
		{Name: inMode, Default: "enforce", Kind: KindWord, Words: []string{"enforce", "warn"},
			Help: "enforce: rejected and undecided fail the step. warn: they do not, except for bad input and where the source was never read; the outputs still tell the truth."},
		{Name: inReport, Default: "flux-verify-gate-report.json", Kind: KindName,
			Help: "Where the JSON report goes, relative to the workspace."},
	}
}

// The names of the inputs.
const (
	inKubeconfig               = "kubeconfig"
	inKubeconfigData           = "kubeconfig-data"
	inContext                  = "context"
	inServer                   = "server"
	inTLSServerName            = "tls-server-name"
	inCertificateAuthorityData = "certificate-authority-data"
	inInCluster                = "in-cluster"
	inLayout                   = "layout"
	inRequireAll               = "require-all"
	inAttestations             = "attestations"
	inTrustedRoot              = "trusted-root"
	inRegistryUsername         = "registry-username"
	inRegistryPassword         = "registry-password"
	inRegistryCA               = "registry-ca"
	inGitHubToken              = "github-token"
	inCanary                   = "canary"
	inTimeout                  = "timeout"
	inReconcile                = "reconcile"
	inNamespace                = "namespace"
	inName                     = "name"
	inObject                   = "object"
	inRequiredSigners          = "required-signers"
	inAllowedSigners           = "allowed-signers"
	inRequiredKeys             = "required-keys"
	inDigest                   = "digest"
	inURL                      = "url"
	inSignature                = "signature"
	inPolicyLoose              = "policy-loose"
	inMode                     = "mode"
	inReport                   = "report"
)
