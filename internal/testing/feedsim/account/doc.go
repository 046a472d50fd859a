// Package account simulates a storage account in memory: containers and blobs that change while others list them. An
// Account answers as an inventory.Store (Store) and over HTTP in the dialect of the blob service (Server), and writes
// the events of its changes into a simulated change feed (Publish), as late as a test likes. So a test can compare the
// table that a topic makes with the account.
//
// Names are listed in the order of their UTF-16 code units, which differs from that of Go's strings for some names: the
// service documents no order, and readers must not rely on one outside ASCII.
package account
