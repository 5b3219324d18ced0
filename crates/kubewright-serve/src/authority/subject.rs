//! The subject of a client certificate: a user and any number of groups.
//!
//! rcgen's `DistinguishedName` holds one value for each attribute, and so cannot say two organizations. This module
//! writes the subject itself (three ASN.1 types of it) and puts it into a certificate that rcgen has made.

use rcgen::{KeyPair, SigningKey};

use crate::der::{BIT_STRING, SEQUENCE, element, fields};

const UTF8_STRING: u8 = 0x0c;
const SET: u8 = 0x31;

/// The object identifier 2.5.4.3, commonName.
const COMMON_NAME: [u8; 5] = [0x06, 3, 0x55, 4, 3];
/// The object identifier 2.5.4.10, organizationName.
const ORGANIZATION: [u8; 5] = [0x06, 3, 0x55, 4, 10];

/// Which field of a to-be-signed certificate is its subject: after the version, the serial number, the signature's
/// algorithm, the issuer and the validity (RFC 5280, 4.1).
const SUBJECT: usize = 5;

/// The name of a user who is a member of `groups`, in DER: an organization for each group, then the common name.
pub(super) fn of(user: &str, groups: &[&str]) -> Vec<u8> {
    let attribute = |kind: &[u8], value: &str| {
        let value = element(UTF8_STRING, &[value.as_bytes()]);
        element(SET, &[&element(SEQUENCE, &[kind, &value])])
    };
    let mut names: Vec<_> = groups.iter().map(|group| attribute(&ORGANIZATION, group)).collect();
    names.push(attribute(&COMMON_NAME, user));
    element(SEQUENCE, &[&names.concat()])
}

/// The certificate (DER) with another subject, signed anew with the issuer's key.
///
/// # Errors
/// When the certificate cannot be read, or the signature cannot be made.
pub(super) fn rename(certificate: &[u8], subject: &[u8], issuer: &KeyPair) -> Result<Vec<u8>, rcgen::Error> {
    let unreadable = rcgen::Error::CouldNotParseCertificate;
    let parts = fields(certificate).ok_or(unreadable.clone())?;
    let [to_be_signed, algorithm, _signature] = parts[..] else {
        return Err(unreadable);
    };
    let mut parts = fields(to_be_signed).ok_or(unreadable.clone())?;
    *parts.get_mut(SUBJECT).ok_or(unreadable)? = subject;
    let to_be_signed = element(SEQUENCE, &parts);
    // The first byte of a bit string is the number of bits in its last byte that do not count.
    let signature = element(BIT_STRING, &[&[0], &issuer.sign(&to_be_signed)?]);
    Ok(element(SEQUENCE, &[&to_be_signed, algorithm, &signature]))
}

#[cfg(test)]
mod tests {
    use x509_parser::prelude::FromDer;
    use x509_parser::x509::X509Name;

    use super::*;

    #[test]
    fn a_subject_reads_back_however_long_it_is() {
        let groups: Vec<_> =
            (0..300).map(|number| format!("group-{number}-{}", "x".repeat(number))).collect();
        let groups: Vec<_> = groups.iter().map(String::as_str).collect();
        let der = of("ü:user, CN=x", &groups);
        let (left, name) = X509Name::from_der(&der).expect("a name");
        assert!(left.is_empty());
        let found: Vec<_> = name.iter_organization().map(|group| group.as_str().expect("text")).collect();
        assert_eq!(found, groups);
        assert_eq!(name.iter_common_name().next().expect("a name").as_str().expect("text"), "ü:user, CN=x");
    }

    #[test]
    fn what_is_no_certificate_cannot_be_renamed() {
        let key = KeyPair::generate().expect("a key");
        for rubbish in [&b""[..], b"\x30", b"\x30\x00", b"\x30\x03\x30\x82\xff", b"rubbish"] {
            assert!(rename(rubbish, &of("a", &[]), &key).is_err());
        }
    }
}
