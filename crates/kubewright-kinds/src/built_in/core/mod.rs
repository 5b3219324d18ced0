//! The core group, which has no name.

pub mod binding;
pub mod component_status;
pub mod config_map;
pub mod endpoints;
pub mod event;
pub mod limit_range;
pub mod namespace;
pub mod node;
pub mod persistent_volume;
pub mod persistent_volume_claim;
pub mod pod;
pub mod pod_template;
pub mod replication_controller;
pub mod resource_quota;
pub mod secret;
pub mod service;
pub mod service_account;

use super::BuiltIn;

/// Its kinds, in the order of discovery.
pub static KINDS: &[&BuiltIn] = &[
    &binding::BINDING,
    &component_status::COMPONENT_STATUS,
    &config_map::CONFIG_MAP,
    &endpoints::ENDPOINTS,
    &event::EVENT,
    &limit_range::LIMIT_RANGE,
    &namespace::NAMESPACE,
    &node::NODE,
    &persistent_volume_claim::PERSISTENT_VOLUME_CLAIM,
    &persistent_volume::PERSISTENT_VOLUME,
    &pod::POD,
    &pod_template::POD_TEMPLATE,
    &replication_controller::REPLICATION_CONTROLLER,
    &resource_quota::RESOURCE_QUOTA,
    &secret::SECRET,
    &service_account::SERVICE_ACCOUNT,
    &service::SERVICE,
];
