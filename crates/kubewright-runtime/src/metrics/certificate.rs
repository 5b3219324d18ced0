//! What a server counts that reads its certificate from files.

use prometheus::{IntCounter, Registry};

use super::family::register;

/// `certwatcher_read_certificate_total` and `certwatcher_read_certificate_errors_total`.
#[derive(Clone, Debug)]
pub struct CertificateMetrics {
    reads: IntCounter,
    errors: IntCounter,
}

impl CertificateMetrics {
    pub(super) fn new(registry: &Registry) -> Self {
        let counter = |name: &str, help: &str| {
            let counter = IntCounter::new(name, help).expect("a valid name");
            register(registry, counter.clone());
            counter
        };
        Self {
            reads: counter("certwatcher_read_certificate_total", "Total number of certificate reads"),
            errors: counter(
                "certwatcher_read_certificate_errors_total",
                "Total number of certificate read errors",
            ),
        }
    }

    /// Counts an attempt to read a certificate, and whether it was one.
    pub fn read(&self, succeeded: bool) {
        self.reads.inc();
        if !succeeded {
            self.errors.inc();
        }
    }
}
