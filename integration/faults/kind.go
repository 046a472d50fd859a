package faults

import "net/http"

// Kind is something that goes wrong.
type Kind int

// The kinds. None is the answer as it is.
const (
	None                  Kind = iota
	AuthenticationFailed       // 403
	BlobNotFound               // 404, of a blob that exists
	ContainerNotFound          // 404
	ContainerBeingDeleted      // 409
	ConditionNotMet            // 412
	InvalidRange               // 416, where there are bytes
	TooManyRequests            // 429, with Retry-After
	InternalError              // 500
	ServerBusy                 // 503
	ResetHead                  // the connection is reset before an answer
	ResetBody                  // the connection is reset within the body
	ShortBody                  // the body ends before its Content-Length
	SlowBody                   // the body trickles, then goes on
	StaleListing               // a listing is served again, though there is a newer one
	SmallPages                 // a listing comes in pages of one or two entries
	EmptyPage                  // a listing begins with a page that has nothing but a marker
	StalledHead                // no answer until the client gives up; with Options.Stalls
	StalledBody                // a part of the body, then nothing until the client gives up; with Options.Stalls
	kinds
)

// refusals are the answers that have a status, a code and a message, as Azure words them.
var refusals = map[Kind]struct {
	status        int
	code, message string
}{
	AuthenticationFailed: {http.StatusForbidden, "AuthenticationFailed", "Server failed to authenticate the request. " +
		"Make sure the value of Authorization header is formed correctly including the signature."},
	BlobNotFound:      {http.StatusNotFound, "BlobNotFound", "The specified blob does not exist."},
	ContainerNotFound: {http.StatusNotFound, "ContainerNotFound", "The specified container does not exist."},
	ContainerBeingDeleted: {http.StatusConflict, "ContainerBeingDeleted",
		"The specified container is being deleted. Try operation later."},
	ConditionNotMet: {http.StatusPreconditionFailed, "ConditionNotMet",
		"The condition specified using HTTP conditional header(s) is not met."},
	InvalidRange: {http.StatusRequestedRangeNotSatisfiable, "InvalidRange",
		"The range specified is invalid for the current size of the resource."},
	TooManyRequests: {http.StatusTooManyRequests, "TooManyRequests", "Too many requests."},
	InternalError: {http.StatusInternalServerError, "InternalError",
		"Server encountered an internal error. Please try again after some time."},
	ServerBusy: {http.StatusServiceUnavailable, "ServerBusy", "The server is busy."},
}

var names = map[Kind]string{
	ResetHead: "ResetHead", ResetBody: "ResetBody", ShortBody: "ShortBody", SlowBody: "SlowBody",
	StaleListing: "StaleListing",
	SmallPages:   "SmallPages", EmptyPage: "EmptyPage", StalledHead: "StalledHead", StalledBody: "StalledBody",
}

func (k Kind) String() string {
	if r, ok := refusals[k]; ok {
		return r.code
	}
	return names[k]
}

// kinds returns all kinds that a proxy with these options has.
func (o *Options) kinds() []Kind {
	var all []Kind
	for k := None + 1; k < kinds; k++ {
		stalls, signed := k == StalledHead || k == StalledBody, k == SmallPages || k == EmptyPage
		if (o.Stalls || !stalls) && (o.Key != "" || !signed) {
			all = append(all, k)
		}
	}
	return all
}

// suits reports whether a request of class c can have k.
func (k Kind) suits(c Class) bool {
	switch k {
	case BlobNotFound, InvalidRange:
		return c != Listing
	case StaleListing, SmallPages, EmptyPage:
		return c == Listing
	}
	return true
}
