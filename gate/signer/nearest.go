package signer

import (
	"fmt"
	"strings"
)

// otherNames are names that neighbouring tools have for a field.
var otherNames = map[string]string{
	"issuerregexp":                "issuer-pattern",
	"subjectregexp":               "subject-pattern",
	"certificateoidcissuer":       "issuer",
	"certificateidentity":         "subject",
	"certificateoidcissuerregexp": "issuer-pattern",
	"certificateidentityregexp":   "subject-pattern",
	"identity":                    "subject",
	"san":                         "subject",
	"sourcerepositoryuri":         "source-repository",
	"sourcerepositoryidentifier":  "source-repository-id",
	"sourcerepositoryref":         "source-ref",
	"repo":                        "repository",
	"branch":                      "ref",
	"tag":                         "ref",
	"mergequeue":                  "merge-queue-of",
	"jobworkflowref":              "workflow",
}

// suggestion says which field was meant, or which there are.
func suggestion(name string, known []string) string {
	plain := strings.ToLower(strings.NewReplacer("-", "", "_", "", " ", "").Replace(abbreviate(name)))
	best, distance := "", 3
	for _, k := range known {
		if d := edits(plain, strings.ReplaceAll(k, "-", "")); d < distance {
			best, distance = k, d
		}
		if otherNames[plain] == k && distance > 0 {
			best, distance = k, 1
		}
	}
	if best != "" {
		return fmt.Sprintf("did you mean %q?", best)
	}
	return "expected one of " + strings.Join(known, ", ")
}

// edits is the Levenshtein distance: the fewest letters to insert, delete or
// replace that turn a into b.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
