//! Admission webhooks: servers of the users are asked, over HTTPS, what to change of an object and whether to take it
//! (`k8s.io/apiserver/pkg/admission/plugin/webhook`).

mod answer;
mod fail_open;
mod hook;
mod mutating;
mod review;
mod validating;

use std::sync::Arc;

use kubewright_identity::webhook::Client;
use kubewright_kinds::Summary;
use kubewright_kinds::built_in::admissionregistration::mutating_webhook_configuration::MUTATING_WEBHOOK_CONFIGURATION;
use kubewright_kinds::built_in::admissionregistration::validating_webhook_configuration::VALIDATING_WEBHOOK_CONFIGURATION;
use kubewright_store::Snapshot;
use kubewright_world::Clock;
use serde_json::Value;

use self::fail_open::FailOpen;
use self::hook::Hook;
use super::matching::Cache;

pub(super) use mutating::mutate;
pub(super) use validating::validate;

/// The webhooks that are configured, ready to be matched, the client that calls them, and what is counted of them.
pub struct Webhooks {
    client: Client,
    fail_open: FailOpen,
    mutating: Cache<Configuration>,
    validating: Cache<Configuration>,
}

/// The webhooks of one object.
struct Configuration(Vec<Arc<Hook>>);

impl Webhooks {
    pub(super) fn new(clock: Clock) -> Self {
        Self {
            client: Client::new(clock),
            fail_open: FailOpen::default(),
            mutating: Cache::new(&MUTATING_WEBHOOK_CONFIGURATION, compile),
            validating: Cache::new(&VALIDATING_WEBHOOK_CONFIGURATION, compile),
        }
    }

    /// The client that calls them.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// How often which of them was passed over.
    pub fn fail_open(&self) -> &FailOpen {
        &self.fail_open
    }

    /// The mutating ones in the order in which they are called: by the names of their configurations.
    fn mutating(&self, snapshot: &Snapshot<Summary>) -> Vec<Arc<Hook>> {
        all(&self.mutating, snapshot)
    }

    fn validating(&self, snapshot: &Snapshot<Summary>) -> Vec<Arc<Hook>> {
        all(&self.validating, snapshot)
    }
}

/// No allocation where there is none.
fn all(cache: &Cache<Configuration>, snapshot: &Snapshot<Summary>) -> Vec<Arc<Hook>> {
    cache.get(snapshot).iter().flat_map(|configuration| configuration.0.iter().cloned()).collect()
}

fn compile(object: &Value) -> Configuration {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let hooks = object["webhooks"].as_array().into_iter().flatten().enumerate();
    Configuration(hooks.map(|(index, hook)| Arc::new(Hook::read(name, index, hook))).collect())
}
