//! Requests for certificates (PKCS #10), and what the authority makes of them, as kube-controller-manager's does
//! (`k8s.io/kubernetes/pkg/controller/certificates/authority`).

use std::time::Duration;

use jiff::SignedDuration;
use pem::{EncodeConfig, LineEnding, Pem};
use rcgen::{CustomExtension, ExtendedKeyUsagePurpose, IsCa, KeyUsagePurpose, SubjectPublicKeyInfo};
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::cri_attributes::ParsedCriAttribute;
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::prelude::FromDer;

use super::{Authority, AuthorityError, SKEW, params, subject};
use crate::der::{SEQUENCE, element};

/// What lives for less ends when it was asked to; all else ends [`SKEW`] earlier, as it begins.
const SHORT: SignedDuration = SignedDuration::from_hours(8);

/// An empty name.
const NOBODY: [u8; 2] = [SEQUENCE, 0];

/// The object identifier of subject alternative names.
const ALTERNATIVE_NAMES: [u64; 4] = [2, 5, 29, 17];

/// A request for a certificate that its own key has signed.
#[derive(Debug)]
pub struct CertificateRequest {
    subject: Vec<u8>,
    common_name: String,
    organizations: Vec<String>,
    alternatives: Alternatives,
    key: SubjectPublicKeyInfo,
}

/// Other names that a request asks for. A certificate carries these kinds of names and no others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Alternatives {
    /// DNS names.
    pub dns: Vec<String>,
    /// Addresses of mail.
    pub email: Vec<String>,
    /// IP addresses, of 4 or 16 bytes.
    pub ip: Vec<Vec<u8>>,
    /// URIs.
    pub uri: Vec<String>,
}

/// What a certificate may be used for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Purposes {
    /// What its key may do.
    pub key: Vec<KeyUsagePurpose>,
    /// What it may be shown for.
    pub extended: Vec<ExtendedKeyUsagePurpose>,
}

impl CertificateRequest {
    /// Reads a request in PEM.
    ///
    /// # Errors
    /// [`AuthorityError::Request`] when it is none, its signature is not of its own key, or its key is of an algorithm that is
    /// not supported (RSA, ECDSA on P-256 and P-384 and Ed25519 are).
    pub fn read(text: &[u8]) -> Result<Self, AuthorityError> {
        let bad = |why: &str| AuthorityError::Request(why.to_owned());
        let block = pem::parse(text).ok().filter(|block| block.tag() == "CERTIFICATE REQUEST");
        let block = block.ok_or_else(|| bad("PEM block type must be CERTIFICATE REQUEST"))?;
        let (_, request) = X509CertificationRequest::from_der(block.contents())
            .map_err(|_| bad("unable to parse certificate request"))?;
        request.verify_signature().map_err(|_| bad("unable to verify certificate request signature"))?;
        let info = &request.certification_request_info;
        let names = |names: &mut dyn Iterator<Item = &x509_parser::x509::AttributeTypeAndValue<'_>>| {
            names.filter_map(|name| name.as_str().ok()).map(str::to_owned).collect::<Vec<_>>()
        };
        Ok(Self {
            subject: info.subject.as_raw().to_vec(),
            // As Go does: of several common names the last one counts.
            common_name: names(&mut info.subject.iter_common_name()).pop().unwrap_or_default(),
            organizations: names(&mut info.subject.iter_organization()),
            alternatives: Alternatives::of(&request),
            key: SubjectPublicKeyInfo::from_der(info.subject_pki.raw)?,
        })
    }

    /// The common name: the user that a client certificate is for.
    #[must_use]
    pub fn common_name(&self) -> &str {
        &self.common_name
    }

    /// The organizations: the groups that a client certificate is for.
    #[must_use]
    pub fn organizations(&self) -> &[String] {
        &self.organizations
    }

    /// The other names.
    #[must_use]
    pub fn alternatives(&self) -> &Alternatives {
        &self.alternatives
    }
}

impl Alternatives {
    fn of(request: &X509CertificationRequest<'_>) -> Self {
        let mut found = Self::default();
        let attributes = request.certification_request_info.iter_attributes();
        let extensions = attributes.filter_map(|attribute| match attribute.parsed_attribute() {
            ParsedCriAttribute::ExtensionRequest(requested) => Some(&requested.extensions),
            _ => None,
        });
        for extension in extensions.flatten() {
            let ParsedExtension::SubjectAlternativeName(names) = extension.parsed_extension() else {
                continue;
            };
            for name in &names.general_names {
                match name {
                    GeneralName::DNSName(name) => found.dns.push((*name).to_owned()),
                    GeneralName::RFC822Name(name) => found.email.push((*name).to_owned()),
                    GeneralName::IPAddress(bytes) => found.ip.push(bytes.to_vec()),
                    GeneralName::URI(name) => found.uri.push((*name).to_owned()),
                    _ => {}
                }
            }
        }
        found
    }

    /// The extension's contents (RFC 5280, 4.2.1.6); `None` when there are no names.
    fn der(&self) -> Option<Vec<u8>> {
        let names = |tag: u8, names: &[String]| -> Vec<u8> {
            names.iter().flat_map(|name| element(tag, &[name.as_bytes()])).collect()
        };
        let ips: Vec<u8> = self.ip.iter().flat_map(|ip| element(0x87, &[ip])).collect();
        let all = [names(0x82, &self.dns), names(0x81, &self.email), ips, names(0x86, &self.uri)].concat();
        (!all.is_empty()).then(|| element(SEQUENCE, &[&all]))
    }
}

impl Authority {
    /// The certificate (PEM) that a request asks for: for its key, its subject and its other names, for these
    /// purposes and with no other extension that it may ask for. It begins five minutes ago and is
    /// good for `ttl`, or as long as the authority if that is shorter (`PermissiveSigningPolicy`).
    ///
    /// # Errors
    /// When the authority's own time is over, or there is no entropy for the signature.
    pub fn sign(
        &self,
        request: &CertificateRequest,
        purposes: Purposes,
        ttl: Duration,
    ) -> Result<String, AuthorityError> {
        let now = self.world.clock.outside().now();
        if now >= self.not_after {
            return Err(AuthorityError::Expired(self.not_after));
        }
        let ttl = SignedDuration::try_from(ttl).unwrap_or(SignedDuration::MAX);
        let ttl = if ttl < SHORT { ttl } else { ttl.saturating_sub(SKEW) };
        let not_after = now.saturating_add(ttl).map_or(self.not_after, |end| end.min(self.not_after));
        let mut params = params(&self.world, now, not_after)?;
        (params.key_usages, params.extended_key_usages) = (purposes.key, purposes.extended);
        params.is_ca = IsCa::ExplicitNoCa;
        params.use_authority_key_identifier_extension = true;
        if let Some(names) = request.alternatives.der() {
            let mut extension = CustomExtension::from_oid_content(&ALTERNATIVE_NAMES, names);
            extension.set_criticality(request.subject == NOBODY);
            params.custom_extensions.push(extension);
        }
        let nameless = params.signed_by(&request.key, &self.issuer)?;
        let certificate = subject::rename(nameless.der(), &request.subject, self.issuer.key())?;
        Ok(pem::encode_config(
            &Pem::new("CERTIFICATE", certificate),
            EncodeConfig::new().set_line_ending(LineEnding::LF),
        ))
    }
}

#[cfg(test)]
mod tests;
