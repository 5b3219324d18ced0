//! The steps of a replay: what others wrote, and what the operator wrote then. Pure.

use std::time::Duration;

use kubewright_recording::Write;
use kubewright_trial::story::is_upkeep;

use super::tape::Operator;

/// For how long nobody writes where the recorded operator is taken to be at rest.
const QUIET: Duration = Duration::from_millis(500);

/// A stretch of a recording.
#[derive(Debug, Default)]
pub(super) struct Step<'a> {
    /// What others wrote.
    pub(super) others: Vec<&'a Write>,
    /// What the operator wrote then, before others wrote again.
    pub(super) own: Vec<&'a Write>,
    /// Whether nobody wrote for a while after it: what was done until then is compared.
    pub(super) is_judged: bool,
}

impl<'a> Step<'a> {
    /// The last write of it.
    pub(super) fn last(&self) -> Option<&'a Write> {
        self.own.last().or(self.others.last()).copied()
    }
}

/// The steps of these writes. Leases and events are left out, and what the API server does by itself, as it does here too.
pub(super) fn steps<'a>(writes: &'a [Write], operator: &Operator) -> Vec<Step<'a>> {
    let knows_authors = writes.iter().any(|write| !write.by.user.is_empty());
    let is_of_server =
        |write: &Write| knows_authors && write.by.user.is_empty() && write.by.program.is_empty();
    let mut steps = vec![Step::default()];
    for write in writes.iter().filter(|write| !is_upkeep(&write.collection) && !is_of_server(write)) {
        let Some(step) = steps.last_mut() else { break };
        if operator.is(&write.by) {
            step.own.push(write);
            continue;
        }
        let pause = step.last().map(|last| write.time.duration_since(last.time));
        let is_quiet = pause.is_some_and(|pause| Duration::try_from(pause).is_ok_and(|pause| pause >= QUIET));
        if is_quiet || !step.own.is_empty() {
            step.is_judged = is_quiet;
            steps.push(Step { others: vec![write], ..Step::default() });
        } else {
            step.others.push(write);
        }
    }
    if let Some(last) = steps.last_mut() {
        last.is_judged = true;
    }
    steps
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use kubewright_recording::{Author, Did};
    use serde_json::{json, value::to_raw_value};

    use super::*;

    fn write(millis: i64, program: &str, collection: &str) -> Write {
        Write {
            revision: 1,
            time: Timestamp::from_millisecond(millis).expect("a time"),
            by: Author {
                user: if program.is_empty() { "" } else { "u" }.to_owned(),
                program: program.to_owned(),
            },
            did: Did::Update,
            inferred: false,
            collection: collection.to_owned(),
            key: "default/a".to_owned(),
            object: to_raw_value(&json!({})).expect("JSON"),
        }
    }

    #[test]
    fn a_step_is_what_others_wrote_and_what_came_of_it_and_is_judged_where_all_is_quiet() {
        let maps = "/configmaps";
        let writes = [
            write(0, "kubectl", maps),
            write(10, "kubectl", maps),
            write(20, "press", maps),
            write(25, "press", "coordination.k8s.io/leases"),
            write(28, "", maps),
            write(30, "kube-controller-manager", maps),
            write(40, "press", maps),
            write(2000, "kubectl", maps),
            write(4000, "kubectl", maps),
            write(4010, "press", maps),
        ];
        let steps = steps(&writes, &Operator::Program("press".to_owned()));
        let shape: Vec<_> =
            steps.iter().map(|step| (step.others.len(), step.own.len(), step.is_judged)).collect();
        assert_eq!(shape, [(2, 1, false), (1, 1, true), (1, 0, true), (1, 1, true)]);
    }
}
