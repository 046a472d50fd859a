// Package catalog knows the topics that a bridge writes records to: whose they are, that they exist and fit, which
// encoder they have, and how many partitions and which schema are pinned while keys must not move (I5).
//
// A Catalog is what an instance knows of its topics. Topics are those that one lease writes to. A topic that is new is
// admitted (the limit of topics, the size of the state, records of others), opened (created if it may be), and pinned.
package catalog
