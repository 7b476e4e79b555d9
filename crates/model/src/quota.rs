//! Client quotas: for whom, which, and what they may be (KIP-546). Kept and told; not enforced yet.

use std::collections::BTreeMap;
use std::fmt;

/// What a quota is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum QuotaEntityType {
    /// What a client calls itself.
    ClientId,
    /// Who authenticated.
    User,
    /// Where a connection comes from.
    Ip,
}

impl QuotaEntityType {
    /// Kafka's word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::ClientId => "client-id",
            Self::Ip => "ip",
        }
    }

    /// The type of Kafka's word.
    pub fn of_name(name: &str) -> Option<Self> {
        [Self::User, Self::ClientId, Self::Ip].into_iter().find(|kind| kind.name() == name)
    }
}

/// For whom a quota is: a name, or everybody without a quota of their own (`None`), of each type.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct QuotaEntity(BTreeMap<QuotaEntityType, Option<String>>);

/// Why a quota was refused. In Kafka's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QuotaError {
    /// The quota is for nobody.
    Empty,
    /// There is no such type of entity.
    UnknownType(String),
    /// A name is empty.
    EmptyName(QuotaEntityType),
    /// Addresses stand alone.
    Combination,
    /// A name is no address. Kafka takes names of hosts too, and asks for their address once.
    Address(String),
    /// There is no such quota for this entity.
    UnknownKey(String),
    /// A quota is not a number, or one without end.
    NotFinite(String),
    /// A quota is zero or less.
    NotPositive(String),
    /// A quota is more than Kafka's type of it holds: its key, and that type.
    TooLarge(String, &'static str),
    /// A number of bytes is none.
    Fraction(String),
}

impl fmt::Display for QuotaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("Invalid empty client quota entity"),
            Self::UnknownType(name) => write!(f, "Unhandled client quota entity type: {name}"),
            Self::EmptyName(kind) => write!(f, "Empty {} not supported", kind.name()),
            Self::Combination => f.write_str(
                "Invalid quota entity combination, IP entity shouldnot be combined with User or \
                 ClientId",
            ),
            Self::Address(name) => write!(f, "{name} is not a valid IP or resolvable host."),
            Self::UnknownKey(key) => write!(f, "Invalid configuration key {key}"),
            Self::NotFinite(key) => write!(f, "Quota {key} must be a finite number"),
            Self::TooLarge(key, kind) => {
                write!(f, "Proposed value for {key} is too large for {kind}.")
            }
            Self::NotPositive(key) => write!(f, "Quota {key} must be greater than 0"),
            Self::Fraction(key) => write!(f, "{key} cannot be a fractional value."),
        }
    }
}

impl std::error::Error for QuotaError {}

/// What Kafka holds a quota in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Double,
    Int,
    Long,
}

impl Kind {
    /// The largest value, for what counts whole things; and Kafka's words for the type.
    const fn whole(self) -> Option<(f64, &'static str)> {
        match self {
            Self::Double => None,
            Self::Int => Some((2_147_483_647.0, "an INT")),
            // The nearest that a double is to the largest long, which Kafka compares with.
            Self::Long => Some((9_223_372_036_854_775_808.0, "a LONG")),
        }
    }
}

/// Quotas of users and clients.
const CLIENT_KEYS: [(&str, Kind); 4] = [
    ("producer_byte_rate", Kind::Long),
    ("consumer_byte_rate", Kind::Long),
    ("request_percentage", Kind::Double),
    ("controller_mutation_rate", Kind::Double),
];
/// Quotas of addresses.
const IP_KEYS: [(&str, Kind); 1] = [("connection_creation_rate", Kind::Int)];

impl QuotaEntity {
    /// An entity of types and names. Whether an address is one is for the caller to check.
    pub fn new(
        entries: impl IntoIterator<Item = (String, Option<String>)>,
    ) -> Result<Self, QuotaError> {
        let mut entity = BTreeMap::new();
        for (kind, name) in entries {
            let kind = QuotaEntityType::of_name(&kind).ok_or(QuotaError::UnknownType(kind))?;
            if name.as_deref() == Some("") {
                return Err(QuotaError::EmptyName(kind));
            }
            entity.insert(kind, name);
        }
        match entity.get(&QuotaEntityType::Ip) {
            None if entity.is_empty() => return Err(QuotaError::Empty),
            Some(_) if entity.len() > 1 => return Err(QuotaError::Combination),
            None | Some(_) => {}
        }
        Ok(Self(entity))
    }

    /// Its types and names.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (QuotaEntityType, Option<&str>)> {
        self.0.iter().map(|(kind, name)| (*kind, name.as_deref()))
    }

    /// The name of a type: `None` when the type is not part of it, `Some(None)` for everybody.
    pub fn name(&self, kind: QuotaEntityType) -> Option<Option<&str>> {
        self.0.get(&kind).map(Option::as_deref)
    }

    /// Checks a quota for this entity, in Kafka's order.
    pub fn check(&self, key: &str, value: f64) -> Result<(), QuotaError> {
        let keys: &[(&str, Kind)] =
            if self.0.contains_key(&QuotaEntityType::Ip) { &IP_KEYS } else { &CLIENT_KEYS };
        let Some((_, kind)) = keys.iter().find(|(known, _)| *known == key) else {
            return Err(QuotaError::UnknownKey(key.to_owned()));
        };
        if !value.is_finite() {
            return Err(QuotaError::NotFinite(key.to_owned()));
        }
        if value <= 0.0 {
            return Err(QuotaError::NotPositive(key.to_owned()));
        }
        let Some((max, name)) = kind.whole() else { return Ok(()) };
        if value > max {
            return Err(QuotaError::TooLarge(key.to_owned(), name));
        }
        if (value % 1.0).abs() > 1e-6 {
            return Err(QuotaError::Fraction(key.to_owned()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entity(entries: &[(&str, Option<&str>)]) -> Result<QuotaEntity, String> {
        let entries =
            entries.iter().map(|(kind, name)| ((*kind).to_owned(), name.map(str::to_owned)));
        QuotaEntity::new(entries).map_err(|error| error.to_string())
    }

    #[test]
    fn entities_are_refused_in_kafkas_words() {
        for (entries, words) in [
            (&[][..], "Invalid empty client quota entity"),
            (&[("group", Some("g"))], "Unhandled client quota entity type: group"),
            (&[("user", Some(""))], "Empty user not supported"),
            (
                &[("ip", Some("10.0.0.1")), ("user", None)],
                "Invalid quota entity combination, IP entity shouldnot be combined with User or \
                 ClientId",
            ),
        ] {
            assert_eq!(entity(entries).expect_err("refused"), words);
        }
        assert!(entity(&[("user", None), ("client-id", Some("c"))]).is_ok());
        assert!(entity(&[("ip", None)]).is_ok());
    }

    #[test]
    fn quotas_are_refused_in_kafkas_words() {
        let client = entity(&[("client-id", Some("c"))]).expect("good");
        let address = entity(&[("ip", Some("::1"))]).expect("good");
        for (entity, key, value, words) in [
            (&client, "producer_byte_rate", 1024.0, None),
            (&client, "request_percentage", 0.5, None),
            (
                &client,
                "producer_byte_rate",
                0.5,
                Some("producer_byte_rate cannot be a fractional value."),
            ),
            (
                &client,
                "producer_byte_rate",
                0.0,
                Some("Quota producer_byte_rate must be greater than 0"),
            ),
            (
                &client,
                "request_percentage",
                f64::NAN,
                Some("Quota request_percentage must be a finite number"),
            ),
            (
                &client,
                "producer_byte_rate",
                f64::INFINITY,
                Some("Quota producer_byte_rate must be a finite number"),
            ),
            (
                &client,
                "controller_mutation_rate",
                f64::NEG_INFINITY,
                Some("Quota controller_mutation_rate must be a finite number"),
            ),
            (&client, "nonsense", f64::INFINITY, Some("Invalid configuration key nonsense")),
            (&client, "producer_byte_rate", 9.2e18, None),
            (
                &client,
                "producer_byte_rate",
                9.3e18,
                Some("Proposed value for producer_byte_rate is too large for a LONG."),
            ),
            (&client, "request_percentage", 1e30, None),
            (&address, "connection_creation_rate", 2_147_483_647.0, None),
            (
                &address,
                "connection_creation_rate",
                3e9,
                Some("Proposed value for connection_creation_rate is too large for an INT."),
            ),
            (
                &client,
                "connection_creation_rate",
                1.0,
                Some("Invalid configuration key connection_creation_rate"),
            ),
            (&address, "connection_creation_rate", 1.0, None),
            (
                &address,
                "producer_byte_rate",
                1.0,
                Some("Invalid configuration key producer_byte_rate"),
            ),
        ] {
            let told = entity.check(key, value).err().map(|error| error.to_string());
            assert_eq!(told.as_deref(), words, "{key}={value}");
        }
    }
}
