//! What an image says about how it is to be run.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Serialize, Serializer};

/// What an image says about how it is to be run (OCI's image configuration, `config.md`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Config {
    /// The program and its first arguments; `command` of a container replaces it.
    pub entrypoint: Vec<String>,
    /// The arguments, or all where there is no entrypoint; `args` of a container replaces it, `command` drops it.
    pub cmd: Vec<String>,
    /// Names and values, in the image's order; the last of a name counts. As JSON each is one text, such as `PATH=/bin`.
    #[serde(serialize_with = "joined")]
    pub env: Vec<(String, String)>,
    /// Where the program starts; empty is `/`.
    pub working_dir: String,
    /// `user`, `uid`, `user:group`, `uid:gid` or a mixture; empty is root.
    pub user: String,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Ports that the program listens on, such as `8080/tcp`.
    pub exposed_ports: BTreeSet<String>,
    /// Folders that the program writes to.
    pub volumes: BTreeSet<String>,
    /// The signal that asks the program to end, by name or number.
    pub stop_signal: Option<String>,
    /// What it is built for, in Go's words, such as `amd64`.
    pub architecture: String,
    /// What it is built for, such as `linux`.
    pub os: String,
    /// When it was built (RFC 3339), as the image says it.
    pub created: Option<String>,
}

fn joined<S: Serializer>(pairs: &[(String, String)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(pairs.iter().map(|(name, value)| format!("{name}={value}")))
}
