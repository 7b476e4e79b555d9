// A day's work of KafkaJS: `node day.js BOOTSTRAP TOPIC GROUP` (see test_day.py).
'use strict'

const assert = require('node:assert')
const { Kafka, logLevel } = require('kafkajs')

const [bootstrap, topic, groupId] = process.argv.slice(2)
const PARTITIONS = 6
const kafka = new Kafka({ clientId: 'day', brokers: [bootstrap], logLevel: logLevel.NOTHING })

const range = (first, end) => Array.from({ length: end - first }, (_, index) => first + index)

async function produce(first, count) {
  const producer = kafka.producer()
  await producer.connect()
  const messages = range(first, first + count).map((number) => {
    return { key: `${number}`, value: `${number}`, partition: number % PARTITIONS }
  })
  await producer.send({ topic, messages, acks: -1 })
  await producer.disconnect()
}

// A consumer in the group that commits each batch.
class Member {
  seen = new Set()
  partitions = []
  failure = null

  constructor() {
    this.consumer = kafka.consumer({ groupId, heartbeatInterval: 300, sessionTimeout: 10000, maxWaitTimeInMs: 500 })
    const events = this.consumer.events
    this.consumer.on(events.GROUP_JOIN, (event) => {
      this.partitions = event.payload.memberAssignment[topic] ?? []
    })
    this.consumer.on(events.CRASH, (event) => {
      if (!event.payload.restart) this.failure = event.payload.error
    })
    this.started = this.start().catch((error) => {
      this.failure = error
    })
  }

  async start() {
    await this.consumer.connect()
    await this.consumer.subscribe({ topics: [topic], fromBeginning: true })
    await this.consumer.run({
      eachBatch: async ({ batch }) => {
        for (const message of batch.messages) this.seen.add(Number(message.value))
      },
    })
  }

  async leave() {
    await this.started
    await this.consumer.disconnect()
  }
}

async function waitUntil(what, members, condition) {
  const deadline = Date.now() + 60_000
  while (!condition()) {
    for (const member of members) if (member.failure) throw member.failure
    assert(Date.now() < deadline, `not within 60 s: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

function waitForShares(members) {
  const share = PARTITIONS / members.length
  return waitUntil(`${members.length} members with ${share} partitions each`, members, () => {
    const owned = members.flatMap((member) => member.partitions).sort()
    return owned.join() === range(0, PARTITIONS).join() && members.every((member) => member.partitions.length === share)
  })
}

function waitForRecords(members, count) {
  const everything = range(0, count)
  return waitUntil(`${count} records`, members, () => {
    return everything.every((number) => members.some((member) => member.seen.has(number)))
  })
}

async function checkCommitted() {
  const admin = kafka.admin()
  await admin.connect()
  const [{ partitions }] = await admin.fetchOffsets({ groupId, topics: [topic] })
  assert.deepStrictEqual(partitions.map((one) => one.offset), Array(PARTITIONS).fill('200'))
  await admin.disconnect()
}

// KafkaJS seeks only within a group.
async function checkSeek() {
  const consumer = kafka.consumer({ groupId: `${groupId}-seek`, maxWaitTimeInMs: 500 })
  await consumer.connect()
  await consumer.subscribe({ topics: [topic] })
  const found = new Promise((resolve) => {
    consumer.run({
      autoCommit: false,
      eachMessage: async ({ partition, message }) => resolve({ partition, offset: message.offset, value: String(message.value) }),
    })
  })
  consumer.seek({ topic, partition: 0, offset: '50' })
  assert.deepStrictEqual(await found, { partition: 0, offset: '50', value: `${50 * PARTITIONS}` })
  await consumer.disconnect()
}

async function main() {
  await produce(0, 600)
  const everybody = [new Member(), new Member(), new Member()]
  const [first, second, third] = everybody
  await waitForShares(everybody)
  await waitForRecords(everybody, 600)

  await third.leave()
  await waitForShares([first, second])
  await produce(600, 300)
  await waitForRecords(everybody, 900)

  const fourth = new Member()
  everybody.push(fourth)
  await waitForShares([first, second, fourth])
  await produce(900, 300)
  await waitForRecords(everybody, 1200)
  for (const member of [first, second, fourth]) await member.leave()

  await checkCommitted()
  await checkSeek()
  await produce(1200, 60)
  const resumed = new Member()
  await waitUntil('the 60 records behind the committed offsets', [resumed], () => resumed.seen.size === 60)
  assert.deepStrictEqual([...resumed.seen].sort((a, b) => a - b), range(1200, 1260))
  await resumed.leave()
}

main().then(
  () => process.exit(0),
  (error) => {
    console.error(error)
    process.exit(1)
  },
)
