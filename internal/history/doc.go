// Package history knows the feed as time goes by: where a delivery starts, where a seek leads, which segment comes
// next, what retention has removed before it was delivered, and how far it is to the newest.
package history
