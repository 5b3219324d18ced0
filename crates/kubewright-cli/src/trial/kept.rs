//! The recording of a run, and the file that is made of it where something was found.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
};

use anyhow::Context;
use kubewright_cluster::{Cluster, admin::Admin, recording::Recording};
use kubewright_recording::{Header, Record};
use kubewright_trial::plan::Plan;

/// How long the name of a file may be, without what it ends in.
const LONGEST: usize = 120;

/// What a control plane has recorded of a run.
pub(super) struct Kept {
    writes: Recording,
    /// Requests, faults and reconciles.
    besides: Vec<Record>,
    kubernetes: String,
}

impl Kept {
    /// Of a cluster until now; none where its journal has forgotten how it began.
    pub(super) fn of(cluster: &Cluster) -> Option<Self> {
        let writes = Recording::of_journal(cluster.journal()?)?;
        let besides = cluster.admin().map(Admin::records).unwrap_or_default();
        Some(Self { writes, besides, kubernetes: cluster.kubernetes_version().to_string() })
    }

    /// Writes it into a folder, under the name of its plan; gives the file.
    ///
    /// # Errors
    /// When the file system refuses.
    pub(super) fn write(&self, folder: &Path, plan: &Plan) -> anyhow::Result<PathBuf> {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let path = folder.join(file_name(&plan.name));
        let header = Header {
            program: concat!("kubewright trial ", env!("CARGO_PKG_VERSION")).to_owned(),
            started: self.writes.writes().first().map(|write| write.time),
            kubernetes: self.kubernetes.clone(),
            notes: vec![format!("kubewright trial: {}", plan.name)],
            ..Header::default()
        };
        let written = File::create(&path)
            .and_then(|mut file| self.writes.write_blocks(&header, self.besides.clone(), &mut file));
        written.with_context(|| format!("cannot write {}", path.display()))?;
        Ok(path)
    }
}

/// The name of a plan as that of a file.
fn file_name(plan: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '-' | '_');
    let name = plan.chars().map(|letter| if is_plain(letter) { letter } else { '_' });
    name.take(LONGEST).chain(".kwrec".chars()).collect()
}

#[cfg(test)]
mod tests {
    use kube::Api;
    use kubewright_cluster::{
        admin::{ApiFault, Rule},
        recording::besides,
    };

    use super::*;
    use crate::stand::Stand;

    #[test]
    fn a_plan_is_named_as_a_file_is() {
        assert_eq!(file_name("change/spec.text=\"\""), "change_spec.text___.kwrec");
        assert_eq!(file_name(&"x".repeat(500)).len(), LONGEST + ".kwrec".len());
    }

    #[tokio::test]
    async fn a_run_is_a_file_with_its_writes_its_requests_and_what_was_done_to_the_cluster() {
        let Stand { cluster, access } =
            Stand::of(Cluster::builder().nodes(0).controllers("")).await.expect("a stand");
        let spaces: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(access.client);
        spaces.list(&Default::default()).await.expect("a list");
        let admin = cluster.admin().expect("it keeps a log");
        admin.inject(Rule::new(ApiFault::Conflict {}));
        let kept = Kept::of(&cluster).expect("nothing is forgotten");
        let folder = std::env::temp_dir().join(format!("kubewright-kept-{}", std::process::id()));
        let path = kept.write(&folder, &Plan::new("kill/create/1", [])).expect("written");
        let file = || File::open(&path).expect("the file");
        let opened = Recording::open(file(), None).expect("a recording");
        let others = besides(file(), 100).expect("a recording");
        fs::remove_dir_all(&folder).expect("removed");
        cluster.stop().await;
        assert!(path.ends_with("kill_create_1.kwrec"), "{}", path.display());
        assert!(opened.is_whole && opened.recording.writes() == kept.writes.writes());
        let is_list = |one: &Record| matches!(one, Record::Request(request) if request.verb == "list");
        let is_fault = |one: &Record| matches!(one, Record::Mark(mark) if mark.what == "fault");
        assert!(others.iter().any(is_list) && others.iter().any(is_fault), "{others:?}");
    }
}
