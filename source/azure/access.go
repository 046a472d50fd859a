package azure

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"blobfeed/internal/plain"
	"blobfeed/source"
)

// Grant is the command that permits an identity to read the feed, and nothing more.
const Grant = "az role assignment create --role 'Storage Blob Data Reader' --assignee <identity> " +
	"--scope '<resource id of the account>/blobServices/default/containers/" + Container + "'"

// SettingError is an invalid field of a Config.
type SettingError struct{ Field, Problem string }

func (e *SettingError) Error() string { return e.Field + ": " + e.Problem }

// How a request proves who sends it.
const (
	byToken = iota
	byKey
	bySignature
	byNothing
)

func (c *Config) proof() int {
	switch c.Auth {
	case "shared_key":
		return byKey
	case "sas":
		return bySignature
	case "anonymous":
		return byNothing
	case "connection_string":
		if plain.ConnectionPart(c.ConnectionString, "SharedAccessSignature") != "" {
			return bySignature
		}
		return byKey
	}
	return byToken
}

// Signature returns the fields of the shared access signature, nil without one, and from when to when it is valid: zero
// where it does not say.
func (c *Config) Signature() (fields url.Values, from, to time.Time, err error) {
	if c.proof() != bySignature {
		return nil, from, to, nil
	}
	sas := c.SAS
	if c.Auth == "connection_string" {
		sas = plain.ConnectionPart(c.ConnectionString, "SharedAccessSignature")
	}
	if fields, err = url.ParseQuery(strings.TrimPrefix(strings.TrimSpace(sas), "?")); err != nil {
		return nil, from, to, errors.New("the signature is not a query string") // without it
	}
	return fields, signed(fields.Get("st")), signed(fields.Get("se")), nil
}

// signed parses a time of a signature; zero if it is none.
func signed(text string) (at time.Time) {
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04Z", time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t
		}
	}
	return at
}

// renewal says what to do about a signature that is not valid at this time; "" if it is, or does not say.
func (c *Config) renewal(where string, now time.Time) string {
	_, from, to, _ := c.Signature()
	switch {
	case !to.IsZero() && !now.Before(to):
		return "set " + where + " to a new signature: this one expired at " + to.Format(time.RFC3339)
	case now.Before(from):
		return "set " + where + " to another signature, or wait: this one is not valid before " +
			from.Format(time.RFC3339)
	}
	return ""
}

// rejection says what to do about a request that the service rejects for its credentials; "" if it does not.
func (c *Config) rejection(status int, code string) string {
	proof := c.proof()
	rejected := status == http.StatusUnauthorized || status == http.StatusForbidden ||
		code == "PublicAccessNotPermitted" || proof == byNothing && code == "ResourceNotFound"
	if status == http.StatusBadRequest || status == http.StatusNotFound && !rejected {
		return "check the account and the path in " + c.named("Endpoint")
	}
	if !rejected {
		return ""
	}
	where := c.named(cmp.Or(map[string]string{"sas": "SAS", "shared_key": "Key"}[c.Auth], "ConnectionString"))
	outdated := c.renewal(where, time.Now())
	const network = "if they are right, allow this machine in the network rules of the storage account"
	switch {
	case proof == byNothing:
		return "anonymous requests cannot read the feed: set " + c.named("Auth") + " to the way to authenticate"
	case code == "KeyBasedAuthenticationNotPermitted":
		return "the account rejects keys and signatures made with them: set " + c.named("Auth") +
			" to workload_identity, managed_identity, client_secret or default"
	case code == "AccountIsDisabled":
		return "enable the storage account"
	case proof == byKey && code == "AuthenticationFailed":
		return "set " + where + " to a key of this account: az storage account keys list --account-name <account>"
	case proof == byKey:
		return "check the account and its key in " + where + "; " + network
	case outdated != "":
		return outdated
	case proof == bySignature && code == "AuthorizationFailure":
		return "check " + where + ": it must be a signature of this account with the permissions r and l; " + network
	case proof == bySignature:
		return "set " + where + " to a signature that has not expired, of the container " + Container +
			" with the permissions r (read) and l (list)"
	case code == "InvalidAuthenticationInfo", code == "AuthenticationFailed":
		return "the token is of another tenant or cloud: set AZURE_TENANT_ID to the tenant of the storage account, " +
			"and AZURE_AUTHORITY_HOST for another cloud"
	case code == "AuthorizationFailure":
		return "allow this machine in the network rules of the storage account, or use its private endpoint"
	}
	return "give the identity the role Storage Blob Data Reader, and wait some minutes: " + Grant
}

// noFeed returns the error for a container that does not exist, with its address: that may be the mistake.
func (c *Config) noFeed(err error) error {
	none, emulated := source.ErrNoFeed, false
	answer, is := errors.AsType[*azcore.ResponseError](err)
	if is && answer.RawResponse != nil && answer.RawResponse.Request != nil {
		at := *answer.RawResponse.Request.URL
		path, _, _ := strings.Cut(at.Path, Container)
		none = fmt.Errorf("%w at %s://%s%s%s", none, at.Scheme, at.Host, path, Container)
		emulated = path != "/" // only Azurite's URLs have the account in their path
	}
	if emulated {
		return plain.WithRemedy(none, "Azurite writes no feed: upload one as its container, such as "+
			"testdata/real-2020 of the bridge's source: "+
			"az storage blob upload-batch --destination '"+Container+"' --source <directory>")
	}
	_, account, _ := endpoint(c.Endpoint)
	return plain.WithRemedy(none, fmt.Sprintf("if the address is right, enable the feed and wait some minutes: "+
		"az storage account blob-service-properties update --account-name %s --enable-change-feed true",
		cmp.Or(c.Account, account, "<account>")))
}

// unreachable says what to do about a request without an answer.
func (c *Config) unreachable(err error) string {
	if noTLS(err) {
		return "the server does not speak TLS: check the port in " + c.named("Endpoint") +
			", or begin it with http://"
	}
	if dns, is := errors.AsType[*net.DNSError](err); is {
		return fmt.Sprintf("check the account's name in %s, and the DNS of this machine: the name %.100q is unknown",
			c.named("Endpoint"), dns.Name)
	}
	return "check " + c.named("Endpoint") + ", the network and proxies on the way"
}

// noTLS reports whether the other side answered a TLS handshake with something else.
func noTLS(err error) bool {
	return errors.Is(err, http.ErrSchemeMismatch) || errors.As(err, new(tls.RecordHeaderError))
}

// explain maps errors of the service to those of source.Store, shortens the SDK's page-long errors, and says what to
// do.
func (c *Config) explain(err error) error {
	if bloberror.HasCode(err, bloberror.ContainerNotFound, bloberror.ContainerBeingDeleted) {
		return c.noFeed(err)
	}
	if bloberror.HasCode(err, bloberror.BlobNotFound) {
		return source.ErrNotFound
	}
	status, is := errors.AsType[*azcore.ResponseError](err)
	if rejectsVersion(err) {
		return plain.WithRemedy(fmt.Errorf("%w: it does not know the version of the header %s: %s", answered(status),
			versionHeader, serviceVersion), c.otherVersion())
	}
	if is {
		return plain.WithRemedy(answered(status), c.rejection(status.StatusCode, status.ErrorCode))
	}
	if where, is := errors.AsType[*url.Error](err); is && !errors.As(err, new(*tokenError)) {
		bare := url.Error{Op: where.Op, URL: redact(where.URL), Err: where.Err}
		text := strings.Replace(err.Error(), where.Error(), bare.Error(), 1)
		return plain.WithRemedy(&quietError{text: text, err: err}, c.unreachable(err))
	}
	return err
}

func answered(status *azcore.ResponseError) error {
	return errors.New("the storage service answered " + statusOf(status))
}

// statusOf returns the status and the code of an answer. Whoever answers may not be the service, and repeat what it was
// sent.
func statusOf(status *azcore.ResponseError) string {
	return strings.TrimSuffix(fmt.Sprintf("%d %s", status.StatusCode, plain.Code(status.ErrorCode)), " ")
}

// quietError is err without the query of the URL, which may be a signature.
type quietError struct {
	text string
	err  error
}

func (e *quietError) Error() string { return e.text }

func (e *quietError) Unwrap() error { return e.err }

// elsewhere is a container that has nothing to do with the feed. It need not exist.
const elsewhere = "$logs"

// ReadsMore reports whether the credentials may read other containers than the feed's. It asks for one line of a
// listing.
func (c *Config) ReadsMore(ctx context.Context) (bool, error) {
	cl, _, err := c.client(elsewhere)
	if err != nil {
		return false, err
	}
	_, err = cl.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{MaxResults: new(int32(1))}).NextPage(ctx)
	switch {
	case err == nil, bloberror.HasCode(err, bloberror.ContainerNotFound): // the service looks at rights first
		return true, nil
	case errors.As(err, new(*azcore.ResponseError)):
		return false, nil
	}
	return false, c.explain(err)
}
