//! What is made of a recommendation: stabilised over time, and kept within limits (`normalizeDesiredReplicas` and what it
//! calls in `pkg/controller/podautoscaler/horizontal.go`). Pure, but for the history that is handed in.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::autoscaling::v2::{
    HPAScalingPolicy, HPAScalingRules, HorizontalPodAutoscalerBehavior, HorizontalPodAutoscalerSpec,
};

use super::history::{Age, History};

/// How long a recommendation holds replicas up where nothing else is said.
const DOWNSCALE_STABILISATION: SignedDuration = SignedDuration::from_mins(5);

/// What an autoscaler may choose from, and what is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    pub(super) min: i32,
    pub(super) max: i32,
    pub(super) current: i32,
}

impl Bounds {
    /// Those of a spec.
    pub(super) fn of(spec: &HorizontalPodAutoscalerSpec, current: i32) -> Self {
        Self { min: spec.min_replicas.unwrap_or(1), max: spec.max_replicas, current }
    }
}

/// A reason and a message of a condition.
pub(super) type Why = (&'static str, &'static str);

/// What became of a recommendation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Normal {
    pub(super) replicas: i32,
    /// Why `AbleToScale` is true.
    pub(super) able: Why,
    /// Whether `ScalingLimited` is true, and why.
    pub(super) limited: (bool, Why),
}

const READY: Why = ("ReadyForNewScale", "recommended size matches current size");
const DOWN_STABILISED: Why = (
    "ScaleDownStabilized",
    "recent recommendations were higher than current one, applying the highest recent recommendation",
);
const UP_STABILISED: Why = (
    "ScaleUpStabilized",
    "recent recommendations were lower than current one, applying the lowest recent recommendation",
);
const WITHIN: Why = ("DesiredWithinRange", "the desired count is within the acceptable range");
const UP_LIMIT: Why =
    ("ScaleUpLimit", "the desired replica count is increasing faster than the maximum scale rate");
const DOWN_LIMIT: Why =
    ("ScaleDownLimit", "the desired replica count is decreasing faster than the maximum scale rate");
const TOO_MANY: Why = ("TooManyReplicas", "the desired replica count is more than the maximum replica count");
const TOO_FEW: Why = ("TooFewReplicas", "the desired replica count is less than the minimum replica count");

/// Stabilises and limits `desired` by the rules of an autoscaler, and remembers it.
pub(super) fn normalize(
    behavior: Option<&HorizontalPodAutoscalerBehavior>,
    bounds: Bounds,
    desired: i32,
    history: &mut History,
    now: Timestamp,
) -> Normal {
    let (stabilised, able, (replicas, why)) = match behavior {
        None => {
            let held = Age::AtMost(DOWNSCALE_STABILISATION);
            let stabilised = history.recommended(held, now).fold(desired, i32::max);
            history.recommend(desired, DOWNSCALE_STABILISATION, now);
            (stabilised, DOWN_STABILISED, within(bounds, stabilised))
        }
        Some(behavior) => {
            let rules = Behavior::of(behavior);
            let stabilised = rules.stabilise(bounds.current, desired, history, now);
            history.recommend(desired, rules.up.window.max(rules.down.window), now);
            let able = if desired >= bounds.current { UP_STABILISED } else { DOWN_STABILISED };
            (stabilised, able, rules.within(bounds, stabilised, history, now))
        }
    };
    let able = if stabilised == desired { READY } else { able };
    Normal { replicas, able, limited: (replicas != stabilised, why) }
}

/// The limits without rules of one's own (`convertDesiredReplicasWithRules`): at most doubled, or four.
fn within(bounds: Bounds, desired: i32) -> (i32, Why) {
    let fastest = bounds.current.saturating_mul(2).max(4);
    let (most, too_many) = if bounds.max > fastest { (fastest, UP_LIMIT) } else { (bounds.max, TOO_MANY) };
    if desired < bounds.min {
        (bounds.min, TOO_FEW)
    } else if desired > most {
        (most, too_many)
    } else {
        (desired, WITHIN)
    }
}

/// `spec.behavior`, complete.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Behavior {
    up: Rules,
    down: Rules,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Rules {
    window: SignedDuration,
    select: Select,
    policies: Vec<Policy>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Select {
    /// The policy that allows the greatest change.
    Max,
    /// The one that allows the smallest.
    Min,
    Disabled,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Policy {
    change: Change,
    period: SignedDuration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Pods(i32),
    Percent(i32),
}

impl Behavior {
    /// The rules of a spec, with the defaults (`pkg/apis/autoscaling/v2/defaults.go`) where it says nothing.
    fn of(behavior: &HorizontalPodAutoscalerBehavior) -> Self {
        const PERIOD: SignedDuration = SignedDuration::from_secs(15);
        let up = vec![
            Policy { change: Change::Pods(4), period: PERIOD },
            Policy { change: Change::Percent(100), period: PERIOD },
        ];
        let down = vec![Policy { change: Change::Percent(100), period: PERIOD }];
        Self {
            up: Rules::of(behavior.scale_up.as_ref(), SignedDuration::ZERO, up),
            down: Rules::of(behavior.scale_down.as_ref(), DOWNSCALE_STABILISATION, down),
        }
    }

    /// Keeps the replicas between the lowest and the highest of the recommendations that are not too old
    /// (`stabilizeRecommendationWithBehaviors`).
    fn stabilise(&self, current: i32, desired: i32, history: &History, now: Timestamp) -> i32 {
        let lowest = history.recommended(Age::Below(self.up.window), now).fold(desired, i32::min);
        let highest = history.recommended(Age::Below(self.down.window), now).fold(desired, i32::max);
        current.max(lowest).min(highest)
    }

    /// Keeps the change within what the policies allow (`convertDesiredReplicasWithBehaviorRate`).
    fn within(&self, bounds: Bounds, desired: i32, history: &History, now: Timestamp) -> (i32, Why) {
        let current = bounds.current;
        if desired > current {
            let fastest = self.up.limit_up(current, history, now).max(current);
            let (most, why) = if bounds.max > fastest { (fastest, UP_LIMIT) } else { (bounds.max, TOO_MANY) };
            if desired > most { (most, why) } else { (desired, WITHIN) }
        } else if desired < current {
            let fastest = self.down.limit_down(current, history, now).min(current);
            let (least, why) =
                if bounds.min < fastest { (fastest, DOWN_LIMIT) } else { (bounds.min, TOO_FEW) };
            if desired < least { (least, why) } else { (desired, WITHIN) }
        } else {
            (desired, WITHIN)
        }
    }
}

impl Rules {
    fn of(rules: Option<&HPAScalingRules>, window: SignedDuration, policies: Vec<Policy>) -> Self {
        let said = rules.and_then(|rules| rules.stabilization_window_seconds);
        let select = match rules.and_then(|rules| rules.select_policy.as_deref()) {
            Some("Min") => Select::Min,
            Some("Disabled") => Select::Disabled,
            _ => Select::Max,
        };
        let own = rules.and_then(|rules| rules.policies.as_ref());
        Self {
            window: said.map_or(window, |seconds| SignedDuration::from_secs(seconds.into())),
            select,
            policies: own.map_or(policies, |own| own.iter().filter_map(Policy::of).collect()),
        }
    }

    /// `calculateScaleUpLimitWithScalingRules`. A share is rounded up, so that it allows some change.
    fn limit_up(&self, current: i32, history: &History, now: Timestamp) -> i32 {
        let limits = self.policies.iter().map(|policy| {
            let start = history.replicas_before(policy.period, current, now);
            match policy.change {
                Change::Pods(pods) => start.saturating_add(pods),
                Change::Percent(percent) => {
                    (f64::from(start) * (1.0 + f64::from(percent) / 100.0)).ceil() as i32
                }
            }
        });
        match self.select {
            Select::Disabled => Some(current),
            Select::Min => limits.min(),
            Select::Max => limits.max(),
        }
        .unwrap_or(current)
    }

    /// `calculateScaleDownLimitWithBehaviors`.
    fn limit_down(&self, current: i32, history: &History, now: Timestamp) -> i32 {
        let limits = self.policies.iter().map(|policy| {
            let start = history.replicas_before(policy.period, current, now);
            match policy.change {
                Change::Pods(pods) => start.saturating_sub(pods),
                Change::Percent(percent) => (f64::from(start) * (1.0 - f64::from(percent) / 100.0)) as i32,
            }
        });
        match self.select {
            Select::Disabled => Some(current),
            Select::Min => limits.max(),
            Select::Max => limits.min(),
        }
        .unwrap_or(current)
    }

    fn longest_period(&self) -> SignedDuration {
        self.policies.iter().map(|policy| policy.period).max().unwrap_or_default()
    }
}

impl Policy {
    fn of(policy: &HPAScalingPolicy) -> Option<Self> {
        let change = match policy.type_.as_str() {
            "Pods" => Change::Pods(policy.value),
            "Percent" => Change::Percent(policy.value),
            _ => return None,
        };
        Some(Self { change, period: SignedDuration::from_secs(policy.period_seconds.into()) })
    }
}

/// Remembers a change for the policies that will ask for it; without a `behavior` none will (`storeScaleEvent`).
pub(super) fn remember(
    behavior: Option<&HorizontalPodAutoscalerBehavior>,
    (from, to): (i32, i32),
    history: &mut History,
    now: Timestamp,
) {
    let Some(behavior) = behavior.map(Behavior::of) else { return };
    let rules = if to > from { behavior.up } else { behavior.down };
    history.changed(from, to, rules.longest_period(), now);
}

#[cfg(test)]
#[path = "limits_tests.rs"]
mod tests;
