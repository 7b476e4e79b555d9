//! Families of samples: one name, one type, one line of help.

use std::fmt;

use prometheus_client::encoding::{
    DescriptorEncoder, EncodeCounterValue, EncodeGaugeValue, EncodeLabelSet, NoLabelSet,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::exemplar::Exemplar;

use crate::{BUCKET_BOUNDS_SECONDS, Durations};

/// Where families are written. One without samples is left out.
pub(super) struct Families<'a>(pub(super) DescriptorEncoder<'a>);

type Written = Result<(), fmt::Error>;

const NO_EXEMPLAR: Option<&Exemplar<NoLabelSet, f64>> = None;

impl Families<'_> {
    /// A number that goes up and down, for each set of labels.
    pub(super) fn gauges<L: EncodeLabelSet, V: EncodeGaugeValue>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (L, V)>,
    ) -> Written {
        let mut samples = samples.into_iter().peekable();
        if samples.peek().is_none() {
            return Ok(());
        }
        let mut family = self.0.encode_descriptor(name, help, None, MetricType::Gauge)?;
        samples.try_for_each(|(labels, value)| family.encode_family(&labels)?.encode_gauge(&value))
    }

    /// One number that goes up and down, when it is known.
    pub(super) fn gauge<V: EncodeGaugeValue>(
        &mut self,
        name: &str,
        help: &str,
        value: Option<V>,
    ) -> Written {
        let Some(value) = value else { return Ok(()) };
        self.0.encode_descriptor(name, help, None, MetricType::Gauge)?.encode_gauge(&value)
    }

    /// A number that only goes up, for each set of labels. `_total` is added to the name.
    pub(super) fn counters<L: EncodeLabelSet>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (L, u64)>,
    ) -> Written {
        let mut samples = samples.into_iter().peekable();
        if samples.peek().is_none() {
            return Ok(());
        }
        let mut family = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        samples.try_for_each(|(labels, value)| {
            family.encode_family(&labels)?.encode_counter(&value, NO_EXEMPLAR)
        })
    }

    /// One number that only goes up, when it is known. `_total` is added to the name.
    pub(super) fn counter<V: EncodeCounterValue>(
        &mut self,
        name: &str,
        help: &str,
        value: Option<V>,
    ) -> Written {
        let Some(value) = value else { return Ok(()) };
        let mut family = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        family.encode_counter(&value, NO_EXEMPLAR)
    }

    /// How long things took, for each set of labels.
    pub(super) fn histograms<L: EncodeLabelSet>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (L, Durations)>,
    ) -> Written {
        let mut samples = samples.into_iter().peekable();
        if samples.peek().is_none() {
            return Ok(());
        }
        let mut family = self.0.encode_descriptor(name, help, None, MetricType::Histogram)?;
        samples.try_for_each(|(labels, durations)| {
            // The encoder adds the last bucket, without a bound, from the count.
            let buckets =
                BUCKET_BOUNDS_SECONDS.into_iter().zip(durations.buckets).collect::<Vec<_>>();
            let count = durations.buckets.iter().sum();
            family.encode_family(&labels)?.encode_histogram::<NoLabelSet>(
                durations.sum_seconds,
                count,
                &buckets,
                None,
            )
        })
    }
}
