//! Benchmarks of Strandline against what is possible: reference brokers, load drivers, comparison.
//!
//! Two references stand for "possible": the [null broker](null) and the [ideal shared
//! journal](ideal). The [drivers](drive) are one librdkafka producer and consumer (feature
//! `librdkafka`) and own ones that send raw frames. [`compare`] starts the contenders as child
//! processes, alternates them in rounds, and judges ratios of medians; absolute rates of a shared
//! machine mean little.
//!
//! Nothing here is part of the broker, and the references share no code with it but the batch view.

#![expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "figures are rounded for people; the frames of the bench are small and its own"
)]

pub mod batch;
pub mod compare;
pub mod contender;
pub mod drive;
pub mod frame;
pub mod ideal;
pub mod measure;
pub mod namespace;
pub mod null;
pub mod ports;
pub mod postgres;
pub mod produce;
