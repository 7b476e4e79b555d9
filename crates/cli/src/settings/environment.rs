//! Settings from the environment, by the rule of the `apache/kafka` image.
//!
//! `KAFKA_` and `STRANDLINE_` variables name a key in capitals, with `_` for a dot, `__` for an
//! underscore and `___` for a dash. Under `KAFKA_` much else lives (`KAFKA_HEAP_OPTS`), so what
//! is no key is left alone there; under `STRANDLINE_` it is a mistake.

/// Whose prefix a variable has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Prefix {
    /// `KAFKA_`: the weaker one.
    Kafka,
    /// `STRANDLINE_`.
    Strandline,
}

impl Prefix {
    const fn text(self) -> &'static str {
        match self {
            Self::Kafka => "KAFKA_",
            Self::Strandline => "STRANDLINE_",
        }
    }
}

/// A variable that names a key, known or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Variable {
    /// Its name.
    pub(crate) name: String,
    /// Whose prefix it has.
    pub(crate) prefix: Prefix,
    /// The key that it names.
    pub(crate) key: String,
    /// Its value.
    pub(crate) value: String,
}

/// `STRANDLINE_` variables that are no keys: the client commands read them.
const NO_KEYS: &[&str] = &["STRANDLINE_BOOTSTRAP", "STRANDLINE_HTTP"];

/// The variables that name keys, by name; what Kubernetes puts there about services is left out.
pub(crate) fn variables(environment: impl Iterator<Item = (String, String)>) -> Vec<Variable> {
    let mut variables: Vec<Variable> = environment
        .filter_map(|(name, value)| {
            let prefix = [Prefix::Kafka, Prefix::Strandline]
                .into_iter()
                .find(|prefix| name.starts_with(prefix.text()))?;
            let rest = &name[prefix.text().len()..];
            if rest.is_empty() || NO_KEYS.contains(&name.as_str()) || is_service_link(&name, &value)
            {
                return None;
            }
            let key = key_of(rest);
            Some(Variable { name, prefix, key, value })
        })
        .collect();
    variables.sort_by(|a, b| a.name.cmp(&b.name));
    variables
}

/// The key that the part after the prefix names.
fn key_of(rest: &str) -> String {
    const DASH: &str = "\u{1}";
    const UNDERSCORE: &str = "\u{2}";
    rest.to_ascii_lowercase()
        .replace("___", DASH)
        .replace("__", UNDERSCORE)
        .replace('_', ".")
        .replace(UNDERSCORE, "_")
        .replace(DASH, "-")
}

/// The variable that names a key.
pub(crate) fn variable_of(prefix: Prefix, key: &str) -> String {
    let rest = key.replace('_', "__").replace('-', "___").replace('.', "_");
    format!("{}{}", prefix.text(), rest.to_ascii_uppercase())
}

/// Kubernetes sets `NAME_SERVICE_HOST`, `NAME_PORT=tcp://…`, `NAME_PORT_9092_TCP_ADDR` and their
/// like in every pod, for every service; a service may be named "kafka" or "strandline".
fn is_service_link(name: &str, value: &str) -> bool {
    let is_address = ["tcp://", "udp://", "sctp://"].iter().any(|p| value.starts_with(p));
    if name.ends_with("_SERVICE_HOST")
        || name.ends_with("_SERVICE_PORT")
        || name.contains("_SERVICE_PORT_")
        || (name.ends_with("_PORT") && is_address)
    {
        return true;
    }
    let Some((_, after)) = name.rsplit_once("_PORT_") else { return false };
    let mut parts = after.split('_');
    let is_port = parts.next().is_some_and(|port| port.parse::<u16>().is_ok());
    is_port && matches!(parts.next(), Some("TCP" | "UDP" | "SCTP"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        let pairs = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        variables(pairs).into_iter().map(|v| (v.key, v.value)).collect()
    }

    #[test]
    fn variables_name_keys_by_the_rule_of_the_image() {
        for (variable, key) in [
            ("KAFKA_LOG_RETENTION_MS", "log.retention.ms"),
            ("STRANDLINE_DATA_DIR", "data.dir"),
            ("KAFKA_A__B", "a_b"),
            ("KAFKA_A___B_C", "a-b.c"),
            (
                "KAFKA_LISTENER_NAME_SASL__SSL_SCRAM___SHA___256_SASL_JAAS_CONFIG",
                "listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config",
            ),
        ] {
            assert_eq!(read(&[(variable, "x")]), [(key.to_owned(), "x".to_owned())]);
            let prefix =
                if variable.starts_with("KAFKA_") { Prefix::Kafka } else { Prefix::Strandline };
            assert_eq!(variable_of(prefix, key), variable);
        }
    }

    #[test]
    fn service_links_of_kubernetes_are_no_settings() {
        assert_eq!(
            read(&[
                ("KAFKA_PORT", "tcp://10.0.0.1:9092"),
                ("KAFKA_SERVICE_HOST", "10.0.0.1"),
                ("KAFKA_SERVICE_PORT", "9092"),
                ("KAFKA_SERVICE_PORT_HTTP", "9644"),
                ("STRANDLINE_PORT_9092_TCP", "tcp://10.0.0.1:9092"),
                ("STRANDLINE_PORT_9092_TCP_ADDR", "10.0.0.1"),
                ("STRANDLINE_PORT_9092_TCP_PORT", "9092"),
                ("STRANDLINE_HEADLESS_PORT_9092_TCP_PROTO", "tcp"),
                ("STRANDLINE_UI_SERVICE_HOST", "10.0.0.2"),
            ]),
            []
        );
    }

    #[test]
    fn other_variables_are_left_alone() {
        assert_eq!(read(&[("HOME", "/"), ("STRANDLINE_BOOTSTRAP", "a:1"), ("KAFKA_", "")]), []);
    }
}
