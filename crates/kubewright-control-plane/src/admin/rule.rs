//! A fault, and which requests it affects: what is posted to `/kubewright/faults`.

use std::num::NonZeroU64;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::matching::{Match, Verb};
use super::schedule::Schedule;
use super::{duration, request_info::RequestInfo};

/// What goes wrong.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum ApiFault {
    /// 409 for an update, a patch or a deletion: the object is said to have changed.
    Conflict {},
    /// 429 with a `Retry-After`.
    TooManyRequests {
        /// In how many seconds the client is to try again.
        #[serde(default = "one")]
        retry_after: u32,
    },
    /// An error of any code, with a Status.
    Error {
        /// From 400 to 599.
        #[serde(default = "internal")]
        code: u16,
        /// The reason of the Status; that of the code without.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// The message of the Status; that of the code without.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
    /// The client gets no answer, and cannot know whether the request was carried out.
    Timeout {
        /// Whether it was.
        #[serde(default)]
        done: bool,
        /// What it gets instead.
        #[serde(default)]
        answer: NoAnswer,
    },
    /// The request is carried out, but later.
    Latency {
        /// How much later, in cluster time.
        #[serde(with = "duration")]
        by: Duration,
    },
    /// A list that takes any state (`resourceVersion=0`, as client-go's informers ask for first) is answered with an old one, as by an API
    /// server that lags. Other lists are answered as always.
    OldList {
        /// The revision of that state.
        revision: u64,
    },
    /// A watch ends.
    DropWatch {
        /// How it does.
        #[serde(default)]
        how: WatchEnd,
    },
    /// A watch ends with 410: its history is no longer there.
    ExpireWatch {},
    /// Events are told twice, as by a watch that is opened again a little before where the last one ended.
    RepeatWatch {},
    /// Events are left out, and those behind them are told: its client does not learn of a state until it lists anew, or until the next
    /// event of that object.
    SkipWatch {},
    /// A watch tells nothing: its client works on old state.
    HoldWatch {
        /// For how long, in cluster time; until the rule is removed without.
        #[serde(rename = "for", with = "duration::option", default, skip_serializing_if = "Option::is_none")]
        lasting: Option<Duration>,
    },
}

/// Failure that a client gets in place of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum NoAnswer {
    /// The connection is cut; of HTTP/2, the stream of the request.
    #[default]
    #[serde(rename = "cut")]
    Cut,
    /// 504, as a server says it whose time is over.
    #[serde(rename = "504")]
    GatewayTimeout,
}

/// How a watch ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WatchEnd {
    /// As when its time is over.
    #[default]
    Cleanly,
    /// As when the connection is cut.
    Reset,
}

fn one() -> u32 {
    1
}

fn internal() -> u16 {
    500
}

impl ApiFault {
    /// Whether it affects open watches, and not requests.
    #[must_use]
    pub fn is_of_watches(&self) -> bool {
        matches!(
            self,
            Self::DropWatch { .. }
                | Self::ExpireWatch {}
                | Self::RepeatWatch {}
                | Self::SkipWatch {}
                | Self::HoldWatch { .. }
        )
    }
}

/// A fault and which requests it affects.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// Requests that it may affect.
    pub matching: Match,
    /// What goes wrong.
    pub fault: ApiFault,
    /// Which of them. For a fault of watches these are the pieces of events that watches are about to tell; without a
    /// schedule it affects the watches that are open now (a repetition, and what is left out: the next piece). Any other fault without one
    /// affects the next request.
    pub schedule: Option<Schedule>,
}

/// What can be conflicted with.
const CHANGES: [Verb; 3] = [Verb::Update, Verb::Patch, Verb::Delete];

impl Rule {
    /// For the next request of any kind, or for all open watches.
    #[must_use]
    pub fn new(fault: ApiFault) -> Self {
        Self { matching: Match::default(), fault, schedule: None }
    }

    /// For these requests.
    #[must_use]
    pub fn on(mut self, matching: Match) -> Self {
        self.matching = matching;
        self
    }

    /// For those of them that a schedule names.
    #[must_use]
    pub fn at(mut self, schedule: Schedule) -> Self {
        self.schedule = Some(schedule);
        self
    }

    /// Whether it may affect a request.
    pub(super) fn matches(&self, info: &RequestInfo) -> bool {
        let fits = match self.fault {
            ApiFault::Conflict {} => CHANGES.iter().any(|verb| verb.name() == info.verb),
            ApiFault::OldList { .. } => info.verb == Verb::List.name(),
            _ => !self.fault.is_of_watches() || info.verb == Verb::Watch.name(),
        };
        fits && self.matching.matches(info)
    }

    /// Whether it affects the watches that are open when it is made, and not what they tell later.
    pub(super) fn is_of_open_watches(&self) -> bool {
        let is_of_pieces = matches!(self.fault, ApiFault::RepeatWatch {} | ApiFault::SkipWatch {});
        self.schedule.is_none() && self.fault.is_of_watches() && !is_of_pieces
    }

    /// Reads a rule from JSON.
    ///
    /// # Errors
    /// In words for a person, when something in it is unknown or makes no sense.
    pub fn read(json: &[u8]) -> Result<Self, String> {
        let value: Value = serde_json::from_slice(json).map_err(|error| error.to_string())?;
        if !value.is_object() {
            return Err("a rule is an object such as {\"fault\":\"conflict\"}".to_owned());
        }
        let written: Written = kubewright_objects::from_value(value).map_err(|error| error.to_string())?;
        let rule = written.rule()?;
        rule.check()?;
        Ok(rule)
    }

    /// What the types allow and makes no sense.
    fn check(&self) -> Result<(), String> {
        match &self.fault {
            ApiFault::Conflict {} if self.matching.verbs.iter().any(|verb| !CHANGES.contains(verb)) => {
                Err("a conflict affects the verbs \"update\", \"patch\" and \"delete\" only".to_owned())
            }
            ApiFault::OldList { .. } if self.matching.verbs.iter().any(|verb| *verb != Verb::List) => {
                Err("an old list affects the verb \"list\" only".to_owned())
            }
            ApiFault::OldList { revision: 0 } => Err("an old list is of a revision from 1 on".to_owned()),
            ApiFault::Error { code, .. } if !(400..600).contains(code) => {
                Err(format!("{code} is not the code of an error: 400 to 599"))
            }
            fault if fault.is_of_watches() && self.matching.verbs.iter().any(|verb| *verb != Verb::Watch) => {
                Err("a fault of watches affects the verb \"watch\" only".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// As it is written in JSON; `seed` is where its dice started.
    pub(super) fn write(&self, seed: u64) -> Map<String, Value> {
        let mut written = Map::new();
        written.insert("match".to_owned(), json!(self.matching));
        written.insert("fault".to_owned(), json!(self.fault));
        if let Some(schedule) = self.schedule {
            written.insert("times".to_owned(), schedule.times.map_or(0, NonZeroU64::get).into());
            written.insert("after".to_owned(), schedule.after.into());
            written.insert("every".to_owned(), schedule.every.get().into());
            written.insert("probability".to_owned(), schedule.probability.into());
            written.insert("seed".to_owned(), seed.into());
        }
        written
    }
}

/// A rule as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default, rename = "match")]
    matching: Match,
    fault: Value,
    times: Option<u64>,
    after: Option<u64>,
    every: Option<NonZeroU64>,
    probability: Option<f64>,
    seed: Option<u64>,
}

impl Written {
    fn rule(self) -> Result<Rule, String> {
        let scheduled = self.times.is_some()
            || self.after.is_some()
            || self.every.is_some()
            || self.probability.is_some();
        let probability = self.probability.unwrap_or(1.0);
        if !(0.0..=1.0).contains(&probability) {
            return Err(format!("{probability} is no probability: 0 to 1"));
        }
        // Once, unless it is said how often it comes again.
        let comes_again = self.every.is_some() || self.probability.is_some();
        let schedule = scheduled.then(|| Schedule {
            times: NonZeroU64::new(self.times.unwrap_or(u64::from(!comes_again))),
            after: self.after.unwrap_or(0),
            every: self.every.unwrap_or(NonZeroU64::MIN),
            probability,
            seed: self.seed,
        });
        let fault = match self.fault {
            Value::String(name) => json!({ name: {} }),
            other => other,
        };
        let fault = kubewright_objects::from_value(fault).map_err(|error| format!("fault: {error}"))?;
        Ok(Rule { matching: self.matching, fault, schedule })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Rule {
        Rule::read(json.as_bytes()).expect(json)
    }

    fn refused(json: &str) -> String {
        Rule::read(json.as_bytes()).expect_err(json)
    }

    #[test]
    fn a_fault_is_a_name_or_a_name_with_settings() {
        assert_eq!(read(r#"{"fault": "conflict"}"#), Rule::new(ApiFault::Conflict {}));
        assert_eq!(
            read(r#"{"fault": "tooManyRequests"}"#),
            Rule::new(ApiFault::TooManyRequests { retry_after: 1 })
        );
        assert_eq!(
            read(r#"{"fault": {"timeout": {"done": true, "answer": "504"}}}"#),
            Rule::new(ApiFault::Timeout { done: true, answer: NoAnswer::GatewayTimeout })
        );
        assert_eq!(
            read(r#"{"fault": {"latency": {"by": "1m30s"}}}"#),
            Rule::new(ApiFault::Latency { by: Duration::from_secs(90) })
        );
        assert_eq!(
            read(r#"{"fault": {"holdWatch": {"for": "5s"}}, "match": {"resource": "pods"}}"#),
            Rule::new(ApiFault::HoldWatch { lasting: Some(Duration::from_secs(5)) })
                .on(Match::resource("pods"))
        );
    }

    #[test]
    fn a_rule_strikes_once_unless_it_says_how_often_it_comes_again() {
        let times = |json: &str| read(json).schedule.map(|schedule| schedule.times.map(NonZeroU64::get));
        assert_eq!(times(r#"{"fault": "error"}"#), None);
        assert_eq!(times(r#"{"fault": "error", "after": 2}"#), Some(Some(1)));
        assert_eq!(times(r#"{"fault": "error", "times": 3}"#), Some(Some(3)));
        assert_eq!(times(r#"{"fault": "error", "times": 0}"#), Some(None));
        assert_eq!(times(r#"{"fault": "error", "every": 3}"#), Some(None));
        assert_eq!(times(r#"{"fault": "error", "probability": 0.1, "times": 5}"#), Some(Some(5)));
    }

    #[test]
    fn what_is_unknown_is_refused_with_what_is_known() {
        for (json, message) in [
            (
                r#"{"fault": "conflit"}"#,
                "unknown variant `conflit`, expected one of `conflict`, `tooManyRequests`",
            ),
            (
                r#"{"fault": "error", "tims": 3}"#,
                "unknown field `tims`, expected one of `match`, `fault`, `times`",
            ),
            (
                r#"{"fault": "error", "match": {"verb": "get"}}"#,
                "unknown field `verb`, expected one of `verbs`, `group`, `resource`",
            ),
            (
                r#"{"fault": "error", "match": {"verbs": ["put"]}}"#,
                "unknown variant `put`, expected one of `get`, `list`, `watch`",
            ),
            (r#"{"fault": {"error": {"cod": 500}}}"#, "unknown field `cod`, expected one of `code`"),
            (
                r#"{"fault": {"timeout": {"answer": "503"}}}"#,
                "unknown variant `503`, expected `cut` or `504`",
            ),
            (r#"{"fault": {"dropWatch": {"how": "hard"}}}"#, "expected `cleanly` or `reset`"),
            (r#"{"fault": {"latency": {}}}"#, "missing field `by`"),
            (
                r#"{"fault": {"latency": {"by": "1"}}}"#,
                "missing unit in duration \"1\": durations are written as",
            ),
            (r#"{"fault": {"latency": {"by": "-1s"}}}"#, "is negative"),
            (r#"{"fault": {"error": {"code": 200}}}"#, "200 is not the code of an error: 400 to 599"),
            (r#"{"fault": "error", "probability": 2}"#, "2 is no probability: 0 to 1"),
            (
                r#"{"fault": "conflict", "match": {"verbs": ["create"]}}"#,
                "\"update\", \"patch\" and \"delete\" only",
            ),
            (r#"{"fault": "dropWatch", "match": {"verbs": ["get"]}}"#, "the verb \"watch\" only"),
            (r#"{"match": {}}"#, "missing field `fault`"),
            ("[]", "a rule is an object"),
            ("", "EOF"),
        ] {
            let refused = refused(json);
            assert!(refused.contains(message), "{json}: {refused}");
        }
    }

    #[test]
    fn a_rule_that_was_written_reads_back() {
        for json in [
            r#"{"fault": "conflict", "times": 2, "match": {"verbs": ["patch"], "userAgent": "a"}}"#,
            r#"{"fault": {"error": {"code": 503, "message": "no"}}, "every": 3, "seed": 7}"#,
            r#"{"fault": {"latency": {"by": "250ms"}}, "times": 0}"#,
            r#"{"fault": {"holdWatch": {"for": "5s"}}, "probability": 0.5, "seed": 7}"#,
        ] {
            let rule = read(json);
            let mut back = Rule::read(Value::Object(rule.write(7)).to_string().as_bytes()).expect(json);
            if let (Some(back), Some(rule)) = (&mut back.schedule, rule.schedule) {
                back.seed = rule.seed;
            }
            assert_eq!(back, rule, "{json}");
        }
    }
}
