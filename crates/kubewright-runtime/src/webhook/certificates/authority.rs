//! A certificate authority of the operator's own, and the one that follows it: pure functions of what is there and the time.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kubewright_world::World;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, SerialNumber,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, pem::PemObject};
use time::OffsetDateTime;
use x509_parser::prelude::{FromDer, X509Certificate};

/// How far the clock of who checks a certificate may be behind.
const SKEW: SignedDuration = SignedDuration::from_mins(5);

/// For how long certificates are good. A certificate is followed by the next when a third of its life is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetimes {
    /// An authority. A year by default.
    pub authority: Duration,
    /// How long a new authority is in the `caBundle` before it signs what is shown: time for the bundle to reach every
    /// API server. An hour by default.
    pub overlap: Duration,
    /// What the server shows. 90 days by default.
    pub serving: Duration,
}

impl Default for Lifetimes {
    fn default() -> Self {
        const DAY: Duration = Duration::from_secs(24 * 3600);
        Self { authority: 365 * DAY, overlap: Duration::from_secs(3600), serving: 90 * DAY }
    }
}

impl Lifetimes {
    /// What is wrong with them.
    pub(crate) fn mistake(&self) -> Option<String> {
        let good = self.serving >= Duration::from_secs(60)
            && self.overlap.saturating_mul(3) < self.authority
            && self.authority <= Duration::from_secs(100 * 366 * 24 * 3600);
        (!good).then(|| {
            "lifetimes: a certificate is good for a minute or more, and the overlap is less than a third of the authority's life"
                .to_owned()
        })
    }
}

/// One authority.
struct Authority {
    certificate: CertificateDer<'static>,
    key: KeyPair,
    since: Timestamp,
    until: Timestamp,
}

/// The authorities that are trusted, oldest first. There is one, and for a third of its life the next one as well.
pub(crate) struct Authorities {
    all: Vec<Authority>,
    lifetimes: Lifetimes,
}

/// What a server shows.
pub(crate) struct Issued {
    pub(crate) chain: Vec<CertificateDer<'static>>,
    pub(crate) key: PrivateKeyDer<'static>,
    /// When the next one is due.
    renew: Timestamp,
    /// Who has signed it.
    signer: CertificateDer<'static>,
}

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AuthorityError {
    #[error("a certificate cannot be made: {0}")]
    Crypto(#[from] rcgen::Error),
    #[error("{0} cannot be written into a certificate")]
    Time(Timestamp),
    #[error("{0}")]
    Unreadable(String),
}

impl Authorities {
    /// A new one.
    pub(crate) fn new(world: &World, lifetimes: Lifetimes) -> Result<Self, AuthorityError> {
        let mut authorities = Self { all: Vec::new(), lifetimes };
        authorities.advance(world)?;
        Ok(authorities)
    }

    /// Those that were kept: certificates and keys in PEM, in the same order.
    pub(crate) fn read(
        certificates: &[u8],
        keys: &[u8],
        lifetimes: Lifetimes,
    ) -> Result<Self, AuthorityError> {
        let unreadable = |why: &dyn std::fmt::Display| AuthorityError::Unreadable(why.to_string());
        let certificates: Vec<_> = CertificateDer::pem_slice_iter(certificates)
            .collect::<Result<_, _>>()
            .map_err(|error| unreadable(&error))?;
        let keys: Vec<_> = PrivatePkcs8KeyDer::pem_slice_iter(keys)
            .collect::<Result<_, _>>()
            .map_err(|error| unreadable(&error))?;
        if certificates.is_empty() || certificates.len() != keys.len() {
            return Err(unreadable(&format_args!(
                "{} certificates and {} keys",
                certificates.len(),
                keys.len()
            )));
        }
        let mut all = Vec::new();
        for (certificate, key) in certificates.into_iter().zip(keys) {
            let key = KeyPair::try_from(&key)?;
            let (since, until) = validity(&certificate)?;
            all.push(Authority { certificate, key, since, until });
        }
        Ok(Self { all, lifetimes })
    }

    /// Does what is due: drops what is over, makes the next one. Whether something has changed.
    pub(crate) fn advance(&mut self, world: &World) -> Result<bool, AuthorityError> {
        let now = world.clock.outside().now();
        let before = self.all.len();
        self.all.retain(|authority| authority.until > now);
        let dropped = self.all.len() < before;
        let due = self.all.last().is_none_or(|newest| renewal(newest.until, self.lifetimes.authority) <= now);
        if due {
            self.all.push(Authority::new(world, self.lifetimes.authority)?);
        }
        Ok(dropped || due)
    }

    /// The certificates that vouch for what is shown now, and for what will be: a `caBundle`.
    pub(crate) fn bundle(&self) -> String {
        self.all.iter().map(|authority| encode("CERTIFICATE", &authority.certificate)).collect()
    }

    /// The keys, to be kept by nobody but the operator.
    pub(crate) fn keys(&self) -> String {
        self.all.iter().map(|authority| authority.key.serialize_pem()).collect()
    }

    /// A serving certificate for these names and addresses. `shown` stays where it is still the right one.
    pub(crate) fn issue(
        &self,
        world: &World,
        names: &[String],
        shown: Option<Issued>,
    ) -> Result<Issued, AuthorityError> {
        let now = world.clock.outside().now();
        let signer = self.signer(now).ok_or_else(|| AuthorityError::Unreadable("no authority".to_owned()))?;
        if let Some(shown) = shown.filter(|shown| shown.renew > now && shown.signer == signer.certificate) {
            return Ok(shown);
        }
        let until = after(now, self.lifetimes.serving).min(signer.until);
        let mut params = params(world, now, until)?;
        params.subject_alt_names = CertificateParams::new(names)?.subject_alt_names;
        params.distinguished_name.push(DnType::CommonName, "kubewright-webhook");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        let key = key(world)?;
        let issuer = Issuer::from_ca_cert_der(&signer.certificate, &signer.key)?;
        let certificate = params.signed_by(&key, &issuer)?.der().clone();
        let key = PrivatePkcs8KeyDer::from(key.serialize_der()).into();
        let renew = renewal(until, self.lifetimes.serving);
        Ok(Issued { chain: vec![certificate], key, renew, signer: signer.certificate.clone() })
    }

    /// The newest authority that everybody knows by now, or the oldest.
    fn signer(&self, now: Timestamp) -> Option<&Authority> {
        let known = |authority: &&Authority| after(authority.since, self.lifetimes.overlap) <= now;
        self.all.iter().rev().find(known).or(self.all.first())
    }

    /// When something is due next, with this certificate shown.
    pub(crate) fn next(&self, world: &World, shown: &Issued) -> Duration {
        let now = world.clock.outside().now();
        let authorities = self.all.iter().flat_map(|authority| {
            let known = after(authority.since, self.lifetimes.overlap);
            [authority.until, known, renewal(authority.until, self.lifetimes.authority)]
        });
        let soonest = authorities.chain([shown.renew]).filter(|time| *time > now).min();
        let wait = soonest.map_or(SignedDuration::ZERO, |time| time.duration_since(now));
        Duration::try_from(wait).unwrap_or_default()
    }
}

impl Authority {
    fn new(world: &World, lifetime: Duration) -> Result<Self, AuthorityError> {
        let now = world.clock.outside().now();
        let until = after(now, lifetime);
        let mut params = params(world, now, until)?;
        params.distinguished_name.push(DnType::CommonName, "kubewright-webhook-ca");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages =
            vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = key(world)?;
        let certificate = params.self_signed(&key)?.der().clone();
        let (since, until) = validity(&certificate)?;
        Ok(Self { certificate, key, since, until })
    }
}

/// A new key: from the machine's entropy, but in a simulation from its seed.
fn key(world: &World) -> Result<KeyPair, rcgen::Error> {
    match world.simulation() {
        Some(simulation) => KeyPair::try_from(simulation.key()),
        None => KeyPair::generate(),
    }
}

/// From when, and until when a certificate is good.
fn validity(certificate: &CertificateDer<'_>) -> Result<(Timestamp, Timestamp), AuthorityError> {
    let unreadable = |why: &dyn std::fmt::Display| AuthorityError::Unreadable(why.to_string());
    let (_, parsed) = X509Certificate::from_der(certificate).map_err(|error| unreadable(&error))?;
    let time = |seconds| Timestamp::from_second(seconds).map_err(|error| unreadable(&error));
    let since = time(parsed.validity().not_before.timestamp())?;
    Ok((since.saturating_add(SKEW).unwrap_or(since), time(parsed.validity().not_after.timestamp())?))
}

/// When what is good until `until` and lives for `lifetime` has to be followed.
fn renewal(until: Timestamp, lifetime: Duration) -> Timestamp {
    let third = SignedDuration::try_from(lifetime / 3).unwrap_or(SignedDuration::ZERO);
    until.saturating_sub(third).unwrap_or(Timestamp::MIN)
}

fn after(time: Timestamp, wait: Duration) -> Timestamp {
    let wait = SignedDuration::try_from(wait).unwrap_or(SignedDuration::MAX);
    time.saturating_add(wait).unwrap_or(Timestamp::MAX)
}

/// What all certificates have in common.
fn params(world: &World, now: Timestamp, until: Timestamp) -> Result<CertificateParams, AuthorityError> {
    let mut serial = [0; 16];
    world.dice.fill(&mut serial);
    // A serial number is positive (RFC 5280, 4.1.2.2), and its first byte is not 0.
    serial[0] = serial[0] & 0x7f | 0x40;
    let calendar = |time: Timestamp| {
        OffsetDateTime::from_unix_timestamp(time.as_second()).map_err(|_| AuthorityError::Time(time))
    };
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.serial_number = Some(SerialNumber::from_slice(&serial));
    params.not_before = calendar(now.saturating_sub(SKEW).unwrap_or(now))?;
    params.not_after = calendar(until)?;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    Ok(params)
}

/// PEM.
pub(super) fn encode(label: &str, der: &[u8]) -> String {
    use base64::{Engine, engine::general_purpose::STANDARD};
    let text = STANDARD.encode(der);
    let lines = text.as_bytes().chunks(64).map(|line| String::from_utf8_lossy(line).into_owned());
    let lines: Vec<String> = lines.collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(24 * 3600);

    fn names() -> Vec<String> {
        vec!["hook.ns.svc".to_owned(), "127.0.0.1".to_owned()]
    }

    fn certificates(bundle: &str) -> usize {
        bundle.matches("BEGIN").count()
    }

    fn is_signed_by(issued: &Issued, bundle: &str) -> bool {
        let leaf = X509Certificate::from_der(&issued.chain[0]).expect("a certificate").1;
        CertificateDer::pem_slice_iter(bundle.as_bytes()).flatten().any(|authority| {
            let authority = X509Certificate::from_der(&authority).expect("a certificate").1;
            leaf.verify_signature(Some(authority.public_key())).is_ok()
        })
    }

    #[tokio::test(start_paused = true)]
    async fn on_every_day_of_three_years_the_bundle_of_an_hour_ago_trusts_what_is_shown() {
        let world = World::simulated(1);
        let mut authorities = Authorities::new(&world, Lifetimes::default()).expect("entropy");
        let mut shown = authorities.issue(&world, &names(), None).expect("a certificate");
        let (mut old_bundle, mut rotations, mut renewals) = (authorities.bundle(), 0, 0);
        for _ in 0..3 * 365 {
            let wait = authorities.next(&world, &shown).min(DAY);
            tokio::time::sleep(wait).await;
            rotations += u32::from(authorities.advance(&world).expect("entropy"));
            let before = shown.chain[0].clone();
            shown = authorities.issue(&world, &names(), Some(shown)).expect("a certificate");
            renewals += u32::from(shown.chain[0] != before);
            let bundle = authorities.bundle();
            assert!(is_signed_by(&shown, &bundle) && is_signed_by(&shown, &old_bundle));
            assert!((1..=2).contains(&certificates(&bundle)));
            if wait >= Duration::from_secs(3600) {
                old_bundle = bundle;
            }
        }
        assert!(rotations > 3 && renewals > 12, "{rotations} {renewals}");
    }

    #[tokio::test(start_paused = true)]
    async fn authorities_that_were_kept_go_on() {
        let world = World::simulated(1);
        let mut first = Authorities::new(&world, Lifetimes::default()).expect("entropy");
        tokio::time::sleep(300 * DAY).await;
        assert!(first.advance(&world).expect("entropy"));
        let (bundle, keys) = (first.bundle(), first.keys());
        assert_eq!(certificates(&bundle), 2);
        let lifetimes = Lifetimes::default();
        let kept = Authorities::read(bundle.as_bytes(), keys.as_bytes(), lifetimes).expect("what was kept");
        assert_eq!((kept.bundle(), kept.keys()), (bundle.clone(), keys));
        let issued = kept.issue(&world, &names(), None).expect("a certificate");
        let old = first.all[0].certificate.clone();
        assert_eq!(issued.signer, old, "nobody knows the new authority yet");
        for (certificates, keys) in [("", ""), (&*bundle, ""), ("x", "y"), (&*bundle, &*bundle)] {
            assert!(Authorities::read(certificates.as_bytes(), keys.as_bytes(), lifetimes).is_err());
        }
    }

    #[test]
    fn lifetimes_that_leave_no_time_are_refused() {
        assert_eq!(Lifetimes::default().mistake(), None);
        let short = Lifetimes { authority: DAY, overlap: DAY / 2, serving: DAY };
        assert!(short.mistake().is_some());
    }
}
