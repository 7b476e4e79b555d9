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
    #[arg(required = true, value_name = "NAME", value_parser = name)]
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
        if !self.regex {
            return Ok(self.names.clone());
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

    /// The error that asks for a word of consent to do something to what was found, with the command
    /// that has it.
    pub(super) fn unconfirmed(&self, doing: &str, command: &str, found: &[String]) -> Failure {
        let named = all_quoted(found);
        // A name that is empty can't be written, only matched.
        let again = if found.iter().any(String::is_empty) {
            confirmed(&format!("{command} -r"), &self.names)
        } else {
            confirmed(command, found)
        };
        Failure::usage(format!("{doing} {named} needs a confirmation"))
            .hint(format!("{again}   with --dry-run instead of --yes it only shows it"))
    }

    /// The names, when it is known without a broker what is meant.
    pub(super) fn plain(&self) -> Option<&[String]> {
        if self.regex { None } else { Some(&self.names) }
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

/// A name in an argument. Nothing that has a name has an empty one, but for groups of old clients.
pub(super) fn name(text: &str) -> Result<String, String> {
    if text.is_empty() { Err("a name is not empty".to_owned()) } else { Ok(text.to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_name_is_matched_where_it_can_not_be_written() {
        let names = Names { names: vec![".*".to_owned()], regex: true };
        let found = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        let failure = names.unconfirmed("deleting", "x rm", &found(&["", "a b"]));
        assert_eq!(failure.message, "deleting '' 'a b' needs a confirmation");
        assert!(failure.hints[0].starts_with("x rm -r '.*' --yes "), "{failure}");
        let failure = names.unconfirmed("deleting", "x rm", &found(&["a b"]));
        assert!(failure.hints[0].starts_with("x rm 'a b' --yes "), "{failure}");
        assert!(name("").is_err() && name("a").is_ok());
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
