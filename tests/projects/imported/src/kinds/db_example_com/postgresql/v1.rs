// SPDX-License-Identifier: MIT

//! The kind postgresql in v1 of db.example.com, imported from its definition.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "db.example.com",
    version = "v1",
    kind = "postgresql",
    root = "Postgresql",
    plural = "postgresqls",
    namespaced,
    status = "PostgresqlStatus"
)]
pub struct PostgresqlSpec {
    #[serde(rename = "numberOfInstances")]
    #[schemars(extend("minimum" = 0))]
    pub number_of_instances: i64,
    #[serde(rename = "teamId")]
    pub team_id: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PostgresqlStatus {
    #[serde(
        rename = "PostgresClusterStatus",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub postgres_cluster_status: Option<String>,
}
