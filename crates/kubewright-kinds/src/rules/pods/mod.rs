//! Pods, and the parts of pods that other kinds hold (`pkg/apis/core/validation`, `pkg/registry/core/pod`).

mod annotations;
mod claims;
mod container_statuses;
mod containers;
mod defaults;
mod disabled;
mod env;
mod handlers;
mod mounts;
mod paths;
mod projected;
mod resize;
mod scheduling;
mod seccomp;
mod security;
mod spec;
mod status;
mod systems;
pub mod template;
mod update;
pub mod volumes;
pub mod whole;

use std::collections::BTreeMap;

use kubewright_meta::FieldError;
use serde_json::Value;

use super::at::At;
use super::errors::Errors;
use super::{Again, Generation, Rules, fill, version};

pub use defaults::{merge, pod as default_pod, qos_class, template as default_template};
pub use disabled::drop as drop_disabled;
pub(crate) use handlers::check_port;
pub use resize::{has_others, resize, validate_resize};
pub(crate) use scheduling::{EFFECTS, check_node_selector, check_tolerations};
pub(super) use security::tolerate;
pub(in crate::rules) use update::internal;
pub use update::{validate_binding, validate_ephemeral_containers};

/// What the checks of a container need to know of its pod.
pub(super) struct PodParts<'a> {
    /// The names of the ordinary containers.
    containers: Vec<&'a str>,
    /// The good volumes, by name.
    volumes: BTreeMap<&'a str, At<'a>>,
    /// The names of the resource claims.
    claims: Vec<&'a str>,
    /// `terminationGracePeriodSeconds`.
    grace: Option<i64>,
    /// `restartPolicy`.
    restart_policy: &'a str,
    /// The name of the operating system, when one is given.
    os: Option<&'a str>,
    /// Whether users of the containers are users of the node.
    host_users: bool,
}

impl<'a> PodParts<'a> {
    fn of(spec: &At<'a>, volumes: BTreeMap<&'a str, At<'a>>) -> Self {
        let names = |list: &str| -> Vec<&str> {
            spec.get(list).items().map(|item| item.get("name").text()).collect()
        };
        let os = spec.get("os");
        Self {
            containers: names("containers"),
            volumes,
            claims: {
                let mut claims: Vec<&str> = names("resourceClaims");
                claims.retain(|name| !name.is_empty());
                claims.sort_unstable();
                claims.dedup();
                claims
            },
            grace: spec.get("terminationGracePeriodSeconds").number(),
            restart_policy: spec.get("restartPolicy").text(),
            os: os.is_set().then(|| os.get("name").text()),
            host_users: spec.get("hostUsers").value != &Value::Bool(false),
        }
    }
}

/// The gate of other defaults for pods as a whole.
const FIX_DEFAULTING: &str = "PodLevelResourcesFixDefaulting";

/// The rules of pods.
pub const fn rules() -> Rules {
    Rules {
        default: default_pod,
        pod_spec: &["spec"],
        prepare_create: |pod| {
            annotations::profiles_from(pod);
            if version::has_feature(FIX_DEFAULTING) {
                whole::default_all(pod);
            }
            let status = defaults::status(pod);
            fill::set(pod, "status", status);
            // Admission may have given to containers what the pod as a whole asks for whenever it is read.
            defaults::whole_where_read(pod);
        },
        warn_early: annotations::warn_of_profiles,
        lacks_defaults: |pod| {
            pod["spec"]["resources"].is_object() && {
                let mut read = pod.clone();
                defaults::whole_where_read(&mut read);
                read != *pod
            }
        },
        prepare_update: |new, old| {
            // Who does not know the field did not want to remove it.
            if version::has_feature(FIX_DEFAULTING)
                && new["spec"]["resources"].is_null()
                && let Some(spec) = fill::present(new, "spec")
            {
                fill::keep(spec, &old["spec"], "resources");
            }
        },
        prepare_status: |new, old| {
            if let Some(status) = fill::present(new, "status") {
                disabled::drop_of_status(status);
            }
            // What a kubelet leaves out stays what it was.
            let class = &old["status"]["qosClass"];
            if let Some(status) = fill::present(new, "status").filter(|_| !class.is_null()) {
                fill::absent(status, "qosClass", class.clone());
            }
        },
        generation: Generation::Content,
        again: Again::Metadata,
        validate,
        validate_update: update::validate,
        validate_status: status::validate,
        ..Rules::none()
    }
}

/// The rules of pod templates as objects of their own.
pub(crate) const fn template_rules() -> Rules {
    let check =
        |object: &Value| Errors::of(|errors| template::check(&At::root(object).get("template"), errors));
    Rules {
        default: |object| default_template(object, "template"),
        pod_spec: &["template", "spec"],
        generation: Generation::Content,
        validate: check,
        validate_update: |new, _| {
            Errors::of(|errors| template::check(&At::root(new).get("template"), errors))
        },
        ..Rules::none()
    }
}

fn validate(pod: &Value) -> Vec<FieldError> {
    Errors::of(|errors| {
        let pod = At::root(pod);
        check_pod(&pod, errors);
        let spec = pod.get("spec");
        if !spec.get("ephemeralContainers").is_empty() {
            errors.forbidden(&spec.get("ephemeralContainers"), "cannot be set on create");
        }
        if !spec.get("nodeName").is_empty() && !spec.get("schedulingGates").is_empty() {
            errors.forbidden(
                &spec.get("nodeName"),
                "cannot be set until all schedulingGates have been cleared",
            );
        }
        annotations::check_fields(&pod.dig(&["metadata", "annotations"]), &spec, errors);
    })
}

/// What holds for new and for changed pods (`validatePodMetadataAndSpec`, without the metadata).
fn check_pod(pod: &At<'_>, errors: &mut Errors) {
    let (meta, spec) = (pod.get("metadata"), pod.get("spec"));
    annotations::check(&meta.get("annotations"), &spec, errors);
    spec::check(&spec, meta.get("name").text(), true, errors);
    if spec.get("serviceAccountName").is_empty() {
        for volume in spec.get("volumes").items() {
            for source in volume.dig(&["projected", "sources"]).items() {
                let token = source.get("serviceAccountToken");
                if token.is_set() {
                    errors.forbidden(&token, "must not be specified when serviceAccountName is not set");
                }
            }
        }
    }
    for container in ["containers", "initContainers"].iter().flat_map(|list| spec.get(list).items()) {
        containers::check_image_spaces(&container, errors);
    }
}
