package signature

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"flux-verify-gate/gate"
)

// layout is an OCI image layout on disk (OCI image specification 1.1). Nothing
// outside of its directory is read.
type layout struct {
	root *os.Root
}

// cosignKind is the annotation that cosign save writes instead of a tag.
const (
	refName        = "org.opencontainers.image.ref.name"
	cosignKind     = "kind"
	cosignKindSigs = "dev.cosignproject.cosign/sigs"
)

func openLayout(dir string) (*layout, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &layout{root: root}, nil
}

func (l *layout) close() error { return l.root.Close() }

// read reads one regular file of at most limit bytes.
func (l *layout) read(path string, limit int64) ([]byte, error) {
	info, err := l.root.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errAbsent
	}
	if err != nil {
		return nil, &contentError{err.Error()}
	}
	if !info.Mode().IsRegular() {
		return nil, &contentError{fmt.Sprintf("expected %s to be a file", path)}
	}
	if info.Size() > limit {
		return nil, &limitError{fmt.Sprintf("expected at most %d bytes, found %d", limit, info.Size())}
	}
	file, err := l.root.Open(path)
	if err != nil {
		return nil, &contentError{err.Error()}
	}
	defer file.Close()
	body, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err != nil {
		return nil, &contentError{err.Error()}
	}
	if int64(len(body)) > limit {
		return nil, &limitError{fmt.Sprintf("expected at most %d bytes, found more", limit)}
	}
	return body, nil
}

func (l *layout) artifact(ctx context.Context, digest string) (content, error) {
	if _, err := l.read("index.json", maxIndex); err != nil {
		if errors.Is(err, errAbsent) {
			return content{}, &contentError{"expected an OCI layout, found no index.json"}
		}
		return content{}, err
	}
	return l.manifest(ctx, digest, maxIndex)
}

func (l *layout) manifest(ctx context.Context, digest string, limit int64) (content, error) {
	body, err := l.blob(ctx, digest, limit)
	if err != nil {
		return content{}, err
	}
	return content{body: body, mediaType: mediaTypeOf(body, nil), digest: digest}, nil
}

func (l *layout) blob(ctx context.Context, digest string, limit int64) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if !gate.WellFormedDigest(digest) {
		return nil, &contentError{fmt.Sprintf("expected a sha256 digest, found %q", digest)}
	}
	body, err := l.read("blobs/sha256/"+strings.TrimPrefix(digest, "sha256:"), limit)
	if err != nil {
		return nil, err
	}
	return body, checkDigest(body, digest)
}

// entries are the descriptors of index.json.
func (l *layout) entries() (referrerList, error) {
	body, err := l.read("index.json", maxIndex)
	if err != nil {
		return referrerList{}, err
	}
	return readIndex(bytes.NewReader(body))
}

// tagged says that an entry carries a tag, alone or behind a repository's name.
func tagged(entry descriptor, tag string) bool {
	name := entry.Annotations[refName]
	return name == tag || strings.HasSuffix(name, ":"+tag)
}

// referrers are the entries whose manifest names digest as its subject, and
// those of the index under the fallback tag.
func (l *layout) referrers(ctx context.Context, digest string) (referrerList, error) {
	entries, err := l.entries()
	if err != nil {
		return referrerList{}, err
	}
	list := referrerList{truncated: entries.truncated}
	for _, entry := range entries.descriptors {
		if entry.Digest == digest {
			continue
		}
		found, err := l.manifest(ctx, entry.Digest, maxManifest)
		if tagged(entry, tagOf(digest)) {
			if err != nil {
				return referrerList{}, err
			}
			fallback, err := readIndex(bytes.NewReader(found.body))
			if err != nil {
				return referrerList{}, err
			}
			list.descriptors = append(list.descriptors, fallback.descriptors...)
			if list.truncated == nil {
				list.truncated = fallback.truncated
			}
			continue
		}
		if err != nil {
			// Whatever it is, nothing says that it refers to this artifact.
			continue
		}
		if manifest, err := readManifest(found.body); err == nil && manifest.subject == digest {
			list.descriptors = append(list.descriptors, entry)
		}
	}
	if len(list.descriptors) > maxCandidates {
		list.descriptors = list.descriptors[:maxCandidates]
		list.truncated = tooMany()
	}
	return list, nil
}

// signatures are the manifests under the .sig tag, and those that cosign save
// marks as signatures.
func (l *layout) signatures(ctx context.Context, digest string) ([]content, error) {
	entries, err := l.entries()
	if err != nil {
		return nil, err
	}
	var all []content
	for _, entry := range entries.descriptors {
		if !tagged(entry, signatureTagOf(digest)) && entry.Annotations[cosignKind] != cosignKindSigs {
			continue
		}
		found, err := l.manifest(ctx, entry.Digest, maxIndex)
		if err != nil {
			return nil, err
		}
		all = append(all, found)
	}
	return all, nil
}

// neighbours are the indexes in index.json.
func (l *layout) neighbours(ctx context.Context) []content {
	entries, err := l.entries()
	if err != nil {
		return nil
	}
	var all []content
	for _, entry := range entries.descriptors {
		if len(all) == maxNeighbours {
			break
		}
		if found, err := l.manifest(ctx, entry.Digest, maxManifest); err == nil {
			all = append(all, found)
		}
	}
	return all
}
