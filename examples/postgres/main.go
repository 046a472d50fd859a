// Command postgres keeps an index of all blobs in PostgreSQL. The table blobs is always the state of the account at one
// moment, closed.resolved: changes wait in pending until every partition has a marker behind them.
//
// Records, their offsets and what they change are in one transaction, so a crash loses and doubles nothing. See
// README.md.
package main

import (
	"context"
	"encoding/json"
	"log"
	"os"
	"os/signal"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const schema = `
create table if not exists blobs (path text primary key, updated text not null, row jsonb not null);
create table if not exists pending ("partition" int, "offset" bigint, path text not null, updated text not null,
	row jsonb, primary key ("partition", "offset"));
create table if not exists progress ("partition" int primary key, next bigint not null,
	resolved text not null default '');
create or replace view closed as select min(resolved) as resolved from progress;`

// apply moves what every partition has promised from pending to blobs. Of a path, the last change counts.
const apply = `
with due as (delete from pending where updated <= (select resolved from closed) returning *),
	last as (select distinct on (path) * from due order by path, "offset" desc),
	gone as (delete from blobs using last where blobs.path = last.path and last.row is null)
insert into blobs select path, updated, row from last where row is not null
on conflict (path) do update set updated = excluded.updated, row = excluded.row`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, strings.Split(os.Getenv("KAFKA_BROKERS"), ","), os.Getenv("TOPIC")); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, brokers []string, topic string) error {
	db, err := pgx.Connect(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		return err
	}
	defer db.Close(context.Background())
	if _, err := db.Exec(ctx, schema); err != nil {
		return err
	}
	starts, err := offsets(ctx, db, brokers, topic)
	if err != nil {
		return err
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(brokers...),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), // else records of transactions that fail would count
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: starts}))
	if err != nil {
		return err
	}
	defer cl.Close()
	log.Printf("reading %d partitions", len(starts))
	for {
		fetched := cl.PollFetches(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err := fetched.Err(); err != nil {
			return err
		}
		if err := store(ctx, db, fetched.Records()); err != nil {
			return err
		}
	}
}

// offsets returns where to continue in each partition: where the database is, and at its start if that is new.
func offsets(ctx context.Context, db *pgx.Conn, brokers []string, topic string) (map[int32]kgo.Offset, error) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	begins, err := kadm.NewClient(cl).ListStartOffsets(ctx, topic)
	if err != nil {
		return nil, err
	}
	at := map[int32]kgo.Offset{}
	for p, begin := range begins[topic] {
		// A row for each partition: none is closed before it has a marker.
		const add = `insert into progress values ($1, $2) on conflict ("partition") do update set next = progress.next returning next`
		var next int64
		if err := db.QueryRow(ctx, add, p, begin.Offset).Scan(&next); err != nil {
			return nil, err
		}
		at[p] = kgo.NewOffset().At(next)
	}
	return at, nil
}

// store writes records, how far they reach, and what they complete.
func store(ctx context.Context, db *pgx.Conn, records []*kgo.Record) error {
	var batch pgx.Batch
	for _, r := range records {
		var v struct {
			After    json.RawMessage
			Key      []string
			Updated  string
			Resolved string
		}
		if err := json.Unmarshal(r.Value, &v); err != nil {
			return err
		}
		if r.Key != nil {
			var row *string // null: the blob is deleted
			if text := string(v.After); text != "null" {
				row = &text
			}
			batch.Queue(`insert into pending values ($1, $2, $3, $4, $5) on conflict do nothing`, r.Partition, r.Offset,
				v.Key[0], v.Updated, row)
		}
		batch.Queue(`update progress set next = $2, resolved = greatest(resolved, $3) where "partition" = $1`, r.Partition,
			r.Offset+1, v.Resolved)
	}
	batch.Queue(apply)
	return pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error { return tx.SendBatch(ctx, &batch).Close() })
}
