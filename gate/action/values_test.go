package action

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"flux-verify-gate/gate"
)

func TestReadValuesFaults(t *testing.T) {
	t.Parallel()
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, []byte(" \n"), 0o644); err != nil {
		t.Fatal(err)
	}
	large := filepath.Join(t.TempDir(), "large")
	if err := os.WriteFile(large, make([]byte, maxFile+1), 0o644); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name    string
		environ []string
		args    []string
		says    []string
	}{
		{"undeclared input", []string{"INPUT_DIGEST=any", "INPUT_SIGNERS=x"}, nil, []string{"input signers", "required-signers"}},
		{"underscore for dash", []string{"INPUT_DIGEST=any", "INPUT_REQUIRED_SIGNERS=x"}, nil, []string{"input required_signers"}},
		{"two undeclared inputs", []string{"INPUT_DIGEST=any", "INPUT_A=x", "INPUT_B=x"}, nil, []string{"input a", "input b"}},
		{"entrypoint", []string{"INPUT_DIGEST=any", "INPUT_ENTRYPOINT=/bin/true"}, nil, []string{"input entrypoint", "remove it"}},
		{"args", []string{"INPUT_DIGEST=any", "INPUT_ARGS=x"}, nil, []string{"input args", "remove it"}},
		{"arguments beside inputs", []string{"INPUT_DIGEST=any"}, []string{"--digest", "any"}, []string{"input arguments", "none"}},
		{"blank word", []string{"INPUT_SIGNATURE= "}, nil, []string{"input signature", "verify or skip", "nothing"}},
		{"unknown word", []string{"INPUT_SIGNATURE=Skip"}, nil, []string{"input signature", `"Skip"`}},
		{"blank name", []string{"INPUT_NAMESPACE="}, nil, []string{"input namespace", "flux-system"}},
		{"two lines in a name", []string{"INPUT_NAME=a\nb"}, nil, []string{"input name", "one line"}},
		{"two lines in a path", []string{"INPUT_OBJECT=a\nb"}, nil, []string{"input object", "path"}},
		{"mode off", []string{"INPUT_MODE=off"}, nil, []string{"input mode", "enforce or warn"}},
		{"missing file", []string{"INPUT_DIGEST=@no-such-file"}, nil, []string{"input digest", "no-such-file"}},
		{"empty file", []string{"INPUT_DIGEST=@" + empty}, nil, []string{"input digest", "empty file"}},
		{"large file", []string{"INPUT_DIGEST=@" + large}, nil, []string{"input digest", "at most"}},
		{"folder as file", []string{"INPUT_DIGEST=@" + t.TempDir()}, nil, []string{"input digest", "directory"}},
		{"a blank canary", []string{"INPUT_CANARY= "}, nil, []string{"input canary", "expected namespace/name", "found nothing"}},
		{"a canary of a blank line", []string{"INPUT_CANARY=\n"}, nil, []string{"input canary", "found nothing"}},
		{"a canary flag without a value", nil, []string{"--digest", "any", "--canary", ""}, []string{"input canary", "found nothing"}},
		{"a canary in an empty file", []string{"INPUT_CANARY=@" + empty}, nil, []string{"input canary", "empty file"}},
		{"a canary without a namespace", []string{"INPUT_CANARY=x"}, nil, []string{"input canary", "namespace/name", `"x"`}},
		{"a canary without a name", []string{"INPUT_CANARY=x/"}, nil, []string{"input canary", `"x/"`}},
		{"a canary in three parts", []string{"INPUT_CANARY=a/b/c"}, nil, []string{"input canary", `"b/c"`}},
		{"a canary in upper case", []string{"INPUT_CANARY=A/b"}, nil, []string{"input canary", `"A"`, "lower"}},
		{"a canary that is a word", []string{"INPUT_CANARY=skip"}, nil, []string{"input canary", `"skip"`}},
		{"two canaries", []string{"INPUT_CANARY=a/b\na/c"}, nil, []string{"input canary"}},
		{"a canary that is a path", []string{"INPUT_CANARY=../../a"}, nil, []string{"input canary"}},
		{"every fault at once", []string{"INPUT_MODE=x", "INPUT_SIGNATURE=y"}, nil, []string{"input mode", "input signature"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := readValues(Inputs(), tt.environ, tt.args)
			var fault *gate.InputError
			if !errors.As(err, &fault) {
				t.Fatalf("got %v, want an input error", err)
			}
			for _, text := range tt.says {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("%q does not say %q", err, text)
				}
			}
		})
	}
}

// What is wrong with an input is said without the values that came with it: a log,
// a summary and a report may be read by more people than a secret.
func TestFaultsShowNoSecret(t *testing.T) {
	t.Parallel()
	const secret = "hunter2"
	for name, tt := range map[string]struct {
		environ, args []string
	}{
		"behind @":                      {[]string{"INPUT_REGISTRY-PASSWORD=@" + secret}, nil},
		"behind @, a flag":              {nil, []string{"--github-token", "@" + secret}},
		"kubeconfig-data behind @":      {[]string{"INPUT_KUBECONFIG-DATA=@" + secret}, nil},
		"given twice":                   {nil, []string{"--registry-password", "a", "--registry-password", secret}},
		"as an argument of its own":     {nil, []string{"--registry-password=", secret}},
		"misspelt flag":                 {nil, []string{"--registry-pasword=" + secret}},
		"bad flag":                      {nil, []string{"---registry-password=" + secret}},
		"flags beside variables":        {[]string{"INPUT_DIGEST=any"}, []string{"--registry-password", secret}},
		"content instead of a path":     {[]string{"INPUT_KUBECONFIG=users:\n- user: {token: " + secret + "}"}, nil},
		"content instead of a path, CR": {nil, []string{"--kubeconfig", "users:\r- user: {token: " + secret + "}"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := readValues(Inputs(), tt.environ, tt.args)
			if err == nil {
				t.Fatal("got no error, want one")
			}
			if strings.Contains(err.Error(), secret) {
				t.Errorf("%q shows the secret", err)
			}
		})
	}
}

func TestReadValues(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "digest")
	if err := os.WriteFile(file, []byte("any\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name    string
		environ []string
		args    []string
		want    map[string]string
	}{
		{"defaults", nil, nil, map[string]string{inNamespace: "flux-system", inSignature: "verify", inMode: "enforce", inDigest: ""}},
		{"environment", []string{"INPUT_DIGEST= any "}, nil, map[string]string{inDigest: "any"}},
		{"a value with an equals sign", []string{"INPUT_URL=oci://a/b=c"}, nil, map[string]string{inURL: "oci://a/b=c"}},
		{"flags", nil, []string{"--digest", "any", "-name=x"}, map[string]string{inDigest: "any", inName: "x"}},
		{"a file in the environment", []string{"INPUT_DIGEST=@" + file}, nil, map[string]string{inDigest: "any"}},
		{"a file in a flag", nil, []string{"--digest", "@" + file}, map[string]string{inDigest: "any"}},
		{"no canary, as the runner says it", []string{"INPUT_CANARY="}, nil, map[string]string{inCanary: ""}},
		{"a canary", []string{"INPUT_CANARY= flux-system/canary\n"}, nil, map[string]string{inCanary: "flux-system/canary"}},
		{"a stranger's variable where no input is set", []string{"INPUT_METHOD=x"}, []string{"--digest", "any"}, map[string]string{inDigest: "any"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := readValues(Inputs(), tt.environ, tt.args)
			if err != nil {
				t.Fatal(err)
			}
			for name, want := range tt.want {
				if got[name] != want {
					t.Errorf("%s: got %q, want %q", name, got[name], want)
				}
			}
		})
	}
}

// FuzzReadValues: no environment may make an input that is blank or unknown
// read as a choice.
func FuzzReadValues(f *testing.F) {
	f.Add("INPUT_SIGNATURE", "skip")
	f.Add("INPUT_SIGNATURE", "")
	f.Add("INPUT_SIGNATURE ", "skip")
	f.Add("INPUT_signature", "skip")
	f.Fuzz(func(t *testing.T, name, value string) {
		if strings.HasPrefix(value, "@") {
			t.Skip("would read files")
		}
		v, err := readValues(Inputs(), []string{"INPUT_DIGEST=any", name + "=" + value}, nil)
		if err != nil {
			return
		}
		if v[inSignature] == "skip" && (name != "INPUT_SIGNATURE" || strings.TrimSpace(value) != "skip") {
			t.Errorf("%q=%q was read as skip", name, value)
		}
	})
}
