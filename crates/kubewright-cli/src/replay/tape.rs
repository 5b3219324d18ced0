//! A recording in memory, and whose writes in it are the operator's. Pure but for reading the file.

use std::{
    collections::BTreeMap,
    fmt,
    fs::File,
    io::{BufReader, Read, Seek},
    path::Path,
};

use anyhow::{Context, anyhow, bail};
use jiff::Timestamp;
use kubewright_cluster::recording::Recording;
use kubewright_recording::{At, Author, Header, Limit, Reader, Record, Write, is_recording};
use kubewright_trial::story::is_upkeep;
use serde_json::Value;

use super::author;

const ACCOUNT: &str = "system:serviceaccount:";
/// Programs with which people write, and those of Kubernetes: how their names begin.
const TOOLS: [&str; 14] = [
    "kubectl",
    "kubewright",
    "kube-controller-manager",
    "kube-scheduler",
    "kube-apiserver",
    "api-priority-and-fairness-config",
    "kubelet",
    "kwok",
    "helm",
    "Helm",
    "kustomize",
    "argocd",
    "curl",
    "Go-http-client",
];

/// What was recorded.
pub(super) struct Tape {
    pub(super) header: Header,
    pub(super) writes: Vec<Write>,
    /// When each author asked for something for the first time.
    asked: Vec<(Author, Timestamp)>,
}

/// The operator of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    /// All that this user writes.
    User(String),
    /// All that a program of this name writes, whoever runs it.
    Program(String),
}

impl Tape {
    /// Reads a file of either format.
    ///
    /// # Errors
    /// When it is no recording, or nothing was written in it.
    pub(super) fn open(path: &Path) -> anyhow::Result<Self> {
        let name = || format!("the recording {}", path.display());
        let mut file = File::open(path).with_context(name)?;
        let mut beginning = Vec::new();
        (&mut file).take(8).read_to_end(&mut beginning).with_context(name)?;
        file.rewind().with_context(name)?;
        let mut tape = Self { header: Header::default(), writes: Vec::new(), asked: Vec::new() };
        if is_recording(&beginning) {
            let mut reader = Reader::open(file).with_context(name)?;
            tape.header = reader.header().clone();
            while let Some(record) = reader.next_record().with_context(name)? {
                tape.add(record);
            }
        } else {
            let (_, recording) = Recording::read(BufReader::new(file)).with_context(name)?;
            for write in recording.writes() {
                tape.add(Record::Write(write.record()?));
            }
        }
        if tape.writes.is_empty() {
            bail!("{} is empty: nothing was written in it", name());
        }
        if tape.writes.iter().all(|write| write.by.user.is_empty()) {
            author::attribute(&mut tape.writes);
        }
        Ok(tape)
    }

    fn add(&mut self, record: Record) {
        match record {
            Record::Write(write) => self.writes.push(write),
            Record::Request(request) => {
                if self.asked.iter().all(|(author, _)| *author != request.by) {
                    self.asked.push((request.by, request.time));
                }
            }
            Record::Reconcile(_) | Record::Mark(_) => {}
        }
    }

    /// Whose writes are the operator's: who is named, else the only one that is no person and no part of Kubernetes.
    ///
    /// # Errors
    /// When it wrote nothing, or it is not known which one it is.
    pub(super) fn operator(&self, named: Option<&str>) -> anyhow::Result<Operator> {
        let writers = self.writers();
        let list = || {
            let lines = writers.iter().map(|(name, (count, _))| format!("\n  {name}  ({count} writes)"));
            lines.collect::<String>()
        };
        if let Some(named) = named {
            let found = self.writes.iter().find_map(|write| Operator::named(named, &write.by));
            return found.ok_or_else(|| {
                anyhow!("--as {named}: it wrote nothing in the recording; those who wrote are:{}", list())
            });
        }
        let mut candidates: Vec<&Operator> =
            writers.values().filter_map(|(_, operator)| operator.as_ref()).collect();
        candidates.dedup();
        match candidates.as_slice() {
            [one] => Ok((*one).clone()),
            [] => Err(anyhow!(
                "nobody in the recording looks like an operator: name the one to be replayed with --as; those who wrote are:{}",
                list()
            )),
            several => {
                let names: Vec<String> = several.iter().map(ToString::to_string).collect();
                Err(anyhow!(
                    "the recording has several operators ({}): name the one to be replayed with --as; those who wrote are:{}",
                    names.join(", "),
                    list()
                ))
            }
        }
    }

    /// Those who wrote, by name, with how much; and each as an operator, where it may be one.
    fn writers(&self) -> BTreeMap<String, (usize, Option<Operator>)> {
        let mut writers: BTreeMap<String, (usize, Option<Operator>)> = BTreeMap::new();
        for write in self.writes.iter().filter(|write| !is_upkeep(&write.collection)) {
            let name = match (&*write.by.user, program(&write.by)) {
                ("", "") => continue,
                ("", program) => program.to_owned(),
                (user, "") => user.to_owned(),
                (user, program) => format!("{user} by {program}"),
            };
            writers.entry(name).or_insert_with(|| (0, Operator::candidate(&write.by))).0 += 1;
        }
        writers
    }

    /// Which writes are the state that a replay begins with: how many, from the first on.
    ///
    /// Where nothing is said these are the writes before the operator's first request; where the recording has no requests, what
    /// was there when it began.
    ///
    /// # Errors
    /// When the moment is not in the recording.
    pub(super) fn start(&self, from: Option<At>, operator: &Operator) -> anyhow::Result<usize> {
        let Some(at) = from else {
            let first = self.asked.iter().filter(|(by, _)| operator.is(by)).map(|(_, time)| *time).min();
            return Ok(match first {
                Some(first) => self.writes.iter().take_while(|write| write.time < first).count(),
                None => self.writes.iter().take_while(|write| self.was_there(write)).count(),
            });
        };
        let limit = at.limit(self.writes.last().map(|write| write.time));
        let is_before = |write: &&Write| match limit {
            Limit::Nothing => true,
            Limit::Revision(most) => write.revision <= most,
            Limit::Time(latest) => write.time <= latest,
        };
        let count = self.writes.iter().take_while(is_before).count();
        if count == 0 {
            let first = &self.writes[0];
            bail!("--from: the recording begins at revision {}, {}", first.revision, first.time);
        }
        Ok(count)
    }

    /// Whether an object was there before the recording began.
    fn was_there(&self, write: &Write) -> bool {
        let object: Value = serde_json::from_str(write.object.get()).unwrap_or_default();
        let created = object["metadata"]["creationTimestamp"].as_str().and_then(|time| time.parse().ok());
        created.zip(self.header.started).is_some_and(|(created, started): (Timestamp, _)| created < started)
    }
}

impl Operator {
    /// Somebody who may be one: a service account that is none of Kubernetes, or a program that is no tool.
    fn candidate(by: &Author) -> Option<Self> {
        if let Some(account) = by.user.strip_prefix(ACCOUNT) {
            return (!account.starts_with("kube-system:")).then(|| Self::User(by.user.clone()));
        }
        let is_of_kubernetes = by.user.starts_with("system:") && by.user != "system:admin";
        let program = program(by);
        let is_tool = program.is_empty() || TOOLS.iter().any(|tool| program.starts_with(tool));
        (!is_of_kubernetes && !is_tool).then(|| Self::Program(program.to_owned()))
    }

    /// The writer of that name, where this is it: a user, NAMESPACE/NAME of a service account, or a program.
    fn named(name: &str, by: &Author) -> Option<Self> {
        let is_account = || {
            let account = by.user.strip_prefix(ACCOUNT).and_then(|account| account.split_once(':'));
            account.is_some_and(|(namespace, own)| name.split_once('/') == Some((namespace, own)))
        };
        if by.user == name || is_account() {
            return Some(Self::User(by.user.clone()));
        }
        let is_program = !by.program.is_empty() && (by.program == name || program(by) == name);
        is_program.then(|| Self::Program(program(by).to_owned()))
    }

    /// Whether somebody is it.
    pub(super) fn is(&self, by: &Author) -> bool {
        match self {
            Self::User(user) => by.user == *user,
            Self::Program(name) => program(by) == name,
        }
    }

    /// The namespace and the name of the service account that it runs under when it is replayed: one of its own, to which nothing is bound.
    pub(super) fn account(&self) -> (String, String) {
        let own = match self {
            Self::User(user) => user.strip_prefix(ACCOUNT).and_then(|account| account.split_once(':')),
            Self::Program(_) => None,
        };
        let (namespace, name) = own.unwrap_or(("default", "operator"));
        (namespace.to_owned(), format!("{name}-replay"))
    }
}

impl fmt::Display for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User(user) => {
                match user.strip_prefix(ACCOUNT).and_then(|account| account.split_once(':')) {
                    Some((namespace, name)) => write!(f, "{namespace}/{name}"),
                    None => f.write_str(user),
                }
            }
            Self::Program(name) => f.write_str(name),
        }
    }
}

/// `press` of `press/v0.0.0 (linux/amd64)`.
fn program(by: &Author) -> &str {
    by.program.split(['/', ' ']).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use kubewright_recording::Did;
    use serde_json::{json, value::to_raw_value};

    use super::*;

    fn write(second: i64, user: &str, program: &str) -> Write {
        let object = json!({"metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"}});
        Write {
            revision: second.unsigned_abs(),
            time: Timestamp::from_second(second).expect("a time"),
            by: Author { user: user.to_owned(), program: program.to_owned() },
            did: Did::Update,
            inferred: false,
            collection: "/configmaps".to_owned(),
            key: "default/a".to_owned(),
            object: to_raw_value(&object).expect("JSON"),
        }
    }

    fn tape(writes: Vec<Write>) -> Tape {
        Tape { header: Header::default(), writes, asked: Vec::new() }
    }

    #[test]
    fn the_only_operator_is_found_by_itself_and_several_are_listed() {
        let people = || {
            vec![
                write(1, "", ""),
                write(2, "kubernetes-admin", "kubectl/v1.36"),
                write(3, "system:kube-scheduler", ""),
            ]
        };
        let with = |more: &[(&str, &str)]| {
            let mut all = people();
            all.extend(more.iter().map(|(user, program)| write(4, user, program)));
            tape(all).operator(None)
        };
        let account = "system:serviceaccount:shop:press";
        assert_eq!(with(&[(account, "press/v1 (linux)")]).expect("one"), Operator::User(account.to_owned()));
        assert_eq!(
            with(&[("kubernetes-admin", "press/v1")]).expect("one"),
            Operator::Program("press".to_owned())
        );
        let none = with(&[]).expect_err("none").to_string();
        assert!(none.contains("--as") && none.contains("kubernetes-admin by kubectl  (1 writes)"), "{none}");
        let several = with(&[(account, "press/v1"), ("someone", "other/v1")]).expect_err("two").to_string();
        assert!(several.contains("other") && several.contains("shop/press"), "{several}");
    }

    #[test]
    fn an_operator_is_named_by_its_account_or_its_program() {
        let account = "system:serviceaccount:shop:press";
        let tape = tape(vec![write(1, account, "press/v1"), write(2, "someone", "other/v1")]);
        let user = Operator::User(account.to_owned());
        assert_eq!(tape.operator(Some("shop/press")).expect("it"), user);
        assert_eq!(tape.operator(Some(account)).expect("it"), user);
        assert_eq!(tape.operator(Some("other")).expect("it"), Operator::Program("other".to_owned()));
        assert!(tape.operator(Some("nobody")).expect_err("none").to_string().contains("wrote nothing"));
        assert_eq!(user.account(), ("shop".to_owned(), "press-replay".to_owned()));
    }

    #[test]
    fn a_replay_begins_before_the_first_request_of_the_operator() {
        let operator = Operator::Program("press".to_owned());
        let mut tape =
            tape(vec![write(1, "a", "kubectl"), write(5, "a", "kubectl"), write(7, "b", "press/v1")]);
        tape.asked.push((
            Author { user: "b".to_owned(), program: "press/v1".to_owned() },
            Timestamp::from_second(3).expect("a time"),
        ));
        assert_eq!(tape.start(None, &operator).expect("a start"), 1);
        assert_eq!(tape.start(Some(At::Revision(5)), &operator).expect("a start"), 2);
        assert!(tape.start(Some(At::Revision(0)), &operator).is_err());
    }
}
