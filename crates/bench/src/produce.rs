//! The Produce request (v3–v12) as the null broker and the shared-journal reference read it.

use std::ops::Range;

use crate::frame::{Api, Reader, Writer, begin, end};

/// A parsed Produce request: ranges into its frame. Reused from request to request.
#[derive(Debug, Default)]
pub struct Produce {
    /// What the producer waits for; 0 means that no answer is sent.
    pub acks: i16,
    topics: Vec<(Range<usize>, usize)>,
    parts: Vec<Part>,
}

/// The records of one partition.
#[derive(Clone, Debug)]
pub struct Part {
    /// Where in the frame the topic's name stands.
    pub topic: Range<usize>,
    /// Which partition.
    pub partition: i32,
    /// Where in the frame the records stand.
    pub records: Range<usize>,
}

impl Produce {
    /// Reads the body of a request; `r` stands behind the header. `None`: not a Produce request.
    pub fn parse(&mut self, r: &mut Reader<'_>, version: i16) -> Option<()> {
        let flexible = Api::Produce.flexible(version);
        self.topics.clear();
        self.parts.clear();
        r.string(flexible)?;
        self.acks = r.i16()?;
        r.i32()?;
        for _ in 0..r.length(flexible)? {
            let name = r.string(flexible)?.len();
            let topic = r.position() - name..r.position();
            let parts = r.length(flexible)?;
            for _ in 0..parts {
                let partition = r.i32()?;
                let size = r.length(flexible)?;
                r.take(size)?;
                let records = r.position() - size..r.position();
                self.parts.push(Part { topic: topic.clone(), partition, records });
                r.tags(flexible)?;
            }
            self.topics.push((topic, parts));
            r.tags(flexible)?;
        }
        r.tags(flexible)
    }

    /// The partitions, in the order of the request.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Writes the response: `results` holds code and base offset of each part, in order.
    pub fn respond(
        &self,
        frame: &[u8],
        version: i16,
        correlation: i32,
        results: &[(i16, i64)],
        out: &mut Vec<u8>,
    ) {
        let flexible = Api::Produce.flexible(version);
        let at = begin(out);
        let mut w = Writer::new(out);
        w.i32(correlation).tags(flexible).length(flexible, self.topics.len());
        let mut results = self.parts.iter().zip(results);
        for (topic, parts) in &self.topics {
            let name = std::str::from_utf8(&frame[topic.clone()]).expect("parsed as text");
            w.string(flexible, name).length(flexible, *parts);
            for (part, &(code, base_offset)) in results.by_ref().take(*parts) {
                w.i32(part.partition).i16(code).i64(base_offset).i64(-1);
                if version >= 5 {
                    w.i64(0);
                }
                if version >= 8 {
                    w.length(flexible, 0);
                    if flexible {
                        w.uvarint(0)
                    } else {
                        w.i16(-1)
                    };
                }
                w.tags(flexible);
            }
            w.tags(flexible);
        }
        w.i32(0).tags(flexible);
        end(out, at, 0);
    }
}

/// A Produce request (v9, acks=all) that carries one batch for one partition.
pub fn request(topic: &str, partition: i32, batch: &[u8]) -> Vec<u8> {
    crate::frame::request(Api::Produce, REQUEST_VERSION, 0, |w| {
        w.uvarint(0).i16(-1).i32(30_000).length(true, 1);
        w.string(true, topic).length(true, 1).i32(partition).length(true, batch.len());
        w.raw(batch).tags(true).tags(true).tags(true);
    })
}

/// The version that the raw-frame drivers send: by name, flexible.
const REQUEST_VERSION: i16 = 9;

/// What a broker answered to [`request`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The correlation id.
    pub correlation: i32,
    /// The error code of the one partition.
    pub code: i16,
    /// The offset of the first record.
    pub base_offset: i64,
}

/// Reads the answer to [`request`] from a frame without its size field.
pub fn answer(frame: &[u8]) -> Option<Answer> {
    let mut r = Reader::new(frame);
    let correlation = r.i32()?;
    r.tags(true)?;
    r.length(true)?;
    r.string(true)?;
    r.length(true)?;
    r.i32()?;
    Some(Answer { correlation, code: r.i16()?, base_offset: r.i64()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_reads_what_the_driver_sends_and_the_other_way_round() {
        let frame = request("bench", 3, b"records");
        let frame = &frame[4..];
        let mut r = Reader::new(frame);
        assert_eq!((r.i16(), r.i16(), r.i32()), (Some(0), Some(9), Some(0)));
        assert_eq!(r.string(false), Some("bench"));
        r.tags(true).unwrap();
        let mut produce = Produce::default();
        produce.parse(&mut r, 9).unwrap();
        assert_eq!(r.position(), frame.len());
        let part = &produce.parts()[0];
        assert_eq!((part.partition, &frame[part.records.clone()]), (3, b"records".as_slice()));

        let mut out = Vec::new();
        produce.respond(frame, 9, 41, &[(6, 1234)], &mut out);
        let expected = Answer { correlation: 41, code: 6, base_offset: 1234 };
        assert_eq!(answer(&out[4..]), Some(expected));
    }
}
