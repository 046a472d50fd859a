// Package storageaccount reads what the addresses and connection strings of a storage account say about it.
package storageaccount

import "strings"

// Name returns the account that the address of a blob service names: <account>.blob.<domain>, also with dfs, or
// <host>:<port>/<account>. The secondary endpoint is of the same account. It is "" for a domain of one's own.
func Name(host, path string) string {
	name, domain, _ := strings.Cut(strings.ToLower(host), ".")
	if d := "." + domain; !strings.Contains(d, ".blob.") && !strings.Contains(d, ".dfs.") {
		name, _, _ = strings.Cut(strings.Trim(path, "/"), "/")
	}
	if strings.HasPrefix(name, "$") {
		return "" // a container
	}
	return strings.TrimSuffix(name, "-secondary")
}

// Part returns the value of a key of a connection string, "" if it is missing.
func Part(connection, key string) string {
	for part := range strings.SplitSeq(connection, ";") {
		if name, value, _ := strings.Cut(strings.TrimSpace(part), "="); name == key {
			return value
		}
	}
	return ""
}
