package e2e

import (
	"encoding/base64"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

var secrets = corev1.SchemeGroupVersion.WithResource("secrets")

// secret applies a Secret with the content of files, by their names in it.
func (s *stage) secret(name string, files map[string]string) {
	s.t.Helper()
	data := map[string]string{}
	for file, path := range files {
		content, err := os.ReadFile(path)
		s.check(err)
		data[file] = string(content)
	}
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": name, "namespace": s.namespace}, "stringData": data,
	})
	s.check(err)
	s.applyYAML("admin", string(text))
}

// pullSecret makes the Secret that a controller pulls with, as kubectl create
// secret docker-registry does.
func (s *stage) pullSecret(name, user, password string) {
	s.t.Helper()
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/dockerconfigjson",
		"metadata": map[string]any{"name": name, "namespace": s.namespace},
		"stringData": map[string]string{".dockerconfigjson": fmt.Sprintf(`{"auths":{%q:{"auth":%q}}}`,
			s.front, base64.StdEncoding.EncodeToString([]byte(user+":"+password)))},
	})
	s.check(err)
	s.applyYAML("admin", string(text))
}

// secretFiles gives what a Secret of the scenario's holds; nothing if there is
// no such Secret.
func (s *stage) secretFiles(name string) map[string][]byte {
	s.t.Helper()
	u, err := s.resource(secrets).Get(s.t.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	s.check(err)
	var secret corev1.Secret
	s.check(runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &secret))
	return secret.Data
}

func (s *stage) deleteSecret(name string) {
	s.t.Helper()
	s.check(s.resource(secrets).Delete(s.t.Context(), name, metav1.DeleteOptions{}))
}
