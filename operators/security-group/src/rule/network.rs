//! A network of addresses, in the one spelling that is compared.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    str::FromStr,
};

use crate::types::EtherType;

/// An address whose bits behind the mask are zero, and the mask's length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Network {
    address: IpAddr,
    length: u8,
}

impl Network {
    /// The family of its addresses.
    #[must_use]
    pub fn ether_type(&self) -> EtherType {
        if self.address.is_ipv6() { EtherType::IPv6 } else { EtherType::IPv4 }
    }

    /// Whether it has all addresses of its family.
    #[must_use]
    pub fn is_everybody(&self) -> bool {
        self.length == 0
    }
}

impl FromStr for Network {
    type Err = ();

    /// `10.1.2.3/16` (which is `10.1.0.0/16`) or an address alone.
    fn from_str(text: &str) -> Result<Self, ()> {
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(drop)?;
        let longest = if address.is_ipv6() { 128 } else { 32 };
        let length = match length {
            Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                digits.parse().map_err(drop)?
            }
            Some(_) => return Err(()),
            None => longest,
        };
        if length > longest {
            return Err(());
        }
        let hidden = u32::from(longest - length);
        let address = match address {
            IpAddr::V4(address) => {
                let mask = u32::MAX.checked_shl(hidden).unwrap_or(0);
                IpAddr::V4(Ipv4Addr::from_bits(address.to_bits() & mask))
            }
            IpAddr::V6(address) => {
                let mask = u128::MAX.checked_shl(hidden).unwrap_or(0);
                IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & mask))
            }
        };
        Ok(Self { address, length })
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_has_one_spelling() {
        let spelt = |text: &str| text.parse::<Network>().map(|network| network.to_string());
        assert_eq!(spelt("10.1.2.3/16").as_deref(), Ok("10.1.0.0/16"));
        assert_eq!(spelt("192.0.2.7").as_deref(), Ok("192.0.2.7/32"));
        assert_eq!(spelt("2001:DB8:0::1/32").as_deref(), Ok("2001:db8::/32"));
        assert_eq!(spelt("0.0.0.0/0").as_deref(), Ok("0.0.0.0/0"));
        for bad in ["", "10.0.0.0/33", "10.0.0/8", "::/129", "10.0.0.0/", "10.0.0.0/+8", "a/8"] {
            assert!(spelt(bad).is_err(), "{bad}");
        }
    }
}
