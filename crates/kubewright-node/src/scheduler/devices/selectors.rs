//! Selectors of devices, compiled once.

use std::collections::BTreeMap;
use std::sync::Arc;

use kubewright_cel::{Device as CelDevice, Environment, Program};
use parking_lot::Mutex;
use serde_json::Value;

use super::pools::Device;

/// What an expression may cost for a device.
const COST: u64 = 1_000_000;
/// As many expressions as are kept.
const KEPT: usize = 1000;

type Compiled = Result<Arc<Program>, String>;

/// The expressions that were compiled so far.
pub(super) struct Selectors {
    environment: Environment,
    compiled: Mutex<BTreeMap<String, Compiled>>,
}

impl std::fmt::Debug for Selectors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Selectors").finish_non_exhaustive()
    }
}

impl Default for Selectors {
    fn default() -> Self {
        Self { environment: Environment::of_devices(true), compiled: Mutex::default() }
    }
}

impl Selectors {
    fn program(&self, expression: &str) -> Compiled {
        let mut compiled = self.compiled.lock();
        if let Some(known) = compiled.get(expression) {
            return known.clone();
        }
        if compiled.len() >= KEPT {
            compiled.clear();
        }
        let made = self.environment.selector(expression).map(Arc::new);
        compiled.insert(expression.to_owned(), made.clone());
        made
    }

    /// Whether all select a device. `whose`: the words for the class or claim that they are of.
    ///
    /// # Errors
    /// What is wrong with one of them, or with the device.
    pub(super) fn match_all(
        &self,
        selectors: &[Value],
        device: &Device<'_>,
        whose: &dyn Fn() -> String,
    ) -> Result<bool, String> {
        for (index, selector) in selectors.iter().enumerate() {
            let expression = selector.pointer("/cel/expression").and_then(Value::as_str).unwrap_or_default();
            let program = self
                .program(expression)
                .map_err(|why| format!("{}: selector #{index}: CEL compile error: {why}", whose()))?;
            let matches =
                CelDevice::new(device.id[0], device.device).and_then(|seen| seen.matches(&program, COST));
            let failed = |why| format!("{}: selector #{index}: CEL runtime error: {why}", whose());
            if !matches.map_err(failed)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
