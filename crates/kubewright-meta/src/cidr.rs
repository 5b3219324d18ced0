//! The networks of service addresses (`--service-cluster-ip-range`).

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The fewest addresses that a network of services has (`pkg/controlplane/apiserver`, `ServiceIPRange`).
const SMALLEST: u128 = 8;
/// The most bits that are left to the addresses of a network (`validateMaxCIDRRange`).
const MOST_BITS: u32 = 20;

/// A family of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// 32 bits.
    V4,
    /// 128 bits.
    V6,
}

impl Family {
    /// The family of an address.
    #[must_use]
    pub fn of(address: IpAddr) -> Self {
        if address.is_ipv4() { Self::V4 } else { Self::V6 }
    }

    /// The family of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        [Self::V4, Self::V6].into_iter().find(|family| family.name() == name)
    }

    /// As Kubernetes calls it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        }
    }

    fn bits(self) -> u32 {
        match self {
            Self::V4 => 32,
            Self::V6 => 128,
        }
    }
}

/// A network: all addresses with the same beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cidr {
    family: Family,
    base: u128,
    prefix: u32,
}

impl Cidr {
    /// Reads `address/bits`; what stands behind the bits is dropped.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (address, prefix) = text.split_once('/')?;
        let address: IpAddr = address.parse().ok()?;
        let family = Family::of(address);
        let prefix: u32 = prefix.parse().ok().filter(|bits| *bits <= family.bits())?;
        let host_bits = family.bits() - prefix;
        let base = (number(address).checked_shr(host_bits).unwrap_or(0)).checked_shl(host_bits).unwrap_or(0);
        Some(Self { family, base, prefix })
    }

    /// IPv4 or IPv6.
    #[must_use]
    pub fn family(self) -> Family {
        self.family
    }

    /// How many addresses it has.
    #[must_use]
    pub fn len(self) -> u128 {
        1_u128.checked_shl(self.host_bits()).unwrap_or(u128::MAX)
    }

    /// Never: there is at least one address.
    #[must_use]
    pub fn is_empty(self) -> bool {
        false
    }

    /// The address at this place, the network's own at 0.
    #[must_use]
    pub fn address(self, place: u128) -> IpAddr {
        let number = self.base.wrapping_add(place);
        match self.family {
            Family::V4 => Ipv4Addr::from(u32::try_from(number).unwrap_or(u32::MAX)).into(),
            Family::V6 => Ipv6Addr::from(number).into(),
        }
    }

    /// The place of an address in it.
    #[must_use]
    pub fn place(self, address: IpAddr) -> Option<u128> {
        let place = number(address).checked_sub(self.base)?;
        (Family::of(address) == self.family && place < self.len()).then_some(place)
    }

    /// The last place that a service can have: not that of all, which only IPv4 knows. Its first is 1.
    pub fn last_place(self) -> u128 {
        self.len().saturating_sub(if self.family == Family::V4 { 2 } else { 1 })
    }

    /// Whether a service can have the address of it (`pkg/api/servicecidr`, `PrefixContainsIP`).
    #[must_use]
    pub fn offers(self, address: IpAddr) -> bool {
        self.place(address).is_some_and(|place| (1..=self.last_place()).contains(&place))
    }

    /// Whether all addresses of the other are its own.
    #[must_use]
    pub fn contains(self, other: Self) -> bool {
        self.family == other.family
            && self.prefix <= other.prefix
            && other.base.checked_shr(self.host_bits()).unwrap_or(0)
                == self.base.checked_shr(self.host_bits()).unwrap_or(0)
    }

    fn host_bits(self) -> u32 {
        self.family.bits() - self.prefix
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address(0), self.prefix)
    }
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u32::from(address).into(),
        IpAddr::V6(address) => address.into(),
    }
}

/// The networks of service addresses: one, or one of each family; the first is that of services that do not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServiceCidrs {
    first: Cidr,
    second: Option<Cidr>,
}

impl Default for ServiceCidrs {
    /// 10.0.0.0/24.
    fn default() -> Self {
        let first =
            Cidr { family: Family::V4, base: u32::from(Ipv4Addr::new(10, 0, 0, 0)).into(), prefix: 24 };
        Self { first, second: None }
    }
}

impl ServiceCidrs {
    /// Reads `--service-cluster-ip-range`: one network, or two with a comma between.
    ///
    /// # Errors
    /// What kube-apiserver says of it (`cmd/kube-apiserver/app/options`).
    pub fn parse(text: &str) -> Result<Self, String> {
        let flag = "--service-cluster-ip-range";
        let mut parts = text.split(',');
        let first = parts.next().unwrap_or_default();
        let first = Cidr::parse(first).ok_or("service-cluster-ip-range[0] is not a valid cidr")?;
        if first.len() < SMALLEST {
            return Err(format!(
                "error determining service IP ranges for primary service cidr: the service cluster IP range must be at least {SMALLEST} IP addresses"
            ));
        }
        let second = match parts.next() {
            Some(second) => Some(Cidr::parse(second).ok_or("service-cluster-ip-range[1] is not an ip net")?),
            None => None,
        };
        if parts.next().is_some() {
            return Err(format!("{flag} must not contain more than two entries"));
        }
        small_enough(first, flag)?;
        if let Some(second) = second {
            if second.family == first.family {
                return Err(format!("{flag}[0] and {flag}[1] must be of different IP family"));
            }
            small_enough(second, &format!("{flag}[1]"))?;
        }
        Ok(Self { first, second })
    }

    /// The networks, the one of services that do not say first.
    pub fn iter(&self) -> impl Iterator<Item = Cidr> {
        std::iter::once(self.first).chain(self.second)
    }

    /// The network of services that do not say.
    #[must_use]
    pub fn first(&self) -> Cidr {
        self.first
    }

    /// The network of a family.
    #[must_use]
    pub fn of(&self, family: Family) -> Option<Cidr> {
        self.iter().find(|cidr| cidr.family == family)
    }

    /// The address of the API server's own service: the first one.
    #[must_use]
    pub fn api_server(&self) -> IpAddr {
        self.first.address(1)
    }
}

fn small_enough(cidr: Cidr, flag: &str) -> Result<(), String> {
    if cidr.host_bits() <= MOST_BITS {
        return Ok(());
    }
    let bits = cidr.family.bits();
    Err(format!(
        "specified {flag} is too large; for {bits}-bit addresses, the mask must be >= {}",
        bits - MOST_BITS
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_read_and_printed() {
        for (text, printed, own) in [
            ("10.0.0.0/24", "10.0.0.0/24", "10.0.0.1"),
            ("10.0.0.77/24", "10.0.0.0/24", "10.0.0.1"),
            ("fd00:1::/112", "fd00:1::/112", "fd00:1::1"),
            ("10.0.0.0/16,fd00::/108", "10.0.0.0/16,fd00::/108", "10.0.0.1"),
            ("fd00::/108,10.0.0.0/16", "fd00::/108,10.0.0.0/16", "fd00::1"),
        ] {
            let cidrs = ServiceCidrs::parse(text).expect(text);
            let all: Vec<String> = cidrs.iter().map(|cidr| cidr.to_string()).collect();
            assert_eq!(all.join(","), printed);
            assert_eq!(cidrs.api_server().to_string(), own);
        }
    }

    #[test]
    fn an_address_has_a_place_in_its_own_network_only() {
        let cidr = Cidr::parse("10.0.0.0/24").expect("a network");
        let place = |text: &str| cidr.place(text.parse().expect("an address"));
        assert_eq!(place("10.0.0.7"), Some(7));
        assert_eq!(place("10.0.1.0"), None);
        assert_eq!(place("9.255.255.255"), None);
        assert_eq!(place("::a00:7"), None);
        let offers = |text: &str| cidr.offers(text.parse().expect("an address"));
        assert_eq!(
            ["10.0.0.0", "10.0.0.1", "10.0.0.254", "10.0.0.255"].map(offers),
            [false, true, true, false]
        );
    }

    #[test]
    fn a_network_contains_itself_and_its_parts() {
        let contains = |one: &str, other: &str| {
            Cidr::parse(one).expect("a network").contains(Cidr::parse(other).expect("a network"))
        };
        assert!(contains("10.0.0.0/24", "10.0.0.0/24"));
        assert!(contains("10.0.0.0/16", "10.0.7.0/24"));
        assert!(contains("0.0.0.0/0", "10.0.7.0/24"));
        assert!(contains("::/0", "fd00::/64"));
        assert!(!contains("10.0.7.0/24", "10.0.0.0/16"));
        assert!(!contains("10.0.0.0/24", "10.0.1.0/24"));
        assert!(!contains("::/0", "10.0.0.0/24"));
        assert_eq!(Cidr::parse("0.0.0.0/0").map(Cidr::len), Some(1 << 32));
    }

    #[test]
    fn mistakes_are_told_in_the_words_of_kube_apiserver() {
        for (text, told) in [
            ("10.0.0.0", "service-cluster-ip-range[0] is not a valid cidr"),
            ("10.0.0.0/33", "service-cluster-ip-range[0] is not a valid cidr"),
            (
                "10.0.0.0/30",
                "error determining service IP ranges for primary service cidr: the service cluster IP range must be at least 8 IP addresses",
            ),
            (
                "10.0.0.0/8",
                "specified --service-cluster-ip-range is too large; for 32-bit addresses, the mask must be >= 12",
            ),
            (
                "10.0.0.0/16,fd00::/64",
                "specified --service-cluster-ip-range[1] is too large; for 128-bit addresses, the mask must be >= 108",
            ),
            (
                "10.0.0.0/16,10.1.0.0/16",
                "--service-cluster-ip-range[0] and --service-cluster-ip-range[1] must be of different IP family",
            ),
            ("10.0.0.0/16,x", "service-cluster-ip-range[1] is not an ip net"),
            (
                "10.0.0.0/16,fd00::/108,10.1.0.0/16",
                "--service-cluster-ip-range must not contain more than two entries",
            ),
        ] {
            assert_eq!(ServiceCidrs::parse(text), Err(told.to_owned()), "{text}");
        }
    }
}
