package signature

// PublicGoodFile says whether every certificate authority of a
// trusted_root.json belongs to the public-good Sigstore, so that only its forms
// of identity can be issued under it. The error says why the file is no trusted
// root.
func PublicGoodFile(path string) (bool, error) {
	material, err := readTrustedRoot(path)
	if err != nil {
		return false, err
	}
	return publicGood(material), nil
}
