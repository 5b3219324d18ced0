//! How many pods a Deployment wants and how far a rollout may stray from that
//! (`ResolveFenceposts` in `pkg/controller/deployment/util/deployment_util.go`).

use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec};
use kubewright_objects::optional;

use crate::share::{Rounding, resolve};

/// How a new template takes the place of the old one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Strategy {
    /// Step by step, within the bounds of [`Goal`].
    RollingUpdate,
    /// All old pods go before the first new one comes.
    Recreate,
}

/// The wanted size and the bounds of a rollout, in pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Goal {
    pub(super) strategy: Strategy,
    /// `spec.replicas`.
    pub(super) replicas: i32,
    /// So many pods there may be beyond `replicas`.
    pub(super) surge: i32,
    /// So many of `replicas` may be unavailable.
    pub(super) unavailable: i32,
}

impl Goal {
    /// What `deployment` asks for. Percentages are of `spec.replicas`: the surge is rounded up, the unavailable ones
    /// down, and when both come to nothing one pod may be unavailable, or no rollout would ever move.
    pub(super) fn of(deployment: &Deployment) -> Self {
        let spec = optional::<DeploymentSpec>(&deployment.spec);
        let replicas = spec.and_then(|spec| spec.replicas).unwrap_or(1);
        let strategy = spec.and_then(|spec| spec.strategy.as_ref());
        if strategy.and_then(|strategy| strategy.type_.as_deref()) == Some("Recreate") {
            return Self { strategy: Strategy::Recreate, replicas, surge: 0, unavailable: 0 };
        }
        let rolling = strategy.and_then(|strategy| strategy.rolling_update.as_ref());
        let surge = rolling.and_then(|rolling| rolling.max_surge.as_ref());
        let unavailable = rolling.and_then(|rolling| rolling.max_unavailable.as_ref());
        let surge = surge.map_or(0, |surge| resolve(surge, replicas, Rounding::Up));
        let unavailable = unavailable.map_or(0, |value| resolve(value, replicas, Rounding::Down));
        let unavailable = if surge == 0 && unavailable == 0 { 1 } else { unavailable };
        Self { strategy: Strategy::RollingUpdate, replicas, surge, unavailable: unavailable.min(replicas) }
    }

    /// The most pods there may be.
    pub(super) fn most(&self) -> i32 {
        self.replicas.saturating_add(self.surge)
    }

    /// The fewest pods that should be available.
    pub(super) fn least_available(&self) -> i32 {
        self.replicas - self.unavailable
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn goal(replicas: i32, surge: impl Into<Value>, unavailable: impl Into<Value>) -> (i32, i32) {
        let (surge, unavailable) = (surge.into(), unavailable.into());
        let deployment = kubewright_objects::from_value(json!({
            "metadata": {"name": "web"},
            "spec": {"replicas": replicas, "selector": {}, "template": {},
                "strategy": {"type": "RollingUpdate",
                    "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}},
        }))
        .expect("a Deployment");
        let goal = Goal::of(&deployment);
        (goal.surge, goal.unavailable)
    }

    #[test]
    fn surge_percentages_are_rounded_up_and_unavailable_ones_down() {
        assert_eq!(goal(10, "25%", "25%"), (3, 2));
        assert_eq!(goal(3, "25%", "25%"), (1, 0));
        assert_eq!(goal(15, "25%", 0), (4, 0));
    }

    #[test]
    fn one_pod_may_be_unavailable_when_both_bounds_come_to_nothing() {
        assert_eq!(goal(3, "0%", "10%"), (0, 1));
    }

    #[test]
    fn no_more_pods_can_be_unavailable_than_are_wanted() {
        assert_eq!(goal(2, 1, 5), (1, 2));
        assert_eq!(goal(0, "25%", "25%"), (0, 0));
    }
}
