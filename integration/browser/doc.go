// Package browser looks at the status page in Chromium, as people do. The scripts say what they see as JSON, and the
// tests judge it. Chromium is Debian's, and is installed if it is missing.
package browser
