package signature

import (
	"encoding/json"
	"fmt"
)

// descriptor is one entry of a manifest or index. It is read leniently: one
// that is broken must not hide the others, and nothing in it is believed.
type descriptor struct {
	MediaType   string
	Digest      string
	Size        int64
	Annotations map[string]string
}

// readDescriptor keeps what is well-formed.
func readDescriptor(raw json.RawMessage) descriptor {
	var d descriptor
	members, err := strictObject(raw)
	if err != nil {
		return d
	}
	d.MediaType, _ = text(members, "mediaType")
	d.Digest, _ = text(members, "digest")
	_ = json.Unmarshal(members["size"], &d.Size)
	if annotations, err := object(members, "annotations"); err == nil {
		d.Annotations = make(map[string]string, len(annotations))
		for name := range annotations {
			if value, err := text(annotations, name); err == nil {
				d.Annotations[name] = value
			}
		}
	}
	return d
}

// manifest is what is needed of an image manifest or index.
type manifest struct {
	config  descriptor
	layers  []descriptor
	index   []descriptor
	subject string
}

// readManifest reads an OCI or Docker manifest, or index.
func readManifest(body []byte) (manifest, error) {
	var m manifest
	members, err := strictObject(body)
	if err != nil {
		return m, err
	}
	lists := 0
	for name, into := range map[string]*[]descriptor{"layers": &m.layers, "manifests": &m.index} {
		raw, ok := members[name]
		if !ok {
			continue
		}
		lists++
		var entries []json.RawMessage
		if err := json.Unmarshal(raw, &entries); err != nil {
			return m, fmt.Errorf("expected %s to be a list: %w", name, err)
		}
		for _, entry := range entries {
			*into = append(*into, readDescriptor(entry))
		}
	}
	if lists != 1 {
		return m, fmt.Errorf("expected a manifest with layers or with manifests, found %d of the two", lists)
	}
	if raw, ok := members["config"]; ok {
		m.config = readDescriptor(raw)
	}
	if raw, ok := members["subject"]; ok {
		m.subject = readDescriptor(raw).Digest
	}
	return m, nil
}
