package gate

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Keys are required public keys, for signatures that are made with a key.
type Keys struct {
	// Secret is the name of the Secret that spec.verify.secretRef must name.
	Secret string `yaml:"secret"`
	// PEM are the public keys, PKIX in PEM, any of which may have signed.
	PEM []string `yaml:"keys"`
}

// ParseKeys reads the input required-keys: YAML or JSON of the form
// {secret: NAME, keys: [PEM, …]}, with keys optional here (NewPolicy says when
// they are needed). Fields it does not know, a second document and a key that
// does not parse are errors, with the line where there is one.
func ParseKeys(data []byte) (*Keys, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	var keys Keys
	switch err := decoder.Decode(&keys); {
	case errors.Is(err, io.EOF):
		return nil, errors.New("expected {secret: NAME, keys: [PEM, …]}, found nothing")
	case err != nil:
		return nil, fmt.Errorf("expected {secret: NAME, keys: [PEM, …]}: %w", oneLine(err))
	}
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, errors.New("expected one YAML document, found a second one")
	}
	if strings.TrimSpace(keys.Secret) == "" {
		return nil, errors.New("field secret: expected the name of the Secret that spec.verify must use, found nothing")
	}
	if strings.TrimSpace(keys.Secret) != keys.Secret {
		return nil, fmt.Errorf("field secret: expected no space around the name, found %q", keys.Secret)
	}
	for i, text := range keys.PEM {
		if err := checkPublicKey(text); err != nil {
			return nil, fmt.Errorf("field keys, entry %d: %w", i+1, err)
		}
	}
	return &keys, nil
}

// oneLine puts the faults that the YAML library lists line by line into one, in
// words of the input instead of the Go type.
func oneLine(err error) error {
	var faults *yaml.TypeError
	if !errors.As(err, &faults) {
		return err
	}
	text := strings.ReplaceAll(strings.Join(faults.Errors, "; "), " in type gate.Keys", "")
	return errors.New(strings.ReplaceAll(text, " into gate.Keys", ", which is no mapping"))
}

// checkPublicKey says why text is not exactly one public key.
func checkPublicKey(text string) error {
	block, rest := pem.Decode([]byte(text))
	switch {
	case block == nil:
		return errors.New("expected a public key in PEM, found no PEM block")
	case block.Type != "PUBLIC KEY":
		return fmt.Errorf("expected a PEM block of type PUBLIC KEY, found %q", block.Type)
	case len(bytes.TrimSpace(rest)) > 0:
		return errors.New("expected one PEM block, found more behind it; list each key as an entry of its own")
	case strings.Count(text, "-----BEGIN") > 1 || !strings.HasPrefix(strings.TrimSpace(text), "-----BEGIN"):
		// The decoder skips whatever comes before a block that it can read.
		return errors.New("expected one PEM block, found more before it")
	}
	if _, err := x509.ParsePKIXPublicKey(block.Bytes); err != nil {
		return fmt.Errorf("expected a public key in PKIX form: %w", err)
	}
	return nil
}
