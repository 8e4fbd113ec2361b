package gate

import (
	"fmt"
	"regexp"
	"strings"

	"flux-verify-gate/gate/signer"
)

// githubIssuer is the issuer of GitHub Actions; an enterprise may have its own
// below it (sigstore/fulcio, config/identity/config.yaml).
const githubIssuer = "https://token.actions.githubusercontent.com"

// subject is a GitHub Actions subject in its parts.
type subject struct {
	owner, repository, path, ref string
}

var githubSubject = regexp.MustCompile(`^https://github\.com/([^/]+)/([^/]+)/([^@]+)@(.+)$`)

func parseSubject(s string) (subject, bool) {
	m := githubSubject.FindStringSubmatch(s)
	if m == nil {
		return subject{}, false
	}
	return subject{m[1], m[2], m[3], m[4]}, true
}

func (s subject) name() string          { return s.owner + "/" + s.repository }
func (s subject) repositoryURL() string { return "https://github.com/" + s.name() }

// nearMiss says how a signer differs from a required one.
type nearMiss struct {
	text     string
	remedy   string
	distance int
}

// nearest compares a signature with every required signer and keeps the one
// that it misses by the least.
func nearest(required []signer.Signer, s Signature) nearMiss {
	best := nearMiss{text: "not a required signer", remedy: remedyToAdd(s, false), distance: 100}
	for _, r := range required {
		if miss := compare(r, s); miss.distance < best.distance {
			best = miss
		}
	}
	return best
}

// compare says what differs between a required signer and who signed.
func compare(required signer.Signer, s Signature) nearMiss {
	var differs []string
	distance := 0
	add := func(weight int, format string, args ...any) {
		differs = append(differs, fmt.Sprintf(format, args...))
		distance += weight
	}
	id := s.Identity
	if required.Issuer != "" && required.Issuer != id.Issuer {
		switch {
		case strings.EqualFold(required.Issuer, id.Issuer):
			add(1, "the issuer differs in upper and lower case only")
		case required.Issuer == githubIssuer && strings.HasPrefix(id.Issuer, githubIssuer+"/"):
			add(2, "the issuer is the enterprise's own, %s", id.Issuer)
		case id.Issuer == githubIssuer && strings.HasPrefix(required.Issuer, githubIssuer+"/"):
			add(2, "the issuer is GitHub's and not the enterprise's own, %s", required.Issuer)
		default:
			add(10, "another issuer, %s", id.Issuer)
		}
	} else if required.IssuerPattern != "" && !matchesPattern(required.IssuerPattern, id.Issuer) {
		add(8, "an issuer that does not match %s", required.IssuerPattern)
	}

	reusable := false
	pull := false
	if required.Subject != "" && required.Subject != id.Subject {
		want, okWant := parseSubject(required.Subject)
		got, okGot := parseSubject(id.Subject)
		switch {
		case strings.EqualFold(required.Subject, id.Subject):
			add(1, "the subject differs in upper and lower case only")
		case !okWant || !okGot:
			add(20, "another subject")
		default:
			sameBuild := strings.EqualFold(s.Claims.SourceRepository, want.repositoryURL())
			sameID := required.Claims.SourceRepositoryID != "" && required.Claims.SourceRepositoryID == s.Claims.SourceRepositoryID
			otherRepository := want.name() != got.name()
			switch {
			case !otherRepository:
			case strings.EqualFold(want.name(), got.name()):
				add(1, "the repository differs in upper and lower case only, %s", got.name())
			case sameBuild:
				reusable = true
				add(2, "it was built in %s, but a reusable workflow of %s signed, and the subject names the workflow that was called", want.name(), got.name())
			case sameID:
				add(2, "the same repository (id %s) under another name, %s", s.Claims.SourceRepositoryID, got.name())
			default:
				add(12, "another repository, %s", got.name())
			}
			if !reusable {
				if want.path != got.path {
					add(4, "another workflow file, %s instead of %s", got.path, want.path)
				}
				if want.ref != got.ref {
					pull = strings.HasPrefix(got.ref, "refs/pull/")
					add(3, "%s instead of %s", tellRef(got.ref), want.ref)
				}
			}
		}
	} else if required.SubjectPattern != "" && !matchesPattern(required.SubjectPattern, id.Subject) {
		add(8, "a subject that does not match %s", required.SubjectPattern)
		if got, ok := parseSubject(id.Subject); ok && strings.HasPrefix(got.ref, "refs/pull/") {
			pull = true
			differs = append(differs, tellRef(got.ref))
		}
	}
	if len(differs) == 0 {
		return nearMiss{text: "not a required signer", remedy: remedyToAdd(s, false), distance: 50}
	}
	remedy := remedyToAdd(s, reusable)
	if pull {
		remedy = "deploy what was built from the branch, not from a pull request; " + remedy
	}
	return nearMiss{text: strings.Join(differs, "; "), remedy: remedy, distance: distance}
}

// matchesPattern matches the whole value, as a required pattern does.
func matchesPattern(pattern, value string) bool {
	only := signer.Signer{Issuer: githubIssuer, SubjectPattern: pattern}
	return only.Matches(signer.Identity{Issuer: githubIssuer, Subject: value})
}

func tellRef(ref string) string {
	switch {
	case strings.HasPrefix(ref, "refs/pull/"):
		return "a build of a pull request, " + ref + ","
	case strings.HasPrefix(ref, "refs/heads/gh-readonly-queue/"):
		return "a build of the merge queue, " + ref + ","
	case strings.HasPrefix(ref, "refs/tags/"):
		return "the tag " + ref
	case strings.HasPrefix(ref, "refs/heads/"):
		return "the branch " + ref
	}
	return "the commit " + ref
}

// remedyToAdd is the line that would make this signer a required one.
func remedyToAdd(s Signature, reusable bool) string {
	line := fmt.Sprintf("- {issuer: %s, subject: %s", quote(s.Identity.Issuer), quote(s.Identity.Subject))
	switch {
	case !reusable:
	case s.Claims.SourceRepositoryID != "":
		line += ", source-repository-id: " + quote(s.Claims.SourceRepositoryID)
	default:
		line += ", source-repository: " + quote(s.Claims.SourceRepository)
	}
	return "if this signer is meant, put into required-signers: " + line + "}"
}

// quote writes a YAML scalar in single quotes.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
