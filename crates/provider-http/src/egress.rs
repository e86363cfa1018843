//! Which addresses a request may go to. Where some are denied, a name is resolved, what is denied is left out, and the
//! connection goes to what is left: nothing is resolved a second time in between. Addresses without a name are looked at as they are,
//! those of redirects, too.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;

/// An address that is not asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the address is not allowed")]
pub struct DeniedAddress;

/// Networks of IPv4 that are not open to everybody, or are for no single machine: the network and the bits of its mask.
const V4: [([u8; 4], u32); 16] = [
    ([0, 0, 0, 0], 8),
    ([10, 0, 0, 0], 8),
    ([100, 64, 0, 0], 10),
    ([127, 0, 0, 0], 8),
    // Azure answers its own machines there, and nobody else.
    ([168, 63, 129, 16], 32),
    ([169, 254, 0, 0], 16),
    ([172, 16, 0, 0], 12),
    ([192, 0, 0, 0], 24),
    ([192, 0, 2, 0], 24),
    ([192, 88, 99, 0], 24),
    ([192, 168, 0, 0], 16),
    ([198, 18, 0, 0], 15),
    ([198, 51, 100, 0], 24),
    ([203, 0, 113, 0], 24),
    ([224, 0, 0, 0], 4),
    ([240, 0, 0, 0], 4),
];

/// Whether an address is open to everybody. What carries an address of IPv4 is what that one is.
pub fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let bits = address.to_bits();
    !V4.iter().any(|(network, length)| {
        let mask = u32::MAX << (32 - length);
        bits & mask == u32::from_be_bytes(*network)
    })
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let parts = address.segments();
    match parts {
        // Translated by the network, and by tunnels.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => {
            is_public_v4(v4(high, low))
        }
        // Of protocols, and for documents.
        [0x2001, second, ..] if second < 0x200 || second == 0xdb8 => false,
        [0x3fff, second, ..] if second < 0x1000 => false,
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

fn v4(high: u16, low: u16) -> Ipv4Addr {
    Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low))
}

/// What an address of `64:ff9b:1::/48` may stand for: how long the prefix of its network is, only that network knows. The
/// ninth byte is never part of it (RFC 6052).
fn translated_here(address: Ipv6Addr) -> [Ipv4Addr; 4] {
    let [.., a, b, _, c, d, e, f, g, h, i] = address.octets();
    [[a, b, c, d], [b, c, d, e], [c, d, e, f], [f, g, h, i]].map(Ipv4Addr::from)
}

/// Of a link, and those by which clouds tell a machine what it may do: whoever reaches them has its credentials.
fn is_of_link(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => is_of_link_v4(address),
        IpAddr::V6(address) => match address.segments() {
            [0x64, 0xff9b, 0, 0, 0, 0, high, low]
            | [0x2002, high, low, ..]
            | [0, 0, 0, 0, 0, 0, high, low] => is_of_link_v4(v4(high, low)),
            [0x64, 0xff9b, 1, ..] => translated_here(address).into_iter().any(is_of_link_v4),
            [0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254] | [0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254] => true,
            [first, ..] => first & 0xffc0 == 0xfe80,
        },
    }
}

/// Addresses beyond a link by which clouds do so: of Alibaba, Azure and Oracle.
const METADATA: [Ipv4Addr; 3] = [
    Ipv4Addr::new(100, 100, 100, 200),
    Ipv4Addr::new(168, 63, 129, 16),
    Ipv4Addr::new(192, 0, 0, 192),
];

fn is_of_link_v4(address: Ipv4Addr) -> bool {
    address.is_link_local() || METADATA.contains(&address)
}

/// Which addresses are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reach {
    /// All.
    #[default]
    Anywhere,
    /// All but link-local ones and those of a cloud's metadata.
    BeyondLink,
    /// Those that are open to everybody. No proxy is asked, which would resolve names itself.
    Public,
    /// The host that the client is made for, whatever it is, and of others those that are open to everybody: nobody sends
    /// the client on to what only this machine reaches.
    Outward,
}

impl Reach {
    /// Whether it has an address.
    pub fn has(self, address: IpAddr) -> bool {
        match self {
            Self::Anywhere => true,
            Self::BeyondLink => !is_of_link(address),
            Self::Public | Self::Outward => is_public(address),
        }
    }

    /// Looks at an address as it stands. One with a name passes: what that stands for is known when it is resolved.
    ///
    /// # Errors
    /// It is denied, or is none.
    pub fn check(self, url: &str) -> Result<(), DeniedAddress> {
        match Url::parse(url) {
            Ok(url) if self.may_have(&url) => Ok(()),
            _ => Err(DeniedAddress),
        }
    }

    fn may_have(self, url: &Url) -> bool {
        let host = url.host_str().unwrap_or_default();
        let host = host.trim_matches(['[', ']']);
        match host.parse::<IpAddr>() {
            Ok(address) => self.has(address),
            Err(_) => !host.is_empty(),
        }
    }
}

/// What a client goes to: it resolves names to those of their addresses that are not denied.
#[derive(Debug, Clone)]
pub(crate) struct Within {
    reach: Reach,
    /// The host that the client is made for, where that is not held to the rest.
    home: Option<String>,
}

impl Within {
    /// For a client of the server at an address.
    pub(crate) fn of(reach: Reach, url: &str) -> Self {
        let url = Url::parse(url).ok().filter(|_| reach == Reach::Outward);
        let home = url.and_then(|url| url.host_str().map(str::to_owned));
        Self { reach, home }
    }

    fn is_home(&self, host: &str) -> bool {
        self.home.as_deref() == Some(host)
    }

    /// Follows so many redirects, to what is not denied as it stands.
    pub(crate) fn redirects(self: Arc<Self>, most: usize) -> Policy {
        Policy::custom(move |attempt| {
            let to = attempt.url();
            let allowed = self.is_home(to.host_str().unwrap_or_default());
            if attempt.previous().len() > most || !(allowed || self.reach.may_have(to)) {
                return attempt.error(DeniedAddress);
            }
            attempt.follow()
        })
    }
}

impl Resolve for Within {
    fn resolve(&self, name: Name) -> Resolving {
        let reach = match self.is_home(name.as_str()) {
            true => Reach::Anywhere,
            false => self.reach,
        };
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let within: Vec<SocketAddr> = found.filter(|found| reach.has(found.ip())).collect();
            if within.is_empty() {
                return Err(Box::from(DeniedAddress));
            }
            Ok(Box::new(within.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_addresses_are_known_however_they_are_written() {
        for private in [
            "http://127.0.0.1/",
            "http://2130706433/",
            "http://0x7f.1/",
            "http://127.1:8080/x",
            "http://10.1.2.3/",
            "http://172.31.255.255/",
            "http://192.168.0.1/",
            "http://169.254.169.254/latest/meta-data",
            "http://100.64.0.1/",
            "http://0.0.0.0/",
            "http://255.255.255.255/",
            "http://168.63.129.16/",
            "http://[64:ff9b::a83f:8110]/",
            "http://[::1]/",
            "http://[::]/",
            "http://[::ffff:10.0.0.1]/",
            "http://[::ffff:7f00:1]/",
            "http://[fe80::1]/",
            "http://[fd00::1]/",
            "http://[ff02::1]/",
            "http://[64:ff9b::7f00:1]/",
            "http://[2002:7f00:1::]/",
            "http://[2001:db8::1]/",
            "http://[2001::1]/",
            "http://user@127.0.0.1@10.0.0.1/",
            "nothing",
            "http://",
        ] {
            assert_eq!(
                Reach::Public.check(private),
                Err(DeniedAddress),
                "{private}"
            );
        }
        for public in [
            "http://8.8.8.8/",
            "http://172.32.0.1/",
            "http://172.15.0.1/",
            "http://168.63.129.17/",
            "https://[2606:4700::1111]/",
            "http://[64:ff9b::808:808]/",
            "https://tools.example/mcp",
            // Its name tells nothing: it is looked at when it is resolved.
            "http://localhost/",
        ] {
            assert_eq!(Reach::Public.check(public), Ok(()), "{public}");
        }
    }

    #[test]
    fn addresses_of_a_link_are_known_however_they_are_written() {
        for link in [
            "http://169.254.169.254/latest/meta-data",
            "http://169.254.0.1/",
            "http://2852039166/",
            "http://0xa9.0xfe.43518/",
            "http://[::ffff:169.254.169.254]/",
            "http://[64:ff9b::a9fe:a9fe]/",
            "http://[2002:a9fe:a9fe::]/",
            "http://[::a9fe:a9fe]/",
            "http://[64:ff9b:1::a9fe:a9fe]/",
            "http://[64:ff9b:1:a9fe:a9:fe00::]/",
            "http://[64:ff9b:1:a9:fe:a9fe::]/",
            "http://[64:ff9b:1:1:a9:fea9:fe00:0]/",
            "http://[fe80::1]/",
            "http://[febf::1]/",
            "http://[fd00:ec2::254]/",
            "http://[fd20:ce::254]/",
            "http://100.100.100.200/",
            "http://168.63.129.16/machine/?comp=goalstate",
            "http://[2002:a83f:8110::]/",
            "http://192.0.0.192/latest/",
            "nothing",
        ] {
            assert_eq!(Reach::BeyondLink.check(link), Err(DeniedAddress), "{link}");
        }
        for other in [
            "http://127.0.0.1/",
            "http://[::1]/",
            "http://10.1.2.3/",
            "http://192.168.0.1/",
            "http://100.64.0.1/",
            "http://169.253.1.1/",
            "http://[fd00::1]/",
            "http://[fec0::1]/",
            "http://[64:ff9b:1::a01:203]/",
            "http://8.8.8.8/",
            "https://tools.example/mcp",
        ] {
            assert_eq!(Reach::BeyondLink.check(other), Ok(()), "{other}");
        }
        assert_eq!(Reach::Anywhere.check("http://169.254.169.254/"), Ok(()));
    }

    #[tokio::test]
    async fn names_of_private_addresses_resolve_to_nothing() {
        let name = || "localhost".parse::<Name>().expect("a name");
        let found = Within::of(Reach::Public, "").resolve(name()).await;
        let told = found.err().expect("nothing is found").to_string();
        assert_eq!(told, DeniedAddress.to_string());
        let found = Within::of(Reach::BeyondLink, "").resolve(name()).await;
        assert!(
            found
                .expect("it is allowed")
                .all(|one| one.ip().is_loopback())
        );
        let outward = |url: &str| Within::of(Reach::Outward, url).resolve(name());
        assert!(outward("http://localhost:8080/x").await.is_ok(), "home");
        let found = outward("http://elsewhere.example/").await;
        assert!(found.is_err(), "a name of another host");
    }
}
