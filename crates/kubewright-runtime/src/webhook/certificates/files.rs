//! Certificates in files that somebody else renews (cert-manager, a mounted Secret).

use kubewright_serve::files::{CertificateFiles, FileError};
use tokio::sync::watch;

use super::Shown;
use crate::{Error, metrics::CertificateMetrics};

/// Shows what is in the files, whenever that is something else that can be used.
pub(super) async fn run(
    mut files: CertificateFiles,
    counts: Option<&CertificateMetrics>,
    shown: &watch::Sender<Option<Shown>>,
) -> Result<(), Error> {
    loop {
        let found = files.next().await;
        counts.iter().for_each(|counts| counts.read(found.is_ok()));
        match found {
            Ok(loaded) => {
                tracing::info!(certificate = %files, "a certificate was loaded");
                shown.send_replace(Some(Shown::new(loaded.certificate, loaded.ca)));
            }
            Err(error @ FileError::Unreadable { .. }) => {
                tracing::warn!(certificate = %files, %error, "no certificate can be read");
            }
            // Seldom for long: the files are not replaced in one step.
            Err(error) => tracing::warn!(certificate = %files, %error, "a certificate cannot be used"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use kubewright_serve::files::INTERVAL;
    use kubewright_world::World;

    use super::*;
    use crate::webhook::certificates::authorities::{Authorities, Lifetimes};

    /// Writes a new certificate, with its authority; gives the `caBundle` that it takes.
    fn renew(folder: &Path, world: &World) -> String {
        let authority = Authorities::new(world, Lifetimes::default()).expect("entropy");
        let issued = authority.issue(world, &["localhost".to_owned()], None).expect("a certificate");
        fs::write(folder.join("tls.crt"), issued.certificate.chain_pem()).expect("a folder");
        fs::write(folder.join("tls.key"), issued.certificate.key_pem()).expect("a folder");
        fs::write(folder.join("ca.crt"), authority.bundle()).expect("a folder");
        authority.bundle()
    }

    #[tokio::test(start_paused = true)]
    async fn files_that_are_renewed_are_shown_and_broken_ones_are_not() {
        let world = World::simulated(1);
        let folder = std::env::temp_dir().join(format!("kubewright-webhook-files-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let file = |name: &str| folder.join(name);
        let files = CertificateFiles::new(file("tls.crt"), file("tls.key")).with_ca(file("ca.crt"));
        let (shown, mut newest) = watch::channel(None);
        let metrics = crate::Metrics::new();
        let counts = metrics.certificates().clone();
        let watching = tokio::spawn(async move { run(files, Some(&counts), &shown).await });
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
        let text = metrics.text();
        // Two that could be used; of the others, two came before there were files.
        assert!(text.contains("certwatcher_read_certificate_total 5"), "{text}");
        assert!(text.contains("certwatcher_read_certificate_errors_total 3"), "{text}");
        watching.abort();
        fs::remove_dir_all(&folder).expect("a folder");
    }
}
