package signature

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"

	"github.com/sigstore/sigstore-go/pkg/root"
)

// publicGoodAuthorities are the SHA-256 digests of the certificates (DER) of
// the public-good Fulcio, from trusted_root.json of sigstore/root-signing as of
// August 2026 (sha256 6494e21e…bc0b66).
var publicGoodAuthorities = map[string]string{
	"03a38ffb1f450100c2596d1d10b900ac4d504058006dda58199576bbeb9c73d0": "sigstore, 2021",
	"15d795348226b4649f750f5802592c393bee7cc53c3b86982175b7ad087efe47": "sigstore-intermediate, 2022",
	"3ba7b6cc4e95469d4d334b49cb257ad8537076fa84b0ca87ff4ecfe6a54680c1": "sigstore, 2021-10",
}

// publicGood says that every certificate authority of a trusted root is the
// public-good Fulcio's. A root without any is not. An authority that is newer
// than the table makes it false, which widens what counts as issuable and never
// narrows it.
func publicGood(material root.TrustedMaterial) bool {
	authorities := material.FulcioCertificateAuthorities()
	for _, authority := range authorities {
		fulcio, ok := authority.(*root.FulcioCertificateAuthority)
		if !ok {
			return false
		}
		for _, certificate := range append([]*x509.Certificate{fulcio.Root}, fulcio.Intermediates...) {
			sum := sha256.Sum256(certificate.Raw)
			if _, known := publicGoodAuthorities[hex.EncodeToString(sum[:])]; !known {
				return false
			}
		}
	}
	return len(authorities) > 0
}
