//! What the server does by itself after a commit, where kube-apiserver has controllers of its own.

pub(super) mod addresses;
pub(crate) mod api_services;
mod definitions;
mod flows;
mod policies;

use std::sync::Arc;

use kubewright_kinds::{Kind, Role};

use crate::engine::Engine;

pub(crate) use addresses::repair as repair_addresses;
pub(super) use definitions::object_gone;
pub(crate) use definitions::resume as resume_definitions;

/// What the server does by itself after a commit of an object, where its kind asks for that.
pub(super) async fn follow_up(engine: &Engine, kind: &Arc<Kind>, name: &str) {
    match kind.behaviour.role {
        Role::Definition => definitions::changed(engine, kind, name).await,
        Role::ApiService => api_services::changed(engine, kind, name).await,
        Role::ValidatingPolicy => policies::changed(engine, kind, name).await,
        Role::FlowSchema => flows::schema_changed(engine, kind, name).await,
        Role::PriorityLevel => flows::level_changed(engine, name).await,
        Role::Ordinary
        | Role::Namespace
        | Role::Service
        | Role::Pod
        | Role::MutatingPolicy
        | Role::ValidatingPolicyBinding
        | Role::MutatingPolicyBinding
        | Role::WebhookConfiguration
        | Role::SigningRequest
        | Role::DeviceClaim
        | Role::DeviceClaimTemplate
        | Role::PodCertificateRequest
        | Role::ComponentStatus
        | Role::Binding
        | Role::TokenReview
        | Role::SelfSubjectReview
        | Role::AccessReview(_) => {}
    }
}

/// Whether the server does something by itself after a commit of an object of that kind, where kube-apiserver has controllers of
/// its own: brings a status up to date, lets a definition go with its last object, notes the addresses of a Service.
pub fn has_follow_up(kind: &Kind) -> bool {
    match kind.behaviour.role {
        Role::Definition
        | Role::ApiService
        | Role::ValidatingPolicy
        | Role::FlowSchema
        | Role::PriorityLevel
        | Role::Service => true,
        Role::Ordinary
        | Role::Namespace
        | Role::Pod
        | Role::MutatingPolicy
        | Role::ValidatingPolicyBinding
        | Role::MutatingPolicyBinding
        | Role::WebhookConfiguration
        | Role::SigningRequest
        | Role::DeviceClaim
        | Role::DeviceClaimTemplate
        | Role::PodCertificateRequest
        | Role::ComponentStatus
        | Role::Binding
        | Role::TokenReview
        | Role::SelfSubjectReview
        | Role::AccessReview(_) => kind.custom.as_ref().is_some_and(|custom| custom.terminating),
    }
}
