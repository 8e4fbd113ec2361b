package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"flux-verify-gate/gate"
	"flux-verify-gate/gate/signature"
)

const (
	// collectFor bounds the look for the signatures that the two are compared by.
	collectFor = 10 * time.Second
	// speaksWithin is how long a condition that flaps is waited for.
	speaksWithin = 3 * time.Second
)

// agreements counts how often the emulated controller was compared with the
// real one.
type agreements struct {
	mu                              sync.Mutex
	compared, unsure, apart, silent int
}

var compared agreements

func (a *agreements) count(n *int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	*n++
}

func (a *agreements) String() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return fmt.Sprintf("the emulated controller was compared with the real one %d times, %d of them without a clear answer; %d times they were to differ; %d times there was nothing to compare",
		a.compared, a.unsure, a.apart, a.silent)
}

// apart says that after this run the real condition must differ from the
// emulated one, and why: what the registry or the trust holds has changed since
// the controller looked, and it does not look again. It is an error if they
// agree.
func (r *run) apart(why string) *run {
	r.differs = why
	return r
}

// uncompared says that after this run the two are not compared, and why: the
// controller and the harness do not see the same, or one of them may look again
// meanwhile.
func (r *run) uncompared(why string) *run {
	r.incomparable = why
	return r
}

// agree holds that the gate's rules say of the signatures that are really in the
// registry what the running controller's condition says, in the same class. It
// takes the trust from the live Secrets, not from what the gate was given.
func (r *run) agree() {
	t := r.s.t
	t.Helper()
	if r.incomparable != "" {
		compared.count(&compared.silent)
		t.Logf("the controller's word is not compared: %s", r.incomparable)
		return
	}
	word, opinion, err := r.opinions()
	if err != nil {
		compared.count(&compared.silent)
		t.Logf("the controller's word is not compared: %v", err)
		if r.differs != "" {
			t.Errorf("the controller's word and the rules were to differ (%s), and were not compared: %v", r.differs, err)
		}
		return
	}
	same := opinion.Accepts == word.Accepts && opinion.Class == word.Class
	told := fmt.Sprintf("source-controller %s says %q (class %q); by the rules it %s (accepts %t, class %q, layout %q)",
		r.s.stack.Line.Name, word.Message, word.Class, opinion.Why, opinion.Accepts, opinion.Class, opinion.Layout)
	switch {
	case r.differs != "":
		compared.count(&compared.apart)
		if same {
			t.Errorf("the controller's word and the rules were to differ (%s), and agree: %s", r.differs, told)
		}
	case opinion.Unsure:
		compared.count(&compared.compared)
		compared.count(&compared.unsure)
	default:
		compared.count(&compared.compared)
		if !same {
			t.Errorf("the rules do not explain the controller's word: %s", told)
		}
	}
}

// aboutSignatures are the classes of refusals that speak of signatures. The
// others speak of a service or a Secret.
var aboutSignatures = []gate.Class{
	"", gate.ClassWrongSigner, gate.ClassMultipleIdentities, gate.ClassBadPattern, gate.ClassNoIdentity, gate.ClassNoSignature, gate.ClassNoMatchingKey,
}

// opinions gives the controller's word and the emulated one about the same
// digest under the same policy. The error says why they cannot be compared.
func (r *run) opinions() (gate.Word, gate.Opinion, error) {
	for range 5 {
		live, word := r.word()
		switch {
		case live == nil:
			return gate.Word{}, gate.Opinion{}, errors.New("there is no source")
		case live.Spec.Verify == nil:
			return gate.Word{}, gate.Opinion{}, errors.New("there is no policy")
		case word == nil:
			return gate.Word{}, gate.Opinion{}, errors.New("SourceVerified says nothing at the source's own generation")
		case !slices.Contains(aboutSignatures, word.Class):
			return gate.Word{}, gate.Opinion{}, fmt.Errorf("the refusal is of the class %s", word.Class)
		}
		found, err := r.collect(live, word.Digest)
		if err != nil {
			return gate.Word{}, gate.Opinion{}, err
		}
		if _, again := r.word(); again == nil || *again != *word {
			continue // the controller has looked meanwhile
		}
		opinion, err := gate.Emulate(r.s.stack.Line.Name, live.Spec.Verify, found)
		return *word, opinion, err
	}
	return gate.Word{}, gate.Opinion{}, errors.New("the controller's word changes all the time")
}

// word gives the live source and what its condition says. A condition of a
// source that is being reconciled flaps, and is waited for.
func (r *run) word() (*sourcev1.OCIRepository, *gate.Word) {
	for deadline := time.Now().Add(speaksWithin); ; time.Sleep(100 * time.Millisecond) {
		live := r.s.readAny()
		if live == nil {
			return nil, nil
		}
		source := gate.Source{Object: *live}
		word := source.Word()
		if word != nil || live.Spec.Verify == nil || live.Spec.Suspend || time.Now().After(deadline) {
			return live, word
		}
	}
}

// collect looks for all signatures of a digest and verifies them under the trust
// that the live policy names.
func (r *run) collect(live *sourcev1.OCIRepository, digest string) ([]gate.Signature, error) {
	checker := signature.Checker{
		Credentials: signature.Credentials{Username: r.inputs["registry-username"], Password: r.inputs["registry-password"]},
		CA:          []byte(r.inputs["registry-ca"]),
	}
	if path, isFile := strings.CutPrefix(r.inputs["registry-ca"], "@"); isFile {
		var err error
		checker.CA, err = os.ReadFile(path)
		r.s.check(err)
	}
	switch verify := live.Spec.Verify; {
	case verify.SecretRef != nil:
		files := r.s.secretFiles(verify.SecretRef.Name)
		var keys []string
		for _, name := range slices.Sorted(maps.Keys(files)) {
			if strings.HasSuffix(name, ".pub") {
				keys = append(keys, string(files[name]))
			}
		}
		if len(keys) == 0 {
			return nil, errors.New("the policy's Secret has no key")
		}
		checker.Want.Keys = &gate.Keys{Secret: verify.SecretRef.Name, PEM: keys}
	case verify.TrustedRootSecretRef != nil:
		root := r.s.secretFiles(verify.TrustedRootSecretRef.Name)["trusted_root.json"]
		if root == nil {
			return nil, errors.New("the policy's Secret has no trusted root")
		}
		checker.TrustedRoot = filepath.Join(r.s.t.TempDir(), "trusted_root.json")
		r.s.check(os.WriteFile(checker.TrustedRoot, root, 0o600))
	default:
		return nil, errors.New("the policy trusts the public-good Sigstore, which has nothing of the stack's")
	}
	ctx, cancel := context.WithTimeout(r.s.t.Context(), collectFor)
	defer cancel()
	s := checker.Check(ctx, signature.Target{Repository: live.Spec.URL, Digest: digest, Insecure: live.Spec.Insecure})
	if !s.Complete {
		return nil, fmt.Errorf("the registry does not show everything: %v", s.Failures)
	}
	return s.Found, nil
}
