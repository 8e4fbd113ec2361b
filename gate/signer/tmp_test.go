package signer

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"sort"
	"testing"
	"time"
)

func TestTmp(t *testing.T) {
	f, _ := os.Open("testdata/policies.jsonl")
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<20)
	var ds []time.Duration
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
			t.Fatal(err)
		}
		var req []Signer
		for _, r := range d.Required {
			req = append(req, Signer{Issuer: r.Issuer, Subject: r.Subject})
		}
		all := []Signer{{IssuerPattern: d.RI, SubjectPattern: d.RP}}
		t0 := time.Now()
		a := Prove(context.Background(), Question{Live: []Entry{{d.Issuer, d.Subject}}, Required: req, Allowed: all})
		el := time.Since(t0)
		ds = append(ds, el)
		if len(a.Undecided) > 0 || len(a.Invalid) > 0 || len(a.Vacuous) > 0 {
			t.Log(d.ID, a.Undecided, a.Invalid, a.Vacuous)
		}
		if el > 20*time.Millisecond {
			t.Log(d.ID, el, a.States)
		}
		if (len(a.Missing) == 0) != d.AR {
			t.Log("MISSING", d.ID, d.AR, a.Missing, d.Issuer, d.Subject)
		}
		if (a.TooWide == nil) != (d.Witness == nil) {
			t.Log("WIDE", d.ID, d.Class, d.Witness, a.TooWide, "\n", d.Issuer, d.Subject, "\n", d.RP)
		}
		if testing.Verbose() && a.TooWide != nil {
			t.Log(d.ID, a.TooWide, a.Loose, d.Subject)
		}
	}
	sort.Slice(ds, func(i, j int) bool { return ds[i] < ds[j] })
	t.Log(len(ds), ds[len(ds)/2], ds[len(ds)*99/100], ds[len(ds)-1])
}
