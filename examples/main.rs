//! The twenty examples, each a module of one test program: `cargo test -p kubewright-examples 07` runs one.

#[path = "01_config_map.rs"]
mod n01_config_map;
#[path = "02_owned_children.rs"]
mod n02_owned_children;
#[path = "03_status_conditions.rs"]
mod n03_status_conditions;
#[path = "04_finalizer.rs"]
mod n04_finalizer;
#[path = "05_unwanted_children.rs"]
mod n05_unwanted_children;
#[path = "06_watch_by_index.rs"]
mod n06_watch_by_index;
#[path = "07_requeue.rs"]
mod n07_requeue;
#[path = "08_errors.rs"]
mod n08_errors;
#[path = "09_events.rs"]
mod n09_events;
#[path = "10_validating_webhook.rs"]
mod n10_validating_webhook;
#[path = "11_defaulting_webhook.rs"]
mod n11_defaulting_webhook;
#[path = "12_conversion.rs"]
mod n12_conversion;
#[path = "13_dynamic_kinds.rs"]
mod n13_dynamic_kinds;
#[path = "14_clusters.rs"]
mod n14_clusters;
#[path = "15_leader_election.rs"]
mod n15_leader_election;
#[path = "16_faults.rs"]
mod n16_faults;
#[path = "17_rights.rs"]
mod n17_rights;
#[path = "18_kube_controller.rs"]
mod n18_kube_controller;
#[path = "19_control_plane.rs"]
mod n19_control_plane;
#[path = "20_flags.rs"]
mod n20_flags;
