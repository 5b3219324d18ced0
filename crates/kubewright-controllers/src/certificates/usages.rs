//! The usages of a CertificateSigningRequest, as purposes of a certificate.

use kubewright_serve::authority::{ExtendedKeyUsagePurpose as Extended, KeyUsagePurpose as Usage, Purposes};

/// What usages mean: the purposes of a certificate (`keyUsagesFromStrings`).
///
/// # Errors
/// When one is unknown.
pub(super) fn purposes(usages: &[String]) -> Result<Purposes, String> {
    let (mut plain, mut extended, mut unknown) = (Vec::new(), Vec::new(), Vec::new());
    for usage in usages {
        match (plain_purpose(usage), extended_purpose(usage)) {
            (Some(purpose), _) if plain.contains(&purpose) => {}
            (Some(purpose), _) => plain.push(purpose),
            (None, Some(purpose)) => extended.push(purpose),
            (None, None) => unknown.push(format!("{usage:?}")),
        }
    }
    // Sorted and each once, as Go has them.
    extended.sort_by_key(|(rank, _)| *rank);
    extended.dedup_by_key(|(rank, _)| *rank);
    match unknown.is_empty() {
        true => {
            let extended = extended.into_iter().map(|(_, purpose)| purpose).collect();
            Ok(Purposes { key: plain, extended })
        }
        false => Err(format!("unrecognized usage values: [{}]", unknown.join(" "))),
    }
}

fn plain_purpose(usage: &str) -> Option<Usage> {
    Some(match usage {
        "signing" | "digital signature" => Usage::DigitalSignature,
        "content commitment" => Usage::ContentCommitment,
        "key encipherment" => Usage::KeyEncipherment,
        "key agreement" => Usage::KeyAgreement,
        "data encipherment" => Usage::DataEncipherment,
        "cert sign" => Usage::KeyCertSign,
        "crl sign" => Usage::CrlSign,
        "encipher only" => Usage::EncipherOnly,
        "decipher only" => Usage::DecipherOnly,
        _ => return None,
    })
}

/// With its place in the order of Go's `x509.ExtKeyUsage`.
fn extended_purpose(usage: &str) -> Option<(u8, Extended)> {
    let of_pkix = |number| Extended::Other(vec![1, 3, 6, 1, 5, 5, 7, 3, number]);
    Some(match usage {
        "any" => (0, Extended::Any),
        "server auth" => (1, Extended::ServerAuth),
        "client auth" => (2, Extended::ClientAuth),
        "code signing" => (3, Extended::CodeSigning),
        "email protection" | "s/mime" => (4, Extended::EmailProtection),
        "ipsec end system" => (5, of_pkix(5)),
        "ipsec tunnel" => (6, of_pkix(6)),
        "ipsec user" => (7, of_pkix(7)),
        "timestamping" => (8, Extended::TimeStamping),
        "ocsp signing" => (9, Extended::OcspSigning),
        "microsoft sgc" => (10, Extended::Other(vec![1, 3, 6, 1, 4, 1, 311, 10, 3, 3])),
        "netscape sgc" => (11, Extended::Other(vec![2, 16, 840, 1, 113_730, 4, 1])),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::strings;
    use super::*;

    #[test]
    fn all_usages_of_the_api_are_known_and_no_others() {
        let sorted = purposes(&strings(&["client auth", "any", "s/mime", "email protection", "signing"]));
        let expected = vec![Extended::Any, Extended::ClientAuth, Extended::EmailProtection];
        assert_eq!(sorted, Ok(Purposes { key: vec![Usage::DigitalSignature], extended: expected }));
        let error = "unrecognized usage values: [\"spying\" \"x\"]";
        assert_eq!(purposes(&strings(&["signing", "spying", "x"])), Err(error.to_owned()));
    }
}
