//! Addresses and networks (k8s.io/apiserver/pkg/cel/library/ip.go and cidr.go), with the errors of Go's `net/netip`.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

use super::Implementation;
use crate::error::EvaluationError;
use crate::value::{Opaque, Value};

type Outcome<'a> = Result<Value<'a>, EvaluationError>;

/// An address without zone, and not an IPv4 one in an IPv6 one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpAddress(IpAddr);

/// A network: an address and the length of its prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cidr {
    address: IpAddr,
    prefix: u8,
}

pub(super) fn find(overload: &str) -> Option<Implementation> {
    Some(match overload {
        "string_to_ip" => |args| {
            of_text(args, |text| IpAddress::parse(text).map(|address| Value::Opaque(Opaque::Ip(address))))
        },
        "is_ip" => |args| of_text(args, |text| Ok(Value::Bool(IpAddress::parse(text).is_ok()))),
        "ip_is_canonical" => |args| {
            of_text(args, |text| {
                IpAddress::parse(text).map(|address| Value::Bool(address.to_string() == text))
            })
        },
        "ip_to_string" | "cidr_to_string" => |args| match args {
            [Value::Opaque(opaque)] => Ok(Value::from(opaque.to_string())),
            _ => no_overload(),
        },
        "ip_family" => |args| of_address(args, |address| Value::Int(if address.is_ipv4() { 4 } else { 6 })),
        "ip_is_unspecified" => |args| of_address(args, |address| Value::Bool(address.is_unspecified())),
        "ip_is_loopback" => |args| of_address(args, |address| Value::Bool(address.is_loopback())),
        "ip_is_link_local_multicast" => {
            |args| of_address(args, |address| Value::Bool(is_link_local_multicast(address)))
        }
        "ip_is_link_local_unicast" => {
            |args| of_address(args, |address| Value::Bool(is_link_local_unicast(address)))
        }
        "ip_is_global_unicast" => |args| of_address(args, |address| Value::Bool(is_global_unicast(address))),
        "string_to_cidr" => {
            |args| of_text(args, |text| Cidr::parse(text).map(|network| Value::Opaque(Opaque::Cidr(network))))
        }
        "is_cidr" => |args| of_text(args, |text| Ok(Value::Bool(Cidr::parse(text).is_ok()))),
        "cidr_ip" => |args| of_network(args, |network| Value::Opaque(Opaque::Ip(IpAddress(network.address)))),
        "cidr_prefix_length" => |args| of_network(args, |network| Value::Int(network.prefix.into())),
        "cidr_masked" => |args| of_network(args, |network| Value::Opaque(Opaque::Cidr(network.masked()))),
        "cidr_contains_ip_ip" | "cidr_contains_ip_string" => contains_address,
        "cidr_contains_cidr" | "cidr_contains_cidr_string" => contains_network,
        _ => return None,
    })
}

fn no_overload<'a>() -> Outcome<'a> {
    Err(EvaluationError::no_such_overload())
}

fn of_text<'a>(args: &[Value<'a>], make: fn(&str) -> Outcome<'a>) -> Outcome<'a> {
    match args {
        [Value::String(text)] => make(text),
        _ => no_overload(),
    }
}

fn of_address<'a>(args: &[Value<'a>], make: fn(IpAddr) -> Value<'a>) -> Outcome<'a> {
    match args {
        [Value::Opaque(Opaque::Ip(address))] => Ok(make(address.0)),
        _ => no_overload(),
    }
}

fn of_network<'a>(args: &[Value<'a>], make: fn(Cidr) -> Value<'a>) -> Outcome<'a> {
    match args {
        [Value::Opaque(Opaque::Cidr(network))] => Ok(make(*network)),
        _ => no_overload(),
    }
}

fn contains_address<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let (network, address) = match args {
        [Value::Opaque(Opaque::Cidr(network)), Value::Opaque(Opaque::Ip(address))] => (network, *address),
        [Value::Opaque(Opaque::Cidr(network)), Value::String(text)] => match IpAddress::parse(text) {
            Ok(address) => (network, address),
            // kube-apiserver does not say what is wrong with it.
            Err(_) => return no_overload(),
        },
        _ => return no_overload(),
    };
    Ok(Value::Bool(network.contains(address.0)))
}

fn contains_network<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let (network, other) = match args {
        [Value::Opaque(Opaque::Cidr(network)), Value::Opaque(Opaque::Cidr(other))] => (network, *other),
        [Value::Opaque(Opaque::Cidr(network)), Value::String(text)] => (network, Cidr::parse(text)?),
        _ => return no_overload(),
    };
    Ok(Value::Bool(network.prefix <= other.prefix && network.contains(other.address)))
}

fn is_link_local_multicast(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.octets()[..3] == [224, 0, 0],
        IpAddr::V6(address) => address.segments()[0] & 0xff0f == 0xff02,
    }
}

fn is_link_local_unicast(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.segments()[0] & 0xffc0 == 0xfe80,
    }
}

fn is_global_unicast(address: IpAddr) -> bool {
    let broadcast = matches!(address, IpAddr::V4(address) if address.is_broadcast());
    !broadcast
        && !address.is_unspecified()
        && !address.is_loopback()
        && !address.is_multicast()
        && !is_link_local_unicast(address)
}

impl IpAddress {
    fn parse(text: &str) -> Result<Self, EvaluationError> {
        let (address, zone) = parse_address(text).map_err(|why| {
            let quoted = quote(text);
            EvaluationError::new(format!(
                "IP Address {quoted} parse error during conversion from string: {why}"
            ))
        })?;
        if zone {
            return Err(EvaluationError::new(format!(
                "IP address {} with zone value is not allowed",
                quote(text)
            )));
        }
        if is_mapped(address) {
            return Err(EvaluationError::new(format!(
                "IPv4-mapped IPv6 address {} is not allowed",
                quote(text)
            )));
        }
        Ok(Self(address))
    }

    /// The bytes of the address.
    pub(crate) fn size(self) -> u64 {
        if self.0.is_ipv4() { 4 } else { 16 }
    }
}

impl fmt::Display for IpAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Cidr {
    fn parse(text: &str) -> Result<Self, EvaluationError> {
        let failed = |why: &str| {
            let again = "network address parse error during conversion from string: ";
            EvaluationError::new(format!("{again}{again}netip.ParsePrefix({}): {why}", quote(text)))
        };
        let (address, bits) = text.rsplit_once('/').ok_or_else(|| failed("no '/'"))?;
        let (address, zone) = parse_address(address).map_err(|why| failed(&why))?;
        if zone {
            return Err(failed("IPv6 zones cannot be present in a prefix"));
        }
        let bad = || failed(&format!("bad bits after slash: {}", quote(bits)));
        if bits.is_empty()
            || !bits.bytes().all(|byte| byte.is_ascii_digit())
            || (bits.len() > 1 && bits.starts_with('0'))
        {
            return Err(bad());
        }
        let most = if address.is_ipv4() { 32 } else { 128 };
        let prefix = bits.parse::<u32>().map_err(|_| bad())?;
        let prefix = u8::try_from(prefix).ok().filter(|prefix| *prefix <= most);
        let prefix = prefix.ok_or_else(|| failed("prefix length out of range"))?;
        if is_mapped(address) {
            return Err(EvaluationError::new(format!(
                "network address parse error during conversion from string: IPv4-mapped IPv6 address {} is not allowed",
                quote(text)
            )));
        }
        Ok(Self { address, prefix })
    }

    fn masked(self) -> Self {
        Self { address: mask(self.address, self.prefix), prefix: self.prefix }
    }

    fn contains(self, address: IpAddr) -> bool {
        self.address.is_ipv4() == address.is_ipv4()
            && mask(address, self.prefix) == mask(self.address, self.prefix)
    }

    /// The bytes of the prefix.
    pub(crate) fn size(self) -> u64 {
        u64::from(self.prefix).div_ceil(8)
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

fn mask(address: IpAddr, prefix: u8) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let bits = u32::from(address);
            IpAddr::V4((bits & u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0)).into())
        }
        IpAddr::V6(address) => {
            let bits = u128::from(address);
            IpAddr::V6((bits & u128::MAX.checked_shl(128 - u32::from(prefix)).unwrap_or(0)).into())
        }
    }
}

fn is_mapped(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if address.to_ipv4_mapped().is_some())
}

fn quote(text: &str) -> String {
    format!("{text:?}")
}

/// The address, and whether it had a zone; or what Go says of it.
pub(super) fn parse_address(text: &str) -> Result<(IpAddr, bool), String> {
    let failed = |why: &str, at: &str| {
        let at = if at.is_empty() { String::new() } else { format!(" (at {})", quote(at)) };
        format!("ParseAddr({}): {why}{at}", quote(text))
    };
    match text.bytes().find(|byte| matches!(byte, b'.' | b':' | b'%')) {
        Some(b'.') => {
            let fields = parse_fields(text).map_err(|(why, at)| failed(why, at))?;
            Ok((IpAddr::from(fields), false))
        }
        Some(b':') => parse_v6(text).map_err(|(why, at)| failed(why, at)),
        Some(_) => Err(failed("missing IPv6 address", "")),
        None => Err(failed("unable to parse IP", "")),
    }
}

/// What is wrong, and from where on.
type Wrong<'t> = (&'static str, &'t str);

fn parse_fields(text: &str) -> Result<[u8; 4], Wrong<'_>> {
    let mut fields = [0; 4];
    let (mut position, mut value, mut digits) = (0, 0_u32, 0);
    let bytes = text.as_bytes();
    for (index, byte) in bytes.iter().enumerate() {
        match byte {
            b'0'..=b'9' => {
                if digits == 1 && value == 0 {
                    return Err(("IPv4 field has octet with leading zero", ""));
                }
                value = value * 10 + u32::from(byte - b'0');
                digits += 1;
                if value > 255 {
                    return Err(("IPv4 field has value >255", ""));
                }
            }
            b'.' if index == 0 || index == bytes.len() - 1 || bytes[index - 1] == b'.' => {
                return Err(("IPv4 field must have at least one digit", &text[index..]));
            }
            b'.' if position == 3 => return Err(("IPv4 address too long", "")),
            b'.' => {
                fields[position] = u8::try_from(value).unwrap_or(u8::MAX);
                position += 1;
                (value, digits) = (0, 0);
            }
            _ => return Err(("unexpected character", text.get(index..).unwrap_or(""))),
        }
    }
    if position < 3 {
        return Err(("IPv4 address too short", ""));
    }
    fields[3] = u8::try_from(value).unwrap_or(u8::MAX);
    Ok(fields)
}

fn parse_v6(text: &str) -> Result<(IpAddr, bool), Wrong<'_>> {
    let (address, zone) = match text.split_once('%') {
        Some((_, "")) => return Err(("zone must be a non-empty string", "")),
        Some((address, _)) => (address, true),
        None => (text, false),
    };
    if let Ok(address) = address.parse::<Ipv6Addr>() {
        return Ok((IpAddr::V6(address), zone));
    }
    Err(explain_v6(address))
}

/// What is wrong with an IPv6 address.
fn explain_v6(text: &str) -> Wrong<'_> {
    let mut rest = text;
    let mut filled = 0;
    let mut ellipsis = rest.starts_with("::");
    if ellipsis {
        rest = &rest[2..];
    }
    while filled < 16 {
        let digits = rest.bytes().take_while(u8::is_ascii_hexdigit).count();
        if digits > 4 {
            return ("each group must have 4 or less digits", rest);
        }
        if digits == 0 {
            return ("each colon-separated field must have at least one digit", rest);
        }
        if rest[digits..].starts_with('.') {
            if !ellipsis && filled != 12 {
                return ("embedded IPv4 address must replace the final 2 fields of the address", rest);
            }
            if filled + 4 > 16 {
                return ("too many hex fields to fit an embedded IPv4 at the end of the address", rest);
            }
            return parse_fields(rest)
                .err()
                .unwrap_or(("the :: must expand to at least one field of zeros", ""));
        }
        filled += 2;
        rest = &rest[digits..];
        if rest.is_empty() {
            break;
        }
        if !rest.starts_with(':') {
            return ("unexpected character, want colon", rest);
        }
        if rest.len() == 1 {
            return ("colon must be followed by more characters", rest);
        }
        rest = &rest[1..];
        if rest.starts_with(':') {
            if ellipsis {
                return ("multiple :: in address", rest);
            }
            ellipsis = true;
            rest = &rest[1..];
            if rest.is_empty() {
                break;
            }
        }
    }
    if !rest.is_empty() {
        ("trailing garbage after address", rest)
    } else if ellipsis {
        ("the :: must expand to at least one field of zeros", "")
    } else {
        ("address string too short", "")
    }
}
