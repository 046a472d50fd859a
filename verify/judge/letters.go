package judge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"strconv"

	"github.com/twmb/franz-go/pkg/kerr"

	"blobfeed/internal/plain"
	"blobfeed/internal/setup"
	"blobfeed/source"
	"blobfeed/verify"
)

// letters are the dead letters of the bridge. Events and bytes of the feed that they hold need not be in the topic.
type letters struct {
	lettersReport
	at    map[string][]letter // by position; several if it was cut into parts more than once
	parts int64               // records, each once
}

// letter is put together from its parts, one record each.
type letter struct {
	content string
	parts   []part
}

// part is the content of a record. Of the bytes of a chunk, only the sum is kept.
type part struct {
	offset int64
	size   int64
	sum    uint64
	event  []byte
}

// maxParts is more than any chunk needs. The number comes from a header that anybody can write.
const maxParts = 1 << 20

var partSeed = maphash.MakeSeed()

// letters reads the dead-letter topic. Without BRIDGE_ON_ERROR=dead_letter, permission to read it may be missing.
func (v *verification) letters(ctx context.Context) (*letters, error) {
	l := &letters{at: map[string][]letter{}}
	names := []string{v.Name}
	if v.state == nil { // a replay may have written the topic
		names = append(names, setup.ReplayName(v.Name, v.Topic))
	}
	for _, name := range names {
		t, err := v.cluster.open(ctx, plain.DeadLetterTopic(name))
		if errors.Is(err, errNoTopic) || errors.Is(err, kerr.TopicAuthorizationFailed) && v.Topics.DeadLetter == "" {
			continue
		}
		if err != nil {
			return nil, err
		}
		l.Topic = t.name
		if err := t.readAll(ctx, func(r verify.Record) bool { l.add(&r); return true }); err != nil {
			return nil, err
		}
	}
	if v.state == nil || v.state.Frontier.Born != 0 || !v.Kafka.Transactional {
		return l, nil // a reset forgets the counts, and without transactions a record may not be counted
	}
	now, err := v.cluster.state(ctx, v.state.topic)
	if err == nil && now != nil && now.Frontier != nil {
		l.Others = max(0, l.parts-counts(now).DeadLettered)
	}
	return l, err
}

// add adds a record. After a crash or a seek the topic may have it twice.
func (l *letters) add(r *verify.Record) {
	var n, of int
	offset, err := strconv.ParseInt(string(r.Header("offset")), 10, 64)
	_, perr := fmt.Sscanf(string(r.Header("part")), "%d/%d", &n, &of)
	if err != nil || perr != nil || n < 1 || n > of || of > maxParts {
		return // not written by the bridge
	}
	x := l.of(string(r.Key), string(r.Header("content")), of)
	if x.parts[n-1].sum == 0 {
		l.parts++
	}
	p := part{offset: offset, size: int64(len(r.Value)), sum: maphash.Bytes(partSeed, r.Value)}
	if x.content == "event" {
		p.event = r.Value
	}
	x.parts[n-1] = p
}

func (l *letters) of(position, content string, parts int) *letter {
	same := l.at[position]
	for i := range same {
		if same[i].content == content && len(same[i].parts) == parts {
			return &same[i]
		}
	}
	l.Letters++
	l.at[position] = append(same, letter{content, make([]part, parts)})
	return &l.at[position][len(same)]
}

// event reports whether a letter has the event of the feed at a position.
func (l *letters) event(pos source.Position, ev *source.Event) bool {
	if len(l.at) == 0 {
		return false
	}
	for _, x := range l.at[pos.String()] {
		var text []byte
		for _, p := range x.parts {
			text = append(text, p.event...)
		}
		var kept struct {
			ID string `json:"event_id"`
		}
		if x.content == "event" && json.Unmarshal(text, &kept) == nil && kept.ID == ev.ID {
			l.Events++
			return true
		}
	}
	return false
}

// covers returns nil if a letter has all bytes that a damaged chunk loses at a position, and other damage as an error.
func (l *letters) covers(
	ctx context.Context, feed *source.Feed, pos source.Position, d *source.DamageError, loss source.Loss,
) error {
	if l.Topic == "" || d.Kind != source.BadBytes {
		return d
	}
	for _, x := range l.at[pos.String()] {
		at := loss.From
		for _, p := range x.parts {
			if x.content != "chunk" || p.offset != at {
				break
			}
			raw := make([]byte, p.size)
			n, err := feed.ReadAt(ctx, loss.Blob, raw, at)
			if err != nil {
				return fmt.Errorf("reading %s at %d: %w", loss.Blob, at, err)
			}
			if int64(n) < p.size || maphash.Bytes(partSeed, raw) != p.sum {
				break
			}
			at += p.size
		}
		if at == loss.To {
			l.Places++
			l.Bytes += loss.To - loss.From
			return nil
		}
	}
	return fmt.Errorf("%w; topic %s does not have these bytes", d, l.Topic)
}
