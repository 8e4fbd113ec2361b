package cluster

import (
	"fmt"
	"os"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// ContextName names the one cluster, user and context of a Kubeconfig.
const ContextName = "stack"

// Kubeconfig returns a kubeconfig with everything inline: one cluster, one
// user and the current context, all called ContextName. Change the value for a
// wrong one: another Server, StrangerCA as CertificateAuthorityData, and so on.
func (c *Cluster) Kubeconfig(credentials Credentials) *clientcmdapi.Config {
	config := clientcmdapi.NewConfig()
	cluster := clientcmdapi.NewCluster()
	cluster.Server = c.Server()
	cluster.CertificateAuthorityData = c.CA()
	user := clientcmdapi.NewAuthInfo()
	user.ClientCertificateData = credentials.Certificate
	user.ClientKeyData = credentials.Key
	user.Token = credentials.Token
	context := clientcmdapi.NewContext()
	context.Cluster, context.AuthInfo = ContextName, ContextName
	config.Clusters[ContextName] = cluster
	config.AuthInfos[ContextName] = user
	config.Contexts[ContextName] = context
	config.CurrentContext = ContextName
	return config
}

// WriteKubeconfig writes a kubeconfig to a file that only its owner may read.
func WriteKubeconfig(path string, config *clientcmdapi.Config) error {
	data, err := clientcmd.Write(*config)
	if err != nil {
		return fmt.Errorf("cannot encode the kubeconfig: %w", err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		return fmt.Errorf("cannot write the kubeconfig: %w", err)
	}
	return nil
}
