//! Who installs an operator that runs in the test.

use kubewright_cluster::User;
use kubewright_runtime::command::{Installation, Operator};

use crate::Cluster;

/// Who installs operators: neither the test nor the operator.
pub(crate) const INSTALLER: &str = "kubewright:installer";

/// Installs what has to be there before the operator runs.
pub(super) async fn install(cluster: &Cluster, operator: &Operator, installation: &Installation) {
    let client = match cluster.is_real() {
        true => cluster.client(),
        false => cluster.client_as(User::new(INSTALLER, ["system:masters"])),
    };
    if let Err(error) = operator.prepare(&client, installation).await {
        panic!("the operator {}: {error}", operator.name());
    }
}
