package main

// The image holds nothing but this program, so the program brings the public certificate authorities (Mozilla's). Where
// the system has its own, or SSL_CERT_FILE names some, those count and these do not.
import _ "golang.org/x/crypto/x509roots/fallback"
