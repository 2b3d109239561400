// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package atomicdir

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/google/go-cmp/cmp"
)

func TestWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "set-0")
	d := New(path, "config")

	type want struct {
		changed     bool
		content     string
		generations int
	}
	steps := []struct {
		reason string
		write  string
		want   want
	}{
		{reason: "The first write makes the directory.", write: "a", want: want{changed: true, content: "a", generations: 1}},
		{reason: "The same content changes nothing.", write: "a", want: want{content: "a", generations: 1}},
		{reason: "The previous generation is kept.", write: "b", want: want{changed: true, content: "b", generations: 2}},
		{reason: "Only one previous generation is kept.", write: "c", want: want{changed: true, content: "c", generations: 2}},
		{reason: "A file can become empty.", write: "", want: want{changed: true, content: "", generations: 2}},
	}
	for _, s := range steps {
		changed, err := d.Write([]byte(s.write))
		if err != nil {
			t.Fatalf("\n%s\nWrite(%q): %v", s.reason, s.write, err)
		}
		b, err := os.ReadFile(filepath.Join(path, "config"))
		if err != nil {
			t.Fatalf("\n%s\nReadFile(...): %v", s.reason, err)
		}
		got := want{changed: changed, content: string(b), generations: len(generations(t, path))}
		if diff := cmp.Diff(s.want, got, cmp.AllowUnexported(want{})); diff != "" {
			t.Errorf("\n%s\nWrite(%q): -want, +got:\n%s", s.reason, s.write, diff)
		}
	}
}

func TestWriteFiles(t *testing.T) {
	path := t.TempDir()
	d := New(path, "serve", "ingress", "egress")

	steps := []struct {
		reason  string
		write   map[string]string
		changed bool
		want    map[string]string
	}{
		{
			reason: "Files appear together.", changed: true,
			write: map[string]string{"serve": "a", "ingress": "b"},
			want:  map[string]string{"serve": "a", "ingress": "b"},
		},
		{
			reason: "Files that are not in the call stay.", changed: true,
			write: map[string]string{"egress": "c"},
			want:  map[string]string{"serve": "a", "ingress": "b", "egress": "c"},
		},
		{
			reason: "The same content changes nothing.",
			write:  map[string]string{"ingress": "b", "egress": "c"},
			want:   map[string]string{"serve": "a", "ingress": "b", "egress": "c"},
		},
		{
			reason: "One changed file is enough.", changed: true,
			write: map[string]string{"serve": "a", "egress": "d"},
			want:  map[string]string{"serve": "a", "ingress": "b", "egress": "d"},
		},
	}
	for _, s := range steps {
		files := make(map[string][]byte)
		for name, content := range s.write {
			files[name] = []byte(content)
		}
		changed, err := d.WriteFiles(files)
		if err != nil {
			t.Fatalf("\n%s\nWriteFiles(...): %v", s.reason, err)
		}
		if changed != s.changed {
			t.Errorf("\n%s\nWriteFiles(...) = %t, want %t", s.reason, changed, s.changed)
		}
		// A new Dir, as after a restart of the agent.
		d = New(path, "serve", "ingress", "egress")
		got := make(map[string]string)
		for _, name := range []string{"serve", "ingress", "egress"} {
			b, err := d.ReadFile(name)
			if err != nil {
				t.Fatalf("\n%s\nReadFile(%q): %v", s.reason, name, err)
			}
			if b != nil {
				got[name] = string(b)
			}
		}
		if diff := cmp.Diff(s.want, got); diff != "" {
			t.Errorf("\n%s\n-want, +got:\n%s", s.reason, diff)
		}
	}
}

func TestReadNone(t *testing.T) {
	b, err := New(filepath.Join(t.TempDir(), "none"), "config").Read()
	if err != nil {
		t.Fatalf("Read(): %v", err)
	}
	if b != nil {
		t.Errorf("Read() = %q, want nil for a file that was never written", b)
	}
}

func TestRestart(t *testing.T) {
	path := t.TempDir()
	if _, err := New(path, "config").Write([]byte("a")); err != nil {
		t.Fatalf("Write(...): %v", err)
	}
	// A crash between two steps leaves these behind.
	if err := os.Symlink("nowhere", filepath.Join(path, newLink)); err != nil {
		t.Fatalf("Symlink(...): %v", err)
	}
	if err := os.Mkdir(filepath.Join(path, generation+"stale"), 0o700); err != nil {
		t.Fatalf("Mkdir(...): %v", err)
	}

	d := New(path, "config")
	got, err := d.Read()
	if err != nil {
		t.Fatalf("Read(): %v", err)
	}
	if diff := cmp.Diff("a", string(got)); diff != "" {
		t.Errorf("A second Dir must read what the first one wrote: -want, +got:\n%s", diff)
	}
	if _, err := d.Write([]byte("b")); err != nil {
		t.Fatalf("Write(...): %v", err)
	}
	if diff := cmp.Diff(2, len(generations(t, path))); diff != "" {
		t.Errorf("Stale generations must be removed: -want, +got:\n%s", diff)
	}
}

// TestFailedWrite checks that a failed write, as on a full volume, leaves nothing behind.
// Otherwise the volume would stay full.
func TestFailedWrite(t *testing.T) {
	path := t.TempDir()
	d := New(path, "config")
	for _, data := range []string{"a", "b"} {
		if _, err := d.Write([]byte(data)); err != nil {
			t.Fatalf("Write(%q): %v", data, err)
		}
	}
	// No Linux file system allows names this long (NAME_MAX).
	impossible := map[string][]byte{strings.Repeat("x", 256): []byte("c")}
	for range 3 {
		if _, err := d.WriteFiles(impossible); err == nil {
			t.Fatal("WriteFiles(...): want an error")
		}
	}
	if diff := cmp.Diff(1, len(generations(t, path))); diff != "" {
		t.Errorf("Only the current generation must stay: -want, +got:\n%s", diff)
	}
	if _, err := d.Write([]byte("d")); err != nil {
		t.Fatalf("Write(...): %v", err)
	}
	got, err := d.Read()
	if err != nil {
		t.Fatalf("Read(): %v", err)
	}
	if diff := cmp.Diff("d", string(got)); diff != "" {
		t.Errorf("The next write must succeed: -want, +got:\n%s", diff)
	}
}

// TestContainerboot watches the directory as containerboot does, which handles only events for
// ..data.
func TestContainerboot(t *testing.T) {
	path := t.TempDir()
	d := New(path, "cap-106.hujson")
	if _, err := d.Write([]byte("a")); err != nil {
		t.Fatalf("Write(...): %v", err)
	}

	w, err := fsnotify.NewWatcher()
	if err != nil {
		t.Fatalf("NewWatcher(): %v", err)
	}
	defer func() {
		if err := w.Close(); err != nil {
			t.Errorf("Close(): %v", err)
		}
	}()
	if err := w.Add(path); err != nil {
		t.Fatalf("Add(...): %v", err)
	}
	if _, err := d.Write([]byte("b")); err != nil {
		t.Fatalf("Write(...): %v", err)
	}

	deadline := time.After(time.Minute)
	for {
		select {
		case ev := <-w.Events:
			if ev.Name != filepath.Join(path, dataLink) {
				continue
			}
			b, err := os.ReadFile(filepath.Join(path, "cap-106.hujson"))
			if err != nil {
				t.Fatalf("ReadFile(...): %v", err)
			}
			if diff := cmp.Diff("b", string(b)); diff != "" {
				t.Errorf("The new content must be readable when the event arrives: -want, +got:\n%s", diff)
			}
			return
		case <-deadline:
			t.Fatal("No event for ..data")
		}
	}
}

func generations(t *testing.T, path string) []string {
	t.Helper()
	entries, err := os.ReadDir(path)
	if err != nil {
		t.Fatalf("ReadDir(...): %v", err)
	}
	var out []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), generation) {
			out = append(out, e.Name())
		}
	}
	return out
}
