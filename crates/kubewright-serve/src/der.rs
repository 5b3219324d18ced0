//! The few forms of ASN.1 (DER) that are read and written by hand here: names of certificates, and keys.

use x509_parser::asn1_rs::{Any, FromDer};

/// The tag of an INTEGER.
pub const INTEGER: u8 = 0x02;
/// The tag of a BIT STRING.
pub const BIT_STRING: u8 = 0x03;
/// The tag of an OCTET STRING.
pub const OCTET_STRING: u8 = 0x04;
/// The tag of NULL.
pub const NULL: u8 = 0x05;
/// The tag of a SEQUENCE.
pub const SEQUENCE: u8 = 0x30;

/// A DER element with that tag and the contents one after the other.
#[must_use]
pub fn element(tag: u8, contents: &[&[u8]]) -> Vec<u8> {
    let length: usize = contents.iter().map(|content| content.len()).sum();
    let bytes = length.to_be_bytes();
    let mut der = vec![tag];
    if length < 0x80 {
        der.push(bytes[bytes.len() - 1]);
    } else {
        let digits = &bytes[length.leading_zeros() as usize / 8..];
        der.push(0x80 | u8::try_from(digits.len()).unwrap_or(u8::MAX));
        der.extend_from_slice(digits);
    }
    der.extend(contents.iter().copied().flatten());
    der
}

/// The parts of an element that is made of others, each with its tag and length; `None` for what is no DER.
#[must_use]
pub fn fields(der: &[u8]) -> Option<Vec<&[u8]>> {
    let (_, whole) = Any::from_der(der).ok()?;
    let mut left = whole.data;
    let mut fields = Vec::new();
    while !left.is_empty() {
        let (after, _) = Any::from_der(left).ok()?;
        fields.push(&left[..left.len() - after.len()]);
        left = after;
    }
    Some(fields)
}

/// What stands in an element, without its tag and length, when it has this tag.
#[must_use]
pub fn content(der: &[u8], tag: u8) -> Option<&[u8]> {
    let (_, whole) = Any::from_der(der).ok()?;
    (der.first() == Some(&tag)).then_some(whole.data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_written_in_as_few_bytes_as_der_wants() {
        for (length, header) in [
            (0, &[4, 0][..]),
            (127, &[4, 127]),
            (128, &[4, 0x81, 128]),
            (255, &[4, 0x81, 255]),
            (256, &[4, 0x82, 1, 0]),
            (65536, &[4, 0x83, 1, 0, 0]),
        ] {
            let der = element(4, &[&vec![b'x'; length]]);
            assert_eq!(&der[..der.len() - length], header);
        }
    }
}
