//! Clocks that are wrong, while the broker runs and when it starts.

use super::{SMALL, bounds, fill};
use crate::harness::{TestBroker, batch_at};

#[tokio::test]
async fn clocks_that_are_wrong_neither_pin_nor_destroy() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    let any_time = ("message.timestamp.after.max.ms", "9223372036854775807");
    client.create_topic_with("t", 1, &[SMALL, any_time, ("retention.ms", "60000")]).await;
    assert_eq!(client.produce("t", batch_at(4_000_000_000_000, "from the future")).await.0, 0);
    fill(&mut client, "t", 2).await;
    house.broker.check_retention().await;
    // The clock is a day ahead for a while, and records come in.
    house.environment.set_wrong_by_ms(86_400_000);
    house.broker.check_retention().await;
    fill(&mut client, "t", 1).await;
    assert_eq!(bounds(&mut client, "t").await, (0, 4), "a jump destroys nothing");
    house.environment.set_wrong_by_ms(0);
    house.environment.advance_ms(60_001);
    house.broker.check_retention().await;
    assert_eq!(bounds(&mut client, "t").await, (4, 4), "a record of the future pins nothing");
}

#[tokio::test]
async fn a_restart_does_not_forget_that_the_clock_is_ahead() {
    const DAY_MS: i64 = 86_400_000;
    let house = TestBroker::start().await;
    let mut client = house.connect();
    client.create_topic_with("t", 1, &[SMALL, ("retention.ms", "60000")]).await;
    fill(&mut client, "t", 2).await;
    house.environment.set_wrong_by_ms(DAY_MS);
    house.broker.check_retention().await;
    // What is appended now is dated by the wrong clock: it proves nothing to the next start.
    fill(&mut client, "t", 1).await;
    drop(client);
    let house = house.restart().await;
    house.broker.check_retention().await;
    let mut client = house.connect();
    assert_eq!(bounds(&mut client, "t").await, (0, 3));
    house.environment.set_wrong_by_ms(0);
    house.environment.advance_ms(60_001);
    house.broker.check_retention().await;
    assert_eq!(bounds(&mut client, "t").await, (3, 3), "the right time counts at once");
    assert_eq!(client.produce("t", batch_at(1_700_000_060_001, "on")).await, (0, 3));
    drop(client);

    // Nothing is kept any more. The clock of this start is a day ahead of the newest append: nobody
    // knows whether the machine was off for a day.
    house.environment.set_wrong_by_ms(DAY_MS);
    let house = house.restart().await;
    house.broker.check_retention().await;
    let mut client = house.connect();
    assert_eq!(bounds(&mut client, "t").await, (3, 4));
    house.environment.advance_ms(3_600_000);
    house.broker.check_retention().await;
    assert_eq!(bounds(&mut client, "t").await, (4, 4), "an hour later it is believed");
}

#[tokio::test]
async fn a_clock_that_is_behind_at_a_start_makes_nothing_old() {
    const DECADES_MS: i64 = 1_500_000_000_000;
    let house = TestBroker::start().await;
    let mut client = house.connect();
    client.create_topic_with("before", 1, &[SMALL]).await;
    fill(&mut client, "before", 1).await;
    drop(client);
    // No battery: it begins in the seventies.
    house.environment.set_wrong_by_ms(-DECADES_MS);
    let house = house.restart().await;
    let mut client = house.connect();
    let two_hours = ("retention.ms", "7200000");
    let append_time = ("message.timestamp.type", "LogAppendTime");
    let any_time = ("message.timestamp.after.max.ms", "9223372036854775807");
    client.create_topic_with("t", 1, &[SMALL, two_hours, any_time]).await;
    client.create_topic_with("append-time", 1, &[SMALL, two_hours, append_time]).await;
    for topic in ["t", "append-time"] {
        fill(&mut client, topic, 2).await;
    }
    house.broker.check_retention().await;
    // The network says what time it is; an hour later it is believed.
    house.environment.set_wrong_by_ms(0);
    house.broker.check_retention().await;
    house.environment.advance_ms(3_600_000);
    house.broker.check_retention().await;
    for topic in ["t", "append-time"] {
        assert_eq!(bounds(&mut client, topic).await, (0, 2), "{topic} is an hour old");
    }
    assert_eq!(bounds(&mut client, "before").await, (0, 1));
    house.environment.advance_ms(3_600_001);
    house.broker.check_retention().await;
    for topic in ["t", "append-time"] {
        assert_eq!(bounds(&mut client, topic).await, (2, 2), "{topic}");
    }
}

#[tokio::test]
async fn passes_close_no_segment_because_the_clock_is_not_believed() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    client.create_topic("t", 1).await;
    fill(&mut client, "t", 1).await;
    house.environment.set_wrong_by_ms(86_400_000);
    for _ in 0..3 {
        house.broker.check_retention().await;
        fill(&mut client, "t", 1).await;
    }
    assert_eq!(house.broker.topics()[0].partitions[0].segment_count, 1);
}

#[tokio::test]
async fn what_was_appended_after_a_machine_slept_is_as_young_as_it_is() {
    let house = TestBroker::start_with(&[("log.retention.ms", "7200000")]).await;
    let mut client = house.connect();
    client.create_topic_with("t", 1, &[SMALL]).await;
    fill(&mut client, "t", 2).await;
    house.broker.check_retention().await;
    // A day later; the monotonic clock stood still. The jump is not believed for an hour.
    let day_ms = 86_400_000;
    house.environment.set_wrong_by_ms(day_ms);
    let stamp = 1_700_000_000_000 + day_ms;
    assert_eq!(client.produce("t", batch_at(stamp, "in the morning")).await, (0, 2));
    house.broker.check_retention().await;
    assert_eq!(bounds(&mut client, "t").await, (0, 3));
    house.environment.advance_ms(3_600_000);
    house.broker.check_retention().await;
    assert_eq!(
        bounds(&mut client, "t").await,
        (2, 3),
        "what is a day old goes, what is an hour old stays"
    );
    house.environment.advance_ms(3_600_001);
    house.broker.check_retention().await;
    assert_eq!(bounds(&mut client, "t").await, (3, 3));
}
