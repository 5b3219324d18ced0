//! The operator's own certificate authority, and the one that follows it: pure functions of what is there and the time.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kubewright_serve::{
    authority::{Authority, AuthorityError, Keys, Profile},
    tls::ServingCertificate,
};
use kubewright_world::World;
use rustls::pki_types::CertificateDer;

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
    fn profile(&self) -> Profile {
        let (lifetime, serving) = (self.authority, self.serving);
        let (name, server) = ("kubewright-webhook-ca", "kubewright-webhook");
        Profile { name, server, lifetime, serving, keys: Keys::World }
    }

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

/// The authorities that are trusted, oldest first. There is one, and for a third of its life the next one as well.
pub(crate) struct Authorities {
    all: Vec<Authority>,
    lifetimes: Lifetimes,
}

/// What a server shows.
pub(crate) struct Issued {
    pub(crate) certificate: ServingCertificate,
    /// When the next one is due.
    renew: Timestamp,
    /// Who has signed it.
    signer: CertificateDer<'static>,
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
        world: &World,
        certificates: &[u8],
        keys: &[u8],
        lifetimes: Lifetimes,
    ) -> Result<Self, AuthorityError> {
        let all = Authority::load_all(world, lifetimes.profile(), certificates, keys)?;
        Ok(Self { all, lifetimes })
    }

    /// Does what is due: drops what is over, makes the next one. Whether something has changed.
    pub(crate) fn advance(&mut self, world: &World) -> Result<bool, AuthorityError> {
        let now = world.clock.outside().now();
        let before = self.all.len();
        self.all.retain(|authority| authority.not_after() > now);
        let dropped = self.all.len() < before;
        let next = |newest: &Authority| renewal(newest.not_after(), self.lifetimes.authority);
        let due = self.all.last().is_none_or(|newest| next(newest) <= now);
        if due {
            self.all.push(Authority::with_profile(world, self.lifetimes.profile())?);
        }
        Ok(dropped || due)
    }

    /// The certificates that vouch for what is shown now, and for what will be: a `caBundle`.
    pub(crate) fn bundle(&self) -> String {
        self.all.iter().map(Authority::ca_pem).collect::<String>().replace("\r\n", "\n")
    }

    /// The keys, to be kept by nobody but the operator.
    pub(crate) fn keys(&self) -> String {
        self.all.iter().map(Authority::key_pem).collect()
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
        if let Some(shown) = shown.filter(|shown| shown.renew > now && shown.signer == *signer.ca_der()) {
            return Ok(shown);
        }
        let issued = signer.serving_certificate(names)?;
        let renew = renewal(issued.not_after(), self.lifetimes.serving);
        Ok(Issued { certificate: issued.into(), renew, signer: signer.ca_der().clone() })
    }

    /// The newest authority that everybody knows by now, or the oldest.
    fn signer(&self, now: Timestamp) -> Option<&Authority> {
        let known = |authority: &&Authority| after(authority.since(), self.lifetimes.overlap) <= now;
        self.all.iter().rev().find(known).or(self.all.first())
    }

    /// When something is due next, with this certificate shown.
    pub(crate) fn next(&self, world: &World, shown: &Issued) -> Duration {
        let now = world.clock.outside().now();
        let authorities = self.all.iter().flat_map(|authority| {
            let known = after(authority.since(), self.lifetimes.overlap);
            [authority.not_after(), known, renewal(authority.not_after(), self.lifetimes.authority)]
        });
        let soonest = authorities.chain([shown.renew]).filter(|time| *time > now).min();
        let wait = soonest.map_or(SignedDuration::ZERO, |time| time.duration_since(now));
        Duration::try_from(wait).unwrap_or_default()
    }
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

#[cfg(test)]
mod tests {
    use rustls::pki_types::pem::PemObject;
    use x509_parser::prelude::{FromDer, X509Certificate};

    use super::*;

    const DAY: Duration = Duration::from_secs(24 * 3600);

    fn names() -> Vec<String> {
        vec!["hook.ns.svc".to_owned(), "127.0.0.1".to_owned()]
    }

    fn certificates(bundle: &str) -> usize {
        bundle.matches("BEGIN").count()
    }

    fn leaf(issued: &Issued) -> &CertificateDer<'static> {
        &issued.certificate.chain()[0]
    }

    fn is_signed_by(issued: &Issued, bundle: &str) -> bool {
        let leaf = X509Certificate::from_der(leaf(issued)).expect("a certificate").1;
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
            let before = leaf(&shown).clone();
            shown = authorities.issue(&world, &names(), Some(shown)).expect("a certificate");
            renewals += u32::from(*leaf(&shown) != before);
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
        let kept =
            Authorities::read(&world, bundle.as_bytes(), keys.as_bytes(), lifetimes).expect("what was kept");
        assert_eq!((kept.bundle(), kept.keys()), (bundle.clone(), keys));
        let issued = kept.issue(&world, &names(), None).expect("a certificate");
        let old = first.all[0].ca_der().clone();
        assert_eq!(issued.signer, old, "nobody knows the new authority yet");
        for (certificates, keys) in [("", ""), (&*bundle, ""), ("x", "y"), (&*bundle, &*bundle)] {
            assert!(Authorities::read(&world, certificates.as_bytes(), keys.as_bytes(), lifetimes).is_err());
        }
    }

    #[test]
    fn lifetimes_that_leave_no_time_are_refused() {
        assert_eq!(Lifetimes::default().mistake(), None);
        let short = Lifetimes { authority: DAY, overlap: DAY / 2, serving: DAY };
        assert!(short.mistake().is_some());
    }
}
