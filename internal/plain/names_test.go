package plain

import "testing"

// The addresses that Azure, Azurite and a proxy have.
func TestAccountName(t *testing.T) {
	for _, tc := range []struct{ host, path, want string }{
		{"acct.blob.core.windows.net", "", "acct"},
		{"ACCT.Blob.core.windows.net", "/$blobchangefeed", "acct"},
		{"acct.z12.dfs.storage.azure.net", "", "acct"},
		{"acct-secondary.blob.core.windows.net", "", "acct"},
		{"dfs.blob.core.windows.net", "", "dfs"},
		{"127.0.0.1:10000", "/acct/$blobchangefeed", "acct"},
		{"127.0.0.1", "acct-secondary", "acct"},
		{"files.example.com", "", ""},
		{"files.example.com", "/$blobchangefeed", ""},
	} {
		if got := AccountName(tc.host, tc.path); got != tc.want {
			t.Errorf("%s %s: %q, want %q", tc.host, tc.path, got, tc.want)
		}
	}
}

// A key ends with equals signs, and lines may be joined by hand.
func TestConnectionPart(t *testing.T) {
	const connection = "AccountName=acct; AccountKey=a2V5cw==;BlobEndpoint=https://h/acct"
	for key, want := range map[string]string{"AccountName": "acct", "AccountKey": "a2V5cw==",
		"BlobEndpoint": "https://h/acct", "Account": ""} {
		if got := ConnectionPart(connection, key); got != want {
			t.Errorf("%s: %q, want %q", key, got, want)
		}
	}
}
