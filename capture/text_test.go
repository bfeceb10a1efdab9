package capture

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/gzip"
)

// TestText: an input that is JSON lines is no capture, and can be read as text from its start, also
// if it is compressed, or too long to be read ahead completely.
func TestText(t *testing.T) {
	line := []byte("{\"type\":\"finding\"}\n")
	text := bytes.Repeat(line, 1<<16)
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	z.Write(text)
	z.Close()
	for name, content := range map[string][]byte{"short": line, "plain": text, "gzip": packed.Bytes()} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		source, failed := OpenAll([]string{path, "missing"})
		if source != nil {
			t.Fatalf("%s: it is a capture", name)
		}
		texts, others := Texts(failed)
		if len(texts) != 1 || texts[0].Path != path || !errors.Is(texts[0], ErrFormat) || others == nil {
			t.Fatalf("%s: these are texts: %v, and this is the error for the others: %v; want this file, and an error for the missing one", name, texts, others)
		}
		want := text
		if name == "short" {
			want = line
		}
		if got, err := io.ReadAll(texts[0]); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes of %d, %v", name, len(got), len(want), err)
		}
		if err := texts[0].Close(); err != nil {
			t.Errorf("%s: closing the text fails: %v", name, err)
		}
	}
}
