// Package inventory lists the blobs of a storage account: what the initial scan delivers. It knows no service and no
// Kafka. A Store answers single requests, Walk decides which to make, and Progress says what is left.
//
// A Progress is a pure value. Walk reports everything it does as Steps, and only applying a Step changes a Progress.
// The caller stores the Progress in the transaction of the rows (I1). After a crash, Walk continues from the Progress
// that was stored last. It lists a page again if the step of that page was not stored, and no page twice otherwise.
//
// A Progress is bounded: it has at most as many open ranges as there were requests at a time, and no entry for a range
// that is done. A range resumes by name. The markers of the service are opaque and may expire, so a Progress stores
// them only where there is no name to resume by: behind pages without names, and between pages of containers. They are
// hints. Where the service rejects one, the range resumes by name, and the containers from the start.
//
// # Order of names
//
// The service lists names in ascending order, but does not say how it orders names outside ASCII. The package relies on
// one rule: names compare by their first difference, an ASCII character sorts by its code, and any other character
// sorts after ASCII. The orders of UTF-8, UTF-16 and UTF-32 all agree with it. Therefore a range ends only at an ASCII
// bound, and Walk rejects a page that breaks the rule.
package inventory
