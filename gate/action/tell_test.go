package action

import (
	"os"
	"path/filepath"
	"testing"
)

// The report is given to the owner of the workspace, and nothing else is: whoever
// owns that can put a link in the place of the file while it is being written.
func TestOwnerIsGivenToTheOpenFile(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can give files away")
	}
	folder := t.TempDir()
	const somebody = 12345
	if err := os.Chown(folder, somebody, somebody); err != nil {
		t.Fatal(err)
	}
	victim := filepath.Join(t.TempDir(), "victim")
	if err := os.WriteFile(victim, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.CreateTemp(folder, "report-*")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := os.Remove(file.Name()); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(victim, file.Name()); err != nil {
		t.Fatal(err)
	}
	if err := ownAs(folder, file); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{"victim": 0, "file": somebody} {
		info, err := os.Stat(victim)
		if name == "file" {
			info, err = file.Stat()
		}
		if err != nil {
			t.Fatal(err)
		}
		if uid, _, ok := ownerOf(info); ok && uid != want {
			t.Errorf("the %s is owned by %d, want %d", name, uid, want)
		}
	}
}
