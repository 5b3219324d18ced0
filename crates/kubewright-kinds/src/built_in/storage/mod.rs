//! The group `storage.k8s.io`.

pub mod csi_driver;
pub mod csi_node;
pub mod csi_storage_capacity;
pub mod storage_class;
pub mod volume_attachment;
pub mod volume_attributes_class;

use super::BuiltIn;

/// Its kinds, in the order of discovery.
pub static KINDS: &[&BuiltIn] = &[
    &csi_driver::CSI_DRIVER,
    &csi_node::CSI_NODE,
    &csi_storage_capacity::CSI_STORAGE_CAPACITY,
    &storage_class::STORAGE_CLASS,
    &volume_attachment::VOLUME_ATTACHMENT,
    &volume_attributes_class::VOLUME_ATTRIBUTES_CLASS,
];
