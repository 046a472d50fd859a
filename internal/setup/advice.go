package setup

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"blobfeed/bridge/pipeline"
	"blobfeed/internal/config"
	"blobfeed/internal/history"
	"blobfeed/internal/kafka"
	"blobfeed/internal/plain"
	"blobfeed/internal/status"
	"blobfeed/offsets"
	"blobfeed/source"
)

// document is in an error about what a feed says of itself.
var document = regexp.MustCompile("parsing (idx|meta)/")

// Advised adds to an error of the engine what a user can do about it by settings and verbs, which the engine does not
// know. The client is that of the same settings.
func Advised(c *config.Config, client *kafka.Client, err error) error {
	var gap *history.GapError
	var event *pipeline.EventError
	var damage *source.DamageError
	copied := strings.HasPrefix(c.SourceURL, "file://")
	do := ""
	switch {
	case err == nil:
	case errors.As(err, &gap):
		do = status.LostHistory
		if gap.Recorded {
			do = "bridge scan --sweep repairs the topics; BRIDGE_ON_GAP=rescan does so by itself"
		}
		if gap.Recorded && copied { // there is no account to list
			do = "if there is a copy of what is missing, add it to the feed, and go back to it with bridge seek"
		}
	case errors.As(err, new(*pipeline.TooLargeError)):
		do = "raise it, or set BRIDGE_ON_ERROR=dead_letter"
	case errors.As(err, &event):
		do = fmt.Sprintf("bridge dump --at %d %s shows it; BRIDGE_ON_ERROR=dead_letter puts it into the dead-letter "+
			"topic and continues; runbook: BridgeEventRefused in docs/operations.md", event.Offset, event.Blob)
	case errors.As(err, &damage) && damage.Kind == source.BadBytes && c.OnError != "dead_letter":
		do = fmt.Sprintf("bridge dump --at %d %s shows whether the service's copy has it, too; "+
			"BRIDGE_ON_ERROR=dead_letter puts these bytes into the dead-letter topic and continues behind them; "+
			"runbook: BridgeDamage in docs/operations.md", damage.Offset, damage.Blob)
	case copied && errors.As(err, new(*json.SyntaxError)) && document.MatchString(err.Error()),
		copied && errors.Is(err, source.ErrNotFound) && strings.Contains(err.Error(), "reading idx/"):
		do = "copy the container $blobchangefeed again"
	case errors.Is(err, offsets.ErrLapsed):
		do = "if this happens again, raise BRIDGE_SESSION_TIMEOUT"
	default:
		do = client.Advice(err)
	}
	return plain.WithRemedy(err, do)
}
