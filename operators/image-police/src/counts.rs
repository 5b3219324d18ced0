//! What the police tells Prometheus.

use kubewright::{
    Error,
    metrics::prometheus::{IntCounterVec, IntGaugeVec, Opts, Registry},
};

use crate::plan::Deed;

/// `image_police_violations{namespace}` and `image_police_actions_total{namespace,action}`.
#[derive(Clone, Debug)]
pub struct Counts {
    violations: IntGaugeVec,
    actions: IntCounterVec,
}

impl Default for Counts {
    /// Nothing counted yet.
    fn default() -> Self {
        let violations = Opts::new("image_police_violations", "Uses of images that no list allows");
        let actions =
            Opts::new("image_police_actions_total", "Workloads that were deleted or scaled to zero");
        let valid = "the names above are names of metrics";
        Self {
            violations: IntGaugeVec::new(violations, &["namespace"]).expect(valid),
            actions: IntCounterVec::new(actions, &["namespace", "action"]).expect(valid),
        }
    }
}

impl Counts {
    /// Tells them with the other metrics of a manager.
    ///
    /// # Errors
    /// When they are told there already.
    pub fn register(&self, registry: &Registry) -> Result<(), Error> {
        registry.register(Box::new(self.violations.clone())).map_err(Error::new)?;
        registry.register(Box::new(self.actions.clone())).map_err(Error::new)
    }

    /// So many violations are in a namespace; none where nobody judges.
    pub(crate) fn found(&self, namespace: &str, violations: Option<usize>) {
        match violations {
            Some(count) => {
                let gauge = self.violations.with_label_values(&[namespace]);
                gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
            }
            // It may not have been there.
            None => drop(self.violations.remove_label_values(&[namespace])),
        }
    }

    /// Something was done.
    pub(crate) fn did(&self, namespace: &str, deed: Deed) {
        let action = match deed {
            Deed::Delete => "delete",
            Deed::ScaleToZero => "scale-to-zero",
        };
        self.actions.with_label_values(&[namespace, action]).inc();
    }
}
