package signer

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"testing"
)

func BenchmarkTmp(b *testing.B) {
	f, _ := os.Open("testdata/policies.jsonl")
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<20)
	var qs []Question
	for sc.Scan() {
		var d struct {
			ID, Issuer, Subject string
			Required            []Identity
			RP                  string `json:"required-pattern"`
			RI                  string `json:"required-issuer"`
			AR                  bool   `json:"accepts-required"`
			Class               string
			Witness             *Identity
		}
		if err := json.Unmarshal(sc.Bytes(), &d); err != nil {
			b.Fatal(err)
		}
		var req []Signer
		for _, r := range d.Required {
			req = append(req, Signer{Issuer: r.Issuer, Subject: r.Subject})
		}
		all := []Signer{{IssuerPattern: d.RI, SubjectPattern: d.RP}}
		qs = append(qs, Question{Live: []Entry{{d.Issuer, d.Subject}}, Required: req, Allowed: all})
	}
	n := 0
	for b.Loop() {
		for _, q := range qs {
			n += Prove(context.Background(), q).States
		}
	}
}
