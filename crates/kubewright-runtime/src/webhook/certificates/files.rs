//! Certificates in files that somebody else renews (cert-manager, a mounted Secret).

use std::{fs, io, path::Path, time::Duration};

use tokio::sync::watch;

use super::Shown;
use crate::{Error, metrics::CertificateMetrics};

/// How often files are looked at (controller-runtime's certwatcher).
const INTERVAL: Duration = Duration::from_secs(10);

/// The largest file that is read.
const LARGEST: u64 = 1 << 20;

/// Shows what is in the files, whenever that is something else that can be used.
pub(super) async fn run(
    certificate: &Path,
    key: &Path,
    ca: &Path,
    counts: Option<&CertificateMetrics>,
    shown: &watch::Sender<Option<Shown>>,
) -> Result<(), Error> {
    let mut seen = None;
    let count = |succeeded| counts.iter().for_each(|counts| counts.read(succeeded));
    loop {
        match read(certificate, key, ca) {
            Ok(found) if seen.as_ref() == Some(&found) => {}
            Ok((chain, secret, bundle)) => {
                let usable = Shown::of_pem(&chain, &secret, bundle.clone());
                count(usable.is_ok());
                match usable {
                    Ok(usable) => {
                        tracing::info!(certificate = %certificate.display(), "a certificate was loaded");
                        shown.send_replace(Some(usable));
                    }
                    // Seldom for long: the files are not replaced in one step.
                    Err(why) => {
                        tracing::warn!(certificate = %certificate.display(), why, "a certificate cannot be used");
                    }
                }
                seen = Some((chain, secret, bundle));
            }
            Err(error) => {
                count(false);
                tracing::warn!(certificate = %certificate.display(), %error, "no certificate can be read");
            }
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

type Files = (Vec<u8>, Vec<u8>, Option<String>);

fn read(certificate: &Path, key: &Path, ca: &Path) -> io::Result<Files> {
    let bundle = match limited(ca) {
        Ok(bytes) => Some(String::from_utf8(bytes).map_err(|_| io::Error::other("ca.crt is no text"))?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    Ok((limited(certificate)?, limited(key)?, bundle))
}

fn limited(path: &Path) -> io::Result<Vec<u8>> {
    let length = fs::metadata(path)?.len();
    match length > LARGEST {
        true => Err(io::Error::other(format!("{} is of {length} bytes", path.display()))),
        false => fs::read(path),
    }
}

#[cfg(test)]
mod tests {
    use kubewright_world::World;

    use super::*;
    use crate::webhook::certificates::authority::{Authorities, Lifetimes};

    /// Writes a new certificate, with its authority; gives the `caBundle` that it takes.
    fn renew(folder: &Path, world: &World) -> String {
        let authority = Authorities::new(world, Lifetimes::default()).expect("entropy");
        let issued = authority.issue(world, &["localhost".to_owned()], None).expect("a certificate");
        let pem = |label: &str, der: &[u8]| super::super::authority::encode(label, der);
        fs::write(folder.join("tls.crt"), pem("CERTIFICATE", &issued.chain[0])).expect("a folder");
        fs::write(folder.join("tls.key"), pem("PRIVATE KEY", issued.key.secret_der())).expect("a folder");
        fs::write(folder.join("ca.crt"), authority.bundle()).expect("a folder");
        authority.bundle()
    }

    #[tokio::test(start_paused = true)]
    async fn files_that_are_renewed_are_shown_and_broken_ones_are_not() {
        let world = World::simulated(1);
        let folder = std::env::temp_dir().join(format!("kubewright-webhook-files-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let file = |name: &str| folder.join(name);
        let (certificate, key, ca) = (file("tls.crt"), file("tls.key"), file("ca.crt"));
        let (shown, mut newest) = watch::channel(None);
        let metrics = crate::Metrics::new();
        let counts = metrics.certificates().clone();
        let watching = tokio::spawn(async move { run(&certificate, &key, &ca, Some(&counts), &shown).await });
        tokio::time::sleep(2 * INTERVAL).await;
        assert!(newest.borrow_and_update().is_none(), "the files come later");

        for _ in 0..2 {
            let bundle = renew(&folder, &world);
            newest.changed().await.expect("it is shown");
            let shown = newest.borrow_and_update().clone().expect("a certificate");
            assert_eq!(shown.bundle.as_deref(), Some(&*bundle));
        }
        fs::write(folder.join("tls.key"), "no key").expect("a folder");
        tokio::time::sleep(10 * INTERVAL).await;
        assert!(!newest.has_changed().expect("it goes on"), "what was shown stays");
        let told = metrics.text();
        // Two that could be used; of the others, two came before there were files.
        assert!(told.contains("certwatcher_read_certificate_total 5"), "{told}");
        assert!(told.contains("certwatcher_read_certificate_errors_total 3"), "{told}");
        watching.abort();
        fs::remove_dir_all(&folder).expect("a folder");
    }
}
