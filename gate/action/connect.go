package action

import "flux-verify-gate/gate/cluster"

// clusterOptions says where the API server is, as the inputs name it.
func clusterOptions(v values, c Command) cluster.Options {
	return cluster.Options{
		Kubeconfig:               v[inKubeconfig],
		KubeconfigData:           v[inKubeconfigData],
		Context:                  v[inContext],
		Server:                   v[inServer],
		TLSServerName:            v[inTLSServerName],
		CertificateAuthorityData: v[inCertificateAuthorityData],
		InCluster:                v.bool(inInCluster),
		Getenv:                   c.getenv,
		UserAgent:                "flux-verify-gate/" + c.Version,
	}
}
