//! A decoded message as a list of paths and values.
//!
//! The generated messages have no common trait to walk their fields by, but they all print
//! themselves; what `Debug` prints is read back into a tree here. Elements of an array are named by
//! their key (`topics[orders]`), so that one that is missing on one side does not shift the others.

use std::collections::BTreeMap;
use std::fmt::Debug;

/// Paths and values, in the order of paths.
pub(crate) type Fields = BTreeMap<String, String>;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Node {
    Scalar(String),
    List(Vec<Node>),
    Struct(Vec<(String, Node)>),
}

/// What names an element among its siblings, best first.
const KEYS: [&str; 14] = [
    "name",
    "topic",
    "topic_name",
    "topic_id",
    "resource_name",
    "api_key",
    "partition_index",
    "partition",
    "index",
    "broker_id",
    "group_id",
    "member_id",
    "key",
    "entity_type",
];

/// The fields of anything that prints itself as Rust structures do.
pub(crate) fn fields(message: &impl Debug) -> Fields {
    let text = format!("{message:?}");
    let node = Parser { rest: &text }.node();
    let mut fields = Fields::new();
    flatten(&node, String::new(), &mut fields);
    fields
}

fn flatten(node: &Node, path: String, fields: &mut Fields) {
    match node {
        Node::Scalar(value) => {
            fields.insert(path, value.clone());
        }
        Node::List(elements) => {
            fields.insert(format!("{path}.len"), elements.len().to_string());
            let mut seen: BTreeMap<String, usize> = BTreeMap::new();
            for (position, element) in elements.iter().enumerate() {
                let name = key(element).unwrap_or_else(|| position.to_string());
                let count = seen.entry(name.clone()).or_default();
                *count += 1;
                let again = if *count > 1 { format!("#{count}") } else { String::new() };
                flatten(element, format!("{path}[{name}{again}]"), fields);
            }
        }
        Node::Struct(members) => {
            for (name, member) in members {
                // Unknown tagged fields are a difference only when there are some.
                if name == "_unknown_tagged_fields" && *member == Node::List(Vec::new()) {
                    continue;
                }
                let dot = if path.is_empty() { "" } else { "." };
                flatten(member, format!("{path}{dot}{name}"), fields);
            }
        }
    }
}

fn key(element: &Node) -> Option<String> {
    let Node::Struct(members) = element else { return None };
    KEYS.iter().find_map(|key| {
        members.iter().find_map(|(name, member)| match member {
            // A name that this version does not have is empty; an id is zero, and comes last.
            Node::Scalar(value) if name == key && !value.is_empty() && value != "None" => {
                Some(value.clone())
            }
            _ => None,
        })
    })
}

struct Parser<'a> {
    rest: &'a str,
}

impl Parser<'_> {
    fn node(&mut self) -> Node {
        self.space();
        if self.eat("[") {
            return Node::List(self.elements("]"));
        }
        if self.rest.starts_with("b\"") || self.rest.starts_with('"') {
            return Node::Scalar(self.quoted());
        }
        let word = self.word();
        self.space();
        if self.eat("(") {
            let mut elements = self.elements(")");
            // `Some(x)` and newtypes are their content.
            return if elements.len() == 1 {
                elements.swap_remove(0)
            } else {
                Node::List(elements)
            };
        }
        if self.eat("{") {
            return match (word.as_str(), self.members()) {
                // A text is its content.
                ("KafkaString", mut members) if members.len() == 1 => members.swap_remove(0).1,
                (_, members) => Node::Struct(members),
            };
        }
        Node::Scalar(word)
    }

    fn elements(&mut self, end: &str) -> Vec<Node> {
        let mut elements = Vec::new();
        loop {
            self.space();
            if self.eat(end) || self.rest.is_empty() {
                return elements;
            }
            elements.push(self.node());
            self.space();
            self.eat(",");
        }
    }

    fn members(&mut self) -> Vec<(String, Node)> {
        let mut members = Vec::new();
        loop {
            self.space();
            if self.eat("}") || self.rest.is_empty() {
                return members;
            }
            let name = self.word();
            self.space();
            self.eat(":");
            members.push((name, self.node()));
            self.space();
            self.eat(",");
        }
    }

    /// A text in quotes, its escapes left as they are.
    fn quoted(&mut self) -> String {
        let body = self.rest.strip_prefix('b').unwrap_or(self.rest);
        let body = body.strip_prefix('"').unwrap_or(body);
        let mut escaped = false;
        let end = body.char_indices().find_map(|(at, char)| {
            let ends = char == '"' && !escaped;
            escaped = char == '\\' && !escaped;
            ends.then_some(at)
        });
        let (text, rest) = body.split_at(end.unwrap_or(body.len()));
        self.rest = rest.strip_prefix('"').unwrap_or(rest);
        text.to_owned()
    }

    fn word(&mut self) -> String {
        let end = self.rest.find([',', ':', '(', ')', '{', '}', '[', ']', ' ']);
        let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        word.to_owned()
    }

    fn space(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn eat(&mut self, token: &str) -> bool {
        let after = self.rest.strip_prefix(token);
        self.rest = after.unwrap_or(self.rest);
        after.is_some()
    }
}

#[cfg(test)]
mod tests {
    use strandline_wire::{KafkaString, metadata};

    use super::*;

    #[test]
    fn a_message_becomes_paths_and_values() {
        let topic = |name: &'static str| metadata::MetadataResponseTopic {
            name: Some(KafkaString::from_static(name)),
            partitions: vec![metadata::MetadataResponsePartition {
                partition_index: 3,
                replica_nodes: vec![7, 8],
                ..Default::default()
            }],
            ..Default::default()
        };
        let response = metadata::Response {
            topics: vec![topic("a, \"b\""), topic("c"), topic("c")],
            ..Default::default()
        };
        let fields = fields(&response);
        let value = |path: &str| fields.get(path).map(String::as_str);
        assert_eq!(value("throttle_time_ms"), Some("0"));
        assert_eq!(value("cluster_id"), Some("None"));
        assert_eq!(value("topics.len"), Some("3"));
        assert_eq!(value("topics[c].name"), Some("c"));
        assert_eq!(value("topics[c#2].partitions[3].replica_nodes[1]"), Some("8"));
        assert_eq!(value("topics[a, \\\"b\\\"].is_internal"), Some("false"));
    }
}
