// A day's work of sarama: `sarama BOOTSTRAP TOPIC GROUP` (see test_day.py).
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/IBM/sarama"
)

const partitions = 6

var bootstrap, topic, group = []string{os.Args[1]}, os.Args[2], os.Args[3]

func config() *sarama.Config {
	config := sarama.NewConfig()
	config.Version = sarama.V3_6_0_0
	config.Producer.Return.Successes = true
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Partitioner = sarama.NewManualPartitioner
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Enable = false
	config.Consumer.Group.Heartbeat.Interval = 300 * time.Millisecond
	return config
}

func must(what string, err error) {
	if err != nil {
		log.Fatalf("%s: %v", what, err)
	}
}

func produce(first, count int) {
	producer, err := sarama.NewSyncProducer(bootstrap, config())
	must("producer", err)
	var messages []*sarama.ProducerMessage
	for number := first; number < first+count; number++ {
		text := sarama.StringEncoder(strconv.Itoa(number))
		messages = append(messages, &sarama.ProducerMessage{
			Topic: topic, Partition: int32(number % partitions), Key: text, Value: text,
		})
	}
	must("produce", producer.SendMessages(messages))
	must("close the producer", producer.Close())
}

// member is a consumer in the group that commits each record.
type member struct {
	mutex  sync.Mutex
	seen   map[int]bool
	owned  []int32
	cancel context.CancelFunc
	done   chan struct{}
}

func join() *member {
	joined, err := sarama.NewConsumerGroup(bootstrap, group, config())
	must("join", err)
	ctx, cancel := context.WithCancel(context.Background())
	m := &member{seen: map[int]bool{}, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(m.done)
		for ctx.Err() == nil { // Consume returns at each rebalance
			must("consume", joined.Consume(ctx, []string{topic}, m))
		}
		must("leave", joined.Close())
	}()
	return m
}

func (m *member) Setup(session sarama.ConsumerGroupSession) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.owned = session.Claims()[topic]
	return nil
}

func (m *member) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (m *member) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case message, open := <-claim.Messages():
			if !open {
				return nil
			}
			number, err := strconv.Atoi(string(message.Value))
			must("read a value", err)
			m.mutex.Lock()
			m.seen[number] = true
			m.mutex.Unlock()
			session.MarkMessage(message, "")
			session.Commit()
		case <-session.Context().Done():
			return nil
		}
	}
}

func (m *member) leave() {
	m.cancel()
	select {
	case <-m.done:
	case <-time.After(30 * time.Second):
		log.Fatal("a member could not leave within 30 s")
	}
}

func (m *member) state() ([]int32, map[int]bool) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	seen := make(map[int]bool, len(m.seen))
	for number := range m.seen {
		seen[number] = true
	}
	return slices.Clone(m.owned), seen
}

func waitUntil(what string, condition func() bool) {
	deadline := time.Now().Add(60 * time.Second)
	for !condition() {
		if time.Now().After(deadline) {
			log.Fatalf("not within 60 s: %s", what)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func waitForShares(members ...*member) {
	share := partitions / len(members)
	waitUntil(fmt.Sprintf("%d members with %d partitions each", len(members), share), func() bool {
		var all []int32
		for _, m := range members {
			owned, _ := m.state()
			if len(owned) != share {
				return false
			}
			all = append(all, owned...)
		}
		slices.Sort(all)
		return slices.Equal(all, []int32{0, 1, 2, 3, 4, 5})
	})
}

func waitForRecords(count int, everybody ...*member) {
	waitUntil(fmt.Sprintf("%d records", count), func() bool {
		all := map[int]bool{}
		for _, m := range everybody {
			_, seen := m.state()
			for number := range seen {
				all[number] = true
			}
		}
		for number := range count {
			if !all[number] {
				return false
			}
		}
		return len(all) == count
	})
}

func checkCommitted() {
	admin, err := sarama.NewClusterAdmin(bootstrap, config())
	must("admin", err)
	answer, err := admin.ListConsumerGroupOffsets(group, map[string][]int32{topic: {0, 1, 2, 3, 4, 5}})
	must("list the group's offsets", err)
	for partition := range int32(partitions) {
		if block := answer.GetBlock(topic, partition); block == nil || block.Offset != 200 {
			log.Fatalf("committed on partition %d: %+v", partition, block)
		}
	}
	must("close the admin client", admin.Close())
}

func checkSeek() {
	consumer, err := sarama.NewConsumer(bootstrap, config())
	must("consumer", err)
	claim, err := consumer.ConsumePartition(topic, 0, 50)
	must("seek", err)
	select {
	case message := <-claim.Messages():
		if message.Offset != 50 || string(message.Value) != strconv.Itoa(50*partitions) {
			log.Fatalf("at offset 50 came %d with %s", message.Offset, message.Value)
		}
	case <-time.After(20 * time.Second):
		log.Fatal("nothing came from offset 50 within 20 s")
	}
	must("close the claim", claim.Close())
	must("close the consumer", consumer.Close())
}

func main() {
	log.SetFlags(0)
	produce(0, 600)
	first, second, third := join(), join(), join()
	waitForShares(first, second, third)
	waitForRecords(600, first, second, third)

	third.leave()
	waitForShares(first, second)
	produce(600, 300)
	waitForRecords(900, first, second, third)

	fourth := join()
	waitForShares(first, second, fourth)
	produce(900, 300)
	waitForRecords(1200, first, second, third, fourth)
	for _, m := range []*member{first, second, fourth} {
		m.leave()
	}

	checkCommitted()
	checkSeek()
	produce(1200, 60)
	resumed := join()
	waitUntil("the 60 records behind the committed offsets", func() bool {
		_, seen := resumed.state()
		return len(seen) == 60
	})
	_, seen := resumed.state()
	for number := range seen {
		if number < 1200 {
			log.Fatalf("record %d came again although it was committed", number)
		}
	}
	resumed.leave()
}
