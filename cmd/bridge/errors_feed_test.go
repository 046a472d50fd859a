package main

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"blobfeed/internal/testing/feedsim"
)

// copied makes the feed a copy of the real one, and changes it.
func copied(t *testing.T, change func(dir string) error) {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../../testdata/real-2020")); err != nil {
		t.Fatal(err)
	}
	if err := change(dir); err != nil {
		t.Fatal(err)
	}
	setenv(t, "BRIDGE_SOURCE_URL", "file://"+dir)
}

// damage damages a block of the copy, as in the quickstart.
func damage(dir string) error {
	f, err := os.OpenFile(filepath.Join(dir, "log/00/2020/05/27/1500/00000.avro"), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt([]byte("damage"), 3762)
	return errors.Join(err, f.Close())
}

// refusing is a storage service that has only this answer.
func refusing(status int, code string) mistake {
	return func(t *testing.T) []string {
		t.Helper()
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("x-ms-error-code", code)
			w.WriteHeader(status)
		}))
		t.Cleanup(s.Close)
		return set("SOURCE_URL="+s.URL+"/account SOURCE_AUTH=shared_key SOURCE_KEY=a2V5", "check")(t)
	}
}

var ofFeeds = map[string]mistake{
	"there is no change feed": func(t *testing.T) []string {
		return set("SOURCE_URL=file://"+t.TempDir(), "check")(t)
	},
	"Azurite writes no feed":                           refusing(http.StatusNotFound, "ContainerNotFound"),
	"opening the feed's directory: … correct the path": set("SOURCE_URL=file:///no/such/directory", "check"),
	"the copy is incomplete": func(t *testing.T) []string {
		set("")(t)
		copied(t, func(dir string) error { return os.RemoveAll(filepath.Join(dir, "idx")) })
		return []string{"check"}
	},
	"getting a token of Entra ID": func(t *testing.T) []string {
		return set("SOURCE_URL=https://myaccount.blob.core.windows.net SOURCE_AUTH=workload_identity", "check")(t)
	},
	"it is empty or not base64": set("SOURCE_URL=https://myaccount.blob.core.windows.net SOURCE_AUTH=shared_key "+
		"SOURCE_KEY=cut", "check"),
	"tokens of Entra ID are sent over https only": set("SOURCE_URL=http://127.0.0.1:10000/devstoreaccount1", "check"),
	"the signature expired at …": set("SOURCE_URL=http://127.0.0.1:1/a SOURCE_AUTH=sas "+
		"SOURCE_SAS=sp=rl&se=2025-01-01T00:00:00Z&sig=x", "check"),
	"the storage service answered …": refusing(http.StatusForbidden, "AuthorizationPermissionMismatch"),
	"the block can't be decoded": func(t *testing.T) []string {
		clusterFor(t)
		copied(t, damage)
		return runOnce
	},
	"history is lost: the next to read is …": func(t *testing.T) []string {
		clusterFor(t)
		dir := t.TempDir()
		setenv(t, "BRIDGE_SOURCE_URL", "file://"+dir)
		spec := feedsim.Spec{Segments: 2, EventsPerSegment: 20, LeaveOpen: true}
		write := func() {
			if err := feedsim.Write(t.Context(), feedsim.Dir(dir), spec, nil); err != nil {
				t.Fatal(err)
			}
		}
		write()
		runToEnd(t)
		spec.Segments = 5
		write()
		for _, hour := range []string{"0000", "0100", "0200"} { // as retention deletes them
			for _, part := range []string{"idx/segments/2026/01/01/", "log/00/2026/01/01/"} {
				if err := os.RemoveAll(filepath.Join(dir, part+hour)); err != nil {
					t.Fatal(err)
				}
			}
		}
		return runOnce
	},
}
