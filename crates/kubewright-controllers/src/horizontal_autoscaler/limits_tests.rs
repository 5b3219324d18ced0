use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).expect("a time")
}

fn behavior(behavior: Value) -> HorizontalPodAutoscalerBehavior {
    kubewright_objects::from_value(behavior).expect("a behavior")
}

fn bounds(current: i32) -> Bounds {
    Bounds { min: 1, max: 20, current }
}

/// An autoscaler that is looked at again and again, and does what it is told.
struct Run {
    behavior: Option<HorizontalPodAutoscalerBehavior>,
    history: History,
    bounds: Bounds,
}

impl Run {
    fn of(behavior: Option<HorizontalPodAutoscalerBehavior>, bounds: Bounds) -> Self {
        let mut history = History::default();
        history.begin(bounds.current, at(0));
        Self { behavior, history, bounds }
    }

    fn look(&mut self, second: i64, desired: i32) -> Normal {
        let behavior = self.behavior.as_ref();
        let normal = normalize(behavior, self.bounds, desired, &mut self.history, at(second));
        if normal.replicas != self.bounds.current {
            let change = (self.bounds.current, normal.replicas);
            remember(behavior, change, &mut self.history, at(second));
            self.bounds.current = normal.replicas;
        }
        normal
    }
}

#[test]
fn without_a_behavior_it_at_most_doubles_or_makes_four() {
    for (current, replicas) in [(1, 4), (2, 4), (3, 6), (9, 18), (15, 20)] {
        let normal = Run::of(None, bounds(current)).look(15, 100);
        assert_eq!(normal.replicas, replicas);
        let why = if replicas == 20 { TOO_MANY } else { UP_LIMIT };
        assert_eq!((normal.able, normal.limited), (READY, (true, why)));
    }
}

#[test]
fn without_a_behavior_a_high_recommendation_holds_for_five_minutes() {
    let mut run = Run::of(None, bounds(5));
    let held = run.look(15, 2);
    assert_eq!((held.replicas, held.able, held.limited), (5, DOWN_STABILISED, (false, WITHIN)));
    assert_eq!(run.look(300, 2).replicas, 5);
    let free = run.look(301, 2);
    assert_eq!((free.replicas, free.able, free.limited), (2, READY, (false, WITHIN)));
    assert_eq!(run.look(900, 0).limited, (true, TOO_FEW));
}

#[test]
fn policies_say_how_fast_it_goes() {
    let policies = json!({"scaleUp": {"policies": [{"type": "Pods", "value": 2, "periodSeconds": 60}]},
        "scaleDown": {"stabilizationWindowSeconds": 0,
            "policies": [{"type": "Percent", "value": 50, "periodSeconds": 60}, {"type": "Pods", "value": 1, "periodSeconds": 60}]}});
    let mut run = Run::of(Some(behavior(policies.clone())), bounds(3));
    let up = run.look(15, 10);
    assert_eq!((up.replicas, up.limited), (5, (true, UP_LIMIT)));
    assert_eq!(run.look(30, 10).replicas, 5);
    assert_eq!(run.look(75, 10).replicas, 7);
    let mut run = Run::of(Some(behavior(policies)), bounds(10));
    let down = run.look(15, 1);
    assert_eq!((down.replicas, down.limited), (5, (true, DOWN_LIMIT)));
    assert_eq!((run.look(30, 1).replicas, run.look(75, 1).replicas), (5, 2));
}

#[test]
fn the_smallest_change_is_chosen_if_asked_for_and_none_if_disabled() {
    let both = json!([{"type": "Pods", "value": 1, "periodSeconds": 60}, {"type": "Percent", "value": 100, "periodSeconds": 60}]);
    let min = json!({"scaleUp": {"selectPolicy": "Min", "policies": both},
        "scaleDown": {"selectPolicy": "Min", "stabilizationWindowSeconds": 0, "policies": both}});
    assert_eq!(Run::of(Some(behavior(min.clone())), bounds(4)).look(15, 10).replicas, 5);
    assert_eq!(Run::of(Some(behavior(min)), bounds(4)).look(15, 1).replicas, 3);
    let disabled = json!({"scaleUp": {"selectPolicy": "Disabled"},
        "scaleDown": {"selectPolicy": "Disabled", "stabilizationWindowSeconds": 0}});
    let up = Run::of(Some(behavior(disabled.clone())), bounds(4)).look(15, 10);
    assert_eq!((up.replicas, up.limited), (4, (true, UP_LIMIT)));
    assert_eq!(Run::of(Some(behavior(disabled)), bounds(4)).look(15, 1).replicas, 4);
}

#[test]
fn a_window_up_waits_for_the_lowest_recommendation() {
    let window = json!({"scaleUp": {"stabilizationWindowSeconds": 60}});
    let mut run = Run::of(Some(behavior(window)), bounds(2));
    let held = run.look(15, 6);
    assert_eq!((held.replicas, held.able), (2, UP_STABILISED));
    assert_eq!(run.look(59, 4).replicas, 2);
    assert_eq!(run.look(60, 5).replicas, 4);
    // What is left out of a behavior is as by default: five minutes down.
    assert_eq!(run.look(75, 1).able, DOWN_STABILISED);
}

/// Everything that ever happened, and the rule said plainly.
#[derive(Default)]
struct Model {
    recommended: Vec<(i64, i32)>,
    changed: Vec<(i64, i32)>,
}

#[derive(Clone, Copy, Debug)]
struct Pods {
    value: i32,
    period: i32,
    window: i32,
}

impl Model {
    fn look(&mut self, rules: (Pods, Pods), bounds: Bounds, second: i64, desired: i32) -> i32 {
        let (up, down) = rules;
        let within = |window: i32| self.recommended.iter().filter(move |(at, _)| second - at < window.into());
        let lowest = within(up.window).map(|(_, one)| *one).chain([desired]).min().expect("one");
        let highest = within(down.window).map(|(_, one)| *one).chain([desired]).max().expect("one");
        let stable = if bounds.current < lowest { lowest } else { bounds.current }.min(highest);
        self.recommended.push((second, desired));
        let start = |period: i32| {
            let recent = self.changed.iter().filter(|(at, _)| second - at < period.into());
            bounds.current - recent.map(|(_, by)| by).sum::<i32>()
        };
        let replicas = if stable > bounds.current {
            stable.min((start(up.period) + up.value).max(bounds.current)).min(bounds.max)
        } else {
            stable
                .max((start(down.period) - down.value).min(bounds.current))
                .max(bounds.min)
                .min(bounds.current)
        };
        if replicas != bounds.current {
            self.changed.push((second, replicas - bounds.current));
        }
        replicas
    }
}

/// Rules up and down with one period: what is older than that makes room, and counts for neither.
fn rules() -> impl Strategy<Value = (Pods, Pods)> {
    let rule = |period| (1..6, 0..100).prop_map(move |(value, window)| Pods { value, period, window });
    (1..100).prop_flat_map(move |period| (rule(period), rule(period)))
}

proptest! {
    #[test]
    fn a_run_under_policies_is_that_of_the_model(
        (up, down) in rules(), looks in proptest::collection::vec((1..40_i64, 0..25), 1..60)
    ) {
        let rule = |one: Pods| json!({"stabilizationWindowSeconds": one.window,
            "policies": [{"type": "Pods", "value": one.value, "periodSeconds": one.period}]});
        let mut run = Run::of(Some(behavior(json!({"scaleUp": rule(up), "scaleDown": rule(down)}))), bounds(5));
        let mut model = Model { recommended: vec![(0, 5)], ..Model::default() };
        let mut second = 0;
        for (later, desired) in looks {
            second += later;
            let expected = model.look((up, down), run.bounds, second, desired);
            prop_assert_eq!(run.look(second, desired).replicas, expected);
        }
    }

    #[test]
    fn a_run_without_rules_stays_in_its_bounds_and_below_twice_of_itself(
        looks in proptest::collection::vec((1..400_i64, 0..50), 1..60)
    ) {
        let mut run = Run::of(None, bounds(5));
        let (mut second, mut seen) = (0, vec![(0, 5)]);
        for (later, desired) in looks {
            second += later;
            seen.push((second, desired));
            let before = run.bounds.current;
            let highest = seen.iter().filter(|(at, _)| second - at <= 300).map(|(_, one)| *one).max().expect("one");
            let expected = highest.clamp(1, 20.min((2 * before).max(4)));
            prop_assert_eq!(run.look(second, desired).replicas, expected);
        }
    }
}
