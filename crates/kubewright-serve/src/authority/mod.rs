//! A certificate authority: what it issues, and how it is kept.

use std::fmt;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kubewright_world::World;
use pem::Pem;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair, PublicKeyData,
    SerialNumber,
};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use time::OffsetDateTime;
use x509_parser::prelude::{FromDer, X509Certificate};

mod request;
mod subject;

pub use rcgen::{ExtendedKeyUsagePurpose, KeyUsagePurpose};
pub use request::{Alternatives, CertificateRequest, Purposes};

/// How far the clock of who checks a certificate may be behind.
const SKEW: SignedDuration = SignedDuration::from_mins(5);

/// What an authority calls itself and its servers, and how long what it issues is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// What its own common name begins with; a part of its key follows. `kubewright-ca`.
    pub name: &'static str,
    /// The common name of servers. `kube-apiserver`.
    pub server: &'static str,
    /// How long it is good. Ten years, as kubeadm's.
    pub lifetime: Duration,
    /// How long certificates of servers are good, and never for longer than the authority. As long as the authority.
    pub serving: Duration,
    /// Where its keys and those of servers come from.
    pub keys: Keys,
}

/// Where keys come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keys {
    /// From the machine's entropy, whatever the world is: ECDSA P-256, which takes well under a millisecond to make.
    Machine,
    /// From the machine's entropy, but in a simulation from its seed.
    World,
}

impl Default for Profile {
    /// That of a control plane.
    fn default() -> Self {
        let lifetime = Duration::from_secs(10 * 365 * 24 * 3600);
        Self {
            name: "kubewright-ca",
            server: "kube-apiserver",
            lifetime,
            serving: Duration::MAX,
            keys: Keys::Machine,
        }
    }
}

/// Issues certificates: of servers, and those that clients show. Times and serial numbers are the [`World`]'s.
pub struct Authority {
    world: World,
    profile: Profile,
    issuer: Issuer<'static, KeyPair>,
    certificate: CertificateDer<'static>,
    since: Timestamp,
    not_after: Timestamp,
}

/// A certificate and the key that it is for.
pub struct Credentials {
    certificate: CertificateDer<'static>,
    key: KeyPair,
    not_after: Timestamp,
}

/// Why a certificate cannot be issued.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    /// A serving certificate for a name that is none.
    #[error("{0:?} is neither a DNS name nor an IP address")]
    Name(String),
    /// A client certificate without a user.
    #[error("a client certificate needs the name of a user")]
    NoUser,
    /// The world's clock shows a time that a certificate cannot express.
    #[error("{0} cannot be written into a certificate")]
    Time(Timestamp),
    /// What was kept is not a certificate authority and its key.
    #[error("this is no certificate authority and its key: {0}")]
    Unreadable(String),
    /// A text that is no request for a certificate.
    #[error("{0}")]
    Request(String),
    /// The authority is too old to sign anything.
    #[error("the signer has expired: NotAfter={0}")]
    Expired(Timestamp),
    /// A key or a signature could not be made.
    #[error("cannot make a certificate: {0}")]
    Crypto(#[from] rcgen::Error),
}

impl Authority {
    /// A new authority of a control plane, with a key of its own.
    ///
    /// # Errors
    /// When the machine gives no entropy, or the world's clock is far off.
    pub fn new(world: &World) -> Result<Self, AuthorityError> {
        Self::with_profile(world, Profile::default())
    }

    /// A new authority with a key of its own.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn with_profile(world: &World, profile: Profile) -> Result<Self, AuthorityError> {
        let now = world.clock.outside().now();
        let mut params = params(world, now, after(now, profile.lifetime))?;
        let key = profile.keys.generate(world)?;
        params.distinguished_name.push(DnType::CommonName, own_name(profile.name, &key));
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages =
            vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let certificate = params.self_signed(&key)?.der().clone();
        let (since, not_after) = validity(&parsed(&certificate)?)?;
        let issuer = Issuer::new(params, key);
        Ok(Self { world: world.clone(), profile, issuer, certificate, since, not_after })
    }

    /// An authority that was kept: what [`Self::ca_pem`] and [`Self::key_pem`] gave. What it has issued stays good.
    ///
    /// # Errors
    /// When these are not a certificate and its key.
    pub fn load(world: &World, certificate: &str, key: &str) -> Result<Self, AuthorityError> {
        let certificate = pem::parse(certificate).map_err(|error| unreadable(&error))?;
        let certificate = CertificateDer::from(certificate.into_contents());
        let key = KeyPair::from_pem(key).map_err(|error| unreadable(&error))?;
        Self::of(world, Profile::default(), certificate, key)
    }

    /// Authorities that were kept together, one after the other: their certificates and, in the same order, their keys, in
    /// PEM.
    ///
    /// # Errors
    /// When there is none, or these are not certificates and their keys.
    pub fn load_all(
        world: &World,
        profile: Profile,
        certificates: &[u8],
        keys: &[u8],
    ) -> Result<Vec<Self>, AuthorityError> {
        let certificates: Vec<_> = CertificateDer::pem_slice_iter(certificates)
            .collect::<Result<_, _>>()
            .map_err(|error| unreadable(&error))?;
        let keys: Vec<_> = PrivatePkcs8KeyDer::pem_slice_iter(keys)
            .collect::<Result<_, _>>()
            .map_err(|error| unreadable(&error))?;
        if certificates.is_empty() || certificates.len() != keys.len() {
            let (certificates, keys) = (certificates.len(), keys.len());
            return Err(unreadable(&format_args!("{certificates} certificates and {keys} keys")));
        }
        let pairs = certificates.into_iter().zip(keys);
        pairs
            .map(|(certificate, key)| {
                let key = KeyPair::try_from(&key).map_err(|error| unreadable(&error))?;
                Self::of(world, profile, certificate, key)
            })
            .collect()
    }

    fn of(
        world: &World,
        profile: Profile,
        certificate: CertificateDer<'static>,
        key: KeyPair,
    ) -> Result<Self, AuthorityError> {
        let parsed = parsed(&certificate)?;
        if parsed.public_key().raw != key.subject_public_key_info() {
            return Err(unreadable(&"the key is another one's"));
        }
        let (since, not_after) = validity(&parsed)?;
        let issuer = Issuer::from_ca_cert_der(&certificate, key)?;
        Ok(Self { world: world.clone(), profile, issuer, certificate, since, not_after })
    }

    /// When it was made.
    #[must_use]
    pub fn since(&self) -> Timestamp {
        self.since
    }

    /// Until when it is good.
    #[must_use]
    pub fn not_after(&self) -> Timestamp {
        self.not_after
    }

    /// The authority's own certificate, for `certificate-authority-data` and `ca.crt`.
    #[must_use]
    pub fn ca_pem(&self) -> String {
        pem::encode(&Pem::new("CERTIFICATE", self.certificate.to_vec()))
    }

    /// The authority's key, to be kept by nobody else.
    #[must_use]
    pub fn key_pem(&self) -> String {
        self.issuer.key().serialize_pem()
    }

    /// The authority's own certificate.
    #[must_use]
    pub fn ca_der(&self) -> &CertificateDer<'static> {
        &self.certificate
    }

    /// A certificate for a server that is reached under these DNS names and IP addresses.
    ///
    /// # Errors
    /// When a name is neither, or a key cannot be made.
    pub fn serving_certificate(&self, names: &[impl AsRef<str>]) -> Result<Credentials, AuthorityError> {
        let now = self.world.clock.outside().now();
        let not_after = after(now, self.profile.serving).min(self.not_after);
        let mut params = params(&self.world, now, not_after)?;
        for name in names {
            let name = name.as_ref();
            let bad = |_| AuthorityError::Name(name.to_owned());
            params
                .subject_alt_names
                .extend(CertificateParams::new([name.to_owned()]).map_err(bad)?.subject_alt_names);
        }
        params.distinguished_name.push(DnType::CommonName, self.profile.server);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        let key = self.profile.keys.generate(&self.world)?;
        let certificate = params.signed_by(&key, &self.issuer)?.der().clone();
        Ok(Credentials { certificate, key, not_after })
    }

    /// A certificate with which a client says that it is `user` and a member of `groups`
    /// (`k8s.io/apiserver/pkg/authentication/request/x509`: the common name and the organizations). It is good for `ttl`,
    /// or as long as the authority if that is shorter.
    ///
    /// # Errors
    /// When `user` is empty, or a key cannot be made.
    pub fn client_certificate(
        &self,
        user: &str,
        groups: &[&str],
        ttl: Duration,
    ) -> Result<Credentials, AuthorityError> {
        if user.is_empty() {
            return Err(AuthorityError::NoUser);
        }
        let now = self.world.clock.outside().now();
        let not_after = after(now, ttl).min(self.not_after);
        let mut params = params(&self.world, now, not_after)?;
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        let nameless = params.signed_by(&key, &self.issuer)?;
        let certificate = subject::rename(nameless.der(), &subject::of(user, groups), self.issuer.key())?;
        Ok(Credentials { certificate: certificate.into(), key, not_after })
    }
}

impl Credentials {
    /// The certificate, for `client-certificate-data`.
    #[must_use]
    pub fn certificate_pem(&self) -> String {
        pem::encode(&Pem::new("CERTIFICATE", self.certificate.to_vec()))
    }

    /// The key in PKCS #8, for `client-key-data`.
    #[must_use]
    pub fn key_pem(&self) -> String {
        self.key.serialize_pem()
    }

    /// The certificate.
    #[must_use]
    pub fn certificate_der(&self) -> &CertificateDer<'static> {
        &self.certificate
    }

    /// Until when it is good.
    #[must_use]
    pub fn not_after(&self) -> Timestamp {
        self.not_after
    }

    /// The key.
    #[must_use]
    pub fn key_der(&self) -> PrivatePkcs8KeyDer<'static> {
        PrivatePkcs8KeyDer::from(self.key.serialize_der())
    }
}

/// Until when the first certificate of a text (PEM) is good; `None` when there is none.
#[must_use]
pub fn expiry_of(text: &[u8]) -> Option<Timestamp> {
    let block = pem::parse(text).ok()?;
    let (_, certificate) = X509Certificate::from_der(block.contents()).ok()?;
    Timestamp::from_second(certificate.validity().not_after.timestamp()).ok()
}

fn unreadable(why: &dyn fmt::Display) -> AuthorityError {
    AuthorityError::Unreadable(why.to_string())
}

fn parsed<'a>(certificate: &'a CertificateDer<'_>) -> Result<X509Certificate<'a>, AuthorityError> {
    X509Certificate::from_der(certificate).map(|(_, parsed)| parsed).map_err(|error| unreadable(&error))
}

/// From when a certificate of an authority was, and until when it is good.
fn validity(certificate: &X509Certificate<'_>) -> Result<(Timestamp, Timestamp), AuthorityError> {
    let time = |seconds| Timestamp::from_second(seconds).map_err(|error| unreadable(&error));
    let validity = certificate.validity();
    let since = time(validity.not_before.timestamp())?;
    Ok((since.saturating_add(SKEW).unwrap_or(since), time(validity.not_after.timestamp())?))
}

/// So long after that time, or the last time there is.
fn after(time: Timestamp, wait: Duration) -> Timestamp {
    let wait = SignedDuration::try_from(wait).unwrap_or(SignedDuration::MAX);
    time.saturating_add(wait).unwrap_or(Timestamp::MAX)
}

impl Keys {
    fn generate(self, world: &World) -> Result<KeyPair, rcgen::Error> {
        match world.simulation().filter(|_| self == Self::World) {
            Some(simulation) => KeyPair::try_from(simulation.key()),
            None => KeyPair::generate(),
        }
    }
}

/// What all certificates have in common: no name, a random serial number, digital signatures.
fn params(world: &World, now: Timestamp, not_after: Timestamp) -> Result<CertificateParams, AuthorityError> {
    let mut serial = [0; 16];
    world.dice.fill(&mut serial);
    // A serial number is positive (RFC 5280, 4.1.2.2), and its first byte is not 0.
    serial[0] = serial[0] & 0x7f | 0x40;

    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.serial_number = Some(SerialNumber::from_slice(&serial));
    params.not_before = calendar(now.saturating_sub(SKEW).unwrap_or(now))?;
    params.not_after = calendar(not_after)?;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    Ok(params)
}

/// A name that no authority with another key has. Who verifies a certificate looks for its issuer by name: with one name for all,
/// that of another cluster would be found, and the signature be wrong, where the issuer is unknown.
fn own_name(name: &str, key: &KeyPair) -> String {
    // The first byte says how the rest is written.
    let own: String = key.public_key_raw().iter().skip(1).take(4).map(|byte| format!("{byte:02x}")).collect();
    format!("{name}-{own}")
}

/// The time as rcgen wants it.
fn calendar(time: Timestamp) -> Result<OffsetDateTime, AuthorityError> {
    OffsetDateTime::from_unix_timestamp(time.as_second()).map_err(|_| AuthorityError::Time(time))
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authority").field("not_after", &self.not_after).finish_non_exhaustive()
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials")
    }
}

#[cfg(test)]
mod tests {
    use kubewright_world::SIMULATION_START;
    use x509_parser::prelude::GeneralName;

    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    fn parse(der: &[u8]) -> X509Certificate<'_> {
        X509Certificate::from_der(der).expect("a certificate").1
    }

    fn authority() -> Authority {
        Authority::new(&World::simulated(7)).expect("an authority")
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_certificate_says_who_its_bearer_is_and_until_when() {
        let authority = authority();
        let groups = ["system:masters", "team-ü", "three"];
        let issued = authority.client_certificate("system:admin", &groups, HOUR).expect("a certificate");
        let certificate = parse(issued.certificate_der());

        let subject = certificate.subject();
        let names: Vec<_> = subject.iter_common_name().map(|name| name.as_str().expect("text")).collect();
        assert_eq!(names, ["system:admin"]);
        let found: Vec<_> = subject.iter_organization().map(|group| group.as_str().expect("text")).collect();
        assert_eq!(found, groups);
        let start = SIMULATION_START.as_second();
        assert_eq!(certificate.validity().not_before.timestamp(), start - SKEW.as_secs());
        assert_eq!(certificate.validity().not_after.timestamp(), start + 3600);
        let usage = certificate.extended_key_usage().expect("readable").expect("present").value;
        assert!(usage.client_auth && !usage.server_auth);
        assert!(!certificate.is_ca());
        certificate
            .verify_signature(Some(parse(authority.ca_der()).public_key()))
            .expect("signed by the authority");
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_certificate_is_never_good_for_longer_than_its_authority() {
        let authority = authority();
        let end = parse(authority.ca_der()).validity().not_after.timestamp();
        assert_eq!(end, (SIMULATION_START + Profile::default().lifetime).as_second());
        let issued = authority.client_certificate("a", &[], Duration::MAX).expect("a certificate");
        assert_eq!(parse(issued.certificate_der()).validity().not_after.timestamp(), end);
    }

    #[tokio::test(start_paused = true)]
    async fn a_serving_certificate_is_for_the_names_and_addresses_asked_for() {
        let authority = authority();
        let issued =
            authority.serving_certificate(&["localhost", "127.0.0.1", "::1"]).expect("a certificate");
        let certificate = parse(issued.certificate_der());
        let names = certificate.subject_alternative_name().expect("readable").expect("present").value;
        let expected = [
            GeneralName::DNSName("localhost"),
            GeneralName::IPAddress(&[127, 0, 0, 1]),
            GeneralName::IPAddress(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]),
        ];
        assert_eq!(names.general_names, expected);
        let usage = certificate.extended_key_usage().expect("readable").expect("present").value;
        assert!(usage.server_auth && !usage.client_auth);
        certificate
            .verify_signature(Some(parse(authority.ca_der()).public_key()))
            .expect("signed by the authority");
    }

    #[tokio::test(start_paused = true)]
    async fn each_authority_has_a_name_of_its_own_that_its_certificates_give_as_issuer() {
        let world = World::simulated(7);
        let two = [(); 2].map(|()| Authority::new(&world).expect("an authority"));
        let names = two.each_ref().map(|authority| {
            let ca = parse(authority.ca_der());
            ca.subject().iter_common_name().next().expect("a name").as_str().expect("text").to_owned()
        });
        for name in &names {
            let own = name.strip_prefix("kubewright-ca-").expect("what it is comes first");
            assert!(own.len() == 8 && own.bytes().all(|byte| byte.is_ascii_hexdigit()), "{name}");
        }
        assert_ne!(names[0], names[1]);
        let issued = two[0].serving_certificate(&["localhost"]).expect("a certificate");
        assert_eq!(parse(issued.certificate_der()).issuer(), parse(two[0].ca_der()).subject());
    }

    #[tokio::test(start_paused = true)]
    async fn an_authority_that_was_kept_goes_on() {
        let world = World::simulated(7);
        let before = Authority::new(&world).expect("an authority");
        let (certificate, key) = (before.ca_pem(), before.key_pem());
        let after = Authority::load(&world, &certificate, &key).expect("the same authority");
        assert_eq!(after.ca_pem(), certificate);
        assert_eq!(after.not_after, before.not_after);
        let issued = after.client_certificate("a", &["g"], HOUR).expect("a certificate");
        let (issued, ca) = (parse(issued.certificate_der()), parse(before.ca_der()));
        assert_eq!(issued.issuer(), ca.subject());
        issued.verify_signature(Some(ca.public_key())).expect("signed by the authority");

        let other = authority().key_pem();
        for (certificate, key) in [("", &*key), (&*certificate, ""), (&*certificate, &*other), (&*key, &*key)]
        {
            let refused = Authority::load(&world, certificate, key).expect_err("no authority");
            assert!(refused.to_string().starts_with("this is no certificate authority and its key: "));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_makes_no_sense_is_refused() {
        let authority = authority();
        let error = authority.serving_certificate(&["fuß"]).expect_err("not a DNS name");
        assert_eq!(error.to_string(), "\"fuß\" is neither a DNS name nor an IP address");
        assert!(matches!(authority.client_certificate("", &["g"], HOUR), Err(AuthorityError::NoUser)));
    }

    #[tokio::test(start_paused = true)]
    async fn the_same_seed_gives_the_same_serial_numbers() {
        let serials = || {
            let authority = authority();
            let issued = authority.client_certificate("a", &[], HOUR).expect("a certificate");
            [authority.ca_der(), issued.certificate_der()].map(|der| parse(der).raw_serial().to_vec())
        };
        let [ca, client] = serials();
        assert_ne!(ca, client);
        assert_eq!([ca, client], serials());
    }

    #[tokio::test(start_paused = true)]
    async fn pem_and_der_are_the_same_things() {
        let authority = authority();
        let issued = authority.client_certificate("a", &[], HOUR).expect("a certificate");
        let contents = |text: String| {
            let parsed = pem::parse(text).expect("PEM");
            (parsed.tag().to_owned(), parsed.into_contents())
        };
        assert_eq!(contents(authority.ca_pem()), ("CERTIFICATE".to_owned(), authority.ca_der().to_vec()));
        assert_eq!(
            contents(issued.certificate_pem()),
            ("CERTIFICATE".to_owned(), issued.certificate_der().to_vec())
        );
        assert_eq!(
            contents(issued.key_pem()),
            ("PRIVATE KEY".to_owned(), issued.key_der().secret_pkcs8_der().to_vec())
        );
        assert!(!format!("{authority:?} {issued:?}").contains("BEGIN"), "no secrets in logs");
    }
}
