package signature

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/docker/cli/cli/config"
	"github.com/docker/cli/cli/config/types"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
)

// Credentials say how to log in to the registry. The first of these that is
// there is used: a user name with password, an entry for the registry in the
// Docker configuration, the GitHub token (ghcr.io only), nobody.
type Credentials struct {
	Username string
	Password string
	// DockerConfig is the directory of a Docker configuration, as in
	// $DOCKER_CONFIG; empty for none. Credential helpers that it names are run.
	DockerConfig string
	// GitHubToken is sent to ghcr.io only.
	GitHubToken string
}

// ghcr is GitHub's container registry.
const ghcr = "ghcr.io"

// resolve picks the credentials for one registry, and says in words which.
func (c Credentials) resolve(registry name.Registry) (authn.Authenticator, string, error) {
	if c.Username != "" || c.Password != "" {
		return &authn.Basic{Username: c.Username, Password: c.Password},
			fmt.Sprintf("the registry user %q", c.Username), nil
	}
	if c.DockerConfig != "" {
		auth, err := fromDockerConfig(c.DockerConfig, registry)
		if err != nil {
			return nil, "", err
		}
		if auth != nil {
			return auth, "the Docker configuration in " + c.DockerConfig, nil
		}
	}
	if c.GitHubToken != "" && registry.RegistryStr() == ghcr {
		// ghcr.io reads the token and not the name, which must not be empty.
		return &authn.Basic{Username: "token", Password: c.GitHubToken}, "the GitHub token", nil
	}
	return authn.Anonymous, "no credentials (anonymous)", nil
}

// fromDockerConfig looks the registry up in a Docker configuration; nil without
// an error means that it has no entry.
func fromDockerConfig(dir string, registry name.Registry) (authn.Authenticator, error) {
	if _, err := os.Stat(filepath.Join(dir, config.ConfigFileName)); err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return nil, nil
		}
		return nil, fmt.Errorf("expected to read the Docker configuration: %w", err)
	}
	file, err := config.Load(dir)
	if err != nil {
		return nil, fmt.Errorf("expected a Docker configuration that can be read: %w", err)
	}
	key := registry.RegistryStr()
	if key == name.DefaultRegistry {
		key = authn.DefaultAuthKey
	}
	entry, err := file.GetAuthConfig(key)
	if err != nil {
		return nil, fmt.Errorf("expected credentials for %s from the Docker configuration: %w", key, err)
	}
	entry.ServerAddress = ""
	if entry == (types.AuthConfig{}) {
		return nil, nil
	}
	return authn.FromConfig(authn.AuthConfig{
		Username:      entry.Username,
		Password:      entry.Password,
		Auth:          entry.Auth,
		IdentityToken: entry.IdentityToken,
		RegistryToken: entry.RegistryToken,
	}), nil
}
