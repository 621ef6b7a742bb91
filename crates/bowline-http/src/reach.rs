//! Kinds of addresses and host names, for rules about where requests may go (SSRF protection).

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

/// Why an address is not on the public internet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AddressKind {
    /// This machine.
    Loopback,
    /// `0.0.0.0/8` and `::`, which systems treat as this machine.
    Unspecified,
    /// A private network.
    Private,
    /// The carrier-grade NAT of a provider.
    CarrierNat,
    /// The local link, where cloud providers have their metadata services.
    LinkLocal,
    /// Another internal service of a cloud provider.
    CloudInternal,
    /// Reserved for protocols, tests and documentation.
    SpecialPurpose,
    /// Multicast.
    Multicast,
    /// Not assigned.
    Reserved,
}

impl AddressKind {
    /// Returns the kind of an address; `None` if it is on the public internet. IPv6 addresses that contain an IPv4 address are
    /// of the kind of that address.
    #[must_use]
    pub fn of(address: IpAddr) -> Option<Self> {
        match address {
            IpAddr::V4(address) => kind_v4(address),
            IpAddr::V6(address) => kind_v6(address),
        }
    }
}

impl fmt::Display for AddressKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Loopback => "a loopback address",
            Self::Unspecified => "an unspecified address",
            Self::Private => "a private address",
            Self::CarrierNat => "a carrier-grade NAT address",
            Self::LinkLocal => "a link-local address",
            Self::CloudInternal => "an internal address of a cloud provider",
            Self::SpecialPurpose => "an address reserved for protocols, tests and documentation",
            Self::Multicast => "a multicast address",
            Self::Reserved => "a reserved address",
        })
    }
}

fn kind_v4(address: Ipv4Addr) -> Option<AddressKind> {
    Some(match address.octets() {
        [127, ..] => AddressKind::Loopback,
        [0, ..] => AddressKind::Unspecified,
        // The host of virtual machines on Azure, and the metadata service of Alibaba Cloud.
        [168, 63, 129, 16] | [100, 100, 100, 200] => AddressKind::CloudInternal,
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => AddressKind::Private,
        [100, 64..=127, ..] => AddressKind::CarrierNat,
        [169, 254, ..] => AddressKind::LinkLocal,
        [192, 0, 0 | 2, _] | [192, 88, 99, _] | [198, 18..=19, ..] | [198, 51, 100, _] | [203, 0, 113, _] => {
            AddressKind::SpecialPurpose
        }
        [224..=239, ..] => AddressKind::Multicast,
        [240..=255, ..] => AddressKind::Reserved,
        _ => return None,
    })
}

fn kind_v6(address: Ipv6Addr) -> Option<AddressKind> {
    let embedded = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        kind_v4(Ipv4Addr::new(a, b, c, d))
    };
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0] => Some(AddressKind::Unspecified),
        [0, 0, 0, 0, 0, 0, 0, 1] => Some(AddressKind::Loopback),
        // The metadata service of AWS.
        [0xfd00, 0x0ec2, ..] => Some(AddressKind::CloudInternal),
        [0xfc00..=0xfdff | 0xfec0..=0xfeff, ..] => Some(AddressKind::Private),
        [0xfe80..=0xfebf, ..] => Some(AddressKind::LinkLocal),
        [0xff00..=0xffff, ..] => Some(AddressKind::Multicast),
        [0x2001, 0x0db8 | 0..=0x01ff, ..] | [0x3fff, 0..=0x0fff, ..] => Some(AddressKind::SpecialPurpose),
        // Embedded IPv4: mapped addresses, NAT64 and tunnels.
        [0, 0, 0, 0, 0, 0xffff, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..]
        | [0x2000..=0x3fff, _, _, _, 0 | 0x200, 0x5efe, high, low] => embedded(high, low),
        [0x2000..=0x3fff, ..] => None,
        _ => Some(AddressKind::Reserved),
    }
}

/// A host as a URL spells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpelledHost<'a> {
    /// An address.
    Address(IpAddr),
    /// A name, without a trailing dot.
    Name(&'a str),
}

impl<'a> SpelledHost<'a> {
    /// Parses a host, an IPv6 address with or without brackets.
    ///
    /// Returns `None` for spellings such as `2130706433`, `0x7f.1` and `0177.0.0.1`, which some resolvers treat as addresses.
    /// Names never end in a number.
    #[must_use]
    pub fn parse(host: &'a str) -> Option<Self> {
        let host = plain(host);
        if let Ok(address) = host.parse() {
            return Some(Self::Address(address));
        }
        let last = host.rsplit('.').next().unwrap_or_default();
        let is_number = last.get(..2).is_some_and(|start| start.eq_ignore_ascii_case("0x"))
            || last.bytes().all(|byte| byte.is_ascii_digit());
        if host.contains(':') || last.is_empty() || is_number { None } else { Some(Self::Name(host)) }
    }

    /// Returns whether this is a name that exists only in private networks, such as `localhost` or `db.internal`.
    #[must_use]
    pub fn is_private_name(&self) -> bool {
        let Self::Name(host) = self else { return false };
        let is_below = |name: &str| {
            let Some(at) = host.len().checked_sub(name.len()) else { return false };
            host.get(at..).is_some_and(|end| end.eq_ignore_ascii_case(name))
                && (at == 0 || host.as_bytes().get(at - 1) == Some(&b'.'))
        };
        ["localhost", "local", "internal", "home.arpa"].into_iter().any(is_below)
    }
}

/// Removes the brackets of an IPv6 address and the trailing dot of a name.
#[must_use]
pub fn plain(host: &str) -> &str {
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    host.strip_suffix('.').unwrap_or(host)
}
