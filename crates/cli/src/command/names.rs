//! Names of topics and groups, and patterns of them.

use clap::Args;
use regex::Regex;
use strandline_client::Client;

use super::quote::{all_quoted, confirmed};
use super::target::Target;
use crate::failure::{Exit, Failure};

/// Several names, or patterns with `-r`.
#[derive(Debug, Args)]
pub(super) struct Names {
    /// The names; with -r patterns, each of the whole name.
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    /// Takes the names as regular expressions, of whole names.
    #[arg(short, long)]
    regex: bool,
}

impl Names {
    /// The topics that are meant. Patterns leave out those that belong to the cluster itself.
    pub(super) async fn topics(
        &self,
        target: &Target,
        client: &mut Client,
    ) -> Result<Vec<String>, Failure> {
        if let Some(names) = self.plain_topics()? {
            return Ok(names.to_vec());
        }
        let cluster = client.cluster(None).await.map_err(|error| target.explain(&error))?;
        let known = cluster.topics.iter().filter(|topic| !topic.internal);
        self.select("topic", &known.map(|topic| topic.name.as_str()).collect::<Vec<_>>())
    }

    /// The groups that are meant.
    pub(super) async fn groups(
        &self,
        target: &Target,
        client: &mut Client,
    ) -> Result<Vec<String>, Failure> {
        if !self.regex {
            return Ok(self.names.clone());
        }
        let known = client.list_groups().await.map_err(|error| target.explain(&error))?;
        self.select("group", &known.iter().map(|group| group.id.as_str()).collect::<Vec<_>>())
    }

    /// The names, when it is known without a broker what is meant. A group may have an empty one.
    pub(super) fn plain(&self) -> Option<&[String]> {
        if self.regex { None } else { Some(&self.names) }
    }

    /// The same of topics, none of which has an empty name.
    pub(super) fn plain_topics(&self) -> Result<Option<&[String]>, Failure> {
        let names = self.plain();
        if names.is_some_and(|names| names.iter().any(String::is_empty)) {
            return Err(Failure::usage("a topic's name is not empty"));
        }
        Ok(names)
    }

    /// The names that are meant: those written, or all of `known` that match. A pattern that nothing
    /// matches is an error: a typo must not look like an empty list.
    fn select(&self, what: &str, known: &[&str]) -> Result<Vec<String>, Failure> {
        if !self.regex {
            return Ok(self.names.clone());
        }
        let mut selected: Vec<&str> = Vec::new();
        for pattern in &self.names {
            let regex = Regex::new(&format!("^(?s:{pattern})$"))
                .map_err(|error| Failure::usage(format!("-r {pattern}: {error}")))?;
            let before = selected.len();
            selected.extend(known.iter().filter(|name| regex.is_match(name)).copied());
            if selected.len() == before {
                let message = format!("no {what} matches \"{pattern}\"");
                return Err(Failure::new(Exit::Failed, "no_match", message)
                    .hint("patterns are of whole names: orders.* for all that begin so"));
            }
        }
        let mut names: Vec<String> = selected.into_iter().map(str::to_owned).collect();
        names.sort();
        names.dedup();
        Ok(names)
    }
}

/// The error that asks for a word of consent to do something to what was found, with the command that
/// has it.
pub(super) fn unconfirmed(doing: &str, command: &str, found: &[String]) -> Failure {
    let again = confirmed(command, found);
    Failure::usage(format!("{doing} {} needs a confirmation", all_quoted(found)))
        .hint(format!("{again}   with --dry-run instead of --yes it only shows it"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_name_is_a_groups_and_no_topics() {
        let names = |name: &str, regex| Names { names: vec![name.to_owned()], regex };
        let found = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        let failure = unconfirmed("deleting", "x rm", &found(&["", "a b"]));
        assert_eq!(failure.message, "deleting '' 'a b' needs a confirmation");
        assert!(failure.hints[0].starts_with("x rm '' 'a b' --yes "), "{failure}");
        assert_eq!(names("", false).plain(), Some(&[String::new()][..]));
        assert!(names("", false).plain_topics().is_err_and(|error| error.exit == Exit::Usage));
        assert!(names("a", false).plain_topics().is_ok_and(|names| names.is_some()));
        assert_eq!(names("", true).plain_topics(), Ok(None), "a pattern");
    }

    fn selected(pattern: &str, regex: bool) -> Result<Vec<String>, Failure> {
        let names = Names { names: vec![pattern.to_owned()], regex };
        names.select("topic", &["orders", "orders.eu", "clicks"])
    }

    #[test]
    fn patterns_are_of_whole_names() {
        assert_eq!(selected("orders", true), Ok(vec!["orders".to_owned()]));
        assert_eq!(selected("orders.*", true).map(|names| names.len()), Ok(2));
        assert_eq!(selected("click|orders", true), Ok(vec!["orders".to_owned()]), "no part of one");
        assert!(selected("nothing", true).is_err_and(|failure| failure.exit == Exit::Failed));
        assert!(selected("(", true).is_err_and(|failure| failure.exit == Exit::Usage));
    }

    #[test]
    fn plain_names_need_not_be_there() {
        assert_eq!(selected("orders.*", false), Ok(vec!["orders.*".to_owned()]));
    }
}
