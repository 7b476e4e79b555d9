use super::*;

fn file(contents: &str) -> Sources {
    let file = SourceFile { path: "server.properties".to_owned(), contents: contents.to_owned() };
    Sources { file: Some(file), ..Sources::default() }
}

fn faults(sources: &Sources) -> Vec<String> {
    let faults = Settings::load(sources).expect_err("a fault");
    faults.iter().map(ToString::to_string).collect()
}

fn value(settings: &Settings, name: &str) -> String {
    settings.of(name).last().map(|setting| setting.value.to_string()).unwrap_or_default()
}

#[test]
fn an_unknown_key_is_shown_with_the_key_that_was_meant() {
    let contents = format!("{}log.retention.mss=604800000\n", "\n".repeat(13));
    assert_eq!(
        faults(&file(&contents)),
        ["server.properties:14:17: unknown key \"log.retention.mss\"\n\
          \x20 14 | log.retention.mss=604800000\n\
          \x20    |                 ^ did you mean log.retention.ms?"]
    );
}

#[test]
fn a_bad_value_is_shown_where_it_stands() {
    assert_eq!(
        faults(&file("log.retention.ms = 7days")),
        ["server.properties:1:20: invalid value \"7days\" for log.retention.ms\n\
          \x20 1 | log.retention.ms = 7days\n\
          \x20   |                    ^ unknown unit of time \"days\" (ms, s, m, h, d, w)"]
    );
    assert_eq!(
        faults(&file("num.partitions=0")),
        ["server.properties:1:16: invalid value \"0\" for num.partitions\n\
          \x20 1 | num.partitions=0\n\
          \x20   |                ^ value must be at least 1"]
    );
}

#[test]
fn every_fault_is_told_at_once() {
    let mut sources = file("num.partitions=x\nnode.idd=1\n");
    sources.environment = vec![("STRANDLINE_NODE_IDD".to_owned(), "1".to_owned())];
    sources.assignments = vec!["nonsense".to_owned(), "zzz.zzz=1".to_owned()];
    let faults = faults(&sources);
    assert_eq!(faults.len(), 5);
    assert_eq!(
        faults[2],
        "environment STRANDLINE_NODE_IDD: unknown key \"node.idd\"\n  did you mean \
         STRANDLINE_NODE_ID?"
    );
    assert_eq!(faults[3], "-c nonsense: not key=value");
    assert_eq!(
        faults[4],
        "-c zzz.zzz=1: unknown key \"zzz.zzz\"\n  strandline config reference lists every key"
    );
}

#[test]
fn a_topic_config_in_the_brokers_file_is_explained() {
    let faults = faults(&file("retention.ms=5"));
    assert!(
        faults[0].ends_with("it is a topic config; the default of topics is log.retention.ms"),
        "{faults:?}"
    );
}

#[test]
fn sources_override_each_other_in_their_order() {
    let mut sources = file("node.id=1\nnum.partitions=1\nmessage.max.bytes=1\nfetch.max.bytes=1k");
    let environment = [
        ("STRANDLINE_MESSAGE_MAX_BYTES", "3"),
        ("KAFKA_NUM_PARTITIONS", "2"),
        ("KAFKA_MESSAGE_MAX_BYTES", "2"),
        ("KAFKA_FETCH_MAX_BYTES", "2k"),
        ("STRANDLINE_FETCH_MAX_BYTES", "3k"),
    ];
    sources.environment =
        environment.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    sources.assignments = vec!["fetch.max.bytes=4KiB".to_owned()];
    sources.flags =
        vec![FlagSetting { flag: "--data", name: "data.dir", text: "/data".to_owned() }];
    let settings = Settings::load(&sources).expect("good");
    for (name, text) in [
        ("node.id", "1"),
        ("num.partitions", "2"),
        ("message.max.bytes", "3"),
        ("fetch.max.bytes", "4096"),
        ("data.dir", "/data"),
    ] {
        assert_eq!(value(&settings, name), text, "{name}");
    }
    let notices: Vec<String> = settings.notices().iter().map(ToString::to_string).collect();
    assert!(
        notices.contains(
            &"num.partitions=1 (server.properties:2) is overridden by num.partitions=2 \
              (environment KAFKA_NUM_PARTITIONS)"
                .to_owned()
        ),
        "{notices:?}"
    );
}

#[test]
fn the_same_value_twice_is_not_worth_a_notice() {
    let mut sources = file("node.id=1");
    sources.assignments = vec!["node.id=1".to_owned()];
    assert_eq!(Settings::load(&sources).expect("good").notices(), []);
}

#[test]
fn foreign_variables_are_left_alone_and_near_misses_are_told() {
    let environment = [
        ("KAFKA_HEAP_OPTS", "-Xmx1g"),
        ("KAFKA_OPTS", ""),
        ("KAFKA_JMX_PORT", "9999"),
        ("KAFKA_LOG4J_ROOT_LOGLEVEL", "INFO"),
        ("KAFKA_VERSION", "4.4.0"),
        ("KAFKA_LOG_RETENTION_MSS", "5"),
        ("KAFKA_PORT", "tcp://10.0.0.1:9092"),
        ("STRANDLINE_PORT", "tcp://10.0.0.1:9092"),
    ];
    let sources = Sources {
        environment: environment.map(|(n, v)| (n.to_owned(), v.to_owned())).to_vec(),
        ..Sources::default()
    };
    let notices = Settings::load(&sources).expect("nothing wrong").notices();
    let notices: Vec<String> = notices.iter().map(ToString::to_string).collect();
    assert_eq!(
        notices,
        ["environment KAFKA_LOG_RETENTION_MSS: ignored, since no key is named \
          \"log.retention.mss\"\n  did you mean KAFKA_LOG_RETENTION_MS?"]
    );
}

#[test]
fn lenient_reading_turns_unknown_keys_into_notices_and_nothing_else() {
    let mut sources = file("shoe.size=44\nnum.partitions=2");
    sources.lenient = true;
    let settings = Settings::load(&sources).expect("lenient");
    assert_eq!(value(&settings, "num.partitions"), "2");
    assert_eq!(settings.notices().len(), 1);
    let mut sources = file("num.partitions=x");
    sources.lenient = true;
    assert_eq!(faults(&sources).len(), 1);
}

#[test]
fn unserved_security_is_a_fault_at_its_line_and_hides_secrets() {
    for (contents, shown) in [
        ("ssl.keystore.location=/k.jks", "server.properties:1:23: ssl.keystore.location: promises"),
        ("listeners=SSL://:9093", "server.properties:1:11: listeners: SSL://:9093 promises"),
    ] {
        let settings = Settings::load(&file(contents)).expect("values are good");
        let fault = settings.broker_config().expect_err("refused").to_string();
        assert!(fault.starts_with(shown), "{fault}");
    }
    let settings = Settings::load(&file("ssl.key.password=hunter2")).expect("values are good");
    let fault = settings.broker_config().expect_err("refused").to_string();
    assert!(!fault.contains("hunter2") && fault.contains("[hidden]"), "{fault}");
    let fault = &faults(&file(
        "listener.name.external.scram-sha-256.sasl.jaas.config=x password=\"hunter2\";",
    ))[0];
    assert!(!fault.contains("hunter2") && fault.contains("not served yet"), "{fault}");
}

#[test]
fn keys_without_effect_are_listed_with_why() {
    let settings = Settings::load(&file(
        "num.io.threads=8\nnode.id=3\nlistener.name.a.max.connections=5\nrsm.config.x=y\n\
         zookeeper.connect=z:2181",
    ))
    .expect("all known");
    let names: Vec<&str> = settings.without_effect().map(|(name, _)| name).collect();
    assert_eq!(
        names,
        ["num.io.threads", "zookeeper.connect", "listener.name.a.max.connections", "rsm.config.x"]
    );
}

/// Kafka 4's `config/server.properties`, its settings but for the folder verbatim.
#[test]
fn kafkas_own_file_starts() {
    let settings = Settings::load(&file(
        "process.roles=broker,controller\nnode.id=1\n\
         controller.quorum.bootstrap.servers=localhost:9093\n\
         listeners=PLAINTEXT://:9092,CONTROLLER://:9093\n\
         inter.broker.listener.name=PLAINTEXT\n\
         advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093\n\
         controller.listener.names=CONTROLLER\n\
         listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,\
         SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL\n\
         num.network.threads=3\nnum.io.threads=8\nsocket.send.buffer.bytes=102400\n\
         socket.receive.buffer.bytes=102400\nsocket.request.max.bytes=104857600\n\
         log.dirs=kraft-combined-logs\nnum.partitions=1\n\
         num.recovery.threads.per.data.dir=1\noffsets.topic.replication.factor=1\n\
         share.coordinator.state.topic.replication.factor=1\n\
         share.coordinator.state.topic.min.isr=1\n\
         transaction.state.log.replication.factor=1\ntransaction.state.log.min.isr=1\n\
         log.retention.hours=168\nlog.segment.bytes=1073741824\n\
         log.retention.check.interval.ms=300000\n",
    ))
    .expect("known keys");
    let config = settings.broker_config().expect("served");
    assert_eq!(config.listeners.len(), 1);
    assert_eq!(config.advertised_listeners.len(), 1);
    assert_eq!(settings.notices(), []);
}
