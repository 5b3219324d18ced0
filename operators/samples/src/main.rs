//! The kubewright command with the sample operators: `kubewright-samples up --samples`.

use std::process::ExitCode;

use kubewright_app_service as app_service;
use kubewright_at as at;
use kubewright_cli::{Sample, Samples};
use kubewright_crontab as crontab;
use kubewright_image_police as image_police;
use kubewright_memcached as memcached;
use kubewright_security_group as security_group;
use kubewright_whitelist as whitelist;

/// Where the samples live that mind no others.
const NAMESPACE: &str = "default";
/// Where the image police acts, which would find fault with the others' images.
const POLICED: &str = "policed";

const LOGS: &str = "kubewright_app_service=info,kubewright_at=info,kubewright_crontab=info,\
                    kubewright_image_police=info,kubewright_memcached=info,kubewright_security_group=info,\
                    kubewright_whitelist=info";

fn main() -> ExitCode {
    kubewright_cli::main(Some(samples))
}

fn samples() -> anyhow::Result<Samples> {
    let mut samples = vec![
        Sample::new(whitelist::operator(), whitelist::manifests::SAMPLE, NAMESPACE, "Available")?,
        Sample::new(image_police::operator(), image_police::manifests::SAMPLE, POLICED, "Enforced")?,
        Sample::new(at::operator(), at::manifests::SAMPLE, NAMESPACE, "Succeeded")?,
        Sample::new(crontab::operator(), crontab::manifests::SAMPLE, NAMESPACE, "Scheduled")?,
        Sample::new(app_service::operator(), app_service::manifests::SAMPLE, NAMESPACE, "Ready")?,
        Sample::new(memcached::operator(), memcached::manifests::SAMPLE, NAMESPACE, "Available")?,
    ];
    let mut left_out = None;
    if security_group::is_configured() {
        let (operator, sample) = (security_group::operator(), security_group::manifests::SAMPLE);
        samples.push(Sample::new(operator, sample, NAMESPACE, "Ready")?);
    } else {
        let needs = security_group::WHAT_IT_NEEDS;
        left_out = Some(format!("operator security-group does not run: {needs}"));
    }
    let hint = Some("try: kubectl delete deployment whitelist-sample-deployment (it comes back)");
    Ok(Samples { samples, left_out, hint, logs: LOGS })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_operator_has_an_account_of_its_own_and_a_sample_that_no_other_has() {
        let samples = samples().expect("they are compiled in").samples;
        let accounts: BTreeSet<_> = samples.iter().map(Sample::account).collect();
        assert_eq!(accounts.len(), samples.len());
        assert!(accounts.contains(&("whitelist-system".to_owned(), "whitelist")));
        let ids: Vec<String> = samples.iter().map(Sample::id).collect();
        assert!(ids.contains(&"whitelist default/whitelist-sample".to_owned()), "{ids:?}");
        assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "{ids:?}");
    }
}
