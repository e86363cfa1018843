//! Sockets whose caller is not known yet: a pool of their own, small, in which a newcomer always finds a place. The
//! oldest of the address that has the most makes it, so that who floods the gateway pushes out its own.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

/// All of them.
#[derive(Debug)]
pub(crate) struct Strangers {
    inner: Arc<Mutex<Inner>>,
    limit: usize,
    per_address: usize,
}

#[derive(Debug, Default)]
struct Inner {
    next: u64,
    count: usize,
    /// By age.
    addresses: HashMap<IpAddr, BTreeMap<u64, CancellationToken>>,
}

/// A place; free again when dropped.
#[derive(Debug)]
pub(crate) struct Stranger {
    inner: Arc<Mutex<Inner>>,
    address: IpAddr,
    number: u64,
    pushed_out: CancellationToken,
}

impl Strangers {
    /// At most `limit` at once, and so many from one address.
    pub(crate) fn new(limit: usize, per_address: usize) -> Self {
        Self {
            inner: Arc::default(),
            limit: limit.max(1),
            per_address: per_address.max(1),
        }
    }

    /// A place for a newcomer.
    pub(crate) fn enter(&self, address: IpAddr) -> Stranger {
        let mut inner = self.inner.lock();
        let own = inner.addresses.get(&address).map_or(0, BTreeMap::len);
        if own >= self.per_address {
            inner.push_out(address);
        } else if inner.count >= self.limit {
            let most = inner.addresses.iter().max_by_key(|(_, all)| all.len());
            if let Some(most) = most.map(|(address, _)| *address) {
                inner.push_out(most);
            }
        }
        let number = inner.next;
        inner.next += 1;
        inner.count += 1;
        let pushed_out = CancellationToken::new();
        let same = inner.addresses.entry(address).or_default();
        same.insert(number, pushed_out.clone());
        Stranger {
            inner: self.inner.clone(),
            address,
            number,
            pushed_out,
        }
    }
}

impl Inner {
    fn push_out(&mut self, address: IpAddr) {
        let oldest = self.addresses.get(&address);
        let oldest = oldest.and_then(|all| all.first_key_value().map(|(number, _)| *number));
        if let Some(token) = oldest.and_then(|number| self.remove(address, number)) {
            token.cancel();
        }
    }

    fn remove(&mut self, address: IpAddr, number: u64) -> Option<CancellationToken> {
        let same = self.addresses.get_mut(&address)?;
        let token = same.remove(&number)?;
        if same.is_empty() {
            self.addresses.remove(&address);
        }
        self.count -= 1;
        Some(token)
    }
}

impl Stranger {
    /// Another needed the place.
    pub(crate) fn pushed_out(&self) -> &CancellationToken {
        &self.pushed_out
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        self.inner.lock().remove(self.address, self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    fn out(one: &Stranger) -> bool {
        one.pushed_out().is_cancelled()
    }

    #[test]
    fn who_floods_pushes_out_its_own() {
        let all = Strangers::new(4, 4);
        let quiet = all.enter(address(1));
        let flood: Vec<_> = (0..100).map(|_| all.enter(address(2))).collect();
        assert!(!out(&quiet));
        assert_eq!(flood.iter().filter(|one| !out(one)).count(), 3);
        assert!(flood[97..].iter().all(|one| !out(one)), "the youngest stay");
        let late = all.enter(address(3));
        assert!(!out(&late) && !out(&quiet) && out(&flood[97]));
    }

    #[test]
    fn an_address_has_its_share_and_places_come_back() {
        let all = Strangers::new(10, 2);
        let first = all.enter(address(1));
        let second = all.enter(address(1));
        let third = all.enter(address(1));
        assert!(out(&first) && !out(&second) && !out(&third));
        drop((first, second, third));
        let inner = all.inner.lock();
        assert!(inner.addresses.is_empty() && inner.count == 0);
    }
}
