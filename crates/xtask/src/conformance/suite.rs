//! The lanes and their suites: whose tests they are, and what they need to run.

use crate::ci::Context;
use crate::ci::provision;

/// Suites that one script runs, against one kind of broker.
#[derive(Debug)]
pub(super) struct Lane {
    /// Its folder below `tests/conformance/`.
    pub(super) name: &'static str,
    /// What it runs; each has its frozen list there, `SUITE.txt`.
    pub(super) suites: &'static [Suite],
    /// Who starts the broker.
    pub(super) broker: BrokerFor,
    /// Brings the tools that the script calls.
    pub(super) provision: fn(&Context) -> anyhow::Result<Tools>,
}

/// Folders to put before the others in the script's search path.
pub(super) type Tools = Vec<std::path::PathBuf>;

/// One suite: somebody's tests of one client.
#[derive(Debug)]
pub(super) struct Suite {
    /// Its name, the first part of each id.
    pub(super) name: &'static str,
    /// The client that it drives, with the version that the lane pins.
    pub(super) client: &'static str,
}

/// Who starts the broker of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BrokerFor {
    /// We do, one for all, with the lane's `broker.properties`; its SASL listener has this port.
    All { sasl_port: Option<u16> },
    /// The script does, one for each test.
    EachTest,
}

const fn suite(name: &'static str, client: &'static str) -> Suite {
    Suite { name, client }
}

/// All lanes, quick ones first.
pub(super) const LANES: &[Lane] = &[
    Lane {
        name: "python",
        suites: &[suite("kafka-python", "kafka-python 3.0.12")],
        broker: BrokerFor::All { sasl_port: Some(9094) },
        provision: |context| {
            provision::command(context, "python3", "python3 python3-venv")?;
            Ok(Tools::new())
        },
    },
    Lane {
        name: "go",
        suites: &[
            suite("kgo", "franz-go 1.22.3"),
            suite("kafka-go", "kafka-go 0.4.51"),
            suite("watermill", "sarama 1.43.3"),
        ],
        broker: BrokerFor::All { sasl_port: Some(9093) },
        provision: |context| Ok(vec![provision::go(context)?]),
    },
    Lane {
        name: "rust",
        suites: &[suite("rust-rdkafka", "librdkafka 2.12.1"), suite("rskafka", "rskafka 0.6.0")],
        broker: BrokerFor::All { sasl_port: Some(9094) },
        provision: |context| {
            provision::java(context)?; // rskafka's tests are built with a bridge to Java
            Ok(Tools::new())
        },
    },
    Lane {
        name: "java",
        suites: &[suite("java", "Java 4.3.1")],
        broker: BrokerFor::EachTest,
        provision: |context| {
            provision::java(context)?;
            Ok(Tools::new())
        },
    },
    Lane {
        name: "java-apps",
        suites: &[suite("java-apps", "Kafka's programs 4.4.0")],
        broker: BrokerFor::All { sasl_port: None },
        provision: |context| {
            provision::java(context)?;
            Ok(Tools::new())
        },
    },
];

/// The lane of a suite.
pub(super) fn lane_of(suite: &str) -> Option<&'static Lane> {
    LANES.iter().find(|lane| lane.suites.iter().any(|known| known.name == suite))
}

/// All suites, in the order of the lanes.
pub(super) fn suites() -> impl Iterator<Item = &'static Suite> {
    LANES.iter().flat_map(|lane| lane.suites)
}
