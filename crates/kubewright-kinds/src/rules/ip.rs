//! Addresses and ranges in fields that are older than strict rules for them (`k8s.io/apimachinery/pkg/util/validation/ip.go`): from
//! v1.36 on (the feature StrictIPCIDRValidation) they must not be written in a way that programs read differently.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use kubewright_meta::{FieldError, Problem, text};
use serde_json::Value;

use super::version;

const STRICT: &str = "StrictIPCIDRValidation";
const ZEROS: &str = "must not have leading 0s";
const MAPPED: &str = "must not be an IPv4-mapped IPv6 address";
const RANGE_ZEROS: &str = "must not have leading 0s in IP or prefix length";
const RANGE_MAPPED: &str = "must not have an IPv4-mapped IPv6 address";
const RANGE_BITS: &str = "must not have bits set beyond the prefix length";

/// An address as old fields may have it, with leading zeros, and whether those made it readable (`ParseIPSloppy`). One of IPv4 that
/// is written as one of IPv6 is one of IPv4.
fn sloppy(text: &str) -> Option<(IpAddr, bool)> {
    if let Ok(address) = text.parse::<IpAddr>() {
        return Some((address.to_canonical(), false));
    }
    let mut octets = [0_u8; 4];
    let mut parts = text.split('.');
    for octet in &mut octets {
        let part =
            parts.next().filter(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))?;
        let digits = part.trim_start_matches('0');
        *octet = if digits.is_empty() { 0 } else { digits.parse().ok()? };
    }
    parts.next().is_none().then(|| (Ipv4Addr::from(octets).into(), true))
}

/// Whether it is an address as old fields may have it.
pub(super) fn is_address(text: &str) -> bool {
    sloppy(text).is_some()
}

fn is_mapped(text: &str) -> bool {
    matches!(text.parse::<Ipv6Addr>(), Ok(address) if address.to_ipv4_mapped().is_some())
}

/// An address (`IsValidIPForLegacyField`).
pub(super) fn address(text: &str) -> Vec<String> {
    let Some((_, zeros)) = sloppy(text) else { return text::ip(text) };
    let wrong = [(zeros, ZEROS), (is_mapped(text), MAPPED)];
    let is_strict = version::has_feature(STRICT);
    wrong.into_iter().filter(|(is, _)| is_strict && *is).map(|(_, detail)| detail.to_owned()).collect()
}

/// A range as old fields may have it: the address, the length of the prefix, and whether leading zeros made it readable.
fn sloppy_range(text: &str) -> Option<(IpAddr, u8, bool)> {
    let (address, length) = text.split_once('/')?;
    let (address, mut zeros) = match address.parse::<IpAddr>() {
        Ok(address) => (address, false),
        Err(_) => sloppy(address)?,
    };
    if length.is_empty() || !length.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    zeros |= length.len() > 1 && length.starts_with('0');
    let length = length.trim_start_matches('0');
    let length: u8 = if length.is_empty() { 0 } else { length.parse().ok()? };
    let limit = if address.is_ipv4() { 32 } else { 128 };
    (length <= limit).then_some((address, length, zeros))
}

/// The address of a range and the length of its prefix.
pub(super) fn parse_range(text: &str) -> Option<(IpAddr, u8)> {
    sloppy_range(text).map(|(address, length, _)| (address, length))
}

/// A range (`IsValidCIDRForLegacyField`).
pub(super) fn range(text: &str) -> Vec<String> {
    if sloppy_range(text).is_none() {
        return text::cidr(text);
    }
    not_strict(text).filter(|_| version::has_feature(STRICT)).map(str::to_owned).into_iter().collect()
}

/// What strict rules find wrong with a range that can be read.
fn not_strict(text: &str) -> Option<&'static str> {
    let (address, length, zeros) = sloppy_range(text)?;
    if zeros {
        Some(RANGE_ZEROS)
    } else if matches!(address, IpAddr::V6(address) if address.to_ipv4_mapped().is_some()) {
        Some(RANGE_MAPPED)
    } else {
        (masked(address, length) != address).then_some(RANGE_BITS)
    }
}

/// Whether addresses are one or none, or one of each family (`IsDualStackIPStrings`).
///
/// # Errors
/// What Kubernetes says of the first that is none, where there are several.
pub(super) fn families_of_addresses(texts: &[impl AsRef<str>]) -> Result<bool, String> {
    one_of_each(texts, |index, text| {
        sloppy(text).map(|(address, _)| address).ok_or_else(|| format!("invalid IP[{index}]: {text}"))
    })
}

/// The same of ranges (`IsDualStackCIDRStrings`).
///
/// # Errors
/// What Kubernetes says of the first that is none, where there are several.
pub(super) fn families_of_ranges(texts: &[impl AsRef<str>]) -> Result<bool, String> {
    one_of_each(texts, |index, text| {
        let no_range = || format!("invalid CIDR[{index}]: <nil> (invalid CIDR address: {text})");
        parse_range(text).map(|(address, _)| address.to_canonical()).ok_or_else(no_range)
    })
}

fn one_of_each(
    texts: &[impl AsRef<str>],
    read: impl Fn(usize, &str) -> Result<IpAddr, String>,
) -> Result<bool, String> {
    if texts.len() < 2 {
        return Ok(true);
    }
    let addresses: Vec<IpAddr> =
        texts.iter().enumerate().map(|(index, text)| read(index, text.as_ref())).collect::<Result<_, _>>()?;
    Ok(addresses.len() == 2 && addresses[0].is_ipv4() != addresses[1].is_ipv4())
}

/// A range in its canonical form, as new fields have it (`IsValidCIDR`).
pub(super) fn strict_range(text: &str) -> Vec<String> {
    let Some((address, length, _)) = sloppy_range(text) else { return text::cidr(text) };
    if let Some(wrong) = not_strict(text) {
        return vec![wrong.to_owned()];
    }
    let canonical = format!("{address}/{length}");
    if canonical == text { Vec::new() } else { vec![format!("must be in canonical form ({canonical:?})")] }
}

/// The first address of a range.
pub(super) fn masked(address: IpAddr, length: u8) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or_default();
            IpAddr::from((address.to_bits() & mask).to_be_bytes())
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or_default();
            Ipv6Addr::from_bits(address.to_bits() & mask).into()
        }
    }
}

/// An update may keep what an object has since before the rules were strict.
pub(super) fn tolerate(errors: &mut Vec<FieldError>, old: &Value) {
    let is_strict =
        |error: &FieldError| [ZEROS, MAPPED, RANGE_ZEROS, RANGE_MAPPED, RANGE_BITS].contains(&&*error.detail);
    errors.retain(|error| match &error.problem {
        Problem::Invalid(value) if is_strict(error) => !has(old, value),
        _ => true,
    });
}

fn has(object: &Value, value: &Value) -> bool {
    match object {
        Value::Object(members) => members.values().any(|member| has(member, value)),
        Value::Array(items) => items.iter().any(|item| has(item, value)),
        other => other == value,
    }
}

/// What an address is warned of (`GetWarningsForIP`), as what follows its path.
pub(super) fn warning_of_address(text: &str) -> Option<String> {
    let (address, zeros) = sloppy(text)?;
    if zeros || is_mapped(text) {
        return Some(format!("non-standard IP address {text:?} is invalid: use \"{address}\""));
    }
    (address.is_ipv6() && address.to_string() != text)
        .then(|| format!("IPv6 address {text:?} should be in RFC 5952 canonical format (\"{address}\")"))
}

/// What a range is warned of (`GetWarningsForCIDR`), as what follows its path.
pub(super) fn warnings_of_range(text: &str) -> Vec<String> {
    let Some((address, length, zeros)) = sloppy_range(text) else { return Vec::new() };
    let first = masked(address, length);
    // Go shows a mapped range as one of IPv4, where its prefix lies in the last 32 bits.
    let (four, six) = (first.to_canonical(), matches!(address, IpAddr::V6(_)));
    let is_mapped = six && address.to_canonical().is_ipv4();
    let shown = if is_mapped && length >= 96 {
        format!("{four}/{}", length - 96)
    } else {
        format!("{first}/{length}")
    };
    let mut warnings = Vec::new();
    if first != address {
        let whole = if six { 128 } else { 32 };
        warnings.push(format!(
            "CIDR value {text:?} is ambiguous in this context (should be \"{shown}\" or \"{}/{whole}\"?)",
            address.to_canonical()
        ));
    }
    if zeros || is_mapped {
        warnings.push(format!("non-standard CIDR value {text:?} is invalid: use \"{shown}\""));
    }
    if warnings.is_empty() && six && shown != text {
        warnings
            .push(format!("IPv6 CIDR value {text:?} should be in RFC 5952 canonical format (\"{shown}\")"));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use kubewright_spec::Version;
    use serde_json::json;

    use super::*;

    fn at<T>(version: Version, check: impl FnOnce() -> T) -> T {
        version::judged_by(version, check)
    }

    #[test]
    fn addresses_that_are_read_differently_are_refused_from_v1_36_on() {
        for (text, wrong) in [("010.1.2.3", ZEROS), ("::ffff:1.2.3.4", MAPPED)] {
            assert_eq!(at(Version::V1_35, || address(text)), Vec::<String>::new());
            for version in [Version::V1_36, Version::V1_37] {
                assert_eq!(at(version, || address(text)), [wrong]);
            }
        }
        for (text, wrong) in [
            ("010.0.0.0/8", RANGE_ZEROS),
            ("10.0.0.0/08", RANGE_ZEROS),
            ("10.0.0.1/8", RANGE_BITS),
            ("::ffff:10.0.0.0/104", RANGE_MAPPED),
        ] {
            assert_eq!(at(Version::V1_35, || range(text)), Vec::<String>::new(), "{text}");
            assert_eq!(at(Version::V1_36, || range(text)), [wrong], "{text}");
        }
        for version in Version::ALL {
            for text in ["1.2.3.4", "fe80::1", "FE80:0:0::1"] {
                assert_eq!(at(version, || address(text)), Vec::<String>::new(), "{text}");
            }
            for text in ["", "1.2.3", "1.2.3.256", "a.1.2.3", "1.2.3.4.5"] {
                assert_eq!(at(version, || address(text)), text::ip(text), "{text}");
            }
            for text in ["", "10.0.0.0", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/x"] {
                assert_eq!(at(version, || range(text)), text::cidr(text), "{text}");
            }
        }
    }

    #[test]
    fn an_update_keeps_what_was_there_before_the_rule() {
        let error = |value: &str| FieldError::invalid("spec.externalIPs[0]", json!(value), ZEROS);
        let mut errors = vec![error("010.1.2.3"), error("010.1.2.4")];
        tolerate(&mut errors, &json!({"spec": {"externalIPs": ["010.1.2.3"]}}));
        assert_eq!(errors, [error("010.1.2.4")]);
    }

    #[test]
    fn unusual_spellings_are_warned_of() {
        let mapped = "non-standard IP address \"::ffff:1.2.3.4\" is invalid: use \"1.2.3.4\"";
        assert_eq!(warning_of_address("::ffff:1.2.3.4").as_deref(), Some(mapped));
        assert_eq!(
            warning_of_address("01.2.3.4").as_deref(),
            Some("non-standard IP address \"01.2.3.4\" is invalid: use \"1.2.3.4\"")
        );
        assert_eq!(warning_of_address("1.2.3.4"), None);
        assert_eq!(
            warnings_of_range("010.0.0.1/8"),
            [
                "CIDR value \"010.0.0.1/8\" is ambiguous in this context (should be \"10.0.0.0/8\" or \"10.0.0.1/32\"?)",
                "non-standard CIDR value \"010.0.0.1/8\" is invalid: use \"10.0.0.0/8\"",
            ]
        );
        assert_eq!(warnings_of_range("10.0.0.0/8"), Vec::<String>::new());
    }
}
