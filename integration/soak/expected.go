package soak

import "time"

// blocked is what the rules promise of a broker that answers nothing for ten minutes, or less. All others stay silent:
// each request takes until its timeout, so there are few errors, and after ten minutes the bridge has caught up in
// seconds.
var blocked = map[string]Expectation{
	"BridgeNoneReady": {Within: time.Minute, Clear: time.Minute, For: 5 * time.Minute,
		Why: "an instance that the group has not heard for SESSION_TIMEOUT, 10 s, is no member; " +
			"it notices when a heartbeat fails"},
	"BridgeUnready": {Within: time.Minute, Clear: time.Minute, For: 10 * time.Minute,
		Why: "as BridgeNoneReady; it fires only if the instance needs longer to come back than it took to leave"},
}
