//! So many at once, and of one network no more than its part: who floods from one address leaves room for the others.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;

/// Room for some, of which one network takes a part at most.
#[derive(Debug)]
pub(crate) struct Shares {
    taken: Arc<Mutex<Taken>>,
    all: usize,
    each: usize,
}

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    of: HashMap<Option<IpAddr>, usize>,
}

/// What one has of it, until dropped.
#[derive(Debug)]
pub(crate) struct Share {
    taken: Arc<Mutex<Taken>>,
    whose: Option<IpAddr>,
}

impl Shares {
    pub(crate) fn new(all: usize, each: usize) -> Self {
        Self {
            taken: Arc::default(),
            all,
            each,
        }
    }

    /// Room for somebody from an address; where none is known, all such are one.
    pub(crate) fn enter(&self, address: &str) -> Option<Share> {
        let whose = network_of(address);
        let mut taken = self.taken.lock();
        let own = taken.of.get(&whose).copied().unwrap_or(0);
        if taken.all >= self.all || own >= self.each {
            return None;
        }
        taken.all += 1;
        taken.of.insert(whose, own + 1);
        Some(Share {
            taken: self.taken.clone(),
            whose,
        })
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut taken = self.taken.lock();
        taken.all -= 1;
        if let Some(own) = taken.of.get_mut(&self.whose) {
            *own -= 1;
            if *own == 0 {
                taken.of.remove(&self.whose);
            }
        }
    }
}

/// The network of an address as it is told. Who has one address of the newer kind has all of its network.
pub(crate) fn network_of(address: &str) -> Option<IpAddr> {
    match address.parse::<IpAddr>().ok()?.to_canonical() {
        IpAddr::V6(address) => {
            let network = u128::from(address) & !u128::from(u64::MAX);
            Some(IpAddr::V6(network.into()))
        }
        four => Some(four),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_network_has_its_part_and_what_is_left_is_room_again() {
        let all = Shares::new(4, 2);
        let first = [all.enter("2001:db8::1"), all.enter("2001:db8::2")];
        assert!(first.iter().all(Option::is_some));
        assert!(all.enter("2001:db8::3").is_none());
        let others = [all.enter("10.0.0.1"), all.enter("")];
        assert!(others.iter().all(Option::is_some));
        assert!(all.enter("10.0.0.2").is_none(), "all is taken");
        drop(first);
        assert!(all.enter("2001:db8::3").is_some());
        drop(others);
        let taken = all.taken.lock();
        assert!(taken.all == 0 && taken.of.is_empty());
    }
}
