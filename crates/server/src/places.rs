//! Who is connected, counted: in all, and by address.
//!
//! # Invariants
//! - An address without connections has no entry, so that there are at most as many as connections.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use strandline_model::config::ConnectionLimits;

/// The places that are taken.
#[derive(Debug, Default)]
pub(crate) struct Places {
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    total: usize,
    by_address: HashMap<IpAddr, u32>,
}

/// A connection that counts, until it is dropped: also by a panic, or with the worker.
#[derive(Debug)]
pub(crate) struct Place {
    places: Arc<Places>,
    address: IpAddr,
}

/// Which limit is reached: the name of its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full(pub(crate) &'static str);

impl Places {
    /// Takes a place for a peer, if there is one.
    pub(crate) fn take(
        self: &Arc<Self>,
        address: IpAddr,
        limits: &ConnectionLimits,
    ) -> Result<Place, Full> {
        let mut taken = self.taken.lock();
        if taken.total >= limits.total as usize {
            return Err(Full("max.connections"));
        }
        let of_address = taken.by_address.get(&address).copied().unwrap_or(0);
        if of_address >= limits.of(address) {
            return Err(Full("max.connections.per.ip"));
        }
        taken.total += 1;
        taken.by_address.insert(address, of_address + 1);
        Ok(Place { places: Arc::clone(self), address })
    }

    /// How many are taken.
    pub(crate) fn count(&self) -> usize {
        self.taken.lock().total
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.taken.lock();
        taken.total -= 1;
        let left = taken.by_address.get(&self.address).map_or(0, |count| count - 1);
        if left == 0 {
            taken.by_address.remove(&self.address);
        } else {
            taken.by_address.insert(self.address, left);
        }
    }
}

#[cfg(test)]
mod tests {
    use strandline_model::config::{BrokerLayers, Scope};

    use super::*;

    fn limits(settings: &[(&str, &str)]) -> ConnectionLimits {
        let mut layers = BrokerLayers::default();
        for (name, text) in settings {
            layers.static_broker.set(Scope::Broker, name, text).expect("a good value");
        }
        layers.broker_config().expect("a good configuration").connection_limits
    }

    #[test]
    fn places_are_given_back_and_nothing_is_left_of_who_went() {
        let places = Arc::new(Places::default());
        let limits = limits(&[
            ("max.connections", "4"),
            ("max.connections.per.ip", "2"),
            ("max.connections.per.ip.overrides", "127.0.0.9:3"),
        ]);
        let [one, other, nine] = [1, 2, 9].map(|last| IpAddr::from([127, 0, 0, last]));
        let first = places.take(one, &limits).expect("there is room");
        let second = places.take(one, &limits).expect("there is room");
        let full = |address| places.take(address, &limits).map(drop);
        assert_eq!(full(one), Err(Full("max.connections.per.ip")));
        drop(first);
        let third = places.take(one, &limits).expect("a place was given back");
        let others = [places.take(nine, &limits), places.take(nine, &limits)];
        assert_eq!(places.count(), 4);
        assert_eq!(full(other), Err(Full("max.connections")));
        drop((second, third, others));
        assert_eq!(places.count(), 0);
        assert!(places.taken.lock().by_address.is_empty());
    }

    #[test]
    fn a_panic_gives_a_place_back_too() {
        let places = Arc::new(Places::default());
        let place = places.take(IpAddr::from([127, 0, 0, 1]), &limits(&[])).expect("no limit");
        let panicked = std::thread::spawn(move || {
            let _place = place;
            panic!("as a connection might");
        });
        assert!(panicked.join().is_err());
        assert_eq!(places.count(), 0);
    }

    #[test]
    fn a_lower_limit_takes_no_place_away() {
        let places = Arc::new(Places::default());
        let address = IpAddr::from([127, 0, 0, 1]);
        let _kept: Vec<Place> =
            (0..5).map(|_| places.take(address, &limits(&[])).expect("no limit")).collect();
        let two = limits(&[("max.connections", "2")]);
        assert_eq!(places.take(address, &two).map(drop), Err(Full("max.connections")));
        assert_eq!(places.count(), 5);
    }
}
