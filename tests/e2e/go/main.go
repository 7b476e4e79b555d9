// A client program on franz-go for the end-to-end tests: franz BOOTSTRAP SCENARIO TOPIC.
// It ends with 0 when everything was as expected and says on stderr what was not.
package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// A run hands a scenario what it needs.
type run struct {
	ctx       context.Context
	bootstrap string
	topic     string
	admin     *kadm.Client
}

var scenarios = map[string]func(*run) error{
	"codecs":     codecs,
	"idempotent": idempotent,
	"recreated":  recreated,
	"sessions":   sessions,
	"seek":       seek,
}

func main() {
	if err := start(); err != nil {
		fmt.Fprintln(os.Stderr, "franz:", err)
		os.Exit(1)
	}
}

func start() error {
	if len(os.Args) != 4 || scenarios[os.Args[2]] == nil {
		return fmt.Errorf("usage: franz BOOTSTRAP SCENARIO TOPIC")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	r := &run{ctx: ctx, bootstrap: os.Args[1], topic: os.Args[3]}
	client, err := r.client()
	if err != nil {
		return err
	}
	defer client.Close()
	r.admin = kadm.NewClient(client)
	return scenarios[os.Args[2]](r)
}

func (r *run) client(more ...kgo.Opt) (*kgo.Client, error) {
	options := append([]kgo.Opt{kgo.SeedBrokers(r.bootstrap), kgo.RecordPartitioner(kgo.ManualPartitioner())}, more...)
	return kgo.NewClient(options...)
}

func (r *run) create(partitions int32) error {
	_, err := r.admin.CreateTopic(r.ctx, partitions, 1, nil, r.topic)
	return err
}

// produce writes values round robin over the partitions, in order, and checks their offsets.
func (r *run) produce(values [][]byte, partitions int32, more ...kgo.Opt) error {
	client, err := r.client(more...)
	if err != nil {
		return err
	}
	defer client.Close()
	records := make([]*kgo.Record, len(values))
	for i, value := range values {
		records[i] = &kgo.Record{Topic: r.topic, Value: value, Partition: int32(i) % partitions}
	}
	return client.ProduceSync(r.ctx, records...).FirstErr()
}

// consume reads from the beginning until count records have come, by partition.
func (r *run) consume(partitions int32, count int, more ...kgo.Opt) (map[int32][]*kgo.Record, error) {
	offsets := map[int32]kgo.Offset{}
	for p := range partitions {
		offsets[p] = kgo.NewOffset().AtStart()
	}
	client, err := r.client(append(more, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{r.topic: offsets}))...)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	return poll(r.ctx, client, count)
}

func poll(ctx context.Context, client *kgo.Client, count int) (map[int32][]*kgo.Record, error) {
	found := map[int32][]*kgo.Record{}
	for n := 0; n < count; {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return nil, fmt.Errorf("fetch after %d of %d records: %w", n, count, err)
		}
		fetches.EachRecord(func(record *kgo.Record) {
			found[record.Partition] = append(found[record.Partition], record)
			n++
		})
	}
	return found, nil
}

func values(label string, count int) [][]byte {
	all := make([][]byte, count)
	for i := range all {
		all[i] = bytes.Repeat(fmt.Appendf(nil, "%s %d ", label, i), 10)
	}
	return all
}

// expect compares one partition's records with values, offsets from 0.
func expect(found []*kgo.Record, expected [][]byte) error {
	if len(found) != len(expected) {
		return fmt.Errorf("%d records instead of %d", len(found), len(expected))
	}
	for i, record := range found {
		if !bytes.Equal(record.Value, expected[i]) || record.Offset != int64(i) {
			return fmt.Errorf("record %d at offset %d is %q, expected %q", i, record.Offset, record.Value, expected[i])
		}
	}
	return nil
}

func codecs(r *run) error {
	if err := r.create(1); err != nil {
		return err
	}
	all := [][]byte{}
	for name, codec := range map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
		"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	} {
		batch := values(name, 300)
		if err := r.produce(batch, 1, kgo.ProducerBatchCompression(codec)); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, batch...)
	}
	found, err := r.consume(1, len(all))
	if err != nil {
		return err
	}
	return expect(found[0], all)
}

// idempotent: many small batches in flight, each partition in order.
func idempotent(r *run) error {
	if err := r.create(3); err != nil {
		return err
	}
	all := values("i", 9000)
	if err := r.produce(all, 3, kgo.ProducerBatchMaxBytes(4096), kgo.ProducerLinger(0)); err != nil {
		return err
	}
	found, err := r.consume(3, len(all))
	if err != nil {
		return err
	}
	for p := range 3 {
		mine := [][]byte{}
		for i := p; i < len(all); i += 3 {
			mine = append(mine, all[i])
		}
		if err := expect(found[int32(p)], mine); err != nil {
			return fmt.Errorf("partition %d: %w", p, err)
		}
	}
	return nil
}

// recreated: a consumer that holds the id of a deleted topic never sees the new one's records by mistake.
func recreated(r *run) error {
	if err := r.create(1); err != nil {
		return err
	}
	if err := r.produce(values("old", 100), 1); err != nil {
		return err
	}
	before, err := r.topicID()
	if err != nil {
		return err
	}
	deleted, err := r.admin.DeleteTopics(r.ctx, r.topic)
	if err != nil || deleted[r.topic].Err != nil {
		return fmt.Errorf("delete: %w, %w", err, deleted[r.topic].Err)
	}
	for {
		err := r.create(1)
		if err == nil {
			break
		}
		if err != kerr.TopicAlreadyExists || r.ctx.Err() != nil {
			return fmt.Errorf("create again: %w", err)
		}
	}
	// Apache Kafka's metadata follows a little later than its replies.
	for after := before; after == before; {
		if after, err = r.topicID(); err != nil {
			return fmt.Errorf("id of the new topic: %w", err)
		}
	}
	fresh := values("new", 50)
	if err := r.produce(fresh, 1); err != nil {
		return err
	}
	found, err := r.consume(1, len(fresh))
	if err != nil {
		return err
	}
	return expect(found[0], fresh)
}

func (r *run) topicID() (kadm.TopicID, error) {
	for {
		details, err := r.admin.ListTopics(r.ctx, r.topic)
		if err != nil {
			return kadm.TopicID{}, err
		}
		if detail := details[r.topic]; detail.Err == nil {
			return detail.ID, nil
		} else if r.ctx.Err() != nil {
			return kadm.TopicID{}, detail.Err
		}
	}
}

// sessions: many partitions of which few change, so that incremental fetch sessions carry the reading.
func sessions(r *run) error {
	const partitions = 50
	if err := r.create(partitions); err != nil {
		return err
	}
	offsets := map[int32]kgo.Offset{}
	for p := range int32(partitions) {
		offsets[p] = kgo.NewOffset().AtStart()
	}
	consumer, err := r.client(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{r.topic: offsets}), kgo.FetchMaxWait(5*time.Second))
	if err != nil {
		return err
	}
	defer consumer.Close()
	producer, err := r.client()
	if err != nil {
		return err
	}
	defer producer.Close()
	for i := range 200 {
		record := &kgo.Record{Topic: r.topic, Partition: int32(i * 7 % partitions), Value: fmt.Appendf(nil, "%d", i)}
		if err := producer.ProduceSync(r.ctx, record).FirstErr(); err != nil {
			return err
		}
		found, err := poll(r.ctx, consumer, 1)
		if err != nil {
			return err
		}
		got := found[record.Partition]
		if len(got) != 1 || !bytes.Equal(got[0].Value, record.Value) {
			return fmt.Errorf("round %d: expected one record in partition %d, got %v", i, record.Partition, found)
		}
	}
	return nil
}

func seek(r *run) error {
	if err := r.create(1); err != nil {
		return err
	}
	client, err := r.client()
	if err != nil {
		return err
	}
	defer client.Close()
	base := time.UnixMilli(1_700_000_000_000)
	for i := range 50 {
		stamp := base.Add(time.Duration(i) * time.Second)
		record := &kgo.Record{Topic: r.topic, Value: []byte("v"), Timestamp: stamp}
		if err := client.ProduceSync(r.ctx, record).FirstErr(); err != nil {
			return err
		}
	}
	for millis, offset := range map[int64]int64{0: 0, 10_000: 10, 10_001: 11, 49_000: 49, 60_000: 50} {
		listed, err := r.admin.ListOffsetsAfterMilli(r.ctx, base.UnixMilli()+millis, r.topic)
		if err != nil {
			return err
		}
		found, _ := listed.Lookup(r.topic, 0)
		if found.Err != nil || found.Offset != offset {
			return fmt.Errorf("offset after %d ms is %d (%v), expected %d", millis, found.Offset, found.Err, offset)
		}
	}
	return nil
}
