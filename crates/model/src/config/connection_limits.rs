//! How many connections there may be: of all peers together, and from one address.

use std::collections::BTreeMap;
// An address is a value; sockets, which are not, are in `std::net` only.
use core::net::IpAddr;

use super::Value;
use super::broker_config::BrokerConfigError;
use super::typed::Reader;

const PER_ADDRESS: &str = "max.connections.per.ip";
const OVERRIDES: &str = "max.connections.per.ip.overrides";

/// `max.connections`, `max.connections.per.ip` and its overrides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// Connections of all peers.
    pub total: u32,
    /// Connections from an address that has no limit of its own.
    per_address: u32,
    overrides: BTreeMap<IpAddr, u32>,
}

impl ConnectionLimits {
    /// Connections from `address`.
    pub fn of(&self, address: IpAddr) -> u32 {
        self.overrides.get(&address).copied().unwrap_or(self.per_address)
    }

    pub(super) fn read<F: Fn(&str) -> Option<Value>>(
        read: &Reader<F>,
    ) -> Result<Self, BrokerConfigError> {
        let overrides = overrides(&read.text(OVERRIDES))?;
        let per_address = read.count(PER_ADDRESS);
        if per_address == 0 && overrides.is_empty() {
            let why = format!("can be set to zero only if {OVERRIDES} property is set.");
            return Err(BrokerConfigError { name: PER_ADDRESS, why });
        }
        Ok(Self { total: read.count("max.connections"), per_address, overrides })
    }
}

/// `address:count`, several with commas. The count follows the last colon: addresses may have some.
fn overrides(text: &str) -> Result<BTreeMap<IpAddr, u32>, BrokerConfigError> {
    let wrong = |why: String| BrokerConfigError { name: OVERRIDES, why };
    let entries = text.split(',').map(str::trim).filter(|entry| !entry.is_empty());
    entries
        .map(|entry| {
            let (address, count) = entry
                .rsplit_once(':')
                .ok_or_else(|| wrong(format!("\"{entry}\" is not address:count")))?;
            let bare = address.trim().trim_start_matches('[').trim_end_matches(']');
            let address = bare.parse().map_err(|_| {
                wrong(format!("\"{bare}\" is no address; names of hosts are not looked up"))
            })?;
            let count = count.trim().parse();
            let count = count.map_err(|_| wrong(format!("\"{entry}\" has no count")))?;
            Ok((address, count))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{BrokerLayers, Scope};

    fn limits(settings: &[(&str, &str)]) -> Result<ConnectionLimits, String> {
        let mut layers = BrokerLayers::default();
        for (name, text) in settings {
            layers.static_broker.set(Scope::Broker, name, text).expect("a good value");
        }
        let config = layers.broker_config().map_err(|error| error.to_string())?;
        Ok(config.connection_limits)
    }

    #[test]
    fn an_address_has_its_own_limit_or_that_of_all() {
        let limits = limits(&[
            (PER_ADDRESS, "5"),
            (OVERRIDES, "127.0.0.1:200, ::1:7,[fe80::1]:9"),
            ("max.connections", "300"),
        ])
        .expect("good");
        assert_eq!(limits.total, 300);
        for (address, count) in [("127.0.0.1", 200), ("::1", 7), ("fe80::1", 9), ("10.0.0.1", 5)] {
            assert_eq!(limits.of(address.parse().expect("an address")), count, "{address}");
        }
    }

    #[test]
    fn no_address_is_shut_out_by_mistake() {
        assert!(limits(&[(PER_ADDRESS, "0"), (OVERRIDES, "127.0.0.1:1")]).is_ok());
        let zero = limits(&[(PER_ADDRESS, "0")]).expect_err("nobody could connect");
        assert_eq!(
            zero,
            "max.connections.per.ip: can be set to zero only if max.connections.per.ip.overrides \
             property is set."
        );
        for (text, why) in [
            ("5", "\"5\" is not address:count"),
            ("here:5", "\"here\" is no address; names of hosts are not looked up"),
            ("127.0.0.1:many", "\"127.0.0.1:many\" has no count"),
            ("127.0.0.1:-1", "\"127.0.0.1:-1\" has no count"),
        ] {
            let wrong = limits(&[(OVERRIDES, text)]).expect_err(text);
            assert_eq!(wrong, format!("{OVERRIDES}: {why}"));
        }
    }
}
