// Package cluster runs a real Kubernetes API server with a real etcd on the
// loopback interface, for tests that must not imitate one.
//
// There is no controller manager and no kubelet: a deleted namespace stays
// Terminating, service accounts are not made by themselves, nothing runs.
// Authentication (client certificates, service account tokens), RBAC,
// server-side apply, managed fields, status, watches, and TokenRequest are the
// real ones. Tests share a cluster and keep apart by namespace.
package cluster
